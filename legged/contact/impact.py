"""One step's impulses: the problem of all contacts, solved for impact and for rest, over any element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from legged.compiler.ir import where
from legged.compiler.ir.annotations import stage
from legged.contact.contacts import Contacts
from legged.contact.rigid import Rigid
from legged.contact.solver import Course, Problem, missed, swept, velocities
from legged.spatial import Array

RECOVERED = 0.2
"""Share of an overlap that a step makes good, up to the speed `Rigid.recovery`."""
_TINY = 1e-200  # keeps 0 / 0 away where nothing is shared


class Impact(NamedTuple):
    """What the contacts of a scene do in one step.

    Attributes:
        p: Impulses on the first sides, (m, 3), [N s], contact frames.
        v_next: Velocities of each robot after them, (nv,).
        residual: By how much the law is broken, [m/s]; see `legged.contact.solver.residual`.
        work: What the impulses do over the step, [J]: p . u, u the mean of the velocities before and after it.
    """

    p: Array
    v_next: list[Array]
    residual: Any
    work: Any


def impact(
    ground: Rigid, contacts: Contacts, vs: Sequence[Array], v_free: Sequence[Array], h: Any, gap: Array, guess: Array
) -> Impact:
    """Return the impulses with which a step of length h from vs, without contacts to v_free, ends lawfully.

    Args:
        ground: The law. contacts: Where and on whom.
        vs, v_free: Velocities of each robot before the step and after it without contacts, (nv,).
        h: The step, [s]. gap: Distances of the contacts, (m,), [m].
        guess: Impulses to start from, (m, 3), [N s].
    """
    if not len(gap):
        return Impact(np.zeros((0, 3)), list(v_free), 0.0, 0.0)
    with stage("contact problem"):
        before, free = contacts.velocities(vs), contacts.velocities(v_free)
        near, groups = contacts.inertia()
        problem = Problem(near, free, ground.friction, groups)
        rest = [_resting(ground, d, h) for d in gap]
    with stage("contact solver"):
        p, u, target = _solved(ground, problem, rest, before, h, gap, guess)
    with stage("contact response"):
        work = 0.5 * (p * (before + u)).sum()
        return Impact(p, contacts.after(v_free, p), missed(problem, target, p, u), work)


def _solved(
    ground: Rigid, problem: Problem, rest: list[Any], before: Array, h: Any, gap: Array, guess: Array
) -> tuple[Array, Array, list[Any]]:
    """Return (impulses, the contacts' velocities with them (m, 3), the normal velocities that they aim at).

    A third of the sweeps goes to the problem without restitution; with it the others go on from there.
    """
    course = Course.at(guess)
    if isinstance(ground.restitution, float) and ground.restitution == 0.0:
        p = swept(problem, rest, course, ground.sweeps).p
        return p, velocities(problem, p), rest
    first = max(1, ground.sweeps // 3)
    soft = swept(problem, rest, course, first)
    target = []
    for velocity, d, u in zip(rest, gap, -before[:, 0], strict=True):
        bounces = (d < h * u) & (u > ground.threshold)
        target.append(where(bounces, np.maximum(ground.restitution * u, velocity), velocity))
    hard = swept(problem, target, soft, max(1, ground.sweeps - first), first)
    u, more = velocities(problem, soft.p), hard.p - soft.p
    du = velocities(problem, hard.p) - u
    share = _share(soft.p, before + u, more, du, u + 0.5 * (before - problem.u_free))
    return soft.p + share * more, u + share * du, target


def _share(p: Array, twice_mean: Array, more: Array, du: Array, rate: Array) -> Any:
    """Return how far to go from the impulses without restitution to those with it, 0 to 1, so that no energy comes.

    Over a step impulses p do the work p . (u_before + u) / 2. Without restitution they take energy, while Newton's law
    of restitution with friction may bring some (Kane's paradox). Between the two every mean obeys the cones.

    Args:
        p, twice_mean: Impulses without restitution, and u_before + u.
        more, du: What restitution adds to impulses and velocities.
        rate: The work changes by share more . rate + share^2 more . du / 2.
    """
    spare = np.maximum(-0.5 * (p * twice_mean).sum(), 0.0)
    a, b = (more * du).sum(), (more * rate).sum()
    root = np.sqrt(b * b + 2.0 * a * spare)
    return where(b + 0.5 * a <= spare, 1.0, 2.0 * spare / (b + root + _TINY))


def _resting(ground: Rigid, gap: Any, h: Any) -> Any:
    """Return the normal velocity at which a contact neither sinks in nor bounces, [m/s]."""
    return where(gap > 0.0, -gap / h, np.minimum(-RECOVERED * gap / h, ground.recovery))
