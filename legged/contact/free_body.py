"""Free bodies: things in a scene beside the robot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from legged.errors import DefinitionError
from legged.robot.base import FloatingBase
from legged.robot.builder import GRAVITY, RobotBuilder
from legged.robot.inertia import Inertia
from legged.robot.link import Link, Shape
from legged.robot.placement import Vector, vector3
from legged.robot.robot import Robot
from legged.spatial import Array


@dataclass(frozen=True, eq=False)
class FreeBody:
    """A rigid body that nothing holds, and how it starts.

    Attributes:
        name: Differs from those of the robot's links.
        inertia: What it weighs.
        shapes: What it touches other things with, in its own axes.
        position: Its origin at the start, (3,), [m], world.
        quaternion: Its axes to world axes at the start, (4,), w first, of length one.
        velocity: Of its origin at the start, (3,), [m/s], world.
        spin: Its angular velocity at the start, (3,), [rad/s], world.
    """

    name: str
    inertia: Inertia
    shapes: Sequence[Shape]
    position: Vector = (0.0, 0.0, 0.0)
    quaternion: Vector = (1.0, 0.0, 0.0, 0.0)
    velocity: Vector = (0.0, 0.0, 0.0)
    spin: Vector = field(default=(0.0, 0.0, 0.0))

    def __post_init__(self) -> None:
        for name in ("position", "velocity", "spin"):
            object.__setattr__(self, name, vector3(f"the {name} of body {self.name!r}", getattr(self, name)))
        p = np.asarray(self.quaternion, float)
        if p.shape != (4,) or not abs(np.linalg.norm(p) - 1.0) < 1e-6:
            raise DefinitionError(
                f"the quaternion of body {self.name!r} must be four numbers of norm 1, w first, got {self.quaternion}"
            )
        if self.inertia.is_massless:
            raise DefinitionError(f"the free body {self.name!r} has no mass: nothing could push it; give it an inertia")
        object.__setattr__(self, "quaternion", p / np.linalg.norm(p))
        object.__setattr__(self, "shapes", tuple(self.shapes))

    def robot(self, gravity: Vector = GRAVITY) -> Robot:
        """Return the body as a robot of one link on a floating base, under the given gravity, (3,), [m/s^2], world."""
        return RobotBuilder(self.name, Link(self.name, self.inertia, shapes=self.shapes), gravity=gravity).build()

    def state(self) -> tuple[Array, Array]:
        """Return (q (7,), v (6,)) of `robot` at the start."""
        q = np.concatenate([self.quaternion, np.asarray(self.position)])
        return q, FloatingBase().velocity(q, np.asarray(self.spin), np.asarray(self.velocity))
