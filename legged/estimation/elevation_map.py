"""Elevation map: heights of the ground around a robot with variances, from points that a depth camera measures."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np
from scipy import ndimage

from legged.arguments import number, rounded_array, whole
from legged.checked import checked
from legged.errors import DefinitionError
from legged.spatial import Array


class FilledHeights(NamedTuple):
    """Heights of all cells of an elevation map.

    Attributes:
        heights: Estimated heights, and those assumed in unseen cells, (nx, ny), [m], world z.
        distance: Distance to the nearest seen cell, (nx, ny), [m]; zero in seen cells, and beyond the
            size of the grid if none is seen.
    """

    heights: Array
    distance: Array


@checked
class ElevationMap:
    """A grid of heights around a robot that moves with it, each cell with a Kalman filter of its own.

    An image gives the points in each cell one height: their mean with weights 1 / variance, whose variance is 1 / (sum
    of weights), larger by their chi-squared per degree of freedom where this exceeds 1, such as at edges. With the
    variance p of a cell, and r of the measured height z,

        k = p / (p + r),    height + k (z - height),    variance (1 - k) p

    Errors of the pose are equal for all points of a cell and similar in subsequent images: their variance is part of r,
    and p does not fall below it. A height that differs by more than `gate` standard deviations, sqrt(p + r), replaces
    that of the cell. Between images the estimated pose drifts, as a random walk: p grows by dt (vertical^2 +
    horizontal^2 slope^2). On a slope the mean of the points in a cell differs from the height at its center by up to
    half of the spacing times the slope, which the variance does not contain. Cells that leave the grid are forgotten,
    new ones are unseen (NaN).

    Args:
        shape: Number of cells along x and y, (nx, ny).
        spacing: Of the cells, [m]; cell i, j of the world has its center at x = i spacing, y = j spacing.
        vertical, horizontal: Random walk of the estimated position along the vertical and each horizontal axis, [m /
            sqrt(s)].
        gate: Number of standard deviations.

    Attributes:
        heights: (nx, ny), [m], axes of the estimated world. variance: (nx, ny), [m^2].
        corner: Numbers of the first cell along x and y in the world, (2,).

    Source:
        P. Fankhauser, M. Bloesch, M. Hutter, "Probabilistic terrain mapping for mobile robots with uncertain
        localization", IEEE Robotics and Automation Letters 3(4), 2018, for the filter of each cell around the robot.
        Their map is in the axes of the robot, and its fusion integrates over the horizontal errors of the cells.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        spacing: float,
        *,
        vertical: float = 0.003,
        horizontal: float = 0.003,
        gate: float = 4.0,
    ):
        self.shape = whole("shape", shape[0], 2), whole("shape", shape[1], 2)
        self.spacing = number("spacing", spacing, "m", above=0.0)
        self.vertical = number("vertical", vertical, "m / sqrt(s)", least=0.0)
        self.horizontal = number("horizontal", horizontal, "m / sqrt(s)", least=0.0)
        self.gate = number("gate", gate, above=0.0)
        self.heights, self.variance = np.full((2, *self.shape), np.nan)
        self.corner = -(np.array(self.shape) // 2)

    def move(self, center: Array) -> None:
        """Move the grid by whole cells so that a place is in its middle.

        Args:
            center: (2,), [m], world axes.
        """
        corner = self._cells(rounded_array("center", center, (2,))) - np.array(self.shape) // 2
        shift = corner - self.corner
        if not shift.any():
            return
        kept = [slice(max(k, 0), max(n + min(k, 0), 0)) for k, n in zip(shift, self.shape, strict=True)]
        to = [slice(max(-k, 0), max(n + min(-k, 0), 0)) for k, n in zip(shift, self.shape, strict=True)]
        moved = np.full((2, *self.shape), np.nan)
        if (np.abs(shift) < self.shape).all():
            moved[:, to[0], to[1]] = np.array([self.heights, self.variance])[:, kept[0], kept[1]]
        self.heights, self.variance = moved
        self.corner = corner

    def predict(self, dt: float) -> None:
        """Add the variance of the drift of the estimated pose in a time.

        Args:
            dt: Time since the last image, [s].
        """
        slopes = np.gradient(self.filled().heights, self.spacing) if np.isfinite(self.heights).any() else np.zeros(2)
        squared = slopes[0] ** 2 + slopes[1] ** 2
        self.variance += number("dt", dt, "s", least=0.0) * (self.vertical**2 + self.horizontal**2 * squared)

    def update(self, points: Array, variances: Array, common: Any = 0.0) -> None:
        """Update the cells that contain points.

        Args:
            points: (n, 3), [m], axes of the estimated world; those outside of the grid are left out.
            variances: Of their heights by independent errors, (n,), [m^2]; positive.
            common: Of their heights by errors of the pose, (n,) or one number, [m^2].

        Raises:
            ShapeError, NotFiniteError: An array has a wrong shape, or is not finite.
            DefinitionError: A variance is not positive.
        """
        points = rounded_array("points", points, (None, 3))
        variances = rounded_array("variances", variances, (len(points),))
        common = rounded_array("common", np.broadcast_to(common, len(points)))
        if (variances <= 0.0).any() or (common < 0.0).any():
            raise DefinitionError("variances of points must be positive, and those of the pose at least zero")
        cells = self._cells(points[:, :2]) - self.corner
        inside = ((cells >= 0) & (cells < self.shape)).all(axis=1)
        cell = cells[inside, 0] * self.shape[1] + cells[inside, 1]
        height, weight, common = points[inside, 2], 1.0 / variances[inside], common[inside]

        def total(values: Array) -> Array:
            return np.bincount(cell, values, self.heights.size).reshape(self.shape)

        count, weights = total(np.ones(len(cell))), total(weight)
        seen = count > 0.0
        z = total(weight * height) / np.where(seen, weights, 1.0)
        errors = total(weight * (height - np.ravel(z)[cell]) ** 2)
        floor = total(common) / np.maximum(count, 1.0)
        r = np.maximum(errors / np.maximum(count - 1.0, 1.0), 1.0) / np.where(seen, weights, 1.0) + floor
        p = np.where(np.isnan(self.heights), np.inf, self.variance)
        is_new = seen & (np.isinf(p) | ((z - self.heights) ** 2 > self.gate**2 * (p + r)))
        k = np.where(np.isinf(p), 1.0, self.variance / (self.variance + r))
        corrected = np.where(is_new, z, self.heights + k * (z - self.heights))
        remaining = np.where(is_new, r, np.maximum((1.0 - k) * self.variance, floor))
        self.heights = np.where(seen, corrected, self.heights)
        self.variance = np.where(seen, remaining, self.variance)

    def filled(self, around: float = 0.0) -> FilledHeights:
        """Return the heights of all cells: unseen ones, as behind an edge, have the lowest seen height nearby.

        Args:
            around: Distance along each axis within which the lowest seen height is taken, [m]; in cells without seen
                ones in it, and with zero, it is that of the nearest seen cell. Without any seen cell it is zero.
        """
        unseen, reach = np.isnan(self.heights), round(number("around", around, "m", least=0.0) / self.spacing)
        if unseen.all():
            return FilledHeights(np.zeros(self.shape), np.full(self.shape, self.spacing * sum(self.shape)))
        distance, nearest = cast(tuple[Array, Array], ndimage.distance_transform_edt(unseen, return_indices=True))
        heights = self.heights[tuple(nearest)]
        if reach:
            low = ndimage.minimum_filter(np.where(unseen, np.inf, self.heights), 2 * reach + 1, mode="nearest")
            heights = np.where(unseen & np.isfinite(low), low, heights)
        return FilledHeights(heights, self.spacing * distance)

    def centers(self) -> Array:
        """Return world x and y of the centers of all cells, (2, nx, ny), [m]."""
        return self.spacing * (np.indices(self.shape) + self.corner[:, None, None])

    def _cells(self, places: Array) -> Array:
        """Return the numbers of cells in the world that contain places, (..., 2)."""
        return np.floor(places / self.spacing + 0.5).astype(int)
