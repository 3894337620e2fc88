"""Reduced robots: with joints locked, links removed, or links on fixed joints merged.

The remaining links and joints keep their names, physics and order in q and v. The partition into modules is recomputed,
since it changes with the tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from legged.errors import DefinitionError
from legged.robot.builder import RobotBuilder
from legged.robot.joint import Connection, Coupling, Fixed, Joint, Stage
from legged.robot.link import Link, Sphere
from legged.robot.placement import IDENTITY, Placement, Vector
from legged.robot.robot import Robot
from legged.rotations import quaternion_matrix
from legged.spatial import Array, skew


def locked(robot: Robot, values: Mapping[str, Any]) -> Robot:
    """Return the robot with some joints replaced by fixed joints at given values.

    Args:
        robot: The robot. Joints coupled to a locked joint are locked with it.
        values: Joint name -> value as in `state`: a number or (nq of the joint,), [rad] or [m].

    Raises:
        UnknownNameError: For an unknown joint. DefinitionError: For a coupled joint, whose master must be locked
            instead. ShapeError, NotFiniteError, StateError: For values of the wrong form.
    """
    for follower in robot.followers:
        if follower.name in values:
            raise DefinitionError(f"joint {follower.name!r} follows {follower.master!r}: hold that one")
    q, _ = robot.state(joints=values)
    locked_at = {name: q[robot.joint(name).q] for name in values}
    locked_at |= {f.name: f.ratio * locked_at[f.master] + f.offset for f in robot.followers if f.master in locked_at}
    edges = [_locked(c, locked_at[c.joint.name]) if c.joint.name in locked_at else c for c in robot.connections]
    return rebuilt(robot, links_of(robot), edges)


def without(robot: Robot, links: Iterable[str]) -> Robot:
    """Return the robot without some links and everything outward of them.

    Raises:
        UnknownNameError: For an unknown link.
        DefinitionError: For the base, and if a remaining joint is coupled to a removed one.
    """
    dropped: set[str] = set()
    for name in links:
        if robot.link(name).index == 0:
            raise DefinitionError(f"{name!r} is the base of robot {robot.name!r}: without it nothing is left")
        dropped.add(name)
    for c in robot.connections:  # parent before child
        if c.parent in dropped:
            dropped.add(c.child)
    remaining = [link for link in links_of(robot) if link.name not in dropped]
    return rebuilt(robot, remaining, [c for c in robot.connections if c.child not in dropped])


def fused(robot: Robot) -> Robot:
    """Return the robot with each link on a fixed joint merged into its parent: mass, contact points and shapes.

    The motion is unchanged; only the names of the merged links are lost.
    """
    links, root = {link.name: link for link in links_of(robot)}, robot.links[0].name
    poses, merged, moving = {root: (root, IDENTITY)}, {root: links[root]}, []
    for c in robot.connections:
        parent, at = poses[c.parent]
        start = at @ c.start
        if isinstance(c.joint, Fixed):
            poses[c.child] = parent, start
            merged[parent] = _merged(merged[parent], links[c.child], start)
        else:
            poses[c.child] = c.child, IDENTITY
            merged[c.child] = links[c.child]
            moving.append(replace(c, parent=parent, start=start))
    return rebuilt(robot, list(merged.values()), moving)


def links_of(robot: Robot) -> list[Link]:
    """Return the definitions of the links with their contact points, base first."""
    contacts: list[dict[str, Array | Sphere]] = [{} for _ in robot.links]
    for point in robot.contacts:
        contacts[point.link][point.name] = point.definition
    return [
        Link(link.name, link.inertia, points, link.shapes) for link, points in zip(robot.links, contacts, strict=True)
    ]


def rebuilt(robot: Robot, links: list[Link], connections: Sequence[Connection]) -> Robot:
    """Return a robot of the given links and joints with the base, gravity, couplings and joint order of another."""
    builder = RobotBuilder(robot.name, links[0], base=robot.base, gravity=robot.gravity)
    for link in links[1:]:
        builder.link(link)
    for c in connections:
        builder.joint(c.joint, parent=c.parent, child=c.child, at=c.start.position, rotation=c.start.rotation)
    moving = {c.joint.name for c in connections if not isinstance(c.joint, Fixed)}
    for coupling in _couplings(robot, moving):
        builder.couple(coupling.follower, coupling.master, coupling.ratio, coupling.offset)
    return builder.build(order=[joint.name for joint in robot.joints if joint.name in moving])


def _couplings(robot: Robot, moving: set[str]) -> list[Coupling]:
    """Return the couplings of the joints that move."""
    found = []
    for f in robot.followers:
        if f.name in moving:
            if f.master not in moving:
                raise DefinitionError(
                    f"joint {f.name!r} follows {f.master!r}, which is gone: drop the link {f.child!r} as well"
                )
            found.append(Coupling(f.name, f.master, f.ratio, f.offset))
    return found


def _locked(c: Connection, q: Array) -> Connection:
    """Return a fixed joint in place of a joint locked at its entries q."""
    return replace(c, joint=Fixed(c.joint.name), start=c.start @ joint_placement(c.joint, q))


def joint_placement(joint: Joint, q: Array) -> Placement:
    """Return the pose of the child link's frame in the joint's frame.

    Args:
        joint: The joint. q: Its coordinates, (nq of the joint,).
    """
    place, at = IDENTITY, 0
    for stage in joint.stages:
        place, at = place @ _moved(stage, q[at : at + stage.nq]), at + stage.nq
    return place


def _moved(stage: Stage, q: Array) -> Placement:
    """Return the pose of the frame after a stage in the frame before it; exactly the identity at zero."""
    if stage.kind == "ball":
        return Placement(quaternion_matrix(q), np.zeros(3))
    if stage.kind == "prismatic":
        return Placement(np.eye(3), q[0] * stage.axis)
    c, s, axis = np.cos(q[0]), np.sin(q[0]), stage.axis
    return Placement(c * np.eye(3) + s * skew(axis) + (1.0 - c) * np.outer(axis, axis), np.zeros(3))


def _merged(carrier: Link, link: Link, place: Placement) -> Link:
    """Return a link merged with another whose pose in its frame is `place`."""
    points = {name: _moved_point(place, at) for name, at in link.contacts.items()}
    shapes = [shape.moved(place.rotation, place.position) for shape in link.shapes]
    inertia = carrier.inertia + link.inertia.moved(place.rotation, place.position)
    return Link(carrier.name, inertia, {**carrier.contacts, **points}, (*carrier.shapes, *shapes))


def _moved_point(place: Placement, at: Vector | Sphere) -> Array | Sphere:
    if isinstance(at, Sphere):
        return at.moved(place.rotation, place.position)
    return place.rotation @ at + place.position
