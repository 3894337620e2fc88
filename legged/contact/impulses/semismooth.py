"""Contact impulses by a semismooth Newton method on the projections of the contact law, over any element.

Impulses p and velocities u = A p + u_free fulfil the law where

    p = project(p - (u - target) / r)    for any r > 0,

where `project` takes the positive part of the normal impulse and the nearest point of the disc of radius mu p_n for the
tangential ones, see `projection`. Newton's method takes a generalized derivative D of it in each contact,

    dp = (1 - D)^-1 (project(p - (u - target) / r) - p) - (1 - D)^-1 D du / r,

and solves for the velocities of the bodies. With r equal to the mobility of a contact, the state of most contacts,
open, sliding or sticking, is right after one iteration from the impulses of the last step, and the next one ends at the
solution. D is reduced by a small fraction, so that the impulses of redundant contacts change as little as possible, and
more far from the solution. There is no line search: the iterations may not converge there, and `newton` continues.

Source: Alart, Curnier, "A mixed formulation for frictional contact problems prone to Newton like solution methods",
Computer Methods in Applied Mechanics and Engineering 92(3), 1991; compared with other methods by Acary, Bremond, Huber,
"On solving contact problems with Coulomb friction: formulations and numerical comparisons", 2018.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Protocol, TypeVar

import numpy as np

from legged.compiler.ir import repeat_while, where
from legged.contact.impulses.solver import Movable, Solution, maximum_of, once, project_to_disc, velocity_after
from legged.spatial import Array

LEAST_REDUCTION, REDUCTION_RATE, LARGEST_REDUCTION = 1e-6, 0.1, 1e-3
"""Reduction of the derivatives of projections, relative to one: least, per residual in m/s, and largest one."""
_TINY = 1e-300  # avoids 0 / 0 without tangential impulse


class Problem(Protocol):
    """A contact problem of the semismooth methods."""

    @property
    def u_free(self) -> Any:
        """Velocities of the contacts without impulses, (m, 3), [m/s], contact frames."""
        ...


P = TypeVar("P", bound=Problem, contravariant=True)


class System(Movable, Protocol[P]):
    """The bodies of a contact problem, with arguments, units and frames as in `newton.GeneralizedSystem`.

    The inertia matrix M, the Jacobian J and slopes are of types of their own for each class of systems.
    """

    def matrices(self) -> tuple[Any, Any]:
        """Return M and J."""
        ...

    def momentum(self, M: Any, J: Any, v: Array) -> Array:
        """Return the momentum of the impulses to v, (n,), mixed units; arguments as in `GeneralizedSystem`."""
        ...

    def mobilities(self, problem: P) -> Array:
        """Return the `newton.mobility` of each contact, (m,), [1/kg]; arguments as in `GeneralizedSystem`."""
        ...

    def direction(self, M: Any, J: Any, slopes: Any, b: Array) -> Array:
        """Return dv of (M + J^T diag(slopes) J) dv = b, (n,), mixed units; arguments as in `GeneralizedSystem`."""
        ...

    def solution(self, problem: P, target: Any, p: Array) -> Any:
        """Return the solution of impulses, spread over each group; arguments as in `GeneralizedSystem`."""
        ...


class SemismoothSystem(System[P], Protocol[P]):
    """The bodies of a contact problem for the semismooth method."""

    def linearized(self, problem: P, target: Any, p: Array, u: Array, r: Array, reduction: Any) -> tuple[Array, Any]:
        """Return changes of p, (m, 3), [N s], contact frames, and slopes; arguments as in `GeneralizedSystem`."""
        ...

    def advanced(
        self, problem: P, target: Any, p: Array, slopes: Any, u: Array, du: Array, r: Array
    ) -> tuple[Array, Array, Array]:
        """Return p, u and violations, (m, 3) each, contact frames; arguments as in `GeneralizedSystem`."""
        ...


def semismooth_newton(
    problem: P,
    target: Any,
    system: SemismoothSystem[P],
    start: Solution,
    iterations: int,
    tolerance: Any,
    goal: float,
    enough: float,
) -> Solution:
    """Return the solution with the smallest residual of at most `iterations` iterations, or the start.

    Args:
        problem: The contacts. target: Normal velocities of closed contacts, (m,), [m/s].
        system: The bodies, with the methods of `newton.GeneralizedSystem`.
        start: A first solution. iterations: Largest number of iterations.
        tolerance, goal: Residuals from which to iterate and at which to end, [m/s].
        enough: Residual below which the first iteration that does not reduce it is the last one, [m/s].
    """
    n, m, shape = sum(map(len, system.v_free)), start.p.size, start.p.shape
    bounds = (0, n, n + m, n + 2 * m, n + 3 * m)

    def step(state: Array) -> Array:
        v, p, u, best = (state[start:end] for start, end in pairwise(bounds))
        residual, least, _ = state[bounds[-1] :]
        M, J = system.matrices()
        p, u, r = p.reshape(shape), u.reshape(shape), system.mobilities(problem)
        moved, slopes = system.linearized(problem, target, p, u, r, reduction(residual))
        dv = system.direction(M, J, slopes, J.momentum(p + moved) - system.momentum(M, J, v))
        p, u, violations = system.advanced(problem, target, p + moved, slopes, u, J.velocities(dv), r)
        v, residual = v + dv, maximum_of(violations)
        better, least, continues = progress(residual, least, goal, enough)
        best = where(better, p.reshape(-1), best)
        numbers = np.stack([residual, least, where(continues, 1.0, 0.0)])
        return np.concatenate([v, p.reshape(-1), u.reshape(-1), best, numbers])

    active = np.stack([where(start.residual > tolerance, 1.0, 0.0)])
    v = velocity_after(system, start.p, active)
    p, residuals = start.p.reshape(-1), np.stack([start.residual, start.residual])
    state = np.concatenate([v, p, start.u.reshape(-1), p, residuals, active])
    best = repeat_while(step, state, iterations)[slice(*bounds[3:])].reshape(shape)

    def end(p: Array) -> Solution:
        solution = system.solution(problem, target, p)
        better = solution.residual < start.residual
        return Solution(*(where(better, a, b) for a, b in zip(solution, start, strict=True)))

    return once(active[0], end, best, start)


def reduction(residual: Any) -> Any:
    """Return the reduction of the derivatives of projections, relative to one, for a residual, [m/s]."""
    return np.minimum(LEAST_REDUCTION + REDUCTION_RATE * residual, LARGEST_REDUCTION)


def progress(residual: Any, least: Any, goal: Any, enough: Any) -> tuple[Any, Any, Any]:
    """Return whether a residual is the smallest one so far, that one, and whether to continue.

    Args:
        residual, least: Present residual, and the smallest one before it, [m/s].
        goal, enough: As in `semismooth_newton`, [m/s].
    """
    better = residual < least
    return better, where(better, residual, least), (residual > goal) & (better | (least > enough))


def linearization(p: Array, u: Array, target: Any, r: Any, mu: Any, reduction: Any) -> tuple[Array, Array]:
    """Return the change of the impulse of a contact at the same velocity, (3,), [N s], and -dp / du, (3, 3).

    Args:
        p: Impulse, (3,), [N s], contact frame. u: Velocity, (3,), [m/s], contact frame.
        target: Normal velocity of a closed contact, [m/s]. r: Step of the projection, [1/kg]; zero for no impulse.
        mu: Coefficient of friction. reduction: Of the derivative of the projection, relative to one.
    """
    moves, keep, most = r > 0.0, 1.0 - reduction, 1.0 / reduction
    inverse = where(moves, 1.0 / where(moves, r, 1.0), 0.0)
    y_n, y_1, y_2 = p[0] - inverse * (u[0] - target), p[1] - inverse * u[1], p[2] - inverse * u[2]
    closed = moves & (y_n > 0.0)
    p_n = where(closed, y_n, 0.0)
    size, radius = np.sqrt(y_1 * y_1 + y_2 * y_2 + _TINY), mu * p_n
    sticks = closed & (size <= radius)
    t_1, t_2, factor = y_1 / size, y_2 / size, np.minimum(1.0, radius / size)
    # Entries of (1 - D)^-1: along the normal, along and across the direction of sliding (t_1, t_2), and, `pull`, of the
    # tangential impulse along this direction per normal impulse, which a sliding contact has on the cone.
    normal, along = where(closed, most, 1.0), where(sticks, most, 1.0)
    across, pull = 1.0 / (1.0 - keep * factor), where(sticks, 0.0, where(closed, mu * (keep * most), 0.0))
    x, y, z = p_n - p[0], factor * y_1 - p[1], factor * y_2 - p[2]  # project(...) - p
    change = (along - across) * (t_1 * y + t_2 * z) + pull * x
    moved = np.array([normal * x, across * y + change * t_1, across * z + change * t_2])
    stiff, turn, slide = inverse * (normal - 1.0), inverse * (across - 1.0), inverse * pull
    radial = inverse * (along - across)
    row_1 = [slide * t_1, turn + radial * t_1 * t_1, radial * t_1 * t_2]
    row_2 = [slide * t_2, radial * t_1 * t_2, turn + radial * t_2 * t_2]
    return moved, np.array([[stiff, 0.0, 0.0], row_1, row_2])


def advanced(p: Array, slopes: Array, u: Array, du: Array, target: Any, r: Any, mu: Any) -> tuple[Array, Array, Array]:
    """Return impulse, (3,), [N s], velocity, (3,), [m/s], and violation of the law, (3,), [m/s], after an iteration.

    Args:
        p: Impulse at the velocity before the iteration, (3,), [N s], contact frame. slopes: -dp / du, (3, 3), [kg].
        u, du: That velocity and its change, (3,), [m/s], contact frame.
        target, r, mu: As in `linearization`.
    """
    p, u = p - slopes @ du, u + du
    projected, _ = projection(p, u, target, r, mu)
    return p, u, np.abs(projected - p) * r


def projection(p_bar: Array, u: Array, target: Any, r: Any, mu: Any) -> tuple[Array, Array]:
    """Return the impulse p(u) of a contact, (3,), [N s], and -dp / du, (3, 3), contact frame.

    Args:
        p_bar: Impulse from which the projection starts, (3,), [N s]. u: Velocity, (3,), [m/s], contact frame.
        target: Normal velocity of a closed contact, [m/s]. r: Step of the projection, [1/kg]; zero for no impulse.
        mu: Coefficient of friction.
    """
    inverse = where(r > 0.0, 1.0 / where(r > 0.0, r, 1.0), 0.0)
    y_n, y_1, y_2 = p_bar[0] - inverse * (u[0] - target), p_bar[1] - inverse * u[1], p_bar[2] - inverse * u[2]
    p_n = where(r > 0.0, np.maximum(y_n, 0.0), 0.0)
    size = np.sqrt(y_1 * y_1 + y_2 * y_2 + _TINY)
    radius = mu * p_n
    p = np.array([p_n, *project_to_disc(y_1, y_2, radius)])
    closed, sticks = where(y_n > 0.0, inverse, 0.0), size <= radius
    t_1, t_2, factor = y_1 / size, y_2 / size, inverse * np.minimum(1.0, radius / size)
    cut, pull = where(sticks, 0.0, factor), where(sticks, 0.0, mu * closed)
    row_1 = [pull * t_1, factor - cut * t_1 * t_1, -cut * t_1 * t_2]
    row_2 = [pull * t_2, -cut * t_1 * t_2, factor - cut * t_2 * t_2]
    return p, np.array([[closed, 0.0, 0.0], row_1, row_2])
