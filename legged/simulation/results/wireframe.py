"""Wireframes of shapes: the points and lines with which pictures show boxes, hulls and round shapes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from legged.robot.shapes import Box, Capsule, Cylinder, Ellipsoid, Hull, Shape, Sphere

Array = np.ndarray
_CIRCLE_POINTS = 16
_Lines = list[tuple[int, int]]


def wireframe(shapes: Sequence[Shape]) -> tuple[Array, _Lines]:
    """Return the points of a wireframe and the pairs of points to join.

    A sphere or ellipsoid has three ellipses, a cylinder two circles and four lines, and a capsule besides these four
    half circles.

    Args:
        shapes: The shapes of one link or body.

    Returns:
        Points (k, 3), [m], in the axes of the link or body, and pairs of their indices.
    """
    points: list[Array] = []
    lines: _Lines = []
    for shape in shapes:
        corners, own = _wireframe(shape)
        lines += [(len(points) + a, len(points) + b) for a, b in own]
        points += list(corners)
    return np.array(points).reshape(-1, 3), lines


def _wireframe(shape: Shape) -> tuple[Array, _Lines]:
    if isinstance(shape, Box):
        return shape.corners, [(i, i + bit) for bit in (1, 2, 4) for i in range(8) if not i & bit]
    if isinstance(shape, Hull):
        return shape.vertices, list(shape.edges)
    if isinstance(shape, Sphere):
        return _ellipses(np.full(3, shape.radius)) + np.asarray(shape.center), _closed(3)
    if isinstance(shape, Ellipsoid):
        points, lines = _ellipses(np.asarray(shape.radii)), _closed(3)
    else:
        points, lines = _axial(shape)
    return np.asarray(shape.center) + points @ np.asarray(shape.rotation).T, lines


def _circle() -> Array:
    """Return points of the unit circle in the plane of x and y, (`_CIRCLE_POINTS`, 3)."""
    angles = np.arange(_CIRCLE_POINTS) * (2.0 * np.pi / _CIRCLE_POINTS)
    return np.stack([np.cos(angles), np.sin(angles), np.zeros(_CIRCLE_POINTS)], axis=1)


def _ellipses(radii: Array) -> Array:
    """Return points of the ellipses in the three planes of an ellipsoid, (k, 3), [m], its own axes."""
    return np.concatenate([np.roll(_circle(), axis, axis=1) * radii for axis in range(3)])


def _closed(count: int) -> _Lines:
    """Return the lines of closed polygons of `_CIRCLE_POINTS` points each."""
    n = _CIRCLE_POINTS
    return [(k * n + i, k * n + (i + 1) % n) for k in range(count) for i in range(n)]


def _axial(shape: Cylinder | Capsule) -> tuple[Array, _Lines]:
    """Return points and lines of a cylinder or capsule in its own axes."""
    n, up = _CIRCLE_POINTS, np.array([0.0, 0.0, shape.length / 2])
    rim = shape.radius * _circle()
    points, lines = [*(rim - up), *(rim + up)], _closed(2)
    lines += [(i, n + i) for i in range(0, n, n // 4)]
    if isinstance(shape, Capsule):
        for side, first in ((-1.0, 0), (1.0, n)):
            for start in (0, n // 4):
                across, at = rim[start] / shape.radius, first + start
                for k in range(1, n // 2):
                    angle = 2.0 * np.pi * k / n
                    ray = np.cos(angle) * across + np.array([0.0, 0.0, side * np.sin(angle)])
                    points.append(side * up + shape.radius * ray)
                    lines.append((at, len(points) - 1))
                    at = len(points) - 1
                lines.append((at, first + start + n // 2))
    return np.array(points), lines
