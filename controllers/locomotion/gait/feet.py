"""The feet of a robot: the places of each sole that carry it, and how its leg turns it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from controllers.locomotion.motion import Foot
from controllers.locomotion.torques.tasks import WholeBodyModel
from controllers.locomotion.torques.whole_body import JointLimits
from legged.algorithms.legs.leg_chains import JointAxis, joint_axes
from legged.algorithms.legs.standing import Home
from legged.dynamics.kinematics import link_poses
from legged.robot.robot import Robot
from legged.spatial import Array

MOVES = 1e-3
"""Velocity of a foot per joint velocity, relative to the largest, below which a leg does not move it in a direction."""
_LOAD = 0.83
"""Share of the weight on a foot of two in the mean of its stance, in a walk with a duty factor of 0.6."""
_SHIFT = 0.05
"""Largest displacement of the center of pressure under a sole that steps count on, relative to the height of the center
of mass."""
_TURNS = 0.05
"""Least rotation of a foot at a fixed place per joint velocity, dimensionless, with which a leg turns it."""
_TURNED = 0.7
"""A joint bounds the rotation of a sole about the vertical axis if it turns by more than this fraction of it."""
_LEVEL = 0.5
"""Least share of a rotation about a horizontal axis that the joints make, with which a leg keeps a sole level."""
_SAME = 0.2
"""Distance of places of a sole, relative to its size, below which they are one."""


def feet_of(robot: Robot, home: Home, q: Array) -> tuple[tuple[Foot, ...], Array]:
    """Return the feet, and the middle of the places that carry the robot on each at q, (n, 3), [m], world axes.

    Args:
        robot: The robot. home: Its standing posture. q: Its configuration in this posture, (nq,).
    """
    rotations, origins = link_poses(robot, q)
    weight, torques = robot.mass * float(np.linalg.norm(robot.gravity)), JointLimits.of(robot).torque
    feet, places = [], []
    for chain in home.legs:
        own = [point for point in robot.contacts if point.name in chain.contacts]
        points = np.array([origins[c.link] + rotations[c.link] @ c.position for c in own])
        held = points
        if len(home.legs) <= 2 and len(chain.pitch_columns) > 2:
            ankles = chain.columns[chain.columns.index(chain.pitch_columns[1]) + 1 :]
            axes = [axis for axis in joint_axes(robot, chain.link, rotations, origins) if axis.column in ankles]
            held = held_places(points, axes, torques / (_LOAD * weight))
        place, rotation = held.mean(axis=0), rotations[chain.link]
        sole = rotation.T @ (place - origins[chain.link])
        links = tuple(dict.fromkeys(c.link for c in own))
        turns = _turns(robot, q, chain.link, sole, chain.columns)
        offsets = carrying_places(held - place, turns)
        links_of = [(c.link, rotations[c.link], origins[c.link]) for c in own]
        carrying = tuple((k, R.T @ (point - origin)) for (k, R, origin), point in zip(links_of, held, strict=True))
        if len(own) > 1 and len(turns) < 3:
            carrying = tuple((chain.link, sole + rotation.T @ offset) for offset in offsets)
        pivot, edge = _pivot(points - place, offsets, turns, origins[chain.link] - place)
        foot = Foot(chain.link, sole, points - place, carrying, offsets, turns, rotation, chain.columns, links)
        ankle = chain.pitch_columns[2] if len(chain.pitch_columns) > 2 else None
        feet.append(replace(foot, pivot=pivot, edge=edge, ankle=ankle))
        places.append(place)
    return tuple(feet), np.array(places)


def foot_jacobian(model: WholeBodyModel, foot: Foot) -> Array:
    """Return the Jacobian of a leg for the motions of its foot, (r + 3, k), world axes, with the k joints of the leg.

    Its last three rows are the velocity of the middle of the sole per joint velocity. Those before are the angular
    velocity about the r axes about which the leg turns a flat foot, none for a point.

    Args:
        model: The robot in its standing posture. foot: The foot.
    """
    J = model.point(foot.link, foot.sole).J[:, [model.robot.base.nv + k for k in foot.columns]]
    return np.concatenate([foot.turns @ J[:3], J[3:]]) if foot.is_flat else J[3:]


def with_room(robot: Robot, home: Home, q: Array, foot: Foot) -> Foot:
    """Return the foot with `Foot.room`, which stays infinite for a leg that does not turn its foot about all axes.

    Args:
        robot: The robot. home: Its standing posture. q: Its configuration in this posture, (nq,). foot: The foot.
    """
    if not foot.is_flat or len(foot.turns) < 3:
        return foot
    J = foot_jacobian(WholeBodyModel(robot, q, np.zeros(robot.nv)), foot)
    limits, room = JointLimits.of(robot), foot.room
    rates = np.linalg.pinv(J, rcond=MOVES) @ np.concatenate([foot.turns[:, 2], np.zeros(3)])
    for k, rate in zip(foot.columns, rates, strict=True):
        if abs(rate) > _TURNED:
            ends = (np.array([limits.lower[k], limits.upper[k]]) - home.angles[k]) / rate
            room = np.minimum(room, np.abs(np.sort(ends)))
    return replace(foot, room=room)


def sole_extents(feet: tuple[Foot, ...], height: float) -> tuple[float, float]:
    """Return `FootstepLaw.soles`; the height is that of the center of mass, [m]."""
    if len(feet) > 2 or any(not foot.is_flat or foot.pivot is not None for foot in feet):
        return 0.0, 0.0
    length, width = np.min([np.ptp(foot.offsets[:, :2], axis=0) for foot in feet], axis=0)
    return min(0.5 * float(length), _SHIFT * height), min(0.5 * float(width), _SHIFT * height)


def _turns(robot: Robot, q: Array, link: int, place: Array, columns: tuple[int, ...]) -> Array:
    """Return axes about which a leg turns its foot at a fixed place, as `Foot.turns`, (r, 3).

    Args:
        robot: The robot. q: Standing posture, (nq,). link: Index of the foot.
        place: The fixed point, (3,), [m], link axes. columns: Joints of the leg.
    """
    J = WholeBodyModel(robot, q, np.zeros(robot.nv)).point(link, place).J[:, [robot.base.nv + k for k in columns]]
    _, sizes, rows = np.linalg.svd(J[3:])
    free = rows[int(np.sum(sizes > MOVES * sizes[0])) :]
    axes, sizes, _ = np.linalg.svd(J[:3] @ free.T, full_matrices=False)
    return np.eye(3) if np.sum(sizes > _TURNS) == 3 else axes[:, sizes > _TURNS].T


def held_places(places: Array, ankles: Sequence[JointAxis], levers: Array) -> Array:
    """Return the places nearest to given ones at which the torques of the ankle hold the weight, (m, 3), [m].

    They are the given ones if the ankle holds the weight in their middle: a robot then stands and walks over it.

    A force through the axis of a joint needs no torque of it; the weight at a distance from it needs their product. No
    center of pressure beyond the largest distance can be held on one foot: GR1's ankles of 15 N m hold its weight
    within 35 mm of an axis that is 50 mm behind the middle of its sole.

    Args:
        places: Places of a sole, (m, 3), [m], base axes. ankles: Axes of the joints beyond the knee.
        levers: Largest torque of each joint of the robot over the force on the foot, (nj,), [m]; may be infinite.
    """
    for axis in ankles:
        across = np.array([-axis.direction[1], axis.direction[0], 0.0])  # torque of a vertical unit force per distance
        lever, square = levers[axis.column], across @ across
        torques = (places - axis.origin) @ across
        if square > 0.0 and abs(float(np.mean(torques))) > lever:
            places = places - np.outer(torques - np.clip(torques, -lever, lever), across / square)
    return places


def carrying_places(outline: Array, turns: Array) -> Array:
    """Return the places of a sole that carry the robot, (k, 3), [m], base axes, relative to its middle; see `Foot`.

    Args:
        outline: Contact points relative to the middle, (m, 3), [m], base axes. turns: As in `Foot`.
    """
    if len(turns) == 3:
        return outline
    level = turns.T @ turns  # the share of a rotation about each axis that the leg makes
    values, vectors = np.linalg.eigh(level[:2, :2])
    sides = [np.array([-y, x, 0.0]) for value, (x, y) in zip(values, vectors.T, strict=True) if value > _LEVEL]
    kept = sum((np.outer(side, side) for side in sides), np.zeros((3, 3)))
    places: list[Array] = []
    for place in outline @ kept:
        if all(np.linalg.norm(place - other) > _SAME * np.ptp(outline, axis=0).max() for other in places):
            places.append(place)
    return np.array(places)


def _pivot(outline: Array, offsets: Array, turns: Array, ankle: Array) -> tuple[int | None, Array]:
    """Return `Foot.pivot`, the end of the sole with the shorter lever of the ankle's torque, and `Foot.edge`.

    Args:
        outline: As in `Foot`. offsets: As in `Foot`. turns: As in `Foot`.
        ankle: Last joint of the leg relative to the middle of the sole, (3,), [m], base axes.
    """
    if len(offsets) < 2 or len(turns) == 3 or np.linalg.norm(turns[:, 2]) > _LEVEL:
        return None, np.zeros(3)
    side = np.cross([0.0, 0.0, 1.0], offsets[0] - offsets[-1])
    side = side / np.linalg.norm(side)
    return int(np.argmin(np.linalg.norm((offsets - ankle)[:, :2], axis=1))), float(
        np.max(np.abs(outline @ side))
    ) * side
