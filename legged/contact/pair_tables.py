"""Contacts of scenes with many pairs: one kernel for each kind of pair, and tables of its pairs.

The pairs of one kind, such as box and box, differ by their bodies and by numbers: dimensions and places of the shapes.
A kernel computes the contacts of all pairs of a kind that are near each other, in the lanes of vectors. Pairs whose
bounding spheres are apart are left out. The code of a scene depends on the kinds of pairs, not on their number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from legged.compiler import BatchKernel, CallSequence, Rows, windows
from legged.contact.detection.pairs import (
    Ball,
    BodyShape,
    Contact,
    Kind,
    Pair,
    ShapePair,
    SphereTerrain,
    box_on_terrain,
    kind_of,
    shape_contacts,
    sphere_on_terrain,
    support_on_terrain,
)
from legged.contact.recording import Recording
from legged.contact.scene import Scene
from legged.contact.scene_shapes import WORLD, SceneShapes, padded_vertices
from legged.ground.terrain import Terrain
from legged.robot.shapes import Box, Hull, Sphere
from legged.spatial import Array

MARGIN = 0.25
"""Distance of bounding spheres up to which a pair is near, relative to the sum of their radii."""
SKIN = 0.5
"""Least distance that a shape moves before near pairs are searched again, relative to its bounding sphere's radius."""
_Classes: TypeAlias = tuple[type[Any], type[Any] | None]  # of both shapes of a pair; None for the terrain


class Detected(NamedTuple):
    """The k contact candidates of near pairs.

    Attributes:
        numbers: Their numbers in `Scene.candidates`, (k,), increasing.
        pair: Number of the pair of each, (k,), increasing.
        first, second: Numbers of their bodies, (k,), in the order of `Poses`; `WORLD` for terrain and obstacles.
        gap, frame, point: As in `ContactGeometry`, (k,), (k, 3, 3) and (k, 3).
    """

    numbers: Array
    pair: Array
    first: Array
    second: Array
    gap: Array
    frame: Array
    point: Array


class Poses(NamedTuple):
    """Poses of all bodies of all robots of a scene in order, and of the world, which is the last one.

    Attributes:
        rotation: Body axes to world axes, (B, 3, 3). origin: (B, 3), [m], world axes.
    """

    rotation: Array
    origin: Array


class PairTable:
    """The pairs of one kind in a scene.

    Args:
        scene: The scene. shapes: Its shapes. classes: Of the shapes of the pairs.
        numbers: Numbers of the candidates of each pair, (n, count).
        first, second: Numbers of the shapes, (n,); for the terrain the second is not used.
    """

    def __init__(
        self, scene: Scene, shapes: SceneShapes, classes: _Classes, numbers: Array, first: Array, second: Array
    ):
        self.numbers, self.first, self.second, self._shapes = numbers, first, second if classes[1] else None, shapes
        self._classes = [kind for kind in classes if kind is not None]
        kinds: list[Kind] = [(kind, shapes.vertices if kind is Hull else 0) for kind in self._classes]
        self._detect = _detector(kinds, scene.ground.terrain)

    @cached_property
    def _kernel(self) -> BatchKernel:
        size = [self._shapes.sizes[kind].shape[1] for kind in self._classes]
        pose = {"R": (3, 3), "c": (3,)}
        shapes = {"a": (size[0],), **pose}
        if self.second is not None:
            shapes |= {"b": (size[1],), "Q": (3, 3), "o": (3,)}
        return BatchKernel(self._detect, shapes)

    def compile_ahead(self) -> None:
        """Trace the detection, which another thread compiles if a processor is free."""
        with suppress(Exception):  # of a user's terrain; `record` raises it again
            self._kernel.compile_ahead()

    def near(self, centers: Array, allowance: Array) -> Array:
        """Return the numbers of the pairs whose bounding spheres are near, (k,).

        Args:
            centers: Of all shapes, (S, 3), [m], world axes.
            allowance: A scalar length that each shape adds to the limit, (S,), [m].
        """
        if self.second is None:
            return np.arange(len(self.first))
        limit = self.limits() + allowance[self.first] + allowance[self.second]
        return np.flatnonzero(((centers[self.first] - centers[self.second]) ** 2).sum(axis=1) < limit * limit)

    def limits(self, rows: Any = slice(None)) -> Array:
        """Return the distances of bounding spheres' centers below which pairs are near, without allowances, (k,), [m].

        Args:
            rows: Numbers of the pairs; all by default.
        """
        assert self.second is not None
        return (1.0 + MARGIN) * (self._shapes.radius[self.first[rows]] + self._shapes.radius[self.second[rows]])

    def sides(self, rows: Array) -> tuple[Array, Array | int]:
        """Return the numbers of the bodies of pairs, (k,) each, or `WORLD` for the terrain.

        Args:
            rows: Numbers of the pairs, (k,), dimensionless.
        """
        body = self._shapes.body
        return body[self.first[rows]], WORLD if self.second is None else body[self.second[rows]]

    def record(self, do: Recording, rows: Array, placed: Poses, starts: Array, geometry: Sequence[Array]) -> None:
        """Compute the contact candidates of pairs.

        Args:
            do: The recording. rows: Numbers of the pairs, (k,), dimensionless. placed: Poses of all shapes.
            starts: Place of the first candidate of each pair in the geometry, (k,), dimensionless.
            geometry: Receives gaps, (n,), frames, (n, 3, 3), and points, (n, 3), of all candidates, mixed units, world
                axes.
        """
        arguments, shapes = list[Array | Rows](), self._shapes
        for shape, numbers in zip(self._classes, (self.first, self.second), strict=False):
            assert numbers is not None
            at = numbers[rows]
            arguments += [Rows(shapes.sizes[shape], shapes.rows[at]), *(Rows(part, at) for part in placed)]
        results = [Rows(windows(part, self.numbers.shape[1]), starts) for part in geometry]
        do.each(self._kernel, len(rows), *arguments, results=results)


