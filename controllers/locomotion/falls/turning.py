"""Motions that turn a lying robot over, found by simulations of the robot at the start of a law."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from legged.algorithms.legs.posture_search import joint_limits
from legged.algorithms.legs.standing import Home
from legged.compiler.ir import where
from legged.contact.rigid import Rigid
from legged.dynamics.kinematics import point_positions
from legged.robot.robot import Robot
from legged.simulation.integrators import TimeStepping
from legged.simulation.stepping.simulation import Simulation
from legged.spatial import Array

UPRIGHT = 0.9  # vertical component of the upright axis of the base of a robot that has turned over
MOVES, HOLDS = 0.6, 5.0  # [sqrt(h / g)], duration of a motion to a posture, and until the next one
FOLDS_WITHIN, FOLDED = 3.0, 6.0  # [sqrt(h / g)], the same of the motion to folded legs
_FALLS = 8.0  # [sqrt(h / g)], in which a robot with folded legs comes to rest
_ROBOTS = 64  # that are simulated at the same time
_ROUNDS = 8  # of simulations of random postures
_SAME, _LEFT = 0.95, 0.9  # cosines of angles between vertical directions: of one orientation at rest, and of others
_MOST = 6  # orientations at rest
_FRICTION = (0.6, 0.4, 0.8, 1.0)  # coefficients; members of the simulations have them in turn
_TRIED, _ALTERNATIVES = 4, 2  # motions that are repeated for each orientation, and those of them that are kept
_NOISE = 0.03  # [rad] or [m], standard deviation of the joint positions at their start


class Turning(NamedTuple):
    """Motions that turn a lying robot over.

    Attributes:
        directions: Unit vectors upward where the robot rests with folded legs, (n, 3), dimensionless, base axes.
        postures: Joint positions to which it moves from there, one after the other, (n, 2, nj), [rad] or [m].
        alternative: Whether each is for every second attempt, (n,), 0 or 1.
    """

    directions: Array
    postures: Array
    alternative: Array

    def number(self, vertical: Array, alternative: Any) -> Any:
        """Return the number of the motion whose direction is nearest, 0 to n - 1.

        Args:
            vertical: Unit vector upward, (3,), dimensionless, base axes.
            alternative: 1 in every second attempt, otherwise 0.
        """
        near = self.directions @ vertical + where(self.alternative > 0.5, 4.0, -4.0) * (alternative - 0.5)
        best, number = near[0], 0.0 * alternative
        for k in range(1, len(self.postures)):
            best, number = np.maximum(best, near[k]), where(near[k] > best, float(k), number)
        return number


@dataclass(frozen=True, eq=False)
class Servos:
    """Springs and dampers of the joints: a command is (initial posture, posture, duration of the motion), (2 nj + 1,).

    Attributes:
        stiffness: (nj,), [N m/rad] or [N/m]. damping: (nj,), [N m s/rad] or [N s/m].
    """

    stiffness: Array
    damping: Array

    def start(self, robot: Robot, ground: Any, q: Array, v: Array) -> Array:
        """Return the memory, (0,)."""
        return np.zeros(0)

    @property
    def implicit_gains(self) -> tuple[Array, Array]:
        """(K_p, K_d), (nj,) each; see `Controller.implicit_gains`."""
        return self.stiffness, self.damping

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, command: Array) -> Array:
        """Return the torques of the joints, (nj,), [N m] or [N]."""
        n = len(self.stiffness)
        desired = moved(command[:n], command[n : 2 * n], t / command[2 * n])
        return self.stiffness * (desired - q[-n:]) - self.damping * v[-n:]


def moved(start: Array, end: Array, part: Any) -> Array:
    """Return the joint positions, (nj,), of a motion from one posture to another, at a part of its duration."""
    x = np.minimum(part, 1.0)
    return start + x * x * (3.0 - 2.0 * x) * (end - start)


def turning_motions(robot: Robot, home: Home, folded: Array, candidates: Array, servos: Servos, unit: float, step: float) -> Turning:
    """Return motions that turn a robot over from the orientations in which it rests with folded legs.

    Args:
        robot: The robot, with contact points on all bodies on which it may lie. home: Its standing posture.
        folded: Joint positions with folded legs, (nj,), [rad] or [m]. candidates: Postures to be tried, (k, nj).
        servos: Servos of the joints. unit: sqrt(h / g), [s]. step: Time step, [s].
    """
    return _Search(robot, home, folded, candidates, servos, unit, step).motions()


class _Node(NamedTuple):
    """A robot that has come to rest: its state [q; v], (nq + nv,), and the postures that have led to it."""

    state: Array
    postures: tuple[Array, ...]


class _Search:
    def __init__(self, robot: Robot, home: Home, folded: Array, candidates: Array, servos: Servos, unit: float, step: float) -> None:
        self.robot, self.folded, self.candidates, self.unit, self.step = robot, folded, candidates, unit, step
        self.random = np.random.default_rng(0)
        self.simulation = Simulation(
            robot,
            servos,
            ground=Rigid(friction=0.6),
            num=_ROBOTS,
            q=np.concatenate([robot.base.neutral(), home.angles]),
            v=np.zeros(robot.nv),
            vary={"ground.friction": np.resize(_FRICTION, _ROBOTS)},
            integrator=TimeStepping(step),
            fall=False,
            dtype="float32",
        )

    def motions(self) -> Turning:
        """Return the motions."""
        rests = self._rests()
        trees = [[_Node(rest, ())] for rest in rests]
        found: list[list[tuple[Array, ...]]] = [[] for _ in rests]
        for _ in range(_ROUNDS):
            missing = [k for k in range(len(rests)) if len(found[k]) < _ALTERNATIVES]
            if not missing:
                break
            self._try(trees, found, missing)
        directions, postures, alternative = [np.array([0.0, 0.0, 1.0])] * 2, [np.tile(self.folded, (2, 1))] * 2, [0, 1]
        for rest, motions in zip(rests, self._best(rests, found), strict=True):
            for k in range(_ALTERNATIVES if motions else 0):
                directions.append(_vertical(self.robot, rest[None])[0])
                postures.append(np.array(motions[min(k, len(motions) - 1)]))
                alternative.append(k)
        return Turning(np.array(directions), np.array(postures), np.array(alternative))

    def _rests(self) -> list[Array]:
        """Return the states in which robots with folded legs come to rest and are not upright."""
        robot = self.robot
        rotations = self.random.normal(size=(_ROBOTS, 4))
        q = np.tile(np.concatenate([robot.base.neutral(), self.folded]), (_ROBOTS, 1))
        q[:, :4] = rotations / np.linalg.norm(rotations, axis=1)[:, None]
        points = [(contact.link, contact.position) for contact in robot.contacts]
        radii = np.array([contact.radius for contact in robot.contacts])
        for row in q:
            row[6] -= float((np.array(point_positions(robot, row, points))[:, 2] - radii).min())
        states = self._moved(np.column_stack([q, np.zeros((_ROBOTS, robot.nv))]), self.folded, FOLDS_WITHIN, _FALLS)
        rests: list[Array] = []
        for state, up in zip(states, _vertical(robot, states), strict=True):
            if up[2] < UPRIGHT and all(up @ _vertical(robot, rest[None])[0] < _SAME for rest in rests):
                rests.append(state)
        return rests[:_MOST]

    def _try(self, trees: list[list[_Node]], found: list[list[tuple[Array, ...]]], missing: list[int]) -> None:
        """Simulate random postures from random nodes of some trees."""
        owners = np.resize(missing, _ROBOTS)
        nodes = [trees[k][0] if self.random.random() < 0.5 else trees[k][self.random.integers(len(trees[k]))] for k in owners]
        targets = self.candidates[self.random.integers(len(self.candidates), size=_ROBOTS)]
        after = self._moved(np.array([node.state for node in nodes]), targets, MOVES, HOLDS)
        ends = self._moved(after, self.folded, FOLDS_WITHIN, FOLDED)
        before = _vertical(self.robot, np.array([node.state for node in nodes]))
        ups, turned = _vertical(self.robot, after), _vertical(self.robot, ends)[:, 2] > UPRIGHT
        for k, owner in enumerate(owners):
            postures = (*nodes[k].postures, targets[k])
            if turned[k]:
                found[owner].append((*postures, self.folded)[:2])
            elif len(postures) < 2 and ups[k] @ before[k] < _LEFT:
                trees[owner].append(_Node(after[k], postures))

    def _best(self, rests: list[Array], found: list[list[tuple[Array, ...]]]) -> list[list[tuple[Array, ...]]]:
        """Return the motions of each orientation that succeed most often from states near it."""
        trials = [(k, n) for k, motions in enumerate(found) for n in range(min(len(motions), _TRIED))]
        best: list[list[tuple[Array, ...]]] = [[] for _ in rests]
        rates: dict[tuple[int, int], float] = {}
        several = len(_FRICTION)
        for first in range(0, len(trials), _ROBOTS // several):
            part = trials[first : first + _ROBOTS // several]
            rows = np.repeat(np.arange(len(part)), several)
            rows = np.resize(rows, _ROBOTS)
            states = np.array([rests[part[row][0]] for row in rows])
            joints = slice(self.robot.base.nq, self.robot.nq)
            states[:, joints] += self.random.normal(size=states[:, joints].shape) * _NOISE
            states = self._moved(states, self.folded, MOVES, MOVES)
            for stage in range(2):
                targets = np.array([found[part[row][0]][part[row][1]][stage] for row in rows])
                states = self._moved(states, targets, MOVES, HOLDS)
            states = self._moved(states, self.folded, FOLDS_WITHIN, FOLDED)
            turned = _vertical(self.robot, states)[:, 2] > UPRIGHT
            for number, trial in enumerate(part):
                rates[trial] = turned[rows == number].mean()
        for k, motions in enumerate(found):
            order = sorted(range(min(len(motions), _TRIED)), key=lambda n: -rates[k, n])
            best[k] = [motions[n] for n in order]
        self.rates = rates
        return best

    def _moved(self, states: Array, target: Array, within: float, lasts: float) -> Array:
        """Return the states after a motion to given postures, (nj,) or (n, nj); those that diverge are upside down."""
        nq, nj = self.robot.nq, self.robot.nj
        states = states.copy()
        states[:, nq - nj : nq] = np.clip(states[:, nq - nj : nq], *joint_limits(self.robot))
        self.simulation.reset(states[:, :nq], states[:, nq:])
        target = np.broadcast_to(target, (len(states), nj))
        duration = np.full((len(states), 1), within * self.unit)
        self.simulation.step(np.column_stack([states[:, nq - nj : nq], target, duration]), n=max(1, round(lasts * self.unit / self.step)))
        after = np.column_stack([self.simulation.q, self.simulation.v])
        return np.where(self.simulation.diverged[:, None], states, after)


def _vertical(robot: Robot, states: Array) -> Array:
    """Return the unit vectors upward, (n, 3), dimensionless, base axes, in given states, (n, nq + nv)."""
    return np.array([robot.base.pose(state[: robot.base.nq])[0][2] for state in states])
