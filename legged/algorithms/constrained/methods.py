"""Accelerations under constraints L vdot = c of a tree, by the methods of Featherstone and Orin 2000, section 3.4.

        [ M  L^T ] [ vdot    ]   [ b ]
        [ L  0   ] [ -lambda ] = [ c ]             (20)

with the generalized forces b = tau - h, the constraints of `IndependentRows`, and their multipliers lambda.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from legged.algorithms.linear_algebra import IndependentRows, factor_semidefinite, null_space
from legged.algorithms.operators import SpatialOperators
from legged.dynamics.inertia import inertia_matrix
from legged.robot.robot import Robot
from legged.spatial import Array, factor_symmetric, mirror, solve_factored, solve_symmetric


def direct(robot: Robot, q: Array, rows: IndependentRows, b: Array) -> tuple[Array, Array]:
    """Return (vdot (nv,), lambda (rank,)) of equation (20) by Gauss elimination; O((n + n_c)^3).

    Args:
        robot, q, rows, b: As in `elimination`.
    """
    M, L, n = inertia_matrix(robot, q), rows.L, robot.nv
    size = n + len(L)
    A = np.zeros((size, size), dtype=np.result_type(M, L))
    A[:n, :n], A[:n, n:], A[n:, :n] = M, L.T, L
    if A.dtype == object:
        x = solve_symmetric(A, np.concatenate([b, rows.c]))
        return x[:n], -x[n:]
    try:
        x = np.linalg.solve(A, np.concatenate([b, rows.c]))
    except np.linalg.LinAlgError:
        x = np.full(size, np.nan)
    return x[:n], -x[n:]


def elimination(robot: Robot, q: Array, rows: IndependentRows, b: Array) -> tuple[Array, Array]:
    """Return (vdot (nv,), lambda (rank,)) by L M^-1 L^T lambda = c - L M^-1 b, equation (21); O(n n_c^2 + n_c^3).

    Args:
        robot: The tree. q: Configuration, (nq,). rows: The constraints.
        b: Generalized forces tau - h, (nv,), [N m] or [N], joint axes.
    """
    L = rows.L
    inverse = mass_inverse(robot, q)
    vdot_free = inverse(b)
    if not len(L):
        return vdot_free, np.zeros(0)
    inverse_L = np.array([inverse(row) for row in L])
    mobility = mirror(L @ inverse_L.T)
    factors = factor_semidefinite(mobility, rows.flags) if mobility.dtype == object else factor_symmetric(mobility)
    force = solve_factored(factors, rows.c - L @ vdot_free)
    return vdot_free + inverse_L.T @ force, force


def projection(robot: Robot, q: Array, rows: IndependentRows, b: Array) -> tuple[Array, Array]:
    """Return (vdot (nv,), lambda (rank,)) by K^T M K y = K^T (b - M vdot_0), vdot = K y + vdot_0, L K = 0: (22).

    Traced values are refused. vdot_0 is the acceleration of least norm that satisfies the constraints.

    Args:
        robot, q, rows, b: As in `elimination`.
    """
    M, L = inertia_matrix(robot, q), rows.L
    K = null_space(L)
    if L.dtype == object:
        factors = factor_symmetric(mirror(L @ L.T))
        particular = L.T @ solve_factored(factors, rows.c)
    else:
        particular = np.linalg.lstsq(L, rows.c, rcond=None)[0] if len(L) else np.zeros(robot.nv)
    y = solve_symmetric(mirror(K.T @ M @ K), K.T @ (b - M @ particular))
    vdot = K @ y + particular
    if L.dtype == object:
        return vdot, solve_factored(factors, L @ (M @ vdot - b))
    lagrange = np.linalg.lstsq(L.T, M @ vdot - b, rcond=None)[0] if len(L) else np.zeros(0)
    return vdot, lagrange


METHODS: dict[str, Callable[[Robot, Array, IndependentRows, Array], tuple[Array, Array]]] = {
    "direct": direct,
    "elimination": elimination,
    "projection": projection,
}


def mass_inverse(robot: Robot, q: Array) -> Callable[[Array], Array]:
    """Return the function x -> M^-1 x: by O(n) recursions with shared factors, lemma 3 of the spatial operators.

    For coupled joints and gyroscopic rotors, which the operators do not support, the factored inertia matrix
    is used.

    Args:
        robot: The robot. q: Configuration, (nq,).
    """
    if robot.coupled_joints or any(body.has_gyroscopic_rotor for body in robot.bodies):
        factors = factor_symmetric(inertia_matrix(robot, q))
        return lambda x: solve_factored(factors, x)
    return SpatialOperators(robot, q).mass_inverse.apply
