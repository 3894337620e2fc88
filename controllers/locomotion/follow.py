"""Paths: a law that walks through waypoints, with a desired heading at each by choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from controllers.wrappers.wrapper import Wrapper
from legged import arguments
from legged.checked import checked
from legged.compiler.ir import where
from legged.contact.rigid import Rigid
from legged.errors import DefinitionError
from legged.ground.ground import Ground
from legged.robot.robot import Robot
from legged.rotations import heading
from legged.spatial import Array, join

_APPROACH = 1.0  # [1/s], speed per distance from the last waypoint
_TURNING = 1.5  # [1/s], yaw rate per error of the heading
_ALIGNED = 0.1  # [rad], error of the heading at which a robot has arrived
_FREE = 1e9  # stands for the heading of a waypoint without one


@checked
@dataclass(frozen=True, eq=False)
class Follow(Wrapper):
    """A law with a velocity command that walks through waypoints and stands at the last one.

        law = controllers.Follow(controllers.Locomotion("trot", None), [(1.0, 0.0), (1.0, 1.0, 1.57)], speed=0.4)

    The robot turns to the next waypoint and walks towards it, or also sideways and backward where the waypoint has a
    heading. It goes on to the following one when it is within the tolerance. At the last one it slows down, turns to
    the heading of this waypoint, and stands. The commands follow from the measured state, so that the robot returns to
    its path after a push.

    Attributes:
        law: A law that takes the command of `legged.Simulation.step`, such as `Locomotion(command=None)`.
        waypoints: (x, y), [m], or (x, y, heading), [m], [rad], of the base's origin, world axes, one or more.
        speed: Largest speed, [m/s].
        turning: Largest yaw rate, [rad/s].
        tolerance: Distance from a waypoint at which it is reached, [m].

    Raises:
        DefinitionError: The law takes no command, or there is no waypoint.
    """

    waypoints: Sequence[Sequence[float]] | Array = ()
    speed: float = 0.3
    turning: float = 0.6
    tolerance: float = 0.1
    _places: Array = field(default_factory=lambda: np.zeros((0, 3)), repr=False, kw_only=True)

    def __post_init__(self) -> None:
        rows = [arguments.rounded_array(f"waypoint {k + 1}", row, (None,)) for k, row in enumerate(self.waypoints)]
        if not rows or any(len(row) not in (2, 3) for row in rows):
            raise DefinitionError("waypoints must be (x, y) or (x, y, heading) each, one or more")
        for name, unit in (("speed", "m/s"), ("turning", "rad/s"), ("tolerance", "m")):
            arguments.number(name, getattr(self, name), unit, above=0.0)
        places = np.array([[*row, _FREE][:3] for row in rows])
        object.__setattr__(self, "_places", places)

    def start(self, robot: Robot, ground: Ground | Rigid | None, q: Array, v: Array) -> tuple[Self, Array]:
        """Return (law, memory); arguments and errors as in `Wrapper.start`."""
        started, memory = super().start(robot, ground, q, v)
        if not getattr(started.law, "takes_command", False):
            raise DefinitionError(
                "Follow commands its law: give a law that takes commands, such as Locomotion(command=None)"
            )
        return started, memory

    def waypoint(self, memory: Array) -> int:
        """Return the number of waypoints that the robot has reached.

        Args:
            memory: (m,), mixed units, such as a row of `Run.memory`.
        """
        return round(float(memory[0]))

    @property
    def takes_command(self) -> bool:
        """Whether the law takes the command of `legged.Simulation.step`: no, it commands its own law."""
        return False

    @property
    def has_update(self) -> bool:
        """Whether the law has a discrete update: always."""
        return True

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, *command: Array) -> Array:
        """Return the generalized forces, (nv,); arguments as in `GaitLaw.torque`."""
        own = self._steering(q, memory[0])[1]
        return super().torque(t, phase, q, v, wrenches, memory, own)

    def update(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, *command: Array) -> Array:
        """Return the memory at the start of a time step, (m,); arguments as in `GaitLaw.torque`."""
        reached, own = self._steering(q, memory[0])
        inner = self._started.update(t, phase, q, v, wrenches, memory[1:], own)
        return np.concatenate([np.stack([reached]), inner])

    def _fitted(self, robot: Robot) -> tuple[Self, Array]:
        if robot.base.nv != 6:
            raise DefinitionError(
                f"robot {robot.name!r} cannot follow a path: its base is {robot.base.kind}, not floating"
            )
        return self, np.zeros(1)

    def _steering(self, q: Array, reached: Any) -> tuple[Any, Array]:
        """Return the number of waypoints reached, and the command, (5,), units of `Command`."""
        R, origin = self._plant.base.pose(q[: self._plant.base.nq])
        last = float(len(self._places) - 1)
        target = self._target(reached)
        ahead = target[:2] - origin[:2]
        distance = np.sqrt(ahead @ ahead + 1e-12)
        forward = heading(R)
        left = np.stack([-forward[1], forward[0]])
        is_near = distance < self.tolerance
        along = np.arctan2(ahead[1], ahead[0])
        angle = np.arctan2(forward[1], forward[0])
        is_free = target[2] > 0.5 * _FREE
        desired = where(is_free, where(is_near, angle, along), target[2])
        error = desired - angle
        error = error - 2.0 * np.pi * np.floor(error / (2.0 * np.pi) + 0.5)
        is_last = reached > last - 0.5
        speed = np.minimum(float(self.speed), where(is_last, _APPROACH * distance, float(self.speed)))
        aligned = where(is_free, np.maximum(np.cos(error), 0.0), 1.0)
        velocity = where(is_near & is_last, 0.0, speed * aligned) / distance * ahead
        rate = np.minimum(np.maximum(_TURNING * error, -self.turning), float(self.turning))
        rate = where(is_near & is_last & (error * error < _ALIGNED * _ALIGNED), 0.0, rate)
        on = where(is_near & (reached < last - 0.5), reached + 1.0, reached)
        return on, join(np.stack([forward @ velocity, left @ velocity, rate]), np.zeros(2))

    def _target(self, reached: Any) -> Array:
        """Return the waypoint to which the robot walks, (3,), [m], [m], [rad]."""
        target = self._places[0]
        for k, place in enumerate(self._places[1:], 1):
            target = where(reached > k - 0.5, place, target)
        return target
