"""Closed loops with contact: a quadruped on compliant ground, beside MuJoCo's steps of the same robot on four contacts.

Standing under servos both programs do the same: the same robot, gains and step. Contact laws differ, and friction holds
feet where they are, but all legs together carry the same weight: it is the angles by which they give way that must
agree. The trots are ours alone: gait, control law, dynamics, contact, judgment of falls and integrator in one kernel,
more work than MuJoCo's standing still.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import controllers
import legged
import robots
from benchmarks.agreement import Disagreement
from benchmarks.mujoco_side import MujocoTwin, Stand, mujoco, rolled_out
from benchmarks.record import RATIO, Record
from benchmarks.settings import Settings
from benchmarks.simulated import prepared, unharmed
from benchmarks.timing import Way, calls, race
from benchmarks.words import table
from legged.compiler.runtime.stepping import Members
from legged.compiler.runtime.threads import default_threads
from legged.ground import realistic_ground
from legged.table import Table

KIND = "closed loop"
STEP, STEPS = 1e-3, 100  # [s], and how many of them in one call
FEW = 64
"""Members of MuJoCo's rollouts, which take them one after the other."""
BENT = (0.0, 0.5, -1.0)  # [rad], a leg: abduction, swing, knee
HEIGHT = 0.527  # [m], of the trunk over the feet then
KP, KD = 300.0, 10.0  # [N m/rad], [N m s/rad]
SETTLED = 2000
"""Steps after which the robot stands still."""
CLOSE = 0.03
"""Relative, of the angles by which the legs give way."""
STANDING, TROT, BALANCED = "standing, servos", "trot, computed torque", "trot, balanced"
MUJOCO, FROM_PYTHON = "standing, MuJoCo", "standing, MuJoCo step by step from Python"
ONE, BATCH, ALL_CORES = "one robot", "batch", "batch, all cores"
MJ_STEP, ROLLOUT, ROLLOUT_ALL = "mj_step / one", "rollout / batch", "all cores"
MJ_STEP_BATCH = "mj_step / batch"
RATIOS = {MJ_STEP: (ONE, ONE), MJ_STEP_BATCH: (ONE, BATCH), ROLLOUT: (BATCH, BATCH), ROLLOUT_ALL: (ALL_CORES,) * 2}
"""Names of ratios -> (MuJoCo's way, ours)."""
REAL_TIME = "times real time"


def laws() -> dict[str, Any]:
    """Return the controllers to time."""
    gait = controllers.Trot(period=0.4, stride=0.15, clearance=0.06)  # [s], [m], [m]
    return {
        STANDING: controllers.JointPD(controllers.Posture(BENT * 4, HEIGHT), KP, KD),
        TROT: controllers.ComputedTorque(gait),
        BALANCED: controllers.Balanced(gait),
    }


def measure(record: Record, settings: Settings) -> list[Table]:
    """Add steps per second to the record, and return them as a table."""
    robot, cases = robots.spatial_quadruped(), laws()
    ways = {}
    for case, law in cases.items():
        one, many = _run(robot, law, 1, STEPS), _run(robot, law, settings.states, STEPS)
        unharmed(many(default_threads()))
        ways[case, ONE] = Way(calls(one, 1), STEPS)
        ways[case, BATCH] = Way(calls(many, 1), STEPS * settings.states)
        ways[case, ALL_CORES] = Way(calls(many, default_threads()), STEPS * settings.states, True)
    if mujoco():
        ways |= _theirs(robot, cases[STANDING])
    times = race(ways, settings.rounds)
    for name, taken in times.items():
        record.add((KIND, *name), "steps/s", taken.rate())
        record.add((KIND, *name[:-1], f"{name[-1]}, {REAL_TIME}"), RATIO, taken.rate(STEP))
    for case in cases if mujoco() else ():
        for words, (slow, fast) in RATIOS.items():
            record.add((KIND, case, words), RATIO, times[MUJOCO, slow].over(times[case, fast]))
    return [_table(record, settings)]


def _run(robot: legged.Robot, law: Any, members: int, steps: int) -> Callable[[int], Members]:
    """Return steps of members whose initial velocities differ."""
    _, v = law.initial_state(robot)
    v = v + np.pad(0.02 * np.random.default_rng(0).standard_normal((members, 6)), ((0, 0), (0, robot.nj)))
    return prepared(robot, law, realistic_ground(robot, penetration=5e-3), v, steps, STEP)


def trot(robot: legged.Robot, members: int) -> Callable[[int], Members]:
    """Return the trot under computed torque, a function of the number of threads."""
    return _run(robot, laws()[TROT], members, STEPS)


def _settled(robot: legged.Robot) -> MujocoTwin:
    """Return MuJoCo's robot once it stands."""
    twin = MujocoTwin(robot, STEP, Stand(KP, KD))
    twin.place(*laws()[STANDING].initial_state(robot))
    twin.data.ctrl[:] = BENT * 4
    mujoco().mj_step(twin.model, twin.data, SETTLED)
    return twin


def standing(robot: legged.Robot, threads: int) -> Way:
    """Return MuJoCo's rollout of robots that stand."""
    twin = _settled(robot)
    starts, inputs = np.tile(twin.here(), (FEW, 1)), np.tile(BENT * 4, (FEW, 1))
    return Way(calls(rolled_out(twin, starts, inputs, STEPS, threads)), STEPS * FEW, threads > 1)


def _theirs(robot: legged.Robot, law: Any) -> dict[tuple[str, str], Way]:
    """Return MuJoCo's ways to stand, after checking that it stands as ours does."""
    twin, angles = _settled(robot), np.array(BENT * 4)
    ours = _run(robot, law, 1, SETTLED)(1).state[0, robot.base.nq : robot.nq]
    given = [(a - angles).reshape(4, 3).sum(axis=0)[1:] for a in (ours, twin.ours(twin.here())[0][robot.base.nq :])]
    if twin.data.ncon != 4 or not np.allclose(*given, rtol=CLOSE, atol=0.0):
        raise Disagreement(f"{twin.data.ncon} contacts; swing and knee give way by {given[0]}, in MuJoCo {given[1]}")
    step, model, data = mujoco().mj_step, twin.model, twin.data
    return {
        (MUJOCO, ONE): Way(calls(step, model, data, STEPS), STEPS),
        (FROM_PYTHON, ONE): Way(calls(step, model, data)),
        (MUJOCO, BATCH): standing(robot, 1),
        (MUJOCO, ALL_CORES): standing(robot, default_threads()),
    }


def _table(record: Record, settings: Settings) -> Table:
    shown = {way: way for way in (ONE, BATCH, ALL_CORES, *RATIOS)}
    notes = (
        f"Steps a second of {1e3 * STEP:g} ms, and ratios of times; quadruped of 18 degrees of freedom on four feet.",
        f"Batches of {settings.states}; MuJoCo's are rollouts of {FEW}, its one robot is stepped by mj_step.",
    )
    return table(record, KIND, ("motion",), shown, "Closed loop with contact", notes)
