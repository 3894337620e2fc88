"""Partition of the graph of a robot into kinematic modules, from which the robot is assembled.

The steps: join links on fixed joints, partition into modules, number the coordinates and the bodies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from legged.errors import DefinitionError, ModuleError
from legged.robot.construction.graph import Definition, read_graph
from legged.robot.inertia import Inertia
from legged.robot.joint import Coupling, Fixed, Joint
from legged.robot.link import Link
from legged.robot.modules import Module, check_modules, find_modules, first_entries, resolve_couplings
from legged.robot.placement import IDENTITY, Placement

if TYPE_CHECKING:
    import networkx as nx


@dataclass(eq=False)
class RigidGroup:
    """Links joined by fixed joints: the head, whose joint moves, and all members with their poses in its frame."""

    head: Link
    joint: Joint | None
    parent: str | None  # head of the parent group
    start: Placement  # the joint's frame in the parent head's frame
    members: list[tuple[Link, Placement]] = field(default_factory=list)

    @property
    def definition(self) -> Joint:
        """The joint; the base has none."""
        assert self.joint is not None
        return self.joint

    @property
    def inertia(self) -> Inertia:
        """The inertia of all members in the frame of the head."""
        total = Inertia()
        for link, pose in self.members:
            total = total + link.inertia.moved(pose.rotation, pose.position)
        return total


@dataclass(frozen=True, eq=False)
class Partition:
    """A definition with its partition into modules.

    Attributes:
        definition: The content of the graph.
        groups: Rigid groups by the name of their head, parent before child.
        heads: The heads of each module, parent before child; the base is alone in the first.
        couplings: Couplings to joints at the ends of chains of couplings, by the name of the follower.
        entries: Joint name -> index of its first entry in q, in v.
        modules: The modules.
    """

    definition: Definition
    groups: dict[str, RigidGroup]
    heads: list[list[str]]
    couplings: dict[str, Coupling]
    entries: dict[str, tuple[int, int]]
    modules: tuple[Module, ...]


def partition(graph: nx.DiGraph[str]) -> tuple[Module, ...]:
    """Return the kinematic modules of a robot from its graph.

    The rules: module M_0 is the base; each other module is a run of serial links, which starts from the last link of
    its parent module and has a higher number than the parent. By default the runs are the longest ones, numbered depth
    first. Links on fixed joints belong to the module of the link that they are fixed to. Another partition
    is given by the attribute `module` of the nodes, the numbers of the modules of their links.

        import networkx as nx

        graph = nx.DiGraph()
        graph.add_node("trunk", link=Link("trunk", box_inertia(4.0, (1.0, 0.5, 0.2))))
        graph.add_node("thigh", link=Link("thigh", rod_inertia(1.0, (0, 0, 0), (0, 0, -0.3))))
        graph.add_edge("trunk", "thigh", joint=Revolute("hip", "-y"), at=(0.5, 0.25, 0.0))
        [module.links for module in legged.partition(graph)]  # [("trunk",), ("thigh",)]

    Args:
        graph: Links as nodes, joints as edges; the attributes are listed in `Robot.from_graph`. The result is
            `Robot.from_graph(graph).modules`.

    Raises:
        ArgumentError: The graph is no directed graph with one edge between two nodes, or an attribute has a wrong type.
        DefinitionError: An attribute is missing, unknown or wrong; two parts have one name; the graph is no tree.
        ModuleError: A given partition violates a rule, which the message names.
        UnknownNameError: A joint follows an unknown joint, or the order of joints contains one.

    Source:
        Shah, Saha, Dutt 2012, section 2.
    """
    return partitioned(read_graph(graph)).modules


def partitioned(
    definition: Definition, modules: Sequence[Sequence[str]] | None = None, order: Sequence[str] | None = None
) -> Partition:
    """Return a definition with its partition into modules.

    Args:
        definition: The content of a graph.
        modules, order: As in `RobotBuilder.build`; by default as in the definition.
    """
    groups, head_of = _rigid_groups(definition)
    root, *moved = groups
    children: dict[str, list[str]] = {head: [] for head in groups}
    for head in moved:
        children[groups[head].parent or root].append(head)
    given = definition.modules if modules is None else modules
    if given is None:
        heads = find_modules(root, children)
    else:
        heads = check_modules(_heads_only(given, head_of), root, children)
    moving = [groups[head].definition for module in heads[1:] for head in module]
    couplings = resolve_couplings(definition.couplings, {c.joint.name: c.joint for c in definition.connections})
    order = definition.order if order is None else order
    entries = first_entries(definition.base, moving, order, couplings)
    numbered = _numbered(definition, groups, heads, entries)
    return Partition(definition, groups, heads, couplings, entries, numbered)


def _rigid_groups(definition: Definition) -> tuple[dict[str, RigidGroup], dict[str, str]]:
    """Return the rigid groups by the name of their head, and the name of each link's head."""
    root = next(iter(definition.links.values()))
    groups = {root.name: RigidGroup(root, None, None, IDENTITY, [(root, IDENTITY)])}
    pose_of = {root.name: (root.name, IDENTITY)}  # link -> (its head, its pose in the head's frame)
    for c in definition.connections:
        head, pose = pose_of[c.parent]
        child = definition.links[c.child]
        if isinstance(c.joint, Fixed):
            pose_of[child.name] = head, pose @ c.start
            groups[head].members.append((child, pose @ c.start))
        else:
            pose_of[child.name] = child.name, IDENTITY
            groups[child.name] = RigidGroup(child, c.joint, head, pose @ c.start, [(child, IDENTITY)])
    return groups, {name: head for name, (head, _) in pose_of.items()}


