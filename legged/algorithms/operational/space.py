"""Operational-space inertia, bias forces and the dynamically consistent inverse of the Jacobian.

The inverse inertia J M^-1 J^T is computed from sparse factors of the inertia matrix; `by_operators` and
`by_propagators` compute it by recursions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from legged.algorithms.composite import inertia_matrix
from legged.algorithms.linear_algebra import solve_rows
from legged.algorithms.newton_euler import inverse_dynamics
from legged.algorithms.operational.propagators import Points
from legged.algorithms.operators import SpatialOperators, tip_mobility
from legged.algorithms.sparse.sparsity import DofTree, factor_ltl, solve_lower, solve_transposed
from legged.arguments import whole
from legged.compiler.ir import stage
from legged.dynamics.arguments import Wrenches, finite, read
from legged.dynamics.kinematics import point_jacobian, point_twist_rates
from legged.elements import any_element, lift_with
from legged.errors import ShapeError
from legged.robot.robot import Robot
from legged.spatial import Array, factor_symmetric, mirror


@any_element
def by_factors(robot: Robot, q: Array, points: Points) -> Array:
    """Return J M^-1 J^T = Y Y^T, (6 points, 6 points), with Y = J L^-1 and M = L^T L.

    Each row of Y is nonzero only on the path from its point to the base, as in J.

    Args:
        robot, q, points: As in `by_propagators`.

    Raises:
        DefinitionError: For joints that follow others.

    Source: Featherstone, "Exploiting sparsity in operational-space dynamics", International Journal of Robotics
    Research 29(10), 2010.
    """
    tree = DofTree.of(robot)
    (q,) = read(robot, q=q)
    M = inertia_matrix(robot, q)
    with stage("3 factors"):
        L = factor_ltl(tree.permute_matrix(M), tree)
    with stage("4 Jacobian and solution"):
        J = _jacobian(robot, q, points)
        Y = whitened_jacobian(J, L, tree)
        Lambda_inverse = mirror(Y @ Y.T) if len(Y) else np.zeros((0, 0))
    return finite(robot, "the operational-space inertia", Lambda_inverse)


@any_element
def by_operators(robot: Robot, q: Array, points: Points) -> Array:
    """Return J M^-1 J^T, (6 points, 6 points), by the recursion of the spatial operator algebra; see `tip_mobility`."""
    return tip_mobility(SpatialOperators(robot, q), points)


@any_element
def weighted_pseudoinverse(L: Array, Y: Array, Lambda: Array, tree: DofTree) -> Array:
    """Return J_bar = M^-1 J^T Lambda = L^-1 Y^T Lambda, (n, rows), the inertia-weighted pseudoinverse of J.

    A row of Y^T has entries only for the points outward of its joint, and L has those of the branches, so that the
    traced operations decrease with each branch. Neither M^-1 nor M^-1 J^T is formed.

    Args:
        L: Factor of `factor_ltl`, (n, n), any unit. Y: J L^-1, (rows, n), any unit. Both in the order of the tree.
        Lambda: Operational-space inertia (Y Y^T)^-1, (rows, rows), any unit.
        tree: The degrees of freedom.

    Source: Featherstone 2010 reports the savings of sparse forms, of which we know the abstract alone.
    """
    columns = (Y.T @ Lambda).T
    return np.array([solve_lower(L, tree, column) for column in columns]).reshape(Y.shape).T


def _jacobian(robot: Robot, q: Array, points: Points) -> Array:
    """Return the stacked Jacobians of the points, (6 points, nv), world axes."""
    rows = [point_jacobian(robot, q, link, point) for link, point in points]
    return np.concatenate(rows) if rows else np.zeros((0, robot.nv))


@any_element
def whitened_jacobian(J: Array, L: Array, tree: DofTree) -> Array:
    """Return Y = J L^-1, (rows, nv), in the order of the tree, for M = L^T L.

    Args:
        J: Jacobian, (rows, nv), any unit, in the order of v.
        L: Factor of `factor_ltl`, (nv, nv), any unit, in the order of the tree.
        tree: The degrees of freedom.
    """
    return np.array([solve_transposed(L, tree, tree.permute(row)) for row in J]).reshape(J.shape)


@any_element
@dataclass(frozen=True, eq=False)
class TaskSpace:
    """Dynamics of the rows of a Jacobian J(q): xd = J v, Lambda xdd + mu = F, tau = J^T F.

    By sparse factors, Y = J L^-1: J M^-1 J^T = Y Y^T, and M^-1 J^T = L^-1 Y^T. Subclasses define J and
    `bias_acceleration`.

    Attributes:
        robot: The robot. q: Configuration, (nq,).
    """

    robot: Robot
    q: Array

    def __post_init__(self) -> None:
        (q,) = read(self.robot, q=self.q)
        object.__setattr__(self, "q", q)
        object.__setattr__(self, "robot", lift_with(q, self.robot))

    @cached_property
    def J(self) -> Array:
        """Jacobian, (rows, nv)."""
        raise NotImplementedError

    def bias_acceleration(self, v: Array) -> Array:
        """Return Jd v, (rows,), the acceleration of the rows at vdot = 0.

        Args:
            v: Velocity, (nv,).
        """
        raise NotImplementedError

    @cached_property
    def mobility(self) -> Array:
        """Lambda^-1 = J M^-1 J^T, (rows, rows)."""
        return mirror(self._Y @ self._Y.T)

    @cached_property
    def inertia(self) -> Array:
        """Operational-space inertia Lambda, (rows, rows).

        Raises:
            SingularError: If the rows of J are linearly dependent.
        """
        inverse = solve_rows(self._factors, np.eye(len(self.mobility)))
        return finite(self.robot, "the operational-space inertia", mirror(inverse))

    @cached_property
    def consistent_inverse(self) -> Array:
        """J_bar = M^-1 J^T Lambda, (nv, rows): the dynamically consistent inverse of J.

        Of all joint accelerations with a given acceleration of the points, J_bar selects the one that forces at the
        points produce. A load that is rigidly held in the rows of this space changes Lambda but not J_bar.

        Source: Featherstone, Khatib, "Load independence of the dynamically consistent inverse of the Jacobian matrix",
        International Journal of Robotics Research 16(2), 1997.
        """
        J_bar = weighted_pseudoinverse(self._L, self._Y, self.inertia, self._tree)
        return finite(self.robot, "the consistent inverse of the Jacobian", self._tree.unpermute(J_bar))

    @cached_property
    def null_space_projector(self) -> Array:
        """N = 1 - J_bar J, (nv, nv), [1 and mixed units]: the projector of velocities that do not move the points.

        N^T projects generalized forces on those that do not accelerate the points: J M^-1 N^T = 0.
        """
        return np.eye(self.robot.nv) - self.consistent_inverse @ self.J

    def bias(self, v: Array, wrenches: Wrenches = None) -> Array:
        """Return mu = J_bar^T h - Lambda Jd v, (rows,), the forces at the points that give them zero acceleration.

        Gravity and the springs and friction of the joints are included.

        Args:
            v: Velocity, (nv,). wrenches: As in `legged.inverse_dynamics`.
        """
        h = inverse_dynamics(self.robot, self.q, v, np.zeros(self.robot.nv), wrenches)
        return self.consistent_inverse.T @ h - self.inertia @ self.bias_acceleration(v)

    def forces(self, v: Array, xdd: Array, tau_null: Array, wrenches: Wrenches = None) -> Array:
        """Return tau = J^T (Lambda xdd + mu) + N^T tau_null, (nv,), which accelerates the points by xdd.

        N^T = 1 - J^T J_bar^T removes from tau_null what would accelerate the points.

        Args:
            v: Velocity, (nv,).
            xdd: Desired acceleration of the points, (rows,), [rad/s^2] or [m/s^2], world axes.
            tau_null: Generalized forces for the motion in the null space, (nv,), [N m] or [N], joint axes.
            wrenches: As in `legged.inverse_dynamics`.
        """
        F = self.inertia @ xdd + self.bias(v, wrenches) - self.consistent_inverse.T @ tau_null
        return tau_null + self.J.T @ F

    @cached_property
    def _tree(self) -> DofTree:
        return DofTree.of(self.robot)

    @cached_property
    def _L(self) -> Array:
        return factor_ltl(self._tree.permute_matrix(inertia_matrix(self.robot, self.q)), self._tree)

    @cached_property
    def _Y(self) -> Array:
        return whitened_jacobian(self.J, self._L, self._tree)

    @cached_property
    def _factors(self) -> tuple:
        return factor_symmetric(self.mobility)


@any_element
@dataclass(frozen=True, eq=False)
class OperationalSpace(TaskSpace):
    """The operational space of chosen rows of several points: xd = J v, Lambda xdd + mu = F, tau = J^T F.

    Attributes:
        robot: The robot. q: Configuration, (nq,).
        points: (link, position (3,) [m] in link axes); each has six rows, [angular; linear], world axes.
        rows: The rows that form the operational space; all rows if empty.

    Source: Khatib 1987; sparse factors after Featherstone 2010.
    """

    points: Points
    rows: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        size = 6 * len(self.points)
        rows = tuple(whole("a row", row) for row in self.rows) or tuple(range(size))
        if any(not 0 <= row < size for row in rows) or len(set(rows)) < len(rows):
            raise ShapeError(f"rows must be different numbers from 0 to {size - 1}, got {rows}")
        object.__setattr__(self, "rows", rows)

    @cached_property
    def J(self) -> Array:
        """Jacobian, (rows, nv), world axes."""
        return _jacobian(self.robot, self.q, self.points)[list(self.rows)]

    def bias_acceleration(self, v: Array) -> Array:
        """Return Jd v, (rows,), the acceleration of the points at vdot = 0, world axes.

        Args:
            v: Velocity, (nv,).
        """
        rates = point_twist_rates(self.robot, self.q, v, np.zeros(self.robot.nv), list(self.points))
        return rates.reshape(-1)[list(self.rows)]
