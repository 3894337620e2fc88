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

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from legged.compiler.ir import call, items, repeat_while, where
from legged.contact.impulses.delassus import Contacts
from legged.contact.impulses.elimination import is_zero_constant, solved_with_blocks
from legged.contact.impulses.semismooth import P, System, advanced, linearization, projection
from legged.contact.impulses.solver import (
    MIN_MOBILITY,
    ContactProblem,
    Solution,
    is_lost,
    maximum_of,
    solution_of,
    spread,
    velocity_after,
)
from legged.dynamics.inertia import inertia_matrix
from legged.spatial import Array

S = TypeVar("S", bound=Any)
"""A `Solution`, or one with further arrays before its residual."""


class Search(NamedTuple):
    """How the proximal method searches.

    Attributes:
        first, largest: First and largest r, relative to the mobility of a contact.
        steps: Steps of the line search.
    """

    first: float
    largest: float
    steps: tuple[float, ...]


ON_TERRAIN = Search(1e-3, 1e-2, tuple(0.5**k for k in range(8)))
"""Search for contacts most of which are with the terrain, after sweeps, which leave impulses near the solution."""
BETWEEN_BODIES = Search(0.1, 1.0, tuple(0.5**k for k in range(4)))
"""Search for stacks and grasps, after the semismooth method, which fails far from the solution."""
WITH_JOINTS = Search(3.0, 30.0, tuple(0.5**k for k in range(8)))
"""Search for contacts and joints, after the semismooth method: 2 of 240 impacts of a quadruped from no guess keep a
residual above the tolerance, and 10 with `BETWEEN_BODIES`."""
_LEAST_STEP = 1e-6  # r, relative to the mobility of a contact
_REDUCTION, _RAISE, _SHORT = 0.2, 2.0, 0.2  # of r; a step of the line search shorter than this is short
CONVERGED = 1e-3
"""Residual at which the iterations end, relative to the one at which they begin."""
_FAILURES, _SMALLER = 10.0, 0.9  # iterations in single precision without a residual this much smaller, before the end


class ContactJacobian(NamedTuple):
    """The Jacobian of m contact velocities with respect to n generalized velocities, without zero columns.

    Attributes:
        n: Number of generalized velocities.
        columns: For each contact the generalized velocities on which its velocity depends.
        blocks: Their columns of the Jacobian, (3, number of columns) for each contact, contact frames.
    """

    n: int
    columns: Sequence[Sequence[int]]
    blocks: Sequence[Array]

    def velocities(self, v: Array) -> Array:
        """Return the velocities of the contacts, (m, 3), [m/s], contact frames.

        Args:
            v: Generalized velocities, (n,), mixed units.
        """
        pairs = items(zip(self.columns, self.blocks, strict=True))
        return np.array([block @ v[columns] for columns, block in pairs]).reshape(-1, 3)

    def momentum(self, p: Array) -> Array:
        """Return the generalized momentum of impulses on the contacts, (n,).

        Args:
            p: Impulses, (m, 3), [N s], contact frames.
        """
        total = np.zeros(self.n, dtype=p.dtype)
        for columns, block, impulse in items(zip(self.columns, self.blocks, p, strict=True)):
            total[columns] += block.T @ impulse
        return total


