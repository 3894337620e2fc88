"""The walking biped and the trotting quadruped of the paper, computed here: Figures 11 to 14, 16 and 17."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import controllers
import robots
from controllers import Gait
from legged.app.scenario import on_gait
from legged.ground import paper_ground
from legged.robot.robot import Robot
from legged.simulation import Run
from legged.simulation.plots import animate, pages
from legged.simulation.plots.pages import Page
from legged.simulation.results.summary import joint_error, lean
from legged.table import Table
from legged.version import __version__

Say = Callable[[str], None]
"""Function that prints a line."""
Runs = Mapping[str, Run]
"""Name of the controller -> run."""
LINE_STYLES = {
    "computed-torque": (pages.BLUE, "-", 2.2),
    "feed-forward": (pages.ORANGE, "--", 1.4),
    "none": (pages.RED, "-", 1.4),
}
SHOWN = 4.0  # [s], what the paper's figures show of its 12 s
LEFT = 2.0  # [degree], joint error above which a robot has left its gait


@dataclass(frozen=True)
class Demonstration:
    """Runs of a robot on its gait on the authors' ground, by controller."""

    robot: Robot
    gait: Gait
    runs: dict[str, Run]

    @property
    def controlled(self) -> dict[str, Run]:
        """The runs with feedback."""
        return {name: run for name, run in self.runs.items() if name != "none"}

    @property
    def left_at(self) -> float:
        """Time at which the run without control leaves its gait, [s]; infinity for never."""
        run = self.runs["none"]
        left = np.flatnonzero(np.degrees(joint_error(run)) > LEFT)
        return float(run.times[left[0]]) if len(left) else np.inf


def run_demonstration(robot: Robot, gait: Gait, duration: float, say: Say = print) -> Demonstration:
    """Return the runs of a robot on its gait under each controller, on the authors' ground."""
    runs = {}
    for name in LINE_STYLES:
        runs[name] = on_gait(robot, gait, name, paper_ground(robot), duration)
        say(f"  {robot.name}, {name}: {runs[name].ended or f'upright for {duration:g} s'}")
    return Demonstration(robot, gait, runs)


def add_demonstrations(page: Page, duration: float, say: Say) -> tuple[Demonstration, Demonstration]:
    """Simulate the biped and the quadruped, add their table and figures to a page, and return their runs."""
    page.text(
        "Shah, Saha, Dutt, *Modular framework for dynamic modeling and analyses of legged robots* (2012). Robots, "
        "gaits, ground and gains are the paper's, completed from the authors' toolbox; see "
        "`docs/reference/paper.md`. What the paper's figures show is taken from their captions and the text, since its "
        "pictures were not at hand."
    )
    say("Simulating")
    biped = run_demonstration(robots.planar_biped(), controllers.paper_walk(), duration, say)
    quadruped = run_demonstration(robots.spatial_quadruped(), controllers.paper_trot(), duration, say)
    table = run_table([biped, quadruped])
    say(f"\n{table.text()}\n")
    page.heading("Walking and trotting")
    page.table(table)
    used = biped.runs["computed-torque"]
    page.text(f"Made with legged {__version__}: {used.backend}, {used.integrator}.")
    _add_biped(page, biped)
    _add_quadruped(page, quadruped)
    return biped, quadruped


def write(page: Page, shown: tuple[Demonstration, ...], say: Say) -> Path:
    """Write the runs, their animations and a page with links to them, and return the path of the page."""
    page.heading("Runs and animations")
    lines = []
    for one in shown:
        for law, run in one.runs.items():
            name = f"{one.robot.name}-{law}".replace(" ", "-")
            run.save(page.folder / "runs" / f"{name}.npz")
            animate(run, page.folder / "animations" / f"{name}.html")
            lines.append(f"- [{one.robot.name}, {law}](animations/{name}.html), [data](runs/{name}.npz)")
    page.text("\n".join(lines))
    path = page.write()
    say(f"report: {path}\nfigures: {page.folder / 'figures'}, {len(page.figures)} of them")
    say(f"animations, for a browser: {page.folder / 'animations'}\nruns, for legged.Run.load: {page.folder / 'runs'}")
    return path


