"""A standing posture for any legged robot: knees bent, soles level under the hips, the mass over their middle."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np

from controllers.gaits.numerical import FootKinematics
from controllers.gaits.reading import axes_to, foot_links, leg_name
from legged.dynamics.kinematics import center_of_mass, link_poses
from legged.errors import DefinitionError, ReachError
from legged.robot.robot import Robot

Array = np.ndarray
_NEAR = 1e-4  # [m], how near the search must come, before the last digits are solved for
_EXACT = 1e-9  # [m], what these come to
_LIKES_ZERO = 0.1, 1e-4  # [m/rad], what turning a joint counts beside a sole's distance: any, and one that pitches
_BEND = 0.6  # [rad], both ways, where the search for knees begins
_ROUNDS = 4  # of bringing the soles under the center of mass; each gains a digit or two


@dataclass(frozen=True, eq=False)
class Stance:
    """One leg of a robot that can stand.

    Attributes:
        name: As in `legs_of`.
        link: Index of its last link.
        contacts: Names of its contact points.
        columns: Its joints' places among the robot's joint coordinates.
        bends: Those of them that pitch, at zero, from hip to ankle.
        hip: Origin of the first of these, (3,), [m], base axes at zero.
        length: From the hip along the joints to the sole, [m].
    """

    name: str
    link: int
    contacts: tuple[str, ...]
    columns: tuple[int, ...]
    bends: tuple[int, ...]
    hip: Array
    length: float


@dataclass(frozen=True, eq=False)
class Home:
    """Where a robot stands.

    Attributes:
        angles: Joint positions, (nj,).
        base_height: Of the base's origin over the ground, [m].
        legs: Its legs, in the order of its links.
    """

    angles: Array
    base_height: float
    legs: tuple[Stance, ...]

    @property
    def hip_height(self) -> float:
        """Mean height of the hips over the ground, [m]."""
        return self.base_height + float(np.mean([leg.hip[2] for leg in self.legs]))


def home_of(robot: Robot, hip_height: float | None = None) -> Home:
    """Return a standing posture, every joint inside its limits.

    The soles are level and lie so that the center of mass is over their middle; joints that this leaves open stay as
    near zero as they can. Knees that may bend either way point to the middle of the robot, and forward from there.

    Args:
        robot: With contact points on its feet.
        hip_height: Of the lowest hip over the ground, [m]; by default 0.75 of its leg's length, 0.9 on two legs.

    Raises:
        DefinitionError: The robot has no legs, or ball joints. ReachError: No posture inside the limits stands so.
    """
    legs = stances_of(robot)
    bend = 0.9 if len(legs) <= 2 else 0.75
    depth = min((hip_height or bend * leg.length) - float(leg.hip[2]) for leg in legs)
    search = _Search(robot, legs, depth)
    angles, shift = np.clip(np.zeros(robot.nj), *joint_limits(robot)), 0.0
    for _ in range(_ROUNDS):
        for leg in legs:
            angles = search.stood(leg, angles, shift)
        mass = center_of_mass(robot, np.concatenate([robot.base.neutral(), angles]))
        shift += float(mass[0] - np.mean([search.soles(leg, angles)[:, 0].mean() for leg in legs]))
    points = search.feet.positions(angles)
    points[:, 2] = -depth
    return Home(search.feet.solve(points, angles, _EXACT), depth, legs)


def joint_limits(robot: Robot) -> tuple[Array, Array]:
    """Return the lower and upper limits of the joint coordinates, (nj,) each, [rad] or [m]; infinite where none is."""
    lower, upper = np.zeros(robot.nv), np.zeros(robot.nv)
    for joint in robot.joints:
        lower[joint.v], upper[joint.v] = joint.definition.physics.lower, joint.definition.physics.upper
    return lower[robot.base.nv :], upper[robot.base.nv :]


def stances_of(robot: Robot) -> tuple[Stance, ...]:
    """Return the legs, in the order of the robot's links, or raise DefinitionError if there are none."""
    rotations, origins = link_poses(robot, robot.neutral())
    legs = tuple(_stance(robot, end, rotations, origins - origins[0]) for end in foot_links(robot))
    if not legs:
        raise DefinitionError(f"robot {robot.name!r} has no legs: no link beyond the base has contact points")
    return legs