class GeneralizedSystem(NamedTuple):
    """The bodies of a contact problem in n generalized velocities.

    Attributes:
        contacts: The contacts.
        v_free: Velocity of each robot with the present impulses, (nv,), mixed units.
        present: Impulses, (m, 3), [N s], contact frames; None for none.
    """

    contacts: Contacts
    v_free: Sequence[Array]
    present: Array | None = None

    @property
    def bodies_touch(self) -> bool:
        """Whether most contacts are between bodies, not with the terrain, as in stacks and grasps."""
        sides = self.contacts.sides
        return sum(len(both) > 1 for both in sides) > len(sides) / 2

    @property
    def search(self) -> Search:
        """How the proximal method searches."""
        return BETWEEN_BODIES if self.bodies_touch else ON_TERRAIN

    def after(self, p: Array) -> Array:
        """Return the velocity, (n,), after impulses.

        Args:
            p: Impulses, (m, 3), [N s], contact frames.
        """
        p = p if self.present is None else p - self.present
        return np.concatenate(self.contacts.after(self.v_free, p))

    def velocities(self, J: ContactJacobian, v: Array) -> Array:
        """Return the velocities of the contacts, (m, 3), [m/s], contact frames.

        The Jacobian of a robot with closed loops, see `matrices`, is that of changes of velocity by impulses.

        Args:
            J: The Jacobian. v: Generalized velocities, (n,), mixed units.
        """
        if self.contacts.loops is None:
            return J.velocities(v)
        return self.contacts.velocities(self.v_free) + J.velocities(v - np.concatenate(self.v_free))

    def momentum(self, M: Array, J: ContactJacobian, v: Array) -> Array:
        """Return the generalized momentum of the impulses after which the velocity is v, (n,), mixed units.

        Args:
            M: Inertia matrix, (n, n), mixed units. J: The Jacobian. v: Generalized velocities, (n,), mixed units.
        """
        momentum = M @ (v - np.concatenate(self.v_free))
        return momentum if self.present is None else momentum + J.momentum(self.present)

    def matrices(self) -> tuple[Array, ContactJacobian]:
        """Return the inertia matrix of all robots, (n, n), and the Jacobian of the contact velocities.

        The Jacobian of a robot with closed loops is projected, so that no constraints remain; see `Contacts.jacobian`.
        """
        contacts, starts = self.contacts, np.cumsum([0, *(robot.nv for robot in self.contacts.robots)]).tolist()
        n, kind = starts[-1], object if any(v.dtype == object for v in self.v_free) else float
        M = np.zeros((n, n), dtype=kind)
        for robot, q, extra, start in items(zip(contacts.robots, contacts.qs, contacts.extra, starts, strict=False)):
            own = slice(start, start + robot.nv)
            M[own, own] = inertia_matrix(robot, q) + np.diag(extra)
        bodies = [contacts.jacobian(body.robot, body.body, body.T) for body in items(contacts.bodies)]
        columns, blocks = [], []
        for both in items(contacts.sides):
            rows: dict[int, Array] = {}
            for k, C in both:
                rows_of_contact = C @ bodies[k]
                for column, entries in enumerate(rows_of_contact.T, starts[contacts.bodies[k].robot]):
                    if not all(map(is_zero_constant, entries)):
                        rows[column] = rows.get(column, 0.0) + entries
            columns.append(sorted(rows))
            blocks.append(np.array([rows[column] for column in columns[-1]]).reshape(-1, 3).T)
        return M, ContactJacobian(n, columns, blocks)

    def mobilities(self, problem: ContactProblem) -> Array:
        """Return the `mobility` of each contact, (m,), [1/kg]."""
        return np.array([mobility(problem.A[i][i]) for i in range(len(problem.A))])  # type: ignore[arg-type]

    def projected(
        self, problem: ContactProblem, target: Sequence[Any], p_bar: Array, u: Array, r: Array
    ) -> tuple[Array, list[Array]]:
        """Return the `projection` of all contacts: p(u), (m, 3), and -dp / du, (3, 3) each.

        Args:
            problem: The contacts. target: Normal velocities of closed contacts, (m,), [m/s].
            p_bar: Impulses from which the projections start, (m, 3), [N s], contact frames.
            u: Velocities, (m, 3), [m/s], contact frames. r: Steps of the projections, (m,), [1/kg].
        """
        projections = [projection(*numbers) for numbers in items(zip(p_bar, u, target, r, problem.mu, strict=True))]
        return np.array([p for p, _ in projections]), [slope for _, slope in projections]

    def linearized(
        self, problem: ContactProblem, target: Sequence[Any], p: Array, u: Array, r: Array, reduction: Any
    ) -> tuple[Array, Array]:
        """Return the `semismooth.linearization` of all contacts: changes of p, (m, 3), and -dp / du, (m, 3, 3).

        Args:
            problem: The contacts. target: Normal velocities of closed contacts, (m,), [m/s].
            p: Impulses, (m, 3), [N s], contact frames. u: Velocities, (m, 3), [m/s], contact frames.
            r: Steps of the projections, (m,), [1/kg]. reduction: Of their derivatives, relative to one.
        """
        reductions = [reduction] * len(p)
        numbers = zip(p, u, target, r, problem.mu, reductions, strict=True)
        pairs = [linearization(*own) for own in items(numbers)]
        moved, slopes = zip(*pairs, strict=True)
        return np.array(moved), np.array(slopes)

    def advanced(
        self, problem: ContactProblem, target: Sequence[Any], p: Array, slopes: Array, u: Array, du: Array, r: Array
    ) -> tuple[Array, Array, Array]:
        """Return the `semismooth.advanced` of all contacts: p, u and violations, (m, 3) each.

        Args:
            problem: The contacts. target: Normal velocities of closed contacts, (m,), [m/s].
            p: Impulses without the change du, (m, 3), [N s], contact frames. slopes: -dp / du, (m, 3, 3), [kg].
            u, du: Velocities and their change, (m, 3), [m/s], contact frames.
            r: Steps of the projections, (m,), [1/kg].
        """
        numbers = zip(p, slopes, u, du, target, r, problem.mu, strict=True)
        iterates = [advanced(*own) for own in items(numbers)]
        return tuple(np.array(part).reshape(-1, 3) for part in zip(*iterates, strict=True))  # type: ignore[return-value]

    def direction(self, M: Array, J: ContactJacobian, slopes: Sequence[Array], b: Array, shared: bool = False) -> Array:
        """Return the solution dv of (M + J^T diag(slopes) J) dv = b, (n,).

        Args:
            M: Inertia matrix, (n, n), mixed units. J: The Jacobian.
            slopes: Of the projections, (3, 3) each, [kg], contact frames. b: Generalized momentum, (n,), mixed units.
            shared: Whether several loops compute it, which then share its code.
        """
        arguments = tuple(map(tuple, J.columns)), M, b, *J.blocks, *slopes
        return call(solved_with_blocks, *arguments) if shared else solved_with_blocks(*arguments)

    def at_steps(self, error: Callable[[Any], Any]) -> Sequence[Any]:
        """Return the errors of `_line_search` after each of its steps."""
        return [error(x) for x in self.search.steps]

    def solution(self, problem: ContactProblem, target: Sequence[Any], p: Array) -> Solution:
        """Return impulses, spread over the contacts of each group, with their effect.

        Args:
            problem: The contacts. target: Normal velocities of closed contacts, (m,), [m/s].
            p: Impulses, (m, 3), [N s], contact frames.
        """
        return solution_of(problem, target, spread(problem, p))


