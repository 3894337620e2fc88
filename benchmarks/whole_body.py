"""Speed of control laws of walking robots: whole-body control, beside general solvers of quadratic programs."""

import time
from typing import Any, NamedTuple

import numpy as np
import qpsolvers
from scipy.sparse import csc_matrix

import controllers
import legged
from benchmarks.harness.record import Record, quantity_table
from benchmarks.harness.subjects import SUBJECTS, Settings, available_robots
from benchmarks.harness.timing import Spread
from controllers.locomotion.torques.quadratic_program import FACTORIZATION, ITERATION, SUBSTITUTION, QuadraticProgram
from controllers.locomotion.torques.tasks import Tracking, WholeBodyModel, link_pose, posture
from controllers.locomotion.torques.whole_body import FORCE_WEIGHT, Contact, JointLimits, whole_body, whole_body_program
from legged.spatial import is_finite
from legged.table import Table

WHOLE_BODY = "whole-body"
ALONE, COLD, MATRICES = "whole_body", "whole_body, no start", "matrices alone"
BACK_ENDS = ("daqp", "proxqp", "quadprog", "osqp", "clarabel")
_CALLS, _BACK_END_CALLS = 10_000, 200
_INFINITE = 1e30
_RATE = 500.0  # [1/s], calls per second of the motion
_FRICTION, _AMPLITUDE = 0.4, 3.0  # [m/s^2], desired accelerations of the base, which reach the friction cones


class _Problems(NamedTuple):
    """Whole-body control of a robot along a motion.

    Attributes:
        robot: The robot. states: (q, v) of each call. targets: Desired accelerations of the base, (T, 6).
        home: Standing configuration, (nq,). iterate_size: Number of entries of an iterate.
    """

    robot: legged.Robot
    states: list[tuple[np.ndarray, np.ndarray]]
    targets: np.ndarray
    home: np.ndarray
    iterate_size: int


def measure_whole_body(record: Record, settings: Settings) -> list[Table]:
    """Add times of whole-body control to the record, and return them as tables."""
    subjects = tuple(subject for subject in SUBJECTS if subject.name in ("Go2", "G1"))
    operations = []
    for subject, robot in available_robots(subjects).items():
        problems = _problems(robot)
        kernel, matrices, cells = _kernels(problems)
        operations.append((subject.name, *cells))
        name = (WHOLE_BODY, subject.name)
        start = np.zeros(problems.iterate_size)
        _add(record, (*name, ALONE), _time_calls(problems, kernel, start, follow=True))
        _add(record, (*name, COLD), _time_calls(problems, kernel, start, follow=False))
        for back_end, times in _time_back_ends(problems, matrices).items():
            _add(record, (*name, back_end), times)
    shown = {"median": "median", "99 %": "99 %", "worst": "worst"}
    notes = (
        f"Microseconds of processor time, called from Python, over {_CALLS} calls along a motion at {_RATE:g} Hz;",
        f"others over {_BACK_END_CALLS}. `whole_body` contains kinematics, dynamics, tasks, and the solution with",
        "friction cones, from the iterate of the call before or from none. The other solvers, called by qpsolvers,",
        "get the finished matrices, with friction pyramids in place of cones; their times contain the solution alone.",
    )
    times = quantity_table(record, WHOLE_BODY, ("robot", "program"), shown, "Whole-body control", notes)
    heads = ("robot", "operations", "of an iteration", "of a factorization", "trace [s]", "compile [s]")
    return [times, Table("Whole-body control, code", heads, tuple(operations), (), left=1)]


def _problems(robot: legged.Robot) -> _Problems:
    """Return the states of a standing robot whose base and joints move, and desired accelerations."""
    home = controllers.home_of(robot)
    q, _ = controllers.Posture(tuple(home.angles), home.base_height).initial_state(robot)
    rng = np.random.default_rng(0)
    directions, shape = rng.normal(size=(2, robot.nv)), rng.normal(size=(2, 6))
    t = np.arange(_CALLS) / _RATE
    waves = np.stack([np.sin(5.0 * t), np.sin(7.0 * t)])
    rates = np.stack([5.0 * np.cos(5.0 * t), 7.0 * np.cos(7.0 * t)])
    states = [
        (legged.integrate(robot, q, 0.02 * wave @ directions), 0.02 * rate @ directions)
        for wave, rate in zip(waves.T, rates.T, strict=True)
    ]
    problems = _Problems(robot, states, _AMPLITUDE * waves.T @ shape, q, 0)
    program, *_ = whole_body_program(*_arguments(problems, robot, *states[0], problems.targets[0]), FORCE_WEIGHT)
    return problems._replace(iterate_size=program.iterate_size)


def _arguments(problems: _Problems, robot: legged.Robot, q: Any, v: Any, target: Any) -> tuple[Any, Any, Any, Any]:
    model = WholeBodyModel(robot, q, v)
    weight = robot.mass * float(np.linalg.norm(robot.gravity))
    contacts = [Contact(point.link, point.position, 1.0, _FRICTION, most=2.0 * weight) for point in robot.contacts]
    base = model.point(0)
    pose = link_pose(model, 0, base.position, base.rotation, Tracking(base.twist, target))
    return model, contacts, [pose, posture(model, problems.home[robot.base.nq :])], JointLimits.of(robot)


