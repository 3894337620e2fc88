"""Impulses at contacts: Coulomb's law and complementarity by projected Gauss-Seidel, over any element.

Velocities of contacts in their frames are u = A p + u_free, impulses p = [p_n, p_t1, p_t2]. At the fixed point

    0 <= p_n  _|_  u_n - target >= 0,      |p_t| <= mu p_n,  and where it slides p_t = -mu p_n u_t / |u_t|.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from legged.compiler.ir import where
from legged.compiler.ir.annotations import item
from legged.contact.groups import Blocks, Groups
from legged.spatial import Array, sum_of

REACH = 2.0  # of changes, at most, by which a sweep starts farther on
IMMOVABLE = 1e-9  # [1/kg]: what follows an impulse by less does not follow
_TINY = 1e-300  # keeps 0 / 0 away where an impulse vanishes anyway


class Problem(NamedTuple):
    """Contacts at one moment.

    Attributes:
        A: Contact-space inertia's inverse, m rows of (3, 3) blocks, [1/kg]; None where contacts cannot feel each other,
            or feel each other through `groups`.
        u_free: Velocities without impulses, (m, 3), [m/s], contact frames.
        mu: Coefficient of friction.
        groups: Of contacts, and what they feel of each other.
    """

    A: Blocks
    u_free: Array
    mu: Any
    groups: Groups = Groups((), (), [])

    @property
    def members(self) -> Sequence[Sequence[int]]:
        """Contacts in the order in which they are updated, group by group."""
        return self.groups.members or [range(len(self.A))]


def velocities(problem: Problem, p: Array) -> Array:
    """Return u = A p + u_free, (m, 3), [m/s]."""
    found: list[Any] = [None] * len(problem.A)
    w = problem.groups.wrenches(p)
    for group in problem.members:
        for i, u in zip(group, problem.groups.moved(group, problem.u_free, w), strict=True):
            found[i] = _velocity(problem, u, p, group, i)
    return np.array(found).reshape(-1, 3)


class Course(NamedTuple):
    """How far a solution is, each (m, 3), [N s].

    Attributes:
        p: Impulses after the last sweep; they obey the cones.
        change: By how much that sweep changed them; None before the first.
        start: Where the next sweep begins.
    """

    p: Array
    change: Array | None
    start: Array

    @classmethod
    def at(cls, guess: Array) -> Course:
        """Return the course before the first sweep."""
        return cls(guess, None, guess)


def swept(problem: Problem, target: Sequence[Any], course: Course, sweeps: int, before: int = 0) -> Course:
    """Return the course after more sweeps over all contacts.

    A contact first takes the normal impulse that brings it to its target, or none if it would have to pull; then a
    tangential step against its sliding, cut to the disc mu p_n. Between sweeps, see `_mixed`.

    Args:
        problem: The contacts. target: Normal velocities wanted where contacts press, (m,), [m/s].
        course: So far. sweeps: How many more. before: How many there were, for labels.
    """
    mobilities = [_mobility(row[i]) for i, row in enumerate(problem.A)]  # type: ignore[arg-type]
    scales = [(_step(n), _step(t)) for n, t in mobilities]
    weights = np.array([[n * n, t * t, t * t] for n, t in mobilities]).reshape(-1, 3)
    for sweep in range(before, before + sweeps):
        rows = list(course.start)
        with item((sweep, -2)):
            w = problem.groups.wrenches(rows)
        for g, group in enumerate(problem.members):
            with item((sweep, g, 0)):
                free = problem.groups.moved(group, problem.u_free, w)
            for i, u in zip(group, free, strict=True):
                with item((sweep, i)):
                    rows[i] = _updated(problem, target[i], u, rows, group, i, scales[i])
            with item((sweep, g, 1)):
                w |= problem.groups.wrenches(rows, group)
        with item((sweep, -1)):
            course = _mixed(weights, course, np.array(rows).reshape(-1, 3))
    return course


def _mixed(weights: Array, course: Course, p: Array) -> Course:
    """Return the course after a sweep that took course.start to p, with a start for the next.

    Where changes f of one sweep and the next are alike, the next starts farther on, p - t (p - p_before) with the t
    between -REACH and 0 that makes f - t (f - f_before) least in units of velocity.

    Source: Anderson's mixing of one step, Walker, Ni, "Anderson acceleration for fixed-point iterations", SIAM Journal
        on Numerical Analysis 49(4), 2011.
    """
    change = p - course.start
    if course.change is None:
        return Course(p, change, p)
    bend = change - course.change
    weighed = weights * bend
    t = (weighed * change).sum() / ((weighed * bend).sum() + _TINY)
    return Course(p, change, p - np.minimum(np.maximum(t, -REACH), 0.0) * (p - course.p))


def residual(problem: Problem, target: Sequence[Any], p: Array) -> Any:
    """Return by how much impulses p, (m, 3), break the law, [m/s]; see `missed`."""
    return missed(problem, target, p, velocities(problem, p))


def missed(problem: Problem, target: Sequence[Any], p: Array, velocity: Array) -> Any:
    """Return the largest entry of the natural map in units of velocity, [m/s], zero at a solution.

    |min(u_n - target, A_nn p_n)| and |a p_t - cut(a p_t - u_t)|, a the mean of A_tt's diagonal.

    Args:
        problem: The contacts. target: As in `swept`. p: Impulses, (m, 3), and the velocities with them, (m, 3).
    """
    worst: Any = 0.0
    for i, (u, row) in enumerate(zip(velocity, problem.A, strict=True)):
        for miss in _misses(u, row[i], target[i], p[i], problem.mu):  # type: ignore[arg-type]
            worst = np.maximum(worst, np.abs(miss))
    return worst


def _misses(u: Array, A: Array, target: Any, p: Array, mu: Any) -> list[Any]:
    a = 0.5 * (A[1, 1] + A[2, 2])
    cut_1, cut_2 = cut(a * p[1] - u[1], a * p[2] - u[2], a * mu * p[0])
    return [np.minimum(u[0] - target, A[0, 0] * p[0]), a * p[1] - cut_1, a * p[2] - cut_2]


def _mobility(A: Array) -> tuple[Any, Any]:
    """Return how much a contact's velocity follows its impulses: along n, and along both tangents the mean of A_tt.

    An axis along which impulses move next to nothing, as across the plane of a planar robot, counts as a third of the
    other: the best step for both would only throw the other to and fro.
    """
    stiff, soft = np.minimum(A[1, 1], A[2, 2]), np.maximum(A[1, 1], A[2, 2])
    return A[0, 0], 0.5 * (soft + np.maximum(stiff, soft / 3.0))


def _step(mobility: Any) -> Any:
    """Return an impulse per velocity, [kg]; none where nothing moves, as on the base of a fixed robot."""
    moves = mobility > IMMOVABLE
    return where(moves, 1.0 / where(moves, mobility, 1.0), 0.0)


def _velocity(problem: Problem, u: Array, p: Any, group: Sequence[int], i: int) -> Array:
    """Return u of contact i, (3,), and what the impulses of its group add."""
    return _pushed(problem, u, p, group, i) + problem.A[i][i] @ p[i]


def _pushed(problem: Problem, u: Array, p: Any, group: Sequence[int], i: int) -> Array:
    """Return u of contact i, (3,), and what the others of its group add; the newest, the one before it, comes last."""
    at = group.index(i)
    blocks = [(problem.A[i][j], p[j]) for j in (*group[at + 1 :], *group[:at])]
    terms = [(block, x) for block, x in blocks if block is not None]
    return np.array([sum_of([u[k], *(block[k, c] * x[c] for block, x in terms for c in range(3))]) for k in range(3)])


def _updated(
    problem: Problem, target: Any, free: Array, p: list[Array], group: Sequence[int], i: int, scale: tuple[Any, Any]
) -> Array:
    u, A = _pushed(problem, free, p, group, i), problem.A[i][i]
    assert A is not None
    _, a, b = p[i]
    p_n = np.maximum(scale[0] * (target - A[0, 1] * a - A[0, 2] * b - u[0]), 0.0)
    x, y = (p[i][k] - scale[1] * (A[k, 1] * a + A[k, 2] * b + u[k] + A[k, 0] * p_n) for k in (1, 2))
    return np.array([p_n, *cut(x, y, problem.mu * p_n)])


def cut(x: Any, y: Any, limit: Any) -> tuple[Any, Any]:
    """Return the point of the disc of radius `limit` that is nearest to (x, y)."""
    factor = np.minimum(1.0, limit / np.sqrt(_TINY + x * x + y * y))
    return factor * x, factor * y
