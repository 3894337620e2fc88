"""Speed of simulation: free flight and walking on compliant ground, in time steps per second, beside MuJoCo."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import controllers
import legged
import robots
from benchmarks.harness.record import RATIO, Record, quantity_table
from benchmarks.harness.references import MujocoRobot, Servos, mujoco, mujoco_rollout
from benchmarks.harness.subjects import Settings, available_robots
from benchmarks.harness.timing import Disagreement, Spread, Workload, check_agreement, repeat, time_in_turns
from legged.compiler import FLOAT64, ElementType, Members, default_threads, thread_limit
from legged.contact import FreeBody, Rigid
from legged.ground import Ground, realistic_ground
from legged.ground.ground import contact_motion, contact_wrenches
from legged.robot.configuration import normalized
from legged.simulation.loop.chart import semi_implicit_euler
from legged.simulation.stepping.batch import RolloutBatch
from legged.simulation.stepping.parameters import ParameterSweep, Setup
from legged.simulation.stepping.stepper import Stepper
from legged.table import Table

TIME_STEP, STEPS = 1e-3, 100  # [s]; time steps in one call
ROLLOUT_MEMBERS = 64
"""Members of MuJoCo's rollouts; the time for one of them does not depend on their number."""


def compiled_rollout(
    robot: legged.Robot,
    controller: Any,
    ground: Ground | Rigid | None,
    v: np.ndarray,
    steps: int,
    time_step: float,
    *,
    q: np.ndarray | None = None,
    vary: Mapping[str, Any] | None = None,
    bodies: Sequence[FreeBody] = (),
    element: ElementType = FLOAT64,
) -> Callable[[int], Members]:
    """Return a function of the number of threads that simulates all members and returns their final states.

    Args:
        robot, controller, ground, q, vary, bodies: As in `legged.rollout`.
        v: Initial velocities, (B, nv).
        steps: Number of time steps.
        time_step: Length of a time step, [s].
        element: Type of the numbers.
    """
    setup = Setup(robot, controller, ground, (), tuple(bodies))
    sweep = ParameterSweep.of(setup, vary or {}, {"q": (q, robot.nq), "v": (v, robot.nv)})
    integrator = legged.TimeStepping(time_step) if isinstance(ground, Rigid) else legged.SemiImplicitEuler(time_step)
    fall = None if ground is None else legged.Fall()
    batch = RolloutBatch(robot, sweep, q, v, fall, element=element)
    times, starts = np.array([0.0, steps * time_step]), batch.starts.started(range(sweep.count), *batch.given_states)
    stepper = Stepper(batch, integrator, True, starts, times)
    engine, members = stepper.prepare(), stepper.members

    def run(threads: int) -> Members:
        members.state[:], members.outcome[:] = starts.states, 0.0
        for _ in engine.motion(stepper.plan, threads):
            pass
        return members

    return run


def check_all_finished(members: Members) -> None:
    """Check that no member has stopped early, which would make the others look fast."""
    assert (members.outcome[:, 0] == 0.0).all(), "all members must reach the end"


# Free flight under constant motor torques: both programs integrate by semi-implicit Euler and reach the same states.

FLIGHT_KIND = "free flight"
FLIGHT_ONE, FLIGHT_BATCH, FLIGHT_ALL = "ours, one robot", "ours, batch", "ours, batch, all cores"
MJ_STEP, ROLLOUT, ROLLOUT_ALL = "mj_step", "mujoco.rollout", "mujoco.rollout, all cores"
FLIGHT_RATIOS = ((MJ_STEP, FLIGHT_ONE), (MJ_STEP, FLIGHT_BATCH), (ROLLOUT, FLIGHT_BATCH), (ROLLOUT_ALL, FLIGHT_ALL))
_MUJOCO_TOLERANCE = 1e-6
"""Tolerance of the final velocities: MuJoCo gives thin rods a small inertia about their axis."""


@dataclass(frozen=True, eq=False)
class ConstantTorques:
    """A controller that returns constant generalized forces tau, (nv,)."""

    tau: Any

    def torque(self, t: Any, phase: Any, q: Any, v: Any, wrenches: Any, memory: Any) -> Any:
        return self.tau


