"""Robots with closed loops from MJCF files: equality constraints that join bodies become closing joints."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from legged.errors import FileError
from legged.files.load import load as load_tree
from legged.files.mjcf import body_names, compiled
from legged.loops.closing import Closing
from legged.loops.loop import ClosedRobot
from legged.robot.joint import Fixed, Spherical
from legged.robot.placement import Placement
from legged.robot.robot import Robot
from legged.rotations import quaternion_matrix
from legged.spatial import Array

CONNECT, WELD = 0, 1  # mjtEq
_BODIES = 1  # mjtObj
_WORLD = 0


class Equality(NamedTuple):
    """Two bodies' frames that a joint keeps together; bodies by MuJoCo's numbers."""

    joint: Closing
    bodies: tuple[int, int]
    places: tuple[Placement, Placement]


def load(path: str | Path, base: str | None = None, **options: Any) -> ClosedRobot:
    """Return the robot of a file with its loops: MJCF's `connect` as ball joints, its `weld` as fixed ones.

    They are hard here, soft in MuJoCo. A file without them, a URDF too, gives a robot without loops. What the tree
    loses of the file is in `closed.robot.audit`, where these equalities are named, too.

    Args:
        path, base, options: As for `legged.load`, of the spanning tree, which is the tree of the file's bodies.

    Raises:
        FileError: as `legged.load`, and for an equality with a body that is no link of the robot.
    """
    robot = load_tree(path, base, **options)
    closed = ClosedRobot(robot, (), ())
    if Path(path).suffix.lower() == ".urdf":
        return closed
    model, _ = compiled(path)
    names = body_names(model)
    for equality in equalities(model):
        closed = _with(closed, equality, names, str(path))
    return closed


def equalities(model: Any) -> Iterator[Equality]:
    """Yield the active equalities of bodies or sites in a compiled model (`mujoco.MjModel`)."""
    for i in np.flatnonzero(model.eq_active0):
        kind, ends = int(model.eq_type[i]), (int(model.eq_obj1id[i]), int(model.eq_obj2id[i]))
        if kind not in (CONNECT, WELD):
            continue
        name = model.equality(int(i)).name or f"{('connect', 'weld')[kind]} {i}"
        joint = Spherical(name) if kind == CONNECT else Fixed(name)
        if model.eq_objtype[i] == _BODIES:
            yield Equality(joint, ends, _places(kind, model.eq_data[i]))
        else:
            sites = [Placement(_matrix(model.site_quat[s]), model.site_pos[s].copy()) for s in ends]
            first, second = (int(model.site_bodyid[s]) for s in ends)
            yield Equality(joint, (first, second), (sites[0], sites[1]))


def _places(kind: int, data: Array) -> tuple[Placement, Placement]:
    """Return where a joint is on two bodies, from the equality's numbers in MuJoCo's order."""
    here, there = Placement(np.eye(3), data[:3].copy()), Placement(np.eye(3), data[3:6].copy())
    return (here, there) if kind == CONNECT else (Placement(_matrix(data[6:10]), data[3:6].copy()), here)


def _with(closed: ClosedRobot, equality: Equality, names: list[str], source: str) -> ClosedRobot:
    (parent, child), (start, end) = equality.bodies, equality.places
    if child == _WORLD:
        (parent, child), (start, end) = (child, parent), (end, start)
    for body in (parent, child):
        if body != _WORLD and names[body] not in {link.name for link in closed.robot.links}:
            raise FileError(
                source, f"equality {equality.joint.name!r} holds {names[body]!r}, which is no link of the robot"
            )
    if parent == _WORLD and _moved_to_the_origin(closed.robot):
        raise FileError(
            source,
            f"equality {equality.joint.name!r} holds the robot to the world, but base='fixed' puts the free body "
            f"{closed.robot.links[0].name!r} at the origin; leave base out",
        )
    return closed.close(
        equality.joint,
        parent=None if parent == _WORLD else names[parent],
        child=names[child],
        at=start.position,
        rotation=start.rotation,
        child_at=end.position,
        child_rotation=end.rotation,
    )


def _moved_to_the_origin(robot: Robot) -> bool:
    return robot.base.nv == 0 and robot.links[0].name != "world"


def _matrix(quaternion: Array) -> Array:
    return quaternion_matrix(quaternion / np.linalg.norm(quaternion))
