"""Description to Robot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from legged.errors import FileError, LeggedError
from legged.files.description import JointEntry, LinkEntry
from legged.files.feet import Foot
from legged.files.tree import Tree
from legged.robot.base import Base, FixedBase, FloatingBase
from legged.robot.builder import GRAVITY, RobotBuilder
from legged.robot.inertia import Inertia, Vector
from legged.robot.joint import Fixed, Free, Joint, Planar, Prismatic, Revolute, Spherical
from legged.robot.link import Link
from legged.robot.robot import Robot
from legged.spatial import Array

BASES: dict[str, type[Base]] = {"floating": FloatingBase, "fixed": FixedBase}


def build(
    tree: Tree, base: str, feet: tuple[Foot, ...], order: str | Sequence[str] | None, gravity: Vector | None
) -> Robot:
    """Return the robot of a description, inertias as they are; errors are FileErrors. `order`: as for `load`."""
    description = tree.description
    contacts = {foot.link: {} for foot in feet}
    for foot in feet:
        contacts[foot.link].update(foot.points)
    entries = {link.name: link for link in description.links}
    if gravity is None:
        gravity = GRAVITY if description.gravity is None else description.gravity
    try:
        links = {name: _link(entries[name], contacts.get(name, {})) for name in tree.order}
        builder = RobotBuilder(description.name, links[description.root], base=BASES[base](), gravity=gravity)
        for name in tree.order[1:]:
            joint = tree.joint[name]
            builder.add(_joint(joint), links[name], to=joint.parent, at=joint.position, rotation=joint.rotation)
        followers = [joint for joint in description.joints if joint.mimic]
        for joint in followers:
            builder.couple(joint.name, joint.mimic.joint, joint.mimic.multiplier, joint.mimic.offset)
        if order == "file":
            order = [joint.name for joint in description.joints if joint.kind != "fixed" and not joint.mimic]
        return builder.build(order=order)
    except LeggedError as error:
        raise FileError(description.source, str(error)) from error


def _link(entry: LinkEntry, contacts: Mapping[str, Array]) -> Link:
    if entry.mass is None:
        return Link(entry.name, contacts=contacts)
    return Link(entry.name, Inertia(entry.mass, entry.center, entry.tensor, checked=False), contacts)


def _joint(entry: JointEntry) -> Joint:
    if entry.kind == "fixed":
        return Fixed(entry.name)
    if entry.kind in ("ball", "free"):
        return {"ball": Spherical, "free": Free}[entry.kind](entry.name, physics=entry.physics)
    if entry.kind == "planar":
        first, second = _plane(entry.axis)
        return Planar(entry.name, first, second, physics=entry.physics)
    kinds = {"revolute": Revolute, "prismatic": Prismatic}
    return kinds[entry.kind](entry.name, entry.axis, physics=entry.physics)


def _plane(normal: Array) -> tuple[Array, Array]:
    """Return two unit axes with first x second = normal; x and y for the normal z."""
    start = np.eye(3)[0] if abs(normal[0]) < 0.9 else np.eye(3)[1]
    first = start - (start @ normal) * normal
    first /= np.linalg.norm(first)
    return first, np.cross(normal, first)
