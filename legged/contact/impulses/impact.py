"""Impulses of one time step: the contact problem solved without and with restitution, over any element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np

from legged.compiler.ir import repeat_while, stage, where
from legged.contact.impulses.delassus import Contacts
from legged.contact.impulses.joint_rows import STICKS_FIRST, JointedSolution, JointedSystem, JointRows
from legged.contact.impulses.newton import CONVERGED, GeneralizedSystem, proximal_newton
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
    velocities,
    velocity_after,
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
        joints: Impulses of the stops and the dry friction of the first robot, (nv,), mixed units; None without them.
    """

    p: Array
    v_next: list[Array]
    residual: Any
    work: Any
    joints: Array | None = None


def impact(
    ground: Rigid,
    contacts: Contacts,
    coefficients: Sequence[tuple[Any, Any]],
    vs: Sequence[Array],
    v_free: Sequence[Array],
    h: Any,
    gap: Array,
    guess: Array,
    rows: JointRows | None = None,
) -> Impact:
    """Return the impulses of a step of length h from vs, for which it ends without contacts at v_free.

    Args:
        ground: The contact law. contacts: The contacts.
        coefficients: Coefficients of friction and of restitution of each contact.
        vs: Velocity of each robot before the step, (nv,), mixed units.
        v_free: Velocity of each robot after the step without contacts, (nv,), mixed units.
        h: The step, [s]. gap: Distances of the contacts, (m,), [m], along the contact frames' normals.
        guess: Initial impulses, (m, 3), [N s], contact frames.
        rows: Stops and dry friction of the joints of the first robot; v_free then contains the effect of the initial
            impulses and of the law that the rows assume. None for none.
    """
    if not len(gap):
        return Impact(np.zeros((0, 3)), list(v_free), 0.0, 0.0)
    with stage("contact problem"):
        own = contacts if rows is None else contacts.with_inertia(rows.generalized(rows.slope, len(vs[0])))
        before, free = own.velocities(vs), own.velocities(v_free)
        blocks, groups = own.delassus()
        friction, restitution = zip(*coefficients, strict=True)
        problem = ContactProblem(blocks, free, friction, groups, own.places(), restitution, own.aligned())
        if rows is not None:
            problem = problem._replace(u_free=velocities(problem, -guess))
        present = None if rows is None else guess
        system = GeneralizedSystem(own, v_free, present) if ground.iterations else None
        target = [target_velocity(ground.recovery, d, h) for d in gap]
    if rows is not None and system is not None:
        jointed = JointedSystem(system._replace(contacts=contacts), rows)
        return _jointed_impact(ground, problem, system, jointed, target, before, vs, h, gap)
    with stage("contact solver"):
        p, u, residual = solve_impulses(ground, problem, target, before, h, gap, guess, system)
    with stage("contact response"):
        work = 0.5 * (p * (before + u)).sum()
        return Impact(p, own.after(v_free, p if rows is None else p - guess), residual, work)


def _jointed_impact(
    ground: Rigid,
    problem: ContactProblem,
    system: GeneralizedSystem,
    jointed: JointedSystem,
    target: list[Any],
    before: Array,
    vs: Sequence[Array],
    h: Any,
    gap: Array,
) -> Impact:
    """Return the impulses of contacts and joints, which are the rows of one problem.

    Args:
        ground: The contact law. problem: The contacts. system: The bodies, with the slopes of the rows of joints.
        jointed: The bodies without them, and the rows.
        target: Normal velocities without restitution, (m,), [m/s], contact frames.
        before: Contact velocities before the step, (m, 3), [m/s], contact frames.
        vs: Velocity of each robot before the step, (nv,), mixed units. h: The step, [s]. gap: As in `impact`.
    """
    goal, free = CONVERGED * ground.tolerance, maximum_of(np.abs(problem.u_free))
    friction, now = jointed.rows.has_friction, np.concatenate([before.reshape(-1), vs[0][list(jointed.rows.entries)]])

    def solve(target: Any, start: JointedSolution, needed: Any = np.True_) -> JointedSolution:
        attempts = needed & ~is_lost(start.residual, free)
        first, last = (
            where(attempts, x, _UNLIMITED) for x in (goal if friction else ground.tolerance, ground.tolerance)
        )
        return _jointly(problem, target, jointed, start, ground.iterations, first, goal, last)

    with stage("contact solver"):
        guess = jointed.split(jointed.present)[0]
        if friction:
            start = jointed.at(problem, target, jointed.present, np.concatenate(list(system.v_free)))
        else:
            alone = _solved(ground, problem, system, target, guess)
            start = jointed.assumed(alone, system.after(alone.p))
        found = solve(target, start)
        bounced, any_bounces = restituted(ground, problem.restitution, target, before, h, gap)
        if any_bounces is not False:
            second = solve(bounced, jointed.at(problem, bounced, found.p, found.v), any_bounces)
            found = mixed(found, second, now)
    with stage("contact response"):
        p, joints = jointed.split(found.p)
        work = 0.5 * (p * (before + jointed.split(found.u)[0])).sum()
        v_next = np.split(found.v, np.cumsum([len(own) for own in vs])[:-1])
        return Impact(p, v_next, found.residual, work, jointed.generalized(joints))


