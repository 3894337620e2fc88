"""Impulses of one time step: the contact problem solved without and with restitution, over any element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from legged.compiler.ir import where
from legged.compiler.ir.annotations import stage
from legged.contact.delassus import Contacts
from legged.contact.rigid import Rigid
from legged.contact.solver import ContactProblem, Iterate, gauss_seidel, natural_map_residual, velocities
from legged.spatial import Array

RECOVERY_FRACTION = 0.2
"""Fraction of a penetration that a step corrects, up to the speed `Rigid.recovery`."""
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
    ground: Rigid, contacts: Contacts, vs: Sequence[Array], v_free: Sequence[Array], h: Any, gap: Array, guess: Array
) -> Impact:
    """Return the impulses of a step of length h from vs, for which it ends without contacts at v_free.

    Args:
        ground: The contact law. contacts: The contacts.
        vs: Velocity of each robot before the step, (nv,), mixed units.
        v_free: Velocity of each robot after the step without contacts, (nv,), mixed units.
        h: The step, [s]. gap: Distances of the contacts, (m,), [m], along the contact frames' normals.
        guess: Initial impulses, (m, 3), [N s], contact frames.
    """
    if not len(gap):
        return Impact(np.zeros((0, 3)), list(v_free), 0.0, 0.0)
    with stage("contact problem"):
        before, free = contacts.velocities(vs), contacts.velocities(v_free)
        blocks, groups = contacts.delassus()
        problem = ContactProblem(blocks, free, ground.friction, groups)
        target = [_target_velocity(ground, d, h) for d in gap]
    with stage("contact solver"):
        p, u, target = solve_impulses(ground, problem, target, before, h, gap, guess)
    with stage("contact response"):
        work = 0.5 * (p * (before + u)).sum()
        return Impact(p, contacts.after(v_free, p), natural_map_residual(problem, target, p, u), work)


def solve_impulses(
    ground: Rigid, problem: ContactProblem, target: list[Any], before: Array, h: Any, gap: Array, guess: Array
) -> tuple[Array, Array, list[Any]]:
    """Return (impulses (m, 3), contact velocities with them (m, 3), target velocities with restitution).

    A third of the sweeps solves the problem without restitution; the others continue from there with restitution.

    Args:
        ground: The contact law. problem: The contacts. target: Normal velocities without restitution, [m/s].
        before: Contact velocities before the step, (m, 3), [m/s], contact frames.
        h: The step, [s]. gap: As in `impact`. guess: As in `impact`.
    """
    iterate = Iterate.initial(guess)
    if isinstance(ground.restitution, float) and ground.restitution == 0.0:
        p = gauss_seidel(problem, target, iterate, ground.sweeps).p
        return p, velocities(problem, p), target
    first = max(1, ground.sweeps // 3)
    plastic = gauss_seidel(problem, target, iterate, first)
    bounced = []
    for velocity, d, u in zip(target, gap, -before[:, 0], strict=True):
        bounces = (d < h * u) & (u > ground.threshold)
        bounced.append(where(bounces, np.maximum(ground.restitution * u, velocity), velocity))
    restituted = gauss_seidel(problem, bounced, plastic, max(1, ground.sweeps - first), first)
    u, dp = velocities(problem, plastic.p), restituted.p - plastic.p
    du = velocities(problem, restituted.p) - u
    fraction = _restitution_fraction(plastic.p, before + u, dp, du, u + 0.5 * (before - problem.u_free))
    return plastic.p + fraction * dp, u + fraction * du, bounced


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
    return where(b + 0.5 * a <= dissipated, 1.0, 2.0 * dissipated / (b + root + _TINY))


def _target_velocity(ground: Rigid, gap: Any, h: Any) -> Any:
    """Return the normal velocity that closes a gap within the step or corrects a penetration, [m/s]."""
    return where(gap > 0.0, -gap / h, np.minimum(-RECOVERY_FRACTION * gap / h, ground.recovery))
