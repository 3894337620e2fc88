"""The numbers of a robot by name, and robots with other numbers, which may be traced.

`RobotEditor` builds a new robot with frames that suit it. `with_parameters` keeps the frames of the bodies, so that its
steps do not depend on the values: inertial parameters, friction, limits, rotors, gravity and positions of joints can be
inputs of a kernel. A body's frame needs its origin on the joint's axis and its z along it, which other positions
preserve.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from legged.arguments import known_name, rounded_array
from legged.errors import DefinitionError, InertiaError, NotFiniteError
from legged.robot.base import MovingBase
from legged.robot.body import Body, regroup
from legged.robot.inertia import Inertia
from legged.robot.joint import Connection, Fixed, Joint
from legged.robot.link import PlacedLink
from legged.robot.physics import NUMBERS, JointPhysics, unchecked
from legged.robot.placement import Placement, snap
from legged.robot.robot import Robot
from legged.robot.stages.moments import Moments
from legged.spatial import Array, Translation, is_zero, mirror

R = TypeVar("R", bound=Robot)

_INERTIAL = ("mass", "center", "tensor")
_ROTOR = {"rotor_inertia": "inertia", "gear": "gear"}  # parameter -> field of `Rotor`
_LARGEST = np.finfo(float).max
_NOT_NEGATIVE = "mass", "damping", "friction", "armature", "rotor_inertia", "stiffness"
_LEAST = dict.fromkeys((*_NOT_NEGATIVE, "effort", "stop_stiffness", "restitution"), 0.0) | {
    "speed": np.nextafter(0.0, 1.0)
}
"""Smallest values of parameters that have a range."""
_TOLERANCE = 1e-9  # relative, of inertia tensors, as in `Inertia`


def parameters(robot: Robot) -> dict[str, Any]:
    """Return the numbers of a robot that can vary: name -> present value, a number or an array, (...).

    | name | meaning |
    | --- | --- |
    | `<link>.mass` | mass, [kg]; alone it scales the inertia tensor, as for another density |
    | `<link>.center` | link origin to center of mass, (3,), [m], link axes |
    | `<link>.tensor` | inertia about the center of mass, (3, 3), [kg m^2], link axes |
    | `<joint>.at` | parent link's origin to the joint, (3,), [m], parent link axes; fixed joints too |
    | `<joint>.damping`, ... | numbers of `JointPhysics`: damping, friction, armature, stiffness, rest, lower, |
    | | upper, effort, speed, stop_stiffness, restitution; one number, or (nv of the joint,) |
    | `<joint>.rotor_inertia` | inertia of the joint's `Rotor` about its axis, [kg m^2]; only joints that have one |
    | `<joint>.gear` | gear ratio of that rotor, rotor speed over joint speed |
    | `base.armature`, `base.damping` | armature and damping of a base that moves, see `FloatingBase`; not in a robot |
    | | with a joint named "base", whose numbers have these names |
    | `<contact>.position` | link origin to the contact point, (3,), [m], link axes |
    | `gravity` | acceleration of free fall, (3,), [m/s^2], world axes |

    Args:
        robot: The robot.
    """
    numbers: dict[str, Any] = {}
    for link in robot.links:
        numbers |= {f"{link.name}.{field}": getattr(link.inertia, field) for field in _INERTIAL}
    followers = {joint.name for joint in robot.followers}
    for c in robot.connections:
        numbers[f"{c.joint.name}.at"] = c.start.position
        for field in _physics_fields(c.joint, c.joint.name in followers):
            numbers[f"{c.joint.name}.{field}"] = getattr(c.joint.physics, field)
        rotor = None if isinstance(c.joint, Fixed) else c.joint.physics.rotor
        if rotor is not None:
            numbers |= {f"{c.joint.name}.{name}": getattr(rotor, field) for name, field in _ROTOR.items()}
    numbers |= {f"base.{field}": getattr(robot.base, field) for field in base_fields(robot)}
    numbers |= {f"{contact.name}.position": contact.position for contact in robot.contacts}
    numbers["gravity"] = robot.gravity
    return {name: float(value) if np.ndim(value) == 0 else np.array(value, float) for name, value in numbers.items()}


def base_fields(robot: Robot) -> tuple[str, ...]:
    """Return the names of the numbers of the base that can vary.

    Args:
        robot: The robot.
    """
    is_named = all(c.joint.name != "base" for c in robot.connections)
    return ("armature", "damping") if is_named and isinstance(robot.base, MovingBase) else ()


def _physics_fields(joint: Joint, follows: bool) -> list[str]:
    """Return the numbers of a joint's physics that can vary."""
    if isinstance(joint, Fixed):
        return []
    ball = joint.has_quaternion
    without = {"lower", "upper", "stop_stiffness", "restitution"} if ball else set()  # one armature for all axes
    without |= {field for field in ("armature", "stiffness") if ball and np.ndim(getattr(joint.physics, field))}
    without |= {"effort", "speed"} if follows else set()  # its master has the motor
    return [field for field in NUMBERS if field not in without]


