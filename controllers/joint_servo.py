"""Independent servos at every joint: PD and PID, without a model of the robot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from controllers.law import Gain, GaitLaw, per_joint
from legged.contact.rigid import Rigid
from legged.ground.ground import Ground
from legged.robot.robot import Robot

Array = np.ndarray


@dataclass(eq=False)
class JointPD(GaitLaw):
    """A spring and a damper at every joint, tau = K_p (q_d - q) + K_d (qd_d - qd).

    Attributes:
        gait: What to follow; a `Posture` to stand.
        kp: K_p, one number or one per joint coordinate, [N m/rad].
        kd: K_d, likewise, [N m s/rad].
    """

    kp: Gain = 200.0
    kd: Gain = 10.0

    def _fit_gains(self, n: int) -> None:
        self._kp, self._kd = per_joint("kp", self.kp, n), per_joint("kd", self.kd, n)

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        e, ed, _ = self._errors(t, phase, q, v)
        return self._generalized(self._kp * e + self._kd * ed)


@dataclass(eq=False)
class JointPID(JointPD):
    """A servo that also integrates its error, tau = K_p e + K_i int e dt + K_d ed, with e = q_d - q.

    The integral of the error, (nj,), [rad s], is the memory.

    Attributes:
        ki: K_i, one number or one per joint coordinate, [N m/(rad s)].
    """

    ki: Gain = 100.0

    def _fit_gains(self, n: int) -> None:
        super()._fit_gains(n)
        self._ki = per_joint("ki", self.ki, n)

    def start(self, robot: Robot, ground: Ground | Rigid | None, q: Array, v: Array) -> Array:
        """Fit the law to the robot and return the memory, no error yet."""
        super().start(robot, ground, q, v)
        return np.zeros(robot.nj)

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        return super().torque(t, phase, q, v, wrenches, memory) + self._generalized(self._ki * memory)

    def rate(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        e, _, _ = self._errors(t, phase, q, v)
        return e
