"""The commands that simulate a robot on a gait: `legged walk`, `trot`, `crawl`, `tripod` and `stand`."""

from __future__ import annotations

from collections.abc import Callable
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

Setup = tuple[Any, Any, dict[str, Any]]
"""A robot, its controller, and the options of `simulate`."""
Size = Annotated[
    tuple[float, float] | None,
    typer.Option(
        help="Of a height map: width along x and height of white above black, in meters; a table has heights."
    ),
]
Period = Annotated[float | None, typer.Option(help="Duration of a step, in seconds.", callback=positive)]
Stride = Annotated[float | None, typer.Option(help="Advance of the base in a step, in meters.")]
Clearance = Annotated[float | None, typer.Option(help="Height of swinging feet, in meters.")]
HipHeight = Annotated[float | None, typer.Option(help="Height of the hips, in meters.", callback=positive)]
Velocity = Annotated[
    tuple[float, float, float] | None,
    typer.Option(
        help="Walk by predictive and whole-body control on rigid ground: velocity forward and to the left in "
        "meters per second, and yaw rate in radians per second, such as 0.8 0 0.3."
    ),
]
Schedule = Annotated[
    str | None,
    typer.Option("--gait", help="With --velocity: trot, walk, crawl, pace, bound, gallop, pronk, tripod or stand."),
]
Drive = Annotated[
    bool, typer.Option("--drive", help="Drive the walking robot in the browser by keys, a gamepad or clicks.")
]
Compare = Annotated[
    str | None,
    typer.Option(help="Compare values of a number of the law side by side, such as controller.kp=100,400."),
]
View = Annotated[bool, typer.Option("--view", help="Show the run in the browser until Ctrl-C.")]


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
        size: Size = None,
        period: Period = None,
        stride: Stride = None,
        clearance: Clearance = None,
        hip_height: HipHeight = None,
        velocity: Velocity = None,
        schedule: Schedule = None,
        drive: Drive = False,
        compare: Compare = None,
        output: Output = None,
        view: View = False,
    ) -> None:
        from legged.app import scenario, selection
        from legged.ground import HeightMap

        sizes = {"period": period, "stride": stride, "clearance": clearance, "hip_height": hip_height}
        others = {**sizes, "controller": controller, "ground": ground}
        if drive:
            _refuse({**others, "velocity": velocity, "compare": compare}, "--drive")
        elif velocity is not None:
            _refuse(others, "--velocity")
        elif schedule is not None:
            raise typer.BadParameter("needs --velocity", param_hint="--gait")
        surface = selection.parse_terrain(terrain, size)
        if isinstance(surface, HeightMap):
            show(f"terrain {terrain}: {surface.describe()}")
        if drive:
            scenario.drive(selection.select_robot(robot), schedule or name, surface, output or Path("drives"))
            return
        if velocity is not None:
            law = scenario.commanded(schedule or name, velocity, surface)
            plan, setup = None, (selection.select_any_robot(robot), *law)
        else:
            plan, setup = _on_gait(gait, selection.select_robot(robot), controller, ground, surface, sizes)
        if compare is not None:
            _compare(setup, compare, duration, velocity, output, view)
        else:
            _finish(setup, plan, duration, velocity, output, view)


def _on_gait(
    gait: str,
    robot: Any,
    controller: str | None,
    ground: str | None,
    surface: Any,
    sizes: dict[str, float | None],
) -> tuple[Any, Setup]:
    """Return a gait and the simulation setup of a robot on a ground, and print both. None selects the gait's defaults.

    Args:
        gait: Name of its class. robot: The robot. controller: Name of the law. ground: Name of the ground.
        surface: The terrain. sizes: Period [s], stride, clearance and hip height [m] of the gait.
    """
    from controllers.suited_laws import gait_table
    from legged.app import scenario, selection

    law = controller or selection.default_controller(robot, gait)
    floor = selection.select_ground(ground or selection.default_ground(robot, gait), robot, surface)
    plan = selection.select_gait(gait, robot, law, **sizes)
    setup = robot, selection.select_controller(law, plan), {"ground": floor}
    scenario.check_start(robot, setup[1], floor)
    show(gait_table(plan, setup[1]).text(), str(floor))
    return plan, setup


def _refuse(others: dict[str, Any], option: str) -> None:
    """Raise a usage error if other options are given that do not go with an option."""
    unused = [f"--{other.replace('_', '-')}" for other, value in others.items() if value is not None]
    if unused:
        raise typer.BadParameter(f"does not go with {', '.join(unused)}", param_hint=option)


def _compare(
    setup: Setup,
    words: str,
    duration: float,
    velocity: tuple[float, float, float] | None,
    output: Path | None,
    view: bool,
) -> None:
    """Show and write the runs with several values of a number, "NAME=VALUE,VALUE", beside each other."""
    from legged.app import scenario
    from legged.simulation.results.run_table import comparison
    from legged.viewer import save_html
    from legged.viewer import view as view_runs

    name, mark, listed = words.partition("=")
    try:
        values = [float(value) for value in listed.split(",")]
    except ValueError:
        mark = ""
    if not mark:
        raise typer.BadParameter("must be a name and numbers, such as controller.kp=100,400", param_hint="--compare")
    robot, law, options = setup
    runs = scenario.compare(robot, law, name, values, duration=duration, **options)
    names = [f"{name} = {value:g}" for value in values]
    table = comparison(runs, names, velocity)
    show(table.text())
    beside: dict[str, Any] = {"names": names, "beside": 1.5 * max(run.base.position[0, 2] for run in runs)}
    if output is not None:
        replay = save_html(runs, output / "replay.html", **beside)
        print_written(output, lambda folder: [replay, *scenario.write_table(table, folder)])
    if view:
        view_runs(runs, wait=True, **beside)


def _finish(
    setup: Setup,
    plan: Any,
    duration: float,
    velocity: tuple[float, float, float] | None,
    output: Path | None,
    view: bool,
) -> None:
    """Show and write the run of a simulation, also after Ctrl-C."""
    from legged.app import scenario

    try:
        run = scenario.simulated(setup[0], setup[1], until=duration, **setup[2])
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
