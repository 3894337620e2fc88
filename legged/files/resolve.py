"""Resolve a robot description: base type, mimic joints, joint friction, repairs, removal of fixed joints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from legged.errors import FileError, UnknownNameError
from legged.files.description import Description, JointEntry, LinkEntry, Mimic, Shape, Tree, tree_of
from legged.files.feet import Foot
from legged.files.inertias import entry_inertia, fault_of, nearest, weld_inertia
from legged.robot.physics import JointPhysics
from legged.robot.placement import Placement
from legged.rotations import quaternion_exp, quaternion_matrix

MIMICS = ("coupled", "free", "fixed")


def settled(description: Description, base: str, mimic: str, joint_physics: bool) -> tuple[Description, list[str]]:
    """Return the description as it is to be built, and what was decided, one sentence each.

    Args:
        description: The file's.
        base: "floating" or "fixed". A massless root that holds the robot by one free joint stands for the world: that
            joint is the floating base, or it is locked for a fixed one.
        mimic: What joints that follow others do: "coupled", "free" or "fixed" (locked where they are with all at 0).
        joint_physics: Whether damping, dry friction and springs count.
    """
    if mimic not in MIMICS:
        raise UnknownNameError("treatment of mimic joints", mimic, MIMICS)
    notes: list[str] = []
    description = _rooted(description, base, notes)
    description = _followed(description, mimic, notes)
    if not joint_physics:
        description = _mapped(description, lambda joint: replace(joint, physics=_frictionless(joint.physics)))
        notes.append("damping, dry friction and springs of joints are left out, as asked")
    return description, notes


def _mapped(description: Description, change: Callable[[JointEntry], JointEntry]) -> Description:
    return replace(description, joints=tuple(change(joint) for joint in description.joints))


def _frictionless(physics: JointPhysics) -> JointPhysics:
    return replace(physics, damping=0.0, friction=0.0, stiffness=0.0, rest=0.0)


def _rooted(description: Description, base: str, notes: list[str]) -> Description:
    root = next(link for link in description.links if link.name == description.root)
    held = [joint for joint in description.joints if joint.parent == root.name]
    if len(held) != 1 or held[0].kind != "free" or root.mass:
        return description
    joint = held[0]
    if base == "fixed":
        notes.append(f"the free joint {joint.name!r} is locked, as the base is to be fixed")
        return _mapped(description, lambda j: locked(j, 0.0) if j is joint else j)
    notes.append(f"the free joint {joint.name!r} is the floating base, {joint.child!r} the base link")
    links = tuple(link for link in description.links if link is not root)
    joints = tuple(j for j in description.joints if j is not joint)
    return replace(description, root=joint.child, links=links, joints=joints)


def _followed(description: Description, how: str, notes: list[str]) -> Description:
    joints = {joint.name: joint for joint in description.joints}
    followers = [joint for joint in description.joints if joint.mimic and joint.kind != "fixed"]
    for joint in followers if how != "free" else ():
        _check(joint, joints, description.source)
    if followers:
        words = {"coupled": "follow others", "free": "are free, though the file lets them follow others"}
        words["fixed"] = "are locked, though the file lets them follow others"
        notes.append(f"the joints {', '.join(joint.name for joint in followers)} {words[how]}")

    def change(joint: JointEntry) -> JointEntry:
        if joint.mimic is None or joint.kind == "fixed" or how == "free":
            return replace(joint, mimic=None)
        end, ratio, offset = _end(joint, joints)
        if how == "fixed":
            return locked(joint, offset)
        if end.kind == "fixed" or ratio == 0.0:
            notes.append(f"joint {joint.name!r} is locked, since it follows {end.name!r}, which does not move it")
            return locked(joint, offset)
        return replace(joint, mimic=Mimic(end.name, ratio, offset))

    return _mapped(description, change)


def _check(joint: JointEntry, joints: dict[str, JointEntry], source: str) -> None:
    if joint.kind not in ("revolute", "prismatic"):
        raise FileError(source, f"joint {joint.name!r} is {joint.kind} and cannot follow another; remove its <mimic>")
    seen, at = [joint.name], joint
    while at.mimic is not None:
        if at.mimic.joint not in joints:
            problem = UnknownNameError("joint", at.mimic.joint, joints)
            raise FileError(source, f"joint {at.name!r} cannot follow: {problem} (mimic='free' lets it move by itself)")
        at = joints[at.mimic.joint]
        if at.name in seen:
            raise FileError(source, f"the joints {', '.join(seen)} follow each other in a circle; free one of them")
        seen.append(at.name)


def _end(joint: JointEntry, joints: dict[str, JointEntry]) -> tuple[JointEntry, float, float]:
    """Return (the joint at the end of the chain that this one follows, ratio, offset), q = ratio * q_end + offset."""
    ratio, offset = 1.0, 0.0
    while joint.mimic is not None and joint.kind != "fixed":
        offset += ratio * joint.mimic.offset
        ratio *= joint.mimic.multiplier
        joint = joints[joint.mimic.joint]
    return joint, ratio, offset


def locked(joint: JointEntry, value: float) -> JointEntry:
    """Return the joint as a fixed one, held at a position [rad] or [m]."""
    position, rotation = joint.position, joint.rotation
    if joint.kind == "revolute" and value:
        rotation = rotation @ quaternion_matrix(quaternion_exp(joint.axis * value))
    elif joint.kind == "prismatic":
        position = position + rotation @ joint.axis * value
    return replace(joint, kind="fixed", position=position, rotation=rotation, physics=JointPhysics(), mimic=None)


def repaired(tree: Tree, repair: str | Sequence[str] | None) -> tuple[Tree, list[str]]:
    """Return the repaired tree, and what was done, one sentence each.

    Args:
        tree: As the file has it.
        repair: Keys of `REPAIRS`, done in the order given.

    Raises:
        UnknownNameError: for a repair that is none.
    """
    names = [repair] if isinstance(repair, str) else list(repair or ())
    done: list[str] = []
    for name in names:
        if name not in REPAIRS:
            raise UnknownNameError("repair", name, REPAIRS)
        description, did = REPAIRS[name](tree)
        tree, done = tree_of(description), done + did
    return tree, done


def massless_ends(tree: Tree) -> list[str]:
    """Return the heads, root excepted, outward of which nothing has mass or inertia, themselves included."""
    heavy: set[str] = set()
    ends = []
    for head in reversed(tree.welds):  # children before parents
        inertia = weld_inertia(tree, head)
        if inertia.mass or np.any(inertia.tensor):
            heavy.update(tree.path(head))
        if head not in heavy and head != tree.description.root:
            ends.append(head)
    return ends[::-1]


def without_inertia(tree: Tree) -> list[str]:
    """Return the heads whose joint meets no inertia: nothing outward has mass, no rotor turns, and no joint that moves
    with it does better."""
    ends = [head for head in massless_ends(tree) if not _has_armature(tree.joint[head])]
    alive = {_leader(joint) for child, joint in tree.joint.items() if joint.kind != "fixed" and child not in ends}
    return [head for head in ends if _leader(tree.joint[head]) not in alive]


def _leader(joint: JointEntry) -> str:
    return joint.mimic.joint if joint.mimic else joint.name


def _has_armature(joint: JointEntry) -> bool:
    rotor = joint.physics.rotor
    return bool(np.all(np.asarray(joint.physics.armature) > 0) or (rotor and rotor.gear * rotor.inertia != 0.0))


def _weld(tree: Tree) -> tuple[Description, list[str]]:
    ends = {tree.joint[head].name for head in without_inertia(tree)}
    joints = tuple(locked(joint, 0.0) if joint.name in ends else joint for joint in tree.description.joints)
    named = [joint.name for joint in tree.description.joints if joint.name in ends]
    did = [f"joint {name!r} is welded at zero, since it moves nothing that has mass" for name in named]
    return replace(tree.description, joints=joints), did


def _possible(tree: Tree) -> tuple[Description, list[str]]:
    links, did = [], []
    for link in tree.description.links:
        inertia = entry_inertia(link)
        fault = fault_of(inertia)
        if fault and inertia.mass > 0:
            link, words = _nearest(link), fault.words
            did.append(f"the inertia of link {link.name!r} is the nearest that a body can have, instead of {words}")
        links.append(link)
    return replace(tree.description, links=tuple(links)), did


def _nearest(link: LinkEntry) -> LinkEntry:
    return replace(link, tensor=np.asarray(nearest(entry_inertia(link)).tensor))


REPAIRS: dict[str, Callable[[Tree], tuple[Description, list[str]]]] = {"weld": _weld, "inertia": _possible}
"""What can be asked for: "weld" welds joints that move nothing with mass; "inertia" takes, for each link whose inertia
no body has, the nearest one that a body can have."""


def fused(tree: Tree, feet: tuple[Foot, ...]) -> tuple[Tree, tuple[Foot, ...]]:
    """Return the tree without fixed joints, and the feet on the links that are left."""
    links = tuple(_carrier(tree, link.name) for link in tree.description.links if link.name in tree.welds)
    joints = tuple(_moved(tree, joint) for joint in tree.description.joints if joint.kind != "fixed")
    description = replace(tree.description, links=links, joints=joints)
    return tree_of(description), tuple(_moved_foot(tree, foot) for foot in feet)


def _carrier(tree: Tree, head: str) -> LinkEntry:
    inertia = weld_inertia(tree, head)
    has_any = any(tree.link[name].mass is not None for name in tree.welds[head])
    shapes = tuple(_shape(tree.place[name], shape) for name in tree.welds[head] for shape in tree.link[name].shapes)
    return LinkEntry(
        head, inertia.mass if has_any else None, np.asarray(inertia.center), np.asarray(inertia.tensor), shapes
    )


def _shape(place: Placement, shape: Shape) -> Shape:
    moved = place @ Placement(shape.rotation, shape.position)
    return replace(shape, position=moved.position, rotation=moved.rotation)


def _moved(tree: Tree, joint: JointEntry) -> JointEntry:
    start = tree.place[joint.parent] @ Placement(joint.rotation, joint.position)
    return replace(joint, parent=tree.head[joint.parent], position=start.position, rotation=start.rotation)


def _moved_foot(tree: Tree, foot: Foot) -> Foot:
    place = tree.place[foot.link]
    points = {name: place.rotation @ point + place.position for name, point in foot.points.items()}
    return replace(foot, link=tree.head[foot.link], points=points)
