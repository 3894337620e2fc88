"""Terms of rewards; each is a function of the `State` of one member, or returns one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from legged.algorithms.levenberg_marquardt import joint_limits
from legged.arguments import whole
from legged.dynamics.kinematics import link_poses, point_positions
from legged.environments.state import State
from legged.environments.terms.observations import joint_positions
from legged.environments.terms.parts import heading_velocity
from legged.errors import ArgumentError
from legged.robot.robot import Robot

Array = np.ndarray


def track_linear_velocity(deviation: float = 0.5) -> Callable[[State], Any]:
    """Return a reward: exp(-|e|^2 / deviation^2) with e, the error of the horizontal velocity in heading axes, [m/s].

    Args:
        deviation: [m/s].

    Formula: exp(-|c_xy - v_xy|^2 / s^2)
    Peers: `track_lin_vel_xy_yaw_frame_exp`, `track_lin_vel_exp`
    """

    def reward(s: State) -> Any:
        e = s.command[:2] - heading_velocity(s)
        return np.exp((e @ e) * (-1.0 / deviation**2))

    return reward


def track_yaw_rate(deviation: float = 0.5) -> Callable[[State], Any]:
    """Return a reward: exp(-e^2 / deviation^2) with e, the error of the angular velocity about the vertical, [rad/s].

    Args:
        deviation: [rad/s].

    Formula: exp(-(c_w - omega_z)^2 / s^2)
    Peers: `track_ang_vel_z_world_exp`, `track_ang_vel_exp`
    """

    def reward(s: State) -> Any:
        e = s.command[2] - s.rotation[2] @ s.angular_velocity
        return np.exp(e * e * (-1.0 / deviation**2))

    return reward


def linear_velocity_error(s: State) -> Any:
    """Return the magnitude of the error of the horizontal velocity in heading axes, [m/s]: a penalty.

    Its slope is one however large the error is, whereas `track_linear_velocity` is nearly flat beyond an error of twice
    its deviation: without this penalty, robots may keep standing for commands far from zero.

    Formula: |c_xy - v_xy|
    """
    e = s.command[:2] - heading_velocity(s)
    return np.sqrt(e @ e + 1e-12)


def yaw_rate_error(s: State) -> Any:
    """Return the magnitude of the error of the angular velocity about the vertical, [rad/s]: a penalty.

    Its slope is one however large the error is; see `linear_velocity_error`.

    Formula: |c_w - omega_z|
    """
    return np.abs(s.command[2] - s.rotation[2] @ s.angular_velocity)


def vertical_velocity(s: State) -> Any:
    """Return the square of the vertical velocity of the base, [m^2/s^2], base axes.

    Formula: v_z^2
    Peers: `lin_vel_z_l2`, -
    """
    return s.linear_velocity[2] ** 2


def roll_and_pitch_rates(s: State) -> Any:
    """Return the sum of squares of the angular velocities about the axes x and y of the base, [rad^2/s^2].

    Formula: omega_x^2 + omega_y^2
    Peers: `ang_vel_xy_l2`, -
    """
    return s.angular_velocity[:2] @ s.angular_velocity[:2]


def tilt(s: State) -> Any:
    """Return the squared sine of the angle between the axis z of the base and the vertical, dimensionless.

    Formula: g_x^2 + g_y^2
    Peers: `flat_orientation_l2`, `flat_orientation_l2`
    """
    return s.projected_gravity[:2] @ s.projected_gravity[:2]


def height_error(height: float) -> Callable[[State], Any]:
    """Return a penalty: the square of the error of the height of the base over the terrain, [m^2].

    Args:
        height: [m].

    Formula: (z - h - height)^2
    Peers: `base_height_l2`, -
    """
    return lambda s: (s.height - height) ** 2


def torques(s: State) -> Any:
    """Return the sum of squares of the torques, [N^2 m^2].

    Formula: sum tau^2
    Peers: `joint_torques_l2`, `joint_torques_l2`
    """
    return s.torques @ s.torques


def power(s: State) -> Any:
    """Return the sum of the magnitudes of the mechanical powers of the joints, [W].

    Formula: sum abs(tau qd)
    Peers: -, `electrical_power_cost`
    """
    return np.abs(s.torques * s.joint_velocities).sum()


def joint_accelerations(s: State) -> Any:
    """Return the sum of squares of the joint accelerations, [rad^2/s^4].

    Formula: sum qdd^2
    Peers: `joint_acc_l2`, `joint_acc_l2`
    """
    return s.joint_accelerations @ s.joint_accelerations


def action_rate(s: State) -> Any:
    """Return the sum of squares of the change of the action since the last control step, dimensionless.

    Formula: sum (a - a_last)^2
    Peers: `action_rate_l2`, `action_rate_l2`
    """
    change = s.action - s.last_action
    return change @ change


def posture_error(s: State) -> Any:
    """Return the sum of squares of the joint positions relative to the posture, [rad^2].

    Formula: sum (q - q_0)^2
    Peers: `joint_deviation_l1`, `posture`
    """
    e = joint_positions(s)
    return e @ e


def joint_range(robot: Robot, part: float = 0.9) -> Callable[[State], Any]:
    """Return a penalty: the sum of the distances by which joints leave the middle part of their ranges, [rad].

    Args:
        robot: The robot. part: Fraction of each range without penalty.

    Formula: sum max(low - q, 0) + max(q - high, 0)
    Peers: `joint_pos_limits`, `joint_pos_limits`
    """
    first = robot.base.nq
    bounds = []
    for limit in joint_limits(robot):
        lower, upper = limit.lower, limit.upper
        middle, half = 0.5 * (lower + upper), 0.5 * part * (upper - lower)
        if np.isfinite(middle) and np.isfinite(half):
            bounds.append((limit.q - first, middle - half, middle + half))

    def penalty(s: State) -> Any:
        q = s.joint_positions
        beyond = [np.maximum(low - q[i], 0.0) + np.maximum(q[i] - high, 0.0) for i, low, high in bounds]
        return sum(beyond, 0.0)

    return penalty


def joint_deviation(robot: Robot, columns: Sequence[int]) -> Callable[[State], Any]:
    """Return a penalty: the sum of the distances of some joints from the posture of a zero action, [rad].

    Args:
        robot: The robot. columns: Numbers of the joint coordinates.

    Formula: sum abs(q - q_0)
    Peers: `joint_deviation_l1`, `posture`

    Raises:
        ArgumentError: A coordinate does not exist.
    """
    for k in columns:
        if not 0 <= whole("a joint coordinate", k) < robot.nj:
            raise ArgumentError(f"robot {robot.name!r} has the joint coordinates 0 to {robot.nj - 1}, got {k}")

    def penalty(s: State) -> Any:
        return sum((np.abs(s.joint_positions[k] - s.task.posture[k]) for k in columns), 0.0)

    return penalty


def joint_rates(s: State) -> Any:
    """Return the sum of squares of the joint velocities, [rad^2/s^2].

    Formula: sum qd^2
    Peers: `joint_vel_l2`, -
    """
    return s.joint_velocities @ s.joint_velocities


def actions(s: State) -> Any:
    """Return the sum of squares of the action, dimensionless.

    Formula: sum a^2
    Peers: `action_l2`, -
    """
    return s.action @ s.action


def alive(termination: Callable[[State], Any]) -> Callable[[State], Any]:
    """Return a reward: 1 in each control step that a termination does not end, else 0.

    Args:
        termination: The termination.

    Formula: 1 - terminated
    Peers: `is_alive`, `is_alive`
    """
    return lambda s: 1.0 - termination(s)


def link_tilt(robot: Robot, link: str, posture: Array) -> Callable[[State], Any]:
    """Return a penalty: the squared sine of the angle by which a link tilts against its rotation in a posture.

    Args:
        robot: The robot. link: Name of the link.
        posture: Joint positions with an upright link above a level base, (nj,), [rad] or [m], joint axes.

    Formula: u_x^2 + u_y^2 with the axis u of the link that is vertical in the posture
    Peers: `flat_orientation_l2`, `flat_orientation_l2`
    """
    q = np.concatenate([robot.base.neutral(), posture])
    index = robot.link(link).index
    points = [(index, np.zeros(3)), (index, link_poses(robot, q)[0][index][2])]

    def penalty(s: State) -> Any:
        origin, end = point_positions(s.task.robot, s.q, points)
        return (end - origin)[:2] @ (end - origin)[:2]

    return penalty
