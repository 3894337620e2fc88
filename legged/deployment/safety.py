"""Limits of commands, and limits of the measured state beyond which a loop stops."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from controllers.gaits import joint_limits
from legged.arguments import number, real_array
from legged.checked import checked
from legged.deployment.interface import JointCommand, float_array
from legged.errors import ShapeError
from legged.estimation.readings import Reading
from legged.robot.robot import Robot
from legged.spatial import Array


@checked
@dataclass(frozen=True, eq=False)
class SafetyLimits:
    """Limits of a robot in operation; each array is (nj,), or one number for all joints.

    Attributes:
        torque: Largest magnitudes of torques of the servos, [N m] or [N].
        torque_rate: Largest changes of torques per second, [N m/s] or [N/s].
        lower, upper: Smallest and largest joint positions, [rad] or [m]; target positions are limited to them.
        velocity: Largest magnitudes of joint velocities, [rad/s] or [m/s]; beyond them the loop stops.
        tilt: Largest angle between the vertical axis of the estimated base and the vertical, [rad]; beyond it the loop
            stops.
        damping: Gain of the joint velocities in a safe stop, [N m s/rad] or [N s/m].
        margin: Distance of a joint beyond `lower` or `upper` at which the loop stops, [rad] or [m].

    Raises:
        ArgumentError: An entry is no real number.
        ShapeError: `torque`, `torque_rate` or `velocity` is not positive, or `lower` is not below `upper`.
    """

    torque: Any = np.inf
    torque_rate: Any = np.inf
    lower: Any = -np.inf
    upper: Any = np.inf
    velocity: Any = np.inf
    tilt: float = 1.0
    damping: float = 2.0
    margin: float = 0.1

    def __post_init__(self) -> None:
        for name in ("torque", "torque_rate", "velocity", "lower", "upper"):
            values = real_array(name, getattr(self, name)).astype(float)
            if name not in ("lower", "upper") and not (values > 0.0).all():
                raise ShapeError(f"{name} of SafetyLimits must be positive, got {values}")
            object.__setattr__(self, name, values)
        if not (self.lower < self.upper).all():
            raise ShapeError("lower of SafetyLimits must be below upper")
        number("tilt", self.tilt, "rad", above=0.0)
        number("damping", self.damping, above=0.0)
        number("margin", self.margin, least=0.0)

    @classmethod
    def of(cls, robot: Robot, **given: Any) -> SafetyLimits:
        """Return the limits of a robot's joints: the torques of its motors, and its ranges of positions.

        Args:
            robot: The robot, with joints of one degree of freedom. given: Other fields, or other values of these.
        """
        effort, base = np.full(robot.nv, np.inf), robot.base.nv
        for body in robot.bodies:
            for entry, most, _ in body.motor_limits:
                effort[entry] = most
        lower, upper = joint_limits(robot)
        return cls(**{"torque": effort[base:], "lower": lower, "upper": upper, **given})

    def limited(self, command: JointCommand, reading: Reading, last: Array, dt: float) -> tuple[JointCommand, Array]:
        """Return (command, torques (nj,)) within the limits of torque, rate of torque and target position.

        The feed-forward torques are changed so that the torques of the servos at the readings are within the limits.

        Args:
            command: The command. reading: The readings.
            last: Torques of the servos at the last command, (nj,), [N m] or [N], joint coordinates.
            dt: Time since the last command, [s].

        Raises:
            ShapeError: `last` has another number of joints than the command.
        """
        if np.shape(last) != command.torques.shape:
            raise ShapeError(f"last must be {command.torques.shape}, one entry per joint, got shape {np.shape(last)}")
        moved = replace(command, targets=np.clip(command.targets, self.lower, self.upper))
        wanted = moved.actuation(float_array("joints", reading.joints), float_array("joint_rates", reading.joint_rates))
        step = self.torque_rate * dt
        torques = np.clip(np.clip(wanted, last - step, last + step), -self.torque, self.torque)
        return replace(moved, torques=moved.torques + torques - wanted), torques

    def violation(self, reading: Reading, q: Array) -> str:
        """Return why the loop must stop, "" if it need not.

        Args:
            reading: The readings.
            q: Estimated configuration, (nq,), mixed units, of a floating base; empty for no check of the tilt.

        Raises:
            ShapeError: q is neither empty nor that of a floating base.
        """
        if np.ndim(q) != 1 or 0 < len(q) < 7:
            raise ShapeError(f"q must be (nq,) of a floating base, or empty, got shape {np.shape(q)}")
        joints, rates = float_array("joints", reading.joints), float_array("joint_rates", reading.joint_rates)
        if (joints < self.lower - self.margin).any() or (joints > self.upper + self.margin).any():
            return "a joint is beyond its limits of position"
        if (np.abs(rates) > self.velocity).any():
            return "a joint is faster than its limit"
        if len(q) and 1.0 - 2.0 * (q[1] ** 2 + q[2] ** 2) < np.cos(self.tilt):
            return "the base leans over"
        return ""