class _NearPairs(NamedTuple):
    """Pairs that may be near as long as no shape has moved and reaches farther than an allowance.

    Attributes:
        rows: Numbers of the pairs of each table. ends: Their slice of `nearness`, per table; None for the terrain.
        calls: Compute `nearness` from the places of all shapes.
        nearness: Limit of the squared distance of the spheres of pairs of two shapes, less the distance, (n,), [m^2].
    """

    rows: Sequence[Array]
    ends: Sequence[slice | None]
    calls: CallSequence
    nearness: Array


class _Detection(NamedTuple):
    """The calls that compute the contact candidates of certain pairs.

    Attributes:
        possible: Pairs that may be near. key: Identifies the pairs among them.
        rows: Numbers of the pairs of each table.
        calls: Write the candidates, by one call for each kind of pairs. detected: The candidates.
    """

    possible: _NearPairs
    key: tuple[bytes, bytes | None]
    rows: Sequence[Array]
    calls: CallSequence
    detected: Detected


class PairTables:
    """The pairs of a scene by kind.

    Attributes:
        starts: Number of the first body of each robot in `Poses`.
        tables: The pairs of each kind.
        extent: Largest distance of a point of the shapes of each body from its origin, (B,), [m]; zero for the world.
        poses, reach: Arguments of `detect` that need no copy.
    """

    def __init__(self, scene: Scene):
        self.starts = np.cumsum([0, *(len(robot.bodies) for robot in scene.robots)]).tolist()
        solids, pairs = _pairs_by_classes(scene)
        most = max((len(solid.shape.vertices) for solid in solids if isinstance(solid.shape, Hull)), default=0)
        self._shapes = shapes = SceneShapes(solids, self.starts, padded_vertices(most))
        self.tables = [
            PairTable(scene, shapes, classes, *(np.array(column) for column in zip(*rows, strict=True)))
            for classes, rows in pairs.items()
        ]
        count = self.starts[-1] + 1
        self.extent, radii = np.zeros(count), np.linalg.norm(shapes.center, axis=1) + shapes.radius
        np.maximum.at(self.extent, shapes.body, np.where(shapes.body == WORLD, 0.0, radii))
        self.poses, self.reach = Poses(np.tile(np.eye(3), (count, 1, 1)), np.zeros((count, 3))), np.zeros(count)
        self._centers, self._allowance = np.zeros((len(solids), 3)), np.full(len(solids), -1.0)  # of the last search
        bodies = [Rows(array, shapes.body) for array in (*self.poses, self.reach)]
        placing = shapes.rotation, shapes.center, self._centers, self._allowance
        self._place = _placing().prepare(len(solids), *bodies, *placing)
        rotation, center, self._excess = self._place.results
        self._placed = Poses(rotation, center)
        self._possible: _NearPairs | None = None
        self._detections: dict[bool, _Detection] = {}

    def compile_ahead(self, at: Poses) -> None:
        """Trace the detection of near pairs at rest, which another thread compiles if a processor is free.

        Args:
            at: The poses.
        """
        possible = self._near(at, None)
        for table, rows in zip(self.tables, self._rows(possible, possible.nearness > 0.0, None), strict=True):
            if len(rows):
                table.compile_ahead()

    def detect(self, at: Poses, reach: Array | None = None, only: Array | None = None) -> Detected:
        """Return the contact candidates of near pairs in the order of `Scene.candidates`.

        The next call may write the arrays again.

        Args:
            at: The poses; `poses` of the tables need no copy.
            reach: Distance that each body may move in a step, (B,), [m]; None for a scene at rest.
            only: Numbers of candidates, (k,), dimensionless, of whose pairs alone the candidates are returned; None for
                all.
        """
        detection = self._detection(self._near(at, reach), only)
        detection.calls()
        return detection.detected

    def _near(self, at: Poses, reach: Array | None) -> _NearPairs:
        """Return the pairs that may be near, with their present `nearness`; arguments as in `detect`."""
        if at is not self.poses:
            for mine, other in zip(self.poses, at, strict=True):
                mine[:] = other
        if reach is not self.reach:
            self.reach[:] = 0.0 if reach is None else reach
        self._place()
        if self._possible is None or self._excess.max(initial=0.0) > 0.0:
            self._possible = self._search()
        self._possible.calls()
        return self._possible

    def _search(self) -> _NearPairs:
        """Return the pairs that may be near for the present poses."""
        shapes, centers = self._shapes, self._placed.origin
        self._centers[:] = centers
        self._allowance[:] = np.maximum(SKIN * shapes.radius, 2.0 * self.reach[shapes.body])
        rows_of = [table.near(centers, self._allowance) for table in self.tables]
        ends, count, none = list[slice | None](), 0, np.zeros(0, dtype=int)
        parts = [(none, none, np.zeros(0))]
        for table, rows in zip(self.tables, rows_of, strict=True):
            if table.second is None:
                ends.append(None)
            else:
                parts.append((table.first[rows], table.second[rows], table.limits(rows)))
                ends.append(slice(count, count + len(rows)))
                count += len(rows)
        one, other, limits = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        do, bodies = Recording(), [Rows(self.reach, shapes.body[k]) for k in (one, other)]
        nearness = do.each(_nearness(), count, Rows(centers, one), Rows(centers, other), *bodies, limits)
        return _NearPairs(rows_of, ends, do.sequence(), nearness)

    def _detection(self, possible: _NearPairs, only: Array | None) -> _Detection:
        """Return the calls for the pairs that are near, kept from the last step if the pairs are the same."""
        near = possible.nearness > 0.0
        key, last = (near.tobytes(), None if only is None else only.tobytes()), self._detections.get(only is None)
        if last is not None and last.possible is possible and last.key == key:
            return last
        rows = self._rows(possible, near, only)
        if last is not None and all(map(np.array_equal, rows, last.rows)):
            detection = last._replace(possible=possible, key=key)
        else:
            detection = _Detection(possible, key, rows, *self._record(rows))
        self._detections[only is None] = detection
        return detection

    def _rows(self, possible: _NearPairs, near: Array, only: Array | None) -> list[Array]:
        """Return the numbers of the pairs of two shapes that are near, and of those with the terrain, of each table."""
        ends = zip(possible.rows, possible.ends, strict=True)
        rows_of = [rows if end is None else rows[near[end]] for rows, end in ends]
        if only is None:
            return rows_of
        pairs = zip(self.tables, rows_of, strict=True)
        return [rows[np.isin(table.numbers[rows], only).any(axis=1)] for table, rows in pairs]

    def _record(self, rows_of: Sequence[Array]) -> tuple[CallSequence, Detected]:
        """Return the calls that detect the contacts of pairs of each table, and their results."""
        pairs, none = [pair for pair in zip(self.tables, rows_of, strict=True) if len(pair[1])], np.zeros(0, dtype=int)
        numbers = np.sort(np.concatenate([none, *(table.numbers[rows].ravel() for table, rows in pairs)]))
        first, second, begins = np.empty_like(numbers), np.empty_like(numbers), np.zeros(len(numbers), dtype=int)
        do, geometry = Recording(), [np.empty((len(numbers), *shape)) for shape in ((), (3, 3), (3,))]
        for table, rows in pairs:
            starts = np.searchsorted(numbers, table.numbers[rows, 0])
            at = starts[:, None] + np.arange(table.numbers.shape[1])
            for bodies, side in zip((first, second), table.sides(rows), strict=True):
                bodies[at] = side if isinstance(side, int) else side[:, None]
            begins[starts] = 1
            table.record(do, rows, self._placed, starts, geometry)
        return do.sequence(), Detected(numbers, np.cumsum(begins) - 1, first, second, *geometry)


