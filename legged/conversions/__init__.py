"""State and force vectors to and from Pinocchio, MuJoCo, Drake and ROS, by the names of joints.

their = legged.conversions.mujoco(robot, model)
data.qpos[:], data.qvel[:] = their.to_configuration(q), their.to_velocity(q, v)
vdot = their.from_acceleration(data.qpos, data.qvel, data.qacc)

The differences between the programs stand in `docs/conventions.md`.
"""

from legged.conversions.conversion import Conversion
from legged.conversions.programs import drake, legged, mujoco, mujoco_model, pinocchio
from legged.conversions.ros import JointState, Odometry, RosConversion, ros

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
    "ros",
]