def run_table(demonstrations: list[Demonstration]) -> Table:
    """Return the main results of each run as a table."""
    rows = []
    for shown in demonstrations:
        for name, run in shown.runs.items():
            x, height, error = run.base.position[:, 0], run.base.position[:, 2], np.degrees(joint_error(run))
            upright = f"{run.duration:.2f}" + (", fell" if run.ended else "")
            trunk = f"{x[-1] - x[0]:.3f}", f"{height.min():.3f} to {height.max():.3f}"
            errors = error[run.times <= SHOWN].max(), error.max(), run.energy_drift
            leaned = f"{np.degrees(lean(run).max()):.1f}"
            rows.append((f"{shown.robot.name}, {name}", upright, *trunk, leaned, *(f"{size:.0e}" for size in errors)))
    header = ("robot and controller", "upright [s]", "distance [m]", "base height [m]", "lean [deg]")
    header += (f"error to {SHOWN:g} s", "to end [deg]", "energy drift [J]")
    notes = (
        f"Error: the largest of any joint against its reference, in the first {SHOWN:g} s and to the end.",
        "The gaits plan 0.3 m/s. Controller none replays the torques of the inverse dynamics without feedback.",
    )
    return Table("Runs on the authors' ground", header, tuple(rows), notes)


def _add_biped(page: Page, biped: Demonstration) -> None:
    page.heading("Planar biped: Figures 11 to 14")
    page.text("**Figure 11.** The paper: six curves from inverse kinematics, both legs alike, half a cycle apart.")
    page.figure(figure_11(biped.gait), "figure-11-biped-references", "Figure 11, computed here")
    none, leg = biped.runs["none"], ("a_hip", "a_knee", "a_ankle")
    page.text(
        "**Figure 12.** The paper: without control the motion is uncontrollable after 1 s. Here the largest joint "
        f"error passes {LEFT:g} degrees at {biped.left_at:.2f} s, and {none.ended or 'the biped did not fall'}."
    )
    uncontrolled = figure_joints({"none": none}, leg, leg, until=none.duration, marked=1.0)
    page.figure(uncontrolled, "figure-12-biped-no-control", "Figure 12, computed here")
    run = biped.runs["computed-torque"]
    page.text(
        "**Figure 13.** The paper: the trunk moves forward in a stable periodic motion, shown for 4 s of 12 s. "
        f"Here it stays upright with computed torque for {run.duration:g} s; then x = {run.base.position[-1, 0]:.3f} m."
    )
    trunk = {"x [m]": _position(0), "z [m]": _position(2), "phi, nose down [degree]": _angle(1)}
    page.figure(figure_trunk(biped.controlled, trunk), "figure-13-biped-trunk", "Figure 13, computed here")
    page.text(f"**Figure 14.** The paper: both controllers match closely. Here {_agreement(biped)}.")
    joints = figure_joints(biped.controlled, leg, ("hip", "knee", "ankle"))
    page.figure(joints, "figure-14-biped-joints", "Figure 14, computed here")


def _add_quadruped(page: Page, quadruped: Demonstration) -> None:
    page.heading("Spatial quadruped: Figures 16 and 17")
    run = quadruped.runs["computed-torque"]
    page.text(
        "**Figure 16.** The paper: the trunk travels forward in a periodic motion. Here it stays up for "
        f"{run.duration:g} s and reaches x = {run.base.position[-1, 0]:.3f} m."
    )
    trunk = {f"{axis} [m]": _position(i) for i, axis in enumerate("xyz")}
    trunk |= {f"{angle} [degree]": _angle(i) for i, angle in enumerate(("roll", "pitch", "yaw"))}
    page.figure(figure_trunk(quadruped.controlled, trunk), "figure-16-quadruped-trunk", "Figure 16, computed here")
    page.text(f"**Figure 17.** The paper: joint angles follow under both laws. Here {_agreement(quadruped)}.")
    joints = figure_joints(quadruped.controlled, ("leg4_hip", "leg4_knee"), ("hip abduction", "hip", "knee"))
    page.figure(joints, "figure-17-quadruped-joints", "Figure 17 (leg 4, module M4), computed here")


