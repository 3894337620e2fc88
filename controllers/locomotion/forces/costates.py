"""Newton's method in the costates of a rigid body with contact forces in friction cones, over any element.

In the units of `ScaledProblem` the body has the wrench w_k and the costate mu_k in step k. The costate is the gradient
of the cost of errors with respect to w_k. The optimal contact forces are projections onto the friction cones,

    f_i = project(nominal f_i - G_i^T mu_k),      w_k = sum of a_i G_i f_i,      G_i = [r_i~; 1],

since the weight of forces is 1. Costates are optimal if their wrenches w(mu) cause a motion with these costates. They
minimize the convex dual cost, whose gradient is w - w(mu), where mu = costates_of(w). Newton's method replaces w(mu) by
its linearization w(mu) - E dmu and solves the linear-quadratic problem that results by a Riccati recursion with six
inputs. A line search for the minimum of the dual cost follows.

Source: The projection is that of Alart and Curnier (see `legged.contact.impulses.newton`). Riccati recursions in
    Newton's method for predictive control: Rao, Wright, Rawlings, "Application of interior-point methods to model
    predictive control", Journal of Optimization Theory and Applications 99(3), 1998. The dual form in wrenches is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from controllers.locomotion.forces.friction_cone import cone_coordinates
from legged.compiler.ir import item, where
from legged.spatial import Array, cross, factor_symmetric, join, mirror, solve_factored, sum_of

_TINY = 1e-300  # avoids 0 / 0 without tangential force
_TRIALS = 8
"""Step sizes that the line search tries besides 1."""
_SMALL_SLOPE = 0.2
"""Slope of the dual cost at which the line search ends, relative to the one at its beginning."""


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


def costates_of(problem: ScaledProblem, w: Array) -> Array:
    """Return the gradient of the cost of errors with respect to the wrenches, (N, 6), mixed units.

    Args:
        problem: The problem. w: Wrenches, (N, 6), mixed units, world axes.
    """
    s, r, gradients = problem.s, problem.r, []
    for k, (wrench, (at_p, at_r)) in enumerate(zip(w, problem.gradients, strict=True)):
        with item(("motion", k)):
            s, r = s + r, r + wrench + problem.fall
            by_p = at_p + problem.Q_p @ (s + 0.5 * r)
            gradients.append((by_p, 0.5 * by_p + at_r + problem.Q_r @ r))
    eta, mu, costates = np.zeros(6), np.zeros(6), []
    for by_s, by_r in reversed(gradients):
        eta, mu = eta + by_s, mu + eta + by_r
        costates.append(mu)
    return np.array(costates[::-1])


def iterate(problem: ScaledProblem, w: Array, mu: Array) -> tuple[Array, Array, Any]:
    """Return w, mu after an iteration, and the Newton decrement before it.

    The Newton decrement is about twice the distance of the dual cost from its minimum.

    Args:
        problem: The problem. w: Wrenches, (N, 6), mixed units, world axes. mu: Their costates, (N, 6), mixed units.
    """
    contacts = contact_forces(problem, mu)
    forced = [wrench_of(problem, k, row) for k, row in enumerate(contacts)]
    w_new, mu_new = _newton(problem, contacts, forced, mu)
    dw, dmu = w_new - w, mu_new - mu
    constant = sum_of([a @ b for a, b in zip(dmu, w, strict=True)])
    linear = sum_of([a @ b for a, b in zip(dmu, dw, strict=True)])
    decrement = sum_of([a @ b for a, b in zip(dmu, forced, strict=True)]) - constant
    t = _step_size(_slope_along(problem, contacts, dmu, constant, linear), decrement)
    return w + t * dw, mu + t * dmu, decrement


def _newton(
    problem: ScaledProblem, contacts: Sequence[Sequence[ContactForce]], forced: Sequence[Array], mu: Array
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


def _slope_along(
    problem: ScaledProblem,
    contacts: Sequence[Sequence[ContactForce]],
    dmu: Array,
    constant: Any,
    linear: Any,
) -> Callable[[Any], Any]:
    """Return the derivative of the dual cost along dmu as a function of the step size t.

    dmu . (w + t dw - w(mu + t dmu)) = constant + t linear + sum of a f . dy,      dy = -G^T dmu
    """
    lines = []
    for k, row in enumerate(contacts):
        for i, x in enumerate(row):
            with item(("line", k, i)):
                n = problem.normals[k, i]
                dy = -dmu[k][3:] - cross(dmu[k][:3], problem.arms[k, i])
                dy_n = dy @ n
                dy_t = dy - dy_n * n
                a = problem.active[k, i]
                lines.append((a, x.y_n, dy_n, x.size * x.size, x.y_t @ dy_t, dy_t @ dy_t))

    def slope(t: Any) -> Any:
        parts = []
        for k, (a, y_n, dy_n, yy, yd, dd) in enumerate(lines):
            with item(("trial", k)):
                size = np.sqrt(np.maximum(yy + t * (yd + yd + t * dd), 0.0) + _TINY)
                normal, scale = cone_coordinates(y_n + t * dy_n, size, problem.friction, problem.most)
                parts.append(a * (normal * dy_n + scale * (yd + t * dd)))
        return constant + t * linear + sum_of(parts)

    return slope


def _step_size(slope: Callable[[Any], Any], decrement: Any) -> Any:
    """Return a step size from 0 to 1 near the minimum along the line, by the Illinois variant of the secant method.

    The slope rises from -decrement < 0. If no trial comes near zero, the largest one with negative slope is used.
    """
    enough = _SMALL_SLOPE * decrement
    t: Any = 1.0
    now = slope(t)
    accepted = now <= enough
    low, at_low, high, at_high = 0.0, -decrement, 1.0, now
    for _ in range(_TRIALS):
        rise = at_high - at_low
        trial = low - at_low * (high - low) / where(rise > 0.0, rise, 1.0)
        now = slope(trial)
        t = where(accepted, t, trial)
        accepted = accepted | (abs(now) <= enough)
        over = now > 0.0
        low, at_low, high, at_high = (
            where(over, low, trial),
            where(over, 0.5 * at_low, now),
            where(over, trial, high),
            where(over, now, 0.5 * at_high),
        )
    return where(accepted | (low <= 0.0), t, low)


def _symmetric_product(A: Array, B: Array) -> Array:
    """Return the product A B, (n, n), which is symmetric in exact arithmetic."""
    n = len(A)
    rows = [[sum_of([A[i, k] * B[k, j] for k in range(n)]) if j >= i else 0.0 for j in range(n)] for i in range(n)]
    return mirror(np.array(rows))


def _inverse(S: Array) -> Array:
    """Return the inverse of a symmetric positive definite matrix."""
    factors = factor_symmetric(S)
    return mirror(np.array([solve_factored(factors, e) for e in np.eye(len(S))]).T)
