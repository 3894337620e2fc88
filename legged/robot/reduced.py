"""Smaller robots from a robot: joints held, limbs dropped, fixed links merged into what carries them.

What is left keeps its names, its joint physics and its order in q and v. The partition into modules is found anew,
since held joints and dropped limbs make two modules one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from legged.errors import DefinitionError
from legged.robot.builder import Connection, RobotBuilder
from legged.robot.coupling import Coupling
from legged.robot.frames import Placement
from legged.robot.inertia import Vector
from legged.robot.joint import Fixed, Joint, Stage
from legged.robot.link import Link
from legged.robot.robot import Robot
from legged.robot.shapes import Sphere
from legged.rotations import quaternion_matrix
from legged.spatial import Array, skew

_HERE = Placement(np.eye(3), np.zeros(3))


def locked(robot: Robot, values: Mapping[str, Any]) -> Robot:
    """Return the robot with joints held at given values, their links fixed to their parents.

    Args:
        robot: The robot. Joints that follow a held one are held with it.
        values: Joint name -> value as in `state`: a number or (nq of the joint,), [rad] or [m].

    Raises:
        UnknownNameError: for a joint that is not there. DefinitionError: for one that follows another, which must be
            held instead. ShapeError, NotFiniteError, StateError: for values of the wrong form.
    """
    for follower in robot.followers:
        if follower.name in values:
            raise DefinitionError(f"joint {follower.name!r} follows {follower.master!r}: hold that one")
    q, _ = robot.state(joints=values)
    held = {name: q[robot.joint(name).q] for name in values}
    held |= {f.name: f.ratio * held[f.master] + f.offset for f in robot.followers if f.master in held}
    edges = [_held(c, held[c.joint.name]) if c.joint.name in held else c for c in robot.connections]
    return rebuilt(robot, links_of(robot), edges)


def without(robot: Robot, links: Iterable[str]) -> Robot:
    """Return the robot without some links and everything outward of them.

    Raises:
        UnknownNameError: for a link that is not there. DefinitionError: for the base, and where a joint that is left
            follows one that is not.
    """
    dropped: set[str] = set()
    for name in links:
        if robot.link(name).index == 0:
            raise DefinitionError(f"{name!r} is the base of robot {robot.name!r}: without it nothing is left")
        dropped.add(name)
    for c in robot.connections:  # parent before child
        if c.parent in dropped:
            dropped.add(c.child)
    kept = [link for link in links_of(robot) if link.name not in dropped]
    return rebuilt(robot, kept, [c for c in robot.connections if c.child not in dropped])


def fused(robot: Robot) -> Robot:
    """Return the robot without links that are fixed to others: what carries them takes over their mass and contacts.

    Nothing moves otherwise; only names of links are lost.
    """
    links, root = {link.name: link for link in links_of(robot)}, robot.links[0].name
    place, kept, moving = {root: (root, _HERE)}, {root: links[root]}, []
    for c in robot.connections:
        carrier, at = place[c.parent]
        start = at @ c.start
        if isinstance(c.joint, Fixed):
            place[c.child] = carrier, start
            kept[carrier] = _with(kept[carrier], links[c.child], start)
        else:
            place[c.child] = c.child, _HERE
            kept[c.child] = links[c.child]
            moving.append(replace(c, parent=carrier, start=start))
    return rebuilt(robot, list(kept.values()), moving)


def links_of(robot: Robot) -> list[Link]:
    """Return the links as they were defined, contacts included, base first."""
    contacts: list[dict[str, Array | Sphere]] = [{} for _ in robot.links]
    for point in robot.contacts:
        contacts[point.link][point.name] = point.definition
    return [
        Link(link.name, link.inertia, points, link.shapes) for link, points in zip(robot.links, contacts, strict=True)
    ]


def rebuilt(robot: Robot, links: list[Link], connections: Sequence[Connection]) -> Robot:
    """Return a robot of the given links and joints with the base, gravity, couplings and order of another."""
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
    """Return the couplings of the joints that still move."""
    found = []
    for f in robot.followers:
        if f.name in moving:
            if f.master not in moving:
                raise DefinitionError(
                    f"joint {f.name!r} follows {f.master!r}, which is gone: drop the link {f.child!r} as well"
                )
            found.append(Coupling(f.name, f.master, f.ratio, f.offset))
    return found


def _held(c: Connection, q: Array) -> Connection:
    """Return a fixed joint in the place of one that is held at its entries q."""
    return replace(c, joint=Fixed(c.joint.name), start=c.start @ joint_placement(c.joint, q))


def joint_placement(joint: Joint, q: Array) -> Placement:
    """Return the child link's frame in the joint's frame, at the joint's entries q, (nq of it,)."""
    place, at = _HERE, 0
    for stage in joint.stages:
        place, at = place @ _moved(stage, q[at : at + stage.nq]), at + stage.nq
    return place


def _moved(stage: Stage, q: Array) -> Placement:
    """Return the frame after a one-DoF joint (or a ball) in the frame before it; exactly the same at zero."""
    if stage.kind == "ball":
        return Placement(quaternion_matrix(q), np.zeros(3))
    if stage.kind == "prismatic":
        return Placement(np.eye(3), q[0] * stage.axis)
    c, s, axis = np.cos(q[0]), np.sin(q[0]), stage.axis
    return Placement(c * np.eye(3) + s * skew(axis) + (1.0 - c) * np.outer(axis, axis), np.zeros(3))


def _with(carrier: Link, link: Link, place: Placement) -> Link:
    """Return a link with another welded to it at a place in its frame."""
    points = {name: _moved_point(place, at) for name, at in link.contacts.items()}
    shapes = [shape.moved(place.rotation, place.position) for shape in link.shapes]
    inertia = carrier.inertia + link.inertia.moved(place.rotation, place.position)
    return Link(carrier.name, inertia, {**carrier.contacts, **points}, (*carrier.shapes, *shapes))


def _moved_point(place: Placement, at: Vector | Sphere) -> Array | Sphere:
    if isinstance(at, Sphere):
        return at.moved(place.rotation, place.position)
    return place.rotation @ at + place.position
