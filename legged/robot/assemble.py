"""From checked links and connections to the frozen robot: weld, expand, partition, number, place frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from legged.errors import DefinitionError, ModuleError
from legged.robot.base import Base
from legged.robot.body import Body
from legged.robot.coupling import Coupling, resolve
from legged.robot.frames import Placement, body_axes, joint_steps, origin_along
from legged.robot.inertia import Inertia, Vector
from legged.robot.joint import Fixed, Follower, Joint, PlacedJoint, Stage
from legged.robot.link import ContactPoint, Link, PlacedLink
from legged.robot.modules import Module, check_modules, find_modules
from legged.robot.moments import moments_of, regroup
from legged.robot.numbering import numbered
from legged.robot.physics import JointPhysics, by_stage
from legged.robot.robot import Robot
from legged.robot.shapes import Sphere
from legged.robot.singular import refuse_singular
from legged.spatial import Array

if TYPE_CHECKING:
    from legged.robot.builder import Connection

_ORIGIN = Placement(np.eye(3), np.zeros(3))


@dataclass(eq=False)
class Weld:
    """Links joined by fixed joints: one head that a moving joint holds, and the rest placed in its frame."""

    head: Link
    joint: Joint | None
    parent: str | None  # head of the parent weld
    start: Placement  # the joint's frame in the parent head's frame
    members: list[tuple[Link, Placement]] = field(default_factory=list)

    @property
    def definition(self) -> Joint:
        assert self.joint is not None
        return self.joint

    @property
    def inertia(self) -> Inertia:
        total = Inertia()
        for link, place in self.members:
            total = total + link.inertia.moved(place.rotation, place.position)
        return total


@dataclass(eq=False)
class _Part:
    """A body before it is numbered: its joint stage, and its link frame in the parent part's link frame."""

    name: str
    weld: str
    joint: str
    parent: int
    stage: Stage | None
    start: Placement
    inertia: Inertia
    physics: JointPhysics = field(default_factory=JointPhysics)


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
    """Return the robot; connections come parent before child. Errors are those of `RobotBuilder.build`."""
    welds, head_of = _weld(links, connections)
    _refuse_massless_ends(welds, {name for c in couplings for name in (c.follower, c.master)})
    children = {head: [w.head.name for w in welds.values() if w.parent == head] for head in welds}
    root = links[0].name
    if partition is None:
        named = find_modules(root, children)
    else:
        named = check_modules(_heads_only(partition, head_of), root, children)
    parts = _expand(welds, named)
    moving = [welds[head].definition for module in named[1:] for head in module]
    follows = resolve(couplings, {c.joint.name: c.joint for c in connections})
    bodies, frames = _place(parts, base, numbered(base, moving, order, follows), follows)
    last = {part.weld: index for index, part in enumerate(parts)}
    joints, followers = _placed_joints(welds, named, parts, bodies)
    placed = _placed_links(welds, named, last, frames)
    modules = _modules(named, welds, parts, bodies, placed)
    contacts = tuple(
        _contact_point(point, link.index, at)
        for link in placed
        for point, at in _link(links, link.name).contacts.items()
    )
    nq = base.nq + sum(joint.nq for joint in joints)
    nv = base.nv + sum(joint.nv for joint in joints)
    robot = Robot(name, base, gravity, placed, joints, bodies, modules, contacts, tuple(connections), nq, nv, followers)
    refuse_singular(robot)
    return robot


def _contact_point(name: str, link: int, at: Vector | Sphere) -> ContactPoint:
    if isinstance(at, Sphere):
        return ContactPoint(name, link, np.asarray(at.center), at.radius)
    return ContactPoint(name, link, np.asarray(at))


def _heads_only(partition: Sequence[Sequence[str]], head_of: dict[str, str]) -> list[list[str]]:
    """Return the partition without links that are fixed to others; these may be left out, but not put elsewhere."""
    for module in partition:
        for link in module:
            head = head_of.get(link, link)
            if head not in module:
                raise ModuleError(f"link {link!r} is fixed to {head!r} and moves with it: put it in the same module")
    return [[link for link in module if head_of.get(link, link) == link] for module in partition]


