"""The linear Kalman filter of the MIT Mini Cheetah with a complementary filter of the orientation, as a baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import numpy as np

from legged.arguments import number
from legged.checked import checked
from legged.dynamics.frames import Frame
from legged.errors import DefinitionError
from legged.estimation.readings import FootMotion, Reading, SensedRobot
from legged.ground.terrain import Terrain
from legged.robot.robot import Robot
from legged.rotations import quaternion_exp, quaternion_matrix, quaternion_product
from legged.spatial import Array, cross, mirror

_GUESS = 1.0
"""Standard deviation of the first guess of all states, [m] and [m/s]; the filter forgets it in a few readings."""


@checked
@dataclass(frozen=True, eq=False)
class LinearFilter:
    """A linear Kalman filter of position, velocity and feet, at the orientation of a complementary filter.

    The complementary filter turns the orientation towards the one in which the specific force is vertical, with the
    rate kp e and the bias rate -ki e for the error e = f / |f| x R^T z, less the more |f| differs from gravity.

    With the acceleration a = R f + g, which is taken as exact, the linear filter has for each foot i the measurements

        p - p_i = -R r_i,     v = -R (omega x r_i + dr_i/dt),     z_i = height of the ground,

    with the position r_i of the foot relative to the sensor. The variances of a foot grow with 1 - c, where c is its
    probability of contact. Biases are not part of the state. The ground is level unless `terrain` is given.

    Attributes:
        imu, feet, terrain: As in `ContactKalmanFilter`; without terrain the ground is the plane z = 0.
        kp, ki: Gains of the complementary filter, [1/s] and [1/s^2].
        body_noise: Standard deviations of the motion of the base per square root of time: position, [m/sqrt(s)], and
            velocity, [m/s/sqrt(s)].
        foot_noise: That of the position of a foot, [m/sqrt(s)].
        position_error, velocity_error, height_error: Standard deviations of the measurements, [m], [m/s] and [m].
        suspect: Factor of the variances of a foot in the air.

    Source:
        Bledt, Powell, Katz, Di Carlo, Wensing, Kim 2018, "MIT Cheetah 3: design and control of a robust, dynamic
        quadruped robot", IROS; noise parameters of the Mini Cheetah's software. Mahony, Hamel, Pflimlin 2008,
        "Nonlinear complementary filters on the special orthogonal group", IEEE Transactions on Automatic Control 53(5).
    """

    imu: str | Frame | None = None
    feet: Sequence[str] | None = None
    terrain: Terrain | None = None
    kp: float = 0.2
    ki: float = 0.02
    body_noise: float = 0.03
    foot_noise: float = 0.045
    position_error: float = 1e-3
    velocity_error: float = 0.1
    height_error: float = 1e-3
    suspect: float = 100.0
    _sensed: SensedRobot | None = field(default=None, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        for each in fields(self):
            if each.type == "float":
                number(each.name, getattr(self, each.name), above=0.0)

    def start(self, robot: Robot, q: Array, v: Array) -> tuple[Self, Array]:
        """Return (filter, memory), (k,); arguments and errors as in `ContactKalmanFilter.start`.

        The memory is [orientation (4,); gyroscope bias (3,); position, velocity, feet; upper triangle of their
        covariance].
        """
        started = replace(self, _sensed=SensedRobot.of(robot, self.imu, self.feet))
        orientation, position = started.sensed.sensor_pose(q)
        R = quaternion_matrix(orientation)
        motions = started._motions(q[robot.base.nq :], v[robot.base.nv :])
        x = np.concatenate(
            [position, R @ started.sensed.sensor_velocity(v)[1], *(position + R @ foot.position for foot in motions)]
        )
        P = _GUESS**2 * np.eye(len(x))
        return started, np.concatenate([orientation, np.zeros(3), x, P[np.triu_indices(len(x))]])

    @property
    def sensed(self) -> SensedRobot:
        """The robot with its sensors, after `start`."""
        if self._sensed is None:
            raise DefinitionError("this LinearFilter has no robot; use the one that start(robot, ...) returns")
        return self._sensed

    def update(self, memory: Array, reading: Reading, dt: Any, unread: Any = 0.0) -> Array:
        """Return the memory after a reading, (k,), mixed units; arguments as in `ContactKalmanFilter.update`.

        The time without a reading is not used, since the noise of this filter is larger than its effect.
        """
        orientation, bias, x, P = self._parts(memory)
        reading = self.sensed.used(reading)
        orientation, bias = self._turned(orientation, bias, reading, dt)
        x, P = self._predicted(x, P, quaternion_matrix(orientation), reading, dt)
        x, P = self._corrected(x, P, quaternion_matrix(orientation), reading.gyro - bias, reading)
        return np.concatenate([orientation, bias, x, P[np.triu_indices(len(x))]])

    def state(self, memory: Array, reading: Reading) -> tuple[Array, Array]:
        """Return the estimate (q, v), (nq,) and (nv,), mixed units; arguments as in `ContactKalmanFilter.state`."""
        orientation, bias, x, _ = self._parts(memory)
        velocity = quaternion_matrix(orientation).T @ x[3:6]
        return self.sensed.state(orientation, x[:3], velocity, reading.gyro - bias, reading)

    def completed(self, memory: Array, reading: Reading) -> Reading:
        """Return the reading, whose forces and contacts are those of sensors.

        Args:
            memory: (k,), mixed units; not used. reading: The reading.
        """
        return reading

    def _parts(self, memory: Array) -> tuple[Array, Array, Array, Array]:
        """Return orientation, bias, state x (n,) and its covariance (n, n)."""
        n = 6 + 3 * len(self.sensed.feet)
        rows, columns = np.triu_indices(n)
        P = np.zeros((n, n), dtype=memory.dtype)
        P[rows, columns] = P[columns, rows] = memory[7 + n :]
        return memory[:4], memory[4:7], memory[7 : 7 + n], P

    def _motions(self, joints: Array, rates: Array) -> list[FootMotion]:
        return self.sensed.foot_motions(joints, rates, 0.0, 0.0)

    def _turned(self, orientation: Array, bias: Array, reading: Reading, dt: Any) -> tuple[Array, Array]:
        """Return orientation and bias of the complementary filter after a reading."""
        force, gravity = reading.specific_force, float(np.linalg.norm(self.sensed.robot.gravity))
        length = np.sqrt(force @ force + 1e-12)
        trust = np.maximum(1.0 - np.absolute(length - gravity) * (1.0 / gravity), 0.0)
        up = quaternion_matrix(orientation).T @ (-np.asarray(self.sensed.robot.gravity) / gravity)
        error = trust * cross(force * (1.0 / length), up)
        bias = bias - self.ki * dt * error
        turned = quaternion_product(orientation, quaternion_exp(dt * (reading.gyro - bias + self.kp * error)))
        return turned / np.sqrt(turned @ turned), bias

    def _predicted(self, x: Array, P: Array, R: Array, reading: Reading, dt: Any) -> tuple[Array, Array]:
        """Return state and covariance after the motion since the last reading."""
        acceleration = R @ reading.specific_force + self.sensed.robot.gravity
        moved = np.concatenate([x[:3] + dt * x[3:6] + 0.5 * dt * dt * acceleration, x[3:6] + dt * acceleration, x[6:]])

        def transition(M: Array) -> Array:
            return np.concatenate([M[:3] + dt * M[3:6], M[3:]])

        noise = [self.body_noise**2 * dt] * 6
        for contact in reading.contacts:
            noise += [self.foot_noise**2 * dt * self._suspicion(contact)] * 3
        return moved, mirror(transition(transition(P).T)) + np.diag(np.stack(noise))

    def _corrected(self, x: Array, P: Array, R: Array, omega: Array, reading: Reading) -> tuple[Array, Array]:
        """Return state and covariance after the measurements of all feet, one number after the other."""
        identity = np.eye(len(x))
        motions = self._motions(reading.joints, reading.joint_rates)
        for i, (foot, contact, point) in enumerate(zip(motions, reading.contacts, self.sensed.feet, strict=True)):
            arm, velocity = R @ foot.position, -(R @ (cross(omega, foot.position) + foot.velocity))
            at, more = 6 + 3 * i, self._suspicion(contact)
            height = self.terrain.height(x[at], x[at + 1]) if self.terrain is not None else 0.0
            rows = [(identity[k] - identity[at + k], -arm[k], self.position_error) for k in range(3)]
            rows += [(identity[3 + k], velocity[k], self.velocity_error) for k in range(3)]
            rows += [(identity[at + 2], height + point.radius, self.height_error)]
            for h, measured, deviation in rows:
                PH = P @ h
                K = PH * (1.0 / (h @ PH + more * deviation**2))
                x, P = x + K * (measured - h @ x), mirror(P - np.outer(K, PH))
        return x, P

    def _suspicion(self, contact: Any) -> Any:
        """Return the factor of the variances of a foot with a probability of contact."""
        return 1.0 + self.suspect * (1.0 - contact)
