"""Robots as plain data: nested dicts, lists, numbers and texts that JSON, YAML and pickle can store.

The data contain what `RobotBuilder` takes, so that a robot read from them is built and checked like any other. Numbers
are those of the robot to the last digit. An entry may be left out if it has its default value. The layout is in
`docs/howto/robots.md`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from legged.arguments import instance, known_name, number, rounded_array, text, whole
from legged.errors import DefinitionError
from legged.robot.base import Base, EulerBase, FixedBase, FloatingBase, PlanarBase
from legged.robot.construction.builder import RobotBuilder
from legged.robot.construction.edit import errors_of
from legged.robot.construction.graph import GRAVITY, links_of
from legged.robot.inertia import Inertia
from legged.robot.joint import (
    Connection,
    ConstantVelocity,
    Cylindrical,
    Fixed,
    Free,
    Joint,
    Planar,
    Prismatic,
    Revolute,
    Screw,
    Spherical,
    Universal,
)
from legged.robot.link import Link
from legged.robot.physics import NUMBERS, UNLIMITED, JointPhysics, Rotor
from legged.robot.robot import Robot
from legged.robot.shapes import SHAPES, Material, Shape, Sphere
from legged.spatial import Array

VERSION = 1
_KINDS = Revolute, Prismatic, Screw, Cylindrical, Universal, ConstantVelocity, Spherical, Planar, Free, Fixed
JOINTS = {kind.__name__.lower(): kind for kind in _KINDS}
BASES = {"fixed": FixedBase, "planar": PlanarBase, "floating": FloatingBase, "euler": EulerBase}


def describe(robot: Robot) -> dict[str, Any]:
    """Return a robot as plain data, from which `from_description` builds it again.

    Args:
        robot: The robot. Its audit is not part of the data.

    Raises:
        DefinitionError: For a joint or base of a class that is not the toolkit's.
    """
    return {
        "format": "legged robot",
        "version": VERSION,
        "name": robot.name,
        "gravity": robot.gravity.tolist(),
        "base": _base(robot.base),
        "links": [_link(link) for link in links_of(robot)],
        "joints": [_joint(c) for c in robot.connections],
        "couplings": [
            {"follower": f.name, "master": f.master, "ratio": f.ratio, "offset": f.offset} for f in robot.followers
        ],
        "modules": [list(module.links) for module in robot.modules],
        "order": [joint.name for joint in robot.joints],
    }


def from_description(data: Mapping[str, Any]) -> Robot:
    """Return the robot of plain data such as `describe` returns.

    Args:
        data: The data. "name", "links" and "joints" are required.

    Raises:
        DefinitionError: For missing entries, and for all that `RobotBuilder` refuses.
        UnknownNameError: For unknown entries, kinds and names.
        ArgumentError, ShapeError, NotFiniteError: For values of the wrong form; the message says where they are.
    """
    defaults = {"format": "legged robot", "version": VERSION, "gravity": GRAVITY, "base": {"kind": "floating"}}
    instance("data", data, Mapping, "a mapping")
    parts = _entries("the robot", data, ("name", "links", "joints"), (*defaults, "couplings", "modules", "order"))
    parts = defaults | parts
    if parts["format"] != "legged robot" or parts["version"] != VERSION:
        raise DefinitionError(
            f"the data have the format {parts['format']!r}, version {parts['version']}; this version of the toolkit "
            f"reads 'legged robot', version {VERSION}"
        )
    links = [_read_link(link) for link in _list("links", parts["links"])]
    if not links:
        raise DefinitionError("the robot has no links; the first link is the base")
    base, gravity = _read_base(parts["base"]), rounded_array("gravity", parts["gravity"], (3,))
    builder = RobotBuilder(text("the name of the robot", parts["name"]), links[0], base=base, gravity=gravity)
    for link in links[1:]:
        builder.link(link)
    for joint in _list("joints", parts["joints"]):
        _add_joint(builder, joint)
    for coupling in _list("couplings", parts.get("couplings", ())):
        own = _entries("a coupling", coupling, ("follower", "master"), ("ratio", "offset"))
        for name in ("ratio", "offset"):
            own[name] = number(f"{name} of a coupling", own.get(name, float(name == "ratio")))
        builder.couple(**own)
    modules, order = parts.get("modules"), parts.get("order")
    return builder.build(
        modules if modules is None else [_names("modules", module) for module in _list("modules", modules)],
        order if order is None else _names("order", order),
    )


# From robots to data


def _base(base: Base) -> dict[str, Any]:
    if BASES.get(base.kind) is not type(base):
        raise DefinitionError(
            f"plain data cannot contain a base of class {type(base).__name__}; use one of the toolkit"
        )
    data: dict[str, Any] = {"kind": base.kind}
    if isinstance(base, EulerBase):
        data["sequence"] = base.sequence
    if not isinstance(base, FixedBase):
        data |= {name: value for name in ("armature", "damping") if (value := getattr(base, name))}
    return data


def _link(link: Link) -> dict[str, Any]:
    inertia = link.inertia
    data: dict[str, Any] = {
        "name": link.name,
        "mass": inertia.mass,
        "center": np.asarray(inertia.center).tolist(),
        "tensor": np.asarray(inertia.tensor).tolist(),
    }
    if not inertia.checked:
        data["checked"] = False
    if link.contacts:
        data["contacts"] = [_contact(name, at) for name, at in link.contacts.items()]
    if link.shapes:
        data["shapes"] = [describe_shape(shape) for shape in link.shapes]
    if link.material is not None:
        data["material"] = asdict(link.material)
    if link.is_foot is not None:
        data["is_foot"] = link.is_foot
    return data


def _contact(name: str, at: Any) -> dict[str, Any]:
    if isinstance(at, Sphere):
        material = {} if at.material is None else {"material": asdict(at.material)}
        return {"name": name, "position": np.asarray(at.center).tolist(), "radius": at.radius, **material}
    return {"name": name, "position": np.asarray(at).tolist()}


def describe_shape(shape: Shape) -> dict[str, Any]:
    """Return a shape as plain data, from which `read_shape` builds it again.

    Args:
        shape: The shape.
    """
    geometry = [entry.name for entry in fields(shape) if entry.name != "material"]
    values = {name: np.asarray(getattr(shape, name)).tolist() for name in geometry}
    material = {} if shape.material is None else {"material": asdict(shape.material)}
    return {"kind": type(shape).__name__.lower(), **values, **material}


def _joint(c: Connection) -> dict[str, Any]:
    joint = c.joint
    if JOINTS.get(joint.kind) is not type(joint):
        words = f"joint {joint.name!r}: plain data cannot contain a joint of class {type(joint).__name__}"
        raise DefinitionError(f"{words}; use one of the toolkit")
    data: dict[str, Any] = {"name": joint.name, "kind": joint.kind, "parent": c.parent, "child": c.child}
    data |= {"position": c.start.position.tolist(), "rotation": c.start.rotation.tolist()}
    for name in _geometry(type(joint)):
        value = getattr(joint, name)
        data[name] = value if value is None or isinstance(value, str) else np.asarray(value, float).tolist()
    physics = _physics(joint.physics)
    return data | ({"physics": physics} if physics else {})


def _geometry(kind: type[Joint]) -> list[str]:
    """Return the names of the attributes of a class of joints that define its motion."""
    return [field.name for field in fields(kind) if field.name not in ("name", "physics")]


def _physics(physics: JointPhysics) -> dict[str, Any]:
    """Return the values that differ from the defaults; None stands for an infinite limit."""
    data: dict[str, Any] = {}
    for name in NUMBERS:
        value = np.asarray(getattr(physics, name))
        if value.shape or value != UNLIMITED.get(name, 0.0):
            data[name] = _json(value.tolist())
    if physics.rotor is not None:
        rotor = physics.rotor
        data["rotor"] = {"inertia": rotor.inertia, "gear": rotor.gear, "gyroscopic": rotor.gyroscopic}
    return data


def _json(value: Any) -> Any:
    """Return a number or a list of numbers with None for infinite ones."""
    if isinstance(value, list):
        return [_json(entry) for entry in value]
    return value if np.isfinite(value) else None


# From data to robots


def _read_base(data: Any) -> Base:
    kind = known_name("base", instance("the base", data, Mapping, "a mapping with a kind").get("kind"), BASES)
    numbers = () if kind == "fixed" else ("armature", "damping")
    optional = ("sequence", *numbers) if kind == "euler" else numbers
    own = _entries(f"the base of kind {kind!r}", data, ("kind",), optional)
    del own["kind"]
    for name in own:
        what = f"{name} of the base"
        own[name] = text(what, own[name]) if name == "sequence" else number(what, own[name], least=0.0)
    return BASES[kind](**own)


def _read_link(data: Any) -> Link:
    name, what = _name("link", data)
    optional = ("mass", "center", "tensor", "checked", "contacts", "shapes", "material", "is_foot")
    own = _entries(what, data, ("name",), optional)
    mass = number(f"mass of {what}", own.get("mass", 0.0), "kg")
    center = rounded_array(f"center of {what}", own.get("center", np.zeros(3)), (3,))
    tensor = rounded_array(f"tensor of {what}", own.get("tensor", np.zeros(3)))
    checked = instance(f"checked of {what}", own.get("checked", True), bool, "True or False")
    contacts = {}
    for point in _list(f"contacts of {what}", own.get("contacts", ())):
        contact, where = _name("contact point", point)
        if contact in contacts:
            raise DefinitionError(f"{what} has two contact points named {contact!r}; names must differ")
        contacts[contact] = _read_contact(where, point)
    shapes = [read_shape(what, shape) for shape in _list(f"shapes of {what}", own.get("shapes", ()))]
    is_foot = own.get("is_foot")
    if is_foot is not None:
        instance(f"is_foot of {what}", is_foot, bool, "True or False")
    with errors_of(what):
        return Link(name, Inertia(mass, center, tensor, checked), contacts, shapes, _read_material(what, own), is_foot)


def _read_contact(what: str, data: Any) -> Array | Sphere:
    own = _entries(what, data, ("name",), ("position", "radius", "material"))
    position = rounded_array(f"position of {what}", own.get("position", np.zeros(3)), (3,))
    if "radius" not in own:
        return position
    return Sphere(number(f"radius of {what}", own["radius"], "m", above=0.0), position, _read_material(what, own))


def _read_material(what: str, own: Mapping[str, Any]) -> Material | None:
    data = own.get("material")
    if data is None:
        return None
    what = f"the material of {what}"
    parts = _entries(what, data, ("name", "friction"), ("restitution", "priority"))
    name, priority = text(f"name of {what}", parts["name"]), whole(f"priority of {what}", parts.get("priority", 0))
    friction, restitution = (number(f"{key} of {what}", parts.get(key, 0.0)) for key in ("friction", "restitution"))
    with errors_of(what):
        return Material(name, friction, restitution, priority)


def read_shape(what: str, data: Any) -> Shape:
    """Return the shape of plain data such as `describe_shape` returns.

    Args:
        what: Name of what has the shape, for messages. data: The data.

    Raises:
        DefinitionError, UnknownNameError, ArgumentError, ShapeError, NotFiniteError: As `from_description`.
    """
    what = f"a shape of {what}"
    name = known_name("shape", instance(what, data, Mapping, "a mapping with a kind").get("kind"), SHAPES)
    names = [entry.name for entry in fields(SHAPES[name])]
    optional = [entry for entry in names if entry in _OPTIONAL]
    own = _entries(what, data, ("kind", *(entry for entry in names if entry not in optional)), optional)
    values = {}
    for entry in names:
        if entry in own and entry != "material":
            where, shape = f"{entry} of {what}", _SHAPE_ARRAYS.get(entry)
            values[entry] = (
                rounded_array(where, own[entry], shape) if shape else number(where, own[entry], "m", above=0.0)
            )
    with errors_of(what):
        return SHAPES[name](**values, material=_read_material(what, own))


_SHAPE_ARRAYS = {"center": (3,), "rotation": (3, 3), "size": (3,), "radii": (3,), "vertices": (None, 3)}
_OPTIONAL = ("center", "rotation", "material")
"""Entries of shapes that may be left out."""


def _add_joint(builder: RobotBuilder, data: Any) -> None:
    name, what = _name("joint", data)
    kind = JOINTS[known_name("kind of joint", data.get("kind"), JOINTS)]
    geometry = _geometry(kind)
    required = ("name", "kind", "parent", "child", *(("pitch",) if kind is Screw else ()))
    own = _entries(what, data, required, ("position", "rotation", "physics", *geometry))
    motion: dict[str, Any] = {k: _motion(k, what, own[k]) for k in geometry if k in own}
    physics = _read_physics(what, own.get("physics", {}))
    builder.joint(
        kind(name, **motion, physics=physics),
        parent=text(f"parent of {what}", own["parent"]),
        child=text(f"child of {what}", own["child"]),
        at=rounded_array(f"position of {what}", own.get("position", np.zeros(3)), (3,)),
        rotation=rounded_array(f"rotation of {what}", own.get("rotation", np.eye(3)), (3, 3)),
    )


def _motion(name: str, what: str, value: Any) -> str | float | Array | None:
    """Return an axis by name or as a vector, the pitch of a screw, or a ball joint's axes; None for a quaternion."""
    if name == "pitch":
        return number(f"pitch of {what}", value, "m/rad")
    if name == "sequence":
        return None if value is None else text(f"sequence of {what}", value)
    return value if isinstance(value, str) else rounded_array(f"{name} of {what}", value, (3,))


