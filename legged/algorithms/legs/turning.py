"""Postures that turn a lying robot over: with the feet of one side it pushes itself over, or it rolls.

A robot whose joints are held rests on level ground where the height of its center of mass over its lowest contact
point, a function of the vertical direction in the axes of its base, has a local minimum. Another posture has other
minima, and the robot rolls to the one that is reached downhill. A short sequence of postures brings it onto its belly.
Inertia and friction are neglected.
"""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np

from legged.algorithms.legs.posture_search import inner_limits
from legged.algorithms.legs.standing import Home, reaching_posture
from legged.checked import checked
from legged.compiler import compile
from legged.compiler.ir import where
from legged.dynamics.kinematics import center_of_mass, point_positions
from legged.robot.robot import Robot
from legged.robot.shapes import spiral
from legged.spatial import Array

_NODES, _NEIGHBORS = 800, 8  # nodes, which are vertical directions on a sphere, and those around each
_CONFIGURATIONS = 64  # of each leg, at most: equal steps of each joint between its limits
_FARTHEST = 3.3  # [rad], largest distance of a joint from its standing position
_INDEPENDENT = 4096  # postures whose legs differ, besides all pairs of configurations of the left and the right legs
_BELLY = 0.9  # vertical component of the upright axis from which on folded legs leave the robot on its belly
_UPRIGHT_COSINE = 0.8  # the same from which on its legs fold
_STEPS = 8  # of the motion from one posture to the next in which it is tested
_CANDIDATES = 200  # postures that are tested for each orientation
_MOST = 12  # orientations at rest for which a posture is sought, and postures that lead to the belly
_LEFT, _FRONT = np.array([0.0, 1.0, 0.0]), np.array([1.0, 0.0, 0.0])
_PUSHES = ((np.array([0.0, 0.0, -1.0]), _LEFT), (_LEFT, -_LEFT), (-_LEFT, _LEFT), (-_FRONT, _FRONT), (_FRONT, -_FRONT))
"""Vertical direction of a lying robot, and the side whose feet push, base axes."""
_PUSHES_UP, _PUSHES_OUT = 1.0, -0.4  # [leg length], place beyond its back to which a lying robot moves its feet
_ACROSS = 0.3  # weight of longitudinal distances where configurations of legs are compared


class Turning(NamedTuple):
    """Postures that turn a lying robot over.

    Attributes:
        directions: Unit vectors upward where the robot rests, (n, 3), dimensionless, base axes.
        postures: Joint positions in which it turns on from each, (n, nj), [rad] or [m].
        pushes: Whether the robot pushes itself over in it with the feet of one side, (n,); otherwise it rolls.
    """

    directions: Array
    postures: Array
    pushes: Array

    def number(self, vertical: Array, pushes: Any) -> Any:
        """Return the number of the posture whose direction is nearest, 0 to n - 1.

        Args:
            vertical: Unit vector upward, (3,), dimensionless, base axes.
            pushes: 1 for a posture in which the robot pushes, 0 for one in which it rolls, if there is any.
        """
        near = self.directions @ vertical + where(self.pushes, 4.0, -4.0) * (pushes - 0.5)
        best, number = near[0], 0.0 * pushes
        for k in range(1, len(self.postures)):
            best, number = np.maximum(best, near[k]), where(near[k] > best, float(k), number)
        return number

    def is_push(self, number: Any) -> Any:
        """Return whether the robot pushes itself over in the posture with a number."""
        return number > np.argmax(self.pushes) - 0.5  # they are the last ones


class _Legs(NamedTuple):
    """Configurations of the legs.

    Attributes:
        columns: Joints of each leg. values: Their positions, (k, n), [rad] or [m].
        moments: Motion of the center of mass from the initial posture, (k, 3), [m], base axes.
        lowest: Least height of the contact points of the leg for each vertical direction, (k, nodes), [m].
        places: Contact points of the leg from its hip, (k, points, 3), [m], base axes.
        rest: As `lowest`, of the points of no leg, (nodes,).
    """

    columns: list[list[int]]
    values: list[Array]
    moments: list[Array]
    lowest: list[Array]
    places: list[Array]
    rest: Array


class _Body:
    """Center of mass and contact points of a robot in given postures, base axes."""

    def __init__(self, robot: Robot) -> None:
        points = [(contact.link, contact.position) for contact in robot.contacts]
        self.robot = robot
        self.radii = np.array([contact.radius for contact in robot.contacts])

        def placed(angles: Array) -> tuple[Array, Array]:
            q = np.concatenate([robot.base.neutral(), angles])
            return center_of_mass(robot, q), point_positions(robot, q, points)

        self._placed = compile(placed, None, angles=(robot.nj,))

    def placed(self, angles: Array) -> tuple[Array, Array]:
        """Return the centers of mass, (n, 3), and the contact points, (n, points, 3), [m], of postures (n, nj)."""
        return self._placed(angles)

    def heights(self, angles: Array) -> Array:
        """Return the heights of the center of mass over the ground for each vertical direction, (n, nodes), [m]."""
        centers, places = self.placed(angles)
        heights = (centers @ _SPHERE.T).astype(np.float32)
        lowest = np.full_like(heights, np.inf)
        for k, radius in enumerate(self.radii):
            lowest = np.minimum(lowest, (places[:, k] @ _SPHERE.T - radius).astype(np.float32))
        return heights - lowest


