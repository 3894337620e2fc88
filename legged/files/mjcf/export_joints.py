"""Export of joints to MJCF: elements, the limits of joints per body, and joints that MuJoCo simulates differently."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

import numpy as np

from legged.files.description import JointEntry
from legged.files.export_description import format_numbers, format_vector, uniform_value
from legged.robot.physics import JointPhysics
from legged.robot.placement import Placement

KINDS = {"revolute": "hinge", "prismatic": "slide", "ball": "ball"}
"""Joint types of MuJoCo."""
MOST_FREEDOMS = 6
"""Largest number of degrees of freedom of a body in MuJoCo."""
_FREEDOMS = {"fixed": 0, "ball": 3, "free": 6}  # of joints with another number than one


def fit_one_body(joints: Sequence[JointEntry]) -> bool:
    """Return whether MuJoCo allows joints in series on one body: up to six freedoms, no rotation after a ball."""
    kinds = [joint.kind for joint in joints if not joint.is_fixed]
    ball = next((k for k, kind in enumerate(kinds) if _FREEDOMS.get(kind, 1) > 1), len(kinds))
    freedoms = sum(_FREEDOMS.get(kind, 1) for kind in kinds)
    return freedoms <= MOST_FREEDOMS and all(kind == "prismatic" for kind in kinds[ball + 1 :])


def write_joint(body: ET.Element, joint: JointEntry, place: Placement) -> None:
    """Write a joint; `place` is its frame relative to the body frame. A free joint becomes three slides and a ball."""
    pos = {"pos": format_vector(place.position)} if place.position.any() else {}
    if joint.kind == "free":
        turning, moving = (physics_attributes(_half(joint.physics, part)) for part in (slice(0, 3), slice(3, 6)))
        for letter, axis in zip("xyz", place.rotation.T, strict=True):
            slide = {"name": f"{joint.name}_{letter}", "type": "slide", "axis": format_vector(axis)}
            ET.SubElement(body, "joint", {**slide, **moving})
        ET.SubElement(body, "joint", {"name": joint.name, "type": "ball", **pos, **turning})
        return
    axis = {} if joint.kind == "ball" else {"axis": format_vector(place.rotation @ joint.axis)}
    ET.SubElement(
        body,
        "joint",
        {"name": joint.name, "type": KINDS[joint.kind], **axis, **pos, **physics_attributes(joint.physics)},
    )


def _half(physics: JointPhysics, part: slice) -> JointPhysics:
    """Return damping, friction and armature of the rotation or the translation of a free joint."""
    fields = physics.damping, physics.friction, physics.armature
    damping, friction, armature = (np.broadcast_to(field, 6)[part] for field in fields)
    return JointPhysics(damping=damping, friction=friction, armature=armature)


def is_plain_free(joint: JointEntry) -> bool:
    """Return whether MuJoCo's free joint represents a joint on the world: its frame is that of the world."""
    fields = ("damping", "friction", "armature")
    is_alike = all(uniform_value(getattr(joint.physics, field)) is not None for field in fields)
    is_plain = not np.any(joint.physics.stiffness) and not np.isfinite(np.asarray(joint.physics.effort)).any()
    at_world = not joint.position.any() and np.array_equal(joint.rotation, np.eye(3))
    return is_alike and is_plain and at_world


def difference(joint: JointEntry) -> str:
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


def physics_attributes(physics: JointPhysics) -> dict[str, str]:
    """Return the attributes of a `joint` element for friction, springs, rotors and limits, without those at zero."""
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
