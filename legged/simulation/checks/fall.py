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
from legged.robot.construction.group import RobotGroup
from legged.robot.robot import Robot

Array = np.ndarray
Termination = Callable[[float, Array, Array], Any]
"""Function (t [s], q (nq,), v (nv,)) that returns a message or True to end a run, and None, False or "" to continue."""


@checked
@dataclass(frozen=True)
class Fall:
    """A robot has fallen when its base is too low or tilts too far; a group, when one of its robots has fallen.

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
        return FallLimits(tuple(self._base_limits(ground, *pose(q)) for _, pose in _moving_bases(robot)))

    def _base_limits(self, ground: Ground | Rigid | None, R: Array, origin: Array) -> BaseLimits:
        return BaseLimits(self.height * float(_clearance(ground, origin)), R[2].copy(), self.tilt)


def can_fall(robot: Robot, ground: Ground | Rigid | None) -> bool:
    """Return whether runs of a robot end at a fall by default: with a ground and a moving base.

    Args:
        robot: The robot. ground: The ground.
    """
    members = robot.members if isinstance(robot, RobotGroup) else ()
    return ground is not None and any(one.base.kind != "fixed" for one in (robot, *(m.robot for m in members)))


Pose = Callable[[Array], tuple[Array, Array]]


def _moving_bases(robot: Robot) -> list[tuple[str, Pose]]:
    """Return the name of each base link that can fall, and its pose (R (3, 3), origin (3,) [m]) as a function of q."""
    if not isinstance(robot, RobotGroup):
        return [(robot.links[0].name, lambda q: robot.base.pose(q[: robot.base.nq]))]
    moving = [member for member in robot.members if member.robot.base.kind != "fixed"]
    return [(robot.links[member.links[0]].name, member.base_pose) for member in moving]


@dataclass(frozen=True, eq=False)
class BaseLimits:
    """Limits beyond which a base has fallen.

    Attributes:
        lowest: Lowest height of the base origin over the ground below it, [m].
        up: Vertical unit vector at the start, (3,), base axes.
        tilt: Largest angle between that vector and the vertical, [rad].
    """

    lowest: float
    up: Array
    tilt: float


@dataclass(frozen=True, eq=False)
class FallLimits:
    """Limits beyond which a robot has fallen.

    Attributes:
        bases: Limits of its base, or of the moving bases of a group in order.
    """

    bases: tuple[BaseLimits, ...]

    def termination_code(self, robot: Robot, ground: Ground | Rigid | None, q: Array) -> Any:
        """Return 1.0 if the base is too low, 2.0 if it tilts too far, 0.0 otherwise. The function can be traced.

        The codes of base k of a group, from 0, are 2 k + 1 and 2 k + 2.

        Args:
            robot: The robot. ground: The ground. q: Configuration, (nq,).
        """
        code: Any = 0.0
        for k, (limits, (_, pose)) in reversed(list(enumerate(zip(self.bases, _moving_bases(robot), strict=True)))):
            R, origin = pose(q)
            tilted = where(R[2] @ limits.up < np.cos(limits.tilt), 2.0 * k + 2.0, code)
            code = where(_clearance(ground, origin) < limits.lowest, 2.0 * k + 1.0, tilted)
        return code

    def message(self, robot: Robot, code: int) -> str:
        """Return the message of a termination code.

        Args:
            robot: The robot. code: See `termination_code`; not zero.
        """
        base, is_tilted = divmod(code - 1, 2)
        limits, name = self.bases[base], _moving_bases(robot)[base][0]
        name = f"the {name}" if name.isalpha() else f"link {name!r}"
        if not is_tilted:
            return f"{name} fell below {limits.lowest:.3g} m"
        return f"{name} leaned over by more than {limits.tilt:.3g} rad"


def _clearance(ground: Ground | Rigid | None, origin: Array) -> Any:
    """Return the height of the base origin over the ground, [m]."""
    return origin[2] - (ground.terrain.height(origin[0], origin[1]) if ground else 0.0)
