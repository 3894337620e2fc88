"""Assembly of a robot from its graph.

The steps: read the graph, partition it into modules, expand joints of several degrees of freedom into stages, choose
the body frames, and check for motions without inertia.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from legged.robot.base import Base
from legged.robot.body import Body, moments_of, regroup
from legged.robot.construction.graph import LinkGraph, read_graph
from legged.robot.construction.partition import RigidGroup, partitioned, refuse_massless_ends
from legged.robot.construction.singular import refuse_singular
from legged.robot.inertia import Inertia
from legged.robot.joint import Coupling, Follower, PlacedJoint
from legged.robot.link import ContactPoint, PlacedLink
from legged.robot.physics import JointPhysics, by_stage
from legged.robot.placement import IDENTITY, Placement, Vector, body_axes, joint_transforms, origin_along
from legged.robot.robot import Robot
from legged.robot.shapes import Sphere
from legged.robot.stages.stage import Stage

if TYPE_CHECKING:
    import networkx as nx


@dataclass(eq=False)
class _Part:
    """A body without its frame and coordinates: its joint stage, and its link frame in the parent part's link frame."""

    name: str
    head: str
    joint: str
    parent: int
    stage: Stage | None
    start: Placement
    inertia: Inertia
    physics: JointPhysics = field(default_factory=JointPhysics)
    repeats: int | None = None  # index of the part whose coordinates it shares


def assemble(
    graph: nx.DiGraph[str] | LinkGraph,
    modules: Sequence[Sequence[str]] | None = None,
    order: Sequence[str] | None = None,
) -> Robot:
    """Return the robot of a graph; every robot is assembled here.

    Args:
        graph: The graph; see `legged.robot.construction.graph`.
        modules, order: As in `RobotBuilder.build`, which also lists the errors; by default as stated in the graph.
    """
    division = partitioned(read_graph(graph), modules, order)
    refuse_massless_ends(division)
    definition, groups, heads = division.definition, division.groups, division.heads
    base, parts = definition.base, _expand(groups, heads)
    bodies, frames = _bodies(parts, base, division.entries, division.couplings)
    last = {part.head: index for index, part in enumerate(parts)}
    joints, followers = _placed_joints(groups, heads, parts, bodies)
    placed = _placed_links(groups, heads, last, frames)
    contacts = tuple(
        _contact_point(point, link.index, at)
        for link in placed
        for point, at in definition.links[link.name].contacts.items()
    )
    nq = base.nq + sum(joint.nq for joint in joints)
    nv = base.nv + sum(joint.nv for joint in joints)
    parts_of_robot = placed, joints, bodies, division.modules, contacts, definition.connections, nq, nv, followers
    robot = Robot(definition.name, base, definition.gravity, *parts_of_robot, definition.audit)
    refuse_singular(robot)
    return robot


def _contact_point(name: str, link: int, at: Vector | Sphere) -> ContactPoint:
    if isinstance(at, Sphere):
        return ContactPoint(name, link, np.asarray(at.center), at.radius, at.material)
    return ContactPoint(name, link, np.asarray(at))


def _expand(groups: dict[str, RigidGroup], module_heads: list[list[str]]) -> list[_Part]:
    """Return the parts module by module; a joint of several DoF gives one-DoF joints with massless bodies between."""
    root = module_heads[0][0]
    parts = [_Part(root, root, "", -1, None, IDENTITY, groups[root].inertia)]
    last = {root: 0}
    for head in (name for module in module_heads[1:] for name in module):
        group = groups[head]
        assert group.parent is not None
        parent, start = last[group.parent], group.start
        stages = group.definition.stages
        physics = by_stage(group.definition.name, group.definition.physics, stages)
        first = len(parts)
        for number, (stage, own) in enumerate(zip(stages, physics, strict=True), start=1):
            inertia = group.inertia if number == len(stages) else Inertia()
            name = head if number == len(stages) else f"{head} (joint stage {number})"
            repeats = None if stage.repeats is None else first + stage.repeats
            parts.append(_Part(name, head, group.definition.name, parent, stage, start, inertia, own, repeats))
            parent, start = len(parts) - 1, IDENTITY
        last[head] = parent
    return parts


