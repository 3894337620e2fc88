"""Write robots as MJCF, MuJoCo's format."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

import numpy as np

from legged.checked import checked
from legged.errors import DefinitionError
from legged.files import embedded
from legged.files.description import IDENTITY, JointEntry, Shape
from legged.files.export_description import (
    describe_robot,
    format_numbers,
    format_vector,
    losses,
    uniform_value,
    warn_of_losses,
)
from legged.files.inertias import entry_inertia
from legged.output import write_file
from legged.robot.inertia import Inertia
from legged.robot.joint import Fixed
from legged.robot.physics import JointPhysics
from legged.robot.placement import Placement
from legged.robot.robot import Robot
from legged.rotations import quaternion_of

SMALLEST = 2e-14
"""Principal inertia, [kg m^2], added to thin rods, plates and point masses, which MuJoCo rejects."""
KINDS = {"revolute": "hinge", "prismatic": "slide", "ball": "ball"}
"""Joint types of MuJoCo."""


@checked
def save_mjcf(robot: Robot, path: str | Path) -> Path:
    """Write a robot to an MJCF file, and return its path.

    `legged.load` reads back the same robot to the last digit from a text in <custom>, which holds its description; see
    `legged.files.embedded`. Other programs, and `legged.load` once the file was changed, read the elements:

    - Joints of several degrees of freedom, and joints connected by massless links, become several joints of one body,
      named as in `save_urdf`.
    - Links fixed to others and contact points become sites; their mass is added to the body.
    - A floating base has a free joint named "base", with its armature and damping; a link named "world" gets a
      trailing underscore.
    - Limits of effort become `actuatorfrcrange`. There are no actuators or floor, and no limits of speed.
    - Collision shapes and round feet become geoms, which collide with a floor but not with each other.

    - Free joints on a fixed, massless base stay free joints.

    A `legged.errors.FileWarning` names the joints that MuJoCo would simulate differently: those with a gyroscopic
    rotor, ball joints whose friction differs by axis or whose spring does not rest at the identity, and free joints
    elsewhere, which become three slides and a ball. Without description, that is for a joint or base of a user's
    own class, it lists what the elements lack as well.
    """
    writer = _Writer(robot, is_exact=False)
    root = writer.root
    lost = writer.approximations
    if not embedded.add_to_mjcf(root, robot):
        lost += _losses(robot)
    warn_of_losses("MJCF", lost)
    ET.indent(root)
    return write_file(path, ET.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n", ".xml", ".mjcf")


def _losses(robot: Robot) -> list[str]:
    """Return the properties of a robot that the elements of MJCF cannot store."""
    lost = losses(robot)
    if any(np.isfinite(joint.definition.physics.speed).any() for joint in robot.joints):
        lost.append("limits of speed")
    fixed = {c.child for c in robot.connections if isinstance(c.joint, Fixed)}
    if any(robot.link(name).inertia.mass for name in fixed):
        lost.append("inertias of links fixed to others, which are added to the body")
    if robot.contacts:
        lost.append("contact points, which become sites (load with feet=[...])")
    return lost


def to_mjcf(robot: Robot) -> ET.Element:
    """Return the element <mujoco> with the dynamics of a robot, without shapes; see `save_mjcf`.

    Raises:
        DefinitionError: a robot that MuJoCo would simulate differently: with a free joint between links, a gyroscopic
            rotor, a ball joint whose friction differs by axis or whose spring does not rest at the identity.
    """
    return _Writer(robot, is_exact=True).root


class _BodyJoint(NamedTuple):
    """A joint of a body, and the frame of the body relative to the joint frame, all joints at zero."""

    joint: JointEntry
    place: Placement


class _Writer:
    """Writes the elements of an MJCF file.

    Unless `is_exact`, it also writes shapes, and collects in `approximations` the properties that MJCF cannot express.
    """

    def __init__(self, robot: Robot, is_exact: bool) -> None:
        self.is_exact = is_exact
        self.approximations: list[str] = []
        description = describe_robot(robot)
        self.links = {link.name: link for link in description.links}
        self.joints_of: dict[str, list[JointEntry]] = {name: [] for name in self.links}
        for joint in description.joints:
            self.joints_of[joint.parent].append(joint)
        self.root = ET.Element("mujoco", model=description.name)
        ET.SubElement(self.root, "compiler", angle="radian", autolimits="true")
        ET.SubElement(self.root, "option", gravity=format_vector(robot.gravity))
        body, first = ET.SubElement(self.root, "worldbody"), description.root
        if description.floating or self._group_inertia(first).mass:
            body = ET.SubElement(body, "body", name=_allowed(first))
        if description.floating:
            physics = _physics(description.base_physics)
            kind = ("joint", {"type": "free"}) if physics else ("freejoint", {})
            ET.SubElement(body, kind[0], {"name": "base", **kind[1], **physics})
        self._fill(body, first, has_body=True)
        equality = ET.SubElement(self.root, "equality")
        for joint in description.joints:
            if joint.mimic is not None:
                curve = format_vector(np.array([joint.mimic.offset, joint.mimic.multiplier, 0.0, 0.0, 0.0]))
                ET.SubElement(equality, "joint", joint1=joint.name, joint2=joint.mimic.joint, polycoef=curve)

    def _group_inertia(self, name: str) -> Inertia:
        """Return the inertia of a link and of the links fixed to it, in the frame of the link."""
        total = entry_inertia(self.links[name])
        for joint in self.joints_of[name]:
            if joint.kind == "fixed":
                total = total + self._group_inertia(joint.child).moved(joint.rotation, joint.position)
        return total

    def _has_moving_joint(self, name: str) -> bool:
        """Return whether the subtree of a link has a moving joint."""
        return any(joint.kind != "fixed" or self._has_moving_joint(joint.child) for joint in self.joints_of[name])

    def _fill(self, body: ET.Element, name: str, has_body: bool) -> None:
        """Write the inertia of a link, if it has its own body, and all joints, bodies and sites in its subtree."""
        total = self._group_inertia(name)
        if has_body and total.mass:
            _inertial(body, total)
        self._shapes(body, name, IDENTITY)
        for joint in self.joints_of[name]:
            if joint.kind == "fixed" and not self._has_moving_joint(joint.child):
                self._sites(body, joint, IDENTITY)
            else:
                self._add_joints(body, joint)

    def _sites(self, body: ET.Element, joint: JointEntry, outer: Placement) -> None:
        """Write a fixed link, and the links fixed to it, as sites."""
        place = outer @ Placement(joint.rotation, joint.position)
        ET.SubElement(body, "site", {"name": joint.child, **_pose(place)})
        self._shapes(body, joint.child, place)
        for each in self.joints_of[joint.child]:
            self._sites(body, each, place)

    def _shapes(self, body: ET.Element, link: str, place: Placement) -> None:
        """Write the collision shapes of a link whose frame is at a place in a body."""
        for shape in () if self.is_exact else self.links[link].shapes:
            at = _pose(place @ Placement(shape.rotation, shape.position))
            collides = {"contype": "1", "conaffinity": "0", "mass": "0"}
            surface = {}
            if shape.material is not None:
                surface = {"friction": f"{shape.material.friction!r}", "priority": str(shape.material.priority)}
            ET.SubElement(body, "geom", {"type": shape.kind, **self._size(shape), **at, **collides, **surface})

    def _size(self, shape: Shape) -> dict[str, str]:
        """Return the attribute for the size of a geom; the mesh of a hull is added to the assets."""
        if shape.vertices is not None:
            assets = self.root.find("asset")
            assets = ET.SubElement(self.root, "asset") if assets is None else assets
            name = f"hull {len(assets) + 1}"
            ET.SubElement(assets, "mesh", name=name, vertex=format_vector(shape.vertices.ravel()))
            return {"mesh": name}
        size = np.array(shape.size)
        if shape.kind == "box":
            size = size / 2.0
        elif shape.kind in ("capsule", "cylinder"):
            size = size / (1.0, 2.0)
        return {"size": format_vector(size)}

    def _add_joints(self, parent: ET.Element, joint: JointEntry) -> None:
        """Write the body of a joint; massless links before it become further joints of the body."""
        chain, place = [joint], Placement(joint.rotation, joint.position)
        while self.links[joint.child].mass is None and len(self.joints_of[joint.child]) == 1:
            (joint,) = self.joints_of[joint.child]
            chain.append(joint)
            place = place @ Placement(joint.rotation, joint.position)
        body, end = ET.SubElement(parent, "body", {"name": _allowed(joint.child), **_pose(place)}), IDENTITY
        moved: list[_BodyJoint] = []
        for each in reversed(chain):
            moved.insert(0, _BodyJoint(each, end))
            end = Placement(each.rotation, each.position) @ end
        moved = [each for each in moved if each.joint.kind != "fixed"]
        is_free = parent.tag == "worldbody" and len(chain) == 1 and joint.kind == "free" and _is_plain_free(joint)
        if is_free:
            physics = _physics(joint.physics)
            ET.SubElement(body, "joint", {"name": joint.name, "type": "free", **physics})
            self._fill(body, joint.child, has_body=True)
            return
        for each in moved:
            words = _difference(each.joint)
            if words and self.is_exact:
                raise DefinitionError(f"joint {each.joint.name!r} {words}")
            if words:
                self.approximations.append(f"joint {each.joint.name!r} {words}")
            _joint(body, each.joint, each.place.inverse())
        self._fill(body, joint.child, has_body=bool(moved))


def _is_plain_free(joint: JointEntry) -> bool:
    """Return whether MuJoCo's free joint represents a joint on the world: its frame is that of the world."""
    fields = ("damping", "friction", "armature")
    is_alike = all(uniform_value(getattr(joint.physics, field)) is not None for field in fields)
    is_plain = not np.any(joint.physics.stiffness) and not np.isfinite(np.asarray(joint.physics.effort)).any()
    at_world = not joint.position.any() and np.array_equal(joint.rotation, np.eye(3))
    return is_alike and is_plain and at_world


