"""Read URDF."""

from __future__ import annotations

import io
import logging
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from legged.errors import DefinitionError, FileError
from legged.files import urdf_xml
from legged.files.description import Description, JointEntry, LinkEntry, Mimic, Shape
from legged.files.urdf_xml import KINDS, LARGEST, check
from legged.robot.physics import JointPhysics, Rotor

MOST_LINKS = 2000
_KINDS = {"continuous": "revolute", "floating": "free", "spherical": "ball"}


def parse_urdf(content: bytes, source: str) -> Description:
    """Return what the bytes of a URDF say; `source` names them in messages.

    Raises:
        FileError: telling what is wrong and where.
    """
    root = urdf_xml.parse(content, source)
    motors, lost_of_motors = rotors(root, source)
    beyond = read_beyond(root, source)
    lost = check(root, source)
    if len(root) > 2 * MOST_LINKS:
        raise FileError(source, f"has {len(root)} links and joints; a robot has at most {MOST_LINKS} links")
    _drop_shapeless(root, lost)
    model = _model(root, source)
    links = tuple(_link(link) for link in model.links)
    notes: Counter[str] = Counter()
    joints = tuple(
        _joint(joint, {"rotor": motors.get(joint.name), **beyond.get(joint.name, {})}, source, notes)
        for joint in model.joints
    )
    told = [f"{what} ({count})" if count > 1 else what for what, count in (lost + lost_of_motors + notes).items()]
    return Description(model.name, source, _root(links, joints, source), links, joints, None, tuple(told))


def _drop_shapeless(root: Any, lost: Counter[str]) -> None:
    """Take out collisions whose geometry is none that URDF knows."""
    for collision in root.findall("link/collision"):
        if not len(collision.find("geometry")):
            lost["<collision> without a shape that URDF knows"] += 1
            collision.getparent().remove(collision)


def _model(root: Any, source: str) -> Any:
    """Return yourdfpy's robot of a checked tree."""
    try:
        import yourdfpy
    except ImportError as error:
        raise FileError(source, "reading a URDF needs yourdfpy: pip install 'legged[urdf]'") from error
    logging.getLogger("yourdfpy").setLevel(logging.CRITICAL)
    return yourdfpy.URDF.load(io.BytesIO(urdf_xml.text(root)), build_scene_graph=False, load_meshes=False).robot


def _root(links: tuple[LinkEntry, ...], joints: tuple[JointEntry, ...], source: str) -> str:
    if not links:
        raise FileError(source, "has no links; a robot has one at least")
    held = Counter(joint.child for joint in joints)
    free = [link.name for link in links if link.name not in held]
    if not free:
        raise FileError(source, "every link hangs on another: the joints close a cycle; remove one")
    if len(free) > 1 and max(held.values(), default=0) < 2:  # a link held twice is told by `tree_of`
        names = ", ".join(map(repr, free[:5])) + (", ..." if len(free) > 5 else "")
        raise FileError(source, f"{len(free)} links hang on no joint ({names}); a robot has one root, so connect them")
    return free[0]


def _link(link: Any) -> LinkEntry:
    shapes = tuple(_shape(c) for c in link.collisions)
    if link.inertial is None:
        return LinkEntry(link.name, shapes=shapes)
    position, rotation = _place(link.inertial.origin)
    tensor = rotation @ link.inertial.inertia @ rotation.T
    return LinkEntry(link.name, link.inertial.mass, position, (tensor + tensor.T) / 2, shapes)


def _shape(collision: Any) -> Shape:
    geometry = collision.geometry
    position, rotation = _place(collision.origin)
    if geometry.sphere is not None:
        return Shape("sphere", (geometry.sphere.radius,), position, rotation)
    if geometry.box is not None:
        return Shape("box", tuple(map(float, geometry.box.size)), position, rotation)
    if geometry.cylinder is not None:
        return Shape("cylinder", (geometry.cylinder.radius, geometry.cylinder.length), position, rotation)
    return Shape("mesh", (), position, rotation)


