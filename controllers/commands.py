"""Sources of commands for control laws: values at given times, functions of time, and live input.

A command is a function of time [s] that returns an array (k,). Any NumPy formula will do; `SampledCommand` and
`LiveCommand` are functions with values of their own. `CommandedLaw` passes the command to a law, and
`CommandedPosture` makes it the reference of the laws that follow a gait.

    posture = controllers.CommandedPosture(lambda t: np.array([0.2 * np.sin(3.0 * t), -0.4]))      # [rad]
    run = legged.simulate(robot, controllers.JointPD(posture), until=2.0)
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np

from controllers.gaits.gait import level_state
from legged import arguments, taylor
from legged.arguments import Numbers
from legged.checked import checked
from legged.compiler.ir import Expression
from legged.contact.rigid import Rigid
from legged.errors import DefinitionError, ShapeError, TraceError
from legged.ground.ground import Ground
from legged.robot.configuration import refuse_ball_quaternions
from legged.robot.robot import Robot

Array = np.ndarray
CommandSource = Callable[[Any], Any]
"""A function of time [s] that returns the command, (k,) or a number, in any unit."""


@checked
@dataclass(frozen=True, eq=False)
class SampledCommand:
    """A command given by its values at some times, constant or linear between them, constant before and after.

    Attributes:
        times: Increasing, (n,), [s].
        values: Command at each time, (n,) or (n, k), any unit.
        linear: Whether the command is linear between the times; otherwise each value holds until the next time.
    """

    times: Sequence[float] | Array
    values: Sequence[Any] | Array
    linear: bool = False

    def __post_init__(self) -> None:
        times, values = (
            arguments.rounded_array("times", self.times, (None,)),
            arguments.rounded_array("values", self.values),
        )
        if not len(times) or not (np.diff(times) > 0.0).all():
            raise DefinitionError(f"times of a command must increase, got {arguments.shown(self.times)}")
        if values.ndim not in (1, 2) or len(values) != len(times):
            raise ShapeError(
                f"values must be ({len(times)},) or ({len(times)}, k), one for each time, got {values.shape}"
            )
        object.__setattr__(self, "times", times)
        object.__setattr__(self, "values", values)

    def __call__(self, t: Any) -> Any:
        """Return the command at a time t, [s]: a number, or an array (k,), in the unit of the values."""
        values = np.asanyarray(self.values)
        return self._value(t, values) if values.ndim == 1 else np.array([self._value(t, column) for column in values.T])

    def switches(self, until: float) -> Array:
        """Return the times before `until` at which the command or its rate jumps, (n,), [s]."""
        times = np.asarray(self.times, dtype=float)
        return times[(times > 0.0) & (times < until)]

    def _value(self, t: Any, values: Any) -> Any:
        """Return one number of the command at a time, from its values at all times."""
        value = values[0]
        for (start, end), (a, b) in zip(pairwise(self.times), pairwise(values), strict=True):
            slope = (b - a) / (end - start) if self.linear else 0.0
            value = taylor.where(t >= start, a + slope * (t - start), value)
        return taylor.where(t >= self.times[-1], values[-1], value)


@checked
class LiveCommand:
    """A command that changes while a simulation goes on: another thread or a user's function calls `set`.

    It cannot be part of compiled code: a law that reads it runs in Python, beside a compiled robot. Copies of a law
    share its live commands; pickles do not.

    Args:
        value: First value, a number or (k,), any unit.
    """

    parameter_names = ("_value",)

    def __init__(self, value: Any):
        self._value = arguments.rounded_array("value", value)

    def set(self, value: Any) -> None:
        """Change the command.

        Args:
            value: New value, of the same shape as before, any unit.

        Raises:
            ShapeError, NotFiniteError: The value has another shape or is not finite.
        """
        self._value = arguments.rounded_array("value", value, self._value.shape)

    def __call__(self, t: Any) -> Any:
        """Return the present command: a number, or an array (k,), in the unit of its values.

        Args:
            t: Time, [s].

        Raises:
            TraceError: The time is traced.
        """
        if isinstance(t, Expression):
            raise TraceError("a LiveCommand changes while the simulation goes on and cannot be compiled")
        return self._value[()].copy()

    def __deepcopy__(self, memo: Any) -> LiveCommand:
        return self


class _LiveReadings:
    """A live command of one run: at past times it returns the values that were read then, also for the record."""

    parameter_names = ("command",)

    def __init__(self, command: LiveCommand):
        self.command = command
        self._times: list[float] = []
        self._values: list[Any] = []

    def __call__(self, t: Any) -> Any:
        value = self.command(t)
        if not self._times or t > self._times[-1]:
            self._times.append(float(t))
            self._values.append(value)
        return self._values[max(bisect_right(self._times, t) - 1, 0)]


def _started(command: CommandSource) -> CommandSource:
    return _LiveReadings(command) if isinstance(command, LiveCommand) else command


@checked
@dataclass(frozen=True, eq=False)
class CommandedLaw:
    """A function (t, q, v, wrenches, command) -> torques with a source of commands, as a controller.

    Attributes:
        law: The function; it returns joint torques (nj,) or generalized forces (nv,).
        command: Function of time, `SampledCommand` or `LiveCommand`.
    """

    law: Callable[[Any, Array, Array, Array, Any], Array]
    command: CommandSource

    def start(self, robot: Robot, ground: Ground | Rigid | None, q: Array, v: Array) -> tuple[Self, Array]:
        """Return (law, memory) of a run, the memory (0,); arguments as in `GaitLaw.start`."""
        return replace(self, command=_started(self.command)), np.zeros(0)

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        """Return the torques under the present command, (nj,) or (nv,); arguments as in `GaitLaw.torque`."""
        return self.law(t, q, v, wrenches, self.command(t))

    def switches(self, until: float) -> Any:
        """Return the times before `until` at which the command jumps, [s]; none for a source without `switches`."""
        return _switches(self.command, until)


@checked
@dataclass(frozen=True, eq=False)
class CommandedPosture:
    """Joint positions that follow a command, as the reference of `JointPD`, `ComputedTorque` and other laws.

    Velocities and accelerations are the derivatives of the command: exact for formulas and for a linear
    `SampledCommand`, zero for a `LiveCommand`.

    Attributes:
        command: Joint positions, (nj,), [rad] or [m], as a function of time [s].
        base_height: Initial height of the base's origin over the ground, [m].
    """

    command: CommandSource
    base_height: float = 0.0

    def reference(self, t: Numbers, phase: Numbers | None = None) -> tuple[Array, Array, Array]:
        """Return joint positions, velocities and accelerations, (nj,) each; see `Gait.reference`."""
        if isinstance(self.command, (LiveCommand, _LiveReadings)):
            position = self.command(t)
            return position, np.zeros(position.shape), np.zeros(position.shape)
        position = self.command(taylor.time(t))
        if isinstance(position, (int, float)):
            raise ShapeError(f"the command must return an array, one entry per joint coordinate, got {position}")
        return taylor.derivatives(list(position))

    def switches(self, until: float) -> Any:
        """Return the times before `until` at which the command jumps, [s]; none for a source without `switches`."""
        return _switches(self.command, until)

    def on(self, robot: Robot) -> Self:
        """Return this reference for a run."""
        return replace(self, command=_started(self.command))

    def initial_state(self, robot: Robot) -> tuple[Array, Array]:
        """Return (q, v) at t = 0 on the command with a level base at rest, (nq,) and (nv,)."""
        refuse_ball_quaternions(robot)
        position, rates, _ = self.reference(0.0)
        if position.shape != (robot.nj,):
            raise ShapeError(f"the command must be ({robot.nj},), one entry per joint coordinate, got {position.shape}")
        return level_state(robot, np.array([0.0, 0.0, self.base_height]), np.zeros(3), position, rates)


def _switches(command: CommandSource, until: float) -> Any:
    switches = getattr(command, "switches", None)
    return () if switches is None else switches(until)
