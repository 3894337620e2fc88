"""Pendulum and acrobot, with the equations, observations and rewards of Gymnasium's Pendulum-v1 and Acrobot-v1."""

from __future__ import annotations

from typing import Any

import numpy as np

from legged.checked import checked
from legged.contact.rigid import Rigid
from legged.dynamics.kinematics import center_of_mass, point_positions
from legged.environments import terms
from legged.environments.state import State
from legged.environments.task import Memory, Observation, Reward, Task
from legged.errors import DefinitionError
from legged.robot.base import FixedBase
from legged.robot.construction.builder import RobotBuilder
from legged.robot.inertia import Inertia
from legged.robot.joint import Revolute
from legged.robot.link import Link
from legged.robot.robot import Robot

Array = np.ndarray
_WITHOUT_CONTACTS: dict[str, Any] = {
    "ground": Rigid(pairs=()),
    "height": 1.0,
    "kp": 0.0,
    "kd": 0.0,
    "torque_control": True,
    "action_limit": 1.0,
}
"""Fields of tasks of robots without contacts whose actions are torques."""


@checked
def pendulum(robot: Robot | None = None, **changes: Any) -> Task:
    """Return the task of swinging up a pendulum, with the reward of Pendulum-v1: 0 is the best.

    An action is a torque of up to 2 N m in units of 2 N m. Actor: (cos, sin) of the angle from the upright position,
    and its rate. Pendulum-v1 limits the rate to 8 rad/s, which it hardly exceeds.

    Args:
        robot: A robot with a fixed base and one revolute joint; by default a rod of 1 kg and 1 m, with g = 10 m/s^2.
        changes: Other fields of the task, as in `Task.changed`.

    Raises:
        DefinitionError: The robot has another base or other joints.
    """
    robot = _pendulum() if robot is None else _with_joints(robot, 1)
    up = _upright(robot)

    def first(s: State) -> Array:
        return s.random.uniform(np.array([up - np.pi, -1.0]), np.array([up + np.pi, 1.0]), 2)

    task = Task(
        robot=robot,
        posture=np.zeros(1),
        action_scale=2.0,
        **_WITHOUT_CONTACTS,
        time_step=0.0125,
        substeps=4,
        episode=10.0,
        observations={
            "actor": {
                "angle": Observation(terms.angle_vector(np.array([up]))),
                "rate": Observation(terms.joint_velocities),
            }
        },
        rewards={"pendulum_cost": Reward(terms.pendulum_cost(up), -20.0)},  # per second: one per step of 0.05 s
        terminations={},
        start=lambda s: (s.memory["before"][:1], s.memory["before"][1:]),
        memory={"before": Memory(first, lambda s: np.concatenate([s.q, s.v]), np.zeros(2))},
    )
    return task.changed(**changes) if changes else task


@checked
def acrobot(robot: Robot | None = None, tip: tuple[str, Array] | None = None, **changes: Any) -> Task:
    """Return the task of swinging the tip of two links above the first one, with the reward of Acrobot-v1.

    A control step costs 1 until the tip is above its goal. Only the second joint has a motor: the second action is a
    torque of up to 1 N m, and the first one has no effect. Actor: cosines and sines of the joint positions from
    hanging, then their rates.

    Args:
        robot: A robot with a fixed base and two revolute joints; by default that of Acrobot-v1.
        tip: (link, position (3,), [m], link axes) of the tip; by default the last contact point of the robot.
        changes: Other fields of the task, as in `Task.changed`.

    Raises:
        DefinitionError: The robot has another base or other joints, or no tip.
    """
    robot = _acrobot() if robot is None else _with_joints(robot, 2)
    if tip is None and not robot.contacts:
        raise DefinitionError(f"robot {robot.name!r} has no contact point: give its tip=(link, position)")
    last = tip or (robot.contacts[-1].link, robot.contacts[-1].position)
    origins = [(joint.child, np.zeros(3)) for joint in robot.joints]
    first, second = point_positions(robot, robot.neutral(), origins)
    goal = float(np.linalg.norm(second - first))

    def height(s: State) -> Any:
        return point_positions(s.task.robot, s.q, [last])[0][2] - first[2]

    def start(s: State) -> tuple[Array, Array]:
        return s.random.uniform(-0.1, 0.1, 2), s.random.uniform(-0.1, 0.1, 2)

    task = Task(
        robot=robot,
        posture=np.zeros(2),
        action_scale=np.array([0.0, 1.0]),
        **_WITHOUT_CONTACTS,
        time_step=0.01,
        substeps=20,
        episode=100.0,
        observations={
            "actor": {
                "angles": Observation(terms.angle_vector(np.zeros(2))),
                "rates": Observation(terms.joint_velocities),
            }
        },
        rewards={"below": Reward(terms.below(height, goal), -5.0)},  # per second: one per step of 0.2 s
        terminations={"above": terms.above(height, goal)},
        start=start,
    )
    return task.changed(**changes) if changes else task


def _pendulum() -> Robot:
    rod = Inertia(1.0, np.array([0.0, 0.0, 0.5]), np.diag([1.0, 1.0, 0.0]) / 12.0)
    builder = RobotBuilder("pendulum", Link("support"), base=FixedBase(), gravity=(0.0, 0.0, -10.0))
    return builder.add(Revolute("swing", "y"), Link("rod", rod), to="support").build()


def _acrobot() -> Robot:
    link = Inertia(1.0, np.array([0.0, 0.0, -0.5]), np.diag([1.0, 1.0, 0.0]))
    builder = RobotBuilder("acrobot", Link("support"), base=FixedBase(), gravity=(0.0, 0.0, -9.8))
    builder.add(Revolute("shoulder", "-y"), Link("upper", link), to="support")
    lower = Link("lower", link, {"tip": (0.0, 0.0, -1.0)})
    return builder.add(Revolute("elbow", "-y"), lower, to="upper", at=(0.0, 0.0, -1.0)).build()


def _with_joints(robot: Robot, joints: int) -> Robot:
    """Return the robot if it has a fixed base and as many joints with one coordinate each."""
    if robot.base.nq or robot.nj != joints or robot.nq != joints:
        raise DefinitionError(f"robot {robot.name!r} needs a fixed base and {joints} joints with one coordinate each")
    return robot


def _upright(robot: Robot) -> float:
    """Return the joint position with the largest height of the center of mass, [rad]: C + A cos(q - q_up)."""
    at_zero, quarter, half = (center_of_mass(robot, np.array([q]))[2] for q in (0.0, 0.5 * np.pi, np.pi))
    middle = 0.5 * (at_zero + half)
    return float(np.arctan2(quarter - middle, at_zero - middle))
