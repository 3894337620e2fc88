"""Three controllers of the literature for balance in the plane, for comparison with those of `control`.

Azad and Featherstone 2016, Autonomous Robots, compare theirs with three existing balance controllers, which the
abstract does not name. These are three known ones for robots with one unactuated joint; equations are derived here.

- `LinearQuadraticBalance`: a linear-quadratic regulator about one posture. Spong 1995, IEEE Control Systems 15(1), "The
  swing up control problem for the Acrobot", balances so.
- `PartialLinearizationBalance`: the actuated motion becomes a double integrator, and linear feedback balances. Spong
  1994, IROS, "Partial feedback linearization of underactuated mechanical systems".
- `UnactuatedMomentumBalance`: linearization of an output of the momentum of the unactuated joint and of the angle
  conjugate to it. Grizzle, Moog, Chevallereau 2005, IEEE Transactions on Automatic Control 50(5), "Nonlinear control of
  mechanical systems with an unactuated cyclic variable".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from controllers.balance.planar.control import MomentumController, PlanarController
from controllers.balance.planar.model import PlanarBalance, PlanarState, ReducedEquations
from legged import arguments, taylor
from legged.checked import checked
from legged.spatial import Array

_STEP = 1e-5  # [rad] or [m], of the differences of gravity
_NODES, _WEIGHTS = (0.5 * (np.polynomial.legendre.leggauss(8)[k] + (1.0 - k)) for k in range(2))
"""Points and weights of a quadrature over [0, 1]; its error is below 1e-9 rad for joint angles of 2 rad."""


def _linearized(model: PlanarBalance, motions: Array) -> tuple[ReducedEquations, Array]:
    """Return the equations at the balanced posture at q2 = 0, and their stiffness dh / dr, (n, k), at rest.

    Args:
        model: The balance model. motions: Directions r in the coordinates [pivot; joints], (k, n), dimensionless.
    """
    q = model.balanced(model.joint_zero)
    at_rest = np.zeros(model.robot.nv)
    columns = [0, *range(len(q) - len(motions[0]) + 1, len(q))]  # without the position of a planar base
    steps = np.zeros((len(motions), len(q)))
    steps[:, columns] = _STEP * motions
    h = [(model.equations(q + d, at_rest).h - model.equations(q - d, at_rest).h) / (2.0 * _STEP) for d in steps]
    return model.equations(q, at_rest), np.stack(h, axis=1)


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
        n = len(model.direction) + 1
        at, K = _linearized(model, np.eye(n))
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


@checked
@dataclass(frozen=True, eq=False)
class PartialLinearizationBalance(MomentumController):
    """Collocated partial feedback linearization with linear feedback: q2'' = -K [q1 - q1_u; q2 - u; q1'; q2'].

    The torques make q2'' what the law asks for, whatever the posture. K puts all poles at -pole for the robot
    linearized about the balanced posture at q2 = 0; q1_u is the pivot's angle in balance at q2 = u. The command is not
    previewed.
    """

    @cached_property
    def _gain(self) -> Array:
        """K, (4,), by Ackermann's formula."""
        model = self._known
        a = model.direction
        at, K = _linearized(model, np.block([[1.0, 0.0 * a], [0.0, a]]))
        pole = self.pole
        if pole is None:
            pole = 1.0 / model.state_of(model.balanced(model.joint_zero), at).time_constant
        A, B = np.zeros((4, 4)), np.array([0.0, 0.0, -(at.H[0, 1:] @ a) / at.H[0, 0], 1.0])
        A[:2, 2:], A[2, :2] = np.eye(2), -K[0] / at.H[0, 0]
        reach = np.stack([np.linalg.matrix_power(A, k) @ B for k in range(4)], axis=1)
        return np.linalg.solve(reach.T, np.eye(4)[3]) @ np.linalg.matrix_power(A + pole * np.eye(4), 4)

    def _law(self, t: Any, q: Array, at: ReducedEquations, state: PlanarState) -> Array:
        """Return the joint torques before their limit, (n - 1,), [N m]."""
        model = self._known
        command = self._commanded(t)
        target = model.balanced(model.joint_zero + model.direction * command)
        errors = np.stack([q[0] - target[0], state.q2 - command, at.v[0], state.q2_rate])
        other = self._other_accelerations(t, q, at.v[1:], state)
        return self._joint_torques(at, other, -(self._gain @ errors))


@checked
@dataclass(frozen=True, eq=False)
class UnactuatedMomentumBalance(MomentumController):
    """Input-output linearization with the momentum of the unactuated pivot and its conjugate angle.

    The kinetic energy does not depend on q1. The angle p, conjugate to the momentum L, is a function of the posture

        p = q1 + integral of H12 / H11 over q2 from 0 to q2,      p' = L / H11

    The output h = p - p_u + K L has the third derivative of L in its third derivative; p_u is p in balance at q2 = u.
    The law is h''' = -3 pole h'' - 3 pole^2 h' - pole^3 h. Where h is zero, p' = -(p - p_u) / (K H11), and
    K = 1 / (pole H11 of the posture at u) gives the fourth pole. The command is not previewed. p is derived for a robot
    that does its balancing motion alone.
    """

    def _angle(self, q: Array, q2: Any) -> Any:
        """Return p, [rad]."""
        model = self._known
        joints = np.concatenate([np.zeros(len(q) - len(model.direction)), model.direction])
        at = [model.reduced_inertia(q - joints * (q2 * (1.0 - x))) for x in _NODES]
        rows = [H[0, 1:] @ model.direction / H[0, 0] for H in at]
        return q[0] + q2 * sum((w * row for w, row in zip(_WEIGHTS, rows, strict=True)), 0.0 * q2)

    def _momentum_rate(self, t: Any, q: Array, at: ReducedEquations, state: PlanarState, pole: Any) -> Any:
        model, command = self._known, self._commanded(t)
        target = model.balanced(model.joint_zero + model.direction * command)
        H, K = at.H[0, 0], 1.0 / (pole * model.reduced_inertia(target)[0, 0])
        other = self._other_accelerations(t, q, at.v[1:], state)
        at_zero, slope = self._balancing_acceleration(at, other)
        # H11 along the motion with L''' = 0, and its change with q2''.
        base, a = np.zeros(len(q) - len(other)), model.direction
        rates, accelerations = np.concatenate([base, at.v[1:]]), np.concatenate([base, a * at_zero + other])
        H1, H2 = taylor.derivatives(model.reduced_inertia(taylor.moving(q, rates, accelerations))[0, 0])[1:]
        H_q = taylor.derivatives(model.reduced_inertia(taylor.moving(q, np.concatenate([base, a]), 0.0 * q))[0, 0])[1]
        L, L1, L2 = state.L, state.L1, state.L2
        h = self._angle(q, state.q2) - self._angle(target, command) + K * L
        h1 = L / H + K * L1
        h2 = L1 / H - L * H1 / H**2 + K * L2
        h3 = -3.0 * pole * h2 - 3.0 * pole**2 * h1 - pole**3 * h
        without = L2 / H - 2.0 * L1 * H1 / H**2 - L * H2 / H**2 + 2.0 * L * H1**2 / H**3
        return (h3 - without) / (K - L * H_q * slope / H**2)
