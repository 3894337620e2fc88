"""The velocity task of Go2 as files for `peer`: an MJCF with feet, ground and servos, and the numbers of the task."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import mujoco
import numpy as np

import legged
from legged.environments import Task
from legged.environments.tasks.common import Stance
from legged.ground.height_map import HeightMap
from tests.oracles.programs.mujoco_floor import on_floor


def write_scene(task: Task, folder: Path) -> None:
    """Write scene.xml, task.json and, for a height map, heights.npy.

    Args:
        task: The task. folder: An existing folder.
    """
    robot, terrain = task.robot, task.ground.terrain
    model = on_floor(robot, task.ground.friction, task.time_step)
    mujoco.mj_saveLastXML(str(folder / "scene.xml"), model)
    tree = ElementTree.parse(folder / "scene.xml")
    root = tree.getroot()
    for geom in root.iter("geom"):  # contacts with MuJoCo's own parameters
        for name in ("solref", "solimp"):
            geom.attrib.pop(name, None)
    actuators = ElementTree.SubElement(root, "actuator")
    for joint, kp, kd in zip(robot.joints, task.kp, task.kd, strict=True):
        gains = {"kp": str(kp), "kv": str(kd)}
        effort = float(np.max(joint.definition.physics.effort))
        limits = {"forcerange": f"{-effort} {effort}"} if np.isfinite(effort) else {}
        ElementTree.SubElement(actuators, "position", {"name": joint.name, "joint": joint.name, **gains, **limits})
    stance = Stance.of(robot)
    gait, high = stance.gait(), [1.2 * stance.speed, 0.5 * stance.speed, 1.5]
    numbers = {
        "gait": {
            "period": gait.period,
            "touchdowns": list(gait.touchdowns),
            "duty": gait.duty,
            "height": 0.25 * stance.height,
        },
        "low": [-0.8 * stance.speed, -high[1], -high[2]],
        "high": high,
        "posture": task.posture.tolist(),
        "height": task.height,
        "action_scale": task.action_scale.tolist(),
        "substeps": task.substeps,
        "period": task.period,
        "episode_steps": task.episode_steps,
        "feet": [f"foot{k}" for k in range(len(robot.contacts))],
        "weights": {name: reward.weight for name, reward in task.rewards.items()},
    }
    if isinstance(terrain, HeightMap):
        _add_terrain(root, terrain, folder, numbers)
    tree.write(folder / "scene.xml")
    (folder / "task.json").write_text(json.dumps(numbers))


def _add_terrain(root: ElementTree.Element, terrain: HeightMap, folder: Path, numbers: dict[str, object]) -> None:
    """Replace the plane by a height field, and write its heights."""
    heights, (n, m) = terrain.heights, terrain.heights.shape
    low, high, spacing = float(heights.min()), float(heights.max()), terrain.spacing
    half = 0.5 * spacing * (n - 1), 0.5 * spacing * (m - 1)
    asset = ElementTree.SubElement(root, "asset")
    size = f"{half[0]} {half[1]} {high - low} 1"
    ElementTree.SubElement(asset, "hfield", {"name": "terrain", "nrow": str(m), "ncol": str(n), "size": size})
    for geom in root.iter("geom"):
        if geom.get("type") == "plane":
            geom.attrib.pop("size")
            middle = f"{terrain.origin[0] + half[0]} {terrain.origin[1] + half[1]} {low}"
            geom.attrib.update({"type": "hfield", "hfield": "terrain", "pos": middle})
    np.save(folder / "heights.npy", heights)
    numbers |= {"spacing": spacing, "origin": list(terrain.origin), "side": 8.0, "levels": 10, "columns": 12}


def go2() -> legged.Robot:
    """Return Go2 of the package example-robot-data."""
    from benchmarks.harness.subjects import robot_file

    return legged.load(robot_file("go2_description/urdf/go2.urdf"))
