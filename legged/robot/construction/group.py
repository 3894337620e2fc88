"""Groups: several robots as one, a tree with a branch for each robot on a fixed link that stands for the world.

A group is a `Robot`, which all algorithms and simulations take. Its inertia matrix is block diagonal, because the
robots are independent of each other except for contacts. Names of links, joints and contact points begin with the name
of the robot, such as "left/trunk".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from legged.arguments import known_name, rounded_array
from legged.checked import checked
from legged.errors import DefinitionError
from legged.robot.base import FixedBase, FloatingBase, PlanarBase
from legged.robot.construction.builder import RobotBuilder
from legged.robot.construction.graph import links_of
from legged.robot.construction.parameters import base_fields
from legged.robot.inertia import Inertia
from legged.robot.joint import Coupling, Fixed, Free, Joint, Planar
from legged.robot.link import Link
from legged.robot.placement import Placement, Vector, placement
from legged.robot.robot import Robot
from legged.rotations import quaternion_matrix
from legged.spatial import Array

WORLD_LINK = "world"
"""Name of the fixed link that carries the robots of a group."""
SEPARATOR = "/"
"""Between the name of a robot and the names of its parts."""
_CARRIER = "world/carrier"  # name of the joint between the world and the base link of a `separated` robot


@dataclass(frozen=True, eq=False)
class Member:
    """A robot of a group.

    The state of the robot alone, which its controllers receive, has the pose and twist of the base as its `Base`
    defines them. In the group they are the coordinates of the joint that carries its base link, a `Free` or `Planar`
    joint with the name of the robot.

    Attributes:
        name: Its name in the group.
        robot: The robot alone; gravity is in the axes of its `place`.
        place: Pose of the robot's own world frame in the world.
        q, v: Its entries of the q and v of the group.
        links: Indices of its links in the group, in the order of `robot.links`.
    """

    name: str
    robot: Robot
    place: Placement
    q: slice
    v: slice
    links: tuple[int, ...]

    def with_parameters(self, values: Mapping[str, Any]) -> Member:
        """Return the member with those of a group's parameters that belong to it; other names are left out.

        Args:
            values: Name of a parameter of the group -> value.
        """
        prefix = self.name + SEPARATOR
        own = {name.removeprefix(prefix): value for name, value in values.items() if name.startswith(prefix)}
        place = self.place
        if f"{self.name}.at" in values:
            place = Placement(place.rotation, np.asarray(values[f"{self.name}.at"]))
        if "gravity" in values:
            own["gravity"] = place.rotation.T @ np.asarray(values["gravity"])
        for field in base_fields(self.robot):  # of the joint that carries the base link
            if f"{self.name}.{field}" in values:
                own[f"base.{field}"] = values[f"{self.name}.{field}"]
        return replace(self, robot=self.robot.with_parameters(own), place=place)

    def state(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Return (q, v) of the robot alone, (..., nq) and (..., nv), for states of the group.

        Args:
            q: Configurations of the group, (..., nq), mixed units. v: Its velocities, (..., nv), mixed units.
        """
        if np.ndim(q) > 1:
            own = [self.state(*row) for row in zip(_rows(q), _rows(v), strict=True)]
            shape = np.shape(q)[:-1]
            x, w = (np.array(part, dtype=float) for part in zip(*own, strict=True))
            return x.reshape(*shape, self.robot.nq), w.reshape(*shape, self.robot.nv)
        q, v = q[self.q], v[self.v]
        if isinstance(self.robot.base, PlanarBase):
            return np.concatenate([q[2::-1], q[3:]]), np.concatenate([v[2::-1], v[3:]])
        if not isinstance(self.robot.base, FloatingBase):
            return q, v
        R = quaternion_matrix(q[3:7])
        return np.concatenate([q[3:7], q[:3], q[7:]]), np.concatenate([v[3:6], R.T @ v[:3], v[6:]])

    def entries(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Return the entries of the group's (q, v), (nq,) and (nv,), for a state of the robot alone.

        Args:
            q: Configuration, (nq,), mixed units. v: Velocity, (nv,), mixed units.
        """
        if isinstance(self.robot.base, PlanarBase):
            return np.concatenate([q[2::-1], q[3:]]), np.concatenate([v[2::-1], v[3:]])
        if not isinstance(self.robot.base, FloatingBase):
            return q, v
        R = quaternion_matrix(q[:4])
        return np.concatenate([q[4:7], q[:4], q[7:]]), np.concatenate([R @ v[3:6], v[:3], v[6:]])

    def base_pose(self, q: Array) -> tuple[Array, Array]:
        """Return (R, o): rotation matrix from base to world axes, (3, 3), and the base's origin, (3,), [m], world.

        Args:
            q: Configuration of the group, (nq,), mixed units.
        """
        own, robot = q[self.q], self.robot
        first = own[2::-1] if isinstance(robot.base, PlanarBase) else np.concatenate([own[3:7], own[:3]])
        R, o = robot.base.pose(first[: robot.base.nq])
        return self.place.rotation @ R, self.place.position + self.place.rotation @ o

    def forces(self, q: Array, tau: Array) -> Array:
        """Return the entries of the group's generalized forces, (nv,), for those of the robot alone.

        Args:
            q: Configuration of the robot alone, (nq,), mixed units.
            tau: Generalized forces, (nv,), mixed units.
        """
        return self.entries(q, tau)[1]  # the map of velocities is orthogonal


def _rows(x: Array) -> Array:
    return np.reshape(x, (-1, np.shape(x)[-1]))


@dataclass(frozen=True, eq=False, repr=False)
class RobotGroup(Robot):
    """Several robots as one robot; see `combine`.

    `edit`, `locked`, `without`, `fused` and a saved description give a plain robot without members, whose links are
    those of one robot for the choice of collision pairs.

    Attributes:
        members: The robots, in the order of q and v.
    """

    members: tuple[Member, ...] = ()

    def member(self, name: str) -> Member:
        """Return a robot of the group by name, or raise UnknownNameError."""
        by_name = {member.name: member for member in self.members}
        return by_name[known_name("robot of the group", name, by_name)]

    def with_parameters(self, values: Mapping[str, Any]) -> Self:
        """Return the group with some numbers of its robots replaced; see `legged.Robot.with_parameters`.

        The members, whose numbers controllers read, change in the same way. Armature and damping of the joint that
        carries a base link are those of the member's base; its other parameters act in the group alone.

        Args:
            values: Name of a parameter of the group, such as "left/trunk.mass" -> value.
        """
        changed = super().with_parameters(values)
        return replace(changed, members=tuple(member.with_parameters(values) for member in self.members))

    @cached_property
    def member_of_link(self) -> dict[int, int]:
        """Index of a link -> number of the robot that contains it, without the world link."""
        return {link: k for k, member in enumerate(self.members) for link in member.links}

    @checked
    def join_states(self, q: Mapping[str, Any], v: Mapping[str, Any] | None = None) -> tuple[Array, Array]:
        """Return (q, v) of the group, (nq,) and (nv,), from states of robots alone.

        Args:
            q: Name of a robot -> its configuration, (nq of the robot,), mixed units; the neutral one for others.
            v: Name of a robot -> its velocity, (nv of the robot,), mixed units; zero for others.

        Raises:
            UnknownNameError: No robot has this name. ShapeError, NotFiniteError: A state has a wrong shape.
        """
        v = {} if v is None else v
        for name in (*q, *v):
            self.member(name)
        parts = []
        for member in self.members:
            own = q.get(member.name, member.robot.neutral()), v.get(member.name, np.zeros(member.robot.nv))
            sizes = member.robot.nq, member.robot.nv
            given = [
                rounded_array(f"{letter} of robot {member.name!r}", x, (size,))
                for letter, x, size in zip("qv", own, sizes, strict=True)
            ]
            parts.append(member.entries(*given))
        return np.concatenate([x for x, _ in parts]), np.concatenate([w for _, w in parts])


@checked
def combine(
    robots: Mapping[str, Robot],
    *,
    at: Mapping[str, Vector] | None = None,
    rotation: Mapping[str, Array] | None = None,
    name: str = "robots",
) -> RobotGroup:
    """Return several robots as one, for simulations in which they meet.

        pair = legged.combine({"left": robot, "right": robot})
        beside = q + np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, *np.zeros(12)])  # 1 m to the left
        states = pair.join_states({"left": beside, "right": q}, {"left": v, "right": v})
        run = legged.simulate(pair, {"left": law, "right": law}, ground=ground, q=states[0], v=states[1], until=0.01)

    The robots may have fixed, planar and floating bases, and the same robot may occur several times. On a
    `legged.Rigid` ground the shapes of links of different robots collide. Controllers in a mapping act on their own
    robot and see its state alone; see `legged.simulation.robot_controllers`.

    Args:
        robots: Name of each robot in the group -> the robot.
        at: Name of a robot with a fixed or planar base -> place of its own world origin in the world, (3,), [m]; the
            origin by default.
        rotation: Name of such a robot -> a rotation matrix, (3, 3), from its own world axes to world axes.
        name: Name of the group.

    Raises:
        DefinitionError: No robot, a name that cannot be used, robots of different gravity, a base with Euler angles, or
            a place of a robot with a floating base, which is part of q.
        UnknownNameError: A place of an unknown robot. ShapeError: A place has a wrong shape.
    """
    if not robots:
        raise DefinitionError("a group needs at least one robot, got none")
    at, rotation = at or {}, rotation or {}
    for given in (*at, *rotation):
        known_name("robot of the group", given, robots)
    gravity = next(iter(robots.values())).gravity
    builder = RobotBuilder(name, Link(WORLD_LINK, Inertia()), base=FixedBase(), gravity=tuple(gravity))
    order: list[str] = []
    members: list[tuple[str, Robot, Placement]] = []
    for key, robot in robots.items():
        placed = key in at or key in rotation
        _check_member(key, robot, gravity, placed)
        place = placement(f"robot {key!r}", at.get(key, (0.0, 0.0, 0.0)), rotation.get(key))
        carrier = _carrier(key, robot)
        order += _add(builder, key, robot, carrier, place)
        alone = replace(robot, gravity=place.rotation.T @ gravity) if key in rotation else robot
        members.append((key, alone, place))
    built = builder.build(order=order)
    index_of = {link.name: link.index for link in built.links}
    carried, nq, nv = [], 0, 0
    for key, robot, place in members:
        links = tuple(index_of[key + SEPARATOR + link.name] for link in robot.links)
        carried.append(Member(key, robot, place, slice(nq, nq + robot.nq), slice(nv, nv + robot.nv), links))
        nq, nv = nq + robot.nq, nv + robot.nv
    return RobotGroup(**{f.name: getattr(built, f.name) for f in fields(Robot)}, members=tuple(carried))


def _check_member(name: str, robot: Robot, gravity: Array, placed: bool) -> None:
    """Raise DefinitionError for a robot that cannot be part of a group."""
    if not name or SEPARATOR in name:
        raise DefinitionError(f"the robot name {name!r} must have letters and no {SEPARATOR!r}")
    if isinstance(robot, RobotGroup):
        raise DefinitionError(f"robot {name!r} is a group itself; combine the robots of both groups in one call")
    if not isinstance(robot.base, FixedBase | PlanarBase | FloatingBase):
        raise DefinitionError(f"robot {name!r} has a base of kind {robot.base.kind!r}; give it a FloatingBase()")
    if placed and isinstance(robot.base, FloatingBase):
        raise DefinitionError(f"robot {name!r} has a floating base: state its place by q, not by `at` or `rotation`")
    if not np.array_equal(robot.gravity, gravity):
        raise DefinitionError(f"robot {name!r} has gravity {robot.gravity}, the first robot {gravity}; make them equal")


def _carrier(name: str, robot: Robot) -> Joint:
    """Return the joint that carries the base link of a robot in the group."""
    if isinstance(robot.base, PlanarBase):
        return Planar(name, "z", "x", physics=robot.base.physics)  # turns about y
    return Free(name, physics=robot.base.physics) if isinstance(robot.base, FloatingBase) else Fixed(name)


def _add(builder: RobotBuilder, name: str, robot: Robot, carrier: Joint, place: Placement) -> list[str]:
    """Add a robot to the builder of a group and return the names of its joints in the order of v."""
    prefix = name + SEPARATOR
    for link in links_of(robot):
        builder.link(link.prefixed(prefix))
    root = prefix + robot.links[0].name
    builder.joint(carrier, parent=WORLD_LINK, child=root, at=place.position, rotation=place.rotation)
    for c in robot.connections:
        joint = replace(c.joint, name=prefix + c.joint.name)
        ends = {"parent": prefix + c.parent, "child": prefix + c.child}
        builder.joint(joint, **ends, at=c.start.position, rotation=c.start.rotation)
    for f in robot.followers:
        own = Coupling(f.name, f.master, f.ratio, f.offset).prefixed(prefix)
        builder.couple(own.follower, own.master, own.ratio, own.offset)
    moving = [prefix + joint.name for joint in robot.joints]
    return moving if isinstance(carrier, Fixed) else [name, *moving]


def separated(group: RobotGroup, member: Member) -> tuple[Robot, Array]:
    """Return a robot of a group on a world link of its own, at the origin, and its place in the group, (3,), [m].

    It has the present numbers of the group, and names without that of the robot.

    Args:
        group: The group. member: The robot in it.
    """
    prefix, own = member.name + SEPARATOR, {group.links[k].name for k in member.links}

    def named(name: str) -> str:
        return name.removeprefix(prefix) if name.startswith(prefix) else _CARRIER

    builder = RobotBuilder("robot", Link(WORLD_LINK, Inertia()), base=FixedBase(), gravity=tuple(group.gravity))
    for link in links_of(group):
        if link.name in own:
            points = {named(name): point for name, point in link.contacts.items()}
            builder.link(Link(named(link.name), link.inertia, points, link.shapes, link.material))
    place = np.zeros(3)
    for c in group.connections:
        if c.child in own:
            joint, is_carrier = replace(c.joint, name=named(c.joint.name)), c.parent not in own
            place = c.start.position if is_carrier else place
            at = np.zeros(3) if is_carrier else c.start.position
            parent = WORLD_LINK if is_carrier else named(c.parent)
            builder.joint(joint, parent=parent, child=named(c.child), at=at, rotation=c.start.rotation)
    for f in group.followers:
        if f.child in own:
            builder.couple(named(f.name), named(f.master), f.ratio, f.offset)
    slices = ((joint.v.start, joint.name) for joint in group.joints)
    moving = [named(name) for start, name in sorted(slices) if member.v.start <= start < member.v.stop]
    return builder.build(order=moving), place
