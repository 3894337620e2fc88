"""Motions that turn a lying robot over, found by simulations of the robot at the start of a law."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from controllers.locomotion.falls.trials import FRICTION, ROBOTS, Servos, Trials, stored_motion
from legged.compiler.ir import where
from legged.dynamics.inertia import inertia_matrix
from legged.robot.robot import Robot
from legged.spatial import Array

UPRIGHT = 0.9  # vertical component of the upright axis of the base of a robot that has turned over
MOVES, HOLDS = 0.6, 5.0  # [sqrt(h / g)], duration of the motion to a posture, and from its beginning to the next one
FOLDS_WITHIN, FOLDED = 3.0, 6.0  # [sqrt(h / g)], the same of the motion to folded legs
_SETTLES = 8.0  # [sqrt(h / g)], in which a robot with folded legs comes to rest
_ROUNDS = 8  # of simulations of random postures
_SAME, _DEPARTED = 0.95, 0.9  # cosines of angles between vertical directions: of one orientation at rest, and of others
_MOST = 6  # orientations at rest
_ALTERNATIVES = 2  # motions that are kept for each orientation
_SURE = 0.7  # share of successes of a motion for which no other one is sought


class Turning(NamedTuple):
    """Motions that turn a lying robot over.

    The first two keep the legs of an upright robot folded.

    Attributes:
        directions: Unit vectors upward where the robot rests with folded legs, (n, 3), dimensionless, base axes.
        postures: Joint positions to which it moves from there, one after the other, (n, 2, nj), [rad] or [m],
            joint coordinates.
        alternative: 1 for motions of every second attempt, otherwise 0, (n,).
    """

    directions: Array
    postures: Array
    alternative: Array

    def number(self, vertical: Array, alternative: Any) -> Any:
        """Return the number of the motion for such an attempt whose direction is nearest, 0 to n - 1.

        Args:
            vertical: Unit vector upward, (3,), dimensionless, base axes.
            alternative: 1 in every second attempt, otherwise 0.
        """
        near = self.directions @ vertical + where(self.alternative > 0.5, 4.0, -4.0) * (alternative - 0.5)
        best, number = near[0], 0.0 * alternative
        for k in range(1, len(self.postures)):
            best, number = np.maximum(best, near[k]), where(near[k] > best, float(k), number)
        return number


def turning_motions(
    robot: Robot, folded: Array, goal: Array, candidates: Array, servos: Servos, unit: float, step: float
) -> Turning:
    """Return motions that turn a robot over from the orientations in which it rests with folded legs.

    Args:
        robot: The robot, with contact points on all bodies on which it may lie.
        folded: Initial posture, (nj,), [rad] or [m], joint coordinates: folded legs, or with two legs arms sideways.
        goal: Unit vector upward when it has turned over, (3,), dimensionless, base axes.
        candidates: Postures to be tried, (k, nj), [rad] or [m], joint coordinates.
        servos: Servos of the joints. unit: sqrt(h / g), [s]. step: Time step, [s].
    """

    def search() -> Turning:
        return _Search(Trials(robot, folded, servos, unit, step), folded, candidates, goal).motions()

    motions = stored_motion(robot, Turning, search, folded, goal, candidates, *servos.numbers, unit, step)
    assert motions is not None
    return motions


def bounding_inertias(robot: Robot, postures: Sequence[Array]) -> Array:
    """Return J, (nj,), [kg m^2] or [kg]: dampings d of the joints decay at rates of at most max(d / J) in all postures.

    It is the reciprocal of the largest sum of absolute values in the column of each joint of the inverse of the inertia
    matrix: no eigenvalue of a matrix exceeds its largest column sum of absolute values.

    Args:
        robot: The robot. postures: (nj,) each, [rad] or [m], joint coordinates.
    """
    matrices = [inertia_matrix(robot, np.concatenate([robot.base.neutral(), angles])) for angles in postures]
    nv = robot.base.nv
    return 1.0 / np.max([np.abs(np.linalg.inv(M)[nv:, nv:]).sum(axis=0) for M in matrices], axis=0)


class _Node(NamedTuple):
    """A robot that has come to rest: its state [q; v], (nq + nv,), and the postures that have led to it."""

    state: Array
    postures: tuple[Array, ...]


class _Search:
    def __init__(self, trials: Trials, folded: Array, candidates: Array, goal: Array) -> None:
        self.trials, self.random, self.folded, self.candidates, self.goal = (
            trials,
            trials.random,
            folded,
            candidates,
            goal,
        )

    def motions(self) -> Turning:
        """Return the best motions from each orientation."""
        rests = self._rests()
        trees = [[_Node(rest, ())] for rest in rests]
        found: list[list[tuple[float, Array]]] = [[] for _ in rests]
        for _ in range(_ROUNDS):
            missing = [k for k, motions in enumerate(found) if not any(rate > _SURE for rate, _ in motions)]
            if not missing:
                break
            trials = self._successes(trees, missing)
            for (k, motion), rate in zip(trials, self._rates(rests, trials), strict=True):
                found[k].append((rate, motion))
        directions, postures, alternative = [self.goal] * 2, [np.tile(self.folded, (2, 1))] * 2, [0, 1]
        for rest, motions in zip(self.trials.verticals(np.array(rests)), found, strict=True):
            best = sorted(motions, key=lambda motion: -motion[0])[:_ALTERNATIVES]
            for k in range(_ALTERNATIVES if best else 0):
                directions.append(rest)
                postures.append(best[min(k, len(best) - 1)][1])
                alternative.append(k)
        return Turning(np.array(directions), np.array(postures), np.array(alternative))

    def _rests(self) -> list[Array]:
        """Return the states in which robots with folded legs come to rest without having turned over."""
        states, lost = self.trials.at_rest(self.folded, self.random.normal(size=(ROBOTS, 4)), FOLDS_WITHIN, _SETTLES)
        rests: list[Array] = []
        for state, up in zip(states[~lost], self.trials.verticals(states[~lost]), strict=True):
            if up @ self.goal < UPRIGHT and all(up @ other < _SAME for other in self.trials.verticals(np.array(rests))):
                rests.append(state)
        return rests[:_MOST]

    def _successes(self, trees: list[list[_Node]], missing: list[int]) -> list[tuple[int, Array]]:
        """Return motions with random postures, from nodes of some trees, that turn the robot over, with their tree.

        At most as many are returned as can be repeated at the same time. A posture after which the robot rests
        elsewhere, but not upright with folded legs, becomes a node of its tree.
        """
        owners = np.resize(missing, ROBOTS)
        nodes = [trees[k][self.random.integers(len(trees[k])) * self.random.integers(2)] for k in owners]
        targets = self.candidates[self.random.integers(len(self.candidates), size=ROBOTS)]
        before = np.array([node.state for node in nodes])
        after, lost = self.trials.moved(before, targets, MOVES, HOLDS)
        turned = self._turned(after) & ~lost
        leaves = ((self.trials.verticals(after) * self.trials.verticals(before)).sum(axis=1) < _DEPARTED) & ~lost
        successes = []
        for k, node, target, state, is_turned, has_left in zip(
            owners, nodes, targets, after, turned, leaves, strict=True
        ):
            postures = (*node.postures, target)
            if is_turned:
                successes.append((int(k), np.array([*postures, self.folded][:2])))
            elif has_left and len(postures) < 2:
                trees[k].append(_Node(state, postures))
        return successes[: ROBOTS // len(FRICTION)]

    def _rates(self, rests: list[Array], trials: list[tuple[int, Array]]) -> Array:
        """Return the share of repetitions, with other joint positions and friction, in which each succeeds, (n,)."""
        if not trials:
            return np.zeros(0)
        rows = np.resize(np.repeat(np.arange(len(trials)), len(FRICTION)), ROBOTS)
        states = self.trials.varied(np.array([rests[k] for k, _ in trials])[rows])
        first, second = np.array([postures for _, postures in trials])[rows].swapaxes(0, 1)
        states, lost = self.trials.moved(states, first, MOVES, HOLDS)
        states, lost_later = self.trials.moved(states, second, MOVES, HOLDS)
        turned = self._turned(states) & ~lost & ~lost_later
        return np.array([turned[rows == number].mean() for number in range(len(trials))])

    def _turned(self, states: Array) -> Array:
        """Return whether robots are upright when they have folded their legs, (n,)."""
        folded, lost = self.trials.moved(states, self.folded, FOLDS_WITHIN, FOLDED)
        return (self.trials.verticals(folded) @ self.goal > UPRIGHT) & ~lost
