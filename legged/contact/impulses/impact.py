"""Impulses of one time step: the contact problem solved without and with restitution, over any element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from legged.compiler.ir import stage, where
from legged.contact.impulses.delassus import Contacts
from legged.contact.impulses.impulse_solver import SOLVER, ImpulseSolver
from legged.contact.impulses.joint_rows import JointedSolution, JointedSystem, JointRows
from legged.contact.impulses.newton import GeneralizedSystem
from legged.contact.impulses.solver import ContactProblem, Solution, velocities
from legged.contact.rigid import Rigid
from legged.spatial import Array

RECOVERY_FRACTION = 0.2
"""Fraction of a penetration that a step corrects, up to the speed `Rigid.recovery`."""
SLIGHT = 1e-9
"""Gap that counts as touching, [m]."""


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
    solver: ImpulseSolver = SOLVER,
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
        solver: Solves the contact problem.
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
            problem = problem._replace(u_free=velocities(problem, -guess))  # v_free contains the initial impulses
        present = None if rows is None else guess
        system = GeneralizedSystem(own, v_free, present) if ground.iterations else None
        target = [target_velocity(ground.recovery, d, h) for d in gap]
    if rows is not None and system is not None:
        jointed = JointedSystem(system._replace(contacts=contacts), rows)
        return _jointed_impact(ground, problem, system, jointed, target, before, vs, h, gap, solver)
    with stage("contact solver"):
        p, u, residual = solve_impulses(ground, problem, target, before, h, gap, guess, system, solver)
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
    solver: ImpulseSolver,
) -> Impact:
    """Return the impulses of contacts and joints, which are the rows of one problem.

    Args:
        ground: The contact law. problem: The contacts. system: The bodies, with the slopes of the rows of joints.
        jointed: The bodies without them, and the rows.
        target: Normal velocities without restitution, (m,), [m/s], contact frames.
        before: Contact velocities before the step, (m, 3), [m/s], contact frames.
        vs: Velocity of each robot before the step, (nv,), mixed units. h: The step, [s]. gap: As in `impact`.
        solver: As in `impact`.
    """
    now = np.concatenate([before.reshape(-1), vs[0][list(jointed.rows.entries)]])
    parts = ground, problem, system, jointed
    with stage("contact solver"):
        solution = solver.with_joints(*parts, target)
        bounced, any_bounces = restituted(ground, problem.restitution, target, before, h, gap)
        if any_bounces is not False:
            start = jointed.at(problem, bounced, solution.p, solution.v)
            second = solver.with_joints(*parts, bounced, start, any_bounces)
            solution = mixed(solution, second, now, solver)
    with stage("contact response"):
        p, joints = jointed.split(solution.p)
        work = 0.5 * (p * (before + jointed.split(solution.u)[0])).sum()
        v_next = np.split(solution.v, np.cumsum([len(own) for own in vs])[:-1])
        return Impact(p, v_next, solution.residual, work, jointed.generalized(joints))


def mixed(
    plastic: JointedSolution, second: JointedSolution, before: Array, solver: ImpulseSolver = SOLVER
) -> JointedSolution:
    """Return the solution with the largest fraction of restitution for which the impulses do no positive work.

    Args:
        plastic, second: Solutions without and with restitution.
        before: Velocities of all rows before the step, (3 m + n,), mixed units. solver: As in `impact`.
    """
    dp, du, dv = second.p - plastic.p, second.u - plastic.u, second.v - plastic.v
    rate = 0.5 * ((dp * (before + plastic.u)).sum() + (plastic.p * du).sum())
    fraction = solver.restitution_fraction(plastic.p, before + plastic.u, dp, du, rate)
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
    solver: ImpulseSolver = SOLVER,
) -> Solution:
    """Return the impulses of a step; see `with_restitution`.

    Args:
        ground: The contact law. problem: The contacts. target: Normal velocities without restitution, [m/s].
        before: Contact velocities before the step, (m, 3), [m/s], contact frames.
        h: The step, [s]. gap: As in `impact`. guess: As in `impact`. system: The bodies; None for Gauss-Seidel alone.
        solver: As in `impact`.
    """
    solve = partial(solver.contacts, ground, problem, system)
    return with_restitution(ground, problem, target, before, h, gap, guess, solve, solver)


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
    solver: ImpulseSolver = SOLVER,
) -> Solution:
    """Return the impulses of a step, with restitution after those without; the residual is the larger of both.

    Args:
        ground: The contact law. problem: The contacts.
        target: Normal velocities without restitution, (m,), [m/s].
        before: Contact velocities before the step, (m, 3), [m/s], contact frames.
        h: The step, [s]. gap: As in `impact`. guess: As in `impact`.
        solve: Function of targets, a guess, and whether a solution is needed at all (by default), that returns one.
        solver: As in `impact`.
    """
    plastic = solve(target, guess)
    bounced, any_bounces = restituted(ground, problem.restitution, target, before, h, gap)
    if any_bounces is False:
        return plastic
    second = solve(bounced, plastic.p, any_bounces)
    dp, du, u = second.p - plastic.p, second.u - plastic.u, plastic.u
    rate = (dp * (u + 0.5 * (before - problem.u_free))).sum()
    fraction = solver.restitution_fraction(plastic.p, before + u, dp, du, rate)
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
