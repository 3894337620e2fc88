"""Speed of a biped that balances on rigid ground: control law, thrown block, contact, and maps of many throws.

The experiment is that of Wendlandt 1997, who reports 7 ms for the control law and 34 minutes for three seconds of
motion. For comparison, MuJoCo simulates the same biped on box feet beside a block on the floor, with eight corners of
its feet on the ground, the same time step and the same friction. Its joints are held by servos; ours by the control
law, which is computed at 500 Hz and is part of its time.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import controllers
import legged
import robots
from benchmarks.harness.record import RATIO, Record, quantity_table
from benchmarks.harness.references import BLOCK, FRICTION, TRUNK_POSITION, mujoco, mujoco_rollout, standing_mujoco_biped
from benchmarks.harness.subjects import Settings
from benchmarks.harness.timing import Spread, Times, Workload, repeat, time_in_turns
from benchmarks.simulation import ALL_CORES, BATCH, ONE, REAL_TIME, check_all_finished, compiled_rollout
from examples.studies.balance.disturbance_map import DisturbanceMap
from examples.studies.balance.disturbance_report import DisturbanceStudy
from examples.studies.balance.experiment import paper_experiment
from examples.studies.balance.report import PAPER_LAW, PAPER_RUN
from legged.compiler import Members, default_threads
from legged.contact import FreeBody, Rigid, Sphere
from legged.contact.scene import ContactGeometry, Scene
from legged.simulation.controller import adapt
from legged.simulation.loop.rigid_loop import RigidLoop
from legged.table import Table

KIND, STANDING_KIND, MAP = "balance", "standing on rigid ground", "disturbance map"
LAW, EXPERIMENT, CONTACT = "law, from Python", "the thrown block", "contact alone, from Python"
FINE, COARSE = "1 ms", "2 ms"
DURATION, TIME_STEPS = 3.0, {FINE: 1e-3, COARSE: 2e-3}  # [s]
PAPER = {LAW: f"{1e3 * PAPER_LAW:g} ms", EXPERIMENT: f"1 / {PAPER_RUN / DURATION:.0f}", CONTACT: "-"}
STANDING, MUJOCO = "ours, law at 500 Hz", "MuJoCo, servos"
MJ_ONE, MJ_BATCH, MJ_ALL = "mj_step / one", "mj_step / batch", "rollout / batch, all cores"
_STEPS = 100
"""Time steps in one call, of standing robots."""
_MEMBERS, _MUJOCO_MEMBERS = 256, 16
"""Members of our batch, and of MuJoCo's rollout."""
COLD, WARM, LOOP_ONLY = "cold", "warm", "loop alone"
THROWS = "1000 throws of 3 s"


def measure_balance(record: Record, settings: Settings) -> list[Table]:
    """Add law, experiment, contact, standing and maps to the record, and return them as tables."""
    tables = [_measure_experiment(record, settings), _law_operations(), _step_operations()]
    tables.append(_measure_standing(record, settings.rounds))
    tables.append(_measure_maps(record))
    return tables


# The paper's experiment.


def _measure_experiment(record: Record, settings: Settings) -> Table:
    workloads = {(LAW, "us"): Workload(_law_calls()), (CONTACT, "us"): Workload(_contact_calls())}
    workloads |= {(EXPERIMENT, name): Workload(_thrown_block(h)) for name, h in TIME_STEPS.items()}
    rows = []
    for (what, unit_or_step), times in time_in_turns(workloads, settings.rounds).items():
        if unit_or_step == "us":
            record.add((KIND, what, unit_or_step), "us", times.spread(1e6))
            rows.append((what, f"{record.quantities[-1]} us", "", PAPER[what]))
        else:
            rate = Times(tuple(t / DURATION for t in times.rounds)).rate()
            record.add((KIND, what, unit_or_step, REAL_TIME), RATIO, rate)
            rows.append((what, f"{record.quantities[-1]} {REAL_TIME}", unit_or_step, PAPER[what]))
    notes = (
        f"The experiment: {DURATION:g} s from the crouch with all impacts, the law at 500 Hz, without compilation.",
        "Contact alone: 8 corners of the feet, 4 of the block, 4 contacts between block and trunk; articulated",
        "inertias, contact-space inertia, solver and response to the impulses, without the smooth dynamics.",
    )
    return Table("The paper's experiment", ("", "here", "time step", "paper"), tuple(rows), notes, left=1)


def _torque() -> Callable[[Any, Any], Any]:
    """Return the torques of the law as a function of (q, v)."""
    experiment = paper_experiment()
    law, robot = experiment.balance(), experiment.robot
    controller, memory = law.start(robot, None, *experiment.start)
    wrenches = np.zeros((len(robot.links), 6))
    return lambda q, v: controller.torque(0.0, 0, q, v, wrenches, memory)


def _law_calls() -> Callable[[int], None]:
    q, v = paper_experiment().start
    kernel = legged.compile(_torque(), None, q=len(q), v=len(v))
    return repeat(kernel, q, v)


