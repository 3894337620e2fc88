"""Contact impulses under Coulomb friction and complementarity by projected Gauss-Seidel, over any element.

The velocities of contacts in their frames are u = A p + u_free, with impulses p = [p_n, p_t1, p_t2]. At the fixed point

    0 <= p_n  _|_  u_n - target >= 0,      |p_t| <= mu p_n,      p_t = -mu p_n u_t / |u_t| for sliding contacts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any, NamedTuple, Protocol

import numpy as np

from legged.compiler.ir import item, repeat_while, where
from legged.contact.impulses.delassus import BlockMatrix, ContactGroups
from legged.spatial import Array, sum_of

MAX_EXTRAPOLATION = 2.0
"""Largest extrapolation between sweeps, relative to the last change of the impulses."""
LEAST_CHANGE = 1e-11
"""Change of a velocity by a sweep, [m/s], below which Gauss-Seidel has converged."""
ROUNDING = 1024.0
"""Multiple of a velocity beside which rounding loses changes that count as none: 6e-5 of it for float32, and less than
`LEAST_CHANGE` for float64."""
MIN_MOBILITY = 1e-9
"""Mobilities below this, [1/kg], count as zero."""
STICKING = 1e-6
"""Relative distance from the friction cone of contacts that stick."""
FLATNESS = 1e-9
"""Square of the width of contacts in a line, relative to their squared distances from their origin."""
TIPPING = 1e-10
"""Change of a moment up to which it counts as kept, relative to the load times the distance from the origin."""
COINCIDENT, CLOSE = 1e-6, 1e-9
"""Distance of contacts of a group, relative to that from their origin and in [m], below which they are at one point."""
_TINY = 1e-300  # avoids 0 / 0 where the impulse is zero anyway


class ContactProblem(NamedTuple):
    """The contact problem of one time step.

    Attributes:
        A: Delassus operator, m rows of (3, 3) blocks, [1/kg]; None for zero blocks, and between groups.
        u_free: Velocities without impulses, (m, 3), [m/s], contact frames.
        mu: Coefficient of friction of each contact, (m,).
        groups: Groups of contacts and their interaction.
        places: Coordinates of the contact points along t1, t2 and n, (m, 3), [m], from an origin that contacts of a
            group share; None if unknown.
        restitution: Coefficient of restitution of each contact, (m,); empty for none.
        aligned: Whether the frame of each contact is that of the first one of its group, (m,); empty if all are.
    """

    A: BlockMatrix
    u_free: Array
    mu: Sequence[Any]
    groups: ContactGroups = ContactGroups((), (), [])
    places: Array | None = None
    restitution: Sequence[Any] = ()
    aligned: Sequence[Any] = ()

    @property
    def members(self) -> Sequence[Sequence[int]]:
        """Contacts in the order of the sweeps, group by group."""
        return self.groups.members or [range(len(self.A))]

    @property
    def diagonal(self) -> Sequence[Any]:
        """The blocks of A of each contact with itself, (3, 3) each, [1/kg]."""
        return [row[i] for i, row in enumerate(self.A)]


def velocities(problem: ContactProblem, p: Array) -> Array:
    """Return u = A p + u_free, (m, 3), [m/s], contact frames.

    Args:
        problem: The contacts. p: Impulses, (m, 3), [N s], contact frames.
    """
    rows: list[Any] = [None] * len(problem.A)
    w = problem.groups.wrenches(p)
    for group in problem.members:
        for i, u in zip(group, problem.groups.velocities(group, problem.u_free, w), strict=True):
            rows[i] = _velocity(problem, u, p, group, i)
    return np.array(rows).reshape(-1, 3)


class Solution(NamedTuple):
    """Impulses and their effect.

    Attributes:
        p: Impulses, (m, 3), [N s], contact frames; they lie in the friction cones.
        u: Velocities with them, (m, 3), [m/s], contact frames.
        residual: Violation of the contact law, [m/s]; see `natural_map_residual`.
    """

    p: Array
    u: Array
    residual: Any


def solution_of(problem: ContactProblem, target: Sequence[Any], p: Array) -> Solution:
    """Return impulses with their effect; arguments as in `natural_map_residual`, contact frames."""
    u = velocities(problem, p)
    return Solution(p, u, natural_map_residual(problem, target, p, u))


def once(needed: Any, function: Callable[[Array], Solution], p: Array, present: Solution) -> Solution:
    """Return function(p), which is computed only where it is needed, or the present solution.

    Args:
        needed: 1.0 or 0.0. function: From impulses to a solution, under the conditions of `repeat_while`.
        p: Impulses, (m, 3), [N s], contact frames; those of the present solution where the function is not needed.
        present: The present solution.
    """
    n, shape = p.size, p.shape

    def step(state: Array) -> Array:
        solution = function(state[:n].reshape(shape))
        return np.concatenate(
            [solution.p.reshape(-1), solution.u.reshape(-1), np.stack([solution.residual, 0.0 * needed])]
        )

    numbers = np.stack([present.residual, needed])
    end = repeat_while(step, np.concatenate([p.reshape(-1), present.u.reshape(-1), numbers]), 1)
    return Solution(end[:n].reshape(shape), end[n:-2].reshape(shape), end[-2])


def is_lost(change: Any, velocity: Any) -> Any:
    """Return whether rounding loses a change beside `ROUNDING` times a velocity, both [m/s]."""
    return ROUNDING * velocity + change <= ROUNDING * velocity


class Movable(Protocol):
    """Bodies that impulses move, with arguments, units and frames as in `newton.GeneralizedSystem`."""

    @property
    def v_free(self) -> Sequence[Array]:
        """Velocity of each robot without impulses, (nv,), mixed units."""
        ...

    def after(self, p: Array) -> Array:
        """Return the velocity after impulses, (n,), mixed units; arguments as in `GeneralizedSystem`."""
        ...


def velocity_after(system: Movable, p: Array, needed: Array, otherwise: Array | None = None) -> Array:
    """Return the generalized velocities after impulses, (n,), mixed units, or others where they are not needed.

    Args:
        system: The bodies.
        p: Impulses, (m, 3), [N s], contact frames. needed: 1.0 or 0.0, (1,), dimensionless.
        otherwise: The others, (n,), mixed units; by default those without impulses.
    """

    def step(state: Array) -> Array:
        return np.concatenate([system.after(p), 0.0 * state[-1:]])

    others = system.v_free if otherwise is None else [otherwise]
    return repeat_while(step, np.concatenate([*others, needed]), 1)[:-1]


def gauss_seidel(
    problem: ContactProblem,
    target: Sequence[Any],
    guess: Array,
    sweeps: int,
    needed: Any = True,
    change: float = LEAST_CHANGE,
) -> Array:
    """Return the impulses, (m, 3), [N s], contact frames, after sweeps over all contacts.

    Each contact first takes the normal impulse that reaches its target velocity, or zero if that impulse were
    negative; then a tangential step against its sliding velocity, projected onto the disc of radius mu p_n. Sweeps are
    accelerated by Anderson mixing. They end when a sweep changes no velocity by more than `change`, or where rounding
    loses the change, see `is_lost`.

    Args:
        problem: The contacts.
        target: Normal velocities of closed contacts, (m,), [m/s], contact frames.
        guess: Initial impulses, (m, 3), [N s], contact frames.
        sweeps: Largest number of sweeps. needed: Whether to sweep at all; otherwise the guess is returned.
        change: Smallest change of a velocity, [m/s], after which sweeps continue.

    Source: Anderson mixing of depth one, Walker, Ni, "Anderson acceleration for fixed-point iterations", SIAM Journal
        on Numerical Analysis 49(4), 2011.
    """
    m = len(guess)
    mobilities = [_mobility(A) for A in problem.diagonal]
    scales = [(_inverse(n), _inverse(t)) for n, t in mobilities]
    weights = np.array([[n, t, t] for n, t in mobilities]).reshape(-1, 3)
    free = maximum_of(np.abs(problem.u_free))

    def sweep(state: Array) -> Array:
        start, before, change_before = state[:-1].reshape(3, m, 3)
        p = _swept(problem, target, start, scales)
        moved, difference = weights * (p - start), weights * (p - start - change_before)
        t = (difference * moved).sum() / ((difference * difference).sum() + _TINY)
        mixed = p - np.minimum(np.maximum(t, -MAX_EXTRAPOLATION), 0.0) * (p - before)
        largest = maximum_of(np.abs(moved))
        active = where((largest > change) & ~is_lost(largest, free), 1.0, 0.0)
        return np.concatenate([*(x.reshape(-1) for x in (mixed, p, p - start)), np.stack([active])])

    flat = guess.reshape(-1)
    active = np.stack([where(needed, 1.0, 0.0 * flat[0])])
    return repeat_while(sweep, np.concatenate([flat, flat, 0.0 * flat, active]), sweeps)[3 * m : 6 * m].reshape(m, 3)


def _swept(problem: ContactProblem, target: Sequence[Any], start: Array, scales: Sequence[tuple[Any, Any]]) -> Array:
    """Return the impulses after a sweep of `gauss_seidel` from `start`, (m, 3), [N s], contact frames.

    Args:
        problem: The contacts. target: Normal velocities of closed contacts, (m,), [m/s].
        start: Impulses, (m, 3), [N s], contact frames.
        scales: Inverse mobilities of each contact along the normal and the tangents, [kg].
    """
    rows = list(start)
    w = problem.groups.wrenches(rows)
    for g, group in enumerate(problem.members):
        with item((g, 0)):
            free = problem.groups.velocities(group, problem.u_free, w)
        for i, u in zip(group, free, strict=True):
            with item((i,)):
                rows[i] = _updated(problem, target[i], u, rows, group, i, scales[i])
        with item((g, 1)):
            w |= problem.groups.wrenches(rows, group)
    return np.array(rows).reshape(-1, 3)


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
    rows = enumerate(zip(velocity, problem.A, strict=True))
    violations_of_rows = (natural_map(u, row[i], target[i], p[i], problem.mu[i]) for i, (u, row) in rows)  # type: ignore[arg-type]
    return maximum_of(np.abs(violation) for violations in violations_of_rows for violation in violations)


def natural_map(u: Array, A: Array, target: Any, p: Array, mu: Any) -> list[Any]:
    """Return the natural map of a contact, three numbers, [m/s].

    Args:
        u: Velocity, (3,), [m/s], contact frame. A: Its block of the Delassus operator, (3, 3), [1/kg].
        target: Normal velocity of a closed contact, [m/s]. p: Impulse, (3,), [N s], contact frame.
        mu: Coefficient of friction.
    """
    a = 0.5 * (A[1, 1] + A[2, 2])
    t_1, t_2 = project_to_disc(a * p[1] - u[1], a * p[2] - u[2], a * mu * p[0])
    normal = np.minimum(u[0] - target, A[0, 0] * p[0])
    return [where(A[0, 0] > MIN_MOBILITY, normal, 0.0), a * p[1] - t_1, a * p[2] - t_2]


def spread(problem: ContactProblem, p: Array) -> Array:
    """Return impulses with the same resultant on each group, of least norm where they are indeterminate.

    If all contacts of a group have one frame and press, and none slides, normal impulses become linear in the
    coordinates along the tangents, the least norm for their sum and moments; those of fewer than four contacts are
    determinate. Tangential impulses become those of least norm relative to the normal ones. Where this would leave a
    friction cone, or change the moments of tangential impulses at different heights, as under a foot that tilts, and
    for contacts at one point, the impulses of the group stay as they are.

    Args:
        problem: The contacts. p: Impulses, (m, 3), [N s], contact frames.
    """
    rows = list(p)
    for g, group in enumerate(problem.members):
        if len(group) > 1 and problem.places is not None:
            with item((g, 2)):
                mu = [problem.mu[i] for i in group]
                own = spread_group(p[list(group)], problem.places[list(group)], mu)
            aligned = _all(problem.aligned[i] for i in group) if problem.aligned else True
            for i, row in zip(group, own, strict=True):
                rows[i] = where(aligned, row, p[i])
    return np.array(rows).reshape(-1, 3)


def spread_group(p: Array, at: Array, mu: Sequence[Any]) -> Array:
    """Return the impulses of a group, (k, 3), [N s], contact frames; see `spread`.

    Args:
        p: Impulses, (k, 3), [N s], contact frames.
        at: Places of the contacts along t1, t2 and n, (k, 3), [m], contact axes.
        mu: Coefficient of friction of each contact.
    """
    at, heights = at[:, :2], at[:, 2]
    limits = [(1.0 - STICKING) * x for x in mu]
    sticks = _all(x @ x <= (limit * n) * (limit * n) for limit, n, x in zip(limits, p[:, 0], p[:, 1:], strict=True))
    normal, total, distances = list(p[:, 0]), sum_of(p[:, 1:]), (at * at).sum()
    if len(p) > 3:  # normal impulses: a linear function of the place with the same sum and moments
        x, y = (at - sum_of(at) / len(p)).T
        xx, xy, yy, px, py = ((a * b).sum() for a, b in ((x, x), (x, y), (y, y), (p[:, 0], x), (p[:, 0], y)))
        determinant, mean = xx * yy - xy * xy, sum_of(normal) / len(p)
        spans = determinant > (xx + yy) * (FLATNESS * distances + CLOSE * CLOSE)
        inverse = 1.0 / where(spans, determinant, 1.0)
        slope_x, slope_y = inverse * (yy * px - xy * py), inverse * (xx * py - xy * px)
        linear = [mean + slope_x * a + slope_y * b for a, b in zip(x, y, strict=True)]
        press = _all((old > 0.0) & (new > 0.0) for old, new in zip(normal, linear, strict=True))
        normal = [where(spans & press & sticks, new, old) for old, new in zip(normal, linear, strict=True)]
    # Tangential impulses: a translation and a rotation about the center of load, in proportion to the normal impulses,
    # with the same sum and the same moment about the normal.
    load = sum_of(normal)
    presses = load > 0.0
    per_load = 1.0 / where(presses, load, 1.0)
    arms = at - per_load * sum_of(n * r for n, r in zip(normal, at, strict=True))
    moment = sum_of(r[0] * x[2] - r[1] * x[1] for r, x in zip(arms, p, strict=True))
    inertia = sum_of(n * (r @ r) for n, r in zip(normal, arms, strict=True))
    apart = inertia > load * (COINCIDENT * COINCIDENT * distances + CLOSE * CLOSE)
    turn, (a, b) = moment / where(apart, inertia, 1.0), per_load * total
    ratios = [np.stack([a - turn * r[1], b + turn * r[0]]) for r in arms]
    fits = presses & apart & sticks & _all(x @ x <= limit * limit for limit, x in zip(limits, ratios, strict=True))
    even = [np.array([n, n * x[0], n * x[1]]) for n, x in zip(normal, ratios, strict=True)]
    # The moments about the tangents that tangential impulses at different heights have must not change.
    tipping = sum_of((z - heights[0]) * (new[1:] - old[1:]) for z, new, old in zip(heights, even, p, strict=True))
    fits = fits & (tipping @ tipping <= (TIPPING * load) * (TIPPING * load) * distances)
    return np.array([where(fits, new, old) for new, old in zip(even, p, strict=True)])


def maximum_of(values: Any) -> Any:
    """Return the largest of some values, or zero."""
    if isinstance(values, np.ndarray) and values.dtype == float:
        return values.max(initial=0.0)
    return reduce(np.maximum, np.ravel(values) if isinstance(values, np.ndarray) else values, 0.0)


def _all(conditions: Iterable[Any]) -> Any:
    return reduce(lambda a, b: a & b, conditions)


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
    return updated_impulse(A, u, p[i], target, problem.mu[i], scale)


def updated_impulse(A: Array, u: Array, p: Array, target: Any, mu: Any, scale: tuple[Any, Any]) -> Array:
    """Return the new impulse of a contact in a sweep, (3,), [N s].

    Args:
        A: Its block of the Delassus operator, (3, 3), [1/kg], contact frame.
        u: Velocity without its impulse, (3,), [m/s], contact frame.
        p: Present impulse, (3,), [N s], contact frame. target: As in `gauss_seidel`. mu: Coefficient of friction.
        scale: Inverse mobilities along the normal and the tangents, [kg].
    """
    _, a, b = p
    p_n = np.maximum(scale[0] * (target - A[0, 1] * a - A[0, 2] * b - u[0]), 0.0)
    x, y = (p[k] - scale[1] * (A[k, 1] * a + A[k, 2] * b + u[k] + A[k, 0] * p_n) for k in (1, 2))
    return np.array([p_n, *project_to_disc(x, y, mu * p_n)])


def project_to_disc(x: Any, y: Any, radius: Any) -> tuple[Any, Any]:
    """Return the point of the disc of a radius around the origin that is nearest to (x, y)."""
    factor = np.minimum(1.0, radius / np.sqrt(_TINY + x * x + y * y))
    return factor * x, factor * y
