"""Computed-torque control: inverse dynamics of the acceleration that takes the joints back to the gait."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from controllers.law import Gain, GaitLaw, per_joint
from legged.dynamics.inverse import floating_inverse_dynamics

Array = np.ndarray


@dataclass(eq=False)
class ComputedTorque(GaitLaw):
    """Computed torque for an underactuated base, by the recursive inverse dynamics at the measured state:

        alpha_theta = qdd_d + K_p (q_d - q) + K_d (qd_d - qd)            (37)
        alpha_0     = -I_0^-1 (I_theta0^T alpha_theta + h_0)             (34)
        tau_theta   = I_theta0 alpha_0 + I_theta alpha_theta + h_theta   (35)

    The ground's wrenches are part of h. With an exact model the joint errors obey edd + K_d ed + K_p e = 0.

    Attributes:
        gait: What to follow.
        kp: K_p, one number or one per joint coordinate, [1/s^2].
        kd: K_d, likewise, [1/s]; without it 2 sqrt(K_p), critical damping.

    Source:
        Shah, Saha, Dutt 2012, section 4.3.2; gains of section 5.1.3.
    """

    kp: Gain = 49.0
    kd: Gain | None = None

    def _fit_gains(self, n: int) -> None:
        self._kp = per_joint("kp", self.kp, n)
        self._kd = 2 * np.sqrt(self._kp) if self.kd is None else per_joint("kd", self.kd, n)

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        e, ed, qdd_d = self._errors(t, phase, q, v)
        alpha_theta = qdd_d + self._kp * e + self._kd * ed
        _, tau_theta = floating_inverse_dynamics(self.robot, q, v, alpha_theta, wrenches)
        return self._generalized(tau_theta)
