"""What a robot stands on: feet that bear a whole wrench, and points that bear a force."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from legged.errors import DefinitionError, UnknownNameError
from legged.robot.base import PlanarBase
from legged.robot.inertia import Inertia
from legged.robot.robot import Robot
from legged.spatial import Array, join, mass_matrix, skew

_FLAT = 1e-6  # [m]: points that lie nearer to one line than this do not make a sole


@dataclass(frozen=True, eq=False)
class Foot:
    """A sole, or one contact point where a link has too few of them for a sole.

    Attributes:
        name: Of the link, if it is a sole, or of the contact point.
        link: Index of the link that carries it. body: Of that link's body.
        contacts: Indices of its contact points.
        place: The middle of these, (3,), [m], link axes: where its wrench is taken.
        rows: Which of the six numbers [n; f] the ground can give it, in any axes with the same plane of motion.
        frame: (R, r), link axes to body axes, (3, 3), and body origin to link origin, (3,), [m].
    """

    name: str
    link: int
    body: int
    contacts: tuple[int, ...]
    place: Array
    rows: tuple[int, ...]
    frame: tuple[Array, Array]

    @cached_property
    def center(self) -> Array:
        """Body origin to `place`, (3,), [m], body axes."""
        R, r = self.frame
        return r + R @ self.place

    @cached_property
    def wrenches(self) -> Array:
        """What the ground can give, (6, rows), about the body's origin in body axes, one column for each of `rows`."""
        R, _ = self.frame
        turned = np.block([[R, skew(self.center) @ R], [np.zeros((3, 3)), R]])
        return turned[:, list(self.rows)]

    def big_base(self, central: Inertia) -> Array:
        """Return the mass matrix, (6, 6), body axes, of the central body put at the foot; of its mass alone at a point.

        Source: Wendlandt 1997, algorithm 3, less the factor. The middle of the sole is its center of mass here.
        """
        R, r = self.frame
        tensor = central.tensor if any(row < 3 for row in self.rows) else np.zeros((3, 3))
        moved = Inertia(central.mass, self.place, tensor, checked=False).moved(R, r)
        return mass_matrix(moved.mass, moved.mass * np.asarray(moved.center), moved.about_origin)


def feet_of(robot: Robot, names: Sequence[str] | None = None) -> tuple[Foot, ...]:
    """Return the feet that names of links or contact points ask for, or all of them, in the order of the links.

    Raises:
        UnknownNameError: for a name of neither. DefinitionError: for a robot without feet, or a link without.
    """
    feet = tuple(foot for link in robot.links for foot in _feet_on(robot, link.index))
    if names is None:
        chosen = feet
    else:
        known = [*(robot.links[foot.link].name for foot in feet), *(foot.name for foot in feet)]
        for name in names:
            if name not in known:
                raise UnknownNameError("foot", name, dict.fromkeys(known))
        chosen = tuple(foot for foot in feet if foot.name in names or robot.links[foot.link].name in names)
    if not chosen:
        raise DefinitionError(f"robot {robot.name!r} has nothing to stand on: give links contact points, or name some")
    return chosen


def _feet_on(robot: Robot, link: int) -> list[Foot]:
    points = [i for i, point in enumerate(robot.contacts) if point.link == link and robot.links[link].body]
    planar = isinstance(robot.base, PlanarBase)
    spread = np.array([robot.contacts[i].position for i in points]).reshape(-1, 3)
    sizes = np.linalg.svd(spread - spread.mean(axis=0), compute_uv=False) if points else np.zeros(0)
    if np.sum(sizes > _FLAT) >= (1 if planar else 2):
        return [_foot(robot, robot.links[link].name, points, (1, 3, 5) if planar else (0, 1, 2, 3, 4, 5))]
    return [_foot(robot, robot.contacts[i].name, [i], (3, 5) if planar else (3, 4, 5)) for i in points]


def _foot(robot: Robot, name: str, contacts: list[int], rows: tuple[int, ...]) -> Foot:
    link = robot.links[robot.contacts[contacts[0]].link]
    place = np.mean([robot.contacts[i].position for i in contacts], axis=0)
    return Foot(name, link.index, link.body, tuple(contacts), place, rows, (link.rotation, link.position))


def central_body(robot: Robot) -> Inertia:
    """Return what the base weighs, with all that is fixed to it, in its own axes.

    Raises:
        DefinitionError: if that is nothing; there is no big base to compare with then.
    """
    parts = [link for link in robot.links if link.body == 0]
    total = Inertia()
    for link in parts:
        total = total + link.inertia.moved(link.rotation, link.position)
    if not total.mass > 0.0:
        raise DefinitionError(f"the base of robot {robot.name!r} weighs nothing; workspace control needs a trunk")
    return total


def seen_from(place: Array, rows: Sequence[int]) -> Array:
    """Return the wrenches about the origin, (6, rows), of those of `rows` at a place (3,), all in the same axes."""
    columns = [join(axis, np.zeros(3)) for axis in np.eye(3)]
    columns += [join(arm, axis) for arm, axis in zip(skew(place).T, np.eye(3), strict=True)]
    return np.array([columns[row] for row in rows]).T
