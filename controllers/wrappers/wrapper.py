"""The base class of wrappers, controllers around other ones, with delay of measurements and an inexact model.

    law = controllers.SensorNoise(controllers.ComputedTorque(gait), velocity=0.05)       # [rad/s]
    law = controllers.Delay(controllers.ZeroOrderHold(law, rate=500.0), delay=0.004)
    law = controllers.ActuatorLag(controllers.ActuatorLimits(law, torque_limit=40.0), time_constant=0.005)

A wrapper is a controller around another one; wrappers nest in any order. Signals pass inward from the sensors and
outward to the actuators, so the outermost wrapper of commands is next to the robot. The memory of a wrapper stands
before that of its law. Wrappers with a discrete update need an integrator with fixed steps, which starts a step at
each of their sample times.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from controllers.zero_order_hold import is_sample_time, sample_times
from legged import arguments
from legged.checked import checked
from legged.compiler.ir import Expression, where
from legged.contact.rigid import Rigid
from legged.errors import DefinitionError
from legged.ground.ground import Ground
from legged.loops.closed_robot import ClosedRobot
from legged.robot.robot import Robot
from legged.simulation.controller import CommandedFunction, ControllerLike, adapt, full_torque

Array = np.ndarray
_WHOLE = 1e-6  # of a period: deviation of a delay from a whole number of periods that counts as rounding


@checked
@dataclass(frozen=True, eq=False)
class Wrapper:
    """Base class of controllers that evaluate another one; subclasses change its inputs or its torques.

    `start` returns a copy with the started law. Its memory is [own memory; memory of the law]. A subclass with states
    of its own returns their initial values from `own_memory`, and their rates, or their values after an update, in
    front of what `rate` or `update` of this class returns; `docs/howto/own_parts.md` has examples.

    Attributes:
        law: Any controller.
    """

    law: ControllerLike | CommandedFunction
    _robot: Robot | None = field(default=None, repr=False, kw_only=True)
    _size: int = field(default=0, repr=False, kw_only=True)  # length of the wrapper's own memory

    def start(self, robot: Robot, ground: Ground | Rigid | None, q: Array, v: Array) -> tuple[Self, Array]:
        """Return (wrapper, memory): this wrapper around the started law, and its memory; see `Controller.start`.

        Raises:
            LeggedError: A field does not fit the robot, or the law refuses it.
        """
        controller, memory = adapt(self.law).start(robot, ground, q, v)
        fitted, own = self._fitted(robot)
        started = replace(fitted, law=controller, _robot=robot, _size=len(own))
        return started, np.concatenate([own, memory])

    def on_closed_robot(self, closed: ClosedRobot) -> Any:
        """Return the controller for a robot with closed loops: this wrapper around that of its law; see `Controller`.

        Args:
            closed: The robot.
        """
        inner = getattr(self.law, "on_closed_robot", None)
        return self if inner is None else replace(self, law=inner(closed))

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, *command: Array) -> Array:
        """Return the generalized forces, (nv,); arguments as in `GaitLaw.torque`."""
        return full_torque(self._plant, self._started.torque(t, phase, q, v, wrenches, memory[self._size :], *command))

    def rate(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, *command: Array) -> Array:
        """Return the time derivative of the memory, (m,); arguments as in `GaitLaw.torque`."""
        inner = self._started.rate(t, phase, q, v, wrenches, memory[self._size :], *command)
        return np.concatenate([np.zeros(self._size), inner])

    def update(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, *command: Array) -> Array:
        """Return the memory at the start of a time step, (m,); arguments as in `GaitLaw.torque`."""
        inner = self._started.update(t, phase, q, v, wrenches, memory[self._size :], *command)
        return np.concatenate([memory[: self._size], inner])

    def switches(self, until: float) -> Any:
        """Return the times before `until` at which the law's reference jumps, [s]."""
        return self._started.switches(until)

    def update_times(self, until: float) -> Any:
        """Return the times before `until` at which a time step must start, [s]."""
        return self._started.update_times(until)

    @property
    def _started(self) -> Any:
        """The law, which `start` has replaced with a started controller."""
        return self.law if self._robot is not None else adapt(self.law)

    @property
    def has_update(self) -> bool:
        """Whether the wrapper or its law has a discrete update."""
        return self._started.has_update

    @property
    def has_clock(self) -> bool:
        """Whether the wrapper or its law has sample times of its own."""
        return bool(getattr(self.law, "has_clock", False))

    @property
    def takes_command(self) -> bool:
        """Whether the law takes the command of `legged.Simulation.step`, which the wrapper passes on."""
        return bool(getattr(self.law, "takes_command", False))

    @property
    def reference(self) -> Any:
        """The law's `reference`, or None."""
        return getattr(self.law, "reference", None)

    @property
    def planned_footsteps(self) -> Any:
        """The law's `planned_footsteps` as a function of the wrapper's memory, or None."""
        planned = getattr(self.law, "planned_footsteps", None)
        return planned and (lambda memory: planned(memory[self._size :]))

    @property
    def commanded_velocity(self) -> Any:
        """The law's `commanded_velocity` as a function of time and the wrapper's memory, or None."""
        commanded = getattr(self.law, "commanded_velocity", None)
        return commanded and (lambda t, memory: commanded(t, memory[self._size :]))

    @property
    def notice(self) -> Any:
        """The law's `notice` as a function of time and the wrapper's memory, or None."""
        notice = getattr(self.law, "notice", None)
        return notice and (lambda t, memory: notice(t, memory[self._size :]))

    def __getattr__(self, name: str) -> Any:
        """Return `initial_state` of the law, if it has one."""
        if name != "initial_state":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.law, name)

    def own_memory(self, robot: Robot) -> Array:
        """Return the initial values of the wrapper's own memory, (k,), any unit; none in this class.

        Args:
            robot: The robot.
        """
        return np.zeros(0)

    def _fitted(self, robot: Robot) -> tuple[Self, Array]:
        """Return this wrapper with its fields fitted to a robot, and its own initial memory."""
        return self, arguments.rounded_array(f"{type(self).__name__}.own_memory", self.own_memory(robot), (None,))

    @property
    def _plant(self) -> Robot:
        if self._robot is None:
            kind = type(self).__name__
            raise DefinitionError(f"this {kind} has no robot; use the wrapper that start(robot, ...) returns")
        return self._robot