def _link(links: Sequence[Link], name: str) -> Link:
    return next(link for link in links if link.name == name)


def _weld(links: Sequence[Link], connections: Sequence[Connection]) -> tuple[dict[str, Weld], dict[str, str]]:
    """Return welds by the name of their head, and the head of each link."""
    by_name = {link.name: link for link in links}
    root = links[0]
    welds = {root.name: Weld(root, None, None, _ORIGIN, [(root, _ORIGIN)])}
    where = {root.name: (root.name, _ORIGIN)}
    for c in connections:
        head, place = where[c.parent]
        child = by_name[c.child]
        if isinstance(c.joint, Fixed):
            where[child.name] = head, place @ c.start
            welds[head].members.append((child, place @ c.start))
        else:
            where[child.name] = child.name, _ORIGIN
            welds[child.name] = Weld(child, c.joint, head, place @ c.start, [(child, _ORIGIN)])
    return welds, {name: head for name, (head, _) in where.items()}


def _refuse_massless_ends(welds: dict[str, Weld], coupled: set[str]) -> None:
    """Raise DefinitionError for a limb that ends without mass, unless what moves with it may have some."""
    parents = {weld.parent for weld in welds.values()}
    for head, weld in welds.items():
        if weld.parent is None and head not in parents and weld.inertia.is_massless:
            raise DefinitionError(f"the base {head!r} has no mass and carries nothing: the robot would weigh nothing")
        if head in parents or not weld.inertia.is_massless or weld.definition.name in coupled:
            continue
        if not _has_armature(weld.definition):
            raise DefinitionError(
                f"link {head!r} is the last of its limb and has no mass: its joint would meet no inertia; give it a "
                f"mass, or fix it to its parent"
            )


def _has_armature(joint: Joint) -> bool:
    """Return whether every degree of freedom meets the inertia of some rotor."""
    rotor, armature = joint.physics.rotor, np.asarray(joint.physics.armature)
    spins = rotor is not None and rotor.gear * rotor.inertia != 0.0
    return spins or bool((armature > 0.0).all())


def _expand(welds: dict[str, Weld], named: list[list[str]]) -> list[_Part]:
    """Return parts module by module: a joint of several DoF becomes one-DoF joints with massless bodies between."""
    root = named[0][0]
    parts = [_Part(root, root, "", -1, None, _ORIGIN, welds[root].inertia)]
    last = {root: 0}
    for head in (name for module in named[1:] for name in module):
        weld = welds[head]
        assert weld.parent is not None
        parent, start = last[weld.parent], weld.start
        stages = weld.definition.stages
        physics = by_stage(weld.definition.name, weld.definition.physics, stages)
        for number, (stage, own) in enumerate(zip(stages, physics, strict=True), start=1):
            inertia = weld.inertia if number == len(stages) else Inertia()
            name = head if number == len(stages) else f"{head} (joint stage {number})"
            parts.append(_Part(name, head, weld.definition.name, parent, stage, start, inertia, own))
            parent, start = len(parts) - 1, _ORIGIN
        last[head] = parent
    return parts


