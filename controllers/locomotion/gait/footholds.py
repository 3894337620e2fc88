"""Footholds: places on a terrain on which a foot may stand.

Of a height map, the nearest foothold to each cell is found once for the map (`Footholds`). A place is a foothold if a
plane through the heights around it deviates from none of them by more than 0.12 h, for flat feet 0.025 h, if it is not
steep, and if it does not lie in a hole or gap: heights that a morphological closing over 0.5 h would raise by more than
0.2 h. The offset to the nearest foothold and the slopes of its plane are numbers in tables for each cell, so that a
compiled law reads two numbers for a landing place, and two for the ground under a foot, whatever the map. Slopes of the
surface through the heights of a camera have larger errors, most of all in cells with points of both the wall and the
top of an edge. On other terrains, whose numbers may
vary between the members of a rollout, a law looks for a place without edges and gaps along the heading
(`away_from_edges`).

Source:
    F. Jenelten, T. Miki, A. E. Vijayan, M. Bjelonic, M. Hutter, "Perceptive locomotion in rough terrain - online
    foothold optimization", IEEE Robotics and Automation Letters 5(4), 2020, for scores of slope, roughness and
    distance from edges; the criteria and their values here are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any, cast

import numpy as np
from scipy import ndimage

from legged.compiler.ir import LookupTable, where
from legged.ground.height_map import HeightMap, upward
from legged.ground.rolling_height_map import RollingHeightMap
from legged.ground.terrain import Terrain
from legged.spatial import Array

UNEVEN = 0.05
"""Change of the slope times a length that is an edge of the terrain, [h]."""
GAP, DEPTH = 0.5, 0.2
"""Width up to which a lower place is a gap, and depth from which on it is one, [h]."""
_EDGE = 0.075  # [h], with the height h of the center of mass: half the distance of a foot from edges of the terrain
_SHIFTS = 5  # largest shift of a landing place away from an edge, in that length
_ACROSS = 5  # widest gap that it avoids, in that length
_ROUGH, _ROUGH_SOLE = 0.12, 0.025  # [h], largest distance of the ground around a point foot and a sole from a plane
_RADIUS, _MARGIN = 0.11, 0.04  # [h], of the ground around a point foot that is even, and around a sole
_MARGIN_OF_SOLE = 0.02  # [h], around a sole on a height map, in addition to the distance to the next cell
_HEADINGS = 8  # of soles in a half turn
_STEEPEST = 0.8  # slope
_FARTHEST = 0.6  # [h], largest distance of a foothold from the desired place; beyond it the desired place is kept


@dataclass(frozen=True, eq=False)
class Footholds:
    """The nearest footholds to the cells of a height map.

    Attributes:
        terrain: The map.
        tables: `nearest_footholds` for each heading of all cells row by row, (4,): offsets along world x and y, [m],
            and slopes.
        headings: Number of headings in a half turn for which there are footholds; 1 for point feet.
    """

    terrain: HeightMap
    tables: tuple[LookupTable, ...]
    headings: int

    @classmethod
    def of(cls, terrain: HeightMap, height: float, sole: Sequence[float]) -> Footholds:
        """Return the footholds of a map.

        Args:
            terrain: The map. height: h, of the center of mass of the standing robot, [m].
            sole: Half of the length and of the width of a sole, (2,), [m]; zero for point feet.
        """
        return _footholds(terrain, round(height, 6), (round(sole[0], 6), round(sole[1], 6)))

    def nearest(self, place: Array, heading: Array) -> Array:
        """Return the nearest foothold to a place, (2,), [m], world axes; the place itself if none is near.

        Args:
            place: (2,), [m], world axes. heading: Unit vector along the sole, (2,), dimensionless, world axes.
        """
        return place + np.stack(self._read(place, heading, self.tables[:2]))

    def normal(self, place: Array, heading: Array) -> Array:
        """Return the unit normal of the plane of the nearest foothold to a place, (3,), dimensionless, world axes.

        Args:
            place: (2,), [m], world axes. heading: As in `nearest`.
        """
        return upward(*self._read(place, heading, self.tables[2:]))

    def _read(self, place: Array, heading: Array, tables: Sequence[LookupTable]) -> list[Any]:
        """Return the entries of tables for the cell at a place and the heading nearest to the given one."""
        spacing = self.terrain.spacing
        row, column = (
            np.minimum(np.maximum(np.floor((z - start) / spacing + 0.5), 0.0), size - 1.0)
            for z, start, size in zip(place, self.terrain.origin, self.terrain.heights.shape, strict=True)
        )
        cell: Any = row * self.terrain.heights.shape[1] + column
        if self.headings > 1:
            turn = np.floor(np.arctan2(heading[1], heading[0]) * (self.headings / np.pi) + 0.5)
            turn = turn - self.headings * np.floor(turn / self.headings)
            cell = cell + turn * float(self.terrain.heights.size)
        return [table(cell) for table in tables]


@lru_cache(maxsize=8)
def _footholds(terrain: HeightMap, height: float, sole: tuple[float, float]) -> Footholds:
    """Return the footholds of a map; many laws of a study share them."""
    layers, count = [], _HEADINGS if sole[0] > 0.0 else 1
    for angle in np.pi / count * np.arange(count):
        heading = np.array([np.cos(angle), np.sin(angle)])
        free, slopes = foothold_planes(terrain.heights, terrain.spacing, height, sole, heading)
        layers.append(nearest_footholds(free, slopes, terrain.spacing, height).reshape(4, -1))
    return Footholds(terrain, tuple(LookupTable(row) for row in np.concatenate(layers, axis=1)), count)


def nearest_footholds(free: Array, slopes: Array, spacing: float, height: float) -> Array:
    """Return the offset from each cell of a map to the nearest foothold and the slopes of its plane, (4, nx, ny).

    If none is near, the offsets are zero and the slopes those at the cell itself.

    Args:
        free: Whether a foot may stand on each cell along world x and y, (nx, ny), bool, dimensionless, world axes.
        slopes: Of a plane around each cell along world x and y, (2, nx, ny), dimensionless.
        spacing: Of the cells, [m].
        height: h, of the center of mass of the standing robot, [m].

    Returns:
        Offsets along world x and y, [m], and slopes along them, dimensionless, (4, nx, ny).
    """
    own = cells = np.indices(free.shape)
    if free.any() and not free.all():
        distance, cells = cast(tuple[Array, Array], ndimage.distance_transform_edt(~free, return_indices=True))
        cells = np.where(distance * spacing <= _FARTHEST * height, cells, own)
    return np.concatenate([spacing * (cells - own), slopes[:, *cells]])


def foothold_planes(
    heights: Array,
    spacing: float,
    height: float,
    sole: Sequence[float] = (0.0, 0.0),
    heading: Sequence[float] | Array = (1.0, 0.0),
) -> tuple[Array, Array]:
    """Return (free, slopes): whether a foot may stand on each cell of a map, and the plane of the ground around it.

    Args:
        heights: (nx, ny), [m], world z. spacing: Of the cells, [m].
        height: h, of the center of mass of the standing robot, [m]. sole: As in `Footholds.of`, (2,), [m].
        heading: Unit vector along the sole, (2,), dimensionless, world axes.

    Returns:
        Whether each cell is a foothold, (nx, ny), bool, and slopes along world x and y, (2, nx, ny), dimensionless.
    """
    if sole[0] == 0.0:
        around, rough = _disk(_RADIUS * height / spacing), _ROUGH
    else:
        around, rough = _rectangle(sole, _MARGIN_OF_SOLE * height, spacing, heading), _ROUGH_SOLE
    cells = np.argwhere(around) - around.shape[0] // 2
    nearby = [ndimage.shift(heights, -cell, order=0, mode="nearest") for cell in cells.astype(float)]
    mean = sum(nearby) / len(nearby)
    x, y = spacing * cells.T
    slopes = [sum(a * z for a, z in zip(d, nearby, strict=True)) / float(d @ d) for d in (x, y)]
    planes = [mean + a * slopes[0] + b * slopes[1] for a, b in zip(x, y, strict=True)]
    errors = [np.abs(z - plane) for z, plane in zip(nearby, planes, strict=True)]
    is_even = np.maximum.reduce(errors) <= rough * height
    closed = ndimage.grey_closing(heights, footprint=_disk(0.5 * GAP * height / spacing), mode="nearest")
    free = is_even & (np.hypot(slopes[0], slopes[1]) <= _STEEPEST) & (closed - heights <= DEPTH * height)
    return free, np.array(slopes)


def _rectangle(sole: Sequence[float], margin: float, spacing: float, heading: Sequence[float] | Array) -> Array:
    """Return the cells whose heights form the ground under a sole with a margin, [m], an odd square mask, (n, n), bool.

    The sole may be anywhere in the middle cell, and the surface between two cells has heights between theirs.
    """
    length, width = (extent + margin + 1.5 * spacing for extent in sole)
    k = int(np.ceil(np.hypot(length, width) / spacing))
    x, y = spacing * (np.indices((2 * k + 1, 2 * k + 1)) - k)
    c, s = heading
    return (np.abs(c * x + s * y) < length - 1e-9) & (np.abs(c * y - s * x) < width - 1e-9)


def _disk(radius: float) -> Array:
    """Return the cells within a radius, [cells], and at least the neighbors, an odd square mask, (n, n), bool."""
    k = max(int(np.ceil(radius)), 1)
    x, y = np.indices((2 * k + 1, 2 * k + 1)) - k
    return x * x + y * y <= max(radius, 1.0) ** 2 + 1e-9


def terrain_heights(
    terrain: Terrain, start: Array, end: Array, count: int = 9, extents: Sequence[Array] = (), slope: Any = 0.0
) -> list[Any]:
    """Return heights of a terrain at places between two places, (count,), [m], world z.

    Args:
        terrain: The terrain.
        start: (2,), [m], world axes.
        end: (2,), [m], world axes.
        count: Number of places.
        extents: Of a foot from its middle, such as to its toe and its heel, (2,) each, [m], world axes. The height at a
            place is then the least at which a foot parallel to the ground touches nothing.
        slope: Of this ground along world x and y, (2,), dimensionless; only with extents.
    """
    fractions = [(k + 1.0) / (count + 1.0) for k in range(count)]
    places = [start[:2] + f * (end[:2] - start[:2]) for f in fractions]
    return [
        reduce(np.maximum, [terrain.height(*(p + e)) - slope @ e for e in extents], terrain.height(*p)) for p in places
    ]


def moved_to_foothold(terrain: Terrain, place: Array, heading: Array, height: float, sole: Sequence[float]) -> Array:
    """Return the place of a foothold near to a desired place, (2,), [m], world axes; see `Footholds`.

    Args:
        terrain: The terrain; footholds of a `HeightMap` are known, and the offsets to them of a `RollingHeightMap`;
            others are looked for along the heading.
        place: Desired place, (2,), [m], world axes.
        heading: Unit vector, (2,), dimensionless, world axes.
        height, sole: As in `Footholds.of`, [m] and (2,), [m].
    """
    if isinstance(terrain, HeightMap):
        return Footholds.of(terrain, height, sole).nearest(place, heading)
    if isinstance(terrain, RollingHeightMap):
        return place + terrain.offset(*place)
    return away_from_edges(terrain, place, heading, height, sole[0])


def foothold_normal(terrain: Terrain, place: Array, heading: Array, height: float, sole: Sequence[float]) -> Array:
    """Return the unit normal of the ground under a foot, (3,), dimensionless, world axes.

    On a height map it is that of the plane of the nearest foothold.

    Args:
        terrain: As in `moved_to_foothold`. place: Of the foot, (2,), [m], world axes.
        heading: Unit vector, (2,), dimensionless, world axes.
        height, sole: As in `Footholds.of`, [m] and (2,), [m].
    """
    if isinstance(terrain, HeightMap):
        return Footholds.of(terrain, height, sole).normal(place, heading)
    if isinstance(terrain, RollingHeightMap):
        return upward(*terrain.slopes(*place))
    return terrain.normal(*place)


def away_from_edges(terrain: Terrain, place: Array, heading: Array, height: float, toe: float = 0.0) -> Array:
    """Return the nearest of eleven places along the heading without an edge of the terrain beside it, (2,), [m].

    The rises between neighbors of places 0.075 h apart differ at an edge, and are equal on a slope. A place counts as
    even if those within 0.15 h do not differ by more than 0.05 h. It lies in a gap if the ground within 0.375 h
    both before and behind it is higher by more than 0.2 h. Without an even place outside of gaps the desired place is
    returned.

    Args:
        terrain: The terrain.
        place: Desired place, (2,), [m], world axes.
        heading: Unit vector, (2,), dimensionless, world axes.
        height: Height h of the center of mass of the standing robot, [m].
        toe: Half of the length of a sole, [m]; a longer foot than 0.11 h keeps 0.04 h away from edges.
    """
    length = max(_EDGE * height, 0.5 * (toe + _MARGIN * height))
    reach = range(-_SHIFTS - _ACROSS, _SHIFTS + _ACROSS + 1)
    heights = {k: terrain.height(*(place + k * length * heading)) for k in reach}
    bends = {k: np.abs(heights[k + 1] - 2.0 * heights[k] + heights[k - 1]) for k in reach[1:-1]}
    shift, free = 0.0, False
    for k in sorted(range(-_SHIFTS, _SHIFTS + 1), key=abs):
        even = reduce(np.maximum, [bends[k - 1], bends[k], bends[k + 1]]) <= UNEVEN * height
        sides = [reduce(np.maximum, [heights[k + side * i] for i in range(1, _ACROSS + 1)]) for side in (-1, 1)]
        even = even & (np.minimum(*sides) - heights[k] <= DEPTH * height)
        shift = where(free, shift, where(even, float(k), 0.0))
        free = even | free
    return place + shift * length * heading
