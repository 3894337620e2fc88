"""Find the legs of a robot: the chains of joints from its base to contact points, and their closed-form geometry."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import NamedTuple, NoReturn

import numpy as np

from controllers.gaits.leg import Leg
from legged.checked import checked
from legged.dynamics.kinematics import link_poses
from legged.errors import DefinitionError
from legged.robot.joint import Follower, PlacedJoint
from legged.robot.robot import Robot

Array = np.ndarray
_TOLERANCE = 1e-9  # [m] or a cosine: deviation of a closed-form leg from the vertical, and of its axes from x and y
_PITCH = 0.7  # least cosine between the y axis and the axis of a joint that counts as a pitch joint


class JointAxis(NamedTuple):
    """Axis of one joint coordinate in the configuration that it was computed for.

    Attributes:
        kind: "revolute", "prismatic" or another stage of a joint; "following" for a joint that follows another.
        direction: Unit vector, (3,), base axes.
        origin: Point on the axis, (3,), [m], base axes.
        column: Index among the robot's joint coordinates.
    """

    kind: str
    direction: Array
    origin: Array
    column: int


@dataclass(frozen=True, eq=False)
class LegChain:
    """A leg of any kind: the joints from the base to a link with contact points.

    Attributes:
        name: As in `legs_of`.
        link: Index of its last link.
        contacts: Names of its contact points.
        columns: Indices of its joints among the robot's joint coordinates.
        pitch_columns: Indices of its pitch joints, at zero, from hip to ankle; all its joints if none of them pitches.
        hip: Origin of the first pitch joint, (3,), [m], base axes at zero.
        length: Sum of the distances from the hip along the pitch joints to the sole, [m].
    """

    name: str
    link: int
    contacts: tuple[str, ...]
    columns: tuple[int, ...]
    pitch_columns: tuple[int, ...]
    hip: Array
    length: float


def leg_chains(robot: Robot) -> tuple[LegChain, ...]:
    """Return the legs in the order of the robot's links.

    Raises:
        DefinitionError: The robot has no legs, or no joint leads to a link with contact points.
    """
    rotations, origins = link_poses(robot, robot.neutral())
    return tuple(_chain(robot, end, rotations, origins - origins[0]) for end in _foot_links(robot))


@checked
def legs_of(robot: Robot, knee: str = "forward") -> tuple[Leg, ...]:
    """Return the closed-form geometry of the legs, in the order of the robot's links.

    A leg leads from the base to a link with contact points: an optional abduction joint about x, a hip and a knee about
    y, and an optional ankle about y. With every joint at zero it is straight down. Its name is the common beginning of
    its joints' names, up to an underscore, or else the name of its last link.

    Args:
        robot: The robot.
        knee: Direction of the bent knees, "forward" or "backward".

    Raises:
        DefinitionError: The robot has no legs, or a leg is not of this kind; use `NumericalGait` for such robots.
    """
    rotations, origins = link_poses(robot, robot.neutral())
    legs = []
    for end in _foot_links(robot):
        axes = joint_axes(robot, end, rotations, origins)
        points = np.array(
            [origins[end] + rotations[end] @ point.position for point in robot.contacts if point.link == end]
        )
        legs.append(_closed_form(_leg_name(robot, end), axes, points, knee))
    return tuple(legs)


def joint_axes(robot: Robot, end: int, rotations: Array, origins: Array) -> list[JointAxis]:
    """Return the joint axes from the base to a link.

    Args:
        robot: The robot.
        end: Index of the link.
        rotations: Rotation matrices of all links, (n_links, 3, 3), dimensionless, link axes to base axes.
        origins: Origins of all links, (n_links, 3), [m], base axes.
    """
    axes = []
    for joint in _joints(robot, end):
        child = robot.link(joint.child).index
        column = joint.v.start - robot.base.nv
        for stage in joint.definition.stages:
            kind = "following" if isinstance(joint, Follower) else stage.kind
            axes.append(JointAxis(kind, rotations[child] @ stage.axis, origins[child], column))
            column += stage.nv
    return axes


def _foot_links(robot: Robot) -> list[int]:
    """Return the outermost links with contact points on each branch, without the base."""
    touching = {point.link for point in robot.contacts} - {0}
    inner = {name for end in touching for name in _path(robot, end)[:-1]}
    ends = [link.index for link in robot.links if link.index in touching and link.name not in inner]
    if not ends:
        raise DefinitionError(f"robot {robot.name!r} has no legs: no link beyond the base has contact points")
    return ends


def _leg_name(robot: Robot, end: int) -> str:
    """Return the common beginning of the names of the joints that lead to link `end`, or else the link's name."""
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
    parent = {connection.child: connection.parent for connection in robot.connections}
    path = [robot.links[end].name]
    while path[0] in parent:
        path.insert(0, parent[path[0]])
    return path


