"""Collision shapes of a robot file as shapes of links; meshes are opened and replaced by their convex hulls."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from legged.arguments import shown
from legged.errors import DefinitionError, FileError
from legged.files.description import SOLIDS, Shape, Tree
from legged.files.meshes import open_mesh, stored_arrays
from legged.output import visible
from legged.robot.shapes import Hull, hull_of, shape_with
from legged.robot.shapes import Shape as LinkShape
from legged.spatial import Array

_EXACT = 1e-6
"""Error of a hull above which the audit reports it, [m]."""
_CONVEX = 1e-3
"""Relative difference of the volumes of a mesh and its hull above which the audit reports it."""


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
    arrays = stored_arrays(path, f"vertices and remarks, 1, {name}", lambda: _read(path, source))
    return arrays["vertices"], str(arrays["words"])


def _read(path: str, source: str) -> dict[str, Any]:
    """Return the vertices of a mesh and the remarks on it as `_opened`, read by trimesh."""
    scene = open_mesh(path)
    try:
        mesh: Any = scene.to_mesh()
        mesh.apply_scale(meters_per_unit(path, mesh))
        vertices, is_closed = np.asarray(mesh.vertices, float), bool(mesh.is_watertight)
        volume, hull = abs(float(mesh.volume)), float(mesh.convex_hull.volume) if len(vertices) > 3 else 0.0
    except Exception as error:  # of damaged meshes
        words = f"the mesh {path!r} cannot be read: {type(error).__name__}: {' '.join(str(error).split())}"
        raise FileError(source, words) from error
    if not len(vertices) or not np.isfinite(vertices).all():
        raise FileError(source, f"the mesh {path!r} has no vertices, or some that are not finite")
    return {"vertices": vertices, "words": _remarks(Path(path).name, is_closed, volume, hull)}


def _remarks(name: str, is_closed: bool, volume: float, hull: float) -> str:
    """Return how a mesh of this volume differs from its convex hull of volume `hull`, [m^3]; "" for a convex mesh."""
    if not is_closed:
        return f"the mesh {name} has holes and is replaced by its convex hull"
    if volume < (1.0 - _CONVEX) * hull:
        larger = 100.0 * (hull / volume - 1.0) if volume else np.inf
        return f"the mesh {name} is not convex; its convex hull has {larger:.2g} % more volume"
    return ""
