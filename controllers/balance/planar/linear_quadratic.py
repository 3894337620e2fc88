"""A linear-quadratic regulator of planar balance, for comparison with the controllers of the angular momentum."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from controllers.balance.planar.control import PlanarController
from legged import arguments
from legged.checked import checked
from legged.spatial import Array

_STEP = 1e-5  # [rad] or [m], of the differences of gravity


@checked
@dataclass(frozen=True, eq=False)
class LinearQuadraticBalance(PlanarController):
    """A linear-quadratic regulator about the balanced posture at q2 = 0.

    It minimizes the integral of |joint errors|^2 + R |torque errors|^2 for the linearized robot. The command moves the
    equilibrium: posture and torques of the balanced configuration at q2 = u, without preview.

    Attributes:
        torque_weight: R, [rad^2/(N m)^2]; None for 100 / (m g c_z)^2: a tenth of weight times height costs as 1 rad.
    """

    torque_weight: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.torque_weight is not None:
            arguments.number("torque_weight", self.torque_weight, "rad^2/(N m)^2", above=0.0)

    @cached_property
    def gain(self) -> Array:
        """K of torques = -K [position errors; velocity errors], (n - 1, 2 n), with the pivot first."""
        from scipy.linalg import solve_continuous_are  # SciPy loads slowly

        model = self._known
        q = model.balanced(model.joint_zero)
        at_rest = np.zeros(model.robot.nv)
        at = model.equations(q, at_rest)
        n = len(at.H)
        columns = [0, *range(len(q) - n + 1, len(q))]  # without the position of a planar base
        steps = _STEP * np.eye(len(q))[columns]
        K = np.stack(
            [(model.equations(q + d, at_rest).h - model.equations(q - d, at_rest).h) / (2.0 * _STEP) for d in steps],
            axis=1,
        )
        inverse = np.linalg.inv(at.H)
        A = np.block([[np.zeros((n, n)), np.eye(n)], [-inverse @ K, np.zeros((n, n))]])
        B = np.concatenate([np.zeros((n, n - 1)), inverse[:, 1:]])
        R = self.torque_weight or 100.0 / (model.weight * at.c[2]) ** 2
        weights = np.diag([0.0] + [1.0] * (n - 1) + [0.0] * n)
        return B.T @ solve_continuous_are(A, B, weights, R * np.eye(n - 1)) / R

    def __call__(self, t: Any, q: Array, v: Array, wrenches: Array | None = None) -> Array:
        """Return the generalized forces, (nv,), [N m] or [N]; zero at the pivot and the base.

        Args:
            t: Time, [s]. q: Configuration, (nq,). v: Velocity, (nv,). wrenches: Not used.
        """
        model = self._known
        position, velocity, _ = self._references(t)
        target = model.balanced(model.joint_zero + model.direction * self._commanded(t) + position)
        hold = model.equations(target, np.zeros(model.robot.nv)).h[1:]
        rates = v if model.contact is None else np.concatenate([v[:1], v[3:]])
        errors = [q[:1] - target[:1], model.joint_positions(q) - model.joint_positions(target)]
        rate_errors = [rates[:1], rates[1:] - velocity]
        return self._forces(hold - self.gain @ np.concatenate([*errors, *rate_errors]))
