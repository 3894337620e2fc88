"""Controllers with imperfect sensors or actuators: noise and bias, torque-speed curves, and first-order lag.

Each class wraps any controller, its `law`, and is a controller itself: `SensorNoise` changes the state that the law
receives, `ActuatorLimits` and `ActuatorLag` change the torques that it returns. The base class `Wrapper` fits the law
to a robot when a run starts, calls the method `_fitted` of the wrapper, and keeps the memory of the wrapper, `_size`
entries, before that of the law. The arguments of `torque`, `rate` and `update` are those of `GaitLaw.torque`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from controllers.law import Gain, per_joint, refuse_negative
from controllers.wrappers.wrapper import SampledWrapper, Wrapper
from controllers.zero_order_hold import is_sample_time
from legged import arguments
from legged.checked import checked
from legged.compiler.ir import Expression, where
from legged.errors import DefinitionError, ShapeError
from legged.robot.configuration import integrate
from legged.robot.robot import Robot

Array = np.ndarray
_MODULUS, _MULTIPLIER = 2147483647.0, 48271.0  # of the random numbers; products are below 2^53, exact in doubles


@checked
@dataclass(frozen=True, eq=False)
class SensorNoise(SampledWrapper):
    """A law that receives the robot's state with constant errors (biases) and random errors (noise).

    The errors are normally distributed, independent of each other, and constant between the sample times k / frequency.
    Each of the four fields is one number for every joint, (nj,) for the joints, or (nv,) for base and joints in the
    tangent space of q and in v. Contact wrenches are not changed. The same seed gives the same errors in machine code,
    in Python and on every processor up to rounding; in a rollout, vary "controller.seed".

    The memory is the state of a random number generator per error and the present errors in standard deviations.

    Attributes:
        law: Any controller.
        position: Standard deviation of positions, [rad] or [m].
        velocity: Standard deviation of velocities, [rad/s] or [m/s].
        position_bias: Constant error of positions, [rad] or [m].
        velocity_bias: Constant error of velocities, [rad/s] or [m/s].
        seed: Seed of the random numbers, a whole number.
        frequency: New errors per second, [1/s].

    Raises:
        DefinitionError: A standard deviation is negative, or the seed is no whole number.

    Source:
        Multiplicative congruential generator of Park and Miller, "Random number generators: good ones are hard to
        find", Communications of the ACM 31(10), 1988, with the multiplier 48271; normal numbers by Box and Muller 1958.
    """

    position: Gain = 0.0
    velocity: Gain = 0.0
    position_bias: Gain = 0.0
    velocity_bias: Gain = 0.0
    seed: int | float = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        arguments.number("seed", self.seed, least=0)
        if self.seed != round(self.seed):
            raise DefinitionError(f"seed must be a whole number, got {self.seed}")
        refuse_negative(self, "position", "velocity", reason="it is a standard deviation")

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, *command: Array) -> Array:
        """Return the law's generalized forces at the measured state, (nv,); arguments as in `GaitLaw.torque`."""
        return super().torque(t, phase, *self._measured(q, v, memory), wrenches, memory, *command)

    def rate(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, *command: Array) -> Array:
        """Return the time derivative of the memory, (m,); arguments as in `GaitLaw.torque`."""
        return super().rate(t, phase, *self._measured(q, v, memory), wrenches, memory, *command)

    def update(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, *command: Array) -> Array:
        """Return the memory at the start of a time step, (m,): at sample times with new errors.

        Arguments as in `GaitLaw.torque`.
        """
        due, n = is_sample_time(t, self.frequency), self._size // 2  # n random states, then n standard deviations
        if isinstance(due, Expression) or due:  # in a trace, whether the errors are due is known in a run only
            states = _next_random(memory[:n])
            drawn = np.concatenate([states, _normal(states)])
            memory = np.concatenate([where(due, drawn, memory[: 2 * n]), memory[2 * n :]])
        return super().update(t, phase, *self._measured(q, v, memory), wrenches, memory, *command)

    def _measured(self, q: Array, v: Array, memory: Array) -> tuple[Array, Array]:
        """Return the measured q and v, (nq,) and (nv,)."""
        robot, nv = self._plant, len(v)
        errors = memory[self._size // 2 : self._size]
        dq = np.asanyarray(self.position) * errors[:nv] + np.asanyarray(self.position_bias)
        dv = np.asanyarray(self.velocity) * errors[nv : 2 * nv] + np.asanyarray(self.velocity_bias)
        return integrate(robot, q, dq), v + dv

    def _fitted(self, robot: Robot) -> tuple[Self, Array]:
        names = ("position", "velocity", "position_bias", "velocity_bias")
        fitted = replace(self, **{name: _per_velocity(name, getattr(self, name), robot) for name in names})
        words = np.random.SeedSequence(int(self.seed)).generate_state(2 * robot.nv, np.uint32)
        states = 1.0 + words % (int(_MODULUS) - 1)
        return fitted, np.concatenate([states, np.zeros(2 * robot.nv)])


def _per_velocity(name: str, value: Gain, robot: Robot) -> Array:
    """Return a value for each entry of v, (nv,), from one number or (nj,) for the joints, or (nv,).

    Args:
        name: Name of the value in error messages. value: The value, any unit. robot: The robot.
    """
    array = arguments.rounded_array(name, value)
    if array.shape not in ((), (robot.nj,), (robot.nv,)):
        raise ShapeError(f"{name} must be one number, ({robot.nj},) or ({robot.nv},), got shape {array.shape}")
    if array.shape == (robot.nv,):
        return array
    return np.concatenate([np.zeros(robot.base.nv), np.broadcast_to(array, (robot.nj,))])


def _next_random(states: Array) -> Array:
    """Return the next states of random number generators, whole numbers from 1 to m - 1 in floats: a x mod m."""
    product = _MULTIPLIER * np.floor(states + 0.5)
    rest = product - _MODULUS * np.floor(product / _MODULUS)
    rest = where(rest < 0.0, rest + _MODULUS, rest)  # after a rounded quotient
    return where(rest >= _MODULUS, rest - _MODULUS, rest)


def _normal(states: Array) -> Array:
    """Return as many independent numbers of the standard normal distribution as there are states, an even number."""
    n = len(states) // 2
    uniform = states / _MODULUS
    radius, angle = np.sqrt(-2.0 * np.log(uniform[:n])), 2.0 * np.pi * uniform[n:]
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])


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
        corner_speed: Speed up to which the whole torque is available, below `speed`, [rad/s] or [m/s]; without effect
            if `speed` is None.

    Raises:
        DefinitionError: A limit is negative; in `start`: `corner_speed` is not below `speed`.
    """

    torque_limit: Gain
    speed: Gain | None = None
    corner_speed: Gain = 0.0

    def __post_init__(self) -> None:
        refuse_negative(self, "torque_limit", "speed", "corner_speed", reason="it is a magnitude")

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
    by its whole period at once: put the lag around the hold.

    Attributes:
        law: Any controller.
        time_constant: T, one number or one per joint coordinate, [s].

    Raises:
        DefinitionError: T is negative; in `start`: it is zero.
    """

    time_constant: Gain

    def __post_init__(self) -> None:
        refuse_negative(self, "time_constant", reason="the lag would be unstable")

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, *command: Array) -> Array:
        """Return the generalized forces of the actuators, (nv,); arguments as in `GaitLaw.torque`."""
        return np.concatenate([np.zeros(self._plant.base.nv), memory[: self._size]])

    def rate(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, *command: Array) -> Array:
        """Return the time derivative of the memory, (m,); arguments as in `GaitLaw.torque`."""
        target = super().torque(t, phase, q, v, wrenches, memory, *command)[self._plant.base.nv :]
        tau_rate = (target - memory[: self._size]) / np.asanyarray(self.time_constant)
        return np.concatenate([tau_rate, super().rate(t, phase, q, v, wrenches, memory, *command)[self._size :]])

    def _fitted(self, robot: Robot) -> tuple[Self, Array]:
        time_constant = per_joint("time_constant", self.time_constant, robot.nj)
        if not (time_constant > 0.0).all():
            raise DefinitionError(f"time_constant must be positive, got {time_constant.min()} s")
        return replace(self, time_constant=time_constant), np.zeros(robot.nj)
