"""Resolve a robot description: base type, mimic joints, joint friction, repairs, removal of fixed joints.

Each function returns a changed description; the changes are reported in the audit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from legged.arguments import known_name, number, shown
from legged.errors import ArgumentError, FileError, UnknownNameError
from legged.files.description import Description, JointEntry, LinkEntry, Mimic, Tree, tree_of
from legged.files.feet.detection import FootEntry
from legged.files.inertias import entry_inertia, group_inertia, inertia_fault, nearest_consistent
from legged.robot.link import moved_contact
from legged.robot.physics import JointPhysics
from legged.robot.placement import Placement
from legged.rotations import quaternion_exp, quaternion_matrix

MIMIC_MODES = ("coupled", "free", "fixed")


def resolve(
    description: Description, base: str, mimic: str | Mapping[str, Any], joint_physics: bool, armature: bool = True
) -> tuple[Description, list[str]]:
    """Return the description with base, mimic joints and joint physics resolved, and one sentence for each decision.

    Args:
        description: Description as read from the file.
        base: Kind of base. Unless the file states its base, a massless root connected to the robot by one free joint
            represents the world: the free joint becomes the floating base, or is locked for a fixed base.
        mimic: Treatment of mimic joints: "coupled", "free" or "fixed" (locked at their positions with all joints at 0);
            or couplings that the file does not state, see `legged.load`, beside those of the file.
        joint_physics: Whether damping, dry friction and springs of joints are kept.
        armature: Whether armature and rotors of joints are kept.

    Raises:
        UnknownNameError: an unknown treatment of mimic joints.
        FileError: a mimic joint that follows an unknown joint, or itself.
    """
    driven: tuple[str, ...] = ()
    if isinstance(mimic, Mapping):
        description, mimic, driven = _with_couplings(description, mimic), "coupled", tuple(mimic)
    if mimic not in MIMIC_MODES:
        raise UnknownNameError("treatment of mimic joints", mimic, MIMIC_MODES)
    notes: list[str] = []
    description = _resolve_base(description, base, notes)
    description = _with_motors(_resolve_mimics(description, mimic, notes), driven, notes)
    if not joint_physics:
        none: dict[str, float] = dict.fromkeys(("damping", "friction", "stiffness", "rest"), 0.0)
        description = _map_physics(description, lambda physics: replace(physics, **none))
        notes.append("damping, dry friction and springs of joints are left out (joint_physics=False)")
    if not armature:
        bare = {"armature": 0.0, "rotor": None}
        description = _map_physics(description, lambda physics: replace(physics, **bare))
        notes.append("armature and rotors of joints are left out (armature=False)")
    own = description.base_physics
    if base == "fixed" and (np.any(own.armature) or np.any(own.damping)):
        notes.append(f"armature and damping of the free joint of the base are left out, since the base is {base}")
    return description, notes


def oriented(description: Description, axes: tuple[str, str] | None) -> tuple[Description, list[str]]:
    """Return the description with a root whose x points forward and whose z points up, and a note for the audit.

    Args:
        description: Description as read from the file.
        axes: Axes of its root that point forward and up, see `legged.load`. None: x and z, nothing changes.

    Raises:
        ArgumentError: axes that are not two different ones of x, y and z, each with or without a minus sign.
    """
    if axes is None:
        return description, []
    known = {sign + name: (-1.0 if sign else 1.0) * np.eye(3)[k] for sign in ("", "-") for k, name in enumerate("xyz")}
    forward, up = (known.get(name, np.ones(3)) for name in axes)
    if forward @ up:
        words = "two of x, y and z, with or without a minus sign, that point forward and up, such as ('-y', 'z')"
        raise ArgumentError(f"axes must be {words}; got {shown(axes)}")
    root, names = f"{description.root}_axes", {each.name for each in (*description.links, *description.joints)}
    while root in names:
        root += "_"
    turn = JointEntry(root, "fixed", root, description.root, rotation=np.array([forward, np.cross(up, forward), up]))
    words = f"link {root!r} is the root: {axes[0]} of {description.root!r} points forward, {axes[1]} up"
    joints = (turn, *description.joints)
    return replace(description, root=root, links=(LinkEntry(root), *description.links), joints=joints), [words]


def _with_couplings(description: Description, couplings: Mapping[str, Any]) -> Description:
    """Return the description with joints that follow others: joint -> its master, or (master, ratio, offset)."""
    names = [joint.name for joint in description.joints]
    mimics = {}
    for name, given in couplings.items():
        master, *numbers = (given,) if isinstance(given, str) else tuple(given)
        for joint in (name, master):
            if joint not in names:
                raise FileError(description.source, f"mimic: {UnknownNameError('joint', joint, names)}")
        if len(numbers) > 2:
            raise ArgumentError(
                f"mimic of joint {name!r} must be a joint's name or (name, ratio, offset), got {shown(given)}"
            )
        ratio, offset = (*numbers, *(1.0, 0.0)[len(numbers) :])
        what = f"mimic of joint {name!r}"
        mimics[name] = Mimic(master, number(f"{what}, ratio", ratio), number(f"{what}, offset", offset))
    return _map_joints(description, lambda joint: replace(joint, mimic=mimics.get(joint.name, joint.mimic)))


def _map_joints(description: Description, change: Callable[[JointEntry], JointEntry]) -> Description:
    return replace(description, joints=tuple(change(joint) for joint in description.joints))


def _map_physics(description: Description, change: Callable[[JointPhysics], JointPhysics]) -> Description:
    """Return a description with the physics of all joints and of the base changed."""
    description = replace(description, base_physics=change(description.base_physics))
    return _map_joints(description, lambda joint: replace(joint, physics=change(joint.physics)))


def without_materials(description: Description) -> Description:
    """Return a description whose shapes have no materials."""
    links = tuple(
        replace(link, shapes=tuple(replace(shape, material=None) for shape in link.shapes))
        for link in description.links
    )
    return replace(description, links=links)


def _resolve_base(description: Description, base: str, notes: list[str]) -> Description:
    if description.floating is not None:
        return description
    root = next(link for link in description.links if link.name == description.root)
    held = [joint for joint in description.joints if joint.parent == root.name]
    if len(held) != 1 or held[0].kind != "free" or root.mass:
        return description
    joint = held[0]
    if base == "fixed":
        notes.append(f"the free joint {joint.name!r} is locked, since the base is fixed")
        return _map_joints(description, lambda j: locked_joint(j, 0.0) if j is joint else j)
    notes.append(f"the free joint {joint.name!r} is the floating base, {joint.child!r} the base link")
    physics, left_out = joint.physics, ("friction", "stiffness")
    if any(np.any(getattr(physics, name)) for name in left_out):
        notes.append(f"dry friction and springs of the free joint {joint.name!r} are left out")
    physics = JointPhysics(physics.damping, armature=physics.armature)
    links = tuple(link for link in description.links if link is not root)
    joints = tuple(j for j in description.joints if j is not joint)
    return replace(description, root=joint.child, links=links, joints=joints, base_physics=physics)


def _resolve_mimics(description: Description, how: str, notes: list[str]) -> Description:
    joints = {joint.name: joint for joint in description.joints}
    followers = [joint for joint in description.joints if joint.mimic and not joint.is_fixed]
    for joint in followers if how != "free" else ():
        _check_mimic(joint, joints, description.source)
    if followers:
        words = {"coupled": "are coupled to others", "free": "are mimic joints in the file and free here"}
        words["fixed"] = "are mimic joints in the file and locked here"
        notes.append(f"the joints {', '.join(joint.name for joint in followers)} {words[how]}")

    def change(joint: JointEntry) -> JointEntry:
        if joint.mimic is None or joint.is_fixed or how == "free":
            return replace(joint, mimic=None)
        end, ratio, offset = _resolve_chain(joint, joints)
        if how == "fixed":
            return locked_joint(joint, offset)
        if end.is_fixed or ratio == 0.0:
            notes.append(f"joint {joint.name!r} is locked, since it follows {end.name!r}, which does not move")
            return locked_joint(joint, offset)
        return replace(joint, mimic=Mimic(end.name, ratio, offset))

    return _map_joints(description, change)


def _with_motors(description: Description, driven: Sequence[str], notes: list[str]) -> Description:
    """Return the description with the efforts of given coupled joints added to those of their masters.

    A joint of a transmission, such as a knee with rolling contact, has a motor force of its own in files that state no
    coupling. With q = r q_master + offset, a force f on q is r f on q_master.
    """
    physics = {joint.name: joint.physics for joint in description.joints}
    for joint in description.joints:
        if joint.name not in driven or joint.mimic is None or not np.all(np.isfinite(joint.physics.effort)):
            continue
        ratio, master = abs(joint.mimic.multiplier), physics[joint.mimic.joint]
        effort = np.add(master.effort, ratio * np.asarray(joint.physics.effort)).item()
        speed = np.minimum(master.speed, np.asarray(joint.physics.speed) / ratio).item()
        physics[joint.mimic.joint] = replace(master, effort=effort, speed=speed)
        notes.append(f"the motor of joint {joint.name!r} acts on {joint.mimic.joint!r}: {effort:g} in all")
    return _map_joints(description, lambda joint: replace(joint, physics=physics[joint.name]))


def _check_mimic(joint: JointEntry, joints: dict[str, JointEntry], source: str) -> None:
    """Raise FileError if a joint cannot follow another, or if its chain of mimic joints does not end."""
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


def _resolve_chain(joint: JointEntry, joints: dict[str, JointEntry]) -> tuple[JointEntry, float, float]:
    """Return (independent joint at the end of the chain of mimic joints, ratio, offset): q = ratio * q_end + offset."""
    ratio, offset = 1.0, 0.0
    while joint.mimic is not None and not joint.is_fixed:
        offset += ratio * joint.mimic.offset
        ratio *= joint.mimic.multiplier
        joint = joints[joint.mimic.joint]
    return joint, ratio, offset


def locked_joint(joint: JointEntry, value: float) -> JointEntry:
    """Return the joint as a fixed joint at a position, [rad] or [m]."""
    position, rotation = joint.position, joint.rotation
    if joint.kind == "revolute" and value:
        rotation = rotation @ quaternion_matrix(quaternion_exp(joint.axis * value))
    elif joint.kind == "prismatic":
        position = position + rotation @ joint.axis * value
    return replace(joint, kind="fixed", position=position, rotation=rotation, physics=JointPhysics(), mimic=None)


def apply_repairs(tree: Tree, repair: str | Sequence[str] | None) -> tuple[Tree, list[str]]:
    """Return the repaired tree, and one sentence for each repair.

    Args:
        tree: Tree of the file.
        repair: Keys of `REPAIRS`, applied in the order given.

    Raises:
        UnknownNameError: an unknown repair.
    """
    names = [repair] if isinstance(repair, str) else list(repair or ())
    done: list[str] = []
    for name in names:
        known_name("repair", name, REPAIRS)
        description, did = REPAIRS[name](tree)
        tree, done = tree_of(description), done + did
    return tree, done


def massless_subtrees(tree: Tree) -> list[str]:
    """Return the heads, except the root, whose subtree has no mass and no inertia."""
    heavy: set[str] = set()
    ends = []
    for head in reversed(tree.groups):  # children before parents
        inertia = group_inertia(tree, head)
        if inertia.mass or np.any(inertia.tensor):
            heavy.add(head)
        if head in heavy and head in tree.joint:  # and so are all heads on the path to the root
            heavy.add(tree.head[tree.joint[head].parent])
        if head not in heavy and head != tree.description.root:
            ends.append(head)
    return ends[::-1]


def joints_without_inertia(tree: Tree) -> list[str]:
    """Return the heads whose joint moves no inertia.

    The subtree of such a head has no mass, the joint has neither armature nor rotor, and the joints coupled to it move
    no inertia either.
    """
    ends = [head for head in massless_subtrees(tree) if not _has_armature(tree.joint[head])]
    alive = {_leader(joint) for child, joint in tree.joint.items() if not joint.is_fixed and child not in ends}
    return [head for head in ends if _leader(tree.joint[head]) not in alive]


def _leader(joint: JointEntry) -> str:
    return joint.mimic.joint if joint.mimic else joint.name


def _has_armature(joint: JointEntry) -> bool:
    rotor = joint.physics.rotor
    return bool(np.all(np.asarray(joint.physics.armature) > 0) or (rotor and rotor.gear * rotor.inertia != 0.0))


def _fix_joints_without_inertia(tree: Tree) -> tuple[Description, list[str]]:
    ends = {tree.joint[head].name for head in joints_without_inertia(tree)}
    joints = tuple(locked_joint(joint, 0.0) if joint.name in ends else joint for joint in tree.description.joints)
    named = [joint.name for joint in tree.description.joints if joint.name in ends]
    did = [f"joint {name!r} is fixed at zero, since it moves no mass" for name in named]
    return replace(tree.description, joints=joints), did


def _replace_inconsistent_inertias(tree: Tree) -> tuple[Description, list[str]]:
    links, did = [], []
    for link in tree.description.links:
        inertia = entry_inertia(link)
        fault = inertia_fault(inertia)
        if fault and inertia.mass > 0:
            link = replace(link, tensor=np.asarray(nearest_consistent(inertia).tensor))
            words = "is replaced by the nearest physically consistent one"
            did.append(f"the inertia of link {link.name!r} {words}: {fault.message}")
        links.append(link)
    return replace(tree.description, links=tuple(links)), did


REPAIRS: dict[str, Callable[[Tree], tuple[Description, list[str]]]] = {
    "weld": _fix_joints_without_inertia,
    "inertia": _replace_inconsistent_inertias,
}
"""Repairs by name: "weld" fixes joints that move no mass; "inertia" replaces physically inconsistent inertias by
the nearest consistent ones."""


def remove_fixed_joints(tree: Tree, feet: tuple[FootEntry, ...]) -> tuple[Tree, tuple[FootEntry, ...]]:
    """Return the tree without fixed joints, and the feet on the remaining links."""
    links = tuple(_fused_link(tree, link.name) for link in tree.description.links if link.name in tree.groups)
    joints = tuple(_moved(tree, joint) for joint in tree.description.joints if not joint.is_fixed)
    description = replace(tree.description, links=links, joints=joints)
    return tree_of(description), tuple(_moved_foot(tree, foot) for foot in feet)


def _fused_link(tree: Tree, head: str) -> LinkEntry:
    """Return a link with the inertias and shapes of its group, in the frame of its head."""
    inertia = group_inertia(tree, head)
    has_mass = any(tree.link[name].mass is not None for name in tree.groups[head])
    shapes = tuple(shape.moved(tree.place[name]) for name in tree.groups[head] for shape in tree.link[name].shapes)
    return LinkEntry(
        head, inertia.mass if has_mass else None, np.asarray(inertia.center), np.asarray(inertia.tensor), shapes
    )


def _moved(tree: Tree, joint: JointEntry) -> JointEntry:
    start = tree.place[joint.parent] @ Placement(joint.rotation, joint.position)
    return replace(joint, parent=tree.head[joint.parent], position=start.position, rotation=start.rotation)


def _moved_foot(tree: Tree, foot: FootEntry) -> FootEntry:
    place = tree.place[foot.link]
    points = {name: moved_contact(at, place.rotation, place.position) for name, at in foot.points.items()}
    return replace(foot, link=tree.head[foot.link], points=points)
