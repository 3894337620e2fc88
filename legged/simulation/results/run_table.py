"""Summary table of a run: commanded and actual velocity, torques, slip of feet, contact residual and energy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from legged.arguments import rounded_array
from legged.robot.robot import Robot
from legged.simulation.results.records import LEAST_ENERGY
from legged.simulation.results.run import Run
from legged.simulation.results.summary import lean, mean_over_time
from legged.table import Table

Array = np.ndarray
Rows = list[tuple[str, str]]
LAST = 2.0
"""[s], the end of a run whose mean velocity is shown beside the command, at most half of the run."""
_LOADED = 0.05
"""Share of the weight that a loaded foot carries at least, over the number of feet."""
_SMALL, _LARGE = 0.01, 0.05
"""Drifts of the energy relative to the moved energy, below which it does not matter and above which it may."""


def run_table(run: Run, planned: float | None = None, command: Sequence[float] | None = None) -> Table:
    """Return the main figures of a run.

    Args:
        run: The run.
        planned: Planned speed, [m/s], shown beside the mean speed.
        command: Commanded velocity forward and to the left, [m/s], and yaw rate, [rad/s], (3,), which is shown beside
            the velocity reached at the end; by default the mean of `Run.commanded` over the same time, if recorded.

    Raises:
        ArgumentError: A command that is not three finite numbers.
    """
    rows = _way(run, planned)
    given = None
    if command is not None:
        given = rounded_array("command", command, (3,), "velocity forward and to the left, yaw rate")
    if (given is not None or len(run.commanded)) and run.duration > 0.0:
        rows += _reached(run, given)
    rows += [
        ("height of the base", f"{run.base.position[:, 2].min():.4f} to {run.base.position[:, 2].max():.4f} m"),
        ("largest lean of the base", f"{np.degrees(lean(run).max()):.2f} degrees"),
    ]
    errors = _largest_joint_errors(run)
    if errors:
        rows.append(("largest joint error", ", ".join(errors)))
    if run.model is not None:
        rows += _motors(run, run.model.robot)
    if np.nan_to_num(run.energy.push_work).any():
        rows.append(("work of pushes", f"{run.energy.push_work[-1]:.3g} J"))
    if run.contacts.names and run.duration > 0.0:
        rows += _contacts(run)
    if not np.isnan(run.energy_drift):
        rows += _energy(run)
    return Table(f"{run.robot}, {run.backend}", ("", ""), tuple(rows), left=2)


def comparison(runs: Sequence[Run], names: Sequence[str], command: Sequence[float] | None = None) -> Table:
    """Return the main figures of several runs beside each other, with a heading for each.

    Args:
        runs: The runs. names: The headings. command: The commanded velocity, as in `run_table`.
    """
    columns = [{row[0]: row[1] for row in run_table(run, None, command).rows} for run in runs]
    ended = [run.ended or "" for run in runs]
    labels = dict.fromkeys(label for column in columns for label in column)
    rows = [(label, *(column.get(label, "-") for column in columns)) for label in labels]
    return Table("comparison", ("", *names), (*rows, *([("ended", *ended)] if any(ended) else [])))


def _way(run: Run, planned: float | None) -> Rows:
    """Return the rows of duration, distance and mean speed."""
    moved = run.base.position - run.base.position[:1]
    rows = [
        ("simulated time", f"{run.duration:.2f} s" + (f", {run.ended}" if run.ended else "")),
        ("distance, sideways", f"{moved[-1, 0]:z.3f} m, {np.abs(moved[:, 1]).max():.3f} m"),
    ]
    if run.duration > 0.0:
        words = "" if planned is None else f", planned {planned:.3f} m/s"
        rows.append(("mean speed, start included", f"{run.mean_velocity[0]:z.3f} m/s" + words))
    cost = run.cost_of_transport
    if np.isfinite(cost) and float(np.linalg.norm(moved[-1, :2])) > _traveled(run):
        rows.append(("cost of transport", f"{cost:.3f}"))
    return rows


def _traveled(run: Run) -> float:
    """Return the distance from which a robot travels and does not only sway, [m]: a fifth of its initial height."""
    lowest = run.contacts.points[0, :, 2].min(initial=np.inf) if len(run) else np.inf
    return 0.2 * float(run.base.position[0, 2] - lowest) if np.isfinite(lowest) else np.inf


def _reached(run: Run, command: Array | None) -> Rows:
    """Return the rows of the command and of the mean velocity reached at the end, in axes of the heading.

    Without a command, the mean of `Run.commanded` over the same time is shown.
    """
    last = min(LAST, run.duration / 2.0)
    first = min(int(np.searchsorted(run.times, run.times[-1] - last * (1.0 + 1e-9))), len(run) - 2)
    velocities, dt = heading_velocities(run), np.diff(run.times)
    reached = dt[first:] @ velocities[first:] / dt[first:].sum()
    wanted = dt[first:] @ run.commanded[first:-1] / dt[first:].sum() if command is None else command
    return [
        ("commanded: forward, left, turn", _velocity(wanted)),
        (f"reached in the last {run.times[-1] - run.times[first]:.3g} s", _velocity(reached)),
    ]


def heading_velocities(run: Run) -> Array:
    """Return velocity forward and to the left of the heading, [m/s], and yaw rate, [rad/s], between samples, (T-1, 3).

    Args:
        run: The run, of T samples.
    """
    yaw, dt = run.base.angles("zyx")[:, 0], np.diff(run.times)
    middle, moved = (yaw[1:] + yaw[:-1]) / 2.0, np.diff(run.base.position, axis=0)
    forward = np.cos(middle) * moved[:, 0] + np.sin(middle) * moved[:, 1]
    left = np.cos(middle) * moved[:, 1] - np.sin(middle) * moved[:, 0]
    return np.stack([forward, left, np.diff(yaw)], axis=1) / dt[:, None]


def _velocity(values: Array) -> str:
    forward, left, turn = values
    return f"{forward:z.3f} m/s, {left:z.3f} m/s, {turn:z.3f} rad/s"


def _motors(run: Run, robot: Robot) -> Rows:
    """Return the rows of the largest use of torque and speed limits, at the samples."""
    rows: Rows = []
    for words, limit, values in (("torque", "effort", run.tau), ("speed", "speed", run.v)):
        use = dict[str, float]()
        for joint in robot.joints:
            most = np.asarray(getattr(joint.definition.physics, limit), dtype=float)
            if np.isfinite(most).all() and (most > 0.0).all() and np.isfinite(values[:, joint.v]).all():
                use[joint.name] = float((np.abs(values[:, joint.v]) / most).max(initial=0.0))
        if use:
            name = max(use, key=lambda joint: use[joint])
            rows.append((f"largest {words} of a motor", f"{100.0 * use[name]:.0f} % of its limit ({name})"))
    return rows


def _contacts(run: Run) -> Rows:
    """Return the rows of contact forces, sliding feet and, on rigid ground, the violation of the contact law."""
    rows: Rows = []
    force = mean_over_time(run, run.ground_force[:, 2])
    if run.model is None:
        rows.append(("vertical force, mean", f"{force:.4g} N"))
    else:
        weight = run.model.robot.mass * float(np.linalg.norm(run.model.robot.gravity))
        rows.append(("vertical force, mean", f"{force / weight:.3f} of the weight" if weight else f"{force:.4g} N"))
        if weight and len(run) > 2:
            rows += _slip(run, weight)
    if run.contacts.worst_residual.size and np.nan_to_num(run.contacts.worst_residual[-1]) > 0.0:
        rows.append(("contact residual, largest", f"{run.contacts.worst_residual[-1]:.1e} m/s"))
    return rows


def _slip(run: Run, weight: float) -> Rows:
    """Return the row of the speed at which loaded contact points of the ground slide."""
    feet = run._ground_contacts  # pyright: ignore[reportPrivateUsage]
    if not feet:
        return []
    loaded = np.linalg.norm(run.contacts.forces[:, feet], axis=2) > _LOADED * weight / len(feet)
    both = loaded[1:] & loaded[:-1]
    moved = np.diff(run.contacts.points[:, feet], axis=0)
    normal = run.ground.normal
    along = np.linalg.norm(moved - (moved @ normal)[..., None] * normal, axis=2)
    time = (np.diff(run.times)[:, None] * both).sum()
    if time == 0.0:
        return []
    return [("sliding of loaded feet, mean", f"{1e3 * (along * both).sum() / time:.2g} mm/s")]


def _energy(run: Run) -> Rows:
    """Return the row of the energy drift, in words that say whether it matters."""
    drift = run.energy_drift
    mass = run.model.robot.mass if run.model is not None else 0.0
    share = drift / max(run.energy.moved, LEAST_ENERGY * mass, np.finfo(float).tiny)
    words = "it does not matter" if share < _SMALL else "compare with a smaller step"
    if share > _LARGE:
        words = "the step is too large"
    return [("energy drift", f"{drift:.1e} J, {_percent(share)} of the energy moved: {words}")]


def _percent(share: float) -> str:
    return f"{100.0 * share:.1g} %" if share >= 1e-5 else "under 0.001 %"


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