class ParameterVector:
    """Some parameters of a robot as one vector of numbers, their entries one after the other.

    Args:
        robot: The robot. names: Names of the parameters.

    Attributes:
        robot: The robot. names: Names of the parameters. size: Number of entries, n.

    Raises:
        UnknownNameError: For an unknown name. DefinitionError: For a name that occurs twice.
    """

    def __init__(self, robot: Robot, names: Sequence[str]):
        known = parameters(robot)
        for name in names:
            known_name("robot parameter", name, known)
            if list(names).count(name) > 1:
                raise DefinitionError(f"parameter {name!r} is given twice")
        self.robot, self.names = robot, tuple(names)
        self._shapes = [np.shape(known[name]) for name in names]
        self.size = sum(map(math.prod, self._shapes))
        fields = [name.rpartition(".")[2] for name in names]
        least = [_LEAST.get(field, -_LARGEST) for field in fields]
        self._least = np.repeat(least, [math.prod(shape) for shape in self._shapes])
        self._independent = not {"tensor", "lower", "upper"}.intersection(fields)

    def values(self, numbers: Array) -> dict[str, Array]:
        """Return name -> values, (..., *shape), mixed units and frames.

        Args:
            numbers: Entries of all parameters, (..., n), mixed units and frames.
        """
        by_name, start = {}, 0
        for name, shape in zip(self.names, self._shapes, strict=True):
            size = math.prod(shape)
            by_name[name] = numbers[..., start : start + size].reshape(numbers.shape[:-1] + shape)
            start += size
        return by_name

    def check(self, numbers: Array) -> None:
        """Raise an error if the robot cannot have these parameters; see `check_parameters`.

        Args:
            numbers: Entries of all parameters, (..., n), mixed units and frames.
        """
        in_range = ((numbers >= self._least) & (numbers <= _LARGEST)).all()
        if not (in_range and self._independent):
            check_parameters(self.robot, self.values(numbers))

    def applied(self, numbers: Array) -> Robot:
        """Return the robot with these parameters, which may be traced; see `legged.Robot.with_parameters`.

        Args:
            numbers: Entries of all parameters, (n,), mixed units and frames.
        """
        return self.robot.with_parameters(self.values(numbers))


