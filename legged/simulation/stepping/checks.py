"""Checks of a `Simulation`: the arguments of its methods, and warnings about its motion."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from legged.arguments import SQUARED_NORM_TOLERANCE, rounded_array, shown
from legged.dynamics.arguments import read
from legged.errors import ArgumentError, ShapeError
from legged.loops.closed_robot import ClosedRobot
from legged.robot.configuration import quaternion_blocks
from legged.robot.robot import Robot
from legged.simulation.checks.chatter import chatter_of_states
from legged.simulation.checks.stable_step import StiffStops
from legged.simulation.controller import is_passive
from legged.simulation.forces import base_force_text, beyond_range, check_range
from legged.simulation.loop.closed_chains import check_closed
from legged.simulation.stepping.engines import CompiledEngine
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


_FIRST_PROBE, _MOST_BETWEEN_PROBES = 64, 4096  # time steps before and between probes for chatter, which take 12


class MotionWarnings:
    """Warnings about the motion of a `Simulation`, each once.

    Forces of a command for a base without motors come first, then a stop that is too stiff for the step, then joints
    that chatter. Controllers in Python may keep a state of their own and are not probed for chatter.

    Args:
        robots: The robots.
    """

    def __init__(self, robots: SimulatedRobots):
        self._robots, self._warned_of_base = robots, False
        self._next_probe = float(_FIRST_PROBE)  # number of time steps at the next probe
        self._between_probes = _FIRST_PROBE
        self._stops: StiffStops | None = StiffStops(robots.batch.robot, robots.batch.first.q, robots.integrator)

    def next(self, threads: int) -> tuple[int, str]:
        """Return the index of a robot and the warning about it; "" if there is none, or no probe is due.

        Args:
            threads: Maximal number of threads.
        """
        robots, engine = self._robots, self._robots.engine
        robot, states = robots.batch.robot, robots.members.state
        if isinstance(engine, CompiledEngine) and not self._warned_of_base:
            texts = self._of_base_commands(engine)
            self._warned_of_base = any(texts)
            if any(texts):
                return _first(texts)
        q = states[:, : robot.nq]
        if self._stops is not None and self._stops.warning(q):
            texts, self._stops = [self._stops.warning(row[None]) for row in q], None
            return _first(texts)
        if robots.steps < self._next_probe or not isinstance(engine, CompiledEngine):
            return 0, ""
        self._next_probe = float(robots.steps + self._between_probes)
        self._between_probes = min(2 * self._between_probes, _MOST_BETWEEN_PROBES)
        clock = robots.clock.times, robots.clock.integrator.step, robots.clock.phase
        advance = partial(engine.advance, threads=threads)
        i, text = chatter_of_states(robot, advance, states, robots.outcome == 0.0, *clock)
        if text:
            self._next_probe = math.inf
        return i, text

    def _of_base_commands(self, engine: CompiledEngine) -> list[str]:
        """Return a warning for each robot whose command has forces for its base, else ""."""
        batch = self._robots.batch
        if not is_passive(batch.first.loop.controller) or engine.given.command != batch.robot.nv:
            return []  # plain equations warn themselves, see `ClosedLoop.notices`
        return [base_force_text(batch.robot, row[: batch.robot.nv]) for row in engine.commands]


def _first(texts: list[str]) -> tuple[int, str]:
    """Return the first text that is not empty, and its index."""
    return next((i, text) for i, text in enumerate(texts) if text)
