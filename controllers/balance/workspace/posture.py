"""Joints that carry no stance: held in a posture, or driven as their user says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from controllers.balance.workspace.dynamics import Drive
from controllers.balance.workspace.feet import Foot
from legged.errors import DefinitionError, ShapeError
from legged.robot.body import Body
from legged.robot.robot import Robot
from legged.rotations import quaternion_conjugate, quaternion_log, quaternion_product
from legged.spatial import Array

Torques = Callable[[Any, Array, Array], Array]


class Servo:
    """The servo of the joints beside the stance: tau = D (k_p e + k_d ed) + what holds the joint still.

    D is the inertia that the joint meets, with free joints outward of it, and what holds it bears weight, springs and
    Coriolis forces; so e obeys edd + k_d ed + k_p e = 0 where the joint's parent does not accelerate.

    Args:
        robot: The robot. feet: Those that may stand.
        gains: k_p, [1/s^2], and k_d, [1/s]. others: Torques in the servo's place, (nj,), or None.
        home: Configuration whose joint positions are held, (nq,).
    """

    def __init__(
        self, robot: Robot, feet: Sequence[Foot], gains: tuple[float, float], others: Torques | None, home: Array
    ):
        if len(gains) != 2 or not all(np.isfinite(gain) and gain >= 0.0 for gain in gains):
            raise DefinitionError(f"posture must be two gains that are not negative, [1/s^2] and [1/s], got {gains}")
        self.robot, self.gains, self.others, self.home = robot, gains, others, np.array(home, dtype=float)
        self.leads = [
            [i for i, foot in enumerate(feet) if k in robot.ancestors(foot.body)] for k in range(len(robot.bodies))
        ]

    def drive(self, t: Any, q: Array, v: Array, loads: Sequence[Any]) -> Drive:
        """Return the torque of each joint as a function of what it meets, zero for those that lead to standing feet."""
        given = None if self.others is None else self._given(t, q, v)

        def torque(body: Body, D: Array, hold: Array) -> Array:
            share = self._free(body, loads)
            if isinstance(share, float) and share == 0.0:
                return np.zeros(body.nv)
            return share * (D @ self._pull(body, q, v) + hold if given is None else given[body.v])

        return torque

    def _free(self, body: Body, loads: Sequence[Any]) -> Any:
        """Return 1 for a joint that leads to no standing foot, 0 for one that does."""
        share: Any = 1.0
        for i in self.leads[body.index]:
            share = share * (1.0 - loads[i])
        return share

    def _pull(self, body: Body, q: Array, v: Array) -> Array:
        kp, kd = self.gains
        if body.kind == "ball":
            error = quaternion_log(quaternion_product(quaternion_conjugate(q[body.q]), self.home[body.q]))
        else:
            error = self.home[body.q] - q[body.q]
        return kp * error - kd * v[body.v]

    def _given(self, t: Any, q: Array, v: Array) -> Array:
        assert self.others is not None
        torques = np.asanyarray(self.others(t, q, v))
        if torques.shape != (self.robot.nj,):
            raise ShapeError(f"others must give ({self.robot.nj},), one torque per joint, got shape {torques.shape}")
        return np.concatenate([np.zeros(self.robot.base.nv), torques])
