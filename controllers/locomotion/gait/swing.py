"""Paths of swinging feet: from the place of lift-off to the landing place, over the terrain between them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from legged.compiler.ir import where
from legged.spatial import Array

_REPLAN = 0.1  # of a swing: time constant with which the landing place of a swinging foot moves
_DECIDED = 0.3  # of a swing: time after which the landing place stays on its tread of stairs


class Profile(NamedTuple):
    """Shape of a swing.

    Attributes:
        ramp: Fraction of the swing in which a foot accelerates forward, and in which it decelerates.
        power: The height over the straight line is (4 x (1 - x))^power at the fraction x of the swing, relative to its
            largest value. With 2 the path takes less effort; with 3 the foot lands without acceleration.
        lead: Largest fraction of the swing for which a foot that lands higher than it lifts off rises before it moves
            forward, see `swing_path`.
    """

    ramp: float
    power: int
    lead: float

    @property
    def peak(self) -> float:
        """Largest forward velocity, relative to the mean."""
        return 1.0 / (1.0 - self.ramp)


POINT = Profile(0.25, 2, 0.3)
"""Swings of point feet, which are fast."""
SOLE = Profile(1.0 / 3.0, 3, 0.0)
"""Swings of flat feet."""


class Swing(NamedTuple):
    """Desired motion of a foot.

    Attributes:
        position: (3,), [m], world axes.
        velocity: (3,), [m/s], world axes.
        acceleration: (3,), [m/s^2], world axes.
    """

    position: Array
    velocity: Array
    acceleration: Array


def swing_path(progress: Any, duration: Any, start: Array, end: Array, rise: Any, profile: Profile = POINT) -> Swing:
    """Return the motion of a foot that leaves the ground at rest, rises over the straight line, and lands at rest.

    The motions along the horizontal and the vertical part of the line from start to end have constant acceleration,
    constant velocity, and constant deceleration. At the fraction x of the swing, `progress`, the height over the line
    is (4 x (1 - x))^power times the rise. On a line that climbs, the foot first rises: with f the slope of the line,
    but at most `Profile.lead`, the horizontal motion takes place in x from f to 1, and the vertical one in x from 0 to
    1 - f. Thus a foot in a gap or below a step does not meet its wall.

    Args:
        progress: Fraction of the swing that has passed, from 0 to 1.
        duration: Duration of the swing, [s].
        start: Place of lift-off, (3,), [m], world axes.
        end: Landing place, (3,), [m], world axes.
        rise: Largest height over the straight line, in the middle of the swing, [m], world z.
        profile: Shape of the swing, the same as for `swing_rise`.
    """
    lead, rate = _lead(start, end, profile), 1.0 / duration
    faster = rate / (1.0 - lead)
    s, ds, dds = forward_profile(np.maximum(progress - lead, 0.0) / (1.0 - lead), faster, profile)
    u, du, ddu = forward_profile(np.minimum(progress / (1.0 - lead), 1.0), faster, profile)
    dds, ddu = where(progress < lead, 0.0, dds), where(progress > 1.0 - lead, 0.0, ddu)
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
    )


def _lead(start: Array, end: Array, profile: Profile) -> Any:
    """Return the fraction of a swing after which the foot moves forward; arguments as in `swing_path`."""
    if not profile.lead:
        return 0.0
    x, y, climb = end - start
    return np.minimum(profile.lead, np.maximum(climb, 0.0) / np.sqrt(x * x + y * y + 1e-12))


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


def swing_rise(start: Array, end: Array, clearance: Any, heights: Sequence[Any] = (), profile: Profile = POINT) -> Any:
    """Return the rise of a swing over the straight line from start to end, [m].

    The path passes each place of the terrain between at a height of at least the clearance times (4 x (1 - x))^power,
    see `swing_path`.

    Args:
        start: Place of lift-off, (3,), [m], world axes.
        end: Landing place, (3,), [m], world axes.
        clearance: Height over line and terrain in the middle of the swing, [m].
        heights: Heights of the terrain at equal distances between the two places, [m], world z; none without a known
            terrain.
        profile: As in `swing_path`.
    """
    most: Any = 0.0
    lead = _lead(start, end, profile) if len(heights) else 0.0
    for k, height in enumerate(heights, 1):
        x = lead + (1.0 - lead) * _progress_at(k / (len(heights) + 1.0), profile)
        line, _, _ = forward_profile(np.minimum(x / (1.0 - lead), 1.0), 1.0, profile)
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