def with_parameters(robot: R, values: Mapping[str, Any]) -> R:
    """Return the robot with some of its numbers replaced.

        heavy = robot.with_parameters({"trunk.mass": 12.0, "leg1_knee.damping": 0.2})

    The result has the dynamics of the robot edited to the same values (`robot.edit()`). The values may be traced: then
    it can be used inside of functions that are compiled or differentiated, but not stored.

    Args:
        robot: The robot.
        values: Name of a parameter -> value, see `parameters`.

    Raises:
        UnknownNameError: For an unknown name.
        ShapeError, NotFiniteError, ArgumentError: For a value of another shape, not finite, or no number.
        InertiaError, DefinitionError: For a value out of range.
    """
    known = parameters(robot)
    given = {}
    for name, value in values.items():
        known_name("robot parameter", name, known)
        given[name] = rounded_array(name, value, np.shape(known[name]))
    check_parameters(robot, given)
    connections = {c.joint.name: _connection(c, given) for c in robot.connections}
    links, moved = _links(robot, given)
    bodies, base = tuple(_physics(robot, given)), robot.base
    own = {field: given[f"base.{field}"] for field in base_fields(robot) if f"base.{field}" in given}
    if own:
        base = unchecked(base, **{field: value[()] for field, value in own.items()})
        bodies = (replace(bodies[0], physics=unchecked(bodies[0].physics, **own)), *bodies[1:])
    if moved or any(name.rpartition(".")[2] in (*_INERTIAL, "at") for name in given):
        bodies = _bodies(robot, bodies, links, moved)
    joints = [replace(joint, definition=connections[joint.name].joint) for joint in robot.joints]
    followers = [replace(joint, definition=connections[joint.name].joint) for joint in robot.followers]
    contacts = [
        replace(contact, position=given.get(f"{contact.name}.position", contact.position)) for contact in robot.contacts
    ]
    return replace(
        robot,
        base=base,
        links=links,
        joints=tuple(joints),
        followers=tuple(followers),
        bodies=bodies,
        contacts=tuple(contacts),
        connections=tuple(connections.values()),
        gravity=given.get("gravity", robot.gravity),
    )


def _connection(c: Connection, given: Mapping[str, Array]) -> Connection:
    """Return the definition of a joint with its place and physics replaced."""
    name = c.joint.name
    if f"{name}.at" in given:
        c = replace(c, start=Placement(c.start.rotation, given[f"{name}.at"]))
    physics = _physics_of(c.joint, given)
    return replace(c, joint=unchecked(c.joint, physics=unchecked(c.joint.physics, **physics))) if physics else c


def _physics_of(joint: Joint, given: Mapping[str, Array]) -> dict[str, Any]:
    """Return the fields of a joint's physics that change."""
    own = {field: given[f"{joint.name}.{field}"] for field in NUMBERS if f"{joint.name}.{field}" in given}
    rotor = {
        field: given[f"{joint.name}.{name}"][()] for name, field in _ROTOR.items() if f"{joint.name}.{name}" in given
    }
    return own | ({"rotor": unchecked(joint.physics.rotor, **rotor)} if rotor else {})


def _links(robot: Robot, given: Mapping[str, Array]) -> tuple[tuple[PlacedLink, ...], dict[str, tuple[Array, Array]]]:
    """Return the links with other inertias and places, and the displaced joints by the name of their child link.

    Returns:
        The links. Name of a link -> (old, new), (3,) each, [m], axes of the parent link's body: the sums of those joint
        positions between this body and the link that are replaced, before and after. Other links are omitted.
    """
    moved: dict[str, tuple[Array, Array]] = {}
    places: dict[str, Array] = {}
    for c in robot.connections:
        parent = robot.link(c.parent)
        inside = parent.name in places  # the parent link itself moves in its body
        shift = moved[parent.name] if inside else None
        if f"{c.joint.name}.at" in given:
            R = snap(parent.rotation)
            own = R @ c.start.position, R @ given[f"{c.joint.name}.at"]
            shift = own if shift is None else (shift[0] + own[0], shift[1] + own[1])
        if shift is None:
            continue
        moved[c.child] = shift
        if isinstance(c.joint, Fixed):
            places[c.child] = _shifted(robot.link(c.child).position, shift)
    links = tuple(
        replace(link, inertia=_inertia(link, given), position=places.get(link.name, link.position))
        for link in robot.links
    )
    return links, moved


