"""Tracking by Lyapunov's method: laws whose stored energy of the errors never grows, after Wen and Bayard."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from controllers.law import Gain, GaitLaw, check_gains, per_joint
from legged.algorithms.derivatives import reference_inverse_dynamics
from legged.checked import checked
from legged.contact.rigid import Rigid
from legged.dynamics.inertia import inertia_matrix
from legged.ground.ground import Ground
from legged.robot.robot import Robot
from legged.spatial import solve_symmetric

Array = np.ndarray


@checked
@dataclass(frozen=True, eq=False)
class LyapunovTracking(GaitLaw):
    """Tracking with a Lyapunov function, without inversion of the joints' inertia:

        w_theta = qd_d + Lambda e,      e = q_d - q,      s = v - w
        tau     = I wdot + C(q, v) w + gravity, friction and springs - tau^F + K_p e - K_d s_theta
        V       = s^T I s / 2 + e^T K_p e / 2
        Vdot    = -s_theta^T K_d s_theta - e^T K_p Lambda e <= 0

    With Lambda = 0 it is tau = I qdd_d + C(q, qd) qd_d + g + K_p e + K_d ed, the first of the laws of Wen and Bayard:
    V falls while ed is not zero; for a constant posture it is PD control with compensation of gravity. With
    Lambda, V falls while a joint has an error; on a fixed base the errors vanish exponentially, as in the law of
    Slotine and Li.

    The base of a legged robot has no actuators. Its reference velocity w_0, the memory, is integrated such that the law
    asks for no force on the base; it begins at the velocity of the base. s contains the base, so that V falls whatever
    moves the base and whichever forces the ground applies, if these are measured. The base itself is not controlled:
    the joint errors vanish, while V tends to the energy of the momentum of s, which no actuator changes.

    Attributes:
        gait: The gait; a `Posture` for constant joint positions.
        kp: K_p, one number or one per joint coordinate, [N m/rad].
        kd: K_d, one number or one per joint coordinate, [N m s/rad].
        slope: Lambda, one number or one per joint coordinate, [1/s].

    Source:
        Wen, Bayard 1988, "New class of control laws for robotic manipulators", as cited by Rodriguez, Jain,
        Kreutz-Delgado 1991, section 6; Slotine, Li 1987, "On the adaptive control of robot manipulators". The free base
        is our extension.
    """

    kp: Gain = 200.0
    kd: Gain = 20.0
    slope: Gain = 0.0

    def __post_init__(self) -> None:
        check_gains(self, "kp", "kd", "slope")

    def start(self, robot: Robot, ground: Ground | Rigid | None, q: Array, v: Array) -> tuple[Self, Array]:
        """Return (law, memory), the memory w_0, (n0,), as the velocity of the base; arguments as in `GaitLaw.start`."""
        law, _ = super().start(robot, ground, q, v)
        gains = {name: per_joint(name, getattr(self, name), robot.nj) for name in ("kp", "kd", "slope")}
        return replace(law, **gains), np.asarray(v[: robot.base.nv], float).copy()

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        """Return the generalized forces, (nv,); arguments as in `GaitLaw.torque`."""
        return self._generalized(self._forces(t, phase, q, v, wrenches, memory)[1])

    def rate(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        """Return the time derivative of w_0, (n0,); arguments as in `GaitLaw.torque`."""
        return self._forces(t, phase, q, v, wrenches, memory)[0]

    def lyapunov(self, t: Any, phase: Any, q: Array, v: Array, memory: Array) -> Any:
        """Return V, [J]: the kinetic energy of the velocity errors and the energy of the springs K_p.

        Args:
            t: Time, [s]. phase: Number of `switches` that have passed.
            q: Configuration, (nq,). v: Velocity, (nv,). memory: Memory of the law, (n0,).
        """
        e, w, _ = self._reference_velocity(t, phase, q, v, memory)
        s = v - w
        return 0.5 * (s @ (inertia_matrix(self.robot, q) @ s) + e @ (np.asanyarray(self.kp) * e))

    def lyapunov_rate(self, t: Any, phase: Any, q: Array, v: Array, memory: Array) -> Any:
        """Return dV/dt, [W], in an exact model; arguments as in `lyapunov`."""
        e, w, _ = self._reference_velocity(t, phase, q, v, memory)
        s = (v - w)[self.robot.base.nv :]
        kp, kd, slope = map(np.asanyarray, (self.kp, self.kd, self.slope))
        return -(s @ (kd * s)) - e @ (kp * slope * e)

    def _reference_velocity(self, t: Any, phase: Any, q: Array, v: Array, memory: Array) -> tuple[Array, Array, Array]:
        """Return the joint errors (nj,), w (nv,), and the rate of its joint part, (nj,)."""
        e, ed, qdd_d = self._errors(t, phase, q, v)
        slope = np.asanyarray(self.slope)
        w_theta = v[self.robot.base.nv :] + ed + slope * e
        return e, np.concatenate([memory, w_theta]), qdd_d + slope * ed

    def _forces(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> tuple[Array, Array]:
        """Return (rate of w_0, torques of the joints), (n0,) and (nj,)."""
        n0 = self.robot.base.nv
        e, w, wdot_theta = self._reference_velocity(t, phase, q, v, memory)
        required = reference_inverse_dynamics(self.robot, q, v, w, np.concatenate([np.zeros(n0), wdot_theta]), wrenches)
        wdot_0 = np.zeros(0)
        if n0:
            inertia = inertia_matrix(self.robot, q)
            wdot_0 = -solve_symmetric(inertia[:n0, :n0], required[:n0])
            required = required + inertia[:, :n0] @ wdot_0
        feedback = np.asanyarray(self.kp) * e - np.asanyarray(self.kd) * (v - w)[n0:]
        return wdot_0, required[n0:] + feedback
