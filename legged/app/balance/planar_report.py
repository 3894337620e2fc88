"""Figures and animation of the comparison of controllers of planar balance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from legged.app import figures
from legged.app.balance.planar_study import (
    FALLEN,
    MOMENTUM,
    MOTION,
    NO_PREVIEW,
    OTHER,
    PREVIEW,
    REGULATOR,
    PlanarStudy,
    Scenario,
)
from legged.simulation import Run
from legged.simulation.plots import animate

STYLES: dict[str, dict[str, Any]] = {
    NO_PREVIEW: {"color": figures.ORANGE, "linestyle": "-"},
    PREVIEW: {"color": figures.BLUE, "linestyle": "-"},
    MOMENTUM: {"color": figures.GREEN, "linestyle": ":"},
    REGULATOR: {"color": figures.PURPLE, "linestyle": "-"},
}


def anticipation_figure(study: PlanarStudy, scenario: Scenario) -> Figure:
    """Return the response with and without preview: command and response, lean, momentum, its derivatives, torques."""
    made = figures.figure(6, 1, height=1.55, sharex=True)
    hip, lean, momentum, first, second, torque = made.axes
    shown = {name: study.runs[scenario.words, name] for name in (PREVIEW, NO_PREVIEW)}
    times = shown[PREVIEW].times
    hip.plot(times, scenario.command(times), color="black", linewidth=1.0, label="command")
    hip.plot(times, study.lag(scenario, times), color=figures.GREY, linewidth=3.0, alpha=0.5, label="predicted")
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
        figures.label(ax, "", "", words)
        for at in scenario.command.times:
            ax.axvline(at, color="black", linewidth=0.6, linestyle=":")
    hip.set_title(f"{scenario.words}: with preview the robot leans before the command", fontsize=10, loc="left")
    made.axes[-1].set_xlabel("time [s]", fontsize=9)
    made.axes[-1].set_xlim(scenario.command.times[0] - 1.5, scenario.command.times[-1] + 2.5)
    return figures.legend(made)


def comparison_figure(study: PlanarStudy) -> Figure:
    """Return the hip angle under each controller, one panel for each scenario."""
    made = figures.figure((len(study.scenarios) + 1) // 2, 2, width=9.0, height=2.3)
    for ax, scenario in zip(made.axes, study.scenarios, strict=False):
        times = np.linspace(0.0, study.duration, 600)
        ax.plot(times, scenario.command(times), color="black", linewidth=0.9, label="command")
        ax.plot(times, study.lag(scenario, times), color=figures.GREY, linewidth=3.0, alpha=0.5, label="predicted")
        for name in study.controllers:
            run = study.runs[scenario.words, name]
            ax.plot(run.times, run.joint(MOTION).position, linewidth=1.3, label=name, **STYLES[name])
            if run.ended:
                end = np.clip(run.joint(MOTION).position[-1], -0.93 * FALLEN, 0.93 * FALLEN)
                ax.plot(run.times[-1], end, "x", **STYLES[name])
        figures.label(ax, scenario.words, "time [s]", "hip [rad]")
        ax.set_ylim(-FALLEN, FALLEN)
    for ax in made.axes[len(study.scenarios) :]:
        ax.set_visible(False)
    return figures.legend(made, columns=6)


def write(study: PlanarStudy, folder: Path) -> list[Path]:
    """Write figures and the animation of the second scenario under the preview controller, and return the paths."""
    step, large = study.scenarios[:2]
    drawn = {
        "anticipation": anticipation_figure(study, step),
        "anticipation-large": anticipation_figure(study, large),
        "controllers": comparison_figure(study),
    }
    paths = [figures.save(figure, folder / f"{name}.png") for name, figure in drawn.items()]
    run: Run = study.runs[large.words, PREVIEW]
    return [*paths, *(animate(run, folder / f"animation.{kind}") for kind in ("gif", "html"))]
