"""Write robots as MJCF, MuJoCo's format."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

import numpy as np

from legged.checked import checked
from legged.errors import DefinitionError
from legged.files.description import IDENTITY, JointEntry
from legged.files.export_description import describe_robot, format_numbers, losses, uniform_value, warn_of_losses
from legged.files.inertias import entry_inertia
from legged.robot.inertia import Inertia
from legged.robot.joint import Fixed
from legged.robot.physics import JointPhysics
from legged.robot.placement import Placement
from legged.robot.robot import Robot
from legged.rotations import quaternion_of
from legged.spatial import Array

SMALLEST = 2e-14
"""Principal inertia, [kg m^2], added to thin rods, plates and point masses, which MuJoCo rejects."""
KINDS = {"revolute": "hinge", "prismatic": "slide", "ball": "ball"}
"""Joint types of MuJoCo."""


@checked
def save_mjcf(robot: Robot, path: str | Path) -> Path:
    """Write a robot to an MJCF file, and return its path.

    Joints of several degrees of freedom, and joints connected by massless links, become several joints of one body,
    named as in `save_urdf`. Links fixed to others and contact points become sites; their mass is added to the body. A
    floating base has a free joint named "base"; a link named "world" gets a trailing underscore. Limits of effort
    become `actuatorfrcrange`. There are no actuators, geoms or floor, and no limits of speed. A
    `legged.errors.FileWarning` lists what the file lacks.

    Raises:
        DefinitionError: a robot that MJCF cannot represent: a free joint inside the tree, a gyroscopic rotor, a ball
            joint whose friction differs by axis or whose spring does not rest at the identity.
    """
    root = to_mjcf(robot)
    found = losses(robot)
    if any(np.isfinite(joint.definition.physics.speed).any() for joint in robot.joints):
        found.append("limits of speed")
    fixed = {c.child for c in robot.connections if isinstance(c.joint, Fixed)}
    if any(robot.link(name).inertia.mass for name in fixed):
        found.append("inertias of links fixed to others, which are added to the body")
    if robot.contacts:
        found.append("contact points, which become sites (load with feet=[...])")
    warn_of_losses("MJCF", found)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    ET.indent(root)
    path.write_bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n")
    return path


def to_mjcf(robot: Robot) -> ET.Element:
    """Return the element <mujoco> that represents a robot; see `save_mjcf`."""
    return _Writer(robot).root


class _BodyJoint(NamedTuple):
    """A joint of a body, and the frame of the body relative to the joint frame, all joints at zero."""

    joint: JointEntry
    place: Placement


class _Writer:
    def __init__(self, robot: Robot) -> None:
        description = describe_robot(robot)
        self.links = {link.name: link for link in description.links}
        self.joints_of: dict[str, list[JointEntry]] = {name: [] for name in self.links}
        for joint in description.joints:
            self.joints_of[joint.parent].append(joint)
        self.root = ET.Element("mujoco", model=description.name)
        ET.SubElement(self.root, "compiler", angle="radian", autolimits="true")
        ET.SubElement(self.root, "option", gravity=_vector(robot.gravity))
        body, first = ET.SubElement(self.root, "worldbody"), description.root
        if description.floating or self._group_inertia(first).mass:
            body = ET.SubElement(body, "body", name=_allowed(first))
        if description.floating:
            ET.SubElement(body, "freejoint", name="base")
        self._fill(body, first, weighs=True)
        equality = ET.SubElement(self.root, "equality")
        for joint in description.joints:
            if joint.mimic is not None:
                curve = _vector(np.array([joint.mimic.offset, joint.mimic.multiplier, 0.0, 0.0, 0.0]))
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

    def _fill(self, body: ET.Element, name: str, weighs: bool) -> None:
        """Write the inertia of a link, if it has its own body, and all joints, bodies and sites in its subtree."""
        total = self._group_inertia(name)
        if weighs and total.mass:
            _inertial(body, total)
        for joint in self.joints_of[name]:
            if joint.kind == "fixed" and not self._has_moving_joint(joint.child):
                self._sites(body, joint, IDENTITY)
            else:
                self._add_joints(body, joint)

    def _sites(self, body: ET.Element, joint: JointEntry, outer: Placement) -> None:
        """Write a fixed link, and the links fixed to it, as sites."""
        place = outer @ Placement(joint.rotation, joint.position)
        ET.SubElement(body, "site", {"name": joint.child, **_pose(place)})
        for each in self.joints_of[joint.child]:
            self._sites(body, each, place)

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
        for each in moved:
            _joint(body, each.joint, each.place.inverse())
        self._fill(body, joint.child, weighs=bool(moved))


def _allowed(name: str) -> str:
    return "world_" if name == "world" else name


def _joint(body: ET.Element, joint: JointEntry, place: Placement) -> None:
    """Write a joint; `place` is its frame relative to the body frame."""
    _check_representable(joint)
    axis = {} if joint.kind == "ball" else {"axis": _vector(place.rotation @ joint.axis)}
    pos = {"pos": _vector(place.position)} if place.position.any() else {}
    ET.SubElement(
        body, "joint", {"name": joint.name, "type": KINDS[joint.kind], **axis, **pos, **_physics(joint.physics)}
    )


def _check_representable(joint: JointEntry) -> None:
    physics = joint.physics
    differs = [field for field in ("damping", "friction") if uniform_value(getattr(physics, field)) is None]
    if joint.kind not in KINDS:
        words = f"is {joint.kind}; MJCF allows such joints between the world and a body only"
    elif physics.rotor is not None and physics.rotor.gyroscopic:
        words = "has a gyroscopic rotor; MJCF represents reflected inertia only, so set gyroscopic=False"
    elif differs:
        words = f"has {' and '.join(differs)} that differ by axis; MJCF allows one number"
    elif joint.kind == "ball" and np.any(physics.rest) and np.any(physics.stiffness):
        words = "has a spring with a nonzero rest position; MJCF springs of ball joints rest at zero"
    else:
        return
    raise DefinitionError(f"joint {joint.name!r} {words}")


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
    found = {name: format_numbers(value) for name, value in numbers.items() if value}
    lower, upper, effort = (uniform_value(x) for x in (physics.lower, physics.upper, physics.effort))
    if lower is not None and upper is not None and np.isfinite([lower, upper]).any():
        found["range"] = _vector(np.clip([lower, upper], -1e9, 1e9))
    if effort and np.isfinite(effort):
        found["actuatorfrcrange"] = _vector(np.array([-effort, effort]))
    return found


def _inertial(body: ET.Element, inertia: Inertia) -> None:
    t = np.asarray(inertia.tensor)
    a, b, c = np.linalg.eigvalsh(t)
    if a < SMALLEST or a + b - c < SMALLEST:
        t = t + SMALLEST * np.eye(3)
    six = _vector(np.array([t[0, 0], t[1, 1], t[2, 2], t[0, 1], t[0, 2], t[1, 2]]))
    center, mass = _vector(np.asarray(inertia.center)), format_numbers(inertia.mass)
    ET.SubElement(body, "inertial", pos=center, mass=mass, fullinertia=six)


def _pose(place: Placement) -> dict[str, str]:
    return {"pos": _vector(place.position), "quat": _vector(quaternion_of(place.rotation))}


def _vector(vector: Array) -> str:
    return " ".join(repr(float(x) + 0.0) for x in vector)
