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
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from legged.contact.box_box import box_box, bring_to_front, largest, sign_of
from legged.contact.capsules import capsule_box, capsule_capsule, sphere_capsule
from legged.contact.spheres import sphere_box, sphere_sphere
from legged.contact.support import support_count, support_points
from legged.dynamics.kinematics import Motion
from legged.errors import DefinitionError
from legged.ground.terrain import Terrain
from legged.robot.material import Material
from legged.robot.shapes import Box, Capsule, Cylinder, Ellipsoid, Shape, Sphere
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
            assert isinstance(self.shape, Box)
            return self.shape.rotation, np.asarray(self.shape.center)
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
        center = self.first.point(poses, self.center)
        x, y, z = center
        normal = terrain.normal(x, y)
        gap = (z - terrain.height(x, y)) * normal[2] - self.radius
        return [Contact(gap, frame_of(normal), center - self.radius * normal)]


@dataclass(frozen=True, eq=False)
class BoxTerrain:
    """The four corners of the face of a box that is lowest along the surface normal at its center, and the terrain."""

    box: BodyShape
    names: tuple[str, ...]
    second: Side | None = None

    @property
    def first(self) -> Side:
        assert self.box.side is not None
        return self.box.side

    @property
    def materials(self) -> Materials:
        return self.box.shape.material, None

    def detect(self, poses: Sequence[Motion], terrain: Terrain) -> list[Contact]:
        """Return the four contacts, one for each corner of the face."""
        R, center = self.box.pose(poses)
        along = R.T @ terrain.normal(center[0], center[1])
        down, _ = largest(np.abs(along))
        (h, *half), axes = bring_to_front(down, _half(self.box)), bring_to_front(down, R.T)
        middle = center - (sign_of(bring_to_front(down, along)[0]) * h) * axes[0]
        corners = [middle + s * half[0] * axes[1] + t * half[1] * axes[2] for s, t in _FACE_CORNERS]
        return [_point_on_terrain(corner, terrain) for corner in corners]


@dataclass(frozen=True, eq=False)
class SupportTerrain:
    """A cylinder, an ellipsoid or a hull, and the terrain: the lowest points along the normal at its center."""

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
        """Return a contact for each point of `support_points`."""
        R, center = self.solid.pose(poses)
        found = []
        for point, extra in support_points(self.solid.shape, R.T @ terrain.normal(center[0], center[1])):  # type: ignore[arg-type]
            contact = _point_on_terrain(center + R @ point, terrain)
            found.append(contact._replace(gap=contact.gap + extra))
        return found


def _point_on_terrain(at: Array, terrain: Terrain) -> Contact:
    x, y, z = at
    normal = terrain.normal(x, y)
    return Contact((z - terrain.height(x, y)) * normal[2], frame_of(normal), at)


@dataclass(frozen=True, eq=False)
class ShapePair:
    """Two shapes of different bodies, each a sphere, a capsule or a box, in this order, or a shape and an obstacle."""

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
        (Q, c), (R, o), one, other = self.one.pose(poses), self.other.pose(poses), self.one.shape, self.other.shape
        if isinstance(one, Capsule):
            own = one.radius, one.length / 2.0
            if isinstance(other, Capsule):
                spots = capsule_capsule(*own, Q[:, 2], other.radius, other.length / 2.0, R[:, 2], c - o)
                return [Contact(gap, _frame(n), o + point) for gap, n, point in spots]
            spots = capsule_box(*own, R.T @ Q[:, 2], _half(self.other), R.T @ (c - o))
            return [Contact(gap, _frame(R @ n), o + R @ point) for gap, n, point in spots]
        if isinstance(one, Box):
            contact = box_box(_half(self.other), _half(self.one), R.T @ Q, R.T @ (c - o))
            frame = _frame(R @ contact.n)
            return [Contact(gap, frame, o + R @ point) for gap, point in zip(contact.gaps, contact.points, strict=True)]
        assert isinstance(one, Sphere | Ball)
        radius = one.radius
        if isinstance(other, Capsule):
            gap, n, point = sphere_capsule(radius, other.radius, other.length / 2.0, R.T @ (c - o))
            return [Contact(gap, _frame(R @ n), o + R @ point)]
        if isinstance(other, Box):
            gap, n, point = sphere_box(radius, _half(self.other), R.T @ (c - o))
            return [Contact(gap, _frame(R @ n), o + R @ point)]
        assert isinstance(other, Sphere)
        gap, n, point = sphere_sphere(radius, other.radius, c - o)
        return [Contact(gap, _frame(n), o + point)]


Pair: TypeAlias = SphereTerrain | BoxTerrain | SupportTerrain | ShapePair
_TURNED = (Box, Capsule, Cylinder, Ellipsoid)  # shapes with a rotation
_RANKS: dict[type[Any], int] = {Sphere: 0, Capsule: 1, Box: 2}
_COUNTS = {(Capsule, Capsule): 3, (Capsule, Box): 3, (Box, Box): 4}


def ordered(one: BodyShape, other: BodyShape) -> tuple[BodyShape, BodyShape]:
    """Return two shapes in the order of `ShapePair`.

    Raises:
        DefinitionError: A shape that collides with the terrain only.
    """
    for shape in (one.shape, other.shape):
        if type(shape) not in _RANKS:
            raise DefinitionError(
                f"a {type(shape).__name__} collides with the terrain only; for contact with other bodies, represent it "
                f"by spheres, capsules or boxes"
            )
    return (other, one) if _RANKS[type(one.shape)] > _RANKS[type(other.shape)] else (one, other)


def candidate_count(one: Shape | Ball, other: Shape | Ball | None) -> int:
    """Return the number of contact candidates of a shape with another, in the order of `ShapePair`, or the terrain."""
    if other is not None:
        return _COUNTS.get((type(one), type(other)), 1)
    if isinstance(one, Sphere | Ball | Capsule):
        return 2 if isinstance(one, Capsule) else 1
    return 4 if isinstance(one, Box) else support_count(one)


def _half(solid: BodyShape) -> Array:
    assert isinstance(solid.shape, Box)
    return solid.shape.half


def _frame(normal: Array) -> Array:
    return frame_of(normal, sign_of(normal[2]))


def frame_of(normal: Array, sign: Any = 1.0) -> Array:
    """Return the rows n, t1, t2 of a right-handed contact frame, (3, 3), for a unit normal, (3,).

    Args:
        normal: n, (3,), unit vector, world axes. For n = z the tangents are x and y.
        sign: Sign of n_z, which avoids singularities; normals of a terrain point upwards.

    Source: Duff et al., "Building an orthonormal basis, revisited", Journal of Computer Graphics Techniques 6(1), 2017.
    """
    x, y, z = normal
    a = -1.0 / (sign + z)
    b = x * y * a
    t1 = np.array([1.0 + sign * x * x * a, sign * b, -sign * x])
    return np.array([normal, t1, np.array([b, sign + y * y * a, -y])])
