"""Simulated sensors of a robot in closed loop: inertial measurement unit, encoders, and contact forces, with errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from legged.arguments import array, number
from legged.checked import checked
from legged.compiler.ir import random_uniform, where
from legged.dynamics.frames import Frame
from legged.dynamics.kinematics import link_poses
from legged.errors import DefinitionError
from legged.estimation.contacts import contact_probabilities, point_forces
from legged.estimation.readings import Deviations, Reading, SensedRobot
from legged.robot.robot import Robot
from legged.rotations import quaternion_conjugate, quaternion_exp, quaternion_log, quaternion_matrix, quaternion_product
from legged.spatial import Array

_PERIOD_OF_FALSE_CONTACTS = 0.05
"""Time for which a false contact lasts, [s]."""


@checked
@dataclass(frozen=True, eq=False)
class Instruments:
    """Sensors that read the state of a simulated robot at fixed times.

    Gyroscope and accelerometer return means since the last reading, as those of real units do, so that impacts between
    two readings are not lost. Errors are normally distributed; they are functions of the seed and of the number of the
    reading. The memory is the pose and velocity of the inertial measurement unit at the last reading.

    Attributes:
        deviations: Standard deviations of the errors; those of the feet are not used.
        gyro_bias: Constant error, (3,) or one number for all axes, [rad/s], sensor axes.
        accelerometer_bias: Constant error, (3,) or one number for all axes, [m/s^2], sensor axes.
        force: Standard deviation of each component of the contact force on a foot, relative to the robot's weight over
            the number of feet.
        false_contacts: Probability that the contact of a foot is false, drawn every 0.05 s for each foot: the force is
            then zero on the ground, and in the air the weight divided by the number of feet.
        seed: Seed of the errors, a whole number below 2^24.
        imu: Frame of the inertial measurement unit on the base link; None for that of the base.
        feet: Names of the contact points that serve as feet; None for all.
    """

    deviations: Deviations = field(default_factory=Deviations)
    gyro_bias: Any = 0.0
    accelerometer_bias: Any = 0.0
    force: float = 0.04
    false_contacts: float = 0.0
    seed: float = 0.0
    imu: str | Frame | None = None
    feet: Sequence[str] | None = None
    _sensed: SensedRobot | None = field(default=None, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        number("force", self.force, least=0.0)
        number("false_contacts", self.false_contacts, least=0.0, most=1.0)
        number("seed", self.seed, least=0.0, below=2.0**24)
        for name in ("gyro_bias", "accelerometer_bias"):
            array(name, getattr(self, name))

    def start(self, robot: Robot, q: Array, v: Array) -> tuple[Self, Array]:
        """Return (instruments, memory) for a robot, the memory (10,); see `ContactKalmanFilter.start`.

        Args:
            robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,).
        """
        started = replace(self, _sensed=SensedRobot.of(robot, self.imu, self.feet))
        return started, started.memory(q, v)

    def memory(self, q: Array, v: Array) -> Array:
        """Return the memory after a reading, (10,): quaternion, position and velocity of the sensor, world axes.

        Args:
            q: Configuration, (nq,). v: Velocity, (nv,).
        """
        p, position = self.sensed.sensor_pose(q)
        return np.concatenate([p, position, quaternion_matrix(p) @ self.sensed.sensor_velocity(v)[1]])

    @property
    def sensed(self) -> SensedRobot:
        """The robot with its sensors, after `start`."""
        if self._sensed is None:
            raise DefinitionError("these Instruments have no robot; use those that start(robot, ...) returns")
        return self._sensed

    def read(self, memory: Array, k: Any, dt: Any, q: Array, v: Array, torques: Array, wrenches: Array) -> Reading:
        """Return the readings at a time.

        Args:
            memory: Memory after the last reading, (10,), mixed units.
            k: Number of this reading. dt: Time between readings, [s].
            q: Configuration, (nq,), mixed units. v: Velocity, (nv,), mixed units. torques: As in `Reading`.
            wrenches: Contact wrenches on the links, (n_links, 6), about each link's origin in its axes.
        """
        sensed, d, robot = self.sensed, self.deviations, self.sensed.robot
        now = self.memory(q, v)
        turn = quaternion_log(quaternion_product(quaternion_conjugate(memory[:4]), now[:4]))
        middle = quaternion_matrix(quaternion_product(memory[:4], quaternion_exp(0.5 * turn)))
        force = middle.T @ ((now[7:] - memory[7:]) * (1.0 / dt) - robot.gravity)
        forces = self._forces(k, dt, q, wrenches)
        draws = _Normal(self.seed, k)
        return Reading(
            gyro=turn * (1.0 / dt) + np.asanyarray(self.gyro_bias) + d.gyro * draws(3),
            specific_force=force + np.asanyarray(self.accelerometer_bias) + d.accelerometer * draws(3),
            joints=q[robot.base.nq :] + d.encoder * draws(len(q) - robot.base.nq),
            joint_rates=v[robot.base.nv :] + d.joint_rate * draws(robot.nj),
            torques=torques,
            forces=forces,
            contacts=contact_probabilities(sensed, forces),
        )

    def _forces(self, k: Any, dt: Any, q: Array, wrenches: Array) -> Array:
        """Return the measured force on each foot, (n, 3), [N], base axes."""
        sensed = self.sensed
        weight = sensed.robot.mass * float(np.linalg.norm(sensed.robot.gravity))
        rotations, _ = link_poses(sensed.robot, q)
        forces = point_forces(sensed, rotations, wrenches)
        interval, measured = np.floor(k * dt * (1.0 / _PERIOD_OF_FALSE_CONTACTS)), []
        standing = quaternion_matrix(q[:4]).T @ np.array([0.0, 0.0, weight / len(forces)])
        noise = self.force * weight / len(forces) * _Normal(self.seed, k, stream=1)(3 * len(forces))
        for i, force in enumerate(forces):
            wrong = random_uniform(self.seed, 2.0, interval, float(i)) < self.false_contacts
            loaded = force @ force > (0.02 * weight) ** 2
            false = where(loaded, 0.0 * standing, standing)
            measured.append(where(wrong, false, force) + noise[3 * i : 3 * i + 3])
        return np.array(measured)


class _Normal:
    """Independent numbers of a normal distribution, by the method of Box and Muller."""

    def __init__(self, seed: Any, step: Any, stream: float = 0.0):
        self._key, self._count = (seed, stream, step), 0.0

    def _uniform(self) -> Any:
        self._count += 1.0
        return random_uniform(*self._key, self._count - 1.0)

    def __call__(self, size: int) -> Array:
        pairs: list[Any] = []
        while len(pairs) < size:
            radius, angle = np.sqrt(-2.0 * np.log(1.0 - self._uniform())), 2.0 * np.pi * self._uniform()
            pairs += [radius * np.cos(angle), radius * np.sin(angle)]
        return np.stack(pairs[:size])
