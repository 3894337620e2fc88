"""Rigid ground from the fixed shapes of an MJCF file: a plane or a height field, and convex shapes."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from legged.checked import checked
from legged.contact.rigid import Rigid
from legged.errors import DefinitionError, FileError, FileWarning, warn_caller
from legged.files.collision import convert
from legged.files.mjcf.reader import compiled, geom_material, geom_shape
from legged.ground.height_map import HeightMap
from legged.ground.terrain import Flat, Slope, Terrain
from legged.robot.shapes import Shape, shape_with
from legged.spatial import Array

NO_FLOOR = -100.0
"""Elevation of the floor of a file that has neither a plane nor a height field, [m]."""
_PLANE, _HEIGHT_FIELD, _DISTANCE_FIELD = 0, 1, 8  # of mjtGeom
_KINDS = ("plane", "height field", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh", "signed distance field")
_LEVEL = 1e-9  # sine of the inclination below which a plane is level
_VERTICAL = 1e-3  # least vertical component of the normal of a plane
_SPACING = 1e-6  # relative difference of the spacings along x and y


@checked
def load_ground(path: str | Path, **options: Any) -> Rigid:
    """Return the rigid ground of the shapes in an MJCF file that are fixed to the world and collide.

    A plane becomes a terrain `Flat` or `Slope`, without bounds, a height field a `HeightMap`, whose surface is smooth
    where MuJoCo's has facets, both at the distance at which their contacts begin, and each other shape an obstacle,
    meshes as convex hulls. The friction is the sliding friction of the plane or height field, or of the first obstacle;
    obstacles of another friction or priority have a `Material`, and coefficients are combined by the maximum, as in
    MuJoCo. A `legged.errors.FileWarning` names signed distance fields, which are left out, and meshes that their hulls
    do not represent exactly.

    Args:
        path: Path of the file.
        options: Attributes of `Rigid`, instead of those of the file.

    Raises:
        FileError: A file that MuJoCo's compiler rejects, without such shapes, with several planes or height fields,
            with a vertical plane, with a height field that is turned or has different spacings along x and y, or with a
            shape without volume.
    """
    source = str(path)
    model, _ = compiled(path)
    mujoco: Any = import_module("mujoco")
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    fixed = [
        geom
        for geom in range(model.ngeom)
        if model.body_weldid[model.geom_bodyid[geom]] == 0 and (model.geom_contype[geom] | model.geom_conaffinity[geom])
    ]
    kind_of = {geom: int(model.geom_type[geom]) for geom in fixed}
    surfaces = [geom for geom in fixed if kind_of[geom] in (_PLANE, _HEIGHT_FIELD)]
    solids = [geom for geom in fixed if _HEIGHT_FIELD < kind_of[geom] < _DISTANCE_FIELD]
    if len(surfaces) > 1:
        raise FileError(source, f"has {len(surfaces)} planes and height fields; a ground has one, so remove the others")
    if not surfaces and not solids:
        raise FileError(source, "has no plane, height field or solid shape that is fixed to the world and collides")
    terrain = _terrain(model, data, surfaces[0], source) if surfaces else Flat(NO_FLOOR)
    friction = geom_material(model, (surfaces + solids)[0]).friction
    names = [model.geom(geom).name or f"{_KINDS[kind_of[geom]]} {number + 1}" for number, geom in enumerate(solids)]
    obstacles, notes = list[tuple[str, Shape]](), list[str]()
    for name, geom in zip(names, solids, strict=True):
        shape, note = _obstacle(model, data, geom, friction, f"{source}, {name}")
        obstacles.append((name, shape))
        notes += [f"{name}: {note}"] if note else []
    if left_out := len(fixed) - len(surfaces) - len(solids):
        notes.append(f"{left_out} of kind {_KINDS[_DISTANCE_FIELD]}, which are left out")
    if notes:
        warn_caller(f"{source}: fixed shapes: {'; '.join(notes)}", FileWarning)
    properties = {"friction": friction, "terrain": terrain, "obstacles": tuple(obstacles), "combination": "maximum"}
    return Rigid(**(properties | options))


def _obstacle(model: Any, data: Any, geom: int, friction: float, where: str) -> tuple[Shape, str]:
    """Return a shape that is fixed to the world, world axes, and how its hull differs from its mesh, in words.

    Args:
        model, data: Compiled model with kinematics. geom: Index of the geom.
        friction: Of the ground; a shape of this friction and priority 0 has no material of its own.
        where: The file and the name, for messages.
    """
    described = geom_shape(model, geom, data.geom_xpos[geom].copy(), data.geom_xmat[geom].reshape(3, 3).copy())
    assert described is not None
    try:
        shape, note = convert(described, where)
    except DefinitionError as error:
        raise FileError(where, str(error)) from error
    material = described.material
    return shape if (material.friction, material.priority) == (friction, 0) else shape_with(shape, material), note


def _terrain(model: Any, data: Any, geom: int, source: str) -> Terrain:
    """Return the terrain of a plane or height field."""
    rotation, thickness = data.geom_xmat[geom].reshape(3, 3), model.geom_margin[geom] - model.geom_gap[geom]
    position = data.geom_xpos[geom] + thickness * rotation[:, 2]
    if model.geom_type[geom] == _HEIGHT_FIELD:
        return _height_map(model, int(model.geom_dataid[geom]), position, rotation, source)
    x, y, z = rotation[:, 2].tolist()
    if z < _VERTICAL:
        raise FileError(source, f"has a plane with the normal ({x:g}, {y:g}, {z:g}); a ground faces upwards")
    if np.hypot(x, y) < _LEVEL:
        return Flat(float(position[2]))
    elevation = float(position @ (x, y, z)) / z
    return Slope(float(np.arccos(z)), float(np.arctan2(-y, -x)), elevation)


def _height_map(model: Any, field: int, position: Array, rotation: Array, source: str) -> HeightMap:
    """Return the terrain of a height field, whose rows in the model run along y."""
    rows, columns = int(model.hfield_nrow[field]), int(model.hfield_ncol[field])
    first = int(model.hfield_adr[field])
    half_x, half_y, scale, _ = model.hfield_size[field].tolist()
    along_x, along_y = 2.0 * half_x / (columns - 1), 2.0 * half_y / (rows - 1)
    if np.abs(rotation - np.eye(3)).max() > _LEVEL:
        raise FileError(source, "has a height field that is turned; turn the other bodies instead")
    if abs(along_x - along_y) > _SPACING * along_x:
        words = f"has a height field with spacings of {along_x:g} m and {along_y:g} m along x and y; make them equal"
        raise FileError(source, words)
    heights = model.hfield_data[first : first + rows * columns].reshape(rows, columns).T.astype(float)
    corner = (float(position[0]) - half_x, float(position[1]) - half_y)
    return HeightMap(position[2] + scale * heights, along_x, corner)
