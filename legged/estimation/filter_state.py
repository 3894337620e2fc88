"""The parts of the memory of a Kalman filter of `ContactKalmanFilter`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from legged.spatial import Array


class FilterState(NamedTuple):
    """The parts of the memory of a Kalman filter; the sensor is the inertial measurement unit.

    Attributes:
        orientation: Unit quaternion, (4,), sensor axes to world axes.
        velocity: Velocity of the sensor, (3,), [m/s], world axes.
        position: Position of the sensor, (3,), [m], world axes.
        feet: Positions of the feet, (n, 3), [m], world axes.
        gyro_bias: Bias of the gyroscope, (3,), [rad/s], sensor axes.
        accelerometer_bias: Bias of the accelerometer, (3,), [m/s^2], sensor axes.
        contacts: Probability of contact of each foot at the last reading, (n,).
        slips: Velocity of each contact point, (n, 3), [m/s], world axes, a mean over the latest readings in contact.
        shares: Variance of the noise in each of these means, relative to that of one reading, (n,).
        covariance: Covariance of the error, (m, m) with m = 15 + 3 n, mixed units: orientation, velocity, position,
            feet, both biases.
    """

    orientation: Array
    velocity: Array
    position: Array
    feet: Array
    gyro_bias: Array
    accelerometer_bias: Array
    contacts: Array
    slips: Array
    shares: Array
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
        *parts, upper = np.split(memory, np.cumsum([4, 3, 3, n, 3, 3, feet, n, feet]))
        parts[3], parts[7] = parts[3].reshape(feet, 3), parts[7].reshape(feet, 3)
        P[rows, columns] = P[columns, rows] = upper
        return cls._make([*parts, P])

    def flat(self) -> Array:
        """Return the memory, (k,), mixed units: the parts in order, of the covariance the upper triangle by rows."""
        rows, columns = np.triu_indices(len(self.covariance))
        return np.concatenate([*(part.ravel() for part in self[:-1]), self.covariance[rows, columns]])
