"""When a robot has fallen: a watch over the samples of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from legged.errors import DefinitionError
from legged.ground.ground import Ground
from legged.robot.robot import Robot

Array = np.ndarray
Watch = Callable[[float, Array, Array], Any]
"""(t, q, v) -> what happened, in words, or True; None, False or "" while all is well."""


@dataclass(frozen=True)
class Fall:
    """A robot has fallen when its base is too low or leans too far.

    Attributes:
        height: Lowest height of the base's origin over the ground below it, as a fraction of the initial height.
        tilt: Largest angle between the base's axis that was vertical at the start and the vertical, [rad].
    """

    height: float = 0.5
    tilt: float = 1.0

    def __post_init__(self) -> None:
        if not (self.height < 1.0 and self.tilt > 0.0):
            raise DefinitionError(f"a fall needs height < 1 and tilt > 0 rad, got {self.height} and {self.tilt}")

    def watch(self, robot: Robot, ground: Ground | None, q: Array) -> Watch:
        """Return the watch over a run that starts at q, (nq,)."""
        R, origin = _pose(robot, q)
        up = R[2]  # the vertical, in base axes
        lowest = self.height * _clearance(ground, origin)
        leaning = np.cos(self.tilt)
        name = robot.links[0].name

        def look(t: float, q: Array, v: Array) -> str | None:
            R, origin = _pose(robot, q)
            if _clearance(ground, origin) < lowest:
                return f"{_the(name)} fell below {lowest:.3g} m"
            if R[2] @ up < leaning:
                return f"{_the(name)} leaned over by more than {self.tilt:.3g} rad"
            return None

        return look


def _pose(robot: Robot, q: Array) -> tuple[Array, Array]:
    return robot.base.pose(q[: robot.base.nq])


def _clearance(ground: Ground | None, origin: Array) -> float:
    return float(origin[2] - (ground.terrain.height(origin[0], origin[1]) if ground else 0.0))


def _the(name: str) -> str:
    return f"the {name}" if name.isalpha() else f"link {name!r}"
