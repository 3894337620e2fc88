"""An inertial measurement unit on a link: turning rate and specific force in its own axes, over any element."""

from __future__ import annotations

from legged.dynamics.arguments import read
from legged.dynamics.frames import Frame, frame_acceleration, frame_pose, frame_twist
from legged.robot.robot import Robot
from legged.spatial import Array


def gyro(robot: Robot, q: Array, v: Array, frame: str | Frame) -> Array:
    """Return the angular velocity that a gyroscope reads, (3,), [rad/s], in the sensor's axes.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,).
        frame: Where the sensor sits: a link, a contact point or a `legged.Frame`.
    """
    return frame_twist(robot, q, v, frame, axes="local")[:3]


def specific_force(robot: Robot, q: Array, v: Array, vdot: Array, frame: str | Frame) -> Array:
    """Return what an accelerometer reads, a - g in the sensor's axes, (3,), [m/s^2].

    At rest it reads +|g| upward, in free fall (without turning) zero.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,). vdot: Acceleration, (nv,).
        frame: Where the sensor sits: a link, a contact point or a `legged.Frame`.
    """
    (q,) = read(robot, q=q)
    R, _ = frame_pose(robot, q, frame)
    return R.T @ (frame_acceleration(robot, q, v, vdot, frame)[3:] - robot.gravity)
