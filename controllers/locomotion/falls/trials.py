"""Simulations of a fallen robot whose joints move from posture to posture, with which motions are searched for."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

import legged
from legged.algorithms.legs.posture_search import inner_limits, joint_limits
from legged.compiler import MOTION, cached_bytes
from legged.contact.rigid import Rigid
from legged.dynamics.kinematics import point_positions
from legged.errors import SimulationWarning, TraceError
from legged.robot.robot import Robot
from legged.simulation.integrators import TimeStepping
from legged.simulation.stepping.simulation import Simulation
from legged.spatial import Array

T = TypeVar("T", bound=tuple)
ROBOTS = 64  # that are simulated at the same time
FRICTION = (0.6, 0.4, 0.8, 1.0)  # coefficients; members of the simulations have them in turn
_NOISE = 0.03  # [rad] or [m], standard deviation of the joint positions at their start


@dataclass(frozen=True, eq=False)
class Servos:
    """Springs and dampers of the joints.

    A command is (initial posture, posture, duration of the motion, 1 for balance or 0), (2 nj + 2,).

    Attributes:
        stiffness: (nj,), [N m/rad] or [N/m]. damping: (nj,), [N m s/rad] or [N s/m].
        is_implicit: Whether forces are those at the end of a time step, for longer steps.
        balance: Function of q and v that returns rotations to be added to the posture, (nj,), [rad]; None for none.
    """

    stiffness: Array
    damping: Array
    is_implicit: bool = True
    balance: Callable[[Array, Array], Array] | None = None

    def start(self, robot: Robot, ground: Any, q: Array, v: Array) -> Array:
        """Return the memory, (0,); arguments as in `Locomotion.start`."""
        return np.zeros(0)

    @property
    def numbers(self) -> tuple[Array, Array, float]:
        """Stiffness and damping, (nj,) each, and 1.0 for implicit forces; `balance` follows from the robot."""
        return self.stiffness, self.damping, float(self.is_implicit)

    @property
    def implicit_gains(self) -> tuple[Array, Array] | None:
        """(K_p, K_d), (nj,) each, or None; see `Controller.implicit_gains`."""
        return (self.stiffness, self.damping) if self.is_implicit else None

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, command: Array) -> Array:
        """Return the forces of the joints, (nj,), [N m] or [N]; other arguments as in `GaitLaw.torque`."""
        n = len(self.stiffness)
        desired = interpolated(command[:n], command[n : 2 * n], t / command[2 * n])
        if self.balance is not None:
            desired = desired + command[2 * n + 1] * self.balance(q, v)
        return self.stiffness * (desired - q[-n:]) - self.damping * v[-n:]


def interpolated(start: Array, end: Array, part: Any) -> Array:
    """Return the joint positions, (nj,), [rad] or [m], of a motion from one posture to another.

    Args:
        start, end: Joint positions of the postures, (nj,), [rad] or [m], joint coordinates.
        part: Time since its beginning over its duration, above 0.
    """
    x = np.minimum(part, 1.0)
    return start + x * x * (3.0 - 2.0 * x) * (end - start)


class Trials:
    """Robots that are simulated at the same time on level ground, with different friction.

    Args:
        robot: The robot, with contact points on all bodies on which it may lie.
        angles: Joint positions at the start of the first simulation, (nj,), [rad] or [m], joint coordinates.
        servos: Servos of the joints. unit: sqrt(h / g), [s]. step: Time step, [s].
    """

    def __init__(self, robot: Robot, angles: Array, servos: Servos, unit: float, step: float) -> None:
        self.robot, self.unit, self.step = robot, unit, step
        self.random, self.joints = np.random.default_rng(0), slice(robot.nq - robot.nj, robot.nq)
        start = np.concatenate([robot.base.neutral(), np.clip(angles, *inner_limits(robot))])
        self._raise(start[None])
        start[6] += 1.0  # [m]; `step` compares single with double precision, which contacts would disturb
        command = np.concatenate([start[self.joints], start[self.joints], [unit, 0.0]])
        for dtype in ("float32", "float64"):  # `step` refuses single precision that is too inaccurate
            self.simulation = Simulation(
                robot,
                servos,
                ground=Rigid(friction=FRICTION[0]),
                num=ROBOTS,
                q=start,
                v=np.zeros(robot.nv),
                vary={"ground.friction": np.resize(FRICTION, ROBOTS)},
                integrator=TimeStepping(step),
                fall=False,
                dtype=dtype,
            )
            with suppress(TraceError):
                self.simulation.step(np.tile(command, (ROBOTS, 1)))
                break

    def at_rest(self, angles: Array, rotations: Array, within: float, lasts: float) -> tuple[Array, Array]:
        """Return the states of robots that come to rest from some rotations, (n, nq + nv), and whether each diverged.

        Args:
            angles: Joint positions, (nj,), [rad] or [m], joint coordinates.
            rotations: Quaternions, (n, 4), dimensionless, base to world axes.
            within, lasts: As in `moved`.
        """
        q = np.tile(np.concatenate([self.robot.base.neutral(), angles]), (len(rotations), 1))
        q[:, :4] = rotations / np.linalg.norm(rotations, axis=1)[:, None]
        self._raise(q)
        return self.moved(np.column_stack([q, np.zeros((len(q), self.robot.nv))]), angles, within, lasts)

    def varied(self, states: Array) -> Array:
        """Return states with random deviations `_NOISE` of the joint positions, (n, nq + nv).

        Args:
            states: [q; v], (n, nq + nv), mixed units, as in `Robot`.
        """
        states = states.copy()
        states[:, self.joints] += _NOISE * self.random.normal(size=(len(states), self.robot.nj))
        self._raise(states)
        return states

    def moved(
        self,
        states: Array,
        target: Array,
        within: Any,
        lasts: float,
        begins: Array | None = None,
        balances: bool = False,
    ) -> tuple[Array, Array]:
        """Return the states after motions to given postures, (n, nq + nv), and whether each diverged, (n,).

        A robot that has diverged keeps the state before the motion.

        Args:
            states: [q; v], (n, nq + nv), mixed units, as in `Robot`.
            target: Joint positions, (nj,) or (n, nj), [rad] or [m], joint coordinates.
            within: Durations of the motions to them, a number or (n,), [sqrt(h / g)].
            lasts: Time simulated, [sqrt(h / g)].
            begins: Joint positions at which the motions of the servos begin, (n, nj), [rad] or [m], joint coordinates;
                None for the present ones.
            balances: Whether the servos balance.
        """
        nq, states = self.robot.nq, states.copy()
        angles = states[:, self.joints] = np.clip(states[:, self.joints], *joint_limits(self.robot))
        self.simulation.reset(states[:, :nq], states[:, nq:])
        begins = angles if begins is None else begins
        durations = np.broadcast_to(np.reshape(within, (-1, 1)) * self.unit, (len(states), 1))
        command = begins, np.broadcast_to(target, angles.shape), durations, np.full_like(durations, balances)
        self.simulation.step(np.column_stack(command), n=max(1, round(lasts * self.unit / self.step)))
        after = np.column_stack([self.simulation.q, self.simulation.v])
        lost = np.array(self.simulation.diverged)
        after[lost] = states[lost]
        return after, lost

    def verticals(self, states: Array) -> Array:
        """Return the unit vectors upward in given states, (n, 3), dimensionless, base axes.

        Args:
            states: [q; v], (n, nq + nv), mixed units, as in `Robot`.
        """
        return np.array([self.robot.base.pose(state[: self.robot.base.nq])[0][2] for state in states])

    def _raise(self, states: Array) -> None:
        """Raise robots whose contact points are in the ground onto it; the states, (n, nq or more), change in place."""
        points = [(contact.link, contact.position) for contact in self.robot.contacts]
        radii = np.array([contact.radius for contact in self.robot.contacts])
        for row in states:
            row[6] -= min(np.min(point_positions(self.robot, row[: self.robot.nq], points)[:, 2] - radii), 0.0)


def stored_motion(robot: Robot, kind: type[T], search: Callable[[], T | None], *key: Any, notice: str = "") -> T | None:
    """Return the result of a search; one that was done before with the same robot, kind and key is not repeated.

    A search takes seconds, that for rising minutes, and the law of each member of a rollout needs its result. It is
    kept in the cache folder as well, for this version of the packages. Warnings of trials that diverge are suppressed.

    Args:
        robot: The robot. kind: A tuple of arrays with names. search: Function without arguments, which returns None
            if it finds nothing.
        key: All else on which the result depends: numbers and arrays.
        notice: Text of a warning before a search; none if empty.
    """
    known = _RESULTS.setdefault(robot, {})
    text = b"".join([kind.__name__.encode(), *(np.asarray(part).tobytes() for part in key)])

    def packed() -> bytes:
        if notice:
            warnings.warn(notice, SimulationWarning, stacklevel=6)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SimulationWarning)
            result = search()
        buffer = io.BytesIO()
        np.savez(buffer, *(result or ()), allow_pickle=False)
        return buffer.getvalue()

    if text not in known:
        described = json.dumps(robot.describe(), sort_keys=True)
        content = cached_bytes(packed, described, text.hex(), suffix=MOTION, packages=_PACKAGES)
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            known[text] = kind(*archive.values()) if archive.files else None
    return known[text]


_RESULTS: WeakKeyDictionary[Robot, dict[bytes, Any]] = WeakKeyDictionary()
_PACKAGES = tuple(str(Path(file).parent) for file in (legged.__file__, str(Path(__file__).parents[1])))