def measure_flight(record: Record, settings: Settings) -> list[Table]:
    """Add the time steps per second of all robots in free flight to the record, and return them as a table."""
    for subject, robot in available_robots().items():
        times = time_in_turns(_flight_workloads(robot, settings.states), settings.rounds)
        for workload, measured in times.items():
            record.add((FLIGHT_KIND, subject.name, workload), "steps/s", measured.rate())
        for slow, fast in FLIGHT_RATIOS:
            if slow in times:
                record.add((FLIGHT_KIND, subject.name, f"{slow} / {fast}"), RATIO, times[slow].ratio_to(times[fast]))
    shown = {workload: workload for workload in (FLIGHT_ONE, FLIGHT_BATCH, MJ_STEP, ROLLOUT)} | {
        "mj_step / one": f"{MJ_STEP} / {FLIGHT_ONE}",
        "rollout / batch": f"{ROLLOUT} / {FLIGHT_BATCH}",
        "all cores": f"{ROLLOUT_ALL} / {FLIGHT_ALL}",
    }
    notes = (
        f"Time steps of {1e3 * TIME_STEP:g} ms per second, no contact; batches of {settings.states} (MuJoCo:",
        f"{ROLLOUT_MEMBERS}). Ratios of times; one core except for 'all cores'. Both programs reach the same states.",
    )
    return [quantity_table(record, FLIGHT_KIND, ("robot",), shown, "Free flight", notes)]


def _flight_workloads(robot: legged.Robot, members: int) -> dict[str, Workload]:
    """Return the workloads, after checking that their results agree."""
    q, v, tau = _flight_states(robot, members)
    law, vary = ConstantTorques(tau[0]), {"controller.tau": tau}
    many = compiled_rollout(robot, law, None, v, STEPS, TIME_STEP, q=q, vary=vary)
    one = compiled_rollout(robot, law, None, v[:1], STEPS, TIME_STEP, q=q[:1])
    final = many(default_threads())
    check_all_finished(final)
    velocities = _velocities(robot, final)
    check_agreement(f"{robot.name}, flight, one and many", velocities[:1], _velocities(robot, one(1)), 1e-9)
    workloads = {
        FLIGHT_ONE: Workload(repeat(one, 1), STEPS),
        FLIGHT_BATCH: Workload(repeat(many, 1), STEPS * members),
        FLIGHT_ALL: Workload(repeat(many, default_threads()), STEPS * members, True),
    }
    if not mujoco():
        return workloads
    model, n = MujocoRobot(robot, TIME_STEP), ROLLOUT_MEMBERS
    initial, inputs = model.to_mujoco(q[:n], v[:n]), model.controls(q[:n], tau[:n])
    for name, threads in ((ROLLOUT, 1), (ROLLOUT_ALL, default_threads())):
        run = mujoco_rollout(model, initial, inputs, STEPS, threads)
        theirs = model.from_mujoco(run())[1]
        check_agreement(f"{robot.name}, flight, {name}", velocities[:n], theirs, _MUJOCO_TOLERANCE)
        workloads[name] = Workload(repeat(run), STEPS * n, threads > 1)
    model.set_state(q[0], v[0])
    model.data.ctrl[:] = inputs[0]
    qpos, qvel = model.data.qpos.copy(), model.data.qvel.copy()

    def steps() -> None:
        model.data.qpos[:], model.data.qvel[:] = qpos, qvel
        mujoco().mj_step(model.model, model.data, STEPS)

    workloads[MJ_STEP] = Workload(repeat(steps), STEPS)
    return workloads


