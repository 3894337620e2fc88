"""Checks of the arguments of the methods of a `Simulation`: choices of robots, and states."""

from __future__ import annotations

from typing import Any

import numpy as np

from legged.arguments import SQUARED_NORM_TOLERANCE, array, shown
from legged.dynamics.arguments import read
from legged.errors import ArgumentError, ShapeError
from legged.loops.closed_robot import ClosedRobot
from legged.robot.robot import Robot
from legged.simulation.chart import quaternion_blocks
from legged.simulation.closed_chains import check_closed
from legged.simulation.forces import beyond_range, check_range

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
    found = array(name, value)
    if found.dtype == object or found.shape not in ((size,), (count, size)):
        raise ShapeError(f"{name} must be ({size},), or ({count}, {size}) with a row per robot, got {found.shape}")
    return np.broadcast_to(found, (count, size))


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
