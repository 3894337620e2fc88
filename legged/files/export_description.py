"""Convert a robot to a description for export, with names for the joints and links that the export adds."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from legged.errors import FileWarning
from legged.files.description import IDENTITY, Description, JointEntry, LinkEntry, Mimic
from legged.files.description import Shape as FileShape
from legged.robot.base import Base, EulerBase, FloatingBase, PlanarBase
from legged.robot.construction.builder import RobotBuilder
from legged.robot.joint import Connection, Joint, Screw
from legged.robot.link import PlacedLink
from legged.robot.physics import JointPhysics, by_stage
from legged.robot.placement import Placement
from legged.robot.robot import Robot
from legged.robot.shapes import Box, Capsule, Cylinder, Hull, Shape, Sphere, shape_with
from legged.robot.stages.stage import Stage

_AXES = dict(zip("xyz", np.eye(3), strict=True))


def describe_robot(robot: Robot) -> Description:
    """Return the description of a robot.

    A joint of several degrees of freedom becomes a chain of one-DoF joints (`stage_names`) with massless links; a
    quaternion ball joint and a free joint remain. A screw becomes a slide that follows a hinge. A planar or
    Euler-angle base becomes a chain from a new root (`base_names`). A contact point becomes a massless fixed link.
    """
    return _Writer(robot).description()


def losses(robot: Robot) -> list[str]:
    """Return the properties of a robot that the elements of URDF and MJCF cannot store, and how to restore them."""
    default = RobotBuilder.build(robot.edit())
    lost = []
    if isinstance(robot.base, PlanarBase | EulerBase):
        lost.append(f"the {robot.base.kind} base, which becomes a chain of joints on a fixed base")
    if any(isinstance(c.joint, Screw) for c in robot.connections):
        lost.append("screw joints, which become a slide that follows a hinge")
    if [joint.name for joint in robot.joints] != [joint.name for joint in default.joints]:
        lost.append("the order of the joints (load with order=[...])")
    if [module.links for module in robot.modules] != [module.links for module in default.modules]:
        lost.append("the partition into modules")
    return lost


def warn_of_losses(file_format: str, lost: Sequence[str]) -> None:
    """Warn with `FileWarning` of the properties that a file of a format cannot store."""
    if lost:
        warnings.warn(f"{file_format} cannot represent: {'; '.join(lost)}", FileWarning, stacklevel=4)


class _Writer:
    """Collects the links and joints of the description of a robot."""

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.contacts = dict(zip(contact_names(robot), robot.contacts, strict=True))
        self.taken = {*self.contacts, *(link.name for link in robot.links)}
        self.links: list[LinkEntry] = []
        self.joints: list[JointEntry] = []

    def description(self) -> Description:
        robot = self.robot
        self.links = [_entry(link) for link in robot.links]
        root = robot.links[0].name
        if isinstance(robot.base, PlanarBase | EulerBase):
            root = self._base(root)
        mimics = {f.name: Mimic(f.master, f.ratio, f.offset) for f in robot.followers}
        for c in robot.connections:
            self._connection(c, mimics.get(c.joint.name))
        for link, contact in self.contacts.items():
            shapes = (file_shape(Sphere(contact.radius, np.zeros(3), contact.material)),) if contact.radius else ()
            self.links.append(LinkEntry(link, shapes=shapes))
            place = Placement(np.eye(3), contact.position)
            self._weld(f"{link}_contact", robot.links[contact.link].name, link, place)
        links, joints, floating = tuple(self.links), tuple(self.joints), isinstance(robot.base, FloatingBase)
        own, physics = (robot.name, "a robot built in code", root), robot.base.physics if floating else JointPhysics()
        return Description(*own, links, joints, floating, (), robot.gravity, base_physics=physics)

    def _base(self, first: str) -> str:
        """Add a chain of slides and hinges from a new root to the base link, and return the name of the root."""
        root = self._new("world")
        self.links.insert(0, LinkEntry(root))
        coordinates = list(zip(base_names(self.robot.base), _base_stages(self.robot), strict=True))
        coordinates.sort(key=lambda pair: pair[1].kind != "prismatic")  # slides before hinges
        names, stages = zip(*coordinates, strict=True)
        self._chain(names, stages, [self.robot.base.physics] * len(stages), root, first, IDENTITY, None)
        return root

    def _connection(self, c: Connection, mimic: Mimic | None) -> None:
        joint = c.joint
        if not joint.stages:
            self._weld(joint.name, c.parent, c.child, c.start)
        elif joint.kind == "free":
            self._append(joint.name, "free", joint.physics, c.parent, c.child, c.start, None)
        elif isinstance(joint, Screw):
            self._screw(c, joint, mimic)
        else:
            physics = by_stage(joint.name, joint.physics, joint.stages)
            self._chain(stage_names(joint), joint.stages, physics, c.parent, c.child, c.start, mimic)

    def _screw(self, c: Connection, joint: Screw, mimic: Mimic | None) -> None:
        """Add the slide and the hinge of a screw; the slide follows the hinge, or the joint that the hinge follows."""
        slide = slide_name(joint)
        between = self._new(f"{slide}_link")
        hinge = mimic or Mimic(joint.name)
        follows = Mimic(hinge.joint, hinge.multiplier * joint.pitch, hinge.offset * joint.pitch)
        self.links.append(LinkEntry(between))
        axis = joint.stages[0].axis
        self._append(slide, "prismatic", JointPhysics(), c.parent, between, c.start, follows, axis)
        self._append(joint.name, "revolute", joint.physics, between, c.child, IDENTITY, mimic, axis)

    def _chain(self, names, stages, physics, parent: str, child: str, start: Placement, mimic: Mimic | None) -> None:
        """Add one-DoF joints between two links, with massless links between them; `physics` has an entry per stage."""
        for name, stage, own in zip(names, stages, physics, strict=True):
            coupling = mimic if stage.repeats is None else Mimic(names[stage.repeats], 1.0, 0.0)
            end = child if stage is stages[-1] else self._new(f"{name}_link")
            if end != child:
                self.links.append(LinkEntry(end))
            self._append(name, stage.kind, own, parent, end, start, coupling, stage.axis)
            parent, start = end, IDENTITY

    def _append(self, name, kind, physics, parent, child, start: Placement, mimic, axis=_AXES["z"]) -> None:
        place = start.position, start.rotation
        self.joints.append(JointEntry(name, kind, parent, child, *place, axis, physics, mimic))

    def _weld(self, name: str, parent: str, child: str, place: Placement) -> None:
        self._append(name, "fixed", JointPhysics(), parent, child, place, None)

    def _new(self, name: str) -> str:
        """Return a name that no link has, with trailing underscores if necessary."""
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name


def _base_stages(robot: Robot) -> list[Stage]:
    """Return the one-DoF joints of a planar or Euler-angle base, in the order of its v."""
    base = robot.base
    if isinstance(base, EulerBase):
        rotations = [Stage("revolute", _AXES[letter]) for letter in base.sequence]
        return rotations + [Stage("prismatic", axis) for axis in _AXES.values()]
    return [Stage("revolute", _AXES["y"]), Stage("prismatic", _AXES["x"]), Stage("prismatic", _AXES["z"])]


def _entry(link: PlacedLink) -> LinkEntry:
    inertia = link.inertia
    shapes = tuple(file_shape(shape_with(shape, link.material)) for shape in link.shapes)
    if inertia.mass == 0.0 and not np.any(inertia.tensor):
        return LinkEntry(link.name, shapes=shapes)
    return LinkEntry(link.name, inertia.mass, np.asarray(inertia.center), np.asarray(inertia.tensor), shapes)


def file_shape(shape: Shape) -> FileShape:
    """Return a shape of a link as a shape of a file."""
    return replace(_geometry(shape), material=shape.material)


def _geometry(shape: Shape) -> FileShape:
    center = np.asarray(shape.center)
    if isinstance(shape, Sphere):
        return FileShape("sphere", (shape.radius,), center, np.eye(3))
    if isinstance(shape, Hull):
        return FileShape("mesh", (), np.zeros(3), np.eye(3), shape.vertices)
    kind = type(shape).__name__.lower()
    if isinstance(shape, Capsule | Cylinder):
        return FileShape(kind, (shape.radius, shape.length), center, shape.rotation)
    size = shape.size if isinstance(shape, Box) else shape.radii
    return FileShape(kind, tuple(np.asarray(size).tolist()), center, shape.rotation)


def stage_names(joint: Joint) -> tuple[str, ...]:
    """Return the names of the one-DoF stages of a joint: the name of the joint if it has one stage.

    The stages of a planar joint have the suffixes that MuJoCo uses when it reads a URDF.
    """
    if len(joint.stages) == 1:
        return (joint.name,)
    endings = ("TX", "TY", "RZ") if joint.kind == "planar" else range(1, len(joint.stages) + 1)
    return tuple(f"{joint.name}_{ending}" for ending in endings)


def own_stage_names(joint: Joint) -> tuple[str, ...]:
    """Return the names of the one-DoF stages of a joint that have a coordinate of their own."""
    return tuple(name for name, stage in zip(stage_names(joint), joint.stages, strict=True) if stage.repeats is None)


def slide_name(joint: Screw) -> str:
    """Return the name of the slide that follows the hinge of an exported screw; the hinge has the screw's name."""
    return f"{joint.name}_slide"


def base_names(base: Base) -> tuple[str, ...]:
    """Return the names of the one-DoF joints of a planar or Euler-angle base, in the order of its v."""
    return tuple(f"base_{coordinate}" for coordinate in base.coordinates)


def contact_names(robot: Robot) -> tuple[str, ...]:
    """Return the names of the links that represent the contact points, with a trailing _ where a link has the name."""
    taken, names = {link.name for link in robot.links}, []
    for contact in robot.contacts:
        name = contact.name
        while name in taken:
            name += "_"
        taken.add(name)
        names.append(name)
    return tuple(names)


def uniform_value(value: Any) -> float | None:
    """Return the common value of all entries, or None if they differ."""
    value = np.asarray(value, float)
    return float(value.flat[0]) if value.size and np.all(value == value.flat[0]) else None


def format_numbers(numbers: Any) -> str:
    """Return numbers as text that reads back exactly; equal numbers as one."""
    one = uniform_value(numbers)
    return format_vector([one] if one is not None else np.asarray(numbers))


def format_vector(vector: Any) -> str:
    """Return all entries of a vector as text that reads back exactly; -0.0 becomes 0.0."""
    return " ".join(repr(float(x) + 0.0) for x in vector)
