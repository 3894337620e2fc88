"""Placements of frames: their check as arguments, and the choice of body frames for cheap recursions.

Body frames follow the modified Denavit-Hartenberg convention: z along the body's own joint axis, x along the common
normal to the next joint axis, the origin at the foot of this normal on z. Axes that are parallel or perpendicular then
need no constant rotation (a quarter turn only permutes components), and a common normal needs one translation along x
and one along z. The user's link frames are stored beside the body frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from legged.arguments import real_array
from legged.errors import DefinitionError
from legged.spatial import Array, AxisRotation, ElementaryTransform, Rotation, Translation

Vector = Annotated[Sequence[float] | Array, (3,)]
_ROUNDING = 4e-15  # rounding error of a few products of rotation matrices


def vector3(what: str, value: Vector) -> Array:
    """Return value as an array of three finite numbers, (3,), [any unit], or raise DefinitionError naming it.

    Args:
        what: Name of the argument, for messages. value: Three numbers, (3,), [any unit].
    """
    vector = real_array(what, value).astype(float)
    if vector.shape != (3,):
        raise DefinitionError(f"{what} must be three numbers, got shape {vector.shape}")
    if not np.isfinite(vector).all():
        raise DefinitionError(f"{what} must be finite, got {vector}")
    return vector


def rotation3(what: str, value: Array | None) -> Array:
    """Return value as a rotation matrix, (3, 3), or raise DefinitionError naming it.

    A matrix that is orthonormal to nine digits is corrected to full precision, R (3 - R^T R) / 2.

    Args:
        what: Name of the argument, for messages. value: A rotation matrix, (3, 3); None for the identity.
    """
    if value is None:
        return np.eye(3)
    R = real_array(what, value).astype(float)
    if R.shape != (3, 3) or not np.isfinite(R).all():
        raise DefinitionError(f"{what} must be a finite (3, 3) matrix, got {value}")
    return rotations(what, R)


def rotations(what: str, R: Array) -> Array:
    """Return rotation matrices, (..., 3, 3), corrected as by `rotation3`, or raise DefinitionError naming them.

    Args:
        what: Name of the argument, for messages. R: Finite rotation matrices, (..., 3, 3).
    """
    square = R.swapaxes(-1, -2) @ R
    error = np.abs(square - np.eye(3)).max(axis=(-1, -2))
    if (wrong := (error > 1e-9) | (np.linalg.det(R) < 0)).any():
        raise DefinitionError(
            f"{what} is not a rotation: its columns must be orthonormal and right-handed, got\n{R[wrong][0]}"
        )
    return np.where((error > 1e-15)[..., None, None], R @ (3 * np.eye(3) - square) / 2, R)


@dataclass(frozen=True, eq=False)
class Placement:
    """Pose of an inner frame in an outer one.

    Attributes:
        rotation: A rotation matrix, (3, 3), inner to outer components.
        position: Origin of the inner frame, (3,), [m], outer axes.
    """

    rotation: Array
    position: Array

    def __matmul__(self, inner: Placement) -> Placement:
        return Placement(self.rotation @ inner.rotation, self.rotation @ inner.position + self.position)

    def inverse(self) -> Placement:
        """Return the pose of the outer frame in the inner one."""
        return Placement(self.rotation.T, -self.rotation.T @ self.position)


IDENTITY = Placement(np.eye(3), np.zeros(3))


def placement(what: str, at: Vector, rotation: Array | None) -> Placement:
    """Return a checked placement, or raise DefinitionError.

    Args:
        what: Name of the inner frame, for messages.
        at: Its origin, (3,), [m], outer axes.
        rotation: Its rotation matrix, (3, 3), inner to outer components; None for the identity.
    """
    return Placement(rotation3(f"the rotation of {what}", rotation), vector3(f"the position of {what}", at))


def snap(x: Array, scale: float = 1.0) -> Array:
    """Return x, (...), with entries that are 0 within rounding set to 0, and at scale 1 those near +-1 set to +-1.

    Args:
        x: An array, (...), [any unit]. scale: Size of the numbers that x was computed from; 1 for direction cosines.
    """
    x = np.where(np.abs(x) <= _ROUNDING * scale, 0.0, x)
    return np.where(np.abs(np.abs(x) - 1.0) <= _ROUNDING, np.sign(x), x) if scale == 1.0 else x


def body_axes(axis: Array, next_axis: Array | None, next_position: Array | None) -> Array:
    """Return the rotation matrix from body to link components, (3, 3): columns x, y, z with z along `axis`.

    Args:
        axis: The body's joint axis, unit vector (3,), link axes.
        next_axis: The next joint's axis, unit vector (3,), link axes; None without a next joint.
        next_position: Origin of the next joint, (3,), [m], link axes; None without one.
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
    if abs(x @ z) > _ROUNDING:  # a short x has a large relative rounding error
        x = x - (x @ z) * z
    x = snap(x / np.linalg.norm(x))
    return snap(np.stack([x, np.cross(z, x), z], axis=1))


