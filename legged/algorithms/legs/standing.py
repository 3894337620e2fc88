"""A standing posture of any legged robot, by inverse kinematics within the ranges of its joints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from legged.algorithms.legs.leg_chains import LegChain, leg_chains
from legged.algorithms.legs.posture_search import SOLVED, TILTED, PostureSearch, joint_limits
from legged.arguments import number
from legged.checked import checked
from legged.dynamics.inverse import inverse_dynamics
from legged.dynamics.kinematics import center_of_mass, point_jacobian
from legged.errors import ReachError
from legged.robot.configuration import refuse_ball_quaternions
from legged.robot.robot import Robot

Array = np.ndarray
_ITERATIONS = 4  # of shifting the soles under the center of mass; each gains one or two digits
_HEIGHTS = (1.0, 0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 1.05, 1.1)  # of the desired hip height, tried in this order
_CHANGES = (0.0, -0.03, 0.03, -0.06, 0.06, -0.1, 0.1, -0.15, -0.2)  # [hip height], of the base's height on a terrain
_SAME = 1e-4  # [hip height], distances of soles from the ground that count as equal in this choice
_FOLDS = (0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6)  # [leg length], hip heights of folded legs
_HELD = 1e3  # cost of a force [N] or a moment [N m] that holds the base of a standing robot, over its weight [N]
_LEG = 0.4  # [leg length], hip height of legs as of insects
_TURNED = 0.5  # [leg length], least mean distance of the feet from the hips in a direction that is not downward


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
def home_of(robot: Robot, hip_height: float | None = None, nearest: bool = False, *, ahead: float = 0.0) -> Home:
    """Return a standing posture with every joint inside its limits.

    Joints are 0.05 rad or 0.05 m away from their limits, or a tenth of their range if that is less, unless a given hip
    height requires positions nearer to the limits. The soles are
    level, with the center of mass over their middle; redundant joints are as near zero as possible. A knee that can
    bend both ways points to the middle of the robot, or forward if its hip is there. Soles of two legs whose ankles
    roll are at most 0.2 of the length of a leg beside the middle between the hips, and keep their direction at zero,
    where the legs allow it, if they would turn by more than 0.2 rad about the vertical. Legs as of insects stand with
    their soles beside their hips. A sole that cannot be level within the limits stands on its lowest contact point if
    no other is higher than 0.02 of the length of the leg.

    Args:
        robot: A robot with contact points on its feet.
        hip_height: Height of the lowest hip over the ground, [m]; by default the nearest possible one to 0.75 of its
            leg's length, to 0.9 for robots with up to two legs, and to 0.4 for legs as of insects.
        nearest: Whether the nearest possible hip height is taken if the given one is not possible.
        ahead: Distance of the center of mass ahead of the middle of the soles, [m].

    Returns:
        The posture. It is computed once for each robot and hip height; its array is read-only.

    Raises:
        DefinitionError: The robot has no legs, or has ball joints.
        ArgumentError: The hip height is not positive, or the distance is no number.
        ReachError: No posture within the joint limits has this hip height; the message states a possible one.
    """
    if hip_height is not None:
        number("hip_height", hip_height, "m", above=0.0)
    known, key = _HOMES.setdefault(robot, {}), (hip_height, nearest, number("ahead", ahead, "m"))
    if key not in known:
        known[key] = _searched_home(robot, hip_height, nearest, ahead)
    return known[key]


_HOMES: WeakKeyDictionary[Robot, dict[tuple[float | None, bool, float], Home]] = WeakKeyDictionary()
"""The results of `home_of`: a search takes half a second, and a controller needs one at each start."""


def _searched_home(robot: Robot, hip_height: float | None, nearest: bool, ahead: float) -> Home:
    """Return the standing posture of `home_of`."""
    refuse_ball_quaternions(robot)
    legs = leg_chains(robot)
    bend = 0.9 if len(legs) <= 2 else 0.75
    hips = [hip_height or (_LEG if leg.swings_sideways else bend) * leg.length for leg in legs]
    depths = [min(part * hip - float(leg.hip[2]) for leg, hip in zip(legs, hips, strict=True)) for part in _HEIGHTS]
    inside, within = PostureSearch(robot, legs), None
    home, first = _first_home(inside, depths[:1], ahead)
    if home is None and hip_height is not None:  # a given height counts more than the distance from the limits
        within, first = _first_home(PostureSearch(robot, legs, *joint_limits(robot)), depths[:1], ahead)
    if home or within:
        return home or within  # type: ignore[return-value]
    home, _ = _first_home(inside, depths[1:], ahead)
    if home and (nearest or hip_height is None):
        return home
    if home:
        possible = home.base_height + min(float(leg.hip[2]) for leg in legs)
        advice = f"hip_height={possible:.3g} is possible, as is home_of(robot, hip_height, nearest=True)"
    else:
        advice = _turned_base(inside) or (
            "no other hip height is possible either. Pass a posture, such as Locomotion(home=Home(angles, base_height, "
            "legs)), or check the limits of the joints and the feet that were found: legs_text(robot) lists them"
        )
    raise ReachError(f"{first}; {advice}", residual=first.residual if first else np.nan)


def _turned_base(search: PostureSearch) -> str:
    """Return advice if the z axis of the base does not point from the feet to the hips at zero joints, or ""."""
    ways = [(search.soles(leg, search.rest).mean(axis=0) - leg.hip) / leg.length for leg in search.legs]
    x, y, z = np.mean(ways, axis=0)
    if np.hypot(x, y) < -2.0 * z or np.linalg.norm((x, y, z)) < _TURNED:  # downward, or to all sides as of insects
        return ""
    return (
        f"with its joints at zero the feet lie in direction ({x:.2g}, {y:.2g}, {z:.2g}) of the axes of link "
        f"{search.robot.links[0].name!r}, whose z axis must point up: load its file with axes=(forward, up), or "
        f"fix this link to a new base link with such axes"
    )


def _first_home(search: PostureSearch, depths: Sequence[float], ahead: float) -> tuple[Home | None, ReachError | None]:
    """Return the posture at the first depth at which the robot stands, [m], and the error at the first depth."""
    first = None
    for depth in depths:
        try:
            return _standing_at(search, depth, ahead), first
        except ReachError as error:
            first = first or error
    return None, first


def _standing_at(search: PostureSearch, depth: float, ahead: float) -> Home:
    """Return the posture whose soles are at a depth under the base's origin, [m]; `ahead` as in `home_of`."""
    robot, legs = search.robot, search.legs
    angles, shift = search.rest.copy(), 0.0
    for _ in range(_ITERATIONS):
        for leg in legs:
            angles = search.solve(leg, angles, shift, depth)
        mass = center_of_mass(robot, np.concatenate([robot.base.neutral(), angles]))
        shift += float(mass[0] - ahead - np.mean([search.soles(leg, angles)[:, 0].mean() for leg in legs]))
    targets = search.feet.positions(angles)
    targets[:, 2] = search.radii - depth
    angles, residual = search.fitted(targets, angles)
    limit = max(leg.length for leg in legs)
    if residual > TILTED * limit:
        raise ReachError(
            f"robot {robot.name!r} cannot stand on all feet at once {depth:.3g} m under its base within the limits of "
            f"its joints: residual {residual:.3g} m",
            residual=residual,
        )
    lowest = float(np.max(search.radii - search.points(angles)[:, 2]))  # of points beside the planes of their soles
    height = depth if max(residual, lowest - depth) < SOLVED * limit else lowest
    angles.setflags(write=False)
    return Home(angles, height, legs)


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
    search, unit = PostureSearch(robot, home.legs), home.hip_height
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