def _pairs_by_classes(scene: Scene) -> tuple[list[BodyShape], dict[_Classes, list[tuple[range, int, int]]]]:
    """Return the shapes of a scene, and for each kind of pairs the numbers of candidates and of the two shapes."""
    solids, places, count = list[BodyShape](), dict[int, int](), 0
    pairs: dict[_Classes, list[tuple[range, int, int]]] = {}
    for pair in scene.pairs:
        sides = _solids(pair)
        for solid in sides:
            if id(solid) not in places:
                places[id(solid)] = len(solids)
                solids.append(solid)  # which keeps it, and its id
        classes = kind_of(sides[0].shape)[0], kind_of(sides[1].shape)[0] if len(sides) > 1 else None
        numbers = range(count, count + len(pair.names))
        pairs.setdefault(classes, []).append((numbers, places[id(sides[0])], places[id(sides[-1])]))
        count = numbers.stop
    return solids, pairs


@cache
def _placing() -> BatchKernel:
    def place(R: Array, o: Array, reach: Any, Q: Array, c: Array, before: Array, allowance: Any) -> tuple[Any, ...]:
        """Return the pose of a shape, and how much farther it has moved and reaches than an allowance."""
        center = o + R @ c
        moved = center - before
        return R @ Q, center, np.sqrt(moved @ moved) + reach - allowance

    matrix, vector = (3, 3), (3,)
    shapes = {"R": matrix, "o": vector, "reach": (), "Q": matrix, "c": vector, "before": vector, "allowance": ()}
    return BatchKernel(place, shapes).compile_ahead()


