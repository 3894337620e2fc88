"""`legged.load` reads a robot from a URDF or MJCF file; `legged.audit` returns the report on the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from legged.denoc import conditioning
from legged.errors import FileError, LeggedError, UnknownNameError
from legged.files import mjcf, urdf_xml
from legged.files.audit import Audit, Finding, findings_of, ordered, poor_conditions
from legged.files.description import Description, JointEntry, LinkEntry, Tree, tree_of
from legged.files.feet import Feet, Foot, feet_of
from legged.files.inertias import refuse_indefinite, total_inertia
from legged.files.resolve import fused, repaired, settled
from legged.files.urdf import parse_urdf
from legged.robot.base import Base, FixedBase, FloatingBase
from legged.robot.builder import GRAVITY, RobotBuilder
from legged.robot.inertia import Inertia
from legged.robot.joint import Fixed, Free, Joint, Planar, Prismatic, Revolute, Spherical
from legged.robot.link import Link
from legged.robot.placement import Vector, vector3
from legged.robot.robot import Robot
from legged.spatial import Array


def load(
    path: str | Path,
    base: str | None = None,
    *,
    feet: Feet | None = None,
    order: str | Sequence[str] | None = None,
    fuse: bool = False,
    mimic: str = "coupled",
    joint_physics: bool = True,
    repair: str | Sequence[str] | None = None,
    gravity: Vector | None = None,
) -> Robot:
    """Return the robot that a URDF or an MJCF file describes; its `audit` tells what was made of the file.

    Meshes of a URDF are never opened. Impossible inertias are kept where the dynamics have an answer with them.

    Args:
        path: The file.
        base: "floating", or "fixed" for a robot bolted to the world at its root link; what the file says when None, and
            floating where it says nothing, as URDF does.
        feet: Contact points: names of links, or {name: (link, position (3,), [m], link axes)}; found by names, ends
            of limbs and collision shapes when None and the base floats.
        order: Of the joints in q and v: names, or "file" for the file's; module by module, parent before child, when
            None.
        fuse: Whether links fixed to others are dropped from `robot.links`, their mass given to what carries them. They
            move as one body in any case.
        mimic: What joints that follow others do: "coupled", "free" or "fixed" (locked).
        joint_physics: Whether damping, dry friction and springs act.
        repair: Keys of `legged.files.resolve.REPAIRS`: "weld" for joints that move nothing with mass, "inertia" for
            inertias that no body has.
        gravity: (3,), [m/s^2], world axes; the file's or (0, 0, -9.81) when None.

    Raises:
        FileError: for a file that cannot be read, or whose robot cannot be; it says what to do.
        UnknownNameError: for a base, a treatment of mimic joints or a repair that is none. DefinitionError: for a
            gravity that is not three numbers.
    """
    case = _case(path, base, feet, fuse, mimic, joint_physics, repair)
    singular = [finding for finding in case.findings if finding.severity == "singular"]
    if singular:
        told = "; ".join(f"{finding.where}: {finding.words}" for finding in singular)
        raise FileError(case.source, f"the dynamics have no answer: {told}")
    return _finished(case, order, gravity)


def audit(path: str | Path, base: str | None = None, **options: Any) -> Audit:
    """Return the report on a robot's file, also on one that `load` refuses since its dynamics are singular.

    Args:
        path, base, options: As for `load`.

    Raises:
        FileError: for a file that cannot be read, or whose links and joints make no robot. Others as `load`.
    """
    order, gravity = options.pop("order", None), options.pop("gravity", None)
    defaults = {"feet": None, "fuse": False, "mimic": "coupled", "joint_physics": True, "repair": None}
    case = _case(path, base, **(defaults | options))
    if any(finding.severity == "singular" for finding in case.findings):
        return _audit(case)
    try:
        report = _finished(case, order, gravity).audit
    except FileError as error:
        finding = Finding("singular", "unanswered", "the robot", str(error).removeprefix(f"{case.source}: "))
        return _audit(replace(case, findings=(finding, *case.findings)))
    assert report is not None
    return report


@dataclass(frozen=True, eq=False)
class _Case:
    """A file read, settled, repaired and judged, ready to be built."""

    source: str
    base: str
    tree: Tree
    feet: tuple[Foot, ...]
    welds: dict[str, tuple[str, ...]]
    findings: tuple[Finding, ...]
    decided: tuple[str, ...]
    repaired: tuple[str, ...]


def describe(path: str | Path) -> Description:
    """Return what a URDF or an MJCF file says, told apart by its outermost element; errors are FileErrors."""
    content = urdf_xml.read_bytes(path)
    if urdf_xml.outermost(content) == "mujoco":
        return mjcf.read(path)
    return parse_urdf(content, str(path))


def _case(
    path: str | Path,
    base: str | None,
    feet: Feet | None,
    fuse: bool,
    mimic: str,
    joint_physics: bool,
    repair: str | Sequence[str] | None,
) -> _Case:
    if base is not None and base not in BASES:
        raise UnknownNameError("base", base, BASES)
    description = describe(path)
    base = base or ("fixed" if description.floating is False else "floating")
    description, decided = settled(description, base, mimic, joint_physics)
    tree, did = repaired(tree_of(description), repair)
    found = feet_of(tree, feet, walks=base == "floating")
    findings = findings_of(tree, base == "floating")
    welds = {head: tuple(group[1:]) for head, group in tree.welds.items() if len(group) > 1}
    if fuse:
        tree, found = fused(tree, found)
    return _Case(description.source, base, tree, found, welds, findings, tuple(decided), tuple(did))


def _finished(case: _Case, order: str | Sequence[str] | None, gravity: Vector | None) -> Robot:
    if gravity is not None:
        gravity = vector3("gravity", gravity)
    robot = build(case.tree, case.base, case.feet, order, gravity)
    refuse_indefinite(robot, case.tree)
    modules = tuple(module.links for module in robot.modules)
    conditions = tuple(map(float, conditioning(robot, robot.neutral(), scaled=True)))
    report = replace(
        _audit(case),
        findings=ordered((*case.findings, *poor_conditions(modules, conditions))),
        joints=tuple(joint.name for joint in robot.joints),
        followers=tuple(joint.name for joint in robot.followers),
        modules=modules,
        alike=robot.alike_modules,
        conditions=conditions,
    )
    return replace(robot, audit=report)


def _audit(case: _Case) -> Audit:
    description = case.tree.description
    inertia = total_inertia(case.tree)
    return Audit(
        case.source,
        description.name,
        case.base,
        case.findings,
        case.welds,
        description.lost,
        case.decided,
        case.repaired,
        case.feet,
        inertia.mass,
        np.asarray(inertia.center),
    )


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
