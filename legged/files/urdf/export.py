"""Write robots as URDF."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np

from legged.checked import checked
from legged.files import embedded
from legged.files.description import JointEntry, LinkEntry, Shape
from legged.files.export_description import (
    describe_robot,
    format_numbers,
    format_vector,
    losses,
    uniform_value,
    warn_of_losses,
)
from legged.files.urdf.reader import FIELDS, IN_URDF
from legged.files.urdf.schema import LARGEST
from legged.output import write_file
from legged.robot.base import FloatingBase
from legged.robot.physics import JointPhysics
from legged.robot.robot import Robot
from legged.robot.shapes import Ellipsoid, Hull
from legged.rotations import euler_angles
from legged.spatial import Array

KINDS = {"free": "floating", "ball": "spherical"}
"""Joint types of URDF where the names differ; "spherical" is an extension read by MuJoCo and Bullet."""
ZERO_EFFORT = 1e-90
"""Effort limit written for a joint without a motor, [N m] or [N], since 0 means no limit."""


@checked
def save_urdf(robot: Robot, path: str | Path) -> Path:
    """Write a robot to a URDF file, and return its path.

    `legged.load` reads back the same robot to the last digit from the element <legged>, which holds its description;
    see `legged.files.embedded`. Other programs, and `legged.load` once the file was changed, read the other elements:

    - A joint of several degrees of freedom becomes a chain with massless links: `hip` becomes `hip_1`, `hip_2`, and a
      planar joint `p_TX`, `p_TY`, `p_RZ`.
    - A planar or Euler-angle base becomes a chain from a new root link "world": `base_x`, `base_phi`, ...
    - A quaternion ball joint has the type "spherical", which MuJoCo and Bullet support and ROS and Pinocchio do not.
      For these define it with Euler angles.
    - Contact points become massless fixed links, which `legged.load(path, feet=[...])` with their names converts back.
      If a link has the name of a contact point, the new link gets a trailing underscore.
    - Armature, springs and rotors are written to <physics>, which other programs ignore: see
      `legged.files.urdf.reader`.
    - An effort or speed limit of 0 means no limit; a missing stop is written as 1e9.
    - Collision shapes and round feet become <collision> elements, capsules a cylinder and two spheres. URDF has no
      ellipsoids, and hulls would need files of their own: these are in the element <legged> only, and a
      `legged.errors.FileWarning` states their number.

    Without description, that is for a joint or base of a user's own class, a `legged.errors.FileWarning` lists what the
    elements lack: the planar or Euler-angle base, the order of the joints and the partition into modules, where they
    differ from what `legged.load` assumes.
    """
    root = _to_element(robot)
    lost = []
    if not embedded.add_to_urdf(root, robot):
        lost = losses(robot)
        own = robot.base.physics
        if isinstance(robot.base, FloatingBase) and (np.any(own.armature) or np.any(own.damping)):
            lost.append("armature and damping of the base")
    left_out = sum(isinstance(shape, Ellipsoid | Hull) for link in robot.links for shape in link.shapes)
    if left_out:
        lost.append(f"the {left_out} ellipsoids and hulls of the robot, which other programs will not see")
    warn_of_losses("URDF", lost)
    return write_file(path, _to_bytes(root), ".urdf", ".xml")


def to_urdf(robot: Robot) -> bytes:
    """Return the URDF of a robot as UTF-8 text, without the element <legged>; see `save_urdf`."""
    return _to_bytes(_to_element(robot))


def _to_element(robot: Robot) -> ET.Element:
    description = describe_robot(robot)
    root = ET.Element("robot", name=description.name)
    gravity = " ".join(f"{x:g}" for x in robot.gravity)
    root.append(ET.Comment(f" base: {robot.base.kind}; gravity: {gravity} m/s^2; forward +x, up +z "))
    for link in description.links:
        _link(ET.SubElement(root, "link", name=link.name), link)
    for joint in description.joints:
        _joint(root, joint)
    return root


def _to_bytes(root: ET.Element) -> bytes:
    ET.indent(root)
    return ET.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"


def _link(element: ET.Element, link: LinkEntry) -> None:
    for shape in (part for each in link.shapes for part in _in_urdf(each)):
        collision = ET.SubElement(element, "collision")
        ET.SubElement(collision, "origin", _origin(shape.position, shape.rotation))
        geometry = ET.SubElement(collision, "geometry")
        ET.SubElement(geometry, shape.kind, _SIZES[shape.kind](shape.size))
    if link.mass is None:
        return
    inertial, t = ET.SubElement(element, "inertial"), link.tensor
    ET.SubElement(inertial, "origin", xyz=format_vector(link.center), rpy="0 0 0")
    ET.SubElement(inertial, "mass", value=format_numbers(link.mass))
    places = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}
    ET.SubElement(inertial, "inertia", {name: format_numbers(t[place]) for name, place in places.items()})


_SIZES: dict[str, Callable[[tuple[float, ...]], dict[str, str]]] = {
    "sphere": lambda size: {"radius": repr(size[0])},
    "cylinder": lambda size: {"radius": repr(size[0]), "length": repr(size[1])},
    "box": lambda size: {"size": format_vector(np.array(size))},
}
"""The shapes of URDF but meshes: kind -> attributes for its sizes."""


def _in_urdf(shape: Shape) -> list[Shape]:
    """Return shapes of URDF whose union is a shape: a cylinder and two spheres for a capsule.

    The list is empty for an ellipsoid, which URDF lacks, and a mesh, which would need a file of its own.
    """
    if shape.kind != "capsule":
        return [shape] if shape.kind in _SIZES else []
    radius, length = shape.size
    along = shape.rotation @ np.array([0.0, 0.0, length / 2])
    ends = [Shape("sphere", (radius,), shape.position + end, np.eye(3)) for end in (-along, along)]
    return [Shape("cylinder", shape.size, shape.position, shape.rotation), *ends]


def _joint(root: ET.Element, joint: JointEntry) -> None:
    element = ET.SubElement(root, "joint", name=joint.name, type=_type(joint))
    ET.SubElement(element, "origin", _origin(joint.position, joint.rotation))
    ET.SubElement(element, "parent", link=joint.parent)
    ET.SubElement(element, "child", link=joint.child)
    if joint.is_fixed:
        return
    if joint.kind in ("revolute", "prismatic"):
        ET.SubElement(element, "axis", xyz=format_vector(joint.axis))
    _limit(element, joint)
    dynamics = {name: uniform_value(getattr(joint.physics, name)) for name in ("damping", "friction")}
    if any(dynamics.values()):
        ET.SubElement(
            element, "dynamics", {name: format_numbers(value) for name, value in dynamics.items() if value is not None}
        )
    if joint.mimic is not None:
        mimic = joint.mimic
        factors = {"multiplier": format_numbers(mimic.multiplier), "offset": format_numbers(mimic.offset)}
        ET.SubElement(element, "mimic", {"joint": mimic.joint, **factors})
    extension = physics_attributes(joint.physics)
    if extension:
        ET.SubElement(element, "physics", extension)


def _origin(position: Array, rotation: Array) -> dict[str, str]:
    roll_pitch_yaw = euler_angles("zyx", rotation)[::-1]
    return {"xyz": format_vector(position), "rpy": format_vector(roll_pitch_yaw)}


def _type(joint: JointEntry) -> str:
    if joint.kind == "revolute" and not _stops(joint.physics):
        return "continuous"
    return KINDS.get(joint.kind, joint.kind)


def _stops(physics: JointPhysics) -> dict[str, str]:
    """Return the range of a joint of one degree of freedom; empty if it has no stop."""
    lower, upper = uniform_value(physics.lower), uniform_value(physics.upper)
    if lower is None or upper is None or (np.isinf(lower) and np.isinf(upper)):
        return {}
    return {"lower": format_numbers(max(lower, -LARGEST)), "upper": format_numbers(min(upper, LARGEST))}


def _limit(element: ET.Element, joint: JointEntry) -> None:
    """Write <limit>, which is required except for continuous joints."""
    stops = _stops(joint.physics)
    motor = {"effort": uniform_value(joint.physics.effort), "velocity": uniform_value(joint.physics.speed)}
    unlimited = all(limit is None or np.isinf(limit) for limit in motor.values())
    if unlimited and not stops and joint.kind != "prismatic":
        return
    ET.SubElement(element, "limit", {**stops, **{name: _motor(limit) for name, limit in motor.items()}})


def _motor(limit: float | None) -> str:
    """Return a limit of effort or speed as text: "0" without a limit, `ZERO_EFFORT` for a limit of 0."""
    return "0" if limit is None or np.isinf(limit) else format_numbers(max(limit, ZERO_EFFORT))


def physics_attributes(physics: JointPhysics) -> dict[str, str]:
    """Return the attributes of <physics>: joint physics that <dynamics> and <limit> cannot represent."""
    attributes = {}
    for field in FIELDS:
        value = np.asarray(getattr(physics, field))
        fits = field in IN_URDF and uniform_value(value) is not None
        if value.any() and not fits:
            attributes[field] = format_numbers(value)
    if physics.rotor is not None:
        rotor = physics.rotor
        attributes |= {"rotor_inertia": repr(float(rotor.inertia)), "gear": repr(float(rotor.gear))}
        attributes |= {"gyroscopic": "true"} if rotor.gyroscopic else {}
    return attributes
