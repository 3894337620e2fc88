"""Table 2 of the paper: times of acceleration and simulation, recursive O(n) beside O(n^3), both measured here.

The routes are timed alternately in one run, since only ratios can be compared between computers.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from controllers import Gait
from controllers.law import GaitLaw
from legged.compiler import Members, TimeLoop
from legged.compiler import compile as compile_function
from legged.dynamics.forward import forward_dynamics
from legged.dynamics.inertia import inertia_matrix
from legged.dynamics.inverse import bias_forces
from legged.ground import Ground
from legged.robot.configuration import random_configuration
from legged.robot.robot import Robot
from legged.simulation import BDF, RungeKutta4
from legged.simulation.backend import COMPILED, Backend, advance
from legged.simulation.controller import adapt
from legged.simulation.integrators import FixedStep, Integrator, Plan, smooth_intervals
from legged.simulation.loop.chart import chart_rate
from legged.simulation.loop.closed_loop import ClosedLoop
from legged.simulation.simulate import sample_times
from legged.spatial import Array, solve_symmetric
from legged.table import Table


def best_times(ways: Sequence[Callable[[], Any]], rounds: int = 7, least: float = 0.02) -> list[float]:
    """Return the best processor time of one call of each function, [s]; a round calls each for `least` seconds."""
    repeats = []
    for way in ways:
        way()
        repeats.append(max(1, int(least / max(_time(way, 1), 1e-9))))
    best = [np.inf] * len(ways)
    for _ in range(rounds):
        for k, (way, times) in enumerate(zip(ways, repeats, strict=True)):
            best[k] = min(best[k], _time(way, times) / times)
    return best


def _time(way: Callable[[], Any], times: int) -> float:
    begun = time.thread_time()
    for _ in range(times):
        way()
    return time.thread_time() - begun


PAPER_ACCELERATION = {"planar biped": (2.88, 2.40), "spatial quadruped": (4.48, 3.49)}
"""Table 2: milliseconds for one acceleration, (O(n^3), O(n)), feed-forward rows."""
PAPER_SIMULATION = {
    ("planar biped", "feed-forward"): (5034, 4312),
    ("planar biped", "computed-torque"): (2920, 2241),
    ("spatial quadruped", "feed-forward"): (16170, 10443),
    ("spatial quadruped", "computed-torque"): (9675, 7031),
}
"""Table 2: milliseconds for one second of simulation, (O(n^3), O(n))."""
BATCH = 1024
FIXED_STEPS = RungeKutta4(step=2e-5)
"""The steps are limited by the gains of feed-forward control of the biped."""


def cubic_forward_dynamics(robot: Robot, q: Array, v: Array, tau: Array, wrenches: Any = None) -> Array:
    """Return vdot, (nv,), by the O(n^3) route: form I and h, solve I vdot = tau - h.

    Args:
        robot: The robot.
        q: Configuration, (nq,).
        v: Velocity, (nv,).
        tau: Generalized forces, (nv,).
        wrenches: External wrenches, as in `forward_dynamics`.
    """
    b = tau - bias_forces(robot, q, v, wrenches)
    inertia = inertia_matrix(robot, q)
    return solve_symmetric(inertia, b) if b.dtype == object else np.linalg.solve(inertia, b)


def compiled_cubic(robot: Robot) -> Callable[[Array, Array, Array], Array]:
    """Return the O(n^3) route, (q, v, tau) -> vdot (..., nv), as two kernels: I and tau - h, then a dense solve."""
    form = compile_function(lambda robot, q, v, tau: (inertia_matrix(robot, q), tau - bias_forces(robot, q, v)), robot)
    solve = compile_function(solve_symmetric, None, S=(robot.nv, robot.nv), b=robot.nv)
    return lambda q, v, tau: solve(*form(q, v, tau, threads=1), threads=1)


@dataclass(frozen=True)
class AccelerationTimes:
    """Times of forward dynamics of one robot by the O(n) and the O(n^3) route, [s] for one state.

    Attributes:
        robot: Name of the robot.
        plain_linear, plain_cubic: NumPy code without compilation, O(n) and O(n^3).
        linear, cubic: Compiled.
        tree_cubic: Compiled in one kernel with the solve, which skips the zeros of I of a branched robot.
    """

    robot: str
    plain_linear: float
    plain_cubic: float
    linear: float
    cubic: float
    tree_cubic: float


def compare(robot: Robot, rounds: int = 7) -> AccelerationTimes:
    """Return the times of both routes, uncompiled and compiled: the best of several rounds, measured alternately."""
    q, v, tau = states(robot, BATCH)
    linear = compile_function(forward_dynamics, robot)
    cubic = compiled_cubic(robot)
    tree_cubic = compile_function(cubic_forward_dynamics, robot)
    assert np.allclose(linear(q, v, tau), cubic(q, v, tau), rtol=1e-6, atol=1e-6)
    ways = [
        lambda: forward_dynamics(robot, q[0], v[0], tau[0]),
        lambda: cubic_forward_dynamics(robot, q[0], v[0], tau[0]),
        lambda: linear(q, v, tau, threads=1),
        lambda: cubic(q, v, tau),
        lambda: tree_cubic(q, v, tau, threads=1),
    ]
    best = best_times(ways, rounds)
    return AccelerationTimes(robot.name, *best[:2], *(t / BATCH for t in best[2:]))


def states(robot: Robot, number: int, seed: int = 0) -> tuple[Array, Array, Array]:
    """Return random (q, v, tau), each with a leading axis of states."""
    rng = np.random.default_rng(seed)
    q = np.stack([random_configuration(robot, rng) for _ in range(number)])
    return q, rng.normal(size=(number, robot.nv)), rng.normal(size=(number, robot.nv))


def acceleration_table(comparisons: Sequence[AccelerationTimes]) -> Table:
    """Return Table 2, first half: time of the O(n^3) route over that of the recursion, here and in the paper."""
    rows = []
    for c in comparisons:
        paper = PAPER_ACCELERATION.get(c.robot)
        rows.append(
            (
                c.robot,
                ratio(c.plain_cubic, c.plain_linear),
                ratio(c.cubic, c.linear),
                ratio(c.tree_cubic, c.linear),
                ratio(*paper) if paper else "-",
                f"{1e6 * c.linear:.2f}",
                f"{c.plain_linear / c.linear:.0f}",
            )
        )
    header = (
        "robot",
        "plain NumPy",
        "compiled",
        "compiled, tree solve",
        "paper",
        "O(n) compiled [us]",
        "plain / compiled",
    )
    notes = (
        "Time of the O(n^3) route (form I and h, solve) over that of the O(n) recursion, for one acceleration.",
        f"Processor time, best of several alternating rounds, one core; compiled code: {BATCH} states per call.",
        "Compiled O(n^3): a kernel for I and h, one for the solve; I, with all its zeros, goes through memory.",
        "Tree solve: all in one kernel, which keeps I in registers and skips the zeros that branching puts into it.",
    )
    return Table("Table 2: time for one acceleration, O(n^3) over O(n)", header, tuple(rows), notes)


def ratio(slow: float, fast: float) -> str:
    """Return slow / fast as text."""
    return f"{slow / fast:.2f}"


@dataclass(frozen=True, eq=False)
class CubicLoop(ClosedLoop):
    """The same closed loop with the O(n^3) route in place of the recursion."""

    def motion_rate(self, xi, q, v, tau, wrenches):
        vdot = cubic_forward_dynamics(self.robot, q, v, tau, wrenches)
        return np.concatenate([chart_rate(self.robot, xi, v), vdot])


def simulation_times(
    robot: Robot, law: GaitLaw, ground: Ground, integrator: Integrator, rounds: int = 5
) -> tuple[float, float]:
    """Return the times to simulate one second, [s]: (O(n^3), O(n)), the best of several rounds."""
    ways = [_second(loop, robot, law, ground, integrator) for loop in (CubicLoop, ClosedLoop)]
    cubic, linear = best_times(ways, rounds)
    return cubic, linear


def _second(kind: type[ClosedLoop], robot: Robot, law: GaitLaw, ground: Ground, integrator: Integrator):
    """Return a function that simulates one second of a kind of closed loop, which is compiled."""
    q, v = law.initial_state(robot)
    adapted, memory = adapt(law).start(robot, ground, q, v)
    loop = kind(robot, adapted, ground, len(memory))
    return time_loop(loop, integrator, q, loop.initial(v, memory), 1.0)


def time_loop(loop: ClosedLoop, integrator: Integrator, q: Array, s: Array, until: float) -> Callable[[], Any]:
    """Return a function that computes the motion of a compiled closed loop, sampled at 100 Hz.

    Args:
        loop: The closed loop. integrator: The integrator.
        q: Initial configuration, (nq,). s: Rest of the initial state, (n,). until: End time, [s].
    """
    times, fixed = sample_times(until, 0.01), isinstance(integrator, FixedStep)
    intervals, start = smooth_intervals(times, *loop.break_times(until, not fixed)), np.concatenate([q, s])[None]
    if not isinstance(integrator, FixedStep):
        backend = Backend(loop, True, COMPILED)
        return lambda: deque(integrator.solve(backend, q, s, intervals), maxlen=0)
    rule, schedule = integrator.rule, Plan(times, [intervals], np.array([0])).schedule(integrator)
    code = TimeLoop.of(lambda clock, parameters, state: (advance(loop, rule, clock, state), 0.0), 0, start.size)
    return lambda: code.run(Members.at(start, len(times)), np.zeros((1, 0)), schedule, 1)


def simulation_table(cases: Sequence[tuple[Robot, Gait, Ground]], laws: dict[str, type[GaitLaw]]) -> Table:
    """Return Table 2, second half: robots with their gaits and grounds under the given control laws."""
    rows = []
    for robot, gait, ground in cases:
        for name, law in laws.items():
            cubic, linear = simulation_times(robot, law(gait), ground, BDF())
            fixed_cubic, fixed_linear = simulation_times(robot, law(gait), ground, FIXED_STEPS, rounds=3)
            paper = PAPER_SIMULATION.get((robot.name, name))
            words = ratio(*paper) if paper else "-"
            here = ratio(cubic, linear), f"{1e3 * linear:.0f}", ratio(fixed_cubic, fixed_linear)
            rows.append((f"{robot.name}, {name}", words, *here, f"{1e3 * fixed_linear:.0f}"))
    notes = (
        "Whole loops compiled: robot, ground, controller; the controller's inverse dynamics is the recursion in both.",
        "With BDF, the default, most of the time is spent in the solver, which does not depend on the route.",
        f"Fixed steps: {FIXED_STEPS}, the largest of 1, 2, 5 times a power of ten that is stable for all four.",
    )
    header = ("robot and controller", "paper", "BDF", "O(n), BDF [ms]", "fixed steps", "O(n), fixed steps [ms]")
    return Table("Table 2: time to simulate 1 s, O(n^3) over O(n)", header, tuple(rows), notes)
