"""Reading the legs of a robot: from its links and joints to the closed-form `Leg`, where that fits."""

from __future__ import annotations

from itertools import takewhile
from typing import NamedTuple, NoReturn

import numpy as np

from controllers.gaits.leg import Leg
from legged.dynamics.kinematics import link_poses
from legged.errors import DefinitionError
from legged.robot.joint import Follower, PlacedJoint
from legged.robot.robot import Robot

Array = np.ndarray
_CLOSE = 1e-9  # [m] or a cosine: how far a leg may be from straight down and its axes from x and y


class Axis(NamedTuple):
    """One joint coordinate with every joint at zero: unit axis and place in base axes, place among the coordinates."""

    kind: str
    axis: Array
    origin: Array
    column: int


def legs_of(robot: Robot, knee: str = "forward") -> tuple[Leg, ...]:
    """Return the robot's legs, in the order of its links.

    A leg leads from the base to a link with contact points: perhaps an abduction about x, then a hip and a knee about
    y, then perhaps an ankle about y; with every joint at zero it hangs straight down. It is named by what the names
    of its joints begin with, up to an underscore, or else by its last link.

    Args:
        robot: The robot. knee: Where the knees point when bent, "forward" or "backward".

    Raises:
        DefinitionError: The robot has no legs, or one that is not of this kind; `NumericalGait` moves those.
    """
    q = robot.neutral()
    rotations, origins = link_poses(robot, q)
    ends = foot_links(robot)
    if not ends:
        raise DefinitionError(f"robot {robot.name!r} has no legs: no link beyond the base has contact points")
    legs = []
    for end in ends:
        axes = axes_to(robot, end, rotations, origins)
        points = np.array(
            [origins[end] + rotations[end] @ point.position for point in robot.contacts if point.link == end]
        )
        legs.append(_leg(leg_name(robot, end), axes, points, knee))
    return tuple(legs)


def foot_links(robot: Robot) -> list[int]:
    """Return the links with contact points that no other such link comes after, the base left out."""
    touching = {point.link for point in robot.contacts} - {0}
    inward = {name for end in touching for name in _path(robot, end)[:-1]}
    return [link.index for link in robot.links if link.index in touching and link.name not in inward]


def leg_name(robot: Robot, end: int) -> str:
    """Return what the names of the joints that lead to link `end` begin with, or else the link's name."""
    names = [joint.name for joint in _joints(robot, end)]
    if len(names) < 2:
        return robot.links[end].name
    shared = [letters[0] for letters in takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))]
    return "".join(shared).rstrip("_-. ") or robot.links[end].name


def _joints(robot: Robot, end: int) -> list[PlacedJoint]:
    above = {joint.child: joint for joint in (*robot.joints, *robot.followers)}
    return [above[link] for link in _path(robot, end) if link in above]


def _path(robot: Robot, end: int) -> list[str]:
    """Return the names of the links from the base to a link."""
    inward = {connection.child: connection.parent for connection in robot.connections}
    path = [robot.links[end].name]
    while path[0] in inward:
        path.insert(0, inward[path[0]])
    return path


def axes_to(robot: Robot, end: int, rotations: Array, origins: Array) -> list[Axis]:
    """Return the axes from the base to a link."""
    axes = []
    for joint in _joints(robot, end):
        child = robot.link(joint.child).index
        column = joint.v.start - robot.base.nv
        for stage in joint.definition.stages:
            kind = "following" if isinstance(joint, Follower) else stage.kind
            axes.append(Axis(kind, rotations[child] @ stage.axis, origins[child], column))
            column += stage.nv
    return axes


def _leg(name: str, axes: list[Axis], points: Array, knee: str) -> Leg:
    if any(axis.kind == "following" for axis in axes):
        _refuse(name, "it has a joint that follows another")
    if any(axis.kind != "revolute" for axis in axes):
        _refuse(name, "it has a joint that is not revolute")
    along = "".join("?xyz"[_direction(axis.axis)] for axis in axes)
    if along.removeprefix("x") not in ("yy", "yyy"):
        _refuse(name, f"its axes run along {', '.join(along) or 'nothing'}")
    abducts, flat = along.startswith("x"), along.endswith("yyy")
    pitch = axes[1:] if abducts else axes
    hip, bend = pitch[0].origin, pitch[1].origin
    end = pitch[2].origin if flat else points.mean(axis=0)
    for a, b in ((hip, bend), (bend, end)):
        if abs(a[0] - b[0]) > _CLOSE or b[2] >= a[2]:
            _refuse(name, "it does not hang straight down with its joints at zero")
    if np.ptp(points[:, 2]) > _CLOSE:
        _refuse(name, "its contact points are not level with its joints at zero")
    if abducts and abs(axes[0].origin[2] - hip[2]) > _CLOSE:
        _refuse(name, "its hip axis does not cross the height of its abduction axis")
    side = axes[0].origin[1] if abducts else end[1]
    return Leg(
        name,
        (float(hip[0]), float(side), float(hip[2])),
        thigh=float(hip[2] - bend[2]),
        shank=float(bend[2] - end[2]),
        knee=knee,
        abducts=abducts,
        offset=float(end[1] - side) if abducts else 0.0,
        flat_foot=flat,
        sole=float(end[2] - points[0, 2]) if flat else 0.0,
        signs=tuple(round(axis.axis[0] if i < abducts else -axis.axis[1]) for i, axis in enumerate(axes)),
        columns=tuple(axis.column for axis in axes),
    )


def _direction(axis: Array) -> int:
    """Return 1, 2 or 3 for an axis along x, y or z, 0 for any other."""
    along = int(np.argmax(np.abs(axis)))
    return along + 1 if abs(abs(axis[along]) - 1) < _CLOSE else 0


def _refuse(name: str, reason: str) -> NoReturn:
    raise DefinitionError(
        f"leg {name!r} has no closed-form inverse kinematics: {reason}; give `legs` yourself or use NumericalGait"
    )
