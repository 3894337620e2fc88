"""Free flight under motors' torques: many steps, ours and MuJoCo's, which are the same numbers by the same rule.

The rule is MuJoCo's default, semi-implicit Euler. `mj_step` takes the steps of one robot, the loop being MuJoCo's own;
`mujoco.rollout` those of many robots.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

import legged
from benchmarks.agreement import agree
from benchmarks.mujoco_side import MujocoTwin, mujoco, rolled_out
from benchmarks.record import RATIO, Record
from benchmarks.settings import Settings
from benchmarks.simulated import prepared, unharmed
from benchmarks.subjects import present
from benchmarks.timing import Way, calls, race
from benchmarks.words import table
from legged.compiler.runtime.stepping import Members
from legged.compiler.runtime.threads import default_threads
from legged.table import Table

KIND = "free flight"
STEP, STEPS = 1e-3, 100  # [s], and how many of them in one call
FEW = 64
"""Members of MuJoCo's rollouts, which take them one after the other, and on which both are compared."""
ONE, BATCH, ALL_CORES = "ours, one robot", "ours, batch", "ours, batch, all cores"
MJ_STEP, ROLLOUT, ROLLOUT_ALL = "mj_step", "mujoco.rollout", "mujoco.rollout, all cores"
RATIOS = ((MJ_STEP, ONE), (MJ_STEP, BATCH), (ROLLOUT, BATCH), (ROLLOUT_ALL, ALL_CORES))
THIN = 1e-6
"""How far the paths may be apart: MuJoCo's thin rods have a little inertia."""


@dataclass(frozen=True, eq=False)
class Motors:
    """Constant torques. Attributes: tau: Generalized forces, (nv,)."""

    tau: Any

    def torque(self, t: Any, phase: Any, q: Any, v: Any, wrenches: Any, memory: Any) -> Any:
        return self.tau


def measure(record: Record, settings: Settings) -> list[Table]:
    """Add steps per second of all robots to the record, and return them as a table."""
    for subject, robot in present().items():
        times = race(_ways(robot, settings.states), settings.rounds)
        for way, taken in times.items():
            record.add((KIND, subject.name, way), "steps/s", taken.rate())
        for slow, fast in RATIOS:
            if slow in times:
                record.add((KIND, subject.name, f"{slow} / {fast}"), RATIO, times[slow].over(times[fast]))
    return [_table(record, settings)]


def _ways(robot: legged.Robot, members: int) -> dict[str, Way]:
    """Return the ways to time, after checking that they lead to the same numbers."""
    q, v, tau = _gentle(robot, members)
    many = prepared(robot, Motors(tau[0]), None, v, STEPS, STEP, q=q, vary={"controller.tau": tau})
    one = prepared(robot, Motors(tau[0]), None, v[:1], STEPS, STEP, q=q[:1])
    reached = many(default_threads())
    unharmed(reached)
    last = _velocities(robot, reached)
    agree(f"{robot.name}, flight, one and many", last[:1], _velocities(robot, one(1)), 1e-9)
    ways = {
        ONE: Way(calls(one, 1), STEPS),
        BATCH: Way(calls(many, 1), STEPS * members),
        ALL_CORES: Way(calls(many, default_threads()), STEPS * members, True),
    }
    if not mujoco():
        return ways
    twin = MujocoTwin(robot, STEP)
    starts, inputs = twin.state(q[:FEW], v[:FEW]), twin.controls(q[:FEW], tau[:FEW])
    for words, threads in ((ROLLOUT, 1), (ROLLOUT_ALL, default_threads())):
        run = rolled_out(twin, starts, inputs, STEPS, threads)
        agree(f"{robot.name}, flight, {words}", last[:FEW], twin.ours(run())[1], THIN)
        ways[words] = Way(calls(run), STEPS * FEW, threads > 1)
    twin.place(q[0], v[0])
    twin.data.ctrl[:] = inputs[0]
    qpos, qvel = twin.data.qpos.copy(), twin.data.qvel.copy()

    def steps() -> None:
        twin.data.qpos[:], twin.data.qvel[:] = qpos, qvel
        mujoco().mj_step(twin.model, twin.data, STEPS)

    ways[MJ_STEP] = Way(calls(steps), STEPS)
    return ways


def _gentle(robot: legged.Robot, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return states and torques from which a tenth of a second is calm: (q, v, tau), each with a row per state.

    Joints begin in the middle of their range, and no joint reaches a stop, by which the two programs would differ.
    """
    rng = np.random.default_rng(0)
    middle, width = robot.neutral(), np.full(robot.nv, 0.3)
    for joint in robot.joints:
        physics = joint.definition.physics
        lower, upper = (np.clip(x, -10.0, 10.0) for x in (physics.lower, physics.upper))
        middle[joint.q], width[joint.v] = (lower + upper) / 2, np.minimum(0.3, (upper - lower) / 4)
    q = [legged.integrate(robot, middle, width * x) for x in rng.uniform(-1.0, 1.0, (number, robot.nv))]
    inertias = np.diag(legged.inertia_matrix(robot, middle))
    v, tau = rng.normal(size=(2, number, robot.nv)) * np.stack([np.full((1, robot.nv), 0.1), 0.3 * inertias[None]])
    tau[:, : robot.base.nv] = 0.0
    return np.stack(q), v, tau


def _velocities(robot: legged.Robot, members: Members) -> np.ndarray:
    return members.state[:, robot.nq : robot.nq + robot.nv]


def _table(record: Record, settings: Settings) -> Table:
    shown = {way: way for way in (ONE, BATCH, MJ_STEP, ROLLOUT)} | {
        "mj_step / one": f"{MJ_STEP} / {ONE}",
        "rollout / batch": f"{ROLLOUT} / {BATCH}",
        "all cores": f"{ROLLOUT_ALL} / {ALL_CORES}",
    }
    notes = (
        f"Steps a second of {1e3 * STEP:g} ms, no contact; batches of {settings.states} (MuJoCo: {FEW}).",
        "Ratios of times; one core but for 'all cores'. Both programs take the same steps: their paths agree.",
    )
    return table(record, KIND, ("robot",), shown, "Free flight", notes)