@checked
def turning_postures(robot: Robot, home: Home, folded: Array) -> Turning:
    """Return postures that turn a robot with folded legs onto its belly.

    Those in which it rolls are sought for each orientation in which it rests with folded legs, or after another
    posture: all pairs of configurations of its left and right legs, and others at random. There may be none.

    Args:
        robot: The robot, with contact points on all bodies on which it may lie.
        home: Its standing posture.
        folded: Joint positions with folded legs, (nj,), [rad] or [m], joint coordinates.
    """
    rolls = _rolling(robot, home, folded)
    pushes = [_pushing(robot, home, folded, side) for _, side in _PUSHES]
    directions = [*_SPHERE[list(rolls)], *(up for up, _ in _PUSHES)]
    return Turning(np.array(directions), np.array([*rolls.values(), *pushes]), np.arange(len(directions)) >= len(rolls))


def _pushing(robot: Robot, home: Home, folded: Array, direction: Array) -> Array:
    """Return the posture with the feet of one side behind the back and the others folded, (nj,), [rad] or [m].

    Args:
        robot: The robot. home: Its standing posture. folded: Joint positions with folded legs, (nj,).
        direction: Unit vector to the side, (3,), dimensionless, base axes.
    """
    middle = np.mean([leg.hip for leg in home.legs], axis=0)
    push = _PUSHES_OUT * direction + np.array([0.0, 0.0, _PUSHES_UP])
    targets = [leg.hip + leg.length * push if direction @ (leg.hip - middle) > 0.0 else None for leg in home.legs]
    return reaching_posture(robot, home, targets, folded)


def _rolling(robot: Robot, home: Home, folded: Array) -> dict[int, Array]:
    """Return the posture, (nj,), in which a robot that rests at a node rolls on toward its belly, by node."""
    body = _Body(robot)
    legs = _legs(body, home, folded)
    if not np.isfinite(legs.rest).all():  # no contact point on the trunk
        return {}
    choices = _choices(home, legs)
    center = body.placed(folded[None])[0][0]
    heights = np.broadcast_to((_SPHERE @ center)[None], (len(choices), _NODES)).astype(np.float32)
    lowest = np.broadcast_to(legs.rest[None], heights.shape).astype(np.float32)
    for leg, rows in enumerate(choices.T):
        heights += (_SPHERE @ legs.moments[leg].T).T.astype(np.float32)[rows]
        lowest = np.minimum(lowest, legs.lowest[leg].astype(np.float32)[rows])
    rests = _rests(heights - lowest)
    start = _rests(body.heights(folded[None]))[0]
    belly = _SPHERE[start, 2] > _BELLY
    steps = _numbers_of_steps(rests, _inner(belly))
    chosen: dict[int, Array] = {}
    waiting = [(int(node), folded) for node in np.unique(start) if not belly[node]]
    failed: list[tuple[int, Array]] = []
    known = np.zeros(_NODES, dtype=bool)  # near an orientation for which a posture is chosen
    while waiting and len(chosen) < _MOST:
        node, before = waiting.pop(0)
        if known[node]:
            continue
        if steps[node] == 0:
            after, angles = node, folded
        else:
            found = _posture(body, legs, choices, rests, (steps < steps[node]) | known, node, before, folded)
            if found is None:
                failed.append((node, before))
                continue
            after, angles = found
        chosen[node] = angles
        known[_NEAR[_NEAR[node]]] = True
        waiting += failed
        failed = []
        if not belly[after]:
            waiting.append((after, angles))
    return chosen


