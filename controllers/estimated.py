"""`Estimated`: a control law that receives the estimate of the robot's state in place of the state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

import numpy as np

from controllers.wrappers.wrapper import SampledWrapper
from controllers.zero_order_hold import is_sample_time
from legged.arguments import array, shown
from legged.checked import checked
from legged.compiler import Kernel, layout
from legged.compiler import compile as compile_function
from legged.compiler.ir import Expression, where
from legged.contact.rigid import Rigid
from legged.dynamics.kinematics import link_poses
from legged.errors import ArgumentError, DefinitionError
from legged.estimation import Instruments, Reading
from legged.estimation.contacts import link_wrenches
from legged.estimation.readings import SensedRobot
from legged.ground.ground import Ground
from legged.robot.configuration import integrate, normalized
from legged.robot.robot import Robot
from legged.simulation.controller import adapt, full_torque
from legged.simulation.stepping.parameter_tree import entry, replaced_entry

Array = np.ndarray
_SHORTEST, _LONGEST = 0.1, 10.0
"""Limits of the time between readings over which the filter predicts, in periods."""
_MISSED = 1.5
"""Time between readings, in periods, above which readings are missing; shorter ones are jitter of the clock."""


class Estimator(Protocol):
    """Interface of an estimator, such as `legged.estimation.InvariantFilter`."""

    @property
    def sensed(self) -> SensedRobot:
        """The robot with its sensors, after `start`."""
        ...

    def start(self, robot: Robot, q: Array, v: Array) -> tuple[Any, Array]:
        """Return (estimator, memory) for a robot, the memory (k,), mixed units.

        Args:
            robot: The robot.
            q: First guess of the configuration, (nq,), mixed units. v: That of the velocity, (nv,), mixed units.
        """
        ...

    def update(self, memory: Array, reading: Reading, dt: Any, unread: Any = 0.0) -> Array:
        """Return the memory after a reading, (k,), mixed units.

        Args:
            memory: (k,), mixed units. reading: The reading. dt: Time since the last reading, [s].
            unread: Part of this time that the reading does not cover, [s], such as after a lost packet.
        """
        ...

    def state(self, memory: Array, reading: Reading) -> tuple[Array, Array]:
        """Return the estimate (q, v), (nq,) and (nv,).

        Args:
            memory: Memory after the update with the reading, (k,), mixed units. reading: The reading.
        """
        ...

    def completed(self, memory: Array, reading: Reading) -> Reading:
        """Return the reading with the forces and contacts that the estimator has computed or taken as measured.

        Args:
            memory: Memory after the update with the reading, (k,), mixed units. reading: The reading.
        """
        ...


@checked
@dataclass(frozen=True, eq=False)
class Estimated(SampledWrapper):
    """A law that receives an estimate of the state, made from readings of instruments, in place of the state.

        law = controllers.Estimated(controllers.Locomotion("trot"), legged.estimation.InvariantFilter())

    At the times k / frequency the instruments read the robot, and the estimator is updated. Between these times the law
    receives the last estimate. The contact wrenches that it receives are those of the measured forces on the feet in
    contact. The wrapper's own memory is [memory of the instruments; memory of the estimator; q; v; wrenches on the
    links], with the estimate q and v; the memory of the law follows.

    Attributes:
        law: Any controller; one that is sampled should have the same frequency.
        estimator: A filter of `legged.estimation`, or another `Estimator`.
        instruments: The simulated sensors.
        frequency: Readings per second, [1/s].
        error: Error of the first guess of q, (nv,), mixed units, as in `legged.integrate`; None for zero.
        velocity_error: Error of the first guess of v, (nv,), mixed units; None for zero.

    Raises:
        ArgumentError: The estimator lacks a method of `Estimator`.
    """

    estimator: Any
    instruments: Instruments = field(default_factory=Instruments)
    frequency: float = field(default=500.0, kw_only=True)
    error: Any = field(default=None, kw_only=True)
    velocity_error: Any = field(default=None, kw_only=True)
    _sizes: tuple[int, int] = field(default=(0, 0), repr=False, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        methods = [getattr(self.estimator, name, None) for name in ("start", "update", "state", "completed")]
        if isinstance(self.estimator, type) or not all(map(callable, methods)):
            words = "estimator must be a filter, such as legged.estimation.InvariantFilter(), or another `Estimator`"
            raise ArgumentError(f"{words}, got {shown(self.estimator)}")

    def start(self, robot: Robot, ground: Ground | Rigid | None, q: Array, v: Array) -> tuple[Self, Array]:
        """Return (wrapper, memory), (m,); arguments as in `Wrapper.start`. The law starts at the first guess.

        Raises:
            ShapeError: An error of the first guess has another length than nv.
            DefinitionError: Estimator and instruments have different feet.
        """
        errors = {"error": self.error, "velocity_error": self.velocity_error}
        error, velocity_error = (
            np.zeros(robot.nv) if value is None else array(name, value, (robot.nv,)) for name, value in errors.items()
        )
        q_guess, v_guess = integrate(robot, q, error), v + velocity_error
        instruments, sensor_memory = self.instruments.start(robot, q, v)
        estimator, estimator_memory = self.estimator.start(robot, q_guess, v_guess)
        feet = [", ".join(foot.name for foot in part.sensed.feet) for part in (estimator, instruments)]
        if feet[0] != feet[1]:
            raise DefinitionError(f"estimator and instruments must have the same feet, got {feet[0]} and {feet[1]}")
        law, memory = adapt(self.law).start(robot, ground, q_guess, v_guess)
        own = np.concatenate([sensor_memory, estimator_memory, q_guess, v_guess, np.zeros(6 * len(robot.links))])
        started = replace(
            self,
            law=law,
            estimator=estimator,
            instruments=instruments,
            _robot=robot,
            _size=len(own),
            _sizes=(len(sensor_memory), len(estimator_memory)),
        )
        return started, np.concatenate([own, memory])

    def update(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, *command: Array) -> Array:
        """Return the memory at the start of a time step, (m,): at the times of readings with a new estimate.

        Arguments as in `GaitLaw.torque`.
        """
        due, own = is_sample_time(t, self.frequency), memory[: self._size]
        if isinstance(due, Expression) or due:
            base = self._plant.base
            last = full_torque(self._plant, self._of_law("torque", t, phase, memory, *command))[base.nv :]
            k = np.floor(t * self.frequency + 0.5)
            sensor_memory, estimator_memory = self._split(own)[:2]
            reading = self.instruments.read(sensor_memory, k, 1.0 / self.frequency, q, v, last, wrenches)
            updated_estimate = self.estimated(estimator_memory, reading, k > 0.5, 1.0 / self.frequency)
            own = where(due, np.concatenate([self.instruments.memory(q, v), updated_estimate]), own)
        updated = np.concatenate([own, memory[self._size :]])
        return np.concatenate([own, self._of_law("update", t, phase, updated, *command)])

    def estimated(self, estimator_memory: Array, reading: Reading, is_later: Any, dt: Any, unread: Any = 0.0) -> Array:
        """Return [memory of the estimator; q; v; wrenches] after a reading, (k + nq + nv + 6 n_links,).

        Args:
            estimator_memory: Memory of the estimator, (k,), mixed units. reading: The readings.
            is_later: Whether there was a reading before; the first one does not change the memory of the estimator.
            dt: Time since the last reading, [s]. unread: As in `Estimator.update`.
        """
        following = where(is_later, self.estimator.update(estimator_memory, reading, dt, unread), estimator_memory)
        q, v = self.estimator.state(following, reading)
        reading = self.estimator.completed(following, reading)
        rotations, _ = link_poses(self._plant, q)
        forces = [where(c > 0.5, 1.0, 0.0) * f for c, f in zip(reading.contacts, reading.forces, strict=True)]
        wrenches = link_wrenches(self.estimator.sensed, rotations, forces)
        return np.concatenate([following, q, v, wrenches.ravel()])

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, *command: Array) -> Array:
        """Return the law's generalized forces at the estimate, (nv,); arguments as in `GaitLaw.torque`."""
        return full_torque(self._plant, self._of_law("torque", t, phase, memory, *command))

    def rate(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, *command: Array) -> Array:
        """Return the time derivative of the memory, (m,); arguments as in `GaitLaw.torque`."""
        return np.concatenate([np.zeros(self._size), self._of_law("rate", t, phase, memory, *command)])

    def kernel(
        self, robot: Robot, q: Any = None, v: Any = None, command: int = 0, parameters: Sequence[str] = ()
    ) -> tuple[Kernel, Array]:
        """Return (kernel, memory): estimator and law as machine code for the computer of a robot, and their memory.

        The kernel is a function (t, memory, gyro, specific_force, joints, joint_rates, torques, forces, contacts,
        command, parameters) that returns (memory, generalized forces (nv,), q, v) with the estimate q, v; see
        `Reading`. The time t is that of the readings, which should be near k / frequency; the filter predicts over the
        time since the last readings, at least 0.1 and at most 10 periods. Readings cover one period: after lost ones
        the filter increases the covariance, see `unread` of its `update`. The last entry of the memory is the time of
        the last readings. `kernel.to_c("walk")` writes the kernel as one C99 file.

        Args:
            robot: The robot.
            q: First guess of the configuration, (nq,), mixed units; None for the initial state of the law.
            v: First guess of the velocity, (nv,), mixed units; zero by default with a given q.
            command: Number of entries of the command; 0 for a law without command, whose kernel has no such argument.
            parameters: Names of parameters, see `live_parameters`, whose values, one after the other, are the last
                argument of the kernel; without names it has no such argument.

        Raises:
            UnknownNameError: There is no such parameter. DefinitionError: it holds no real numbers.
        """
        started, memory = self._started_loop(robot, q, v)
        memory = np.append(memory, -1.0)
        begin = started._sizes[0]
        estimator_memory = slice(begin, sum(started._sizes))
        live = _numbers(started, parameters)

        def step(t: Any, memory: Any, **given: Any) -> Any:
            loop, rest = started, given.pop("parameters", None)
            for name, value in live.items():
                loop, rest = replaced_entry(loop, name, rest[: value.size].reshape(value.shape)[()]), rest[value.size :]
            commands = [given.pop("command")] if command else []
            last, period = memory[-1], 1.0 / self.frequency
            dt = np.minimum(np.maximum(t - last, _SHORTEST * period), _LONGEST * period)
            unread = where(dt > _MISSED * period, dt - period, 0.0)
            own = loop.estimated(memory[estimator_memory], Reading(**given), last >= 0.0, dt, unread)
            updated = np.concatenate([memory[:begin], own, memory[loop._size : -1]])
            regular = np.floor(t * self.frequency + 0.5) * period
            law = loop._of_law("update", regular, 0.0, updated, *commands)
            after = np.concatenate([updated[: loop._size], law])
            force = full_torque(robot, loop._of_law("torque", regular, 0.0, after, *commands))
            return np.concatenate([after, np.stack([t])]), force, *loop.estimate(after)

        shapes: dict[str, Any] = {"t": (), "memory": memory.shape, **started.estimator.sensed.shapes._asdict()}
        shapes |= {"command": (command,)} if command else {}
        shapes |= {"parameters": (sum(value.size for value in live.values()),)} if live else {}
        kernel = compile_function(step, **shapes)
        kernel.layouts |= started._layouts(len(memory), live)
        return kernel, memory

    def _layouts(self, size: int, live: Mapping[str, Array]) -> dict[str, str]:
        """Return the layouts of the arrays of `kernel`, whose memory has a length, for headers of C functions."""
        robot, feet = self._plant, self.estimator.sensed.feet
        ends = np.cumsum([*self._sizes, robot.nq, robot.nv, 6 * len(robot.links), size - 1 - self._size, 1])
        names = (
            "instruments, not used",
            "estimator",
            "q",
            "v",
            "wrenches on the links",
            "law",
            "time of the readings",
        )
        starts = [0, *ends[:-1]]
        memory = [f"[{a}..{b - 1}] {part}" for part, a, b in zip(names, starts, ends, strict=True) if b > a]
        rows = "\n".join(f"[{i}] {foot.name}" for i, foot in enumerate(feet))
        counts = [value.size for value in live.values()]
        ranges = zip(live, np.cumsum([0, *counts]), np.cumsum(counts), strict=False)
        texts = {
            "t": "time of the readings, s",
            "memory": "\n".join(["memory; that of the call before, at first that of Estimated.kernel", *memory]),
            "gyro": "mean angular velocity since the last readings, x y z, rad/s, sensor axes",
            "specific_force": "mean specific force since the last readings, x y z, m/s^2, sensor axes",
            "joints": layout(robot, "joint q"),
            "joint_rates": layout(robot, "joint v"),
            "torques": layout(robot, "joint tau"),
            "forces": f"force x y z on each foot, N, base axes\n{rows}",
            "contacts": f"probability of contact of each foot\n{rows}",
            "command": "command of the law",
            "parameters": "\n".join(["live parameters", *(f"[{a}..{b - 1}] {name}" for name, a, b in ranges)]),
            "result0": "next memory",
            "result1": layout(robot, "tau"),
            "result2": f"estimate: {layout(robot, 'q')}",
            "result3": f"estimate: {layout(robot, 'v')}",
        }
        return texts if live else {name: text for name, text in texts.items() if name != "parameters"}

    def live_parameters(self, robot: Robot, names: Sequence[str]) -> dict[str, Array]:
        """Return name -> value, (...), of parameters of the started loop, in their units, for `kernel` and a `Runner`.

        Names are fields along the started law and estimator, such as "law.kp", "law.clearance" or "estimator.slip". A
        value that the law has computed from a field when it started does not follow a change of the field.

        Args:
            robot: The robot. names: The names.

        Raises:
            UnknownNameError: There is no such parameter. DefinitionError: it holds no real numbers.
        """
        return _numbers(self._started_loop(robot, None, None)[0], names)

    def _started_loop(self, robot: Robot, q: Any, v: Any) -> tuple[Self, Array]:
        """Return the loop started at a first guess, and its memory."""
        initial = self.initial_state(robot) if q is None else (q, np.zeros(robot.nv) if v is None else v)
        return self.start(robot, Rigid(), *(np.asarray(x, dtype=float) for x in initial))

    def _of_law(self, name: str, t: Any, phase: Any, memory: Array, *command: Array) -> Array:
        """Return the result of a function of the law at the estimate."""
        _, _, q, v, wrenches = self._split(memory[: self._size])
        function = getattr(self._started, name)
        return function(t, phase, q, v, wrenches.reshape(-1, 6), memory[self._size :], *command)

    def _split(self, own: Array) -> tuple[Array, ...]:
        """Return the parts of the wrapper's own memory: instruments, estimator, q, v and wrenches."""
        robot = self._plant
        ends = np.cumsum([*self._sizes, robot.nq, robot.nv])
        sensor_memory, estimator_memory, q, v, wrenches = np.split(own, ends)
        return sensor_memory, estimator_memory, normalized(robot, q), v, wrenches

    def estimate(self, memory: Array) -> tuple[Array, Array]:
        """Return the estimate (q, v) in memories, (..., nq) and (..., nv), mixed units.

        Args:
            memory: Memories of the started controller, (..., m), mixed units, such as `Run.memory`.
        """
        start, robot = sum(self._sizes), self._plant
        end = start + robot.nq
        return memory[..., start:end], memory[..., end : end + robot.nv]


def _numbers(started: Estimated, names: Sequence[str]) -> dict[str, Array]:
    """Return the values of parameters of a started loop, (...), by name."""
    values = {}
    for name in names:
        value = entry(started, name)
        if not (isinstance(value, float) or (isinstance(value, np.ndarray) and value.dtype.kind == "f")):
            raise DefinitionError(f"{name!r} cannot change while a loop runs: it holds {shown(value)}, no real numbers")
        values[name] = np.array(value)
    return values
