"""Tracking of joint references: joint servos, computed torque, and feed-forward torques of a reference motion."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from controllers.law import Gain, GaitLaw, per_joint, refuse_negative
from legged.checked import checked
from legged.contact.rigid import Rigid
from legged.dynamics.inverse import floating_inverse_dynamics
from legged.errors import DefinitionError
from legged.ground.ground import Ground, contact_motion, contact_wrenches
from legged.robot.base import FloatingBase
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

    def __post_init__(self) -> None:
        refuse_negative(self, "kp", "kd")

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

    def __post_init__(self) -> None:
        refuse_negative(self, "kp", "kd", "ki")

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


@checked
@dataclass(frozen=True, eq=False)
class ComputedTorque(GaitLaw):
    """Computed-torque control with an underactuated base, by recursive inverse dynamics at the measured state:

        alpha_theta = qdd_d + K_p (q_d - q) + K_d (qd_d - qd)            (37)
        alpha_0     = -I_0^-1 (I_theta0^T alpha_theta + h_0)             (34)
        tau_theta   = I_theta0 alpha_0 + I_theta alpha_theta + h_theta   (35)

    The wrenches of the ground are part of h. With an exact model the joint errors obey edd + K_d ed + K_p e = 0.

    Attributes:
        gait: The gait.
        kp: K_p, one number or one per joint coordinate, [1/s^2].
        kd: K_d, one number or one per joint coordinate, [1/s]; by default 2 sqrt(K_p), critical damping.

    Source:
        Shah, Saha, Dutt 2012, section 4.3.2; gains of section 5.1.3.
    """

    kp: Gain = 49.0
    kd: Gain | None = None

    def __post_init__(self) -> None:
        refuse_negative(self, "kp", "kd")

    def start(self, robot: Robot, ground: Ground | Rigid | None, q: Array, v: Array) -> tuple[Self, Array]:
        """Return (law, memory) for a robot, the memory (m,); arguments as in `GaitLaw.start`."""
        law, memory = super().start(robot, ground, q, v)
        kp = per_joint("kp", self.kp, robot.nj)
        kd = 2 * np.sqrt(kp) if self.kd is None else per_joint("kd", self.kd, robot.nj)
        return replace(law, kp=kp, kd=kd), memory

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        """Return the generalized forces, (nv,); arguments as in `GaitLaw.torque`."""
        e, ed, qdd_d = self._errors(t, phase, q, v)
        alpha_theta = qdd_d + np.asanyarray(self.kp) * e + np.asanyarray(self.kd) * ed
        _, tau_theta = floating_inverse_dynamics(self.robot, q, v, alpha_theta, wrenches)
        return self._generalized(tau_theta)


@checked
@dataclass(frozen=True, eq=False)
class FeedForward(GaitLaw):
    """Feed-forward torques of a reference motion, and linear feedback of the joints:

        tau_theta = tau_ID + K_p (q_d - q) + K_d (qd_d - qd)   (31)

    tau_ID is the inverse dynamics, eqs. (26) and (27), of a reference robot whose joints follow the gait exactly. Its
    base moves according to this inverse dynamics, on the same ground with its own contact forces. The controller
    integrates the motion of this base as its memory, [q_0; v_0; memory of the ground], from the robot's initial state;
    later states of the robot do not affect it.

    Attributes:
        gait: The gait.
        kp: K_p, one number or one per joint coordinate, [N m/rad].
        kd: K_d, one number or one per joint coordinate, [N m s/rad].

    Source:
        Shah, Saha, Dutt 2012, section 4.3.1 and gains of 5.1.3; the separate reference base as in the authors'
        programs.
    """

    kp: Gain = 49.0
    kd: Gain = 14.0
    _ground: Ground | None = field(default=None, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        refuse_negative(self, "kp", "kd")

    def start(self, robot: Robot, ground: Ground | Rigid | None, q: Array, v: Array) -> tuple[Self, Array]:
        """Return (law, memory); the reference base starts at the state of the robot's base.

        Raises:
            DefinitionError: The ground is rigid. Others as in `GaitLaw.start`.
        """
        law, _ = super().start(robot, ground, q, v)
        if isinstance(ground, Rigid):
            raise DefinitionError("FeedForward needs a compliant ground, whose contact forces depend on the state")
        kp, kd = per_joint("kp", self.kp, robot.nj), per_joint("kd", self.kd, robot.nj)
        ground_memory = np.zeros(0) if ground is None else ground.memory(len(robot.contacts))
        memory = np.concatenate([q[: robot.base.nq], v[: robot.base.nv], ground_memory])
        surface = None if ground is None else ground.under(robot)
        return replace(law, kp=kp, kd=kd, _ground=surface), memory

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        """Return the generalized forces, (nv,); arguments as in `GaitLaw.torque`."""
        e, ed, _ = self._errors(t, phase, q, v)
        _, _, tau_id = self._reference_motion(t, phase, memory)
        return self._generalized(tau_id + np.asanyarray(self.kp) * e + np.asanyarray(self.kd) * ed)

    def rate(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        """Return the time derivative of the memory, (m,); arguments as in `GaitLaw.torque`."""
        base_rate, ground_rate, _ = self._reference_motion(t, phase, memory)
        return np.concatenate([base_rate, ground_rate])

    def reference_state(self, t: Any, phase: Any, memory: Array) -> tuple[Array, Array]:
        """Return (q, v) of the reference robot, (nq,) and (nv,).

        Args:
            t: Time, [s].
            phase: Number of `switches` that have passed.
            memory: Memory of the law, (m,).
        """
        base = self.robot.base
        q_0, v_0 = memory[: base.nq], memory[base.nq : base.nq + base.nv]
        if isinstance(base, FloatingBase):  # normalize the quaternion, whose length drifts in the integration
            q_0 = np.concatenate([q_0[:4] / np.sqrt(q_0[:4] @ q_0[:4]), q_0[4:]])
        q_d, qd_d, _ = self.reference(t, phase)
        return np.concatenate([q_0, q_d]), np.concatenate([v_0, qd_d])

    def _reference_motion(self, t: Any, phase: Any, memory: Array) -> tuple[Array, Array, Array]:
        """Return the rates of the base's part and of the ground's part of the memory, and tau_ID, (nj,)."""
        robot, base = self.robot, self.robot.base
        q, v = self.reference_state(t, phase, memory)
        ground_memory = memory[base.nq + base.nv :]
        if self._ground is None or not robot.contacts:
            ground_rate, wrenches = ground_memory, None
        else:
            forces, ground_rate = self._ground.forces(*contact_motion(robot, q, v), ground_memory)
            wrenches = contact_wrenches(robot, q, forces)
        _, _, qdd_d = self.reference(t, phase)
        vdot_0, tau_id = floating_inverse_dynamics(robot, q, v, qdd_d, wrenches)
        return np.concatenate([base.rate(q[: base.nq], v[: base.nv]), vdot_0]), ground_rate, tau_id


@checked
@dataclass(frozen=True, eq=False)
class OpenLoop(FeedForward):
    """Feed-forward torques of a reference motion without feedback: eq. (31) with zero gains.

    The torques are exact in an exact model, but the robot leaves the gait, since the motion is unstable.

    Source:
        Shah, Saha, Dutt 2012, section 5.1.2 and Figure 12.
    """

    kp: Gain = 0.0
    kd: Gain = 0.0
