"""The legs of a robot: chains of joints from its base to feet, the links on whose contact points it stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from typing import NamedTuple

import numpy as np

from legged.algorithms.legs.wheels import wheel_joint
from legged.dynamics.kinematics import link_poses
from legged.errors import DefinitionError
from legged.robot.joint import Follower, PlacedJoint
from legged.robot.robot import Robot
from legged.robot.shapes import convex_hull

Array = np.ndarray
_PITCH = 0.75  # least cosine between the y axis and the axis of a pitch joint: hip yaws of NAO have 0.71
_OBLIQUE, _THIGH = 0.6, 0.3
"""Least such cosine of a hip that pitches about an oblique axis, 0.71 for X1, and least distance from such a hip to the
next pitch joint, relative to the distance from that joint to the sole, 0 for the hip yaws of NAO."""
_LOWEST = 0.25
"""A limb is a leg if its contact points lie within this fraction of the height of the highest limb over the lowest
contact point, all joints at zero, or at the nearest end of a range without it."""
_SAME_SOLE = 0.1  # fraction of that height within which contact points of one limb belong to one sole
_UNEVEN, _EVEN = 0.02, 0.01
"""Largest distance of contact points from their best plane without raised parts, and largest distance of a point from
the plane of the flat part, relative to the length of the sole."""
_UPRIGHT = 0.9  # least cosine between the vertical and the first axis of a leg that swings around it
_SPREAD = 0.4  # least horizontal distance of the foot of such a leg from this axis, of its length, all joints at zero


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
    """A leg of any kind: the joints from the base, or from a waist that several legs hang on, to its foot.

    A leg as of a mammal swings forward about axes that are parallel to y; one as of an insect swings forward about a
    vertical axis beside the body, and lifts its foot about horizontal ones.

    Attributes:
        name: As of `leg_name`.
        link: Index of its foot, the first link that has contact points of the sole.
        contacts: Names of the contact points of the sole, of the foot and of toes beyond it.
        columns: Indices of its joints before the foot among the robot's joint coordinates.
        pitch_columns: Indices of its pitch joints, at zero, from hip to ankle; all its joints if none of them pitches.
            A hip about an oblique axis counts if the next pitch joint, a knee, is a thigh away from it. Of a leg
            as of an insect the joints that lift the foot.
        hip: Origin of the first pitch joint, (3,), [m], base axes at zero.
        length: Sum of the distances from the hip along the pitch joints to the sole, [m].
        outward: Of a leg as of an insect the horizontal unit vector, (3,), from the hip to the sole, dimensionless,
            base axes at zero; None for other legs.
        toe_columns: Indices of the joints between the foot and its toes.
        how: How the leg was found, as words for the user.
        wheel: Name of the joint that turns its foot as a wheel; empty for other feet.
    """

    name: str
    link: int
    contacts: tuple[str, ...]
    columns: tuple[int, ...]
    pitch_columns: tuple[int, ...]
    hip: Array
    length: float
    outward: Array | None = None
    toe_columns: tuple[int, ...] = ()
    how: str = ""
    wheel: str = ""

    @property
    def swings_sideways(self) -> bool:
        """Whether it is a leg as of an insect."""
        return self.outward is not None


class _Foot(NamedTuple):
    """A foot: its first link, the names of the contact points of its sole, and how it was found."""

    link: int
    contacts: frozenset[str]
    how: str


def leg_chains(robot: Robot) -> tuple[LegChain, ...]:
    """Return the legs in the order of the robot's links.

    Legs lead to the links that state `is_foot=True`. Without such links they are the limbs whose outermost contact
    points are the lowest with all joints at zero, or at the nearest end of a range without it, within a quarter of the
    height of the highest of these limbs; hands of arms are higher. Contact points at the height of the sole on several
    links of a limb, heels and toes, are one foot. `legs_text` shows the result.

    Raises:
        DefinitionError: The robot has no legs, or no joint leads to a link with contact points.
    """
    rotations, origins = link_poses(robot, robot.neutral())
    feet = _feet(robot)
    counts = Counter(joint.name for foot in feet for joint in _joints(robot, foot.link))
    waist = {name for name, count in counts.items() if count > 1}
    legs = [_chain(robot, foot, waist, rotations, origins - origins[0]) for foot in feet]
    if len({leg.name for leg in legs}) < len(legs):
        legs = [replace(leg, name=robot.links[leg.link].name) for leg in legs]
    return tuple(legs)


def legs_text(robot: Robot) -> str:
    """Return the legs of a robot, their joints and contact points and how they were found, a line for each."""
    lines = []
    for leg in leg_chains(robot):
        kind = "swings about a vertical axis" if leg.swings_sideways else "swings about horizontal axes"
        joints = f"{len(leg.columns)} joints" + (f" and {len(leg.toe_columns)} of toes" if leg.toe_columns else "")
        rolls = f"; rolls on a wheel turned by joint {leg.wheel!r}" if leg.wheel else ""
        lines.append(f"leg {leg.name!r}: {joints}, {kind}; stands on {', '.join(leg.contacts)}; {leg.how}{rolls}")
    return "\n".join(lines)


def joint_axes(robot: Robot, end: int, rotations: Array, origins: Array, but: Collection[str] = ()) -> list[JointAxis]:
    """Return the joint axes from the base to a link.

    Args:
        robot: The robot.
        end: Index of the link.
        rotations: Rotation matrices of all links, (n_links, 3, 3), dimensionless, link axes to base axes.
        origins: Origins of all links, (n_links, 3), [m], base axes.
        but: Names of joints that are left out.
    """
    axes = []
    for joint in _joints(robot, end):
        if joint.name in but:
            continue
        child = robot.link(joint.child).index
        column = joint.v.start - robot.base.nv
        for stage in joint.definition.stages:
            kind = "following" if isinstance(joint, Follower) else stage.kind
            axes.append(JointAxis(kind, rotations[child] @ stage.axis, origins[child], column))
            column += stage.nv
    return axes


def foot_links(robot: Robot) -> list[int]:
    """Return the feet, the last links of the legs without toes, as indices in the order of the robot's links."""
    return [foot.link for foot in _feet(robot)]


