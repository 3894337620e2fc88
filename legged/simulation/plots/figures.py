"""Figures of a run: trunk motion, joints against their reference, contact forces, energy. They need no display."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from legged.output import as_label, output_file, replaced
from legged.simulation.results.run import Run
from legged.simulation.results.summary import limits_without_peaks

COLORS = ("#1f5a99", "#c8502d", "#3c8c50", "#8a5aa8", "#b08a1e", "#4a9aa8", "#7a7a7a", "#d06a9c")
_WIDTH = 9.0  # [inch]
_MOST_CURVES = 8  # on one axis; the colors are as many
_MOST_ROWS = 8  # of the figure of joints, so that it fits on a page


def trunk_figure(run: Run, sequence: str = "xyz") -> Figure:
    """Return a figure of position and angles of the base over time.

    Args:
        run: The run. sequence: Axes of the intrinsic angles.
    """
    figure, (places, angles) = _figure(2, f"{run.robot}: base")
    turned = run.base.angles(sequence)
    for i, axis in enumerate("xyz"):
        places.plot(run.times, run.base.position[:, i], color=COLORS[i], label=axis)
        degrees = np.degrees(turned[:, i])
        angles.plot(run.times, degrees, color=COLORS[i], label=f"angle {i + 1}, about {sequence[i]}")
    places.set_ylabel("position [m]")
    angles.set_ylabel("angle [degree]")
    return _finish(figure, (places, angles))


def joints_figure(run: Run, joints: Sequence[str] | None = None, title: str | None = None) -> Figure:
    """Return a figure of joint coordinates over time, with a dashed reference if the controller has one.

    Args:
        run: The run.
        joints: Names of joints, all by default. Joints whose names end in the same word share axes. If there were more
            than 8 axes, or 8 joints on one of them, neighboring joints share axes instead.
        title: Title of the figure; by default the name of the robot.
    """
    names = list(run.joints.names if joints is None else joints)
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(name.rsplit("_", 1)[-1], []).append(name)
    if len(groups) > _MOST_ROWS or max(map(len, groups.values()), default=0) > _MOST_CURVES:  # neighbors share an axis
        size = -(-len(names) // _MOST_ROWS)
        parts = [names[k : k + size] for k in range(0, len(names), size)]
        groups = {f"joints {k * size + 1} to {k * size + len(part)}": part for k, part in enumerate(parts)}
    figure, axes = _figure(len(groups), title or f"{run.robot}: joints")
    if not groups:
        axes[0].set_title("no joints")
    for ax, (group, members) in zip(axes, groups.items(), strict=bool(groups)):
        color, units = 0, dict[str, None]()
        for name in members:
            unit = "rad" if run.model is None else run.model.joint_unit(name)
            factor, unit = (180.0 / np.pi, "degree") if unit == "rad" else (1.0, unit)
            units[unit] = None
            for label, values, reference in _joint_curves(run, name):
                ax.plot(run.times, factor * values, color=COLORS[color % len(COLORS)], label=as_label(label, 40))
                if reference is not None:
                    ax.plot(run.times, factor * reference, "--", color="black", linewidth=0.9)
                color += 1
        ax.set_ylabel(f"{as_label(group, 20)} [{', '.join(units)}]")
    if run.joints.reference.shape[1]:
        axes[0].plot([], [], "--", color="black", linewidth=0.9, label="reference")
    return _finish(figure, axes)


def _joint_curves(run: Run, name: str) -> list[tuple[str, np.ndarray, np.ndarray | None]]:
    """Return (label, values (T,), reference (T,) or None) for each coordinate of a joint."""
    joint = run.joint(name)
    values = joint.position.reshape(len(run), -1).T
    reference = () if joint.reference is None else joint.reference.reshape(len(run), -1).T
    labels = [name] if len(values) == 1 else [f"{name}[{i}]" for i in range(len(values))]
    return list(zip_longest(labels, values, reference))


def contact_figure(run: Run) -> Figure:
    """Return a figure of vertical and horizontal contact forces over time, by contact point and in total.

    Axes end below the peaks of impacts, and say so.
    """
    figure, (vertical, horizontal) = _figure(2, f"{run.robot}: contact forces")
    forces = run.contacts.forces
    for k, name in enumerate(run.contacts.names):
        color = COLORS[k % len(COLORS)]
        vertical.plot(run.times, forces[:, k, 2], color=color, linewidth=0.9, label=as_label(name, 40))
        horizontal.plot(run.times, forces[:, k, 0], color=color, linewidth=0.9)
    total = run.ground_force
    vertical.plot(run.times, total[:, 2], color="black", linewidth=1.2, label="total")
    for ax, values in ((vertical, np.column_stack([total[:, 2], forces[..., 2]])), (horizontal, forces[..., 0])):
        low, high = limits_without_peaks(values)
        ax.set_ylim(low, high)
        if np.any((values < low) | (values > high)):
            ax.text(0.01, 0.97, "without peaks", transform=ax.transAxes, va="top", fontsize=8, color="dimgray")
    vertical.set_ylabel("vertical [N]")
    horizontal.set_ylabel("along x [N]")
    return _finish(figure, (vertical, horizontal))


def energy_figure(run: Run) -> Figure:
    """Return a figure of energies and work over time, and below them the error of the energy balance."""
    figure, (energies, error) = _figure(2, f"{run.robot}: energy")
    curves = {
        "kinetic": run.energy.kinetic,
        "potential, from start": run.energy.potential - run.energy.potential[0],
        "work of actuators": run.energy.actuator_work,
        "work of contacts" if run.bodies.names else "work of the ground": run.energy.contact_work,
    }
    if np.any(run.energy.push_work):
        curves["work of pushes"] = run.energy.push_work
    if np.any(run.energy.joint_work):
        curves["work of joints"] = run.energy.joint_work
    known = {name: values for name, values in curves.items() if not np.isnan(values).all()}
    for color, (name, values) in zip(COLORS, known.items(), strict=False):
        energies.plot(run.times, values, color=color, label=name)
    error.plot(run.times, run.energy.balance - run.energy.balance[0], color="black")
    energies.set_ylabel("[J]")
    error.set_ylabel("drift of the sum [J]")
    return _finish(figure, (energies, error))


def figures(run: Run) -> dict[str, Figure]:
    """Return the figures of trunk, joints, energy and, with contacts, contact forces, by name."""
    by_name = {"trunk": trunk_figure(run), "joints": joints_figure(run), "energy": energy_figure(run)}
    return by_name | ({"contact": contact_figure(run)} if run.contacts.names else {})


def save_figures(run: Run, folder: str | Path, prefix: str = "") -> list[Path]:
    """Write all figures of a run as PNG files into a folder, which is created if necessary; return their paths."""
    paths = []
    for name, figure in figures(run).items():
        paths.append(output_file(Path(folder) / f"{prefix}{name}.png"))
        with replaced(paths[-1]) as draft:
            figure.savefig(draft)
    return paths


def _figure(rows: int, title: str) -> tuple[Figure, tuple[Axes, ...]]:
    figure = Figure(figsize=(_WIDTH, 1.2 + 2.1 * max(rows, 1)), dpi=110, layout="constrained")
    axes = np.atleast_1d(figure.subplots(max(rows, 1), 1, sharex=True))
    figure.suptitle(as_label(title))
    return figure, tuple(axes)


def _finish(figure: Figure, axes: Sequence[Axes]) -> Figure:
    for ax in axes:
        ax.grid(True, color="#dddddd", linewidth=0.6)
        ax.spines[["top", "right"]].set_visible(False)
        if ax.get_legend_handles_labels()[0]:
            ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8, frameon=False)
    axes[-1].set_xlabel("time [s]")
    return figure
