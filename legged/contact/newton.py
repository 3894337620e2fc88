"""Contact impulses by a proximal Newton method in generalized velocities, over any element.

The method solves the same problem as `solver`, also where Gauss-Seidel converges slowly: towers, large ratios of
masses, redundant contacts. With the inertia matrix M, the Jacobian J of the contacts and impulses p_bar it finds by
Newton's method a velocity v of

    M (v - v_free) = J^T p(v),      p(v) = project(p_bar - (J v - target) / r),

where the projection takes the positive part of the normal impulse and projects the tangential ones onto the disc of
radius mu p_n. Then p_bar becomes p(v), and so on: at p(v) = p_bar the contact law holds exactly, whatever r. With a
small r relative to the mobility of a contact few changes of p_bar suffice, a large one makes Newton's problem
smoother; r is reduced with each change, and raised after a short step of the line search.

Source: Alart, Curnier, "A mixed formulation for frictional contact problems prone to Newton like solution methods",
Computer Methods in Applied Mechanics and Engineering 92(3), 1991, in the velocity coordinates of Castro, Permenter,
Han, "An unconstrained convex formulation of compliant contact", IEEE Transactions on Robotics 39(2), 2023.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from legged.compiler.ir import repeat_while, where
from legged.contact.delassus import Contacts
from legged.contact.solver import (
    MIN_MOBILITY,
    ContactProblem,
    Solution,
    maximum_of,
    project_to_disc,
    solution_of,
    spread,
)
from legged.dynamics.inertia import inertia_matrix
from legged.spatial import Array, sum_of

FIRST_STEP, LEAST_STEP, LARGEST_STEP = 1e-3, 1e-6, 1e-2
"""First, least and largest r, relative to the mobility of a contact."""
_REDUCTION, _RAISE, _SHORT = 0.2, 2.0, 0.2  # of r; a step of the line search shorter than this is short
_HALVINGS = 7
CONVERGED = 1e-3
"""Residual at which the iterations end, relative to the one at which they begin."""
_TINY = 1e-300  # avoids 0 / 0 without tangential impulse


class GeneralizedSystem(NamedTuple):
    """The bodies of a contact problem in n generalized velocities.

    Attributes:
        contacts: The contacts.
        v_free: Velocity of each robot without impulses, (nv,), mixed units.
    """

    contacts: Contacts
    v_free: Sequence[Array]

    def after(self, p: Array) -> Array:
        """Return the velocity, (n,), after impulses.

        Args:
            p: Impulses, (m, 3), [N s], contact frames.
        """
        return np.concatenate(self.contacts.after(self.v_free, p))

    def matrices(self) -> tuple[Array, Array]:
        """Return the inertia matrix of all robots, (n, n), and the Jacobian of the contact velocities, (3 m, n).

        The Jacobian of a robot with closed loops is projected, so that no constraints remain; see `Contacts.jacobian`.
        """
        robots, sides = self.contacts.robots, self.contacts.sides
        starts = np.cumsum([0, *(robot.nv for robot in robots)]).tolist()
        n, kind = starts[-1], object if any(v.dtype == object for v in self.v_free) else float
        M, J = np.zeros((n, n), dtype=kind), np.zeros((3 * len(sides), n), dtype=kind)
        for robot, q, extra, start in zip(robots, self.contacts.qs, self.contacts.extra, starts, strict=False):
            own = slice(start, start + robot.nv)
            M[own, own] = inertia_matrix(robot, q) + np.diag(extra)
        bodies = [self.contacts.jacobian(body.robot, body.body, body.T) for body in self.contacts.bodies]
        for i, both in enumerate(sides):
            for k, C in both:
                start = starts[self.contacts.bodies[k].robot]
                J[3 * i : 3 * i + 3, start : start + bodies[k].shape[1]] += C @ bodies[k]
        return M, J


def proximal_newton(
    problem: ContactProblem,
    target: Sequence[Any],
    system: GeneralizedSystem,
    start: Solution,
    iterations: int,
    tolerance: float,
) -> Solution:
    """Return the solution with the smallest residual of at most `iterations` iterations, or the start.

    A start with a residual below the tolerance is returned without computation. Otherwise the iterations end at a much
    smaller residual, since the last ones converge fast and Gauss-Seidel continues from there in the next step.

    Args:
        problem: The contacts. target: Normal velocities of closed contacts, (m,), [m/s]. system: The bodies.
        start: A first solution. iterations: Largest number of iterations. tolerance: Of the residual, [m/s].
    """
    v_free = np.concatenate(system.v_free)
    n, m = len(v_free), len(problem.A)
    bounds = np.cumsum([n, 3 * m, 3 * m, 3 * m])

    def begin(state: Array) -> Array:
        return np.concatenate([system.after(start.p), 0.0 * state[-1:]])

    def step(state: Array) -> Array:
        v, p_bar, p, u, (residual, scale, _) = np.split(state, bounds)
        best = Solution(p.reshape(m, 3), u.reshape(m, 3), residual)
        v, p_bar, found, scale = _iterate(
            problem, target, system, v, p_bar.reshape(m, 3), best, scale, CONVERGED * tolerance
        )
        active = where(found.residual > CONVERGED * tolerance, 1.0, 0.0)
        numbers = np.stack([found.residual, scale, active])
        return np.concatenate([v, *(x.reshape(-1) for x in (p_bar, found.p, found.u)), numbers])

    active = np.stack([where(start.residual > tolerance, 1.0, 0.0)])
    v = repeat_while(begin, np.concatenate([v_free, active]), 1)[:-1]
    p, numbers = start.p.reshape(-1), np.stack([start.residual, FIRST_STEP])
    state = np.concatenate([v, p, p, start.u.reshape(-1), numbers, active])
    _, _, p, u, (residual, *_) = np.split(repeat_while(step, state, iterations), bounds)
    return Solution(p.reshape(m, 3), u.reshape(m, 3), residual)


def _iterate(
    problem: ContactProblem,
    target: Sequence[Any],
    system: GeneralizedSystem,
    v: Array,
    p_bar: Array,
    best: Solution,
    scale: Any,
    tolerance: float,
) -> tuple[Array, Array, Solution, Any]:
    """Return v, p_bar, the best solution and the relative step of the projection after an iteration."""
    M, J = system.matrices()
    r = [scale * _mobility(A) for A in np.array([problem.A[i][i] for i in range(len(p_bar))])]
    weights = [1.0 / x for x in np.diag(M)]
    momentum, u = M @ (v - np.concatenate(system.v_free)), (J @ v).reshape(-1, 3)
    p, slopes = _projected(problem.mu, target, p_bar, u, r)
    H = M.copy()
    for i, slope in enumerate(slopes):
        columns = [k for k in range(len(v)) if any(not _is_zero(x) for x in J[3 * i : 3 * i + 3, k])]
        own = J[3 * i : 3 * i + 3, columns]
        H[np.ix_(columns, columns)] = H[np.ix_(columns, columns)] + own.T @ (slope @ own)
    dv = _solved(H, J.T @ p.reshape(-1) - momentum)
    du, change = (J @ dv).reshape(-1, 3), M @ dv

    def error(x: float) -> Any:
        p, _ = _projected(problem.mu, target, p_bar, u + x * du, r)
        return sum_of([w * f * f for w, f in zip(weights, momentum + x * change - J.T @ p.reshape(-1), strict=True)])

    step, least = 1.0, error(1.0)
    for x in (0.5**k for k in range(1, _HALVINGS + 1)):
        found = error(x)
        better = found < least
        step, least = where(better, x, step), where(better, found, least)
    v, u = v + step * dv, u + step * du
    p, _ = _projected(problem.mu, target, p_bar, u, r)
    now = solution_of(problem, target, spread(problem, p))
    better = now.residual < best.residual
    solution = Solution(*(where(better, a, b) for a, b in zip(now, best, strict=True)))
    moved = maximum_of(abs(x) * y for row, old, y in zip(now.p, p_bar, r, strict=True) for x in row - old)
    solved = maximum_of(abs(x) for x in (now.u - u).reshape(-1)) < np.maximum(0.1 * tolerance, 0.1 * moved)
    smaller, larger = np.maximum(_REDUCTION * scale, LEAST_STEP), np.minimum(_RAISE * scale, LARGEST_STEP)
    scale = where(solved, smaller, where(step < _SHORT, larger, scale))
    return v, where(solved, now.p, p_bar), solution, scale


def _projected(
    mu: Sequence[Any], target: Sequence[Any], p_bar: Array, u: Array, r: Sequence[Any]
) -> tuple[Array, list[Array]]:
    """Return p(v), (m, 3), [N s], and for each contact -dp / du, (3, 3), contact frames."""
    impulses, slopes = [], []
    for p, w, aim, step, coefficient in zip(p_bar, u, target, r, mu, strict=True):
        inverse = where(step > 0.0, 1.0 / where(step > 0.0, step, 1.0), 0.0)
        y_n, y_1, y_2 = p[0] - inverse * (w[0] - aim), p[1] - inverse * w[1], p[2] - inverse * w[2]
        p_n = where(step > 0.0, np.maximum(y_n, 0.0), 0.0)
        size = np.sqrt(y_1 * y_1 + y_2 * y_2 + _TINY)
        radius = coefficient * p_n
        impulses.append(np.array([p_n, *project_to_disc(y_1, y_2, radius)]))
        closed, sticks = where(y_n > 0.0, inverse, 0.0), size <= radius
        t_1, t_2, factor = y_1 / size, y_2 / size, inverse * np.minimum(1.0, radius / size)
        cut, pull = where(sticks, 0.0, factor), where(sticks, 0.0, coefficient * closed)
        row_1 = [pull * t_1, factor - cut * t_1 * t_1, -cut * t_1 * t_2]
        row_2 = [pull * t_2, -cut * t_1 * t_2, factor - cut * t_2 * t_2]
        slopes.append(np.array([[closed, 0.0, 0.0], row_1, row_2]))
    return np.array(impulses), slopes


def _mobility(A: Array) -> Any:
    """Return the mean mobility of a contact, [1/kg]; zero for a contact that nothing moves."""
    mean = (A[0, 0] + A[1, 1] + A[2, 2]) / 3.0
    return where(mean > MIN_MOBILITY, mean, 0.0)


def _solved(H: Array, b: Array) -> Array:
    """Return the solution x of H x = b by elimination from the last unknown to the first, without zero entries."""
    n, rows, rest = len(b), [list(row) for row in H], list(b)
    for k in reversed(range(n)):
        inverse = 1.0 / rows[k][k]
        for i in range(k):
            if not _is_zero(rows[i][k]):
                factor = rows[i][k] * inverse
                rest[i] = rest[i] - factor * rest[k]
                for j in range(k):
                    if not _is_zero(rows[k][j]):
                        rows[i][j] = rows[i][j] - factor * rows[k][j]
    x: list[Any] = []
    for k in range(n):
        terms = [rows[k][j] * x[j] for j in range(k) if not _is_zero(rows[k][j])]
        x.append((rest[k] - sum_of(terms) if terms else rest[k]) / rows[k][k])
    return np.array(x)


def _is_zero(x: Any) -> bool:
    return isinstance(x, int | float) and x == 0.0
