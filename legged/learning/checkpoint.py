"""Checkpoints of a training: files from which it goes on as if it had not been interrupted."""

from __future__ import annotations

import hashlib
import io
import platform
import warnings
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from legged.environments.task import Task
from legged.errors import ArgumentError, FileError
from legged.learning.ppo import Settings, torch
from legged.output import output_file, replaced
from legged.version import __version__

FORMAT = "legged training 2"
_PARTS = ("task", "robot", "settings", "num_envs", "seed", "dtype", "versions", "learner", "curve")


def task_record(task: Task) -> dict[str, Any]:
    """Return names, weights, gains and ranges of a task, by which a checkpoint recognizes its task."""
    return {
        "observations": {group: list(terms) for group, terms in task.observations.items()},
        "rewards": {name: float(reward.weight) for name, reward in task.rewards.items()},
        "terminations": list(task.terminations),
        "memory": list(task.memory),
        "variations": {name: [x.low, x.high] for name, x in task.variations.items()},
        "servos": [np.asarray(x).tolist() for x in (task.posture, task.kp, task.kd, task.action_scale)],
        "times": [task.time_step, task.substeps, task.episode],
        "command": task.command_size,
    }


def robot_record(task: Task) -> dict[str, str]:
    """Return the name of the robot of a task, and a digest of its parameters, joints and links."""
    robot = task.robot
    digest = hashlib.sha256(repr(([x.name for x in robot.links], [x.name for x in robot.joints])).encode())
    for name, value in sorted(robot.parameters().items()):
        digest.update(name.encode() + np.ascontiguousarray(value, dtype=float).tobytes())
    return {"name": robot.name, "digest": digest.hexdigest()[:16]}


def write_checkpoint(path: str | Path, task: Task, settings: Settings, content: Mapping[str, Any]) -> Path:
    """Write a checkpoint, and return its path; a file that is there is replaced when the new one is complete.

    Args:
        path: The file, `.pt`. task: The task. settings: Numbers of the learner.
        content: `num_envs`, `seed`, `dtype`, the state of the `learner`, and the figures of each iteration, `curve`.
    """
    versions = {"legged": __version__, "torch": str(torch.__version__), "numpy": np.__version__}
    versions["python"] = platform.python_version()
    whole = {"format": FORMAT, "task": task_record(task), "robot": robot_record(task), "versions": versions, **content}
    whole["settings"] = {**asdict(settings), "hidden": list(settings.hidden)}
    path = output_file(path, ".pt")
    with replaced(path) as draft:
        torch.save(whole, draft)
    return path


def read_checkpoint(path: str | Path) -> dict[str, Any]:
    """Return the content of a checkpoint, with `settings` as `Settings`. The file cannot run code.

    Raises:
        FileError: It is missing, or no checkpoint of a training.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise FileError(str(path), f"cannot be read: {error.strerror or error}") from error
    try:
        with warnings.catch_warnings(action="ignore"):  # about files of other programs, which are refused
            content = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except Exception as error:  # damaged files raise errors of many types
        raise FileError(str(path), "is not a checkpoint of `legged train`, or is damaged") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT or any(x not in content for x in _PARTS):
        raise FileError(str(path), f"is not a checkpoint of `legged train` in the format {FORMAT!r}")
    known = {field.name for field in fields(Settings)}
    if set(content["settings"]) != known:
        raise FileError(str(path), "has settings of another release of legged; start the training anew")
    content["settings"] = Settings(**{**content["settings"], "hidden": tuple(content["settings"]["hidden"])})
    return content


def check_task(path: str | Path, content: Mapping[str, Any], task: Task) -> None:
    """Raise an `ArgumentError` that names the difference if a checkpoint is one of another robot or task.

    Args:
        path: The file, for the message. content: Of `read_checkpoint`. task: The task.
    """
    if content["robot"] != (robot := robot_record(task)):
        names = f"{content['robot']['name']!r}, not of {robot['name']!r}"
        same = f"{robot['name']!r} with other parameters"
        words = same if content["robot"]["name"] == robot["name"] else names
        raise ArgumentError(f"{path} is a checkpoint of robot {words}; give the robot with which training began")
    own = task_record(task)
    if other := [name for name, value in own.items() if content["task"].get(name) != value]:
        raise ArgumentError(f"{path} is a checkpoint of a task with other {', '.join(other)}; give the same task")
