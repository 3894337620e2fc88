"""A biped that balances on rigid ground: the control law, the thrown block, contact alone, and many throws at once.

The experiment is that of Wendlandt 1997: a law in 7 ms, three seconds of motion in 34 minutes. Beside MuJoCo stands
the same biped with a block on the floor, box feet with eight corners down, the same step and friction. Its joints hold
their posture by servos; ours stands under the control law, which is computed at 500 Hz and counts in its time.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import controllers
import legged
import robots
from benchmarks import mujoco_scene
from benchmarks.mujoco_side import mujoco, rolled_out
from benchmarks.record import RATIO, Record
from benchmarks.settings import Settings
from benchmarks.simulated import prepared, unharmed
from benchmarks.timing import Spread, Times, Way, calls, race
from benchmarks.words import cell, table
from legged.app.balance.disturbance_map import DisturbanceMap
from legged.app.balance.disturbance_report import Case
from legged.app.balance.experiment import paper_experiment
from legged.app.balance.report import PAPER_LAW, PAPER_RUN
from legged.compiler.runtime.stepping import Members
from legged.compiler.runtime.threads import default_threads
from legged.contact import FreeBody, Rigid, Sphere
from legged.contact.scene import Scene, Touches
from legged.simulation.controller import adapt
from legged.simulation.rigid_loop import RigidLoop
from legged.table import Table

KIND, STAND, MAP = "balance", "standing on rigid ground", "disturbance map"
LAW, EXPERIMENT, CONTACT = "law, from Python", "the thrown block", "contact alone, from Python"
FINE, COARSE = "1 ms", "2 ms"
LENGTH, STEPS = 3.0, {FINE: 1e-3, COARSE: 2e-3}  # [s]
REAL_TIME = "times real time"
PAPER = {LAW: f"{1e3 * PAPER_LAW:g} ms", EXPERIMENT: f"1 / {PAPER_RUN / LENGTH:.0f}", CONTACT: "-"}
ONE, BATCH, ALL_CORES = "one robot", "batch", "batch, all cores"
STANDING, MUJOCO = "ours, law at 500 Hz", "MuJoCo, servos"
MJ_ONE, MJ_BATCH, MJ_ALL = "mj_step / one", "mj_step / batch", "rollout / batch, all cores"
SOME = 100
"""Steps in one call, of robots that stand."""
MEMBERS = 256
COLD, WARM, ALONE = "cold", "warm", "loop alone"
THROWS = "1000 throws of 3 s"


def measure(record: Record, settings: Settings) -> list[Table]:
    """Add law, experiment, contact, standing and maps to the record, and return them as tables."""
    tables = [_paper_table(record, settings), _stages(), _step_table()]
    _standing(record, settings.rounds)
    tables.append(_standing_table(record))
    _maps(record)
    return [*tables, _map_table(record)]


# The paper's experiment.


def _paper_table(record: Record, settings: Settings) -> Table:
    ways = {(LAW, "us"): Way(_law()), (CONTACT, "us"): Way(contact())}
    ways |= {(EXPERIMENT, words): Way(thrown(step)) for words, step in STEPS.items()}
    rows = []
    for (what, how), taken in race(ways, settings.rounds).items():
        timed = how == "us"
        spread = taken.spread(1e6) if timed else Times(tuple(t / LENGTH for t in taken.rounds)).rate()
        name = (what, how) if timed else (what, how, REAL_TIME)
        record.add((KIND, *name), "us" if timed else RATIO, spread)
        found = cell(record.quantities[-1])
        rows.append((what, f"{found} us" if timed else f"{found} {REAL_TIME}", "" if timed else how, PAPER[what]))
    notes = (
        f"The experiment: {LENGTH:g} s from the crouch, impacts and all; the law held at 500 Hz; without compiling.",
        "Contact alone: 8 corners of feet, 4 of the block, 4 places between block and chest; articulated inertias,",
        "contact-space inertia, solver and response, but not the smooth dynamics.",
    )
    return Table("The paper's experiment", ("", "here", "step", "paper"), tuple(rows), notes, left=1)


def _torque() -> Callable[[Any, Any], Any]:
    """Return the law's torques as a function of (q, v)."""
    experiment = paper_experiment()
    law, robot = experiment.balance(), experiment.robot
    law.start(robot, None, *experiment.start)
    wrenches = np.zeros((len(robot.links), 6))
    return lambda q, v: law.torque(0.0, 0, q, v, wrenches, np.zeros(0))


def _law() -> Callable[[int], None]:
    q, v = paper_experiment().start
    kernel = legged.compile(_torque(), None, q=len(q), v=len(v))
    return calls(kernel, q, v)


