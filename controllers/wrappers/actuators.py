"""Actuators: torque-speed curves and first-order lag."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from controllers.law import Gain, per_joint
from controllers.wrappers.wrapper import Wrapper
from legged.checked import checked
from legged.errors import DefinitionError
from legged.robot.robot import Robot

Array = np.ndarray


@checked
@dataclass(frozen=True, eq=False)
class ActuatorLimits(Wrapper):
    """Joint torques within a torque-speed curve.

    In the direction of motion an actuator gives at most its torque up to `corner_speed`, then linearly less, and
    nothing from `speed` on. Against the motion it gives up to its whole torque. With corner_speed = 0 this is the law
    of a motor's `effort` and `speed` in `legged.JointPhysics`, which simulations apply to every robot that has them.

    Attributes:
        law: Any controller.
        torque_limit: Largest torque, one number or one per joint coordinate, [N m] or [N].
        speed: Speed without load, one number or one per joint coordinate, [rad/s] or [m/s]; None for no such limit.
        corner_speed: Speed up to which the whole torque is available, below `speed`, [rad/s] or [m/s].
    """

    torque_limit: Gain
    speed: Gain | None = None
    corner_speed: Gain = 0.0

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, *command: Array) -> Array:
        """Return the law's generalized forces within the limits, (nv,); arguments as in `GaitLaw.torque`."""
        n = self._plant.base.nv
        tau = super().torque(t, phase, q, v, wrenches, memory, *command)
        forward, backward = self._available(v[n:]), self._available(-v[n:])
        limited = np.minimum(np.maximum(tau[n:], -backward), forward)
        return np.concatenate([tau[:n], limited])

    def _available(self, rates: Array) -> Array:
        """Return the largest torque in the direction of positive rates, (nj,)."""
        limit = np.asanyarray(self.torque_limit)
        if self.speed is None:
            return limit
        speed, corner = np.asanyarray(self.speed), np.asanyarray(self.corner_speed)
        return limit * np.minimum(np.maximum((speed - rates) / (speed - corner), 0.0), 1.0)

    def _fitted(self, robot: Robot) -> tuple[Self, Array]:
        n = robot.nj
        limit, corner = per_joint("torque_limit", self.torque_limit, n), per_joint("corner_speed", self.corner_speed, n)
        speed = None if self.speed is None else per_joint("speed", self.speed, n)
        if speed is not None and not (speed > corner).all():
            raise DefinitionError(f"corner_speed must be below speed, got {self.corner_speed} and {self.speed}")
        return replace(self, torque_limit=limit, speed=speed, corner_speed=corner), np.zeros(0)


@checked
@dataclass(frozen=True, eq=False)
class ActuatorLag(Wrapper):
    """Actuators that follow the commanded joint torques u with a first-order lag, tau' = (u - tau) / T, from tau = 0.

    The memory is tau, (nj,). Explicit integrators need time steps below T. In a `ZeroOrderHold` the lag would advance
    by its whole period at once, so that it belongs around the hold.

    Attributes:
        law: Any controller.
        time_constant: T, one number or one per joint coordinate, [s].
    """

    time_constant: Gain

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, *command: Array) -> Array:
        """Return the generalized forces of the actuators, (nv,); arguments as in `GaitLaw.torque`."""
        return np.concatenate([np.zeros(self._plant.base.nv), memory[: self._size]])

    def rate(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, *command: Array) -> Array:
        """Return the time derivative of the memory, (m,); arguments as in `GaitLaw.torque`."""
        target = super().torque(t, phase, q, v, wrenches, memory, *command)[self._plant.base.nv :]
        own = (target - memory[: self._size]) / np.asanyarray(self.time_constant)
        return np.concatenate([own, super().rate(t, phase, q, v, wrenches, memory, *command)[self._size :]])

    def _fitted(self, robot: Robot) -> tuple[Self, Array]:
        time_constant = per_joint("time_constant", self.time_constant, robot.nj)
        if not (time_constant > 0.0).all():
            raise DefinitionError(f"time_constant must be positive, got {time_constant.min()} s")
        return replace(self, time_constant=time_constant), np.zeros(robot.nj)
