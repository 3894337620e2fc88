"""Conversions for models of Pinocchio, MuJoCo and Drake, and for other robots of this package.

Only `mujoco_model` imports the other program.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any
from xml.etree import ElementTree

from legged.checked import checked
from legged.conversions.charts import DRAKE, MUJOCO, OUR_BASE, OUR_JOINT, PINOCCHIO
from legged.conversions.conversion import Conversion, OtherJoint, match_joints
from legged.errors import MismatchError, MissingError
from legged.files.export_description import base_names
from legged.files.mjcf.export import to_mjcf
from legged.files.mjcf.reader import captured_warnings
from legged.robot.robot import Robot


@checked
def mujoco_model(robot: Robot) -> Any:
    """Return the `mujoco.MjModel` of a robot, compiled from the MJCF that `save_mjcf` writes.

    Raises:
        MissingError: MuJoCo is not installed.
        MismatchError: MuJoCo rejects the robot, for example because of physically inconsistent inertias.
        DefinitionError: MJCF cannot represent the robot; see `save_mjcf`.
    """
    try:
        mujoco: Any = import_module("mujoco")
    except ImportError as error:
        raise MissingError("MuJoCo is not installed: pip install 'legged[mujoco]'") from error
    text = ElementTree.tostring(to_mjcf(robot), encoding="unicode")
    with captured_warnings(mujoco):
        try:
            return mujoco.MjModel.from_xml_string(text)
        except ValueError as error:
            words = " ".join(str(error).split())
            raise MismatchError(f"MuJoCo rejects robot {robot.name!r}: {words}") from error


_MUJOCO_KINDS = ("free", "ball", "plain", "plain")  # mjtJoint: free, ball, slide, hinge
_MUJOCO_SIZES = ((7, 6), (4, 3), (1, 1), (1, 1))


@checked
def pinocchio(robot: Robot, model: Any) -> Conversion:
    """Return the conversion between the vectors of a robot and those of its `pinocchio.Model`.

    Mimic joints that Pinocchio couples itself (`mimic=True`) are left out. Errors as in `match_joints`.
    """
    return match_joints(robot, "Pinocchio", _of_pinocchio(model), model.nq, model.nv, w_first=False)


def _of_pinocchio(model: Any) -> Iterator[OtherJoint]:
    for index in range(1, model.njoints):
        nq, nv, kind = model.nqs[index], model.nvs[index], model.joints[index].shortname()
        q, v = (
            slice(model.idx_qs[index], model.idx_qs[index] + nq),
            slice(model.idx_vs[index], model.idx_vs[index] + nv),
        )
        if "Mimic" not in kind:
            order = PINOCCHIO if kind == "JointModelFreeFlyer" else None
            yield OtherJoint(model.names[index], _pinocchio_kind(kind, nq), q, v, order, model.parents[index] == 0)


def _pinocchio_kind(kind: str, nq: int) -> str:
    if kind.startswith("JointModelRUB") or kind == "JointModelRevoluteUnboundedUnaligned":
        return "circle"
    named = {"JointModelFreeFlyer": "free", "JointModelSpherical": "ball", "JointModelPlanar": "turning plane"}
    return named.get(kind, "plain" if nq == 1 else kind)


@checked
def mujoco(robot: Robot, model: Any) -> Conversion:
    """Return the conversion between the vectors of a robot and those of its `mujoco.MjModel`.

    Joint positions are equal if the robot was read from the file of the model, `ref` included. In a model written by
    hand for the same robot, `ref` offsets the joint positions. Errors as in `match_joints`.
    """
    return match_joints(robot, "MuJoCo", _of_mujoco(model), model.nq, model.nv, w_first=True)


def _of_mujoco(model: Any) -> Iterator[OtherJoint]:
    for index in range(model.njnt):
        kind = int(model.jnt_type[index])
        q, v = int(model.jnt_qposadr[index]), int(model.jnt_dofadr[index])
        nq, nv = _MUJOCO_SIZES[kind]
        name = model.joint(index).name or f"(unnamed joint {index})"
        is_free = kind == 0
        order = MUJOCO if is_free else None
        yield OtherJoint(name, _MUJOCO_KINDS[kind], slice(q, q + nq), slice(v, v + nv), order, is_free)


@checked
def drake(robot: Robot, plant: Any) -> Conversion:
    """Return the conversion between the vectors of a robot and those of a finalized `MultibodyPlant` of it alone.

    Errors as in `match_joints`.
    """
    return match_joints(robot, "Drake", _of_drake(plant), plant.num_positions(), plant.num_velocities(), w_first=True)


def _of_drake(plant: Any) -> Iterator[OtherJoint]:
    plain = ("revolute", "prismatic", "screw", "planar", "universal")
    for index in plant.GetJointIndices():
        joint = plant.get_joint(index)
        kind: str = joint.type_name()
        q, v = joint.position_start(), joint.velocity_start()
        slices = slice(q, q + joint.num_positions()), slice(v, v + joint.num_velocities())
        if joint.num_velocities():
            order = DRAKE if kind == "quaternion_floating" else None
            on_world = joint.parent_body().index() == plant.world_body().index()
            yield OtherJoint(joint.name(), "plain" if kind in plain else kind, *slices, order, on_world)


@checked
def legged(robot: Robot, other: Robot) -> Conversion:
    """Return the conversion between the vectors of two robots of this package, such as one loaded in two joint orders.

    A robot that was exported and loaded again has chains in place of joints of several degrees of freedom. Errors as
    in `match_joints`.
    """
    return match_joints(robot, f"robot {other.name!r}", _of_ours(other), other.nq, other.nv, w_first=True)


def _of_ours(robot: Robot) -> Iterator[OtherJoint]:
    if robot.base.kind == "floating":
        yield OtherJoint("the base", "free", slice(0, 7), slice(0, 6), OUR_BASE, True)
    else:
        for i, name in enumerate(base_names(robot.base)):
            yield OtherJoint(name, "plain", slice(i, i + 1), slice(i, i + 1))
    for joint in robot.joints:
        kind = {(4, 3): "ball", (7, 6): "free"}.get((joint.nq, joint.nv), "plain")
        yield OtherJoint(joint.name, kind, joint.q, joint.v, OUR_JOINT if kind == "free" else None)
