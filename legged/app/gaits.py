"""The commands that simulate a robot on a gait: `legged walk`, `trot`, `crawl`, `tripod` and `stand`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from legged.app.options import (
    ControllerName,
    Duration,
    GroundName,
    Output,
    TerrainName,
    WalkerName,
    positive,
    print_written,
    show,
    stop,
)
from legged.errors import SimulationInterrupt


def add_gait_commands(command: Callable[..., Any]) -> None:
    """Add the commands to the command line.

    Args:
        command: Function of an example and of the options of Typer that returns a decorator.
    """
    for name, gait, usual, words in (
        ("walk", "Walk", "planar_biped", "Let a robot walk on two legs in turn (the paper's Figures 11 to 14)."),
        ("trot", "Trot", "spatial_quadruped", "Let a robot trot, diagonal legs in turn (the paper's Figures 16, 17)."),
        ("crawl", "Crawl", "spatial_quadruped", "Let a robot crawl, one leg at a time."),
        ("tripod", "Tripod", "hexapod", "Let a robot run on two tripods in turn."),
        ("stand", "Stand", "humanoid", "Let a robot stand."),
    ):
        _add_gait_command(command, name, gait, usual, words)


def _add_gait_command(command: Callable[..., Any], name: str, gait: str, usual: str, words: str) -> None:
    """Add a command that simulates a robot on a gait."""

    @command(f"legged {name} {usual} --duration 2 --output results/{name}", name=name, help=words)
    def simulate_gait(
        robot: WalkerName = usual,
        controller: ControllerName = None,
        duration: Duration = 4.0,
        ground: GroundName = None,
        terrain: TerrainName = "flat",
        size: Annotated[
            tuple[float, float] | None,
            typer.Option(help="Of a height map: width along x and height of white above black, in meters."),
        ] = None,
        period: Annotated[float | None, typer.Option(help="Duration of a step, in seconds.", callback=positive)] = None,
        stride: Annotated[float | None, typer.Option(help="Advance of the base in a step, in meters.")] = None,
        clearance: Annotated[float | None, typer.Option(help="Height of swinging feet, in meters.")] = None,
        hip_height: Annotated[
            float | None, typer.Option(help="Height of the hips, in meters.", callback=positive)
        ] = None,
        velocity: Annotated[
            tuple[float, float, float] | None,
            typer.Option(
                help="Walk by predictive and whole-body control on rigid ground: velocity forward and to the left in "
                "meters per second, and yaw rate in radians per second, such as 0.8 0 0.3."
            ),
        ] = None,
        schedule: Annotated[
            str | None,
            typer.Option(
                "--gait", help="With --velocity: trot, walk, crawl, pace, bound, gallop, pronk, tripod or stand."
            ),
        ] = None,
        drive: Annotated[
            bool,
            typer.Option("--drive", help="Drive the walking robot in the browser by keys, a gamepad or clicks."),
        ] = False,
        output: Output = None,
        view: Annotated[bool, typer.Option("--view", help="Show the run in the browser until Ctrl-C.")] = False,
    ) -> None:
        from legged.app import scenario, selection

        sizes = {"period": period, "stride": stride, "clearance": clearance, "hip_height": hip_height}
        others = {**sizes, "controller": controller, "ground": ground}
        if drive:
            _refuse({**others, "velocity": velocity}, "--drive")
        elif velocity is not None:
            _refuse(others, "--velocity")
        elif schedule is not None:
            raise typer.BadParameter("needs --velocity", param_hint="--gait")
        chosen, surface = selection.select_robot(robot), selection.parse_terrain(terrain, size)
        if drive:
            scenario.drive(chosen, schedule or name, surface, output or Path("drives"))
            return
        if velocity is not None:
            walk = partial(scenario.locomotion, chosen, schedule or name, velocity, surface, duration)
            _finish(walk, None, velocity, output, view)
            return
        law = controller or selection.default_controller(chosen, gait)
        floor = selection.select_ground(ground or selection.default_ground(chosen, gait), chosen, surface)
        plan = selection.select_gait(gait, chosen, law, **sizes)
        started = selection.select_controller(law, plan)
        scenario.check_start(chosen, started, floor)
        show(scenario.gait_table(plan, started).text(), str(floor))
        _finish(partial(scenario.on_gait, chosen, plan, law, floor, duration), plan, None, output, view)


def _refuse(others: dict[str, Any], option: str) -> None:
    """Raise a usage error if other options are given that do not go with an option."""
    unused = [f"--{other.replace('_', '-')}" for other, value in others.items() if value is not None]
    if unused:
        raise typer.BadParameter(f"does not go with {', '.join(unused)}", param_hint=option)


def _finish(
    simulated: Callable[[], Any],
    plan: Any,
    velocity: tuple[float, float, float] | None,
    output: Path | None,
    view: bool,
) -> None:
    """Show and write the run that a function returns, also after Ctrl-C."""
    from legged.app import scenario

    try:
        run = simulated()
    except SimulationInterrupt as error:
        if error.run is None or len(error.run) < 2:
            raise
        run = error.run
    table = scenario.summary(run, plan, velocity)
    show(table.text())
    print_written(output, lambda folder: scenario.write(run, table, folder))
    if view:
        from legged.viewer import view as view_run

        view_run(run, wait=True)
    if run.ended:
        stop(run.ended)