def origin_along(axis: Array, next_axis: Array | None, next_position: Array | None) -> float:
    """Return the distance along the joint axis from the link's origin to the foot of the common normal, [m].

    Args:
        axis: The body's joint axis, unit vector (3,), link axes.
        next_axis: The next joint's axis, unit vector (3,), link axes; None without a next joint.
        next_position: Origin of the next joint, (3,), [m], link axes; None without one.
    """
    if next_axis is None or next_position is None:
        return 0.0
    c = axis @ next_axis
    if 1 - c * c < 1e-3:
        return float(axis @ next_position)
    return float((axis @ next_position - c * (next_axis @ next_position)) / (1 - c * c))


def joint_transforms(
    has_axis: bool, has_free_origin: bool, start: Placement, axis: Array
) -> tuple[tuple[ElementaryTransform, ...], tuple[float, float], float]:
    """Return (transforms before the joint, (cos, sin) of the offset angle, translation along the axis after it).

    Args:
        has_axis, has_free_origin: Of the joint, see `legged.robot.stages.motion.StageMotion`.
        start: The body's frame in its parent body's frame at q = 0.
        axis: The joint's axis, unit vector (3,), parent axes.
    """
    if not has_axis:
        fixed = [] if np.array_equal(start.rotation, np.eye(3)) else [Rotation(snap(start.rotation))]
        return (*_translations(start.position), *fixed), (1.0, 0.0), 0.0
    to_axis = _rotations_to(axis)
    remaining = start.rotation
    for step in to_axis:
        remaining = np.array(step.child_pose(np.eye(3), np.zeros(3))[0], float).T @ remaining
    offset = _exact(remaining[0, 0], remaining[1, 0])
    before, after = _split(start.position, snap(axis)) if has_free_origin else (start.position, 0.0)
    return (*_translations(before), *to_axis), offset, after


def _translations(r: Array) -> list[Translation]:
    return [Translation(r)] if np.any(r != 0.0) else []


def _rotations_to(axis: Array) -> list[AxisRotation]:
    """Return the constant rotations, about z and then x, that bring z to a unit vector (3,)."""
    x, y, z = snap(axis)
    h = np.hypot(x, y)
    if h == 0.0:
        return [] if z > 0 else [AxisRotation(0, -1.0, 0.0)]
    sine = h if y <= 0 else -h
    about_z = [] if x == 0.0 else [AxisRotation(2, *_exact(-y / sine, x / sine))]
    return [*about_z, AxisRotation(0, *_exact(z, sine))]


def _exact(c: float, s: float) -> tuple[float, float]:
    """Return (c, s), exact for an angle that is a multiple of a quarter turn within rounding.

    The smaller of the two decides: the cosine of 1e-8 rad is 1 in double precision.
    """
    if abs(c) <= _ROUNDING:
        return 0.0, float(np.sign(s))
    return (float(np.sign(c)), 0.0) if abs(s) <= _ROUNDING else (float(c), float(s))


def _split(r: Array, axis: Array) -> tuple[Array, float]:
    """Return (before, after) with r = before + after * axis and as few nonzero numbers as possible."""
    scale = max(float(np.abs(r).max()), 1e-3)
    candidates = [0.0, float(r @ axis)] + [float(r[k] / axis[k]) for k in range(3) if abs(axis[k]) > 1e-3]
    best: tuple[int, Array, float] | None = None
    for b in candidates:
        before = np.where(np.abs(r - b * axis) <= _ROUNDING * scale, 0.0, r - b * axis)
        b = 0.0 if abs(b) <= _ROUNDING * scale else b
        cost = int(np.count_nonzero(before)) + (b != 0.0)
        if best is None or cost < best[0]:
            best = cost, before, b
    assert best is not None
    return best[1], best[2]
