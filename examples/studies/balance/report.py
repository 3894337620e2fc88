"""Report on the balance experiment: tables, Figures 3 to 6 of Wendlandt 1997, foot motion and snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from examples.studies.balance.experiment import (
    NEAR,
    UPRIGHT,
    BalanceExperiment,
    BlockImpact,
    FootEvents,
    base_errors,
    block_impact,
    foot_events,
    settling_time,
)
from examples.studies.paper.timing import best_times
from legged.compiler import Counts, count
from legged.compiler import compile as compile_function
from legged.rotations import quaternion_of
from legged.simulation import Run, plots
from legged.simulation.plots import pages
from legged.simulation.plots.animation import camera_for, force_scale
from legged.simulation.results.records import FREE, GROUND
from legged.table import Table

COLORS = (pages.BLUE, pages.ORANGE, pages.GREEN, pages.RED, pages.PURPLE, pages.GREY)


def figure_3(run: Run, events: Sequence[float]) -> Figure:
    """Return the figure of joint angles, one panel per limb."""
    return _joints(run, events, lambda name: np.degrees(run.joint(name).position), "angle [degree]")


def figure_4(run: Run, events: Sequence[float]) -> Figure:
    """Return the figure of joint torques, one panel per limb; the axes span the quantiles 0.001 to 0.999."""
    made = _joints(run, events, lambda name: run.joint(name).torque, "torque [N m]")
    low, high = np.quantile(run.joint_tau, (0.001, 0.999))
    margin = 0.1 * (high - low)
    for ax in made.axes:
        ax.set_ylim(low - margin, high + margin)
    return made


MIRRORED = "opposite sign in the paper"
"""Label of the quantities of the paper's biped whose sign the reflection in x changes: it faces -x, the one here +x."""


def figure_5(experiment: BalanceExperiment, events: Sequence[float]) -> Figure:
    """Return the figure of the base position and its set point; the label of x says if the paper's is the opposite."""
    run, (place, _) = experiment.run, experiment.wanted
    made = pages.figure(3, 1, height=1.9, sharex=True)
    for i, (ax, axis) in enumerate(zip(made.axes, "xyz", strict=True)):
        ax.plot(run.times, 100.0 * run.base.position[:, i], color=COLORS[i], label="base")
        ax.axhline(100.0 * place[i], linestyle="--", color="black", linewidth=0.9, label="set point")
        _mark(ax, events)
        opposite = f"\n{MIRRORED}" if experiment.of_paper and axis == "x" else ""
        pages.label(ax, "", "", f"{axis} [cm]{opposite}")
    made.axes[-1].set_xlabel("time [s]", fontsize=9)
    return pages.legend(made)


def figure_6(experiment: BalanceExperiment, events: Sequence[float]) -> Figure:
    """Return the figure of the base quaternion and that of its set point; titles say if the paper's sign is opposite.

    A reflection in x changes the signs of q_y and q_z: axes of rotation are axial vectors.
    """
    run, (_, R) = experiment.run, experiment.wanted
    p = np.array([quaternion_of(R_t) for R_t in run.base.rotation])
    p *= np.sign(p @ quaternion_of(R))[:, None]  # of the two equivalent quaternions, the nearer one
    wanted = quaternion_of(R)
    made = pages.figure(2, 2, height=2.3, sharex=True)
    for k, (ax, name) in enumerate(zip(made.axes, ("q_0", "q_x", "q_y", "q_z"), strict=True)):
        ax.plot(run.times, p[:, k], color=COLORS[k], label="base")
        ax.axhline(wanted[k], linestyle="--", color="black", linewidth=0.9, label="set point")
        _mark(ax, events)
        opposite = f", {MIRRORED}" if experiment.of_paper and name in ("q_y", "q_z") else ""
        pages.label(ax, f"${name}${opposite}", "time [s]" if k > 1 else "")
    return pages.legend(made)


def feet_figure(run: Run, names: Sequence[str], events: Sequence[float], until: float = 1.0) -> Figure:
    """Return the figure of heights and forces of the contact points, one row per foot."""
    made = pages.figure(len(names), 2, width=9.0, height=2.4, sharex=True)
    shown = run.times <= until
    for row, name in enumerate(names):
        own = [k for k, on in enumerate(run.contacts.on) if on == name]
        for color, k in zip(COLORS, own, strict=False):
            label = run.contacts.names[k].partition("_")[2] or run.contacts.names[k]
            height, force = made.axes[2 * row], made.axes[2 * row + 1]
            height.plot(run.times[shown], 1e3 * run.contacts.points[shown, k, 2], color=color, label=label)
            force.plot(run.times[shown], run.contacts.forces[shown, k, 2], color=color, linewidth=0.9)
            force.set_ylim(-20.0, 1.1 * np.quantile(run.contacts.forces[:, own, 2], 0.999) + 20.0)
        pages.label(made.axes[2 * row], name, "time [s]", "height [mm]")
        pages.label(made.axes[2 * row + 1], "", "time [s]", "vertical force [N]")
    for ax in made.axes:
        _mark(ax, [t for t in events if t <= until])
    return pages.legend(made)


