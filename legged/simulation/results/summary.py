"""Figures of a run over time, limits of its drawn curves, and the errors and ranks of its closed loops."""

from __future__ import annotations

from functools import partial

import numpy as np

from legged.checked import checked
from legged.compiler import compile as compile_function
from legged.loops.closed_robot import ClosedRobot
from legged.loops.constraints import jacobian, residual
from legged.loops.redundancy import independent_flags
from legged.simulation.results.run import Run

Array = np.ndarray


def lean(run: Run) -> Array:
    """Return the angle between the initially vertical base axis and the vertical, (T,), [rad].

    Args:
        run: The run.
    """
    up = run.base.rotation[0, 2]
    return np.arccos(np.clip(run.base.rotation[:, 2] @ up, -1.0, 1.0))


def joint_error(run: Run) -> Array:
    """Return the largest joint error of each sample, (T,), [rad] or [m]; zeros without a reference.

    Args:
        run: The run.
    """
    if run.joints.reference.shape != run.joint_positions.shape or not run.joint_positions.size:
        return np.zeros(len(run))
    return np.abs(run.joint_positions - run.joints.reference).max(axis=1)


def mean_over_time(run: Run, values: Array) -> float:
    """Return the mean of a quantity over the time of a run, by trapezoids, in the unit of the quantity.

    Args:
        run: The run. values: The quantity, (T,), [any unit].
    """
    return float(np.diff(run.times) @ (values[1:] + values[:-1]) / 2 / run.duration)


def limits_without_peaks(values: Array) -> tuple[float, float]:
    """Return limits of a drawn axis that include zero and all values but the rarest peaks, such as those of touch-down.

    Args:
        values: The values, (...), in any unit. Without values the limits are -1 and 1.
    """
    if not values.size:
        return -1.0, 1.0
    low, high = min(float(np.quantile(values, 0.002)), 0.0), float(np.quantile(values, 0.998))
    margin = 0.08 * max(high - low, 1e-9)
    return low - margin, high + margin


@checked
def loop_errors(closed: ClosedRobot, run: Run) -> Array:
    """Return the largest constraint residual at each sample of a run, (T,), [m] or 1.

    Args:
        closed: The robot with its loops. run: A run of its simulation.
    """
    phi = compile_function(partial(residual, closed), None, q=closed.robot.nq)
    return np.abs(phi(run.q)).max(axis=1, initial=0.0)


@checked
def loop_ranks(closed: ClosedRobot, run: Run) -> Array:
    """Return the rank of the constraint Jacobian at each sample of a run, (T,).

    The rank falls at singular postures, where the mechanism gains a degree of freedom.

    Args:
        closed: The robot with its loops. run: A run of its simulation.
    """
    J = compile_function(partial(jacobian, closed), None, q=closed.robot.nq)(run.q)
    return np.array([sum(map(bool, independent_flags(closed, rows))) for rows in J])
