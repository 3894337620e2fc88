"""Detection of falls during a simulation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from legged.checked import checked
from legged.compiler.ir import where
from legged.contact.rigid import Rigid
from legged.dynamics.kinematics import Motion, motion
from legged.errors import DefinitionError
from legged.ground.ground import Ground
from legged.robot.body import Body
from legged.robot.configuration import read
from legged.robot.construction.group import RobotGroup
from legged.robot.link import PlacedLink
from legged.robot.robot import Robot
from legged.robot.shapes import outermost_points

Array = np.ndarray
Termination = Callable[[float, Array, Array], Any]
"""Function (t [s], q (nq,), v (nv,)) that returns a message or True to end a run, and None, False or "" to continue."""


@checked
@dataclass(frozen=True)
class Fall:
    """A robot has fallen when its trunk is too low or tilts too far, or when given links touch the ground.

    The trunk is the base with the links that are fixed to it. Its height is that of its center of mass over the ground
    below, so that it does not depend on where the frame of the base is. By default the height may decrease to 0.3 of
    its initial value. A group has fallen when one of its robots has fallen.

    Attributes:
        height: Lowest height of the trunk, as a fraction of its initial height; without effect on a trunk that begins
            at or below the height of the ground.
        tilt: Largest angle between the vertical and the axis of the trunk that is vertical at the start, [rad].
        contacts: Names of links whose collision shapes must not touch the ground.
    """

    height: float = 0.3
    tilt: float = 1.0
    contacts: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not (self.height < 1.0 and self.tilt > 0.0):
            raise DefinitionError(f"a fall needs height < 1 and tilt > 0 rad, got {self.height} and {self.tilt}")
        object.__setattr__(self, "contacts", tuple(self.contacts))

    def detector(self, robot: Robot, ground: Ground | Rigid | None, q: Array) -> Termination:
        """Return the termination condition of a run.

        Args:
            robot: The robot. ground: The ground. q: Initial configuration, (nq,).

        Raises:
            UnknownNameError, DefinitionError: `contacts` has the name of no link, or of a link without shapes.
        """
        limits = self.limits(robot, ground, q)

        def message(t: float, q: Array, v: Array) -> str | None:
            code = int(limits.termination_code(robot, ground, q))
            return limits.message(robot, code) if code else None

        return message

    def limits(self, robot: Robot, ground: Ground | Rigid | None, q: Array) -> FallLimits:
        """Return the limits of a run; arguments and errors as in `detector`."""
        (q,) = read(robot, q=q)
        for name in self.contacts:
            if not robot.link(name).shapes:
                raise DefinitionError(
                    f"link {name!r} in Fall.contacts has no collision shapes, so that it touches nothing"
                )
        bases = tuple(self._base_limits(ground, body, *pose(q)) for _, body, pose in _moving_bases(robot))
        return FallLimits(bases, tuple(self.contacts), self.height)

    def _base_limits(self, ground: Ground | Rigid | None, body: Body, R: Array, origin: Array) -> BaseLimits:
        moments = body.moments
        center = np.asarray(moments.h / moments.mass if moments.mass > 0.0 else np.zeros(3), dtype=float)
        height = float(_clearance(ground, origin + R @ center))
        return BaseLimits(self.height * height if height > 0.0 else -np.inf, R[2].copy(), self.tilt, center)


def can_fall(robot: Robot, ground: Ground | Rigid | None) -> bool:
    """Return whether runs of a robot end at a fall by default: with a ground and a moving base.

    Args:
        robot: The robot. ground: The ground.
    """
    members = robot.members if isinstance(robot, RobotGroup) else ()
    return ground is not None and any(one.base.nv for one in (robot, *(m.robot for m in members)))


Pose = Callable[[Array], tuple[Array, Array]]


def _moving_bases(robot: Robot) -> list[tuple[str, Body, Pose]]:
    """Return for each base that can fall its link's name, its body, and its pose as a function of q.

    The pose is (R (3, 3), origin (3,) [m]), body axes to world axes.
    """
    if not isinstance(robot, RobotGroup):
        return [(robot.links[0].name, robot.bodies[0], lambda q: robot.base.pose(q[: robot.base.nq]))]
    moving = [member for member in robot.members if member.robot.base.nv]
    return [(robot.links[m.links[0]].name, m.robot.bodies[0], m.base_pose) for m in moving]


@dataclass(frozen=True, eq=False)
class BaseLimits:
    """Limits beyond which a base has fallen.

    Attributes:
        lowest: Lowest height of the center over the ground below it, [m]; minus infinity without a limit.
        up: Vertical unit vector at the start, (3,), base axes.
        tilt: Largest angle between that vector and the vertical, [rad].
        center: Center of mass of the trunk, (3,), [m], base axes.
    """

    lowest: float
    up: Array
    tilt: float
    center: Array


@dataclass(frozen=True, eq=False)
class FallLimits:
    """Limits beyond which a robot has fallen.

    Attributes:
        bases: Limits of its base, or of the moving bases of a group in order.
        contacts: Names of links that must not touch the ground.
        height: The fraction of the initial height of `Fall`, for messages.
    """

    bases: tuple[BaseLimits, ...]
    contacts: tuple[str, ...] = ()
    height: float = 0.0

    def termination_code(self, robot: Robot, ground: Ground | Rigid | None, q: Array) -> Any:
        """Return 1.0 if the trunk is too low, 2.0 if it tilts too far, 0.0 otherwise. The function can be traced.

        The codes of base k of a group, from 0, are 2 k + 1 and 2 k + 2; those of the links of `contacts` follow.

        Args:
            robot: The robot. ground: The ground. q: Configuration, (nq,).
        """
        code: Any = 0.0
        if self.contacts:
            at = motion(robot, q)
            for j, name in reversed(list(enumerate(self.contacts))):
                gap = _gap(robot.link(name), at, ground)
                code = where(gap <= 0.0, 2.0 * len(self.bases) + 1.0 + j, code)
        for k, (limits, (_, _, pose)) in reversed(list(enumerate(zip(self.bases, _moving_bases(robot), strict=True)))):
            R, origin = pose(q)
            tilted = where(R[2] @ limits.up < np.cos(limits.tilt), 2.0 * k + 2.0, code)
            code = where(_clearance(ground, origin + R @ limits.center) < limits.lowest, 2.0 * k + 1.0, tilted)
        return code

    def message(self, robot: Robot, code: int) -> str:
        """Return the message of a termination code, with the option that sets the limit.

        Args:
            robot: The robot. code: See `termination_code`; not zero.
        """
        base, is_tilted = divmod(code - 1, 2)
        if base >= len(self.bases):
            return f"link {self.contacts[code - 1 - 2 * len(self.bases)]!r} touched the ground (Fall.contacts)"
        limits, name = self.bases[base], _moving_bases(robot)[base][0]
        name = f"the {name}" if name.isalpha() else f"link {name!r}"
        if not is_tilted:
            return f"{name} fell below {limits.lowest:.3g} m, {self.height:.3g} of its initial height (Fall.height)"
        return f"{name} leaned over by more than {limits.tilt:.3g} rad (Fall.tilt)"


def _gap(link: PlacedLink, at: Motion, ground: Ground | Rigid | None) -> Any:
    """Return the smallest height of the shapes of a link over the ground, [m]; see `outermost_points`."""
    gaps = []
    for shape in link.shapes:
        points, radius = outermost_points(shape)
        for point in points:
            p = at.origin[link.body] + at.rotation[link.body] @ (link.position + link.rotation @ point)
            gaps.append(_clearance(ground, p) - radius)
    return reduce(np.minimum, gaps)


def _clearance(ground: Ground | Rigid | None, origin: Array) -> Any:
    """Return the height of a point, (3,), [m], over the ground below it, [m]."""
    return origin[2] - (ground.terrain.height(origin[0], origin[1]) if ground else 0.0)
