"""A height map of the surroundings of a robot, which moves with it and changes while compiled code reads it."""

from __future__ import annotations

from typing import Any

import numpy as np

from legged.arguments import Numbers, list_as_array, number, rounded_array, whole
from legged.checked import checked
from legged.compiler.ir import ChangingTable
from legged.ground.height_map import bicubic, nodes, upward

Array = np.ndarray
_LAYERS = 8
"""Number of numbers that the table has for each height: four of `nodes`, two of the offset, two of the slopes."""


@checked
class RollingHeightMap:
    """Robot-centered height maps, one for each robot, that a compiled function reads and `write` changes.

    Height i, j of the world is at x = i spacing, y = j spacing, and in entry (i modulo nx, j modulo ny) of a map, so
    that a map that moves over the world keeps the entries that it still covers. The surface is that of `HeightMap`.
    Each entry also has an offset, such as that to the nearest foothold, and slopes, such as those of the ground there,
    which errors of single heights change less than those of the surface. Beyond the map its entries repeat: read it
    only around the robot. A compiled function reads the numbers that were written last.

    Args:
        shape: Number of heights along x and y, (nx, ny).
        spacing: Distance between neighboring heights, [m].
        count: Number of robots.

    Attributes:
        robot: Number of the robot whose map is read, from 0; `vary` of `Simulation` gives each robot its own.
    """

    parameter_names = ("robot",)

    def __init__(self, shape: tuple[int, int], spacing: float, count: int = 1):
        self.shape = whole("shape", shape[0], 4), whole("shape", shape[1], 4)
        self.spacing = number("spacing", spacing, "m", above=0.0)
        self.count, self.robot = whole("count", count, 1), 0.0
        self._table = ChangingTable(np.zeros(self.count * _LAYERS * self.shape[0] * self.shape[1]))

    def write(
        self, robot: int, heights: Numbers, offsets: Numbers | None = None, slopes: Numbers | None = None
    ) -> None:
        """Replace the map of a robot.

        Args:
            robot: Its number. heights: Heights in the order of the entries, (nx, ny), [m], world z.
            offsets: Offsets along world x and y, (2, nx, ny), [m]; by default zero.
            slopes: Slopes along world x and y, (2, nx, ny), dimensionless; by default those of the surface.

        Raises:
            ShapeError, NotFiniteError: An array has another shape, or is not finite; then nothing changes.
        """
        k = whole("robot", robot, 0, self.count - 1)
        heights = rounded_array("heights", heights, self.shape)
        offsets = np.zeros((2, *self.shape)) if offsets is None else rounded_array("offsets", offsets, (2, *self.shape))
        if slopes is None:
            slopes = nodes(heights)[1:3] / self.spacing
        slopes = rounded_array("slopes", slopes, (2, *self.shape))
        self._table.numbers.reshape(self.count, _LAYERS, *self.shape)[k] = [*nodes(heights), *offsets, *slopes]

    def height(self, x: Numbers, y: Numbers) -> Any:
        """Return the height of the surface at (x, y), [m], world z."""
        return self._height_and_slopes(x, y)[0]

    def normal(self, x: Numbers, y: Numbers) -> Any:
        """Return the unit normal at (x, y), (..., 3), world axes."""
        return upward(*self._height_and_slopes(x, y)[1:])

    def offset(self, x: Numbers, y: Numbers) -> Any:
        """Return the offset of the entry that is nearest to (x, y), (..., 2), [m], world axes."""
        return np.stack(self._of_nearest(x, y, (4, 5)), axis=-1)

    def slopes(self, x: Numbers, y: Numbers) -> Any:
        """Return the slopes along world x and y of the entry nearest to (x, y), two arrays (...), dimensionless."""
        return self._of_nearest(x, y, (6, 7))

    def _of_nearest(self, x: Any, y: Any, layers: tuple[int, ...]) -> list[Any]:
        """Return the numbers of layers in the entry nearest to (x, y)."""
        nearest = [np.floor(list_as_array(z) / self.spacing + 0.5) for z in (x, y)]
        return [self._read(layer, *nearest) for layer in layers]

    def _height_and_slopes(self, x: Any, y: Any) -> tuple[Any, Any, Any]:
        """Return the height, [m], and its derivatives with respect to x and y."""
        place = [list_as_array(z) / self.spacing for z in (x, y)]
        row, column = (np.floor(z) for z in place)
        corners = np.array([[[self._read(k, row + i, column + j) for j in (0, 1)] for i in (0, 1)] for k in range(4)])
        return bicubic(corners, place[0] - row, place[1] - column, self.spacing)

    def _read(self, layer: int, row: Any, column: Any) -> Any:
        """Return the numbers of a layer at heights of the world."""
        (n, m), first = self.shape, (_LAYERS * self.robot + layer) * self.shape[0]
        row, column = (k - size * np.floor(k / size) for k, size in ((row, float(n)), (column, float(m))))
        return self._table((first + row) * m + column)

    def __str__(self) -> str:
        n, m = self.shape
        return f"{self.count} moving maps of {n} x {m} heights, {self.spacing:g} m apart"
