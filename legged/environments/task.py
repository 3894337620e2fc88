"""`Task`: a task of reinforcement learning, defined by functions of the state of a robot."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from legged.arguments import array, known_name, real_array, shown
from legged.checked import checked
from legged.compiler import Counts
from legged.contact.rigid import Rigid
from legged.environments.draws import Draws
from legged.environments.state import State, called, observed
from legged.errors import ArgumentError, DefinitionError, NotFiniteError, ShapeError
from legged.robot.robot import Robot

Array = np.ndarray
Function = Callable[[State], Any]


@checked
@dataclass(frozen=True)
class Observation:
    """A term of an observation.

    Attributes:
        function: Function of the `State` that returns a vector or one number, in its unit.
        scale: Factor of the result and its noise, one number or one for each entry.
        noise: Largest magnitude of uniform noise that is added before scaling, in the unit of the result.
        limit: Magnitude to which the result is clipped, after scaling.
        reflection: Sign of each entry after an exchange of left and right, (k,), where it does not follow from the
            result in reflected states, as for the clock of a gait, which moves by half a period; None where it does.
    """

    function: Function
    scale: Any = 1.0
    noise: Any = 0.0
    limit: Any = 100.0
    reflection: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ArgumentError(f"the function of an Observation must be a function, got {shown(self.function)}")
        for name in ("scale", "noise", "limit"):
            if np.isnan(real_array(f"{name} of an Observation", getattr(self, name))).any():
                raise NotFiniteError(f"{name} of an Observation must hold numbers, got NaN")


@checked
@dataclass(frozen=True)
class Reward:
    """A part of the reward.

    Attributes:
        function: Function of the `State` that returns one number.
        weight: Its factor in the reward per second: a control step adds weight * function * period.
    """

    function: Function
    weight: float


@checked
@dataclass(frozen=True)
class Memory:
    """A variable of a task that keeps its value from one control step to the next.

    Attributes:
        start: Function of the `State` at the end of the last episode that returns the value at the start of the next
            one; before the first one, `state.memory` holds `initial`.
        update: Function of the `State` that returns the value after each control step.
        initial: The value before the first episode, and with which a policy starts outside of an environment, (n,) or
            one number, in its unit.
    """

    start: Function
    update: Function
    initial: Any = 0.0

    def __post_init__(self) -> None:
        array("initial", self.initial)


@checked
@dataclass(frozen=True)
class Range:
    """Uniform distribution of a number in which members differ, drawn at the start of each episode.

    Attributes:
        low, high: Bounds, in the unit of the number; dimensionless for a factor.
        is_factor: Whether the drawn number multiplies the nominal one instead of replacing it.
        is_offset: Whether drawn numbers are added to the nominal ones instead of replacing them, one for each entry.
    """

    low: float
    high: float
    is_factor: bool = False
    is_offset: bool = False

    def drawn(self, nominal: Any, random: Draws) -> Any:
        """Return a random value of a number, in its shape and unit.

        Args:
            nominal: Its nominal value. random: Random numbers.
        """
        if self.is_offset:
            shape = np.shape(nominal)
            return nominal + random.uniform(self.low, self.high, int(np.prod(shape))).reshape(shape)
        drawn = random.uniform(self.low, self.high)
        return nominal * drawn if self.is_factor else drawn + 0.0 * np.asarray(nominal)


@checked
@dataclass(frozen=True)
class Command:
    """The command of an episode, such as a velocity to follow, and when it is drawn again.

    Attributes:
        draw: Function of the `State` that returns a new command, (n,), in its units.
        interval: Shortest and longest time until the next one, [s].
        size: Number of entries, n.
        reflection: Sign of each entry after an exchange of left and right, (n,); None for an unchanged command.
    """

    draw: Function
    interval: tuple[float, float] = (10.0, 10.0)
    size: int = 3
    reflection: tuple[float, ...] | None = None


@checked
@dataclass(frozen=True)
class Disturbance:
    """Sudden changes of the velocity of the base.

    Attributes:
        linear: Largest change along each horizontal world axis, [m/s].
        angular: Largest change about each base axis, [rad/s].
        interval: Shortest and longest time between two of them, [s].
    """

    linear: float = 0.5
    angular: float = 0.0
    interval: tuple[float, float] = (10.0, 15.0)


@checked
@dataclass(frozen=True, eq=False)
class Task:
    """A task of reinforcement learning for a robot with motors in its joints on a rigid ground.

    All functions take the `State` of one member, return numbers or arrays, and are plain NumPy code without branches on
    values, except by `legged.where`: they are traced. An action moves the targets of the servos, posture + scale *
    action; a control step takes `substeps` time steps.

    Attributes:
        robot: The robot, with a floating or a fixed base. ground: The ground.
        posture: Targets of the servos for a zero action, (nj,), [rad] or [m].
        height: Initial height of the base over the terrain, [m].
        kp, kd: Gains of the servos, (nj,) or one, [N m/rad] or [N/m], and [N m s/rad] or [N s/m].
        torque_control: Whether targets are torques of the motors, [N m] or [N], in place of K_p target.
        action_scale: Change of a target per action, (nj,) or one, [rad] or [m].
        action_limit: Magnitude to which actions are clipped, dimensionless.
        time_step: [s]. substeps: Number of time steps of a control step.
        episode: Longest duration of an episode, [s].
        observations: Name of a group -> name -> `Observation`; the group `actor` is what a policy sees.
        rewards: Name -> `Reward`. terminations: Name -> function that returns whether the episode ends.
        start: Function that returns (q, v) at the start of an episode, (nq,) and (nv,), from the `State` at the end of
            the last one with the `memory` of the next.
        command: What the policy is asked for; None for nothing. disturbance: Sudden changes of velocity, or None.
        memory: Name -> `Memory`.
        variations: Name of a number -> its `Range`: a parameter of the robot as in `Robot.parameters`,
            `ground.friction`, `ground.restitution`, `servo.stiffness`, `servo.damping`, `servo.strength` (factors) or
            `servo.delay` [s].

    Raises:
        DefinitionError, ShapeError: The parts do not fit together; the message names them.
    """

    robot: Robot
    ground: Rigid
    posture: Array
    height: float
    observations: Mapping[str, Mapping[str, Observation]]
    rewards: Mapping[str, Reward]
    terminations: Mapping[str, Function]
    start: Function
    kp: Any = 25.0
    kd: Any = 0.5
    torque_control: bool = False
    action_scale: Any = 0.25
    action_limit: float = 4.0
    time_step: float = 0.005
    substeps: int = 4
    episode: float = 20.0
    command: Command | None = None
    disturbance: Disturbance | None = None
    memory: Mapping[str, Memory] = field(default_factory=dict)
    variations: Mapping[str, Range] = field(default_factory=dict)

    def __post_init__(self) -> None:
        nj = self.robot.nj
        if self.robot.base.nq not in (0, 7) or (self.robot.base.nq == 0 and self.disturbance is not None):
            raise DefinitionError(
                f"robot {self.robot.name!r} needs a floating base for a task, or a fixed one without disturbance, not "
                f"{self.robot.base}"
            )
        for name in ("posture", "kp", "kd", "action_scale"):
            given = array(name, getattr(self, name))
            if given.shape not in ((), (nj,)) or (name == "posture" and not given.shape):
                raise ShapeError(f"{name} must be ({nj},), one entry per joint, got shape {given.shape}")
            object.__setattr__(self, name, np.broadcast_to(given, (nj,)))
        if "actor" not in self.observations:
            raise DefinitionError("the observations need a group 'actor', which is what a policy sees")
        for name in ("time_step", "episode", "height", "action_limit"):
            if not 0.0 < getattr(self, name) < np.inf:
                raise DefinitionError(f"{name} of a task must be positive, got {getattr(self, name)}")
        if self.substeps != int(self.substeps) or self.substeps < 1:
            raise DefinitionError(f"substeps must be a whole number, 1 or more, got {self.substeps}")
        for name, bounds in self.variations.items():
            if not bounds.low <= bounds.high:
                raise DefinitionError(f"variation of {name!r}: low {bounds.low} exceeds high {bounds.high}")
            if bounds.is_factor and bounds.is_offset:
                raise DefinitionError(f"variation of {name!r}: it is either a factor or an offset")

    @property
    def period(self) -> float:
        """Duration of a control step, [s]."""
        return self.time_step * self.substeps

    @property
    def episode_steps(self) -> int:
        """Number of control steps of the longest episode."""
        return max(round(self.episode / self.period), 1)

    def targets(self, action: Array) -> Array:
        """Return the targets of the servos, (..., nj), [rad] or [m].

        Args:
            action: Actions, (..., nj), dimensionless.
        """
        limit = self.action_limit
        return self.posture + self.action_scale * np.minimum(np.maximum(action, -limit), limit)

    @property
    def command_size(self) -> int:
        """Number of entries of the command, nc."""
        return 0 if self.command is None else self.command.size

    def observed(
        self,
        q: Array,
        v: Array,
        action: Array,
        last_action: Array,
        command: Array,
        steps: Any,
        memory: Array | None = None,
    ) -> Array:
        """Return the observation of the group `actor` without noise, (k,); other arguments as in `State`.

        Args:
            memory: What the observation needs of the memory of the task, see `actor_memory`; None for its start.

        Raises:
            DefinitionError: A term needs contact forces or torques, which a policy does not measure.
        """
        kept = self._parts_of(self.actor_memory if memory is None else memory)
        return observed(
            self.observations["actor"], self._sensed(q, v, action, last_action, command, steps, kept), "actor"
        )

    @cached_property
    def actor_memory(self) -> Array:
        """Memory that the observations of the actor read, (m,), in units of its parts: `initial` of each part.

        A policy outside of an environment updates it by `remembered` after each control step.
        """
        values = [np.atleast_1d(np.asarray(self.memory[name].initial, float)) for name in self._actor_parts]
        return np.concatenate([np.zeros(0), *values])

    def remembered(
        self, q: Array, v: Array, action: Array, last_action: Array, command: Array, steps: Any, memory: Array
    ) -> Array:
        """Return the memory for the actor after a control step, (m,); other arguments as in `State`.

        Args:
            memory: That after the last control step, or `actor_memory`, (m,), in units of its parts.
        """
        s = self._sensed(q, v, action, last_action, command, steps, self._parts_of(memory))
        values = [np.atleast_1d(called(f"memory {name}", self.memory[name].update, s)) for name in self._actor_parts]
        return np.concatenate([np.zeros(0), *values])

    @cached_property
    def _actor_parts(self) -> list[str]:
        """Names of the parts of the memory that the observations of the actor read, directly or by their updates."""
        if not self.memory:
            return []
        memory, zero = _Read({name: part.initial for name, part in self.memory.items()}), np.zeros(self.robot.nj)
        q = np.concatenate([self.robot.neutral()[: -self.robot.nj], self.posture])
        s = self._sensed(q, np.zeros(self.robot.nv), zero, zero, np.zeros(self.command_size), 0.0, memory)
        observed(self.observations["actor"], s, "actor")
        for name in memory.names:  # which grows while updates read other parts
            called(f"memory {name}", self.memory[name].update, s)
        return memory.names

    def _parts_of(self, memory: Array) -> dict[str, Array]:
        """Return the parts of the memory for the actor by name: (n,), or a number where `initial` is one."""
        parts, at = {}, 0
        for name in self._actor_parts:
            shape = np.shape(self.memory[name].initial)
            parts[name] = memory[at : at + shape[0]] if shape else memory[at]
            at += shape[0] if shape else 1
        return parts

    def _sensed(
        self, q: Array, v: Array, action: Array, last_action: Array, command: Array, steps: Any, memory: Any
    ) -> State:
        """Return the state that a policy knows; arguments as in `State`."""
        draws = Draws(0.0, 0.0, 0.0)
        return State(self, None, q, v, v, np.zeros(0), action, last_action, command, memory, {}, steps, draws)

    def counts(self) -> Counts:
        """Return the operations of the end of a control step; `by_stage` has those of each function by its name.

        What several functions use is counted where it is computed first.
        """
        from legged.environments.transition import transition_counts  # needs this module

        return transition_counts(self)

    def changed(self, **fields: Any) -> Task:
        """Return the task with other fields; mappings are merged, and an entry None removes one.

            task.changed(rewards={"lean": Reward(lambda s: s.projected_gravity[1] ** 2, -0.5), "torques": None})

        Args:
            fields: Fields of the task by name.

        Raises:
            UnknownNameError: A field does not exist.
        """
        merged = {}
        for name, value in fields.items():
            known_name("field of a task", name, self.__dataclass_fields__)
            merged[name] = value
            present = getattr(self, name)
            if isinstance(value, Mapping) and isinstance(present, Mapping):
                both = {**present, **value}
                merged[name] = {key: entry for key, entry in both.items() if entry is not None}
        return replace(self, **merged)


class _Read(UserDict[str, Any]):
    """A mapping that records the names of the entries that are read, in this order."""

    def __init__(self, entries: Mapping[str, Any]):
        super().__init__(entries)
        self.names: list[str] = []

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        if name not in self.names:
            self.names.append(name)
        return value


def array_of(name: str, actions: Any) -> Array:
    """Return actions as an array, (...), dimensionless, without a copy of tensors in the memory of the processor.

    Args:
        name: Name of the argument, for messages. actions: Actions, (...), dimensionless.
    """
    if isinstance(actions, np.ndarray) or not hasattr(actions, "__dlpack__"):
        return real_array(name, actions)
    try:
        return np.from_dlpack(actions)
    except Exception as error:
        raise ArgumentError(
            f"{name} must share memory of the processor with NumPy ({error}): call detach(), cpu() or float() first"
        ) from error
