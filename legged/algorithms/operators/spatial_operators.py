"""The spatial operators of a robot: recursions along its tree, or memoryless ones, body by body.

Composite vectors hold one six-vector a body, [omega; v] or [n; f] in body axes about the body's origin, in the order of
`robot.bodies`: (6 bodies,). Joint vectors are in the order of v: (nv,). What runs from the tips to the base is causal,
its adjoint anticausal. The paper has a serial chain; on a tree a body gathers from all of its children.

Source: Rodriguez, Jain, Kreutz-Delgado 1991; theirs is the numbering from the tip, ours that of `robot.bodies`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from legged.algorithms.articulated import refuse_followers
from legged.algorithms.operators.operator import Operator, identity
from legged.dynamics.arguments import read
from legged.dynamics.kinematics import motion
from legged.dynamics.sweeps import inward, outward, transforms
from legged.errors import DefinitionError
from legged.robot.body import Body
from legged.robot.configuration import scatter, scatter_add
from legged.robot.robot import Robot
from legged.spatial import Array, Transform, cross, factor_symmetric, join, mirror, solve_factored

Points = Sequence[tuple[str | int, Array]]
Step = Callable[[Body, Array], Array]


@dataclass(frozen=True, eq=False)
class SpatialOperators:
    """The operators of a robot at a configuration; each is an `Operator`.

    Attributes:
        robot: The robot. q: Its configuration, (nq,).
    """

    robot: Robot
    q: Array

    def __post_init__(self) -> None:
        refuse_followers(self.robot, "the innovations factorization")
        if any(body.rotor_momentum.any() for body in self.robot.bodies):
            raise DefinitionError("the spatial operators know no rotors that couple with the turning of their link")
        (q,) = read(self.robot, q=self.q)
        object.__setattr__(self, "q", q)

    # Memoryless operators.

    @cached_property
    def H(self) -> Operator:
        """H: forces of the links to forces of the joints; its adjoint takes joint rates to relative twists."""

        def project(f: Array) -> Array:
            return scatter_add(self.robot, [self.axes(body).T @ self._of(f, body) for body in self.robot.bodies])

        def spread(rates: Array) -> Array:
            return np.concatenate([self._moved(body, rates) for body in self.robot.bodies])

        return Operator(self.robot.nv, self._size, project, spread, "H")

    @cached_property
    def M(self) -> Operator:
        """M = diag(M(k)): the links' spatial inertias."""
        return self._each("M", [body.M for body in self.robot.bodies])

    @cached_property
    def reflected(self) -> Operator:
        """Inertia of armature and rotors, memoryless on joint rates; zero in the paper."""

        def act(x: Array) -> Array:
            return scatter_add(self.robot, [body.reflected_inertia @ x[body.v] for body in self.robot.bodies])

        return Operator(self.robot.nv, self.robot.nv, act, act, "I_r")

    @cached_property
    def P(self) -> Operator:
        """P = diag(P(k)): articulated-body inertias, from the Riccati equation (8)."""
        return self._each("P", self.articulated)

    @cached_property
    def D(self) -> Operator:
        """D = H P H*, memoryless: what a joint meets once all joints outward of it give way."""
        return self.H @ self.P @ self.H.T + self.reflected

    @cached_property
    def D_inverse(self) -> Operator:
        """D^-1, by solving with each joint's own block."""

        def act(x: Array) -> Array:
            parts = ((body.v, solve_factored(self.joint_factors(body), x[body.v])) for body in self.robot.bodies)
            return scatter(self.robot.nv, parts)

        return Operator(self.robot.nv, self.robot.nv, act, act, "D^-1")

    @cached_property
    def G(self) -> Operator:
        """G = P H* D^-1: the Kalman gain."""
        return self.P @ self.H.T @ self.D_inverse

    # Recursions.

    @cached_property
    def E_phi(self) -> Operator:
        """E_phi: each link's force to its parent, phi(k, k-1), one step and no farther."""
        return self._step("E_phi", lambda body, z: self.X[body.index].T @ z, lambda body, t: self.X[body.index] @ t)

    @cached_property
    def phi(self) -> Operator:
        """phi = (I - E_phi)^-1: forces gathered from the tips to the base; phi* spreads twists from the base."""
        return self._recursion("phi", lambda b, z: self.X[b.index].T @ z, lambda b, t: self.X[b.index] @ t)

    @cached_property
    def E_psi(self) -> Operator:
        """E_psi = E_phi (I - G H), (10): as E_phi, with what the joint does not transmit taken away, (9)."""
        return self._step("E_psi", self._transmit, self._transmit_adjoint)

    @cached_property
    def psi(self) -> Operator:
        """psi = (I - E_psi)^-1: the Kalman filter's transition."""
        return self._recursion("psi", self._transmit, self._transmit_adjoint)

    @cached_property
    def K(self) -> Operator:
        """K = E_phi G: the shifted gain."""
        return self.E_phi @ self.G

    def B(self, points: Points) -> Operator:
        """Return B: forces at points to forces of the links; its adjoint takes twists of links to those of points.

        Args:
            points: (link, position (3,) [m] in link axes). Each has six entries, [n; f] or [omega; velocity of the
                point], in world axes.
        """
        carried = [self._carried(link, np.asarray(point)) for link, point in points]

        def gather(f: Array) -> Array:
            parts = [np.zeros(6) for _ in self.robot.bodies]
            for (k, R, r), w in zip(carried, f.reshape(-1, 6), strict=True):
                force = R.T @ w[3:]
                parts[k] = parts[k] + join(R.T @ w[:3] + cross(r, force), force)
            return np.concatenate(parts)

        def spread(t: Array) -> Array:
            parts = [np.zeros(0)]
            for k, R, r in carried:
                own = t[6 * k : 6 * k + 6]
                parts.append(join(R @ own[:3], R @ (own[3:] + cross(own[:3], r))))
            return np.concatenate(parts)

        return Operator(self._size, 6 * len(carried), gather, spread, "B")

    def J(self, points: Points) -> Operator:
        """Return J = B* phi* H*, equation (1): joint rates to twists of points, world axes."""
        return self.B(points).T @ self.phi.T @ self.H.T

    # The mass matrix and its factors.

    @cached_property
    def mass(self) -> Operator:
        """The inertia matrix by the Newton-Euler factorization, H phi M phi* H*, equation (3)."""
        return self.H @ self.phi @ self.M @ self.phi.T @ self.H.T + self.reflected

    @cached_property
    def innovations(self) -> Operator:
        """I + H phi K, causal: the innovations factor of equation (11), mass = (I + H phi K) D (I + H phi K)*."""
        return identity(self.robot.nv) + self.H @ self.phi @ self.K

    @cached_property
    def whitening(self) -> Operator:
        """I - H psi K, its inverse, equation (12): a Kalman filter."""
        return identity(self.robot.nv) - self.H @ self.psi @ self.K

    @cached_property
    def mass_inverse(self) -> Operator:
        """The inverse of the inertia matrix, (I - H psi K)* D^-1 (I - H psi K), equation (13), in O(n)."""
        return self.whitening.T @ self.D_inverse @ self.whitening

    # What they are made of.

    @cached_property
    def X(self) -> list[Transform]:
        """From each body's parent to it; phi(p, k) is X_k^T."""
        return transforms(self.robot, self.q)

    @cached_property
    def articulated(self) -> list[Array]:
        """P(k), (6, 6), of each body; equation (8), with psi P phi* for psi P psi*, the same without armature."""
        return self._riccati[0]

    def axes(self, body: Body) -> Array:
        """Return H*(k), (6, nv of the joint)."""
        return self.robot.base.motion_matrix(self.q) if body.kind == "base" else body.P

    def transmitted(self, body: Body, z: Array) -> Array:
        """Return (I - G(k) H(k)) z, (6,): what a link's force z leaves to its parent once its joint gives way."""
        h = self.axes(body)
        return z - self.articulated[body.index] @ (h @ solve_factored(self.joint_factors(body), h.T @ z))

    def received(self, body: Body, t: Array) -> Array:
        """Return (I - G(k) H(k))* t, (6,): the adjoint, how a twist arrives."""
        h = self.axes(body)
        return t - h @ solve_factored(self.joint_factors(body), h.T @ (self.articulated[body.index] @ t))

    def joint_mobility(self, body: Body) -> Array:
        """Return H*(k) D^-1(k) H(k), (6, 6)."""
        h = self.axes(body)
        spread = np.array([solve_factored(self.joint_factors(body), row) for row in h]).reshape(6, body.nv)
        return mirror(h @ spread.T)

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
            shared = P[k] @ h
            D[k] = factor_symmetric(mirror(h.T @ shared + body.reflected_inertia))
            if body.parent >= 0:
                gain = np.array([solve_factored(D[k], row) for row in shared]).reshape(6, body.nv)
                P[body.parent] = P[body.parent] + self.X[k].transform_inertia(mirror(P[k] - shared @ gain.T))
        return P, D

    def joint_factors(self, body: Body) -> tuple:
        """Return D(k) as (L, reciprocals of d), D(k) = L diag(d) L^T."""
        return self._riccati[1][body.index]

    @property
    def _size(self) -> int:
        return 6 * len(self.robot.bodies)

    def _of(self, x: Array, body: Body) -> Array:
        return x[6 * body.index : 6 * body.index + 6]

    def _moved(self, body: Body, rates: Array) -> Array:
        return self.axes(body) @ rates[body.v] if body.nv else np.zeros(6)

    def _each(self, name: str, blocks: list[Array]) -> Operator:
        """Return a symmetric memoryless operator."""

        def act(x: Array) -> Array:
            return np.concatenate([block @ self._of(x, b) for block, b in zip(blocks, self.robot.bodies, strict=True)])

        return Operator(self._size, self._size, act, act, name)

    def _step(self, name: str, inside: Step, outside: Step) -> Operator:
        """Return the operator that hands each body's vector to its parent, and its adjoint."""

        def act(x: Array) -> Array:
            z = [np.zeros(6) for _ in self.robot.bodies]
            for body in self.robot.bodies[1:]:
                z[body.parent] = z[body.parent] + inside(body, self._of(x, body))
            return np.concatenate(z)

        def adjoint(x: Array) -> Array:
            parents = (self.robot.bodies[body.parent] for body in self.robot.bodies[1:])
            z = [outside(b, self._of(x, p)) for b, p in zip(self.robot.bodies[1:], parents, strict=True)]
            return np.concatenate([np.zeros(6), *z])

        return Operator(self._size, self._size, act, adjoint, name)

    def _recursion(self, name: str, inside: Step, outside: Step) -> Operator:
        """Return (I - E)^-1 of such a step as a sweep inward, and its adjoint as one outward."""

        def act(x: Array) -> Array:
            z = [self._of(x, body) for body in self.robot.bodies]
            for body in inward(self.robot):
                if body.parent >= 0:
                    z[body.parent] = z[body.parent] + inside(body, z[body.index])
            return np.concatenate(z)

        def adjoint(x: Array) -> Array:
            z = [self._of(x, body) for body in self.robot.bodies]
            for body in outward(self.robot):
                if body.parent >= 0:
                    z[body.index] = z[body.index] + outside(body, z[body.parent])
            return np.concatenate(z)

        return Operator(self._size, self._size, act, adjoint, name)

    @cached_property
    def _motion(self):
        return motion(self.robot, self.q)

    def _carried(self, link: str | int, point: Array) -> tuple[int, Array, Array]:
        """Return (body, its rotation, the point in its axes)."""
        placed_link = self.robot.link(link) if isinstance(link, str) else self.robot.links[link]
        k = placed_link.body
        return k, self._motion.rotation[k], placed_link.position + placed_link.rotation @ point
