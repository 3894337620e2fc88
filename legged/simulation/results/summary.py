"""The main figures of a run as a table, limits of its drawn curves, and the errors and ranks of its closed loops."""

from __future__ import annotations

from functools import partial

import numpy as np

from legged.checked import checked
from legged.compiler import compile as compile_function
from legged.loops.closed_robot import ClosedRobot
from legged.loops.constraints import jacobian, residual
from legged.loops.redundancy import independent_flags
from legged.simulation.results.run import Run
from legged.table import Table

Array = np.ndarray


def run_table(run: Run, planned: float | None = None) -> Table:
    """Return the main figures of a run: distance, speed, height, lean, joint error, forces and energy.

    Args:
        run: The run. planned: Planned speed, [m/s], shown beside the mean speed.
    """
    moved = run.base.position - run.base.position[:1]
    rows = [
        ("simulated time", f"{run.duration:.2f} s" + (f", {run.ended}" if run.ended else "")),
        ("distance, sideways", f"{moved[-1, 0]:z.3f} m, {np.abs(moved[:, 1]).max():.3f} m"),
    ]
    if run.duration > 0.0:
        words = "" if planned is None else f", planned {planned:.3f} m/s"
        rows.append(("mean speed", f"{run.mean_velocity[0]:z.3f} m/s" + words))
    rows += [
        ("height of the base", f"{run.base.position[:, 2].min():.4f} to {run.base.position[:, 2].max():.4f} m"),
        ("largest lean of the base", f"{np.degrees(lean(run).max()):.2f} degrees"),
    ]
    errors = _largest_joint_errors(run)
    if errors:
        rows.append(("largest joint error", ", ".join(errors)))
    if run.contacts.names and run.duration > 0.0:
        force = mean_over_time(run, run.ground_force[:, 2])
        if run.model is not None:
            weight = run.model.robot.mass * float(np.linalg.norm(run.model.robot.gravity))
            rows.append(("vertical force, mean", f"{force / weight:.3f} of the weight"))
        else:
            rows.append(("vertical force, mean", f"{force:.4g} N"))
    if not np.isnan(run.energy_drift):
        rows.append(("energy drift", f"{run.energy_drift:.1e} J"))
    return Table(f"{run.robot}, {run.backend}", ("", ""), tuple(rows), left=2)


def _largest_joint_errors(run: Run) -> list[str]:
    """Return the largest joint error of each unit, in words: angles, lengths and others; none without a reference."""
    if run.joints.reference.shape != run.joint_positions.shape:
        return []
    worst = dict[str, float]()
    for name in run.joints.names:
        joint = run.joint(name)
        unit = "rad" if run.model is None else run.model.joint_unit(name)
        worst[unit] = max(worst.get(unit, 0.0), float(np.abs(joint.position - joint.reference).max()))
    return [f"{np.degrees(x):.2g} degrees" if unit == "rad" else f"{x:.2g} {unit}" for unit, x in worst.items()]


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
