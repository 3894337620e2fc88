"""Scenes of a robot, free bodies and a rigid ground, with a fixed list of contact candidates.

By default the contact points of the robot and the shapes of free bodies collide with the terrain, and free bodies
collide with each other and with the links of the robot that have shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from legged.arguments import known_name
from legged.compiler.ir import items
from legged.contact.detection.pairs import (
    Ball,
    BodyShape,
    Materials,
    Pair,
    ShapePair,
    Side,
    SolidTerrain,
    SphereTerrain,
    are_apart,
    candidate_count,
    ordered,
)
from legged.contact.impulses.delassus import Contacts
from legged.contact.impulses.dense import LoopRows
from legged.contact.impulses.impact import SOLVER, Impact, ImpulseSolver, impact
from legged.contact.impulses.joint_rows import JointRows
from legged.contact.rigid import FreeBody, Rigid
from legged.dynamics.kinematics import motion
from legged.errors import DefinitionError, UnknownNameError
from legged.ground.terrain import Flat
from legged.robot.construction.group import RobotGroup
from legged.robot.link import PlacedLink
from legged.robot.robot import Robot
from legged.robot.shapes import Capsule, Shape, Sphere, shape_with
from legged.spatial import Array, cross, join

TERRAIN = "terrain"
"""Name of the terrain in `Rigid.pairs`."""


class Candidate(NamedTuple):
    """A contact candidate.

    Attributes:
        name: For reports.
        first, second: Its sides; second is None for the terrain and for obstacles.
        materials: Of both sides; None for that of the ground.
        obstacle: Number of the obstacle that is its second side, from 1; 0 for the terrain and for bodies.
    """

    name: str
    first: Side
    second: Side | None
    materials: Materials
    obstacle: int


class ContactGeometry(NamedTuple):
    """Gaps, frames and points of all m candidates at a configuration.

    Attributes:
        gap: Distances, (m,), [m], negative for penetration.
        frame: Rows n, t1, t2 of each contact frame, (m, 3, 3), world axes; n points from the second side to the first.
        point: Points of application of the impulses, (m, 3), [m], world axes.
    """

    gap: Array
    frame: Array
    point: Array


@dataclass(frozen=True, eq=False)
class Scene:
    """A robot, free bodies and a rigid ground with their collision pairs.

    Attributes:
        robots: The robot, which may be a group of robots, then the free bodies as robots of one link.
        ground: The terrain and the contact law.
        pairs: Collision pairs with their contact candidates; see `legged.contact.detection.pairs`.
    """

    robots: tuple[Robot, ...]
    ground: Rigid
    pairs: tuple[Pair, ...]

    @classmethod
    def of(cls, robot: Robot, ground: Rigid, bodies: Sequence[FreeBody] = ()) -> Scene:
        """Return the scene of a robot and free bodies, under the robot's gravity.

        Raises:
            DefinitionError: for names used twice, and pairs that cannot collide.
            UnknownNameError: for unknown names in `Rigid.pairs` and `Rigid.material_pairs`.
        """
        robots = (robot, *(body.robot(robot.gravity) for body in bodies))
        own = self_pairs(robot) if ground.self_collision else ()
        pairs = (*pairs_of(robots, ground.pairs, ground.obstacles), *own)
        known = {material.name for pair in pairs for material in pair.materials if material is not None}
        for name in (name for pair in ground.material_pairs for name in (pair.first, pair.second)):
            known_name("material", name, sorted({ground.material, *known}))
        return cls(robots, ground, pairs)

    @cached_property
    def candidates(self) -> tuple[Candidate, ...]:
        """The m contact candidates, in the order of every array over contacts."""
        candidates, obstacles = [], dict[int, int]()
        for pair in self.pairs:
            number = 0
            if isinstance(pair, ShapePair) and pair.second is None:
                number = obstacles.setdefault(id(pair.other.shape), len(obstacles) + 1)
            candidates += [Candidate(name, pair.first, pair.second, pair.materials, number) for name in pair.names]
        return tuple(candidates)

    def contact_geometry(self, qs: Sequence[Array]) -> ContactGeometry:
        """Return gaps, frames and points of the candidates.

        Args:
            qs: Configuration of each robot, (nq,), mixed units.
        """
        poses = [motion(robot, q) for robot, q in zip(self.robots, qs, strict=True)]
        contacts = [contact for pair in items(self.pairs) for contact in pair.detect(poses, self.ground.terrain)]
        gap = np.array([contact.gap for contact in contacts])
        frame = np.array([contact.frame for contact in contacts]).reshape(-1, 3, 3)
        return ContactGeometry(gap, frame, np.array([contact.point for contact in contacts]).reshape(-1, 3))

    def deepest(self, qs: Sequence[Array]) -> tuple[float, str]:
        """Return the least gap, [m], and the name of its candidate, of pairs that are not `are_apart`.

        Args:
            qs: Configuration of each robot, (nq,), mixed units.
        """
        poses, gaps = [motion(robot, q) for robot, q in zip(self.robots, qs, strict=True)], [(np.inf, "")]
        for pair in (pair for pair in self.pairs if not are_apart(pair, poses)):
            contacts = zip(pair.detect(poses, self.ground.terrain), pair.names, strict=True)
            gaps += [(float(contact.gap), name) for contact, name in contacts]
        return min(gaps)

    def impulses(
        self,
        qs: Sequence[Array],
        vs: Sequence[Array],
        v_free: Sequence[Array],
        extra: Sequence[Array],
        h: Any,
        geometry: ContactGeometry,
        guess: Array,
        loops: LoopRows | None = None,
        rows: JointRows | None = None,
        solver: ImpulseSolver = SOLVER,
    ) -> Impact:
        """Return the impulses of one step, and the velocities after it; see `impact`.

        Args:
            qs, vs: Configuration, (nq,), and velocity before the step, (nv,), of each robot, mixed units.
            v_free: Velocity of each robot after the step without contacts, (nv,), mixed units.
            extra: Added to the diagonal of each robot's inertia matrix, (nv,); see `dynamics.forward.accelerations`.
            h: The step, [s]. geometry: At qs. rows, solver: See `impact`.
            guess: Initial impulses, (m, 3), [N s], contact frames: those of the last step.
            loops: Constraints of the closed loops of the robot, which hold for v_free; None without loops.
        """
        sides = [(candidate.first, candidate.second) for candidate in self.candidates]
        obstacles = [candidate.obstacle for candidate in self.candidates]
        contacts = Contacts.of(self.robots, sides, qs, extra, geometry.frame, geometry.point, loops, obstacles)
        coefficients = [self.ground.coefficients(*candidate.materials) for candidate in self.candidates]
        return impact(self.ground, contacts, coefficients, vs, v_free, h, geometry.gap, guess, rows, solver)

    def wrenches(self, qs: Sequence[Array], geometry: ContactGeometry, forces: Array) -> list[Array]:
        """Return the wrenches of contact forces on the links of each robot, (n_links, 6), link axes, for controllers.

        Args:
            qs: Configuration of each robot, (nq,), mixed units. geometry: At qs.
            forces: On the first sides, (m, 3), [N], contact frames.
        """
        poses = [motion(robot, q) for robot, q in zip(self.robots, qs, strict=True)]
        totals = [[np.zeros(6) for _ in robot.links] for robot in self.robots]
        for candidate, frame, point, force in zip(self.candidates, geometry.frame, geometry.point, forces, strict=True):
            for side, f in ((candidate.first, frame.T @ force), (candidate.second, -(frame.T @ force))):
                if side is not None:
                    link = self.robots[side.robot].links[side.link]
                    R = poses[side.robot].rotation[link.body] @ link.rotation
                    r = R.T @ (point - side.point(poses, link.position))
                    f_link = R.T @ f
                    totals[side.robot][side.link] = totals[side.robot][side.link] + join(cross(r, f_link), f_link)
        return [np.array(total) for total in totals]


def pairs_of(
    robots: Sequence[Robot], named: Sequence[tuple[str, str]] | None, obstacles: Sequence[tuple[str, Shape]] = ()
) -> tuple[Pair, ...]:
    """Return the collision pairs of a scene.

    By default, in this order: contact points of the robot with the terrain; shapes of free bodies with the terrain;
    shapes of the robot's links with those of free bodies; those of free bodies with each other; shapes of links of
    different robots of a group; contact points of the robot and shapes of free bodies with each obstacle.

    Args:
        robots: The robot, then the free bodies.
        named: Pairs of names that replace the default pairs. A link of the robot collides with the terrain and with
            obstacles by its contact points, or by its shapes if it has none; all other pairs collide by their shapes.
        obstacles: Fixed shapes by name, world axes.

    Raises:
        DefinitionError: for names used twice, and for pairs that cannot collide.
        UnknownNameError: for unknown names.
    """
    links, fixed = _links(robots), dict(obstacles)
    if len(fixed) < len(obstacles) or not fixed.keys().isdisjoint([*links, TERRAIN]):
        raise DefinitionError(
            f"the obstacles {', '.join(name for name, _ in obstacles)} need names that differ from each other, from "
            f"links and free bodies, and from {TERRAIN!r}"
        )
    if named is not None:
        return tuple(pair for one, other in named for pair in _named(robots, links, fixed, one, other))
    (robot, *bodies), pairs = robots, []
    shaped = [link.name for link in robot.links if link.shapes]
    points = [_contact_point(robot, k) for k in range(len(robot.contacts))]
    for body in bodies:
        pairs += _on_terrain(links[body.name])
    colliding = [(name, body.name) for name in shaped for body in bodies]
    for one, other in [*colliding, *combinations([body.name for body in bodies], 2)]:
        pairs += _between(links[one], links[other])
    for a, b in _shaped_pairs(robot):
        if a.body != b.body and _member(robot, a) != _member(robot, b):
            pairs += _between(links[a.name], links[b.name])
    touching = [link.name for link in robot.links if any(contact.link == link.index for contact in robot.contacts)]
    for name in [*touching, *(body.name for body in bodies)] if obstacles else ():
        pairs += [pair for obstacle in obstacles for pair in _on_obstacle(robots, links[name], *obstacle)]
    return (*points, *pairs)


def self_pairs(robot: Robot) -> tuple[Pair, ...]:
    """Return the pairs of shapes of links of each robot, but for neighbors and overlaps at zero; see `Rigid`."""
    poses, links = [motion(robot, robot.neutral())], _links([robot])
    carriers = {link.body for link in robot.links}
    between_links: list[Pair] = []
    for one, other in _shaped_pairs(robot):
        bodies = one.body, other.body
        if _member(robot, one) != _member(robot, other) or one.body == other.body:
            continue
        if any(_carrier(robot, a, carriers) == b for a, b in (bodies, bodies[::-1])):
            continue
        pairs = _between(links[one.name], links[other.name])
        near = (pair for pair in pairs if not are_apart(pair, poses))
        if all(contact.gap > 0.0 for pair in near for contact in pair.detect(poses, Flat())):
            between_links += pairs
    return tuple(between_links)


def _shaped_pairs(robot: Robot) -> list[tuple[PlacedLink, PlacedLink]]:
    """Return all pairs of links of a robot that have shapes."""
    return list(combinations([link for link in robot.links if link.shapes], 2))


def _member(robot: Robot, link: PlacedLink) -> int:
    """Return the number of the robot of a group that a link belongs to; -1 for a link of a single robot."""
    return robot.member_of_link.get(link.index, -1) if isinstance(robot, RobotGroup) else -1


def _carrier(robot: Robot, body: int, carriers: set[int]) -> int:
    """Return the next body inward that carries a link, -1 for the base: bodies between axes of a joint carry none."""
    parent = robot.bodies[body].parent
    while parent >= 0 and parent not in carriers:
        parent = robot.bodies[parent].parent
    return parent


@dataclass(frozen=True, eq=False)
class _Placed:
    """A link of the robot with a number in the scene."""

    robot: int
    link: PlacedLink

    @property
    def side(self) -> Side:
        return Side(self.robot, self.link.index, self.link.body)

    @cached_property
    def shapes(self) -> list[tuple[BodyShape, str]]:
        """The shapes of the link in body axes, each with a name."""
        link = self.link
        if not link.shapes:
            raise DefinitionError(f"{link.name!r} has no collision shapes; give it some, such as a Sphere or a Box")
        names = _numbered(link.name, len(link.shapes))
        moved = [shape_with(shape.moved(link.rotation, link.position), link.material) for shape in link.shapes]
        return [(BodyShape(self.side, shape), name) for shape, name in zip(moved, names, strict=True)]


def _links(robots: Sequence[Robot]) -> dict[str, _Placed]:
    """Return the links of all robots by name."""
    placed: dict[str, _Placed] = {}
    for number, robot in enumerate(robots):
        for link in robot.links:
            if link.name in placed or link.name == TERRAIN:
                raise DefinitionError(
                    f"two things in the scene are named {link.name!r}; links, free bodies and the {TERRAIN!r} need "
                    f"names that differ"
                )
            placed[link.name] = _Placed(number, link)
    return placed


def _named(
    robots: Sequence[Robot], links: dict[str, _Placed], obstacles: dict[str, Shape], one: str, other: str
) -> list[Pair]:
    """Return the collision pairs of two names: links, free bodies, obstacles or the terrain."""
    known = [*links, *obstacles, TERRAIN]
    for name in (one, other):
        if name not in known:
            raise UnknownNameError("link, free body, obstacle or terrain", name, known)
    if one not in links:
        one, other = other, one
    if one == other:
        raise DefinitionError(f"{one!r} cannot collide with itself; name two different things")
    if one not in links:
        raise DefinitionError(f"{one!r} and {other!r} are both fixed and cannot collide")
    if other in links:
        return [*_between(links[one], links[other])]
    if other in obstacles:
        return _on_obstacle(robots, links[one], other, obstacles[other])
    robot, points = robots[0], _points_of(robots, links[one])
    return [_contact_point(robot, k) for k in points] if points else _on_terrain(links[one])


def _points_of(robots: Sequence[Robot], placed: _Placed) -> list[int]:
    """Return the numbers of the contact points of a link of the robot; none for free bodies."""
    if placed.robot:
        return []
    return [k for k, contact in enumerate(robots[0].contacts) if contact.link == placed.link.index]


def _on_obstacle(robots: Sequence[Robot], placed: _Placed, name: str, obstacle: Shape) -> list[Pair]:
    """Return the pairs of a link's contact points, or of its shapes if it has none, and an obstacle."""
    balls: list[tuple[BodyShape, str]] = []
    for pair in (_contact_point(robots[0], k) for k in _points_of(robots, placed)):
        balls.append((BodyShape(pair.first, Ball(pair.center, pair.radius, pair.material)), pair.names[0]))
    if balls:
        return [ShapePair(ball, BodyShape(None, obstacle), (f"{own}-{name}",)) for ball, own in balls]
    pairs: list[Pair] = []
    for shape, own in placed.shapes:
        first, second = ordered(shape, BodyShape(None, obstacle))
        pairs.append(ShapePair(first, second, _numbered(f"{own}-{name}", candidate_count(first.shape, second.shape))))
    return pairs