def _law_operations() -> Table:
    """Return the operations of the law by stage."""
    robot = paper_experiment().robot
    counts = legged.count(_torque(), None, q=robot.nq, v=robot.nv)
    rows = [(name or "-", str(c.M), str(c.A), str(c.trigonometric)) for name, c in counts.by_stage.items()]
    rows.append(("all", str(counts.M), str(counts.A), str(counts.trigonometric)))
    notes = ("M: multiplications and divisions. A: additions.",)
    return Table("Operations of the law", ("stage", "M", "A", "trigonometric"), tuple(rows), notes)


def _step_operations() -> Table:
    rows = [(scene, *map(str, cost)) for scene, cost in step_costs().items()]
    notes = (
        "M + A, multiplications, divisions and additions, without a law; restitution, one iteration of each loop.",
    )
    header = ("scene", "contacts", "all", "contact solver")
    return Table("Operations of a time step of 1 ms", header, tuple(rows), notes, left=1)


def step_costs() -> dict[str, tuple[int, int, int]]:
    """Return (contacts, operations of a time step, operations of the contact solver) of the biped in several scenes."""
    robot = robots.spatial_biped()
    ball = FreeBody("ball", legged.sphere_inertia(1.8, 0.05), [Sphere(0.05)], position=BLOCK.position)
    soles = sorted({robot.links[contact.link].name for contact in robot.contacts})
    trunk_only = (*((sole, "terrain") for sole in soles), (robot.links[0].name, BLOCK.name))
    return {
        "feet of four corners": _step_cost(robot),
        "and a ball that may hit trunk and ground": _step_cost(robot, ball),
        "and a block that may hit the trunk": _step_cost(robot, BLOCK, pairs=trunk_only),
        "and a block that may hit trunk and ground": _step_cost(robot, BLOCK),
    }


def _step_cost(robot: legged.Robot, *bodies: FreeBody, pairs: Any = None) -> tuple[int, int, int]:
    loop = RigidLoop(robot, adapt(None), Rigid(0.3, 0.2, pairs=pairs), 0, (), bodies)

    def step(q: Any, s: Any, tau: Any) -> Any:
        h = TIME_STEPS[FINE]
        return loop.impact_step(0.0, h, loop.loads(0.0, h), q, s, tau, np.zeros(robot.nv), np.zeros(0))

    counts = legged.count(step, None, q=robot.nq, s=loop.size, tau=robot.nv)
    solver = counts.by_stage["contact solver"]
    return len(loop.scene.candidates), counts.M + counts.A, solver.M + solver.A


def _thrown_block(time_step: float) -> Callable[[int], None]:
    """Return the simulation of the experiment, `time_step` in [s]."""
    experiment = paper_experiment(step=time_step)
    (q, v), steps = experiment.start, round(DURATION / time_step)
    ground, bodies = experiment.ground, experiment.bodies
    run = compiled_rollout(
        experiment.robot, experiment.law, ground, v[None], steps, time_step, q=q[None], bodies=bodies
    )
    check_all_finished(run(1))
    return repeat(run, 1)


def _contact_calls() -> Callable[[int], None]:
    """Return the solution of the contact problem, started from the impulses of the previous time step."""
    impulses, (q, v, x, u, guess) = contact_problem()
    kernel = legged.compile(impulses, None, q=len(q), v=len(v), x=len(x), u=len(u), guess=guess.shape)
    for _ in range(20):
        guess = kernel(q, v, x, u, guess)[0]
    return repeat(kernel, q, v, x, u, guess)


def contact_problem() -> tuple[Callable[..., tuple[Any, ...]], tuple[np.ndarray, ...]]:
    """Return (function that computes impulses, velocities after them and the residual; its arguments).

    The biped stands without joint torques, and a block lies on the floor beside it. The arguments are q (nq,), v (nv,),
    position x (7,) and velocity u (6,) of the block, and an initial guess of the impulses (contacts, 3), [N s].
    """
    robot, ground = robots.spatial_biped(), Rigid(friction=0.3, restitution=0.2)
    scene, h = Scene.of(robot, ground, [BLOCK]), TIME_STEPS[FINE]
    (q, v), (x, u) = controllers.WorkspaceBalance(TRUNK_POSITION).initial_state(robot), BLOCK.state()
    fall = h * np.concatenate([np.zeros(3), robot.gravity])

    def impulses(q: Any, v: Any, x: Any, u: Any, guess: Any) -> tuple[Any, ...]:
        geometry: ContactGeometry = scene.contact_geometry([q, x])
        free = [v + np.concatenate([fall, np.zeros(robot.nv - 6)]), u + fall]
        solution = scene.impulses([q, x], [v, u], free, [np.zeros(robot.nv), np.zeros(6)], h, geometry, guess)
        return (solution.p, *solution.v_next, solution.residual)

    return impulses, (q, v, x, u, np.zeros((len(scene.candidates), 3)))


