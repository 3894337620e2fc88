"""Newton's method in the costates of a rigid body with contact forces in friction cones, over any element.

In the units of `ScaledProblem` the body has the wrench w_k and the costate mu_k in step k. The costate is the gradient
of the cost of errors with respect to w_k. The optimal contact forces are projections onto the friction cones,

    f_i = project(nominal f_i - G_i^T mu_k),      w_k = sum of a_i G_i f_i,      G_i = [r_i~; 1],

since the weight of forces is 1. Costates are optimal if their wrenches w(mu) cause a motion with these costates. They
minimize the convex dual cost, whose gradient is w - w(mu), where mu = costates_of(w). Newton's method replaces w(mu) by
its linearization w(mu) - E dmu and solves the linear-quadratic problem that results by a Riccati recursion with six
inputs. A step to a point at which the dual cost rises is shortened by the following iterations.

Source: The projection is that of Alart and Curnier (see `legged.contact.impulses.newton`). Riccati recursions in
    Newton's method for predictive control: Rao, Wright, Rawlings, "Application of interior-point methods to model
    predictive control", Journal of Optimization Theory and Applications 99(3), 1998. The dual form in wrenches is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from controllers.locomotion.forces.friction_cone import cone_coordinates
from legged.compiler.ir import item, where
from legged.spatial import Array, cross, factor_symmetric, join, mirror, solve_factored, sum_of

_TINY = 1e-300  # avoids 0 / 0 without tangential force
_RISE, _FALL = 0.2, 0.9
"""Largest slope of the dual cost, uphill and downhill, at the end of a step, relative to the one at its beginning."""


class ScaledProblem(NamedTuple):
    """A problem in momentum coordinates p = [I theta; m c] and units in which time step and weight of forces are 1.

    With the impulses r = p' and half-step positions s = p - r / 2, a step is s + r, r + w + fall.

    Attributes:
        Q_p: Weight of p, (6, 6), mixed units.
        Q_r: Weight of r, (6, 6), mixed units.
        gradients: Derivatives of the cost by p and by r at p = r = 0, for each step.
        s: Initial half-step position, (6,), mixed units.
        r: Initial impulse, (6,), mixed units.
        fall: Effect of gravity in a step, (6,), mixed units.
        nominal: Forces without cost, (N, n, 3), mixed units, world axes.
        arms, normals, active, friction, most: As in `Problem`.
        unit: The cost with the given weights is this one divided by `unit`.
    """

    Q_p: Array
    Q_r: Array
    gradients: Sequence[tuple[Array, Array]]
    s: Array
    r: Array
    fall: Array
    nominal: Array
    arms: Array
    normals: Array
    active: Array
    friction: Any
    most: Any
    unit: Any


class Iterate(NamedTuple):
    """A point of the iterations, w + t dw and mu + t dmu, on the line of the last step of Newton's method.

    Attributes:
        w: Wrenches at the beginning of the line, (N, 6), mixed units, world axes.
        mu: Costates of the motion with these wrenches, (N, 6), mixed units.
        dw, dmu: Newton's step, (N, 6), mixed units.
        line: (6,), mixed units: t; the ends of an interval of t that contains the least dual cost of the line, each
            followed by the slope there; and the slope at t = 0, downhill. The latter is -1 at the start, whose costates
            are a guess and whose wrenches have no meaning, and 0 for the step from there, which is not shortened.
    """

    w: Array
    mu: Array
    dw: Array
    dmu: Array
    line: Array

    @classmethod
    def start(cls, mu: Array) -> Iterate:
        """Return the start from a guess of the costates.

        Args:
            mu: The guess, (N, 6), mixed units.
        """
        return cls(0.0 * mu, mu, 0.0 * mu, 0.0 * mu, np.array([0.0, 0.0, 0.0, 1.0, 0.0, -1.0]))

    @classmethod
    def of(cls, flat: Array) -> Iterate:
        """Return the iterate of a vector.

        Args:
            flat: As from the method `flat`, (24 N + 6,), mixed units.
        """
        w, mu, dw, dmu = flat[:-6].reshape(4, -1, 6)
        return cls(w, mu, dw, dmu, flat[-6:])

    def flat(self) -> Array:
        """Return the numbers as a vector, (24 N + 6,), mixed units."""
        return np.concatenate([part.reshape(-1) for part in self])

    @property
    def point(self) -> tuple[Array, Array]:
        """Wrenches and costates of the point, (N, 6) each, mixed units."""
        t = self.line[0]
        return self.w + t * self.dw, self.mu + t * self.dmu


class ContactForce(NamedTuple):
    """The force of a contact point and its projection.

    Attributes:
        f: The force, (3,), world axes.
        y_n, y_t: Normal component of the force before the projection, and its tangential part, (3,), world axes.
        size: Magnitude of y_t, positive.
        normal: Normal component of f.
        scale: Tangential part of f relative to y_t; below 1 on the surface of the cone.
    """

    f: Array
    y_n: Any
    y_t: Array
    size: Any
    normal: Any
    scale: Any


class _Gain(NamedTuple):
    """The optimal costate of a step with s and r at its beginning: mu = V (s + r) + Pi (r + e)."""

    V: Array
    Pi: Array
    e: Array


def contact_forces(problem: ScaledProblem, mu: Array) -> list[list[ContactForce]]:
    """Return the contact forces of each step.

    Args:
        problem: The problem. mu: Costates, (N, 6), mixed units, world axes.
    """
    forces: list[list[ContactForce]] = []
    for k, costate in enumerate(mu):
        forces.append([])
        for i, (r, n) in enumerate(zip(problem.arms[k], problem.normals[k], strict=True)):
            with item(("contact", k, i)):
                y = problem.nominal[k, i] - costate[3:] - cross(costate[:3], r)
                y_n = y @ n
                y_t = y - y_n * n
                size = np.sqrt(y_t @ y_t + _TINY)
                normal, scale = cone_coordinates(y_n, size, problem.friction, problem.most)
                forces[-1].append(ContactForce(normal * n + scale * y_t, y_n, y_t, size, normal, scale))
    return forces


def wrench_of(problem: ScaledProblem, k: int, contacts: Sequence[ContactForce]) -> Array:
    """Return the wrench of the contact forces of step k, (6,), about the center of mass, world axes.

    Args:
        problem: The problem. k: The step. contacts: Its contact forces.
    """
    parts = []
    for i, (a, r, x) in enumerate(zip(problem.active[k], problem.arms[k], contacts, strict=True)):
        with item(("contact", k, i)):
            f = a * x.f
            parts.append(join(cross(r, f), f))
    with item(("step", k)):
        return sum_of(parts)


def iterate(problem: ScaledProblem, now: Iterate) -> tuple[Iterate, Array]:
    """Return the next iterate, and the residual w(mu) - w of its point, (N, 6), mixed units.

    It is a full step of Newton's method from the present point, unless the slope of the dual cost, which rises along
    the line, is large there: then the Illinois variant of the secant method gives another point on the line.

    Args:
        problem: The problem. now: The present iterate.
    """
    (w, mu), (t, low, at_low, high, at_high, fall) = now.point, now.line
    contacts, forced = _forces(problem, mu)
    slope = _product(now.dmu, w - forced)
    is_reached = (slope <= _RISE * fall) & ((slope >= -_FALL * fall) | (t >= 1.0)) | (fall <= 0.0)
    over = slope > 0.0
    low, at_low = where(over, low, t), where(over, 0.5 * at_low, slope)
    high, at_high = where(over, t, high), where(over, slope, 0.5 * at_high)
    rise = at_high - at_low
    secant = np.stack([low - at_low * (high - low) / where(rise > 0.0, rise, 1.0), low, at_low, high, at_high, fall])
    w_new, mu_new = _newton(problem, contacts, forced, mu)
    dw, dmu, zero = w_new - w, mu_new - mu, 0.0 * t
    fall = where(fall < 0.0, zero, _product(dmu, forced - w))
    full = np.stack([zero + 1.0, zero, -fall, zero + 1.0, zero, fall])
    along = now._replace(line=secant)
    after = Iterate(*(where(is_reached, a, b) for a, b in zip((w, mu, dw, dmu, full), along, strict=True)))
    w, mu = after.point
    return after, _forces(problem, mu)[1] - w


def _forces(problem: ScaledProblem, mu: Array) -> tuple[list[list[ContactForce]], Array]:
    """Return the contact forces of each step, and their wrenches w(mu), (N, 6)."""
    contacts = contact_forces(problem, mu)
    return contacts, np.array([wrench_of(problem, k, row) for k, row in enumerate(contacts)])


def _product(a: Array, b: Array) -> Any:
    """Return the sum over the steps of the products of rows, (N, 6) each."""
    return sum_of([x @ y for x, y in zip(a, b, strict=True)])


def _newton(
    problem: ScaledProblem, contacts: Sequence[Sequence[ContactForce]], forced: Array, mu: Array
) -> tuple[Array, Array]:
    """Return wrenches and costates, both (N, 6), of the linear-quadratic problem with w = w(mu) - E dmu.

    With P the matrix of the cost to go in s and r, C = P_22^-1 and Z = C P_21, the optimal costate of a step is

        mu = (C + E)^-1 (Z (s + r) + r + e),      e = w(mu_old) + E mu_old + fall + C p_2.
    """
    E = [_slope(problem, k, row) for k, row in enumerate(contacts)]
    free = []
    for k, (own, x, costate) in enumerate(zip(E, forced, mu, strict=True)):
        with item(("step", k)):
            free.append(x + own @ costate)
    gains = _riccati(problem, E, free)
    s, r, w_new, mu_new = problem.s, problem.r, [], []
    for k, gain in enumerate(gains):
        with item(("forward", k)):
            s = s + r
            costate = gain.V @ s + gain.Pi @ (r + gain.e)
            wrench = free[k] - E[k] @ costate
            r = r + wrench + problem.fall
            w_new.append(wrench)
            mu_new.append(costate)
    return np.array(w_new), np.array(mu_new)


def _riccati(problem: ScaledProblem, E: Sequence[Array], free: Sequence[Array]) -> list[_Gain]:
    """Return the gain of each step by a Riccati recursion over the steps from the last to the first."""
    Q_11, Q_12, Q_22 = problem.Q_p, 0.5 * problem.Q_p, 0.25 * problem.Q_p + problem.Q_r
    zero = np.zeros((6, 6))
    K, V, Pi, q_1, q_2 = zero, zero, zero, np.zeros(6), np.zeros(6)
    gains = []
    for k in reversed(range(len(E))):
        with item(("backward", k)):
            at_p, at_r = problem.gradients[k]
            P_11, P_12, P_22 = Q_11 + K, Q_12 + K + V.T, mirror(Q_22 + K + V + V.T + Pi)
            p_1, p_2 = at_p + q_1, 0.5 * at_p + at_r + q_1 + q_2
            C = _inverse(P_22)
            Z = C @ P_12.T
            Pi = _inverse(C + E[k])
            V = Pi @ Z
            e = free[k] + problem.fall + C @ p_2
            gains.append(_Gain(V, Pi, e))
            K = P_11 + _symmetric_product(Z.T, V) - _symmetric_product(P_12, Z)
            q_2 = Pi @ e
            q_1 = p_1 + (q_2 - p_2) @ Z
    return gains[::-1]


def _slope(problem: ScaledProblem, k: int, contacts: Sequence[ContactForce]) -> Array:
    """Return E = -dw(mu) / dmu of step k, (6, 6), the sum of a G P G^T with the derivative P of each projection.

    On the surface of the cone, with n the normal and u the direction of the tangential force,

        P = c (1 - n n^T - u u^T) + (n + mu u) (n + mu u)^T / (1 + mu^2),

    where c is the scale of the tangential force; inside P = 1, at the largest normal force the component along n is
    zero, and P = 0 without force.
    """
    mu, parts = problem.friction, []
    surface = 1.0 / (1.0 + mu * mu)
    for i, x in enumerate(contacts):
        with item(("contact", k, i)):
            a, r, n = problem.active[k, i], problem.arms[k, i], problem.normals[k, i]
            slides = x.scale < 1.0
            nn = where((x.normal > 0.0) & (x.normal < problem.most), where(slides, surface, 1.0), 0.0)
            nu = where(slides, mu * nn, 0.0)
            uu = where(slides, mu * nu - x.scale, 0.0)
            u = x.y_t / x.size
            left, right = a * ((nn - x.scale) * n + nu * u), a * (nu * n + uu * u)
            rows = [[n[p] * left[q] + u[p] * right[q] if q >= p else 0.0 for q in range(3)] for p in range(3)]
            P = mirror(np.array(rows)) + np.eye(3) * (a * x.scale)
            moments = np.array([cross(r, column) for column in P])  # (r~ P)^T
            about = mirror(np.array([cross(r, row) for row in moments.T]))
            parts.append(np.block([[about, moments.T], [moments, P]]))
    with item(("step", k)):
        return mirror(sum_of(parts))


def _symmetric_product(A: Array, B: Array) -> Array:
    """Return the product A B, (n, n), which is symmetric in exact arithmetic."""
    n = len(A)
    rows = [[sum_of([A[i, k] * B[k, j] for k in range(n)]) if j >= i else 0.0 for j in range(n)] for i in range(n)]
    return mirror(np.array(rows))


def _inverse(S: Array) -> Array:
    """Return the inverse of a symmetric positive definite matrix."""
    factors = factor_symmetric(S)
    return mirror(np.array([solve_factored(factors, e) for e in np.eye(len(S))]).T)
