"""Triangle meshes of shapes: spheres, boxes, cylinders, capsules, ellipsoids, hulls, cones and grids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from legged.robot.shapes import Box, Capsule, Ellipsoid, Hull, Shape, Sphere

Array = np.ndarray
Color = tuple[float, float, float]
_MERIDIANS, _PARALLELS = 20, 10  # numbers of lines on the meshes of round shapes


@dataclass(frozen=True, eq=False)
class Mesh:
    """A mesh of triangles.

    Attributes:
        vertices: (n, 3), [m], in axes of its own.
        faces: Indices of the vertices of each triangle, counterclockwise from outside, (m, 3).
        color: Red, green and blue, each from 0 to 1.
    """

    vertices: Array
    faces: Array
    color: Color


@dataclass(frozen=True, eq=False)
class Placed:
    """A mesh with its pose in the axes of a part of a scene; several may share a mesh.

    Attributes:
        mesh: The mesh.
        rotation: Rotation matrix from mesh to part axes, (3, 3).
        position: Part origin to mesh origin, (3,), [m], part axes.
    """

    mesh: Mesh
    rotation: Array
    position: Array


def mesh_of(shape: Shape, color: Color) -> Mesh:
    """Return the surface of a shape, in link axes.

    Args:
        shape: The shape. color: Color of the mesh.
    """
    if isinstance(shape, Box):
        return Mesh(np.asarray(shape.corners), _BOX_FACES, color)
    if isinstance(shape, Hull):
        from scipy.spatial import ConvexHull  # imported here: the import takes long

        faces = np.asarray(ConvexHull(shape.vertices).simplices)
        return Mesh(shape.vertices, _outward(shape.vertices, faces), color)
    if isinstance(shape, Sphere):
        profile, scale, rotation = _arc(0.0, np.pi) * shape.radius, np.ones(3), np.eye(3)
    elif isinstance(shape, Ellipsoid):
        profile, scale, rotation = _arc(0.0, np.pi), np.asarray(shape.radii), shape.rotation
    else:
        r, half = shape.radius, shape.length / 2.0
        scale, rotation = np.ones(3), shape.rotation
        if isinstance(shape, Capsule):
            upper, lower = _arc(0.0, np.pi / 2), _arc(np.pi / 2, np.pi)
            profile = np.concatenate([r * upper + (0.0, half), r * lower - (0.0, half)])
        else:
            profile = np.array([(0.0, half), (r, half), (r, half), (r, -half), (r, -half), (0.0, -half)])
    vertices, faces = revolved(profile)
    return Mesh(np.asarray(shape.center) + (vertices * scale) @ np.asarray(rotation).T, faces, color)


def capsule_between(a: Array, b: Array, radius: float, color: Color) -> Mesh:
    """Return a capsule around the segment from a to b.

    Args:
        a, b: Ends of the segment, (3,), [m], link axes. radius: [m]. color: Color of the mesh.
    """
    length = float(np.linalg.norm(b - a))
    return mesh_of(Capsule(radius, max(length, 1e-9), (a + b) / 2.0, rotation_to(b - a)), color)


def rotation_to(direction: Array) -> Array:
    """Return a rotation matrix, (3, 3), whose third column points along a direction.

    Args:
        direction: Vector of any length, (3,), [any unit]; the zero vector stands for +z.
    """
    length = float(np.linalg.norm(direction))
    z = direction / length if length > 0.0 else np.array([0.0, 0.0, 1.0])
    x = np.cross((0.0, 1.0, 0.0) if abs(z[1]) < 0.9 else (1.0, 0.0, 0.0), z)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


def grid_faces(rows: int, columns: int) -> Array:
    """Return the triangles between neighboring points of a grid, (2 (rows - 1) (columns - 1), 3).

    Args:
        rows, columns: Number of points in each direction; point (i, j) has the index i columns + j.
    """
    i, j = np.meshgrid(np.arange(rows - 1), np.arange(columns - 1), indexing="ij")
    a = (i * columns + j).ravel()
    b, c, d = a + columns, a + columns + 1, a + 1
    return np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])


def revolved(profile: Sequence[Any] | Array) -> tuple[Array, Array]:
    """Return vertices (n, 3) and faces (m, 3) of the surface of revolution of a profile about z.

    Args:
        profile: Points (radius, z) in axes of the surface, (k, 2), [m], from top to bottom.
    """
    profile = np.asarray(profile, float)
    angles = np.arange(_MERIDIANS) * (2.0 * np.pi / _MERIDIANS)
    ring = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    xy = profile[:, None, :1] * ring
    z = np.broadcast_to(profile[:, None, 1:], (len(profile), _MERIDIANS, 1))
    vertices = np.concatenate([xy, z], axis=2).reshape(-1, 3)
    k, m = np.meshgrid(np.arange(len(profile) - 1), np.arange(_MERIDIANS), indexing="ij")
    a, b = (k * _MERIDIANS + m).ravel(), (k * _MERIDIANS + (m + 1) % _MERIDIANS).ravel()
    faces = np.concatenate([np.stack([a, a + _MERIDIANS, b + _MERIDIANS], 1), np.stack([a, b + _MERIDIANS, b], 1)])
    corners = vertices[faces]
    area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    return vertices, faces[area > 1e-12 * max(float(np.abs(profile).max()) ** 2, 1e-300)]


def _arc(first: float, last: float) -> Array:
    """Return points (sin, cos) of the unit circle between two angles from +z, (k, 2)."""
    angles = np.linspace(first, last, round(_PARALLELS * (last - first) / np.pi) + 1)
    return np.stack([np.sin(angles), np.cos(angles)], axis=1)


def _outward(vertices: Array, faces: Array) -> Array:
    """Return the faces of a convex body with their vertices counterclockwise from outside."""
    corners = vertices[faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    inward = ((corners[:, 0] - vertices.mean(axis=0)) * normals).sum(axis=1) < 0.0
    return np.where(inward[:, None], faces[:, ::-1], faces)


_CORNERS = np.array([(x, y, z) for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
_BOX_FACES = _outward(
    _CORNERS,
    np.array(
        [
            tri
            for a, b, c, d in ((0, 1, 3, 2), (4, 5, 7, 6), (0, 1, 5, 4), (2, 3, 7, 6), (0, 2, 6, 4), (1, 3, 7, 5))
            for tri in ((a, b, c), (a, c, d))
        ]
    ),
)


def color_bytes(text: str) -> tuple[int, int, int]:
    """Return red, green and blue, each from 0 to 255, of a color such as "#d2452d".

    Args:
        text: The color.
    """
    red, green, blue = (int(text[k : k + 2], 16) for k in (1, 3, 5))
    return red, green, blue


def bytes_of(color: Color) -> tuple[int, int, int]:
    """Return red, green and blue, each from 0 to 255.

    Args:
        color: Red, green and blue, each from 0 to 1.
    """
    red, green, blue = (round(255 * x) for x in color)
    return red, green, blue