def _feet(robot: Robot) -> list[_Foot]:
    """Return the feet of the legs."""
    stated = [link.index for link in robot.links[1:] if link.is_foot]
    allowed = {link.index for link in robot.links[1:] if link.is_foot is not False}
    touching = {point.link for point in robot.contacts} & (set(stated) or allowed)
    paths = {end: [robot.link(name).index for name in _path(robot, end)] for end in sorted(touching)}
    inner = {index for path in paths.values() for index in path[:-1]}
    ends = [end for end in paths if end not in inner and _joints(robot, end)]
    if not ends:
        give = "give feet to legged.load(..., feet=...), or contacts to a legged.Link"
        if not robot.base.nv:
            give = f"its base is {robot.base.kind}: load its file with base='floating', or {give}"
        raise DefinitionError(
            f"robot {robot.name!r} has no legs: no link beyond the base has contact points, or all of them state "
            f"is_foot=False; {give}"
        )
    rotations, origins = link_poses(robot, _resting(robot))
    points: dict[str, float] = {}
    heights: dict[int, float] = {}
    for point in robot.contacts:
        low = float(origins[point.link, 2] + (rotations[point.link] @ point.position)[2]) - point.radius
        points[point.name], heights[point.link] = low, min(low, heights.get(point.link, np.inf))
    floor = min(heights[end] for end in ends)
    tops = [max((axis.origin[2] for axis in joint_axes(robot, end, rotations, origins)), default=floor) for end in ends]
    height = abs(max([*tops, float(origins[0, 2])]) - floor)  # the z axis of the base may point down
    how = "stated by is_foot" if stated else "its contact points are the outermost of the limb"
    if not stated and len(ends) > (low := sum(heights[end] <= floor + _LOWEST * height for end in ends)):
        ends = [end for end in ends if heights[end] <= floor + _LOWEST * height]
        how = f"one of the {low} lowest limbs with contact points (state is_foot=True or False on links otherwise)"
    soles: dict[int, set[str]] = {}
    for end in ends:
        highest = heights[end] + (_LOWEST if stated else _SAME_SOLE) * height
        level = [k for k in paths[end] if k in touching and heights[k] <= highest]
        own = {point.name for point in robot.contacts if point.link in level and points[point.name] <= highest}
        own = _without_raised_parts(robot, own, rotations[level[0]].T[:, 2]) if len(level) == 1 else own
        soles.setdefault(level[0], set()).update(own)
    return [_Foot(link, frozenset(own), how) for link, own in sorted(soles.items())]


def _resting(robot: Robot) -> Array:
    """Return zero, or the nearest ends of the ranges of joints without it, (nq,)."""
    q = robot.neutral()
    for joint in robot.joints:
        if joint.nq == joint.nv:
            physics = joint.definition.physics
            q[joint.q] = np.clip(q[joint.q], physics.lower, physics.upper)
    return q


