"""Paths of swinging feet: from the place of lift-off over the terrain between to the landing place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from legged.compiler.ir import where
from legged.spatial import Array

_RAMP = 1.0 / 3.0  # of the swing, in which a foot accelerates forward, and in which it decelerates
_REPLAN = 0.1  # of a swing: time constant with which the landing place of a swinging foot moves
_DECIDED = 0.3  # of a swing: time after which the landing place stays on its tread of stairs


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


def swing_path(progress: Any, duration: Any, start: Array, end: Array, peak: Any) -> Swing:
    """Return the motion of a foot that leaves the ground at rest, passes a height, and lands at rest.

    The horizontal motion has constant acceleration in the first third of the swing, constant velocity in the second,
    and constant deceleration in the last, so that its largest velocity is 1.5 times the mean. With the polynomial
    S(x) = 10 x^3 - 15 x^4 + 6 x^5, whose first and second derivatives are zero at both ends, the height rises by
    S(2 progress) to the peak and falls by S(2 progress - 1) to the end.

    Args:
        progress: Fraction of the swing that has passed, from 0 to 1.
        duration: Duration of the swing, [s].
        start: Place of lift-off, (3,), [m], world axes.
        end: Landing place, (3,), [m], world axes.
        peak: Largest height, [m], world z.
    """
    rate = 1.0 / duration
    s, ds, dds = forward_profile(progress, rate)
    rises = progress < 0.5
    half, dhalf, ddhalf = _rise(where(rises, 2.0 * progress, 2.0 * progress - 1.0), 2.0 * rate)
    step, base = end[:2] - start[:2], where(rises, start[2], peak)
    lift = where(rises, peak - start[2], end[2] - peak)
    horizontal = start[:2] + step * s
    return Swing(
        np.array([horizontal[0], horizontal[1], base + lift * half]),
        np.array([step[0] * ds, step[1] * ds, lift * dhalf]),
        np.array([step[0] * dds, step[1] * dds, lift * ddhalf]),
    )


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

    It follows the wanted place with a time constant of a tenth of the swing, so that the path is smooth. Between treads
    of stairs, and between stones, it would pass an edge: it moves to another one at once in the first 0.3 of the swing,
    and not later.

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
    step = wanted - last
    climb = slope @ step[:2]
    changes = np.abs(step[2] - climb) > ledge
    for k, height in enumerate(heights, 1):
        changes = changes | (np.abs(height - last[2] - climb * (k / (len(heights) + 1.0))) > ledge)
    share = np.minimum(1.0, dt / (_REPLAN * duration + dt))
    return last + step * where(changes, where(progress < _DECIDED, 1.0, 0.0), share)


def swing_peak(start: Array, end: Array, clearance: Any, heights: Sequence[Any] = ()) -> Any:
    """Return the largest height of a swing, [m], world z: the clearance over start, end and the terrain between.

    Args:
        start: Place of lift-off, (3,), [m], world axes.
        end: Landing place, (3,), [m], world axes.
        clearance: Height over the highest of these places, [m].
        heights: Heights of the terrain between the two places, [m], world z; none without a known terrain.
    """
    peak = np.maximum(start[2], end[2])
    for height in heights:
        peak = np.maximum(peak, height)
    return peak + clearance


def _rise(x: Any, rate: Any) -> tuple[Any, Any, Any]:
    """Return S(x) and its first two derivatives with respect to time, for x that changes at a rate [1/s]."""
    y = x * (1.0 - x)
    return x * x * x * (10.0 - x * (15.0 - 6.0 * x)), 30.0 * y * y * rate, 60.0 * y * (1.0 - 2.0 * x) * rate * rate


def forward_profile(x: Any, rate: Any) -> tuple[Any, Any, Any]:
    """Return the distance from 0 to 1, velocity and acceleration of a trapezoidal velocity profile; as in `_rise`.

    Args:
        x: Fraction of the swing that has passed, from 0 to 1.
        rate: Swings per time, [1/s].
    """
    peak = 1.0 / (1.0 - _RAMP)
    late, near = x > 0.5, np.minimum(x, 1.0 - x)
    ramps = near < _RAMP
    s = where(ramps, 0.5 * peak / _RAMP * near * near, peak * (near - 0.5 * _RAMP))
    acceleration = where(ramps, where(late, -peak / _RAMP, peak / _RAMP), 0.0)
    return where(late, 1.0 - s, s), np.minimum(peak, peak / _RAMP * near) * rate, acceleration * rate * rate
