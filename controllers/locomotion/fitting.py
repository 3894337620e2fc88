"""The fit of locomotion to a robot: posture, feet, inertias, limits of joints and possible velocities."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from controllers.locomotion.gait.feet import MOVES, feet_of, foot_jacobian, sole_extents, with_room
from controllers.locomotion.gait.footsteps import CADENCE, WIDTH, FootstepLaw
from controllers.locomotion.gait.inclined_ground import inclined_walk
from controllers.locomotion.gait.posture import (
    check_torques,
    damped_speeds,
    held_torques,
    joint_name,
    standing_posture,
)
from controllers.locomotion.gait.schedule import GAITS, foot_rows
from controllers.locomotion.gait.swing import POINT, SOLE
from controllers.locomotion.motion import Foot
from controllers.locomotion.motion_plan import MotionPlanner
from controllers.locomotion.torques.tasks import WholeBodyModel
from controllers.locomotion.torques.whole_body import JointLimits
from legged.algorithms.legs.knees import knee_ranges
from legged.algorithms.legs.standing import Home
from legged.dynamics.kinematics import center_of_mass, momentum
from legged.robot.robot import Robot
from legged.spatial import Array

_ACCELERATION = 60.0
"""Largest acceleration of a joint, [g / h] with the height h of the center of mass. Fast swings need up to 30."""
_FASTEST, _FASTEST_ON_TWO = 2.1, 0.5
"""Largest speeds of robots with more than two and with two legs, [sqrt(g h)]: more than any of them reached, and on two
the largest that G1 holds."""
_FASTEST_TURN_ON_TWO, _SLOW_TURN_ON_TWO = 0.5, 0.35
"""Largest yaw rate of a robot with two legs, [sqrt(g / h)], which G1, T1 and the spatial biped of `robots` hold also
with a velocity; and the one below which its hip yaws are slow."""
_SIDEWAYS, _AROUND = 1.0, 1.7
"""Largest speeds sideways, and of a foot around the body in a turn, of robots with more than two legs, [sqrt(g h)].
Swings take too short a time at higher speeds."""
_OVERSPEED = 1.2
"""Largest speed of a joint, of its no-load speed, in a swing as planned; robots walked at up to 1.19."""
_BRAKED = 0.5
"""Largest share of a joint's torque that its viscous friction takes in stance: Apollo turns with 0.56 and falls with
0.75."""
_LEAST_DUTY, LEAST_DUTY_ON_TWO = 0.37, 0.52
"""Least duty factors of fast gaits."""
DUTY_OF_SHORT_STEPS = 0.46
"""Duty factor of a walk with short steps, see `has_very_slow_legs`."""
_LOADED = 0.55
"""Largest share of a joint's torque that the mean force of a stance takes in the standing posture, in fast gaits."""
_NARROW = 0.02
"""Extent of a foot in a direction below which it gives no moment, relative to the height of the center of mass."""
_HEAVY = 0.3
"""Mass of a leg relative to the robot's from which on steps keep the body upright to the side, as on such feet: the
moments of a sole are small beside those of a heavy leg that swings."""
_BESIDE = 0.2
"""Largest lateral distance of such a foot from the middle in a walk, relative to that height: the force is inclined by
this ratio."""
RISING = 0.7
"""Largest speed of a joint, of its no-load speed, at which a foot rises: at it a motor gives a third of its torque."""
_SWINGING = 0.9  # of the speed at which a joint reaches its no-load speed in a swing, where it has no torque
LEAST_REMAINING = 0.1
"""Least share of a joint's largest speed that moves a foot along while it rises, so that the speeds are not zero."""
SLOWEST = 0.15
"""Bound of the forward speed of two feet by joint speeds, [sqrt(g h)], below which a warning says that the robot may
fall: Romeo, with 0.09, falls in 4 of 21 walks."""
LEAST_RISE = 0.06
"""Height to which a foot swings at least, relative to that of the center of mass, see `swing_limits`."""
QUICK = 0.72
"""Period of a named gait on such feet, relative to that with soles. Deviations of the divergent component grow by
exp(omega t) until the next touchdown, since the center of pressure does not correct them."""


