"""Points of cylinders, ellipsoids and hulls that touch a terrain first, over any element and without branches.

Each function returns points in shape axes for a normal of the terrain, (3,), also in shape axes, out of the ground.
Their lowest point is the lowest of the shape above a plane with that normal.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from legged.compiler.ir import where
from legged.contact.detection.box_box import FAR, sign_of
from legged.contact.detection.convex import Solid
from legged.robot.shapes import Cylinder, Ellipsoid, Hull
from legged.spatial import Array

TILT = 0.05
"""Tangent of the angle by which the normal is tilted in four directions to find the corners of a hull's lowest face."""
_UPRIGHT = 1e-12  # squared sine of the angle between axis and normal below which no point of a rim is the lowest
_COS, _SIN = -0.5, np.sqrt(0.75)
Points = list[tuple[Array, Any]]
"""Points, (3,), [m], each with an addition to its gap, [m]: `FAR` for points that are not used, otherwise 0."""


def support_count(shape: Cylinder | Ellipsoid | Hull) -> int:
    """Return the number of points that `support_points` returns."""
    return 4 if isinstance(shape, Cylinder) else 1 if isinstance(shape, Ellipsoid) else 5


def support_points(solid: Solid, normal: Array) -> Points:
    """Return the lowest points of a cylinder, an ellipsoid or a hull.

    Args:
        solid: The shape. normal: Normal of the ground, (3,), unit vector, shape axes.
    """
    if solid.kind is Cylinder:
        return _cylinder(solid.size[0], solid.size[1], normal)
    if solid.kind is Ellipsoid:
        scaled = solid.size * normal
        return [(-(solid.size * scaled) / np.sqrt(scaled @ scaled), 0.0)]
    return _hull(solid.corners(), normal)


def _cylinder(radius: Any, half: Any, normal: Array) -> Points:
    """Return the lowest point of each rim, and two more of the lower rim, 120 degrees apart."""
    x, y, z = normal
    square = x * x + y * y
    upright = square < _UPRIGHT
    scale = -radius / np.sqrt(where(upright, 1.0, square))
    x, y = where(upright, radius, x * scale), where(upright, 0.0, y * scale)
    end = -sign_of(z) * half
    rim = [(x, y), (_COS * x - _SIN * y, _SIN * x + _COS * y), (_COS * x + _SIN * y, _COS * y - _SIN * x)]
    return [(np.array([*rim[0], -end]), 0.0), *((np.array([*point, end]), 0.0) for point in rim)]


def _hull(vertices: Array, normal: Array) -> Points:
    """Return the lowest vertex, and the lowest vertices along four tilted normals."""
    x, y, z = normal
    sign = sign_of(z)
    a = -1.0 / (sign + z)
    height = vertices @ normal
    one = vertices @ np.array([1.0 + sign * x * x * a, sign * x * y * a, -sign * x])
    other = vertices @ np.array([x * y * a, sign + y * y * a, -y])
    found: Points = []
    numbers: list[Any] = []
    for p, q in ((0.0, 0.0), (TILT, TILT), (-TILT, TILT), (-TILT, -TILT), (TILT, -TILT)):
        merits = height + p * one + q * other if p else height
        least, number, point = merits[0], 0.0, vertices[0]
        for k in range(1, len(vertices)):
            lower = merits[k] < least
            least, number = where(lower, merits[k], least), where(lower, float(k), number)
            point = where(lower, vertices[k], point)
        extra: Any = 0.0
        for earlier in numbers:
            extra = where(number == earlier, FAR, extra)
        numbers.append(number)
        found.append((point, extra))
    return found
