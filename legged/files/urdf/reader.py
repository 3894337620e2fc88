"""Read a URDF into a description; `legged.files.collision` opens meshes.

Besides the standard elements, joints may have an element <physics> for what URDF cannot represent (`save_urdf` writes
it, other programs ignore it), and transmissions may give a rotor inertia:

    <physics armature="0.01" stiffness="5" rest="0.2" rotor_inertia="1e-5" gear="9" gyroscopic="true"/>

Each attribute is one number, or one number for each degree of freedom; SI units, as in `JointPhysics`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from legged.errors import DefinitionError, FileError, LeggedError
from legged.files import embedded, reading
from legged.files.description import Description, JointEntry, LinkEntry, Mimic, Shape
from legged.files.urdf.schema import KINDS, LARGEST, MOMENTS, MOST_LINKS, check_schema, repeated_elements
from legged.files.urdf.shapes import numbers, placement, shape_of, visual_shape
from legged.robot.physics import JointPhysics, Rotor
from legged.robot.shapes import Material

_KINDS = {"continuous": "revolute", "floating": "free", "spherical": "ball"}


def parse_urdf(content: bytes, source: str) -> Description:
    """Return the description in a URDF.

    Args:
        content: Content of the file.
        source: Path, for messages.

    Raises:
        FileError: an invalid file; the message names the element and its line.
    """
    root = reading.parse(content, source)
    motors, lost_of_motors = read_rotors(root, source)
    extensions = read_physics_elements(root, source)
    repeated = repeated_elements(root)
    floating, gravity = embedded.stated_base(root)
    frictions = read_frictions(root, source)
    visuals = _visuals(root, source)
    lost = check_schema(root, source)
    if len(root) > 2 * MOST_LINKS:
        raise FileError(source, f"has {len(root)} links and joints; a robot has at most {MOST_LINKS} links")
    _remove_empty_collisions(root, lost)
    links = tuple(_link(link, frictions, visuals, source) for link in root.findall("link"))
    notes: Counter[str] = Counter()
    joints = tuple(_joint(joint, motors, extensions, source, notes) for joint in root.findall("joint"))
    unconverted = [
        f"{what} ({count})" if count > 1 else what for what, count in (lost + lost_of_motors + notes).items()
    ]
    return Description(
        root.get("name"),
        source,
        _root_name(links, joints, source),
        links,
        joints,
        floating,
        tuple(unconverted),
        gravity,
        repeated,
    )


def _remove_empty_collisions(root: Any, lost: Counter[str]) -> None:
    """Remove collision elements whose geometry is unknown to URDF."""
    for collision in root.findall("link/collision"):
        if not len(collision.find("geometry")):
            lost["<collision> without a shape known to URDF"] += 1
            collision.getparent().remove(collision)


def _root_name(links: tuple[LinkEntry, ...], joints: tuple[JointEntry, ...], source: str) -> str:
    """Return the name of the link without a parent; raise FileError if there is none or more than one."""
    if not links:
        raise FileError(source, "has no links; a robot needs at least one")
    held = Counter(joint.child for joint in joints)
    free = [link.name for link in links if link.name not in held]
    if not free:
        raise FileError(source, "every link has a parent, so the joints form a cycle; remove one")
    if len(free) > 1 and max(held.values(), default=0) < 2:  # `tree_of` reports a link with two parents
        names = ", ".join(map(repr, free[:5])) + (", ..." if len(free) > 5 else "")
        raise FileError(source, f"{len(free)} links have no parent ({names}); a robot has one root, so connect them")
    return free[0]


def _visuals(root: Any, source: str) -> dict[str, tuple[Shape, ...]]:
    """Return the visual shapes of each link, without those whose attributes cannot be read: the dynamics need none."""
    shapes: dict[str, list[Shape]] = {}
    for element in root.findall("link/visual"):
        try:
            shape = visual_shape(element, source)
        except FileError:
            continue
        if shape is not None:
            shapes.setdefault(element.getparent().get("name"), []).append(shape)
    return {link: tuple(own) for link, own in shapes.items()}


def _link(link: Any, frictions: dict[str, Material], visuals: dict[str, tuple[Shape, ...]], source: str) -> LinkEntry:
    name = link.get("name")
    shapes = tuple(
        replace(shape, material=frictions.get(name))
        for collision in link.findall("collision")
        if (shape := shape_of(collision, source)) is not None
    )
    inertial = link.find("inertial")
    if inertial is None:
        return LinkEntry(name, shapes=shapes, visuals=visuals.get(name, ()))
    position, rotation = placement(inertial.find("origin"), source)
    xx, xy, xz, yy, yz, zz = (_value(inertial.find("inertia"), moment) for moment in MOMENTS)
    tensor = rotation @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ rotation.T
    mass = _value(inertial.find("mass"), "value")
    return LinkEntry(name, mass, position, (tensor + tensor.T) / 2, shapes, visuals.get(name, ()))


def _joint(
    joint: Any, rotors: dict[str, Rotor], extensions: dict[str, dict[str, Any]], source: str, notes: Counter[str]
) -> JointEntry:
    name, kind = joint.get("name"), joint.get("type")
    if kind not in KINDS:
        raise FileError(source, f"joint {name!r} has the type {kind!r}; the types of URDF are {', '.join(KINDS)}")
    axis = np.array([0.0, 0.0, 1.0])
    if kind in ("revolute", "continuous", "prismatic", "planar"):
        direction = numbers(joint.find("axis"), "xyz", "1 0 0", source)
        length = np.linalg.norm(direction)
        if length < 1e-6:
            raise FileError(source, f"joint {name!r} has the axis {direction}; give it a direction")
        axis = direction / length
    return JointEntry(
        name,
        _KINDS.get(kind, kind),
        joint.find("parent").get("link"),
        joint.find("child").get("link"),
        *placement(joint.find("origin"), source),
        axis,
        _physics(joint, {"rotor": rotors.get(name), **extensions.get(name, {})}, source, notes),
        _mimic(joint.find("mimic")),
    )


def _mimic(mimic: Any) -> Mimic | None:
    if mimic is None:
        return None
    return Mimic(mimic.get("joint"), _value(mimic, "multiplier", 1.0), _value(mimic, "offset", 0.0))


def _value(element: Any, name: str, default: Any = None) -> Any:
    """Return the number in an attribute that the schema has checked; `default` without the element or attribute."""
    text = None if element is None else element.get(name)
    return default if text is None else float(text)


def _physics(joint: Any, extension: dict[str, Any], source: str, notes: Counter[str]) -> JointPhysics:
    """Return the physics of a joint; `extension` holds fields that are not in <dynamics> or <limit>."""
    if joint.get("type") == "fixed":
        return JointPhysics()
    damping, friction = (_value(joint.find("dynamics"), name, 0.0) for name in ("damping", "friction"))
    if damping < 0 or friction < 0:
        words = f"has damping {damping:g} and friction {friction:g}; these must not be negative"
        raise FileError(source, f"joint {joint.get('name')!r} {words}")
    lower, upper = _stops(joint, source, notes)
    effort, speed = (_limit(joint, what, source, notes) for what in ("effort", "velocity"))
    physics = JointPhysics(damping, friction, lower=lower, upper=upper, effort=effort, speed=speed)
    return replace(physics, **extension)


def _stops(joint: Any, source: str, notes: Counter[str]) -> tuple[float, float]:
    """Return the range of a joint; infinite for a continuous joint, and where the file has 0 and 0 or no range."""
    if joint.get("type") not in ("revolute", "prismatic"):
        return -np.inf, np.inf
    lower, upper = (_value(joint.find("limit"), end) for end in ("lower", "upper"))
    if lower is None and upper is None:
        notes["a joint without a range, treated as unlimited"] += 1
        return -np.inf, np.inf
    if lower is None or upper is None:  # URDF's own default is 0
        missing, given = ("lower", upper or 0.0) if lower is None else ("upper", lower)
        if (given < 0.0) if lower is None else (given > 0.0):
            notes[f"a joint whose range has no {missing} end and excludes 0, treated as unlimited there"] += 1
            return (-np.inf, given) if lower is None else (given, np.inf)
        if given:
            notes[f"a joint whose range has no {missing} end, which is 0 by URDF's default"] += 1
    lower, upper = lower or 0.0, upper or 0.0
    if lower > upper:
        raise FileError(source, f"joint {joint.get('name')!r} has the range {lower:g} to {upper:g}; swap the two")
    if lower == upper == 0.0:
        notes["a joint with the range 0 to 0, treated as unlimited"] += 1
        return -np.inf, np.inf
    return lower, upper


def _limit(joint: Any, what: str, source: str, notes: Counter[str]) -> float:
    value = _value(joint.find("limit"), what)
    if value is None:
        return np.inf
    if value < 0:
        name = joint.get("name")
        raise FileError(source, f"joint {name!r} has the {what} limit {value:g}; it must not be negative (0: no limit)")
    if value == 0:
        notes[f"a joint with the {what} limit 0, treated as unlimited"] += 1
        return np.inf
    return value


FIELDS = ("damping", "friction", "armature", "stiffness", "rest", "effort", "speed")
"""Fields of `JointPhysics` that are attributes of <physics>."""
IN_URDF = ("damping", "friction", "effort", "speed")
"""Fields that <dynamics> and <limit> represent if they are the same for all degrees of freedom of a joint."""
ROTOR = ("rotor_inertia", "gear")
_NUMBERS = (*FIELDS, *ROTOR)


def read_physics_elements(root: Any, source: str) -> dict[str, dict[str, Any]]:
    """Return the fields of `JointPhysics` in the <physics> elements of a URDF (lxml), by name of joint.

    Raises:
        FileError: an unknown attribute, or a value that is not a number or out of range.
    """
    physics = {}
    for element in root.iterfind("joint/physics"):
        where = f"<physics> of joint {element.getparent().get('name')!r} (line {element.sourceline})"
        known = (*_NUMBERS, "gyroscopic")
        unknown = sorted(set(element.attrib) - set(known))
        if unknown:
            raise FileError(source, f"{where} has unknown attributes {unknown}; known are {', '.join(known)}")
        given = {name: _numbers(name, text, where, source) for name, text in element.attrib.items() if name in _NUMBERS}
        try:
            fields: dict[str, Any] = {name: value for name, value in given.items() if name in FIELDS}
            gyroscopic = element.get("gyroscopic", "false")
            if gyroscopic not in ("true", "false"):
                raise FileError(source, f"'gyroscopic' of {where} must be true or false, got {gyroscopic!r}")
            if "rotor_inertia" in given:
                fields["rotor"] = Rotor(given["rotor_inertia"], given.get("gear", 1.0), gyroscopic == "true")
            JointPhysics(**fields)
        except DefinitionError as error:
            raise FileError(source, f"{where}: {error}") from error
        physics[element.getparent().get("name")] = fields
    return physics


def _numbers(name: str, text: str, where: str, source: str) -> Any:
    """Return one number, or an array if there are several."""
    try:
        values = np.array([float(word) for word in text.split()])
    except ValueError:
        values = np.zeros(0)
    too_large = name not in ("effort", "speed") and np.abs(values).max(initial=0.0) > LARGEST
    if not values.size or too_large or (name in ROTOR and values.size > 1):
        wanted = f"one number{'' if name in ROTOR else ' or several'}, of at most {LARGEST:g}"
        raise FileError(source, f"{name!r} of {where} must be {wanted}, got {text!r}")
    return float(values[0]) if values.size == 1 else values


RATIOS = ("mechanicalReduction", "mechanical_reduction", "gear_ratio")
INERTIAS = ("rotor_inertia", "rotorInertia", "motorInertia", "motor_inertia")


def read_frictions(root: Any, source: str) -> dict[str, Material]:
    """Return the friction that a URDF states for Gazebo, by name of link, as materials named after their friction.

        <gazebo reference="left_foot"> <mu1>0.8</mu1> <mu2>0.8</mu2> </gazebo>

    The friction is mu1; mu2, the friction in the perpendicular direction, is ignored.

    Args:
        root: Root element (lxml).
        source: Path, for messages.
    """
    frictions: dict[str, Material] = {}
    for element in root.findall("gazebo"):
        friction = _number(element, ("mu1",), source)
        if friction is not None and element.get("reference"):
            try:
                frictions[element.get("reference")] = Material(f"friction {friction:g}", friction)
            except LeggedError as error:
                raise FileError(source, f"mu1 of <gazebo> (line {element.sourceline}): {error}") from error
    return frictions


def read_rotors(root: Any, source: str) -> tuple[dict[str, Rotor], Counter[str]]:
    """Return the rotors by name of joint, and counts of the transmissions without an inertia or with several joints.

    URDF defines the reduction of a transmission but no rotor inertia. Files with an inertia write `rotor_inertia` (as
    Drake does) or `motorInertia` beside the reduction, as text or as attribute `value`.
    """
    rotors: dict[str, Rotor] = {}
    lost: Counter[str] = Counter()
    names = {joint.get("name") for joint in root.findall("joint")}
    for element in root.findall("transmission"):
        joints = [joint.get("name") for joint in element.findall("joint")]
        inertia = _number(element, INERTIAS, source)
        if inertia is None:
            lost["<transmission> without rotor inertia"] += 1
        elif len(joints) != 1 or joints[0] not in names or joints[0] in rotors:
            lost["<transmission> of no joint, of several, or a second one of a joint"] += 1
        else:
            ratio = _number(element, RATIOS, source)
            if inertia < 0:
                raise FileError(
                    source, f"the rotor of joint {joints[0]!r} has the inertia {inertia:g}; it must not be negative"
                )
            rotors[joints[0]] = Rotor(inertia, 1.0 if ratio is None else ratio)
    return rotors, lost


def _number(parent: Any, names: tuple[str, ...], source: str) -> float | None:
    """Return the number in the first descendant of an element with one of these names; None without such a descendant.

    Raises:
        FileError: It is not a finite number.
    """
    for element in parent.iter():
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