def _shifted(position: Array, shift: tuple[Array, Array]) -> Array:
    """Return position - old + new, (3,), [m], for shift = (old, new), (3,) each; rounding errors become zeros."""
    old, new = shift
    return snap(position - old, max(float(np.abs(position).max()), float(np.abs(old).max()), 1e-3)) + new


def _inertia(link: PlacedLink, given: Mapping[str, Array]) -> Inertia:
    """Return the inertial parameters of a link with some of them replaced, as `RobotEditor.change_link` does."""
    own = {field: given[f"{link.name}.{field}"] for field in _INERTIAL if f"{link.name}.{field}" in given}
    if not own:
        return link.inertia
    if "mass" in own:
        own["mass"] = own["mass"][()]
    if "tensor" in own:
        own["tensor"] = mirror(own["tensor"])
    elif "mass" in own and link.inertia.mass:
        own["tensor"] = own["mass"] / link.inertia.mass * np.asarray(link.inertia.tensor)
    return unchecked(link.inertia, **own)


def _physics(robot: Robot, given: Mapping[str, Array]) -> Iterator[Body]:
    """Yield the bodies with the physics of their joints replaced."""
    physics: dict[int, JointPhysics] = {}
    for c in robot.connections:
        own = _physics_of(c.joint, given)
        rotor = {"rotor": own.pop("rotor")} if "rotor" in own else {}
        start = 0
        bodies = zip(_bodies_of(robot, c), c.joint.stages, strict=True) if own or rotor else ()
        for body in (body for body, stage in bodies if stage.repeats is None):
            part = {k: np.broadcast_to(x, c.joint.nv)[start : start + body.nv] for k, x in own.items()}
            physics[body.index] = unchecked(body.physics, **part, **rotor)
            start += body.nv
    for body in robot.bodies:
        yield replace(body, physics=physics[body.index]) if body.index in physics else body


def _bodies_of(robot: Robot, c: Connection) -> tuple[Body, ...]:
    """Return the bodies behind the stages of a joint, parent before child."""
    last = robot.link(c.child).body
    return robot.bodies[last + 1 - len(c.joint.stages) : last + 1]


def _bodies(
    robot: Robot,
    bodies: Sequence[Body],
    links: Sequence[PlacedLink],
    moved: Mapping[str, tuple[Array, Array]],
) -> tuple[Body, ...]:
    """Return the bodies with other moments of mass and places of their joints."""
    changed = list(bodies)
    for link, old in zip(links, robot.links, strict=True):
        if link.inertia is not old.inertia or link.position is not old.position:
            own = [each for each in links if each.body == link.body]
            moments = sum((_moments(each) for each in own[1:]), _moments(own[0])).snapped()
            changed[link.body] = replace(changed[link.body], moments=moments)
    for c in robot.connections:
        if c.child in moved and not isinstance(c.joint, Fixed):
            first = _bodies_of(robot, c)[0].index
            changed[first] = replace(changed[first], before_joint=_before_joint(changed[first], moved[c.child]))
    return tuple(replace(body, regrouped=m) for body, m in zip(changed, regroup(changed), strict=True))


def _before_joint(body: Body, shift: tuple[Array, Array]) -> tuple[Any, ...]:
    """Return the constant transforms before a joint that is placed elsewhere in its parent's body."""
    steps = body.before_joint
    start = steps[0].r if steps and isinstance(steps[0], Translation) else np.zeros(3)
    rest = steps[1:] if steps and isinstance(steps[0], Translation) else steps
    r = _shifted(start, shift)
    return rest if all(is_zero(x) for x in r.tolist()) else (Translation(r), *rest)


def _moments(link: PlacedLink) -> Moments:
    """Return the moments of mass of a link about its body's origin, in body axes."""
    mass, c, tensor = link.inertia.mass, np.asarray(link.inertia.center), np.asarray(link.inertia.tensor)
    J = np.trace(tensor) / 2 * np.eye(3) - tensor + mass * np.outer(c, c)
    return Moments(mass, mass * c, J).moved(Placement(snap(link.rotation), link.position))


