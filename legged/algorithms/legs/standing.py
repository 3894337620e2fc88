"""A standing posture of any legged robot, by inverse kinematics within the ranges of its joints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from legged.algorithms.legs.foot_kinematics import FootKinematics
from legged.algorithms.legs.leg_chains import LegChain, joint_axes, leg_chains
from legged.arguments import number
from legged.checked import checked, checked_arguments
from legged.dynamics.kinematics import center_of_mass, link_poses
from legged.errors import ReachError
from legged.robot.robot import Robot

Array = np.ndarray
_SOLVED = 1e-7  # [leg length], distance of the soles from the ground of an exact solution
_TILTED = 0.02  # [leg length], largest distance of a sole from the ground where it cannot be level
_WEIGHT, _PITCH_WEIGHT = 0.1, 1e-4  # [m/rad], weights of joint positions against distances of soles: all, pitch joints
_BEND = 0.6  # [rad], initial values of the search for hip and half the knee, with both signs
_ITERATIONS = 4  # of shifting the soles under the center of mass; each gains one or two digits
_MARGIN, _MARGIN_SHARE = 0.05, 0.1  # [rad] or [m], distance of joints from their limits; at most this part of a range
_HEIGHTS = (
    1.0,
    0.95,
    0.9,
    0.85,
    0.8,
    0.7,
    0.6,
    1.05,
    1.1,
)  # of the desired hip height, in the search for a possible one
_CHANGES = (0.0, -0.03, 0.03, -0.06, 0.06, -0.1, 0.1, -0.15, -0.2)  # [hip height], of the base's height on a terrain
_SAME = 1e-4  # [hip height], distances of soles from the ground that count as equal in this choice
_LEG, _SPREAD = 0.4, 0.6  # [leg length], hip height of a leg as of an insect, and horizontal distance of its sole


@dataclass(frozen=True, eq=False)
class Home:
    """A standing posture.

    Attributes:
        angles: Joint positions, (nj,), [rad] or [m].
        base_height: Height of the base's origin over the ground, [m].
        legs: The legs, in the order of the robot's links.
    """

    angles: Array
    base_height: float
    legs: tuple[LegChain, ...]

    @property
    def hip_height(self) -> float:
        """Mean height of the hips over the ground, [m]."""
        return self.base_height + float(np.mean([leg.hip[2] for leg in self.legs]))


@checked
def home_of(robot: Robot, hip_height: float | None = None, nearest: bool = False) -> Home:
    """Return a standing posture with every joint inside its limits.

    Joints are 0.05 rad or 0.05 m away from their limits, or a tenth of their range if that is less, unless a given hip
    height requires positions nearer to the limits. The soles are
    level, with the center of mass over their middle; redundant joints are as near zero as possible. A knee that can
    bend both ways points to the middle of the robot, or forward if its hip is there. Legs as of insects stand with
    their soles beside their hips. A sole that cannot be level within the limits stands on its lowest contact point if
    no other is higher than 0.02 of the length of the leg.

    Args:
        robot: A robot with contact points on its feet.
        hip_height: Height of the lowest hip over the ground, [m]; by default the nearest possible one to 0.75 of its
            leg's length, to 0.9 for robots with up to two legs, and to 0.4 for legs as of insects.
        nearest: Whether the nearest possible hip height is taken if the given one is not possible.

    Returns:
        The posture. It is computed once for each robot and hip height; its array is read-only.

    Raises:
        DefinitionError: The robot has no legs, or has ball joints. ArgumentError: The hip height is not positive.
        ReachError: No posture within the joint limits has this hip height; the message states a possible one.
    """
    if hip_height is not None:
        number("hip_height", hip_height, "m", above=0.0)
    known = _HOMES.setdefault(robot, {})
    if (hip_height, nearest) not in known:
        known[hip_height, nearest] = _searched_home(robot, hip_height, nearest)
    return known[hip_height, nearest]


_HOMES: WeakKeyDictionary[Robot, dict[tuple[float | None, bool], Home]] = WeakKeyDictionary()
"""The results of `home_of`: a search takes half a second, and a controller needs one at each start."""


def _searched_home(robot: Robot, hip_height: float | None, nearest: bool) -> Home:
    """Return the standing posture of `home_of`."""
    legs = leg_chains(robot)
    bend = 0.9 if len(legs) <= 2 else 0.75
    hips = [hip_height or (_LEG if leg.swings_sideways else bend) * leg.length for leg in legs]
    depths = [min(part * hip - float(leg.hip[2]) for leg, hip in zip(legs, hips, strict=True)) for part in _HEIGHTS]
    inside, within = _Search(robot, legs), None
    found, first = _first_home(inside, depths[:1])
    if found is None and hip_height is not None:  # a given height counts more than the distance from the limits
        within, first = _first_home(_Search(robot, legs, *joint_limits(robot)), depths[:1])
    if found or within:
        return found or within  # type: ignore[return-value]
    found, _ = _first_home(inside, depths[1:])
    if found and (nearest or hip_height is None):
        return found
    if found:
        possible = found.base_height + min(float(leg.hip[2]) for leg in legs)
        advice = f"hip_height={possible:.3g} is possible, as is home_of(robot, hip_height, nearest=True)"
    else:
        advice = (
            "no other hip height is possible either. Pass a posture, such as Locomotion(home=Home(angles, base_height, "
            "legs)), or check the limits of the joints and the feet that were found: legs_text(robot) lists them"
        )
    raise ReachError(f"{first}; {advice}", residual=first.residual if first else np.nan)


def _first_home(search: _Search, depths: Sequence[float]) -> tuple[Home | None, ReachError | None]:
    """Return the posture at the first depth at which the robot stands, [m], and the error at the first depth."""
    first = None
    for depth in depths:
        try:
            return _standing_at(search, depth), first
        except ReachError as error:
            first = first or error
    return None, first


def _standing_at(search: _Search, depth: float) -> Home:
    """Return the posture whose soles are at a depth under the base's origin, [m]."""
    robot, legs = search.robot, search.legs
    angles, shift = search.rest.copy(), 0.0
    for _ in range(_ITERATIONS):
        for leg in legs:
            angles = search.solve(leg, angles, shift, depth)
        mass = center_of_mass(robot, np.concatenate([robot.base.neutral(), angles]))
        shift += float(mass[0] - np.mean([search.soles(leg, angles)[:, 0].mean() for leg in legs]))
    targets = search.feet.positions(angles)
    targets[:, 2] = search.radii - depth
    angles, residual = search.fitted(targets, angles)
    limit = max(leg.length for leg in legs)
    if residual > _TILTED * limit:
        raise ReachError(
            f"robot {robot.name!r} cannot stand on all feet at once {depth:.3g} m under its base within the limits of "
            f"its joints: residual {residual:.3g} m",
            residual=residual,
        )
    height = depth if residual < _SOLVED * limit else float(np.max(search.radii - search.points(angles)[:, 2]))
    angles.setflags(write=False)
    return Home(angles, height, legs)