def fitted_parts(robot: Robot, home: Home) -> tuple[Home, MotionPlanner, FootstepLaw, Array, Array]:
    """Return the parts of the law that robot and posture alone determine.

    Args:
        robot: The robot. home: Its standing posture.

    Returns:
        Posture, planner, landing places, the projection of commands onto possible ones, (3, 3), mixed units, and the
        largest velocities forward, to the left and of turning, (3,), [m/s], [m/s], [rad/s], heading axes.

    Raises:
        DefinitionError: The torques of the joints cannot hold the posture.
    """
    check_torques(robot, home)
    gravity = float(np.linalg.norm(robot.gravity))
    q = np.concatenate([robot.base.configuration(np.array([0.0, 0.0, home.base_height]), np.eye(3)), home.angles])
    mass = center_of_mass(robot, q)
    height = float(mass[2])
    feet, places = feet_of(robot, home, q)
    stances = _stances(places, feet, mass)
    narrow = narrow_directions(robot, home, feet, height)
    if narrow[1]:
        stances[:, 1] = np.clip(stances[:, 1], -_BESIDE * height, _BESIDE * height)
    rows = foot_rows(stances)
    neighbors = tuple(rows.index((row, 1 - side)) if (row, 1 - side) in rows else None for row, side in rows)
    hips, lengths = np.array([leg.hip for leg in home.legs]), np.array([leg.length for leg in home.legs])
    possible = _possible_velocities(robot, q, feet, places, height)
    steps = FootstepLaw(
        stances, hips, lengths, neighbors, float(np.sqrt(gravity / height)), narrow, sole_extents(feet, height)
    )
    fastest = _fastest(robot, q, feet, places, height)
    turn = float(fastest[2]) / (_SLOW_TURN_ON_TWO * float(np.sqrt(gravity / height)))
    if len(feet) == 2 and turn < 1.0 - 1e-9:
        feet = tuple(replace(foot, heading_share=turn * turn) for foot in feet)
    if len(feet) == 2:
        stance = (QUICK if any(narrow) else 1.0) * GAITS["walk"].period * GAITS["walk"].duty(2) / steps.omega
        feet = tuple(with_room(robot, home, q, foot) for foot in feet)
        fastest[2] = min(fastest[2], *(foot.room.sum() / stance for foot in feet))
    inertia, (legs, lifted) = _inertia(robot, q), _leg_inertias(robot, q, feet)
    limits = _limits(robot, home, q, _ACCELERATION * gravity / height)
    inclined = inclined_walk(robot, home, q, any(narrow))
    closely = any(narrow) or any(len(foot.turns) < 3 for foot in feet)
    weight: Any = height**2
    share = _mean_leg_mass(robot, home) / robot.mass
    heavy = share > _HEAVY and all(len(foot.turns) == 3 for foot in feet)  # TRON2, whose ankles do not roll, is none
    if len(feet) == 2 and (share > 1.0 / 3.0 or not (heavy or any(foot.pivot is not None for foot in feet))):
        weight = np.diag(inertia) / robot.mass  # angular momentum counts as linear momentum does
        weight[:2] = weight[:2].mean()
    planner = MotionPlanner(
        *(robot, feet, home.angles, inertia, legs, height, home.base_height),
        *(gravity, limits, inclined, closely, weight, lifted),
    )
    return home, planner, steps, possible, fastest


def _stances(places: Array, feet: tuple[Foot, ...], mass: Array) -> Array:
    """Return the places of the feet under the body, (n, 2), [m], heading axes, with the body in their middle.

    A standing robot is over the middle of its soles, or over that of the places that carry it. A posture that balances
    it over neither, since its joints cannot, keeps its distance.

    Args:
        places: Middle of the places that carry the robot on each foot, (n, 3), [m], base axes. feet: The feet.
        mass: Center of mass, (3,), [m], base axes.
    """
    stances = places[:, :2] - mass[:2]
    to_soles = np.mean([foot.outline.mean(axis=0) for foot in feet], axis=0)[:2]
    over_places = stances.mean(axis=0)
    is_over_soles = np.linalg.norm(over_places + to_soles) <= np.linalg.norm(over_places)
    return stances + to_soles if is_over_soles else stances


