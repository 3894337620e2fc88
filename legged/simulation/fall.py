"""When a robot has fallen: a watch over the samples of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from legged.compiler.ir import where
from legged.contact.rigid import Rigid
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

    def watch(self, robot: Robot, ground: Ground | Rigid | None, q: Array) -> Watch:
        """Return the watch over a run that starts at q, (nq,)."""
        limits = self.limits(robot, ground, q)

        def look(t: float, q: Array, v: Array) -> str | None:
            verdict = int(limits.verdict(robot, ground, q))
            return limits.words(robot, verdict) if verdict else None

        return look

    def limits(self, robot: Robot, ground: Ground | Rigid | None, q: Array) -> Limits:
        """Return what a run that starts at q, (nq,), is judged by."""
        R, origin = _pose(robot, q)
        return Limits(self.height * float(_clearance(ground, origin)), R[2].copy(), self.tilt)


@dataclass(frozen=True, eq=False)
class Limits:
    """What a state is judged by.

    Attributes:
        lowest: Height of the base's origin over the ground below it, [m].
        up: The vertical at the start, in base axes, (3,).
        tilt: Of that vector against the vertical, [rad].
    """

    lowest: float
    up: Array
    tilt: float

    def verdict(self, robot: Robot, ground: Ground | Rigid | None, q: Array) -> Any:
        """Return 0.0, or 1.0 for a base too low, 2.0 for one that leans too far; over any element."""
        R, origin = _pose(robot, q)
        leans = where(R[2] @ self.up < np.cos(self.tilt), 2.0, 0.0)
        return where(_clearance(ground, origin) < self.lowest, 1.0, leans)

    def words(self, robot: Robot, verdict: int) -> str:
        """Return what happened."""
        name = _the(robot.links[0].name)
        if verdict == 1:
            return f"{name} fell below {self.lowest:.3g} m"
        return f"{name} leaned over by more than {self.tilt:.3g} rad"


def _pose(robot: Robot, q: Array) -> tuple[Array, Array]:
    return robot.base.pose(q[: robot.base.nq])


def _clearance(ground: Ground | Rigid | None, origin: Array) -> Any:
    return origin[2] - (ground.terrain.height(origin[0], origin[1]) if ground else 0.0)


def _the(name: str) -> str:
    return f"the {name}" if name.isalpha() else f"link {name!r}"
