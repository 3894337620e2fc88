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
_STEEPEST = 2.0  # largest slope at a height, relative to the smaller of the slopes of the lines to its neighbors


@checked
@dataclass(frozen=True)
class HeightMap:
    """A surface through a grid of heights, by bicubic interpolation without overshoot.

    In each cell the surface is the bicubic Hermite polynomial of the heights, slopes and mixed derivatives at its four
    corners. The slope at a height along an axis follows from the slopes a and b of the lines to its two neighbors: it
    is their mean, with a magnitude of at most 2 |a| and 2 |b|, and zero if a and b have different signs. The same rule
    gives the derivative along y of the slopes along x, and the derivative along x of the slopes along y; the mixed
    derivative is the one of smaller magnitude, or zero if their signs differ.

    The surface passes through all heights, its normal is continuous, so that contact forces have no jumps, and planes
    are exact. Between two neighbors the surface is monotone, and inside of a cell it exceeds the heights of the corners
    by less than a thousandth of their range. The top of a step in the heights is thus level up to its edge; with
    slopes from central differences alone, it would have a ridge of 7 % of the height of the step. Each value depends on
    16 heights. Outside of the map the heights of its edge continue.

    The number of operations in a compiled kernel does not depend on the number of heights.

    Attributes:
        heights: Heights, (nx, ny), [m], world z; entry i, j is at x = origin[0] + i spacing, y = origin[1] + j spacing.
        spacing: Distance between neighboring heights, [m].
        origin: World x and y of the first height, (2,), [m].

    Source:
        F. N. Fritsch, R. E. Carlson, "Monotone piecewise cubic interpolation", SIAM Journal on Numerical Analysis
        17(2), 1980; B. van Leer, "Towards the ultimate conservative difference scheme. IV. A new approach to numerical
        convection", Journal of Computational Physics 23(3), 1977, for the bound of the mean slope.
    """

    parameter_names: ClassVar[tuple[str, ...]] = ()  # for `rollout`: thousands of heights would be inputs of kernels
    heights: Array = field(repr=False, compare=False)
    spacing: float
    origin: tuple[float, float] = (0.0, 0.0)
    _table: LookupTable = field(init=False, repr=False)
    """The four `nodes` of each height, row by row, with one more row and column of heights of the edge at the end."""

    def __post_init__(self) -> None:
        heights = rounded_array("the heights of a height map", self.heights, (None, None))
        if not heights.size or heights.dtype == object:
            raise ShapeError(f"the heights of a height map must be a grid of numbers, got shape {heights.shape}")
        heights.flags.writeable = False
        spacing = float(number("spacing", self.spacing))
        if not spacing > 0.0:
            raise DefinitionError(f"the spacing of a height map must be positive, got {spacing} m")
        origin = rounded_array("the origin of a height map", self.origin, (2,)).tolist()
        padded = np.moveaxis(nodes(np.pad(heights, 2, mode="edge"))[:, 2:-1, 2:-1], 0, -1)
        table = LookupTable(padded.ravel())
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
        return self._table(4.0 * (row * (m + 1.0) + column))

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
        columns = self.heights.shape[1] + 1.0
        numbers = np.add.outer(np.arange(4.0), np.add.outer([0.0, 4.0 * columns], [0.0, 4.0]))
        first = 4.0 * (row * columns + column)
        return bicubic(self._table(first + numbers.reshape(4, 2, 2, *[1] * np.ndim(first))), s, t, self.spacing)

    def __str__(self) -> str:
        n, m = self.heights.shape
        low, high = self.heights.min(), self.heights.max()
        start = ", ".join(f"{z:g}" for z in self.origin)
        return f"{n} x {m} heights from {low:g} to {high:g} m, {self.spacing:g} m apart, from ({start}) m"


def _cell(position: Any, n: int) -> tuple[Any, Any]:
    """Return the number of a cell and the fraction in it, of a position in spacings along an axis of n heights."""
    position = np.minimum(np.maximum(position, 0.0), n - 1.0)
    cell = np.floor(position)
    return cell, position - cell


def nodes(heights: Array) -> Array:
    """Return heights, slopes along x and along y, and mixed derivatives, (4, nx, ny), [m]; see `HeightMap`.

    Derivatives are those with respect to x and y over the spacing. The grid is periodic: the last row and column are
    neighbors of the first ones.

    Args:
        heights: (nx, ny), [m], world z.
    """
    along_x, along_y = _bounded_difference(heights, 0), _bounded_difference(heights, 1)
    mixed = _smaller(_bounded_difference(along_x, 1), _bounded_difference(along_y, 0))
    return np.array([heights, along_x, along_y, mixed])


def _bounded_difference(values: Array, axis: int) -> Array:
    """Return the slope at each value along an axis, times the spacing, (nx, ny), in the unit of the values."""
    before, after = values - np.roll(values, 1, axis), np.roll(values, -1, axis) - values
    return _smaller(0.5 * (before + after), _STEEPEST * _smaller(before, after))


def _smaller(a: Array, b: Array) -> Array:
    """Return the value of smaller magnitude of each pair, and zero where their signs differ."""
    return np.where(np.sign(a) * np.sign(b) > 0.0, np.sign(a) * np.minimum(np.abs(a), np.abs(b)), 0.0)


def bicubic(corners: Any, s: Any, t: Any, spacing: float) -> tuple[Any, Any, Any]:
    """Return the height, (...), [m], and its derivatives along x and y, (...), dimensionless; see `HeightMap`.

    Args:
        corners: `nodes` at the corners of a cell, the second axis along x, the third along y, (4, 2, 2, ...), [m].
        s, t: Fractions of the cell along x and y, (...).
        spacing: Distance between neighboring heights, [m].
    """
    (w_x, rate_x), (w_y, rate_y) = _weights(s), _weights(t)
    # Heights and slopes along x at s = 0 and s = 1, and their derivatives along y, at the fraction t.
    values = [_dot(w_y, (*corners[k, i], *corners[k + 2, i])) for k in (0, 1) for i in (0, 1)]
    slopes = [_dot(rate_y, (*corners[k, i], *corners[k + 2, i])) for k in (0, 1) for i in (0, 1)]
    return _dot(w_x, values), _dot(rate_x, values) / spacing, _dot(w_x, slopes) / spacing


def upward(along_x: Any, along_y: Any) -> Any:
    """Return the unit normal of a surface, (..., 3), by its slopes along x and y, (...), dimensionless."""
    up = 1.0 / np.sqrt(1.0 + along_x * along_x + along_y * along_y)
    return np.stack([-along_x * up, -along_y * up, up], axis=-1)


def _weights(s: Any) -> tuple[list[Any], list[Any]]:
    """Return the four cubic Hermite basis functions, for two values and two slopes, and their derivatives, at s."""
    r = 1.0 - s
    rise = s * s * (3.0 - 2.0 * s)
    rate = 6.0 * s * r
    return [1.0 - rise, rise, s * r * r, -r * s * s], [-rate, rate, r * (1.0 - 3.0 * s), s * (1.0 - 3.0 * r)]


def _dot(weights: Any, values: Any) -> Any:
    return sum(w * value for w, value in zip(weights[1:], values[1:], strict=True)) + weights[0] * values[0]
