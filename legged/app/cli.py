"""The command `legged`: what the toolkit does, from a terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from legged.app.cli_balance import balance
from legged.app.cli_disturbances import disturbances
from legged.errors import LeggedError, SimulationError

app = typer.Typer(
    help="Legged robots with kinematic modules: operation counts, walking and trotting, the paper's report.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

RobotName = Annotated[
    str,
    typer.Argument(
        help="A robot of `robots`, such as planar_biped or 'chain(12)'; file.py:function; a URDF or MJCF file."
    ),
]
BaseName = Annotated[str | None, typer.Option("--base", help="floating, fixed or planar, for robots that take one.")]
WalkerName = Annotated[str, typer.Argument(help="A robot as in `legged info`.")]
ControllerName = Annotated[
    str | None,
    typer.Option(
        "--controller",
        help="computed-torque, feed-forward, none (replayed torques), balanced or servo. By default computed-torque, "
        "balanced for robots from URDF or MJCF.",
    ),
]
Duration = Annotated[float, typer.Option(help="Simulated time, in seconds.")]
GroundName = Annotated[
    str | None,
    typer.Option(
        "--ground",
        help="paper (soft, viscous) or realistic (stiff, sticking). By default paper, "
        "realistic for robots from URDF or MJCF.",
    ),
]
TerrainName = Annotated[str, typer.Option("--terrain", help="flat, slope:DEGREES or steps:RISE[,RUN].")]
COMPARED = "chain(6); chain(12); tree(12, branching=2); planar_biped; spatial_quadruped; humanoid; chain(30)"
Output = Annotated[Path | None, typer.Option("--output", "-o", help="Folder for figures and data.")]


def main() -> None:
    """Run the command line; an error of ours becomes one line on stderr and exit status 1."""
    try:
        app()
    except LeggedError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(1)


@app.command()
def info(
    robot: RobotName,
    base: BaseName = None,
    seed: Annotated[int | None, typer.Option(help="Conditioning at a random configuration, not at zero.")] = None,
) -> None:
    """Show a robot's modules, links, masses, conditioning and closed loops."""
    import numpy as np

    from legged.app import closed
    from legged.app import info as report
    from legged.app.named import any_robot_named
    from legged.robot.configuration import random_configuration
    from legged.robot.robot import Robot

    chosen = any_robot_named(robot, base)
    tree = chosen if isinstance(chosen, Robot) else chosen.robot
    q = tree.neutral() if seed is None else random_configuration(tree, np.random.default_rng(seed))
    where = "all joints at zero" if seed is None else f"random configuration {seed}"
    if not isinstance(chosen, Robot):
        q, where = closed.closed_configuration(chosen, seed)
    tables = [report.module_table(tree), report.link_table(tree), report.conditioning_table(tree, q, where)]
    if not isinstance(chosen, Robot):
        tables.append(closed.loop_table(chosen, q))
    _show(report.headline(tree), *(table.text() for table in tables))


@app.command()
def audit(
    file: Annotated[Path, typer.Argument(help="A URDF or MJCF file.")],
    base: Annotated[str | None, typer.Option("--base", help="floating or fixed; by default the file's.")] = None,
    mimic: Annotated[str, typer.Option(help="Joints that follow others: coupled, free or fixed.")] = "coupled",
    repair: Annotated[list[str] | None, typer.Option(help="weld or inertia; may be repeated.")] = None,
) -> None:
    """Show what is strange, fused, lost and found in a robot's file; exit status 1 if it is refused."""
    import legged
    from legged.app import audit as report

    found = legged.audit(file, base, mimic=mimic, repair=repair)
    _show(report.headline(found), *(table.text() for table in report.audit_tables(found)))
    if found.singular:
        raise typer.Exit(1)
    robot = legged.load(file, base, mimic=mimic, repair=repair)
    _show(*(table.text() for table in report.robot_tables(robot)))


@app.command()
def verify(
    robot: RobotName,
    base: BaseName = None,
    against: Annotated[
        list[str] | None, typer.Option(help="pinocchio or mujoco, if installed; may be given twice.")
    ] = None,
    states: Annotated[int, typer.Option(min=1, help="How many random states.")] = 3,
) -> None:
    """Check a robot's dynamics against their own laws, and against other programs."""
    import legged
    from legged.app.named import robot_named

    legged.verify(robot_named(robot, base), against or (), states=states)


