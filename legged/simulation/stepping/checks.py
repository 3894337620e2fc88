"""Checks of a `Simulation`: the arguments of its methods, and its motion: divergence and joints that chatter."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from legged.arguments import SQUARED_NORM_TOLERANCE, rounded_array, shown
from legged.compiler import NOT_FINITE
from legged.dynamics.arguments import read
from legged.errors import ArgumentError, ShapeError
from legged.loops.closed_robot import ClosedRobot
from legged.robot.configuration import quaternion_blocks
from legged.robot.robot import Robot
from legged.simulation.backend import Backend
from legged.simulation.checks.chatter import chatter_of_states
from legged.simulation.checks.divergence import GAINED_ENERGY, DivergenceCheck, DivergenceMonitor
from legged.simulation.checks.stable_step import StiffStops
from legged.simulation.controller import is_passive
from legged.simulation.forces import base_force_text, beyond_range, check_range
from legged.simulation.integrators import NEXT_NOT_FINITE, Integrator
from legged.simulation.loop.closed_chains import check_closed
from legged.simulation.stepping.engines.compiled import CompiledEngine
from legged.simulation.stepping.simulated_robots import SimulatedRobots

Array = np.ndarray


def selected_robots(where: Any, num: int | None) -> Array:
    """Return the indices of robots, (n,), in ascending order.

    Args:
        where: A mask, their indices, or None for all. num: Number of robots, None for one without a leading axis.

    Raises:
        ArgumentError, ShapeError: `where` is neither.
    """
    count = 1 if num is None else num
    if where is None:
        return np.arange(count)
    try:
        chosen = np.asarray(where)
    except ValueError:
        raise ArgumentError(f"where must be a mask or indices of robots, got {shown(where)}") from None
    if chosen.dtype == bool:
        if chosen.shape != (() if num is None else (count,)):
            raise ShapeError(f"where must be a mask ({count},), an entry per robot, got shape {chosen.shape}")
        return np.flatnonzero(chosen)
    if chosen.dtype.kind not in "iu" or chosen.ndim != 1:
        raise ArgumentError(f"where must be a mask or indices of robots, got {shown(where)}")
    if ((chosen < 0) | (chosen >= count)).any():
        raise ArgumentError(f"where names robot {int(chosen[(chosen < 0) | (chosen >= count)][0])} of {count}")
    return np.unique(chosen)


def rows_of(name: str, value: Any, count: int, size: int) -> Array:
    """Return an argument as a row for each robot, (count, size), in its units.

    Args:
        name: Name of the argument. value: (size,) or (count, size), any unit. count: Number of robots. size: Length.

    Raises:
        ShapeError: It has another shape.
    """
    rows = rounded_array(name, value)
    if rows.dtype == object or rows.shape not in ((size,), (count, size)):
        raise ShapeError(f"{name} must be ({size},), or ({count}, {size}) with a row per robot, got {rows.shape}")
    return np.broadcast_to(rows, (count, size))


def check_states(robot: Robot, closed: ClosedRobot | None, q: Array, v: Array) -> None:
    """Raise the error of the first state that is not valid.

    Args:
        robot: The robot. closed: The robot with closed loops, if it has some.
        q: Configurations, (n, nq), mixed units. v: Velocities, (n, nv), mixed units.
    """
    bad = beyond_range(robot, q)
    for entries, _ in quaternion_blocks(robot):
        bad |= np.abs((q[:, entries] ** 2).sum(axis=1) - 1.0) > SQUARED_NORM_TOLERANCE
    for i in np.flatnonzero(bad).tolist():
        read(robot, q=q[i], v=v[i])
        check_range(robot, q[i])
    if closed is not None:
        for q_i, v_i in zip(q, v, strict=True):
            check_closed(closed, q_i, v_i)


_INTERVAL = 0.01  # [s], between checks of speeds and energies, the default sampling interval of `simulate`
_FIRST_PROBE, _MOST_BETWEEN_PROBES = 64, 4096  # time steps before and between probes for chatter, which take 12


class MotionChecks:
    """The checks, which end robots whose motion has diverged.

    Args:
        robots: The robots. integrator: The integrator.

    Attributes:
        ended: Whether each robot has fallen or diverged, (N,), bool, as of the last check.
        left: Number of time steps before the next check.
    """

    def __init__(self, robots: SimulatedRobots, integrator: Integrator):
        loop, count = robots.batch.first.loop, len(robots.outcome)
        self._robots, self._divergence = robots, DivergenceCheck.of(loop, integrator)
        self._monitor = DivergenceMonitor(self._divergence, Backend(loop, False, "").energies, count)
        self.ended = np.zeros(count, dtype=bool)
        self._interval = self.left = max(round(_INTERVAL / robots.clock.integrator.step), 1)
        self._probe_in = float(_FIRST_PROBE)  # time steps before the next probe
        self._between_probes = _FIRST_PROBE
        self._warned_of_base = False
        first = robots.batch.first
        self._stops: StiffStops | None = StiffStops(robots.batch.robot, first.q, integrator)

    def forget(self, robots: np.ndarray | slice) -> None:
        """Judge some robots without their states before.

        Args:
            robots: Their indices, (k,), dimensionless, or a slice.
        """
        self._monitor.forget(robots)

    def update_ended(self) -> None:
        """Take falls and divergence into `ended`."""
        self.ended = self._robots.outcome != 0.0

    def examine(self, are_slow: bool) -> None:
        """End the robots whose motion has diverged, also those that have just fallen.

        Args:
            are_slow: Whether all joints and bases are known to be slow, which cannot have diverged.
        """
        self._probe_in -= self._interval - self.left
        self.left, robots = self._interval, self._robots
        if are_slow and not self._divergence.has_bodies:
            self._monitor.forget(slice(None))
            return
        running = ~self.ended & (robots.outcome != NOT_FINITE)
        codes = self._monitor.codes(robots.clock.times, robots.members.state, running)
        diverged = codes != 0.0
        robots.outcome[diverged] = codes[diverged]
        self.update_ended()

    def chatter(self, threads: int) -> tuple[int, str]:
        """Return a robot with a joint that chatters, and the warning; "" if there is none, or no probe is due.

        A command of forces for a base without motors, and a stop that is too stiff for the step, come first, once.
        Controllers in Python may keep a state of their own and are not examined.

        Args:
            threads: Maximal number of threads.
        """
        robots, engine = self._robots, self._robots.engine
        i, text = self._base_command()
        if not text and self._stops is not None:
            q = robots.members.state[:, : robots.batch.robot.nq]
            texts = [self._stops.warning(row[None]) for row in q] if self._stops.warning(q) else []
            i, text = next(((i, text) for i, text in enumerate(texts) if text), (0, ""))
            self._stops = None if text else self._stops
        if text:
            return i, text
        if self._probe_in > 0 or not isinstance(engine, CompiledEngine):
            return 0, ""
        self._probe_in = float(self._between_probes)
        self._between_probes = min(2 * self._between_probes, _MOST_BETWEEN_PROBES)
        advance, states, running = partial(engine.advance, threads=threads), robots.members.state, robots.outcome == 0.0
        clock = robots.clock.times, robots.clock.integrator.step, robots.clock.phase
        i, text = chatter_of_states(robots.batch.robot, advance, states, running, *clock)
        if text:
            self._probe_in = math.inf
        return i, text

    def _base_command(self) -> tuple[int, str]:
        """Return the first robot whose command has forces for its base, and the warning; "" if there is none."""
        robot, loop, engine = self._robots.batch.robot, self._robots.batch.first.loop, self._robots.engine
        if self._warned_of_base or not isinstance(engine, CompiledEngine) or not is_passive(loop.controller):
            return 0, ""  # plain equations warn themselves, see `ClosedLoop.notices`
        if engine.given.command != robot.nv:
            return 0, ""
        texts = [base_force_text(robot, row[: robot.nv]) for row in engine.commands]
        self._warned_of_base = any(texts)
        return next(((i, text) for i, text in enumerate(texts) if text), (0, ""))

    def reason(self, i: int) -> str:
        """Return why a robot has ended, "" if it has not.

        Args:
            i: Index of the robot.
        """
        robots, check, code = self._robots, self._divergence, int(self._robots.outcome[i])
        if code > 0:
            limits = robots.batch.limits(i, robots.starts.states[i, : robots.batch.robot.nq])
            assert limits is not None
            return limits.message(robots.batch.robot, code)
        t, s = float(robots.clock.times[i]), robots.members.state[i, robots.batch.robot.nq :]
        if code == NOT_FINITE:
            error = None if robots.engine is None else robots.engine.failure(i)
            return check.message(t, s, reason=NEXT_NOT_FINITE if error is None else str(error))
        return check.message(t, s, float(self._monitor.gained[i]) if code == GAINED_ENERGY else 0.0) if code else ""
