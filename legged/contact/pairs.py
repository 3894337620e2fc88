"""What touches what: pairs of shapes, each with a fixed number of contact candidates, over any element.

A pair has `first`, `second` (a `Side`, or None for the terrain), `names`, and

    touch(poses, terrain) -> for each name a touch (gap [m], frame (3, 3), point (3,) [m] world)

where `poses` are the `Motion`s of the scene's robots. Frames have the rows n, t1, t2 with n from the second side to the
first; a point lies on the first side's surface or between the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from legged.contact.box_box import box_box, largest, turned
from legged.contact.frames import frame_of, sign_of
from legged.contact.touch import sphere_box, sphere_sphere
from legged.dynamics.kinematics import Motion
from legged.ground.terrain import Terrain
from legged.robot.link import Box, Shape
from legged.spatial import Array

_AROUND = ((1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0), (1.0, -1.0))  # corners of a face in turn


class Side(NamedTuple):
    """Who takes part in a contact: number of the robot in the scene, of its link and of the body that carries it."""

    robot: int
    link: int
    body: int

    def point(self, poses: Sequence[Motion], r: Array) -> Array:
        """Return a point r of the body, (3,), body axes, in the world."""
        at = poses[self.robot]
        return at.origin[self.body] + at.rotation[self.body] @ r


class Touch(NamedTuple):
    """One candidate at one moment: see the module."""

    gap: Any
    frame: Array
    point: Array


@dataclass(frozen=True, eq=False)
class Solid:
    """A shape of a body: whose, and the shape in body axes."""

    side: Side
    shape: Shape

    def place(self, poses: Sequence[Motion]) -> tuple[Array, Array]:
        """Return (shape's axes to world axes (3, 3), its center in the world (3,))."""
        R = poses[self.side.robot].rotation[self.side.body]
        own = R @ self.shape.rotation if isinstance(self.shape, Box) else R
        return own, self.side.point(poses, np.asarray(self.shape.center))


@dataclass(frozen=True, eq=False)
class BallOnTerrain:
    """A ball, or a point if its radius is zero, over the terrain.

    Attributes:
        first: Its body's side.
        center: (3,), [m], body axes. radius: [m].
        names: What it is called, one name.
    """

    first: Side
    center: Array
    radius: float
    names: tuple[str, ...]
    second: Side | None = None

    def touch(self, poses: Sequence[Motion], terrain: Terrain) -> list[Touch]:
        """Return the touch; its gap is along the normal of the surface above or below the center."""
        center = self.first.point(poses, self.center)
        x, y, z = center
        normal = terrain.normal(x, y)
        gap = (z - terrain.height(x, y)) * normal[2] - self.radius
        return [Touch(gap, frame_of(normal), center - self.radius * normal)]


@dataclass(frozen=True, eq=False)
class BoxOnTerrain:
    """The four corners of a box's lowest face over the terrain; lowest by the surface's normal at its center."""

    box: Solid
    names: tuple[str, ...]
    second: Side | None = None

    @property
    def first(self) -> Side:
        return self.box.side

    def touch(self, poses: Sequence[Motion], terrain: Terrain) -> list[Touch]:
        """Return the four touches, the face's corners in turn."""
        R, center = self.box.place(poses)
        along = R.T @ terrain.normal(center[0], center[1])
        down, _ = largest(np.abs(along))
        (h, *half), axes = turned(down, _half(self.box)), turned(down, R.T)
        middle = center - (sign_of(turned(down, along)[0]) * h) * axes[0]
        corners = [middle + s * half[0] * axes[1] + t * half[1] * axes[2] for s, t in _AROUND]
        return [self._corner(corner, terrain) for corner in corners]

    def _corner(self, at: Array, terrain: Terrain) -> Touch:
        x, y, z = at
        normal = terrain.normal(x, y)
        return Touch((z - terrain.height(x, y)) * normal[2], frame_of(normal), at)


@dataclass(frozen=True, eq=False)
class SolidOnSolid:
    """Two shapes of different bodies; a sphere comes before a box."""

    one: Solid
    other: Solid
    names: tuple[str, ...]

    @property
    def first(self) -> Side:
        return self.one.side

    @property
    def second(self) -> Side:
        return self.other.side

    def touch(self, poses: Sequence[Motion], terrain: Terrain) -> list[Touch]:
        """Return the touches: four of two boxes, else one."""
        (Q, c), (R, o) = self.one.place(poses), self.other.place(poses)
        if isinstance(self.one.shape, Box):
            spots = box_box(_half(self.other), _half(self.one), R.T @ Q, R.T @ (c - o))
            frame = _framed(R @ spots.n)
            return [Touch(gap, frame, o + R @ point) for gap, point in zip(spots.gaps, spots.points, strict=True)]
        radius = self.one.shape.radius
        if isinstance(self.other.shape, Box):
            gap, n, point = sphere_box(radius, _half(self.other), R.T @ (c - o))
            return [Touch(gap, _framed(R @ n), o + R @ point)]
        gap, n, point = sphere_sphere(radius, self.other.shape.radius, c - o)
        return [Touch(gap, _framed(n), o + point)]


Pair: TypeAlias = BallOnTerrain | BoxOnTerrain | SolidOnSolid


def spots_of(one: Shape, other: Shape | None) -> int:
    """Return how many candidates a shape makes with another, or with the terrain."""
    boxes = isinstance(one, Box) and (other is None or isinstance(other, Box))
    return 4 if boxes else 1


def _half(solid: Solid) -> Array:
    assert isinstance(solid.shape, Box)
    return solid.shape.half


def _framed(normal: Array) -> Array:
    return frame_of(normal, sign_of(normal[2]))