def _allowed(name: str) -> str:
    return "world_" if name == "world" else name


def _joint(body: ET.Element, joint: JointEntry, place: Placement) -> None:
    """Write a joint; `place` is its frame relative to the body frame. A free joint becomes three slides and a ball."""
    pos = {"pos": format_vector(place.position)} if place.position.any() else {}
    if joint.kind == "free":
        for letter, axis in zip("xyz", place.rotation.T, strict=True):
            ET.SubElement(body, "joint", name=f"{joint.name}_{letter}", type="slide", axis=format_vector(axis))
        ET.SubElement(body, "joint", {"name": joint.name, "type": "ball", **pos})
        return
    axis = {} if joint.kind == "ball" else {"axis": format_vector(place.rotation @ joint.axis)}
    ET.SubElement(
        body, "joint", {"name": joint.name, "type": KINDS[joint.kind], **axis, **pos, **_physics(joint.physics)}
    )


def _difference(joint: JointEntry) -> str:
    """Return how the motion of a joint differs in MuJoCo, in words; "" if it does not differ."""
    physics = joint.physics
    differs = [field for field in ("damping", "friction") if uniform_value(getattr(physics, field)) is None]
    if joint.kind not in KINDS:
        return f"is {joint.kind}; MJCF allows such joints between the world and a body only"
    if physics.rotor is not None and physics.rotor.gyroscopic:
        return "has a gyroscopic rotor; MJCF represents reflected inertia only, so set gyroscopic=False"
    if differs:
        return f"has {' and '.join(differs)} that differ by axis; MJCF allows one number"
    if joint.kind == "ball" and np.any(physics.rest) and np.any(physics.stiffness):
        return "has a spring with a nonzero rest position; MJCF springs of ball joints rest at zero"
    return ""


