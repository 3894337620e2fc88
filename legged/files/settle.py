"""Decisions that a description leaves to its reader: what stands on the world, what follows, what friction counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from legged.errors import FileError, UnknownNameError
from legged.files.description import Description, JointEntry, Mimic
from legged.robot.physics import JointPhysics
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
