"""What touches what: pairs of shapes, each with a fixed number of contact candidates, over any element.

A pair has `first`, `second` (a `Side`, or None for the terrain), `count`, and

    touch(poses, terrain) -> count touches (gap [m], frame (3, 3), point (3,) [m] world)

where `poses` are the `Motion`s of the scene's robots. Frames have the rows n, t1, t2 with n from the second side to the
first; a point lies on the first side's surface or between the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from legged.contact.frames import frame_of
from legged.dynamics.kinematics import Motion
from legged.ground.terrain import Terrain
from legged.spatial import Array


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
class PointsOnTerrain:
    """Points of a body that may touch the terrain, each perhaps the centre of a ball.

    Attributes:
        first: The body's side.
        points: (n, 3), [m], body axes.
        radius: Of the balls around them, [m].
        names: Of the points.
    """

    first: Side
    points: Array
    radius: float
    names: tuple[str, ...]
    second: Side | None = None

    def touch(self, poses: Sequence[Motion], terrain: Terrain) -> list[Touch]:
        """Return the touches; gaps are along the normal of the surface above or below each centre."""
        return [self._one(self.first.point(poses, r), terrain) for r in self.points]

    def _one(self, centre: Array, terrain: Terrain) -> Touch:
        x, y, z = centre
        normal = terrain.normal(x, y)
        gap = (z - terrain.height(x, y)) * normal[2] - self.radius
        return Touch(gap, frame_of(normal), centre - self.radius * normal)


Pair = PointsOnTerrain