@checked_arguments
def joint_limits(robot: Robot) -> tuple[Array, Array]:
    """Return the lower and upper limits of the joint coordinates, (nj,) each, [rad] or [m]; infinite if unlimited."""
    lower, upper = np.zeros(robot.nv), np.zeros(robot.nv)
    for joint in robot.joints:
        lower[joint.v], upper[joint.v] = joint.definition.physics.lower, joint.definition.physics.upper
    return lower[robot.base.nv :], upper[robot.base.nv :]


def inner_limits(robot: Robot) -> tuple[Array, Array]:
    """Return the limits of standing postures, (nj,) each, [rad] or [m]: those of the joints with the margin inside."""
    lower, upper = joint_limits(robot)
    margin = np.minimum(_MARGIN, _MARGIN_SHARE * (upper - lower))
    return lower + margin, upper - margin


def standing_on(
    robot: Robot,
    home: Home,
    targets: Sequence[Array],
    rotation: Array,
    height: float,
    ground: Callable[[float, float], Any],
) -> tuple[Array, Array]:
    """Return (position of the base, (3,), [m], world axes; joint positions, (nj,)) with the soles on the ground.

    The center of mass is over the origin, and the base at the desired height or as near to it as the limits of the
    joints allow. Soles that cannot be parallel to the ground within these limits touch it with their lowest point. No
    contact point is in the ground.

    Args:
        robot: The robot.
        home: Its standing posture on level ground.
        targets: Contact points of each leg on the ground, (k, 3) each, [m], world axes, in the order of its contacts.
        rotation: Orientation of the base, a rotation matrix, (3, 3), base to world axes.
        height: Desired height of the base's origin, [m], world z.
        ground: Height of the ground, [m], as a function of x and y, [m], world axes.
    """
    search, unit = _Search(robot, home.legs), home.hip_height
    world = np.concatenate(list(targets)) + search.radii[:, None] * np.array([0.0, 0.0, 1.0])
    best: tuple[float, Array, Array] | None = None
    for change in _CHANGES:
        angles, residual, place = home.angles, np.inf, np.array([0.0, 0.0, height + change * unit])
        for _ in range(_ITERATIONS):
            mass = rotation @ center_of_mass(robot, np.concatenate([robot.base.neutral(), angles]))
            place = np.array([-mass[0], -mass[1], place[2]])
            angles, residual = search.fitted((world - place) @ rotation, angles)
        if best is None or residual < best[0] - _SAME * unit:
            best = residual, place, angles
        if residual < _SAME * unit:
            break
    assert best is not None
    _, place, angles = best
    points = place + search.points(angles) @ rotation.T
    depths = [float(ground(x, y)) + r - z for (x, y, z), r in zip(points, search.radii, strict=True)]
    return place + np.array([0.0, 0.0, max(0.0, *depths)]), angles