def mixed(plastic: JointedSolution, second: JointedSolution, before: Array) -> JointedSolution:
    """Return the solution with the largest fraction of restitution for which the impulses do no positive work.

    Args:
        plastic, second: Solutions without and with restitution.
        before: Velocities of all rows before the step, (3 m + n,), mixed units.
    """
    dp, du, dv = second.p - plastic.p, second.u - plastic.u, second.v - plastic.v
    rate = 0.5 * ((dp * (before + plastic.u)).sum() + (plastic.p * du).sum())
    fraction = _restitution_fraction(plastic.p, before + plastic.u, dp, du, rate)
    residual = np.maximum(plastic.residual, second.residual)
    p, u, v = plastic.p + fraction * dp, plastic.u + fraction * du, plastic.v + fraction * dv
    return JointedSolution(p, u, v, residual)


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


class _Restituted(Protocol):
    """A contact problem with attributes as of `ContactProblem`."""

    @property
    def restitution(self) -> Sequence[Any]: ...

    @property
    def u_free(self) -> Array: ...


def with_restitution(
    ground: Rigid,
    problem: _Restituted,
    target: Any,
    before: Array,
    h: Any,
    gap: Array,
    guess: Array,
    solve: Callable[..., Solution],
) -> Solution:
    """Return the impulses of a step, with restitution after those without; the residual is the larger of both.

    Args:
        ground: The contact law. problem: The contacts.
        target: Normal velocities without restitution, (m,), [m/s].
        before: Contact velocities before the step, (m, 3), [m/s], contact frames.
        h: The step, [s]. gap: As in `impact`. guess: As in `impact`.
        solve: Function of targets, a guess, and whether a solution is needed at all (by default), that returns one.
    """
    plastic = solve(target, guess)
    bounced, any_bounces = restituted(ground, problem.restitution, target, before, h, gap)
    if any_bounces is False:
        return plastic
    second = solve(bounced, plastic.p, any_bounces)
    dp, du, u = second.p - plastic.p, second.u - plastic.u, plastic.u
    rate = (dp * (u + 0.5 * (before - problem.u_free))).sum()
    fraction = _restitution_fraction(plastic.p, before + u, dp, du, rate)
    p, u = plastic.p + fraction * dp, u + fraction * du
    return Solution(p, u, np.maximum(plastic.residual, second.residual))


def restituted(
    ground: Rigid, restitution: Sequence[Any], target: Any, before: Array, h: Any, gap: Array
) -> tuple[list[Any], Any]:
    """Return the normal velocities of closed contacts with restitution, (m,), [m/s], and whether one is another.

    Args:
        ground: The contact law. restitution: Coefficient of each contact, (m,). target: Without restitution, [m/s].
        before: Contact velocities before the step, (m, 3), [m/s], contact frames. h: The step, [s].
        gap: As in `impact`.
    """
    if all(isinstance(e, float) and e == 0.0 for e in restitution):
        return list(target), False
    bounced, any_bounces = [], np.bool_(False)
    for e, velocity, d, u in zip(restitution, target, gap, -before[:, 0], strict=True):
        bounces = (d < h * u) & (u > ground.threshold)
        any_bounces = any_bounces | bounces
        bounced.append(where(bounces, np.maximum(e * u, velocity), velocity))
    return bounced, False if isinstance(any_bounces, np.bool_) and not any_bounces else any_bounces


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


def _restitution_fraction(p: Array, twice_mean: Array, dp: Array, du: Array, rate: Any) -> Any:
    """Return the largest fraction of restitution, 0 to 1, for which the impulses do no positive work.

    Over a step impulses p do the work p . (u_before + u) / 2. Without restitution they dissipate energy, while Newton's
    law of restitution with friction may add energy (Kane's paradox). All means of the two lie in the friction cones.

    Args:
        p, twice_mean: Impulses without restitution, and u_before + u.
        dp, du: Changes of impulses and velocities by restitution.
        rate: The work changes by fraction rate + fraction^2 dp . du / 2, [J].
    """
    dissipated = np.maximum(-0.5 * (p * twice_mean).sum(), 0.0)
    a, b = (dp * du).sum(), rate
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
    p, u, v, residual = start
    if system.rows.has_friction:  # otherwise few steps need iterations, and their code would slow down all
        p, u, v, residual = _attempt(problem, target, system, start, min(ATTEMPT, iterations), tolerance, goal)
    found = proximal_newton(problem, target, system, Solution(p, u, residual), iterations, enough, goal)
    fails = np.stack([where(residual > enough, 1.0, 0.0)])
    return JointedSolution(found.p, found.u, velocity_after(system, found.p, fails, v), found.residual)


def _attempt(
    problem: ContactProblem,
    target: Sequence[Any],
    system: JointedSystem,
    start: JointedSolution,
    iterations: int,
    tolerance: Any,
    goal: float,
) -> tuple[Array, Array, Array, Any]:
    """Return p, u, v and residual after semismooth iterations, or at the start if its residual is not larger."""
    n, rows = len(start.v), len(start.p)
    bounds = (0, n, n + rows, n + 2 * rows)
    factor = 1.0 if system.system.contacts.loops is None else STICKS_FIRST

    def step(state: Array) -> Array:
        (v, p, u), residual = (state[a:b] for a, b in pairwise(bounds)), state[-2]
        (M, J), r = system.matrices(), system.mobilities(problem, factor)
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
    return p, u, v, residual