def _bodies(
    parts: list[_Part], base: Base, entries: dict[str, tuple[int, int]], follows: dict[str, Coupling]
) -> tuple[tuple[Body, ...], list[Placement]]:
    """Return the bodies, and the pose of each one's link frame in its body frame.

    Args:
        parts: The parts, one for each body. base: The base.
        entries: Joint name -> index of its first entry in q, in v. follows: Couplings by the name of the follower.
    """
    frames: list[Placement] = []  # link frame in body frame
    bodies: list[Body] = []
    entries = dict(entries)
    for index, part in enumerate(parts):
        if part.stage is None:
            frames.append(IDENTITY)
            moments = moments_of(part.inertia, IDENTITY)
            P, slices = np.zeros((6, base.nv)), (slice(0, base.nq), slice(0, base.nv))
            bodies.append(Body(part.name, index, -1, "base", *slices, P, moments, moments, physics=base.physics))
            continue
        stage = part.stage
        body_in_link = _body_frame(stage, [p for p in parts if p.parent == index])
        link_in_body = body_in_link.inverse()
        frames.append(link_in_body)
        joint_in_parent = frames[part.parent] @ part.start
        start = joint_in_parent @ body_in_link
        axis = joint_in_parent.rotation @ stage.axis
        transforms = joint_transforms(stage.motion.has_axis, stage.motion.has_free_origin, start, axis)
        moments = moments_of(part.inertia, link_in_body)
        if part.repeats is not None:
            slices, coupling = (bodies[part.repeats].q, bodies[part.repeats].v), Coupling(part.joint, part.joint)
        else:
            nq, nv = entries[part.joint]
            slices, coupling = (slice(nq, nq + stage.nq), slice(nv, nv + stage.nv)), follows.get(part.joint)
            entries[part.joint] = nq + stage.nq, nv + stage.nv
        P = stage.motion.matrix(stage.pitch) * (coupling.ratio if coupling else 1.0)
        constants = *transforms, coupling, part.physics
        bodies.append(Body(part.name, index, part.parent, stage.kind, *slices, P, moments, moments, *constants))
    regrouped = regroup(bodies)
    return tuple(replace(body, regrouped=moments) for body, moments in zip(bodies, regrouped, strict=True)), frames


def _body_frame(stage: Stage, children: list[_Part]) -> Placement:
    """Return the body's frame in its link's frame; see `legged.robot.placement`."""
    if not stage.motion.has_axis:
        return IDENTITY
    following = next((c for c in children if c.stage is not None and c.stage.motion.has_axis), None)
    next_stage = following.stage if following else None
    next_axis = following.start.rotation @ next_stage.axis if following and next_stage else None
    next_position = following.start.position if following else (children[0].start.position if children else None)
    rotation = body_axes(stage.axis, next_axis, next_position)
    is_free = following is not None and all(
        s is not None and s.motion.has_free_origin for s in (stage, following.stage)
    )
    along = origin_along(stage.axis, next_axis, next_position) if is_free else 0.0
    return Placement(rotation, along * stage.axis)


def _placed_joints(
    groups, module_heads, parts: list[_Part], bodies
) -> tuple[tuple[PlacedJoint, ...], tuple[Follower, ...]]:
    """Return (the joints in the order of v, the coupled joints)."""
    joints, followers = [], []
    for head in (name for module in module_heads[1:] for name in module):
        own = [body for part, body in zip(parts, bodies, strict=True) if part.head == head]
        group = groups[head]
        q0, v0, definition = own[0].q.start, own[0].v.start, group.definition
        q, v = slice(q0, q0 + definition.nq), slice(v0, v0 + definition.nv)
        fields = group.joint, group.parent, head, q, v
        c = own[0].coupling
        if c is None:
            joints.append(PlacedJoint(*fields))
        else:
            followers.append(Follower(*fields, c.master, c.ratio, c.offset))
    return tuple(sorted(joints, key=lambda joint: joint.v.start)), tuple(followers)


def _placed_links(groups, module_heads, last: dict[str, int], frames: list[Placement]) -> tuple[PlacedLink, ...]:
    placed: list[PlacedLink] = []
    for head in (name for module in module_heads for name in module):
        for link, start in groups[head].members:
            pose = frames[last[head]] @ start
            in_body = last[head], pose.rotation, pose.position
            parts = tuple(link.shapes), link.material, link.is_foot
            placed.append(PlacedLink(link.name, link.inertia, len(placed), *in_body, *parts))
    return tuple(placed)
