"""The support polygon: the convex hull of the feet that carry, seen from above, and how far inside a point lies."""

from __future__ import annotations

from typing import Any

import numpy as np

from legged.errors import NotFiniteError, ShapeError
from legged.spatial import Array

_THIN = 1e-9  # of the feet's spread: a polygon narrower than this is a line


def support_polygon(feet: Any) -> Array:
    """Return the corners of the convex hull of the feet, (k, 2), [m], counter-clockwise from above.

    Feet in a line give the line's two ends, feet in one place that place.

    Args:
        feet: Points that carry, (n, 2) or (n, 3), [m], z ignored; at least one.

    Raises:
        ShapeError, NotFiniteError: for no feet, or what are not places.
    """
    points = _places("feet", feet, 2)
    if not len(points):
        raise ShapeError("there is no support polygon without feet that carry")
    middle = points.mean(axis=0)
    _, spread, directions = np.linalg.svd(points - middle)
    wide, thin = (*spread, 0.0)[:2]
    if wide <= _THIN * (1.0 + np.abs(points).max()):
        return middle[None]
    if thin <= _THIN * wide:
        along = (points - middle) @ directions[0]
        return points[[along.argmin(), along.argmax()]]
    from scipy.spatial import ConvexHull  # imported where it is used: it takes as long as all else

    return points[ConvexHull(points).vertices]


def support_margin(point: Any, feet: Any) -> float:
    """Return how far a point lies inside the support polygon, [m]: the distance to its boundary, negative outside.

    Over two feet, or feet in a line, no point is inside: the margin is less the distance to the line between them. A
    robot that moves slowly enough stands while the margin of its center of mass is positive; whatever moves on flat
    ground, the center of pressure is never outside.

    Args:
        point: Any point, (2,) or (3,), [m]; z is ignored. feet: See `support_polygon`.
    """
    p = _places("point", point, 1)
    corners = support_polygon(feet)
    ends = np.roll(corners, -1, axis=0)
    edges, arms = ends - corners, p - corners
    lengths = np.maximum((edges**2).sum(axis=1), np.finfo(float).tiny)
    along = np.clip((arms * edges).sum(axis=1) / lengths, 0.0, 1.0)
    distance = float(np.linalg.norm(arms - along[:, None] * edges, axis=1).min())
    left = edges[:, 0] * arms[:, 1] - edges[:, 1] * arms[:, 0]
    return distance if len(corners) > 2 and (left >= 0.0).all() else -distance


def _places(what: str, value: Any, dimensions: int) -> Array:
    places = np.asarray(value, float)
    if places.ndim != dimensions or places.shape[-1] not in (2, 3):
        shape = "(2,) or (3,)" if dimensions == 1 else "(n, 2) or (n, 3)"
        raise ShapeError(f"{what} must be {shape}, got shape {places.shape}")
    if not np.isfinite(places[..., :2]).all():
        raise NotFiniteError(f"{what} must be finite, got {value}")
    return places[..., :2]
