"""Assembly of a robot from checked links and connections.

The steps: join links on fixed joints, partition into modules, expand joints of several degrees of freedom into stages,
number the coordinates, choose the body frames, and check for motions without inertia.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from legged.errors import DefinitionError, ModuleError
from legged.robot.base import Base
from legged.robot.body import Body, moments_of, regroup
from legged.robot.construction.singular import refuse_singular
from legged.robot.inertia import Inertia
from legged.robot.joint import Connection, Coupling, Fixed, Follower, Joint, PlacedJoint, Stage
from legged.robot.link import ContactPoint, Link, PlacedLink
from legged.robot.modules import Module, check_modules, find_modules, first_entries, resolve_couplings
from legged.robot.physics import JointPhysics, by_stage
from legged.robot.placement import IDENTITY, Placement, Vector, body_axes, joint_transforms, origin_along
from legged.robot.robot import Robot
from legged.robot.shapes import Sphere
from legged.spatial import Array


@dataclass(eq=False)
class _RigidGroup:
    """Links joined by fixed joints: the head, whose joint moves, and all members with their poses in its frame."""

    head: Link
    joint: Joint | None
    parent: str | None  # head of the parent group
    start: Placement  # the joint's frame in the parent head's frame
    members: list[tuple[Link, Placement]] = field(default_factory=list)

    @property
    def definition(self) -> Joint:
        assert self.joint is not None
        return self.joint

    @property
    def inertia(self) -> Inertia:
        total = Inertia()
        for link, pose in self.members:
            total = total + link.inertia.moved(pose.rotation, pose.position)
        return total


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
    name: str,
    base: Base,
    gravity: Array,
    links: Sequence[Link],
    connections: Sequence[Connection],
    couplings: Sequence[Coupling],
    partition: Sequence[Sequence[str]] | None,
    order: Sequence[str] | None,
) -> Robot:
    """Return the robot.

    Args:
        name, base: As in `RobotBuilder`.
        gravity: Acceleration of free fall, (3,), [m/s^2], world axes.
        links: All links, base first.
        connections: All joints, parent before child.
        couplings: Couplings of joints.
        partition, order: As `modules` and `order` in `RobotBuilder.build`, which also lists the errors.
    """
    by_name = {link.name: link for link in links}
    groups, head_of = _rigid_groups(by_name, links[0], connections)
    _refuse_massless_ends(groups, {name for c in couplings for name in (c.follower, c.master)})
    children = {head: [group.head.name for group in groups.values() if group.parent == head] for head in groups}
    root = links[0].name
    if partition is None:
        module_heads = find_modules(root, children)
    else:
        module_heads = check_modules(_heads_only(partition, head_of), root, children)
    parts = _expand(groups, module_heads)
    moving = [groups[head].definition for module in module_heads[1:] for head in module]
    follows = resolve_couplings(couplings, {c.joint.name: c.joint for c in connections})
    bodies, frames = _bodies(parts, base, first_entries(base, moving, order, follows), follows)
    last = {part.head: index for index, part in enumerate(parts)}
    joints, followers = _placed_joints(groups, module_heads, parts, bodies)
    placed = _placed_links(groups, module_heads, last, frames)
    modules = _modules(module_heads, groups, parts, bodies, placed)
    contacts = tuple(
        _contact_point(point, link.index, at) for link in placed for point, at in by_name[link.name].contacts.items()
    )
    nq = base.nq + sum(joint.nq for joint in joints)
    nv = base.nv + sum(joint.nv for joint in joints)
    robot = Robot(name, base, gravity, placed, joints, bodies, modules, contacts, tuple(connections), nq, nv, followers)
    refuse_singular(robot)
    return robot


def _contact_point(name: str, link: int, at: Vector | Sphere) -> ContactPoint:
    if isinstance(at, Sphere):
        return ContactPoint(name, link, np.asarray(at.center), at.radius, at.material)
    return ContactPoint(name, link, np.asarray(at))


def _heads_only(partition: Sequence[Sequence[str]], head_of: dict[str, str]) -> list[list[str]]:
    """Return the partition without links on fixed joints, which it may omit but not put in a different module."""
    for module in partition:
        for link in module:
            head = head_of.get(link, link)
            if head not in module:
                raise ModuleError(f"link {link!r} is fixed to {head!r} and moves with it: put it in the same module")
    return [[link for link in module if head_of.get(link, link) == link] for module in partition]


def _rigid_groups(
    by_name: dict[str, Link], root: Link, connections: Sequence[Connection]
) -> tuple[dict[str, _RigidGroup], dict[str, str]]:
    """Return the rigid groups by the name of their head, and the name of each link's head."""
    groups = {root.name: _RigidGroup(root, None, None, IDENTITY, [(root, IDENTITY)])}
    pose_of = {root.name: (root.name, IDENTITY)}  # link -> (its head, its pose in the head's frame)
    for c in connections:
        head, pose = pose_of[c.parent]
        child = by_name[c.child]
        if isinstance(c.joint, Fixed):
            pose_of[child.name] = head, pose @ c.start
            groups[head].members.append((child, pose @ c.start))
        else:
            pose_of[child.name] = child.name, IDENTITY
            groups[child.name] = _RigidGroup(child, c.joint, head, pose @ c.start, [(child, IDENTITY)])
    return groups, {name: head for name, (head, _) in pose_of.items()}


