"""The right-invariant extended Kalman filter, and the quaternion filter as a baseline.

They are the filter of `ContactKalmanFilter` with two definitions of the error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from legged.checked import checked
from legged.estimation.kalman_filter import ContactKalmanFilter
from legged.spatial import Array, cross, skew


@checked
@dataclass(frozen=True, eq=False)
class InvariantFilter(ContactKalmanFilter):
    """The contact-aided right-invariant extended Kalman filter; see `ContactKalmanFilter` for fields and memory.

    The error (phi, dv, dp, dd) of an estimate (R^, v^, p^, d^) of orientation, velocity, position and feet is that of
    their matrix Lie group,

        R = Exp(phi) R^,     x = Exp(phi) x^ + J(phi) dx     for each x of v, p, d,

    with the left Jacobian J of the rotation group. Without biases, the rate of the error and the innovations of the
    feet do not depend on the estimate. The filter therefore converges from large errors, and unobservable directions
    stay unobservable.

    Source:
        Hartley, Ghaffari, Eustice, Grizzle 2020, "Contact-aided invariant extended Kalman filtering for robot state
        estimation", International Journal of Robotics Research 39(4). Feet here are always part of the state.
    """

    @staticmethod
    def lever(x: Array) -> Array:
        """Return skew(x), (3, 3), since a rotation of the estimate about the origin of the world rotates x.

        Args:
            x: A velocity or position, (3,), [m/s] or [m], world axes.
        """
        return skew(x)

    @staticmethod
    def corrected_vector(x: Array, dx: Array, turn: Array, phi: Array) -> Array:
        """Return Exp(phi) x + J(phi) dx, (3,), with J(phi) up to the first order; see `ContactKalmanFilter`."""
        return turn @ x + dx + 0.5 * cross(phi, dx)

    def gravity_coupling(self, force: Array) -> Array:
        """Return skew(g), (3, 3), [m/s^2].

        Args:
            force: Specific force, (3,), [m/s^2], world axes; not used.
        """
        return skew(np.asarray(self.sensed.robot.gravity))


@checked
@dataclass(frozen=True, eq=False)
class QuaternionFilter(ContactKalmanFilter):
    """The quaternion error-state filter, as a baseline; see `ContactKalmanFilter` for fields and memory.

    Its error is R = Exp(phi) R^ and x = x^ + dx for velocity, position and feet.

    Source:
        Bloesch et al. 2012, "State estimation for legged robots: consistent fusion of leg kinematics and IMU",
        Robotics: Science and Systems, with the error of the orientation in world axes.
    """

    @staticmethod
    def lever(x: Array) -> Array:
        """Return zero, (3, 3), since a rotation of the estimate changes no velocity or position.

        Args:
            x: A velocity or position, (3,), [m/s] or [m], world axes.
        """
        return np.zeros((3, 3))

    @staticmethod
    def corrected_vector(x: Array, dx: Array, turn: Array, phi: Array) -> Array:
        """Return x + dx, (3,); see `ContactKalmanFilter`."""
        return x + dx

    def gravity_coupling(self, force: Array) -> Array:
        """Return -skew(f), (3, 3), [m/s^2].

        Args:
            force: Specific force f, (3,), [m/s^2], world axes.
        """
        return -skew(force)