def _heads_only(given: Sequence[Sequence[str]], head_of: dict[str, str]) -> list[list[str]]:
    """Return the partition without links on fixed joints, which it may omit but not put in a different module."""
    for module in given:
        for link in module:
            head = head_of.get(link, link)
            if head not in module:
                raise ModuleError(f"link {link!r} is fixed to {head!r} and moves with it: put it in the same module")
    return [[link for link in module if head_of.get(link, link) == link] for module in given]


def _numbered(
    definition: Definition,
    groups: dict[str, RigidGroup],
    heads: list[list[str]],
    entries: dict[str, tuple[int, int]],
) -> tuple[Module, ...]:
    """Return the modules; each stage of a joint has a body of its own."""
    owner = {head: number for number, module in enumerate(heads) for head in module}
    modules, first = [], 0
    for number, module in enumerate(heads):
        above = groups[module[0]].parent
        kind, v = ["base"], [*range(definition.base.nv)]
        if above is not None:
            joints = [groups[head].definition for head in module]
            kind = [stage.kind for joint in joints for stage in joint.stages]
            v = [entries[joint.name][1] + k for joint in joints for k in _own_entries(joint)]
        links = tuple(link.name for head in module for link, _ in groups[head].members)
        bodies = tuple(range(first, first + len(kind)))
        first += len(kind)
        parent = -1 if above is None else owner[above]
        modules.append(Module(number, parent, bodies, links, np.array(v, dtype=int), tuple(kind)))
    return tuple(modules)


def _own_entries(joint: Joint) -> list[int]:
    """Return the entries of the joint's v of each stage in turn; a stage that repeats another has its entries."""
    by_stage: list[list[int]] = []
    first = 0
    for stage in joint.stages:
        by_stage.append([*range(first, first + stage.nv)] if stage.repeats is None else by_stage[stage.repeats])
        first += stage.nv
    return [k for entries in by_stage for k in entries]


def refuse_massless_ends(division: Partition) -> None:
    """Raise DefinitionError for a massless last link, unless its joint has armature or is coupled to another."""
    groups = division.groups
    coupled = {name for c in division.definition.couplings for name in (c.follower, c.master)}
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
