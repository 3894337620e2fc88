"""The knees of legs: the joints that make a leg shorter, and the side to which they bend."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from legged.algorithms.legs.leg_chains import LegChain, joint_axes
from legged.dynamics.kinematics import link_poses
from legged.robot.robot import Robot

Array = np.ndarray
_BEND = 0.2
"""Least bend of a knee, [rad], at which the leg has 0.995 of its length."""


def knee_ranges(robot: Robot, legs: Sequence[LegChain], q: Array) -> dict[int, tuple[float, float]]:
    """Return the range of each knee that keeps it bent to the same side as at q, [rad], by its column.

    The knee is the second pitch joint of a leg. At a straight leg its motion does not change the distance from the hip
    to the end of the shank, and a knee beyond it bends further to the wrong side when the leg is to become shorter.
    The range begins at a bend of 0.2 rad, or of half of the bend at q if that is less.

    Args:
        robot: The robot. legs: Its legs. q: Configuration, (nq,).
    """
    bends, less, ranges = _bends(robot, legs, q), q.copy(), {}
    for k, bend in bends.items():
        less[robot.base.nq + k] -= bend or _BEND
    after = _bends(robot, legs, less)
    for k, bend in bends.items():
        # rate of the bend: 2 if two coupled joints are the knee, negative if a rod drives it
        rate = (bend - after[k]) / (bend or _BEND)
        if not rate:  # an axis through the hip, without a bend
            continue
        bent, least = bend / rate, min(_BEND, 0.5 * abs(bend)) / abs(rate)
        straight = float(q[robot.base.nq + k]) - bent
        ranges[k] = (straight + least, np.inf) if bent > 0.0 else (-np.inf, straight - least)
    return ranges


def _bends(robot: Robot, legs: Sequence[LegChain], q: Array) -> dict[int, float]:
    """Return the angle between thigh and shank about the axis of each knee, [rad], by its column; zero if straight."""
    (rotations, origins), bends = link_poses(robot, q), {}
    for leg in legs:
        if len(leg.pitch_columns) < 2:
            continue
        axes = {axis.column: axis for axis in joint_axes(robot, leg.link, rotations, origins)}
        hip, knee, *ankles = (axes[column] for column in leg.pitch_columns)
        points = [robot.contact(name) for name in leg.contacts]
        foot = np.mean([origins[point.link] + rotations[point.link] @ point.position for point in points], axis=0)
        thigh, shank = knee.origin - hip.origin, (ankles[0].origin if ankles else foot) - knee.origin
        along = np.eye(3) - np.outer(knee.direction, knee.direction)
        bends[knee.column] = float(np.arctan2(knee.direction @ np.cross(thigh, shank), thigh @ along @ shank))
    return bends
