"""Rigid ground from the fixed shapes of an MJCF file: a plane or a height field, and boxes."""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from legged.checked import checked
from legged.contact.rigid import Rigid
from legged.errors import FileError, FileWarning, warn_caller
from legged.files.mjcf.reader import compiled, geom_material
from legged.ground.height_map import HeightMap
from legged.ground.terrain import Flat, Slope, Terrain
from legged.robot.shapes import Box
from legged.spatial import Array

NO_FLOOR = -100.0
"""Elevation of the floor of a file that has neither a plane nor a height field, [m]."""
_PLANE, _HEIGHT_FIELD, _BOX = 0, 1, 6  # of mjtGeom
_KINDS = ("plane", "height field", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh", "signed distance field")
_LEVEL = 1e-9  # sine of the inclination below which a plane is level
_VERTICAL = 1e-3  # least vertical component of the normal of a plane
_SPACING = 1e-6  # relative difference of the spacings along x and y


@checked
def load_ground(path: str | Path, **options: Any) -> Rigid:
    """Return the rigid ground of the shapes in an MJCF file that are fixed to the world and collide.

    A plane becomes a terrain `Flat` or `Slope`, without bounds, a height field a `HeightMap`, whose surface is smooth
    where MuJoCo's has facets, and each box an obstacle. The friction is the sliding friction of the plane or height
    field, or of the first box; boxes of another friction or priority have a `Material`, and coefficients are combined
    by the maximum, as in MuJoCo. A `legged.errors.FileWarning` names shapes of other kinds.

    Args:
        path: Path of the file.
        options: Attributes of `Rigid`, instead of those of the file.

    Raises:
        FileError: A file that MuJoCo's compiler rejects, without such shapes, with several planes or height fields,
            with a vertical plane, or with a height field that is turned or has different spacings along x and y.
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
    boxes = [geom for geom in fixed if kind_of[geom] == _BOX]
    if len(surfaces) > 1:
        raise FileError(source, f"has {len(surfaces)} planes and height fields; a ground has one, so remove the others")
    if not surfaces and not boxes:
        raise FileError(source, "has no plane, height field or box that is fixed to the world and collides")
    terrain = _terrain(model, data, surfaces[0], source) if surfaces else Flat(NO_FLOOR)
    friction = geom_material(model, (surfaces + boxes)[0]).friction
    obstacles = []
    for number, geom in enumerate(boxes):
        place = data.geom_xpos[geom].copy(), data.geom_xmat[geom].reshape(3, 3).copy()
        material = geom_material(model, geom)
        own = None if (material.friction, material.priority) == (friction, 0) else material
        obstacles.append((model.geom(geom).name or f"box {number + 1}", Box(2.0 * model.geom_size[geom], *place, own)))
    _warn(source, Counter(kind_of.values()))
    return Rigid(**({"friction": friction, "terrain": terrain, "obstacles": tuple(obstacles)} | options))


def _warn(source: str, kinds: Counter[int]) -> None:
    """Warn of shapes that are left out."""
    words = [
        f"{count} of kind {_KINDS[kind]}, which are left out"
        for kind, count in sorted(kinds.items())
        if kind not in (_PLANE, _HEIGHT_FIELD, _BOX)
    ]
    if words:
        warn_caller(f"{source}: fixed shapes: {'; '.join(words)}", FileWarning)


def _terrain(model: Any, data: Any, geom: int, source: str) -> Terrain:
    """Return the terrain of a plane or height field."""
    position, rotation = data.geom_xpos[geom].copy(), data.geom_xmat[geom].reshape(3, 3)
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