@lru_cache(maxsize=4)
def least_duty(robot: Robot, home: Home) -> float:
    """Return the least duty factor of a fast gait of a robot with more than two legs.

    The mean force of a foot that stands is inversely proportional to the duty factor. The largest torques of the joints
    bound it: at a duty factor of 1 they bear the share of them that standing on all feet takes.

    Args:
        robot: The robot. home: Its standing posture.
    """
    return max(_LEAST_DUTY, held_torques(robot, home)[1] / _LOADED)


@lru_cache(maxsize=4)
def standing_parts(robot: Robot) -> tuple[Home, MotionPlanner, FootstepLaw, Array, Array]:
    """Return `fitted_parts` of the default posture, which many laws share.

    Args:
        robot: The robot.

    Returns:
        As in `fitted_parts`: objects, (3, 3), mixed units, and (3,), [m/s] and [rad/s], heading axes.
    """
    return fitted_parts(robot, standing_posture(robot))


@lru_cache(maxsize=4)
def swing_limits(
    robot: Robot, home: Home, clearance: float, duration: float
) -> tuple[float, Array, tuple[str, float, float]]:
    """Return the largest rise and speeds of the swings of two feet, and the joint that bounds the speed forward.

    A foot that rises under its hip bends hip and knee. Where a hip, the first pitch joint of a leg, is near the end of
    its range in the standing posture, the body would have to lean back and to rise at each step; where hips or knees
    are slow, the body turns against a leg that lags. The rise is at least the smaller one of 0.06 h and the
    desired rise. The speeds are the mean horizontal ones of a foot relative to the body at which a joint above the
    ankle reaches its no-load speed while the foot rises at its largest rate, forward the speed at which viscous
    friction takes all torque of its motor, where the file states both.

    Args:
        robot: The robot. home: Its standing posture. duration: Of a swing, [s].
        clearance: Desired rise, relative to the height h of the center of mass.

    Returns:
        The rise, [h]; the mean speeds of a swing forward and to the side, (2,), [m/s]; and name and such speed of the
        joint, [rad/s], and the share of it that the rise takes. More than two feet: the desired rise, no limits.
    """
    if len(home.legs) > 2:
        return clearance, np.full(2, np.inf), ("", np.inf, 0.0)
    q = np.concatenate([robot.base.configuration(np.array([0.0, 0.0, home.base_height]), np.eye(3)), home.angles])
    model, limits = WholeBodyModel(robot, q, np.zeros(robot.nv)), JointLimits.of(robot)
    height, room, columns, rows = float(center_of_mass(robot, q)[2]), np.inf, [], []
    for leg, foot in zip(home.legs, feet_of(robot, home, q)[0], strict=True):
        J, profile, rates = foot_jacobian(model, foot), SOLE if foot.is_flat else POINT, np.zeros((robot.nj, 3))
        rates[list(foot.columns)] = np.linalg.lstsq(J, np.eye(len(J))[:, -3:], rcond=1e-6)[0]
        k, above = leg.pitch_columns[0], leg.columns[: leg.columns.index(leg.pitch_columns[:2][-1]) + 1]
        left = limits.upper[k] - home.angles[k] if rates[k, 2] > 0.0 else home.angles[k] - limits.lower[k]
        room = min(room, left / max(abs(rates[k, 2]), 1e-9))
        columns += above
        rows += [np.array([profile.peak, profile.peak, profile.climb / duration]) * np.abs(rates[i]) for i in above]
    *ways, up = np.array(rows).T
    free = limits.speed[columns]
    stated = np.where(np.isfinite(free), free, 0.0)  # Apollo and OP3, without one, walk faster
    damped = free / (1.0 + stated / damped_speeds(robot)[columns])  # viscous friction takes all torque of a motor there
    rise = min(clearance * height, max(LEAST_RISE * height, min(room, RISING / max((up / damped).max(), 1e-9))))
    speeds = [
        _SWINGING * fastest * np.maximum(1.0 - rise * up / fastest, LEAST_REMAINING) / np.maximum(way, 1e-9)
        for way, fastest in zip(ways, (damped, free), strict=True)
    ]
    k = int(np.argmin(speeds[0]))
    joint = joint_name(robot, columns[k]), float(damped[k]), float(rise * up[k] / damped[k])
    return rise / height, np.min(speeds, axis=1), joint


