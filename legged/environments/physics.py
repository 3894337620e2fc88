"""The simulated robot of an environment: joint servos, and the time steps of a control period in machine code."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from legged.arguments import known_name
from legged.compiler import Members, PreparedLoop, Schedule, TimeLoop, element_type
from legged.compiler.ir import where
from legged.errors import DefinitionError
from legged.robot.construction.parameters import ParameterVector
from legged.simulation.backend import advance
from legged.simulation.controller import adapt
from legged.simulation.loop.closed_loop import ClosedLoop
from legged.simulation.stepping.batch import closed_loop

if TYPE_CHECKING:
    from legged.environments.task import Task

Array = np.ndarray
SERVO = ("stiffness", "damping", "strength", "delay")
"""Numbers of the servos that members may differ in, by their names after `servo.`: factors of the gains and of the
torque, dimensionless, and the time after which targets arrive, [s]."""
GROUND = ("friction", "restitution")
"""Numbers of the ground that members may differ in, by their names after `ground.`."""


@dataclass(frozen=True, eq=False)
class Servo:
    """Joint servos, tau = strength (K_p (target - q) - K_d v) within the limits of the motors, with late targets.

    Attributes:
        kp: K_p, (nj,), [N m/rad] or [N/m]. kd: K_d, (nj,), [N m s/rad] or [N s/m].
        target, previous: Targets of this control period and of the one before, (nj,), [rad] or [m].
        time_step: [s]. strength: Factor of the torque, dimensionless.
        delay: Time in the period at which the target arrives, [s]; in that time step the mean of both targets acts.
        is_torque: Whether targets are torques, [N m] or [N], and replace K_p target.
    """

    kp: Array
    kd: Array
    target: Array
    previous: Array
    time_step: float
    strength: Any = 1.0
    delay: Any = 0.0
    is_torque: bool = False

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        """Return the torques, (nj,), [N m] or [N].

        Args:
            t: Time from the start of the period to the end of the time step, [s]. phase: Not used.
            q: Configuration, (nq,), mixed units. v: Velocity, (nv,), mixed units.
            wrenches: Not used, (n_links, 6), [N m] and [N], link axes. memory: Not used, (0,), dimensionless.
        """
        n, begin = len(self.target), t - self.time_step
        late = np.minimum(np.maximum((self.delay - begin) * (1.0 / self.time_step), 0.0), 1.0)
        target = self.target + late * (self.previous - self.target)
        if self.is_torque:
            return self.strength * (target - self.kp * q[-n:] - self.kd * v[-n:])
        return self.strength * (self.kp * (target - q[-n:]) - self.kd * v[-n:])

    @property
    def implicit_gains(self) -> tuple[Array, Array]:
        """(K_p, K_d), (nj,) each; see `Controller.implicit_gains`."""
        return self.strength * self.kp, self.strength * self.kd


class Physics:
    """Robots with servos, which `advance` moves through a control period.

    Args:
        task: The task. element: Type of the numbers, "float64" or "float32".

    Attributes:
        loop: The closed loop with nominal numbers.
        names: Names of the numbers in which members differ, those of `Task.variations` with the parameters of the robot
            first.
        size: Length of the state [q; s] of a member.
        feet: Number of each contact point of the robot among the contacts of the scene.

    Raises:
        UnknownNameError: A number does not exist. DefinitionError: joints follow others or have several coordinates.
    """

    def __init__(self, task: Task, element: Any):
        robot, ground, kp, kd, varying = task.robot, task.ground, task.kp, task.kd, tuple(task.variations)
        if robot.nj != robot.nq - robot.base.nq:
            raise DefinitionError(f"robot {robot.name!r}: servos need joints with one coordinate each")
        self.robot, self.ground, self.kp, self.kd = robot, ground, kp, kd
        self.time_step, self.substeps, self.targets = task.time_step, int(task.substeps), task.targets
        self.is_torque = task.torque_control
        self.element = element_type(element)
        own = [name for name in varying if name.partition(".")[0] not in ("ground", "servo")]
        for name in set(varying) - set(own):
            part, _, field = name.partition(".")
            known_name(f"number of the {part}", field, GROUND if part == "ground" else SERVO)
        self._vector = ParameterVector(robot, own)
        self.names = (*own, *(name for name in varying if name not in own))
        still = np.zeros(robot.nj)
        self.loop: ClosedLoop = closed_loop(
            robot, adapt(Servo(kp, kd, still, still, task.time_step)), ground, 0, (), ()
        )
        self.size = robot.nq + self.loop.size
        names = self.loop.contact_names
        self.feet = [names.index(contact.name) for contact in robot.contacts if contact.name in names]

    @property
    def parameters(self) -> int:
        """Number of the numbers in which members differ, p."""
        return self._vector.size + len(self.names) - len(self._vector.names)

    def nominal(self) -> dict[str, Any]:
        """Return name -> nominal value of each number in `names`, in its unit."""
        known, values = self.robot.parameters(), {}
        for name in self.names:
            part, _, field = name.partition(".")
            if part == "ground":
                values[name] = getattr(self.ground, field)
            elif part == "servo":
                values[name] = 0.0 if field == "delay" else 1.0
            else:
                values[name] = known[name]
        return values

    def flat(self, values: Mapping[str, Any]) -> Array:
        """Return numbers as a vector in the order of `names`, (p,), mixed units.

        Args:
            values: Name -> value of each number in `names`.
        """
        parts = [np.ravel(np.asanyarray(values[name])) for name in self.names]
        return np.concatenate(parts) if parts else np.zeros(0)

    def at(self, parameters: Array) -> dict[str, Any]:
        """Return name -> value of the numbers of one or more members, (...) and more axes of the number.

        Args:
            parameters: The numbers, (..., p), mixed units and frames.
        """
        n = self._vector.size
        others = self.names[len(self._vector.names) :]
        rest = {name: parameters[..., n + k] for k, name in enumerate(others)}
        return {**self._vector.values(parameters[..., :n]), **rest}

    def loop_of(self, parameters: Array, target: Array, previous: Array) -> ClosedLoop:
        """Return the closed loop of a member, which may be traced.

        Args:
            parameters: Numbers of the member, (p,), mixed units and frames.
            target, previous: See `Servo`, (nj,), [rad] or [m].
        """
        values, n = self.at(parameters), self._vector.size
        robot = self._vector.applied(parameters[:n]) if n else self.robot
        ground = self.ground
        if own := {name.removeprefix("ground."): values[name] for name in self.names if name.startswith("ground.")}:
            ground = copy.copy(ground)
            for name, value in own.items():  # the constructor would refuse traced numbers
                object.__setattr__(ground, name, value)
        factor = {name: values.get(f"servo.{name}", 0.0 if name == "delay" else 1.0) for name in SERVO}
        kp, kd = self.kp * factor["stiffness"], self.kd * factor["damping"]
        servo = Servo(kp, kd, target, previous, self.time_step, factor["strength"], factor["delay"], self.is_torque)
        return replace(self.loop, robot=robot, ground=ground, controller=adapt(servo))

    def start(self, q: Array, v: Array) -> Array:
        """Return the state [q; s] of a member that begins at a configuration and a velocity, (n,).

        Args:
            q: (nq,), mixed units. v: (nv,), mixed units.
        """
        return np.concatenate([q, self.loop.initial(v, np.zeros(0))])

    @cached_property
    def code(self) -> TimeLoop:
        """The compiled time steps; parameters of a member are its numbers, its last action and its action.

        The first time step of a period begins a new history of contacts, which the functions of a task read at its end.
        """
        p, nj, nq, entries = self.parameters, self.robot.nj, self.robot.nq, self.loop.history_entries

        def step(clock: Any, parameters: Any, state: Any) -> tuple[Array, Any]:
            previous, target = self.targets(parameters[p : p + nj]), self.targets(parameters[p + nj :])
            state, is_first = state.copy(), clock[0] < 0.5 * self.time_step
            for i in range(nq + entries.start, nq + entries.stop):
                state[i] = where(is_first, 0.0, state[i])
            return advance(self.loop_of(parameters[:p], target, previous), "time_stepping", clock, state), 0.0

        return TimeLoop.of(step, p + 2 * nj, self.size, self.element)

    def prepared(self, members: Members, parameters: Array, actions: Array) -> PreparedLoop:
        """Return the call that advances all members through a control period.

        Args:
            members: Their states and outcomes, which the call changes in place.
            parameters: Their numbers and last actions, (N, p + nj), mixed units; rows of an array that may change in
                place between calls.
            actions: Their actions, (N, nj), dimensionless, likewise.
        """
        interval = np.array([[[0.0, self.time_step, float(self.substeps), 0.0]]], self.element.dtype)
        return self.code.prepared(members, parameters, Schedule(interval, np.array([-1])), actions)