def _chain(robot: Robot, end: int, rotations: Array, origins: Array) -> LegChain:
    axes = joint_axes(robot, end, rotations, origins)
    pitch = [axis for axis in axes if axis.kind == "revolute" and abs(axis.direction[1]) > _PITCH] or axes
    if not pitch:
        raise DefinitionError(f"no joint leads to the contact points on {robot.links[end].name!r}")
    points = [point for point in robot.contacts if point.link == end]
    sole = np.mean([origins[end] + rotations[end] @ point.position for point in points], axis=0)
    return LegChain(
        _leg_name(robot, end),
        end,
        tuple(point.name for point in points),
        tuple(dict.fromkeys(axis.column for axis in axes)),
        tuple(dict.fromkeys(axis.column for axis in pitch)),
        pitch[0].origin,
        sum(float(np.linalg.norm(b - a)) for a, b in pairwise([*(axis.origin for axis in pitch), sole])),
    )


def _closed_form(name: str, axes: list[JointAxis], points: Array, knee: str) -> Leg:
    if any(axis.kind == "following" for axis in axes):
        _refuse(name, "it has a joint that follows another")
    if any(axis.kind != "revolute" for axis in axes):
        _refuse(name, "it has a joint that is not revolute")
    along = "".join("?xyz"[_direction(axis.direction)] for axis in axes)
    if along.removeprefix("x") not in ("yy", "yyy"):
        _refuse(name, f"its axes run along {', '.join(along) or 'nothing'}")
    abducts, flat = along.startswith("x"), along.endswith("yyy")
    pitch = axes[1:] if abducts else axes
    hip, bend = pitch[0].origin, pitch[1].origin
    end = pitch[2].origin if flat else points.mean(axis=0)
    for a, b in ((hip, bend), (bend, end)):
        if abs(a[0] - b[0]) > _TOLERANCE or b[2] >= a[2]:
            _refuse(name, "it is not straight down with its joints at zero")
    if np.ptp(points[:, 2]) > _TOLERANCE:
        _refuse(name, "its contact points are not level with its joints at zero")
    if abducts and abs(axes[0].origin[2] - hip[2]) > _TOLERANCE:
        _refuse(name, "its hip axis and its abduction axis are not equally high")
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
        signs=tuple(round(axis.direction[0] if i < abducts else -axis.direction[1]) for i, axis in enumerate(axes)),
        columns=tuple(axis.column for axis in axes),
    )


def _direction(axis: Array) -> int:
    """Return 1, 2 or 3 for an axis along x, y or z, 0 for any other."""
    along = int(np.argmax(np.abs(axis)))
    return along + 1 if abs(abs(axis[along]) - 1) < _TOLERANCE else 0


def _refuse(name: str, reason: str) -> NoReturn:
    raise DefinitionError(
        f"leg {name!r} has no closed-form inverse kinematics: {reason}; pass `legs` explicitly or use NumericalGait"
    )
