"""First derivatives of forward dynamics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from legged.algorithms.composite import inertia_matrix
from legged.algorithms.derivatives.inverse import inverse_derivatives
from legged.algorithms.sparsity import Ways, factor_ltdl, inverse_factor, solve_ltdl
from legged.compiler.ir.annotations import items, stage
from legged.dynamics.arguments import Wrenches, finite, read
from legged.dynamics.inverse import bias_forces
from legged.robot.robot import Robot
from legged.spatial import Array

WHAT = "the derivative of the forward dynamics"


class ForwardDerivatives(NamedTuple):
    """Derivatives of the acceleration, (nv, nv) each, row i for vdot[i].

    Attributes:
        q: By a displacement along the manifold, as `legged.integrate` takes it. v: By the velocity.
        tau: By the generalized forces: the inverse of the inertia matrix.
    """

    q: Array
    v: Array
    tau: Array


def of_forward_dynamics(robot: Robot, q: Array, v: Array, tau: Array, wrenches: Wrenches = None) -> ForwardDerivatives:
    """Return the derivatives of `legged.forward_dynamics` by q, v and tau.

        dvdot / dx = -M^-1 dtau / dx,      dvdot / dtau = M^-1

    with the derivatives of inverse dynamics at the acceleration that tau gives, solved by the factors L^T D L. For a
    floating base, part of its own columns needs no solution: see `inverse_derivatives`.

    Args:
        robot, q, v, tau, wrenches: As in `legged.forward_dynamics`.

    Raises:
        As `legged.forward_dynamics`.

    Source: Carpentier, Mansard 2018, "Analytical derivatives of rigid body dynamics algorithms".
    """
    q, v, tau = read(robot, q=q, v=v, tau=tau)
    bias = bias_forces(robot, q, v, wrenches)
    factors = Factors.of(robot, q)
    with stage("acceleration"):
        vdot = factors.solve(tau - bias)
    by, shift = inverse_derivatives(robot, q, v, vdot, wrenches)
    with stage("solutions"):
        by_q, by_v = (-factors.each(d) for d in (by.q, by.v))
    if shift is not None:
        by_q[:6, :6] -= shift[0]
        by_v[:6, :6] -= shift[1]
    return ForwardDerivatives(*(finite(robot, WHAT, d) for d in (by_q, by_v, factors.inverse())))


def inverse_inertia(robot: Robot, q: Array) -> Array:
    """Return the inverse of the inertia matrix, (nv, nv).

    Args:
        robot: The robot. q: Configuration, (nq,).

    Raises:
        SingularError: if some motion meets no inertia.

    Source: Featherstone 2005 and 2010, see `legged.algorithms.sparsity`.
    """
    (q,) = read(robot, q=q)
    return finite(robot, WHAT, Factors.of(robot, q).inverse())


@dataclass(frozen=True, eq=False)
class Factors:
    """The inertia matrix L^T D L, with the zeros that branches put into L; with joints that follow others, none.

    Attributes:
        ways: The tree of freedoms. L, D: (nv, nv), (nv,), in its order.
    """

    ways: Ways
    L: Array
    D: Array

    @classmethod
    def of(cls, robot: Robot, q: Array) -> Factors:
        """Return the factors at a configuration."""
        M = inertia_matrix(robot, q)
        ways = _chain(robot.nv) if robot.followers else Ways.of(robot)
        with stage("factors of the inertia matrix"):
            return cls(ways, *factor_ltdl(ways.sorted(M), ways))

    def solve(self, b: Array) -> Array:
        """Return M^-1 b, (nv,)."""
        return self.ways.back(solve_ltdl(self.L, self.D, self.ways, self.ways.vector(b)))

    def each(self, B: Array) -> Array:
        """Return M^-1 B, (nv, nv), column by column."""
        return np.array([self.solve(column) for column in items(B.T)]).reshape(B.shape).T

    def inverse(self) -> Array:
        """Return M^-1 = Y D^-1 Y^T, (nv, nv), with Y = L^-1."""
        with stage("inverse of the inertia matrix"):
            Y = inverse_factor(self.L, self.ways)
            scaled = Y * (1.0 / self.D)
            found = np.zeros_like(Y)
            for a, i in enumerate(self.ways.order):
                for b, j in enumerate(self.ways.order[: a + 1]):
                    found[i, j] = found[j, i] = Y[a, : b + 1] @ scaled[b, : b + 1]
        return found


def _chain(n: int) -> Ways:
    """Return the ways of n freedoms one behind the other: no zeros anywhere."""
    return Ways(tuple(range(n)), tuple(range(-1, n - 1)))
