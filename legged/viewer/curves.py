"""What stands beside a scene on pages and in the viewer: curves, tables of figures, pictures of kinematic modules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from legged.errors import ArgumentError
from legged.robot.diagram.drawing import svg_element
from legged.simulation.results.records import BaseRecord
from legged.simulation.results.run import Run
from legged.simulation.results.run_table import run_table
from legged.simulation.results.summary import limits_without_peaks
from legged.table import Table

Array = np.ndarray
MOST_POINTS = 4000
"""Number of points above which a curve is reduced to the smallest and largest values of intervals."""
_MOST_CURVES = 8
_MOST_JOINT_PLOTS = 6
_FORCES = {"rad": "torque [N m]", "m": "force [N]"}
_MOST_ANGLES = 20_000  # samples at which angles are computed, one after the other


@dataclass(frozen=True, eq=False)
class Plot:
    """Curves over time on common axes.

    Attributes:
        title: Quantity and unit.
        labels: A label for each curve; those of the controller's reference begin with "reference".
        times: (n,), [s].
        values: (n, curves), in the unit of the title; NaN where a curve has none.
        limits: Range of the vertical axis that shows all but rare peaks; None for the range of the values.
    """

    title: str
    labels: tuple[str, ...]
    times: Array
    values: Array
    limits: tuple[float, float] | None = None


def plots_of_run(run: Run) -> list[Plot]:
    """Return the curves of base, contact forces, energy, joints and torques of a run.

    Args:
        run: The run.
    """
    times, angles = _angles(run)
    position = run.base.position
    velocity = np.gradient(position, run.times, axis=0) if len(run) > 1 else np.zeros_like(position)
    plots = [
        _plot(run.times, "position of the base [m]", ("x", "y", "z"), position),
        _plot(run.times, "velocity of the base [m/s]", ("x", "y", "z"), velocity),
        _plot(times, "angles of the base [degree]", ("x", "y", "z"), angles),
    ]
    if run.contacts.names:
        vertical, total = run.contacts.forces[..., 2], run.ground_force
        names = run.contacts.names if len(run.contacts.names) < _MOST_CURVES else ()
        forces = np.column_stack([*(vertical[:, k] for k in range(len(names))), total[:, 2]])
        plots.append(
            _plot(run.times, "vertical contact forces [N]", (*names, "total"), forces, limits_without_peaks(forces))
        )
        plots.append(
            _plot(
                run.times, "horizontal contact force [N]", ("x", "y"), total[:, :2], limits_without_peaks(total[:, :2])
            )
        )
    energy = run.energy
    parts = np.column_stack([energy.kinetic, energy.potential - energy.potential[:1], energy.actuator_work])
    known = 2 if np.isnan(energy.actuator_work).all() else 3
    plots.append(_plot(run.times, "energy [J]", ("kinetic", "potential", "actuators' work")[:known], parts[:, :known]))
    return plots + _joint_plots(run)


def plots_of_runs(runs: Sequence[Run], names: Sequence[str]) -> list[Plot]:
    """Return the curves of several runs on common axes.

    The plots are those of the first run, with the curves of the plots of other runs that have the same title.

    Args:
        runs: The runs. names: A name for each, which precedes the labels.
    """
    own = [plots_of_run(run) for run in runs]
    if len(runs) == 1:
        return own[0]
    joint_plots = []
    for plot in own[0]:
        same = [(n, p) for n, plots in zip(names, own, strict=True) for p in plots if p.title == plot.title]
        columns = [np.interp(plot.times, p.times, c, np.nan, np.nan) for _, p in same for c in p.values.T]
        labels = tuple(f"{name}: {label}" for name, p in same for label in p.labels)
        joint_plots.append(Plot(plot.title, labels, plot.times, np.column_stack(columns), plot.limits))
    return joint_plots


def names_of_runs(runs: Sequence[Run], names: Sequence[str] | None) -> Sequence[str]:
    """Return a name for each run; by default the name of its robot, and a number if there are several runs.

    Args:
        runs: The runs. names: The names, or None.

    Raises:
        ArgumentError: The number of names is not that of the runs.
    """
    if names is None:
        return [run.robot if len(runs) == 1 else f"{run.robot} {k + 1}" for k, run in enumerate(runs)]
    if len(names) != len(runs):
        raise ArgumentError(f"names must have one entry per run, {len(runs)}, got {len(names)}")
    return names


def tables_of_run(run: Run) -> list[Table]:
    """Return the tables of the figures of a run.

    Args:
        run: The run.
    """
    return [run_table(run)]


def module_pictures(runs: Sequence[Run]) -> list[str]:
    """Return HTML elements with the pictures of the modules of the robots of runs; none for runs without a model.

    Args:
        runs: The runs; robots with the same modules have one picture.
    """
    models = [run.model.robot for run in runs if run.model is not None]
    robots = {tuple((module.links, module.kind) for module in robot.modules): robot for robot in models}
    return [svg_element(robot) for robot in robots.values()]


def _joint_plots(run: Run) -> list[Plot]:
    """Return plots of joint positions and of torques; joints whose names end in the same word share axes."""
    groups: dict[str, list[str]] = {}
    for name in run.joints.names:
        groups.setdefault(name.removesuffix("_joint").rsplit("_", 1)[-1], []).append(name)
    if len(groups) > _MOST_JOINT_PLOTS or max(map(len, groups.values()), default=0) > _MOST_CURVES:
        names = run.joints.names
        parts = [names[k : k + _MOST_CURVES] for k in range(0, len(names), _MOST_CURVES)]
        groups = {f"joints {k * _MOST_CURVES + 1} to {k * _MOST_CURVES + len(p)}": list(p) for k, p in enumerate(parts)}
    positions, torques = [], []
    for group, names in groups.items():
        histories = [run.joint(name) for name in names]
        columns = [("", h.position, n) for n, h in zip(names, histories, strict=True)]
        columns += [
            ("reference ", h.reference, n) for n, h in zip(names, histories, strict=True) if h.reference is not None
        ]
        units = {"rad"} if run.model is None else {run.model.joint_unit(name) for name in names}
        unit = units.pop() if len(units) == 1 else "mixed units"
        positions.append(_joint_plot(run, f"{group} [{unit}]", columns))
        title = f"{group}, {_FORCES.get(unit, 'generalized force [N m or N]')}"
        torques.append(_joint_plot(run, title, [("", h.torque, n) for n, h in zip(names, histories, strict=True)]))
    return positions if np.isnan(run.tau).all() and run.tau.size else positions + torques


def _joint_plot(run: Run, title: str, columns: Sequence[tuple[str, Array, str]]) -> Plot:
    labels, values = list[str](), list[Array]()
    for before, array, name in columns:
        several = array.reshape(len(run), -1)
        count = several.shape[1]
        labels += [f"{before}{name}" + (f"[{i}]" if count > 1 else "") for i in range(count)]
        values += list(several.T)
    return _plot(run.times, title, tuple(labels), np.column_stack(values))


def _plot(
    times: Array, title: str, labels: tuple[str, ...], values: Array, limits: tuple[float, float] | None = None
) -> Plot:
    times, values = decimated(times, values)
    return Plot(title, labels, times, values, limits)


def decimated(times: Array, values: Array, most: int = MOST_POINTS) -> tuple[Array, Array]:
    """Return a curve with at most `most` points: the smallest and largest values of intervals of equal length.

    Args:
        times: (n,), [s]. values: (n, curves), [any unit].
        most: Largest number of points; samples after the last complete interval are dropped.
    """
    if len(times) <= most:
        return times, values
    count = 2 * len(times) // most + 1
    bins = len(times) // count
    inside = values[: bins * count].reshape(bins, count, -1)
    pairs = np.stack([inside.min(axis=1), inside.max(axis=1)], axis=1).reshape(2 * bins, -1)
    starts = times[: bins * count : count]
    return np.stack([starts, times[count // 2 : bins * count : count]], axis=1).ravel(), pairs


def _angles(run: Run) -> tuple[Array, Array]:
    """Return at most `_MOST_ANGLES` times, (n,), [s], and the angles of the base at them, (n, 3), [degree]."""
    rows = np.unique(np.linspace(0, len(run) - 1, min(len(run), _MOST_ANGLES)).round().astype(int))
    base = BaseRecord(run.base.position[rows], run.base.rotation[rows])
    return run.times[rows], np.degrees(base.angles())