def _physics(physics: JointPhysics) -> dict[str, str]:
    rotor = physics.rotor
    reflected = 0.0 if rotor is None else rotor.gear**2 * rotor.inertia
    numbers = {
        "damping": uniform_value(physics.damping),
        "frictionloss": uniform_value(physics.friction),
        "armature": (uniform_value(physics.armature) or 0.0) + reflected,
        "stiffness": uniform_value(physics.stiffness),
        "springref": uniform_value(physics.rest),
    }
    attributes = {name: format_numbers(value) for name, value in numbers.items() if value}
    lower, upper, effort = (uniform_value(x) for x in (physics.lower, physics.upper, physics.effort))
    if lower is not None and upper is not None and np.isfinite([lower, upper]).any():
        attributes["range"] = format_vector(np.clip([lower, upper], -1e9, 1e9))
    if effort and np.isfinite(effort):
        attributes["actuatorfrcrange"] = format_vector(np.array([-effort, effort]))
    return attributes


def _inertial(body: ET.Element, inertia: Inertia) -> None:
    t = np.asarray(inertia.tensor)
    a, b, c = np.linalg.eigvalsh(t)
    if a < SMALLEST or a + b - c < SMALLEST:
        t = t + SMALLEST * np.eye(3)
    six = format_vector(np.array([t[0, 0], t[1, 1], t[2, 2], t[0, 1], t[0, 2], t[1, 2]]))
    center, mass = format_vector(np.asarray(inertia.center)), format_numbers(inertia.mass)
    ET.SubElement(body, "inertial", pos=center, mass=mass, fullinertia=six)


def _pose(place: Placement) -> dict[str, str]:
    return {"pos": format_vector(place.position), "quat": format_vector(quaternion_of(place.rotation))}