@app.command()
def count(
    robot: Annotated[str, typer.Argument(help="A robot as in `info`, `families` for n-link chains, or `all`.")] = "all",
    base: BaseName = None,
    algorithms: Annotated[
        str | None,
        typer.Option(
            help="Compare the algorithms of the field: `all` (minutes), or beginnings of their names with commas."
        ),
    ] = None,
    robots: Annotated[
        str, typer.Option(help="With --algorithms: robots as in `info`, split by semicolons, or all shipped ones: all.")
    ] = COMPARED,
    times: Annotated[bool, typer.Option("--times", help="With --algorithms: compile and time them, too.")] = False,
    output: Output = None,
) -> None:
    """Count the operations of inverse and forward dynamics, beside the published formulas (Table 1, Figure 7)."""
    if algorithms is not None:
        _compare(algorithms, robots, base, times, output)
        return
    from legged.app import closed, counts
    from legged.app.named import any_robot_named, ready_made, robot_named
    from legged.robot.robot import Robot

    if robot in ("all", "families"):
        measured = [] if robot == "families" else [counts.measure(robot_named(name, base)) for name in ready_made()]
        bases = {None: (True, False), "floating": (True,), "fixed": (False,)}.get(base, (True,))
        _show(*([counts.robot_table(measured).text()] if measured else []), counts.family_table(bases=bases).text())
        if robot == "all":
            _show(counts.literature_table(12).text())
        _figure_7(measured, output)
        return
    chosen = any_robot_named(robot, base)
    if not isinstance(chosen, Robot):
        _show(closed.count_table(chosen).text())
        chosen = chosen.robot  # the spanning tree
    measured = [counts.measure(chosen)]
    _show(counts.robot_table(measured).text())
    for task in ("inverse", "forward"):
        _show(*(counts.part_table(measured[0], task, by).text() for by in ("stage", "module")))
    _figure_7(measured, output)


def _compare(algorithms: str, robots: str, base: str | None, times: bool, output: Path | None) -> None:
    from legged.app import algorithms as field
    from legged.app.algorithm_page import compared, write
    from legged.app.algorithm_tables import crossover_table, cubic_table, published_table
    from legged.app.named import ready_made, robot_named

    chosen = ready_made() if robots == "all" else [name.strip() for name in robots.split(";")]
    names = None if algorithms == "all" else [name.strip() for name in algorithms.split(",")]
    found = [cost for name in chosen for cost in field.costs(robot_named(name, base), names, times)]
    tables = compared(found)
    if names is None:
        tables += [crossover_table(), cubic_table(found), published_table(12)]
    _show(*(table.text() for table in tables))
    if output is not None:
        for path in write(output, found, whole=names is None):
            print(path)


def _gait_command(name: str, gait: str, usual: str, words: str) -> None:
    """Add a command that simulates a robot on a gait."""

    def command(
        robot: WalkerName = usual,
        controller: ControllerName = None,
        duration: Duration = 4.0,
        ground: GroundName = None,
        terrain: TerrainName = "flat",
        period: Annotated[float | None, typer.Option(help="Duration of a step, in seconds.")] = None,
        stride: Annotated[float | None, typer.Option(help="Advance of the base in a step, in meters.")] = None,
        clearance: Annotated[float | None, typer.Option(help="Height of swinging feet, in meters.")] = None,
        hip_height: Annotated[float | None, typer.Option(help="Height of the hips, in meters.")] = None,
        output: Output = None,
    ) -> None:
        given = {"period": period, "stride": stride, "clearance": clearance, "hip_height": hip_height}
        _go(gait, given, robot, controller, duration, ground, terrain, output)

    app.command(name, help=words)(command)


_gait_command("walk", "Walk", "planar_biped", "Let a robot walk on two legs in turn (the paper's Figures 11 to 14).")
_gait_command(
    "trot", "Trot", "spatial_quadruped", "Let a robot trot, diagonal legs in turn (the paper's Figures 16, 17)."
)
_gait_command("crawl", "Crawl", "spatial_quadruped", "Let a robot crawl, one leg at a time.")
_gait_command("tripod", "Tripod", "hexapod", "Let a robot run on two tripods in turn.")
_gait_command("stand", "Stand", "humanoid", "Let a robot stand.")
app.command()(balance)
app.command()(disturbances)


def _go(
    gait: str,
    given: dict[str, float | None],
    name: str,
    controller: str | None,
    duration: float,
    ground: str | None,
    terrain: str,
    output: Path | None,
) -> None:
    from legged.app import scenario
    from legged.app.named import robot_named

    robot = robot_named(name)
    controller = controller or scenario.usual_controller(robot, gait)
    floor = scenario.ground_named(ground or scenario.usual_ground(robot, gait), robot, scenario.terrain_named(terrain))
    plan = scenario.gait_named(gait, robot, controller, **given)
    law = scenario.law_named(controller, plan)
    _show(scenario.plan_table(plan, law).text(), str(floor))
    run = scenario.Scenario(robot, plan, controller, floor, duration).run()
    _show(scenario.summary(run, robot, plan).text())
    if output is not None:
        for path in scenario.write(run, output):
            print(path)
    if run.ended:
        raise SimulationError(run.ended, run)


@app.command()
def cache(
    clear: Annotated[
        bool, typer.Option("--clear", help="Delete the compiled code; it is made again on demand.")
    ] = False,
) -> None:
    """Show where compiled code is kept and how much of it there is, or clear it."""
    from legged.compiler.cache import disk as kept

    print(kept.describe())
    if clear:
        print(f"deleted: {kept.clear()}")


@app.command()
def report(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the report and its figures.")] = Path(
        "results"
    ),
    duration: Duration = 12.0,
) -> None:
    """Reproduce the paper: both robots under both controllers, its figures and its tables; what `make run` calls."""
    from legged.app.paper import report as paper_report

    paper_report(output, duration)


def _figure_7(measured: list, output: Path | None) -> None:
    from legged.app import style
    from legged.app.count_figure import figure_7

    if output is not None:
        print(f"figure: {style.save(figure_7(measured), output / 'figure-07-operations.png')}")


def _show(*parts: str) -> None:
    print("\n\n".join(parts), end="\n\n")
