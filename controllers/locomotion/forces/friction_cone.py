"""Projection of contact forces onto the friction cone, over any element."""

from __future__ import annotations

from typing import Any

import numpy as np

from legged.spatial import Array

_TINY = 1e-300  # avoids 0 / 0 without tangential force


def project_to_cone(f: Array, friction: Any, most: Any) -> Array:
    """Return the force, (3,), [N], contact axes, of the truncated friction cone that is nearest to f.

        |f_t| <= mu f_n,      0 <= f_n <= most

    Args:
        f: Any force, (3,), [N], contact axes: two tangents and the normal, which points from the ground to the foot.
        friction: Coefficient of friction mu, not negative.
        most: Largest normal force, [N], not negative; zero for a foot in the air, infinite for no limit.
    """
    normal, scale = cone_coordinates(f[2], np.sqrt(f[0] * f[0] + f[1] * f[1] + _TINY), friction, most)
    return np.array([scale * f[0], scale * f[1], normal])


def cone_coordinates(normal: Any, tangential: Any, friction: Any, most: Any) -> tuple[Any, Any]:
    """Return the nearest force in the cone: its normal force, [N], and its tangential force relative to the given one.

    Outside the cone without limit, the nearest point of its surface has f_n = (f_n + mu |f_t|) / (1 + mu^2), which is
    larger than f_n; inside it is smaller, so the maximum covers both cases. If this exceeds the limit, the nearest
    force has the largest normal force, and its tangential force is the nearest one of a disc.

    Args:
        normal: Normal force, [N].
        tangential: Magnitude of the tangential force, [N], positive.
        friction, most: As in `project_to_cone`.
    """
    surface = (normal + friction * tangential) / (1.0 + friction * friction)
    nearest = np.minimum(np.maximum(np.maximum(normal, surface), 0.0), most)
    return nearest, np.minimum(1.0, friction * nearest / tangential)
