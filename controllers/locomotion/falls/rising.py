"""Motions in which a robot with two legs rises from its front, found by simulations at the start of a law."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from controllers.locomotion.falls.trials import FRICTION, ROBOTS, Servos, Trials, stored_motion
from legged.algorithms.legs.rising import BENT, PLACE, RisingPostures
from legged.dynamics.kinematics import point_positions
from legged.errors import DefinitionError
from legged.rotations import axis_quaternion
from legged.spatial import Array

PRONE = np.array([-1.0, 0.0, 0.0])
"""Unit vector upward, (3,), dimensionless, base axes, of a robot on its front."""
_SETTLES = 4.0  # [sqrt(h / g)], in which a robot on its front comes to rest
_ROUNDS, _MOST_ROUNDS = 4, 8
"""Largest number of rounds of the search if they find a motion, and otherwise. A round tries motions over the heels if
those over the hands fail, until one succeeds."""
_KEPT = 6  # sequences of postures that are kept after each stage
_UPRIGHT, _LEVEL, _WITHIN = 0.8, 0.06, 0.1
"""Of a robot that has risen: least vertical component of the upright axis of its base; largest difference of the
heights of toes and heels, [height of the hips]; least distance of the capture point from both ends of the soles,
[length of the soles]."""
_SELECTED, _SURE, _LEAST = 0.7, 0.8, 0.5
"""Least shares of successes: of the best sequence after a stage on the soles, and of motions that are repeated; of a
motion that ends the search; of a motion that is used."""
_TRIES, _REPEATED = 5, 4  # largest numbers of samplings of a stage with a goal, and of motions that are repeated
_MOTIONS = 2  # that are kept
_RATE = 4.0  # weight of the rate of success beside the score
_NEAR = 0.3  # standard deviation of parameters from those of good sequences, in half-widths of their ranges
_OFFSET = 0.01  # [rad] or [m], standard deviation of the errors of the servos in repetitions

_LEVEL_SOLES, _ON_SOLES, _RISEN = 1, 2, 3
"""Goals of stages: level soles, while the hands may be on the ground; the capture point over them; and upright."""

_Maker = Callable[[RisingPostures, Array, Array], Array]  # (postures, posture before, parameters) -> joint positions


def _limbs(nominal: int) -> _Maker:
    return lambda p, before, x: p.limbs(x[:3], np.array([x[3], x[4], BENT]), p.nominal[nominal])


def _on_heels(p: RisingPostures, before: Array, x: Array) -> Array:
    return p.limbs(x[:3], np.array([p.knee - x[3], BENT, BENT]), p.nominal[5])


def _on_hands(nominal: int | None) -> _Maker:
    return lambda p, before, x: p.over_soles(
        before if nominal is None else p.nominal[nominal], x[0], x[1], (x[2], x[3])
    )


def _on_soles(nominal: int | None) -> _Maker:
    return lambda p, before, x: p.over_soles(before if nominal is None else p.nominal[nominal], x[0], x[1])


class _Stage(NamedTuple):
    """Distribution of random postures, and of durations of the motions to them.

    Attributes:
        posture: Function that makes them. lasts: Duration of the stage, [sqrt(h / g)].
        middle, half: Centers and half-widths of the ranges of its parameters: place of the hands, [arm length], and
            rotations of hip and knee, or how much less the hip than the knee rotates, [rad]; or place of the center of
            mass over the soles, from the heels, 0, to the toes, 1, inclination of the trunk, [rad], and height and
            distance of the hands, [leg length]. The last one is the duration of the motion, [sqrt(h / g)].
    """

    posture: _Maker
    lasts: float
    middle: tuple[float, ...]
    half: tuple[float, ...]
    goal: int = 0


_FIRST_STAGES = (
    # pushes its trunk up
    _Stage(_limbs(3), 4.5, (0.86, 0.35, -0.25, 0.2, 0.7, 4.0), (0.14, 0.25, 0.25, 0.4, 0.8, 0.0)),
    # draws its knees in
    _Stage(_limbs(4), 5.5, (0.82, 0.35, -0.05, 2.0, 2.1, 5.0), (0.2, 0.25, 0.25, 0.8, 0.9, 0.0)),
)
_WAYS = (
    (
        # hands and soles on the ground
        _Stage(_on_hands(6), 9.0, (0.7, 1.3, 0.0, 0.75, 5.5), (0.2, 0.0, 0.0, 0.35, 2.5), _LEVEL_SOLES),
        # lifts its hands
        _Stage(_on_hands(None), 6.0, (0.68, 1.5, 0.08, 0.35, 4.0), (0.17, 0.0, 0.07, 0.35, 2.0), _ON_SOLES),
    ),
    (
        # sits on its heels
        _Stage(_on_heels, 9.0, (0.74, 0.2, -0.53, 1.2, 6.0), (0.2, 0.2, 0.25, 0.3, 0.0)),
        # squats
        _Stage(_on_soles(7), 6.0, (0.65, 0.7, 3.5), (0.25, 0.5, 1.5), _ON_SOLES),
    ),
)
_LAST_STAGES = tuple(  # raise the trunk
    _Stage(_on_soles(None), 6.0, (0.57, pitch, 4.0), (0.17, 0.15, 2.0), goal)
    for pitch, goal in ((1.15, _ON_SOLES), (0.75, _ON_SOLES), (0.4, _RISEN))
)
_FIRST = ((1, 3.0, 3.5), (2, 3.0, 3.5))  # before these: nominal posture, durations of the motion and of the stage
LASTS = tuple(x[-1] for x in _FIRST) + tuple(x.lasts for x in (*_FIRST_STAGES, *_WAYS[0], *_LAST_STAGES))
"""Time from the beginning of the motion to each posture of `Rising` to that of the next one, [sqrt(h / g)], the same
for both ways."""
BALANCES = 5  # index of the posture, the second of `_WAYS`, from which on the ankles balance


class Rising(NamedTuple):
    """One or two motions in which a robot rises from its front, the more reliable one first.

    Attributes:
        postures: Joint positions, (n, 9, nj), [rad] or [m], joint coordinates.
        moves: Durations of the motions to them, (n, 9), [sqrt(h / g)].
        verticals: Unit vectors upward when it has reached them, (n, 9, 3), dimensionless, base axes.
    """

    postures: Array
    moves: Array
    verticals: Array


def rising_motions(postures: RisingPostures, servos: Servos, unit: float, step: float) -> Rising:
    """Return motions in which a robot rises from its front, from the cache folder or by a search, with a warning.

    Args:
        postures: Postures of the robot, which has contact points on all bodies on which it may lie.
        servos: Servos of the joints. unit: sqrt(h / g), [s]. step: Time step, [s].

    Raises:
        DefinitionError: No motion succeeds in more than half of its repetitions.
    """
    robot = postures.robot

    def search() -> Rising | None:
        return _Search(postures, Trials(robot, postures.rest, servos, unit, step)).motions()

    notice = (
        f"simulations search for a motion in which robot {robot.name!r} rises after a fall, which takes one to eight "
        "minutes; later starts take it from the cache folder, see `legged cache`"
    )
    key = postures.nominal, *servos.numbers, unit, step
    motions = stored_motion(robot, Rising, search, *key, notice=notice)
    if motions is None:
        raise DefinitionError(f"no motion was found in which robot {robot.name!r} rises from its front")
    return motions


class _Node(NamedTuple):
    """Robots on different ground that have come through the same postures, with their states, (n, nq + nv).

    Stages are those of `Rising`: a posture, the duration of the motion to it, and the unit vector upward after it. The
    score and the rate of success are means over the robots.
    """

    states: Array
    stages: tuple[tuple[Array, float, Array], ...]
    score: float
    rate: float


class _Search:
    def __init__(self, postures: RisingPostures, trials: Trials) -> None:
        self.postures, self.trials, self.robot = postures, trials, trials.robot
        self.ends = [*postures.toes, *postures.heels]
        standing = np.concatenate([self.robot.base.neutral(), postures.home.angles])
        left, right, left_heel, right_heel = point_positions(self.robot, standing, self.ends)[:, :2]
        self.width = 0.5 * np.linalg.norm(left + left_heel - right - right_heel)

    def motions(self) -> Rising | None:
        """Return the best motions, or None."""
        lying, start = self._start()
        found, best, ways = list[_Node](), 0.0, _WAYS
        for number in range(_MOST_ROUNDS):
            if best > (_SURE if number < _ROUNDS else _LEAST):
                break
            nodes = self._through(_FIRST_STAGES, start)
            for way in ways:
                found += self._repeated(lying, self._through((*way, *_LAST_STAGES), nodes))
                best = max((node.rate for node in found), default=0.0)
                if best > _LEAST:
                    ways = (way,)
                    break
        used = [node for node in sorted(found, key=lambda node: -node.rate) if node.rate > _LEAST][:_MOTIONS]
        if not used:
            return None
        return Rising(*(np.array([[step[k] for step in node.stages] for node in used]) for k in range(3)))

    def _through(self, stages: Sequence[_Stage], nodes: list[_Node]) -> list[_Node]:
        """Return the best sequences after some stages; none if too few robots reach the goal of one of them."""
        for stage in stages:
            nodes = self._tried(stage, nodes)
            if stage.goal and max(node.rate for node in nodes) < _SELECTED:
                return []
        return nodes

    def _start(self) -> tuple[Array, list[_Node]]:
        """Return the states of robots on their front, and nodes of robots with their hands beside their shoulders."""
        rotations = np.tile(axis_quaternion("y", 0.5 * np.pi), (ROBOTS, 1))
        nominal, n = self.postures.nominal, len(FRICTION)
        lying, _ = self.trials.at_rest(nominal[0], rotations, 1.0, _SETTLES)
        states, begins, steps = self.trials.varied(lying), None, []
        for number, moves, lasts in _FIRST:
            states, _ = self.trials.moved(states, nominal[number], moves, lasts, begins)
            begins = np.tile(nominal[number], (ROBOTS, 1))
            steps.append((nominal[number], moves, self._vertical(states)))
        groups = [states[k : k + n] for k in range(0, ROBOTS, n)]
        return lying, [_Node(group, tuple(steps), 0.0, 0.0) for group in groups]

    def _tried(self, stage: _Stage, nodes: list[_Node]) -> list[_Node]:
        """Return the best of many random postures of a stage after some of the sequences so far.

        The first one is in the middle of the ranges of the parameters. In a stage with a goal, up to four more
        sets follow, with parameters near those of the best ones, until all robots of a sequence that reached the goal
        before reach this one, too; none follows if no robot reaches it.
        """
        random, n = self.trials.random, ROBOTS // len(FRICTION)
        middle, half = np.array(stage.middle), np.array(stage.half)
        before = [nodes[k % len(nodes)] for k in range(n)]
        x = middle + random.uniform(-1.0, 1.0, (n, len(middle))) * half
        x[0] = middle
        most = max(node.rate for node in nodes) or 1.0  # robots that have fallen before do not reach the goal
        after: list[tuple[_Node, _Node, Array]] = []
        for _ in range(_TRIES):
            after += zip(self._sampled(stage, before, x), before, x, strict=True)
            after.sort(key=lambda each: -each[0].score - (_RATE if stage.goal else 0.0) * each[0].rate)
            rate = max(node.rate for node, _, _ in after)
            if not stage.goal or rate == 0.0 or rate >= most:
                break
            before, x = zip(*(after[k % _KEPT][1:] for k in range(n)), strict=True)
            x = np.clip(x + _NEAR * half * random.normal(size=(n, len(middle))), middle - half, middle + half)
        return [node for node, _, _ in after[:_KEPT]]

    def _sampled(self, stage: _Stage, before: Sequence[_Node], x: Array) -> list[_Node]:
        """Return the sequences with postures of a stage with given parameters, (n, k), after given sequences, n."""
        n = len(FRICTION)
        targets = [
            stage.posture(self.postures, node.stages[-1][0], row[:-1]) for node, row in zip(before, x, strict=True)
        ]
        states, lost = self.trials.moved(
            self.trials.varied(np.concatenate([node.states for node in before])),
            np.repeat(targets, n, axis=0),
            np.repeat(x[:, -1], n),
            stage.lasts,
            np.repeat([node.stages[-1][0] for node in before], n, axis=0),
            len(before[0].stages) >= BALANCES,
        )
        after = []
        for k, node in enumerate(before):
            rows = slice(n * k, n * (k + 1))
            results = [self._result(*each, stage.goal) for each in zip(states[rows], lost[rows], strict=True)]
            score, rate = np.mean(results, axis=0)
            steps = *node.stages, (targets[k], x[k, -1], self._vertical(states[rows]))
            after.append(_Node(states[rows], steps, score, rate))
        return after

    def _repeated(self, lying: Array, nodes: list[_Node]) -> list[_Node]:
        """Return some motions with their rates of success in repetitions from the front, with other variations."""
        chosen = [node for node in nodes if node.rate > _SELECTED][:_REPEATED]
        if not chosen:
            return []
        rows = np.resize(np.repeat(np.arange(len(chosen)), len(FRICTION)), ROBOTS)
        states, begins, lost = self.trials.varied(lying), None, np.zeros(ROBOTS, dtype=bool)
        for number, lasts in enumerate(LASTS):
            targets, moves = (np.array([node.stages[number][k] for node in chosen])[rows] for k in (0, 1))
            targets = targets + _OFFSET * self.trials.random.normal(size=targets.shape)
            states, has_diverged = self.trials.moved(states, targets, moves, lasts, begins, number >= BALANCES)
            begins, lost = targets, lost | has_diverged
        risen = np.array([self._result(*each, _RISEN)[1] for each in zip(states, lost, strict=True)])
        return [node._replace(rate=float(risen[rows == k].mean())) for k, node in enumerate(chosen)]

    def _vertical(self, states: Array) -> Array:
        """Return the mean of the unit vectors upward, (3,), dimensionless, base axes; some robots may have fallen."""
        mean = self.trials.verticals(states).mean(axis=0)
        return mean / np.linalg.norm(mean)

    def _result(self, state: Array, is_lost: Any, goal: int) -> tuple[float, float]:
        """Return the score of a state, dimensionless, and 1 if the robot has reached the goal of a stage, or 0."""
        robot = self.robot
        q, v = state[: robot.nq], state[robot.nq :]
        R, origin = robot.base.pose(q[: robot.base.nq])
        places = point_positions(robot, q, self.ends)
        (left, right), (left_heel, right_heel) = places[:2, :2], places[2:, :2]
        share, _ = self.postures.capture_place(q, v, self.trials.unit)
        home = self.postures.home
        difference = np.ptp(places[:, 2]) / home.hip_height
        height = (origin[2] - min(places[:, 2].min(), 0.0)) / abs(home.base_height)
        width = 0.5 * np.linalg.norm(left + left_heel - right - right_heel)
        lengths = np.linalg.norm(left - left_heel) * np.linalg.norm(right - right_heel) + 1e-9
        yaw = np.arccos(np.clip((left - left_heel) @ (right - right_heel) / lengths, -1.0, 1.0))
        score = R[2, 2] + min(height, 1.0) - 10.0 * min(difference, 0.1)
        reached = difference < _LEVEL
        if goal != _LEVEL_SOLES:  # with this goal, hands support the robot
            score -= min(abs(share - PLACE), 1.0)
            score -= 0.7 * abs(width - self.width) / self.postures.length + 0.3 * yaw  # walking begins in this stance
            reached = reached and _WITHIN < share < 1.0 - _WITHIN and (goal < _RISEN or R[2, 2] > _UPRIGHT)
        return (-9.0, 0.0) if is_lost else (float(score), float(reached))
