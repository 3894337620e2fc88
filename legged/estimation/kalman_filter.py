"""Extended Kalman filter of the base and the feet of a legged robot, for the definitions of the error in `filters`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from legged.algorithms.linear_algebra import solve_rows
from legged.arguments import number
from legged.checked import checked
from legged.compiler.ir import where
from legged.dynamics.frames import Frame
from legged.errors import DefinitionError
from legged.estimation.filter_state import FilterState
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
_RECOVERY = 0.1
"""Time in which the variance of the velocity grows e-fold while all feet in contact seem to slip, [s]: an estimate that
is wrong by 1 m/s is corrected after about 1 s, and feet may slip together for some tenths."""
_ALL_IN_THE_AIR = 1e12
"""Squared distance that stands for no foot in contact."""
_CHANGE = 25.0
"""Of the velocity of a contact point: the variance that a second adds, in units of that of one reading, [1/s]. The mean
of `FilterState.slips` extends over 10 ms at 500 readings per second."""
_NEW = 1e3
"""Of `FilterState.shares`, where a contact begins."""
_LARGEST_EXPONENT = 30.0
"""Of the odds of slipping: a foot that certainly slips has a weight of 1e-13."""
_UP = np.array([0.0, 0.0, 1.0])
"""Normal of the ground for rolling feet, world axes."""
_ORIENTATION, _VELOCITY, _POSITION, _FEET = slice(0, 3), slice(3, 6), slice(6, 9), 9
"""Entries of the error; those of the feet begin at `_FEET`, and the last six are those of the biases."""


@checked
@dataclass(frozen=True, eq=False)
class ContactKalmanFilter(ABC):
    """An extended Kalman filter of orientation, velocity, position, feet, and biases of gyroscope and accelerometer.

    The readings of the inertial measurement unit predict the motion of the base. The positions of the feet relative to
    this unit, by the encoders, correct the prediction, since feet in contact stand still. The state has all feet at all
    times. The variance q that an update adds to the position of a foot is small in contact and large in the air,

        log q = w log q_contact + (1 - w) log q_air,     w = c / (1 + exp((d^2 - slip^2) / 2)),

    with the lesser probability of contact c of this reading and the last one, since a foot that has just landed has
    moved in between. The second factor of w is the probability of standing of two hypotheses that are equally likely at
    the Mahalanobis distance d = slip from rest. The distance is that of the velocity of the contact point, as a mean
    over the latest 10 ms in contact, and of the position of the foot beside the predicted one. A foot that slips or is
    falsely reported in contact thus has little effect. If all feet in contact seem to slip, the estimate itself may be
    wrong: each update then increases the variance of the velocity. The center of a spherical foot moves as it
    rolls.

    Position and rotation about the vertical are not observable and drift. If `terrain` is given, the heights of
    standing feet are corrected by it, which stops the vertical drift.

    Attributes:
        deviations: Standard deviations of the errors of sensors and feet.
        imu: Frame of the inertial measurement unit on the base link; None for that of the base.
        feet: Names of the contact points that serve as feet; None for all.
        slip: Mahalanobis distance d at which the weight w of a foot is half of its probability of contact.
        sinking: Depth by which feet in contact sink into soft ground, [m]. The point at rest is halfway between the
            surfaces of ground and foot, as in MuJoCo: a foot rolls on a radius that is smaller by half of the depth.
        terrain: Known terrain, or None.
        terrain_deviation: Standard deviation of the known height of the terrain under a foot, [m].
        tilt, velocity, heading, position: Standard deviations of the first guess: rotation about each horizontal axis,
            [rad], velocity, [m/s], rotation about the vertical, [rad], and position, [m].
        gyro_bias, accelerometer_bias: Standard deviations of the biases, whose first guess is zero, [rad/s], [m/s^2].
    """

    deviations: Deviations = field(default_factory=Deviations)
    imu: str | Frame | None = None
    feet: Sequence[str] | None = None
    slip: float = 5.0
    sinking: float = 0.0
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
        for name in ("sinking", "tilt", "velocity", "heading", "position", "gyro_bias", "accelerometer_bias"):
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
        n, zero = len(feet), np.zeros(3)
        state = FilterState(
            orientation, velocity, position, feet, zero, zero, np.ones(n), np.zeros((n, 3)), np.full(n, _NEW), P
        )
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

    def update(self, memory: Array, reading: Reading, dt: Any, unread: Any = 0.0) -> Array:
        """Return the memory after a reading, (k,), mixed units.

        Args:
            memory: (k,), mixed units. reading: The reading. dt: Time since the last reading, [s].
            unread: Part of this time that the reading does not cover, [s], such as after a lost packet.
        """
        d, sensed = self.deviations, self.sensed
        reading = sensed.used(reading)
        feet = sensed.foot_motions(reading.joints, reading.joint_rates, d.encoder, d.foot_model)
        before = self.parts(memory)
        moved = self._predicted_state(before, reading, dt)
        P = self._predicted_covariance(before, reading, dt, unread)
        radii = [point.radius - 0.5 * self.sinking for point in sensed.feet]
        weights, variances, slips, shares, least = [], [], [], [], _ALL_IN_THE_AIR
        for i, (foot, contact, radius) in enumerate(zip(feet, reading.contacts, radii, strict=True)):
            standing = np.minimum(contact, before.contacts[i])
            slip, share, distance = self._motion(moved, P, i, foot, radius, reading, standing, dt)
            slips.append(slip)
            shares.append(share)
            least = np.minimum(least, where(standing > 0.5, distance, _ALL_IN_THE_AIR))
            odds = np.exp(np.minimum(0.5 * (distance - self.slip**2), _LARGEST_EXPONENT))
            weight = standing / (1.0 + odds)
            weights.append(weight)
            for walk in (d.foot_walk, d.foot_walk, d.foot_sinking):
                in_contact = walk**2 * dt
                variances.append(in_contact * np.exp((1.0 - weight) * np.log(_SWING_DEVIATION**2 / in_contact)))
        R, omega = quaternion_matrix(moved.orientation), reading.gyro - moved.gyro_bias
        places = [
            place + weight * dt * radius * cross(R @ (omega + foot.spin), _UP) if radius else place
            for place, weight, radius, foot in zip(moved.feet, weights, radii, feet, strict=True)
        ]
        all_slip = (least > self.slip**2) & (least < _ALL_IN_THE_AIR)
        growth = where(all_slip, dt / _RECOVERY, 0.0) * np.diag(P)[_VELOCITY]
        P = P + np.diag(np.concatenate([np.zeros(3), growth, np.zeros(3), np.stack(variances), np.zeros(6)]))
        moved = moved._replace(
            feet=np.array(places),
            contacts=reading.contacts,
            slips=np.array(slips),
            shares=np.stack(shares),
            covariance=P,
        )
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

    def _predicted_covariance(self, s: FilterState, reading: Reading, dt: Any, unread: Any) -> Array:
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
        noise[_VELOCITY] = (d.accelerometer * dt) ** 2 + (d.unread_force * unread) ** 2
        noise[gyro], noise[accelerometer] = d.gyro_walk**2 * dt, d.accelerometer_walk**2 * dt
        turned = (d.gyro * dt) ** 2 + (d.unread_gyro * unread) ** 2
        return P + turned * mirror(turns @ turns.T) + np.diag(noise)

    def _motion(
        self,
        s: FilterState,
        P: Array,
        i: int,
        foot: FootMotion,
        radius: float,
        reading: Reading,
        standing: Any,
        dt: Any,
    ) -> tuple[Array, Any, Any]:
        """Return the motion of foot i: its entries of `slips` and `shares`, and d^2 of `ContactKalmanFilter`."""
        R, d = quaternion_matrix(s.orientation), self.deviations
        omega = reading.gyro - s.gyro_bias
        arm, spin = foot.position, omega + foot.spin
        rolling = radius * cross(R @ spin, _UP)
        velocity = s.velocity + R @ (cross(omega, arm) + foot.velocity) - rolling
        prior = where(standing > 0.5, s.shares[i] + _CHANGE * dt, _NEW)
        share = prior / (1.0 + prior)
        slip = s.slips[i] + share * (velocity - s.slips[i])
        rates = (d.joint_rate**2 / max(d.encoder, 1e-9) ** 2) * (foot.covariance - d.foot_model**2 * np.eye(3))
        turned = d.gyro**2 * ((arm @ arm) * np.eye(3) - np.outer(arm, arm))
        S = P[_VELOCITY, _VELOCITY] + share * (R @ (rates + turned) @ R.T)
        moved, _, W = self._innovation(s, P, np.zeros(len(P)), i, foot)
        moved = moved - dt * rolling
        squares = [x @ solve_factored(factor_symmetric(mirror(A)), x) for x, A in ((slip, S), (moved, W))]
        return slip, share, squares[0] + squares[1]

    def _innovation(
        self, s: FilterState, P: Array, delta: Array, i: int, foot: FootMotion
    ) -> tuple[Array, Array, Array]:
        """Return the innovation of the position of foot i after a correction delta, P H^T, and its covariance."""
        R, at = quaternion_matrix(s.orientation), slice(_FEET + 3 * i, _FEET + 3 * i + 3)
        arm = R @ foot.position
        tilted = skew(arm) - self.lever(arm)
        residual = arm - (s.feet[i] - s.position) - (delta[at] - delta[_POSITION]) - tilted @ delta[_ORIENTATION]
        PH = P[:, at] - P[:, _POSITION] + P[:, _ORIENTATION] @ tilted.T
        return residual, PH, PH[at] - PH[_POSITION] + tilted @ PH[_ORIENTATION] + R @ foot.covariance @ R.T

    def _corrected(self, s: FilterState, feet: Sequence[FootMotion], weights: Sequence[Any], dt: Any) -> FilterState:
        """Return the state corrected by the positions of the feet, and by the height of the terrain under them.

        The measurements correct one after the other; delta is the correction by those before, and PH is P H^T.
        """
        P, delta = s.covariance, np.zeros(len(s.covariance))
        for i, foot in enumerate(feet):
            residual, PH, S = self._innovation(s, P, delta, i, foot)
            K = solve_rows(factor_symmetric(mirror(S)), PH)
            delta, P = delta + K @ residual, mirror(P - K @ PH.T)
        if self.terrain is not None:
            for i, (place, weight, point) in enumerate(zip(s.feet, weights, self.sensed.feet, strict=True)):
                at, lever = _FEET + 3 * i + 2, -self.lever(place)[2]
                height = self.terrain.height(place[0], place[1]) + point.radius - self.sinking
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
