"""Detection of falls during a simulation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from legged.checked import checked
from legged.compiler.ir import where
from legged.contact.rigid import Rigid
from legged.errors import DefinitionError
from legged.ground.ground import Ground
from legged.robot.configuration import read
from legged.robot.robot import Robot

Array = np.ndarray
Termination = Callable[[float, Array, Array], Any]
"""Function (t [s], q (nq,), v (nv,)) that returns a message or True to end a run, and None, False or "" to continue."""


@checked
@dataclass(frozen=True)
class Fall:
    """A robot has fallen when its base is too low or tilts too far.

    Attributes:
        height: Lowest height of the base origin over the ground below it, as a fraction of the initial height.
        tilt: Largest angle between the vertical and the base axis that is vertical at the start, [rad].
    """

    height: float = 0.5
    tilt: float = 1.0

    def __post_init__(self) -> None:
        if not (self.height < 1.0 and self.tilt > 0.0):
            raise DefinitionError(f"a fall needs height < 1 and tilt > 0 rad, got {self.height} and {self.tilt}")

    def detector(self, robot: Robot, ground: Ground | Rigid | None, q: Array) -> Termination:
        """Return the termination condition of a run.

        Args:
            robot: The robot. ground: The ground. q: Initial configuration, (nq,).
        """
        limits = self.limits(robot, ground, q)

        def message(t: float, q: Array, v: Array) -> str | None:
            code = int(limits.termination_code(robot, ground, q))
            return limits.message(robot, code) if code else None

        return message

    def limits(self, robot: Robot, ground: Ground | Rigid | None, q: Array) -> FallLimits:
        """Return the limits of a run.

        Args:
            robot: The robot. ground: The ground. q: Initial configuration, (nq,).
        """
        (q,) = read(robot, q=q)
        R, origin = robot.base.pose(q[: robot.base.nq])
        return FallLimits(self.height * float(_clearance(ground, origin)), R[2].copy(), self.tilt)


@dataclass(frozen=True, eq=False)
class FallLimits:
    """Limits beyond which a robot has fallen.

    Attributes:
        lowest: Lowest height of the base origin over the ground below it, [m].
        up: Vertical unit vector at the start, (3,), base axes.
        tilt: Largest angle between that vector and the vertical, [rad].
    """

    lowest: float
    up: Array
    tilt: float

    def termination_code(self, robot: Robot, ground: Ground | Rigid | None, q: Array) -> Any:
        """Return 1.0 if the base is too low, 2.0 if it tilts too far, 0.0 otherwise. The function can be traced.

        Args:
            robot: The robot. ground: The ground. q: Configuration, (nq,).
        """
        R, origin = robot.base.pose(q[: robot.base.nq])
        tilted = where(R[2] @ self.up < np.cos(self.tilt), 2.0, 0.0)
        return where(_clearance(ground, origin) < self.lowest, 1.0, tilted)

    def message(self, robot: Robot, code: int) -> str:
        """Return the message of a termination code.

        Args:
            robot: The robot. code: 1 or 2, see `termination_code`.
        """
        name = robot.links[0].name
        name = f"the {name}" if name.isalpha() else f"link {name!r}"
        if code == 1:
            return f"{name} fell below {self.lowest:.3g} m"
        return f"{name} leaned over by more than {self.tilt:.3g} rad"


def _clearance(ground: Ground | Rigid | None, origin: Array) -> Any:
    """Return the height of the base origin over the ground, [m]."""
    return origin[2] - (ground.terrain.height(origin[0], origin[1]) if ground else 0.0)
