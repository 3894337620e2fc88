"""Comparison of controllers of planar balance: a triple pendulum follows commands under disturbances.

The robot is three rods on a pivot without a motor. The first joint with a motor does the balancing motion, the second
one keeps its angle or swings. Figures and an animation show the runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from controllers import (
    AngularMomentumControl,
    LinearQuadraticBalance,
    PartialLinearizationBalance,
    PlanarBalance,
    PlanarBalanceControl,
    SmoothCommand,
    StepCommand,
    UnactuatedMomentumBalance,
)
from legged import taylor
from legged.compiler import compile as compile_function
from legged.compiler import where
from legged.errors import SimulationError
from legged.robot.base import FixedBase
from legged.robot.construction.builder import RobotBuilder
from legged.robot.inertia import point_mass, rod_inertia
from legged.robot.joint import Revolute
from legged.robot.link import Link
from legged.robot.robot import Robot
from legged.simulation import Run, RungeKutta4, simulate
from legged.simulation.loop.external_wrenches import Push
from legged.simulation.plots import animate, pages
from legged.spatial import Array
from legged.table import Table

LENGTHS, MASSES = (0.5, 0.4, 0.3), (0.5, 0.5, 0.5)  # [m], [kg]
MOTION, OTHER = "hip", "neck"  # joints of the balancing motion and of the other motion
NO_PREVIEW, PREVIEW, MOMENTUM, REGULATOR = "four-term", "preview", "angular momentum", "LQR"
LITERATURE: dict[str, Any] = {
    REGULATOR: LinearQuadraticBalance,
    "partial linearization": PartialLinearizationBalance,
    "unactuated momentum": UnactuatedMomentumBalance,
}
"""Existing controllers, with which those of Featherstone and Azad are compared."""
CONTROLLERS = (NO_PREVIEW, PREVIEW, MOMENTUM, *LITERATURE)
SETTLED = 0.02  # [rad], error of a controller that has settled
PUSHED = 5.0  # [s], time of the push
FALLEN = 1.3  # [rad], lean of the lowest rod of a robot that has fallen


def triple_pendulum(lengths: Sequence[float] | Array = LENGTHS, masses: Sequence[float] | Array = MASSES) -> Robot:
    """Return three rods on a pivot without a motor, one above the other at q = 0; joints pivot, hip and neck.

    Args:
        lengths: Lengths of the rods along z, link axes, from below, (3,), [m]. masses: Their masses, (3,), [kg].
    """
    builder = RobotBuilder("triple pendulum", Link("ground", point_mass(1.0)), base=FixedBase())
    parent, height = "ground", 0.0
    names = ("pivot", MOTION, OTHER), ("leg", "trunk", "head")
    for joint, link, length, mass in zip(*names, lengths, masses, strict=True):
        rod = Link(link, rod_inertia(mass, (0.0, 0.0, 0.0), (0.0, 0.0, length)))
        builder.add(Revolute(joint, "y"), rod, to=parent, at=(0.0, 0.0, height))
        parent, height = link, length
    return builder.build()


@dataclass(frozen=True)
class SensorNoise:
    """A sum of sinusoids with random phases on every position and velocity: band-limited white noise.

    Attributes:
        angle: Standard deviation of angles, [rad]. rate: Of velocities, [rad/s].
        lowest, highest: Band, [Hz]. number: Number of sinusoids. seed: Seed of the phases.
    """

    angle: float = 1e-3
    rate: float = 2e-2
    lowest: float = 0.5
    highest: float = 200.0
    number: int = 40
    seed: int = 0

    def on(self, t: Any, q: Array, v: Array) -> tuple[Array, Array]:
        """Return (q, v) with noise, (nq,) and (nv,); the function can be traced.

        Args:
            t: Time, [s]. q: Configuration, (nq,). v: Velocity, (nv,).
        """
        rng = np.random.default_rng(self.seed)
        edges = np.linspace(self.lowest, self.highest, self.number + 1)
        shape = len(q) + len(v), self.number
        w, phases = 2.0 * np.pi * rng.uniform(edges[:-1], edges[1:], shape), rng.uniform(0.0, 2.0 * np.pi, shape)
        noise = np.sqrt(2.0 / self.number) * np.sin(w * t + phases).sum(axis=1)
        return q + self.angle * noise[: len(q)], v + self.rate * noise[len(q) :]


@dataclass(frozen=True, eq=False)
class NoisyControl:
    """A controller that reads noisy sensors.

    Attributes:
        control: The controller. noise: Noise of the sensors.
    """

    control: Any
    noise: SensorNoise

    def __call__(self, t: Any, q: Array, v: Array, wrenches: Array | None = None) -> Array:
        """Return the generalized forces, (nv,), [N m] or [N].

        Args:
            t: Time, [s]. q: Configuration, (nq,). v: Velocity, (nv,). wrenches: Not used.
        """
        return self.control(t, *self.noise.on(t, q, v))


def swing(t: Any) -> tuple[Any, Any, Any]:
    """Return position, velocity and acceleration of the other motion, [rad], [rad/s], [rad/s^2].

    0.4 rad at 5 rad/s, from t = 1 s on with an amplitude that grows smoothly.

    Args:
        t: Time, [s].
    """
    since = taylor.time(t) - 1.0
    growth = where(since > 0.0, 1.0 - np.exp(-(np.abs(since) ** 3)), 0.0 * since)
    return taylor.derivatives(0.4 * growth * np.sin(5.0 * since))


STEP = StepCommand((2.0,), (0.4,))
LARGE = StepCommand((2.0, 3.5, 5.0), (0.9, -0.9, 0.0))


@dataclass(frozen=True)
class Scenario:
    """A test case of the comparison: command, disturbances and errors, the same for all controllers.

    Attributes:
        words: Description. command: Steps of the hip.
        limit: Largest torque, [N m]. noise: Sensor noise, or none.
        excess: Relative error of the masses of trunk and head in the controller's model.
        swinging: Whether the neck swings.
        push: Horizontal impulse on the trunk's lower end at `PUSHED`, [N s].
    """

    words: str
    command: StepCommand = STEP
    limit: float = np.inf
    noise: SensorNoise | None = None
    excess: float = 0.0
    swinging: bool = False
    push: float = 0.0


SCENARIOS = (
    Scenario("step of 0.4 rad"),
    Scenario("large fast steps", LARGE),
    Scenario("large, torques up to 2.02 N m", LARGE, limit=2.02),
    Scenario("sensor noise", noise=SensorNoise()),
    Scenario("masses 10 % wrong", excess=0.1),
    Scenario("the neck swings", swinging=True),
    Scenario("push of 0.05 N s", push=0.05),
)


class Merit(NamedTuple):
    """Figures of merit of a run.

    Attributes:
        settling: Time after the last step, or the push, from which the error stays below `SETTLED`, [s]; infinite for
            a run in which it does not.
        overshoot: Largest excursion beyond the range of the commands, in either direction, [rad].
        lag_error: Largest difference from the predicted third-order lag, [rad].
        final: Mean absolute error of the last second, [rad].
        torque: Largest torque, [N m].
        ended: Why the run ended early.
    """

    settling: float
    overshoot: float
    lag_error: float
    final: float
    torque: float
    ended: str


@dataclass(frozen=True, eq=False)
class PlanarStudy:
    """All controllers in all scenarios.

    Attributes:
        scenarios: The scenarios. controllers: Names, of `CONTROLLERS`. duration: Duration of the runs, [s].
    """

    scenarios: Sequence[Scenario] = SCENARIOS
    controllers: Sequence[str] = CONTROLLERS
    duration: float = 9.0

    @cached_property
    def model(self) -> PlanarBalance:
        """The balance model."""
        return PlanarBalance(triple_pendulum(), {MOTION: 1.0})

    @cached_property
    def time_constant(self) -> float:
        """T_c of the upright posture, [s]."""
        return float(self.model.state(np.zeros(3), np.zeros(3)).time_constant)

    @cached_property
    def state(self) -> Any:
        """The compiled function (q, v) -> `PlanarState`."""
        return compile_function(lambda robot, q, v: self.model.state(q, v), self.model.robot)

    @cached_property
    def toppling_moment(self) -> float:
        """m g c_z of the upright posture, [N m]: L' per rad of lean."""
        return float(self.model.weight * self.model.center(np.zeros(3))[2])

    def controller(self, name: str, scenario: Scenario) -> Any:
        """Return a controller in a scenario.

        Args:
            name: One of `CONTROLLERS`. scenario: The scenario.
        """
        wrong = [mass * (1.0 + scenario.excess * (k > 0)) for k, mass in enumerate(MASSES)]
        given = {
            "others": {OTHER: swing} if scenario.swinging else {},
            "limit": scenario.limit,
            "nominal": PlanarBalance(triple_pendulum(masses=wrong), {MOTION: 1.0}) if scenario.excess else None,
        }
        if name == MOMENTUM:
            command = SmoothCommand(scenario.command, self.time_constant)
            control: Any = AngularMomentumControl(self.model, command, **given)
        elif name in LITERATURE:
            control = LITERATURE[name](self.model, scenario.command, **given)
        else:
            control = PlanarBalanceControl(self.model, scenario.command, preview=name == PREVIEW, **given)
        return NoisyControl(control, scenario.noise) if scenario.noise else control

    @cached_property
    def runs(self) -> dict[tuple[str, str], Run]:
        """The run of each (scenario's words, name of the controller); one that ended early is in it."""
        return {(s.words, name): self._run(name, s) for s in self.scenarios for name in self.controllers}

    def _run(self, name: str, scenario: Scenario) -> Run:
        def fallen(t: float, q: Array, v: Array) -> str:
            return "fell" if abs(q[0]) > FALLEN else ""

        try:
            return simulate(
                self.model.robot,
                self.controller(name, scenario),
                until=self.duration,
                integrator=RungeKutta4(step=1e-3),
                fall=fallen,
                pushes=[Push("trunk", (scenario.push, 0.0, 0.0), PUSHED)] if scenario.push else [],
            )
        except SimulationError as error:
            assert isinstance(error.run, Run)
            return error.run

    def lag(self, scenario: Scenario, times: Array) -> Array:
        """Return the predicted response, the third-order lag of the command, (T,), [rad].

        Args:
            scenario: The scenario. times: Times, (T,), [s].
        """
        return SmoothCommand(scenario.command, self.time_constant)(times)

    def merit(self, scenario: Scenario, run: Run) -> Merit:
        """Return the figures of merit of a run.

        Args:
            scenario: The scenario. run: Its run.
        """
        command, q2 = scenario.command, run.joint(MOTION).position
        after = run.times - (PUSHED if scenario.push else command.times[-1])
        off = np.flatnonzero((np.abs(q2 - command.values[-1]) > SETTLED) & (after > 0.0))
        settled = not run.ended and (not len(off) or off[-1] + 1 < len(run))
        late = run.times > self.duration - 1.0
        values = (command.start, *command.values)
        return Merit(
            settling=float(after[off[-1] + 1] if len(off) else 0.0) if settled else np.inf,
            overshoot=max(q2.max() - max(values), min(values) - q2.min(), 0.0),
            lag_error=float(np.abs(q2 - self.lag(scenario, run.times)).max()),
            final=float(np.abs(q2 - command.values[-1])[late].mean()) if np.any(late) else np.inf,
            torque=float(np.abs(run.tau).max()),
            ended=run.ended,
        )

    def table(self) -> Table:
        """Return the figures of merit of all runs."""
        rows = []
        for scenario in self.scenarios:
            for name in self.controllers:
                run = self.runs[scenario.words, name]
                merit = self.merit(scenario, run)
                if run.ended:
                    cells = (f"falls at {run.times[-1]:.2f} s", "-", "-", "-", "-")
                else:
                    settling = f"{merit.settling:.2f}" if np.isfinite(merit.settling) else "-"
                    numbers = merit.overshoot, merit.lag_error, merit.final
                    cells = (settling, *(f"{1e3 * x:.1f}" for x in numbers), f"{merit.torque:.2f}")
                rows.append((scenario.words, name, *cells))
        header = "scenario", "controller", "settles [s]", "overshoot [mrad]", "off the lag [mrad]", "final error [mrad]"
        T = self.time_constant
        notes = (
            f"T_c = {T:.4f} s; four-term and preview: poles at 1/T_c; predicted response: 1 / (1 + T_c s)^3.",
            f"Settled: error below {1e3 * SETTLED:.0f} mrad. Overshoot: beyond the range of the commands, either way.",
            "2.02 N m are 2 % more than the posture at 0.9 rad takes. Push: on the trunk's lower end, at 5 s.",
            "Angular momentum: the steps pass that lag first. The last three have no preview.",
        )
        return Table("Controllers of planar balance", (*header, "torque [N m]"), tuple(rows), notes, left=2)