def narrow_directions(robot: Robot, home: Home, feet: tuple[Foot, ...], height: float) -> tuple[bool, bool]:
    """Return `FootstepLaw.narrow`: whether feet are narrow along that axis of theirs which is nearer to each direction.

    Args:
        robot: The robot. home: Its standing posture. feet: Its feet. height: Of the center of mass, [m].
    """
    if len(feet) > 2:
        return False, False
    narrow = np.zeros(2, dtype=bool)
    for foot in feet:
        places = foot.offsets[:, :2]
        axes = np.linalg.svd(places - places.mean(axis=0))[2]  # along the foot, which may be turned, and across it
        for axis in axes:
            narrow[np.argmax(np.abs(axis))] |= np.ptp(places @ axis) < _NARROW * height
    return bool(narrow[0]), bool(narrow[1] or _mean_leg_mass(robot, home) > _HEAVY * robot.mass)


def _mean_leg_mass(robot: Robot, home: Home) -> float:
    """Return the mean mass of the links that the joints of a leg move, [kg]."""
    hips = {robot.base.nv + leg.columns[0] for leg in home.legs}
    bodies = [{robot.bodies[k].v.start for k in robot.ancestors(link.body)[:-1]} for link in robot.links]
    masses = [link.inertia.mass for link, own in zip(robot.links, bodies, strict=True) if own & hips]
    return sum(masses) / len(home.legs)


def _limits(robot: Robot, home: Home, q: Array, acceleration: float) -> JointLimits:
    """Return the limits of the joints, with knees that stay on the side to which they bend at q, see `knee_ranges`.

    Some knees have a range beyond the straight leg, at whose end a leg would stay that bends to the wrong side.

    Args:
        robot: The robot. home: Its standing posture. q: Its configuration in this posture, (nq,).
        acceleration: Largest acceleration of every joint, [rad/s^2] or [m/s^2].
    """
    limits = JointLimits.of(robot, acceleration=acceleration)
    lower, upper = limits.lower.copy(), limits.upper.copy()
    for k, (least, most) in knee_ranges(robot, home.legs, q).items():
        lower[k], upper[k] = max(lower[k], least), min(upper[k], most)
    return replace(limits, lower=lower, upper=upper)


def _possible_velocities(robot: Robot, q: Array, feet: tuple[Foot, ...], places: Array, height: float) -> Array:
    """Return the projection of commands (vx, vy, yaw rate) onto those that the legs follow, (3, 3), mixed units.

    It is orthogonal in (vx, vy, height * yaw rate). The velocity of each foot relative to the body, which is that of
    the ground, lies in the range of the Jacobian of its leg at q. With a direction n that is orthogonal to this range,
    n . (v + yaw rate x place) = 0. Legs with three joints have no such direction; those with a hip and a knee move in a
    plane.

    Args:
        robot: The robot. q: Standing posture, (nq,). feet: Its feet.
        places: Of their soles at q, (n, 3), [m], base axes. height: Of the center of mass, [m].
    """
    model, rows = WholeBodyModel(robot, q, np.zeros(robot.nv)), []
    for foot, (x, y, _) in zip(feet, places, strict=True):
        J = model.point(foot.link, foot.sole).J[3:, [robot.base.nv + k for k in foot.columns]]
        directions, sizes, _ = np.linalg.svd(J)
        rank = int(np.sum(sizes > MOVES * sizes[0]))
        rows += [[n[0], n[1], (n[1] * x - n[0] * y) / height] for n in directions.T[rank:]]
    C, units = np.array(rows).reshape(-1, 3), np.array([1.0, 1.0, height])
    projection = np.round(np.eye(3) - np.linalg.pinv(C, rcond=MOVES) @ C, 12) + 0.0
    return projection * (units / units[:, None])


