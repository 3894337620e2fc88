"""How far a robot is from tipping over its feet."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial import ConvexHull

from legged.errors import ShapeError


def stability_margin(point: Any, feet: Any) -> float:
    """Return the distance, [m], from a point to the nearest edge of the polygon of the feet; negative outside.

    A robot that moves slowly enough stands while the margin of its centre of mass is positive.

    Args:
        point: The centre of mass, or any point, (2,) or (3,), [m]; z is ignored.
        feet: The supporting feet, (n, 2) or (n, 3), [m], at least three that do not lie in a line.
    """
    polygon = np.asarray(feet, dtype=float)[:, :2]
    if len(polygon) < 3 or np.linalg.matrix_rank(polygon[1:] - polygon[0], tol=1e-9) < 2:
        raise ShapeError(f"a support polygon needs three feet that are not in a line, got {len(polygon)}")
    edges = ConvexHull(polygon).equations  # outward normal and offset of each
    return -float(np.max(edges[:, :2] @ np.asarray(point, dtype=float)[:2] + edges[:, 2]))
