"""Where a body's frame goes, so that constant rotations vanish from the recursions.

The frames are Denavit and Hartenberg's in the modified form: z along the body's own joint, x along the common normal
to the next joint, the origin where that normal meets z. Axes that are parallel or perpendicular then need no constant
rotation at all (a quarter turn only renames axes), and a common normal only one shift along x and one along z.
The user's own frames are kept beside and are what the user sees.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from legged.spatial import Array, AxisRotation, Rotation, Translation

_TINY = 4e-15  # what a few products of rotations round off; far below what anybody measures or promises


@dataclass(frozen=True, eq=False)
class Placement:
    """A frame in another one: rotation (3, 3), inner to outer components, and origin (3,), [m]."""

    rotation: Array
    position: Array

    def __matmul__(self, inner: Placement) -> Placement:
        return Placement(self.rotation @ inner.rotation, self.rotation @ inner.position + self.position)

    def inverse(self) -> Placement:
        return Placement(self.rotation.T, -self.rotation.T @ self.position)


def snap(x: Array, scale: float = 1.0) -> Array:
    """Return x with entries within rounding of 0 (and, for direction cosines, of +-1) made exactly so."""
    x = np.where(np.abs(x) <= _TINY * scale, 0.0, x)
    return np.where(np.abs(np.abs(x) - 1.0) <= _TINY, np.sign(x), x) if scale == 1.0 else x


def body_axes(axis: Array, next_axis: Array | None, next_position: Array | None) -> Array:
    """Return the body's axes in link components, (3, 3), columns x, y, z with z along `axis`.

    Args:
        axis: The body's own joint axis, unit (3,), link axes.
        next_axis: The next joint's axis, unit (3,), link axes, or None without one.
        next_position: The next joint's place, (3,), [m], link axes, or None.
    """
    z = snap(axis)
    x = np.zeros(3)
    if next_axis is not None:
        x = snap(np.cross(z, next_axis))
    if np.linalg.norm(x) < 1e-3 and next_position is not None:
        x = next_position - (next_position @ z) * z
        x = snap(x, max(np.abs(next_position).max(), 1.0) * 2)
    if np.linalg.norm(x) < 1e-9:
        k = int(np.argmin(np.abs(z)))
        x = np.eye(3)[k] - z[k] * z
    x = x / np.linalg.norm(x)
    if abs(x @ z) > _TINY:  # a short x was mostly rounding
        x = x - (x @ z) * z
    x = snap(x / np.linalg.norm(x))
    return snap(np.stack([x, np.cross(z, x), z], axis=1))


def origin_along(axis: Array, next_axis: Array | None, next_position: Array | None) -> float:
    """Return how far along its own axis the body's origin lies from the link's, [m]: the foot of the common normal."""
    if next_axis is None or next_position is None:
        return 0.0
    c = axis @ next_axis
    if 1 - c * c < 1e-3:
        return float(axis @ next_position)
    return float((axis @ next_position - c * (next_axis @ next_position)) / (1 - c * c))


def turns_to(axis: Array) -> list[AxisRotation]:
    """Return the constant turns, about z and then x, after which z points along a unit axis (3,)."""
    x, y, z = snap(axis)
    h = np.hypot(x, y)
    if h == 0.0:
        return [] if z > 0 else [AxisRotation(0, -1.0, 0.0)]
    sine = h if y <= 0 else -h
    turns = [] if x == 0.0 else [AxisRotation(2, *_exact(-y / sine, x / sine))]
    return [*turns, AxisRotation(0, *_exact(z, sine))]


def _exact(c: float, s: float) -> tuple[float, float]:
    """Return a cosine and a sine, those of a quarter or half turn exact if they are so within rounding.

    It is the small one of the two that tells: a turn by 1e-8 has a cosine of 1 to all digits.
    """
    if abs(c) <= _TINY:
        return 0.0, float(np.sign(s))
    return (float(np.sign(c)), 0.0) if abs(s) <= _TINY else (float(c), float(s))


def split_shift(r: Array, axis: Array) -> tuple[Array, float]:
    """Return (before, after) with r = before + after * axis and as few non-zero numbers as can be.

    Args:
        r: Parent body's origin to the body's origin, (3,), [m], parent axes.
        axis: The joint's axis, unit (3,), parent axes.
    """
    scale = max(float(np.abs(r).max()), 1e-3)
    candidates = [0.0, float(r @ axis)] + [float(r[k] / axis[k]) for k in range(3) if abs(axis[k]) > 1e-3]
    best: tuple[int, Array, float] | None = None
    for b in candidates:
        before = np.where(np.abs(r - b * axis) <= _TINY * scale, 0.0, r - b * axis)
        b = 0.0 if abs(b) <= _TINY * scale else b
        cost = int(np.count_nonzero(before)) + (b != 0.0)
        if best is None or cost < best[0]:
            best = cost, before, b
    assert best is not None
    return best[1], best[2]


def joint_steps(kind: str, start: Placement, axis: Array) -> tuple[list, tuple[float, float], float]:
    """Return (steps before the joint, (cos, sin) of the joint's zero, shift after it) for a body's placement.

    Args:
        kind: "revolute", "prismatic" or "ball".
        start: The body's frame in its parent body's at q = 0.
        axis: The joint's axis, unit (3,), parent axes.
    """
    if kind == "ball":
        fixed = [] if np.array_equal(start.rotation, np.eye(3)) else [Rotation(snap(start.rotation))]
        return [*_shift(start.position), *fixed], (1.0, 0.0), 0.0
    turns = turns_to(axis)
    remaining = start.rotation
    for turn in turns:
        remaining = turn_matrix(turn).T @ remaining
    zero = _exact(remaining[0, 0], remaining[1, 0])
    before, after = split_shift(start.position, snap(axis)) if kind == "revolute" else (start.position, 0.0)
    return [*_shift(before), *turns], zero, after


def turn_matrix(turn: AxisRotation) -> Array:
    """Return the turn as a rotation matrix, (3, 3), child components to parent components."""
    return np.array(turn.child_pose(np.eye(3), np.zeros(3))[0], float)


def _shift(r: Array) -> list[Translation]:
    return [Translation(r)] if np.any(r != 0.0) else []