def _place(
    parts: list[_Part], base: Base, entries: dict[str, tuple[int, int]], follows: dict[str, Coupling]
) -> tuple[tuple[Body, ...], list[Placement]]:
    """Return the bodies, and for each its link frame in its body frame.

    Args:
        parts: The bodies to be. base: The base.
        entries: Joint name -> its first entry of q, of v. follows: By the name of the follower.
    """
    frames: list[Placement] = []  # link frame in body frame
    bodies: list[Body] = []
    entries = dict(entries)
    for index, part in enumerate(parts):
        if part.stage is None:
            frames.append(_ORIGIN)
            moments = moments_of(part.inertia, _ORIGIN)
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
        before, zero, after = joint_steps(stage.kind, start, axis)
        moments = moments_of(part.inertia, link_in_body)
        nq, nv = entries[part.joint]
        slices = slice(nq, nq + stage.nq), slice(nv, nv + stage.nv)
        entries[part.joint] = nq + stage.nq, nv + stage.nv
        coupling = follows.get(part.joint)
        P = _motion(stage.kind) * (coupling.ratio if coupling else 1.0)
        fixed = tuple(before), zero, after, coupling, part.physics
        bodies.append(Body(part.name, index, part.parent, stage.kind, *slices, P, moments, moments, *fixed))
    felt = regroup(bodies)
    return tuple(replace(body, regrouped=moments) for body, moments in zip(bodies, felt, strict=True)), frames


def _body_frame(stage: Stage, children: list[_Part]) -> Placement:
    """Return the body's frame in its link's frame; see `legged.robot.frames`."""
    if stage.kind == "ball":
        return _ORIGIN
    following = next((c for c in children if c.stage is not None and c.stage.kind != "ball"), None)
    next_axis = following.start.rotation @ following.stage.axis if following and following.stage else None
    next_position = following.start.position if following else (children[0].start.position if children else None)
    rotation = body_axes(stage.axis, next_axis, next_position)
    shifted = stage.kind == "revolute" and following is not None and following.stage.kind == "revolute"  # type: ignore[union-attr]
    along = origin_along(stage.axis, next_axis, next_position) if shifted else 0.0
    return Placement(rotation, along * stage.axis)


def _motion(kind: str) -> Array:
    P = np.zeros((6, 3 if kind == "ball" else 1))
    if kind == "ball":
        P[:3] = np.eye(3)
    else:
        P[2 if kind == "revolute" else 5, 0] = 1.0
    return P


def _placed_joints(welds, named, parts: list[_Part], bodies) -> tuple[tuple[PlacedJoint, ...], tuple[Follower, ...]]:
    """Return (the joints in the order of v, those that follow others)."""
    joints, followers = [], []
    for head in (name for module in named[1:] for name in module):
        own = [body for part, body in zip(parts, bodies, strict=True) if part.weld == head]
        weld = welds[head]
        q, v = slice(own[0].q.start, own[-1].q.stop), slice(own[0].v.start, own[-1].v.stop)
        place = weld.joint, weld.parent, head, q, v
        c = own[0].coupling
        if c is None:
            joints.append(PlacedJoint(*place))
        else:
            followers.append(Follower(*place, c.master, c.ratio, c.offset))
    return tuple(sorted(joints, key=lambda joint: joint.v.start)), tuple(followers)


def _placed_links(welds, named, last: dict[str, int], frames: list[Placement]) -> tuple[PlacedLink, ...]:
    placed: list[PlacedLink] = []
    for head in (name for module in named for name in module):
        for link, place in welds[head].members:
            where = frames[last[head]] @ place
            sits = last[head], where.rotation, where.position
            placed.append(PlacedLink(link.name, link.inertia, len(placed), *sits, tuple(link.shapes)))
    return tuple(placed)


def _modules(named, welds, parts: list[_Part], bodies, placed) -> tuple[Module, ...]:
    owner = {head: number for number, module in enumerate(named) for head in module}
    modules = []
    for number, module in enumerate(named):
        own = [body for part, body in zip(parts, bodies, strict=True) if owner[part.weld] == number]
        held = {body.index for body in own}
        links = tuple(link.name for link in placed if link.body in held)
        above = welds[module[0]].parent
        kind = tuple(body.kind for body in own)
        v = np.concatenate([np.arange(body.v.start, body.v.stop) for body in own])
        bodies_of = tuple(body.index for body in own)
        modules.append(Module(number, -1 if above is None else owner[above], bodies_of, links, v, kind))
    return tuple(modules)