def _stance(robot: Robot, end: int, rotations: Array, origins: Array) -> Stance:
    axes = axes_to(robot, end, rotations, origins)
    bends = [axis for axis in axes if axis.kind == "revolute" and abs(axis.axis[1]) > 0.7] or axes
    if not bends:
        raise DefinitionError(f"no joint leads to the contact points on {robot.links[end].name!r}")
    points = [point for point in robot.contacts if point.link == end]
    sole = np.mean([origins[end] + rotations[end] @ point.position for point in points], axis=0)
    return Stance(
        leg_name(robot, end),
        end,
        tuple(point.name for point in points),
        tuple(dict.fromkeys(axis.column for axis in axes)),
        tuple(dict.fromkeys(axis.column for axis in bends)),
        bends[0].origin,
        sum(float(np.linalg.norm(b - a)) for a, b in pairwise([*(axis.origin for axis in bends), sole])),
    )


class _Search:
    """Standing legs, found one by one by bounded least squares from several bends."""

    def __init__(self, robot: Robot, legs: tuple[Stance, ...], depth: float):
        self.robot, self.depth = robot, depth
        self.feet = FootKinematics(robot, [name for leg in legs for name in leg.contacts])
        self.middle = float(np.mean([leg.hip[0] for leg in legs]))
        self.lower, self.upper = joint_limits(robot)

    def soles(self, leg: Stance, angles: Array) -> Array:
        """Return where the leg's contact points are, (n, 3), [m], base axes."""
        return self.feet.positions(angles)[self._rows(leg)]

    def stood(self, leg: Stance, angles: Array, shift: float) -> Array:
        """Return the angles with the leg's sole level, at the depth, and `shift` ahead of its hip."""
        found = [self._from(leg, start, shift) for start in self._starts(leg, angles)]
        near = [(one, cost) for one, off, cost in found if off < _NEAR]
        if not near:
            off = min(off for _, off, _ in found)
            raise ReachError(
                f"leg {leg.name!r} of robot {self.robot.name!r} cannot stand {self.depth + leg.hip[2]:.3g} m under its "
                f"hip inside the limits of its joints: {off:.3g} m remain; choose another hip height or give a posture",
                residual=off,
            )
        return min(near, key=lambda one: (not self._inward(leg, one[0]), one[1]))[0]

    def _rows(self, leg: Stance) -> list[int]:
        return [self.feet.names.index(name) for name in leg.contacts]

    def _free(self, leg: Stance) -> Array:
        columns = np.array(leg.columns)
        return columns[self.upper[columns] > self.lower[columns]]

    def _starts(self, leg: Stance, angles: Array) -> list[Array]:
        starts = []
        for hip, knee in product((_BEND, -_BEND), (2 * _BEND, -2 * _BEND)):
            start = angles.copy()
            start[list(leg.bends[:2])] = (hip, knee)[: len(leg.bends)]
            starts.append(np.clip(start, self.lower, self.upper))
        return starts

    def _from(self, leg: Stance, start: Array, shift: float) -> tuple[Array, float, float]:
        """Return (angles, what the sole is off by [m], what the joints turned) of the search from a start."""
        rows, free = self._rows(leg), self._free(leg)
        below = leg.hip[0] + shift
        likes = np.where(np.isin(free, leg.bends), _LIKES_ZERO[1], _LIKES_ZERO[0])

        def placed(values: Array) -> Array:
            return _with(start, free, values)

        def left(values: Array) -> Array:
            points = self.feet.positions(placed(values))[rows]
            return np.concatenate([[points[:, 0].mean() - below], points[:, 2] + self.depth, likes * values])

        def slope(values: Array) -> Array:
            J = self.feet.jacobian(placed(values)).reshape(-1, 3, len(self.feet.active))[rows]
            J = J[:, :, np.searchsorted(self.feet.active, free)]
            return np.concatenate([J[:, 0].mean(axis=0)[None], J[:, 2], np.diag(likes)])

        from scipy.optimize import least_squares  # imported where it is used: it takes as long as all else

        limits = self.lower[free], self.upper[free]
        fit = least_squares(left, start[free], slope, bounds=limits, xtol=1e-14)  # type: ignore[arg-type]
        off = float(np.abs(fit.fun[: -len(free)]).max())
        return placed(fit.x), off, float(np.abs(fit.x).sum())

    def _inward(self, leg: Stance, angles: Array) -> bool:
        """Return whether the knee points to the middle of the robot, or forward from there."""
        at = link_poses(self.robot, np.concatenate([self.robot.base.neutral(), angles]))
        axes = {axis.column: axis.origin[0] for axis in axes_to(self.robot, leg.link, *at)}
        if len(leg.bends) < 2:
            return True
        ahead = axes[leg.bends[1]] - axes[leg.bends[0]]
        return ahead * (self.middle - leg.hip[0] + 1e-3) > 0


def _with(angles: Array, columns: Array, values: Array) -> Array:
    changed = angles.copy()
    changed[columns] = values
    return changed