def standing_torques(robot: Robot, home: Home, friction: float = 0.5) -> tuple[Array, float, int]:
    """Return the joint torques of a robot at rest, (nj,), [N m] or [N], the largest ratio of one to its limit, and the
    index of the joint coordinate whose limit determines this ratio; other joints may reach the same ratio.

    The forces at the feet are those that make this ratio least: they carry the robot, press, and are inclined by less
    than a pyramid of friction allows. Joints without a limit, and those without a motor, do not count. A robot whose
    feet cannot balance it, such as one on two points, is held by a small moment besides.

    Args:
        robot: The robot. home: The posture. friction: Friction coefficient of the ground.

    Raises:
        ReachError: The solver of the linear program fails.
    """
    from scipy.optimize import linprog  # imported here: importing it takes as long as all other imports

    nb, points = robot.base.nv, [robot.contact(name) for leg in home.legs for name in leg.contacts]
    q = np.concatenate([robot.base.configuration(np.array([0.0, 0.0, home.base_height]), np.eye(3)), home.angles])
    zero, size = np.zeros(robot.nv), 3 * len(points)
    J = np.vstack([point_jacobian(robot, q, point.link, point.position)[3:] for point in points])
    load, limit = inverse_dynamics(robot, q, zero, zero), np.zeros(robot.nv)
    for joint in robot.joints:
        limit[joint.v] = joint.definition.physics.effort
    held = nb + np.flatnonzero(np.isfinite(limit[nb:]) & (limit[nb:] > 0.0))
    # Unknowns: forces, the ratio, and the positive and negative parts of the force and the moment that hold the base
    dear = _HELD / (robot.mass * float(np.linalg.norm(robot.gravity)))
    cost = np.concatenate([np.zeros(size), [1.0], np.full(2 * nb, dear)])
    balance = np.hstack([J[:, :nb].T, np.zeros((nb, 1)), np.eye(nb), -np.eye(nb)])
    unheld = np.zeros((len(held), 2 * nb))
    sides = [sign * np.hstack([-J[:, held].T, -sign * limit[held, None], unheld]) for sign in (1.0, -1.0)]
    cone = np.zeros((4 * len(points), balance.shape[1]))
    for k in range(len(points)):
        for row, (axis, sign) in enumerate(product((0, 1), (1.0, -1.0)), 4 * k):
            cone[row, 3 * k + axis], cone[row, 3 * k + 2] = sign, -friction
    bounds = [(0.0, None) if k % 3 == 2 else (None, None) for k in range(size)] + [(0.0, None)] * (1 + 2 * nb)
    solution = linprog(
        cost,
        A_ub=np.vstack([*sides, cone]),
        b_ub=np.concatenate([-load[held], load[held], np.zeros(len(cone))]),
        A_eq=balance,
        b_eq=load[:nb],
        bounds=bounds,
        method="highs-ipm",  # the simplex method ends without a solution for a hundredth of postures
    )
    if solution.x is None:
        reason = f"the linear program for the forces that hold robot {robot.name!r} failed: {solution.message}"
        raise ReachError(reason)
    sensitivities = np.zeros(robot.nv)  # of the ratio to the logarithm of each limit, from the dual variables
    sensitivities[held] = limit[held] * np.abs(solution.ineqlin.marginals[: 2 * len(held)]).reshape(2, -1).sum(axis=0)
    return (load - J.T @ solution.x[:size])[nb:], float(solution.x[size]), int(np.argmax(sensitivities[nb:]))


def folded_posture(robot: Robot, home: Home) -> Array:
    """Return joint positions with the legs as short as possible under the hips, (nj,), [rad] or [m].

    Args:
        robot: The robot. home: Its standing posture.
    """
    for part in _FOLDS:
        try:
            return home_of(robot, part * min(leg.length for leg in home.legs)).angles
        except ReachError:
            continue
    return home.angles
