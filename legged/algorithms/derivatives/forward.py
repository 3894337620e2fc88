"""First derivatives of forward dynamics."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from legged.algorithms.composite import inertia_matrix
from legged.algorithms.derivatives.inverse import inverse_derivatives
from legged.algorithms.newton_euler import inverse_dynamics
from legged.algorithms.sparsity import Ways, factor_ltdl, inverse_factor
from legged.dynamics.arguments import Wrenches, finite, read
from legged.robot.robot import Robot
from legged.spatial import Array
from legged.trace.labels import stage


class ForwardDerivatives(NamedTuple):
    """Derivatives of the acceleration, (nv, nv) each, row i for vdot[i].

    Attributes:
        q: By a displacement along the manifold, as `legged.integrate` takes it. v: By the velocity.
        tau: By the generalised forces: the inverse of the inertia matrix.
    """

    q: Array
    v: Array
    tau: Array


def of_forward_dynamics(robot: Robot, q: Array, v: Array, tau: Array, wrenches: Wrenches = None) -> ForwardDerivatives:
    """Return the derivatives of `legged.forward_dynamics` by q, v and tau.

        dvdot / dx = -M^-1 dtau / dx,      dvdot / dtau = M^-1

    with the derivatives of inverse dynamics at the acceleration that tau gives. For a floating base, part of its own
    columns needs no solution: see `inverse_derivatives`.

    Args:
        robot, q, v, tau, wrenches: As in `legged.forward_dynamics`.

    Raises:
        As `legged.forward_dynamics`.

    Source: Carpentier, Mansard 2018, "Analytical derivatives of rigid body dynamics algorithms".
    """
    q, v, tau = read(robot, q=q, v=v, tau=tau)
    bias = inverse_dynamics(robot, q, v, np.zeros(robot.nv), wrenches)
    inverse = inverse_inertia(robot, q)
    with stage("acceleration"):
        vdot = inverse @ (tau - bias)
    by, shift = inverse_derivatives(robot, q, v, vdot, wrenches)
    with stage("solutions"):
        by_q, by_v = -(inverse @ by.q), -(inverse @ by.v)
    if shift is not None:
        by_q[:6, :6] -= shift[0]
        by_v[:6, :6] -= shift[1]
    return ForwardDerivatives(by_q, by_v, inverse)


def inverse_inertia(robot: Robot, q: Array) -> Array:
    """Return the inverse of the inertia matrix, (nv, nv), from its factors: Y D^-1 Y^T, Y the inverse of L.

    The factors keep the zeros that branches put there; a robot with joints that follow others has none.

    Args:
        robot: The robot. q: Configuration, (nq,).

    Raises:
        SingularError: if some motion meets no inertia.

    Source: Featherstone 2005, see `legged.algorithms.sparsity`.
    """
    (q,) = read(robot, q=q)
    M = inertia_matrix(robot, q)
    with stage("inverse of the inertia matrix"):
        ways = _chain(robot.nv) if robot.followers else Ways.of(robot)
        L, D = factor_ltdl(ways.sorted(M), ways)
        Y = inverse_factor(L, ways)
        found = _symmetric_product(Y, D, ways)
    return finite(robot, "the inverse of the inertia matrix", found)


def _chain(n: int) -> Ways:
    """Return the ways of n freedoms one behind the other: no zeros anywhere."""
    return Ways(tuple(range(n)), tuple(range(-1, n - 1)))


def _symmetric_product(Y: Array, D: Array, ways: Ways) -> Array:
    """Return Y D^-1 Y^T, in the order of v."""
    found = np.zeros_like(Y)
    scaled = Y / D
    for a, i in enumerate(ways.order):
        for b, j in enumerate(ways.order[: a + 1]):
            found[i, j] = found[j, i] = Y[a, : b + 1] @ scaled[b, : b + 1]
    return found
