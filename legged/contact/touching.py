"""Contact impulses of scenes with many pairs: matrices in blocks of the contacts that may close in a step.

The proximal Newton method of `newton` solves the same problem as in a kernel of the whole scene, after the convex
problems of `cone_newton` where it is far from the solution. Functions of one contact are kernels that are called with
all contacts at once; the unknowns are the velocities of the robots and bodies in contact. The work of a step grows with
the number of contacts that may close, and no code grows with the scene.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, cached_property
from typing import Any, TypeAlias

import numpy as np

from legged.compiler.runtime.batch_kernel import BatchKernel
from legged.contact.bodies import Bodies, contact_jacobian, contact_velocities
from legged.contact.impulses.blocks import BlockDiagonal, BlockJacobian
from legged.contact.impulses.cone_newton import STEPS_ALONG, cone_projection, convex_newton, least_step
from legged.contact.impulses.contact_pattern import equal_rows
from legged.contact.impulses.impact import Impact, target_velocity, with_restitution
from legged.contact.impulses.newton import BETWEEN_BODIES, CONVERGED, Search, mobility, projection, proximal_newton
from legged.contact.impulses.semismooth import linearization, semismooth_newton
from legged.contact.impulses.solver import Solution, gauss_seidel, natural_map, spread_group, updated_impulse
from legged.contact.pair_tables import Detected
from legged.contact.rigid import Rigid
from legged.spatial import Array

ATTEMPT = 12
"""Semismooth Newton iterations from the impulses of the last step, before convex problems give another start."""
NEAR = 1e-3
"""Residual at which convex problems give a start near the solution, [m/s]."""
CONVEX = 2
"""Largest number of Newton iterations for the convex problems, in multiples of `Rigid.iterations`."""
SWEEPS = 20
"""Largest number of sweeps of a Gauss-Seidel that gives a last start, in multiples of `Rigid.sweeps`."""


class TouchingSystem:
    """The contact problem of k contacts and the bodies, with the methods of `newton.GeneralizedSystem`.

    Attributes:
        mu, restitution: Coefficients of each contact, (k,).
        pattern: Where the blocks of their matrices are.
        v_free: Velocities without impulses of the robots that take part in contacts, one vector, mixed units.
        u_free: Velocities without impulses, (k, 3), [m/s], contact frames.
        search: How the proximal method searches.
    """

    search: Search = BETWEEN_BODIES

    def __init__(self, bodies: Bodies, detected: Detected, coefficients: Array):
        self._bodies, self._detected = bodies, detected
        self.mu, self.restitution = coefficients.T
        self.pattern = bodies.layout.pattern(detected.first, detected.second)
        self._J = contact_jacobian(bodies, detected, self.pattern)
        inertia = [(rows, np.array([bodies.inertia[k] for k in own])) for rows, own in self.pattern.inertia]
        self._M = BlockDiagonal(self.pattern.size, inertia)
        self._mobility = self._M.inverse()
        self._joined = bodies.v_free[self.pattern.velocities]
        self.v_free, self.u_free = [self._joined], self._J.velocities(self._joined)

    def before(self, v: Array) -> Array:
        """Return the velocities of the contacts, (k, 3), [m/s], contact frames.

        Args:
            v: Generalized velocities of all robots, (N,), mixed units.
        """
        return self._J.velocities(v[self.pattern.velocities])

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
        return self._joined + self._mobility @ self._J.momentum(p)

    def matrices(self) -> tuple[BlockDiagonal, BlockJacobian]:
        """Return the inertia matrix and the Jacobian."""
        return self._M, self._J

    @cached_property
    def diagonal(self) -> Array:
        """The blocks of the Delassus operator of each contact with itself, (k, 3, 3), [1/kg]."""
        return self._J.diagonal(self._mobility)

    @cached_property
    def _delassus(self) -> Array:
        J = self._J.dense
        return np.array([self._J.velocities(self._mobility @ row).ravel() for row in J])

    def swept(self, target: Array, start: Array, scales: Sequence[tuple[Any, Any]]) -> Array:
        """Return the impulses after a sweep, (k, 3), [N s]; see `solver.gauss_seidel`."""
        p = start.copy()
        flat, rows = p.reshape(-1), self._delassus.reshape(len(p), 3, -1)
        for i, (row, A) in enumerate(zip(rows, self.diagonal, strict=True)):
            u = row @ flat - A @ p[i] + self.u_free[i]
            p[i] = updated_impulse(A, u, p[i], target[i], self.mu[i], scales[i])
        return p

    def mobilities(self, problem: Any) -> Array:
        """Return the `newton.mobility` of each contact, (k,), [1/kg]."""
        return self._mobilities

    @cached_property
    def _mobilities(self) -> Array:
        return mobility(np.moveaxis(self.diagonal, 0, -1))

    def projected(self, problem: Any, target: Array, p_bar: Array, u: Array, r: Array) -> tuple[Array, Array]:
        """Return the `newton.projection` of all contacts: p(u), (k, 3), and -dp / du, (k, 3, 3).

        Args:
            problem: This system. target: Normal velocities of closed contacts, (k,), [m/s], contact frames.
            p_bar: Impulses from which the projections start, (k, 3), [N s], contact frames.
            u: Velocities, (..., k, 3), [m/s], contact frames. r: Steps of the projections, (k,), [1/kg].
        """
        return _projection()(p_bar, u, target, r, self.mu)

    def linearized(
        self, problem: Any, target: Array, p: Array, u: Array, r: Array, reduction: float
    ) -> tuple[Array, Array]:
        """Return the `semismooth.linearization` of all contacts: changes of p, (k, 3), and -dp / du, (k, 3, 3).

        Args:
            problem: This system. target: Normal velocities of closed contacts, (k,), [m/s], contact frames.
            p: Impulses, (k, 3), [N s], contact frames. u: Velocities, (k, 3), [m/s], contact frames.
            r: Steps of the projections, (k,), [1/kg]. reduction: Of their derivatives, relative to one.
        """
        return _linearization()(p, u, target, r, self.mu, reduction)

    def direction(self, M: BlockDiagonal, J: BlockJacobian, slopes: Array, b: Array) -> Array:
        """Return the solution dv of (M + J^T diag(slopes) J) dv = b, (n,).

        Args:
            M: Inertia matrix, (n, n), mixed units. J: The Jacobian.
            slopes: Of the projections, (k, 3, 3), [kg], contact frames. b: Generalized momentum, (n,), mixed units.
        """
        return J.newton_direction(M, slopes, b)

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

    def cone_projected(self, p_bar: Array, u: Array, target: Array, r: Array) -> tuple[Array, Array]:
        """Return the `cone_newton.cone_projection` of all contacts: p(u), (k, 3), and -dp / du, (k, 3, 3).

        Args:
            p_bar: Impulses from which the projections start, (k, 3), [N s], contact frames.
            u: Velocities, (..., k, 3), [m/s], contact frames. target: Normal velocities, (k,), [m/s], contact frames.
            r: Steps of the projections, (k,), [1/kg].
        """
        return _cone_projection()(p_bar, u, target, r, self.mu)

    def cone_line_search(
        self, p_bar: Array, target: Array, r: Array, velocities: tuple[Array, Array], rates: tuple[float, float]
    ) -> float:
        """Return the step at which the convex function of `cone_newton` is least, at most 1.

        Args:
            p_bar, target, r: As in `cone_projected`.
            velocities: Of the contacts, (k, 3), [m/s], contact frames, without a step, and their change by a whole
                step.
            rates: Derivative of the kinetic part by the step, without a step, and its change by a whole step, [J].
        """
        (u, du), x = velocities, np.array(STEPS_ALONG)
        p, _ = self.cone_projected(p_bar, u + x[:, None, None] * du, target, r)
        return least_step(rates[0] + x * rates[1] - (p * du).sum(axis=(1, 2)))

    def solution(self, problem: Any, target: Array, p: Array) -> Solution:
        """Return impulses, spread over the contacts of each group, with their effect.

        Args:
            problem: This system. target: Normal velocities of closed contacts, (k,), [m/s], contact frames.
            p: Impulses, (k, 3), [N s], contact frames.
        """
        p = self._spread(p)
        u = self._J.velocities(self.after(p))
        violations = _law()(u, self.diagonal, target, p, self.mu)
        return Solution(p, u, np.abs(violations).max(initial=0.0))

    def _spread(self, p: Array) -> Array:
        found = p.copy()
        for members in self._groups:
            found[members] = _spreading(members.shape[1])(p[members], self._places[members], self.mu[members])
        return found

    @cached_property
    def _places(self) -> Array:
        """Places of the points along t1, t2 and n from the origins of their first bodies, (k, 3), [m]."""
        d = self._detected.point - self._bodies.poses.origin[self._detected.first]
        return (np.roll(self._detected.frame, -1, axis=1) @ d[..., None])[..., 0]

    @cached_property
    def _groups(self) -> list[Array]:
        """Contacts between the same bodies with the same frame; see `contact_pattern.equal_rows`."""
        d, normals = self._detected, self._detected.frame[:, 0]
        groups = self.pattern.pairs_of_bodies
        if all((normals[members] == normals[members[:, :1]]).all() for members in groups):
            return groups
        return equal_rows(np.column_stack([d.first, d.second, normals]))


Solver: TypeAlias = Callable[[Rigid, TouchingSystem, Any, Array], Solution]
"""Function of the contact law, a system, targets and a guess that returns impulses; see `newton_solution`."""


def impulses(
    ground: Rigid,
    bodies: Bodies,
    detected: Detected,
    coefficients: Array,
    v: Array,
    h: float,
    guess: Array,
    reach: Array,
    solver: Solver | None = None,
) -> tuple[Array, Impact]:
    """Return the numbers of the contacts that may close in the step, (k,), and their impulses; see `impact.impact`.

    Candidates that are too far to close at twice the present speeds are left out, unless the resulting velocities
    close them.

    Args:
        ground: The contact law. bodies: The bodies. detected: Candidates of near pairs.
        coefficients: Friction and restitution of each, (m, 2), dimensionless.
        v: Generalized velocities before the step, (n,), mixed units.
        h: The step, [s]. guess: Initial impulses, (m, 3), [N s], contact frames.
        reach: Distance that each body may move in the step, (B,), [m]; see `Bodies.reach`.
        solver: The method; `newton_solution` by default.
    """
    taken = detected.gap <= reach[detected.first] + reach[detected.second]
    while True:  # ends, because every repetition takes further contacts
        rows = np.flatnonzero(taken)
        own = Detected(*(array[rows] for array in detected))
        impact = _impulses(ground, bodies, own, coefficients[rows], v, h, guess[rows], solver or newton_solution)
        (v_next,), left = impact.v_next, np.flatnonzero(~taken)
        reach = bodies.reach(h, v_next)
        left = left[detected.gap[left] <= reach[detected.first[left]] + reach[detected.second[left]]]
        if not len(left):
            break
        others = Detected(*(array[left] for array in detected))
        closing = contact_velocities(bodies, others, v_next)[:, 0] * h < -others.gap
        if not closing.any():
            break
        taken[left[closing]] = True
    return own.numbers, impact


def newton_solution(ground: Rigid, system: TouchingSystem, target: Any, guess: Array) -> Solution:
    """Return the solution of a contact problem by Newton's method, from several starts where it is needed.

    Args:
        ground: The contact law. system: The contacts and bodies.
        target: Normal velocities of closed contacts, (k,), [m/s], contact frames.
        guess: Initial impulses, (k, 3), [N s], contact frames.
    """
    goal = CONVERGED * ground.tolerance
    start = system.solution(system, target, guess)
    attempt = min(ATTEMPT, ground.iterations)
    found = semismooth_newton(system, target, system, start, attempt, goal, goal, ground.tolerance)
    if found.residual > NEAR:
        found = convex_newton(system, target, system, start, CONVEX * ground.iterations, NEAR)
    if found.residual > goal:
        found = proximal_newton(system, target, system, found, ground.iterations, goal, goal)
    if found.residual > ground.tolerance:
        swept = system.solution(system, target, gauss_seidel(system, target, guess, SWEEPS * ground.sweeps))
        better = proximal_newton(system, target, system, swept, ground.iterations, ground.tolerance, goal)
        found = better if better.residual < found.residual else found
    return found


def _impulses(
    ground: Rigid,
    bodies: Bodies,
    detected: Detected,
    coefficients: Array,
    v: Array,
    h: float,
    guess: Array,
    solver: Solver,
) -> Impact:
    """Return the impulses of the given contacts."""
    system = TouchingSystem(bodies, detected, coefficients) if len(detected.gap) else None
    if system is None or not system.pattern.size:  # without contacts of a body that moves
        return Impact(np.zeros((len(detected.gap), 3)), [bodies.v_free], 0.0, 0.0)

    def solve(target: Any, guess: Array, needed: Any = True) -> Solution:
        return solver(ground, system, np.asarray(target), guess)

    before = system.before(v)
    target = target_velocity(ground, detected.gap, h)
    p, u, residual = with_restitution(ground, system, target, before, h, detected.gap, guess, solve)
    v_next = bodies.v_free.copy()
    v_next[system.pattern.velocities] = system.after(p)
    return Impact(p, [v_next], residual, 0.5 * (p * (before + u)).sum())


@cache
def _projection() -> BatchKernel:
    return BatchKernel(projection, {"p_bar": (3,), "u": (3,), "target": (), "r": (), "mu": ()})


@cache
def _linearization() -> BatchKernel:
    return BatchKernel(linearization, {"p": (3,), "u": (3,), "target": (), "r": (), "mu": (), "reduction": ()})


@cache
def _cone_projection() -> BatchKernel:
    return BatchKernel(cone_projection, {"p_bar": (3,), "u": (3,), "target": (), "r": (), "mu": ()})


@cache
def _law() -> BatchKernel:
    def law(u: Array, A: Array, target: Any, p: Array, mu: Any) -> Array:
        return np.stack(natural_map(u, A, target, p, mu))

    return BatchKernel(law, {"u": (3,), "A": (3, 3), "target": (), "p": (3,), "mu": ()})


@cache
def _spreading(size: int) -> BatchKernel:
    return BatchKernel(spread_group, {"p": (size, 3), "at": (size, 3), "mu": (size,)})
