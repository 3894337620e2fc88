"""Equalities of an MJCF file that close kinematic loops: balls and welds between bodies or sites."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from legged.files.mjcf.reader import body_names, compiled
from legged.robot.placement import Placement
from legged.rotations import quaternion_matrix
from legged.spatial import Array

_KINDS = ("connect", "weld")  # of mjtEq
_BODY = 1  # of mjtObj
_WORLD = 0


class ClosingEquality(NamedTuple):
    """An equality that keeps a frame of one body coincident with a frame of another.

    Attributes:
        name: Of the equality. kind: "connect" (a ball joint) or "weld" (a fixed joint).
        parent, child: Names of the bodies; parent is None for the world.
        on_parent, on_child: The two frames in the axes of their bodies.
    """

    name: str
    kind: str
    parent: str | None
    child: str
    on_parent: Placement
    on_child: Placement


def closing_equalities(path: str | Path) -> Iterator[ClosingEquality]:
    """Yield the active equalities of bodies or sites in an MJCF file; none for a URDF.

    Raises:
        FileError: As `legged.files.mjcf.reader.read`.
    """
    if Path(path).suffix.lower() == ".urdf":
        return
    model, _ = compiled(path)
    names = body_names(model)
    for i in np.flatnonzero(model.eq_active0):
        if int(model.eq_type[i]) >= len(_KINDS):
            continue
        kind, objects = _KINDS[int(model.eq_type[i])], (int(model.eq_obj1id[i]), int(model.eq_obj2id[i]))
        if model.eq_objtype[i] == _BODY:
            ends = list(zip(objects, _body_frames(kind, model.eq_data[i]), strict=True))
        else:
            ends = [(int(model.site_bodyid[s]), _site_frame(model, s)) for s in objects]
        if ends[1][0] == _WORLD:
            ends.reverse()
        (parent, on_parent), (child, on_child) = ends
        name = model.equality(int(i)).name or f"{kind} {i}"
        yield ClosingEquality(
            name, kind, None if parent == _WORLD else names[parent], names[child], on_parent, on_child
        )


def _site_frame(model: Any, site: int) -> Placement:
    return Placement(_rotation(model.site_quat[site]), model.site_pos[site].copy())


def _body_frames(kind: str, data: Array) -> tuple[Placement, Placement]:
    """Return the frames on two bodies from the numbers of an equality, in MuJoCo's order."""
    first, second = Placement(np.eye(3), data[:3].copy()), Placement(np.eye(3), data[3:6].copy())
    return (first, second) if kind == "connect" else (Placement(_rotation(data[6:10]), data[3:6].copy()), first)


def _rotation(quaternion: Array) -> Array:
    return quaternion_matrix(quaternion / np.linalg.norm(quaternion))
