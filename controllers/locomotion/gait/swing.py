"""Paths of swinging feet: from the place of lift-off to the landing place, over the terrain between them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from legged.compiler.ir import where
from legged.spatial import Array

_REPLAN = 0.1  # of a swing: time constant with which the landing place of a swinging foot moves
_DECIDED = 0.3  # of a swing: time after which the landing place stays on its tread of stairs
_EARLY = 0.5  # lead on known heights, relative to the slope of the steepest line, see `swing_lead`
_RISING = 0.5  # weight at lift-off of the vertical motion of feet that follow their paths closely, see `path_weights`
_OBSTACLE = 0.1  # lead from which on a foot is close to an edge


class Profile(NamedTuple):
    """Shape of a swing.

    Attributes:
        ramp: Fraction of the swing in which a foot accelerates forward, and in which it decelerates.
        power: The height over the straight line is (4 x (1 - x))^power at the fraction x of the swing, relative to its
            largest value. With 2 the path takes less effort; with 3 the foot lands without acceleration.
        lead: Largest fraction of the swing for which a foot that lands higher than it lifts off rises before it moves
            forward, see `swing_lead`.
    """

    ramp: float
    power: int
    lead: float

    @property
    def peak(self) -> float:
        """Largest forward velocity, relative to the mean."""
        return 1.0 / (1.0 - self.ramp)

    @property
    def climb(self) -> float:
        """Largest vertical velocity over the straight line, relative to the rise divided by the duration of a swing."""
        p = self.power
        return 4.0 * p / (2.0 * p - 1.0) ** 0.5 * ((2.0 * p - 2.0) / (2.0 * p - 1.0)) ** (p - 1)


POINT = Profile(0.25, 2, 0.3)
"""Swings of point feet, which are fast."""
SOLE = Profile(1.0 / 3.0, 3, 0.2)
"""Swings of flat feet."""


class Swing(NamedTuple):
    """Desired motion of a foot.

    Attributes:
        position: (3,), [m], world axes.
        velocity: (3,), [m/s], world axes.
        acceleration: (3,), [m/s^2], world axes.
        obstacle: From 0 on even ground to 1, if the foot has to follow its path, dimensionless.
    """

    position: Array
    velocity: Array
    acceleration: Array
    obstacle: Any = 0.0


def swing_path(
    progress: Any, duration: Any, start: Array, end: Array, rise: Any, profile: Profile = POINT, lead: Any = 0.0
) -> Swing:
    """Return the motion of a foot that leaves the ground at rest, rises over the straight line, and lands at rest.

    The motions along the horizontal and the vertical part of the line from start to end have constant acceleration,
    constant velocity, and constant deceleration. At the fraction x of the swing, `progress`, the height over the line
    is (4 x (1 - x))^power times the rise. With a lead f the foot first rises: the horizontal motion takes place in x
    from f to 1, and the vertical one in x from 0 to 1 - f. Thus a foot in a gap or below a step does not meet its wall.
    With a negative one the vertical motion comes later, so that a foot that steps down does not meet the edge.

    Args:
        progress: Fraction of the swing that has passed, from 0 to 1.
        duration: Duration of the swing, [s].
        start: Place of lift-off, (3,), [m], world axes.
        end: Landing place, (3,), [m], world axes.
        rise: Largest height over the straight line, in the middle of the swing, [m], world z.
        profile: Shape of the swing, the same as for `swing_rise`.
        lead: As from `swing_lead`, dimensionless.
    """
    most, rate = np.abs(lead), 1.0 / duration
    faster = rate / (1.0 - most)
    first = forward_profile(np.minimum(progress / (1.0 - most), 1.0), faster, profile)
    second = forward_profile(np.maximum(progress - most, 0.0) / (1.0 - most), faster, profile)
    first = (*first[:2], where(progress > 1.0 - most, 0.0, first[2]))
    second = (*second[:2], where(progress < most, 0.0, second[2]))
    s, ds, dds = (where(lead > 0.0, b, a) for a, b in zip(first, second, strict=True))
    u, du, ddu = (where(lead > 0.0, a, b) for a, b in zip(first, second, strict=True))
    power = profile.power
    parabola, parabola_rate = 4.0 * progress * (1.0 - progress), (4.0 - 8.0 * progress) * rate
    factor = parabola ** (power - 2)
    over, dover = factor * parabola * parabola, power * factor * parabola * parabola_rate
    ddover = power * factor * ((power - 1) * parabola_rate * parabola_rate - 8.0 * rate * rate * parabola)
    x, y, z = end - start
    return Swing(
        start + np.array([x * s, y * s, z * u + rise * over]),
        np.array([x * ds, y * ds, z * du + rise * dover]),
        np.array([x * dds, y * dds, z * ddu + rise * ddover]),
        np.minimum(most / _OBSTACLE, 1.0),
    )


def path_weights(swing: Swing, progress: Any, on_soles: bool, closely: bool) -> tuple[Any, Any]:
    """Return the weights of the horizontal and of the vertical motion of a foot along its path, from 0 to 1.

    On a point foot the vertical weight is 1, and the horizontal one increases with the power 3/2 of the progress. Where
    motors are at their limits, the foot then lags, and the acceleration of the leg does not lift or turn the body.

    A flat foot has to follow its path closely at obstacles, in quick steps of heavy legs, and without ankle roll:
    with low weights the leg moves as the balance of momentum needs it where the other ankle has too little torque. The
    foot then does not rise as high as its path and lands up to a fifth of the swing early, and each step becomes wider
    than the last.

    Args:
        swing: The path. progress: Fraction of the swing that has passed, from 0 to 1.
        on_soles: Whether the feet are flat.
        closely: Whether the foot follows its path closely, also without obstacles.
    """
    late = progress * progress
    if not on_soles:
        return progress * np.sqrt(progress), 1.0
    if closely:
        return late, np.maximum(np.maximum(swing.obstacle, _RISING), late)
    return swing.obstacle * late, swing.obstacle


def swing_lead(start: Array, end: Array, profile: Profile, heights: Sequence[Any] = (), slope: Any = 0.0) -> Any:
    """Return the lead of a swing, from -`Profile.lead` to `Profile.lead`.

    If it is positive, the foot only rises for this fraction of the swing, and then moves forward; if it is negative,
    the foot moves forward first, and only sinks for this fraction at the end. Without heights the lead is the slope of
    the straight line from start to end, zero downward. With heights it is half of the difference of two slopes: that of
    the steepest line from the start to the end or to the terrain between, minus that of the ground. If the end is
    below the plane of the ground through the start, the lines begin at the end instead, and the lead is negative.

    Args:
        start: As in `swing_path`, (3,), [m], world axes. end: As in `swing_path`, (3,), [m], world axes.
        profile: As in `swing_path`.
        heights: As in `swing_rise`, [m], world z.
        slope: Of the ground under the robot along world x and y, (2,), dimensionless; only with heights.
    """
    x, y, climb = end - start
    length = np.sqrt(x * x + y * y + 1e-12)
    if not len(heights):
        return np.minimum(profile.lead, np.maximum(climb, 0.0) / length)
    usual, count = slope @ np.stack([x, y]), len(heights) + 1.0
    ahead = reduce(np.maximum, [(height - start[2]) * (count / k) for k, height in enumerate(heights, 1)], climb)
    back = reduce(
        np.maximum, [(height - end[2]) * (count / (count - k)) for k, height in enumerate(heights, 1)], -climb
    )
    up, down = ahead - np.maximum(usual, 0.0), back - np.maximum(-usual, 0.0)
    lead = np.minimum(profile.lead, _EARLY * np.maximum(where(climb < usual, down, up), 0.0) / length)
    return where(climb < usual, -lead, lead)


def moved_target(
    last: Array,
    wanted: Array,
    progress: Any,
    duration: Any,
    slope: Array,
    ledge: Any,
    dt: float,
    heights: Sequence[Any] = (),
) -> Array:
    """Return the landing place of a swinging foot after a time step, (3,), [m], world axes.

    It follows the wanted place with a time constant of a tenth of the swing, so that the path is smooth. On the way to
    another tread of stairs, or to another stone, it would pass an edge: it moves there at once in the first 0.3 of the
    swing, and not at all later.

    Args:
        last: Landing place before, (3,), [m], world axes.
        wanted: Wanted landing place, (3,), [m], world axes.
        progress: Fraction of the swing that has passed, from 0 to 1.
        duration: Duration of the swing, [s].
        slope: Slope of the ground under the robot along world x and y, (2,), dimensionless.
        ledge: Difference of height from this slope, beyond which two places are on different treads, [m].
        dt: Time step, [s].
        heights: Heights of the ground at equal distances between the two places, [m], world z; none if it is unknown.
    """
    shift = wanted - last
    climb = slope @ shift[:2]
    changes = np.abs(shift[2] - climb) > ledge
    for k, height in enumerate(heights, 1):
        changes = changes | (np.abs(height - last[2] - climb * (k / (len(heights) + 1.0))) > ledge)
    share = np.minimum(1.0, dt / (_REPLAN * duration + dt))
    return last + shift * where(changes, where(progress < _DECIDED, 1.0, 0.0), share)


def swing_rise(
    start: Array,
    end: Array,
    clearance: Any,
    heights: Sequence[Any] = (),
    profile: Profile = POINT,
    lead: Any = 0.0,
) -> Any:
    """Return the rise of a swing over the straight line from start to end, [m].

    The path passes each place of the terrain between at a height of at least the clearance times (4 x (1 - x))^power,
    see `swing_path`.

    Args:
        start: Place of lift-off, (3,), [m], world axes.
        end: Landing place, (3,), [m], world axes.
        clearance: Height over line and terrain in the middle of the swing, [m].
        heights: Heights of the terrain at equal distances between the two places, [m], world z; none without a known
            terrain.
        profile: As in `swing_path`. lead: As in `swing_path`, dimensionless.
    """
    most: Any = 0.0
    for k, height in enumerate(heights, 1):
        passed = (1.0 - np.abs(lead)) * _progress_at(k / (len(heights) + 1.0), profile)
        x = np.maximum(lead, 0.0) + passed
        line, _, _ = forward_profile(
            np.minimum(np.maximum(passed + lead, 0.0) / (1.0 - np.abs(lead)), 1.0), 1.0, profile
        )
        over = height - start[2] - (end[2] - start[2]) * line
        most = np.maximum(most, over * (4.0 * x * (1.0 - x)) ** -profile.power)
    return most + clearance


def _progress_at(distance: float, profile: Profile) -> float:
    """Return the fraction of a swing after which a foot has moved by a fraction of its path; see `forward_profile`."""
    near, ramp, peak = min(distance, 1.0 - distance), profile.ramp, profile.peak
    x = math.sqrt(2.0 * ramp * near / peak) if near < 0.5 * peak * ramp else near / peak + 0.5 * ramp
    return x if distance < 0.5 else 1.0 - x


def forward_profile(x: Any, rate: Any, profile: Profile = POINT) -> tuple[Any, Any, Any]:
    """Return the distance from 0 to 1, velocity and acceleration of a trapezoidal velocity profile.

    Args:
        x: Fraction of the swing that has passed, from 0 to 1.
        rate: Swings per time, [1/s].
        profile: Shape of the swing.
    """
    ramp, peak = profile.ramp, profile.peak
    late, near = x > 0.5, np.minimum(x, 1.0 - x)
    ramps = near < ramp
    s = where(ramps, 0.5 * peak / ramp * near * near, peak * (near - 0.5 * ramp))
    acceleration = where(ramps, where(late, -peak / ramp, peak / ramp), 0.0)
    return where(late, 1.0 - s, s), np.minimum(peak, peak / ramp * near) * rate, acceleration * rate * rate