class ProximalSystem(System[P], Protocol[P]):
    """The bodies of a contact problem for the proximal method."""

    @property
    def search(self) -> Search:
        """How the method searches."""
        ...

    def velocities(self, J: Any, v: Array) -> Array:
        """Return the velocities of the contacts, (m, 3), [m/s], contact frames; arguments as in `GeneralizedSystem`."""
        ...

    def projected(self, problem: P, target: Any, p_bar: Array, u: Array, r: Array) -> tuple[Array, Any]:
        """Return projected impulses, (m, 3), [N s], contact frames, and slopes; arguments as in `GeneralizedSystem`."""
        ...

    def at_steps(self, error: Callable[[Any], Any]) -> Any:
        """Return the errors of the line search after each of its steps; arguments as in `GeneralizedSystem`."""
        ...


def proximal_newton(
    problem: P,
    target: Any,
    system: ProximalSystem[P],
    start: S,
    iterations: int,
    tolerance: Any,
    goal: float,
    v: Array | None = None,
) -> S:
    """Return the solution with the smallest residual of at most `iterations` iterations, or the start.

    A start with a residual below the tolerance is returned without computation. Otherwise the iterations end at the
    goal, where rounding loses the residual (`is_lost`), or below the tolerance with the first one that does not reduce
    it. The goal may be smaller than the tolerance, since the last iterations converge fast and Gauss-Seidel continues
    from there in the next step. In single precision rounding may keep the residual above the tolerance for ever: there
    the iterations also end after several that hardly reduce it.

    Args:
        problem: The contacts. target: Normal velocities of closed contacts, (m,), [m/s].
        system: The bodies, with the methods of `GeneralizedSystem`.
        start: A first solution. iterations: Largest number of iterations.
        tolerance, goal: Residuals from which to iterate and at which to end, [m/s].
        v: Generalized velocity after the start, (n,), mixed units; None if unknown.
    """
    n, arrays, kind = sum(map(len, system.v_free)), start[:-1], type(start)
    bounds, shape = np.cumsum([0, n, start.p.size, *(x.size for x in arrays)]).tolist(), start.p.shape
    free = velocity_scale(problem, system, start.p)

    def parts(state: Array) -> tuple[Array, Array, S]:
        v, p_bar, *best = (state[first:last] for first, last in pairwise(bounds))
        best = [x.reshape(like.shape) for x, like in zip(best, arrays, strict=True)]
        return v, p_bar.reshape(shape), kind(*best, state[bounds[-1]])

    def step(state: Array) -> Array:
        v, p_bar, best = parts(state)
        residual, scale, fails, _ = state[bounds[-1] :]
        v, p_bar, solution, scale = _iterate(problem, target, system, v, p_bar, best, scale, goal)
        fails = where(solution.residual < _SMALLER * residual, 0.0, fails + 1.0)
        may_succeed = ~is_lost(1e-10 * residual, residual) | (fails < _FAILURES)
        continues = may_succeed & ((solution.residual < residual) | (solution.residual > tolerance))
        active = where((solution.residual > goal) & continues & ~is_lost(solution.residual, free), 1.0, 0.0)
        numbers = np.stack([solution.residual, scale, fails, active])
        return np.concatenate([v, *(x.reshape(-1) for x in (p_bar, *solution[:-1])), numbers])

    active = np.stack([where(start.residual > tolerance, 1.0, 0.0)])
    v = velocity_after(system, start.p, active) if v is None else v
    numbers = np.stack([start.residual, system.search.first, 0.0 * start.residual])
    state = np.concatenate([v, *(x.reshape(-1) for x in (start.p, *arrays)), numbers, active])
    return parts(repeat_while(step, state, iterations))[2]