def _place(origin: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    return (np.zeros(3), np.eye(3)) if origin is None else (origin[:3, 3].copy(), origin[:3, :3].copy())


def _joint(joint: Any, beyond: dict[str, Any], source: str, notes: Counter[str]) -> JointEntry:
    if joint.type not in KINDS:
        raise FileError(source, f"joint {joint.name!r} has the type {joint.type!r}; URDF knows {', '.join(KINDS)}")
    position, rotation = _place(joint.origin)
    mimic = joint.mimic and Mimic(joint.mimic.joint, joint.mimic.multiplier, joint.mimic.offset)
    kind = _KINDS.get(joint.type, joint.type)
    axis = np.array([0.0, 0.0, 1.0])
    if kind in ("revolute", "prismatic", "planar"):
        length = np.linalg.norm(joint.axis)
        if length < 1e-6:
            raise FileError(source, f"joint {joint.name!r} has the axis {joint.axis}; give it a direction")
        axis = joint.axis / length
    physics = _physics(joint, beyond, source, notes)
    return JointEntry(joint.name, kind, joint.parent, joint.child, position, rotation, axis, physics, mimic)


def _physics(joint: Any, beyond: dict[str, Any], source: str, notes: Counter[str]) -> JointPhysics:
    """Return a joint's physics; `beyond` holds fields that do not stand in <dynamics> and <limit>."""
    if joint.type == "fixed":
        return JointPhysics()
    damping = float((joint.dynamics and joint.dynamics.damping) or 0.0)
    friction = float((joint.dynamics and joint.dynamics.friction) or 0.0)
    if damping < 0 or friction < 0:
        raise FileError(
            source, f"joint {joint.name!r} has damping {damping:g} and friction {friction:g}; these are never negative"
        )
    lower, upper = _stops(joint, source, notes)
    effort, speed = (_limit(joint, what, source, notes) for what in ("effort", "velocity"))
    physics = JointPhysics(damping, friction, lower=lower, upper=upper, effort=effort, speed=speed)
    return replace(physics, **beyond)


def _stops(joint: Any, source: str, notes: Counter[str]) -> tuple[float, float]:
    """Return the range of a joint; none for a continuous one, and none where the file has 0 and 0 or nothing."""
    if joint.type not in ("revolute", "prismatic"):
        return -np.inf, np.inf
    lower, upper = (joint.limit.lower, joint.limit.upper) if joint.limit else (None, None)
    if lower is None and upper is None:
        notes["a joint without range, which is taken as unlimited"] += 1
        return -np.inf, np.inf
    lower, upper = lower or 0.0, upper or 0.0  # URDF's own default
    if lower > upper:
        raise FileError(source, f"joint {joint.name!r} has the range {lower:g} to {upper:g}; swap the two")
    if lower == upper == 0.0:
        notes["a joint with the range 0 to 0, which is taken as unlimited"] += 1
        return -np.inf, np.inf
    return lower, upper


def _limit(joint: Any, what: str, source: str, notes: Counter[str]) -> float:
    value = getattr(joint.limit, what) if joint.limit else None
    if value is None:
        return np.inf
    if value < 0:
        raise FileError(source, f"joint {joint.name!r} has the {what} limit {value:g}; it is never negative")
    if value == 0:
        notes[f"a joint with the {what} limit 0, which is taken as none"] += 1
        return np.inf
    return value


FIELDS = ("damping", "friction", "armature", "stiffness", "rest", "effort", "speed")
IN_URDF = ("damping", "friction", "effort", "speed")
ROTOR = ("rotor_inertia", "gear")
_NUMBERS = (*FIELDS, *ROTOR)


def read_beyond(root: Any, source: str) -> dict[str, dict[str, Any]]:
    """Return the fields of `JointPhysics` that the <physics> elements of a URDF (lxml) hold, by name of joint.

    Raises:
        FileError: for what is no field, no number, or a value that no joint has.
    """
    found = {}
    for element in root.iterfind("joint/physics"):
        where = f"<physics> of joint {element.getparent().get('name')!r} (line {element.sourceline})"
        known = (*_NUMBERS, "gyroscopic")
        unknown = sorted(set(element.attrib) - set(known))
        if unknown:
            raise FileError(source, f"{where} has {unknown}; it may have {', '.join(known)}")
        given = {name: _numbers(name, text, where, source) for name, text in element.attrib.items() if name in _NUMBERS}
        try:
            fields: dict[str, Any] = {name: value for name, value in given.items() if name in FIELDS}
            if "rotor_inertia" in given:
                is_gyroscopic = element.get("gyroscopic") == "true"
                fields["rotor"] = Rotor(given["rotor_inertia"], given.get("gear", 1.0), is_gyroscopic)
            JointPhysics(**fields)
        except DefinitionError as error:
            raise FileError(source, f"{where}: {error}") from error
        found[element.getparent().get("name")] = fields
    return found


def _numbers(name: str, text: str, where: str, source: str) -> Any:
    """Return one number, or an array of several where the field may have them."""
    try:
        values = np.array([float(word) for word in text.split()])
    except ValueError:
        values = np.zeros(0)
    too_large = name not in ("effort", "speed") and np.abs(values).max(initial=0.0) > LARGEST
    if not values.size or too_large or (name in ROTOR and values.size > 1):
        raise FileError(
            source, f"{name!r} of {where} must be a number (or numbers) of at most {LARGEST:g}, got {text!r}"
        )
    return float(values[0]) if values.size == 1 else values


RATIOS = ("mechanicalReduction", "mechanical_reduction", "gear_ratio")
INERTIAS = ("rotor_inertia", "rotorInertia", "motorInertia", "motor_inertia")


def rotors(root: Any, source: str) -> tuple[dict[str, Rotor], Counter[str]]:
    """Return the rotors of joints by name, and what was lost: transmissions without an inertia or of several joints.

    URDF knows a transmission's reduction but no rotor inertia. Files that have one write `rotor_inertia` (Drake's
    name) or `motorInertia` beside the reduction, in the text or as attribute `value`.
    """
    found: dict[str, Rotor] = {}
    lost: Counter[str] = Counter()
    names = {joint.get("name") for joint in root.findall("joint")}
    for element in root.findall("transmission"):
        joints = [joint.get("name") for joint in element.findall("joint")]
        inertia = _number(element, INERTIAS, source)
        if inertia is None:
            lost["<transmission> without rotor inertia"] += 1
        elif len(joints) != 1 or joints[0] not in names or joints[0] in found:
            lost["<transmission> of no joint, of several, or a second one of a joint"] += 1
        else:
            ratio = _number(element, RATIOS, source)
            if inertia < 0:
                raise FileError(source, f"the rotor of joint {joints[0]!r} has the inertia {inertia:g}; it is positive")
            found[joints[0]] = Rotor(inertia, 1.0 if ratio is None else ratio)
    return found, lost


def _number(transmission: Any, names: tuple[str, ...], source: str) -> float | None:
    for element in transmission.iter():
        if isinstance(element.tag, str) and element.tag.rpartition("}")[2] in names:
            text = element.get("value") or element.text or ""
            try:
                value = float(text)
            except ValueError:
                value = np.nan
            if not np.isfinite(value):
                raise FileError(
                    source, f"<{element.tag}> on line {element.sourceline} must be a finite number, got {text!r}"
                )
            return value
    return None