def _fastest(robot: Robot, q: Array, feet: tuple[Foot, ...], places: Array, height: float) -> Array:
    """Return the largest velocity forward, to the left, and yaw rate, (3,), [m/s], [m/s], [rad/s].

    A swinging foot passes a body that moves at half the mean speed of a swing; the largest speed in a swing is more by
    the factor `Profile.peak`. The velocity at which a joint then has 1.2 times its largest speed is a limit, as is that
    at which viscous friction takes half of the torque of a joint in stance. Others are multiples of sqrt(g h) that no
    robot exceeded, and on two feet the distance of the feet, see `_sideways`.

    Args:
        robot: The robot. q: Standing posture, (nq,). feet: Its feet.
        places: Of their soles at q, (n, 3), [m], base axes. height: h, of the center of mass, [m].
    """
    model, profile = WholeBodyModel(robot, q, np.zeros(robot.nv)), SOLE if all(f.is_flat for f in feet) else POINT
    speeds = np.minimum(JointLimits.of(robot).speed * _OVERSPEED / profile.peak, _BRAKED * damped_speeds(robot))
    unit = float(np.sqrt(np.linalg.norm(robot.gravity) * height))
    most = _FASTEST_ON_TWO if len(feet) == 2 else _FASTEST
    fastest = np.array([most * unit, most * unit, _FASTEST * unit / height])
    if len(feet) == 2:
        fastest[2] = _FASTEST_TURN_ON_TWO * unit / height
        fastest[1] = min(fastest[1], _sideways(abs(places[0][1] - places[1][1]), unit, height))
    else:
        radius = float(np.max(np.hypot(places[:, 0], places[:, 1])))
        fastest[1:] = np.minimum(fastest[1:], [_SIDEWAYS * unit, _AROUND * unit / radius])
    for foot, (x, y, _) in zip(feet, places, strict=True):
        J = foot_jacobian(model, foot)
        ways = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [-y, x, 0.0]])
        turns = np.outer(foot.turns[:, 2], [0.0, 0.0, 1.0]) if foot.is_flat else np.zeros((0, 3))
        rates = np.abs(np.linalg.pinv(J, rcond=MOVES) @ np.concatenate([turns, ways.T]))
        shares = (rates / speeds[list(foot.columns), None]).max(axis=0)
        fastest = np.minimum(fastest, 1.0 / np.maximum(shares, 1e-9))
    return fastest


def _sideways(apart: float, unit: float, height: float) -> float:
    """Return the largest speed to the side of a robot with two feet, [m/s].

    In each cycle of the duration T one foot steps outward and the other follows, so that at a speed v their distance
    changes by v T / 2 to both sides. It stays above the least one, `WIDTH` of that of standing, at the largest cadence.

    Args:
        apart: Lateral distance of the standing feet, [m]. unit: sqrt(g h), [m/s]. height: h, [m].
    """
    return 2.0 * (1.0 - WIDTH) * apart * CADENCE / (GAITS["walk"].period * height / unit)


def _inertia(robot: Robot, q: Array) -> Array:
    """Return the inertia of the robot with fixed joints about its center of mass, (3, 3), [kg m^2], base axes."""
    turns = [robot.base.velocity(q[: robot.base.nq], axis, np.zeros(3)) for axis in np.eye(3)]
    joints = np.zeros(robot.nj)
    return np.array([momentum(robot, q, np.concatenate([turn, joints]))[:3] for turn in turns]).T


def _leg_inertias(robot: Robot, q: Array, feet: tuple[Foot, ...]) -> tuple[Array, float]:
    """Return `MotionPlanner.leg_inertias`, (n, 3, 3), [kg m], base axes, and `MotionPlanner.lifted_share`.

    Flat feet move without rotation about the axes about which the leg turns them; others with the smallest joint
    velocities.
    """
    model, inertias, lifted = WholeBodyModel(robot, q, np.zeros(robot.nv)), [], 0.0
    for foot in feet:
        J, v = foot_jacobian(model, foot), np.zeros((3, robot.nv))
        v[:, [robot.base.nv + k for k in foot.columns]] = np.linalg.lstsq(J, np.eye(len(J))[:, -3:], rcond=1e-6)[0].T
        forward, left, up = (momentum(robot, q, row) for row in v)
        inertias.append(np.array([forward[:3], left[:3], np.zeros(3)]).T)
        lifted += float(up[5]) / (robot.mass * len(feet))
    return np.array(inertias), lifted if len(feet) == 2 else 0.0
