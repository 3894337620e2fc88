"""A spatial robot on a point that straightens, crouches and reorients by bending and swiveling: table and figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from controllers.balance.planar import StepCommand
from controllers.balance.spatial import BendSwivelBalance, BendSwivelControl
from legged.algorithms.velocity_gains import velocity_gains
from legged.compiler import Kernel
from legged.compiler import compile as compile_function
from legged.dynamics.kinematics import link_poses, point_jacobian
from legged.robot.construction.builder import RobotBuilder
from legged.robot.joint import Universal
from legged.robot.link import Link
from legged.robot.robot import Robot
from legged.simulation import Push, Run, RungeKutta4, simulate
from legged.simulation.plots import animate, pages
from legged.spatial import Array
from legged.table import Table
from robots.balancers import bend_swivel_robot

CROUCH = 1.5
"""Bend of a crouch, [rad]."""
_AT_REST = 1e-6
"""Momentum about the vertical, [kg m^2/s], below which it is rounding."""
_BENT = 0.02
"""Twice the sine of half the bend above which the joint has a direction of bending."""
TURN = StepCommand([1.0 + 0.8 * k for k in range(6)], [np.pi / 3.0 * (k + 1) for k in range(6)])
"""A full turn in six steps."""


class Scenario(NamedTuple):
    """A test case: commands of bend and swivel, and an optional push.

    Attributes:
        words: Description. bend, swivel: Commands, numbers or `StepCommand`, [rad].
        duration: Duration, [s]. push: A push, or None.
    """

    words: str
    bend: float | StepCommand
    swivel: float | StepCommand
    duration: float
    push: Push | None = None


SHOWN = Scenario(
    "crouch, reorient, straighten",
    StepCommand((1.0, 6.5), (CROUCH, 0.0)),
    StepCommand((3.5,), (1.2,)),
    9.0,
)
SCENARIOS = (
    Scenario("crouch and straighten", StepCommand((1.0, 3.5), (CROUCH, 0.0)), 0.4, 6.0),
    Scenario("reorient by 1.2 rad", CROUCH, StepCommand((1.0,), (1.2,)), 4.0),
    Scenario("reorient by a full turn", CROUCH, TURN, 8.0),
    Scenario(
        "crouch deeper and reorient at once", StepCommand((1.0,), (2.2,), CROUCH), StepCommand((1.0,), (1.2,)), 4.0
    ),
    Scenario(
        "push of 0.03 N s across the plane", CROUCH, 0.4, 5.0, Push("trunk", (0.03, 0, 0), 1.0, point=(0, 0, 0.6))
    ),
    SHOWN,
)


class History(NamedTuple):
    """Coordinates, momentum and azimuths of a run over its T samples.

    Attributes:
        bend, swivel: theta and phi, (T,), [rad]. across: 2 sin(theta / 2), (T,).
        center: Center of mass along the bending plane and across it, (T, 2), [m].
        momentum: Angular momentum about n, s and the vertical, (T, 3), [kg m^2/s].
        plane, leg: Azimuth in the world of the bending plane and of the leg, which turns about its shaft, (T,), [rad].
        predicted: Azimuth of the plane that the momentum about the vertical, which is zero, predicts, (T,), [rad].
    """

    bend: Array
    swivel: Array
    across: Array
    center: Array
    momentum: Array
    plane: Array
    leg: Array
    predicted: Array


@dataclass(frozen=True, eq=False)
class BendSwivelStudy:
    """Runs of scenarios with the controller of bending and swiveling.

    Attributes:
        scenarios: The scenarios. step: Time step, [s]. sample: Time between samples, [s].
    """

    scenarios: Sequence[Scenario] = SCENARIOS
    step: float = 2e-3
    sample: float = 0.02

    @cached_property
    def model(self) -> BendSwivelBalance:
        """The balance model."""
        return BendSwivelBalance(bend_swivel_robot())

    @cached_property
    def runs(self) -> dict[str, Run]:
        """Words of a scenario -> its run."""
        return {scenario.words: self._run(scenario) for scenario in self.scenarios}

    def _run(self, scenario: Scenario) -> Run:
        control = BendSwivelControl(self.model, scenario.bend, scenario.swivel)
        q = self.model.balanced(_start(scenario.bend), _start(scenario.swivel))
        pushes = [] if scenario.push is None else [scenario.push]
        options = {"integrator": RungeKutta4(self.step), "sample": self.sample, "pushes": pushes}
        return simulate(self.model.robot, control, until=scenario.duration, q=q, **options)

    @cached_property
    def _measure(self) -> Kernel:
        model = self.model

        def measure(robot: Robot, q: Array, v: Array, direction: Any) -> Array:
            state, R = model.state(q, v, direction), link_poses(robot, q)[0]
            c, up = model.center(q), model.up
            along = [c @ np.cross(axis, up) for axis in state.axes]
            n = state.axes[0]
            leg, trunk = R[1], R[2]
            vertical = leg.T @ up
            inertia = vertical @ model.equations(q, v).H[:3, :3] @ vertical
            spinning = self._axial("leg") * leg[2, 2] + self._axial("trunk") * trunk[2, 2]
            shown = [state.bend.q2, state.swivel.q2, *along, state.bend.L, state.swivel.L, state.momentum @ up]
            return np.stack([*shown, np.arctan2(n[1], n[0]), spinning / inertia])

        return compile_function(measure, model.robot, direction=())

    def _axial(self, name: str) -> float:
        """Return the moment of inertia of a link about its shaft, [kg m^2]."""
        return float(np.asarray(self.model.robot.link(name).inertia.tensor)[2, 2])

    def history(self, scenario: Scenario) -> History:
        """Return coordinates, momentum and azimuths over the run of a scenario.

        Args:
            scenario: The scenario.
        """
        run = self.runs[scenario.words]
        commanded = _value(scenario.swivel, run.times)
        rows = np.array([self._measure(q, v, u) for q, v, u in zip(run.q, run.v, commanded, strict=True)])
        bend, swivel, plane = rows[:, 0], np.unwrap(rows[:, 1]), np.unwrap(rows[:, 7])
        ratio = 0.5 * (rows[1:, 8] + rows[:-1, 8])
        predicted = plane[0] + np.concatenate([[0.0], np.cumsum(ratio * np.diff(swivel))])
        across = 2.0 * np.sin(bend / 2.0)
        return History(bend, swivel, across, rows[:, 2:4], rows[:, 4:7], plane, plane - swivel, predicted)

    def lag(self, scenario: Scenario, which: str) -> Array:
        """Return a command through the third-order lag that preview control predicts, (T,), [rad].

        T_c is that of the posture of the deepest crouch commanded.

        Args:
            scenario: The scenario. which: "bend" or "swivel".
        """
        command, times = getattr(scenario, which), self.runs[scenario.words].times
        if not isinstance(command, StepCommand):
            return np.full(len(times), float(command))
        deepest = np.max(scenario.bend.values) if isinstance(scenario.bend, StepCommand) else scenario.bend
        q = self.model.balanced(float(deepest))
        T = getattr(self.model.state(q, np.zeros(5)), which).time_constant

        def response(since: Array) -> Array:
            x = np.maximum(since, 0.0) / T
            return 1.0 - np.exp(-x) * (1.0 + x + 0.5 * x * x)

        return command.sum_of(times, response)

    def errors(self, scenario: Scenario) -> tuple[Array, Array]:
        """Return the deviations of bend and swivel from the predicted lag, (T,) each, [rad].

        That of the swivel is multiplied by 2 sin(theta / 2).

        Args:
            scenario: The scenario.
        """
        at = self.history(scenario)
        return at.bend - self.lag(scenario, "bend"), at.across * (at.swivel - self.lag(scenario, "swivel"))

    def table(self) -> Table:
        """Return the largest errors of all scenarios."""
        rows = []
        for scenario in self.scenarios:
            run, at = self.runs[scenario.words], self.history(scenario)
            bend, swivel = self.errors(scenario)
            largest = (f"{1e3 * np.abs(error).max():.3g}" for error in (bend, swivel))
            last = max(abs(bend[-1]), abs(swivel[-1]))
            turned = at.plane[-1] - at.plane[0], at.leg[-1] - at.leg[0], at.predicted[-1] - at.plane[-1]
            vertical = float(np.abs(at.momentum[:, 2]).max())
            numbers = f"{vertical:.0e}", f"{np.abs(run.tau[:, 3:]).max():.2f}"
            plane, leg = (f"{x:.2f}" for x in turned[:2])
            off = f"{1e3 * abs(turned[2]):.1g}" if vertical < _AT_REST else "-"
            rows.append((scenario.words, *largest, f"{1e3 * last:.1f}", *numbers, plane, leg, off))
        header = "scenario", "bend off lag [mrad]", "swivel off lag [mrad]", "last error [mrad]"
        others = "L_z [kg m^2/s]", "torque [N m]", "plane turned [rad]", "leg turned [rad]", "off closed form [mrad]"
        notes = (
            "Off lag: largest deviation from the third-order lag of the command over the whole run; swivel times "
            "2 sin(theta / 2).",
            "Plane and leg turned: about the vertical, in the world. Off closed form: of the plane, by the ratio of "
            "the inertias.",
        )
        return Table("Bending and swiveling", (*header, *others), tuple(rows), notes, left=1)

    def figure(self, scenario: Scenario) -> Figure:
        """Return the history of a run: bend, swivel, center of mass, momentum, azimuths, torques.

        Args:
            scenario: The scenario.
        """
        run, at = self.runs[scenario.words], self.history(scenario)
        made = pages.figure(6, 1, height=1.45, sharex=True)
        bend, swivel, center, momentum, azimuth, torque = made.axes
        t = run.times
        bent = at.across > _BENT
        for ax, which, coordinate in ((bend, "bend", at.bend), (swivel, "swivel", np.where(bent, at.swivel, np.nan))):
            ax.plot(t, _value(getattr(scenario, which), t), color="black", linewidth=1.0, label="command")
            ax.plot(t, self.lag(scenario, which), color=pages.GREY, linewidth=3.0, alpha=0.5, label="predicted lag")
            ax.plot(t, coordinate, color=pages.BLUE, label="robot")
        directions = ("in the bending plane", pages.BLUE), ("across it", pages.ORANGE)
        for k, (name, color) in enumerate(directions):
            center.plot(t, 1e3 * at.center[:, k], color=color, label=name)
            momentum.plot(t, at.momentum[:, k], color=color)
        momentum.plot(t, at.momentum[:, 2], color=pages.GREEN, linestyle="--", label="about the vertical")
        for values, color, name in ((at.plane, pages.BLUE, "bending plane"), (at.leg, pages.ORANGE, "leg")):
            azimuth.plot(t, np.where(bent, values, np.nan), color=color, label=name)
        azimuth.plot(t, np.where(bent, at.predicted, np.nan), color="black", linestyle=":", label="plane, closed form")
        for k, name in enumerate(("first axis", "second axis")):
            torque.plot(t, run.tau[:, 3 + k], color=(pages.BLUE, pages.ORANGE)[k], label=name)
        labels = "bend [rad]", "swivel [rad]", "center of mass\n[mm]", "L [kg m^2/s]", "azimuth [rad]", "torque [N m]"
        for ax, words in zip(made.axes, labels, strict=True):
            pages.label(ax, "", "", words)
            ax.margins(y=0.3)
            if ax is not swivel:
                ax.legend(fontsize=7, frameon=False, ncols=3, loc="upper right")
        bend.set_title(scenario.words, fontsize=10, loc="left")
        torque.set_xlabel("time [s]", fontsize=9)
        return made

    def pose_figure(self, scenario: Scenario, moments: Sequence[float]) -> Figure:
        """Return poses of a run side by side, with the paths of the trunk's upper end.

        Args:
            scenario: The scenario. moments: Times of the poses, [s].
        """
        run = self.runs[scenario.words]
        made = Figure(figsize=(2.3 * len(moments), 3.4), layout="constrained")
        for i, t in enumerate(moments):
            ax: Any = made.add_subplot(1, len(moments), i + 1, projection="3d")
            for points, color in _outlines(self.model.robot, run.q[run.at(t)]):
                ax.plot(*points.T, color=color, linewidth=1.6)
            ax.plot([0.0], [0.0], [0.0], color="black", marker="o", markersize=3)
            for end in ((0.45, 0.0), (0.0, 0.45)):
                ax.plot([0.0, end[0]], [0.0, end[1]], [0.0, 0.0], color=pages.GREY, linewidth=0.8)
            ax.set(xlim=(-0.4, 0.4), ylim=(-0.4, 0.4), zlim=(0.0, 1.1), xticks=[], yticks=[], zticks=[])
            ax.set_box_aspect((0.8, 0.8, 1.1), zoom=1.2)
            ax.set_axis_off()
            ax.view_init(18, -65)
            ax.set_title(f"{t:g} s", fontsize=10)
        return made

    def plant_figure(self) -> Figure:
        """Return velocity gains, time constants, and motion of the center of mass across the plane, over the bend."""
        bends = np.linspace(0.05, 2.6, 52)
        states = [self.model.state(self.model.balanced(bend, 0.6), np.zeros(5), 0.6) for bend in bends]
        made = pages.figure(1, 3, width=9.5, height=3.0)
        gain, time_constant, coupling = made.axes
        for name, color in (("bend", pages.BLUE), ("swivel", pages.ORANGE)):
            plants = [getattr(state, name) for state in states]
            gain.plot(bends, [1e3 * plant.gain for plant in plants], color=color, label=name)
            time_constant.plot(bends, [plant.time_constant for plant in plants], color=color)
        gain.legend(fontsize=8, frameon=False)
        cardan = universal_robot(self.model.robot)
        for robot, color, name in (
            (self.model.robot, pages.GREEN, "constant-velocity joint"),
            (cardan, pages.RED, "universal joint"),
        ):
            shares = [sideways_gain(robot, posture(self.model, robot, bend, 0.6)) for bend in bends]
            coupling.plot(bends, 100.0 * np.array(shares), color=color, label=name)
        coupling.legend(fontsize=8, frameon=False)
        pages.label(gain, "Velocity gains", "bend [rad]", "change of c' [mm/s per rad/s]")
        pages.label(time_constant, "Time constants of toppling", "bend [rad]", "T_c [s]")
        pages.label(coupling, "Motion of c across the plane", "bend [rad]", "in % of that along it")
        return made


def universal_robot(robot: Robot) -> Robot:
    """Return the robot of `bend_swivel_robot` with a universal joint in place of its constant-velocity joint."""
    ground, leg, trunk = (Link(link.name, link.inertia) for link in robot.links)
    support, hip = robot.connections
    builder = RobotBuilder("universal robot", ground, base=robot.base).add(support.joint, leg, to="ground")
    return builder.add(Universal("hip"), trunk, to="leg", at=hip.start.position).build()


def posture(model: BendSwivelBalance, robot: Robot, bend: float, direction: float) -> Array:
    """Return the balanced configuration of the model's robot, or of `universal_robot` with the same shafts, (6,).

    Args:
        model: The model. robot: The robot. bend, direction: theta and phi, [rad].
    """
    q = model.balanced(bend, direction)
    if robot is model.robot:
        return q
    along, across = np.sin(bend) * np.cos(direction), np.sin(bend) * np.sin(direction)
    return np.array([*q[:4], np.arctan2(along, np.cos(bend)), np.arcsin(across)])


def sideways_gain(robot: Robot, q: Array) -> float:
    """Return the velocity of the center of mass across the bending plane over that along it, while the trunk bends.

    The motors keep the trunk's shaft in the plane of both shafts.

    Args:
        robot: The robot. q: Balanced configuration, (6,).
    """
    R = link_poses(robot, q)[0]
    leg, trunk = R[1][:, 2], R[2][:, 2]
    n = np.cross(leg, trunk) / np.linalg.norm(np.cross(leg, trunk))
    moved = np.cross(point_jacobian(robot, q, "trunk")[:3, 3:].T, trunk)  # of the shaft's end, relative to the leg
    rates = np.linalg.solve(np.stack([moved @ np.cross(n, trunk), moved @ n]), [1.0, 0.0])
    action = np.concatenate([np.zeros(3), rates])
    gain = velocity_gains(robot, q, passive=["support"], action=action).linear[:, 0]
    return float(gain @ n / (gain @ np.cross(n, [0.0, 0.0, 1.0])))


def _value(command: Any, t: Array) -> Array:
    """Return a command at some times, (T,), [rad]."""
    return np.asarray(command(t)) if callable(command) else np.full(len(t), float(command))


def _start(command: float | StepCommand) -> float:
    """Return the initial value of a command, [rad]."""
    return command.start if isinstance(command, StepCommand) else command


def _outlines(robot: Robot, q: Array) -> list[tuple[Array, str]]:
    """Return (closed line (k, 3), [m], world axes; color) of leg and trunk as the flat faces of their shapes."""
    R, origins = link_poses(robot, q)
    outlines = []
    for name, color in (("leg", pages.ORANGE), ("trunk", pages.BLUE)):
        link = robot.link(name)
        box: Any = link.shapes[0]
        corners = np.array([(0.0, -1.0, -1.0), (0.0, 1.0, -1.0), (0.0, 1.0, 1.0), (0.0, -1.0, 1.0), (0.0, -1.0, -1.0)])
        points = np.asarray(box.center) + 0.5 * corners * box.size
        outlines.append((origins[link.index] + points @ R[link.index].T, color))
    return outlines


def write(study: BendSwivelStudy, folder: Path) -> list[Path]:
    """Write figures, and animations of the last scenario, and return the paths."""
    last = study.scenarios[-1]
    paths = [pages.save(study.plant_figure(), folder / "plants.png")]
    paths += [pages.save(study.figure(last), folder / "history.png")]
    paths += [pages.save(study.pose_figure(last, (0.0, 3.0, 5.5, last.duration)), folder / "poses.png")]
    return [
        *paths,
        *(animate(study.runs[last.words], folder / f"animation.{kind}", fps=15.0) for kind in ("gif", "html")),
    ]
