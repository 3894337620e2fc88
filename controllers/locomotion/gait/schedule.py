"""Contact schedules: which feet stand and which swing, as functions of the phase of a gait's cycle.

Each foot has a local phase s from 0 to 1, s = phase - touchdown. It stands for s < duty and swings for the rest of the
cycle. A `ContactSchedule` holds these parameters for every foot; `GaitState` is the phase together with the present
parameters and the feet that stay on the ground beyond their schedule. It is part of a controller's memory, so that one
compiled kernel serves all gaits: parameters move from those of one gait to those of another while the robot walks.

Source:
    M. Hildebrand, "Symmetrical gaits of horses", Science 150, 1965 (duty factors and phases); R. McN. Alexander, "The
    gaits of bipedal and quadrupedal animals", International Journal of Robotics Research 3(2), 1984 (periods scale with
    sqrt(h / g)). The values are ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from controllers.locomotion.gait.swing import SOLE, forward_profile
from legged import arguments
from legged.arguments import known_name
from legged.checked import checked
from legged.compiler.ir import where
from legged.errors import DefinitionError, ShapeError
from legged.spatial import Array, sum_of

_SLEW = 0.2  # [cycles per cycle], largest change of phases and duty factors in transitions, below 1
_SHORTENING, _LENGTHENING = 10.0, 0.5  # [s/s], largest rates of the period; steps that catch a robot must come at once
_START = 0.2  # cycles from the start of a walk to the first lift-off, in which the weight shifts to the other feet
_START_ON_TWO = 0.35  # the same for two feet
EARLY = 0.5
"""Fraction of the swing after which contact ends it."""
_FOREVER = 1e3  # [s], time to the lift-off of a foot that stays on the ground


@checked
@dataclass(frozen=True)
class ContactSchedule:
    """Period, duty factors and touchdown phases of a gait.

    Attributes:
        period: Duration of a cycle, in which each foot stands and swings once, [s].
        duty: Fraction of the cycle in which a foot stands, in (0, 1], one number or one for each foot.
        touchdowns: Phase of the cycle at which each foot touches down, in [0, 1).
    """

    period: float
    duty: float | Sequence[float] | Array
    touchdowns: Sequence[float] | Array

    def __post_init__(self) -> None:
        arguments.number("period", self.period, "s", above=0.0)
        touchdowns = arguments.rounded_array("touchdowns", self.touchdowns, (None,)) % 1.0
        duty = arguments.rounded_array("duty", self.duty)
        if duty.shape not in ((), touchdowns.shape):
            raise ShapeError(f"duty must be one number or {touchdowns.shape}, one for each foot, got {duty.shape}")
        if not (len(touchdowns) and (duty > 0.0).all() and (duty <= 1.0).all()):
            raise DefinitionError(f"duty factors must lie in (0, 1] and there must be a foot, got {self.duty}")
        object.__setattr__(self, "touchdowns", tuple(touchdowns.tolist()))
        object.__setattr__(self, "duty", tuple(np.broadcast_to(duty, touchdowns.shape).tolist()))

    @property
    def parameters(self) -> Array:
        """[period, duty factors, touchdowns], (1 + 2 n,), [s] and cycles."""
        return np.concatenate([[self.period], np.asarray(self.duty), np.asarray(self.touchdowns)])


class GaitState(NamedTuple):
    """The state of a gait with n feet, of numbers or traced expressions.

    Attributes:
        phase: Phase of the cycle, from 0 to 1.
        walking: 1 if feet lift off, 0 if each foot stays on the ground once it stands.
        planted: 1 for each foot that stays on the ground until its next lift-off whatever its local phase, (n,).
        period: Duration of a cycle, [s].
        duty: Fraction of the cycle in which each foot stands, (n,).
        touchdowns: Phase at which each foot touches down, (n,).
        waited: Time for which the phase has stopped for a foot that finds no ground or an obstacle, [s].
    """

    phase: Any
    walking: Any
    planted: Array
    period: Any
    duty: Array
    touchdowns: Array
    waited: Any = 0.0

    @staticmethod
    def size(n: int) -> int:
        """Return the length of `flat` for n feet."""
        return 4 + 3 * n

    @classmethod
    def of(cls, flat: Array) -> GaitState:
        """Return the state from its vector.

        Args:
            flat: As the method `flat` returns it, (4 + 3 n,), mixed units.
        """
        n = (len(flat) - 4) // 3
        planted, period, duty, touchdowns = flat[3 : 3 + n], flat[3 + n], flat[4 + n : 4 + 2 * n], flat[4 + 2 * n :]
        return cls(flat[0], flat[1], planted, period, duty, touchdowns, flat[2])

    @classmethod
    def standing(cls, schedule: ContactSchedule) -> GaitState:
        """Return the state of a robot that stands on all feet and starts to walk with the first foot.

        Args:
            schedule: The gait.
        """
        period, duty, touchdowns = _split(schedule.parameters)
        start = _start_phase(duty, touchdowns)
        return cls(start, 0.0, np.ones(len(duty)), period, duty, touchdowns)

    def flat(self) -> Array:
        """Return the state as a vector, (4 + 3 n,), mixed units."""
        head, middle = np.stack([self.phase, self.walking, self.waited]), np.stack([self.period])
        return np.concatenate([head, self.planted, middle, self.duty, self.touchdowns])

    @property
    def local(self) -> list[Any]:
        """Local phase of each foot, from 0 at touchdown to 1, (n,)."""
        return [_fraction(self.phase - touchdown) for touchdown in self.touchdowns]

    @property
    def stance(self) -> list[Any]:
        """1 for each foot that stands, 0 for each that swings, (n,)."""
        return self.stance_after(0.0)

    def stance_after(self, time: Any) -> list[Any]:
        """Return 1 for each foot that stands after a time from now, 0 for each that swings, (n,).

        Args:
            time: Number or traced, [s], not negative and at most a period.
        """
        stances = []
        for s, planted, duty in zip(self.local, self.planted, self.duty, strict=True):
            later = s + time / self.period
            scheduled = where(_fraction(later) < duty, 1.0, 0.0)
            kept = where((planted > 0.5) & ((s < duty) | (later < 1.0 + duty)), 1.0, 0.0)
            kept = where((s < duty) & (later >= duty), 0.0, kept)
            walking = np.maximum(scheduled, kept)
            stopped = where((s < duty) | (planted > 0.5) | (later >= 1.0), 1.0, 0.0)
            stances.append(where(self.walking > 0.5, walking, stopped))
        return stances

    def swings_after(self, time: Any) -> list[tuple[tuple[Any, Any], tuple[Any, Any]]]:
        """Return (distance, its rate) of the present or next swing and of the one after it, for each foot, (n,).

        Distances grow from 0 at lift-off to 1 at touchdown, as those of flat feet, see `forward_profile`; rates are in
        1/s.

        Args:
            time: From now, number or traced, [s], not negative and at most a period.
        """
        swinging = []
        for s, planted, duty in zip(self.local, self.planted, self.duty, strict=True):
            length = np.maximum(1.0 - duty, 1e-6)
            rate = 1.0 / (length * self.period)
            swings = []
            for lift_off, share in (
                (duty, where(s < duty, self.walking, 1.0 - planted)),
                (1.0 + duty, self.walking),
            ):
                x = np.minimum(np.maximum((s + time / self.period - lift_off) / length, 0.0), 1.0)
                distance, speed, _ = forward_profile(x, rate, SOLE)
                swings.append((share * distance, share * speed))
            swinging.append((swings[0], swings[1]))
        return swinging

    @property
    def until_middle(self) -> list[Any]:
        """Time to the middle of the stance of each foot, negative after it, of the next one in the air, (n,), [s]."""
        rows = zip(self.local, self.duty, self.stance, strict=True)
        return [(0.5 * duty - s + 1.0 - stands) * self.period for s, duty, stands in rows]

    @property
    def swing_progress(self) -> list[Any]:
        """Fraction of the swing that has passed, from 0 to 1 for a foot that swings, (n,)."""
        pairs = zip(self.local, self.duty, strict=True)
        return [np.maximum(0.0, (s - duty) / np.maximum(1.0 - duty, 1e-6)) for s, duty in pairs]

    def due(self, share: Any) -> list[Any]:
        """Return 1 for each foot in the air that is to touch down within a share of the cycle, 0 for others, (n,).

        Args:
            share: [cycles].
        """
        feet = zip(self.local, self.planted, self.duty, strict=True)
        return [where((s >= duty) & (planted < 0.5) & (s + share >= 1.0), 1.0, 0.0) for s, planted, duty in feet]

    @property
    def time_to_touchdown(self) -> list[Any]:
        """Time to the next scheduled touchdown of each foot, (n,), [s]."""
        return [(1.0 - s) * self.period for s in self.local]

    @property
    def time_to_lift_off(self) -> list[Any]:
        """Time to the next lift-off of each foot that stands, (n,), [s]; a thousand seconds if it stays."""
        times = []
        for s, duty in zip(self.local, self.duty, strict=True):
            left = where(s < duty, duty - s, 1.0 + duty - s) * self.period
            times.append(where((self.walking > 0.5) & (duty < 1.0), left, _FOREVER))
        return times

    @property
    def starts(self) -> Any:
        """1 if the robot is to walk and no foot has lifted off since it stood, 0 otherwise."""
        return reduce(lambda a, b: a * b, self.planted, self.walking)

    def advanced(
        self,
        time: Any,
        walk: Any,
        touched: Sequence[Any],
        parameters: Array,
        patience: Any = 0.0,
        rising: Any = 0.0,
        second: Any = 0.0,
    ) -> GaitState:
        """Return the state after a short time.

        Phases and duty factors move towards the parameters of the desired gait by at most a fifth of a cycle per cycle,
        and the period at once to a shorter one and slowly to a longer one. A robot at rest takes them all at once. A
        foot stays on the ground at its lift-off if the robot is to stand, and ends its swing early if it touches the
        ground in the second half. When all feet of a robot that is to stand are on the ground, the phase stops before
        the lift-off of the first foot. It also stops before the touchdown of a foot without contact, since the feet
        that are to lift off then carry the robot, and while a foot rises over an obstacle.

        Args:
            time: Duration, [s], much shorter than a swing.
            walk: 1 to walk, 0 to stop.
            touched: 1 for each foot that is in contact with the ground, (n,).
            parameters: Parameters of the desired gait, (1 + 2 n,), see `ContactSchedule.parameters`.
            patience: Longest time for which the phase stops for a foot, [s].
            rising: Positive while a foot rises over an obstacle.
            second: 1 if the second of two feet is to lift off first from rest.
        """
        rested = 1.0 - where(self.walking > 0.5, 1.0, 0.0)
        for k in self.stance:
            rested = rested * k
        rested = rested > 0.5
        most = where(rested, 1.0, _SLEW * time / self.period)
        period, duty, touchdowns = _split(parameters)
        moved = [
            _fraction(b + _bounded(_nearest(a - b), most)) for a, b in zip(touchdowns, self.touchdowns, strict=True)
        ]
        factors = [b + _bounded(a - b, most) for a, b in zip(duty, self.duty, strict=True)]
        slowly = np.minimum(np.maximum(period, self.period - _SHORTENING * time), self.period + _LENGTHENING * time)
        length = where(rested, period, slowly)
        state = self._replace(period=length, duty=np.stack(factors), touchdowns=np.stack(moved), walking=walk)
        late = sum_of(due * (1.0 - contact) for due, contact in zip(self.due(time / length), touched, strict=True))
        waits = (late + rising > 0.0) & (self.waited < patience)
        begin = where(rested, _start_phase(state.duty, state.touchdowns, second), self.phase)
        phase = _fraction(begin + where(waits, 0.0, time / length))
        state = state._replace(waited=where(waits, self.waited + time, 0.0))
        all_stand = 1.0
        for k in self.stance:
            all_stand = all_stand * k
        rest = (walk < 0.5) & (all_stand > 0.5)
        phase = where(rest, _start_phase(state.duty, state.touchdowns, second), phase)
        state = state._replace(phase=phase)
        planted = []
        feet = zip(
            self.local, self.duty, state.local, state.duty, state.swing_progress, self.planted, touched, strict=True
        )
        for before, d_before, s, d, progress, was, contact in feet:
            lifts = (before < d_before) & (s >= d)
            landed = where((s >= d) & (progress > EARLY) & (contact > 0.5), 1.0, was)
            planted.append(where(rest, 1.0, where(lifts, 1.0 - walk, landed)))
        return state._replace(planted=np.stack(planted))


class _Named(NamedTuple):
    """A named gait for any number of feet.

    Attributes:
        period: Duration of a cycle, [sqrt(h / g)] for the hip height h.
        duty: Duty factor, as a function of the number of feet.
        touchdown: Touchdown phase as a function of (row from the rear, side: 0 left and 1 right, number of rows).
    """

    period: float
    duty: Callable[[int], float]
    touchdown: Callable[[int, int, int], float]


def _alternating(row: int, side: int, rows: int) -> float:
    return 0.5 * ((row + side) % 2)


def _wave(row: int, side: int, rows: int) -> float:
    return 0.5 * side + 0.5 * row / rows


GAITS: dict[str, _Named] = {
    "stand": _Named(2.8, lambda n: 1.0, _alternating),
    "trot": _Named(2.8, lambda n: 0.5, _alternating),
    "tripod": _Named(2.8, lambda n: 0.5, _alternating),
    "walk": _Named(3.6, lambda n: 0.6 if n <= 2 else 0.7, _wave),
    "crawl": _Named(9.0, lambda n: 1.0 - 0.8 / n, _wave),
    "pace": _Named(2.2, lambda n: 0.6, lambda row, side, rows: 0.5 * side),
    "bound": _Named(1.8, lambda n: 0.6, lambda row, side, rows: row / rows),
    "gallop": _Named(2.2, lambda n: 0.5, lambda row, side, rows: row / rows + 0.15 * side),
    "pronk": _Named(2.2, lambda n: 0.6, lambda row, side, rows: 0.0),
}
"""Gaits by name: trot (diagonal pairs; of six legs the tripods), walk (lateral sequence; of two legs alternating),
crawl (one foot at a time), pace (feet of a side), bound (feet of a row), gallop (a bound with the feet of a row one
after the other), pronk (all feet), stand."""


@checked
def contact_schedule(name: str, hips: Array, time_unit: float) -> ContactSchedule:
    """Return the schedule of a named gait for feet at given places.

    Feet of each side are numbered from the rear; the left side has y >= 0.

    Args:
        name: "stand", "trot", "tripod", "walk", "crawl", "pace", "bound", "gallop" or "pronk".
        hips: Position of each foot's hip, (n, 2), [m], base axes.
        time_unit: sqrt(h / g) of the hip height h and the gravity g, [s].

    Raises:
        UnknownNameError: There is no such gait.
    """
    gait = GAITS[known_name("gait", name, GAITS)]
    hips = arguments.rounded_array("hips", hips, (None, 2))
    rows = foot_rows(hips)
    count = max(row for row, _ in rows) + 1
    touchdowns = [gait.touchdown(row, side, count) for row, side in rows]
    return ContactSchedule(gait.period * time_unit, gait.duty(len(hips)), touchdowns)


def foot_rows(hips: Array) -> list[tuple[int, int]]:
    """Return (row from the rear, side: 0 left and 1 right) of each foot.

    Args:
        hips: Position of each foot's hip, (n, 2), [m], base axes.
    """
    sides = [0 if y >= 0.0 else 1 for _, y in hips]
    rows = []
    for (x, _), side in zip(hips, sides, strict=True):
        rows.append((sum(1 for (other, _), its in zip(hips, sides, strict=True) if its == side and other < x), side))
    return rows


def _split(parameters: Array) -> tuple[Any, Array, Array]:
    n = (len(parameters) - 1) // 2
    return parameters[0], parameters[1 : 1 + n], parameters[1 + n :]


def _start_phase(duty: Array, touchdowns: Array, second: Any = 0.0) -> Any:
    """Return the phase of a cycle at which the first foot lifts off after the time for the shift of the weight.

    If all feet lift off at once, as in a jump, they push for a whole stance. On two feet, `second` is 1 if foot 1 is to
    lift off before foot 0, since the robot walks to its side: otherwise it moves past foot 1 before foot 0 lands.
    """
    start = _START_ON_TWO if len(touchdowns) == 2 else _START
    apart = 0.0
    for touchdown in touchdowns[1:]:
        apart = np.maximum(apart, np.abs(_nearest(touchdown - touchdowns[0])))
    start = where(apart > 1e-6, start, duty[0]) if len(touchdowns) > 1 else start
    first = where(second > 0.5, touchdowns[1], touchdowns[0]) if len(touchdowns) == 2 else touchdowns[0]
    return _fraction(first + np.maximum(duty[0] - start, 0.0))


def _fraction(x: Any) -> Any:
    return x - np.floor(x)


def _nearest(x: Any) -> Any:
    """Return a difference of phases from -1/2 to 1/2."""
    return x - np.floor(x + 0.5)


def _bounded(x: Any, most: Any) -> Any:
    return np.minimum(np.maximum(x, -most), most)