def snapshots(run: Run, times: Sequence[float]) -> Figure:
    """Return stick figures at given times, [s], with ground reaction forces."""
    camera, scale = camera_for(run), force_scale(run)
    shown = camera.project(run.figure.nodes[[run.at(t) for t in times]]).reshape(-1, 2)
    (left, bottom), (right, top) = shown.min(axis=0) - 0.05, shown.max(axis=0) + 0.05  # [m]
    made = pages.figure(1, len(times), width=1.6 * len(times), height=1.6 * (top - bottom) / (right - left) + 0.3)
    floor = [k for k, against in enumerate(run.contacts.against) if against == GROUND]
    for ax, t in zip(made.axes, times, strict=True):
        k = run.at(t)
        points = run.contacts.points[k, floor]
        forces = camera.project(np.stack([points, points + scale * run.contacts.forces[k, floor]], axis=1))
        ax.add_collection(LineCollection(list(forces), colors=pages.RED, linewidths=1.2))
        for modules, color in (([0], "black"), ([FREE], pages.ORANGE), ([1], pages.BLUE), ([2], pages.GREEN)):
            edges = run.figure.edges[np.isin(run.figure.modules, modules)]
            lines = camera.project(run.figure.nodes[k])[edges]
            ax.add_collection(LineCollection(list(lines), colors=color, linewidths=2.0, capstyle="round"))
        ax.set(xlim=(left, right), ylim=(bottom, top), aspect="equal")
        ax.set_axis_off()
        ax.set_title(f"{run.times[k]:.3f} s", fontsize=9)
    return made


def event_times(hit: BlockImpact | None, feet: Sequence[FootEvents]) -> list[float]:
    """Return the times of the impact, the first lift-off and the first touch-down of each foot, [s]."""
    times = [] if hit is None else [hit.time]
    return [*times, *(t for foot in feet for t in (*foot.rises[:1], *foot.lands[:1]))]


def _joints(run: Run, events: Sequence[float], values, unit: str) -> Figure:
    """Return curves of all joints, one panel per limb; the limb is the first word of the joint name."""
    limbs: dict[str, list[str]] = {}
    for name in run.joints.names:
        limbs.setdefault(name.split("_")[0], []).append(name)
    made = pages.figure(1, len(limbs), width=10.0, height=3.6, sharex=True, sharey=True)
    for ax, (limb, names) in zip(made.axes, limbs.items(), strict=True):
        for k, name in enumerate(names):
            label = name.removeprefix(f"{limb}_") or name
            ax.plot(run.times, values(name), color=COLORS[k % len(COLORS)], linewidth=1.2, label=label)
        _mark(ax, events)
        ax.legend(fontsize=8, frameon=False, ncols=2, loc="best")
        pages.label(ax, limb, "time [s]", unit if ax is made.axes[0] else "")
    return made


def _mark(ax, events: Sequence[float]) -> None:
    for t in events:
        ax.axvline(t, color=pages.GREY, linewidth=0.6, linestyle=":")


PAPER = {"hit": 0.08, "rises": 0.13, "left_foot_7": 0.38, "right_foot_13": 0.36}
"""Times given in the paper, [s]: impact, lift-off of both feet, touch-down of each foot."""
PAPER_RUN, PAPER_LAW = 2066.0, 7e-3
"""Computing times in the paper for three seconds of simulation and for one control step, [s]."""


