"""Visual shapes of a robot file: shapes and meshes with their colors, by link, for pictures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from legged.errors import FileError
from legged.files import reading
from legged.files.collision import located, meters_per_unit
from legged.files.description import Shape, tree_of
from legged.files.load import describe
from legged.files.meshes import open_mesh, stored_arrays
from legged.files.mjcf.reader import SHAPES, body_names, compiled, geom_vertices, shape_size
from legged.files.urdf.shapes import visual_shape
from legged.robot.robot import Robot
from legged.rotations import quaternion_matrix
from legged.spatial import Array

Color = tuple[float, float, float]
Part = tuple[Array, Array, Color | None]
"""Vertices, triangles and color of a part of a mesh; see `opened_mesh`."""


@dataclass(frozen=True, eq=False)
class Visual:
    """A visual shape of a link.

    Attributes:
        shape: The shape. A mesh in a file has the path of this file as `mesh`, "" if the file is missing.
        color: Red, green and blue from 0 to 1; None if the robot file gives no color.
        faces: Triangles of a mesh with `shape.vertices`, (m, 3), as indices of vertices; None for other shapes.
        named: Name of the mesh in the robot file, for messages.
    """

    shape: Shape
    color: Color | None = None
    faces: Array | None = None
    named: str = ""


def visuals_of(robot: Robot, path: str | Path) -> dict[str, list[Visual]]:
    """Return the visual shapes of the links of a robot, in the axes of these links.

    If a link of the file is not a link of the robot, its shapes are assigned to the link that it is fixed to.

    Args:
        robot: A robot of the file; links that the file lacks have no shapes.
        path: A URDF or MJCF file.

    Raises:
        FileError: The file is missing or invalid.
    """
    content = reading.read_bytes(path)
    is_mjcf = reading.root_tag(content) == "mujoco"
    visuals_by_link = dict(_of_mjcf(path) if is_mjcf else _of_urdf(content, str(path)))
    names = {link.name for link in robot.links}
    if set(visuals_by_link) <= names:
        return visuals_by_link
    tree, placed = tree_of(describe(path)), dict[str, list[Visual]]()
    for name, visuals in visuals_by_link.items():
        carrier = name if name in names else tree.head.get(name, name)
        if carrier in names:
            if carrier != name:
                visuals = [replace(visual, shape=visual.shape.moved(tree.place[name])) for visual in visuals]
            placed.setdefault(carrier, []).extend(visuals)
    return placed


# URDF


def _of_urdf(content: bytes, source: str) -> Iterator[tuple[str, list[Visual]]]:
    root = reading.parse(content, source)
    materials = {m.get("name"): color for m in root.findall("material") if (color := _color(m)) is not None}
    for link in root.findall("link"):
        visuals = [_urdf_visual(each, materials, source) for each in link.findall("visual")]
        if any(visuals):
            yield link.get("name"), [visual for visual in visuals if visual is not None]


def _urdf_visual(element: Any, materials: dict[str, Color], source: str) -> Visual | None:
    """Return the shape of a <visual>; None for a shape that URDF does not define."""
    material, color = element.find("material"), None
    if material is not None:
        color = _color(material) or materials.get(material.get("name"))
    shape = visual_shape(element, source)
    if shape is None or not shape.is_mesh:
        return shape and Visual(shape, color)
    try:
        file = located(shape.mesh, source)
    except FileError:
        file = ""
    return Visual(replace(shape, mesh=file), color, named=shape.mesh)


def _color(material: Any) -> Color | None:
    """Return the color of a <material>; None without one, and for one that is not three numbers from 0 to 1."""
    element = material.find("color")
    words = [] if element is None else (element.get("rgba") or "").split()
    try:
        red, green, blue = (float(word) for word in words[:3])
    except ValueError:
        return None
    return (red, green, blue) if all(0.0 <= x <= 1.0 for x in (red, green, blue)) else None


# MJCF


def _of_mjcf(path: str | Path) -> Iterator[tuple[str, list[Visual]]]:
    """Yield the shapes of each body: those that do not collide, or all of a body without such shapes."""
    model, _ = compiled(path)
    names = body_names(model)
    for body in range(1, model.nbody):
        first = int(model.body_geomadr[body])
        geoms = [g for g in range(first, first + int(model.body_geomnum[body])) if int(model.geom_type[g]) in SHAPES]
        seen = [g for g in geoms if not (model.geom_contype[g] or model.geom_conaffinity[g])] or geoms
        if seen:
            yield names[body], [_geom_visual(model, geom) for geom in seen]


def _geom_visual(model: Any, geom: int) -> Visual:
    kind, material = SHAPES[int(model.geom_type[geom])], int(model.geom_matid[geom])
    rgba = model.geom_rgba[geom] if material < 0 else model.mat_rgba[material]
    color: Any = tuple(map(float, rgba[:3]))
    place = model.geom_pos[geom].copy(), quaternion_matrix(model.geom_quat[geom])
    if kind != "mesh":
        return Visual(Shape(kind, shape_size(kind, model.geom_size[geom]), *place), color)
    mesh = int(model.geom_dataid[geom])
    first, count = int(model.mesh_faceadr[mesh]), int(model.mesh_facenum[mesh])
    return Visual(Shape("mesh", (), *place, geom_vertices(model, geom)), color, model.mesh_face[first : first + count])


# Meshes


def opened_mesh(path: str) -> list[Part]:
    """Return the parts of a mesh in a file: vertices (n, 3), faces (m, 3) as indices of vertices, and their color.

    Reading a file takes long, so the result is stored in the cache folder. Vertices in the same place are merged. The
    color of a part is the mean color of its vertices, or None if the file gives no colors. Lengths are in the unit of
    the file; files in the format Collada (.dae) state their unit and are converted to [m].

    Args:
        path: The file.

    Raises:
        FileError: As in `legged.files.meshes.open_mesh`, or the mesh has no triangles.
    """
    arrays = stored_arrays(path, _LAYOUT, lambda: _named(_read_mesh(path)))
    columns = ([arrays[f"{name} {k}"] for name in _PART] for k in range(len(arrays) // len(_PART)))
    parts = [(v, f, (float(c[0]), float(c[1]), float(c[2])) if c.size else None) for v, f, c in columns]
    if not parts:
        raise FileError(path, "the mesh has no triangles, so that it is not shown")
    return parts


_LAYOUT = "parts in meters, 2"
"""Version of the result of `_named`."""
_PART = ("vertices", "faces", "color")


def _named(parts: list[Part]) -> dict[str, Array]:
    """Return the arrays of the parts of a mesh by name; an empty color for none."""
    named = ((f"{name} {k}", x) for k, part in enumerate(parts) for name, x in zip(_PART, part, strict=True))
    return {name: np.zeros(0) if x is None else np.asarray(x) for name, x in named}


def _read_mesh(path: str) -> list[Part]:
    """Return the parts of a mesh as `opened_mesh`, read by trimesh."""
    scene = open_mesh(path)
    try:
        meshes = []
        for part in scene.dump():
            if not len(getattr(part, "faces", ())):
                continue
            part.apply_scale(meters_per_unit(path, part))
            color = _mean_color(part)
            part.merge_vertices(merge_tex=True, merge_norm=True)
            meshes.append((np.array(part.vertices, np.float32), np.array(part.faces, np.int32), color))
    except Exception as error:  # of damaged meshes
        words = f"the mesh cannot be read: {type(error).__name__}: {' '.join(str(error).split())}"
        raise FileError(path, words) from error
    return meshes


def _mean_color(part: Any) -> Color | None:
    """Return the mean color of a mesh of trimesh; None if it has none, or if its material is missing or damaged."""
    if not part.visual.defined:
        return None
    try:
        has_one_color = getattr(part.visual, "uv", 0) is None  # a material without a picture
        color_values = part.visual.material.main_color if has_one_color else part.visual.to_color().vertex_colors
        colors = np.atleast_2d(color_values)[:, :3]
    except Exception:  # materials of a dozen formats raise errors of as many classes
        return None
    red, green, blue = (colors.mean(axis=0) / 255.0).tolist()
    return red, green, blue
