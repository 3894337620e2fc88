"""Solution of the contact problem of a step: the order of the methods, and the fraction of restitution."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from legged.compiler.ir import repeat_while, where
from legged.contact.impulses.joint_rows import STICKS_FIRST, JointedSolution, JointedSystem
from legged.contact.impulses.newton import CONVERGED, GeneralizedSystem, proximal_newton, velocity_scale
from legged.contact.impulses.semismooth import reduction, semismooth_newton
from legged.contact.impulses.solver import (
    LEAST_CHANGE,
    ContactProblem,
    Solution,
    gauss_seidel,
    is_lost,
    maximum_of,
    once,
    solution_of,
    spread,
)
from legged.contact.impulses.sticking import is_direct, sticking_impulses
from legged.contact.rigid import Rigid
from legged.spatial import Array

ACCEPTED = 1e-12
"""Residual of the impulses of the last step, [m/s], up to which they are those of a step."""
ATTEMPT = 12
"""Largest number of semismooth Newton iterations."""
_UNLIMITED = 1e100  # [m/s]
_TINY = 1e-200  # avoids 0 / 0 without restitution


class ImpulseSolver:
    """The solutions of the contact problem that a step asks for; `legged.differentiation` replaces them."""

    def contacts(
        self,
        ground: Rigid,
        problem: ContactProblem,
        system: GeneralizedSystem | None,
        target: list[Any],
        guess: Array,
        needed: Any = True,
    ) -> Solution:
        """Return the impulses of contacts for given targets.

        Args:
            ground: The contact law. problem: The contacts. system: The bodies; None for Gauss-Seidel alone.
            target: Normal velocities of closed contacts, (m,), [m/s]. guess: As in `impact`.
            needed: Whether a solution is needed at all.
        """
        return _solved(ground, problem, system, target, guess, needed)

    def with_joints(
        self,
        ground: Rigid,
        problem: ContactProblem,
        system: GeneralizedSystem,
        jointed: JointedSystem,
        target: list[Any],
        start: JointedSolution | None = None,
        needed: Any = np.True_,
    ) -> JointedSolution:
        """Return the impulses of contacts and joints for given targets.

        Args:
            ground: The contact law. problem: The contacts. system: The bodies, with the slopes of the rows of joints.
            jointed: The bodies without them, and the rows. target: Normal velocities of closed contacts, (m,), [m/s].
            start: A first solution; by default that of the contacts with the impulses that the joints assume.
            needed: Whether a solution is needed at all.
        """
        goal, friction = CONVERGED * ground.tolerance, jointed.rows.has_friction
        if start is None and friction:
            start = jointed.at(problem, target, jointed.present, np.concatenate(list(system.v_free)))
        elif start is None:
            alone = _first(ground, problem, system, target, jointed.split(jointed.present)[0])
            start = jointed.assumed(alone, system.after(alone.p))
        attempts = needed & ~is_lost(start.residual, velocity_scale(problem, jointed, start.p))
        first, last = (
            where(attempts, x, _UNLIMITED) for x in (goal if friction else ground.tolerance, ground.tolerance)
        )
        return _jointly(problem, target, jointed, start, ground.iterations, first, goal, last)

    def restitution_fraction(self, p: Array, twice_mean: Array, dp: Array, du: Array, rate: Any) -> Any:
        """Return the largest fraction of restitution, 0 to 1, for which the impulses do no positive work.

        Over a step impulses p do the work p . (u_before + u) / 2. Without restitution they dissipate energy, while
        Newton's law of restitution with friction may add energy (Kane's paradox). All means of the two lie in the
        friction cones.

        Args:
            p, twice_mean: Impulses without restitution, and u_before + u, (m, 3) or (k,), mixed units.
            dp, du: Changes of impulses and velocities by restitution, (m, 3) or (k,), mixed units.
            rate: The work changes by fraction rate + fraction^2 dp . du / 2, [J].
        """
        dissipated = np.maximum(-0.5 * (p * twice_mean).sum(), 0.0)
        a, b = (dp * du).sum(), rate
        root = np.sqrt(b * b + 2.0 * a * dissipated)
        gains = b < 0.0  # two forms of the root, of which one subtracts nearly equal numbers
        fraction = where(gains, root - b, 2.0 * dissipated) / (where(gains, a, b + root) + _TINY)
        return where(b + 0.5 * a <= dissipated, 1.0, np.minimum(fraction, 1.0))


SOLVER = ImpulseSolver()


def _solved(
    ground: Rigid,
    problem: ContactProblem,
    system: GeneralizedSystem | None,
    target: list[Any],
    guess: Array,
    needed: Any = True,
) -> Solution:
    """Return the impulses by the methods of `_first`, and by the proximal method where they violate the law."""
    solution = _first(ground, problem, system, target, guess, needed)
    if system is None:
        return solution
    goal, scale = CONVERGED * ground.tolerance, velocity_scale(problem, system, solution.p)
    tolerance = where(is_lost(solution.residual, scale), _UNLIMITED, ground.tolerance)
    return proximal_newton(problem, target, system, solution, ground.iterations, tolerance, goal)


def _first(
    ground: Rigid,
    problem: ContactProblem,
    system: GeneralizedSystem | None,
    target: list[Any],
    guess: Array,
    needed: Any = True,
) -> Solution:
    """Return the impulses with which the proximal method begins, and which fulfil the law in most steps.

    Where most contacts are with the terrain, they stick in most steps, see `sticking`, and sweeps converge in most of
    the others. Where most are between bodies, impulses of the last step that fulfil the law are kept. Otherwise the
    semismooth method begins there, and sweeps continue where it fails. Sweeps do not come first: each contact in turn
    takes as much of an indeterminate pressure as it can, which moves the pressure of a held object to a corner, about
    which the object turns.
    """
    if system is None or not system.bodies_touch:
        return _swept(ground, problem, target, guess, needed)
    start = solution_of(problem, target, guess)
    accepted, attempt = where(needed, ACCEPTED, _UNLIMITED), min(ATTEMPT, ground.iterations)
    solution = semismooth_newton(problem, target, system, start, attempt, accepted, ACCEPTED, ground.tolerance)
    fails = needed & (solution.residual > ground.tolerance)
    swept = gauss_seidel(problem, target, solution.p, ground.sweeps, fails)
    return once(where(fails, 1.0, 0.0), partial(system.solution, problem, target), swept, solution)


def _swept(ground: Rigid, problem: ContactProblem, target: list[Any], guess: Array, needed: Any) -> Solution:
    """Return the impulses of contacts that stick or have no impulse as in the guess, otherwise by Gauss-Seidel.

    A solution that is needed in some steps alone, that with restitution, is not that of contacts that stick.
    """

    def solution(p: Array) -> Solution:
        return solution_of(problem, target, spread(problem, p))

    if needed is not True or not is_direct(problem):
        return solution(gauss_seidel(problem, target, guess, ground.sweeps, needed))
    start = solution(sticking_impulses(problem, target, guess))
    rounds = is_lost(start.residual, maximum_of(np.abs(problem.u_free)))
    fails = ~((start.residual <= LEAST_CHANGE) | rounds)
    swept = gauss_seidel(problem, target, where(fails, guess, start.p), ground.sweeps, fails)
    return once(where(fails, 1.0, 0.0), solution, swept, start)


def _jointly(
    problem: ContactProblem,
    target: Sequence[Any],
    system: JointedSystem,
    start: JointedSolution,
    iterations: int,
    tolerance: Any,
    goal: float,
    enough: Any,
) -> JointedSolution:
    """Return the solution with the smallest residual of Newton's methods, or the start.

    The iteration is that of `semismooth.semismooth_newton`, which keeps the velocities after the impulses. The proximal
    method continues where it fails.

    Args:
        problem: The contacts. target: Normal velocities of closed contacts, (m,), [m/s].
        system: The bodies with the rows. start: A first solution. iterations: Largest number of proximal iterations.
        tolerance, goal: Residuals from which to iterate and at which to end, [m/s].
        enough: Residual above which the proximal method continues, [m/s].
    """
    if system.rows.has_friction:  # otherwise few steps need iterations, and their code would slow down all
        start = _attempt(problem, target, system, start, min(ATTEMPT, iterations), tolerance, goal)
    else:  # traced here, the operations that do not depend on the impulses are computed once, before the loop
        system.after(start.p)
    return proximal_newton(problem, target, system, start, iterations, enough, goal, start.v)


def _attempt(
    problem: ContactProblem,
    target: Sequence[Any],
    system: JointedSystem,
    start: JointedSolution,
    iterations: int,
    tolerance: Any,
    goal: float,
) -> JointedSolution:
    """Return the solution after semismooth iterations, or at the start if its residual is not larger."""
    n, rows = len(start.v), len(start.p)
    bounds = (0, n, n + rows, n + 2 * rows)
    factor = 1.0 if system.system.contacts.loops is None else STICKS_FIRST
    (M, J), r = system.matrices(), system.mobilities(problem, factor)

    def step(state: Array) -> Array:
        (v, p, u), residual = (state[a:b] for a, b in pairwise(bounds)), state[-2]
        moved, slopes = system.linearized(problem, target, p, u, r, reduction(residual))
        dv = system.direction(M, J, slopes, J.momentum(p + moved) - system.momentum(M, J, v))
        p, u, violations = system.advanced(problem, target, p + moved, slopes, u, J.velocities(dv), r)
        residual = maximum_of(violations)
        return np.concatenate([v + dv, p, u, np.stack([residual, where(residual > goal, 1.0, 0.0)])])

    begin = np.concatenate([start.v, start.p, start.u, np.stack([start.residual])])
    active = np.stack([where(start.residual > tolerance, 1.0, 0.0)])
    end = repeat_while(step, np.concatenate([begin, active]), min(ATTEMPT, iterations))[:-1]
    end = where(end[-1] < start.residual, end, begin)
    (v, p, u), residual = (end[a:b] for a, b in pairwise(bounds)), end[-1]
    contacts, joints = system.split(p)
    p = np.concatenate([spread(problem, contacts).reshape(-1), joints])
    return JointedSolution(p, u, v, residual)