STYLES: dict[str, dict[str, Any]] = {
    NO_PREVIEW: {"color": pages.ORANGE, "linestyle": "-"},
    PREVIEW: {"color": pages.BLUE, "linestyle": "-"},
    MOMENTUM: {"color": pages.GREEN, "linestyle": ":"},
    **dict(zip(LITERATURE, ({"color": c} for c in (pages.PURPLE, pages.RED, pages.GREY)), strict=True)),
}


def anticipation_figure(study: PlanarStudy, scenario: Scenario) -> Figure:
    """Return the response with and without preview: command and response, lean, momentum, its derivatives, torques."""
    made = pages.figure(6, 1, height=1.55, sharex=True)
    hip, lean, momentum, first, second, torque = made.axes
    shown = {name: study.runs[scenario.words, name] for name in (PREVIEW, NO_PREVIEW)}
    times = shown[PREVIEW].times
    hip.plot(times, scenario.command(times), color="black", linewidth=1.0, label="command")
    hip.plot(times, study.lag(scenario, times), color=pages.GREY, linewidth=3.0, alpha=0.5, label="predicted")
    for name, run in shown.items():
        style = {**STYLES[name], "linewidth": 1.4}
        states = [study.state(q, v) for q, v in zip(run.q, run.v, strict=True)]
        hip.plot(run.times, run.joint(MOTION).position, label="with preview" if name == PREVIEW else "without", **style)
        lean.plot(run.times, [1e3 * state.L1 / study.toppling_moment for state in states], **style)
        momentum.plot(run.times, [state.L for state in states], **style)
        first.plot(run.times, [state.L1 for state in states], **style)
        second.plot(run.times, [state.L2 for state in states], **style)
        torque.plot(run.times, run.joint(MOTION).torque, **style)
        torque.plot(run.times, run.joint(OTHER).torque, **{**style, "linestyle": "--"})
    labels = (
        "hip [rad]",
        "center of mass:\nlean [mrad]",
        "L [kg m^2/s]",
        "L' [N m]",
        "L'' [N m/s]",
        "torques [N m]\nhip; neck dashed",
    )
    for ax, words in zip(made.axes, labels, strict=True):
        pages.label(ax, "", "", words)
        for at in scenario.command.times:
            ax.axvline(at, color="black", linewidth=0.6, linestyle=":")
    hip.set_title(f"{scenario.words}: with preview the robot leans before the command", fontsize=10, loc="left")
    made.axes[-1].set_xlabel("time [s]", fontsize=9)
    made.axes[-1].set_xlim(scenario.command.times[0] - 1.5, scenario.command.times[-1] + 2.5)
    return pages.legend(made)


