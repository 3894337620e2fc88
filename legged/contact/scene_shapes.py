"""The shapes of a scene in parts as arrays: dimensions, places on their bodies, and bounding spheres."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from legged.contact.detection.pairs import BodyShape, bounding_radius, dimensions, kind_of
from legged.robot.shapes import MOST_VERTICES, Box, Capsule, Cylinder, Ellipsoid
from legged.spatial import Array

WORLD = -1
"""Number of the body of fixed shapes: the last one."""


class SceneShapes:
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


def padded_vertices(vertices: int) -> int:
    """Return the number of vertices to which all hulls of a scene are padded, so that one kernel serves them all."""
    return next(size for size in (8, 16, MOST_VERTICES) if vertices <= size)
