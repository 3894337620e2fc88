"""Collision shapes of a robot file as shapes of links; meshes are opened and replaced by their convex hulls."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from legged.arguments import number, rounded_array, shown
from legged.checked import checked
from legged.errors import DefinitionError, FileError
from legged.files.description import SOLIDS, Shape, Tree
from legged.files.meshes import binary_triangles, open_mesh, stored_arrays
from legged.output import visible
from legged.robot.shapes import DIAGONALS, MOST_VERTICES, Hull, convex_hull, hull_vertices, shape_with
from legged.robot.shapes import Shape as LinkShape
from legged.spatial import Array

_EXACT = 1e-6
"""Error of a hull above which the audit reports it, [m]; relative to the size, at which no more are added."""
_SPREAD = 1e-3
"""Part of the size of a mesh by which the first vertices of its hull lie apart in three directions."""
_CONVEX = 1e-3
"""Relative difference of the volumes of a mesh and its hull above which the audit reports it."""
_SAME = 1e-8
"""Vertices of a mesh whose coordinates agree to this length are one, [m]."""


def collision_shapes(tree: Tree) -> tuple[Mapping[str, tuple[LinkShape, ...]], list[str]]:
    """Return the shapes of each link, and one sentence for each mesh that its hull does not represent exactly.

    Args:
        tree: Tree of the robot.

    Raises:
        FileError: A shape without volume, or a mesh that is missing, damaged or too large.
    """
    solids, notes = {}, []
    for name in tree.order:
        shapes = []
        for shape in tree.link[name].shapes:
            try:
                converted, note = convert(shape, tree.description.source)
            except DefinitionError as error:
                words = f"a collision shape of link {name!r}: {error}; load with shapes=False to leave out all shapes"
                raise FileError(tree.description.source, words) from error
            shapes.append(shape_with(converted, shape.material))
            notes += [f"link {name!r}: {note}"] if note else []
        solids[name] = tuple(shapes)
    return solids, notes


def convert(shape: Shape, source: str) -> tuple[LinkShape, str]:
    """Return a shape and the approximations made for its mesh, in words; "" without approximations.

    Args:
        shape: The shape of a description. source: Path of the file, for meshes beside it.

    Raises:
        DefinitionError: A shape without volume.
        FileError: A mesh that is missing, damaged or too large.
    """
    if shape.is_mesh:
        vertices, what = mesh_vertices(shape, source)
        hull, outside = hull_of(vertices)
        words = [what] if what else []
        if outside > _EXACT:
            words.append(f"the hull has {len(hull.vertices)} vertices and lies up to {1e3 * outside:.2g} mm inside")
        return Hull(hull.vertices).moved(shape.rotation, shape.position), "; ".join(words)
    return SOLIDS[shape.kind].make(shape.size, shape.position, shape.rotation), ""


@checked
def hull_of(points: Array | Sequence[Any], most: int = MOST_VERTICES) -> tuple[Hull, float]:
    """Return a convex hull of points with a limited number of vertices, and its error.

    Args:
        points: Vertices of a mesh, (m, 3), [m], link axes. Cavities and holes of the mesh are filled.
        most: Largest number of vertices, 8 or more. Beginning with the points that lie farthest out along the diagonals
            of the bounding box, the point farthest outside of the hull is added until there are as many.

    Returns:
        The hull, and the largest distance by which a point lies outside of it, [m].

    Raises:
        DefinitionError: Fewer than four points, or all in a plane.
    """
    most = int(number("most", most, least=8, most=MOST_VERTICES))
    outer = hull_vertices("a mesh", rounded_array("points", points, (None, 3)))
    middle, size = (outer.min(axis=0) + outer.max(axis=0)) / 2, np.ptp(outer, axis=0)
    chosen = sorted(set(np.argmax((outer - middle) / size @ DIAGONALS.T, axis=0).tolist()))
    offsets = outer - outer[chosen[0]]
    for _ in range(3):  # the chosen points need not span a volume: those of an icosahedron lie in a plane
        apart = np.linalg.norm(offsets, axis=1)
        farthest = max(chosen, key=apart.__getitem__)
        if apart[farthest] < _SPREAD * apart.max():
            chosen.append(farthest := int(np.argmax(apart)))
        axis = offsets[farthest] / apart[farthest]
        offsets = offsets - np.outer(offsets @ axis, axis)
    while True:
        hull = convex_hull(outer[chosen])
        outside = (outer @ hull.equations[:, :3].T + hull.equations[:, 3]).max(axis=1)
        if len(chosen) == most or outside.max() < _EXACT * size.max():
            return Hull(outer[chosen]), max(float(outside.max()), 0.0)
        chosen.append(int(np.argmax(outside)))


def mesh_vertices(shape: Shape, source: str) -> tuple[Array, str]:
    """Return the vertices of a mesh, (n, 3), [m], shape axes, and in words how it differs from its convex hull."""
    if shape.vertices is not None:
        return shape.vertices, ""
    if not np.isfinite(shape.scale).all():
        raise FileError(source, f"the scale of the mesh {shown(shape.mesh, 200)} must be one finite number, or three")
    path = located(shape.mesh, source)
    vertices, words = _opened(path, source, os.stat(path).st_mtime_ns)
    return vertices * shape.scale, words


def located(name: str, source: str) -> str:
    """Return the path of a mesh that a robot file names by a path, `file://` or `package://`.

    A package is sought in the folder of the robot file, in those around it and in those of ROS_PACKAGE_PATH.

    Args:
        name: The path of the mesh in the robot file. source: Path of the robot file.

    Raises:
        FileError: The mesh is not there.
    """
    plain = name.removeprefix("file://")
    is_package = name.startswith("package://")
    start = Path(source).resolve().parent
    if not is_package:
        candidates = [start / plain]
    else:
        plain = name.removeprefix("package://")
        roots = [start, *start.parents, *map(Path, os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep))]
        _, _, inside = plain.partition("/")
        candidates = [root / path for root in roots for path in (plain, inside)]
    for candidate in candidates:
        if os.path.isfile(candidate):  # false for names that no file can have
            return str(candidate)
    at = "in the folders around the robot file or of ROS_PACKAGE_PATH"
    where = at if is_package else f"as {visible(candidates[0], 200)}"
    words = f"the mesh {shown(name, 200)} was not found {where}; put it there, or load with shapes=False"
    raise FileError(source, words)


def meters_per_unit(path: str, mesh: Any) -> float:
    """Return the unit of length of a mesh, [m]: that stated in a file of the format Collada (.dae), else 1 m.

    Args:
        path: The file. mesh: What trimesh read from it.
    """
    stated = re.fullmatch(r"([0-9.eE+-]+) \* meters", str(mesh.units)) if path.lower().endswith(".dae") else None
    return float(stated[1]) if stated else 1.0


@lru_cache(maxsize=256)
def _opened(path: str, source: str, changed: int) -> tuple[Array, str]:
    """Return the vertices of a mesh in a file, (n, 3), [m], and in words how it differs from its convex hull.

    Results are cached by path and by the time of the last change of the file, [ns].
    """
    name = Path(path).name
    arrays = stored_arrays(path, f"vertices and remarks, 2, {name}", lambda: _read(path, source))
    return arrays["vertices"], str(arrays["words"])


def _read(path: str, source: str) -> dict[str, Any]:
    """Return the merged vertices of a mesh, and in words how it differs from its convex hull, as `_opened`."""
    triangles = binary_triangles(path)
    try:
        if triangles is None:
            mesh: Any = open_mesh(path).to_mesh()
            mesh.apply_scale(meters_per_unit(path, mesh))
            triangles = np.asarray(mesh.vertices, float)[mesh.faces]
        corners = triangles.reshape(-1, 3)
        if not len(corners) or not np.isfinite(corners).all():
            raise FileError(source, f"the mesh {path!r} has no triangles, or some that are not finite")
        _, first, number = np.unique(np.round(corners / _SAME), axis=0, return_index=True, return_inverse=True)
        vertices, faces = corners[first], number.reshape(-1, 3)
        return {"vertices": vertices, "words": _remarks(Path(path).name, vertices, faces)}
    except FileError:
        raise
    except Exception as error:  # of damaged meshes
        words = f"the mesh {path!r} cannot be read: {type(error).__name__}: {' '.join(str(error).split())}"
        raise FileError(source, words) from error


def _remarks(name: str, vertices: Array, faces: Array) -> str:
    """Return how a mesh of these vertices, (n, 3), [m], and faces, (m, 3), differs from its convex hull; or ""."""
    edges = np.sort(np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]), axis=1)
    if (np.unique(edges, axis=0, return_counts=True)[1] != 2).any():
        return f"the mesh {name} has holes and is replaced by its convex hull"
    a, b, c = (vertices[faces[:, k]] - vertices[0] for k in range(3))
    volume, hull = abs(float((a * np.cross(b, c)).sum())) / 6.0, float(convex_hull(vertices).volume)
    if volume < (1.0 - _CONVEX) * hull:
        larger = 100.0 * (hull / volume - 1.0) if volume else np.inf
        return f"the mesh {name} is not convex; its convex hull has {larger:.2g} % more volume"
    return ""