def _agreement(shown: Demonstration) -> str:
    """Return the difference of the two controllers over the time shown in the paper, as text."""
    one, other = shown.controlled.values()
    n = int(min((one.times <= SHOWN).sum(), (other.times <= SHOWN).sum()))
    apart = np.degrees(np.abs(one.joint_positions[:n] - other.joint_positions[:n]).max())
    return f"they differ by at most {apart:.1g} degrees in the first {one.times[n - 1]:g} s"


def figure_11(gait: Gait, until: float = 2.0) -> Figure:
    """Return the figure of the six joint trajectories of the biped's legs up to a time, [s]."""
    t = np.linspace(0.0, until, 401)
    angles = np.degrees(gait.reference(t)[0])
    made = pages.figure(1, 3, width=10.0, height=3.1, sharex=True)
    for k, (ax, name) in enumerate(zip(made.axes, ("hip", "knee", "ankle"), strict=True)):
        ax.plot(t, angles[:, k], color=pages.BLUE, label="leg a, module M1")
        ax.plot(t, angles[:, 3 + k], "--", color=pages.ORANGE, label="leg b, module M2")
        pages.label(ax, name, "time [s]", "angle [degree]" if k == 0 else "")
    return pages.legend(made)


def figure_trunk(runs: Runs, curves: Mapping[str, Callable[[Run], np.ndarray]]) -> Figure:
    """Return the figure of quantities of the trunk under the controllers, three in a row: Figures 13 and 16.

    Args:
        runs: Runs by controller.
        curves: Title -> function of a run that returns a scalar quantity over time, (T,), in any unit.
    """
    rows = len(curves) // 3
    made = pages.figure(rows, 3, width=10.0, height=3.1 if rows == 1 else 2.7, sharex=True)
    for ax, (title, values) in zip(made.axes, curves.items(), strict=True):
        for name, run in runs.items():
            _plot(ax, run, name, values(run), SHOWN)
        pages.label(ax, title, "time [s]")
    return pages.legend(made)


def figure_joints(
    runs: Runs, joints: tuple[str, ...], titles: tuple[str, ...], until: float = SHOWN, marked: float | None = None
) -> Figure:
    """Return the figure of joint angles under the controllers, and of their references: Figures 12, 14 and 17.

    Args:
        runs: Runs by controller.
        joints: Names of joints.
        titles: Titles, one per joint coordinate.
        until: End of the time shown, [s].
        marked: Time marked by a line, [s].
    """
    made = pages.figure(1, len(titles), width=10.0, height=3.1, sharex=True)
    first = next(iter(runs.values()))
    columns = [(name, k) for name in joints for k in range(_angles(first.joint(name).position).shape[1])]
    for ax, title, (name, k) in zip(made.axes, titles, columns, strict=True):
        for controller, run in runs.items():
            _plot(ax, run, controller, _angles(run.joint(name).position)[:, k], until)
        reference = _angles(first.joint(name).reference)[:, k]
        shown = first.times <= until
        ax.plot(first.times[shown], reference[shown], ":", color="black", linewidth=1.4, label="desired")
        if np.ptp(reference) < 1e-4:  # a constant reference would scale the axis to rounding errors
            ax.set_ylim(reference[0] - 1.0, reference[0] + 1.0)
        if marked is not None:
            ax.axvline(marked, color=pages.GREY, linewidth=1.0, label=f"{marked:g} s")
        pages.label(ax, title, "time [s]")
    made.axes[0].set_ylabel("angle [degree]", fontsize=9)
    return pages.legend(made)


def _position(axis: int) -> Callable[[Run], np.ndarray]:
    return lambda run: run.base.position[:, axis]


def _angle(axis: int) -> Callable[[Run], np.ndarray]:
    return lambda run: np.degrees(run.base.angles("xyz")[:, axis])


def _angles(values: Any) -> np.ndarray:
    """Return angles of a joint over time, [degree], (T, coordinates)."""
    return np.degrees(np.asarray(values)).reshape(len(values), -1)


def _plot(ax: Axes, run: Run, controller: str, values: np.ndarray, until: float) -> None:
    color, dashes, width = LINE_STYLES[controller]
    words = "simulated, no control" if controller == "none" else controller
    shown = run.times <= until
    ax.plot(run.times[shown], values[shown], dashes, color=color, linewidth=width, label=words)
