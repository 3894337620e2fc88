"""The commands `legged train` and `legged play`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from legged.app.options import RobotName, output_file, output_folder, positive, print_path, stop
from legged.arguments import known_name
from legged.errors import ArgumentError

Command = tuple[float, float, float]


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
    from legged.learning.report import write_report
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
        print_path(path)


def play_command(
    policy: Annotated[Path, typer.Argument(help="An ONNX file, such as `legged train` writes.")],
    robot: RobotName,
    task: Annotated[
        str | None, typer.Option(help="Name of the task; by default that in the file, or velocity.")
    ] = None,
    command: Annotated[
        Command,
        typer.Option(
            help="Velocity forward and to the left in meters per second, and yaw rate in radians per second, "
            "such as 0.8 0 0.3."
        ),
    ] = (0.5, 0.0, 0.0),
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
            print_path(run.save_html(html))
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