# Checks.


def check_parameters(robot: Robot, values: Mapping[str, Array]) -> None:
    """Raise an error if a robot with these parameters could not be built. Traced values are not checked.

    A motion without inertia is not found here: the dynamics of such a robot raise SingularError.

    Args:
        robot: The robot. values: Name of a parameter -> values, (..., *shape), mixed units and frames; the
            leading axes broadcast.

    Raises:
        NotFiniteError: For a value that is not finite.
        InertiaError: For physically impossible inertial parameters.
        DefinitionError: For joint physics out of range.
    """
    plain = {name: value for name, value in values.items() if value.dtype != object}
    for name, value in plain.items():
        if (wrong := ~np.isfinite(value)).any():
            raise NotFiniteError(f"{name} must be finite, got {value[wrong][0]}{_where(wrong)}")
        _check_range(name, value)
    for link in robot.links:
        _check_inertia(link, plain, values)
    for c in robot.connections:
        names = f"{c.joint.name}.lower", f"{c.joint.name}.upper"
        if any(name in plain for name in names) and all(name in plain or name not in values for name in names):
            present = c.joint.physics.lower, c.joint.physics.upper
            lower, upper = (plain.get(name, np.asarray(x)) for name, x in zip(names, present, strict=True))
            if (wrong := lower > upper).any():
                raise DefinitionError(f"{names[0]} lies above {names[1]}{_where(wrong)}")


def _check_range(name: str, value: Array) -> None:
    field = name.rpartition(".")[2]
    if (wrong := value < _LEAST.get(field, -_LARGEST)).any():
        error = InertiaError if field == "mass" else DefinitionError
        words = "be positive" if field == "speed" else "not be negative"
        raise error(f"{name} must {words}, got {value.min():.6g}{_where(wrong)}")
    if field == "restitution" and (wrong := value > 1.0).any():
        raise DefinitionError(f"{name} must lie between 0 and 1, got {value.max():.6g}{_where(wrong)}")


def _check_inertia(link: PlacedLink, plain: Mapping[str, Array], values: Mapping[str, Array]) -> None:
    """Check an inertia tensor, and that a link without mass has none."""
    name = f"{link.name}.tensor"
    tensor = plain.get(name)
    if tensor is not None:
        scale = np.maximum(np.abs(tensor).max(axis=(-2, -1)), np.finfo(float).tiny)
        if (wrong := np.abs(tensor - tensor.swapaxes(-1, -2)).max(axis=(-2, -1)) > _TOLERANCE * scale).any():
            raise InertiaError(f"{name} is not symmetric{_where(wrong)}")
        a, b, c = np.moveaxis(np.linalg.eigvalsh(tensor), -1, 0)
        if (wrong := a < -_TOLERANCE * scale).any():
            raise InertiaError(f"{name} is not positive definite; no body has this{_where(wrong)}")
        if (wrong := c > (a + b) * (1.0 + _TOLERANCE)).any():
            raise InertiaError(f"the largest principal inertia of {name} exceeds the sum of the others{_where(wrong)}")
    mass = plain.get(f"{link.name}.mass", None if f"{link.name}.mass" in values else np.asarray(link.inertia.mass))
    if tensor is not None and mass is not None and (wrong := (mass == 0.0) & (np.abs(tensor).max((-2, -1)) > 0)).any():
        raise InertiaError(f"{name} of a link without mass must be zero; give it a mass{_where(wrong)}")


def _where(wrong: Array) -> str:
    """Return the place of the first wrong entry of a batch in words, "" for a single value."""
    return f" (entry {', '.join(map(str, np.argwhere(wrong)[0].tolist()))})" if wrong.ndim else ""
