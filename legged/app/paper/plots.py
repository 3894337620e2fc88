"""Figures 11 to 14, 16 and 17 of the paper, computed here."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from controllers import Gait
from legged.app import figures
from legged.simulation import Run
from legged.simulation.results.summary import joint_error

Runs = Mapping[str, Run]
"""Name of the controller -> run."""
SHOWN = 4.0  # [s], what the paper's figures show of its 12 s
LINE_STYLES = {
    "computed-torque": (figures.BLUE, "-", 2.2),
    "feed-forward": (figures.ORANGE, "--", 1.4),
    "none": (figures.RED, "-", 1.4),
}


def figure_11(gait: Gait, until: float = 2.0) -> Figure:
    """Return the six joint trajectories of the biped's legs."""
    t = np.linspace(0.0, until, 401)
    angles = np.degrees(gait.reference(t)[0])
    made = figures.figure(1, 3, width=10.0, height=3.1, sharex=True)
    for k, (ax, name) in enumerate(zip(made.axes, ("hip", "knee", "ankle"), strict=True)):
        ax.plot(t, angles[:, k], color=figures.BLUE, label="leg a, module M1")
        ax.plot(t, angles[:, 3 + k], "--", color=figures.ORANGE, label="leg b, module M2")
        figures.label(ax, name, "time [s]", "angle [degree]" if k == 0 else "")
    return figures.legend(made)


def figure_12(run: Run, joints: tuple[str, ...]) -> Figure:
    """Return the joint angles of the support leg without control, beside their references."""
    made = figures.figure(1, len(joints), width=10.0, height=3.1, sharex=True)
    for ax, name in zip(made.axes, joints, strict=True):
        _joint(ax, {"none": run}, name, run.duration)
        ax.axvline(1.0, color=figures.GREY, linewidth=1.0, label="1 s")
    made.axes[0].set_ylabel("angle [degree]", fontsize=9)
    return figures.legend(made)


def figure_13(runs: Runs) -> Figure:
    """Return the planar trunk's position and angle."""
    made = figures.figure(1, 3, width=10.0, height=3.1, sharex=True)
    _trunk(
        made.axes,
        runs,
        ("x [m]", lambda r: r.base.position[:, 0]),
        ("z [m]", lambda r: r.base.position[:, 2]),
        ("phi, nose down [degree]", lambda r: np.degrees(r.base.angles("xyz")[:, 1])),
    )
    return figures.legend(made)


def figure_16(runs: Runs) -> Figure:
    """Return the spatial trunk's position and Euler angles."""
    made = figures.figure(2, 3, width=10.0, height=2.7, sharex=True)
    places = [(f"{axis} [m]", lambda r, i=i: r.base.position[:, i]) for i, axis in enumerate("xyz")]
    angles = [
        (f"{words} [degree]", lambda r, i=i: np.degrees(r.base.angles("xyz")[:, i]))
        for i, words in enumerate(("roll", "pitch", "yaw"))
    ]
    _trunk(made.axes, runs, *places, *angles)
    return figures.legend(made)


def figure_joints(runs: Runs, joints: tuple[str, ...], names: tuple[str, ...]) -> Figure:
    """Return joint angles under the controllers, and their references: Figures 14 and 17.

    Args:
        runs: Runs by controller.
        joints: Names of joints.
        names: Titles, one per joint coordinate.
    """
    made = figures.figure(1, len(names), width=10.0, height=3.1, sharex=True)
    axes = iter(made.axes)
    for name in joints:
        for column in range(_columns(next(iter(runs.values())), name)):
            _joint(next(axes), runs, name, SHOWN, column)
    for ax, title in zip(made.axes, names, strict=True):
        figures.label(ax, title, "time [s]")
    made.axes[0].set_ylabel("angle [degree]", fontsize=9)
    return figures.legend(made)


def figure_errors(runs: Mapping[str, Runs]) -> Figure:
    """Return the largest joint error over the whole of the runs, robot by robot, on a logarithmic scale."""
    made = figures.figure(1, len(runs), width=10.0, height=3.0, sharey=True)
    for ax, (robot, controlled) in zip(made.axes, runs.items(), strict=True):
        for name, run in controlled.items():
            color, dashes, _ = LINE_STYLES[name]
            error = np.maximum(np.degrees(joint_error(run)), 1e-7)
            ax.semilogy(run.times, error, dashes, color=color, linewidth=1.2, label=_words(name))
        figures.label(ax, robot, "time [s]", "largest joint error [degree]")
    return figures.legend(made)


def _trunk(axes: list[Axes], runs: Runs, *curves) -> None:
    for ax, (title, values) in zip(axes, curves, strict=True):
        for name, run in runs.items():
            color, dashes, width = LINE_STYLES[name]
            shown = run.times <= SHOWN
            ax.plot(run.times[shown], values(run)[shown], dashes, color=color, linewidth=width, label=_words(name))
        figures.label(ax, title, "time [s]")


def _joint(ax: Axes, runs: Runs, name: str, until: float, column: int = 0) -> None:
    for controller, run in runs.items():
        color, dashes, width = LINE_STYLES[controller]
        shown = run.times <= until
        values = run.joint(name).position.reshape(len(run), -1)[:, column]
        ax.plot(
            run.times[shown], np.degrees(values[shown]), dashes, color=color, linewidth=width, label=_words(controller)
        )
    first = next(iter(runs.values()))
    shown = first.times <= until
    wanted = np.asarray(first.joint(name).reference).reshape(len(first), -1)[:, column]
    ax.plot(first.times[shown], np.degrees(wanted[shown]), ":", color="black", linewidth=1.4, label="desired")
    if np.ptp(wanted) < 1e-6:  # constant reference: avoid scaling to rounding errors
        ax.set_ylim(np.degrees(wanted[0]) - 1.0, np.degrees(wanted[0]) + 1.0)
    figures.label(ax, name, "time [s]")


def _words(controller: str) -> str:
    return "simulated, no control" if controller == "none" else controller


def _columns(run: Run, name: str) -> int:
    return run.joint(name).position.reshape(len(run), -1).shape[1]