def _refuse_massless_ends(groups: dict[str, _RigidGroup], coupled: set[str]) -> None:
    """Raise DefinitionError for a massless last link, unless its joint has armature or is coupled to another."""
    parents = {group.parent for group in groups.values()}
    for head, group in groups.items():
        if group.parent is None and head not in parents and group.inertia.is_massless:
            raise DefinitionError(f"the base {head!r} has no mass and carries nothing: the robot would have no mass")
        if head in parents or not group.inertia.is_massless or group.definition.name in coupled:
            continue
        if not _has_armature(group.definition):
            raise DefinitionError(
                f"link {head!r} is the last of its limb and has no mass: its joint would have no inertia; give it a "
                f"mass, or fix it to its parent"
            )


def _has_armature(joint: Joint) -> bool:
    """Return whether every degree of freedom has the inertia of a rotor."""
    rotor, armature = joint.physics.rotor, np.asarray(joint.physics.armature)
    spins = rotor is not None and rotor.gear * rotor.inertia != 0.0
    return spins or bool((armature > 0.0).all())


def _expand(groups: dict[str, _RigidGroup], module_heads: list[list[str]]) -> list[_Part]:
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
            bodies.append(Body(part.name, index, -1, "base", *slices, P, moments, moments))
            continue
        stage = part.stage
        body_in_link = _body_frame(stage, [p for p in parts if p.parent == index])
        link_in_body = body_in_link.inverse()
        frames.append(link_in_body)
        joint_in_parent = frames[part.parent] @ part.start
        start = joint_in_parent @ body_in_link
        axis = joint_in_parent.rotation @ stage.axis
        transforms = joint_transforms(stage.kind, start, axis)
        moments = moments_of(part.inertia, link_in_body)
        if part.repeats is not None:
            slices, coupling = (bodies[part.repeats].q, bodies[part.repeats].v), Coupling(part.joint, part.joint)
        else:
            nq, nv = entries[part.joint]
            slices, coupling = (slice(nq, nq + stage.nq), slice(nv, nv + stage.nv)), follows.get(part.joint)
            entries[part.joint] = nq + stage.nq, nv + stage.nv
        P = _motion(stage) * (coupling.ratio if coupling else 1.0)
        constants = *transforms, coupling, part.physics
        bodies.append(Body(part.name, index, part.parent, stage.kind, *slices, P, moments, moments, *constants))
    regrouped = regroup(bodies)
    return tuple(replace(body, regrouped=moments) for body, moments in zip(bodies, regrouped, strict=True)), frames


def _body_frame(stage: Stage, children: list[_Part]) -> Placement:
    """Return the body's frame in its link's frame; see `legged.robot.placement`."""
    if stage.kind == "ball":
        return IDENTITY
    following = next((c for c in children if c.stage is not None and c.stage.kind != "ball"), None)
    next_axis = following.start.rotation @ following.stage.axis if following and following.stage else None
    next_position = following.start.position if following else (children[0].start.position if children else None)
    rotation = body_axes(stage.axis, next_axis, next_position)
    shifted = stage.kind == "revolute" and following is not None and following.stage.kind == "revolute"  # type: ignore[union-attr]
    along = origin_along(stage.axis, next_axis, next_position) if shifted else 0.0
    return Placement(rotation, along * stage.axis)


def _motion(stage: Stage) -> Array:
    """Return P of a joint, (6, nv of the joint), body axes."""
    P = np.zeros((6, 3 if stage.kind == "ball" else 1))
    if stage.kind == "ball":
        P[:3] = np.eye(3)
    elif stage.kind == "screw":
        P[2, 0], P[5, 0] = 1.0, stage.pitch
    else:
        P[2 if stage.kind == "revolute" else 5, 0] = 1.0
    return P


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
            parts = tuple(link.shapes), link.material
            placed.append(PlacedLink(link.name, link.inertia, len(placed), *in_body, *parts))
    return tuple(placed)


def _modules(module_heads, groups, parts: list[_Part], bodies, placed) -> tuple[Module, ...]:
    owner = {head: number for number, module in enumerate(module_heads) for head in module}
    modules = []
    for number, module in enumerate(module_heads):
        own = [body for part, body in zip(parts, bodies, strict=True) if owner[part.head] == number]
        indices = tuple(body.index for body in own)
        links = tuple(link.name for link in placed if link.body in indices)
        above = groups[module[0]].parent
        kind = tuple(body.kind for body in own)
        v = np.concatenate([np.arange(body.v.start, body.v.stop) for body in own])
        modules.append(Module(number, -1 if above is None else owner[above], indices, links, v, kind))
    return tuple(modules)
