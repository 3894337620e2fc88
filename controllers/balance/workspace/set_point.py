"""The set point of the trunk, and the acceleration that the feedback demands (algorithm 4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from legged import taylor
from legged.algorithms.legs.foot_kinematics import FootKinematics
from legged.algorithms.legs.standing import home_of
from legged.compiler.ir import stage, where
from legged.dynamics.kinematics import point_positions
from legged.errors import DefinitionError, NotFiniteError, ShapeError
from legged.robot.base import EulerBase, PlanarBase
from legged.robot.robot import Robot
from legged.rotations import (
    axis_quaternion,
    euler_quaternion,
    quaternion_conjugate,
    quaternion_matrix,
    quaternion_product,
)
from legged.spatial import Array, angular_acceleration_tensor, cross, join

STAGE_4 = "4 desired wrench"
Path = Callable[[Any], Any]
Gain = Annotated[float | Array | tuple[Any, ...] | list[Any], np.ndarray]


class BodyMotion(NamedTuple):
    """Actual or desired motion of the central body.

    Attributes:
        p: Position of its control point, (3,), [m], world axes.
        pd: Velocity of the point, (3,), [m/s], world axes.
        pdd: Acceleration of the point, (3,), [m/s^2], world axes.
        quaternion: Orientation, unit quaternion (4,), w first, body axes to world axes.
        omega: Angular velocity, (3,), [rad/s], world axes.
        omegad: Angular acceleration, (3,), [rad/s^2], world axes.
    """

    p: Array
    pd: Array
    pdd: Array
    quaternion: Array
    omega: Array
    omegad: Array


@dataclass(frozen=True, eq=False)
class FeedbackGains:
    """Gains of algorithm 4, (3, 3) each, world axes.

    Attributes:
        p: Position, [1/s^2].
        v: Velocity, [1/s].
        R: Orientation, [1/s^2].
        omega: Angular velocity, [1/s].
    """

    p: Array
    v: Array
    R: Array
    omega: Array


def gain_matrix(name: str, gain: Gain) -> Array:
    """Return a gain as a matrix, (3, 3), in the unit of the gain, world axes.

    Args:
        name: Name of the gain in error messages.
        gain: One number, three diagonal entries, (3,), or the matrix, (3, 3), any unit, world axes.

    Raises:
        ShapeError: The gain has another shape.
        NotFiniteError: It has NaN or infinity.
        DefinitionError: Its symmetric part is not positive semidefinite, so the feedback would be unstable.
    """
    array = np.asarray(gain, dtype=float)
    if array.shape not in ((), (3,), (3, 3)):
        raise ShapeError(f"{name} must be a number, (3,) or (3, 3), world axes, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise NotFiniteError(f"{name} must be finite, got {array}")
    matrix = array if array.ndim == 2 else np.diag(np.broadcast_to(array, 3))
    least = float(np.linalg.eigvalsh(matrix + matrix.T).min()) / 2.0
    if least < 0.0:
        raise DefinitionError(
            f"the symmetric part of {name} must be positive semidefinite, its least eigenvalue is {least}: the "
            f"feedback would be unstable"
        )
    return matrix


def desired_motion(position: Array | Path, orientation: Array | Path, t: Any) -> BodyMotion:
    """Return the set point and its time derivatives at a time.

    Args:
        position: Position, (3,), [m], world axes, or a function of time, whose derivatives `legged.taylor` computes.
        orientation: Quaternion, (4,), w first, which is normalized, or roll, pitch and yaw about fixed axes, (3,),
            [rad], or a function of time that returns either.
        t: Time, [s].
    """
    clock = taylor.time(t)
    motion = taylor.derivatives(np.asarray(position(clock) if callable(position) else position))
    given = np.asarray(orientation(clock) if callable(orientation) else orientation)
    unit = given / np.sqrt(given @ given) if len(given) == 4 else euler_quaternion("zyx", given[::-1])
    e, ed, edd = taylor.derivatives(unit)
    back = quaternion_conjugate(e)
    return BodyMotion(*motion, e, 2.0 * quaternion_product(ed, back)[1:], 2.0 * quaternion_product(edd, back)[1:])


def desired_acceleration(
    actual: BodyMotion, desired: BodyMotion, gains: FeedbackGains, R: Array, center: Array
) -> Array:
    """Return the desired [angular acceleration; acceleration of the origin] of the central body, (6,), in its axes.

        e = p - p_d,                     X_c = pdd_d - K_v ed - K_p e
        q_et = q * conj(q_d),            q_e = q_et if its scalar is not negative, else -q_et
        omega_e = omega - R_e omega_d,   X_R = R_e omegad_d + omega x R_e omega_d - K_v omega_e - K_p q_e's vector

    The paper computes the rate X_c - omega x pd of the components of the center of mass's velocity. The result here is
    the acceleration of the origin. The orientation error of a rotation by theta is sin(theta / 2), so the stiffness for
    small angles is K_p / 2.

    Args:
        actual: Motion of the central body; its accelerations are not used.
        desired: The set point and its derivatives.
        gains: The gains.
        R: Rotation matrix from body axes to world axes, (3, 3), dimensionless.
        center: Control point from the origin, (3,), [m], body axes.

    Source:
        Wendlandt 1997, algorithm 4.
    """
    with stage(STAGE_4):
        X_c = desired.pdd - gains.v @ (actual.pd - desired.pd) - gains.p @ (actual.p - desired.p)
        q_et = quaternion_product(actual.quaternion, quaternion_conjugate(desired.quaternion))
        q_e = where(q_et[0] >= 0.0, 1.0, -1.0) * q_et
        R_e = quaternion_matrix(q_e)
        omega_d, omegad_d = R_e @ desired.omega, R_e @ desired.omegad
        omega_e = actual.omega - omega_d
        X_R = omegad_d + cross(actual.omega, omega_d) - gains.omega @ omega_e - gains.R @ q_e[1:]
        omega, omegad = R.T @ actual.omega, R.T @ X_R
        return join(omegad, R.T @ X_c - angular_acceleration_tensor(omega, omegad) @ center)


def _base_quaternion(robot: Robot, q: Array) -> Array:
    """Return the quaternion of the base, (4,), w first, for any type of base."""
    if isinstance(robot.base, PlanarBase):
        return axis_quaternion("y", q[0])
    return euler_quaternion(robot.base.sequence, q[:3]) if isinstance(robot.base, EulerBase) else q[:4]


def base_motion(robot: Robot, q: Array, twist: Array, center: Array) -> BodyMotion:
    """Return the motion of the base, with zero accelerations.

    Args:
        robot: The robot.
        q: Configuration, (nq,).
        twist: Twist of the base, (6,), [rad/s] and [m/s], base axes.
        center: Control point from the base's origin, (3,), [m], base axes.
    """
    R, origin = robot.base.pose(q[: robot.base.nq])
    p, pd = origin + R @ center, R @ (twist[3:] + cross(twist[:3], center))
    return BodyMotion(p, pd, np.zeros(3), _base_quaternion(robot, q), R @ twist[:3], np.zeros(3))


def set_point_of(
    robot: Robot, q: Array, center: Array, position: Any, orientation: Any
) -> tuple[Array | Path, Array | Path]:
    """Return (position, orientation) of the set point; None stands for the pose of the base at q.

    Args:
        robot: The robot.
        q: Configuration, (nq,).
        center: Control point from the base's origin, (3,), [m], base axes.
        position: As in `desired_motion`, or None.
        orientation: As in `desired_motion`, or None.

    Returns:
        Position, (3,), [m], world axes, and orientation, (3,), [rad], or quaternion (4,), or functions of time.

    Raises:
        ShapeError, NotFiniteError: The set point has the wrong shape or is not finite.
    """
    actual = base_motion(robot, q, np.zeros(6), center)
    return (
        _checked("position", actual.p if position is None else position, (3,)),
        _checked("orientation", actual.quaternion if orientation is None else orientation, (3, 4)),
    )


def _checked(name: str, given: Any, sizes: tuple[int, ...]) -> Array | Path:
    value = np.asarray(given(0.0) if callable(given) else given, dtype=float)
    if value.ndim != 1 or len(value) not in sizes:
        expected = " or ".join(f"({size},)" for size in sizes)
        raise ShapeError(f"the {name} of the set point must be {expected}, got shape {value.shape}")
    if not np.isfinite(value).all() or (len(value) == 4 and not np.any(value)):
        raise NotFiniteError(
            f"the {name} of the set point must be finite, and a quaternion must not be zero, got {value}"
        )
    return given if callable(given) else value


def standing_configuration(robot: Robot, position: Any, orientation: Any, center: Array) -> Array:
    """Return q, (nq,), with level soles at z = 0 and the base at its set point.

    The horizontal positions of the feet are those of `home_of`, as are components of the set point that are None.

    Args:
        robot: The robot.
        position: As in `desired_motion`, or None.
        orientation: As in `desired_motion`, or None.
        center: Control point from the base's origin, (3,), [m], base axes.

    Raises:
        DefinitionError: The robot has no legs.
        ReachError: The legs cannot reach the ground from the set point.
    """
    home = home_of(robot)
    base, start = robot.base, np.array([0.0, 0.0, home.base_height])
    q = np.concatenate([base.configuration(start, np.eye(3)), home.angles])
    desired = desired_motion(*set_point_of(robot, q, center, position, orientation), 0.0)
    R = quaternion_matrix(np.asarray(desired.quaternion, float))
    origin = desired.p - R @ center
    names = [name for leg in home.legs for name in leg.contacts]
    contacts = [robot.contact(name) for name in names]
    soles = point_positions(robot, q, [(contact.link, contact.position) for contact in contacts])
    angles = FootKinematics(robot, names).solve((soles - origin) @ R, home.angles, 1e-9)
    return np.concatenate([base.configuration(origin, R), angles])
