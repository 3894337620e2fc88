"""Conversion of state and force vectors to and from Pinocchio, MuJoCo, Drake and ROS, with joints matched by name.

conversion = legged.conversions.mujoco(robot, model)
data.qpos[:], data.qvel[:] = conversion.to_configuration(q), conversion.to_velocity(q, v)
vdot = conversion.from_acceleration(data.qpos, data.qvel, data.qacc)

The conventions of the programs are listed in `docs/reference/conventions.md`.
"""

from legged.conversions.conversion import Conversion
from legged.conversions.postures import postures
from legged.conversions.programs import (
    JointState,
    Odometry,
    RosConversion,
    drake,
    legged,
    mujoco,
    mujoco_model,
    pinocchio,
    ros,
)

__all__ = [
    "Conversion",
    "JointState",
    "Odometry",
    "RosConversion",
    "drake",
    "legged",
    "mujoco",
    "mujoco_model",
    "pinocchio",
    "postures",
    "ros",
]
