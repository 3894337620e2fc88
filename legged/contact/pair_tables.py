"""Contacts of scenes with many pairs: one kernel for each kind of pair, and tables of its pairs.

The pairs of one kind, such as box and box, differ by their bodies and by numbers: dimensions and places of the shapes.
A kernel computes the contacts of all pairs of a kind that are near each other, in the lanes of vectors. Pairs whose
bounding spheres are apart are left out. The code of a scene depends on the kinds of pairs, not on their number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from legged.compiler.runtime.batch_kernel import BatchKernel
from legged.contact.detection.pairs import (
    Ball,
    BodyShape,
    Contact,
    Kind,
    Pair,
    ShapePair,
    SphereTerrain,
    bounding_radius,
    box_on_terrain,
    dimensions,
    kind_of,
    shape_contacts,
    sphere_on_terrain,
    support_on_terrain,
)
from legged.contact.scene import Scene
from legged.ground.terrain import Terrain
from legged.robot.shapes import MOST_VERTICES, Box, Capsule, Cylinder, Ellipsoid, Hull, Sphere
from legged.spatial import Array

MARGIN = 0.25
"""Distance of bounding spheres up to which a pair is near, relative to the sum of their radii."""
SKIN = 0.5
"""Least distance that a shape moves before near pairs are searched again, relative to its bounding sphere's radius."""
_Classes: TypeAlias = tuple[type[Any], type[Any] | None]  # of both shapes of a pair; None for the terrain
WORLD = -1
"""Number of the body of fixed shapes: the last one."""


class Detected(NamedTuple):
    """The k contact candidates of near pairs.

    Attributes:
        numbers: Their numbers in `Scene.candidates`, (k,), increasing.
        first, second: Numbers of their bodies, (k,), in the order of `Poses`; `WORLD` for terrain and obstacles.
        gap, frame, point: As in `ContactGeometry`, (k,), (k, 3, 3) and (k, 3).
    """

    numbers: Array
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


class _Shapes:
    """The shapes of a scene.

    Attributes:
        body: Number of the body of each, (S,), in the order of `Poses`.
        rotation: Shape axes to body axes, (S, 3, 3). center: (S, 3), [m], body axes.
        radius: Radii of bounding spheres, (S,), [m].
        sizes: `dimensions` of all shapes of each class, (number of shapes, d), [m].
        rows: Row of each shape in them, (S,).
        vertices: Of all hulls, which are padded.
    """

    def __init__(self, solids: Sequence[BodyShape], starts: Sequence[int], vertices: int):
        """Collect shapes.

        Args:
            solids: The shapes. starts: Number of the first body of each robot. vertices: Of all hulls, padded.
        """
        self.vertices, sizes = vertices, dict[type[Any], list[Array]]()
        rows = []
        for solid in solids:
            own = sizes.setdefault(kind_of(solid.shape)[0], [])
            rows.append(len(own))
            own.append(dimensions(solid.shape, vertices))
        turned = [
            solid.shape.rotation if isinstance(solid.shape, Box | Capsule | Cylinder | Ellipsoid) else np.eye(3)
            for solid in solids
        ]
        bodies = [WORLD if solid.side is None else starts[solid.side.robot] + solid.side.body for solid in solids]
        self.body, self.rows = np.array(bodies, dtype=int), np.array(rows, dtype=int)
        self.rotation = np.array(turned).reshape(-1, 3, 3)
        self.center = np.array([np.asarray(solid.shape.center, float) for solid in solids]).reshape(-1, 3)
        self.radius = np.array([bounding_radius(solid.shape) for solid in solids])
        self.sizes = {kind: np.array(own) for kind, own in sizes.items()}

    def placed(self, at: Poses) -> Poses:
        """Return the poses of all shapes: rotations from shape axes, (S, 3, 3), and centers, (S, 3), [m], in the world.

        Args:
            at: Poses of the bodies.
        """
        R = at.rotation[self.body]
        return Poses(R @ self.rotation, at.origin[self.body] + (R @ self.center[..., None])[..., 0])


