"""Stops and dry friction of joints as set-valued laws within a time step: exact sticking, no chatter at any step.

Along each entry of v with dry friction or stops, the impulse p of a step h and the velocity u after it satisfy

    -p in h F Sgn(u) + N(u),      Sgn(0) = [-1, 1],

with N of the stops: the normal cone of [b_lower, b_upper] for rigid ones, or c (u - b) beyond a bound b for a
compliant stop of stiffness k and damping d, c = h (d + h k). For a gap g to the stop, g / h is the largest speed toward
it without contact at the end of the step; within a compliant stop the bound is the speed -k g / (d + h k) at which its
force vanishes at the end of the step, and a rigid one corrects a penetration as `target_velocity` does. A rigid stop
that is reached in the step at speed u above `Rigid.threshold` has the bound -e u (Newton's law of restitution).

Each law is one piece of a monotone function: p = -E (u - t) + c. Sticking and rigid contact are pieces with a large E.
A step assumes a piece for each entry, solves the equations of motion with E as an inertia added to the joint, and takes
the piece that its u and p indicate, until all agree: a semismooth Newton method on the natural map u - prox(u - p / I),
with a few accelerations where pieces change. In the steps between, the first one is the last. Whether a piece is the
right one does not depend on I, so that the decisions between sticking and sliding, and between sliding and a stop, take
a small I and a large one: a joint sticks before it slides back, and slides before it reaches a stop.

Where a robot has contact candidates on rigid ground, the first pieces are a guess, and `impulses.joint_rows` solves the
laws together with those of the contacts.

Source: primal-dual active sets as semismooth Newton method, Hintermueller, Ito, Kunisch, SIAM J. Optim. 13(3), 2002;
the single changes that end cycles, Judice, Pires, Computers and Operations Research 21(5), 1994.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from legged.compiler.ir import repeat_while, where
from legged.contact.impulses.impact import target_velocity
from legged.contact.impulses.joint_rows import JointRows
from legged.contact.impulses.solver import LEAST_CHANGE, is_lost, maximum_of
from legged.contact.rigid import Rigid
from legged.ground.ground import Ground
from legged.robot.configuration import as_vector
from legged.robot.robot import Robot
from legged.simulation.forces import Stop, inertias_at_stops, limited, stops_of
from legged.spatial import is_finite, is_zero

Array = np.ndarray
MOST_CHANGES = 40
"""Largest number of further accelerations of a step in which the laws change their pieces."""
_JOINT_CHANGES = 10  # of these, after which only the piece of the largest residual changes
_STIFF, _STIFF_SINGLE = 1e8, 1e4  # E of sticking and rigid contact, relative to the inertia, float64 and float32
_SCALE = 0.02  # of the velocity beside the impulse of a joint that turns around: it sticks before it slides back
_UNLIMITED = 1e100  # [rad/s] or [m/s], the bound without a stop
_NEAR = 1.0  # [rad/s] or [m/s], largest change of a velocity by motors against which contacts do not act
_SLOW = 1e-8  # [rad/s] or [m/s], below which a joint is assumed to stick


class Pieces(NamedTuple):
    """The pieces p = -E (u - t) + c of n laws, (n,) each.

    Attributes:
        slope: E, [kg m^2] or [kg]. target: t, [rad/s] or [m/s]. constant: c, [N m s] or [N s].
    """

    slope: Array
    target: Array
    constant: Array

    def differ(self, other: Pieces) -> Any:
        """Return whether some law has another piece."""
        pairs = zip(self, other, strict=True)
        return reduce(lambda a, b: a | b, (x != y for one, two in pairs for x, y in zip(one, two, strict=True)))


class Laws(NamedTuple):
    """The n laws of a step, (n,) each.

    Attributes:
        friction: h F, [N m s] or [N s].
        inertia, inverse: I, [kg m^2] or [kg], the scale of the natural map, and 1 / I.
        lower, upper: Bounds of the velocity without a stop's impulse, [rad/s] or [m/s].
        lower_slope, upper_slope: c of the stops, [kg m^2] or [kg]. stiff: E of sticking, [kg m^2] or [kg].
    """

    friction: Array
    inertia: Array
    inverse: Array
    lower: Array
    upper: Array
    lower_slope: Array
    upper_slope: Array
    stiff: Array

    def pieces(self, u: Array, p: Array) -> Pieces:
        """Return the pieces that velocities and impulses indicate, see the module.

        Args:
            u: Velocities, (n,), [rad/s] or [m/s], joint axes. p: Impulses, (n,), [N m s] or [N s], joint axes.
        """
        # The impulse of the stops at rest, by which a joint within a compliant stop begins to move.
        at_rest = self.lower_slope * np.maximum(self.lower, 0.0) - self.upper_slope * np.maximum(-self.upper, 0.0)
        pushed = _SCALE * self.inertia * u - p + at_rest
        forward, backward = pushed > self.friction, pushed < -self.friction
        sticks = (self.friction > 0.0) & ~(forward | backward)
        rubbed = where(forward, self.friction, where(backward, -self.friction, 0.0))
        u = u - (p + rubbed) * self.inverse
        below, above = u < self.lower, u > self.upper
        slope = where(below, self.lower_slope, where(above, self.upper_slope, 0.0))
        target = where(below, self.lower, where(above, self.upper, 0.0))
        return Pieces(where(sticks, self.stiff, slope), where(sticks, 0.0, target), where(sticks, 0.0, -rubbed))

    def first_guess(self, h: Any, u: Array, drive: Array, repeats: bool) -> tuple[Array, Array]:
        """Return velocities and impulses, (n,) each, from which `pieces` selects the first pieces of a step.

        With them a joint at rest sticks, a moving joint slides, and a joint that its motor drives beyond a bound is at
        its stop.

        Args:
            h: The step, [s]. u: Velocities before it, (n,), [rad/s] or [m/s], joint axes.
            drive: Generalized forces of the actuators, (n,), [N m] or [N], joint axes.
            repeats: As in `JointLaws.step`.
        """
        friction, effort = self.friction * np.minimum(np.maximum(u * (1.0 / _SLOW), -1.0), 1.0), h * drive
        pushed = self.inverse * effort
        if not repeats:  # contact forces, which are not known here, balance most of the forces of the motors
            most = np.maximum(np.abs(u), _NEAR)
            pushed = np.minimum(np.maximum(pushed, -most), most)
        return u + pushed, _SCALE * effort - friction

    def residual(self, u: Array, p: Array, pieces: Pieces) -> Array:
        """Return the distances of u from the laws, (n,), [rad/s] or [m/s]: |u - prox(u - p / I)| on given pieces.

        Args:
            u: Velocities, (n,), [rad/s] or [m/s], joint axes. p: Impulses, (n,), [N m s] or [N s], joint axes.
            pieces: See `pieces`.
        """
        total = self.inertia * u - p + pieces.slope * pieces.target + pieces.constant
        return np.abs(u - total / (self.inertia + pieces.slope))


class JointStep(NamedTuple):
    """Joints in a time step.

    Attributes:
        vdot: Mean acceleration, (nv,).
        slope: Inertia that the laws add to the joints, (nv,), [kg m^2] or [kg].
        impulse: -E (u - t) + c as E t + c at u = 0, (nv,), [N m s] or [N s]; see `impulse_at`.
    """

    vdot: Array
    slope: Array
    impulse: Array

    def impulse_at(self, v: Array) -> Array:
        """Return the impulse of stops and dry friction of the step, (nv,), [N m s] or [N s], joint axes.

        Args:
            v: Velocity after it, (nv,), mixed units.
        """
        return self.impulse - self.slope * v


class _Row(NamedTuple):
    """An entry of v with stops or dry friction: its stops, dry friction and inertia."""

    entry: int
    stops: Sequence[Stop]
    friction: Any
    inertia: Any


def dry_friction(robot: Robot) -> dict[int, Any]:
    """Return the dry friction along each entry of v that has some, [N m] or [N].

    Args:
        robot: The robot.
    """
    friction: dict[int, Any] = {}
    for body in robot.bodies[1:]:
        values = np.broadcast_to(np.asarray(body.physics.friction), body.nv).tolist()
        for i, value in zip(range(body.v.start, body.v.stop), values, strict=True):
            if not is_zero(value):
                friction[i] = friction.get(i, 0.0) + abs(body.ratio) * value
    return friction


@dataclass(frozen=True, eq=False)
class JointLaws:
    """The stops and the dry friction of a robot.

    Attributes:
        rows: One for each entry of v that has some.
        nv: Number of entries of v.
    """

    rows: tuple[_Row, ...]
    nv: int

    @classmethod
    def of(cls, robot: Robot) -> JointLaws:
        """Return the laws of a robot; followers act on the entry of the joint that they follow."""
        friction, stops = dry_friction(robot), dict[int, list[Stop]]()
        inertias = inertias_at_stops(robot) if friction or limited(robot) else np.zeros(0)
        for stop in stops_of(robot, inertias):
            stops.setdefault(stop.body.v.start, []).append(stop)
        entries = sorted({*friction, *stops})
        rows = (_Row(i, stops.get(i, ()), friction.get(i, 0.0), inertias[i]) for i in entries)
        return cls(tuple(rows), robot.nv)

    @property
    def has_friction(self) -> bool:
        """Whether there is dry friction."""
        return not all(is_zero(row.friction) for row in self.rows)

    def at(self, h: Any, q: Array, v: Array, ground: Ground | Rigid | None) -> Laws:
        """Return the laws of a step.

        Args:
            h: The step, [s]. q: Configuration, (nq,), mixed units; of a step on rigid ground that in its middle.
            v: Velocity before the step, (nv,), mixed units. ground: The ground; stops are rigid on a `Rigid` one.
        """
        if not self.rows:
            return Laws(*[np.zeros(0)] * 8)
        stiff = where(is_lost(1e-10 * h, h), _STIFF_SINGLE, _STIFF)
        columns = []
        for row in self.rows:
            lower, upper = (-_UNLIMITED, 0.0), (_UNLIMITED, 0.0)
            for stop in row.stops:
                ends = _rigid(stop, h, q, v, ground) if isinstance(ground, Rigid) else _compliant(stop, h, q)
                for bound, slope, is_upper in ends:
                    slope = stiff * row.inertia if slope is None else slope
                    if is_upper:
                        upper = _nearest(upper, (bound, slope), bound < upper[0])
                    else:
                        lower = _nearest(lower, (bound, slope), bound > lower[0])
            bounds = lower[0], upper[0], lower[1], upper[1], stiff * row.inertia
            columns.append((h * row.friction, row.inertia, 1.0 / row.inertia, *bounds))
        return Laws(*(as_vector(list(column)) for column in zip(*columns, strict=True)))

    def step(
        self,
        laws: Laws,
        h: Any,
        v: Array,
        drive: Array,
        acceleration: Callable[[Array, Array, Callable[[Array], Array]], Array],
        refines: bool = False,
        repeats: bool = True,
    ) -> JointStep:
        """Return the joints in a step that satisfies the laws.

        Args:
            laws: See `at`. h: The step, [s]. v: Velocity before it, (nv,), mixed units.
            drive: Generalized forces of the actuators, (nv,), [N m] or [N], joint axes, from which the first pieces are
                guessed.
            acceleration: Function (extra, tau, last) -> vdot, (nv,), mixed units, with an inertia added to the joints,
                (nv,), generalized forces beside the others, (nv,), and last(x), the last vdot or x without one.
            refines: Whether the acceleration depends on the last one; it is then computed again after the last change
                of the pieces, and traced once, in a loop, which may not contain new elementary functions.
            repeats: Whether pieces change until the laws are satisfied; otherwise the first ones are taken, as a guess
                of the rows of a contact problem.
        """
        if not self.rows:
            none = np.zeros(self.nv)
            return JointStep(acceleration(none, none, lambda vdot: vdot), none, none)
        entries, nv, n = [row.entry for row in self.rows], self.nv, len(self.rows)
        own, rate = v[entries], 1.0 / h

        def attempt(pieces: Pieces, last: Callable[[Array], Array] = lambda vdot: vdot) -> tuple[Array, Array, Array]:
            """Return the acceleration on these pieces, and the velocities and impulses that it has."""
            impulse = pieces.slope * (pieces.target - own) + pieces.constant
            vdot = acceleration(self._spread(pieces.slope), self._spread(impulse * rate), last)
            u = own + h * vdot[entries]
            return vdot, u, pieces.constant - pieces.slope * (u - pieces.target)

        def change(state: Array) -> Array:
            """Return the next [vdot; z; now; count, 1.0 to go on]: `now` is (u, p) on the pieces that z indicates."""
            z = state[nv : nv + 2 * n].reshape(2, n)
            now, count = state[nv + 2 * n : nv + 4 * n].reshape(2, n), state[-2]
            is_first = refines and count < 0.0  # without vdot; `now` is z
            residual = laws.residual(now[0], now[1], laws.pieces(now[0], now[1]))
            largest, speed = maximum_of(residual), maximum_of(np.abs(now[0]))
            z = np.array(
                [where((residual >= largest) | (count < _JOINT_CHANGES), *x) for x in zip(now, z, strict=True)]
            )
            before, pieces = laws.pieces(*state[nv : nv + 2 * n].reshape(2, n)), laws.pieces(*z)
            vdot, *now = attempt(pieces, lambda begin: where(is_first, begin, state[:nv]))
            differ = pieces.differ(laws.pieces(*now))
            differ = differ | pieces.differ(before) if refines else differ
            changes = (is_first | ((largest > LEAST_CHANGE) & ~is_lost(largest, speed))) & differ
            return np.concatenate([vdot, *z, *now, np.stack([count + 1.0, where(changes, 1.0, 0.0)])])

        z = laws.first_guess(h, own, drive[entries], repeats)
        pieces = laws.pieces(*z)
        if not repeats:
            vdot = attempt(pieces)[0]
        else:
            begin = np.zeros(nv), *z, *z, np.stack([0.0 * h - 1.0, 0.0 * h + 1.0])
            if not refines:
                vdot, *now = attempt(pieces)
                begin = vdot, *z, *now, np.stack([0.0 * h, where(pieces.differ(laws.pieces(*now)), 1.0, 0.0)])
            end = repeat_while(change, np.concatenate(begin), MOST_CHANGES + refines)
            vdot, pieces = end[:nv], laws.pieces(end[nv : nv + n], end[nv + n : nv + 2 * n])
        impulse = pieces.slope * pieces.target + pieces.constant
        return JointStep(vdot, self._spread(pieces.slope), self._spread(impulse))

    def rows_of(self, h: Any, q: Array, v: Array, ground: Ground | Rigid | None, step: JointStep) -> JointRows:
        """Return the rows of the contact problem of a step on rigid ground.

        Args:
            h, q, v, ground: As in `at`. step: The joints without contacts or with those of the last step.
        """
        entries, laws = [row.entry for row in self.rows], self.at(h, q, v, ground)
        own = laws.friction, laws.lower, laws.upper, laws.inverse
        return JointRows(entries, *own, step.slope[entries], step.impulse[entries], self.has_friction)

    def _spread(self, values: Array) -> Array:
        """Return one number for each entry of v, (nv,), from those of the rows, (n,), zero elsewhere."""
        forces: list[Any] = [0.0] * self.nv
        for row, value in zip(self.rows, values, strict=True):
            forces[row.entry] = value
        return as_vector(forces)


def _nearest(one: tuple[Any, Any], other: tuple[Any, Any], is_nearer: Any) -> tuple[Any, Any]:
    return where(is_nearer, other[0], one[0]), where(is_nearer, other[1], one[1])


def _gaps(stop: Stop, q: Array) -> list[tuple[Any, float]]:
    """Return the gap to each stop of a joint, [rad] or [m], and the sign of its approach in the joint's coordinate."""
    x = stop.body.joint_position(q)[0]
    gaps = [(x - stop.lower, -1.0)] if is_finite(stop.lower) else []
    return [*gaps, (stop.upper - x, 1.0)] if is_finite(stop.upper) else gaps