def _stages() -> Table:
    """Return the operations of the law by stage."""
    robot = paper_experiment().robot
    counts = legged.count(_torque(), None, q=robot.nq, v=robot.nv)
    rows = [(name or "-", str(c.M), str(c.A), str(c.trigonometric)) for name, c in counts.by_stage.items()]
    rows.append(("all", str(counts.M), str(counts.A), str(counts.trigonometric)))
    return Table("Operations of the law", ("stage", "M", "A", "sines"), tuple(rows), ("M: with divisions.",))


def _step_table() -> Table:
    rows = [(words, *map(str, cost)) for words, cost in step_costs().items()]
    notes = ("Multiplications, divisions and additions, M + A, without a law; restitution, ten sweeps.",)
    return Table("Operations of a step of 1 ms", ("scene", "contacts", "all", "the solver"), tuple(rows), notes, left=1)


def step_costs() -> dict[str, tuple[int, int, int]]:
    """Return (contacts, operations of a step, the solver's among them) of the biped that meets more and more."""
    robot, block = robots.spatial_biped(), mujoco_scene.BLOCK
    ball = FreeBody("ball", legged.sphere_inertia(1.8, 0.05), [Sphere(0.05)], position=block.position)
    soles = sorted({robot.links[contact.link].name for contact in robot.contacts})
    chest = (*((sole, "terrain") for sole in soles), (robot.links[0].name, block.name))
    return {
        "feet of four corners": _step_cost(robot),
        "and a ball that may hit trunk and ground": _step_cost(robot, ball),
        "and a block that may hit the trunk": _step_cost(robot, block, pairs=chest),
        "and a block that may hit trunk and ground": _step_cost(robot, block),
    }


def _step_cost(robot: legged.Robot, *bodies: FreeBody, pairs: Any = None) -> tuple[int, int, int]:
    loop = RigidLoop(robot, adapt(None), Rigid(0.3, 0.2, pairs=pairs), 0, (), [], bodies)

    def step(q: Any, s: Any, tau: Any) -> Any:
        return loop.impact_step(0.0, STEPS[FINE], q, s, tau, np.zeros(0))

    counts = legged.count(step, None, q=robot.nq, s=loop.size, tau=robot.nv)
    solver = counts.by_stage["contact solver"]
    return len(loop.scene.candidates), counts.M + counts.A, solver.M + solver.A


def thrown(step: float) -> Callable[[int], None]:
    """Return what simulates the experiment."""
    experiment = paper_experiment(step=step)
    (q, v), bodies = experiment.start, experiment.bodies
    run = prepared(
        experiment.robot,
        experiment.law,
        experiment.ground,
        v[None],
        round(LENGTH / step),
        step,
        q=q[None],
        bodies=bodies,
    )
    unharmed(run(1))
    return calls(run, 1)


def contact() -> Callable[[int], None]:
    """Return what finds the impulses of one step, see `problem`, from those of the step before."""
    impulses, (q, v, x, u, guess) = problem()
    kernel = legged.compile(impulses, None, q=len(q), v=len(v), x=len(x), u=len(u), guess=guess.shape)
    for _ in range(20):
        guess = kernel(q, v, x, u, guess)[0]
    return calls(kernel, q, v, x, u, guess)


def problem() -> tuple[Callable[..., tuple[Any, ...]], tuple[np.ndarray, ...]]:
    """Return (what finds impulses, velocities after them and the residual, its arguments, the last a first guess).

    The biped is on its feet with no torque at its joints, a block on the floor beside it.
    """
    robot, ground, block = robots.spatial_biped(), Rigid(friction=0.3, restitution=0.2), mujoco_scene.BLOCK
    scene, h = Scene.of(robot, ground, [block]), STEPS[FINE]
    (q, v), (x, u) = controllers.WorkspaceBalance(mujoco_scene.POSITION).initial_state(robot), block.state()
    fall = h * np.concatenate([np.zeros(3), robot.gravity])

    def impulses(q: Any, v: Any, x: Any, u: Any, guess: Any) -> tuple[Any, ...]:
        touches: Touches = scene.touches([q, x])
        free = [v + np.concatenate([fall, np.zeros(robot.nv - 6)]), u + fall]
        found = scene.impulses([q, x], [v, u], free, [np.zeros(robot.nv), np.zeros(6)], h, touches, guess)
        return (found.p, *found.v_next, found.residual)

    return impulses, (q, v, x, u, np.zeros((len(scene.candidates), 3)))


# Standing, beside MuJoCo.


