"""The Coriolis wrench of composite bodies, from two moments of momentum.

A rigid body of velocity t, inertia I, displaced along a motion vector x that is fixed in it, meets

    x x I t + t x I x - I (t x x) = 2 sum of m [r x (x_omega x u); x_omega x u],

over its points at r with velocity u: the Coriolis force of a turning x_omega, whatever x does else. With

    Q = sum of m u r^T = omega~ J + u_O h^T,      p = sum of m u = m u_O + omega x h

it is 2 [(tr(Q) 1 - Q) x_omega; x_omega x p]. Twelve numbers, that add up like moments of mass, where a matrix for each
body has thirty-six.

Source: the matrix is B of Echeandia and Wensing 2021, and of Niemeyer and Slotine 1991; written in Q and p it is ours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from legged.algorithms.links import Links
from legged.dynamics.sweeps import inward
from legged.robot.body import Body
from legged.spatial import Array, Transform, Translation, cross, join, skew


@dataclass(frozen=True, eq=False)
class Coriolis:
    """Twice Q, (3, 3), [kg m^2/s], and twice p, (3,), [kg m/s], of a composite body, about its origin in its axes."""

    Q: Array
    p: Array

    def of(self, x: Array) -> Array:
        """Return the wrench for a displacement along x, (6,)."""
        return join(np.trace(self.Q) * x[:3] - self.Q @ x[:3], cross(x[:3], self.p))

    def transposed(self, s: Array) -> Array:
        """Return the transposed matrix times a motion vector s, (6,): a couple."""
        return join(np.trace(self.Q) * s[:3] - self.Q.T @ s[:3] + cross(self.p, s[3:]), np.zeros(3))

    def __add__(self, other: Coriolis) -> Coriolis:
        return Coriolis(self.Q + other.Q, self.p + other.p)


def coriolis(links: Links, t: list[Array], v: Array) -> list[Coriolis]:
    """Return those of each body and all that it carries, from twists t, (6,), in link coordinates.

    The spin L of a gyroscopic rotor meets x_omega x L, which Q = L~ / 2 gives.
    """
    found = [_own(body, t[body.index], v) for body in links.robot.bodies]
    for body in inward(links.robot):
        if body.parent >= 0:
            found[body.parent] = found[body.parent] + _seen(links.X[body.index], found[body.index])
    return found


def _own(body: Body, t: Array, v: Array) -> Coriolis:
    omega, u = 2.0 * t[:3], 2.0 * t[3:]
    mass, h, J = body.regrouped.mass, body.regrouped.h, body.regrouped.J
    Q = skew(omega) @ J + np.outer(u, h)
    if body.rotor_momentum.any():
        Q = Q + skew(body.rotor_momentum[:3] @ v[body.v])
    return Coriolis(Q, mass * u + cross(omega, h))


def _seen(X: Transform, own: Coriolis) -> Coriolis:
    """Return what a parent sees of its child's: Q turned, and + p r^T for the way r to the child's origin."""
    Q, p = own.Q, own.p
    for step in reversed(X.steps):
        if isinstance(step, Translation):
            Q = Q + np.outer(p, step.r)
        else:
            Q, p = step.rotate_block(Q), step.wrench(join(np.zeros(3), p))[3:]
    return Coriolis(Q, p)
