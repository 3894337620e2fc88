"""Contact impulses of scenes with many pairs: matrices in blocks of the contacts that may close in a step.

The semismooth and the proximal Newton method solve the same problem as in a kernel of the whole scene. Functions of one
contact are kernels that are called with all contacts at once; the unknowns are the velocities of the robots and bodies
in contact. The work of a step grows with the number of contacts that may close, and no code grows with the scene.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, TypeAlias

import numpy as np

from legged.compiler import BatchKernel, Rows
from legged.contact.bodies import Bodies, contact_velocities
from legged.contact.contact_tables import ContactTables
from legged.contact.impulses.blocks import BlockJacobian, BlockMatrix
from legged.contact.impulses.impact import with_restitution
from legged.contact.impulses.newton import BETWEEN_BODIES, CONVERGED, Search, proximal_newton
from legged.contact.impulses.semismooth import projection
from legged.contact.impulses.solver import Solution
from legged.contact.pair_tables import Detected
from legged.contact.recording import Recording
from legged.contact.rigid import Rigid
from legged.spatial import Array

SCALES = (1.0, 3.0, 10.0, 0.3, 0.1)
"""Steps of projections in the semismooth method, relative to the mobilities of contacts, which are tried in turn."""
MOST_TABLES = 16
"""Largest number of sets of contacts of the same near pairs whose index tables are kept."""


class TouchingSystem:
    """The contact problem of k contacts and the bodies in one step, with the methods of `newton.GeneralizedSystem`.

    Attributes:
        mu, restitution: Coefficients of each contact, (k,), dimensionless; restitution is () if all are zero.
        pattern: Positions of the blocks of the contacts in the matrices.
        before: Velocities of the contacts before the step, (k, 3), [m/s], contact frames.
        search: Parameters of the search of the proximal method.
    """

    search: Search = BETWEEN_BODIES

    def __init__(self, tables: ContactTables):
        self.mu, self.restitution, self.pattern, self._tables = tables.mu, tables.restitution, tables.pattern, tables
        tables.update()
        self.before, self._solved = tables.before, np.zeros(0)

    @property
    def v_free(self) -> list[Array]:
        """Generalized velocities without impulses of the robots in contact, one vector (n,), mixed units."""
        return [self._tables.bodies.padded[1][self.pattern.velocities]]

    @property
    def u_free(self) -> Array:
        """Velocities of the contacts without impulses, (k, 3), [m/s], contact frames."""
        return self._J.velocities(*self.v_free)

    def velocities(self, J: Any, v: Array) -> Array:
        """Return the velocities of the contacts, (k, 3), [m/s], contact frames.

        Args:
            J: The Jacobian. v: Generalized velocities, (n,), mixed units.
        """
        return J.velocities(v)

    def after(self, p: Array) -> Array:
        """Return the generalized velocities after impulses, (n,), mixed units.

        Args:
            p: Impulses, (k, 3), [N s], contact frames.
        """
        return self.v_free[0] + self.mobility @ self._J.momentum(p)

    def momentum(self, M: Array, J: Any, v: Array) -> Array:
        """Return the generalized momentum of the impulses after which the velocity is v, (n,), mixed units.

        Args:
            M: Inertia matrix, (n, n), mixed units. J: The Jacobian. v: Generalized velocities, (n,), mixed units.
        """
        return M @ (v - self.v_free[0])

    def write(self, solution: Solution) -> None:
        """Write a solution to the tables, and the velocities of all bodies after it, if `solution` has not done it.

        Args:
            solution: The solution.
        """
        tables = self._tables
        if solution.p is not self._solved:
            _, v_free, v_next = tables.bodies.padded
            v_next[:] = v_free
            v_next[self.pattern.velocities] = self.after(solution.p)
            tables.p[:], tables.u[:] = solution.p, solution.u
        tables.residual[...] = solution.residual

    def matrices(self) -> tuple[BlockMatrix, BlockJacobian]:
        """Return the inertia matrix and the Jacobian."""
        return self._M, self._J

    @cached_property
    def _J(self) -> BlockJacobian:
        return BlockJacobian(self.pattern, self._tables.blocks[self.pattern.rows])

    @cached_property
    def _M(self) -> BlockMatrix:
        return BlockMatrix(self.pattern, self._tables.bodies.inertia_blocks[self.pattern.inertia])

    @cached_property
    def mobility(self) -> BlockMatrix:
        """The inverse of the inertia matrix."""
        return BlockMatrix(self.pattern, self._tables.bodies.inverse_blocks[self.pattern.inertia])

    def mobilities(self, problem: TouchingSystem) -> Array:
        """Return the `newton.mobility` of each contact, (k,), [1/kg]."""
        return self._tables.mobility

    def projected(
        self, problem: TouchingSystem, target: Array, p_bar: Array, u: Array, r: Array
    ) -> tuple[Array, Array]:
        """Return the `semismooth.projection` of all contacts: p(u), (k, 3), and -dp / du, (k, 3, 3).

        Args:
            problem: This system. target: Normal velocities of closed contacts, (k,), [m/s], contact frames.
            p_bar: Impulses from which the projections start, (k, 3), [N s], contact frames.
            u: Velocities, (..., k, 3), [m/s], contact frames. r: Steps of the projections, (k,), [1/kg].
        """
        return self._tables.evaluated(_projection(), u.shape[:-1], p_bar, u, target, r, self.mu)

    def direction(self, M: BlockMatrix, J: BlockJacobian, slopes: Array, b: Array) -> Array:
        """Return the solution dv of (M + J^T diag(slopes) J) dv = b, (n,), mixed units.

        Args:
            M: Inertia matrix, (n, n), mixed units. J: The Jacobian.
            slopes: Of the projections, (k, 3, 3), [kg], contact frames. b: Generalized momentum, (n,), mixed units.
        """
        return self._tables.direction(slopes, b)

    def at_steps(self, error: Callable[[Array], Array]) -> Array:
        """Return the errors of the line search after each of its steps, (k,), [m/s], from one call for all.

        Args:
            error: Function of the steps, (k,), dimensionless.
        """
        return error(np.array(self.search.steps))

    def solution(self, problem: TouchingSystem, target: Array, p: Array) -> Solution:
        """Return impulses, spread over the contacts of each group, with their effect.

        Args:
            problem: This system. target: Normal velocities of closed contacts, (k,), [m/s], contact frames.
            p: Impulses, (k, 3), [N s], contact frames.
        """
        tables = self._tables
        tables.current_target[:] = target
        tables.solve(p)
        self._solved = tables.p.copy()
        return Solution(self._solved, tables.u.copy(), float(tables.residual))

    def semismooth(self, target: Array, start: Solution, goal: float, enough: float, scale: float) -> Solution:
        """Return the solution of `semismooth.semismooth_newton`, or the start if its residual is smaller.

        Args:
            target: Normal velocities of closed contacts, (k,), [m/s], contact frames.
            start: A solution. goal, enough: As there, [m/s].
            scale: Steps of the projections, relative to the mobilities of the contacts.
        """
        if start.p is not self._solved:
            self.solution(self, target, start.p)
        self._tables.improve(goal, enough, scale)
        solution = self.solution(self, target, self._tables.best)
        return solution if solution.residual <= start.residual else start


Solver: TypeAlias = Callable[[Rigid, TouchingSystem, Array, Array], Solution]
"""Function of the contact law, a system, targets and a guess that returns impulses; see `newton_solution`."""


@dataclass(frozen=True, eq=False)
class TakenContacts:
    """The contacts of the near pairs that take part in the contact problem.

    Attributes:
        tables: Their tables, with the impulses of the last step; None without a contact of a body that moves.
    """

    tables: ContactTables | None


class _Reach:
    """Which candidates may close in the step: those whose gap is less than the reach of their two bodies together.

    Attributes:
        reached: Largest `slack` of the candidates of each pair, or zero if none is positive, (number of pairs,), [m].
        slack: Reach of both bodies less the gap, (k,), [m].
        calls: Write both.
    """

    def __init__(self, detected: Detected, reach: Array):
        """Prepare the calls.

        Args:
            detected: Candidates. reach: Distance that a point of each body may move in the step, (B,), [m].
        """
        do, self.reached = Recording(), np.zeros(detected.pair[-1] + 1 if len(detected.pair) else 0)
        sides = [Rows(reach, side % len(reach)) for side in (detected.first, detected.second)]
        self.slack: Array = do.each(_slack(), len(detected.pair), detected.gap, *sides)
        do.maximum(self.slack, self.reached, detected.pair)
        self.calls = do.sequence()


class ContactSolver:
    """Solves the contact problem of every step, and keeps tables from step to step.

    Args:
        ground: The contact law. bodies: The bodies.
        coefficients: Friction and restitution of each candidate of the scene, (m, 2), dimensionless.
        forces: Contact forces of the last step, (m, 3), [N], contact frames.
        method: The method; `newton_solution` by default.
    """

    def __init__(self, ground: Rigid, bodies: Bodies, coefficients: Array, forces: Array, method: Solver | None = None):
        self._ground, self._bodies, self._coefficients, self._forces = ground, bodies, coefficients, forces
        self._method = method or newton_solution
        self._detected: Detected | None = None
        self._known = dict[bytes, TakenContacts]()

    def impulses(self, detected: Detected, h: float) -> TakenContacts:
        """Return the contacts that may close in the step with their impulses, after which bodies have `v_next`.

        Pairs without a candidate that can close at twice the present speeds are left out, unless the resulting
        velocities close one.

        Args:
            detected: Candidates of near pairs, in arrays that every step writes again. h: The step, [s].
        """
        bodies = self._bodies
        if self._detected is not detected:
            self._detected, self._known, self._reach = detected, {}, _Reach(detected, bodies.reach)
        reach = self._reach
        reach.calls()
        pairs = reach.reached > 0.0
        while True:  # ends, because every repetition takes further contacts
            taken = self._contacts(detected, pairs)
            self._solve(taken.tables, h)
            if pairs.all():
                break
            bodies.update_reach()
            reach.calls()
            left = np.flatnonzero((reach.slack > 0.0) & ~pairs[detected.pair])
            if not len(left):
                break
            others = Detected(*(array[left] for array in detected))
            closing = contact_velocities(bodies, others, bodies.v_next)[:, 0] * h < -others.gap
            if not closing.any():
                break
            pairs[others.pair[closing]] = True
        return taken

    def _contacts(self, detected: Detected, pairs: Array) -> TakenContacts:
        """Return the contacts of pairs, and keep them for later steps.

        Args:
            detected: The candidates. pairs: Whether each pair takes part, (number of pairs,).
        """
        key = pairs.tobytes()
        if key not in self._known:
            if len(self._known) == MOST_TABLES:
                self._known.pop(next(iter(self._known)))
            rows = np.flatnonzero(pairs[detected.pair])
            tables = None
            if len(rows):
                coefficients = self._coefficients[detected.numbers[rows]]
                tables = ContactTables(self._bodies, detected, rows, coefficients, self._ground, self._forces)
            tables = tables if tables and tables.pattern.size else None
            self._known[key] = TakenContacts(tables)
        return self._known[key]

    def _solve(self, tables: ContactTables | None, h: float) -> None:
        """Write the impulses of contacts, and the velocities after them."""
        ground, bodies = self._ground, self._bodies
        if tables is None:
            bodies.v_next[:] = bodies.v_free
            return
        system, gap = TouchingSystem(tables), tables.detected.gap[tables.rows]

        def solve(target: Any, guess: Array, needed: Any = True) -> Solution:
            return self._method(ground, system, np.asarray(target), guess)

        system.write(with_restitution(ground, system, tables.target, system.before, h, gap, tables.guess, solve))


@cache
def _slack() -> BatchKernel:
    return BatchKernel(lambda gap, one, other: one + other - gap, {"gap": (), "one": (), "other": ()})


def newton_solution(ground: Rigid, system: TouchingSystem, target: Array, guess: Array) -> Solution:
    """Return the solution of a contact problem by Newton's methods.

    Args:
        ground: The contact law. system: The contacts and bodies.
        target: Normal velocities of closed contacts, (k,), [m/s], contact frames.
        guess: Initial impulses, (k, 3), [N s], contact frames.
    """
    goal, enough = CONVERGED * ground.tolerance, ground.tolerance
    solution = system.solution(system, target, guess)
    for scale in SCALES:
        if solution.residual > (goal if scale == 1.0 else enough):
            solution = system.semismooth(target, solution, goal, enough, scale)
    if solution.residual > enough:
        solution = proximal_newton(system, target, system, solution, ground.iterations, enough, goal)
    return solution


@cache
def _projection() -> BatchKernel:
    return BatchKernel(projection, {"p_bar": (3,), "u": (3,), "target": (), "r": (), "mu": ()})
