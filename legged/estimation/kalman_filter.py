"""Extended Kalman filter of the base and the feet of a legged robot, for the definitions of the error in `filters`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np

from legged.algorithms.linear_algebra import solve_rows
from legged.arguments import number
from legged.checked import checked
from legged.compiler.ir import where
from legged.dynamics.frames import Frame
from legged.errors import DefinitionError
from legged.estimation.readings import Deviations, FootMotion, Reading, SensedRobot
from legged.ground.terrain import Terrain
from legged.robot.robot import Robot
from legged.rotations import (
    quaternion_conjugate,
    quaternion_exp,
    quaternion_log,
    quaternion_matrix,
    quaternion_product,
)
from legged.spatial import Array, cross, factor_symmetric, mirror, skew, solve_factored

_SWING_DEVIATION = 0.1
"""Standard deviation of the motion of a foot in the air during one update, [m]."""
_STANCE = 0.25
"""Duration over which the error of the height of the terrain under a foot is constant, [s]."""
_RECOVERY, _LARGEST_FACTOR = 0.02, 25.0
"""Standard deviation, [m/s], whose square an update adds to the variance of the velocity if all feet in contact seem to
slip, and the largest factor of this square."""
_ALL_IN_THE_AIR = 1e12
"""Squared ratio (d / slip)^2 that stands for no foot in contact."""
_UP = np.array([0.0, 0.0, 1.0])
"""Normal of the ground for rolling feet, world axes."""
_ORIENTATION, _VELOCITY, _POSITION, _FEET = slice(0, 3), slice(3, 6), slice(6, 9), 9
"""Entries of the error; those of the feet begin at `_FEET`, and the last six are those of the biases."""


class FilterState(NamedTuple):
    """The parts of the memory of a Kalman filter; the sensor is the inertial measurement unit.

    Attributes:
        orientation: Unit quaternion, (4,), sensor axes to world axes.
        velocity: Velocity of the sensor, (3,), [m/s], world axes.
        position: Position of the sensor, (3,), [m], world axes.
        feet: Positions of the feet, (n, 3), [m], world axes.
        gyro_bias: Bias of the gyroscope, (3,), [rad/s], sensor axes.
        accelerometer_bias: Bias of the accelerometer, (3,), [m/s^2], sensor axes.
        covariance: Covariance of the error, (m, m) with m = 15 + 3 n, mixed units: orientation, velocity, position,
            feet, both biases.
    """

    orientation: Array
    velocity: Array
    position: Array
    feet: Array
    gyro_bias: Array
    accelerometer_bias: Array
    covariance: Array

    @classmethod
    def of(cls, memory: Array, feet: int) -> FilterState:
        """Return the parts of a memory.

        Args:
            memory: As `flat` returns it, (k,), mixed units. feet: Number of feet.
        """
        n, m = 3 * feet, 15 + 3 * feet
        rows, columns = np.triu_indices(m)
        P = np.zeros((m, m), dtype=memory.dtype)
        P[rows, columns] = P[columns, rows] = memory[16 + n :]
        places = memory[10 : 10 + n].reshape(feet, 3)
        return cls(memory[:4], memory[4:7], memory[7:10], places, memory[10 + n : 13 + n], memory[13 + n : 16 + n], P)

    def flat(self) -> Array:
        """Return the memory, (k,), mixed units: the parts in order, of the covariance the upper triangle by rows."""
        rows, columns = np.triu_indices(len(self.covariance))
        return np.concatenate([*self[:3], self.feet.ravel(), *self[4:6], self.covariance[rows, columns]])


@checked
@dataclass(frozen=True, eq=False)
class ContactKalmanFilter(ABC):
    """An extended Kalman filter of orientation, velocity, position, feet, and biases of gyroscope and accelerometer.

    The readings of the inertial measurement unit predict the motion of the base. The positions of the feet relative to
    this unit, by the encoders, correct the prediction, since feet in contact stand still. The state has all feet at all
    times. The variance q that an update adds to the position of a foot is small in contact and large in the air,

        log q = w log q_contact + (1 - w) log q_air,     w = c / (1 + (d / slip)^4),

    with the probability of contact c, and the Mahalanobis distance d of the velocity of the contact point from zero, so
    that a foot that slips or is falsely reported in contact has little effect. If all feet in contact seem to slip,
    the estimate itself may be wrong: each update then increases the variance of the velocity. The center of a spherical
    foot moves as the foot rolls.

    Position and rotation about the vertical are not observable and drift. If `terrain` is given, the heights of
    standing feet are corrected by it, which stops the vertical drift.

    Attributes:
        deviations: Standard deviations of the errors of sensors and feet.
        imu: Frame of the inertial measurement unit on the base link; None for that of the base.
        feet: Names of the contact points that serve as feet; None for all.
        slip: Mahalanobis distance d at which the weight w of a foot is half of its probability of contact.
        terrain: Known terrain, or None.
        terrain_deviation: Standard deviation of the known height of the terrain under a foot, [m].
        tilt, velocity, heading, position: Standard deviations of the first guess: rotation about each horizontal axis,
            [rad], velocity, [m/s], rotation about the vertical, [rad], and position, [m].
        gyro_bias, accelerometer_bias: Standard deviations of the biases, whose first guess is zero, [rad/s], [m/s^2].
    """

    deviations: Deviations = field(default_factory=Deviations)
    imu: str | Frame | None = None
    feet: Sequence[str] | None = None
    slip: float = 4.0
    terrain: Terrain | None = None
    terrain_deviation: float = 0.01
    tilt: float = 0.1
    velocity: float = 0.3
    heading: float = 1e-3
    position: float = 1e-3
    gyro_bias: float = 0.01
    accelerometer_bias: float = 0.1
    _sensed: SensedRobot | None = field(default=None, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        number("slip", self.slip, above=0.0)
        number("terrain_deviation", self.terrain_deviation, "m", above=0.0)
        for name in ("tilt", "velocity", "heading", "position", "gyro_bias", "accelerometer_bias"):
            number(name, getattr(self, name), least=0.0)

    @staticmethod
    @abstractmethod
    def lever(x: Array) -> Array:
        """Return skew(x) if a rotation of the estimate rotates the vector x too, otherwise zero, (3, 3).

        Args:
            x: A velocity or position, (3,), [m/s] or [m], world axes.
        """

    @staticmethod
    @abstractmethod
    def corrected_vector(x: Array, dx: Array, turn: Array, phi: Array) -> Array:
        """Return a velocity or position after a correction of the state, (3,), world axes.

        Args:
            x: The vector before it, (3,), [m/s] or [m], world axes.
            dx: The part of the correction for this vector, (3,), [m/s] or [m], world axes.
            turn: Rotation matrix of the correction, (3, 3). phi: Its rotation vector, (3,), [rad], world axes.
        """

    @abstractmethod
    def gravity_coupling(self, force: Array) -> Array:
        """Return the derivative of the rate of the velocity error by the orientation error, (3, 3), [m/s^2].

        Args:
            force: Specific force, (3,), [m/s^2], world axes.
        """

    def start(self, robot: Robot, q: Array, v: Array) -> tuple[Self, Array]:
        """Return (filter, memory): this filter for a robot, and its memory at a first guess of the state, (k,).

        Args:
            robot: The robot. q: Guessed configuration, (nq,), mixed units. v: Guessed velocity, (nv,), mixed units.

        Raises:
            DefinitionError: The robot has no feet or no floating base, or the sensor is not on the base.
            UnknownNameError: A frame or a foot does not exist.
        """
        sensed = SensedRobot.of(robot, self.imu, self.feet)
        orientation, position = sensed.sensor_pose(q)
        R = quaternion_matrix(orientation)
        velocity = R @ sensed.sensor_velocity(v)[1]
        motions = sensed.foot_motions(q[robot.base.nq :], v[robot.base.nv :], 0.0, 0.0)
        feet = np.array([position + R @ foot.position for foot in motions])
        m = 15 + 3 * len(feet)
        deviations = [self.tilt, self.tilt, self.heading, *[self.velocity] * 3, *[self.position] * 3]
        deviations += [_SWING_DEVIATION] * feet.size + [self.gyro_bias] * 3 + [self.accelerometer_bias] * 3
        T = np.eye(m)
        for k, x in enumerate((velocity, position, *feet), 1):
            T[3 * k : 3 * k + 3, _ORIENTATION] = self.lever(x)
        P = T @ np.diag(np.square(deviations)) @ T.T
        state = FilterState(orientation, velocity, position, feet, np.zeros(3), np.zeros(3), P)
        return replace(self, _sensed=sensed), state.flat()

    @property
    def sensed(self) -> SensedRobot:
        """The robot with its sensors, after `start`."""
        if self._sensed is None:
            raise DefinitionError(
                f"this {type(self).__name__} has no robot; use the one that start(robot, ...) returns"
            )
        return self._sensed

    def parts(self, memory: Array) -> FilterState:
        """Return the parts of a memory.

        Args:
            memory: (k,), mixed units.
        """
        return FilterState.of(memory, len(self.sensed.feet))

    def state(self, memory: Array, reading: Reading) -> tuple[Array, Array]:
        """Return the estimate (q, v), (nq,) and (nv,), mixed units; joint positions and velocities are as measured.

        Args:
            memory: Memory after the update with the reading, (k,), mixed units. reading: The last reading.
        """
        s = self.parts(memory)
        velocity = quaternion_matrix(s.orientation).T @ s.velocity
        return self.sensed.state(s.orientation, s.position, velocity, reading.gyro - s.gyro_bias, reading)

    def completed(self, memory: Array, reading: Reading) -> Reading:
        """Return the reading, whose forces and contacts are those of sensors.

        Args:
            memory: (k,), mixed units; not used. reading: The reading.
        """
        return reading

    def normalized_error(self, memory: Array, q: Array, v: Array) -> Any:
        """Return e^T P^-1 e, dimensionless, with the error e, (9,), of orientation, velocity and position.

        P is the covariance of these errors. The result of a consistent filter has a chi-square distribution with 9
        degrees of freedom.

        Args:
            memory: (k,), mixed units.
            q: True configuration, (nq,), mixed units. v: True velocity, (nv,), mixed units.
        """
        s, (orientation, position) = self.parts(memory), self.sensed.sensor_pose(q)
        velocity = quaternion_matrix(orientation) @ self.sensed.sensor_velocity(v)[1]
        turn = quaternion_product(orientation, quaternion_conjugate(s.orientation))
        phi, R = quaternion_log(turn), quaternion_matrix(turn)
        zero = np.zeros(3)
        errors = [
            x - self.corrected_vector(y, zero, R, phi) for x, y in ((velocity, s.velocity), (position, s.position))
        ]
        e = np.concatenate([phi, *errors])
        return e @ solve_factored(factor_symmetric(s.covariance[:9, :9]), e)

    def update(self, memory: Array, reading: Reading, dt: Any) -> Array:
        """Return the memory after a reading, (k,), mixed units.

        Args:
            memory: (k,), mixed units. reading: The reading. dt: Time since the last reading, [s].
        """
        d, sensed = self.deviations, self.sensed
        feet = sensed.foot_motions(reading.joints, reading.joint_rates, d.encoder, d.foot_model)
        before = self.parts(memory)
        moved = self._predicted_state(before, reading, dt)
        P = self._predicted_covariance(before, reading, dt)
        weights, variances, least_ratio = [], [], _ALL_IN_THE_AIR
        for foot, contact, point in zip(feet, reading.contacts, sensed.feet, strict=True):
            ratio = self._slip_ratio(moved, P, foot, point.radius, reading)
            least_ratio = np.minimum(least_ratio, where(contact > 0.5, ratio, _ALL_IN_THE_AIR))
            weight = contact / (1.0 + ratio * ratio)
            weights.append(weight)
            for walk in (d.foot_walk, d.foot_walk, d.foot_sinking):
                in_contact = walk**2 * dt
                variances.append(in_contact * np.exp((1.0 - weight) * np.log(_SWING_DEVIATION**2 / in_contact)))
        R, omega = quaternion_matrix(moved.orientation), reading.gyro - moved.gyro_bias
        places = [
            place + weight * dt * point.radius * cross(R @ (omega + foot.spin), _UP) if point.radius else place
            for place, weight, point, foot in zip(moved.feet, weights, sensed.feet, feet, strict=True)
        ]
        all_slip = (least_ratio > 1.0) & (least_ratio < _ALL_IN_THE_AIR)
        recovery = where(all_slip, _RECOVERY**2 * np.minimum(least_ratio, _LARGEST_FACTOR), 0.0)
        P = P + np.diag(np.stack([*[0.0] * 3, *[recovery] * 3, *[0.0] * 3, *variances, *[0.0] * 6]))
        moved = moved._replace(feet=np.array(places), covariance=P)
        return self._corrected(moved, feet, weights, dt).flat()

    def _predicted_state(self, s: FilterState, reading: Reading, dt: Any) -> FilterState:
        """Return the state after the motion that the inertial measurement unit has measured since the last reading."""
        turn = dt * (reading.gyro - s.gyro_bias)
        force = reading.specific_force - s.accelerometer_bias
        R = quaternion_matrix(s.orientation)
        acceleration = R @ (force + 0.5 * cross(turn, force)) + self.sensed.robot.gravity
        return s._replace(
            orientation=quaternion_product(s.orientation, quaternion_exp(turn)),
            velocity=s.velocity + dt * acceleration,
            position=s.position + dt * s.velocity + 0.5 * dt * dt * acceleration,
        )

    def _predicted_covariance(self, s: FilterState, reading: Reading, dt: Any) -> Array:
        """Return the covariance after the motion, without the motion of the feet: F P F^T + G Q G^T, (m, m)."""
        R, d, m = quaternion_matrix(s.orientation), self.deviations, len(s.covariance)
        gyro, accelerometer = slice(m - 6, m - 3), slice(m - 3, m)
        vectors = (s.velocity, s.position, *s.feet)
        levers = [self.lever(x) for x in vectors]
        coupling = dt * self.gravity_coupling(R @ (reading.specific_force - s.accelerometer_bias))

        def transition(M: Array) -> Array:
            """Return F M, (m, k)."""
            turn, push = dt * (R @ M[gyro]), dt * (R @ M[accelerometer])
            rows = [M[_ORIENTATION] - turn]
            for k, lever in enumerate(levers, 1):
                rows.append(M[3 * k : 3 * k + 3] - lever @ turn)
            rows[1] = rows[1] + coupling @ M[_ORIENTATION] - push
            rows[2] = rows[2] + dt * M[_VELOCITY]
            return np.concatenate([*rows, M[gyro], M[accelerometer]])

        P = mirror(transition(transition(s.covariance).T))
        turns = np.concatenate([np.eye(3), *levers, np.zeros((6, 3))])
        noise = np.zeros(m, dtype=P.dtype)
        noise[_VELOCITY] = (d.accelerometer * dt) ** 2
        noise[gyro], noise[accelerometer] = d.gyro_walk**2 * dt, d.accelerometer_walk**2 * dt
        return P + (d.gyro * dt) ** 2 * mirror(turns @ turns.T) + np.diag(noise)

    def _slip_ratio(self, s: FilterState, P: Array, foot: FootMotion, radius: float, reading: Reading) -> Any:
        """Return (d / slip)^2 of a foot, with d the Mahalanobis distance of its contact point's velocity from zero."""
        R, d = quaternion_matrix(s.orientation), self.deviations
        omega = reading.gyro - s.gyro_bias
        arm, spin = foot.position, omega + foot.spin
        slip = s.velocity + R @ (cross(omega, arm) + foot.velocity) - radius * cross(R @ spin, _UP)
        rates = (d.joint_rate**2 / max(d.encoder, 1e-9) ** 2) * (foot.covariance - d.foot_model**2 * np.eye(3))
        turned = d.gyro**2 * ((arm @ arm) * np.eye(3) - np.outer(arm, arm))
        S = P[_VELOCITY, _VELOCITY] + R @ (rates + turned) @ R.T
        return slip @ solve_factored(factor_symmetric(mirror(S)), slip) * (1.0 / self.slip**2)

    def _corrected(self, s: FilterState, feet: Sequence[FootMotion], weights: Sequence[Any], dt: Any) -> FilterState:
        """Return the state corrected by the positions of the feet, and by the height of the terrain under them.

        The measurements correct one after the other; delta is the correction by those before, and PH is P H^T.
        """
        R, P, m = quaternion_matrix(s.orientation), s.covariance, len(s.covariance)
        delta = np.zeros(m)
        for i, foot in enumerate(feet):
            arm, at = R @ foot.position, slice(_FEET + 3 * i, _FEET + 3 * i + 3)
            tilted = skew(arm) - self.lever(arm)
            residual = arm - (s.feet[i] - s.position) - (delta[at] - delta[_POSITION]) - tilted @ delta[_ORIENTATION]
            PH = P[:, at] - P[:, _POSITION] + P[:, _ORIENTATION] @ tilted.T
            S = PH[at] - PH[_POSITION] + tilted @ PH[_ORIENTATION] + R @ foot.covariance @ R.T
            K = solve_rows(factor_symmetric(mirror(S)), PH)
            delta, P = delta + K @ residual, mirror(P - K @ PH.T)
        if self.terrain is not None:
            for i, (place, weight, point) in enumerate(zip(s.feet, weights, self.sensed.feet, strict=True)):
                at, lever = _FEET + 3 * i + 2, -self.lever(place)[2]
                height = self.terrain.height(place[0], place[1]) + point.radius
                residual = height - place[2] - (delta[at] + lever @ delta[_ORIENTATION])
                PH = P[:, at] + P[:, _ORIENTATION] @ lever
                S = weight * (PH[at] + lever @ PH[_ORIENTATION]) + self.terrain_deviation**2 * (_STANCE / dt)
                K = PH * (weight / S)
                delta, P = delta + K * residual, mirror(P - np.outer(K, PH))
        return self._with_correction(s, delta)._replace(covariance=P)

    def _with_correction(self, s: FilterState, delta: Array) -> FilterState:
        """Return the state after a correction, (m,), mixed units: the exponential map up to the second order."""
        phi, m = delta[_ORIENTATION], len(delta)
        turn = quaternion_exp(phi)
        p, R = quaternion_product(turn, s.orientation), quaternion_matrix(turn)
        moved = [
            self.corrected_vector(x, delta[3 * k : 3 * k + 3], R, phi)
            for k, x in enumerate((s.velocity, s.position, *s.feet), 1)
        ]
        return s._replace(
            orientation=p / np.sqrt(p @ p),
            velocity=moved[0],
            position=moved[1],
            feet=np.array(moved[2:]),
            gyro_bias=s.gyro_bias + delta[m - 6 : m - 3],
            accelerometer_bias=s.accelerometer_bias + delta[m - 3 :],
        )
