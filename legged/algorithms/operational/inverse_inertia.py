"""The inverse inertia at several ends by other ways: sparse factors of the inertia matrix, and spatial operators."""

from __future__ import annotations

import numpy as np

from legged.algorithms.composite import inertia_matrix
from legged.algorithms.operational.propagators import Points
from legged.algorithms.operators import SpatialOperators, tip_mobility
from legged.algorithms.sparsity import Ways, factor_ltl
from legged.compiler.ir.annotations import stage
from legged.dynamics.arguments import finite, read
from legged.dynamics.kinematics import point_jacobian
from legged.robot.robot import Robot
from legged.spatial import Array, mirror


def by_factors(robot: Robot, q: Array, points: Points) -> Array:
    """Return J M^-1 J^T = Y Y^T, (6 points, 6 points), with Y = J L^-1 and M = L^T L.

    Row by row, Y has entries only on the way from its end to the base, as J has.

    Args:
        robot, q, points: As in `by_propagators`.

    Raises:
        DefinitionError: for joints that follow others.

    Source: Featherstone, "Exploiting sparsity in operational-space dynamics", International Journal of Robotics
    Research 29(10), 2010.
    """
    ways = Ways.of(robot)
    (q,) = read(robot, q=q)
    M = inertia_matrix(robot, q)
    with stage("3 factors"):
        L = factor_ltl(ways.sorted(M), ways)
    with stage("4 Jacobian and solution"):
        J = jacobian(robot, q, points)
        Y = np.array([solve_lower(L, ways, ways.vector(row)) for row in J]).reshape(len(J), robot.nv)
        Lambda_inverse = mirror(Y @ Y.T) if len(Y) else np.zeros((0, 0))
    return finite(robot, "the operational-space inertia", Lambda_inverse)


def by_operators(robot: Robot, q: Array, points: Points) -> Array:
    """Return J M^-1 J^T, (6 points, 6 points), by the recursion of the spatial operator algebra; see `tip_mobility`."""
    return tip_mobility(SpatialOperators(robot, q), points)


def jacobian(robot: Robot, q: Array, points: Points) -> Array:
    """Return the points' Jacobians, one above the other, (6 points, nv), world axes."""
    rows = [point_jacobian(robot, q, link, point) for link, point in points]
    return np.concatenate(rows) if rows else np.zeros((0, robot.nv))


def solve_lower(L: Array, ways: Ways, row: Array) -> Array:
    """Return y, (n,), with y L = row: L^-T applied to a column, along the branches."""
    y = list(row)
    for k in reversed(range(len(y))):
        y[k] = y[k] / L[k, k]
        for i in ways.inward(k):
            y[i] = y[i] - L[k, i] * y[k]
    return np.array(y)
