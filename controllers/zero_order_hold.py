"""Discrete-time control: a control law evaluated at a fixed rate, with constant torques in between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from legged.checked import checked
from legged.compiler.ir import Expression, where
from legged.contact.rigid import Rigid
from legged.errors import DefinitionError
from legged.ground.ground import Ground
from legged.robot.robot import Robot
from legged.simulation.controller import CommandedFunction, ControllerLike, adapt, full_torque

Array = np.ndarray
_TIME_TOLERANCE = 1e-6  # of a period, for times of evaluation
_ROUNDING = 8.0  # multiple of the number of periods beside which the rounding error of a time is lost


@checked
@dataclass(frozen=True, eq=False)
class ZeroOrderHold:
    """A control law in discrete time: evaluated at t = 0, 1 / rate, 2 / rate, ..., with constant torques in between.

    It needs an integrator with fixed steps, which starts a step at every evaluation, whatever the integrator's step and
    the times of samples. The memory is the current torques, (nv,), and the law's own memory, which advances by its rate
    over a whole period at each evaluation. A wrapper in `law` that has sample times of its own keeps them.

    Attributes:
        law: Any controller. At a switch of its reference it is not evaluated before the next regular time.
        rate: Evaluations per second, [1/s].
    """

    law: ControllerLike | CommandedFunction
    rate: float = 500.0

    def __post_init__(self) -> None:
        if not 0.0 < self.rate < np.inf:
            raise DefinitionError(f"the rate of a zero-order hold must be positive, got {self.rate} 1/s")
        if isinstance(self.law, ZeroOrderHold):
            raise DefinitionError("the law of a zero-order hold is itself a zero-order hold; use the inner law")

    def start(self, robot: Robot, ground: Ground | Rigid | None, q: Array, v: Array) -> tuple[SampledLaw, Array]:
        """Return (law, memory): the started law, and zero torques with its memory, (m,); see `Controller.start`."""
        controller, memory = adapt(self.law).start(robot, ground, q, v)
        return SampledLaw(robot, controller, self.rate), np.concatenate([np.zeros(robot.nv), memory])

    def __getattr__(self, name: str) -> Any:
        """Return `initial_state` of the law, if it has one."""
        if name != "initial_state":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.law, name)


@dataclass(frozen=True, eq=False)
class SampledLaw:
    """A started `ZeroOrderHold`.

    Attributes:
        robot: The robot.
        controller: The started law.
        sampling_rate: Evaluations per second, [1/s].
    """

    robot: Robot
    controller: Any
    sampling_rate: float

    def update(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, *command: Array) -> Array:
        """Return the memory at the start of a time step at t, (m,): new torques at the times of evaluation.

        Args:
            t: Time, [s].
            phase: Number of `switches` that have passed.
            q: Configuration, (nq,).
            v: Velocity, (nv,).
            wrenches: Wrenches of the ground on the links, (n_links, 6), about each link's origin in its axes.
            memory: Memory at the end of the previous time step, (m,).
            command: The command of `legged.Simulation.step`, (nu,), any unit, if the law takes one.
        """
        controller, robot = self.controller, self.robot
        due, held, own = is_sample_time(t, self.sampling_rate), memory[: robot.nv], memory[robot.nv :]
        clocked = controller.has_clock
        if not isinstance(due, Expression) and not due and not clocked:  # in Python the law runs at its times only
            return memory
        updated = controller.update(t, phase, q, v, wrenches, own, *command)
        if not isinstance(due, Expression) and not due:
            return np.concatenate([held, updated])
        tau = full_torque(robot, controller.torque(t, phase, q, v, wrenches, updated, *command))
        rate = controller.rate(t, phase, q, v, wrenches, updated, *command)
        following = updated + rate / self.sampling_rate
        between = np.concatenate([held, updated]) if clocked else memory
        return where(due, np.concatenate([tau, following]), between)

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, *command: Array) -> Array:
        """Return the current generalized forces, (nv,); arguments as in `update`."""
        return memory[: len(v)]

    def update_times(self, until: float) -> Array:
        """Return the times of evaluation between 0 and `until`, and those of the law, (n,), [s]."""
        own = np.asarray(self.controller.update_times(until), dtype=float)
        return np.union1d(own, sample_times(until, self.sampling_rate))

    def switches(self, until: float) -> Any:
        """Return the times before `until` at which the law's reference jumps, [s]."""
        return self.controller.switches(until)

    @property
    def has_clock(self) -> bool:
        """Whether `update` must run at times of its own: always."""
        return True

    @property
    def takes_command(self) -> bool:
        """Whether the law takes the command of `legged.Simulation.step`."""
        return self.controller.takes_command

    @property
    def reference(self) -> Any:
        """The law's `reference`, or None."""
        return getattr(self.controller, "reference", None)


def is_sample_time(t: Any, rate: Any) -> Any:
    """Return whether t is one of the times 0, 1 / rate, 2 / rate, ..., up to rounding; traced if t or rate is.

    The rounding error is estimated in the type of the numbers, so that time steps must be longer than 5e-7 of the time
    with float32 numbers, and 2e-15 of it with float64 numbers.

    Args:
        t: Time, [s]. rate: Samples per second, [1/s].
    """
    periods = t * rate
    difference, scale = np.abs(periods - np.floor(periods + 0.5)), _ROUNDING * np.abs(periods)
    return (difference < _TIME_TOLERANCE) | (scale + difference <= scale)


def sample_times(until: float, rate: float) -> Array:
    """Return the times 1 / rate, 2 / rate, ... before `until`, (n,), [s].

    Args:
        until: End time, [s]. rate: Samples per second, [1/s].
    """
    return np.arange(1, int(np.ceil(until * rate - _TIME_TOLERANCE))) / rate