def _contact_point(robot: Robot, k: int) -> SphereTerrain:
    """Return the pair of a contact point of the robot and the terrain."""
    contact = robot.contacts[k]
    link = robot.links[contact.link]
    at, side = link.position + link.rotation @ contact.position, Side(0, link.index, link.body)
    return SphereTerrain(side, at, contact.radius, (contact.name,), contact.material or link.material)


def _on_terrain(placed: _Placed) -> list[Pair]:
    """Return the pairs of a link's shapes and the terrain."""
    pairs: list[Pair] = []
    for shape, name in placed.shapes:
        solid = shape.shape
        names = _numbered(name, candidate_count(solid, None))
        if isinstance(solid, Sphere | Capsule):
            centers = [np.asarray(solid.center)] if isinstance(solid, Sphere) else list(solid.ends)
            balls = zip(centers, names, strict=True)
            for center, own in balls:
                pairs.append(SphereTerrain(placed.side, center, solid.radius, (own,), solid.material))
        else:
            pairs.append(SolidTerrain(shape, names))
    return pairs


def _between(one: _Placed, other: _Placed) -> list[ShapePair]:
    """Return the pairs of the shapes of two links."""
    if (one.robot, one.link.body) == (other.robot, other.link.body):
        raise DefinitionError(f"{one.link.name!r} and {other.link.name!r} are one rigid body and cannot collide")
    pairs: list[ShapePair] = []
    for a, name in one.shapes:
        for b, with_name in other.shapes:
            first, second = ordered(a, b)
            names = _numbered(f"{name}-{with_name}", candidate_count(first.shape, second.shape))
            pairs.append(ShapePair(first, second, names))
    return pairs


def _numbered(name: str, count: int) -> tuple[str, ...]:
    return (name,) if count == 1 else tuple(f"{name}_{k + 1}" for k in range(count))