@cache
def _nearness() -> BatchKernel:
    def nearness(a: Array, b: Array, reach_a: Any, reach_b: Any, limit: Any) -> Any:
        most = limit + reach_a + reach_b
        return most * most - (a - b) @ (a - b)

    return BatchKernel(nearness, {"a": (3,), "b": (3,), "reach_a": (), "reach_b": (), "limit": ()})


def _solids(pair: Pair) -> list[BodyShape]:
    """Return the shapes of a pair."""
    if isinstance(pair, SphereTerrain):
        return [BodyShape(pair.first, Ball(pair.center, pair.radius))]
    if isinstance(pair, ShapePair):
        return [pair.one, pair.other]
    return [pair.solid]


def _detector(kinds: list[Kind], terrain: Terrain) -> Callable[..., Contact]:
    """Return the function of dimensions and poses that returns the contacts of a kind of pairs, stacked."""
    one, *others = kinds
    if others:
        (other,) = others
        return lambda a, R, c, b, Q, o: _stacked(shape_contacts(one, a, R, c, other, b, Q, o))
    if one[0] is Sphere:
        return lambda a, R, c: _stacked([sphere_on_terrain(a[0], c, terrain)])
    if one[0] is Box:
        return lambda a, R, c: _stacked(box_on_terrain(a, R, c, terrain))
    return lambda a, R, c: _stacked(support_on_terrain(one, a, R, c, terrain))


def _stacked(contacts: list[Contact]) -> Contact:
    gaps = np.stack([contact.gap for contact in contacts])
    return Contact(gaps, np.array([c.frame for c in contacts]), np.array([c.point for c in contacts]))
