"""`with_parameters`: a robot with other numbers, which may be traced; the frames of its bodies stay.

It replaces in order the definitions of joints (`connections`), the links with their inertia and their poses in the
bodies, the physics of the bodies, and then, where links or joints have changed, the moments of mass and the constant
transforms of the bodies.

A joint placed elsewhere displaces what follows it. A fixed joint moves its child link within their common body; joints
on that link are displaced with it. Another joint moves the body behind it, of which the transform before the joint
changes alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from legged.arguments import known_name, rounded_array
from legged.robot.body import Body, regroup
from legged.robot.construction.parameters.checks import check_parameters
from legged.robot.construction.parameters.names import INERTIAL_FIELDS, ROTOR_FIELDS, base_fields, parameters
from legged.robot.inertia import Inertia
from legged.robot.joint import Connection, Fixed, Joint
from legged.robot.link import PlacedLink
from legged.robot.physics import NUMBERS, unchecked
from legged.robot.placement import Placement, snap
from legged.robot.robot import Robot
from legged.robot.stages.moments import Moments
from legged.spatial import Array, ElementaryTransform, Translation, is_zero, mirror

R = TypeVar("R", bound=Robot)
Values = Mapping[str, Array]
"""Name of a parameter -> new value."""


class Displacement(NamedTuple):
    """The replaced joint positions between a body and a link or joint on it, summed before and after the replacement.

    Attributes:
        old, new: The sums, (3,) each, [m], body axes.
    """

    old: Array
    new: Array

    def plus(self, other: Displacement) -> Displacement:
        """Return the sum of two displacements."""
        return Displacement(self.old + other.old, self.new + other.new)

    def applied(self, position: Array) -> Array:
        """Return position - old + new, (3,), [m]; a difference to `old` that is a rounding error becomes zero.

        Args:
            position: Place of the link or joint, (3,), [m], body axes.
        """
        largest = max(float(np.abs(position).max()), float(np.abs(self.old).max()), 1e-3)
        return snap(position - self.old, largest) + self.new


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
    known, new = parameters(robot), dict[str, Array]()
    for name, value in values.items():
        known_name("robot parameter", name, known)
        new[name] = rounded_array(name, value, np.shape(known[name]))
    check_parameters(robot, new)
    connections = {connection.joint.name: _connection(connection, new) for connection in robot.connections}
    links, displacements = _links(robot, new)
    bodies, base = _with_physics(robot, new), robot.base
    of_base = _changed_fields("base", base_fields(robot), new)
    if of_base:
        base = unchecked(base, **{field: value[()] for field, value in of_base.items()})
        bodies[0] = replace(bodies[0], physics=unchecked(bodies[0].physics, **of_base))
    if displacements or any(name.rpartition(".")[2] in (*INERTIAL_FIELDS, "at") for name in new):
        bodies = _with_moments_and_places(robot, bodies, links, displacements)
    joints = [replace(joint, definition=connections[joint.name].joint) for joint in robot.joints]
    followers = [replace(joint, definition=connections[joint.name].joint) for joint in robot.followers]
    contacts = [
        replace(contact, position=new.get(f"{contact.name}.position", contact.position)) for contact in robot.contacts
    ]
    return replace(
        robot,
        base=base,
        links=links,
        joints=tuple(joints),
        followers=tuple(followers),
        bodies=tuple(bodies),
        contacts=tuple(contacts),
        connections=tuple(connections.values()),
        gravity=new.get("gravity", robot.gravity),
    )


def _changed_fields(owner: str, fields: Iterable[str], new: Values) -> dict[str, Any]:
    """Return the fields of a link, a joint or the base that change, with their new values."""
    return {field: new[f"{owner}.{field}"] for field in fields if f"{owner}.{field}" in new}


# Definitions of joints.


def _connection(connection: Connection, new: Values) -> Connection:
    """Return the definition of a joint with its place and physics replaced."""
    joint = connection.joint
    if f"{joint.name}.at" in new:
        connection = replace(connection, start=Placement(connection.start.rotation, new[f"{joint.name}.at"]))
    fields = _physics_fields(joint, new)
    if not fields:
        return connection
    return replace(connection, joint=unchecked(joint, physics=unchecked(joint.physics, **fields)))


def _physics_fields(joint: Joint, new: Values) -> dict[str, Any]:
    """Return the fields of a joint's physics that change, with their new values."""
    fields = _changed_fields(joint.name, NUMBERS, new)
    of_rotor = _changed_fields(joint.name, ROTOR_FIELDS, new)
    if of_rotor:
        values = {ROTOR_FIELDS[name]: value[()] for name, value in of_rotor.items()}
        fields["rotor"] = unchecked(joint.physics.rotor, **values)
    return fields


# Links.


