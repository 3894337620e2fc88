"""Contact impulses under Coulomb friction and complementarity by projected Gauss-Seidel, over any element.

The velocities of contacts in their frames are u = A p + u_free, with impulses p = [p_n, p_t1, p_t2]. At the fixed point

    0 <= p_n  _|_  u_n - target >= 0,      |p_t| <= mu p_n,      p_t = -mu p_n u_t / |u_t| for sliding contacts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from legged.compiler.ir import where
from legged.compiler.ir.annotations import item
from legged.contact.delassus import BlockMatrix, ContactGroups
from legged.spatial import Array, sum_of

MAX_EXTRAPOLATION = 2.0
"""Largest extrapolation between sweeps, relative to the last change of the impulses."""
MIN_MOBILITY = 1e-9
"""Mobilities below this, [1/kg], count as zero."""
_TINY = 1e-300  # avoids 0 / 0 where the impulse is zero anyway


class ContactProblem(NamedTuple):
    """The contact problem of one time step.

    Attributes:
        A: Delassus operator, m rows of (3, 3) blocks, [1/kg]; None for zero blocks, and between groups.
        u_free: Velocities without impulses, (m, 3), [m/s], contact frames.
        mu: Coefficient of friction.
        groups: Groups of contacts and their interaction.
    """

    A: BlockMatrix
    u_free: Array
    mu: Any
    groups: ContactGroups = ContactGroups((), (), [])

    @property
    def members(self) -> Sequence[Sequence[int]]:
        """Contacts in the order of the sweeps, group by group."""
        return self.groups.members or [range(len(self.A))]


def velocities(problem: ContactProblem, p: Array) -> Array:
    """Return u = A p + u_free, (m, 3), [m/s], contact frames.

    Args:
        problem: The contacts. p: Impulses, (m, 3), [N s], contact frames.
    """
    found: list[Any] = [None] * len(problem.A)
    w = problem.groups.wrenches(p)
    for group in problem.members:
        for i, u in zip(group, problem.groups.velocities(group, problem.u_free, w), strict=True):
            found[i] = _velocity(problem, u, p, group, i)
    return np.array(found).reshape(-1, 3)


class Iterate(NamedTuple):
    """An iterate of the solver, each (m, 3), [N s], contact frames.

    Attributes:
        p: Impulses after the last sweep; they lie in the friction cones.
        change: Change of the impulses by that sweep; None before the first.
        start: Initial impulses of the next sweep.
    """

    p: Array
    change: Array | None
    start: Array

    @classmethod
    def initial(cls, guess: Array) -> Iterate:
        """Return the iterate before the first sweep.

        Args:
            guess: Initial impulses, (m, 3), [N s], contact frames.
        """
        return cls(guess, None, guess)


def gauss_seidel(
    problem: ContactProblem, target: Sequence[Any], iterate: Iterate, sweeps: int, before: int = 0
) -> Iterate:
    """Return the iterate after a number of sweeps over all contacts.

    Each contact first takes the normal impulse that reaches its target velocity, or zero if that impulse were
    negative; then a tangential step against its sliding velocity, projected onto the disc of radius mu p_n. Sweeps are
    accelerated by Anderson mixing.

    Args:
        problem: The contacts. target: Normal velocities of closed contacts, (m,), [m/s], contact frames.
        iterate: The last iterate. sweeps: Number of sweeps. before: Number of earlier sweeps, for annotations.
    """
    mobilities = [_mobility(row[i]) for i, row in enumerate(problem.A)]  # type: ignore[arg-type]
    scales = [(_inverse(n), _inverse(t)) for n, t in mobilities]
    weights = np.array([[n * n, t * t, t * t] for n, t in mobilities]).reshape(-1, 3)
    for sweep in range(before, before + sweeps):
        rows = list(iterate.start)
        with item((sweep, -2)):
            w = problem.groups.wrenches(rows)
        for g, group in enumerate(problem.members):
            with item((sweep, g, 0)):
                free = problem.groups.velocities(group, problem.u_free, w)
            for i, u in zip(group, free, strict=True):
                with item((sweep, i)):
                    rows[i] = _updated(problem, target[i], u, rows, group, i, scales[i])
            with item((sweep, g, 1)):
                w |= problem.groups.wrenches(rows, group)
        with item((sweep, -1)):
            iterate = _anderson_mixing(weights, iterate, np.array(rows).reshape(-1, 3))
    return iterate


def _anderson_mixing(weights: Array, iterate: Iterate, p: Array) -> Iterate:
    """Return the iterate after a sweep from iterate.start to p, with the start of the next sweep.

    The next sweep starts from p - t (p - p_before), with the t between -MAX_EXTRAPOLATION and 0 that minimizes the norm
    of f - t (f - f_before) in units of velocity, where f is the change by a sweep.

    Source: Anderson mixing of depth one, Walker, Ni, "Anderson acceleration for fixed-point iterations", SIAM Journal
        on Numerical Analysis 49(4), 2011.
    """
    change = p - iterate.start
    if iterate.change is None:
        return Iterate(p, change, p)
    difference = change - iterate.change
    weighted = weights * difference
    t = (weighted * change).sum() / ((weighted * difference).sum() + _TINY)
    return Iterate(p, change, p - np.minimum(np.maximum(t, -MAX_EXTRAPOLATION), 0.0) * (p - iterate.p))


def residual(problem: ContactProblem, target: Sequence[Any], p: Array) -> Any:
    """Return the violation of the contact law by impulses p, [m/s]; arguments as in `natural_map_residual`."""
    return natural_map_residual(problem, target, p, velocities(problem, p))


def natural_map_residual(problem: ContactProblem, target: Sequence[Any], p: Array, velocity: Array) -> Any:
    """Return the largest entry of the natural map in units of velocity, [m/s], zero at a solution.

    |min(u_n - target, A_nn p_n)| and |a p_t - project(a p_t - u_t)|, with a the mean of the diagonal of A_tt.

    Args:
        problem: The contacts. target: As in `gauss_seidel`. p: Impulses, (m, 3), [N s], contact frames.
        velocity: u = A p + u_free, (m, 3), [m/s], contact frames.
    """
    worst: Any = 0.0
    for i, (u, row) in enumerate(zip(velocity, problem.A, strict=True)):
        for violation in _natural_map(u, row[i], target[i], p[i], problem.mu):  # type: ignore[arg-type]
            worst = np.maximum(worst, np.abs(violation))
    return worst


def _natural_map(u: Array, A: Array, target: Any, p: Array, mu: Any) -> list[Any]:
    a = 0.5 * (A[1, 1] + A[2, 2])
    t_1, t_2 = project_to_disc(a * p[1] - u[1], a * p[2] - u[2], a * mu * p[0])
    return [np.minimum(u[0] - target, A[0, 0] * p[0]), a * p[1] - t_1, a * p[2] - t_2]


def _mobility(A: Array) -> tuple[Any, Any]:
    """Return the mobility of a contact along n, and the mean of the diagonal of A_tt for both tangents.

    A tangent with nearly no mobility, as across the plane of a planar robot, counts as a third of the other, so that
    the step along the other tangent does not overshoot.
    """
    low, high = np.minimum(A[1, 1], A[2, 2]), np.maximum(A[1, 1], A[2, 2])
    return A[0, 0], 0.5 * (high + np.maximum(low, high / 3.0))


def _inverse(mobility: Any) -> Any:
    """Return 1 / mobility, [kg]; zero for a zero mobility, as on the base of a fixed robot."""
    moves = mobility > MIN_MOBILITY
    return where(moves, 1.0 / where(moves, mobility, 1.0), 0.0)


def _velocity(problem: ContactProblem, u: Array, p: Any, group: Sequence[int], i: int) -> Array:
    """Return the velocity of contact i, (3,): u and the effect of all impulses of its group."""
    return _velocity_from_others(problem, u, p, group, i) + problem.A[i][i] @ p[i]


def _velocity_from_others(problem: ContactProblem, u: Array, p: Any, group: Sequence[int], i: int) -> Array:
    """Return u and the effect of the other impulses of the group of contact i, (3,), the most recent update last."""
    at = group.index(i)
    blocks = [(problem.A[i][j], p[j]) for j in (*group[at + 1 :], *group[:at])]
    terms = [(block, x) for block, x in blocks if block is not None]
    return np.array([sum_of([u[k], *(block[k, c] * x[c] for block, x in terms for c in range(3))]) for k in range(3)])


def _updated(
    problem: ContactProblem,
    target: Any,
    free: Array,
    p: list[Array],
    group: Sequence[int],
    i: int,
    scale: tuple[Any, Any],
) -> Array:
    """Return the new impulse of contact i, (3,)."""
    u, A = _velocity_from_others(problem, free, p, group, i), problem.A[i][i]
    assert A is not None
    _, a, b = p[i]
    p_n = np.maximum(scale[0] * (target - A[0, 1] * a - A[0, 2] * b - u[0]), 0.0)
    x, y = (p[i][k] - scale[1] * (A[k, 1] * a + A[k, 2] * b + u[k] + A[k, 0] * p_n) for k in (1, 2))
    return np.array([p_n, *project_to_disc(x, y, problem.mu * p_n)])


def project_to_disc(x: Any, y: Any, radius: Any) -> tuple[Any, Any]:
    """Return the point of the disc of a radius around the origin that is nearest to (x, y)."""
    factor = np.minimum(1.0, radius / np.sqrt(_TINY + x * x + y * y))
    return factor * x, factor * y
