"""Independent joint servos: PD and PID control without a model of the robot."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from controllers.law import Gain, GaitLaw, per_joint
from legged.checked import checked
from legged.contact.rigid import Rigid
from legged.ground.ground import Ground
from legged.robot.robot import Robot

Array = np.ndarray


@checked
@dataclass(frozen=True, eq=False)
class JointPD(GaitLaw):
    """A spring and a damper at every joint, tau = K_p (q_d - q) + K_d (qd_d - qd).

    Attributes:
        gait: The gait; a `Posture` for constant joint positions.
        kp: K_p, one number or one per joint coordinate, [N m/rad].
        kd: K_d, one number or one per joint coordinate, [N m s/rad].
    """

    kp: Gain = 200.0
    kd: Gain = 10.0

    def start(self, robot: Robot, ground: Ground | Rigid | None, q: Array, v: Array) -> tuple[Self, Array]:
        """Return (law, memory) for a robot, the memory (m,); arguments as in `GaitLaw.start`."""
        law, memory = super().start(robot, ground, q, v)
        return replace(law, kp=per_joint("kp", self.kp, robot.nj), kd=per_joint("kd", self.kd, robot.nj)), memory

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        """Return the generalized forces, (nv,); arguments as in `GaitLaw.torque`."""
        e, ed, _ = self._errors(t, phase, q, v)
        return self._generalized(np.asanyarray(self.kp) * e + np.asanyarray(self.kd) * ed)

    @property
    def implicit_gains(self) -> tuple[Array, Array]:
        """(K_p, K_d) of a started law, (nj,) each, [N m/rad] and [N m s/rad]; see `Controller.implicit_gains`."""
        return np.asanyarray(self.kp), np.asanyarray(self.kd)


@checked
@dataclass(frozen=True, eq=False)
class JointPID(JointPD):
    """A joint servo with integral feedback, tau = K_p e + K_i int e dt + K_d ed, with e = q_d - q.

    The memory is the integral of the error, (nj,), [rad s].

    Attributes:
        ki: K_i, one number or one per joint coordinate, [N m/(rad s)].
    """

    ki: Gain = 100.0

    def start(self, robot: Robot, ground: Ground | Rigid | None, q: Array, v: Array) -> tuple[Self, Array]:
        """Return (law, memory) for a robot, the memory (m,); arguments as in `GaitLaw.start`."""
        law, _ = super().start(robot, ground, q, v)
        return replace(law, ki=per_joint("ki", self.ki, robot.nj)), np.zeros(robot.nj)

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        """Return the generalized forces, (nv,); arguments as in `GaitLaw.torque`."""
        proportional = super().torque(t, phase, q, v, wrenches, memory)
        return proportional + self._generalized(np.asanyarray(self.ki) * memory)

    def rate(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        """Return the time derivative of the memory, (m,); arguments as in `GaitLaw.torque`."""
        e, _, _ = self._errors(t, phase, q, v)
        return e
