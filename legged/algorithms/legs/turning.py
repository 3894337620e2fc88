"""Postures with which a lying robot may turn over: its left legs and its right legs in any of their configurations."""

from __future__ import annotations

from itertools import product

import numpy as np

from legged.algorithms.legs.posture_search import inner_limits
from legged.algorithms.legs.standing import Home
from legged.checked import checked
from legged.dynamics.kinematics import point_positions
from legged.robot.robot import Robot
from legged.spatial import Array

_CONFIGURATIONS = 64  # of each leg, at most: equal steps of each joint between its limits
_FARTHEST = 3.3  # [rad], largest distance of a joint from its standing position
_ACROSS = 0.3  # weight of longitudinal distances where configurations of legs are compared


@checked
def turning_postures(robot: Robot, home: Home, folded: Array, count: int) -> Array:
    """Return random postures in which all left legs are alike, as all right legs, (count, nj), [rad] or [m].

    Args:
        robot: The robot. home: Its standing posture. folded: Joint positions with folded legs, (nj,), [rad] or [m].
        count: Number of postures.
    """
    lower, upper = inner_limits(robot)
    lower, upper = np.maximum(lower, home.angles - _FARTHEST), np.minimum(upper, home.angles + _FARTHEST)
    points = [(contact.link, contact.position) for contact in robot.contacts]
    middle = np.mean([leg.hip[1] for leg in home.legs])
    random = np.random.default_rng(0)
    postures, first = np.tile(folded, (count, 1)), None
    sides = random.integers(_CONFIGURATIONS, size=(2, count))
    for leg in home.legs:
        own = list(leg.columns)
        levels = max(2, int(_CONFIGURATIONS ** (1.0 / len(own)) + 1e-9))
        grid = np.array(list(product(*(np.linspace(lower[k], upper[k], levels) for k in own))))
        places = []
        for values in grid:
            angles = folded.copy()
            angles[own] = values
            places.append(point_positions(robot, np.concatenate([robot.base.neutral(), angles]), points))
        offsets = np.array(places)
        offsets = offsets[:, (np.ptp(offsets, axis=0) > 1e-9).any(axis=1)] - leg.hip
        is_left = leg.hip[1] > middle
        first = first or (offsets, is_left)
        match = _alike(first[0], offsets, is_left != first[1])
        postures[:, own] = grid[match[sides[int(is_left)] % len(match)]]
    return postures


def _alike(first: Array, other: Array, is_mirrored: bool) -> Array:
    """Return the configuration of another leg whose points are nearest to those of each of the first leg, (k,)."""
    if first.shape[1] != other.shape[1]:
        return np.arange(len(first)) % len(other)
    weights = np.array([_ACROSS, 1.0, 1.0])
    mirrored = first * [1.0, -1.0, 1.0] if is_mirrored else first
    return np.argmin((((mirrored[:, None] - other[None]) * weights) ** 2).sum(axis=(2, 3)), axis=1)
