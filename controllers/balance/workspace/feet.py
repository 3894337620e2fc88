"""The feet of a robot: soles, which transmit a wrench, and contact points, which transmit a force."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from legged.arguments import known_name
from legged.errors import DefinitionError
from legged.robot.base import PlanarBase
from legged.robot.inertia import Inertia
from legged.robot.robot import Robot
from legged.spatial import Array, join, mass_matrix, skew

_EXTENT = 1e-6  # [m], least extent of the contact points of a sole in each direction


@dataclass(frozen=True, eq=False)
class StanceFoot:
    """A sole, or a single contact point of a link whose contact points do not span a sole.

    Attributes:
        name: Name of the link for a sole, name of the contact point otherwise.
        link: Index of the link that carries it.
        body: Index of that link's body.
        contacts: Indices of its contact points.
        position: Mean of the contact points, (3,), [m], link axes; the reference point of its wrench.
        rows: Indices of the components of [n; f] that the ground can apply; in a planar robot, those of its plane.
        frame: (R, r), rotation from link axes to body axes, (3, 3), and position of the link's origin, (3,), [m], body
            axes.
    """

    name: str
    link: int
    body: int
    contacts: tuple[int, ...]
    position: Array
    rows: tuple[int, ...]
    frame: tuple[Array, Array]

    @cached_property
    def body_position(self) -> Array:
        """Position of the foot from the body's origin, (3,), [m], body axes."""
        R, r = self.frame
        return r + R @ self.position

    @cached_property
    def wrench_basis(self) -> Array:
        """Wrenches that the ground can apply, (6, rows), about the body's origin in body axes, a column for each row.

        Columns are dimensionless for forces and moments, and moment arms of forces are in [m].
        """
        R, _ = self.frame
        basis = np.block([[R, skew(self.body_position) @ R], [np.zeros((3, 3)), R]])
        return basis[:, list(self.rows)]

    def big_base(self, central: Inertia) -> Array:
        """Return the mass matrix of the central body, moved to the foot, (6, 6), body axes.

        Its center of mass is at the foot's position. At a single contact point it is a point mass.

        Source:
            Wendlandt 1997, algorithm 3, without the factor.
        """
        R, r = self.frame
        tensor = central.tensor if any(row < 3 for row in self.rows) else np.zeros((3, 3))
        moved = Inertia(central.mass, self.position, tensor, checked=False).moved(R, r)
        return mass_matrix(moved.mass, moved.mass * np.asarray(moved.center), moved.about_origin)


def feet_of(robot: Robot, names: Sequence[str] | None = None) -> tuple[StanceFoot, ...]:
    """Return the feet with the given names of links or contact points, or all feet, in the order of the links.

    Raises:
        UnknownNameError: No foot has a name.
        DefinitionError: There are no feet.
    """
    feet = tuple(foot for link in robot.links for foot in _feet_on(robot, link.index))
    if names is None:
        chosen = feet
    else:
        known = [*(robot.links[foot.link].name for foot in feet), *(foot.name for foot in feet)]
        for name in names:
            known_name("foot", name, dict.fromkeys(known))
        chosen = tuple(foot for foot in feet if foot.name in names or robot.links[foot.link].name in names)
    if not chosen:
        raise DefinitionError(f"robot {robot.name!r} has no feet to stand on; add contact points to links or name some")
    return chosen


def _feet_on(robot: Robot, link: int) -> list[StanceFoot]:
    points = [i for i, point in enumerate(robot.contacts) if point.link == link and robot.links[link].body]
    planar = isinstance(robot.base, PlanarBase)
    spread = np.array([robot.contacts[i].position for i in points]).reshape(-1, 3)
    sizes = np.linalg.svd(spread - spread.mean(axis=0), compute_uv=False) if points else np.zeros(0)
    if np.sum(sizes > _EXTENT) >= (1 if planar else 2):
        return [_foot(robot, robot.links[link].name, points, (1, 3, 5) if planar else (0, 1, 2, 3, 4, 5))]
    return [_foot(robot, robot.contacts[i].name, [i], (3, 5) if planar else (3, 4, 5)) for i in points]


def _foot(robot: Robot, name: str, contacts: list[int], rows: tuple[int, ...]) -> StanceFoot:
    link = robot.links[robot.contacts[contacts[0]].link]
    position = np.mean([robot.contacts[i].position for i in contacts], axis=0)
    return StanceFoot(name, link.index, link.body, tuple(contacts), position, rows, (link.rotation, link.position))


def central_body(robot: Robot) -> Inertia:
    """Return the inertia of the base with all links that are fixed to it, in base axes.

    Raises:
        DefinitionError: The base has no mass.
    """
    parts = [link for link in robot.links if link.body == 0]
    total = Inertia()
    for link in parts:
        total = total + link.inertia.moved(link.rotation, link.position)
    if not total.mass > 0.0:
        raise DefinitionError(
            f"the base of robot {robot.name!r} has no mass; workspace control needs a trunk with mass"
        )
    return total


def wrench_transform(position: Array, rows: Sequence[int]) -> Array:
    """Return the map from wrench components at a position to the wrench about the origin, (6, rows), in the same axes.

    Args:
        position: Point at which the wrench acts, (3,), [m], in any axes.
        rows: Indices of the components of the wrench.
    """
    columns = [join(axis, np.zeros(3)) for axis in np.eye(3)]
    columns += [join(arm, axis) for arm, axis in zip(skew(position).T, np.eye(3), strict=True)]
    return np.array([columns[row] for row in rows]).T
