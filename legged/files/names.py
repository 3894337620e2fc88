"""Names of what one thing of ours becomes in files and other programs: parts of joints, links for contact points."""

from __future__ import annotations

from legged.robot.base import Base
from legged.robot.joint import Joint
from legged.robot.robot import Robot


def stage_names(joint: Joint) -> tuple[str, ...]:
    """Return the names of a joint's one-DoF parts: its own name if it has one part only.

    A planar joint's parts have the endings that MuJoCo gives them when it reads a URDF.
    """
    if len(joint.stages) == 1:
        return (joint.name,)
    endings = ("TX", "TY", "RZ") if joint.kind == "planar" else range(1, len(joint.stages) + 1)
    return tuple(f"{joint.name}_{ending}" for ending in endings)


def base_names(base: Base) -> tuple[str, ...]:
    """Return the names of the one-DoF joints that move a planar or an Euler-angle base, in the order of its v."""
    return tuple(f"base_{coordinate}" for coordinate in base.coordinates)


def contact_names(robot: Robot) -> tuple[str, ...]:
    """Return the names of the links that stand for the contact points: theirs, with _ behind if a link has it."""
    taken, names = {link.name for link in robot.links}, []
    for contact in robot.contacts:
        name = contact.name
        while name in taken:
            name += "_"
        taken.add(name)
        names.append(name)
    return tuple(names)