def _read_physics(what: str, data: Any) -> JointPhysics:
    own = _entries(f"the physics of {what}", data, (), (*NUMBERS, "rotor"))
    rotor = own.pop("rotor", None)
    values: dict[str, Any] = {name: _limits(f"{name} of {what}", name, value) for name, value in own.items()}
    if rotor is not None:
        parts = _entries(f"the rotor of {what}", rotor, ("inertia",), ("gear", "gyroscopic"))
        inertia, gear = (number(f"{k} of the rotor of {what}", parts.get(k, 1.0)) for k in ("inertia", "gear"))
        gyroscopic = instance(f"gyroscopic of the rotor of {what}", parts.get("gyroscopic", False), bool)
        with errors_of(what):
            values["rotor"] = Rotor(inertia, gear, gyroscopic)
    with errors_of(what):
        return JointPhysics(**values)


def _limits(what: str, name: str, value: Any) -> Array:
    """Return one number of a joint, or one per degree of freedom; None stands for an infinite limit."""
    several = isinstance(value, list | tuple)
    entries = list(value) if several else [value]
    numbers = np.array(
        [UNLIMITED[name] if x is None and name in UNLIMITED else number(what, x) for x in entries], float
    )
    return numbers if several else numbers[0]


def _name(what: str, data: Any) -> tuple[str, str]:
    """Return the name of a link, joint or contact point, and the description of it for messages."""
    if "name" not in instance(f"a {what}", data, Mapping, "a mapping with a name"):
        raise DefinitionError(f"a {what} lacks the entry 'name'")
    name = text(f"the name of a {what}", data["name"])
    return name, f"{what} {name!r}"


def _entries(what: str, data: Any, required: Sequence[str], optional: Sequence[str]) -> dict[str, Any]:
    """Return the entries of a mapping after checking their names."""
    instance(what, data, Mapping, "a mapping")
    for name in data:
        known_name(f"entry of {what}", name, (*required, *optional))
    for name in required:
        if name not in data:
            raise DefinitionError(f"{what} lacks the entry {name!r}")
    return dict(data)


def _list(what: str, value: Any) -> list[Any]:
    return list(instance(what, value, list | tuple, "a list"))  # type: ignore[arg-type]


def _names(what: str, value: Any) -> list[str]:
    return [text(f"an entry of {what}", name) for name in _list(what, value)]