def _standing(record: Record, rounds: int) -> None:
    ways: dict[tuple[str, str], Way] = {}
    ways[STANDING, ONE] = Way(calls(standing(1), 1), SOME)
    many = standing(MEMBERS)
    ways[STANDING, BATCH] = Way(calls(many, 1), SOME * MEMBERS)
    ways[STANDING, ALL_CORES] = Way(calls(many, default_threads()), SOME * MEMBERS, True)
    if mujoco():
        ways |= _theirs()
    times = race(ways, rounds)
    for (who, how), taken in times.items():
        record.add((STAND, who, how), "steps/s", taken.rate())
        record.add((STAND, who, f"{how}, {REAL_TIME}"), RATIO, taken.rate(STEPS[FINE]))
    if mujoco():
        for words, slow, fast in ((MJ_ONE, ONE, ONE), (MJ_BATCH, ONE, BATCH), (MJ_ALL, ALL_CORES, ALL_CORES)):
            record.add((STAND, STANDING, words), RATIO, times[MUJOCO, slow].over(times[STANDING, fast]))


def standing(members: int) -> Callable[[int], Members]:
    """Return steps of bipeds that stand, a block on the floor beside each; their first velocities differ."""
    robot = robots.spatial_biped()
    law = controllers.Held(controllers.WorkspaceBalance(mujoco_scene.POSITION))
    q, v = law.initial_state(robot)
    v = v + 1e-3 * np.random.default_rng(0).standard_normal((members, robot.nv))
    ground, bodies = Rigid(friction=mujoco_scene.FRICTION), [mujoco_scene.BLOCK]
    run = prepared(robot, law, ground, v, SOME, STEPS[FINE], q=np.tile(q, (members, 1)), bodies=bodies)
    unharmed(run(default_threads()))
    return run


def _theirs() -> Mapping[tuple[str, str], Way]:
    """Return MuJoCo's ways, of a biped that stands as ours does."""
    scene = mujoco_scene.settled(STEPS[FINE])
    module, few = mujoco(), 16
    starts, inputs = np.tile(scene.state, (few, 1)), np.tile(scene.data.ctrl, (few, 1))
    run = rolled_out(scene, starts, inputs, SOME, default_threads())
    return {
        (MUJOCO, ONE): Way(calls(module.mj_step, scene.model, scene.data, SOME), SOME),
        (MUJOCO, ALL_CORES): Way(calls(run), SOME * few, True),
    }


def _standing_table(record: Record) -> Table:
    shown = {way: way for way in (ONE, BATCH, ALL_CORES, MJ_ONE, MJ_BATCH, MJ_ALL)}
    notes = (
        f"Steps a second of {FINE}, and ratios of times; biped of 18 degrees of freedom on eight corners, a block on",
        f"the floor, mu = {mujoco_scene.FRICTION:g}; batches of {MEMBERS}. Ours: 16 contacts always, and the law.",
        "MuJoCo: the 12 that touch, its default solver, elliptic cones, implicitfast; servos in place of the law.",
    )
    return table(record, STAND, ("how",), shown, "Standing on rigid ground", notes)


# Disturbance maps.


def _maps(record: Record) -> None:
    """Add the times of a map of throws: with an empty cache, with a full one, and of the loop alone."""
    case = Case(robots.spatial_biped(), throw=True, directions=50, sizes=20)
    found: list[DisturbanceMap] = []
    for how in (COLD, WARM):
        record.add((MAP, THROWS, how), "s", _seconds(lambda: found.append(case.map())))
    runs, steps = found[0].runs, round(case.duration / case.step)
    ground, bodies = Rigid(friction=case.friction, restitution=case.restitution), case.disturbance.bodies
    loop = prepared(
        case.robot, case.law, ground, runs.v[0, 0], steps, case.step, q=runs.q[0, 0], vary=runs.vary, bodies=bodies
    )
    record.add((MAP, THROWS, ALONE), "s", _seconds(lambda: loop(default_threads())))


def _seconds(run: Callable[[], Any]) -> Spread:
    """Return how long it takes once, [s], on the wall."""
    begun = time.perf_counter()
    run()
    taken = time.perf_counter() - begun
    return Spread(taken, taken, taken)


def _map_table(record: Record) -> Table:
    notes = (
        "Seconds on the wall, all cores: biped, block thrown from 50 directions at 20 speeds, steps of 2 ms with the",
        "law at each. Cold traces and compiles; warm finds machine code in its cache; the loop alone has both already.",
    )
    return table(record, MAP, ("what",), {how: how for how in (COLD, WARM, ALONE)}, "Disturbance map", notes)
