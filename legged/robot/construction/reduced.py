"""Reduced robots: with joints locked, links removed, or links on fixed joints merged.

The remaining links and joints keep their names, physics and order in q and v. The partition into modules is recomputed
where the tree of moving joints changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from legged.arguments import instance
from legged.errors import DefinitionError
from legged.robot.construction.edit import RobotEditor
from legged.robot.construction.graph import links_of
from legged.robot.joint import Connection, Fixed, Joint
from legged.robot.link import Link, moved_contact
from legged.robot.placement import IDENTITY, Placement
from legged.robot.robot import Robot
from legged.robot.shapes import Sphere, shape_with
from legged.spatial import Array


def locked(robot: Robot, values: Mapping[str, Any]) -> Robot:
    """Return the robot with some joints replaced by fixed joints at given values.

    Args:
        robot: The robot. Joints coupled to a locked joint are locked with it.
        values: Joint name -> value as in `state`: a number or (nq of the joint,), [rad] or [m].

    Raises:
        UnknownNameError: For an unknown joint. DefinitionError: For a coupled joint, whose master must be locked
            instead. ShapeError, NotFiniteError, StateError: For values of the wrong form.
    """
    instance("values", values, Mapping, "a mapping of joint names to values")
    for follower in robot.followers:
        if follower.name in values:
            raise DefinitionError(f"joint {follower.name!r} follows {follower.master!r}: lock that joint instead")
    q, _ = robot.state(joints=values)
    locked_at = {name: q[robot.joint(name).q] for name in values}
    locked_at |= {f.name: f.ratio * locked_at[f.master] + f.offset for f in robot.followers if f.master in locked_at}
    connections = [_locked(c, locked_at[c.joint.name]) if c.joint.name in locked_at else c for c in robot.connections]
    return RobotEditor(robot).set_tree(links_of(robot), connections).build()


def without(robot: Robot, links: Iterable[str]) -> Robot:
    """Return the robot without some links and everything outward of them; errors as `RobotEditor.remove`."""
    return RobotEditor(robot).remove(*links).build()


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
    return RobotEditor(robot).set_tree(list(merged.values()), moving).build()


def _locked(c: Connection, q: Array) -> Connection:
    """Return a fixed joint in place of a joint locked at its entries q."""
    return replace(c, joint=Fixed(c.joint.name), start=c.start @ joint_placement(c.joint, q))


def joint_placement(joint: Joint, q: Array) -> Placement:
    """Return the pose of the child link's frame in the joint's frame.

    Args:
        joint: The joint. q: Its coordinates, (nq of the joint,).
    """
    place = IDENTITY
    for stage, entries in zip(joint.stages, joint.stage_entries, strict=True):
        place = place @ stage.motion.placement(stage.axis, q[entries], stage.pitch)
    return place


def _merged(carrier: Link, link: Link, place: Placement) -> Link:
    """Return a link merged with another whose pose in its frame is `place`."""
    points = {name: moved_contact(at, place.rotation, place.position) for name, at in link.contacts.items()}
    if link.material != carrier.material and any(not isinstance(at, Sphere) for at in points.values()):
        raise DefinitionError(
            f"links {carrier.name!r} and {link.name!r} cannot be merged: their contact points differ in material; "
            f"give both links one material"
        )
    points = {name: shape_with(at, link.material) if isinstance(at, Sphere) else at for name, at in points.items()}
    moved = [shape.moved(place.rotation, place.position) for shape in link.shapes]
    shapes = [shape_with(shape, link.material) for shape in moved]
    inertia = carrier.inertia + link.inertia.moved(place.rotation, place.position)
    stated = [each.is_foot for each in (carrier, link) if each.is_foot is not None]
    own = {**carrier.contacts, **points}
    return Link(
        carrier.name, inertia, own, (*carrier.shapes, *shapes), carrier.material, any(stated) if stated else None
    )
