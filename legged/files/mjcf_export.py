"""Write robots as MJCF, MuJoCo's format."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

import numpy as np

from legged.errors import DefinitionError
from legged.files.description import JointEntry
from legged.files.export_description import described, uniform, words
from legged.files.inertias import entry_inertia
from legged.robot.inertia import Inertia
from legged.robot.physics import JointPhysics
from legged.robot.placement import Placement
from legged.robot.robot import Robot
from legged.rotations import quaternion_of
from legged.spatial import Array

LEAST = 2e-14
"""[kg m^2], or that part of the largest, added about every axis of thin rods, plates and points: MuJoCo takes none."""
KINDS = {"revolute": "hinge", "prismatic": "slide", "ball": "ball"}
"""MuJoCo's words for joints."""
_HERE = Placement(np.eye(3), np.zeros(3))


def save_mjcf(robot: Robot, path: str | Path) -> Path:
    """Write a robot to an MJCF file, and return its path.

    Joints of several degrees of freedom become several joints of one body, named as in `save_urdf`; so do joints with
    massless links between. Links fixed to others become sites, as do contact points, and their mass that of the body
    which carries them. A floating base hangs on a free joint named "base"; a link named "world" gets an underscore.
    Limits of effort become `actuatorfrcrange`; there are no actuators, geoms and floor, and no limits of speed.

    Raises:
        DefinitionError: for what MJCF has no word for: a free joint inside the tree, a gyroscopic rotor, a ball joint
            whose friction differs by axis or whose spring rests anywhere but at the identity.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    root = mjcf_of(robot)
    ET.indent(root)
    path.write_bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n")
    return path


def mjcf_of(robot: Robot) -> ET.Element:
    """Return the element <mujoco> of a robot's MJCF; see `save_mjcf`."""
    return _Writer(robot).root


class Moved(NamedTuple):
    """A joint of a body to be, and where that body's frame is in the joint's, all joints at zero."""

    joint: JointEntry
    place: Placement


class _Writer:
    def __init__(self, robot: Robot) -> None:
        description = described(robot)
        self.links = {link.name: link for link in description.links}
        self.held: dict[str, list[JointEntry]] = {name: [] for name in self.links}
        for joint in description.joints:
            self.held[joint.parent].append(joint)
        self.root = ET.Element("mujoco", model=description.name)
        ET.SubElement(self.root, "compiler", angle="radian", autolimits="true")
        ET.SubElement(self.root, "option", gravity=_many(robot.gravity))
        body, first = ET.SubElement(self.root, "worldbody"), description.root
        if description.floating or self._weight(first).mass:
            body = ET.SubElement(body, "body", name=_allowed(first))
        if description.floating:
            ET.SubElement(body, "freejoint", name="base")
        self._fill(body, first, weighs=True)
        equality = ET.SubElement(self.root, "equality")
        for joint in description.joints:
            if joint.mimic is not None:
                curve = _many(np.array([joint.mimic.offset, joint.mimic.multiplier, 0.0, 0.0, 0.0]))
                ET.SubElement(equality, "joint", joint1=joint.name, joint2=joint.mimic.joint, polycoef=curve)

    def _weight(self, name: str) -> Inertia:
        """Return the inertia of a link and of all that is fixed to it, in its axes."""
        total = entry_inertia(self.links[name])
        for joint in self.held[name]:
            if joint.kind == "fixed":
                total = total + self._weight(joint.child).moved(joint.rotation, joint.position)
        return total

    def _moves(self, name: str) -> bool:
        """Return whether a joint moves anything from a link outward."""
        return any(joint.kind != "fixed" or self._moves(joint.child) for joint in self.held[name])

    def _fill(self, body: ET.Element, name: str, weighs: bool) -> None:
        """Write what a link and those fixed to it weigh, if they have a body of their own, and all that hangs on it."""
        total = self._weight(name)
        if weighs and total.mass:
            _inertial(body, total)
        for joint in self.held[name]:
            if joint.kind == "fixed" and not self._moves(joint.child):
                self._sites(body, joint, _HERE)
            else:
                self._hang(body, joint)

    def _sites(self, body: ET.Element, joint: JointEntry, outer: Placement) -> None:
        """Write a link fixed to a body, and those fixed to it, as sites."""
        place = outer @ Placement(joint.rotation, joint.position)
        ET.SubElement(body, "site", {"name": joint.child, **_place(place)})
        for each in self.held[joint.child]:
            self._sites(body, each, place)

    def _hang(self, parent: ET.Element, joint: JointEntry) -> None:
        """Write the body that a joint holds; links without mass on the way to it become joints of it."""
        chain, place = [joint], Placement(joint.rotation, joint.position)
        while self.links[joint.child].mass is None and len(self.held[joint.child]) == 1:
            (joint,) = self.held[joint.child]
            chain.append(joint)
            place = place @ Placement(joint.rotation, joint.position)
        body, end = ET.SubElement(parent, "body", {"name": _allowed(joint.child), **_place(place)}), _HERE
        moved: list[Moved] = []
        for each in reversed(chain):
            moved.insert(0, Moved(each, end))
            end = Placement(each.rotation, each.position) @ end
        moved = [each for each in moved if each.joint.kind != "fixed"]
        for each in moved:
            _joint(body, each.joint, each.place.inverse())
        self._fill(body, joint.child, weighs=bool(moved))


