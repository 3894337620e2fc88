"""Hops of a machine with one motor on rigid ground with different friction: figures of each hop, table and figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from controllers.balance.planar import HoppingControl, HopPlan, PlanarBalance
from controllers.balance.planar.hopping import BALANCE, FLIGHT, LAUNCH, PHASES
from legged.compiler import Kernel
from legged.compiler import compile as compile_function
from legged.contact.rigid import Rigid
from legged.dynamics.kinematics import center_of_mass, momentum
from legged.errors import SimulationError
from legged.robot.robot import Robot
from legged.simulation import Run, TimeStepping, simulate
from legged.simulation.plots import animate, pages
from legged.spatial import Array
from legged.table import Table
from robots.balancers import two_link_hopper

FRICTIONS = (0.8, 0.3, 0.2)


class Hop(NamedTuple):
    """Figures of a hop.

    Attributes:
        start: Time of take-off, [s]. flight: Time in the air, [s].
        velocity: Velocity of the center of mass at take-off, (3,), [m/s], world axes.
        momentum: Angular momentum about the center of mass in flight, [kg m^2/s].
        momentum_change: Largest change of it in flight, [kg m^2/s].
        deviation: Largest distance of the center of mass from the parabola, [m].
        clearance: Largest height of the foot, [m].
        distance: Horizontal displacement of the foot, until the robot has come to balance, [m].
        slip: Path of the foot on the ground from launch to balance, [m].
        error: Largest of lean and error of q2 at the end of the following balance, [rad]; infinite after a fall.
    """

    start: float
    flight: float
    velocity: Array
    momentum: float
    momentum_change: float
    deviation: float
    clearance: float
    distance: float
    slip: float
    error: float


@dataclass(frozen=True, eq=False)
class HopStudy:
    """Several hops in a row for each coefficient of friction.

    Attributes:
        frictions: Coefficients of friction. hops: Number of hops. plan: The motion of a hop.
        duration: Duration of the runs, [s]. step: Time step, [s]. sample: Time between samples, [s].
    """

    frictions: Sequence[float] = FRICTIONS
    hops: int = 3
    plan: HopPlan = field(default_factory=HopPlan)
    duration: float = 23.0
    step: float = 5e-4
    sample: float = 5e-3

    @cached_property
    def model(self) -> PlanarBalance:
        """The balance model."""
        return PlanarBalance(two_link_hopper(), {"hip": 1.0}, contact="foot")

    @cached_property
    def control(self) -> HoppingControl:
        """The controller."""
        return HoppingControl(self.model, self.plan, hops=self.hops)

    @cached_property
    def runs(self) -> dict[float, Run]:
        """Coefficient of friction -> its run; one that ended early is in it."""
        return {friction: self._run(friction) for friction in self.frictions}

    def _run(self, friction: float) -> Run:
        options = {"until": self.duration, "sample": self.sample, "integrator": TimeStepping(self.step)}
        try:
            return simulate(self.model.robot, self.control, ground=Rigid(friction=friction), **options)
        except SimulationError as error:
            assert isinstance(error.run, Run)
            return error.run

    def centers(self, run: Run) -> tuple[Array, Array]:
        """Return the positions of the center of mass, (T, 3), [m], and the momenta, (T, 6), as `legged.momentum`.

        Args:
            run: The run.
        """
        centers = [self._center(q, v) for q, v in zip(run.q, run.v, strict=True)]
        return np.array([c for c, _ in centers]), np.array([h for _, h in centers])

    @cached_property
    def _center(self) -> Kernel:
        def center(robot: Robot, q: Array, v: Array) -> tuple[Array, Array]:
            return center_of_mass(robot, q), momentum(robot, q, v)

        return compile_function(center, self.model.robot)

    def hops_of(self, run: Run) -> list[Hop]:
        """Return the figures of the hops of a run.

        Args:
            run: The run.
        """
        phases, contact = run.memory[:, 0], run.contact("foot")
        c, h = self.centers(run)
        foot, loaded = contact.position, contact.force[:, 2] > 0.0
        starts = [int(k) for k in np.flatnonzero((phases[1:] == FLIGHT) & (phases[:-1] == LAUNCH)) + 1]
        hops = []
        for start, following in zip(starts, [*starts[1:], len(run)], strict=True):
            landings = np.flatnonzero(phases[start:following] == BALANCE)
            landing = start + int(landings[0]) if len(landings) else following - 1
            launch = start - int(np.flatnonzero(phases[:start][::-1] != LAUNCH)[0])
            start += int(np.max(np.flatnonzero(loaded[start : landing - 1]) + 1, initial=0))  # the last contact
            air = np.arange(start, landing)[~loaded[start:landing]]
            crouches = np.flatnonzero(phases[landing:following] > BALANCE)
            last = landing + int(crouches[0]) - 1 if len(crouches) else following - 1
            since = (run.times[air] - run.times[start])[:, None]
            velocity = h[start, 3:] / self.model.mass
            parabola = c[start] + since * velocity + 0.5 * since**2 * self.model.robot.gravity
            steps = np.abs(np.diff(foot[launch : last + 1, 0])) * (loaded[launch:last] & loaded[launch + 1 : last + 1])
            fell = bool(run.ended) and following == len(run)
            hops.append(
                Hop(
                    start=float(run.times[start]),
                    flight=float(run.times[landing] - run.times[start]),
                    velocity=velocity,
                    momentum=float(h[start, 1]),
                    momentum_change=float(np.ptp(h[air, 1])),
                    deviation=float(np.abs(c[air] - parabola).max()),
                    clearance=float(foot[air, 2].max()),
                    distance=float(foot[last, 0] - foot[launch, 0]),
                    slip=float(steps.sum()),
                    error=np.inf if fell else self._error(run.q[last]),
                )
            )
        return hops

    def _error(self, q: Array) -> float:
        """Return the larger of lean and error of q2 at balance, [rad]."""
        center = self.model.center(q)
        return float(max(abs(center[0] / center[2]), abs(q[3] - self.plan.stance)))

    def table(self) -> Table:
        """Return the figures of all hops."""
        rows = []
        for friction, run in self.runs.items():
            for k, hop in enumerate(self.hops_of(run), 1):
                numbers = (
                    f"{hop.start:.2f}",
                    f"{1e3 * hop.flight:.0f}",
                    f"{hop.velocity[0]:.2f}, {hop.velocity[2]:.2f}",
                    f"{hop.momentum:.3f}",
                    f"{1e3 * hop.clearance:.0f}",
                )
                landed = np.isfinite(hop.error)
                cells = (f"{1e3 * x:.{d}f}" for x, d in ((hop.distance, 0), (hop.slip, 1), (hop.error, 2)))
                result = tuple(cells) if landed else (f"lost at {run.times[-1]:.2f} s", "-", "-")
                rows.append((f"{friction:g}", str(k), *numbers, *result))
        header = "friction", "hop", "take-off [s]", "flight [ms]", "velocity x, z [m/s]", "L [kg m^2/s]"
        ends = "foot height [mm]", "distance [mm]", "slip [mm]", "error [mrad]"
        notes = (
            "Velocity of the center of mass at take-off; L: angular momentum about it in flight.",
            "Slip: path of the foot on the ground from launch to balance. Error: of lean and hip in balance after it.",
            "Lost: the robot falls, or the torque of the balance controller diverges.",
        )
        return Table("Hops with one motor", (*header, *ends), tuple(rows), notes, left=1)

    def figure(self, friction: float) -> Figure:
        """Return the history of a run: hip, heights, momentum, ground force and torque.

        Args:
            friction: Coefficient of friction.
        """
        run = self.runs[friction]
        c, h = self.centers(run)
        made = pages.figure(5, 1, height=1.5, sharex=True)
        contact = run.contact("foot")
        t = run.times
        hip, height, angular, force, torque = made.axes
        n = run.at(t[-1] - 0.1) if run.ended else len(t)  # the torque diverges at the end of a fall
        hip.plot(t[:n], run.q[:n, 3], color=pages.BLUE)
        height.plot(t[:n], c[:n, 2], color=pages.BLUE, label="center of mass")
        height.plot(t[:n], contact.position[:n, 2], color=pages.ORANGE, label="foot")
        angular.plot(t[:n], h[:n, 1], color=pages.BLUE)
        force.plot(t[:n], contact.force[:n, 2], color=pages.BLUE)
        force.set_ylim(0.0, 8.0 * self.model.mass * 9.81)
        torque.plot(t[:n], run.tau[:n, 3], color=pages.BLUE)
        labels = "hip [rad]", "height [m]", "L about center of\nmass [kg m^2/s]", "normal force [N]", "torque [N m]"
        for ax, words in zip(made.axes, labels, strict=True):
            pages.label(ax, "", "", words)
            for hop in self.hops_of(run):
                ax.axvspan(hop.start, hop.start + hop.flight, color=pages.GREY, alpha=0.35, linewidth=0)
        height.legend(fontsize=8, frameon=False)
        hip.set_title(f"friction {friction:g}; in flight where grey", fontsize=10, loc="left")
        made.axes[-1].set_xlabel("time [s]", fontsize=9)
        return made

    def pose_figure(self, friction: float) -> Figure:
        """Return the poses of the first hop, from the crouch to balance.

        Args:
            friction: Coefficient of friction.
        """
        run = self.runs[friction]
        hop, made = self.hops_of(run)[0], pages.figure(1, 1, width=8.0, height=4.2)
        ax, phases = made.axes[0], run.memory[:, 0]
        colors = dict(zip(range(4), (pages.GREEN, pages.GREY, pages.ORANGE, pages.BLUE), strict=True))
        begin, end = hop.start - 0.4, hop.start + hop.flight + 1.6
        moments = [*np.arange(begin, hop.start + hop.flight, 0.045), *np.linspace(hop.start + hop.flight, end, 5)]
        for t in moments:
            k = min(run.at(t), len(run) - 1)
            x, z, leg, trunk = run.q[k, 1], run.q[k, 2], run.q[k, 0], run.q[k, 0] + run.q[k, 3]
            points = np.array(
                [
                    [x - 0.5 * np.sin(leg), z - 0.5 * np.cos(leg)],
                    [x, z],
                    [x + 0.6 * np.sin(trunk), z + 0.6 * np.cos(trunk)],
                ]
            )
            ax.plot(*points.T, color=colors[int(phases[k])], marker="o", markersize=3, linewidth=1.6)
        c = self.centers(run)[0]
        shown = (run.times >= begin) & (run.times <= end)
        ax.plot(c[shown, 0], c[shown, 2], color="black", linewidth=1.0, label="center of mass")
        for k, name in enumerate(PHASES):
            ax.plot([], [], color=colors[k], label=name)
        ax.axhline(0.0, color="black", linewidth=0.8)
        ax.set_aspect("equal")
        pages.label(ax, f"The first hop, friction {friction:g}", "x [m]", "z [m]")
        return pages.legend(made, columns=5)


def write(study: HopStudy, folder: Path) -> list[Path]:
    """Write figures, and animations of the run with the first coefficient of friction, and return the paths."""
    first = study.frictions[0]
    paths = [pages.save(study.pose_figure(first), folder / "poses.png")]
    paths += [pages.save(study.figure(mu), folder / f"history-{mu:g}.png") for mu in study.frictions]
    return [*paths, *(animate(study.runs[first], folder / f"animation.{kind}", fps=15.0) for kind in ("gif", "html"))]
