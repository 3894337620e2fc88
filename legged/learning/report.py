"""Report of a training: learning curves, tables of tracking errors and times, the policy as ONNX, and a replay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from legged.environments import make
from legged.errors import MissingError
from legged.learning.evaluation import survival, tracking
from legged.learning.export import write_onnx
from legged.simulation import Run
from legged.simulation.plots.pages import BLUE, Page, figure, label
from legged.table import Table

TOUR = ((0.5, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.4, 0.0), (0.0, 0.0, 1.0), (-0.5, 0.0, 0.0))
"""Commands that a replay of a trained policy performs in turn, ([m/s], [m/s], [rad/s])."""
_PART = 3.0  # [s] of each


def write_report(training: Any, folder: Path, name: str) -> list[Path]:
    """Write the policy of a `Training`, its curves, its tables and a replay; return the paths, first that of the page.

    Args:
        training: The training. folder: The folder. name: Name of the task.
    """
    learner, task = training.learner, training.task
    tables = [time_table(learner), _reward_table(training.curve)]
    follows = task.command is not None and task.command.size == 3
    if follows:
        tables.insert(0, tracking(task, learner.act, threads=training.threads).table())
        note = f"pushes of 0.5 m/s survived: {100.0 * survival(task, learner.act, threads=training.threads):.0f} %"
        print(tables[0].text(), note, sep="\n")
        tables[0] = replace(tables[0], notes=(*tables[0].notes, note))
    page = Page(folder, f"Training of {name} for {task.robot.name}", tables)
    page.figure(_curves(training.curve), "curves", "Means over the robots in each iteration.")
    policy = write_onnx(folder / "policy.onnx", learner, name)
    commands = TOUR if follows else (None,)
    run, replays = recorded(task, learner.act, commands, _PART if follows else 6.0), []
    try:
        replays.append(Path(run.save_html(folder / "replay.html")))
    except MissingError as error:  # a clone without the program of pages
        page.text(f"There is no replay: {error}")
    return [page.write("report.md"), policy, *replays, *page.figures]


def recorded(task: Any, act: Callable[[Any], Any], commands: Any, duration: float, seed: int = 5) -> Run:
    """Return the `Run` of a robot without variations and pushes that performs commands in turn.

    Args:
        task: The task. act: Function from observations, (N, k), to actions, (N, nj). commands: Commands in turn, (nc,)
            each, or None for that of the task. duration: Of each command, [s]. seed: Of the environment.
    """
    env = make(replace(task, disturbance=None, variations={}, episode=1e4), num_envs=1, threads=1)
    observed, _ = env.reset(seed=seed)
    states = [(env.q[0], env.v[0])]
    for command in commands:
        for _ in range(round(duration / task.period)):
            if command is not None:
                env.commands = command
            observed, _, terminated, truncated, _ = env.step(act(observed))
            states.append((env.q[0], env.v[0]))
            if terminated[0] or truncated[0]:
                break
    q, v = (np.array(x) for x in zip(*states, strict=True))
    return Run.from_motion(task.robot, task.period * np.arange(len(q)), q, v, ground=task.ground)


def time_table(learner: Any) -> Table:
    """Return the wall time of each part of a training, and its transitions per second."""
    total = sum(learner.seconds.values())
    rows = [(name, f"{x:.0f}", f"{100.0 * x / max(total, 1e-9):.0f} %") for name, x in learner.seconds.items()]
    rows.append(("all", f"{total:.0f}", "100 %"))
    note = f"{learner.transitions:.3g} transitions, {learner.transitions / max(total, 1e-9):.0f} per second"
    return Table("Wall time", ("part", "[s]", ""), tuple(rows), (note,))


def _reward_table(curve: list[dict[str, float]]) -> Table:
    last = curve[-10:]
    names = [name for name in last[-1] if name.startswith("reward.")]
    rows = tuple((name[7:], f"{np.mean([x[name] for x in last]):.4f}") for name in names)
    return Table(
        "Rewards per second in the last ten iterations, with the noise of the training", ("term", "mean"), rows
    )


def _curves(curve: list[dict[str, float]]) -> Figure:
    shown = ("return", "length", "falls", "deviation")
    made = figure(2, 2, height=2.4)
    for ax, name in zip(made.axes, shown, strict=True):
        points = [(x["transitions"], x[name]) for x in curve if name in x]
        if points:
            ax.plot(*np.array(points).T, color=BLUE, linewidth=1.2)
        label(ax, name, "transitions")
    return made