def _posture(
    body: _Body, legs: _Legs, choices: Array, rests: Array, goal: Array, node: int, before: Array, folded: Array
) -> tuple[int, Array] | None:
    """Return where a robot that rests at a node comes to rest in the goal, and its posture, (nj,); None if nowhere."""
    candidates = np.flatnonzero(_inner(goal)[rests[:, node]])
    success_rate = goal[rests[candidates][:, np.unique(_NEAR[_NEAR[node]])]].mean(axis=1)
    candidates = candidates[np.argsort(-success_rate, kind="stable")]
    candidates = candidates[:: max(1, len(candidates) // 4 // _CANDIDATES)][:_CANDIDATES]
    if not len(candidates):
        return None
    after = np.tile(before, (len(candidates), 1))
    for leg, columns in enumerate(legs.columns):
        after[:, columns] = legs.values[leg][choices[candidates, leg]]
    at = _moved(body, before, after, np.tile(_NEAR[node], (len(candidates), 1)))
    folds = _moved(body, after, np.tile(folded, (len(candidates), 1)), at)
    succeeds = goal[at] & ((_SPHERE[at, 2] < _UPRIGHT_COSINE) | (_SPHERE[folds, 2] > _BELLY))
    best = int(np.argmax(succeeds.mean(axis=1) + succeeds[:, 0]))
    return (int(at[best, 0]), after[best]) if succeeds[best, 0] else None


def _moved(body: _Body, before: Array, after: Array, at: Array) -> Array:
    """Return the nodes, (n, m), at which robots come to rest from others, `at`, while their joints move, (n, nj)."""
    for step in range(1, _STEPS + 1):
        at = np.take_along_axis(_rests(body.heights(before + step / _STEPS * (after - before))), at, axis=1)
    return at


def _numbers_of_steps(rests: Array, goal: Array) -> Array:
    """Return the least number of postures that lead from each node to the goal, (nodes,); infinite without any."""
    steps = np.where(goal, 0.0, np.inf)
    for number in range(1, _MOST):
        reached = _inner(np.isfinite(steps))
        new = reached[rests].any(axis=0) & ~np.isfinite(steps)
        if not new.any():
            break
        steps[new] = number
    return steps


def _legs(body: _Body, home: Home, folded: Array) -> _Legs:
    """Return the configurations of the legs."""
    lower, upper = inner_limits(body.robot)
    lower, upper = np.maximum(lower, home.angles - _FARTHEST), np.minimum(upper, home.angles + _FARTHEST)
    (center,), (places,) = body.placed(folded[None])
    columns, values, moments, lowest, offsets = [], [], [], [], []
    others = np.ones(len(places), dtype=bool)
    for leg in home.legs:
        own = list(leg.columns)
        levels = max(2, int(_CONFIGURATIONS ** (1.0 / len(own)) + 1e-9))
        grid = np.array(list(product(*(np.linspace(lower[k], upper[k], levels) for k in own))))
        angles = np.tile(folded, (len(grid), 1))
        angles[:, own] = grid
        centers, points = body.placed(angles)
        moved = (np.abs(points - places) > 1e-9).any(axis=(0, 2))
        others &= ~moved
        columns.append(own)
        values.append(grid)
        moments.append(centers - center)
        lowest.append((points[:, moved] @ _SPHERE.T - body.radii[moved, None]).min(axis=1))
        offsets.append(points[:, moved] - leg.hip)
    rest = (places[others] @ _SPHERE.T - body.radii[others, None]).min(axis=0, initial=np.inf)
    return _Legs(columns, values, moments, lowest, offsets, rest)


def _choices(home: Home, legs: _Legs) -> Array:
    """Return the configurations of the legs in each posture, (n, number of legs)."""
    middle = np.mean([leg.hip[1] for leg in home.legs])
    is_left = [leg.hip[1] > middle for leg in home.legs]
    like = [
        _alike(legs.places[0], places, left != is_left[0]) for places, left in zip(legs.places, is_left, strict=True)
    ]
    count = len(legs.values[0])
    a, b = (grid.ravel() for grid in np.meshgrid(range(count), range(count)))
    pairs = [match[a if left else b] for match, left in zip(like, is_left, strict=True)]
    random = np.random.default_rng(0)
    free = [random.integers(len(values), size=_INDEPENDENT) for values in legs.values]
    return np.concatenate([np.column_stack(pairs), np.column_stack(free)])


def _alike(first: Array, other: Array, is_mirrored: bool) -> Array:
    """Return the configuration of another leg whose points are nearest to those of each of the first leg, (k,)."""
    if first.shape[1] != other.shape[1]:
        return np.arange(len(first)) % len(other)
    weights = np.array([_ACROSS, 1.0, 1.0])
    mirrored = first * [1.0, -1.0, 1.0] if is_mirrored else first
    return np.argmin((((mirrored[:, None] - other[None]) * weights) ** 2).sum(axis=(2, 3)), axis=1)


def _rests(heights: Array) -> Array:
    """Return the node at which a robot at each node comes to rest, (n, nodes), given the heights, (n, nodes)."""
    downhill = np.empty(heights.shape, dtype=np.int64)
    for first in range(0, len(heights), 1024):
        part = heights[first : first + 1024]
        downhill[first : first + 1024] = _NEAR[np.arange(_NODES), np.argmin(part[:, _NEAR], axis=2)]
    for _ in range(6):
        downhill = np.take_along_axis(downhill, downhill, axis=1)
    return downhill


def _inner(nodes: Array) -> Array:
    """Return the nodes whose neighbors belong to a set as well, (nodes,)."""
    return np.asarray(nodes[_NEAR].all(axis=1))


_SPHERE = spiral(1.0 - 2.0 * (np.arange(_NODES) + 0.5) / _NODES)
_NEAR = np.argsort(-(_SPHERE @ _SPHERE.T), axis=1)[:, : _NEIGHBORS + 1]
"""Indices of each direction and its neighbors, (nodes, neighbors + 1)."""
