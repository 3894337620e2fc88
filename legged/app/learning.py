"""The commands `legged train` and `legged play`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from legged.app.options import RobotName, output_file, output_folder, positive, stop
from legged.arguments import known_name
from legged.errors import ArgumentError, MissingError

Command = tuple[float, float, float]
TOUR: tuple[Command, ...] = ((0.5, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.4, 0.0), (0.0, 0.0, 1.0), (-0.5, 0.0, 0.0))
"""Commands that a replay of a trained policy performs in turn, ([m/s], [m/s], [rad/s])."""
_PART = 3.0  # [s] of each


def train_command(
    task: Annotated[str, typer.Argument(help="Name of a task: a key of legged.environments.TASKS, such as velocity.")],
    robot: RobotName,
    minutes: Annotated[
        float | None, typer.Option(help="Duration, in minutes; 10 by default.", callback=positive)
    ] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="End after this number of transitions.")] = None,
    num_envs: Annotated[int, typer.Option(min=2, help="Number of robots.")] = 2048,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all random numbers.")] = 1,
    threads: Annotated[int | None, typer.Option(min=1, help="Number of threads.")] = None,
    hidden: Annotated[
        list[int] | None, typer.Option(min=1, help="Size of a hidden layer; may be repeated. By default 128 and 64.")
    ] = None,
    mirrored: Annotated[
        bool, typer.Option("--mirrored", help="Teach the policy reflected data too, for a robot that is symmetric.")
    ] = False,
    halving: Annotated[
        float | None,
        typer.Option(
            help="Number of transitions, dimensionless, in which the largest noise of actions halves.",
            callback=positive,
        ),
    ] = None,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Folder of checkpoint, log and report.", callback=output_folder, file_okay=False
        ),
    ] = Path("results/train"),
    resume: Annotated[
        Path | None, typer.Option(help="Go on from this checkpoint, with its seed and its number of robots.")
    ] = None,
) -> None:
    """Train a policy by proximal policy optimization, and report how it performs.

    The folder gets checkpoint.pt, the log of TensorBoard, policy.onnx, and report.md with the curves, tables of
    tracking errors, and a replay. A training that was interrupted goes on with --resume as if it had not been.
    """
    from legged.app.selection import select_robot
    from legged.environments import TASKS
    from legged.learning.ppo import Settings
    from legged.learning.training import Training, progress

    settings = Settings(hidden=tuple(hidden or Settings.hidden), mirrored=mirrored, halving=halving)
    made = TASKS[known_name("task", task, TASKS)](select_robot(robot))
    if minutes is None and steps is None:
        minutes = 10.0
    training = Training(made, output, num_envs=num_envs, settings=settings, seed=seed, threads=threads, resume=resume)
    try:
        with progress(training, minutes, steps) as report:
            training.run(minutes, steps, report)
    except KeyboardInterrupt:
        done = f"interrupted after {training.learner.transitions:.3g} transitions"
        stop(f"{done}; go on with --resume {output}/checkpoint.pt")
    for path in write_report(training, output, task):
        print(path)


def write_report(training: Any, folder: Path, name: str) -> list[Path]:
    """Write the policy of a `Training`, its curves, its tables and a replay; return the paths, first that of the page.

    Args:
        training: The training. folder: The folder. name: Name of the task.
    """
    from legged.app.figures import Page
    from legged.learning.export import write_onnx

    learner, task = training.learner, training.task
    tables = [time_table(learner), _reward_table(training.curve)]
    follows = task.command is not None and task.command.size == 3
    if follows:
        from legged.learning.evaluation import survival, tracking

        tables.insert(0, tracking(task, learner.act, threads=training.threads).table())
        part = survival(task, learner.act, threads=training.threads)
        print(tables[0].text(), f"pushes of 0.5 m/s survived: {100.0 * part:.0f} %", sep="\n")
        tables[0] = _with_note(tables[0], f"pushes of 0.5 m/s survived: {100.0 * part:.0f} %")
    page = Page(folder, f"Training of {name} for {task.robot.name}", tables)
    page.figure(_curves(training.curve), "curves", "Means over the robots in each iteration.")
    policy = write_onnx(folder / "policy.onnx", learner, name)
    commands = TOUR if follows else (None,)
    run, pages = recorded(task, learner.act, commands, _PART if follows else 6.0), []
    try:
        pages.append(Path(run.save_html(folder / "replay.html")))
    except MissingError as error:  # a clone without the program of pages
        page.text(f"There is no replay: {error}")
    return [page.write("report.md"), policy, *pages, *page.figures]


def recorded(task: Any, act: Callable[[Any], Any], commands: Any, duration: float, seed: int = 5) -> Any:
    """Return the `Run` of a robot without variations and pushes that performs commands in turn.

    Args:
        task: The task. act: Function from observations, (N, k), to actions, (N, nj). commands: Commands in turn, (nc,)
            each, or None for that of the task. duration: Of each command, [s]. seed: Of the environment.
    """
    from dataclasses import replace

    import legged
    from legged.environments import make

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
    return legged.Run.from_motion(task.robot, task.period * np.arange(len(q)), q, v, ground=task.ground)


def _with_note(table: Any, note: str) -> Any:
    from dataclasses import replace

    return replace(table, notes=(*table.notes, note))


def time_table(learner: Any) -> Any:
    from legged.table import Table

    total = sum(learner.seconds.values())
    rows = [(name, f"{x:.0f}", f"{100.0 * x / max(total, 1e-9):.0f} %") for name, x in learner.seconds.items()]
    rows.append(("all", f"{total:.0f}", "100 %"))
    note = f"{learner.transitions:.3g} transitions, {learner.transitions / max(total, 1e-9):.0f} per second"
    return Table("Wall time", ("part", "[s]", ""), tuple(rows), (note,))


def _reward_table(curve: list[dict[str, float]]) -> Any:
    from legged.table import Table

    last = curve[-10:]
    names = [name for name in last[-1] if name.startswith("reward.")]
    rows = tuple((name[7:], f"{np.mean([x[name] for x in last]):.4f}") for name in names)
    return Table(
        "Rewards per second in the last ten iterations, with the noise of the training", ("term", "mean"), rows
    )


def _curves(curve: list[dict[str, float]]) -> Any:
    from legged.app.figures import BLUE, figure, label

    shown = ("return", "length", "falls", "deviation")
    made = figure(2, 2, height=2.4)
    for ax, name in zip(made.axes, shown, strict=True):
        points = [(x["transitions"], x[name]) for x in curve if name in x]
        if points:
            ax.plot(*np.array(points).T, color=BLUE, linewidth=1.2)
        label(ax, name, "transitions")
    return made


def play_command(
    policy: Annotated[Path, typer.Argument(help="An ONNX file, such as `legged train` writes.")],
    robot: RobotName,
    task: Annotated[
        str | None, typer.Option(help="Name of the task; by default that in the file, or velocity.")
    ] = None,
    command: Annotated[Command, typer.Option(help="Velocity forward and to the left, and yaw rate.")] = (0.5, 0.0, 0.0),
    duration: Annotated[
        float | None, typer.Option(help="Simulate this time without the viewer, in seconds.", callback=positive)
    ] = None,
    html: Annotated[
        Path | None, typer.Option(help="Page for the replay of --duration.", callback=output_file, dir_okay=False)
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the page.")] = 8080,
) -> None:
    """Let a robot perform a policy, in the browser with sliders for the command, or for --duration without it."""
    import controllers
    import legged
    from legged.app.selection import select_robot
    from legged.environments import TASKS
    from legged.learning.export import onnx_metadata

    chosen = select_robot(robot)
    name = task or onnx_metadata(policy).get("task") or "velocity"
    made = TASKS[known_name("task", name, TASKS)](chosen)
    if html is not None and duration is None:
        raise typer.BadParameter("a page needs --duration", param_hint="--html")
    commanded = made.command_size == 3
    law = controllers.Policy(controllers.Network.of_onnx(policy), made, command if commanded else None)
    steps = legged.TimeStepping(made.time_step)
    if duration is not None:
        run = legged.simulate(chosen, law, ground=made.ground, until=duration, integrator=steps)
        print(run)
        if html is not None:
            print(run.save_html(html))
        if run.ended:
            stop(run.ended)
        return
    q, v = law.initial_state(chosen)
    sim = legged.Simulation(chosen, law, ground=made.ground, q=q, v=v, integrator=steps)
    bounds = {"forward [m/s]": 1.0, "left [m/s]": 0.5, "yaw rate [rad/s]": 1.0}
    if made.command_size not in (0, 3):
        raise ArgumentError(
            f"the viewer has no sliders for the {made.command_size} commands of {name!r}: add --duration"
        )
    sliders = {label: (-x, x, c) for (label, x), c in zip(bounds.items(), command, strict=True)} if commanded else None
    legged.view(sim, port=port, wait=True, commands=sliders)