def _without_raised_parts(robot: Robot, names: Collection[str], up: Array) -> set[str]:
    """Return the contact points of the largest flat part of a sole, such as those of a foot without its raised tip.

    Args:
        robot: The robot. names: Contact points of one link. up: Away from the ground, (3,), link axes.
    """
    ordered = sorted(names)
    points = np.array([robot.contact(name).position for name in ordered])
    arms = points - points.mean(axis=0)
    axes = np.linalg.svd(arms)[2]
    length = float(np.linalg.norm(np.ptp(points, axis=0)))
    if len(points) < 4 or np.abs(arms @ axes[2]).max() <= _UNEVEN * length:
        return set(names)
    best, most = set(names), 0.0
    for normal in convex_hull(points).equations[:, :3]:
        depths = points @ normal
        inside = depths >= depths.max() - _EVEN * length
        flat = arms[inside]
        area = float(np.prod(np.linalg.svd(flat - flat.mean(axis=0), compute_uv=False)[:2]))
        if normal @ up < -0.5 and area > most:  # it points down
            best, most = {name for name, is_flat in zip(ordered, inside, strict=True) if is_flat}, area
    return best


def leg_name(robot: Robot, end: int, waist: Collection[str] = ()) -> str:
    """Return the common beginning of the names of the joints that lead to link `end`, or else the link's name.

    Args:
        robot: The robot. end: Index of the link. waist: Names of joints that do not count.
    """
    names = [joint.name for joint in _joints(robot, end) if joint.name not in waist]
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


def _chain(robot: Robot, foot: _Foot, waist: set[str], rotations: Array, origins: Array) -> LegChain:
    """Return the leg with a foot; the joints of a waist, between the base and several legs, are not part of it."""
    axes = joint_axes(robot, foot.link, rotations, origins, waist)
    points = [point for point in robot.contacts if point.name in foot.contacts]
    sole = np.mean([origins[point.link] + rotations[point.link] @ point.position for point in points], axis=0)
    outward = _outward(axes, sole)
    if outward is None:
        turning = [axis for axis in axes if axis.kind == "revolute"]
        pitch = [axis for axis in turning if abs(axis.direction[1]) > _PITCH]
        oblique = next((axis for axis in turning if abs(axis.direction[1]) > _OBLIQUE), None)
        if pitch and oblique and _is_hip(oblique.origin, pitch[0].origin, sole):
            pitch = [oblique, *pitch]
        pitch = pitch or axes
    else:
        pitch = [axis for axis in axes[1:] if abs(axis.direction[2]) < _PITCH]
    if not pitch:
        raise DefinitionError(f"no joint leads to the contact points on {robot.links[foot.link].name!r}")
    columns = tuple(dict.fromkeys(axis.column for axis in axes))
    toes = [
        axis.column
        for link in sorted({point.link for point in points})
        for axis in joint_axes(robot, link, rotations, origins, waist)
    ]
    return LegChain(
        leg_name(robot, foot.link, waist),
        foot.link,
        tuple(point.name for point in points),
        columns,
        tuple(dict.fromkeys(axis.column for axis in pitch)),
        pitch[0].origin,
        sum(float(np.linalg.norm(b - a)) for a, b in pairwise([*(axis.origin for axis in pitch), sole])),
        outward,
        tuple(column for column in dict.fromkeys(toes) if column not in columns),
        foot.how,
        wheel_joint(robot, foot.link),
    )


def _is_hip(hip: Array, knee: Array, sole: Array) -> bool:
    """Return whether a hip and the next pitch joint are apart by the length of a thigh; positions, (3,), [m]."""
    return bool(np.linalg.norm(knee - hip) > _THIGH * np.linalg.norm(sole - knee))


def _outward(axes: list[JointAxis], sole: Array) -> Array | None:
    """Return the outward direction of a leg as of an insect, see `LegChain`; None for another leg.

    Its first axis is vertical, as in some humanoids, but its foot is far beside this axis with all joints at zero.
    """
    if len(axes) < 3 or axes[0].kind != "revolute" or abs(axes[0].direction[2]) < _UPRIGHT:
        return None
    if sum(abs(axis.direction[2]) < _PITCH for axis in axes[1:]) < 2:
        return None
    joints = [axis.origin for axis in axes[1:]]
    length = sum(float(np.linalg.norm(b - a)) for a, b in pairwise([*joints, sole]))
    beside = (sole - axes[0].origin) * [1.0, 1.0, 0.0]
    distance = float(np.linalg.norm(beside))
    return beside / distance if distance > _SPREAD * length else None
