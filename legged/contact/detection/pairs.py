"""Collision pairs of shapes and terrain, each with a fixed number of contact candidates, over any element.

A pair has `first`, `second` (a `Side`, or None for the terrain), `materials` of both, `names`, and

    detect(poses, terrain) -> for each name a `Contact` (gap [m], frame (3, 3), point (3,) [m] world)

where `poses` are the `Motion`s of the robots of the scene. Frames have the rows n, t1, t2 with n from the second side
to the first. A point lies on the surface of the first side or half way between the two. Everything works without
branches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, TypeGuard

import numpy as np

from legged.contact.detection.box_box import box_box, bring_to_front, largest, sign_of
from legged.contact.detection.convex import Solid, hull_size, support_count, support_points
from legged.contact.detection.frames import contact_frame, terrain_frame
from legged.contact.detection.patches import contact_count, convex_contacts
from legged.contact.detection.round_shapes import (
    capsule_box,
    capsule_capsule,
    sphere_box,
    sphere_capsule,
    sphere_sphere,
)
from legged.dynamics.kinematics import Motion
from legged.ground.terrain import Terrain
from legged.robot.shapes import DIAGONALS, Box, Capsule, Cylinder, Ellipsoid, Hull, Material, Shape, Sphere
from legged.spatial import Array

_FACE_CORNERS = ((1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0), (1.0, -1.0))


Materials = tuple[Material | None, Material | None]
"""Materials of both sides of a pair; None for that of the ground."""


class Side(NamedTuple):
    """One side of a contact: numbers of the robot in the scene, of its link, and of the body that carries the link."""

    robot: int
    link: int
    body: int

    def point(self, poses: Sequence[Motion], r: Array) -> Array:
        """Return a point of the body in the world, (3,), [m].

        Args:
            poses: Poses of the bodies of each robot. r: The point, (3,), [m], body axes.
        """
        at = poses[self.robot]
        return at.origin[self.body] + at.rotation[self.body] @ r


class Contact(NamedTuple):
    """Gap, [m], frame, (3, 3), and point, (3,), [m], world axes, of a contact candidate; see the module."""

    gap: Any
    frame: Array
    point: Array


class Ball(NamedTuple):
    """A contact point of a robot: center (3,), [m], body axes, radius, [m], which may be zero, and material."""

    center: Array
    radius: float
    material: Material | None = None


@dataclass(frozen=True, eq=False)
class BodyShape:
    """A collision shape of a body, in body axes, or of an obstacle, in world axes, whose side is None."""

    side: Side | None
    shape: Shape | Ball

    def pose(self, poses: Sequence[Motion]) -> tuple[Array, Array]:
        """Return (rotation from shape axes to world axes (3, 3), center (3,) [m] in the world)."""
        if self.side is None:
            R = self.shape.rotation if isinstance(self.shape, _TURNED) else np.eye(3)
            return R, np.asarray(self.shape.center, float)
        R = poses[self.side.robot].rotation[self.side.body]
        own = R @ self.shape.rotation if isinstance(self.shape, _TURNED) else R
        return own, self.side.point(poses, np.asarray(self.shape.center))


@dataclass(frozen=True, eq=False)
class SphereTerrain:
    """A sphere, or a point if its radius is zero, and the terrain.

    Attributes:
        first: Its side.
        center: (3,), [m], body axes. radius: [m].
        names: Its one name.
        material: Of the sphere; None for that of the ground.
    """

    first: Side
    center: Array
    radius: float
    names: tuple[str, ...]
    material: Material | None = None
    second: Side | None = None

    @property
    def materials(self) -> Materials:
        return self.material, None

    def detect(self, poses: Sequence[Motion], terrain: Terrain) -> list[Contact]:
        """Return the contact; the gap is along the surface normal above or below the center."""
        return [sphere_on_terrain(self.radius, self.first.point(poses, self.center), terrain)]


@dataclass(frozen=True, eq=False)
class SolidTerrain:
    """A box, a cylinder, an ellipsoid or a hull, and the terrain: points that are lowest along the surface normal.

    They are the four corners of the lowest face of a box, and the points of `support_points` of another shape, for the
    surface normal above or below the center.
    """

    solid: BodyShape
    names: tuple[str, ...]
    second: Side | None = None

    @property
    def first(self) -> Side:
        assert self.solid.side is not None
        return self.solid.side

    @property
    def materials(self) -> Materials:
        return self.solid.shape.material, None

    def detect(self, poses: Sequence[Motion], terrain: Terrain) -> list[Contact]:
        """Return a contact for each of the points."""
        shape, pose = self.solid.shape, self.solid.pose(poses)
        if isinstance(shape, Box):
            return box_on_terrain(dimensions(shape), *pose, terrain)
        return support_on_terrain(kind_of(shape), dimensions(shape), *pose, terrain)


@dataclass(frozen=True, eq=False)
class ShapePair:
    """Two shapes of different bodies in the order of `ordered`, or a shape and an obstacle."""

    one: BodyShape
    other: BodyShape
    names: tuple[str, ...]

    @property
    def first(self) -> Side:
        assert self.one.side is not None
        return self.one.side

    @property
    def second(self) -> Side | None:
        return self.other.side

    @property
    def materials(self) -> Materials:
        return self.one.shape.material, self.other.shape.material

    def detect(self, poses: Sequence[Motion], terrain: Terrain) -> list[Contact]:
        """Return the contacts; see `candidate_count`."""
        one, other = self.one, self.other
        first, second = (kind_of(one.shape), dimensions(one.shape)), (kind_of(other.shape), dimensions(other.shape))
        return shape_contacts(*first, *one.pose(poses), *second, *other.pose(poses))


Pair: TypeAlias = SphereTerrain | SolidTerrain | ShapePair
_TURNED = (Box, Capsule, Cylinder, Ellipsoid)  # shapes with a rotation
_RANKS: dict[type[Any], int] = {Sphere: 0, Capsule: 1, Box: 2, Cylinder: 3, Ellipsoid: 4, Hull: 5}
_COUNTS = {(Capsule, Capsule): 3, (Capsule, Box): 3, (Box, Box): 4}
_CONVEX = {Cylinder, Ellipsoid, Hull}

Kind: TypeAlias = tuple[type[Any], int]
"""Class of a shape and the number of its vertices, which is zero for shapes other than hulls."""


def ordered(one: BodyShape, other: BodyShape) -> tuple[BodyShape, BodyShape]:
    """Return two shapes in the order sphere, capsule, box, cylinder, ellipsoid, hull; an obstacle is the second."""
    swapped = other.side is not None and _RANKS[type(one.shape)] > _RANKS[type(other.shape)]
    return (other, one) if swapped else (one, other)


def candidate_count(one: Shape | Ball, other: Shape | Ball | None) -> int:
    """Return the number of contact candidates of a shape with another one, or with the terrain."""
    if other is not None:
        first, second = sorted((_class_of(one), _class_of(other)), key=lambda kind: _RANKS[kind])
        return contact_count(first, second) if _CONVEX & {first, second} else _COUNTS.get((first, second), 1)
    if isinstance(one, Sphere | Ball | Capsule):
        return 2 if isinstance(one, Capsule) else 1
    return 4 if isinstance(one, Box) else support_count(one)


def kind_of(shape: Shape | Ball) -> Kind:
    """Return the kind of a shape for `shape_contacts`; contact points are spheres."""
    return (Hull, len(shape.vertices)) if isinstance(shape, Hull) else (_class_of(shape), 0)


def _class_of(shape: Shape | Ball) -> type[Any]:
    return Sphere if isinstance(shape, Ball) else type(shape)


def dimensions(shape: Shape | Ball, vertices: int | None = None) -> Array:
    """Return the numbers that define a shape without its place, (d,), [m].

    They are the radius of a sphere; the radius and half the length of a capsule or a cylinder; the half edges of a box;
    the half axes of an ellipsoid; those of a hull, see `legged.contact.detection.convex.hull_size`.

    Args:
        shape: The shape. vertices: Of a padded hull, see `legged.contact.detection.convex.hull_size`.
    """
    if isinstance(shape, Box):
        return shape.half
    if isinstance(shape, Ellipsoid):
        return np.asarray(shape.radii)
    if isinstance(shape, Hull):
        return hull_size(shape, vertices)
    return np.array([shape.radius, shape.length / 2.0] if isinstance(shape, Capsule | Cylinder) else [shape.radius])


def bounding_radius(shape: Shape | Ball) -> float:
    """Return the radius of a sphere about the center of a shape that contains the shape, [m]."""
    if isinstance(shape, Hull):
        return shape.radius
    size = dimensions(shape)
    if isinstance(shape, Ellipsoid):
        return float(size.max())
    return float(np.linalg.norm(size) if isinstance(shape, Box | Cylinder) else size.sum())


_APART = 1e-6
"""Distance of two shapes, [m], from which the sign of their gap does not depend on rounding."""


def are_apart(pair: Pair, poses: Sequence[Motion]) -> bool:
    """Return whether two shapes are known to be apart without their contacts, which cost a hundred times as much.

    A plane separates them: across the line of their centers, or along a face of a box or a hull. Other shapes count as
    their bounding spheres.

    Args:
        pair: The pair. poses: Poses of the bodies of each robot, of numbers.
    """
    if not isinstance(pair, ShapePair):
        return False
    shapes = [(body.shape, *body.pose(poses)) for body in (pair.one, pair.other)]
    line = shapes[0][2] - shapes[1][2]
    distance = np.linalg.norm(line)
    if distance > sum(bounding_radius(shape) for shape, *_ in shapes) + _APART:
        return True
    normals = [
        R @ (np.eye(3) if isinstance(shape, Box) else shape.faces[0].T) for shape, R, _ in shapes if _is_flat(shape)
    ]
    axes = np.column_stack([line / max(distance, _APART), *normals])
    (low, high), (other_low, other_high) = (_extent(*placed, axes) for placed in shapes)
    return bool(np.maximum(low - other_high, other_low - high).max() > _APART)


def _is_flat(shape: Shape | Ball) -> TypeGuard[Box | Hull]:
    return isinstance(shape, Box | Hull)


def _extent(shape: Shape | Ball, R: Array, center: Array, axes: Array) -> tuple[Array, Array]:
    """Return the least and the largest coordinate of a shape along axes, (3, k), or of its bounding sphere, (k,)."""
    if not _is_flat(shape):
        middle, radius = center @ axes, bounding_radius(shape)
        return middle - radius, middle + radius
    corners = DIAGONALS * shape.half if isinstance(shape, Box) else shape.vertices - shape.center
    along = (center + corners @ R.T) @ axes
    return along.min(axis=0), along.max(axis=0)


def sphere_on_terrain(radius: Any, center: Array, terrain: Terrain) -> Contact:
    """Return the contact of a sphere and a terrain; the gap is along the surface normal above or below the center.

    Args:
        radius: [m]. center: (3,), [m], world axes. terrain: The terrain.
    """
    x, y, z = center
    normal = terrain.normal(x, y)
    gap = (z - terrain.height(x, y)) * normal[2] - radius
    return Contact(gap, terrain_frame(normal), center - radius * normal)


def box_on_terrain(half: Array, R: Array, center: Array, terrain: Terrain) -> list[Contact]:
    """Return the four contacts of a box and a terrain, one for each corner of its lowest face.

    Args:
        half: Half edges, (3,), [m]. R: Box axes to world axes, (3, 3). center: (3,), [m], world axes.
        terrain: The terrain.
    """
    along = R.T @ terrain.normal(center[0], center[1])
    down, _ = largest(np.abs(along))
    (h, a, b), axes = bring_to_front(down, half), bring_to_front(down, R.T)
    middle = center - (sign_of(bring_to_front(down, along)[0]) * h) * axes[0]
    corners = [middle + s * a * axes[1] + t * b * axes[2] for s, t in _FACE_CORNERS]
    return [_point_on_terrain(corner, terrain) for corner in corners]


def support_on_terrain(kind: Kind, size: Any, R: Array, center: Array, terrain: Terrain) -> list[Contact]:
    """Return the contacts of a cylinder, an ellipsoid or a hull and a terrain, one for each of its `support_points`.

    Args:
        kind: Of the shape. size: Its `dimensions`, [m]. R: A rotation matrix, (3, 3), shape axes to world axes.
        center: (3,), [m], world axes. terrain: The terrain.
    """
    contacts = []
    for point, extra in support_points(Solid(*kind, np.asarray(size)), R.T @ terrain.normal(center[0], center[1])):
        contact = _point_on_terrain(center + R @ point, terrain)
        contacts.append(contact._replace(gap=contact.gap + extra))
    return contacts


def _point_on_terrain(at: Array, terrain: Terrain) -> Contact:
    x, y, z = at
    normal = terrain.normal(x, y)
    return Contact((z - terrain.height(x, y)) * normal[2], terrain_frame(normal), at)


def shape_contacts(
    kind: Kind, a: Any, Q: Array, c: Array, other_kind: Kind, b: Any, R: Array, o: Array
) -> list[Contact]:
    """Return the contacts of two shapes in any order; see `candidate_count`.

    Args:
        kind, other_kind: Of the shapes. a, b: Their `dimensions`, [m].
        Q, R: Shape axes to world axes, (3, 3). c, o: Centers, (3,), [m], world axes.
    """
    one, other = kind[0], other_kind[0]
    if not _CONVEX.isdisjoint((one, other)):
        first, second = Solid(*kind, np.asarray(a)), Solid(*other_kind, np.asarray(b))
        n, spots = convex_contacts(first, second, R.T @ Q, R.T @ (c - o), contact_count(one, other))
        frame = contact_frame(R @ n)
        return [Contact(gap, frame, o + R @ point) for gap, point in spots]
    if _RANKS[one] > _RANKS[other]:
        contacts = shape_contacts(other_kind, b, R, o, kind, a, Q, c)
        return [contact._replace(frame=contact_frame(-contact.frame[0])) for contact in contacts]
    if one is Capsule and other is Capsule:
        spots = capsule_capsule(a[0], a[1], Q[:, 2], b[0], b[1], R[:, 2], c - o)
        return [Contact(gap, contact_frame(n), o + point) for gap, n, point in spots]
    if one is Capsule:
        spots = capsule_box(a[0], a[1], R.T @ Q[:, 2], b, R.T @ (c - o))
        return [Contact(gap, contact_frame(R @ n), o + R @ point) for gap, n, point in spots]
    if one is Box:
        contact = box_box(b, a, R.T @ Q, R.T @ (c - o))
        frame = contact_frame(R @ contact.n)
        return [Contact(gap, frame, o + R @ point) for gap, point in zip(contact.gaps, contact.points, strict=True)]
    if other is Sphere:
        gap, n, point = sphere_sphere(a[0], b[0], c - o)
        return [Contact(gap, contact_frame(n), o + point)]
    if other is Capsule:
        gap, n, point = sphere_capsule(a[0], b[0], b[1], R.T @ (c - o))
    else:
        gap, n, point = sphere_box(a[0], b, R.T @ (c - o))
    return [Contact(gap, contact_frame(R @ n), o + R @ point)]
