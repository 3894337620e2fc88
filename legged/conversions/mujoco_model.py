"""MuJoCo's model of a robot of ours."""

from __future__ import annotations

from importlib import import_module
from typing import Any
from xml.etree import ElementTree

from legged.errors import MismatchError, MissingError
from legged.files.mjcf_export import mjcf_of
from legged.files.mujoco_log import kept_warnings
from legged.robot.robot import Robot


def mujoco_model(robot: Robot) -> Any:
    """Return the `mujoco.MjModel` of a robot, as `save_mjcf` writes it.

    Raises:
        MissingError: MuJoCo is not installed.
        MismatchError: It refuses the robot, such as one with inertias that no body has.
        DefinitionError: MJCF has no word for something, see `save_mjcf`.
    """
    try:
        mujoco: Any = import_module("mujoco")
    except ImportError as error:
        raise MissingError("MuJoCo is not installed: pip install 'legged[mujoco]'") from error
    text = ElementTree.tostring(mjcf_of(robot), encoding="unicode")
    with kept_warnings(mujoco):
        try:
            return mujoco.MjModel.from_xml_string(text)
        except ValueError as error:
            words = " ".join(str(error).split())
            raise MismatchError(f"MuJoCo refuses robot {robot.name!r}: {words}") from error
