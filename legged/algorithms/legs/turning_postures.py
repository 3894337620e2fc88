"""Random postures by which a lying robot may turn over."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from legged.algorithms.legs.posture_search import inner_limits
from legged.algorithms.legs.rising import Arm
from legged.algorithms.legs.standing import Home
from legged.checked import checked
from legged.dynamics.kinematics import point_positions
from legged.robot.robot import Robot
from legged.spatial import Array

_CONFIGURATIONS = 64  # of each limb, at most, with joints at equal steps between their limits
_FARTHEST = 3.3  # [rad], largest distance of a joint from its standing position
_LONGITUDINAL = 0.3  # weight of longitudinal distances where configurations of limbs are compared


@checked
def turning_postures(robot: Robot, home: Home, folded: Array, count: int, arms: Sequence[Arm] = ()) -> Array:
    """Return random postures, (count, nj), [rad] or [m], joint coordinates.

    The joints of limbs are at ends of their ranges in half of the postures, and at equal steps between them in the
    others. All left legs are alike, and all right legs; in a quarter of the postures the left limbs are folded, and in
    another quarter the right ones.

    Args:
        robot: The robot. home: Its standing posture.
        folded: Joint positions with folded legs, (nj,), [rad] or [m], joint coordinates.
        count: Number of postures. arms: Arms that move, too.
    """
    lower, upper = inner_limits(robot)
    lower, upper = np.maximum(lower, home.angles - _FARTHEST), np.minimum(upper, home.angles + _FARTHEST)
    points = [(contact.link, contact.position) for contact in robot.contacts]
    limbs = [(leg.columns, leg.hip) for leg in home.legs] + [(arm.columns, arm.place) for arm in arms]
    middle = np.mean([place[1] for _, place in limbs])
    random = np.random.default_rng(0)
    chosen, folds = random.integers(2**16, size=(2, count)), random.integers(4, size=count)
    at_ends, postures, first = random.integers(2, size=count) > 0, np.tile(folded, (count, 1)), None
    for columns, place in limbs:
        own, side = list(columns), int(place[1] > middle)
        levels = max(2, int(_CONFIGURATIONS ** (1.0 / len(own)) + 1e-9))
        grids = [list(product(*np.linspace(lower[own], upper[own], steps).T)) for steps in (2, levels)]
        angles = np.tile(folded, (len(grids[0]) + len(grids[1]), 1))
        angles[:, own] = np.concatenate(grids)
        places = np.array(
            [point_positions(robot, np.concatenate([robot.base.neutral(), row]), points) for row in angles]
        )
        places = places[:, (np.ptp(places, axis=0) > 1e-9).any(axis=1)] - place
        if first is None or first[0].shape != places.shape:
            first = places, side
        alike = _alike(first[0], places, side != first[1])
        moves = np.flatnonzero(folds != side)
        picked = chosen[side, moves] % len(grids[0])
        picked = np.where(at_ends[moves], picked, len(grids[0]) + chosen[side, moves] % len(grids[1]))
        postures[moves[:, None], own] = angles[alike[picked]][:, own]
    return postures


def _alike(first: Array, other: Array, is_mirrored: bool) -> Array:
    """Return the index, (k,), of the configuration of another limb that is nearest to each of the first limb."""
    weights = np.array([_LONGITUDINAL, 1.0, 1.0])
    mirrored = first * [1.0, -1.0, 1.0] if is_mirrored else first
    return np.argmin((((mirrored[:, None] - other[None]) * weights) ** 2).sum(axis=(2, 3)), axis=1)
