"""Sensor noise and bias: a law that sees the robot's state with errors from seeded random numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from controllers.law import Gain
from controllers.wrappers.wrapper import SampledWrapper
from controllers.zero_order_hold import is_sample_time
from legged import arguments
from legged.checked import checked
from legged.compiler.ir import where
from legged.compiler.ir.expression import Expression
from legged.errors import DefinitionError, ShapeError
from legged.robot.configuration import integrate
from legged.robot.robot import Robot

Array = np.ndarray
_MODULUS, _MULTIPLIER = 2147483647.0, 48271.0  # of the random numbers; products are below 2^53, exact in doubles


@checked
@dataclass(frozen=True, eq=False)
class SensorNoise(SampledWrapper):
    """A law that sees the robot's state with constant errors (biases) and random errors (noise).

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
        due, n = is_sample_time(t, self.frequency), self._size // 2
        if isinstance(due, Expression) or due:
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
        fitted = replace(self, **{k: _generalized(k, getattr(self, k), robot, k.endswith("bias")) for k in names})
        states = np.random.SeedSequence(int(self.seed)).generate_state(2 * robot.nv, np.uint32)
        return fitted, np.concatenate([1.0 + states % (int(_MODULUS) - 1), np.zeros(2 * robot.nv)])


def _generalized(name: str, value: Gain, robot: Robot, signed: bool) -> Array:
    """Return a value for each entry of v, (nv,), from one number or (nj,) for the joints, or (nv,).

    Args:
        name: Name of the value in error messages.
        value: The value, any unit.
        robot: The robot.
        signed: Whether it may be negative.
    """
    found = arguments.array(name, value)
    if found.shape not in ((), (robot.nj,), (robot.nv,)):
        raise ShapeError(f"{name} must be one number, ({robot.nj},) or ({robot.nv},), got shape {found.shape}")
    if not signed and (found < 0.0).any():
        raise DefinitionError(f"{name} must not be negative, got {found.min()}: it is a standard deviation")
    if found.shape == (robot.nv,):
        return found
    return np.concatenate([np.zeros(robot.base.nv), np.broadcast_to(found, (robot.nj,))])


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
