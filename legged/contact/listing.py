"""Which pairs of a scene may touch."""

from __future__ import annotations

from collections.abc import Sequence

from legged.contact.pairs import Pair, PointsOnTerrain, Side
from legged.robot.robot import Robot

TERRAIN = "terrain"


def pairs_of(robots: Sequence[Robot], named: Sequence[tuple[str, str]] | None) -> tuple[Pair, ...]:
    """Return what may touch in a scene, the user's robot first; see `legged.contact.scene`."""
    return tuple(_feet(robots[0]))


def _feet(robot: Robot) -> list[Pair]:
    """Return the robot's contact points over the terrain, in their order; those of one link and radius together."""
    found = []
    for contact in robot.contacts:
        link = robot.links[contact.link]
        at = link.position + link.rotation @ contact.position
        side = Side(0, link.index, link.body)
        found.append(PointsOnTerrain(side, at[None], contact.radius, (contact.name,)))
    return found
