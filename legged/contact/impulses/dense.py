"""Responses of robots whose joints cannot be eliminated one by one: joints that follow others, and closed loops.

With the inertia matrix M in the independent coordinates of the tree, and constraints L v = const of closed loops, the
velocity changes by impulses J^T p as

    dv = M^-1 (J^T p + L^T lambda),  L dv = 0      =>      dv = M^-1 J~^T p,      J~ = J N,

    N = 1 - M^-1 L^T (L M^-1 L^T)^-1 L.

With J~ in place of J, a problem with constraints is one without. Redundant rows of L are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from legged.algorithms.linear_algebra import factor_semidefinite
from legged.dynamics.inertia import inertia_matrix
from legged.dynamics.kinematics import Motion
from legged.dynamics.modules import transforms
from legged.robot.robot import Robot
from legged.spatial import Array, cross, factor_symmetric, join, mirror, solve_factored


class LoopRows(NamedTuple):
    """Constraints of closed loops, L v = const.

    Attributes:
        jacobian: L, (rows, nv), any unit.
        independent: Whether each row is independent of those before it, (rows,); see `factor_semidefinite`.
    """

    jacobian: Array
    independent: Sequence[Any]


class DenseInertia:
    """The factored inertia matrix of a robot, with its constraints."""

    def __init__(self, robot: Robot, q: Array, extra: Array, loops: LoopRows | None) -> None:
        """Factor M + diag(extra), outer joints first, which preserves its zeros.

        Args:
            robot: The robot. q: Configuration, (nq,). extra: Added to the diagonal of the inertia matrix, (nv,).
            loops: Constraints of closed loops, or None.
        """
        entries = [i for body in robot.bodies if not body.follows for i in range(body.v.start, body.v.stop)]
        self._order, self._loops = entries[::-1], loops
        self._place = np.argsort(self._order)
        M = inertia_matrix(robot, q) + np.diag(extra)
        self._factors = factor_symmetric(M[np.ix_(self._order, self._order)])
        if loops is not None:
            self._responses = np.array([self.solve(row) for row in loops.jacobian])
            mobility = mirror(loops.jacobian @ self._responses.T)
            self._multipliers = factor_semidefinite(mobility, loops.independent)

    @property
    def has_loops(self) -> bool:
        """Whether there are constraints."""
        return self._loops is not None

    def solve(self, b: Array) -> Array:
        """Return (M + diag(extra))^-1 b, (nv,), without constraints.

        Args:
            b: Generalized impulse or force, (nv,), mixed units.
        """
        return solve_factored(self._factors, b[self._order])[self._place]

    def projected(self, J: Array) -> Array:
        """Return J N, (k, nv), with N of the module's docstring; J itself for a robot without closed loops.

        Args:
            J: Jacobian, (k, nv), any unit.
        """
        if self._loops is None:
            return J
        terms = [solve_factored(self._multipliers, row) for row in J @ self._responses.T]
        return J - np.array(terms) @ self._loops.jacobian

    def constrained(self, b: Array, c: Array) -> Array:
        """Return x, (nv,), with (M + diag(extra)) x = b + L^T lambda and L x = c.

        Args:
            b: Generalized forces, (nv,), mixed units. c: Of each constraint, (rows,), any unit.
        """
        x = self.solve(b)
        if self._loops is None:
            return x
        return x + self._responses.T @ solve_factored(self._multipliers, c - self._loops.jacobian @ x)


def twist_jacobian(robot: Robot, q: Array, body: int, rows: Array) -> Array:
    """Return the Jacobian of components of the twist of a body, (k, nv).

    Args:
        robot: The robot. q: Configuration, (nq,). body: Index in `robot.bodies`.
        rows: Selects the components from the twist in body axes, (k, 6), dimensionless.
    """
    X, zero = transforms(robot, q), np.zeros(len(rows))
    columns: list[Any] = [zero] * robot.nv
    selected = list(rows)
    for j in robot.ancestors(body):
        at = robot.bodies[j]
        P = at.motion_matrix(robot.base, q)
        for k, column in zip(range(at.v.start, at.v.stop), (np.array(selected) @ P).T, strict=True):
            columns[k] = columns[k] + column
        if not at.is_base:
            selected = [X[j].T @ row for row in selected]
    return np.array(columns).reshape(robot.nv, len(rows)).T


def screws(robot: Robot, q: Array, at: Motion) -> Array:
    """Return the twist of each body per joint rate, and its origin, (c, 9), [omega; velocity; origin], world axes.

    There is one row for each column of the motion matrices, in the order of the bodies; origins are in [m].

    Args:
        robot: The robot. q: Configuration, (nq,). at: Poses of the bodies at q.
    """
    columns = []
    for body, R, o in zip(robot.bodies, at.rotation, at.origin, strict=True):
        columns += [np.concatenate([R @ p[:3], R @ p[3:], o]) for p in body.motion_matrix(robot.base, q).T]
    return np.array(columns).reshape(-1, 9)


def twist_by(screw: Array, R: Array, o: Array) -> Array:
    """Return the twist per joint rate of a body outward of the joint, (6,), body axes.

    Args:
        screw: Of the joint rate, see `screws`, (9,), mixed units, world axes.
        R: Body to world axes, (3, 3), dimensionless. o: Origin of the body, (3,), [m], world axes.
    """
    omega, velocity, origin = screw.reshape(3, 3)
    return join(R.T @ omega, R.T @ (velocity + cross(omega, o - origin)))