@checked
@dataclass(frozen=True, eq=False)
class SampledWrapper(Wrapper):
    """The base class of wrappers whose own memory changes at the times 0, 1 / frequency, 2 / frequency, ..."""

    frequency: float = field(default=1000.0, kw_only=True)

    def __post_init__(self) -> None:
        arguments.number("frequency", self.frequency, "1/s", above=0.0)

    def update_times(self, until: float) -> Any:
        """Return the sample times before `until`, and those of the law, (n,), [s]."""
        own = np.asarray(self._started.update_times(until), dtype=float)
        return np.union1d(own, sample_times(until, self.frequency))

    @property
    def has_update(self) -> bool:
        """Whether there is a discrete update: always."""
        return True

    @property
    def has_clock(self) -> bool:
        """Whether there are sample times: always."""
        return True


@checked
@dataclass(frozen=True, eq=False)
class Delay(SampledWrapper):
    """The commands of a law, late by a constant time; zero until the first one arrives.

    The command is sampled at t_k = k / frequency, and acts from t_k + delay on until the next one. A law under
    `ZeroOrderHold` is delayed exactly if its sample times are among the t_k. The memory is the commands on their way,
    (delay frequency + 1) times (nv,).

    Attributes:
        law: Any controller.
        delay: A whole number of sampling periods, [s].
        frequency: Samples per second, [1/s].

    Raises:
        DefinitionError: The delay is not a whole number of sampling periods.
    """

    delay: float

    def __post_init__(self) -> None:
        super().__post_init__()
        arguments.number("delay", self.delay, "s", least=0.0)
        if abs(self.delay * self.frequency - self._periods) > _WHOLE:
            raise DefinitionError(
                f"delay must be a whole number of sampling periods, got {self.delay} s and periods of "
                f"{1.0 / self.frequency:g} s; use a higher frequency"
            )

    def update(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, *command: Array) -> Array:
        """Return the memory at the start of a time step, (m,): at sample times with the present command in front.

        Arguments as in `GaitLaw.torque`.
        """
        updated = super().update(t, phase, q, v, wrenches, memory, *command)
        due = is_sample_time(t, self.frequency)
        if not isinstance(due, Expression) and not due:
            return updated
        tau = super().torque(t, phase, q, v, wrenches, updated, *command)
        line = updated[: self._size]
        shifted = np.concatenate([tau, line[: self._size - len(v)]])
        return np.concatenate([where(due, shifted, line), updated[self._size :]])

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, *command: Array) -> Array:
        """Return the delayed generalized forces, (nv,); arguments as in `GaitLaw.torque`."""
        return memory[self._size - len(v) : self._size]

    @property
    def _periods(self) -> int:
        return round(self.delay * self.frequency)

    def _fitted(self, robot: Robot) -> tuple[Self, Array]:
        return self, np.zeros((self._periods + 1) * robot.nv)


@checked
@dataclass(frozen=True, eq=False)
class NominalModel(Wrapper):
    """A law that computes with another model of the robot than the one that is simulated.

    Attributes:
        law: Any controller.
        model: The robot that the law computes with: of the same structure, with other masses, lengths or friction.

    Raises:
        DefinitionError: Links, joints or contact points of model and robot differ in names or number.
    """

    model: Robot

    def __post_init__(self) -> None:
        arguments.instance("model", self.model, Robot, "a legged.Robot")

    def start(self, robot: Robot, ground: Ground | Rigid | None, q: Array, v: Array) -> tuple[Self, Array]:
        """Return (wrapper, memory) with the law started for the model, (m,); arguments as in `Wrapper.start`."""
        for words, names in (
            ("links", lambda robot: [link.name for link in robot.links]),
            ("joints", lambda robot: [(joint.name, joint.q, joint.v) for joint in robot.joints]),
            ("bases", lambda robot: [robot.base.kind]),
            ("contact points", lambda robot: [contact.name for contact in robot.contacts]),
        ):
            own, wanted = names(self.model), names(robot)
            if own != wanted:
                missing = [name for name in wanted if name not in own]
                different = (
                    f"first {missing[0]!r} of the robot, which the model lacks" if missing else f"{own}, {wanted}"
                )
                raise DefinitionError(
                    f"the nominal model {self.model.name!r} and the robot {robot.name!r} have different {words}, "
                    f"{different}; a nominal model differs in numbers only: give it a payload that it ignores as a "
                    f"link of mass zero on a fixed joint"
                )
        controller, memory = adapt(self.law).start(self.model, ground, q, v)
        return replace(self, law=controller, _robot=robot), memory
