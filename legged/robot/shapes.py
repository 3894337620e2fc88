"""Shapes that links and free bodies may touch each other with."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from legged.errors import DefinitionError
from legged.robot.given import rotation3, vector3
from legged.robot.inertia import Vector
from legged.spatial import Array


@dataclass(frozen=True, eq=False)
class Sphere:
    """A ball.

    Attributes:
        radius: [m].
        center: Link origin to its center, (3,), [m], link axes.
    """

    radius: float
    center: Vector = field(default_factory=lambda: np.zeros(3))

    def __post_init__(self) -> None:
        radius = float(self.radius)
        if not (np.isfinite(radius) and radius > 0.0):
            raise DefinitionError(f"a sphere's radius must be a length above 0 m, got {self.radius}")
        object.__setattr__(self, "radius", radius)
        object.__setattr__(self, "center", vector3("a sphere's center", self.center))

    def moved(self, rotation: Array, position: Array) -> Sphere:
        """Return the same sphere written in an outer frame: rotation (3, 3) and position (3,) of this frame in it."""
        return replace(self, center=rotation @ self.center + position)


@dataclass(frozen=True, eq=False)
class Box:
    """A cuboid.

    Attributes:
        size: Its edges, (3,), [m], along its own axes.
        center: Link origin to its center, (3,), [m], link axes.
        rotation: Its axes to link axes, (3, 3); none by default.
    """

    size: Vector
    center: Vector = field(default_factory=lambda: np.zeros(3))
    rotation: Array = field(default_factory=lambda: np.eye(3))

    def __post_init__(self) -> None:
        size = vector3("a box's size", self.size)
        if not (size > 0.0).all():
            raise DefinitionError(f"a box's edges must be longer than 0 m, got {self.size}")
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "center", vector3("a box's center", self.center))
        object.__setattr__(self, "rotation", rotation3("a box's rotation", self.rotation))

    @property
    def half(self) -> Array:
        """Half its edges, (3,), [m]."""
        return np.asarray(self.size) / 2.0

    @property
    def corners(self) -> Array:
        """Its corners in link axes, (8, 3), [m]."""
        signs = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
        return np.asarray(self.center) + (signs * self.half) @ self.rotation.T

    def moved(self, rotation: Array, position: Array) -> Box:
        """Return the same box written in an outer frame: rotation (3, 3) and position (3,) of this frame in it."""
        return replace(self, center=rotation @ self.center + position, rotation=rotation @ self.rotation)


Shape: TypeAlias = Sphere | Box