def comparison_figure(study: PlanarStudy) -> Figure:
    """Return the hip angle under each controller, one panel for each scenario."""
    made = pages.figure((len(study.scenarios) + 1) // 2, 2, width=9.0, height=2.3)
    for ax, scenario in zip(made.axes, study.scenarios, strict=False):
        times = np.linspace(0.0, study.duration, 600)
        ax.plot(times, scenario.command(times), color="black", linewidth=0.9, label="command")
        ax.plot(times, study.lag(scenario, times), color=pages.GREY, linewidth=3.0, alpha=0.5, label="predicted")
        for name in study.controllers:
            run = study.runs[scenario.words, name]
            ax.plot(run.times, run.joint(MOTION).position, linewidth=1.3, label=name, **STYLES[name])
            if run.ended:
                end = np.clip(run.joint(MOTION).position[-1], -0.93 * FALLEN, 0.93 * FALLEN)
                ax.plot(run.times[-1], end, "x", **STYLES[name])
        pages.label(ax, scenario.words, "time [s]", "hip [rad]")
        ax.set_ylim(-FALLEN, FALLEN)
    for ax in made.axes[len(study.scenarios) :]:
        ax.set_visible(False)
    return pages.legend(made, columns=6)


def write(study: PlanarStudy, folder: Path) -> list[Path]:
    """Write figures and the animation of the second scenario under the preview controller, and return the paths."""
    step, large = study.scenarios[:2]
    drawn = {
        "anticipation": anticipation_figure(study, step),
        "anticipation-large": anticipation_figure(study, large),
        "controllers": comparison_figure(study),
    }
    paths = [pages.save(figure, folder / f"{name}.png") for name, figure in drawn.items()]
    run: Run = study.runs[large.words, PREVIEW]
    return [*paths, *(animate(run, folder / f"animation.{kind}") for kind in ("gif", "html"))]