def velocity_scale(problem: P, system: ProximalSystem[P], p: Array) -> Any:
    """Return the largest of the velocities that add up to those of the contacts, [m/s]; see `solver.is_lost`.

    They are the velocities without impulses and those of single impulses, which are large for light feet with several
    contacts, and cancel.

    Args:
        problem: The contacts. system: The bodies, with the methods of `GeneralizedSystem`.
        p: Impulses, (m, 3), [N s], contact frames, or of all rows of a `JointedSystem`.
    """
    r = system.mobilities(problem)
    moved = np.abs(p) * r.reshape(len(r), *[1] * (p.ndim - 1))
    return np.maximum(maximum_of(np.abs(problem.u_free)), maximum_of(moved))


def _iterate(
    problem: P, target: Any, system: ProximalSystem[P], v: Array, p_bar: Array, best: S, scale: Any, goal: float
) -> tuple[Array, Array, S, Any]:
    """Return v, p_bar, the best solution and the relative step of the projection after an iteration."""
    M, J = system.matrices()
    r = scale * system.mobilities(problem)
    momentum, u = system.momentum(M, J, v), system.velocities(J, v)
    p, slopes = system.projected(problem, target, p_bar, u, r)
    dv = system.direction(M, J, slopes, J.momentum(p) - momentum)
    du, change = J.velocities(dv), M @ dv

    def error(x: Any) -> Any:
        """Return how much momenta after steps x of any shape differ from those of the projected impulses."""
        projected, _ = system.projected(problem, target, p_bar, u + _outer(x, du), r)
        violation = momentum + _outer(x, change) - J.momentum(projected)
        return (weights * violation * violation).sum(axis=-1)

    weights = 1.0 / M.diagonal()
    step = _line_search(system.search.steps, system.at_steps(error))
    v, u = v + step * dv, u + step * du
    p, _ = system.projected(problem, target, p_bar, u, r)
    now = system.solution(problem, target, p)
    better = now.residual < best.residual
    solution = type(best)(*(where(better, a, b) for a, b in zip(now, best, strict=True)))
    moved = maximum_of(np.abs(now.p - p_bar) * r.reshape(len(r), *[1] * (p.ndim - 1)))
    solved = maximum_of(np.abs(now.u - u)) < np.maximum(0.1 * goal, 0.1 * moved)
    smaller, larger = np.maximum(_REDUCTION * scale, _LEAST_STEP), np.minimum(_RAISE * scale, system.search.largest)
    scale = where(solved, smaller, where(step < _SHORT, larger, scale))
    return v, where(solved, now.p, p_bar), solution, scale


def _outer(x: Any, change: Array) -> Array:
    """Return a change of any shape times each of some steps."""
    return x * change if isinstance(x, float) else x.reshape(*x.shape, *[1] * change.ndim) * change


def _line_search(steps: Sequence[float], errors: Sequence[Any]) -> Any:
    """Return the first of the steps with the least error."""
    step, least = steps[0], errors[0]
    for x, error in zip(steps[1:], errors[1:], strict=True):
        better = error < least
        step, least = where(better, x, step), where(better, error, least)
    return step


def mobility(A: Array) -> Any:
    """Return the mean mobility of a contact, [1/kg]; zero for a contact that nothing moves.

    Args:
        A: Its block of the Delassus operator, (3, 3), [1/kg], contact frame.
    """
    mean = (A[0, 0] + A[1, 1] + A[2, 2]) / 3.0
    return where(mean > MIN_MOBILITY, mean, 0.0)