def _links(robot: Robot, new: Values) -> tuple[tuple[PlacedLink, ...], dict[str, Displacement]]:
    """Return the links with other inertias and places, and the displacements of the joints to links, by link name.

    Links whose joint is not displaced have no entry.
    """
    displacements: dict[str, Displacement] = {}
    positions: dict[str, Array] = {}  # of links that move in their bodies
    for connection in robot.connections:
        parent, name = robot.link(connection.parent), f"{connection.joint.name}.at"
        displacement = displacements[parent.name] if parent.name in positions else None
        if name in new:
            R = snap(parent.rotation)
            own = Displacement(R @ connection.start.position, R @ new[name])
            displacement = own if displacement is None else displacement.plus(own)
        if displacement is None:
            continue
        displacements[connection.child] = displacement
        if isinstance(connection.joint, Fixed):
            positions[connection.child] = displacement.applied(robot.link(connection.child).position)
    links = tuple(
        replace(link, inertia=_inertia(link, new), position=positions.get(link.name, link.position))
        for link in robot.links
    )
    return links, displacements


def _inertia(link: PlacedLink, new: Values) -> Inertia:
    """Return the inertial parameters of a link with some of them replaced, as `RobotEditor.change_link` does."""
    fields = _changed_fields(link.name, INERTIAL_FIELDS, new)
    if not fields:
        return link.inertia
    if "mass" in fields:
        fields["mass"] = fields["mass"][()]
    if "tensor" in fields:
        fields["tensor"] = mirror(fields["tensor"])
    elif "mass" in fields and link.inertia.mass:  # another density
        fields["tensor"] = fields["mass"] / link.inertia.mass * np.asarray(link.inertia.tensor)
    return unchecked(link.inertia, **fields)


# Bodies.


def _with_physics(robot: Robot, new: Values) -> list[Body]:
    """Return the bodies with the physics of their joints replaced.

    Each stage of a joint has a body. An array of one entry per degree of freedom is divided among them; stages that
    repeat the coordinate of another one have no physics of their own.
    """
    bodies = list(robot.bodies)
    for connection in robot.connections:
        joint, fields = connection.joint, _physics_fields(connection.joint, new)
        if not fields:
            continue
        rotor = {"rotor": fields.pop("rotor")} if "rotor" in fields else {}
        start = 0
        for body, stage in zip(_bodies_of(robot, connection), joint.stages, strict=True):
            if stage.repeats is None:
                part = {k: np.broadcast_to(x, joint.nv)[start : start + body.nv] for k, x in fields.items()}
                bodies[body.index] = replace(body, physics=unchecked(body.physics, **part, **rotor))
                start += body.nv
    return bodies


def _bodies_of(robot: Robot, connection: Connection) -> tuple[Body, ...]:
    """Return the bodies behind the stages of a joint, parent before child."""
    last = robot.link(connection.child).body
    return robot.bodies[last + 1 - len(connection.joint.stages) : last + 1]


def _with_moments_and_places(
    robot: Robot, bodies: Sequence[Body], links: Sequence[PlacedLink], displacements: Mapping[str, Displacement]
) -> list[Body]:
    """Return the bodies with other moments of mass and places of their joints.

    Args:
        robot: The robot before the replacement. bodies: Its bodies with their new physics. links: Its new links.
        displacements: Those of joints, by the name of the child link.
    """
    changed = list(bodies)
    for link, old in zip(links, robot.links, strict=True):
        if link.inertia is not old.inertia or link.position is not old.position:
            first, *others = (_moments(each) for each in links if each.body == link.body)
            changed[link.body] = replace(changed[link.body], moments=sum(others, first).snapped())
    for connection in robot.connections:
        if connection.child in displacements and not isinstance(connection.joint, Fixed):
            k = _bodies_of(robot, connection)[0].index
            transforms = _before_joint(changed[k].before_joint, displacements[connection.child])
            changed[k] = replace(changed[k], before_joint=transforms)
    return [replace(body, regrouped=m) for body, m in zip(changed, regroup(changed), strict=True)]


def _before_joint(
    transforms: tuple[ElementaryTransform, ...], displacement: Displacement
) -> tuple[ElementaryTransform, ...]:
    """Return the constant transforms before a joint that is placed elsewhere in its parent's body: first its place."""
    position, rest = np.zeros(3), transforms
    if transforms and isinstance(transforms[0], Translation):
        position, rest = transforms[0].r, transforms[1:]
    position = displacement.applied(position)
    return rest if all(is_zero(x) for x in position.tolist()) else (Translation(position), *rest)


def _moments(link: PlacedLink) -> Moments:
    """Return the moments of mass of a link about its body's origin, in body axes."""
    mass, c, tensor = link.inertia.mass, np.asarray(link.inertia.center), np.asarray(link.inertia.tensor)
    J = np.trace(tensor) / 2 * np.eye(3) - tensor + mass * np.outer(c, c)  # second moments of mass
    return Moments(mass, mass * c, J).moved(Placement(snap(link.rotation), link.position))