def _allowed(name: str) -> str:
    return "world_" if name == "world" else name


def _joint(body: ET.Element, joint: JointEntry, place: Placement) -> None:
    """Write a joint; its frame is at `place` in the body's."""
    _refuse_unsayable(joint)
    axis = {} if joint.kind == "ball" else {"axis": _many(place.rotation @ joint.axis)}
    pos = {"pos": _many(place.position)} if place.position.any() else {}
    ET.SubElement(
        body, "joint", {"name": joint.name, "type": KINDS[joint.kind], **axis, **pos, **_physics(joint.physics)}
    )


def _refuse_unsayable(joint: JointEntry) -> None:
    physics = joint.physics
    differs = [field for field in ("damping", "friction") if uniform(getattr(physics, field)) is None]
    if joint.kind not in KINDS:
        words = f"is {joint.kind}, and MJCF has such joints between the world and a body only"
    elif physics.rotor is not None and physics.rotor.gyroscopic:
        words = "has a gyroscopic rotor, and MJCF knows reflected inertia only; make it a plain one"
    elif differs:
        words = f"has {' and '.join(differs)} that differ by axis, and MJCF knows one number"
    elif joint.kind == "ball" and np.any(physics.rest) and np.any(physics.stiffness):
        words = "has a spring that rests elsewhere than where the joint is at zero, as MJCF has it"
    else:
        return
    raise DefinitionError(f"joint {joint.name!r} {words}")


def _physics(physics: JointPhysics) -> dict[str, str]:
    rotor = physics.rotor
    reflected = 0.0 if rotor is None else rotor.gear**2 * rotor.inertia
    numbers = {
        "damping": uniform(physics.damping),
        "frictionloss": uniform(physics.friction),
        "armature": (uniform(physics.armature) or 0.0) + reflected,
        "stiffness": uniform(physics.stiffness),
        "springref": uniform(physics.rest),
    }
    found = {name: words(value) for name, value in numbers.items() if value}
    lower, upper, effort = (uniform(x) for x in (physics.lower, physics.upper, physics.effort))
    if lower is not None and upper is not None and np.isfinite([lower, upper]).any():
        found["range"] = _many(np.clip([lower, upper], -1e9, 1e9))
    if effort and np.isfinite(effort):
        found["actuatorfrcrange"] = _many(np.array([-effort, effort]))
    return found


def _inertial(body: ET.Element, inertia: Inertia) -> None:
    t = np.asarray(inertia.tensor)
    a, b, c = np.linalg.eigvalsh(t)
    if a < LEAST or a + b - c < LEAST:
        t = t + LEAST * np.eye(3)
    six = _many(np.array([t[0, 0], t[1, 1], t[2, 2], t[0, 1], t[0, 2], t[1, 2]]))
    center, mass = _many(np.asarray(inertia.center)), words(inertia.mass)
    ET.SubElement(body, "inertial", pos=center, mass=mass, fullinertia=six)


def _place(place: Placement) -> dict[str, str]:
    return {"pos": _many(place.position), "quat": _many(quaternion_of(place.rotation))}


def _many(vector: Array) -> str:
    return " ".join(repr(float(x) + 0.0) for x in vector)
