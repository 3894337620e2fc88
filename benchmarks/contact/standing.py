"""Time of a step of a robot that stands on rigid ground, ours beside MuJoCo's; part of `python -m benchmarks.contact
--speed`.

A quadruped and a humanoid from files are dropped from 5 mm onto a plane and stand under joint servos. MuJoCo has the
exported model with elliptic friction cones, implicit servos with the same gains, and spheres at the
contact points.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import controllers
import legged
from benchmarks.contact.speed import MEMBERS, REPEATS, STEP, STEPS, least_times, stepping
from benchmarks.harness.references import MujocoRobot, Servos, mujoco, mujoco_rollout
from benchmarks.harness.subjects import robot_file
from benchmarks.harness.timing import Disagreement
from benchmarks.simulation import compiled_rollout
from legged.contact import Rigid
from legged.spatial import Array

ROBOTS = {
    "Go2": ("go2_description/urdf/go2.urdf", Servos(100.0, 5.0)),
    "G1": ("g1_description/urdf/g1_29dof_rev_1_0.urdf", Servos(300.0, 15.0, radius=1e-3)),
}
"""File and servos of each robot."""
DROP, SETTLED = 5e-3, 0.02
"""Initial height of the feet over the ground, and largest difference of the final heights of the base, [m]."""


def standing_table(short: bool = False) -> str:
    """Return a Markdown table of the times of a step.

    Args:
        short: Few steps, which show that the program runs.

    Raises:
        Disagreement: The robots do not stand alike.
    """
    steps = 10 if short else STEPS
    lines = [
        "| robot | contacts | program | ours [us] | MuJoCo [us] | MuJoCo / ours |",
        f"| --- | ---: | --- |{' ---: |' * 3}",
    ]
    for name, (path, servos) in ROBOTS.items():
        case = _Standing(legged.load(robot_file(path), joint_physics=False), servos)
        if not short:
            case.check()
        for words, pair, work in (
            ("calls from Python", (case.one(steps), case.mujoco_one(steps)), steps),
            ("batch on one core", (case.batch(steps), case.mujoco_batch(steps)), steps * MEMBERS),
        ):
            ours, other = (1e6 * x / work for x in least_times(pair, 1 if short else REPEATS))
            count = len(case.robot.contacts)
            lines.append(f"| {name} | {count} | {words} | {ours:.1f} | {other:.1f} | {other / ours:.2f} |")
    return "\n".join(lines) + "\n"


class _Standing:
    """A robot under servos, here and in MuJoCo."""

    def __init__(self, robot: legged.Robot, servos: Servos):
        home = controllers.home_of(robot)
        posture = controllers.Posture(tuple(home.angles), home.base_height + DROP)
        self.robot, self.law = robot, controllers.JointPD(posture, servos.kp, servos.kd)
        self.q, self.v = posture.initial_state(robot)
        self.ground = Rigid(servos.friction)
        self.mujoco = MujocoRobot(robot, STEP, servos)
        options, library = self.mujoco.model.opt, mujoco()
        options.cone, options.integrator = library.mjtCone.mjCONE_ELLIPTIC, library.mjtIntegrator.mjINT_IMPLICITFAST
        q = self.q + np.eye(robot.nq)[6] * servos.radius  # spheres touch below the contact points
        self.mujoco.set_state(q, self.v)
        self.state = self.mujoco.state
        self.angles = self.mujoco.to_mujoco(self.q, self.v)[8 : 8 + robot.nj]

    def check(self) -> None:
        """Raise `Disagreement` if the robots do not stand alike after half a second."""
        steps = round(0.5 / STEP)
        ours = self._members(1, steps)(1).state[0, 6]
        data = self.mujoco.data
        data.ctrl[:] = self.angles
        mujoco().mj_step(self.mujoco.model, data, steps)
        theirs = data.qpos[2] - (self.state[3] - self.q[6])
        if not abs(ours - theirs) < SETTLED or self.q[6] - ours > 10.0 * SETTLED:
            raise Disagreement(f"the base is at a height of {ours:.3f} m here and {theirs:.3f} m in MuJoCo")

    def one(self, steps: int) -> Callable[[], None]:
        """Return our steps of one robot."""
        return stepping(steps, self.robot, self.law, ground=self.ground, q=self.q, v=self.v)

    def mujoco_one(self, steps: int) -> Callable[[], None]:
        """Return MuJoCo's steps of one robot."""
        library, model, data = mujoco(), self.mujoco.model, self.mujoco.data

        def run() -> None:
            self.mujoco.set_state(*self.mujoco.from_mujoco(self.state))
            data.ctrl[:] = self.angles
            for _ in range(steps):
                library.mj_step(model, data)

        return run

    def _members(self, count: int, steps: int) -> Callable[[int], Any]:
        states = np.tile(self.v, (count, 1)), np.tile(self.q, (count, 1))
        return compiled_rollout(self.robot, self.law, self.ground, states[0], steps, STEP, q=states[1])

    def batch(self, steps: int) -> Callable[[], Any]:
        """Return our steps of a batch."""
        run = self._members(MEMBERS, steps)
        return lambda: run(1)

    def mujoco_batch(self, steps: int) -> Callable[[], Array]:
        """Return MuJoCo's steps of a batch."""
        controls = np.tile(self.angles, (MEMBERS, 1))
        return mujoco_rollout(self.mujoco, np.tile(self.state, (MEMBERS, 1)), controls, steps)
