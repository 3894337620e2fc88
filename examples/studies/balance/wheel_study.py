"""A pole on a pivot balanced by a reaction wheel and by a gyroscope, after pushes: figures of merit and a figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from controllers import GyroscopicBalance, PlanarBalance, PlanarBalanceControl
from legged.errors import SimulationError
from legged.robot.robot import Robot
from legged.simulation import Run, RungeKutta4, simulate
from legged.simulation.loop.external_wrenches import Push
from legged.simulation.plots import pages
from legged.spatial import Array
from legged.table import Table
from robots.balancers import gyroscopic_pendulum, reaction_wheel_pendulum

WHEEL, GYROSCOPE = "reaction wheel", "gyroscope"
PUSHED = 0.5  # [s], time of the push
FALLEN = 1.3  # [rad], lean of a pole that has fallen
STRONGEST = 1.0  # [N m], largest torque of the gimbal
SETTLED = 1e-3  # [rad], lean of a pole that has settled


class Device(NamedTuple):
    """A pole with an actuator: robot, controller, initial velocity, (nv,), [rad/s], and number of the motor's joint."""

    robot: Robot
    controller: Any
    v: Array
    motor: int


@dataclass(frozen=True, eq=False)
class WheelStudy:
    """Pushes on the upper end of the pole.

    Attributes:
        pushes: Impulses, [N s]. spin: Initial speed of the gyroscope's wheel, [rad/s]. duration: Of the runs, [s].
    """

    pushes: Sequence[float] = (0.05, 0.1, 0.2, 0.4)
    spin: float = 600.0
    duration: float = 5.0

    @cached_property
    def devices(self) -> dict[str, Device]:
        """The pole with each actuator; both wheels have the same size."""
        wheel, gyroscope = reaction_wheel_pendulum(), gyroscopic_pendulum()
        four_term = PlanarBalanceControl(PlanarBalance(wheel, {"wheel": 1.0}))
        return {
            WHEEL: Device(wheel, four_term, np.zeros(2), 1),
            GYROSCOPE: Device(
                gyroscope, GyroscopicBalance(gyroscope, limit=STRONGEST), np.array([0.0, 0.0, self.spin]), 1
            ),
        }

    @cached_property
    def runs(self) -> dict[tuple[str, float], Run]:
        """(Name of the actuator, impulse) -> run; one that ended early is in it."""
        return {(name, size): self._run(device, size) for name, device in self.devices.items() for size in self.pushes}

    def _run(self, device: Device, size: float) -> Run:
        def fallen(t: float, q: Array, v: Array) -> str:
            return "fell" if abs(q[0]) > FALLEN else ""

        push = Push("pole", (size, 0.0, 0.0), PUSHED, point=(0.0, 0.0, 0.5))
        options = {"integrator": RungeKutta4(step=1e-3), "sample": 5e-3, "fall": fallen, "pushes": [push]}
        try:
            return simulate(device.robot, device.controller, until=self.duration, v=device.v, **options)
        except SimulationError as error:
            assert isinstance(error.run, Run)
            return error.run

    def table(self) -> Table:
        """Return lean, settling time, torque, power and motion of the motor for each push and actuator."""
        rows = []
        for size in self.pushes:
            for name, device in self.devices.items():
                run = self.runs[name, size]
                off = np.flatnonzero(np.abs(run.q[:, 0]) > SETTLED)
                turned, speed = run.q[:, device.motor], run.v[:, device.motor]
                torque = run.tau[:, device.motor]
                cells = (
                    f"{1e3 * np.abs(run.q[:, 0]).max():.1f}",
                    f"{run.times[off[-1]] - PUSHED:.2f}",
                    f"{np.abs(torque).max():.3f}",
                    f"{np.abs(torque * speed).max():.2f}",
                    f"{np.abs(turned).max():.2f}",
                    f"{np.abs(speed).max():.1f}",
                )
                shown = (f"falls at {run.times[-1]:.2f} s", *["-"] * 5) if run.ended else cells
                rows.append((f"{size:g}", name, *shown))
        header = "push [N s]", "actuator", "lean [mrad]", "settles [s]", "torque [N m]", "power [W]"
        notes = (
            "Torque, power, angle and speed of the motor: of the reaction wheel, and of the gyroscope's gimbal.",
            f"Settled: the lean stays below {1e3 * SETTLED:g} mrad. All poles at -1 / T_c.",
        )
        title = "A pole balanced by a reaction wheel and by a gyroscope"
        return Table(title, (*header, "angle [rad]", "speed [rad/s]"), tuple(rows), notes, left=2)

    def figure(self, size: float) -> Figure:
        """Return the history after a push: lean, angle and torque of the motor.

        Args:
            size: The impulse, [N s].
        """
        made = pages.figure(3, 1, height=1.6, sharex=True)
        for (name, device), color in zip(self.devices.items(), (pages.ORANGE, pages.BLUE), strict=True):
            run = self.runs[name, size]
            values = 1e3 * run.q[:, 0], run.q[:, device.motor], run.tau[:, device.motor]
            for ax, value in zip(made.axes, values, strict=True):
                ax.plot(run.times, value, color=color, linewidth=1.3, label=name)
        for ax, words in zip(made.axes, ("lean [mrad]", "wheel, gimbal [rad]", "torque [N m]"), strict=True):
            pages.label(ax, "", "", words)
        made.axes[0].set_title(f"push of {size:g} N s", fontsize=10, loc="left")
        made.axes[-1].set_xlabel("time [s]", fontsize=9)
        return pages.legend(made)


def write(study: WheelStudy, folder: Path) -> list[Path]:
    """Write a figure for each push, and return the paths."""
    return [pages.save(study.figure(size), folder / f"push-{size:g}.png") for size in study.pushes]
