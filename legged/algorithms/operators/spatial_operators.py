"""The spatial operators of a robot: recursions along its tree, and memoryless (block-diagonal) operators.

Composite vectors hold one six-vector for each body, [omega; v] or [n; f] in body axes about the body origin, in the
order of `robot.bodies`: (6 bodies,). Joint vectors are in the order of v: (nv,). Recursions from the tips to the base
are causal, their adjoints anticausal. The paper treats a serial chain; on a tree each body sums over its children.

Source: Rodriguez, Jain, Kreutz-Delgado 1991, who number from the tip; the order here is that of `robot.bodies`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from legged.algorithms.articulated import refuse_followers
from legged.algorithms.linear_algebra import solve_rows
from legged.algorithms.operators.operator import LinearOperator, identity
from legged.dynamics.arguments import read
from legged.dynamics.kinematics import motion, on_bodies
from legged.dynamics.modules import inward, outward, transforms
from legged.elements import any_element, lift_with
from legged.errors import DefinitionError
from legged.robot.body import Body
from legged.robot.configuration import scatter, scatter_add
from legged.robot.robot import Robot
from legged.spatial import Array, Transform, cross, factor_symmetric, join, mirror, solve_factored

Points = Sequence[tuple[str | int, Array]]
Step = Callable[[Body, Array], Array]


@any_element
@dataclass(frozen=True, eq=False)
class SpatialOperators:
    """The operators of a robot at a configuration; each is a `LinearOperator`.

    Attributes:
        robot: The robot. q: Its configuration, (nq,).
    """

    robot: Robot
    q: Array

    def __post_init__(self) -> None:
        refuse_followers(self.robot, "the innovations factorization")
        if any(body.has_gyroscopic_rotor for body in self.robot.bodies):
            raise DefinitionError("the spatial operators do not support gyroscopic rotors")
        (q,) = read(self.robot, q=self.q)
        object.__setattr__(self, "q", q)
        object.__setattr__(self, "robot", lift_with(q, self.robot))

    # Memoryless operators.

    @cached_property
    def H(self) -> LinearOperator:
        """H: forces of the bodies to forces of the joints; its adjoint maps joint rates to relative twists."""

        def project(f: Array) -> Array:
            return scatter_add(self.robot, [self.axes(body).T @ self._block(f, body) for body in self.robot.bodies])

        def spread(rates: Array) -> Array:
            return np.concatenate(
                [self.axes(body) @ rates[body.v] if body.nv else np.zeros(6) for body in self.robot.bodies]
            )

        return LinearOperator(self.robot.nv, self._size, project, spread, "H")

    @cached_property
    def M(self) -> LinearOperator:
        """M = diag(M(k)): the spatial inertias of the bodies."""
        return self._block_diagonal("M", [body.M for body in self.robot.bodies])

    @cached_property
    def reflected(self) -> LinearOperator:
        """I_r: inertia of armature and rotors, memoryless on joint rates; zero in the paper."""

        def apply(x: Array) -> Array:
            return scatter_add(self.robot, [body.reflected_inertia @ x[body.v] for body in self.robot.bodies])

        return LinearOperator(self.robot.nv, self.robot.nv, apply, apply, "I_r")

    @cached_property
    def P(self) -> LinearOperator:
        """P = diag(P(k)): articulated-body inertias, from the Riccati equation (8)."""
        return self._block_diagonal("P", self.articulated)

    @cached_property
    def D(self) -> LinearOperator:
        """D = H P H*, memoryless: the articulated-body inertia along each joint."""
        return self.H @ self.P @ self.H.T + self.reflected

    @cached_property
    def D_inverse(self) -> LinearOperator:
        """D^-1, memoryless, by a solution with each joint's block."""

        def apply(x: Array) -> Array:
            parts = ((body.v, solve_factored(self.joint_factors(body), x[body.v])) for body in self.robot.bodies)
            return scatter(self.robot.nv, parts)

        return LinearOperator(self.robot.nv, self.robot.nv, apply, apply, "D^-1")

    @cached_property
    def G(self) -> LinearOperator:
        """G = P H* D^-1: the Kalman gain."""
        return self.P @ self.H.T @ self.D_inverse

    # Recursions.

    @cached_property
    def E_phi(self) -> LinearOperator:
        """E_phi: the force of each body to its parent, phi(k, k-1)."""
        return self._to_parent(
            "E_phi", lambda body, z: self.X[body.index].T @ z, lambda body, t: self.X[body.index] @ t
        )

    @cached_property
    def phi(self) -> LinearOperator:
        """phi = (I - E_phi)^-1: sums forces from the tips to the base; phi* propagates twists from the base."""
        return self._recursion("phi", lambda b, z: self.X[b.index].T @ z, lambda b, t: self.X[b.index] @ t)

    @cached_property
    def E_psi(self) -> LinearOperator:
        """E_psi = E_phi (I - G H), (10): as E_phi, for the part of the force that the joint transmits, (9)."""
        return self._to_parent("E_psi", self._transmit, self._transmit_adjoint)

    @cached_property
    def psi(self) -> LinearOperator:
        """psi = (I - E_psi)^-1: the transition operator of the Kalman filter."""
        return self._recursion("psi", self._transmit, self._transmit_adjoint)

    @cached_property
    def K(self) -> LinearOperator:
        """K = E_phi G: the shifted gain."""
        return self.E_phi @ self.G

    def B(self, points: Points) -> LinearOperator:
        """Return B: forces at points to forces of the bodies; its adjoint maps twists of bodies to those of points.

        Args:
            points: (link, position (3,) [m] in link axes). Each has six entries, [n; f] or [omega; velocity of the
                point], in world axes.
        """
        located = [(k, self._motion.rotation[k], r) for k, r in on_bodies(self.robot, points)]

        def gather(f: Array) -> Array:
            parts = [np.zeros(6) for _ in self.robot.bodies]
            for (k, R, r), w in zip(located, f.reshape(-1, 6), strict=True):
                force = R.T @ w[3:]
                parts[k] = parts[k] + join(R.T @ w[:3] + cross(r, force), force)
            return np.concatenate(parts)

        def spread(t: Array) -> Array:
            parts = [np.zeros(0)]
            for k, R, r in located:
                own = t[6 * k : 6 * k + 6]
                parts.append(join(R @ own[:3], R @ (own[3:] + cross(own[:3], r))))
            return np.concatenate(parts)

        return LinearOperator(self._size, 6 * len(located), gather, spread, "B")

    def J(self, points: Points) -> LinearOperator:
        """Return J = B* phi* H*, equation (1): joint rates to twists of points, world axes; arguments as in `B`."""
        return self.B(points).T @ self.phi.T @ self.H.T

    # The mass matrix and its factors.

    @cached_property
    def mass(self) -> LinearOperator:
        """The inertia matrix by the Newton-Euler factorization, H phi M phi* H*, equation (3)."""
        return self.H @ self.phi @ self.M @ self.phi.T @ self.H.T + self.reflected

    @cached_property
    def innovations(self) -> LinearOperator:
        """I + H phi K, causal: the innovations factor of equation (11), mass = (I + H phi K) D (I + H phi K)*."""
        return identity(self.robot.nv) + self.H @ self.phi @ self.K

    @cached_property
    def whitening(self) -> LinearOperator:
        """I - H psi K, its inverse, equation (12): a Kalman filter."""
        return identity(self.robot.nv) - self.H @ self.psi @ self.K

    @cached_property
    def mass_inverse(self) -> LinearOperator:
        """The inverse of the inertia matrix, (I - H psi K)* D^-1 (I - H psi K), equation (13), in O(n)."""
        return self.whitening.T @ self.D_inverse @ self.whitening

    # The factors of the operators.

    @cached_property
    def X(self) -> list[Transform]:
        """Transform of each body from its parent; phi(p, k) is X_k^T."""
        return transforms(self.robot, self.q)

    @cached_property
    def articulated(self) -> list[Array]:
        """Articulated-body inertias P(k), (6, 6): equation (8), with psi P phi*, the same without armature."""
        return self._riccati[0]

    def axes(self, body: Body) -> Array:
        """Return the motion subspace H*(k), (6, nv of the joint), of the joint of a body."""
        return body.motion_matrix(self.robot.base, self.q)

    def transmitted(self, body: Body, z: Array) -> Array:
        """Return (I - G(k) H(k)) z, (6,), the part of a force that the joint transmits.

        Args:
            body: The body. z: Force on it, (6,), [N m] and [N], body axes.
        """
        h = self.axes(body)
        return z - self.articulated[body.index] @ (h @ solve_factored(self.joint_factors(body), h.T @ z))

    def received(self, body: Body, t: Array) -> Array:
        """Return (I - G(k) H(k))* t, (6,), the adjoint of `transmitted`.

        Args:
            body: The body. t: Twist, (6,), [rad/s] and [m/s], body axes.
        """
        h = self.axes(body)
        return t - h @ solve_factored(self.joint_factors(body), h.T @ (self.articulated[body.index] @ t))

    def joint_mobility(self, body: Body) -> Array:
        """Return H*(k) D^-1(k) H(k), (6, 6)."""
        h = self.axes(body)
        return mirror(h @ solve_rows(self.joint_factors(body), h).T)

    def _transmit(self, body: Body, z: Array) -> Array:
        return self.X[body.index].T @ self.transmitted(body, z)

    def _transmit_adjoint(self, body: Body, t: Array) -> Array:
        return self.received(body, self.X[body.index] @ t)

    @cached_property
    def _riccati(self) -> tuple[list[Array], list[tuple]]:
        P = [body.M for body in self.robot.bodies]
        D: list[tuple] = [()] * len(P)
        for body in inward(self.robot):
            k, h = body.index, self.axes(body)
            U = P[k] @ h
            D[k] = factor_symmetric(mirror(h.T @ U + body.reflected_inertia))
            if body.parent >= 0:
                gain = solve_rows(D[k], U)
                P[body.parent] = P[body.parent] + self.X[k].transform_inertia(mirror(P[k] - U @ gain.T))
        return P, D

    def joint_factors(self, body: Body) -> tuple:
        """Return D(k) as (L, reciprocals of d) with D(k) = L diag(d) L^T."""
        return self._riccati[1][body.index]

    @property
    def _size(self) -> int:
        return 6 * len(self.robot.bodies)

    def _block(self, x: Array, body: Body) -> Array:
        return x[6 * body.index : 6 * body.index + 6]

    def _block_diagonal(self, name: str, blocks: list[Array]) -> LinearOperator:
        """Return a symmetric memoryless operator."""

        def apply(x: Array) -> Array:
            return np.concatenate(
                [block @ self._block(x, b) for block, b in zip(blocks, self.robot.bodies, strict=True)]
            )

        return LinearOperator(self._size, self._size, apply, apply, name)

    def _to_parent(self, name: str, inside: Step, outside: Step) -> LinearOperator:
        """Return the operator that maps the vector of each body to its parent by `inside`; `outside` is its adjoint."""

        def apply(x: Array) -> Array:
            z = [np.zeros(6) for _ in self.robot.bodies]
            for body in self.robot.bodies[1:]:
                z[body.parent] = z[body.parent] + inside(body, self._block(x, body))
            return np.concatenate(z)

        def adjoint(x: Array) -> Array:
            parents = (self.robot.bodies[body.parent] for body in self.robot.bodies[1:])
            z = [outside(b, self._block(x, p)) for b, p in zip(self.robot.bodies[1:], parents, strict=True)]
            return np.concatenate([np.zeros(6), *z])

        return LinearOperator(self._size, self._size, apply, adjoint, name)

    def _recursion(self, name: str, inside: Step, outside: Step) -> LinearOperator:
        """Return (I - E)^-1 for the operator E of `_to_parent`, as a sweep inward; its adjoint is a sweep outward."""

        def apply(x: Array) -> Array:
            z = [self._block(x, body) for body in self.robot.bodies]
            for body in inward(self.robot):
                if body.parent >= 0:
                    z[body.parent] = z[body.parent] + inside(body, z[body.index])
            return np.concatenate(z)

        def adjoint(x: Array) -> Array:
            z = [self._block(x, body) for body in self.robot.bodies]
            for body in outward(self.robot):
                if body.parent >= 0:
                    z[body.index] = z[body.index] + outside(body, z[body.parent])
            return np.concatenate(z)

        return LinearOperator(self._size, self._size, apply, adjoint, name)

    @cached_property
    def _motion(self):
        return motion(self.robot, self.q)
