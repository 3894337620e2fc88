"""The controllers of a group of robots as one controller: each sees the state of its own robot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from legged.arguments import text
from legged.contact.rigid import Rigid
from legged.errors import DefinitionError
from legged.ground.ground import Ground
from legged.robot.construction.group import Member, RobotGroup
from legged.robot.robot import Robot
from legged.simulation.controller import adapt, full_torque

Array = np.ndarray


class RobotControllers:
    """Controllers by the name of their robot; robots without one have no forces.

    Args:
        controllers: Name of a robot of the group -> its controller, as in `legged.simulate`.
    """

    parameter_names = ("controllers",)

    def __init__(self, controllers: Mapping[str, Any]):
        own = {text("name of a robot", name): law for name, law in controllers.items()}
        self.controllers = {name: adapt(_no_forces if law is None else law) for name, law in own.items()}

    def start(
        self, robot: Robot, ground: Ground | Rigid | None, q: Array, v: Array
    ) -> tuple[StartedControllers, Array]:
        """Return (controller, memory), the memory (m,); arguments as in `Controller.start`.

        Each controller is started for its robot alone, `Member.robot`, and its state.

        Raises:
            DefinitionError: The robot is no group. UnknownNameError: A name is that of no robot of the group.
        """
        parts, memories, at = [], [], 0
        for member, controller in self._of(robot):
            started, memory = controller.start(member.robot, ground, *member.state(q, v))
            parts.append(_Part(member, started, slice(at, at + len(memory))))
            memories.append(memory)
            at += len(memory)
        return StartedControllers(tuple(parts)), np.concatenate(memories)

    def initial_state(self, robot: Robot) -> tuple[Array, Array]:
        """Return (q, v) at the start, (nq,) and (nv,), with the initial states that controllers define.

        Args:
            robot: The group.

        Raises:
            DefinitionError: The robot is no group. UnknownNameError: A name is that of no robot of the group.
        """
        states = {}
        for member, adapted in self._of(robot):
            initial_state = getattr(adapted.controller, "initial_state", None)
            if initial_state is not None:
                states[member.name] = initial_state(member.robot)
        assert isinstance(robot, RobotGroup)
        return robot.join_states(*({name: state[k] for name, state in states.items()} for k in range(2)))

    def _of(self, robot: Robot) -> list[tuple[Member, Any]]:
        """Return the robots of a group with their controllers."""
        if not isinstance(robot, RobotGroup):
            raise DefinitionError(
                f"controllers by name are for a group of robots, see legged.combine; {robot.name!r} is a single robot"
            )
        for name in self.controllers:
            robot.member(name)
        return [(member, self.controllers.get(member.name, adapt(_no_forces))) for member in robot.members]


class _Part:
    """A robot of a group, its started controller, and the entries of the memory that belong to it."""

    parameter_names = ("member", "controller")

    def __init__(self, member: Member, controller: Any, memory: slice):
        self.member, self.controller, self.memory = member, controller, memory

    def arguments(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> tuple[Any, ...]:
        """Return the arguments of the robot's controller."""
        own = self.member.state(q, v)
        return t, phase, *own, wrenches[list(self.member.links)], memory[self.memory]


@dataclass(frozen=True, eq=False)
class StartedControllers:
    """The started controllers of a group, with all methods of `legged.simulation.controller.Controller`.

    If one of them states implicit gains, a time step takes the torques of all at its end; see
    `ClosedLoop.step_actuation`. Controllers with switch times need the same times.

    Attributes:
        parts: The robots with their controllers.
    """

    parts: tuple[_Part, ...]

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, *command: Array) -> Array:
        """Return the generalized forces of the group, (nv,); arguments as in `Controller.torque`, and a command."""
        forces = []
        for part in self.parts:
            own = part.arguments(t, phase, q, v, wrenches, memory)
            tau = full_torque(part.member.robot, part.controller.torque(*own, *command))
            forces.append(part.member.forces(own[2], tau))
        return np.concatenate(forces)

    def rate(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, *command: Array) -> Array:
        """Return the rate of the memory, (m,); arguments as in `torque`."""
        state = t, phase, q, v, wrenches, memory
        return np.concatenate([part.controller.rate(*part.arguments(*state), *command) for part in self.parts])

    def update(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, *command: Array) -> Array:
        """Return the memory after the discrete updates, (m,); arguments as in `torque`."""
        state = t, phase, q, v, wrenches, memory
        return np.concatenate([part.controller.update(*part.arguments(*state), *command) for part in self.parts])

    def switches(self, until: float) -> Any:
        """Return the times before `until` at which references jump, [s].

        Args:
            until: End of the run, [s].

        Raises:
            DefinitionError: Controllers have different switch times.
        """
        times = {part.member.name: tuple(map(float, part.controller.switches(until))) for part in self.parts}
        switching = {name: own for name, own in times.items() if own}
        if len(set(switching.values())) > 1:
            raise DefinitionError(
                f"the controllers of robots {', '.join(map(repr, switching))} switch at different times, but a group "
                f"counts one series of switch times; give them gaits of equal periods"
            )
        return next(iter(switching.values()), ())

    def update_times(self, until: float) -> Any:
        """Return the update times of all controllers, [s].

        Args:
            until: End of the run, [s].
        """
        return sorted({float(t) for part in self.parts for t in part.controller.update_times(until)})

    @property
    def has_update(self) -> bool:
        """Whether a controller has a discrete update."""
        return any(part.controller.has_update for part in self.parts)

    @property
    def has_clock(self) -> bool:
        """Whether a controller has sample times of its own, at which its `update` must run."""
        return any(part.controller.has_clock for part in self.parts)

    @property
    def takes_command(self) -> bool:
        """Whether a controller takes the command of `legged.Simulation.step`; those that do receive the whole."""
        return any(part.controller.takes_command for part in self.parts)

    @property
    def implicit_gains(self) -> tuple[Array, Array] | None:
        """Gains of all joints of the group, (nv,) each, zero for robots without; None if no controller states some."""
        gains = [part.controller.implicit_gains for part in self.parts]
        if all(own is None for own in gains):
            return None
        all_gains: list[list[Array]] = [[], []]
        for part, own in zip(self.parts, gains, strict=True):
            robot = part.member.robot
            for k in range(2):
                all_gains[k].append(np.zeros(robot.nv) if own is None else full_torque(robot, own[k]))
        return np.concatenate(all_gains[0]), np.concatenate(all_gains[1])

    def planned_footsteps(self, memory: Array) -> Array:
        """Return the landing places that all controllers plan, (n, 3), [m], world axes.

        Args:
            memory: State of the controllers, (m,), mixed units.
        """
        known = [(part, getattr(part.controller, "planned_footsteps", None)) for part in self.parts]
        places = [np.zeros((0, 3)), *(planned(memory[part.memory]) for part, planned in known if planned is not None)]
        return np.concatenate(places)


def _no_forces(t: Any, q: Array, v: Array, wrenches: Array) -> Array:
    return np.zeros(len(v))