class PairTable:
    """The pairs of one kind in a scene.

    Args:
        scene: The scene. shapes: Its shapes. classes: Of the shapes of the pairs.
        numbers: Numbers of the candidates of each pair, (n, count).
        first, second: Numbers of the shapes, (n,); for the terrain the second is not used.
    """

    def __init__(self, scene: Scene, shapes: _Shapes, classes: _Classes, numbers: Array, first: Array, second: Array):
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

    def near(self, centers: Array, allowance: Array, rows: Any = slice(None)) -> Array:
        """Return the numbers of those of the given pairs whose bounding spheres are near, (k,).

        Args:
            centers: Of all shapes, (S, 3), [m], world axes.
            allowance: A scalar length that each shape adds to the limit, (S,), [m].
            rows: Numbers of the pairs; all by default.
        """
        if self.second is None:
            return np.arange(len(self.first)) if isinstance(rows, slice) else rows
        one, other, radius = self.first[rows], self.second[rows], self._shapes.radius
        limit = (1.0 + MARGIN) * (radius[one] + radius[other]) + allowance[one] + allowance[other]
        found = np.flatnonzero(((centers[one] - centers[other]) ** 2).sum(axis=1) < limit * limit)
        return found if isinstance(rows, slice) else rows[found]

    def detect(self, rows: Array, placed: Poses) -> Detected:
        """Return the contact candidates of pairs.

        Args:
            rows: Numbers of the pairs, (k,), dimensionless. placed: Poses of all shapes.
        """
        numbers, body = self.numbers[rows], self._shapes.body
        k, n = numbers.size, self.numbers.shape[1]
        if not k:
            none = np.zeros(0, dtype=int)
            return Detected(none, none, none, np.zeros(0), np.zeros((0, 3, 3)), np.zeros((0, 3)))
        arguments, second = [], np.full(k, WORLD)
        for kind, own in zip(self._classes, (self.first, self.second), strict=False):
            assert own is not None
            at = own[rows]
            arguments += [self._shapes.sizes[kind][self._shapes.rows[at]], placed.rotation[at], placed.origin[at]]
        if self.second is not None:
            second = np.repeat(body[self.second[rows]], n)
        gap, frame, point = self._kernel(*arguments)
        first = np.repeat(body[self.first[rows]], n)
        return Detected(numbers.ravel(), first, second, gap.ravel(), frame.reshape(-1, 3, 3), point.reshape(-1, 3))


class _NearPairs(NamedTuple):
    """Pairs that may be near as long as no shape has moved and reaches farther than an allowance.

    Attributes:
        centers: Of all shapes, from which they move, (S, 3), [m], world axes. allowance: (S,), [m].
        rows: Numbers of the pairs of each table.
    """

    centers: Array
    allowance: Array
    rows: Sequence[Array]


class PairTables:
    """The pairs of a scene by kind.

    Attributes:
        starts: Number of the first body of each robot in `Poses`.
        tables: The pairs of each kind.
        extent: Largest distance of a point of the shapes of each body from its origin, (B,), [m]; zero for the world.
    """

    def __init__(self, scene: Scene):
        self.starts = np.cumsum([0, *(len(robot.bodies) for robot in scene.robots)]).tolist()
        solids, places = list[BodyShape](), dict[int, int]()
        found: dict[_Classes, list[tuple[range, int, int]]] = {}
        count = 0
        for pair in scene.pairs:
            own, numbers = _solids(pair), range(count, count + len(pair.names))
            for solid in own:
                if id(solid) not in places:
                    places[id(solid)] = len(solids)
                    solids.append(solid)  # which keeps it, and its id
            classes = kind_of(own[0].shape)[0], kind_of(own[1].shape)[0] if len(own) > 1 else None
            found.setdefault(classes, []).append((numbers, places[id(own[0])], places[id(own[-1])]))
            count = numbers.stop
        most = max((len(solid.shape.vertices) for solid in solids if isinstance(solid.shape, Hull)), default=0)
        self._shapes = _Shapes(solids, self.starts, _padded(most))
        self.tables = [
            PairTable(scene, self._shapes, classes, *(np.array(column) for column in zip(*rows, strict=True)))
            for classes, rows in found.items()
        ]
        self.extent = np.zeros(self.starts[-1] + 1)
        own = np.linalg.norm(self._shapes.center, axis=1) + self._shapes.radius
        np.maximum.at(self.extent, self._shapes.body, np.where(self._shapes.body == WORLD, 0.0, own))
        self._near: _NearPairs | None = None

    def detect(self, at: Poses, reach: Array | None = None, only: Array | None = None) -> Detected:
        """Return the contact candidates of near pairs in the order of `Scene.candidates`.

        Args:
            at: The poses. reach: Distance that each body may move in a step, (B,), [m]; None for a scene at rest.
            only: Numbers of candidates, (k,), dimensionless, of whose pairs alone the candidates are returned; None for
                all.
        """
        placed, allowance = self._shapes.placed(at), np.zeros(len(self._shapes.body))
        if reach is not None:
            allowance = reach[self._shapes.body]
        near = self._possibly_near(placed.origin, allowance)
        if only is not None:
            near = [
                rows[np.isin(table.numbers[rows], only).any(axis=1)]
                for table, rows in zip(self.tables, near, strict=True)
            ]
        parts = [
            table.detect(table.near(placed.origin, allowance, rows), placed)
            for table, rows in zip(self.tables, near, strict=True)
        ]
        whole = [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]
        order = np.argsort(whole[0])
        return Detected(*(array[order] for array in whole))

    def _possibly_near(self, centers: Array, allowance: Array) -> Sequence[Array]:
        """Return the numbers of pairs of each table that contain all near ones.

        They are found again only if a shape has moved so far that others may be near.
        """
        near = self._near
        if near is None or (np.linalg.norm(centers - near.centers, axis=1) + allowance > near.allowance).any():
            wider = np.maximum(SKIN * self._shapes.radius, 2.0 * allowance)
            near = _NearPairs(centers, wider, [table.near(centers, wider) for table in self.tables])
            self._near = near
        return near.rows


def _padded(vertices: int) -> int:
    """Return the number of vertices to which all hulls of a scene are padded, so that one kernel serves them all."""
    return next(size for size in (8, 16, MOST_VERTICES) if vertices <= size)


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
