"""Terrain of tiles: slopes, waves, boxes and stairs of increasing difficulty in one height map."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from legged.arguments import known_name, whole
from legged.checked import checked
from legged.ground.height_map import HeightMap

Array = np.ndarray
Tile = Callable[[Array, Array, float, np.random.Generator], Array]
"""Function (x, y, difficulty, random) -> heights: x and y from the middle of the tile, (n, n), [m]; difficulty from 0
to 1; heights (n, n), [m], level on the platform in the middle and about zero at the edges, where tiles meet."""
_PLATFORM = 0.8  # [m], half the side of the level square in the middle of a tile


def _rise(x: Array, y: Array) -> Array:
    """Return the distance from the platform, [m], along the axis on which it is larger."""
    return np.maximum(np.maximum(np.abs(x), np.abs(y)) - _PLATFORM, 0.0)


def _to_edge(x: Array, y: Array) -> Array:
    """Return the distance from the edges of the tile, [m]."""
    rise = _rise(x, y)
    return rise.max() - rise


def _slope(x: Array, y: Array, difficulty: float, random: np.random.Generator) -> Array:
    return -0.4 * difficulty * _to_edge(x, y)


def _inverted_slope(x: Array, y: Array, difficulty: float, random: np.random.Generator) -> Array:
    return -_slope(x, y, difficulty, random)


def _stairs(x: Array, y: Array, difficulty: float, random: np.random.Generator) -> Array:
    height, depth = 0.02 + 0.13 * difficulty, 0.3
    steps = np.ceil(_rise(x, y) / depth - 1e-9)
    return height * (steps.max() - steps)


def _inverted_stairs(x: Array, y: Array, difficulty: float, random: np.random.Generator) -> Array:
    return -_stairs(x, y, difficulty, random)


def _waves(x: Array, y: Array, difficulty: float, random: np.random.Generator) -> Array:
    fade = np.minimum(np.minimum(_rise(x, y), _to_edge(x, y)) / 0.5, 1.0)
    return fade * 0.12 * difficulty * (np.sin(2.0 * np.pi * x / 1.6) + np.sin(2.0 * np.pi * y / 1.6))


def _boxes(x: Array, y: Array, difficulty: float, random: np.random.Generator) -> Array:
    side = 0.45
    rows, columns = (np.floor((z - z.min()) / side).astype(int) for z in (x, y))
    heights = (0.02 + 0.13 * difficulty) * random.uniform(-0.5, 0.5, (rows.max() + 1, columns.max() + 1))
    return np.where(_rise(x, y) > 0.0, heights[rows, columns], 0.0)


TILES: dict[str, Tile] = {
    "slope": _slope,
    "inverted_slope": _inverted_slope,
    "stairs": _stairs,
    "inverted_stairs": _inverted_stairs,
    "waves": _waves,
    "boxes": _boxes,
}
"""Kinds of tiles by name. From the platform in the middle outward, slopes rise by up to 0.4 and stairs go down in steps
of 0.02 to 0.15 m, and inverted ones the other way; waves rise by up to 0.24 m, and boxes by up to 0.075 m. All tiles
have about the same height at their edges, so that robots can walk from one to the next."""


@checked
@dataclass(frozen=True, eq=False)
class TiledTerrain:
    """Tiles in a height map: a row for each level of difficulty, columns of the kinds in turn.

    Attributes:
        terrain: The `HeightMap`; the middle of the tile in row 0 and column 0 is the origin of the world.
        side: Side of a tile, [m]. levels: Number of rows. columns: Number of columns.
    """

    terrain: HeightMap
    side: float
    levels: int
    columns: int

    def middle(self, level: Any, column: Any) -> Array:
        """Return the middle of a tile, (2,), [m], world axes.

        Args:
            level, column: Its row and its column.
        """
        return self.side * np.stack([level, column])

    @classmethod
    def of(
        cls,
        kinds: Sequence[str] = tuple(TILES),
        levels: int = 10,
        columns: int = 12,
        side: float = 8.0,
        spacing: float = 0.1,
        seed: int = 0,
    ) -> TiledTerrain:
        """Return random tiles.

        Args:
            kinds: Names in `TILES`. levels, columns: Numbers of rows and columns.
            side: Side of a tile, a multiple of the spacing, [m]. spacing: Of the heights, [m].
            seed: Of the random heights.

        Raises:
            UnknownNameError: A kind does not exist. ArgumentError: a number is not whole or too small.
        """
        for kind in kinds:
            known_name("kind of tile", kind, TILES)
        levels, columns = whole("levels", levels, 1), whole("columns", columns, 1)
        n = whole("the number of heights along a tile", round(side / spacing), 8)
        x, y = np.meshgrid(*[(np.arange(n) - n // 2) * spacing] * 2, indexing="ij")
        random = np.random.default_rng(seed)
        rows = []
        for level in range(levels):
            difficulty = level / max(levels - 1, 1)
            tiles = [TILES[kinds[k % len(kinds)]](x, y, difficulty, random) for k in range(columns)]
            rows.append(np.concatenate(tiles, axis=1))
        start = -(n // 2) * spacing
        return cls(HeightMap(np.concatenate(rows, axis=0), spacing, (start, start)), n * spacing, levels, columns)