class _Attempt(NamedTuple):
    """A posture of one leg: all joint positions, distance of the sole from its target, [m], size of the positions."""

    angles: Array
    residual: float
    cost: float


class _Search:
    """Inverse kinematics of standing legs by bounded least squares, one by one from several initial values, and all.

    The soles are plane: contact points are moved along the normal of the plane that fits those of a foot best.
    """

    def __init__(
        self, robot: Robot, legs: tuple[LegChain, ...], lower: Array | None = None, upper: Array | None = None
    ):
        self.robot, self.legs = robot, legs
        inner = inner_limits(robot)
        self.lower, self.upper = inner[0] if lower is None else lower, inner[1] if upper is None else upper
        names = [name for leg in legs for name in leg.contacts]
        self.radii = np.array([robot.contact(name).radius for name in names])
        self.rest = np.clip(np.zeros(robot.nj), self.lower, self.upper)
        self.feet = FootKinematics(robot, names, at=_plane_soles(robot, legs, self.rest))
        self.actual = FootKinematics(robot, names)
        self.middle = float(np.mean([leg.hip[0] for leg in legs]))
        columns = sorted({column for leg in legs for column in (*leg.columns, *leg.toe_columns)})
        self.columns = np.array(columns, dtype=int)
        self.pitch = np.array(sorted({column for leg in legs for column in leg.pitch_columns}), dtype=int)

    def points(self, angles: Array) -> Array:
        """Return the positions of all contact points of the legs, (n, 3), [m], base axes."""
        return self.actual.positions(angles)

    def soles(self, leg: LegChain, angles: Array) -> Array:
        """Return the positions of the leg's contact points, (n, 3), [m], base axes."""
        return self.feet.positions(angles)[self._rows(leg)]

    def fitted(self, targets: Array, start: Array) -> tuple[Array, float]:
        """Return joint positions with all soles as near their targets as possible, (nj,), and the residual, [m].

        Args:
            targets: (n, 3), [m], base axes. start: Joint positions from which they differ little, (nj,).
        """
        angles, free = start, self._free(self.columns)
        scale = max(leg.length for leg in self.legs)
        for weight in (1e-2 * scale, 0.0):  # first near the start, then exact
            angles = self._least(
                lambda x: (self.feet.positions(x) - targets).ravel(),
                lambda J: J.reshape(-1, J.shape[2]),
                angles,
                free,
                np.full(len(free), weight * 1e-2),
                start,
            )
        return angles, float(np.abs(self.feet.positions(angles) - targets).max())

    def solve(self, leg: LegChain, angles: Array, shift: float, depth: float) -> Array:
        """Return joint positions, (nj,), with the leg's sole level, at the depth, and `shift` [m] ahead of its hip."""
        attempts = [self._from(leg, start, shift, depth) for start in self._starts(leg, angles)]
        least = min(attempt.residual for attempt in attempts)
        if least > _TILTED * leg.length:
            raise ReachError(
                f"leg {leg.name!r} of robot {self.robot.name!r} cannot stand {depth + leg.hip[2]:.3g} m under its hip "
                f"within the limits of its joints: residual {least:.3g} m",
                residual=least,
            )
        solutions = [each for each in attempts if each.residual < max(2.0 * least, _SOLVED * leg.length)]
        return min(solutions, key=lambda each: (not self._bends_well(leg, each.angles), each.cost)).angles

    def _rows(self, leg: LegChain) -> list[int]:
        return [self.feet.names.index(name) for name in leg.contacts]

    def _free(self, columns: Array) -> Array:
        return columns[self.upper[columns] > self.lower[columns]]

    def _starts(self, leg: LegChain, angles: Array) -> list[Array]:
        starts = []
        for hip, knee in product((_BEND, -_BEND), (2 * _BEND, -2 * _BEND)):
            start = angles.copy()
            start[list(leg.pitch_columns[:2])] = (hip, knee)[: len(leg.pitch_columns)]
            starts.append(np.clip(start, self.lower, self.upper))
        return starts

    def _from(self, leg: LegChain, start: Array, shift: float, depth: float) -> _Attempt:
        """Return the posture of one leg near some joint positions."""
        rows = self._rows(leg)
        free = self._free(np.array([*leg.columns, *leg.toe_columns]))
        target = leg.hip[:2] + np.array([shift, 0.0])
        along = np.eye(2)[:1]
        if leg.outward is not None:
            target, along = target + _SPREAD * leg.length * leg.outward[:2], np.eye(2)
        heights = self.radii[rows] - depth
        weights = np.where(np.isin(free, leg.pitch_columns), _PITCH_WEIGHT, _WEIGHT)

        def errors(x: Array) -> Array:
            points = self.feet.positions(x)[rows]
            return np.concatenate([along @ (points[:, :2].mean(axis=0) - target), points[:, 2] - heights])

        def slopes(J: Array) -> Array:
            J = J[rows]
            return np.concatenate([along @ J[:, :2].mean(axis=0), J[:, 2]])

        x = self._least(errors, slopes, start, free, weights, self.rest)
        for share in (1e-2, 1e-4, 0.0):
            x = self._least(errors, slopes, x, free, share * weights, self.rest)
        return _Attempt(x, float(np.abs(errors(x)).max()), float(np.abs(x[free]).sum()))

    def _least(
        self,
        errors: Callable[[Array], Array],
        slopes: Callable[[Array], Array],
        start: Array,
        free: Array,
        weights: Array,
        rest: Array,
    ) -> Array:
        """Return joint positions, (nj,), with the least errors and weighted distances of the free joints from rest.

        Args:
            errors: Function of joint positions, (nj,), (k,), [m]. slopes: Function of the Jacobian of all contact
                points, (n, 3, active joints), that returns that of the errors, (k, active joints).
            start: (nj,). free: Columns of joints that move. weights: Of each of them, [m/rad]. rest: (nj,).
        """
        from scipy.optimize import least_squares  # imported here: importing it takes as long as all other imports

        places = np.searchsorted(self.feet.active, free)

        def with_free(values: Array) -> Array:
            angles = start.copy()
            angles[free] = values
            return angles

        def residuals(values: Array) -> Array:
            return np.concatenate([errors(with_free(values)), weights * (values - rest[free])])

        def jacobian(values: Array) -> Array:
            J = self.feet.jacobian(with_free(values)).reshape(-1, 3, len(self.feet.active))[:, :, places]
            return np.concatenate([slopes(J), np.diag(weights)])

        lower, upper = self.lower[free], self.upper[free]
        inside = np.clip(start[free], lower, upper)
        fit = least_squares(residuals, inside, jacobian, bounds=(lower, upper), xtol=1e-14, ftol=1e-14, gtol=1e-14)
        return with_free(fit.x)

    def _bends_well(self, leg: LegChain, angles: Array) -> bool:
        """Return whether the knee points to the middle of the robot, or forward if its hip is there.

        The knee of a leg as of an insect is to be above its hip.
        """
        poses = link_poses(self.robot, np.concatenate([self.robot.base.neutral(), angles]))
        axes = {axis.column: axis.origin for axis in joint_axes(self.robot, leg.link, *poses)}
        if len(leg.pitch_columns) < 2:
            return True
        ahead = axes[leg.pitch_columns[1]] - axes[leg.pitch_columns[0]]
        if leg.swings_sideways:
            return bool(ahead[2] > 0.0)
        return bool(ahead[0] * (self.middle - leg.hip[0] + 1e-3) > 0)


def _plane_soles(robot: Robot, legs: tuple[LegChain, ...], angles: Array) -> dict[str, Array]:
    """Return the contact points by name, (3,), [m], link axes, moved onto the plane that fits their sole best."""
    rotations, origins = link_poses(robot, np.concatenate([robot.base.neutral(), angles]))
    moved: dict[str, Array] = {}
    for leg in legs:
        contacts = [robot.contact(name) for name in leg.contacts]
        points = np.array([origins[c.link] + rotations[c.link] @ c.position for c in contacts])
        if len(points) > 3:
            center = points.mean(axis=0)
            normal = np.linalg.svd(points - center)[2][2]
            points = points - np.outer((points - center) @ normal, normal)
        for contact, point in zip(contacts, points, strict=True):
            moved[contact.name] = rotations[contact.link].T @ (point - origins[contact.link])
    return moved