def _flight_states(robot: legged.Robot, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (q, v, tau), a row for each state, from which no joint reaches its limits within 0.1 s.

    Joints start near the middle of their range. At a joint limit the two programs would differ.
    """
    rng = np.random.default_rng(0)
    middle, width = robot.neutral(), np.full(robot.nv, 0.3)
    for joint in robot.joints:
        physics = joint.definition.physics
        lower, upper = (np.clip(x, -10.0, 10.0) for x in (physics.lower, physics.upper))
        middle[joint.q], width[joint.v] = (lower + upper) / 2, np.minimum(0.3, (upper - lower) / 4)
    q = [legged.integrate(robot, middle, width * x) for x in rng.uniform(-1.0, 1.0, (count, robot.nv))]
    inertias = np.diag(legged.inertia_matrix(robot, middle))
    v, tau = rng.normal(size=(2, count, robot.nv)) * np.stack([np.full((1, robot.nv), 0.1), 0.3 * inertias[None]])
    tau[:, : robot.base.nv] = 0.0
    return np.stack(q), v, tau


def _velocities(robot: legged.Robot, members: Members) -> np.ndarray:
    """Return the velocities of all members, (B, nv)."""
    return members.state[:, robot.nq : robot.nq + robot.nv]


# Closed loops on compliant ground. A robot that stands under servos is compared with MuJoCo: same gains and time step,
# another contact law. The trots contain gait, control law, contact and the detection of falls, more work than MuJoCo's
# standing robot.

LOOP_KIND = "closed loop"
LEG_ANGLES = (0.0, 0.5, -1.0)  # [rad]: abduction, swing, knee
HEIGHT = 0.527  # [m], of the trunk above the feet with these angles
KP, KD = 300.0, 5.0  # [N m/rad], [N m s/rad]; at 10 N m s/rad knees chatter in steps of 1 ms
_SETTLING_STEPS = 2000
"""Time steps after which the robot stands still."""
_DEFLECTION_TOLERANCE = 0.03
"""Relative tolerance of the deflection of the servos, which carry the weight in both programs."""
STANDING, TROT, BALANCED = "standing, servos", "trot, computed torque", "trot, balanced"
MUJOCO, FROM_PYTHON = "standing, MuJoCo", "standing, MuJoCo step by step from Python"
ONE, BATCH, ALL_CORES = "one robot", "batch", "batch, all cores"
MJ_STEP_BATCH = "mj_step / batch"
LOOP_RATIOS = {
    "mj_step / one": (ONE, ONE),
    MJ_STEP_BATCH: (ONE, BATCH),
    "rollout / batch": (BATCH, BATCH),
    "all cores": (ALL_CORES, ALL_CORES),
}
"""Names of ratios -> (MuJoCo's workload, our workload)."""
REAL_TIME = "times real time"


def laws() -> dict[str, Any]:
    """Return the controllers of the closed loops."""
    gait = controllers.Trot(period=0.4, stride=0.15, clearance=0.06)  # [s], [m], [m]
    return {
        STANDING: controllers.JointPD(controllers.Posture(LEG_ANGLES * 4, HEIGHT), KP, KD),
        TROT: controllers.ComputedTorque(gait),
        BALANCED: controllers.Balanced(gait),
    }


def measure_loops(record: Record, settings: Settings) -> list[Table]:
    """Add the time steps per second of closed loops to the record, and return them as a table."""
    robot, cases = robots.spatial_quadruped(), laws()
    workloads = {}
    for case, law in cases.items():
        one, many = closed_loop(robot, law, 1, STEPS), closed_loop(robot, law, settings.states, STEPS)
        check_all_finished(many(default_threads()))
        workloads[case, ONE] = Workload(repeat(one, 1), STEPS)
        workloads[case, BATCH] = Workload(repeat(many, 1), STEPS * settings.states)
        workloads[case, ALL_CORES] = Workload(repeat(many, default_threads()), STEPS * settings.states, True)
    if mujoco():
        workloads |= _mujoco_workloads(robot, cases[STANDING])
    times = time_in_turns(workloads, settings.rounds)
    for name, measured in times.items():
        record.add((LOOP_KIND, *name), "steps/s", measured.rate())
        record.add((LOOP_KIND, *name[:-1], f"{name[-1]}, {REAL_TIME}"), RATIO, measured.rate(TIME_STEP))
    for case in cases if mujoco() else ():
        for name, (theirs, ours) in LOOP_RATIOS.items():
            record.add((LOOP_KIND, case, name), RATIO, times[MUJOCO, theirs].ratio_to(times[case, ours]))
    shown = {name: name for name in (ONE, BATCH, ALL_CORES, *LOOP_RATIOS)}
    notes = (
        f"Time steps of {1e3 * TIME_STEP:g} ms per second, and ratios of times; quadruped of 18 degrees of freedom.",
        f"Batches of {settings.states}; MuJoCo's are rollouts of {ROLLOUT_MEMBERS}; mj_step simulates one robot.",
    )
    return [quantity_table(record, LOOP_KIND, ("motion",), shown, "Closed loop with contact", notes)]


def closed_loop(
    robot: legged.Robot, law: Any, members: int, steps: int, element: ElementType = FLOAT64
) -> Callable[[int], Members]:
    """Return the simulation of members whose initial velocities differ."""
    _, v = law.initial_state(robot)
    v = v + np.pad(0.02 * np.random.default_rng(0).standard_normal((members, 6)), ((0, 0), (0, robot.nj)))
    return compiled_rollout(robot, law, realistic_ground(robot, penetration=5e-3), v, steps, TIME_STEP, element=element)


def trot(robot: legged.Robot, members: int, element: ElementType = FLOAT64) -> Callable[[int], Members]:
    """Return the trot under computed torque as a function of the number of threads."""
    return closed_loop(robot, laws()[TROT], members, STEPS, element)


def _standing_mujoco_robot(robot: legged.Robot) -> MujocoRobot:
    """Return the robot in MuJoCo once it stands still."""
    model = MujocoRobot(robot, TIME_STEP, Servos(KP, KD))
    model.set_state(*laws()[STANDING].initial_state(robot))
    model.data.ctrl[:] = LEG_ANGLES * 4
    mujoco().mj_step(model.model, model.data, _SETTLING_STEPS)
    return model


def standing_in_mujoco(robot: legged.Robot, threads: int) -> Workload:
    """Return MuJoCo's rollout of standing robots."""
    model = _standing_mujoco_robot(robot)
    initial, inputs = np.tile(model.state, (ROLLOUT_MEMBERS, 1)), np.tile(LEG_ANGLES * 4, (ROLLOUT_MEMBERS, 1))
    run = mujoco_rollout(model, initial, inputs, STEPS, threads)
    return Workload(repeat(run), STEPS * ROLLOUT_MEMBERS, threads > 1)


def _mujoco_workloads(robot: legged.Robot, law: Any) -> dict[tuple[str, str], Workload]:
    """Return MuJoCo's workloads, after checking that its robot stands as ours does."""
    model, angles = _standing_mujoco_robot(robot), np.array(LEG_ANGLES * 4)
    ours = closed_loop(robot, law, 1, _SETTLING_STEPS)(1).state[0, robot.base.nq : robot.nq]
    theirs = model.from_mujoco(model.state)[0][robot.base.nq :]
    # Friction determines how the legs share the load, so the sums over the legs are compared.
    deflections = [(a - angles).reshape(4, 3).sum(axis=0)[1:] for a in (ours, theirs)]
    if model.data.ncon != 4 or not np.allclose(*deflections, rtol=_DEFLECTION_TOLERANCE, atol=0.0):
        raise Disagreement(
            f"{model.data.ncon} contacts in MuJoCo; deflections of swing and knee are {deflections[0]} here and "
            f"{deflections[1]} in MuJoCo"
        )
    step = mujoco().mj_step
    return {
        (MUJOCO, ONE): Workload(repeat(step, model.model, model.data, STEPS), STEPS),
        (FROM_PYTHON, ONE): Workload(repeat(step, model.model, model.data)),
        (MUJOCO, BATCH): standing_in_mujoco(robot, 1),
        (MUJOCO, ALL_CORES): standing_in_mujoco(robot, default_threads()),
    }


# Step by step from Python: `legged.Simulation` beside a time step that a user builds from the toolkit's functions.

STEPPING_KIND = "step by step"
STEPPING_ROBOTS = 256
HELD_STEPS = 20  # time steps with one command
HAND, SIMULATION, HELD = "hand-built step", "Simulation.step", f"Simulation.step, n={HELD_STEPS}"
OBSERVED, ROLLOUTS, OVERHEAD = "Simulation.step and observe", "legged.rollout", "overhead of a call"
MJ_FROM_PYTHON = "mj_step from Python"
_STEPPING_TOLERANCE = 1e-9
"""Relative tolerance of q and v after 100 steps: the same equations, rounded differently."""


def measure_stepping(record: Record, settings: Settings) -> list[Table]:
    """Add the time steps per second of standing robots whose servos get new targets, and return them as a table."""
    for count in (1, STEPPING_ROBOTS):
        case = f"{count} robot{'s' * (count > 1)}"
        with thread_limit(1):
            times = time_in_turns(_stepping_workloads(count), settings.rounds)
        for name, measured in times.items():
            record.add((STEPPING_KIND, case, name), "steps/s", measured.rate())
            if name != SIMULATION:
                record.add((STEPPING_KIND, case, f"{name} / {SIMULATION}"), RATIO, measured.ratio_to(times[SIMULATION]))
        # n steps take o + n s per robot in one call, o + s in a call for one step
        pairs = zip(times[SIMULATION].rounds, times[HELD].rounds, strict=True)
        overheads = [1e6 * count * (one - held) * HELD_STEPS / (HELD_STEPS - 1) for one, held in pairs]
        record.add((STEPPING_KIND, case, OVERHEAD), "us", Spread.of(overheads))
    shown = {name: name for name in (HAND, SIMULATION, HELD, OBSERVED, ROLLOUTS, MJ_FROM_PYTHON)}
    shown |= {"hand / step": f"{HAND} / {SIMULATION}", OVERHEAD: OVERHEAD}
    notes = (
        f"Time steps of {1e3 * TIME_STEP:g} ms per second of a standing quadruped with 18 degrees of freedom;",
        f"the hand-built step reports no work and no fall. {ROLLOUTS}: a call for {HELD_STEPS} steps. Overhead in us.",
    )
    return [quantity_table(record, STEPPING_KIND, ("robots",), shown, "Step by step from Python", notes)]


def _stepping_workloads(count: int) -> dict[str, Workload]:
    """Return the workloads, after checking that their results agree."""
    robot, base = robots.spatial_quadruped(), robots.spatial_quadruped().base
    ground = realistic_ground(robot, penetration=5e-3)
    q, v = laws()[STANDING].initial_state(robot)
    targets = np.array(LEG_ANGLES * 4) + 0.01 * np.random.default_rng(0).standard_normal((count, robot.nj))

    def servo(t: Any, q: Any, v: Any, wrenches: Any, command: Any) -> Any:
        return KP * (command - q[base.nq :]) - KD * v[base.nv :]

    def hand_step(q: Any, v: Any, memory: Any, angles: Any) -> Any:
        points, velocities = contact_motion(robot, q, v)
        forces, rate = ground.forces(points, velocities, memory)
        tau = np.concatenate([np.zeros(base.nv), servo(0.0, q, v, None, angles)])
        vdot = legged.forward_dynamics(robot, q, v, tau, contact_wrenches(robot, q, forces))
        q, v = semi_implicit_euler(robot, q, v, vdot, TIME_STEP)
        return normalized(robot, q), v, memory + TIME_STEP * rate

    memory = len(ground.memory(len(robot.contacts)))
    shapes: dict[str, Any] = {"q": robot.nq, "v": robot.nv, "memory": memory, "angles": robot.nj}
    kernel: Any = legged.compile(hand_step, None, **shapes)
    rows = (q, v, ground.memory(len(robot.contacts)))
    state = rows if count == 1 else tuple(np.tile(x, (count, 1)) for x in rows)
    targets = targets[0] if count == 1 else targets
    integrator = legged.SemiImplicitEuler(TIME_STEP)
    options = {"ground": ground, "integrator": integrator, "q": q, "v": v, "fall": False, "threads": 1}
    sim = legged.Simulation(robot, servo, num=None if count == 1 else count, compiled=True, **options)

    def by_hand(times: int) -> None:
        nonlocal state
        for _ in range(times):
            state = kernel(*state, targets)

    def observed() -> None:
        sim.step(targets)
        sim.observe(_features)

    by_hand(STEPS)
    sim.step(targets, n=STEPS)
    for ours, theirs in ((sim.q, state[0]), (sim.v, state[1])):
        both = np.atleast_2d(ours), np.atleast_2d(theirs)
        check_agreement(f"{count} robots, step by step", *both, _STEPPING_TOLERANCE)
    rollout = {**options, "q": np.tile(q, (count, 1)), "until": HELD_STEPS * TIME_STEP}
    workloads = {
        HAND: Workload(by_hand, count),
        SIMULATION: Workload(repeat(sim.step, targets), count),
        HELD: Workload(repeat(sim.step, targets, HELD_STEPS), HELD_STEPS * count),
        OBSERVED: Workload(repeat(observed), count),
        ROLLOUTS: Workload(lambda times: _rollouts(times, robot, rollout), HELD_STEPS * count),
    }
    if mujoco() and count == 1:
        model = _standing_mujoco_robot(robot)
        workloads[MJ_FROM_PYTHON] = Workload(repeat(mujoco().mj_step, model.model, model.data))
    return workloads


def _features(q: Any, v: Any, contacts: Any) -> Any:
    """Return the state and the contact forces, an observation of usual size for learning."""
    return np.concatenate([q, v]), contacts.forces


def _rollouts(times: int, robot: legged.Robot, options: dict[str, Any]) -> None:
    for _ in range(times):
        legged.rollout(robot, laws()[STANDING], **options)
