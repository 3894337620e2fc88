"""What the feet on the ground can do about a fall: where the center of pressure may go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from legged.spatial import Array, solve_symmetric, sum_of

_WIDTH = 1e-2  # [m]: a support narrower than this cannot move its center of pressure


@dataclass(frozen=True, eq=False)
class Support:
    """Points that carry the robot, from above.

    Attributes:
        center: The place that the pressure rests at when nothing is to be corrected, (3,), [m], world.
        spread: Second moment of the points about their mean, (2, 2), [m^2]; rank one for the line between two points.
    """

    center: Array
    spread: Array

    @classmethod
    def of(cls, points: Array, weights: list[Any], middle: Array | None = None) -> Support:
        """Return the support of points, each with weight 1 (carries) or 0.

        Args:
            points: (n, 3), [m], world.
            weights: (n,).
            middle: Where their mean lies under a robot that stands as planned, (2,), [m], from under its base: not
                there for a tripod of three legs of six. The center is put that much back; by default it is the mean.
        """
        total = sum_of(weights)
        center = sum_of(k * point for k, point in zip(weights, points, strict=True)) / total
        arms = [point[:2] - center[:2] for point in points]
        spread = sum_of(k * np.outer(arm, arm) for k, arm in zip(weights, arms, strict=True)) / total
        if middle is not None:
            center = center - np.array([middle[0], middle[1], 0.0])
        return cls(center, spread)

    def reachable(self, x: Array) -> Array:
        """Return the part of a horizontal vector (2,) that lies along the support, where pressure can move."""
        return self.spread @ self._solve(x)

    def size(self, x: Array) -> Any:
        """Return how long a vector (2,) along the support is, in units of the support's own extent there."""
        return np.sqrt(x @ self._solve(x) + 1e-12)

    def _solve(self, x: Array) -> Array:
        return solve_symmetric(self.spread + _WIDTH**2 * np.eye(2), x)
