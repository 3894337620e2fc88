"""Which pairs of a scene may touch: by default, or by the names of links, free bodies and the terrain."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from legged.contact.pairs import BallOnTerrain, BoxOnTerrain, Pair, Side, Solid, SolidOnSolid, spots_of
from legged.errors import DefinitionError, UnknownNameError
from legged.robot.link import Box, PlacedLink, Sphere
from legged.robot.robot import Robot

TERRAIN = "terrain"


def pairs_of(robots: Sequence[Robot], named: Sequence[tuple[str, str]] | None) -> tuple[Pair, ...]:
    """Return what may touch in a scene.

    By default, in this order: contact points of the user's robot and the terrain; shapes of free bodies and the
    terrain; shapes of the robot's links and those of free bodies; those of free bodies among each other.

    Args:
        robots: The user's, then the free bodies'.
        named: Names of what may touch instead, two by two. A link of the robot meets the terrain with its contact
            points, or with its shapes if it has none; everything else meets with its shapes.

    Raises:
        DefinitionError: for names that are used twice, or pairs of things that cannot touch.
        UnknownNameError: for names that are not there.
    """
    links = _links(robots)
    if named is not None:
        return tuple(pair for one, other in named for pair in _named(robots, links, one, other))
    (robot, *bodies), found = robots, []
    shaped = [link.name for link in robot.links if link.shapes]
    feet = [_point(robot, k) for k in range(len(robot.contacts))]
    for body in bodies:
        found += _on_terrain(links[body.name])
    meeting = [(name, body.name) for name in shaped for body in bodies]
    for one, other in [*meeting, *combinations([body.name for body in bodies], 2)]:
        found += _between(links[one], links[other])
    return (*feet, *found)


_Placed = tuple[int, PlacedLink]


def _links(robots: Sequence[Robot]) -> dict[str, _Placed]:
    """Return (number of the robot, link) by name."""
    found: dict[str, _Placed] = {}
    for number, robot in enumerate(robots):
        for link in robot.links:
            if link.name in found or link.name == TERRAIN:
                raise DefinitionError(
                    f"two things in the scene are named {link.name!r}; links, free bodies and the {TERRAIN!r} need "
                    f"names that differ"
                )
            found[link.name] = number, link
    return found


def _named(robots: Sequence[Robot], links: dict[str, _Placed], one: str, other: str) -> list[Pair]:
    """Return the pairs of two things by name."""
    for name in (one, other):
        if name not in links and name != TERRAIN:
            raise UnknownNameError("link, free body or terrain", name, [*links, TERRAIN])
    if one == TERRAIN:
        one, other = other, one
    if one in (other, TERRAIN):
        raise DefinitionError(f"{one!r} cannot touch itself; name two things that may touch")
    if other != TERRAIN:
        return _between(links[one], links[other])
    number, link = links[one]
    robot = robots[number]
    points = [k for k, contact in enumerate(robot.contacts) if contact.link == link.index]
    return [_point(robot, k) for k in points] if points and number == 0 else _on_terrain(links[one])


def _point(robot: Robot, k: int) -> BallOnTerrain:
    """Return a contact point of the user's robot over the terrain."""
    contact = robot.contacts[k]
    link = robot.links[contact.link]
    at = link.position + link.rotation @ contact.position
    return BallOnTerrain(_side((0, link)), at, contact.radius, (contact.name,))


def _on_terrain(placed: _Placed) -> list[Pair]:
    """Return a link's shapes over the terrain."""
    found: list[Pair] = []
    for solid, name in _solids(placed):
        if isinstance(solid.shape, Sphere):
            found.append(BallOnTerrain(solid.side, solid.shape.center, solid.shape.radius, (name,)))  # type: ignore[arg-type]
        else:
            found.append(BoxOnTerrain(solid, _counted(name, 4)))
    return found


def _between(one: _Placed, other: _Placed) -> list[Pair]:
    """Return a link's shapes with those of another."""
    if (one[0], one[1].body) == (other[0], other[1].body):
        raise DefinitionError(f"{one[1].name!r} and {other[1].name!r} are one rigid body and cannot touch")
    found: list[Pair] = []
    for a, name in _solids(one):
        for b, with_name in _solids(other):
            first, second = (b, a) if isinstance(a.shape, Box) and isinstance(b.shape, Sphere) else (a, b)
            names = _counted(f"{name}-{with_name}", spots_of(first.shape, second.shape))
            found.append(SolidOnSolid(first, second, names))
    return found


def _solids(placed: _Placed) -> list[tuple[Solid, str]]:
    """Return a link's shapes in body axes, each with a name."""
    _, link = placed
    if not link.shapes:
        raise DefinitionError(f"{link.name!r} has no shapes to touch anything with; give it a Sphere or a Box")
    names = _counted(link.name, len(link.shapes))
    moved = [shape.moved(link.rotation, link.position) for shape in link.shapes]
    return [(Solid(_side(placed), shape), name) for shape, name in zip(moved, names, strict=True)]


def _counted(name: str, count: int) -> tuple[str, ...]:
    return (name,) if count == 1 else tuple(f"{name}_{k + 1}" for k in range(count))


def _side(placed: _Placed) -> Side:
    number, link = placed
    return Side(number, link.index, link.body)
