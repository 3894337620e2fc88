"""Our counterparts of Figures 3 to 6 of Wendlandt 1997, and what the feet did."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from legged.app import style
from legged.app.balance import Experiment
from legged.app.balance_events import Foot, Hit
from legged.rotations import quaternion_of
from legged.simulation import Run
from legged.simulation.camera import camera_for, force_scale
from legged.simulation.run import GROUND
from legged.simulation.skeleton import FREE

COLORS = (style.BLUE, style.ORANGE, style.GREEN, style.RED, style.PURPLE, style.GREY)


def figure_3(run: Run, events: Sequence[float]) -> Figure:
    """Return the joint angles, a panel for each limb."""
    return _joints(run, events, lambda name: np.degrees(run.joint(name).position), "angle [degree]")


def figure_4(run: Run, events: Sequence[float]) -> Figure:
    """Return the joint torques, a panel for each limb; the rarest peaks are cut off."""
    made = _joints(run, events, lambda name: run.joint(name).torque, "torque [N m]")
    low, high = np.quantile(run.joint_tau, (0.001, 0.999))
    margin = 0.1 * (high - low)
    for ax in made.axes:
        ax.set_ylim(low - margin, high + margin)
    return made


def figure_5(experiment: Experiment, events: Sequence[float]) -> Figure:
    """Return the place of the base beside its set point."""
    run, (place, _) = experiment.run, experiment.wanted
    made = style.figure(3, 1, height=1.9, sharex=True)
    for i, (ax, axis) in enumerate(zip(made.axes, "xyz", strict=True)):
        ax.plot(run.times, 100.0 * run.base_position[:, i], color=COLORS[i], label="base")
        ax.axhline(100.0 * place[i], linestyle="--", color="black", linewidth=0.9, label="set point")
        _mark(ax, events)
        style.label(ax, "", "", f"{axis} [cm]")
    made.axes[-1].set_xlabel("time [s]", fontsize=9)
    return style.legend(made)


def figure_6(experiment: Experiment, events: Sequence[float]) -> Figure:
    """Return the quaternion of the base beside that of its set point."""
    run, (_, R) = experiment.run, experiment.wanted
    p = np.array([quaternion_of(R_t) for R_t in run.base_rotation])
    p *= np.sign(p @ quaternion_of(R))[:, None]  # the nearer one of the two that say the same
    wanted = quaternion_of(R)
    made = style.figure(2, 2, height=2.3, sharex=True)
    for k, (ax, name) in enumerate(zip(made.axes, ("q_0", "q_x", "q_y", "q_z"), strict=True)):
        ax.plot(run.times, p[:, k], color=COLORS[k], label="base")
        ax.axhline(wanted[k], linestyle="--", color="black", linewidth=0.9, label="set point")
        _mark(ax, events)
        style.label(ax, f"${name}$", "time [s]" if k > 1 else "")
    return style.legend(made)


def feet_figure(run: Run, names: Sequence[str], events: Sequence[float], until: float = 1.0) -> Figure:
    """Return height and force of the contact points of feet, a row for each foot."""
    made = style.figure(len(names), 2, width=9.0, height=2.4, sharex=True)
    shown = run.times <= until
    for row, name in enumerate(names):
        own = [k for k, on in enumerate(run.contact_on) if on == name]
        for color, k in zip(COLORS, own, strict=False):
            label = run.contact_names[k].partition("_")[2] or run.contact_names[k]
            height, force = made.axes[2 * row], made.axes[2 * row + 1]
            height.plot(run.times[shown], 1e3 * run.contact_points[shown, k, 2], color=color, label=label)
            force.plot(run.times[shown], run.contact_forces[shown, k, 2], color=color, linewidth=0.9)
            force.set_ylim(-20.0, 1.1 * np.quantile(run.contact_forces[:, own, 2], 0.999) + 20.0)
        style.label(made.axes[2 * row], name, "time [s]", "height [mm]")
        style.label(made.axes[2 * row + 1], "", "time [s]", "vertical force [N]")
    for ax in made.axes:
        _mark(ax, [t for t in events if t <= until])
    return style.legend(made)


def snapshots(run: Run, times: Sequence[float]) -> Figure:
    """Return stick figures at some times, [s], with the ground's forces."""
    camera, scale = camera_for(run), force_scale(run)
    shown = camera.picture(run.skeleton[[run.at(t) for t in times]]).reshape(-1, 2)
    (left, bottom), (right, top) = shown.min(axis=0) - 0.05, shown.max(axis=0) + 0.05  # [m]
    made = style.figure(1, len(times), width=1.6 * len(times), height=1.6 * (top - bottom) / (right - left) + 0.3)
    floor = [k for k, against in enumerate(run.contact_against) if against == GROUND]
    for ax, t in zip(made.axes, times, strict=True):
        k = run.at(t)
        points = run.contact_points[k, floor]
        forces = camera.picture(np.stack([points, points + scale * run.contact_forces[k, floor]], axis=1))
        ax.add_collection(LineCollection(list(forces), colors=style.RED, linewidths=1.2))
        for modules, color in (([0], "black"), ([FREE], style.ORANGE), ([1], style.BLUE), ([2], style.GREEN)):
            edges = run.edges[np.isin(run.edge_modules, modules)]
            lines = camera.picture(run.skeleton[k])[edges]
            ax.add_collection(LineCollection(list(lines), colors=color, linewidths=2.0, capstyle="round"))
        ax.set(xlim=(left, right), ylim=(bottom, top), aspect="equal")
        ax.set_axis_off()
        ax.set_title(f"{run.times[k]:.3f} s", fontsize=9)
    return made


def marks(hit: Hit | None, feet: Sequence[Foot]) -> list[float]:
    """Return the times that figures mark: the hit, and when feet rise first and land first, [s]."""
    times = [] if hit is None else [hit.time]
    return [*times, *(t for foot in feet for t in (*foot.rises[:1], *foot.lands[:1]))]


def _joints(run: Run, events: Sequence[float], values, unit: str) -> Figure:
    """Return curves of all joints, a panel for each limb: those whose names begin alike."""
    limbs: dict[str, list[str]] = {}
    for name in run.joint_names:
        limbs.setdefault(name.split("_")[0], []).append(name)
    made = style.figure(1, len(limbs), width=10.0, height=3.6, sharex=True, sharey=True)
    for ax, (limb, names) in zip(made.axes, limbs.items(), strict=True):
        for k, name in enumerate(names):
            label = name.removeprefix(f"{limb}_") or name
            ax.plot(run.times, values(name), color=COLORS[k % len(COLORS)], linewidth=1.2, label=label)
        _mark(ax, events)
        ax.legend(fontsize=8, frameon=False, ncols=2, loc="best")
        style.label(ax, limb, "time [s]", unit if ax is made.axes[0] else "")
    return made


def _mark(ax, events: Sequence[float]) -> None:
    for t in events:
        ax.axvline(t, color=style.GREY, linewidth=0.6, linestyle=":")
