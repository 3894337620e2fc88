"""What disturbs a standing robot from all around: pushes of some size, and thrown things of some speed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from legged.contact.free_body import FreeBody
from legged.dynamics.kinematics import point_positions
from legged.errors import DefinitionError
from legged.robot.robot import Robot
from legged.simulation.disturbance import Push

Array = np.ndarray


class Disturbance(Protocol):
    """Something that comes from a direction with a size.

    Attributes:
        sizes: In rising order, in `unit`.
        words: What a size is. unit: Its unit.
        pushes, bodies: For `legged.rollout`.
    """

    @property
    def sizes(self) -> Array: ...
    @property
    def words(self) -> str: ...
    @property
    def unit(self) -> str: ...
    @property
    def pushes(self) -> Sequence[Push]: ...
    @property
    def bodies(self) -> Sequence[FreeBody]: ...

    def vary(self, robot: Robot, q: Array, source: Array, sizes: Array) -> dict[str, Array]:
        """Return what differs between members, as `legged.rollout` takes it.

        Args:
            robot: The robot. q: Where it starts, (nq,).
            source: Horizontal unit vectors from the robot to where each member's disturbance comes from, (B, 3), world.
            sizes: Of each, (B,); 0 for a member that is left alone.
        """
        ...


@dataclass(frozen=True)
class Pushes:
    """Horizontal pushes on a link.

    Attributes:
        push: On which link, when, how long and where; its own impulse does not count.
        sizes: Impulses, (n,), [N s], rising.
    """

    push: Push
    sizes: Any
    words = "impulse"
    unit = "N s"

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", _rising(self.sizes))

    @property
    def pushes(self) -> tuple[Push, ...]:
        return (self.push,)

    @property
    def bodies(self) -> tuple[FreeBody, ...]:
        return ()

    def vary(self, robot: Robot, q: Array, source: Array, sizes: Array) -> dict[str, Array]:
        return {"pushes.0.impulse": -sizes[:, None] * source}


@dataclass(frozen=True)
class Throws:
    """Throws of a body, each from a place on a circle, so that its path in free fall would lead through a target.

    Attributes:
        body: What is thrown, turned as it is everywhere on the circle; where it starts and how fast does not count.
        sizes: Horizontal speeds, (n,), [m/s], rising.
        link: On which the target is, at its origin, where the robot starts.
        target: From there, (3,), [m], world axes.
        distance: Radius of the circle around the target, at its height, [m].
    """

    body: FreeBody
    sizes: Any
    link: str
    target: Sequence[float] = (0.0, 0.0, 0.0)
    distance: float = 0.5
    words = "speed"
    unit = "m/s"
    pushes = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", _rising(self.sizes))

    @property
    def bodies(self) -> tuple[FreeBody, ...]:
        return (self.body,)

    def vary(self, robot: Robot, q: Array, source: Array, sizes: Array) -> dict[str, Array]:
        """Return starts and velocities; what is left alone is thrown away from the robot."""
        here = point_positions(robot, q, [(robot.link(self.link).index, np.zeros(3))])[0] + np.asarray(self.target)
        speed = np.where(sizes > 0.0, sizes, self.sizes[0])
        rise = -0.5 * robot.gravity[2] * self.distance / speed
        along = np.where(sizes > 0.0, -speed, speed)[:, None] * source
        return {
            "bodies.0.position": here + self.distance * source,
            "bodies.0.velocity": along + rise[:, None] * np.array([0.0, 0.0, 1.0]),
        }


def _rising(sizes: Any) -> Array:
    """Return sizes as an array, (n,).

    Raises:
        DefinitionError: They are not two or more rising numbers above 0.
    """
    array = np.asarray(sizes, dtype=float)
    if array.ndim != 1 or len(array) < 2 or not (array[0] > 0.0 and (np.diff(array) > 0.0).all()):
        raise DefinitionError(f"sizes of disturbances must be two or more rising numbers above 0, got {sizes}")
    return array
