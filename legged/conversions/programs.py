"""Conversions for models of Pinocchio, MuJoCo and Drake, for other robots of this package, and for messages of ROS.

Only `mujoco_model` imports the other program.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np

from legged.checked import checked
from legged.conversions.charts import DRAKE, MUJOCO, OUR_BASE, OUR_JOINT, PINOCCHIO, ROS, chart_of
from legged.conversions.conversion import Conversion, OtherJoint, match_joints
from legged.errors import MismatchError, MissingError, ShapeError
from legged.files.export_description import base_names, own_stage_names
from legged.files.mjcf import roots
from legged.files.mjcf.export import to_mjcf
from legged.files.mjcf.reader import body_names, captured_warnings, joint_names
from legged.robot.base import FloatingBase, PlanarBase
from legged.robot.robot import Robot
from legged.robot.state import State
from legged.spatial import Array


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
            bodies = (frame for frame in model.frames if frame.parentJoint == index and frame.type.name == "BODY")
            link = next((body.name for body in bodies), "") if order else ""
            on_world = model.parents[index] == 0
            yield OtherJoint(model.names[index], _pinocchio_kind(kind, nq), q, v, order, on_world, link=link)


def _pinocchio_kind(kind: str, nq: int) -> str:
    if kind.startswith("JointModelRUB") or kind == "JointModelRevoluteUnboundedUnaligned":
        return "circle"
    named = {"JointModelFreeFlyer": "free", "JointModelSpherical": "ball", "JointModelPlanar": "turning plane"}
    return named.get(kind, "plain" if nq == 1 else kind)


@checked
def mujoco(robot: Robot, model: Any) -> Conversion:
    """Return the conversion between the vectors of a robot and those of its `mujoco.MjModel`.

    Joint positions are equal if the robot was read from the file of the model, `ref` included. In a model written by
    hand for the same robot, `ref` offsets the joint positions. A base may be written as slides and hinges, see
    `legged.load`. Other moving bodies of the model keep its `qpos0`. Errors as in `match_joints`.
    """
    names = joint_names(model)
    own = _own_trees(robot, model, names)
    conversion = match_joints(robot, "MuJoCo", _of_mujoco(robot, model, names, own), model.nq, model.nv, w_first=True)
    is_alone = all(int(model.body_rootid[body]) in own for body in model.jnt_bodyid)
    return conversion if is_alone else replace(conversion, rest=model.qpos0.copy())


def _own_trees(robot: Robot, model: Any, names: list[str]) -> set[int]:
    """Return the bodies on the world whose trees hold the robot: that of its base link, and those of its joints."""
    joints = {joint.name for joint in (*robot.joints, *robot.followers)}
    joints |= {name for joint in robot.joints for name in own_stage_names(joint.definition)}
    trees = {int(model.body_rootid[i]) for i, name in enumerate(body_names(model)) if name == robot.links[0].name}
    of_joints = zip(names, model.jnt_bodyid, strict=True)
    trees |= {int(model.body_rootid[body]) for name, body in of_joints if name in joints}
    trees -= {0}
    return trees or {int(model.body_rootid[body]) for body in model.jnt_bodyid}


def _of_mujoco(robot: Robot, model: Any, names: list[str], own: set[int]) -> Iterator[OtherJoint]:
    chain = None
    for body in own if isinstance(robot.base, FloatingBase | PlanarBase) else ():
        chain = roots.root_chain(model, body)
        if chain is not None and chain.kind == robot.base.kind:
            first, last = chain.joints[0], chain.joints[-1]
            q, v = int(model.jnt_qposadr[first]), int(model.jnt_dofadr[first])
            nq, nv = _MUJOCO_SIZES[int(model.jnt_type[last])]
            end = int(model.jnt_qposadr[last]) + nq, int(model.jnt_dofadr[last]) + nv
            slices = slice(q, end[0]), slice(v, end[1])
            yield OtherJoint("the base", "chain", *slices, chart=chart_of(chain), link=body_names(model)[body])
            break
        chain = None
    for index in range(model.njnt):
        if int(model.body_rootid[model.jnt_bodyid[index]]) not in own or (chain and index in chain.joints):
            continue
        kind = int(model.jnt_type[index])
        q, v = int(model.jnt_qposadr[index]), int(model.jnt_dofadr[index])
        nq, nv = _MUJOCO_SIZES[kind]
        is_free = kind == 0
        order = MUJOCO if is_free else None
        link = body_names(model)[model.jnt_bodyid[index]] if is_free else ""
        slices = slice(q, q + nq), slice(v, v + nv)
        yield OtherJoint(names[index], _MUJOCO_KINDS[kind], *slices, order, is_free, link=link)


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
            link = joint.child_body().name() if order else ""
            yield OtherJoint(joint.name(), "plain" if kind in plain else kind, *slices, order, on_world, link=link)


@checked
def legged(robot: Robot, other: Robot) -> Conversion:
    """Return the conversion between the vectors of two robots of this package, such as one loaded in two joint orders.

    A robot that was exported and loaded again has chains in place of joints of several degrees of freedom. Errors as
    in `match_joints`.
    """
    return match_joints(robot, f"robot {other.name!r}", _of_ours(other), other.nq, other.nv, w_first=True)


def _of_ours(robot: Robot) -> Iterator[OtherJoint]:
    if isinstance(robot.base, FloatingBase):
        yield OtherJoint("the base", "free", slice(0, 7), slice(0, 6), OUR_BASE, True, link=robot.links[0].name)
    else:
        for i, name in enumerate(base_names(robot.base)):
            yield OtherJoint(name, "plain", slice(i, i + 1), slice(i, i + 1))
    for joint in robot.joints:
        kind = {(4, 3): "ball", (7, 6): "free"}.get((joint.nq, joint.nv), "plain")
        yield OtherJoint(joint.name, kind, joint.q, joint.v, OUR_JOINT if kind == "free" else None)


class JointState(NamedTuple):
    """Content of a `sensor_msgs/JointState`, with the same field names.

    Attributes:
        name: Names of the n joints.
        position: Joint positions, (..., n), [rad] or [m].
        velocity: Joint velocities, (..., n), [rad/s] or [m/s].
        effort: Joint torques or forces, (..., n), [N m] or [N].
    """

    name: tuple[str, ...]
    position: Array
    velocity: Array
    effort: Array


class Odometry(NamedTuple):
    """Content of a `nav_msgs/Odometry`: pose of the base in the world, twist in base axes.

    Attributes:
        position: Position of the base origin, (..., 3), [m], world axes.
        orientation: Unit quaternion x, y, z, w, (..., 4), base axes to world axes.
        linear: Velocity of the base origin, (..., 3), [m/s], base axes.
        angular: Angular velocity, (..., 3), [rad/s], base axes.
    """

    position: Array
    orientation: Array
    linear: Array
    angular: Array


@dataclass(frozen=True, eq=False)
class RosConversion:
    """Conversion of the states of a robot to and from ROS messages, or objects with the same fields.

    Attributes:
        vectors: Conversion of vectors: pose of the base (position, quaternion x, y, z, w) or twist (linear, angular),
            followed by the joints in the order of `names`.
        names: Names of the joints.
    """

    vectors: Conversion
    names: tuple[str, ...]

    @property
    def _base(self) -> tuple[int, int]:
        return self.vectors.nq - len(self.names), self.vectors.nv - len(self.names)

    def joint_state(self, q: Any, v: Any, tau: Any = None) -> JointState:
        """Return the joint state of q, (..., nq), v, (..., nv), and tau, (..., nv); None for zero."""
        nq, nv = self._base
        effort = np.zeros_like(v) if tau is None else tau
        return JointState(
            self.names,
            self.vectors.to_configuration(q)[..., nq:],
            self.vectors.to_velocity(q, v)[..., nv:],
            self.vectors.to_force(q, effort)[..., nv:],
        )

    def odometry(self, q: Any, v: Any) -> Odometry:
        """Return the odometry of q, (..., nq), and v, (..., nv); raise MismatchError if the base does not float."""
        if self._base == (0, 0):
            raise MismatchError(f"robot {self.vectors.robot.name!r} has no floating base, and therefore no odometry")
        pose, twist = self.vectors.to_configuration(q), self.vectors.to_velocity(q, v)
        return Odometry(pose[..., :3], pose[..., 3:7], twist[..., :3], twist[..., 3:6])

    def state(self, joints: Any, odometry: Any = None) -> State:
        """Return the state (q, v) of a joint state, and of the odometry of a floating base.

        Args:
            joints: `JointState`, a message, or an object with `name`, `position` and `velocity`, in any order of names.
            odometry: `Odometry`, or (position, orientation x, y, z, w, linear, angular) with the axes of `Odometry`.

        Raises:
            MismatchError: Missing or unknown joints, or no odometry for a floating base.
        """
        order = self._order(joints.name)
        position, velocity = (_entries(joints, field, order) for field in ("position", "velocity"))
        if self._base == (0, 0):
            return State(self.vectors.from_configuration(position), self.vectors.from_velocity(position, velocity))
        if odometry is None:
            raise MismatchError(f"robot {self.vectors.robot.name!r} has a floating base; pass its odometry too")
        at, orientation, linear, angular = (np.asarray(x, float) for x in odometry)
        pose = np.concatenate([at, orientation, position], axis=-1)
        twist = np.concatenate([linear, angular, velocity], axis=-1)
        return State(self.vectors.from_configuration(pose), self.vectors.from_velocity(pose, twist))

    def forces(self, q: Any, joints: Any) -> Array:
        """Return generalized forces, (..., nv), of the efforts in a joint state at our q; zero for the base."""
        effort = _entries(joints, "effort", self._order(joints.name))
        base = np.zeros((*effort.shape[:-1], self._base[1]))
        return self.vectors.from_force(self.vectors.to_configuration(q), np.concatenate([base, effort], axis=-1))

    def _order(self, given: Sequence[str]) -> list[int]:
        given = list(given)
        missing, extra = sorted(set(self.names) - set(given)), sorted(set(given) - set(self.names))
        if missing or extra or len(given) != len(self.names):
            twice = sorted({name for name in given if given.count(name) > 1})
            differences = (("lacks", missing), ("has unknown joints", extra), ("has twice", twice))
            words = "; it ".join(f"{what} {', '.join(map(repr, names))}" for what, names in differences if names)
            raise MismatchError(f"the joint state {words}")
        return [given.index(name) for name in self.names]


def _entries(joints: Any, field: str, order: list[int]) -> Array:
    values = np.asarray(getattr(joints, field), float)
    if values.ndim == 0 or values.shape[-1] != len(order):
        raise ShapeError(f"the joint state has {len(order)} names and a {field} of shape {values.shape}; fill it in")
    return values[..., order]


@checked
def ros(robot: Robot, names: Sequence[str] | None = None) -> RosConversion:
    """Return the conversion between the vectors of a robot and ROS messages.

    Args:
        robot: The robot.
        names: Joints in the order of the messages to write. None: the order of the robot. A joint of several degrees
            of freedom has the names of its stages, as in an exported URDF.

    Raises:
        UnknownNameError, MismatchError: Names that are not exactly the joints of the robot, or a quaternion or free
            joint, which a joint state cannot represent.
    """
    own = [*base_names(robot.base)] if not isinstance(robot.base, FloatingBase) else []
    own += [name for joint in robot.joints for name in own_stage_names(joint.definition)]
    chosen = own if names is None else list(names)
    floats = isinstance(robot.base, FloatingBase)
    nq, nv = (7, 6) if floats else (0, 0)
    theirs = [OtherJoint("the odometry", "free", slice(0, 7), slice(0, 6), ROS, True)] if floats else []
    theirs += [
        OtherJoint(name, "plain", slice(nq + i, nq + i + 1), slice(nv + i, nv + i + 1)) for i, name in enumerate(chosen)
    ]
    vectors = match_joints(robot, "the joint state", theirs, nq + len(chosen), nv + len(chosen), w_first=False)
    return RosConversion(vectors, tuple(chosen))
