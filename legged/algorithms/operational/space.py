"""A robot seen from its ends: inertia, bias, and the inverse of the Jacobian that is consistent with both."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from legged.algorithms.composite import inertia_matrix
from legged.algorithms.newton_euler import inverse_dynamics
from legged.algorithms.operational.inverse_inertia import jacobian, solve_lower
from legged.algorithms.operational.propagators import Points
from legged.algorithms.sparsity import Ways, factor_ltl, solve_ltl
from legged.dynamics.arguments import Wrenches, finite, read
from legged.dynamics.kinematics import point_twist_rates
from legged.errors import ShapeError
from legged.robot.robot import Robot
from legged.spatial import Array, factor_symmetric, mirror, solve_factored


@dataclass(frozen=True, eq=False)
class OperationalSpace:
    """Operational space of some of the directions of some points: xd = J v, Lambda xdd + mu = F, tau = J^T F.

    By sparse factors, Y = J L^-1: J M^-1 J^T = Y Y^T, and M^-1 J^T = L^-1 Y^T.

    Attributes:
        robot: The robot. q: Configuration, (nq,).
        points: (link, position (3,) [m] in link axes); each has six rows, [angular; linear], world axes.
        rows: Which of these rows are meant; all, if none are named.

    Source: Khatib 1987; sparse factors after Featherstone 2010.
    """

    robot: Robot
    q: Array
    points: Points
    rows: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        (q,) = read(self.robot, q=self.q)
        size = 6 * len(self.points)
        rows = tuple(self.rows) or tuple(range(size))
        if any(not 0 <= row < size for row in rows) or len(set(rows)) < len(rows):
            raise ShapeError(f"rows must be different numbers from 0 to {size - 1}, got {rows}")
        object.__setattr__(self, "q", q)
        object.__setattr__(self, "rows", rows)

    @cached_property
    def J(self) -> Array:
        """Jacobian, (rows, nv)."""
        return jacobian(self.robot, self.q, self.points)[list(self.rows)]

    @cached_property
    def mobility(self) -> Array:
        """Lambda^-1 = J M^-1 J^T, (rows, rows)."""
        return mirror(self._Y @ self._Y.T)

    @cached_property
    def inertia(self) -> Array:
        """Lambda, (rows, rows): what the ends feel like.

        Raises:
            SingularError: where some direction cannot be moved, or two cannot apart.
        """
        columns = [solve_factored(self._factors, unit) for unit in np.eye(len(self.mobility))]
        return finite(self.robot, "the operational-space inertia", mirror(np.array(columns)))

    @cached_property
    def consistent_inverse(self) -> Array:
        """J_bar = M^-1 J^T Lambda, (nv, rows): the dynamically consistent inverse of J.

        Of all joint accelerations with one effect on the ends it takes those that no force at the ends opposes. What
        the ends carry, rigidly held in the rows of this space, changes Lambda but not J_bar.

        Source: Featherstone, Khatib, "Load independence of the dynamically consistent inverse of the Jacobian matrix",
        International Journal of Robotics Research 16(2), 1997.
        """
        back = np.array([solve_factored(self._factors, row) for row in self._M_inverse_JT])
        return finite(self.robot, "the consistent inverse of the Jacobian", back)

    def accelerations(self, v: Array) -> Array:
        """Return Jd v, (rows,): how the ends accelerate at vdot = 0, world axes."""
        rates = point_twist_rates(self.robot, self.q, v, np.zeros(self.robot.nv), list(self.points))
        return rates.reshape(-1)[list(self.rows)]

    def bias(self, v: Array, wrenches: Wrenches = None) -> Array:
        """Return mu = J_bar^T h - Lambda Jd v, (rows,): forces at the ends at rest, with gravity and joints' springs.

        Args:
            v: Velocity, (nv,). wrenches: As in `legged.inverse_dynamics`.
        """
        h = inverse_dynamics(self.robot, self.q, v, np.zeros(self.robot.nv), wrenches)
        return self.consistent_inverse.T @ h - self.inertia @ self.accelerations(v)

    def forces(self, v: Array, xdd: Array, rest: Array, wrenches: Wrenches = None) -> Array:
        """Return tau = J^T (Lambda xdd + mu) + N^T rest, (nv,): the ends accelerate by xdd, whatever the rest does.

        Args:
            v: Velocity, (nv,). xdd: Wanted accelerations of the ends, (rows,), world axes.
            rest: Forces for the rest of the motion, (nv,); N^T = 1 - J^T J_bar^T leaves what the ends do not feel.
            wrenches: As in `legged.inverse_dynamics`.
        """
        F = self.inertia @ xdd + self.bias(v, wrenches) - self.consistent_inverse.T @ rest
        return rest + self.J.T @ F

    @cached_property
    def _ways(self) -> Ways:
        return Ways.of(self.robot)

    @cached_property
    def _L(self) -> Array:
        return factor_ltl(self._ways.sorted(inertia_matrix(self.robot, self.q)), self._ways)

    @cached_property
    def _Y(self) -> Array:
        rows = [solve_lower(self._L, self._ways, self._ways.vector(row)) for row in self.J]
        return np.array(rows).reshape(len(rows), self.robot.nv)

    @cached_property
    def _factors(self) -> tuple:
        return factor_symmetric(self.mobility)

    @cached_property
    def _M_inverse_JT(self) -> Array:
        """M^-1 J^T, (nv, rows)."""
        ways = self._ways
        columns = [ways.back(solve_ltl(self._L, ways, ways.vector(row))) for row in self.J]
        return np.array(columns).reshape(len(self.J), self.robot.nv).T
