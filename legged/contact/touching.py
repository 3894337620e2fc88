"""Contact impulses of scenes with many pairs: matrices in blocks of the contacts that may close in a step.

The semismooth and the proximal Newton method solve the same problem as in a kernel of the whole scene. Functions of one
contact are kernels that are called with all contacts at once; the unknowns are the velocities of the robots and bodies
in contact. The work of a step grows with the number of contacts that may close, and no code grows with the scene.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property
from typing import Any, TypeAlias

import numpy as np

from legged.compiler.runtime.batch_kernel import BatchKernel
from legged.contact.bodies import Bodies, contact_velocities
from legged.contact.contact_tables import ContactTables
from legged.contact.impulses.blocks import BlockJacobian, BlockMatrix
from legged.contact.impulses.impact import Impact, with_restitution
from legged.contact.impulses.newton import BETWEEN_BODIES, CONVERGED, Search, proximal_newton
from legged.contact.impulses.semismooth import projection
from legged.contact.impulses.solver import Solution
from legged.contact.pair_tables import Detected
from legged.contact.rigid import Rigid
from legged.spatial import Array

SCALES = (1.0, 3.0, 10.0, 0.3, 0.1)
"""Steps of projections in the semismooth method, relative to the mobilities of contacts, which are tried in turn."""
MOST_TABLES = 16
"""Largest number of sets of contacts of the same near pairs whose index tables are kept."""


class TouchingSystem:
    """The contact problem of k contacts and the bodies in one step, with the methods of `newton.GeneralizedSystem`.

    Attributes:
        mu, restitution: Coefficients of each contact, (k,), dimensionless; no restitution if all are zero.
        pattern: Where the blocks of their matrices are.
        before: Velocities before the step, (k, 3), [m/s], contact frames.
        search: How the proximal method searches.
    """

    search: Search = BETWEEN_BODIES

    def __init__(self, tables: ContactTables):
        self.mu, self.restitution, self.pattern, self._tables = tables.mu, tables.restitution, tables.pattern, tables
        tables.update()
        self.before, self._solved = tables.before, np.zeros(0)

    @cached_property
    def v_free(self) -> list[Array]:
        """Velocities without impulses of the robots that take part in contacts, one vector (n,), mixed units."""
        return [self._tables.bodies.wide[1][self.pattern.velocities]]

    @cached_property
    def u_free(self) -> Array:
        """Velocities without impulses, (k, 3), [m/s], contact frames."""
        return self._J.velocities(*self.v_free)

    def velocities(self, v: Array) -> Array:
        """Return the velocities of the contacts, (k, 3), [m/s], contact frames.

        Args:
            v: Generalized velocities, (n,), mixed units.
        """
        return self._J.velocities(v)

    def after(self, p: Array) -> Array:
        """Return the generalized velocities after impulses, (n,).

        Args:
            p: Impulses, (k, 3), [N s], contact frames.
        """
        return self.v_free[0] + self.mobility @ self._J.momentum(p)

    def write_after(self, p: Array) -> None:
        """Write the velocities of all bodies after impulses, if `solution` has not done it.

        Args:
            p: Impulses, (k, 3), [N s], contact frames.
        """
        if p is not self._solved:
            _, v_free, v_next = self._tables.bodies.wide
            v_next[:] = v_free
            v_next[self.pattern.velocities] = self.after(p)

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

    def mobilities(self, problem: Any) -> Array:
        """Return the `newton.mobility` of each contact, (k,), [1/kg]."""
        return self._tables.mobility

    def projected(self, problem: Any, target: Array, p_bar: Array, u: Array, r: Array) -> tuple[Array, Array]:
        """Return the `semismooth.projection` of all contacts: p(u), (k, 3), and -dp / du, (k, 3, 3).

        Args:
            problem: This system. target: Normal velocities of closed contacts, (k,), [m/s], contact frames.
            p_bar: Impulses from which the projections start, (k, 3), [N s], contact frames.
            u: Velocities, (..., k, 3), [m/s], contact frames. r: Steps of the projections, (k,), [1/kg].
        """
        return self._tables.evaluated(_projection(), u.shape[:-1], p_bar, u, target, r, self.mu)

    def direction(self, M: BlockMatrix, J: BlockJacobian, slopes: Array, b: Array) -> Array:
        """Return the solution dv of (M + J^T diag(slopes) J) dv = b, (n,).

        Args:
            M: Inertia matrix, (n, n), mixed units. J: The Jacobian.
            slopes: Of the projections, (k, 3, 3), [kg], contact frames. b: Generalized momentum, (n,), mixed units.
        """
        return self._tables.direction(slopes, b)

    def line_search(
        self,
        problem: Any,
        target: Array,
        p_bar: Array,
        r: Array,
        J: BlockJacobian,
        velocities: tuple[Array, Array],
        momenta: tuple[Array, Array],
        weights: Array,
    ) -> float:
        """Return the step as `GeneralizedSystem.line_search` does, from one call for all steps.

        Args:
            problem: This system. target: Normal velocities of closed contacts, (k,), [m/s], contact frames.
            p_bar: Impulses from which the projections start, (k, 3), [N s], contact frames.
            r: Steps of the projections, (k,), [1/kg]. J: The Jacobian.
            velocities: Of the contacts, (k, 3), [m/s], contact frames, without a step, and their change by a
                whole step.
            momenta: Generalized momenta, (n,), mixed units, without a step, and their change.
            weights: Of their squares, (n,), mixed units.
        """
        x = np.array(self.search.steps)[:, None]
        p, _ = self.projected(problem, target, p_bar, velocities[0] + x[..., None] * velocities[1], r)
        violation = momenta[0] + x * momenta[1] - J.momentum(p)
        return self.search.steps[int(np.argmin((weights * violation * violation).sum(axis=1)))]

    def solution(self, problem: Any, target: Array, p: Array) -> Solution:
        """Return impulses, spread over the contacts of each group, with their effect.

        Args:
            problem: This system. target: Normal velocities of closed contacts, (k,), [m/s], contact frames.
            p: Impulses, (k, 3), [N s], contact frames.
        """
        tables = self._tables
        tables.aims[:] = target
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
        found = self.solution(self, target, self._tables.best)
        return found if found.residual < start.residual else start


Solver: TypeAlias = Callable[[Rigid, TouchingSystem, Any, Array], Solution]
"""Function of the contact law, a system, targets and a guess that returns impulses; see `newton_solution`."""


class ContactSolver:
    """Solves the contact problem of every step, and keeps tables from step to step.

    Args:
        ground: The contact law. bodies: The bodies.
        coefficients: Friction and restitution of each candidate of the scene, (m, 2), dimensionless.
        method: The method; `newton_solution` by default.
    """

    def __init__(self, ground: Rigid, bodies: Bodies, coefficients: Array, method: Solver | None = None):
        self._ground, self._bodies, self._coefficients = ground, bodies, coefficients
        self._method = method or newton_solution
        self._gap, self._known = np.zeros(0), dict[bytes, ContactTables | None]()

    def impulses(self, detected: Detected, h: float, forces: Array) -> tuple[ContactTables | None, Impact]:
        """Return the contacts that may close in the step and their impulses, after which bodies have `v_next`.

        Pairs without a candidate that can close at twice the present speeds are left out, unless the resulting
        velocities close one.

        Args:
            detected: Candidates of near pairs, in arrays that every step writes again.
            h: The step, [s]. forces: Those of the last step, (m, 3), [N], contact frames.

        Returns:
            The tables of the contacts, None without one, and the impulses; see `impact.impact`.
        """
        bodies, pairs = self._bodies, np.zeros(detected.pair[-1] + 1 if len(detected.pair) else 0, dtype=bool)
        pairs[detected.pair[self._reached(detected)]] = True
        while True:  # ends, because every repetition takes further contacts
            tables = self._contacts(detected, pairs)
            impact = self._impact(tables, h, forces)
            if pairs.all():
                break
            before = bodies.reach.copy()
            bodies.update_reach()
            if (bodies.reach <= before).all():
                break
            left = np.flatnonzero(self._reached(detected) & ~pairs[detected.pair])
            if not len(left):
                break
            others = Detected(*(array[left] for array in detected))
            closing = contact_velocities(bodies, others, bodies.v_next)[:, 0] * h < -others.gap
            if not closing.any():
                break
            pairs[others.pair[closing]] = True
        return tables, impact

    def _reached(self, detected: Detected) -> Array:
        """Return whether each candidate is within the reach of its bodies, (k,)."""
        reach = self._bodies.reach
        return detected.gap <= reach[detected.first] + reach[detected.second]

    def _contacts(self, detected: Detected, pairs: Array) -> ContactTables | None:
        """Return the tables of the contacts of pairs, and keep them; None if no body moves.

        Args:
            detected: The candidates. pairs: Whether each pair is taken, (number of pairs,).
        """
        if self._gap is not detected.gap:
            self._gap, self._known = detected.gap, {}
        key = pairs.tobytes()
        if key not in self._known:
            if len(self._known) == MOST_TABLES:
                self._known.pop(next(iter(self._known)))
            rows = np.flatnonzero(pairs[detected.pair])
            tables = None
            if len(rows):
                coefficients = self._coefficients[detected.numbers[rows]]
                tables = ContactTables(self._bodies, detected, rows, coefficients, self._ground)
            self._known[key] = tables if tables and tables.pattern.size else None
        return self._known[key]

    def _impact(self, tables: ContactTables | None, h: float, forces: Array) -> Impact:
        """Return the impulses of contacts, and write the velocities after them."""
        ground, bodies = self._ground, self._bodies
        if tables is None:
            bodies.v_next[:] = bodies.v_free
            return Impact(np.zeros((0, 3)), [bodies.v_next], 0.0, 0.0)
        system, gap = TouchingSystem(tables), tables.detected.gap[tables.rows]

        def solve(target: Any, guess: Array, needed: Any = True) -> Solution:
            return self._method(ground, system, np.asarray(target), guess)

        before, guess = system.before, h * forces[tables.numbers]
        p, u, residual = with_restitution(ground, system, tables.target, before, h, gap, guess, solve)
        system.write_after(p)
        return Impact(p, [bodies.v_next], residual, 0.5 * np.vdot(p, before + u))


def newton_solution(ground: Rigid, system: TouchingSystem, target: Any, guess: Array) -> Solution:
    """Return the solution of a contact problem by Newton's methods.

    Args:
        ground: The contact law. system: The contacts and bodies.
        target: Normal velocities of closed contacts, (k,), [m/s], contact frames.
        guess: Initial impulses, (k, 3), [N s], contact frames.
    """
    goal, enough = CONVERGED * ground.tolerance, ground.tolerance
    found = system.solution(system, target, guess)
    for scale in SCALES:
        if found.residual > (goal if scale == 1.0 else enough):
            found = system.semismooth(target, found, goal, enough, scale)
    if found.residual > enough:
        found = proximal_newton(system, target, system, found, ground.iterations, enough, goal)
    return found


@cache
def _projection() -> BatchKernel:
    return BatchKernel(projection, {"p_bar": (3,), "u": (3,), "target": (), "r": (), "mu": ()})
