"""`legged.load` reads a robot from a URDF or MJCF file; `legged.audit` returns the report on the file.

The file reads from top to bottom: read, describe, resolve, build, report; see docs/explanation/loading.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from legged.arguments import known_name
from legged.checked import checked
from legged.denoc import conditioning
from legged.errors import DefinitionError, FileError, LeggedError, UnknownNameError
from legged.files import embedded, reading
from legged.files.audit import Audit, Finding, by_severity, find_all, ill_conditioned_modules
from legged.files.collision import collision_shapes
from legged.files.description import Description, JointEntry, Tree, tree_of
from legged.files.export_description import describe_robot
from legged.files.feet.detection import Feet, FootEntry, find_feet
from legged.files.feet.findings import feet_findings
from legged.files.inertias import check_positive_definite, entry_inertia, total_inertia
from legged.files.mjcf.reader import read as read_mjcf
from legged.files.resolve import apply_repairs, oriented, remove_fixed_joints, resolve, without_materials
from legged.files.urdf.reader import parse_urdf
from legged.robot.base import Base, FixedBase, FloatingBase, PlanarBase
from legged.robot.construction.assemble import assemble
from legged.robot.construction.graph import GRAVITY, LinkGraph
from legged.robot.joint import Connection, Coupling, Fixed, Free, Joint, Planar, Prismatic, Revolute, Spherical
from legged.robot.link import Link
from legged.robot.physics import JointPhysics
from legged.robot.placement import Placement, Vector, vector3
from legged.robot.robot import Robot
from legged.robot.shapes import Shape, Sphere
from legged.spatial import Array


@checked
def load(
    path: str | Path,
    base: str | None = None,
    *,
    feet: Feet | None = None,
    order: str | Sequence[str] | None = None,
    fuse: bool = False,
    mimic: str | Mapping[str, str | Sequence[Any]] = "coupled",
    joint_physics: bool = True,
    repair: str | Sequence[str] | None = None,
    gravity: Vector | None = None,
    shapes: bool = False,
    materials: bool = False,
    root: str | None = None,
    armature: bool = True,
    axes: tuple[str, str] | None = None,
) -> Robot:
    """Return the robot described by a URDF or MJCF file; its attribute `audit` reports on the file.

    A file that `save_urdf` or `save_mjcf` wrote contains the whole robot besides the elements of the format. If nothing
    was changed in it, and no argument asks for another robot, this robot is returned; otherwise that of the elements.

    Meshes of a URDF are opened with `shapes` only. Physically inconsistent inertias are kept if the dynamics are
    regular with them.

    Args:
        path: Path of the file.
        base: "floating", "planar", or "fixed" for a root link fixed to the world. None: as stated in an MJCF file, also
            by slides and hinges of its root; floating for a URDF, which does not state it.
        feet: Names of links; "spheres" to find the feet and keep their collision spheres as `Sphere`; "shapes" to find
            them and take over all their collision shapes, see `legged.files.feet.detection.Feet`; or a mapping with
            entries contact: (link, position (3,), [m], link axes, or a `Sphere`), or link: a `Sphere`, a list of the
            points of a sole, points and spheres by name, or "sphere" for the link's collision sphere. None: found from
            names, ends of limbs and collision shapes if the base floats, with the points that touch the ground.
        order: Order of the joints in q and v: names, or "file" for the order of the file. None: module by module,
            parent before child.
        fuse: Whether to remove links fixed to others from `robot.links` and add their mass to the link they are fixed
            to. They move as one body in either case.
        mimic: Treatment of mimic joints: "coupled", "free" or "fixed" (locked). Or couplings that the file does not
            state, beside its own, such as those of the two joints of a knee with rolling contact: a mapping joint ->
            its master, or (master, ratio, offset), with q = ratio q_master + offset, [rad] or [m]. The master gets
            the motors of both: its effort becomes effort_master + |ratio| effort.
        joint_physics: Whether damping, dry friction and springs act.
        repair: Repairs, keys of `legged.files.resolve.REPAIRS`: "weld" fixes joints that move no mass, "inertia"
            replaces physically inconsistent inertias.
        gravity: Gravitational acceleration, (3,), [m/s^2], world axes. None: as stated in the file, or (0, 0, -9.81).
        shapes: Whether links keep their collision shapes, for contact with other bodies (`legged.contact`) and for
            pictures. Meshes become convex hulls of at most `legged.robot.shapes.MOST_VERTICES` vertices; the audit
            states under `decided` how they differ.
        materials: Whether feet and shapes have the friction that the file states, as `Link.material` and as materials
            of shapes: the sliding friction and the priority of a geom in MJCF, mu1 of a link for Gazebo in a URDF. On
            a `Rigid` ground it is combined with that of the other surface.
        root: Of an MJCF file with several moving bodies, the name of the robot's root body, or "world" for all of them
            as one robot on a fixed base. None: the body with further joints on a free body, or else "world". The audit
            names the others under `lost`.
        armature: Whether armature and rotors of joints act.
        axes: Axes of the root link that point forward and up, such as ("-y", "z") or ("z", "y"), of a file in which
            they are not x and z. The root of the robot is then a link without mass, fixed to this link, with x forward
            and z up. The gravity of an MJCF is not rotated.

    Raises:
        FileError: a file that cannot be read or does not describe a robot with regular dynamics.
        UnknownNameError: an unknown base, treatment of mimic joints or repair.
        DefinitionError: a gravity that is not three numbers.
        ArgumentError: axes that are not two different ones of x, y and z, with or without a minus sign.
    """
    options = _Options(
        base, feet, order, fuse, mimic, joint_physics, repair, gravity, shapes, materials, root, armature, axes
    )
    case = _read(path, options)
    singular = [finding for finding in case.findings if finding.severity == "singular"]
    if singular and case.whole is None:
        problems = "; ".join(f"{finding.where}: {finding.words}" for finding in singular)
        raise FileError(case.source, f"the dynamics are singular: {problems}")
    return _with_report(case, _build(case))


@checked
def audit(path: str | Path, base: str | None = None, **options: Any) -> Audit:
    """Return the report on a robot file, also for a file that `load` rejects because its dynamics are singular.

    Args:
        path, base, options: Arguments of `load`.

    Raises:
        FileError: a file that cannot be read, or whose links and joints do not form a tree.
        UnknownNameError: an option that is no argument of `load`. Others as `load`.
    """
    for name in options:
        known_name("argument of load", name, [field.name for field in fields(_Options)[1:]])
    case = _read(path, _Options(base, **options))
    if case.whole is None and any(finding.severity == "singular" for finding in case.findings):
        return _report(case)
    try:
        robot = _build(case)
    except FileError as error:
        finding = Finding("singular", "unanswered", "the robot", str(error).removeprefix(f"{case.source}: "))
        return _report(replace(case, findings=(finding, *case.findings)))
    report = _with_report(case, robot).audit
    assert report is not None
    return report


BASES: dict[str, Any] = {"floating": FloatingBase, "planar": PlanarBase, "fixed": FixedBase}


@dataclass(frozen=True, eq=False)
class _Options:
    """The arguments of `load` besides the path."""

    base: str | None = None
    feet: Feet | None = None
    order: str | Sequence[str] | None = None
    fuse: bool = False
    mimic: str | Mapping[str, str | Sequence[Any]] = "coupled"
    joint_physics: bool = True
    repair: str | Sequence[str] | None = None
    gravity: Vector | None = None
    shapes: bool = False
    materials: bool = False
    root: str | None = None
    armature: bool = True
    axes: tuple[str, str] | None = None

    @property
    def is_for_whole(self) -> bool:
        """Whether a robot that its file contains as a whole is returned unchanged, if its base is of the right kind."""
        asked = self.feet, self.order, self.repair, self.gravity, self.root, self.axes
        acts = self.joint_physics and self.armature and self.mimic == "coupled"
        return acts and not self.fuse and all(each is None for each in asked)


@dataclass(frozen=True, eq=False)
class _Reading:
    """The content of a robot file with its ambiguities resolved, repaired and audited; the robot is built from it.

    Attributes:
        options: What `load` is asked for.
        groups: Head of a group of links fixed to each other -> the other links of the group.
        whole: The robot, if the file contains it besides its elements (`legged.files.embedded`); None otherwise.
        shapes: Link -> its collision shapes, empty unless `load` is asked for them.
    """

    source: str
    options: _Options
    base: str
    tree: Tree
    feet: tuple[FootEntry, ...]
    groups: dict[str, tuple[str, ...]]
    findings: tuple[Finding, ...]
    decided: tuple[str, ...] = ()
    repaired: tuple[str, ...] = ()
    whole: Robot | None = None
    shapes: Mapping[str, tuple[Shape, ...]] = field(default_factory=dict)


# 1. Read: path -> bytes -> the content of the file


def _read(path: str | Path, options: _Options) -> _Reading:
    """Return the content of a robot file: of the whole robot in it, if that is asked for, or else of its elements."""
    if options.base is not None and options.base not in BASES:
        raise UnknownNameError("base", options.base, BASES)
    content, source = reading.read_bytes(path), str(path)
    whole = None
    if options.is_for_whole and b"legged" in content:
        root = reading.parse(content, source, lenient=reading.root_tag(content) == "mujoco")
        whole = None if root is None else embedded.read(root)
    if whole is not None and options.base in (None, whole.base.kind):
        return _of_whole(whole, source, options)
    return _resolve(describe(path, content, options.root, options.base), options)


def _of_whole(robot: Robot, source: str, options: _Options) -> _Reading:
    """Return the content of a file that has the whole robot, for the report."""
    tree = tree_of(replace(describe_robot(robot), source=source))
    base = "floating" if isinstance(robot.base, FloatingBase) else "fixed"
    feet = tuple(
        FootEntry(robot.links[point.link].name, "given", {point.name: point.definition}) for point in robot.contacts
    )
    return _Reading(
        source, options, base, tree, feet, _other_links(tree), find_all(tree, base == "floating"), whole=robot
    )


def _other_links(tree: Tree) -> dict[str, tuple[str, ...]]:
    """Return the head of each group of several links -> the other links of the group."""
    return {head: tuple(group[1:]) for head, group in tree.groups.items() if len(group) > 1}


# 2. Describe: bytes -> links and joints as the file states them


def describe(
    path: str | Path, content: bytes | None = None, root: str | None = None, base: str | None = None
) -> Description:
    """Return the description in a URDF or MJCF file, distinguished by the root element.

    Args:
        path: The file. content: Its content, if it has been read.
        root, base: Of an MJCF, see `legged.files.mjcf.reader.read`.

    Raises:
        FileError: An invalid file, or one of another format.
    """
    content = reading.read_bytes(path) if content is None else content
    if reading.root_tag(content) == "mujoco":
        return read_mjcf(path, root, base, content)
    words = reading.foreign_format(content)
    if words:
        raise FileError(str(path), f"is {words}; robot files are URDF (<robot>) and MJCF (<mujoco>)")
    if root is not None:
        raise FileError(str(path), "is a URDF, which has one root: omit `root`")
    return parse_urdf(content, str(path))


# 3. Resolve: what the file states -> what is built, with feet, findings and shapes


def _resolve(description: Description, options: _Options) -> _Reading:
    """Return the content of a file: a tree with base, mimic joints and joint physics decided, repaired as asked for."""
    if not options.materials:
        description = without_materials(description)
    stated = {"planar": "planar", "joints": "fixed"}.get(description.base)
    base = options.base or stated or ("fixed" if description.floating is False else "floating")
    description, decided = resolve(description, base, options.mimic, options.joint_physics, options.armature)
    description, turned = oriented(description, options.axes)
    tree, repaired = apply_repairs(tree_of(description), options.repair)
    feet = find_feet(tree, options.feet, walks=base != "fixed" or description.base == "joints")
    findings = find_all(tree, base == "floating")
    findings = by_severity([*findings, *feet_findings(tree, feet, base == "floating")])
    groups = _other_links(tree)
    if options.fuse:
        tree, feet = remove_fixed_joints(tree, feet)
    solids, notes = collision_shapes(tree) if options.shapes else ({}, [])
    decided = (*description.choices, *decided, *turned, *notes)
    source = description.source
    return _Reading(source, options, base, tree, feet, groups, findings, decided, tuple(repaired), shapes=solids)


# 4. Build: the content of the file -> the robot


def _build(case: _Reading) -> Robot:
    """Return the robot, without its report; raise FileError for dynamics that are not regular."""
    if case.whole is not None:
        return case.whole
    tree, description, order, gravity = case.tree, case.tree.description, case.options.order, case.options.gravity
    contacts: dict[str, dict[str, Array | Sphere]] = {foot.link: {} for foot in case.feet}
    for foot in case.feet:
        contacts[foot.link].update(foot.points)
    materials = {foot.link: foot.material for foot in case.feet}
    if gravity is not None:
        gravity = vector3("gravity", gravity)
    elif description.gravity is not None:
        gravity = description.gravity
    try:
        links = [
            Link(
                name,
                entry_inertia(tree.link[name]),
                contacts.get(name, {}),
                case.shapes.get(name, ()),
                materials.get(name),
            )
            for name in tree.order
        ]
        joints = [(name, tree.joint[name]) for name in tree.order[1:]]
        connections = [Connection(_joint(j), j.parent, name, Placement(j.rotation, j.position)) for name, j in joints]
        couplings = {
            j.name: Coupling(j.name, j.mimic.joint, j.mimic.multiplier, j.mimic.offset) for _, j in joints if j.mimic
        }
        base = _base(case.base, description.base_physics)
        named = description.name, base, vector3("gravity", GRAVITY if gravity is None else gravity)
        graph = LinkGraph.of(*named, links, connections, couplings)
        if order == "file":
            order = [joint.name for joint in description.joints if not joint.is_fixed and not joint.mimic]
        robot = assemble(graph, order=order)
    except LeggedError as error:
        raise FileError(description.source, str(error)) from error
    check_positive_definite(robot, tree)
    return robot


def _base(kind: str, physics: JointPhysics) -> Base:
    if kind == "fixed":
        return FixedBase()
    armature, damping = (np.asarray(x) for x in (physics.armature, physics.damping))
    if np.ptp(armature) or np.ptp(damping):
        raise DefinitionError(
            "the free joint of a base needs one armature and one damping for all axes; leave them out with "
            "armature=False and joint_physics=False"
        )
    return BASES[kind](float(armature.flat[0]), float(damping.flat[0]))


def _joint(entry: JointEntry) -> Joint:
    return _JOINTS[entry.kind](entry)


_JOINTS: dict[str, Callable[[JointEntry], Joint]] = {
    "fixed": lambda entry: Fixed(entry.name),
    "revolute": lambda entry: Revolute(entry.name, entry.axis, physics=entry.physics),
    "prismatic": lambda entry: Prismatic(entry.name, entry.axis, physics=entry.physics),
    "planar": lambda entry: Planar(entry.name, *_plane(entry.axis), physics=entry.physics),
    "ball": lambda entry: Spherical(entry.name, physics=entry.physics),
    "free": lambda entry: Free(entry.name, physics=entry.physics),
}
"""The joint of each kind of a description."""


def _plane(normal: Array) -> tuple[Array, Array]:
    """Return two unit axes, first x second = normal, (3,), joint axes; x and y for the normal z."""
    start = np.eye(3)[0] if abs(normal[0]) < 0.9 else np.eye(3)[1]
    first = start - (start @ normal) * normal
    first /= np.linalg.norm(first)
    return first, np.cross(normal, first)


# The report


def _with_report(case: _Reading, robot: Robot) -> Robot:
    """Return the robot with the report on its file."""
    modules = tuple(module.links for module in robot.modules)
    conditions = tuple(map(float, conditioning(robot, robot.neutral(), scaled=True)))
    report = replace(
        _report(case),
        findings=by_severity((*case.findings, *ill_conditioned_modules(modules, conditions))),
        joints=tuple(joint.name for joint in robot.joints),
        followers=tuple(joint.name for joint in robot.followers),
        modules=modules,
        alike=robot.alike_modules,
        conditions=conditions,
    )
    return replace(robot, audit=report)


def _report(case: _Reading) -> Audit:
    """Return the audit of a file without the entries that need the built robot: modules and their conditioning."""
    description = case.tree.description
    inertia = total_inertia(case.tree)
    return Audit(
        case.source,
        description.name,
        case.base,
        case.findings,
        case.groups,
        description.lost,
        case.decided,
        case.repaired,
        case.feet,
        inertia.mass,
        np.asarray(inertia.center),
    )
