"""The central body's pose, what its set point is where none was given, and a standing posture under one."""

from __future__ import annotations

from typing import Any

import numpy as np

from controllers.balance.workspace.wrench import Path, Pose, wanted_pose
from controllers.gaits.foot_kinematics import FootKinematics
from controllers.gaits.standing import home_of
from legged.dynamics.kinematics import point_positions
from legged.errors import NotFiniteError, ShapeError
from legged.robot.base import EulerBase, PlanarBase
from legged.robot.robot import Robot
from legged.rotations import axis_quaternion, euler_quaternion, quaternion_matrix
from legged.spatial import Array, cross

_UNMOVED = np.zeros(3)


def base_quaternion(robot: Robot, q: Array) -> Array:
    """Return the base's quaternion, (4,), w first, whatever its coordinates."""
    if isinstance(robot.base, PlanarBase):
        return axis_quaternion("y", q[0])
    return euler_quaternion(robot.base.sequence, q[:3]) if isinstance(robot.base, EulerBase) else q[:4]


def base_pose(robot: Robot, q: Array, t_0: Array, center: Array) -> Pose:
    """Return how the base moves, its accelerations left out.

    Args:
        robot: The robot. q: Configuration, (nq,). t_0: The base's twist, (6,), base axes.
        center: Its point, (3,), [m], base axes.
    """
    R, origin = robot.base.pose(q[: robot.base.nq])
    p, pd = origin + R @ center, R @ (t_0[3:] + cross(t_0[:3], center))
    return Pose(p, pd, _UNMOVED, base_quaternion(robot, q), R @ t_0[:3], _UNMOVED)


def target_of(
    robot: Robot, q: Array, center: Array, position: Any, orientation: Any
) -> tuple[Array | Path, Array | Path]:
    """Return (position, orientation) as they were given, or where the base is at q for what was not.

    Raises:
        ShapeError, NotFiniteError: for set points of the wrong form.
    """
    now = base_pose(robot, q, np.zeros(6), center)
    return (
        _checked("position", now.p if position is None else position, (3,)),
        _checked("orientation", now.quaternion if orientation is None else orientation, (3, 4)),
    )


def _checked(name: str, given: Any, sizes: tuple[int, ...]) -> Array | Path:
    value = np.asarray(given(0.0) if callable(given) else given, dtype=float)
    if value.ndim != 1 or len(value) not in sizes:
        wanted = " or ".join(f"({size},)" for size in sizes)
        raise ShapeError(f"the {name} of the set point must be {wanted}, got shape {value.shape}")
    if not np.isfinite(value).all() or (len(value) == 4 and not np.any(value)):
        raise NotFiniteError(f"the {name} of the set point must be finite, and a quaternion not zero, got {value}")
    return given if callable(given) else value


def standing_at(robot: Robot, position: Any, orientation: Any, center: Array) -> Array:
    """Return q, (nq,), with level soles at z = 0, under a base at its set point.

    Feet are where `home_of` has them; what the set point leaves open is its, too.

    Raises:
        DefinitionError, ReachError: The robot has no legs, or they do not reach.
    """
    home = home_of(robot)
    base, start = robot.base, np.array([0.0, 0.0, home.base_height])
    q = np.concatenate([base.configuration(start, np.eye(3)), home.angles])
    wanted = wanted_pose(*target_of(robot, q, center, position, orientation), 0.0)
    R = quaternion_matrix(np.asarray(wanted.quaternion, float))
    origin = wanted.p - R @ center
    names = [name for leg in home.legs for name in leg.contacts]
    contacts = [robot.contact(name) for name in names]
    soles = point_positions(robot, q, [(contact.link, contact.position) for contact in contacts])
    angles = FootKinematics(robot, names).solve((soles - origin) @ R, home.angles, 1e-9)
    return np.concatenate([base.configuration(origin, R), angles])
