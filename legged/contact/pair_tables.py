"""Contacts of scenes with many pairs: one kernel for each kind of pair, and tables of its pairs.

The pairs of one kind, such as box and box, differ by their bodies and by numbers: dimensions and places of the shapes.
A kernel computes the contacts of all pairs of a kind that are near each other, in the lanes of vectors. Pairs whose
bounding spheres are apart are left out. The code of a scene depends on the kinds of pairs, not on their number.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from legged.compiler.runtime.batch_kernel import BatchKernel
from legged.contact.pairs import (
    Ball,
    BodyShape,
    BoxTerrain,
    Contact,
    Pair,
    ShapePair,
    SphereTerrain,
    SupportTerrain,
    box_on_terrain,
    dimensions,
    kind_of,
    shape_contacts,
    sphere_on_terrain,
    support_on_terrain,
)
from legged.contact.scene import Scene
from legged.ground.terrain import Terrain
from legged.robot.shapes import Box, Capsule, Cylinder, Ellipsoid, Hull
from legged.spatial import Array

MARGIN = 0.25
"""Distance of bounding spheres up to which a pair is near, relative to the sum of their radii."""
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


class _Shapes(NamedTuple):
    """Shapes of n pairs on one side: bodies (n,), rotations (n, 3, 3) and centers (n, 3) in the axes of the bodies,
    dimensions (n, d), and radii of bounding spheres (n,)."""

    body: Array
    rotation: Array
    center: Array
    size: Array
    radius: Array

    def poses(self, at: Poses, rows: Any) -> tuple[Array, Array]:
        """Return rotations and centers of some shapes in the world."""
        R, body = at.rotation[self.body[rows]], self.body[rows]
        return R @ self.rotation[rows], at.origin[body] + (R @ self.center[rows, :, None])[..., 0]


class PairTable:
    """The pairs of one kind in a scene.

    Args:
        scene: The scene. pairs: The pairs with the number of the first candidate of each. starts: Number of the first
            body of each robot.
    """

    def __init__(self, scene: Scene, pairs: list[tuple[int, Pair]], starts: list[int]):
        one, kind = pairs[0][1], _kind(pairs[0][1])
        self.count = len(one.names)
        self.numbers = np.array([number for number, _ in pairs])[:, None] + np.arange(self.count)
        self.first = _shapes([_first(pair) for _, pair in pairs], starts)
        others = [pair.other for _, pair in pairs if isinstance(pair, ShapePair)]
        self.second = _shapes(others, starts) if others else None
        self._detect = _detector(kind, one, scene.ground.terrain)
        self._size = self.first.size.shape[1], self.second.size.shape[1] if self.second else 0

    @cached_property
    def _kernel(self) -> BatchKernel:
        pose = {"R": (3, 3), "c": (3,)}
        shapes = {"a": (self._size[0],), **pose}
        if self.second is not None:
            shapes |= {"b": (self._size[1],), "Q": (3, 3), "o": (3,)}
        return BatchKernel(self._detect, shapes)

    def detect(self, at: Poses, reach: Array | None) -> Detected:
        """Return the contact candidates of near pairs.

        Args:
            at: The poses. reach: Distance that each body may move in a step, (B,), [m]; None for a scene at rest.
        """
        rows: Any = slice(None)
        if self.second is not None:
            one, other = self.first, self.second
            centers = [s.poses(at, rows)[1] for s in (one, other)]
            radii = one.radius + other.radius
            limit = (1.0 + MARGIN) * radii + (0.0 if reach is None else reach[one.body] + reach[other.body])
            rows = np.flatnonzero(((centers[0] - centers[1]) ** 2).sum(axis=1) < limit * limit)
        numbers = self.numbers[rows]
        k, n = numbers.size, self.count
        if not k:
            none = np.zeros(0, dtype=int)
            return Detected(none, none, none, np.zeros(0), np.zeros((0, 3, 3)), np.zeros((0, 3)))
        arguments = [self.first.size[rows], *self.first.poses(at, rows)]
        second = np.full(k, WORLD)
        if self.second is not None:
            arguments += [self.second.size[rows], *self.second.poses(at, rows)]
            second = np.repeat(self.second.body[rows], n)
        gap, frame, point = self._kernel(*arguments)
        first = np.repeat(self.first.body[rows], n)
        return Detected(numbers.ravel(), first, second, gap.ravel(), frame.reshape(-1, 3, 3), point.reshape(-1, 3))


class PairTables:
    """The pairs of a scene by kind.

    Attributes:
        starts: Number of the first body of each robot in `Poses`.
        tables: The pairs of each kind.
        extent: Largest distance of a point of the shapes of each body from its origin, (B,), [m]; zero for the world.
    """

    def __init__(self, scene: Scene):
        self.starts = np.cumsum([0, *(len(robot.bodies) for robot in scene.robots)]).tolist()
        found: dict[Any, list[tuple[int, Pair]]] = {}
        number = 0
        for pair in scene.pairs:
            found.setdefault(_kind(pair), []).append((number, pair))
            number += len(pair.names)
        self.tables = [PairTable(scene, pairs, self.starts) for pairs in found.values()]
        self.extent = np.zeros(self.starts[-1] + 1)
        for shapes in (shapes for table in self.tables for shapes in (table.first, table.second) if shapes is not None):
            own = np.linalg.norm(shapes.center, axis=1) + shapes.radius
            np.maximum.at(self.extent, shapes.body, np.where(shapes.body == WORLD, 0.0, own))

    def detect(self, at: Poses, reach: Array | None = None) -> Detected:
        """Return the contact candidates of near pairs in the order of `Scene.candidates`; see `PairTable.detect`."""
        parts = [table.detect(at, reach) for table in self.tables]
        whole = [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]
        order = np.argsort(whole[0])
        return Detected(*(array[order] for array in whole))


def _kind(pair: Pair) -> Any:
    """Return the kind of a pair, equal for all pairs whose contacts the same kernel detects."""
    if isinstance(pair, ShapePair):
        return kind_of(pair.one.shape), kind_of(pair.other.shape)
    return (SupportTerrain, id(pair.solid.shape)) if isinstance(pair, SupportTerrain) else type(pair)


def _first(pair: Pair) -> BodyShape:
    if isinstance(pair, SphereTerrain):
        return BodyShape(pair.first, Ball(pair.center, pair.radius))
    return pair.one if isinstance(pair, ShapePair) else pair.box if isinstance(pair, BoxTerrain) else pair.solid


def _detector(kind: Any, pair: Pair, terrain: Terrain) -> Callable[..., Contact]:
    """Return the function of dimensions and poses that returns the contacts of a kind of pairs, stacked."""
    if isinstance(pair, ShapePair):
        one, other = kind
        return lambda a, R, c, b, Q, o: _stacked(shape_contacts(one, a, R, c, other, b, Q, o))
    if isinstance(pair, SphereTerrain):
        return lambda a, R, c: _stacked([sphere_on_terrain(a[0], c, terrain)])
    if isinstance(pair, BoxTerrain):
        return lambda a, R, c: _stacked(box_on_terrain(a, R, c, terrain))
    return lambda a, R, c: _stacked(support_on_terrain(pair.solid.shape, R, c, terrain))


def _stacked(contacts: list[Contact]) -> Contact:
    gaps = np.stack([contact.gap for contact in contacts])
    return Contact(gaps, np.array([c.frame for c in contacts]), np.array([c.point for c in contacts]))


def _shapes(solids: list[BodyShape], starts: list[int]) -> _Shapes:
    turned = [
        solid.shape.rotation if isinstance(solid.shape, Box | Capsule | Cylinder | Ellipsoid) else np.eye(3)
        for solid in solids
    ]
    bodies = [WORLD if solid.side is None else starts[solid.side.robot] + solid.side.body for solid in solids]
    sizes = [dimensions(solid.shape) for solid in solids]
    centers = [np.asarray(solid.shape.center, float) for solid in solids]
    radii = [_bounding_radius(solid.shape) for solid in solids]
    return _Shapes(*map(np.array, (bodies, turned, centers, sizes, radii)))


def _bounding_radius(shape: Any) -> float:
    """Return the radius of a sphere about the center of a shape that contains the shape, [m]."""
    if isinstance(shape, Hull):
        return float(np.linalg.norm(shape.vertices - shape.center, axis=1).max())
    size = dimensions(shape)
    if isinstance(shape, Ellipsoid):
        return float(size.max())
    return float(np.linalg.norm(size) if isinstance(shape, Box | Cylinder) else size.sum())