def _compliant(stop: Stop, h: Any, q: Array) -> list[tuple[Any, Any, bool]]:
    """Return (bound, slope, whether it is the upper one) for each stop of a joint, of the entry of v."""
    ratio = stop.body.ratio
    damping = stop.damping + h * stop.stiffness
    speeds = [(gap * where(gap > 0.0, 1.0 / h, stop.stiffness / damping), sign) for gap, sign in _gaps(stop, q)]
    return [(sign * speed / ratio, ratio * ratio * h * damping, sign * ratio > 0.0) for speed, sign in speeds]


def _rigid(stop: Stop, h: Any, q: Array, v: Array, ground: Rigid) -> list[tuple[Any, Any, bool]]:
    """Return (bound, None, whether it is the upper one) for each stop of a joint, of the entry of v."""
    ratio, bounds = stop.body.ratio, []
    for gap, sign in _gaps(stop, q):
        approach = sign * ratio * v[stop.body.v.start]
        target = target_velocity(ground.recovery, gap, h)
        if not is_zero(stop.restitution):
            bounces = (gap < h * approach) & (approach > ground.threshold)
            target = where(bounces, np.maximum(stop.restitution * approach, target), target)
        bounds.append((-sign * target / ratio, None, sign * ratio > 0.0))
    return bounds
