"""Models of other programs, as far as their vectors need them. Nothing here imports these programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from legged.conversions.charts import DRAKE, MUJOCO, PINOCCHIO
from legged.conversions.conversion import Conversion
from legged.conversions.matching import TheirJoint, match
from legged.robot.robot import Robot

_MUJOCO_KINDS = ("free", "ball", "plain", "plain")  # mjtJoint: free, ball, slide, hinge
_MUJOCO_SIZES = ((7, 6), (4, 3), (1, 1), (1, 1))


def pinocchio(robot: Robot, model: Any) -> Conversion:
    """Return the conversion between a robot's vectors and those of a `pinocchio.Model` of it.

    Joints that Pinocchio takes as coupled itself (built with `mimic=True`) are left alone. Errors: `match`.
    """
    return match(robot, "Pinocchio", _of_pinocchio(model), PINOCCHIO, False, model.nq, model.nv)


def _of_pinocchio(model: Any) -> Iterator[TheirJoint]:
    for index in range(1, model.njoints):
        nq, nv, kind = model.nqs[index], model.nvs[index], model.joints[index].shortname()
        q, v = (
            slice(model.idx_qs[index], model.idx_qs[index] + nq),
            slice(model.idx_vs[index], model.idx_vs[index] + nv),
        )
        if "Mimic" not in kind:
            yield TheirJoint(model.names[index], _pinocchio_kind(kind, nq), q, v, model.parents[index] == 0)


def _pinocchio_kind(kind: str, nq: int) -> str:
    if kind.startswith("JointModelRUB") or kind == "JointModelRevoluteUnboundedUnaligned":
        return "circle"
    named = {"JointModelFreeFlyer": "free", "JointModelSpherical": "ball", "JointModelPlanar": "turning plane"}
    return named.get(kind, "plain" if nq == 1 else kind)


def mujoco(robot: Robot, model: Any) -> Conversion:
    """Return the conversion between a robot's vectors and those of a `mujoco.MjModel` of it.

    An angle is the same here and there in robots that were read from the model's own file, `ref` included. A model
    written by hand beside a URDF is another matter: its `ref` shifts its coordinates. Errors: `match`.
    """
    return match(robot, "MuJoCo", _of_mujoco(model), MUJOCO, True, model.nq, model.nv)


def _of_mujoco(model: Any) -> Iterator[TheirJoint]:
    for index in range(model.njnt):
        kind = int(model.jnt_type[index])
        q, v = int(model.jnt_qposadr[index]), int(model.jnt_dofadr[index])
        nq, nv = _MUJOCO_SIZES[kind]
        name = model.joint(index).name or f"(unnamed joint {index})"
        yield TheirJoint(name, _MUJOCO_KINDS[kind], slice(q, q + nq), slice(v, v + nv), kind == 0)


def drake(robot: Robot, plant: Any) -> Conversion:
    """Return the conversion between a robot's vectors and those of a finalised `MultibodyPlant` that holds it alone.

    Errors: `match`.
    """
    return match(robot, "Drake", _of_drake(plant), DRAKE, True, plant.num_positions(), plant.num_velocities())


def _of_drake(plant: Any) -> Iterator[TheirJoint]:
    kinds = dict.fromkeys(("revolute", "prismatic", "planar", "universal"), "plain") | {"quaternion_floating": "free"}
    for index in plant.GetJointIndices():
        joint = plant.get_joint(index)
        kind: str = joint.type_name()
        q, v = joint.position_start(), joint.velocity_start()
        slices = slice(q, q + joint.num_positions()), slice(v, v + joint.num_velocities())
        if joint.num_velocities():
            on_world = joint.parent_body().index() == plant.world_body().index()
            yield TheirJoint(joint.name(), kinds.get(kind, kind), *slices, on_world)
