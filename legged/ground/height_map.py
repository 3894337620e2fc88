"""Terrain from a grid of heights, interpolated with a continuous slope."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from legged.arguments import Numbers, list_as_array, number, rounded_array
from legged.checked import checked
from legged.compiler.ir import LookupTable
from legged.errors import DefinitionError, FileError, ShapeError
from legged.ground.height_files import read_heights
from legged.output import visible

Array = np.ndarray
_PADDING = 3
"""Rows and columns of edge heights around the table, so that all 16 heights of a cell just outside of the map exist."""


@checked
@dataclass(frozen=True)
class HeightMap:
    """A surface through a grid of heights, by bicubic interpolation with slopes from central differences.

    In a cell, with the fractions s and t of the spacing along x and y and the cubic weights of Catmull and Rom,

        height = sum over i, j = -1, ..., 2 of  w_i(s) w_j(t) h_ij
        w_-1 = -s (1 - s)^2 / 2,    w_0 = 1 + s^2 (3 s - 5) / 2,    w_1 = w_0(1 - s),    w_2 = w_-1(1 - s)

    The surface passes through all heights, its normal is continuous, so that contact forces have no jumps, and planes
    are exact. Each value depends on 16 heights. Next to a step in the heights the surface overshoots by 7 % of the step
    along each axis. Outside of the map the heights of its edge continue; they are reached after one spacing.

    The number of operations in a compiled kernel does not depend on the number of heights.

    Attributes:
        heights: Heights, (nx, ny), [m], world z; entry i, j is at x = origin[0] + i spacing, y = origin[1] + j spacing.
        spacing: Distance between neighboring heights, [m].
        origin: World x and y of the first height, (2,), [m].

    Source:
        E. Catmull, R. Rom, "A class of local interpolating splines", 1974, applied along both axes.
    """

    parameter_names: ClassVar[tuple[str, ...]] = ()  # for `rollout`: thousands of heights would be inputs of kernels
    heights: Array = field(repr=False, compare=False)
    spacing: float
    origin: tuple[float, float] = (0.0, 0.0)
    _table: LookupTable = field(init=False, repr=False)
    """The heights with `_PADDING` rows and columns of edge heights around them, row by row."""

    def __post_init__(self) -> None:
        heights = rounded_array("the heights of a height map", self.heights, (None, None))
        if not heights.size or heights.dtype == object:
            raise ShapeError(f"the heights of a height map must be a grid of numbers, got shape {heights.shape}")
        heights.flags.writeable = False
        spacing = float(number("spacing", self.spacing))
        if not spacing > 0.0:
            raise DefinitionError(f"the spacing of a height map must be positive, got {spacing} m")
        origin = rounded_array("the origin of a height map", self.origin, (2,)).tolist()
        table = LookupTable(np.pad(heights, _PADDING, mode="edge").ravel())
        for name, value in {"heights": heights, "spacing": spacing, "origin": tuple(origin), "_table": table}.items():
            object.__setattr__(self, name, value)

    @staticmethod
    def from_file(
        path: str | Path, width: float, rise: float | None = None, center: tuple[float, float] = (0.0, 0.0)
    ) -> HeightMap:
        """Return the surface that a gray image or a table of comma-separated values describes, seen from above.

            terrain = HeightMap.from_file("map.png", width=10.0, rise=0.5)

        The columns of the file go along x, and its rows along -y: its top is the side of the largest y. An image has
        height 0 where it is black and `rise` where it is white, with 8 or 16 bits a pixel; a table has heights in
        meters and no header.

        Args:
            path: The file, such as .png or .csv.
            width: Distance between the first and the last column, [m].
            rise: Height of white above black, [m], of an image; None for a table.
            center: World x and y of the middle of the map, [m].

        Raises:
            ArgumentError: A width that is not positive, an image without a rise, or a table with one.
            FileError: The file is missing, damaged, too large, colored or of another format.
        """
        heights = read_heights(path, rise)
        if len(heights) < 2:
            raise FileError(visible(path), "needs at least two columns of heights")
        spacing = number("width", width, "m", above=0.0) / (len(heights) - 1)
        x, y = rounded_array("center", center, (2,)) - spacing * (np.array(heights.shape) - 1.0) / 2.0
        return HeightMap(heights, spacing, (float(x), float(y)))

    def describe(self) -> str:
        """Return the number of heights, the size and the range of the map in words."""
        (n, m), low, high = self.heights.shape, self.heights.min(), self.heights.max()
        length, width = self.spacing * (n - 1), self.spacing * (m - 1)
        return f"{n} x {m} heights, {length:.4g} m x {width:.4g} m, {low:.4g} to {high:.4g} m high"

    def height(self, x: Numbers, y: Numbers) -> Any:
        """Return the height of the surface at (x, y), [m], world z."""
        return self._height_and_slopes(x, y)[0]

    def nearest(self, x: Numbers, y: Numbers) -> Any:
        """Return the height in the table that is nearest to (x, y), [m], world z: a single number is read."""
        (n, m), (x_0, y_0) = self.heights.shape, self.origin
        row, column = (
            np.minimum(np.maximum(np.floor((list_as_array(z) - start) / self.spacing + 0.5), 0.0), size - 1.0)
            for z, start, size in ((x, x_0, n), (y, y_0, m))
        )
        return self._table((row + _PADDING) * (m + 2 * _PADDING) + (column + _PADDING))

    def normal(self, x: Numbers, y: Numbers) -> Any:
        """Return the unit normal at (x, y), (..., 3), world axes."""
        _, along_x, along_y = self._height_and_slopes(x, y)
        return upward(along_x, along_y)

    def _height_and_slopes(self, x: Any, y: Any) -> tuple[Any, Any, Any]:
        """Return the height, [m], and its derivatives with respect to x and y."""
        (row, s), (column, t) = (
            _cell((z - start) / self.spacing, n)
            for z, start, n in zip((list_as_array(x), list_as_array(y)), self.origin, self.heights.shape, strict=True)
        )
        columns = self.heights.shape[1] + 2 * _PADDING
        first = (row + (_PADDING - 1)) * columns + (column + (_PADDING - 1))
        neighbors = np.add.outer(columns * np.arange(4.0), np.arange(4.0))
        grid = self._table(first + neighbors.reshape(4, 4, *[1] * np.ndim(first)))
        return bicubic(grid, s, t, self.spacing)

    def __str__(self) -> str:
        n, m = self.heights.shape
        low, high = self.heights.min(), self.heights.max()
        start = ", ".join(f"{z:g}" for z in self.origin)
        return f"{n} x {m} heights from {low:g} to {high:g} m, {self.spacing:g} m apart, from ({start}) m"


def _cell(position: Any, n: int) -> tuple[Any, Any]:
    """Return the number of a cell and the fraction in it, of a position in spacings along an axis of n heights.

    Two spacings outside of the map the heights are those of the edge, so that the cell may be clipped there.
    """
    position = np.minimum(np.maximum(position, -2.0), float(n))
    cell = np.floor(position)
    return cell, position - cell


def bicubic(grid: Any, s: Any, t: Any, spacing: float) -> tuple[Any, Any, Any]:
    """Return the height, (...), [m], and its derivatives along x and y, (...), dimensionless; see `HeightMap`.

    Args:
        grid: Heights around the place, (4, 4, ...), [m], world z. s, t: Fractions of the cell along x and y, (...).
        spacing: Distance between neighboring heights, [m].
    """
    w_y, rate_y = _weights(t), _rates(t)
    values = [_dot(w_y, heights) for heights in grid]
    slopes = [_dot(rate_y, heights) for heights in grid]
    w_x, rate_x = _weights(s), _rates(s)
    return _dot(w_x, values), _dot(rate_x, values) / spacing, _dot(w_x, slopes) / spacing


def upward(along_x: Any, along_y: Any) -> Any:
    """Return the unit normal of a surface, (..., 3), by its slopes along x and y, (...), dimensionless."""
    up = 1.0 / np.sqrt(1.0 + along_x * along_x + along_y * along_y)
    return np.stack([-along_x * up, -along_y * up, up], axis=-1)


def _weights(s: Any) -> list[Any]:
    """Return the weights of four neighboring heights at the fraction s of the middle one of three intervals."""
    r = 1.0 - s
    return [-0.5 * s * r * r, 1.0 + s * s * (1.5 * s - 2.5), 1.0 + r * r * (1.5 * r - 2.5), -0.5 * r * s * s]


def _rates(s: Any) -> list[Any]:
    """Return the derivatives of the weights with respect to s."""
    r = 1.0 - s
    return [0.5 * r * (3.0 * s - 1.0), s * (4.5 * s - 5.0), r * (5.0 - 4.5 * r), 0.5 * s * (1.0 - 3.0 * r)]


def _dot(weights: list[Any], values: list[Any]) -> Any:
    return sum(w * value for w, value in zip(weights[1:], values[1:], strict=True)) + weights[0] * values[0]
