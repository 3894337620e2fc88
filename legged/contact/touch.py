"""Touches of spheres with spheres and boxes, over any element and without branches."""

from __future__ import annotations

from typing import Any

import numpy as np

from legged.compiler.ir import where
from legged.contact.frames import sign_of
from legged.spatial import Array

_TINY = 1e-12  # [m], centers nearer than this have no direction to each other
_UP = np.array([0.0, 0.0, 1.0])


def sphere_sphere(radius: float, other: float, d: Array) -> tuple[Any, Array, Array]:
    """Return (gap, normal from the other to the one (3,), point half way (3,) from the other's center).

    Args:
        radius, other: [m]. d: The other's center to the one's, (3,), [m].
    """
    distance, n = _direction(d, _UP)
    gap = distance - radius - other
    return gap, n, (other + 0.5 * gap) * n


def sphere_box(radius: float, half: Array, d: Array) -> tuple[Any, Array, Array]:
    """Return (gap, normal from the box to the sphere (3,), point half way (3,)), in the box's axes from its center.

    A center inside the box is pushed out through the nearest face.

    Args:
        radius: [m]. half: Half the box's edges, (3,), [m]. d: The box's center to the sphere's, (3,), [m], box axes.
    """
    depth = np.array([np.abs(x) - h for x, h in zip(d, half, strict=True)])
    nearest = np.maximum(np.maximum(depth[0], depth[1]), depth[2])
    first = depth[0] >= nearest
    x, y = where(first, 1.0, 0.0), where(first, 0.0, where(depth[1] >= nearest, 1.0, 0.0))
    face = [x, y, 1.0 - x - y]
    through = np.array([sign_of(x) * chosen for x, chosen in zip(d, face, strict=True)])
    near = np.array([np.minimum(np.maximum(x, -h), h) for x, h in zip(d, half, strict=True)])
    outside, n = _direction(d - near, through)
    gap = where(nearest < 0.0, nearest, outside) - radius
    return gap, n, d - (radius + 0.5 * gap) * n


def _direction(d: Array, otherwise: Array) -> tuple[Any, Array]:
    """Return (length, unit vector) of d, (3,), the vector `otherwise` where it is short."""
    square = d @ d
    short = square < _TINY**2
    length = np.sqrt(where(short, 1.0, square))
    return where(short, 0.0, length), where(short, otherwise, d / length)
