"""Contact point of a sphere with a sphere and a box, over any element and without branches."""

from __future__ import annotations

from typing import Any

import numpy as np

from legged.compiler.ir import where
from legged.contact.detection.box_box import sign_of
from legged.spatial import Array

_TINY = 1e-12  # [m], centers closer than this define no direction
_UP = np.array([0.0, 0.0, 1.0])


def sphere_sphere(radius: float, other: float, d: Array) -> tuple[Any, Array, Array]:
    """Return (gap, normal from the second sphere to the first (3,), point half way (3,) from the second center).

    Args:
        radius, other: Radii of the first and second sphere, [m].
        d: Second center to first center, (3,), [m], in any frame, in which the results are too.
    """
    distance, n = direction(d, _UP)
    gap = distance - radius - other
    return gap, n, (other + 0.5 * gap) * n


def sphere_box(radius: float, half: Array, d: Array) -> tuple[Any, Array, Array]:
    """Return (gap, normal from the box to the sphere (3,), point half way (3,)), in box axes from the box center.

    For a center inside the box the normal is that of the nearest face.

    Args:
        radius: Of the sphere, [m]. half: Half edges of the box, (3,), [m], box axes.
        d: Box center to sphere center, (3,), [m], box axes.
    """
    depth = np.array([np.abs(x) - h for x, h in zip(d, half, strict=True)])
    nearest = np.maximum(np.maximum(depth[0], depth[1]), depth[2])
    first = depth[0] >= nearest
    x, y = where(first, 1.0, 0.0), where(first, 0.0, where(depth[1] >= nearest, 1.0, 0.0))
    face = [x, y, 1.0 - x - y]
    face_normal = np.array([sign_of(x) * selected for x, selected in zip(d, face, strict=True)])
    near = np.array([np.minimum(np.maximum(x, -h), h) for x, h in zip(d, half, strict=True)])
    outside, n = direction(d - near, face_normal)
    gap = where(nearest < 0.0, nearest, outside) - radius
    return gap, n, d - (radius + 0.5 * gap) * n


def direction(d: Array, otherwise: Array) -> tuple[Any, Array]:
    """Return (length, unit vector) of a vector; the unit vector is `otherwise` for a zero length.

    Args:
        d: The vector, (3,), [m], any axes. otherwise: A unit vector, (3,), same axes.
    """
    square = d @ d
    short = square < _TINY**2
    length = np.sqrt(where(short, 1.0, square))
    return where(short, 0.0, length), where(short, otherwise, d / length)
