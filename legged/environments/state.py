"""`State`: positions, velocities, contacts and commands of one robot; evaluation of the functions of a task for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from legged.compiler import stage
from legged.compiler.ir import where
from legged.dynamics.kinematics import point_motion
from legged.environments.draws import Draws
from legged.environments.physics import Physics
from legged.errors import DefinitionError
from legged.robot.configuration import as_vector
from legged.rotations import quaternion_matrix

if TYPE_CHECKING:
    from legged.environments.task import Observation, Task

Array = np.ndarray


class Layout:
    """Names of the parts of a vector.

    Args:
        sizes: Name -> number of entries, in the order of the vector.

    Attributes:
        size: Number of all entries.
    """

    def __init__(self, sizes: Mapping[str, int]):
        self._slices, start = {}, 0
        for name, size in sizes.items():
            self._slices[name] = slice(start, start + size)
            start += size
        self.size = start

    def __getitem__(self, name: str) -> slice:
        return self._slices[name]

    def split(self, vector: Array) -> dict[str, Array]:
        """Return name -> entries, (..., size of the part), mixed units.

        Args:
            vector: (..., size), mixed units.
        """
        return {name: vector[..., at] for name, at in self._slices.items()}

    def joined(self, parts: Mapping[str, Any]) -> Array:
        """Return the vector of parts, (size,), mixed units."""
        return np.concatenate([np.ravel(np.asanyarray(parts[name])) for name in self._slices])


class Feet(NamedTuple):
    """The contact points of a robot with the terrain, in the order of `robot.contacts`.

    Attributes:
        positions: (m, 3), [m], world axes. velocities: (m, 3), [m/s], world axes.
        forces: Mean forces of the terrain in the control step, (m, 3), [N], world axes.
        touching: 1.0 where a force has acted in the control step, else 0.0, (m,).
    """

    positions: Array
    velocities: Array
    forces: Array
    touching: Array


@dataclass(eq=False)
class State:
    """One member at the end of a control step; at the start of an episode before its first one.

    Attributes:
        task: The task.
        q: Configuration, (nq,), mixed units. v: Velocity, (nv,), mixed units.
        v_before: Velocity at the start of the control step, (nv,), mixed units.
        rest: Rest of the state of the time steps, (n,), mixed units.
        action, last_action: The actions of this control step and of the one before, (nj,), dimensionless.
        command: The command, (nc,), in its units.
        memory: Name -> value of what the task remembers, see `Memory`.
        parameters: Name -> number in which members differ, see `Physics`.
        steps: Number of control steps since the start of the episode.
        random: Random numbers of this member and control step.
    """

    task: Task
    physics: Physics | None
    q: Array
    v: Array
    v_before: Array
    rest: Array
    action: Array
    last_action: Array
    command: Array
    memory: Mapping[str, Array]
    parameters: Mapping[str, Any]
    steps: Any
    random: Draws

    @property
    def time(self) -> Any:
        """Time since the start of the episode, [s]."""
        return self.steps * self.task.period

    # Base.

    @cached_property
    def rotation(self) -> Array:
        """Rotation from base axes to world axes, (3, 3), dimensionless."""
        self._require_floating_base()
        return quaternion_matrix(self.q[:4])

    @property
    def position(self) -> Array:
        """Origin of the base, (3,), [m], world axes."""
        self._require_floating_base()
        return self.q[4:7]

    @property
    def linear_velocity(self) -> Array:
        """Velocity of the origin of the base, (3,), [m/s], base axes."""
        self._require_floating_base()
        return self.v[3:6]

    @property
    def angular_velocity(self) -> Array:
        """Angular velocity of the base, (3,), [rad/s], base axes."""
        self._require_floating_base()
        return self.v[:3]

    @cached_property
    def projected_gravity(self) -> Array:
        """Direction of gravity, (3,), dimensionless, base axes: (0, 0, -1) for a level base."""
        return -self.rotation[2]

    @cached_property
    def height(self) -> Any:
        """Height of the origin of the base over the terrain below, [m]."""
        self._require_floating_base()
        return self.q[6] - self.terrain_height(self.q[4], self.q[5])

    def terrain_height(self, x: Any, y: Any) -> Any:
        """Return the height of the terrain, [m].

        Args:
            x, y: Position, [m], world axes.
        """
        return self.task.ground.terrain.height(x, y)

    def _require_floating_base(self) -> None:
        robot = self.task.robot
        if robot.base.nq != 7:
            raise DefinitionError(f"robot {robot.name!r} has no floating base, whose motion this term needs")

    # Joints.

    @property
    def joint_positions(self) -> Array:
        """Joint positions, (nj,), [rad] or [m]."""
        return self.q[-self.task.robot.nj :]

    @property
    def joint_velocities(self) -> Array:
        """Joint velocities, (nj,), [rad/s] or [m/s]."""
        return self.v[-self.task.robot.nj :]

    @cached_property
    def joint_accelerations(self) -> Array:
        """Mean accelerations of the joints in the control step, (nj,), [rad/s^2] or [m/s^2]."""
        nj = self.task.robot.nj
        return (self.v[-nj:] - self.v_before[-nj:]) * (1.0 / self.task.period)

    @cached_property
    def torques(self) -> Array:
        """Torques of the servos at the end of the control step within the limits of the motors, (nj,), [N m] or [N]."""
        physics, robot = self._simulated("torques"), self.task.robot
        targets = self.task.targets(self.action)
        loop = physics.loop_of(physics.flat(self.parameters), targets, targets)
        wrenches = np.zeros((len(robot.links), 6))
        return loop.actuation(self.task.period, 0.0, self.q, self.rest, wrenches)[0][robot.base.nv :]

    # Contacts.

    @cached_property
    def feet(self) -> Feet:
        """The contact points of the robot with the terrain."""
        robot, physics = self.task.robot, self._simulated("feet")
        points = [(contact.link, contact.position) for contact in robot.contacts]
        positions, velocities = point_motion(robot, self.q, self.v, points)
        history, rows = physics.loop.contact_history(self.rest), physics.feet
        touching = np.stack([where(history.peak[k] > 0.0, 1.0, 0.0) for k in rows])
        forces = np.stack([history.impulse[k] for k in rows]) * (1.0 / self.task.period)
        return Feet(positions, velocities, forces, touching)

    def _simulated(self, name: str) -> Physics:
        if self.physics is None:
            raise DefinitionError(f"a policy does not measure {name}: leave this term to the critic")
        return self.physics


def observed(terms: Mapping[str, Observation], s: State, group: str, random: Draws | None = None) -> Array:
    """Return the observation of a group, (k,), as scaled.

    Args:
        terms: Name -> part. s: The state. group: Name of the group, for messages.
        random: Random numbers of the noise; None for no noise.
    """
    parts = []
    for name, term in terms.items():
        value = as_vector([*np.atleast_1d(called(f"observation {group}.{name}", term.function, s))])
        if random is not None and np.any(term.noise):
            value = value + random.noise(len(value)) * term.noise
        parts.append(np.minimum(np.maximum(value * term.scale, -term.limit), term.limit))
    return np.concatenate(parts)


def called(what: str, function: Callable[[State], Any], s: State) -> Any:
    """Return the result of a function of a task; errors name it.

    Args:
        what: The function in words. function: The function. s: The state.
    """
    try:
        with stage(what):
            return function(s)
    except Exception as error:
        error.add_note(f"This is in the {what} of the task.")
        raise
