"""States by name: poses and velocities of the base and values of named joints instead of indices into q and v."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from legged.arguments import real_array, rounded_array
from legged.checked import checked
from legged.errors import NotFiniteError, ShapeError, StateError
from legged.robot.base import Base, FloatingBase
from legged.robot.configuration import read
from legged.robot.joint import PlacedJoint
from legged.rotations import euler_matrix, quaternion_matrix, quaternion_of
from legged.spatial import Array

if TYPE_CHECKING:
    from legged.robot.robot import Robot

_TOLERANCE = 1e-9  # [m], [rad], [m/s], [rad/s], and of the entries of a rotation matrix


class State(NamedTuple):
    """State of a robot: configuration q, (nq,), and velocity v, (nv,)."""

    q: Array
    v: Array


@checked
def state(
    robot: Robot,
    *,
    base_position: Any = None,
    base_orientation: Any = None,
    base_linear_velocity: Any = None,
    base_angular_velocity: Any = None,
    joints: Mapping[str, Any] | None = None,
    joint_velocities: Mapping[str, Any] | None = None,
) -> State:
    """Return the state (q, v) with the given parts; omitted parts are neutral and at rest.

    Args:
        robot: The robot.
        base_position: Position of the base's origin, (3,), [m], world axes.
        base_orientation: Orientation from base to world axes: a unit quaternion, w first, (4,); roll, pitch and yaw
            about fixed axes as in URDF, (3,), [rad]; or a rotation matrix, (3, 3).
        base_linear_velocity: Velocity of the base's origin, (3,), [m/s], world axes.
        base_angular_velocity: Angular velocity of the base, (3,), [rad/s], world axes.
        joints: Name -> entries of q, a number or (nq of the joint,), [rad] or [m]. A quaternion joint accepts every
            form of `base_orientation`.
        joint_velocities: Name -> entries of v, a number or (nv of the joint,), [rad/s] or [m/s].

    Raises:
        UnknownNameError: For an unknown joint. ShapeError, NotFiniteError: For values of the wrong form.
        StateError: For a pose or velocity that the base cannot have, and for a coupled joint.
    """
    q, v = robot.neutral(), np.zeros(robot.nv)
    base = robot.base
    q[: base.nq] = _base_configuration(robot, base_position, base_orientation)
    v[: base.nv] = _base_velocity(robot, q[: base.nq], base_angular_velocity, base_linear_velocity)
    for name, value in (joints or {}).items():
        joint = _joint(robot, name)
        what = f"the value of joint {name!r}"
        is_ball = joint.nq == 4 and joint.nv == 3
        q[joint.q] = _quaternion(what, value) if is_ball else _numbers(what, value, joint.nq)
    for name, value in (joint_velocities or {}).items():
        joint = _joint(robot, name)
        v[joint.v] = _numbers(f"the velocity of joint {name!r}", value, joint.nv)
    return State(*read(robot, q=q, v=v))


def named_state(robot: Robot, q: Array, v: Array) -> dict[str, Any]:
    """Return the arguments of `state` that give (q, v): orientations as quaternions, no base for a fixed one.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,).
    """
    q, v = read(robot, q=rounded_array("q", q), v=rounded_array("v", v))
    base, arguments = robot.base, {}
    if base.nq:
        R, position = base.pose(q[: base.nq])
        twist = base.motion_matrix(q[: base.nq]) @ v[: base.nv]
        arguments = {
            "base_position": position,
            "base_orientation": q[:4].copy() if isinstance(base, FloatingBase) else quaternion_of(R),
            "base_linear_velocity": R @ twist[3:],
            "base_angular_velocity": R @ twist[:3],
        }
    return {**arguments, "joints": joint_values(robot, q), "joint_velocities": joint_rates(robot, v)}


def _joint(robot: Robot, name: str) -> PlacedJoint:
    for follower in robot.followers:
        if follower.name == name:
            raise StateError(
                f"joint {name!r} follows {follower.master!r} and has no value of its own: its position is "
                f"{follower.ratio:g} times that of {follower.master!r} plus {follower.offset:g}"
            )
    return robot.joint(name)


def joint_values(robot: Robot, q: Array) -> dict[str, Any]:
    """Return the entries of q of each joint by name: a number, or (nq of the joint,), with leading axes as in q.

    Args:
        robot: The robot. q: Configurations, (..., nq).
    """
    q = _last_axis("q", q, robot.nq)
    return {joint.name: q[..., joint.q.start] if joint.nq == 1 else q[..., joint.q] for joint in robot.joints}


def joint_rates(robot: Robot, v: Array) -> dict[str, Any]:
    """Return the entries of v of each joint by name: a number, or (nv of the joint,), with leading axes as in v.

    Args:
        robot: The robot. v: Velocities, accelerations or generalized forces, (..., nv).
    """
    v = _last_axis("v", v, robot.nv)
    return {joint.name: v[..., joint.v.start] if joint.nv == 1 else v[..., joint.v] for joint in robot.joints}


def _base_configuration(robot: Robot, position: Any, orientation: Any) -> Array:
    base = robot.base
    neutral_R, neutral_o = base.pose(base.neutral())
    o = neutral_o if position is None else _numbers("base_position", position, 3)
    p = quaternion_of(neutral_R) if orientation is None else _quaternion("base_orientation", orientation)
    R = quaternion_matrix(p)
    q = base.configuration(o, R)
    R_q, o_q = base.pose(q)
    if np.abs(R_q - R).max() > _TOLERANCE:
        raise StateError(
            f"the base of {robot.name!r} {_description(base)}: it cannot have base_orientation {orientation}"
        )
    if np.abs(o_q - o).max() > _TOLERANCE:
        raise StateError(f"the base of {robot.name!r} {_description(base)}: it cannot have base_position {position}")
    return np.concatenate([p, o]) if isinstance(base, FloatingBase) else q


def _base_velocity(robot: Robot, q: Array, angular: Any, linear: Any) -> Array:
    base = robot.base
    omega = np.zeros(3) if angular is None else _numbers("base_angular_velocity", angular, 3)
    velocity = np.zeros(3) if linear is None else _numbers("base_linear_velocity", linear, 3)
    v = base.velocity(q, omega, velocity)
    R, _ = base.pose(q)
    twist = base.motion_matrix(q) @ v
    for what, given, part in (
        ("base_angular_velocity", omega, twist[:3]),
        ("base_linear_velocity", velocity, twist[3:]),
    ):
        if np.abs(R @ part - given).max() > _TOLERANCE * (1.0 + np.abs(given).max()):
            raise StateError(f"the base of {robot.name!r} {_description(base)}: it cannot have {what} {given} here")
    return v


def _description(base: Base) -> str:
    return {
        "fixed": "is fixed",
        "planar": "is planar, it moves along x and z and rotates about y",
        "euler": "has Euler angles, two of whose axes line up at gimbal lock",
    }.get(base.kind, f"is {base.kind}")


def _quaternion(what: str, value: Any) -> Array:
    """Return a unit quaternion (4,) from one, from roll, pitch and yaw, or from a rotation matrix."""
    array = real_array(what, value).astype(float)
    if not np.isfinite(array).all():
        raise NotFiniteError(f"{what} must be finite, got {value}")
    if array.shape == (4,):
        norm = float(np.linalg.norm(array))
        if abs(norm - 1.0) > 1e-6:
            raise StateError(
                f"{what} is a quaternion of norm {norm:.9g}, it must be 1 (w first); divide it by its norm"
            )
        return array / norm
    if array.shape == (3,):
        return quaternion_of(euler_matrix("zyx", array[::-1]))
    if array.shape == (3, 3):
        if np.abs(array.T @ array - np.eye(3)).max() > _TOLERANCE or np.linalg.det(array) < 0.0:
            raise StateError(
                f"{what} is not a rotation: its columns must be orthonormal and right-handed, got\n{array}"
            )
        return quaternion_of(array)
    raise ShapeError(f"{what} must be a quaternion (4,), roll-pitch-yaw (3,) or a matrix (3, 3), got {array.shape}")


def _numbers(what: str, value: Any, count: int) -> Array:
    array = real_array(what, value).astype(float)
    if array.shape != (count,) and not (count == 1 and array.shape == ()):
        wanted = "one number" if count == 1 else f"({count},)"
        raise ShapeError(f"{what} must be {wanted}, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise NotFiniteError(f"{what} must be finite, got {value}")
    return array


def _last_axis(name: str, value: Any, size: int) -> Array:
    array = real_array(name, value)
    if array.ndim == 0 or array.shape[-1] != size:
        raise ShapeError(f"{name} must be ({size},), or rows of that length, got shape {array.shape}")
    return array