class BalanceReport:
    """Tables and figures of an experiment.

    Attributes:
        experiment: The experiment.
        run: Its run.
        hit: Impact of the block, or None.
        feet: Events of the feet.
    """

    def __init__(self, experiment: BalanceExperiment):
        self.experiment, self.run = experiment, experiment.run
        throw = experiment.throw
        self.hit = None if throw is None else block_impact(self.run, throw.mass, experiment.robot.gravity)
        self.feet: list[FootEvents] = foot_events(experiment.robot, self.run, self.hit.time if self.hit else 0.05)

    @property
    def of_paper(self) -> bool:
        """Whether the robot is that of the paper."""
        return self.experiment.of_paper

    def event_table(self) -> Table:
        """Return the times of events, beside those of the paper."""
        rows = []
        if self.experiment.throw is not None:
            hit_time = f"{self.hit.time:.3f}" if self.hit else "never"
            rows.append(("the block hits the trunk", hit_time, self._paper("hit")))
        for foot in self.feet:
            rows.append((f"{foot.name} begins to rise", _times(foot.rises), self._paper("rises")))
        for foot in self.feet:
            rows.append((f"{foot.name} lands", _times(foot.lands), self._paper(foot.name)))
        words = f"settled within {1e3 * NEAR:g} mm and {np.degrees(UPRIGHT):g} degree"
        when = settling_time(self.experiment)
        rows.append((words, f"{when:.3f}" if np.isfinite(when) else "never", "-"))
        header = ("", "here [s]", *(["paper [s]"] if self.of_paper else []))
        return Table(str(self.run), header, tuple(row[: len(header)] for row in rows))

    def result_table(self) -> Table:
        """Return the main results of the run."""
        run, (away, angle) = self.run, base_errors(self.experiment)
        energy = run.energy.kinetic.max() + np.ptp(run.energy.potential)
        rows = [("ended", run.ended or f"upright after {run.duration:g} s")]
        if self.hit:
            x, y, z = self.hit.impulse
            rows.append(("impulse of the block", f"({x:.2f}, {y:.2f}, {z:.2f}) N s in {self.hit.touches} touches"))
        for foot in self.feet:
            tips = f"{1e3 * foot.highest:.1f} mm, its lowest point {1e3 * foot.front:.1f} mm"
            rows.append((f"{foot.name} rose", tips))
            slid = f"{1e3 * foot.slip:.2f} mm, at the end at {1e3 * foot.drift:.1g} mm/s"
            rows.append((f"{foot.name} slid", slid))
        rows += [
            ("error of the base at the end", f"{1e3 * away[-1]:.2g} mm, {np.degrees(angle[-1]):.2g} degrees"),
            (
                "contacts' residual, largest, median",
                f"{run.contacts.residual.max():.2g}, {np.median(run.contacts.residual):.1g} m/s",
            ),
            ("energy drift", f"{run.energy_drift:.1e} J of {energy:.0f} J"),
        ]
        return Table("Results", ("", ""), tuple(rows), left=2)

    def cost_table(self) -> Table:
        """Return the computing times of simulation and controller, beside those of the paper."""
        took, law = self.experiment.seconds(), self.law_seconds()
        length, counts = self.experiment.duration, self.law_counts
        faster = f"{1e3 * took:.0f} ms, {length / took:.0f} times real time"
        slower = f"{PAPER_RUN:.0f} s for 3 s, {PAPER_RUN / 3:.0f} times slower than real time"
        rows = [
            (f"{length:g} s of motion with contacts", faster, slower),
            ("one control step", f"{1e6 * law:.1f} us", f"{1e3 * PAPER_LAW:.0f} ms"),
            ("its operations", f"{counts.M} M, {counts.A} A", "-"),
        ]
        header = ("", "here", *(["paper"] if self.of_paper else []))
        notes = ("Compiled code, without the time for tracing and compiling. The controller is called from Python.",)
        return Table("Cost", header, tuple(row[: len(header)] for row in rows), notes, left=2)

    def law_seconds(self) -> float:
        """Return the time of one compiled evaluation of the controller called from Python, [s]."""
        (q, v), robot = self.experiment.start, self.experiment.robot
        kernel = compile_function(self._torque, None, q=robot.nq, v=robot.nv)
        return best_times([lambda: kernel(q, v)])[0]

    @cached_property
    def law_counts(self) -> Counts:
        """Operation counts of the controller."""
        robot = self.experiment.robot
        return count(self._torque, None, q=robot.nq, v=robot.nv)

    @cached_property
    def _torque(self):
        experiment = self.experiment
        law, robot = experiment.balance(), experiment.robot
        controller, memory = law.start(robot, None, *experiment.start)
        wrenches = np.zeros((len(robot.links), 6))
        return lambda q, v: controller.torque(0.0, 0, q, v, wrenches, memory)

    def figures(self) -> dict[str, Figure]:
        """Return the figures by name: Figures 3 to 6 of the paper, snapshots, and the motion of the feet."""
        marks, run = event_times(self.hit, self.feet), self.run
        return {
            "figure-3-joint-angles": figure_3(run, marks),
            "figure-4-joint-torques": figure_4(run, marks),
            "figure-5-position": figure_5(self.experiment, marks),
            "figure-6-orientation": figure_6(self.experiment, marks),
            "snapshots": snapshots(run, self._moments()),
            "feet": feet_figure(run, [foot.name for foot in self.feet], marks),
        }

    def write(self, folder: Path) -> list[Path]:
        """Write figures, animations and the run into a folder, and return the paths."""
        run, drawn = self.run, self.figures()
        paths = [pages.save(figure, folder / f"{name}.png") for name, figure in drawn.items()]
        paths += [plots.animate(run, folder / f"animation.{kind}", fps=20.0, speed=0.5) for kind in ("gif", "html")]
        return [*paths, run.save(folder / "run.npz")]

    def _moments(self) -> list[float]:
        """Return the times of the snapshots, [s]: start, impact, several times with lifted feet, and the end."""
        end = self.run.times[-1]
        first = self.hit.time if self.hit else 0.1
        return [t for t in (0.0, first, *(first + dt for dt in (0.06, 0.15, 0.3)), 0.6, 1.0) if t < end] + [end]

    def _paper(self, key: str) -> str:
        return f"{PAPER[key]:.2f}" if key in PAPER else "-"


def _times(times: tuple[float, ...]) -> str:
    return ", ".join(f"{t:.3f}" for t in times) or "never"
