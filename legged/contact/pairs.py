"""Collision pairs of shapes and terrain, each with a fixed number of contact candidates, over any element.

A pair has `first`, `second` (a `Side`, or None for the terrain), `names`, and

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

from legged.compiler.ir import where
from legged.contact.box_box import box_box, bring_to_front, largest, sign_of
from legged.dynamics.kinematics import Motion
from legged.ground.terrain import Terrain
from legged.robot.link import Box, Shape
from legged.spatial import Array

_FACE_CORNERS = ((1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0), (1.0, -1.0))
_TINY = 1e-12  # [m], centers closer than this define no direction
_UP = np.array([0.0, 0.0, 1.0])


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


@dataclass(frozen=True, eq=False)
class BodyShape:
    """A collision shape of a body, in body axes."""

    side: Side
    shape: Shape

    def pose(self, poses: Sequence[Motion]) -> tuple[Array, Array]:
        """Return (rotation from shape axes to world axes (3, 3), center (3,) [m] in the world)."""
        R = poses[self.side.robot].rotation[self.side.body]
        own = R @ self.shape.rotation if isinstance(self.shape, Box) else R
        return own, self.side.point(poses, np.asarray(self.shape.center))


@dataclass(frozen=True, eq=False)
class SphereTerrain:
    """A sphere, or a point if its radius is zero, and the terrain.

    Attributes:
        first: Its side.
        center: (3,), [m], body axes. radius: [m].
        names: Its one name.
    """

    first: Side
    center: Array
    radius: float
    names: tuple[str, ...]
    second: Side | None = None

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
        return self.box.side

    def detect(self, poses: Sequence[Motion], terrain: Terrain) -> list[Contact]:
        """Return the four contacts, one for each corner of the face."""
        R, center = self.box.pose(poses)
        along = R.T @ terrain.normal(center[0], center[1])
        down, _ = largest(np.abs(along))
        (h, *half), axes = bring_to_front(down, _half(self.box)), bring_to_front(down, R.T)
        middle = center - (sign_of(bring_to_front(down, along)[0]) * h) * axes[0]
        corners = [middle + s * half[0] * axes[1] + t * half[1] * axes[2] for s, t in _FACE_CORNERS]
        return [self._corner(corner, terrain) for corner in corners]

    def _corner(self, at: Array, terrain: Terrain) -> Contact:
        x, y, z = at
        normal = terrain.normal(x, y)
        return Contact((z - terrain.height(x, y)) * normal[2], frame_of(normal), at)


@dataclass(frozen=True, eq=False)
class ShapePair:
    """Two shapes of different bodies; a sphere comes before a box."""

    one: BodyShape
    other: BodyShape
    names: tuple[str, ...]

    @property
    def first(self) -> Side:
        return self.one.side

    @property
    def second(self) -> Side:
        return self.other.side

    def detect(self, poses: Sequence[Motion], terrain: Terrain) -> list[Contact]:
        """Return the contacts: four for two boxes, otherwise one."""
        (Q, c), (R, o) = self.one.pose(poses), self.other.pose(poses)
        if isinstance(self.one.shape, Box):
            contact = box_box(_half(self.other), _half(self.one), R.T @ Q, R.T @ (c - o))
            frame = _frame(R @ contact.n)
            return [Contact(gap, frame, o + R @ point) for gap, point in zip(contact.gaps, contact.points, strict=True)]
        radius = self.one.shape.radius
        if isinstance(self.other.shape, Box):
            gap, n, point = sphere_box(radius, _half(self.other), R.T @ (c - o))
            return [Contact(gap, _frame(R @ n), o + R @ point)]
        gap, n, point = sphere_sphere(radius, self.other.shape.radius, c - o)
        return [Contact(gap, _frame(n), o + point)]


Pair: TypeAlias = SphereTerrain | BoxTerrain | ShapePair


def candidate_count(one: Shape, other: Shape | None) -> int:
    """Return the number of contact candidates of a shape with another, or with the terrain."""
    boxes = isinstance(one, Box) and (other is None or isinstance(other, Box))
    return 4 if boxes else 1


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


def sphere_sphere(radius: float, other: float, d: Array) -> tuple[Any, Array, Array]:
    """Return (gap, normal from the second sphere to the first (3,), point half way (3,) from the second center).

    Args:
        radius, other: Radii of the first and second sphere, [m].
        d: Second center to first center, (3,), [m], in any frame, in which the results are too.
    """
    distance, n = _direction(d, _UP)
    gap = distance - radius - other
    return gap, n, (other + 0.5 * gap) * n


def sphere_box(radius: float, half: Array, d: Array) -> tuple[Any, Array, Array]:
    """Return (gap, normal from the box to the sphere (3,), point half way (3,)), in box axes from the box center.

    For a center inside the box the normal is that of the nearest face.

    Args:
        radius: Of the sphere, [m]. half: Half edges of the box, (3,), [m], box axes.
        d: Box center to sphere center, (3,), [m], box axes.
    """
    depth = np.array([np.abs(x) - h for x, h in zip(d, half, strict=True)])
    nearest = np.maximum(np.maximum(depth[0], depth[1]), depth[2])
    first = depth[0] >= nearest
    x, y = where(first, 1.0, 0.0), where(first, 0.0, where(depth[1] >= nearest, 1.0, 0.0))
    face = [x, y, 1.0 - x - y]
    face_normal = np.array([sign_of(x) * selected for x, selected in zip(d, face, strict=True)])
    near = np.array([np.minimum(np.maximum(x, -h), h) for x, h in zip(d, half, strict=True)])
    outside, n = _direction(d - near, face_normal)
    gap = where(nearest < 0.0, nearest, outside) - radius
    return gap, n, d - (radius + 0.5 * gap) * n


def _direction(d: Array, otherwise: Array) -> tuple[Any, Array]:
    """Return (length, unit vector) of d, (3,); the unit vector is `otherwise` for a zero length."""
    square = d @ d
    short = square < _TINY**2
    length = np.sqrt(where(short, 1.0, square))
    return where(short, 0.0, length), where(short, otherwise, d / length)
