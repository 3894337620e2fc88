"""Contact points of feet that are spheres, boxes, capsules or cylinders."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from legged.files.description import Shape, Tree
from legged.robot.placement import Placement
from legged.robot.shapes import Sphere
from legged.spatial import Array


def sphere_of(tree: Tree, foot: str, link: str, shape: Shape) -> Sphere:
    """Return a collision sphere of a link in the axes of link `foot`, all joints at zero."""
    at = tree.pose[foot].inverse() @ tree.pose[link] @ Placement(shape.rotation, shape.position)
    return Sphere(shape.size[0], at.position, shape.material)


def lowest_point(tree: Tree, foot: str, link: str, shape: Shape) -> Array:
    """Return the lowest point of a sphere, all joints at zero, (3,), [m], axes of link `foot`."""
    center = (tree.pose[link] @ Placement(shape.rotation, shape.position)).position
    back = tree.pose[foot].inverse()
    return back.rotation @ (center - [0.0, 0.0, shape.size[0]]) + back.position


def lower_corners(tree: Tree, foot: str, link: str, shape: Shape) -> list[Array]:
    """Return the four lower corners of a box, all joints at zero, (3,), [m], axes of link `foot`."""
    at, back = tree.pose[link] @ Placement(shape.rotation, shape.position), tree.pose[foot].inverse()
    down, half = int(np.argmax(np.abs(at.rotation[2]))), np.array(shape.size) / 2
    corners = [(2 * np.array(signs) - 1) * half for signs in np.ndindex(2, 2, 2)]
    lower = [c for c in corners if np.sign(c[down]) == -np.sign(at.rotation[2, down])]
    return [back.rotation @ (at.rotation @ corner + at.position) + back.position for corner in lower]


def _ends(tree: Tree, link: str, shape: Shape) -> tuple[Array, Array, Array]:
    """Return both ends of the axis of a capsule or cylinder, (3,), [m], world axes, and its rotation, (3, 3)."""
    at, length = tree.pose[link] @ Placement(shape.rotation, shape.position), shape.size[1]
    axis = at.rotation[:, 2]
    return at.position - length / 2 * axis, at.position + length / 2 * axis, at.rotation


def _end_spheres(tree: Tree, foot: str, link: str, shape: Shape) -> list[Sphere]:
    """Return the spheres at both ends of a capsule in the axes of link `foot`, all joints at zero."""
    *ends, _ = _ends(tree, link, shape)
    back = tree.pose[foot].inverse()
    return [Sphere(shape.size[0], back.rotation @ end + back.position, shape.material) for end in ends]


def _cylinder_points(tree: Tree, foot: str, link: str, shape: Shape) -> list[Array]:
    """Return the ends of the lowest line of a lying cylinder, or four points on the lower edge of a standing one.

    They are those with all joints at zero, (3,), [m], axes of link `foot`.
    """
    *ends, rotation = _ends(tree, link, shape)
    axis, radius, back = rotation[:, 2], shape.size[0], tree.pose[foot].inverse()
    if abs(axis[2]) < _LYING:
        down = axis * axis[2] - np.array([0.0, 0.0, 1.0])
        points = [end + radius * down / np.linalg.norm(down) for end in ends]
    else:
        low, across = min(ends, key=lambda end: end[2]), rotation[:, :2]
        diagonals = ((1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0), (1.0, -1.0))
        points = [low + radius * np.sqrt(0.5) * (across @ signs) for signs in diagonals]
    return [back.rotation @ point + back.position for point in points]


_LYING = 0.5
"""Cosine of the angle between the axis of a cylinder and the vertical below which it lies."""
SOLES: dict[str, Callable[[Tree, str, str, Shape], Sequence[Array | Sphere]]] = {
    "sphere": lambda *place: [sphere_of(*place)],
    "capsule": _end_spheres,
    "box": lower_corners,
    "cylinder": _cylinder_points,
}
"""Kind of shape in files -> its contact points and spheres in the axes of the foot; arguments as in `sphere_of`."""
