"""Readings of a robot's sensors, their standard deviations, and the motion of the feet relative to the sensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from legged.arguments import array, known_name, number
from legged.checked import checked
from legged.dynamics.frames import Frame, Pose, resolve_frame
from legged.dynamics.kinematics import jacobian_at, motion, on_bodies
from legged.errors import DefinitionError
from legged.robot.base import FloatingBase
from legged.robot.link import ContactPoint
from legged.robot.robot import Robot
from legged.rotations import quaternion_conjugate, quaternion_matrix, quaternion_of, quaternion_product
from legged.spatial import Array, cross


class Reading(NamedTuple):
    """Readings of all sensors at one time.

    Attributes:
        gyro: Mean angular velocity since the last reading, (3,), [rad/s], sensor axes.
        specific_force: Mean of a - g since the last reading, with the acceleration a of the sensor and that of free
            fall g, (3,), [m/s^2], sensor axes.
        joints: Joint positions, (nj,) or as many as q has, [rad] or [m].
        joint_rates: Joint velocities, (nj,), [rad/s] or [m/s].
        torques: Joint torques since the last reading, (nj,), [N m] or [N].
        forces: Contact force on each foot, (n, 3), [N], base axes.
        contacts: Probability of contact of each foot, (n,), from 0 to 1.
    """

    gyro: Any
    specific_force: Any
    joints: Any
    joint_rates: Any
    torques: Any
    forces: Any
    contacts: Any


@checked
@dataclass(frozen=True)
class Deviations:
    """Standard deviations of the errors of sensors and of the motion of standing feet.

    Values of sensors are those of one reading; errors of different readings are independent, except for biases.

    Attributes:
        gyro: Of the angular velocity, [rad/s].
        accelerometer: Of the specific force, [m/s^2].
        encoder: Of joint positions, [rad] or [m].
        joint_rate: Of joint velocities, [rad/s] or [m/s].
        unread_gyro, unread_force: Of the difference between the next reading and the angular velocity, [rad/s], or
            specific force, [m/s^2], during a time without readings, such as after a lost packet. It is large when a
            foot lands.
        gyro_walk: Random walk of the gyroscope's bias, [rad/s / sqrt(s)].
        accelerometer_walk: Random walk of the accelerometer's bias, [m/s^2 / sqrt(s)].
        foot_model: Of each coordinate of the position of a foot, by errors of the kinematic model, [m].
        foot_walk: Random walk of a standing foot along each horizontal axis, [m / sqrt(s)]. The default is a creep of
            0.15 mm in a stance of 0.25 s.
        foot_sinking: Random walk of a standing foot along the vertical, [m / sqrt(s)]. It is larger, since the load
            presses a foot into the ground.

    Raises:
        ArgumentError: A value is negative or not finite, or `foot_walk` or `foot_sinking` is zero.
    """

    gyro: float = 0.01
    accelerometer: float = 0.1
    encoder: float = 1e-3
    joint_rate: float = 0.1
    unread_gyro: float = 0.1
    unread_force: float = 5.0
    gyro_walk: float = 1e-4
    accelerometer_walk: float = 1e-3
    foot_model: float = 5e-4
    foot_walk: float = 3e-4
    foot_sinking: float = 2e-3

    def __post_init__(self) -> None:
        for field in fields(self):
            number(field.name, getattr(self, field.name), least=0.0)
        for name in ("foot_walk", "foot_sinking"):
            number(name, getattr(self, name), "m / sqrt(s)", above=0.0)


class FootMotion(NamedTuple):
    """Motion of a foot relative to the inertial measurement unit, sensor axes.

    Attributes:
        position: Position of the contact point, or of the center of a spherical foot, (3,), [m].
        velocity: Velocity of this point, (3,), [m/s].
        spin: Angular velocity of the foot, (3,), [rad/s].
        covariance: Covariance of the position by the errors of encoders and kinematic model, (3, 3), [m^2].
    """

    position: Array
    velocity: Array
    spin: Array
    covariance: Array


@dataclass(frozen=True, eq=False)
class SensedRobot:
    """A robot with an inertial measurement unit on its base, and feet whose relative positions its encoders measure.

    Attributes:
        robot: The robot, with a floating base.
        imu: Pose of the inertial measurement unit in the base link's axes, rotation sensor to base.
        feet: The contact points that serve as feet, n.
    """

    robot: Robot
    imu: Pose
    feet: tuple[ContactPoint, ...]

    @classmethod
    def of(cls, robot: Robot, imu: str | Frame | None = None, feet: Sequence[str] | None = None) -> SensedRobot:
        """Return a robot with sensors.

        Args:
            robot: The robot. imu: Frame of the inertial measurement unit on the base link; None for that of the base.
            feet: Names of contact points; None for all.

        Raises:
            DefinitionError: The base does not float, there is no foot, or the unit is not on the base.
            UnknownNameError: A frame or a foot does not exist.
        """
        points = {point.name: point for point in robot.contacts}
        for name in feet or ():
            known_name("foot", name, points)
        chosen = tuple(points[name] for name in (points if feet is None else feet))
        if not isinstance(robot.base, FloatingBase) or not chosen:
            raise DefinitionError(
                f"robot {robot.name!r} needs a floating base and contact points for an estimate of its state"
            )
        if imu is None:
            return cls(robot, Pose(np.eye(3), np.zeros(3)), chosen)
        base, at = resolve_frame(robot, robot.links[0].name), resolve_frame(robot, imu)
        if at.body != base.body:
            raise DefinitionError(
                f"the inertial measurement unit must be fixed to the base {robot.links[0].name!r}, not to "
                f"{robot.links[at.link].name!r}"
            )
        R = np.asarray(base.in_body.rotation).T
        return cls(robot, Pose(R @ at.in_body.rotation, R @ (at.in_body.position - base.in_body.position)), chosen)

    @property
    def shapes(self) -> Reading:
        """The shapes of the arrays of a `Reading`."""
        nj, n = self.robot.nj, len(self.feet)
        return Reading((3,), (3,), (self.robot.nq - self.robot.base.nq,), (nj,), (nj,), (n, 3), (n,))

    def used(self, reading: Reading) -> Reading:
        """Return a reading whose parts that filters use are arrays of finite numbers.

        Args:
            reading: The reading.

        Raises:
            ArgumentError, ShapeError, NotFiniteError: For a part that is none; the message names it.
        """
        names = ("gyro", "specific_force", "joints", "joint_rates", "contacts")
        parts = {name: array(name, getattr(reading, name), getattr(self.shapes, name)) for name in names}
        return reading._replace(**parts)

    def foot_motions(self, joints: Array, rates: Array, encoder: float, model: float) -> list[FootMotion]:
        """Return the motion of each foot.

        Args:
            joints: As in `Reading`. rates: As `Reading.joint_rates`, (nj,), [rad/s] or [m/s], joint coordinates.
            encoder: `Deviations.encoder`, [rad] or [m]. model: `Deviations.foot_model`, [m].
        """
        robot, nv = self.robot, self.robot.base.nv
        q = np.concatenate([robot.base.neutral(), joints])
        at, R = motion(robot, q, np.concatenate([np.zeros(nv), rates])), np.asarray(self.imu.rotation).T
        motions = []
        for k, r in on_bodies(robot, [(foot.link, foot.position) for foot in self.feet]):
            turn, twist = R @ at.rotation[k], at.twist[k]
            J = R @ jacobian_at(robot, q, at, k, r)[3:, nv:]
            place = R @ (at.origin[k] + at.rotation[k] @ r - self.imu.position)
            velocity = turn @ (twist[3:] + cross(twist[:3], r))
            covariance = encoder**2 * (J @ J.T) + model**2 * np.eye(3)
            motions.append(FootMotion(place, velocity, turn @ twist[:3], covariance))
        return motions

    def state(
        self, orientation: Array, position: Array, velocity: Array, spin: Array, reading: Reading
    ) -> tuple[Array, Array]:
        """Return (q, v), (nq,) and (nv,), mixed units: joints as measured, and the base by the motion of the sensor.

        Args:
            orientation: Unit quaternion, (4,), sensor axes to world axes.
            position: Position of the sensor, (3,), [m], world axes.
            velocity: Velocity of the sensor, (3,), [m/s], sensor axes.
            spin: Angular velocity of the sensor, (3,), [rad/s], sensor axes.
            reading: The readings, for the joints.
        """
        turn, arm = np.asarray(self.imu.rotation), np.asarray(self.imu.position)
        base = quaternion_product(orientation, quaternion_conjugate(quaternion_of(turn)))
        base = base / np.sqrt(base @ base)
        omega = turn @ spin
        q = np.concatenate([base, position - quaternion_matrix(base) @ arm, reading.joints])
        return q, np.concatenate([omega, turn @ velocity - cross(omega, arm), reading.joint_rates])

    def sensor_pose(self, q: Array) -> tuple[Array, Array]:
        """Return (unit quaternion (4,), position (3,), [m]) of the sensor in world axes.

        Args:
            q: Configuration, (nq,).
        """
        base = quaternion_product(q[:4], quaternion_of(np.asarray(self.imu.rotation)))
        return base, q[4:7] + quaternion_matrix(q[:4]) @ np.asarray(self.imu.position)

    def sensor_velocity(self, v: Array) -> tuple[Array, Array]:
        """Return (angular velocity, velocity) of the sensor, (3,) each, [rad/s] and [m/s], sensor axes.

        Args:
            v: Velocity, (nv,).
        """
        turn = np.asarray(self.imu.rotation).T
        return turn @ v[:3], turn @ (v[3:6] + cross(v[:3], np.asarray(self.imu.position)))
