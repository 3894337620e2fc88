"""The interface of a robot: the measurements that a loop reads from it, and the commands that it writes to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from legged.arguments import number, real_array, whole
from legged.errors import ArgumentError, ShapeError
from legged.estimation.readings import Reading
from legged.spatial import Array


class Measurement(NamedTuple):
    """The readings of a robot at one time.

    Attributes:
        time: Time of the robot's clock, [s].
        reading: The readings of its sensors.
        truth: (q, v) of a simulated robot, (nq + nv,), mixed units; empty if unknown.
    """

    time: float
    reading: Reading
    truth: Array


def float_array(name: str, value: Any) -> Array:
    """Return numbers of a law or a driver, (...), in their unit, which may be NaN: an array of float64 as it is.

    Args:
        name: The name for messages. value: Anything that NumPy turns into an array, (...).

    Raises:
        ArgumentError, ShapeError: The value is no array of real numbers.
    """
    is_usual = type(value) is np.ndarray and value.dtype == float
    return value if is_usual else real_array(name, value).astype(float)


@dataclass(frozen=True, eq=False)
class JointCommand:
    """A command of servos: torque = torques + kp (targets - q) + kd (rates - qd) at positions q and velocities qd.

    Attributes:
        torques: Feed-forward torques, (nj,), [N m] or [N].
        targets: Target positions, (nj,), [rad] or [m].
        rates: Target velocities, (nj,), [rad/s] or [m/s].
        kp: Gains of the position errors, (nj,), [N m/rad] or [N/m].
        kd: Gains of the velocity errors, (nj,), [N m s/rad] or [N s/m].

    Raises:
        ArgumentError, ShapeError: An array is no array of real numbers, (nj,). A `Runner` stops at NaN.
    """

    torques: Array
    targets: Array
    rates: Array
    kp: Array
    kd: Array

    def __post_init__(self) -> None:
        for name, value in tuple(vars(self).items()):
            entries = float_array(name, value)
            if entries.ndim != 1 or len(entries) != len(self.torques):
                raise ShapeError(f"{name} must be (nj,), one entry per joint coordinate, got shape {entries.shape}")
            object.__setattr__(self, name, entries)

    @classmethod
    def of_torques(cls, torques: Array) -> JointCommand:
        """Return a command of torques alone.

        Args:
            torques: (nj,), [N m] or [N], joint coordinates.

        Raises:
            ArgumentError, ShapeError: For torques that are no real numbers, (nj,). A `Runner` stops at NaN.
        """
        zero = np.zeros(np.shape(torques := float_array("torques", torques)))
        return cls(torques, zero, zero, zero, zero)

    @classmethod
    def damping(cls, nj: int, kd: float) -> JointCommand:
        """Return a command that damps all joints.

        Args:
            nj: Number of joints. kd: Gain of the velocities of all joints, [N m s/rad] or [N s/m].

        Raises:
            ArgumentError, NotFiniteError: The arguments are no such numbers.
        """
        zero = np.zeros(whole("nj", nj, least=0))
        return cls(zero, zero, zero, zero, np.full(nj, number("kd", kd)))

    def actuation(self, joints: Array, rates: Array) -> Array:
        """Return the torques of the servos, (nj,), [N m] or [N].

        Args:
            joints: Positions, (nj,), [rad] or [m], joint coordinates.
            rates: Velocities, (nj,), [rad/s] or [m/s], joint coordinates.
        """
        return self.torques + self.kp * (self.targets - joints) + self.kd * (self.rates - rates)

    def flat(self) -> Array:
        """Return all arrays one after the other in the order of the fields, (5 nj,), mixed units."""
        return np.concatenate([self.torques, self.targets, self.rates, self.kp, self.kd])

    @classmethod
    def of(cls, flat: Array) -> JointCommand:
        """Return a command from the array of `flat`.

        Args:
            flat: (5 nj,), mixed units.
        """
        return cls(*np.reshape(np.asarray(flat, dtype=float), (5, -1)))


class RobotInterface(Protocol):
    """The methods of a robot that a `Runner` calls; a class with these methods connects a vendor's SDK."""

    def read(self) -> Measurement | None:
        """Return the newest measurement, or None if none has arrived since the last call. It must not wait."""
        ...

    def write(self, command: JointCommand) -> None:
        """Send a command. It must not wait."""
        ...

    def clock(self) -> float:
        """Return the time of a clock that never goes back, [s]."""
        ...

    def sleep_until(self, time: float) -> None:
        """Wait until a time of `clock`, [s]; a simulation advances to it. A change of the clock must not prolong it."""
        ...

    def close(self) -> None:
        """Close the connection and free its resources, such as sockets."""
        ...


def steps_per_measurement(rate: float, step: float) -> int:
    """Return the number of time steps from one measurement of a simulated robot to the next.

    Args:
        rate: Measurements per second, [1/s]. step: Time step, [s].

    Raises:
        ArgumentError: The rate or the step is not positive, or the period is not a whole number of time steps.
    """
    steps = 1.0 / (number("rate", rate, "1/s", above=0.0) * number("step", step, "s", above=0.0))
    if round(steps) < 1 or abs(steps - round(steps)) > 1e-6:  # rounding of the rate, such as 333.3333333
        raise ArgumentError(
            f"rate and step must give a whole number of time steps for each measurement, got {steps:.6g} of them with "
            f"a rate of {rate:g} 1/s and a step of {step:g} s"
        )
    return round(steps)


def measurement_of(values: Any, nj: int, feet: int) -> Measurement:
    """Return a measurement from the array of `measurement_values`.

    Args:
        values: (7 + 3 nj + 4 feet + k,), mixed units, k the length of the truth. nj: Number of joints.
        feet: Number of feet.
    """
    ends = np.cumsum([1, 3, 3, nj, nj, nj, 3 * feet, feet])
    time, gyro, force, joints, rates, torques, forces, contacts, truth = np.split(np.asarray(values, dtype=float), ends)
    reading = Reading(gyro, force, joints, rates, torques, forces.reshape(feet, 3), contacts)
    return Measurement(float(time[0]), reading, truth)


def measurement_values(measurement: Measurement) -> Array:
    """Return a measurement as one array, (7 + 3 nj + 4 feet + k,), mixed units, k the length of the truth.

    The order is that of the fields of `Measurement`, with those of `Reading` in their place.
    """
    parts = [np.ravel(part) for part in measurement.reading]
    return np.concatenate([[measurement.time], *parts, np.ravel(measurement.truth)])