def _kernels(problems: _Problems) -> tuple[legged.Kernel, legged.Kernel, tuple[str, ...]]:
    """Return the compiled control, the compiled matrices of its program, and cells of the table of operations."""
    robot, size = problems.robot, problems.iterate_size

    def control(robot: Any, q: Any, v: Any, pose: Any, start: Any) -> Any:
        result = whole_body(*_arguments(problems, robot, q, v, pose), start)
        return np.concatenate([result.tau, result.iterate])

    def matrices(robot: Any, q: Any, v: Any, pose: Any) -> Any:
        program, _ = whole_body_program(*_arguments(problems, robot, q, v, pose), FORCE_WEIGHT)
        lower = [x if is_finite(x) else -_INFINITE for x in program.lower]
        upper = [x if is_finite(x) else _INFINITE for x in program.upper]
        return program.H, program.g, program.E, program.e, program.B, np.array(lower), np.array(upper)

    begin = time.process_time()
    counts = legged.count(control, robot, pose=(6,), start=(size,))
    traced = time.process_time()
    kernel = legged.compile(control, robot, pose=(6,), start=(size,))
    compiled = time.process_time() - traced
    stages = {name: part.M + part.A for name, part in counts.by_stage.items()}
    iteration = sum(stages.get(name, 0) for name in (FACTORIZATION, SUBSTITUTION, ITERATION))
    cells = (str(counts.M + counts.A), str(iteration), str(stages[FACTORIZATION]))
    cells = (*cells, f"{traced - begin:.1f}", f"{compiled:.1f}")
    return kernel, legged.compile(matrices, robot, pose=(6,)), cells


def _time_calls(problems: _Problems, kernel: legged.Kernel, start: np.ndarray, follow: bool) -> np.ndarray:
    """Return the times of all calls, [s], each from the iterate of the one before or from the same one."""
    times, size, now = [], problems.iterate_size, start
    for (q, v), target in zip(problems.states, problems.targets, strict=True):
        begin = time.process_time()
        result = kernel(q, v, target, now)
        times.append(time.process_time() - begin)
        now = result[-size:] if follow else start
    return np.array(times)


def _time_back_ends(problems: _Problems, matrices: legged.Kernel) -> dict[str, np.ndarray]:
    """Return the times of each back end of qpsolvers that is installed, [s]; of the matrices under `MATRICES`."""
    samples = range(0, _CALLS, _CALLS // _BACK_END_CALLS)
    times, programs = [], []
    robot = problems.robot
    program, _ = whole_body_program(
        *_arguments(problems, robot, *problems.states[0], problems.targets[0]), FORCE_WEIGHT
    )
    for i in samples:
        begin = time.process_time()
        arrays = matrices(*problems.states[i], problems.targets[i])
        times.append(time.process_time() - begin)
        programs.append(_with_pyramids(program, *arrays))
    measured = {MATRICES: np.array(times)}
    for back_end in BACK_ENDS:
        if back_end in qpsolvers.available_solvers:
            measured[back_end] = np.array([_time_solution(back_end, program) for program in programs])
    return measured


def _time_solution(back_end: str, program: tuple[np.ndarray, ...]) -> float:
    P, g, G, h, A, b = program
    sparse = back_end in ("osqp", "clarabel")
    matrices = [csc_matrix(X) if sparse else X for X in (P, G, A)]
    begin = time.process_time()
    qpsolvers.solve_qp(matrices[0], g, matrices[1], h, matrices[2], b, solver=back_end)
    return time.process_time() - begin


def _with_pyramids(
    program: QuadraticProgram,
    H: np.ndarray,
    g: np.ndarray,
    E: np.ndarray,
    e: np.ndarray,
    B: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
) -> tuple[np.ndarray, ...]:
    """Return (P, g, G, h, A, b) of the program with friction pyramids within the cones."""
    P = np.triu(H) + np.triu(H, 1).T
    rows = [B[upper < _INFINITE], -B[lower > -_INFINITE]]
    right = [upper[upper < _INFINITE], -lower[lower > -_INFINITE]]
    for one, two, normal in program.cones:
        x, y, z = np.eye(len(g))[[one, two, normal]]
        rows.append(np.array([*(s * t - _FRICTION / np.sqrt(2.0) * z for t in (x, y) for s in (1.0, -1.0)), -z]))
        right.append(np.zeros(5))
    return P, g, np.concatenate(rows), np.concatenate(right), E, e


def _add(record: Record, name: tuple[str, ...], times: np.ndarray) -> None:
    for what, value in (("median", 50.0), ("99 %", 99.0), ("worst", 100.0)):
        microseconds = 1e6 * float(np.percentile(times, value))
        record.add((*name, what), "us", Spread(microseconds, microseconds, microseconds))
