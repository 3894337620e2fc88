"""Footholds of the next two steps of a robot that walks on two feet, and the motion of its body over them.

A step to a foothold beside its place on level ground takes the robot out of balance, unless the steps and the motion of
the body before and after it take part. The center of mass c over a center of pressure p obeys c'' = omega^2 (c - p),
which is linear: the motion over displaced footholds is that on level ground plus the response to the displacements of
the center of pressure. That of the divergent component xi is the mean of all displacements to come, weighted by
omega exp(-omega t), so that it stays bounded (`StepResponse`). Predictive control follows this motion, and the foot
placement for balance acts on the difference from it, as on level ground.

`StepSequence.chosen` takes those footholds of the next two steps which are close to the landing places on level ground,
and with which the divergent component has to change by no more than the center of pressure under the soles can do. A
displacement that is chosen for the second step is known one step before, while a small displacement of the center of
pressure still moves the next landing place far.

Source:
    J. Englsberger, C. Ott, A. Albu-Schaeffer, "Three-dimensional bipedal walking control based on divergent component
    of motion", IEEE Transactions on Robotics 31(2), 2015, for the divergent component over given footholds; R. Deits,
    R. Tedrake, "Footstep planning on uneven terrain with mixed-integer convex optimization", Humanoids 2014, for the
    choice among separate regions. The choice for two steps by enumeration with the reach of the center of pressure, and
    the values, are ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from controllers.locomotion.gait.schedule import GaitState
from legged.compiler.ir import where
from legged.spatial import Array, sum_of

_REACH = 0.6  # of a sole's extent: displacement of the center of pressure that counts as one
_NEXT = 0.5  # of the center of pressure under the next foot counts in addition
_UNBALANCED = 0.05  # [h], difference of the divergent component that remains at touchdown that counts as one
_TOLERATED = 0.3  # [h], displacement of a foothold that counts as one
_DECIDED = 0.3  # of a swing: progress after which a landing place does not change by more than
_NEAR = 0.1  # [h], a change that costs nothing
_EARLY, _LATE = 1.0, 20.0  # [1 / h], cost of larger ones before and after
_APART = 0.5  # least lateral distance between successive footholds, relative to that of standing
_OVERLAP = 0.02  # [h], lateral distance less than that that counts as one
MOST = 0.35  # [h], largest displacement that the body follows
_GRID = ((-0.3, -0.15, 0.0, 0.15, 0.3), (-0.15, 0.0, 0.15))  # [h], places along and across, around which are footholds


class StepResponse(NamedTuple):
    """Motion of the center of mass over displaced footholds, relative to its nominal motion.

    Attributes:
        begin: Displacement of the center of mass now, (2,), [m], world axes.
        first: Displacement of the center of pressure now, (2,), [m], world axes.
        times: Times from now at which it changes, (k,), [s].
        changes: Its changes then, (k, 2), [m], world axes.
        omega: sqrt(g / h), [1/s].
    """

    begin: Array
    first: Array
    times: Sequence[Any]
    changes: Sequence[Array]
    omega: float

    @property
    def divergence(self) -> Array:
        """Displacement of the divergent component of motion now with which it stays bounded, (2,), [m], world axes."""
        rows = zip(self.times, self.changes, strict=True)
        return self.first + sum_of(np.exp(-self.omega * time) * change for time, change in rows)

    def after(self, time: Any) -> tuple[Array, Array]:
        """Return (displacement, velocity) of the center of mass at a time, (2,) each, [m], [m/s], world axes.

        With c' = omega (xi - c), a unit change of the center of pressure at the time T gives xi = exp(-omega (T - t))
        before and 1 after it, and c = exp(-omega |T - t|) / 2 before, 1 - exp(-omega |T - t|) / 2 after it, less
        exp(-omega (T + t)) / 2 in both cases, so that c is zero now.

        Args:
            time: t, from now, [s].
        """
        w, fading = self.omega, np.exp(-self.omega * time)
        c, xi = fading * self.begin + (1.0 - fading) * self.first, self.first
        for at, change in zip(self.times, self.changes, strict=True):
            late, near, far = time >= at, 0.5 * np.exp(-w * np.abs(time - at)), 0.5 * np.exp(-w * at) * fading
            xi = xi + where(late, 1.0, 2.0 * near) * change
            c = c + (where(late, 1.0 - near, near) - far) * change
        return c, w * (xi - c)


class StepSequence(NamedTuple):
    """The next two steps of a robot that walks on two feet.

    Attributes:
        order: 1 for the foot that lands next, 0 for the other one, (2,), dimensionless.
        times: Times from now of the lift-off of the first foot, zero in its swing, its touchdown, lift-off and
            touchdown of the second foot, and the next lift-off of the first one, (5,), [s].
        omega: sqrt(g / h), [1/s].
        axes: Forward and left unit vectors of the heading, (2, 2), dimensionless, world axes.
        apart: Lateral distance of the foot of the first step from the other one under the standing robot, [m], positive
            to the left.
    """

    order: Array
    times: tuple[Any, ...]
    omega: float
    axes: Array
    apart: Any

    @classmethod
    def of(cls, state: GaitState, stances: Array, omega: float, axes: Array) -> StepSequence:
        """Return the order and times of the next steps.

        Args:
            state: State of the gait. stances: As in `FootstepLaw`. omega, axes: As in `StepSequence`.
        """
        period, duty = state.period, state.duty
        local = [
            where((stands > 0.5) & (x >= d), x - 1.0, x)  # a foot that has landed early stands before its touchdown
            for x, d, stands in zip(state.local, duty, state.stance, strict=True)
        ]
        is_first = where(local[0] > local[1], 1.0, 0.0)
        order = np.stack([is_first, 1.0 - is_first])
        (a, b), (da, db) = ((order @ x, order[::-1] @ x) for x in (np.stack(local), duty))
        times = tuple(
            period * x for x in (np.maximum(da - a, 0.0), 1.0 - a, np.maximum(db - b, 0.0), 1.0 - b, 1.0 + da - a)
        )
        apart = (2.0 * is_first - 1.0) * (stances[0, 1] - stances[1, 1])
        return cls(order, times, omega, axes, apart)

    def by_order(self, values: Array) -> Array:
        """Return values of both feet in the order of their landings, or those in this order by feet, (2, ...).

        Args:
            values: (2, ...), any unit and axes.
        """
        return np.array([self.order, self.order[::-1]]) @ values

    def response(self, planned: Array, begin: Array) -> StepResponse:
        """Return the motion of the center of mass over displaced footholds.

        Args:
            planned: As from `planned`, (2, 2, 2), [m], world axes. begin: As in `StepResponse`.
        """
        now, ahead = (self.by_order(x) for x in planned)
        both = where(self.times[0] > 0.0, 0.5, 0.0)
        shifts = both * (now[1] - now[0]), *[0.5 * (ahead[0] - now[1])] * 2, *[0.5 * (ahead[1] - ahead[0])] * 2
        return StepResponse(begin, now[1] - both * (now[1] - now[0]), self.times, shifts, self.omega)

    def planned(self, last: Array, displacements: Array, stance: Array, most: float) -> Array:
        """Return displacements of footholds that the motion of the body follows, (2, 2, 2), [m], world axes.

        Those of the present places and of the next footholds of both feet. That of a foothold is the one with which it
        was chosen as that of the second step, and stays when the foot swings: the landing place then also
        moves by feedback, which the body does not follow.

        Args:
            last: Those of the last evaluation, (2, 2, 2), [m], world axes.
            displacements: Of the next footholds of the feet from undisturbed ones, (2, 2), [m], world axes.
            stance: 1 for each foot that stands, (2,), dimensionless.
            most: Largest displacement, [m].
        """
        size = np.sqrt((displacements**2).sum(axis=1) + 1e-12)
        bounded = displacements * np.minimum(1.0, most / size)[:, None]
        is_first, stands = self.order[:, None], stance[:, None]
        ahead = is_first * last[1] + (1.0 - is_first) * bounded
        return np.stack([stands * last[0] + (1.0 - stands) * ahead, ahead])

    def chosen(
        self,
        foothold: Callable[[Array], Array],
        desired: Array,
        planned: Array,
        feet: Array,
        last: Array,
        progress: Any,
        extents: Array,
        height: float,
        longest: Any,
    ) -> Array:
        """Return the footholds of the next steps of both feet, (2, 2), [m], world axes.

        Args:
            foothold: Function of a place, (2,), that returns a foothold near to it, (2,), [m], world axes.
            desired: Landing places on even ground, (2, 2), [m], world axes.
            planned: Displacements of the next footholds, (2, 2), [m], world axes.
            feet: Positions of the feet, (2, 2), [m], world axes.
            last: Footholds that were chosen before, (2, 2), [m], world axes.
            progress: Fraction of the swing of the first foot that has passed, from 0 to 1.
            extents: Largest displacement of the center of pressure under a sole, (2,), [m], heading axes.
            height: h, of the center of mass of the standing robot, [m].
            longest: Largest distance between successive footholds forward, [m].
        """
        e = [np.exp(-self.omega * time) for time in self.times]
        shares = np.stack([0.5 * (e[1] + e[2] - e[3] - e[4]), 0.5 * (e[3] + e[4])])
        whole, softness = 0.5 * (e[1] + e[2]), (_TOLERATED * height) ** 2
        most = _REACH * extents * (1.0 - e[1] + _NEXT * shares[0])
        desired, planned, last = (self.by_order(x) for x in (desired, planned, last))
        support = self.by_order(feet)[1]
        rows = []
        for place, shift in zip(desired, (planned[0], np.zeros(2)), strict=True):
            grid = [place + shift + height * np.array([x, y]) @ self.axes for x in _GRID[0] for y in _GRID[1]]
            rows.append(np.stack([foothold(z) for z in grid]))
        rows[0] = np.concatenate([rows[0], np.stack([foothold(last[0]), foothold(desired[0])])])
        first, second = rows
        apart, side = _APART * np.abs(self.apart), np.sign(self.apart)

        def crossing(distance: Array, side: Any) -> Array:
            short = np.maximum(apart - side * distance, 0.0) / (_OVERLAP * height)
            return short * short

        def stretch(distance: Array) -> Array:
            excess = np.maximum(np.abs(distance) - longest, 0.0) / (_OVERLAP * height)
            return excess * excess

        ahead, after = ((places - place) @ self.axes.T for places, place in zip(rows, desired, strict=True))
        expected = planned @ self.axes.T
        changes, steps, places = first - last[0], (first - support) @ self.axes.T, [x @ self.axes.T for x in rows]
        leaps = np.maximum(np.sqrt((changes**2).sum(axis=1) + 1e-12) - _NEAR * height, 0.0) / height
        own = (ahead**2).sum(axis=1) / softness + (where(progress > _DECIDED, _LATE, _EARLY) * leaps) ** 2
        own = own + crossing(steps[:, 1], side) + stretch(steps[:, 0])
        between = places[1][None] - places[0][:, None]
        rest = (shares[0] * (ahead - expected[0]))[:, None] + (shares[1] * (after - expected[1]))[None]
        rest = (rest - np.minimum(np.maximum(rest, -most), most)) / (whole * _UNBALANCED * height)
        total = own[:, None] + ((after**2).sum(axis=1) / softness)[None] + (rest**2).sum(axis=2)
        total = total + crossing(between[..., 1], -side) + stretch(between[..., 0])
        pairs = [(total[i, j], first[i], second[j]) for i in range(len(first)) for j in range(len(second))]
        _, one, two = reduce(_better, pairs)
        return self.by_order(np.array([one, two]))


def beyond_soles(displacement: Array, time: Any, extents: Array, axes: Array) -> Array:
    """Return the displacement of a landing place that remains after control of the center of pressure, (2,), [m].

    A deviation of the divergent component that grows until touchdown displaces a landing place, as far as the center of
    pressure under the sole cannot remove it before. The result has world axes.

    Args:
        displacement: (2,), [m], world axes. time: Until touchdown, times omega, dimensionless.
        extents: Largest displacement of the center of pressure under a sole, (2,), [m], heading axes.
        axes: Forward and left unit vectors of the heading, (2, 2), dimensionless, world axes.
    """
    most = _REACH * (np.exp(time) - 1.0) * extents
    return displacement - axes.T @ np.minimum(np.maximum(axes @ displacement, -most), most)


def _better(a: tuple[Any, Array, Array], b: tuple[Any, Array, Array]) -> tuple[Any, Array, Array]:
    is_less = b[0] < a[0]
    return np.minimum(a[0], b[0]), where(is_less, b[1], a[1]), where(is_less, b[2], a[2])
