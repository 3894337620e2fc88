"""The legs of a robot: chains of joints from its base to links with contact points."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import NamedTuple

import numpy as np

from legged.dynamics.kinematics import link_poses
from legged.errors import DefinitionError
from legged.robot.joint import Follower, PlacedJoint
from legged.robot.robot import Robot

Array = np.ndarray
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
        name: As of `leg_name`.
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
    return tuple(_chain(robot, end, rotations, origins - origins[0]) for end in foot_links(robot))


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


def foot_links(robot: Robot) -> list[int]:
    """Return the outermost links with contact points on each branch, without the base."""
    touching = {point.link for point in robot.contacts} - {0}
    inner = {name for end in touching for name in _path(robot, end)[:-1]}
    ends = [link.index for link in robot.links if link.index in touching and link.name not in inner]
    if not ends:
        raise DefinitionError(f"robot {robot.name!r} has no legs: no link beyond the base has contact points")
    return ends


def leg_name(robot: Robot, end: int) -> str:
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
        leg_name(robot, end),
        end,
        tuple(point.name for point in points),
        tuple(dict.fromkeys(axis.column for axis in axes)),
        tuple(dict.fromkeys(axis.column for axis in pitch)),
        pitch[0].origin,
        sum(float(np.linalg.norm(b - a)) for a, b in pairwise([*(axis.origin for axis in pitch), sole])),
    )
