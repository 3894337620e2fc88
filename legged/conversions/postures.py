"""Named postures from files: key frames of an MJCF, group states of an SRDF."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from legged.checked import checked
from legged.conversions.charts import OUR_BASE, PINOCCHIO, FreeChart
from legged.conversions.conversion import base_turn
from legged.conversions.programs import mujoco
from legged.errors import FileError, MismatchError
from legged.files import reading
from legged.files.mjcf.reader import compiled
from legged.robot.base import FloatingBase
from legged.robot.robot import Robot
from legged.spatial import Array


@checked
def postures(robot: Robot, path: str | Path) -> dict[str, Array]:
    """Return the configurations, (nq,), that a file names: key frames of an MJCF, or group states of an SRDF.

    Joints are matched by name. An MJCF must be that of the robot; unnamed key frames are "key 0", "key 1", .... In an
    SRDF, group states of one name add up; joints that no state mentions are at neutral, and joints that the robot lacks
    or that follow others are left out. Seven values (position, quaternion with w last) are those of the floating base,
    for the root link in the file of the robot.

    Args:
        robot: The robot. path: Path of the MJCF or SRDF.

    Raises:
        FileError: For a file that is neither, or with values that do not fit a joint.
        MismatchError: If the file's joints are not those of the robot.
    """
    content = reading.read_bytes(path)
    if reading.root_tag(content) == "mujoco":
        return dict(_key_frames(robot, path))
    root = reading.parse(content, str(path))
    if root.tag != "robot" or root.find("link") is not None:
        raise FileError(str(path), "holds no postures: give an MJCF with key frames or an SRDF with group states")
    return _group_states(robot, root, str(path))


def _key_frames(robot: Robot, path: str | Path) -> Iterator[tuple[str, Array]]:
    model, _ = compiled(path)
    conversion = mujoco(robot, model)
    normalize = import_module("mujoco").mj_normalizeQuat
    for i in range(model.nkey):
        qpos = model.key_qpos[i].copy()
        normalize(model, qpos)
        yield model.key(i).name or f"key {i}", conversion.from_configuration(qpos)


def _group_states(robot: Robot, root: Any, source: str) -> dict[str, Array]:
    postures: dict[str, Array] = {}
    known = 0
    for state in root.iterfind("group_state"):
        name = state.get("name") or "unnamed"
        q = postures.setdefault(name, robot.neutral())
        for element in state.iterfind("joint"):
            known += _set_joint(robot, q, element, source)
    if postures and not known:
        raise MismatchError(f"{source} has group states for none of the joints of robot {robot.name!r}")
    return postures


def _set_joint(robot: Robot, q: Array, element: Any, source: str) -> bool:
    """Set the entries of a joint in q; return whether the robot has the joint."""
    name, text = element.get("name"), element.get("value") or ""
    where = f"the value of joint {name!r} (line {element.sourceline})"
    try:
        values = np.array([float(word) for word in text.split()])
    except ValueError:
        values = np.array([np.nan])
    if not values.size or not np.isfinite(values).all():
        raise FileError(source, f"{where} must be finite numbers, got {text!r}")
    joint = next((joint for joint in robot.joints if joint.name == name), None)
    if joint is None:
        if len(values) == 7 and isinstance(robot.base, FloatingBase):
            chart = FreeChart(OUR_BASE, PINOCCHIO, base_turn(robot, _root_of_file(robot), source))
            q[:7] = chart.from_configuration(_with_unit_quaternion(values, where, source))
            return True
        return False
    size = joint.q.stop - joint.q.start
    if size == 1 and len(values) == 2:  # a continuous joint of Pinocchio: cosine and sine
        values = np.array([np.arctan2(values[1], values[0])])
    if len(values) != size:
        raise FileError(source, f"{where} must be {size} numbers, got {len(values)}")
    q[joint.q] = values if size != 4 else values[[3, 0, 1, 2]] / np.linalg.norm(values)
    return True


def _root_of_file(robot: Robot) -> str:
    """Return the name of the root link in the file of a robot, to which `load(axes=...)` has added another root."""
    root = robot.links[0].name
    added = (c.child for c in robot.connections if c.parent == root and c.joint.name == root)
    return next(added, root)


def _with_unit_quaternion(values: Array, where: str, source: str) -> Array:
    length = np.linalg.norm(values[3:])
    if abs(length - 1.0) > 1e-2:
        raise FileError(source, f"{where} must end with a unit quaternion, w last, got the length {length:.3g}")
    return np.concatenate([values[:3], values[3:] / length])