# Standing, beside MuJoCo.


def _measure_standing(record: Record, rounds: int) -> Table:
    workloads: dict[tuple[str, str], Workload] = {}
    workloads[STANDING, ONE] = Workload(repeat(_standing(1), 1), _STEPS)
    many = _standing(_MEMBERS)
    workloads[STANDING, BATCH] = Workload(repeat(many, 1), _STEPS * _MEMBERS)
    workloads[STANDING, ALL_CORES] = Workload(repeat(many, default_threads()), _STEPS * _MEMBERS, True)
    if mujoco():
        workloads |= _mujoco_workloads()
    times = time_in_turns(workloads, rounds)
    for (program, name), measured in times.items():
        record.add((STANDING_KIND, program, name), "steps/s", measured.rate())
        record.add((STANDING_KIND, program, f"{name}, {REAL_TIME}"), RATIO, measured.rate(TIME_STEPS[FINE]))
    if mujoco():
        for name, theirs, ours in ((MJ_ONE, ONE, ONE), (MJ_BATCH, ONE, BATCH), (MJ_ALL, ALL_CORES, ALL_CORES)):
            record.add((STANDING_KIND, STANDING, name), RATIO, times[MUJOCO, theirs].ratio_to(times[STANDING, ours]))
    shown = {name: name for name in (ONE, BATCH, ALL_CORES, MJ_ONE, MJ_BATCH, MJ_ALL)}
    notes = (
        f"Time steps of {FINE} per second, and ratios of times; biped of 18 degrees of freedom on eight corners, a",
        f"block on the floor, mu = {FRICTION:g}; batches of {_MEMBERS}. Ours: 16 candidate contacts, and the law.",
        "MuJoCo: the 12 active contacts, default solver, elliptic cones, implicitfast; servos instead of the law.",
    )
    return quantity_table(record, STANDING_KIND, ("program",), shown, "Standing on rigid ground", notes)


def _standing(members: int) -> Callable[[int], Members]:
    """Return the simulation of standing bipeds with different initial velocities, a block on the floor beside each."""
    robot = robots.spatial_biped()
    law = controllers.ZeroOrderHold(controllers.WorkspaceBalance(TRUNK_POSITION))
    q, v = law.initial_state(robot)
    v = v + 1e-3 * np.random.default_rng(0).standard_normal((members, robot.nv))
    ground, q = Rigid(friction=FRICTION), np.tile(q, (members, 1))
    run = compiled_rollout(robot, law, ground, v, _STEPS, TIME_STEPS[FINE], q=q, bodies=[BLOCK])
    check_all_finished(run(default_threads()))
    return run


def _mujoco_workloads() -> Mapping[tuple[str, str], Workload]:
    """Return MuJoCo's workloads."""
    biped, members = standing_mujoco_biped(TIME_STEPS[FINE]), _MUJOCO_MEMBERS
    initial, inputs = np.tile(biped.state, (members, 1)), np.tile(biped.data.ctrl, (members, 1))
    run = mujoco_rollout(biped, initial, inputs, _STEPS, default_threads())
    return {
        (MUJOCO, ONE): Workload(repeat(mujoco().mj_step, biped.model, biped.data, _STEPS), _STEPS),
        (MUJOCO, ALL_CORES): Workload(repeat(run), _STEPS * members, True),
    }


# Disturbance maps.


def _measure_maps(record: Record) -> Table:
    """Add the times of a map of throws: with an empty cache, with a full one, and of the simulation loop only."""
    case = DisturbanceStudy(robots.spatial_biped(), throw=True, directions=50, sizes=20)
    maps: list[DisturbanceMap] = []
    for start in (COLD, WARM):
        record.add((MAP, THROWS, start), "s", _wall_time(lambda: maps.append(case.map())))
    runs, steps = maps[0].runs, round(case.duration / case.step)
    ground, bodies = Rigid(friction=case.friction, restitution=case.restitution), case.disturbance.bodies
    v, q = runs.v[0, 0], runs.q[0, 0]
    loop = compiled_rollout(case.robot, case.law, ground, v, steps, case.step, q=q, vary=runs.vary, bodies=bodies)
    record.add((MAP, THROWS, LOOP_ONLY), "s", _wall_time(lambda: loop(default_threads())))
    notes = (
        "Wall time in seconds, all cores: biped, block thrown from 50 directions at 20 speeds, time steps of 2 ms with",
        "the law at each. Cold: trace and compile; warm: machine code in the cache; loop alone: simulation only.",
    )
    shown = {name: name for name in (COLD, WARM, LOOP_ONLY)}
    return quantity_table(record, MAP, ("map",), shown, "Disturbance map", notes)


def _wall_time(run: Callable[[], Any]) -> Spread:
    """Return the wall time of one run, [s]."""
    start = time.perf_counter()
    run()
    taken = time.perf_counter() - start
    return Spread(taken, taken, taken)
