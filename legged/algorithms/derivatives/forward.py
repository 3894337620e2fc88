"""First derivatives of forward dynamics, the inverse of the inertia matrix, and a check against exact derivatives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from legged.algorithms.composite import inertia_matrix
from legged.algorithms.derivatives.inverse import inverse_derivatives, of_inverse_dynamics
from legged.algorithms.sparse.sparsity import DofTree, factor_ltdl, inverse_factor, solve_ltdl
from legged.compiler.ir import items, stage
from legged.dynamics.arguments import Wrenches, finite, read
from legged.dynamics.forward import forward_dynamics
from legged.dynamics.inverse import bias_forces, inverse_dynamics
from legged.elements import any_element
from legged.robot.configuration import configuration_rate
from legged.robot.robot import Robot
from legged.spatial import Array
from legged.taylor import derivatives, moving


class ForwardDerivatives(NamedTuple):
    """Derivatives of the acceleration, (nv, nv) each, row i for vdot[i].

    Attributes:
        q: By a displacement along the manifold, as in `legged.integrate`. v: By the velocity.
        tau: By the generalized forces: the inverse of the inertia matrix.
    """

    q: Array
    v: Array
    tau: Array


@any_element
def of_forward_dynamics(robot: Robot, q: Array, v: Array, tau: Array, wrenches: Wrenches = None) -> ForwardDerivatives:
    """Return the derivatives of `legged.forward_dynamics` by q, v and tau.

        dvdot / dx = -M^-1 dtau / dx,      dvdot / dtau = M^-1

    with the derivatives of inverse dynamics at the acceleration that tau produces, solved with the factors L^T D L. For
    a floating base, part of its own columns needs no solution: see `inverse_derivatives`.

    Args:
        robot, q, v, tau, wrenches: As in `legged.forward_dynamics`.

    Raises:
        As `legged.forward_dynamics`.

    Source: Carpentier, Mansard 2018, "Analytical derivatives of rigid body dynamics algorithms".
    """
    q, v, tau = read(robot, q=q, v=v, tau=tau)
    bias = bias_forces(robot, q, v, wrenches)
    factors = InertiaFactors.of(robot, q)
    with stage("acceleration"):
        vdot = factors.solve(tau - bias)
    by, base_terms = inverse_derivatives(robot, q, v, vdot, wrenches)
    with stage("solutions"):
        by_q, by_v = (-factors.solve_columns(d) for d in (by.q, by.v))
    if base_terms is not None:
        by_q[:6, :6] -= base_terms[0]
        by_v[:6, :6] -= base_terms[1]
    result = "the derivative of the forward dynamics"
    return ForwardDerivatives(*(finite(robot, result, d) for d in (by_q, by_v, factors.inverse())))


@any_element
def inverse_inertia(robot: Robot, q: Array) -> Array:
    """Return the inverse of the inertia matrix, (nv, nv).

    Args:
        robot: The robot. q: Configuration, (nq,).

    Raises:
        SingularError: If the inertia matrix is singular.

    Source: Featherstone 2005 and 2010, see `legged.algorithms.sparse.sparsity`.
    """
    (q,) = read(robot, q=q)
    return finite(robot, "the inverse of the inertia matrix", InertiaFactors.of(robot, q).inverse())


@dataclass(frozen=True, eq=False)
class InertiaFactors:
    """The factors L^T D L of the inertia matrix, sparse by its branches; dense for joints that follow others.

    Attributes:
        tree: The degrees of freedom. L, D: (nv, nv), (nv,), in their order.
    """

    tree: DofTree
    L: Array
    D: Array

    @classmethod
    def of(cls, robot: Robot, q: Array) -> InertiaFactors:
        """Return the factors at a configuration.

        Args:
            robot: The robot. q: Configuration, (nq,).
        """
        M = inertia_matrix(robot, q)
        tree = DofTree.chain(robot.nv) if robot.coupled_joints else DofTree.of(robot)
        with stage("factors of the inertia matrix"):
            return cls(tree, *factor_ltdl(tree.permute_matrix(M), tree))

    def solve(self, b: Array) -> Array:
        """Return M^-1 b, (nv,).

        Args:
            b: Right-hand side, (nv,), any unit.
        """
        return self.tree.unpermute(solve_ltdl(self.L, self.D, self.tree, self.tree.permute(b)))

    def solve_columns(self, B: Array) -> Array:
        """Return M^-1 B, (nv, nv).

        Args:
            B: Right-hand sides, (nv, nv), any unit.
        """
        return np.array([self.solve(column) for column in items(B.T)]).reshape(B.shape).T

    def inverse(self) -> Array:
        """Return M^-1 = Y D^-1 Y^T, (nv, nv), with Y = L^-1."""
        with stage("inverse of the inertia matrix"):
            Y = inverse_factor(self.L, self.tree)
            scaled = Y * (1.0 / self.D)
            inverse = np.zeros_like(Y)
            for a, i in enumerate(self.tree.order):
                for b, j in enumerate(self.tree.order[: a + 1]):
                    inverse[i, j] = inverse[j, i] = Y[a, : b + 1] @ scaled[b, : b + 1]
        return inverse


class DerivativeErrors(NamedTuple):
    """Largest error of each derivative matrix, relative to the largest entry of the exact one."""

    inverse_q: float
    inverse_v: float
    inverse_vdot: float
    forward_q: float
    forward_v: float
    forward_tau: float


@any_element
def check(robot: Robot, q: Array, v: Array, vdot: Array, tau: Array, wrenches: Wrenches = None) -> DerivativeErrors:
    """Return the errors of the analytical derivatives of inverse and forward dynamics against exact ones.

    Args:
        robot, q, v, vdot, tau, wrenches: As in `legged.inverse_dynamics` and `legged.forward_dynamics`; plain floats.
    """
    errors = []
    for function, analytical, x in (
        (inverse_dynamics, of_inverse_dynamics, vdot),
        (forward_dynamics, of_forward_dynamics, tau),
    ):
        derivatives = analytical(robot, q, v, x, wrenches)
        exact = exact_derivatives(lambda *at, f=function: f(robot, *at, wrenches), robot, q, v, x)
        for ours, right in zip(derivatives, exact, strict=True):
            scale = max(np.abs(right).max(initial=0.0), 1e-300)
            errors.append(float(np.abs(ours - right).max(initial=0.0) / scale))
    return DerivativeErrors(*errors)


def exact_derivatives(function: Callable[..., Array], robot: Robot, q: Array, v: Array, x: Array) -> tuple[Array, ...]:
    """Return the derivatives of function(q, v, x) by q along the manifold, by v and by x, each (size, nv).

    The function is evaluated on truncated Taylor series, one direction at a time, which is exact up to rounding.

    Args:
        function: Of q, v and x, over any element; returns an array of any unit, (size,).
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,). x: Third argument, (nv,), any unit. Plain floats.
    """
    if not robot.nv:
        return (np.zeros((0, 0)),) * 3
    unit_vectors = np.eye(robot.nv)
    directions = (
        [(configuration_rate(robot, q, d), 0.0 * v, 0.0 * x) for d in unit_vectors],
        [(0.0 * q, d, 0.0 * x) for d in unit_vectors],
        [(0.0 * q, 0.0 * v, d) for d in unit_vectors],
    )

    def along(direction: tuple[Array, ...]) -> Array:
        return derivatives(function(*(moving(a, d, 0.0 * a) for a, d in zip((q, v, x), direction, strict=True))))[1]

    return tuple(np.stack([along(direction) for direction in group], axis=-1) for group in directions)
