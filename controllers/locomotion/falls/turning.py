"""Motions that turn a lying robot over, found by simulations of the robot at the start of a law."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from legged.algorithms.legs.posture_search import joint_limits
from legged.algorithms.legs.standing import Home
from legged.compiler.ir import where
from legged.contact.rigid import Rigid
from legged.dynamics.inertia import inertia_matrix
from legged.dynamics.kinematics import point_positions
from legged.errors import SimulationWarning
from legged.robot.robot import Robot
from legged.simulation.integrators import TimeStepping
from legged.simulation.stepping.simulation import Simulation
from legged.spatial import Array

UPRIGHT = 0.9  # vertical component of the upright axis of the base of a robot that has turned over
MOVES, HOLDS = 0.6, 5.0  # [sqrt(h / g)], duration of the motion to a posture, and from its beginning to the next one
FOLDS_WITHIN, FOLDED = 3.0, 6.0  # [sqrt(h / g)], the same of the motion to folded legs
_SETTLES = 8.0  # [sqrt(h / g)], in which a robot with folded legs comes to rest
_ROBOTS = 64  # that are simulated at the same time
_ROUNDS = 8  # of simulations of random postures
_SAME, _DEPARTED = 0.95, 0.9  # cosines of angles between vertical directions: of one orientation at rest, and of others
_MOST = 6  # orientations at rest
_FRICTION = (0.6, 0.4, 0.8, 1.0)  # coefficients; members of the simulations have them in turn
_ALTERNATIVES = 2  # motions that are kept for each orientation
_SURE = 0.7  # share of successes of a motion for which no other one is sought
_NOISE = 0.03  # [rad] or [m], standard deviation of the joint positions at their start


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


@dataclass(frozen=True, eq=False)
class Servos:
    """Springs and dampers of the joints: a command is (initial posture, posture, duration of the motion), (2 nj + 1,).

    Attributes:
        stiffness: (nj,), [N m/rad] or [N/m]. damping: (nj,), [N m s/rad] or [N s/m].
    """

    stiffness: Array
    damping: Array

    def start(self, robot: Robot, ground: Any, q: Array, v: Array) -> Array:
        """Return the memory, (0,); arguments as in `Locomotion.start`."""
        return np.zeros(0)

    @property
    def implicit_gains(self) -> tuple[Array, Array]:
        """(K_p, K_d), (nj,) each; see `Controller.implicit_gains`."""
        return self.stiffness, self.damping

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, command: Array) -> Array:
        """Return the forces of the joints, (nj,), [N m] or [N]; other arguments as in `GaitLaw.torque`."""
        n = len(self.stiffness)
        desired = interpolated(command[:n], command[n : 2 * n], t / command[2 * n])
        return self.stiffness * (desired - q[-n:]) - self.damping * v[-n:]


def interpolated(start: Array, end: Array, part: Any) -> Array:
    """Return the joint positions, (nj,), [rad] or [m], of a motion from one posture to another.

    Args:
        start, end: Joint positions of the postures, (nj,), [rad] or [m], joint coordinates.
        part: Time since its beginning over its duration, above 0.
    """
    x = np.minimum(part, 1.0)
    return start + x * x * (3.0 - 2.0 * x) * (end - start)


def turning_motions(
    robot: Robot, home: Home, folded: Array, candidates: Array, servos: Servos, unit: float, step: float
) -> Turning:
    """Return motions that turn a robot over from the orientations in which it rests with folded legs.

    Args:
        robot: The robot, with contact points on all bodies on which it may lie. home: Its standing posture.
        folded: Joint positions with folded legs, (nj,), [rad] or [m], joint coordinates.
        candidates: Postures to be tried, (k, nj), [rad] or [m], joint coordinates.
        servos: Servos of the joints. unit: sqrt(h / g), [s]. step: Time step, [s].
    """
    known = _MOTIONS.setdefault(robot, {})
    key = np.concatenate(
        [home.angles, folded, candidates.ravel(), servos.stiffness, servos.damping, [unit, step]]
    ).tobytes()
    if key not in known:
        with warnings.catch_warnings():  # trial motions may diverge
            warnings.simplefilter("ignore", SimulationWarning)
            known[key] = _Search(robot, home, folded, candidates, servos, unit, step).motions()
    return known[key]


_MOTIONS: WeakKeyDictionary[Robot, dict[bytes, Turning]] = WeakKeyDictionary()
"""The results of `turning_motions`: a search takes seconds, and the law of each member of a rollout needs one."""


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
    def __init__(
        self, robot: Robot, home: Home, folded: Array, candidates: Array, servos: Servos, unit: float, step: float
    ) -> None:
        self.robot, self.folded, self.candidates, self.unit, self.step = robot, folded, candidates, unit, step
        self.random, self.joints = np.random.default_rng(0), slice(robot.nq - robot.nj, robot.nq)
        start = np.concatenate([robot.base.neutral(), home.angles])
        start[6] += 2.0 * home.hip_height
        self.simulation = Simulation(
            robot,
            servos,
            ground=Rigid(friction=0.6),
            num=_ROBOTS,
            q=start,
            v=np.zeros(robot.nv),
            vary={"ground.friction": np.resize(_FRICTION, _ROBOTS)},
            integrator=TimeStepping(step),
            fall=False,
            dtype="float32",
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
        directions, postures, alternative = [np.array([0.0, 0.0, 1.0])] * 2, [np.tile(self.folded, (2, 1))] * 2, [0, 1]
        for rest, motions in zip(self._verticals(np.array(rests)), found, strict=True):
            best = sorted(motions, key=lambda motion: -motion[0])[:_ALTERNATIVES]
            for k in range(_ALTERNATIVES if best else 0):
                directions.append(rest)
                postures.append(best[min(k, len(best) - 1)][1])
                alternative.append(k)
        return Turning(np.array(directions), np.array(postures), np.array(alternative))

    def _rests(self) -> list[Array]:
        """Return the states in which robots with folded legs come to rest and are not upright."""
        robot = self.robot
        rotations = self.random.normal(size=(_ROBOTS, 4))
        q = np.tile(np.concatenate([robot.base.neutral(), self.folded]), (_ROBOTS, 1))
        q[:, :4] = rotations / np.linalg.norm(rotations, axis=1)[:, None]
        self._raise(q)
        lying = np.column_stack([q, np.zeros((_ROBOTS, robot.nv))])
        states, lost = self._moved(lying, self.folded, FOLDS_WITHIN, _SETTLES)
        rests: list[Array] = []
        for state, up in zip(states[~lost], self._verticals(states[~lost]), strict=True):
            if up[2] < UPRIGHT and all(up @ other < _SAME for other in self._verticals(np.array(rests))):
                rests.append(state)
        return rests[:_MOST]

    def _successes(self, trees: list[list[_Node]], missing: list[int]) -> list[tuple[int, Array]]:
        """Return motions with random postures, from nodes of some trees, that turn the robot over, with their tree.

        At most as many are returned as can be repeated at the same time. A posture after which the robot rests
        elsewhere, but not upright with folded legs, becomes a node of its tree.
        """
        owners = np.resize(missing, _ROBOTS)
        nodes = [trees[k][self.random.integers(len(trees[k])) * self.random.integers(2)] for k in owners]
        targets = self.candidates[self.random.integers(len(self.candidates), size=_ROBOTS)]
        before = np.array([node.state for node in nodes])
        after, lost = self._moved(before, targets, MOVES, HOLDS)
        turned = self._turned(after) & ~lost
        leaves = ((self._verticals(after) * self._verticals(before)).sum(axis=1) < _DEPARTED) & ~lost
        successes = []
        for k, node, target, state, is_turned, has_left in zip(
            owners, nodes, targets, after, turned, leaves, strict=True
        ):
            postures = (*node.postures, target)
            if is_turned:
                successes.append((int(k), np.array([*postures, self.folded][:2])))
            elif has_left and len(postures) < 2:
                trees[k].append(_Node(state, postures))
        return successes[: _ROBOTS // len(_FRICTION)]

    def _rates(self, rests: list[Array], trials: list[tuple[int, Array]]) -> Array:
        """Return the share of repetitions, with other joint positions and friction, in which each succeeds, (n,)."""
        if not trials:
            return np.zeros(0)
        rows = np.resize(np.repeat(np.arange(len(trials)), len(_FRICTION)), _ROBOTS)
        states = np.array([rests[k] for k, _ in trials])[rows]
        states[:, self.joints] += _NOISE * self.random.normal(size=(_ROBOTS, self.robot.nj))
        self._raise(states)
        first, second = np.array([postures for _, postures in trials])[rows].swapaxes(0, 1)
        states, lost = self._moved(states, first, MOVES, HOLDS)
        states, lost_later = self._moved(states, second, MOVES, HOLDS)
        turned = self._turned(states) & ~lost & ~lost_later
        return np.array([turned[rows == number].mean() for number in range(len(trials))])

    def _raise(self, states: Array) -> None:
        """Raise robots whose contact points are in the ground onto it; the states, (n, nq or more), change in place."""
        points = [(contact.link, contact.position) for contact in self.robot.contacts]
        radii = np.array([contact.radius for contact in self.robot.contacts])
        for row in states:
            row[6] -= min(np.min(point_positions(self.robot, row[: self.robot.nq], points)[:, 2] - radii), 0.0)

    def _turned(self, states: Array) -> Array:
        """Return whether robots are upright when they have folded their legs, (n,)."""
        folded, lost = self._moved(states, self.folded, FOLDS_WITHIN, FOLDED)
        return (self._verticals(folded)[:, 2] > UPRIGHT) & ~lost

    def _moved(self, states: Array, target: Array, within: float, lasts: float) -> tuple[Array, Array]:
        """Return the states after motions to given postures, (nj,) or (n, nj), and whether each diverged, (n,)."""
        nq, states = self.robot.nq, states.copy()
        angles = states[:, self.joints] = np.clip(states[:, self.joints], *joint_limits(self.robot))
        self.simulation.reset(states[:, :nq], states[:, nq:])
        command = angles, np.broadcast_to(target, angles.shape), np.full((len(states), 1), within * self.unit)
        self.simulation.step(np.column_stack(command), n=max(1, round(lasts * self.unit / self.step)))
        after = np.column_stack([self.simulation.q, self.simulation.v])
        lost = np.array(self.simulation.diverged)
        after[lost] = states[lost]
        return after, lost

    def _verticals(self, states: Array) -> Array:
        """Return the unit vectors upward, (n, 3), dimensionless, base axes, in given states, (n, nq + nv)."""
        return np.array([self.robot.base.pose(state[: self.robot.base.nq])[0][2] for state in states])
