"""Impulses of one time step: the contact problem solved without and with restitution, over any element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from legged.compiler.ir import stage, where
from legged.contact.impulses.delassus import Contacts
from legged.contact.impulses.newton import CONVERGED, GeneralizedSystem, proximal_newton
from legged.contact.impulses.semismooth import semismooth_newton
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
    velocities,
)
from legged.contact.impulses.sticking import is_direct, sticking_impulses
from legged.contact.rigid import Rigid
from legged.spatial import Array

RECOVERY_FRACTION = 0.2
"""Fraction of a penetration that a step corrects, up to the speed `Rigid.recovery`."""
SLIGHT = 1e-9
"""Gap that counts as touching, [m]."""
ACCEPTED = 1e-12
"""Residual of the impulses of the last step, [m/s], up to which they are those of a step."""
ATTEMPT = 12
"""Largest number of semismooth Newton iterations."""
_UNLIMITED = 1e100  # [m/s]
_TINY = 1e-200  # avoids 0 / 0 without restitution


class Impact(NamedTuple):
    """The impulses of one time step and their effect.

    Attributes:
        p: Impulses on the first sides, (m, 3), [N s], contact frames.
        v_next: Velocities of each robot after them, (nv,).
        residual: Violation of the contact law, [m/s]; see `natural_map_residual`.
        work: Work of the impulses over the step, [J]: p . u with the mean u of the velocities before and after it.
    """

    p: Array
    v_next: list[Array]
    residual: Any
    work: Any


def impact(
    ground: Rigid,
    contacts: Contacts,
    coefficients: Sequence[tuple[Any, Any]],
    vs: Sequence[Array],
    v_free: Sequence[Array],
    h: Any,
    gap: Array,
    guess: Array,
    applied: bool = False,
) -> Impact:
    """Return the impulses of a step of length h from vs, for which it ends without contacts at v_free.

    Args:
        ground: The contact law. contacts: The contacts.
        coefficients: Coefficients of friction and of restitution of each contact.
        vs: Velocity of each robot before the step, (nv,), mixed units.
        v_free: Velocity of each robot after the step without contacts, (nv,), mixed units.
        h: The step, [s]. gap: Distances of the contacts, (m,), [m], along the contact frames' normals.
        guess: Initial impulses, (m, 3), [N s], contact frames.
        applied: Whether v_free contains the effect of the initial impulses.
    """
    if not len(gap):
        return Impact(np.zeros((0, 3)), list(v_free), 0.0, 0.0)
    with stage("contact problem"):
        before, free = contacts.velocities(vs), contacts.velocities(v_free)
        blocks, groups = contacts.delassus()
        friction, restitution = zip(*coefficients, strict=True)
        problem = ContactProblem(blocks, free, friction, groups, contacts.places(), restitution, contacts.aligned())
        if applied:
            problem = problem._replace(u_free=velocities(problem, -guess))
        present = guess if applied else None
        system = GeneralizedSystem(contacts, v_free, present) if ground.iterations else None
        target = [target_velocity(ground.recovery, d, h) for d in gap]
    with stage("contact solver"):
        p, u, residual = solve_impulses(ground, problem, target, before, h, gap, guess, system)
    with stage("contact response"):
        work = 0.5 * (p * (before + u)).sum()
        return Impact(p, contacts.after(v_free, p - guess if applied else p), residual, work)


def solve_impulses(
    ground: Rigid,
    problem: ContactProblem,
    target: list[Any],
    before: Array,
    h: Any,
    gap: Array,
    guess: Array,
    system: GeneralizedSystem | None = None,
) -> Solution:
    """Return the impulses of a step; see `with_restitution`.

    Args:
        ground: The contact law. problem: The contacts. target: Normal velocities without restitution, [m/s].
        before: Contact velocities before the step, (m, 3), [m/s], contact frames.
        h: The step, [s]. gap: As in `impact`. guess: As in `impact`. system: The bodies; None for Gauss-Seidel alone.
    """
    solve = partial(_solved, ground, problem, system)
    return with_restitution(ground, problem, target, before, h, gap, guess, solve)


def with_restitution(
    ground: Rigid,
    problem: Any,
    target: Any,
    before: Array,
    h: Any,
    gap: Array,
    guess: Array,
    solve: Callable[..., Solution],
) -> Solution:
    """Return the impulses of a step, with restitution after those without; the residual is the larger of both.

    Args:
        ground: The contact law. problem: The contacts, with `restitution` and `u_free`.
        target: Normal velocities without restitution, (m,), [m/s].
        before: Contact velocities before the step, (m, 3), [m/s], contact frames.
        h: The step, [s]. gap: As in `impact`. guess: As in `impact`.
        solve: Function of targets, a guess, and whether a solution is needed at all (by default), that returns one.
    """
    plastic = solve(target, guess)
    if all(isinstance(e, float) and e == 0.0 for e in problem.restitution):
        return plastic
    bounced, any_bounces = [], np.bool_(False)
    for e, velocity, d, u in zip(problem.restitution, target, gap, -before[:, 0], strict=True):
        bounces = (d < h * u) & (u > ground.threshold)
        any_bounces = any_bounces | bounces
        bounced.append(where(bounces, np.maximum(e * u, velocity), velocity))
    if isinstance(any_bounces, np.bool_) and not any_bounces:
        return plastic
    restituted = solve(bounced, plastic.p, any_bounces)
    dp, du, u = restituted.p - plastic.p, restituted.u - plastic.u, plastic.u
    fraction = _restitution_fraction(plastic.p, before + u, dp, du, u + 0.5 * (before - problem.u_free))
    p, u = plastic.p + fraction * dp, u + fraction * du
    return Solution(p, u, np.maximum(plastic.residual, restituted.residual))


def _solved(
    ground: Rigid,
    problem: ContactProblem,
    system: GeneralizedSystem | None,
    target: list[Any],
    guess: Array,
    needed: Any = True,
) -> Solution:
    """Return the impulses by Gauss-Seidel, and by Newton's method where they violate the law.

    Where most contacts are with the terrain, they stick in most steps, see `sticking`. Otherwise sweeps converge in
    most steps, and the proximal method takes over in the others. Where most are between bodies, impulses of the last
    step that fulfil the law are kept. Otherwise the semismooth method begins there, and sweeps and the proximal method
    continue where it fails. Sweeps do not come first: each contact in turn takes as much of an indeterminate pressure
    as it can, which moves the pressure of a held object to a corner, about which the object turns.
    """
    if system is None or not system.bodies_touch:
        found = _swept(ground, problem, target, guess, needed)
    else:
        start = solution_of(problem, target, guess)
        accepted, attempt = where(needed, ACCEPTED, _UNLIMITED), min(ATTEMPT, ground.iterations)
        found = semismooth_newton(problem, target, system, start, attempt, accepted, ACCEPTED, ground.tolerance)
        fails = needed & (found.residual > ground.tolerance)
        swept = gauss_seidel(problem, target, found.p, ground.sweeps, fails)
        found = once(where(fails, 1.0, 0.0), partial(system.solution, problem, target), swept, found)
    if system is None:
        return found
    goal, free = CONVERGED * ground.tolerance, maximum_of(np.abs(problem.u_free))
    tolerance = where(is_lost(found.residual, free), _UNLIMITED, ground.tolerance)
    return proximal_newton(problem, target, system, found, ground.iterations, tolerance, goal)


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


def _restitution_fraction(p: Array, twice_mean: Array, dp: Array, du: Array, rate: Array) -> Any:
    """Return the largest fraction of restitution, 0 to 1, for which the impulses do no positive work.

    Over a step impulses p do the work p . (u_before + u) / 2. Without restitution they dissipate energy, while Newton's
    law of restitution with friction may add energy (Kane's paradox). All means of the two lie in the friction cones.

    Args:
        p, twice_mean: Impulses without restitution, and u_before + u.
        dp, du: Changes of impulses and velocities by restitution.
        rate: The work changes by fraction dp . rate + fraction^2 dp . du / 2.
    """
    dissipated = np.maximum(-0.5 * (p * twice_mean).sum(), 0.0)
    a, b = (dp * du).sum(), (dp * rate).sum()
    root = np.sqrt(b * b + 2.0 * a * dissipated)
    gains = b < 0.0  # two forms of the root, of which one subtracts nearly equal numbers
    fraction = where(gains, root - b, 2.0 * dissipated) / (where(gains, a, b + root) + _TINY)
    return where(b + 0.5 * a <= dissipated, 1.0, np.minimum(fraction, 1.0))


def target_velocity(recovery: Any, gap: Any, h: Any) -> Any:
    """Return the normal velocity that closes a gap within the step or corrects a penetration, [m/s].

    Gaps up to `SLIGHT` close like penetrations, so that the corners of a box that touches by rounding have consistent
    velocities.

    Args:
        recovery: Largest speed of the correction, [m/s], `Rigid.recovery`. gap: Distance along the normal, [m].
        h: The step, [s].
    """
    closing = -gap * (1.0 / h)  # one division for all contacts
    return where(gap > SLIGHT, closing, np.minimum(RECOVERY_FRACTION * closing, recovery))
