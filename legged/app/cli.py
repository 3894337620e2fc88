"""The command line `legged`."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from legged.errors import DefinitionError, LeggedError, SimulationError


def balance(
    robot: Annotated[
        str, typer.Argument(help="spatial_biped as in the paper; any other robot as in `legged info` stands.")
    ] = "spatial_biped",
    throw: Annotated[bool, typer.Option("--throw/--no-throw", help="Whether a block is thrown.")] = True,
    mass: Annotated[float, typer.Option(help="Mass of the block, in kilograms.")] = 1.8,
    size: Annotated[str, typer.Option(help="Edges of the block along x, y, z, in meters.")] = "0.1,0.1,0.1",
    position: Annotated[str, typer.Option(help="Initial position of the block: x, y, z in meters.")] = "-0.5,0.1,1.2",
    velocity: Annotated[str, typer.Option(help="Initial velocity of the block, in meters per second.")] = "4.5,0,0.2",
    friction: Annotated[float, typer.Option(help="Coulomb's coefficient of all contacts.")] = 0.3,
    restitution: Annotated[float, typer.Option(help="Coefficient of restitution of all contacts, 0 to 1.")] = 0.2,
    rate: Annotated[float, typer.Option(help="Control rate, per second.")] = 500.0,
    step: Annotated[float, typer.Option(help="Time step, in seconds.")] = 1e-3,
    duration: Annotated[float, typer.Option(help="Simulated time, in seconds.")] = 3.0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for figures, animations and the run.")
    ] = None,
) -> None:
    """Throw a block at a robot that balances (Wendlandt 1997: events, Figures 3 to 6, cost beside the paper's)."""
    from legged.app.balance.experiment import ThrownBlock, paper_experiment, standing_experiment
    from legged.app.balance.report import BalanceReport
    from legged.app.selection import select_robot

    block = None
    if throw:
        places = {"size": size, "position": position, "velocity": velocity}
        block = ThrownBlock(mass, **{name: _three(name, text) for name, text in places.items()})
    given = {"throw": block, "friction": friction, "restitution": restitution}
    given |= {"rate": rate, "step": step, "duration": duration}
    if robot == "spatial_biped":
        experiment = paper_experiment(**given)
    else:
        experiment = standing_experiment(select_robot(robot), **given)
    account = BalanceReport(experiment)
    tables = account.event_table(), account.result_table(), account.cost_table()
    print("\n\n".join(table.text() for table in tables), end="\n\n")
    if output is not None:
        for path in account.write(output):
            print(path)
    if account.run.ended:
        raise SimulationError(account.run.ended, account.run)


def _three(name: str, text: str) -> tuple[float, float, float]:
    """Return the three numbers of a comma-separated text."""
    try:
        x, y, z = (float(part) for part in text.split(","))
    except ValueError:
        raise DefinitionError(
            f"--{name} takes three numbers separated by commas, such as 0.5,0.1,1.2, got {text!r}"
        ) from None
    return x, y, z


def disturbances(
    robot: Annotated[
        str, typer.Argument(help="A robot as in `legged info`; spatial_biped stands as in Wendlandt 1997.")
    ] = "spatial_biped",
    throw: Annotated[bool, typer.Option("--throw/--push", help="Throw a block of 1.8 kg, or push.")] = False,
    gait: Annotated[str, typer.Option(help="stand (workspace balance), walk, trot or tripod (balanced).")] = "stand",
    most: Annotated[
        float | None,
        typer.Option(help="Largest push in N s, or fastest throw in m/s; default by mass."),
    ] = None,
    at: Annotated[float, typer.Option(help="Time at which pushes begin, in seconds.")] = 0.2,
    directions: Annotated[int, typer.Option(min=3, help="Number of directions.")] = 48,
    sizes: Annotated[int, typer.Option(min=2, help="Number of sizes.")] = 24,
    friction: Annotated[float, typer.Option(help="Coulomb's coefficient of all contacts.")] = 0.3,
    restitution: Annotated[float, typer.Option(help="Coefficient of restitution of all contacts, 0 to 1.")] = 0.2,
    step: Annotated[float, typer.Option(help="Time step and control period, in seconds.")] = 2e-3,
    duration: Annotated[float, typer.Option(help="Duration of every run, in seconds.")] = 3.0,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Folder for the figure and the data.")] = None,
) -> None:
    """Map the largest push or throw from each direction that a robot survives; one run for each size and direction."""
    from legged.app.balance.disturbance_report import DisturbanceStudy, write
    from legged.app.selection import select_robot

    begun = time.perf_counter()
    given = {"directions": directions, "sizes": sizes, "step": step, "duration": duration, "most": most, "at": at}
    case = DisturbanceStudy(select_robot(robot), gait, throw, friction=friction, restitution=restitution, **given)
    found = case.map()
    print(found.table().text())
    print(f"{found.outcomes.size} runs took {time.perf_counter() - begun:.1f} s, tracing and compiling included\n")
    if output is not None:
        for path in write(case, found, output):
            print(path)


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
    """Run the command line; a LeggedError becomes one line on stderr and exit status 1."""
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

    from legged.app import robot_tables
    from legged.app import robot_tables as report
    from legged.app.selection import select_any_robot
    from legged.robot.configuration import random_configuration
    from legged.robot.robot import Robot

    chosen = select_any_robot(robot, base)
    tree = chosen if isinstance(chosen, Robot) else chosen.robot
    q = tree.neutral() if seed is None else random_configuration(tree, np.random.default_rng(seed))
    where = "all joints at zero" if seed is None else f"random configuration {seed}"
    if not isinstance(chosen, Robot):
        q, where = robot_tables.closed_configuration(chosen, seed)
    tables = [report.module_table(tree), report.link_table(tree), report.conditioning_table(tree, q, where)]
    if not isinstance(chosen, Robot):
        tables.append(robot_tables.loop_table(chosen, q))
    _show(report.headline(tree), *(table.text() for table in tables))


@app.command()
def audit(
    file: Annotated[Path, typer.Argument(help="A URDF or MJCF file.")],
    base: Annotated[str | None, typer.Option("--base", help="floating or fixed; by default the file's.")] = None,
    mimic: Annotated[str, typer.Option(help="Joints that follow others: coupled, free or fixed.")] = "coupled",
    repair: Annotated[list[str] | None, typer.Option(help="weld or inertia; may be repeated.")] = None,
) -> None:
    """Show the audit of a robot file; exit status 1 if `legged.load` rejects the file."""
    import legged
    from legged.app import robot_tables as report

    found = legged.audit(file, base, mimic=mimic, repair=repair)
    _show(report.audit_headline(found), *(table.text() for table in report.audit_tables(found)))
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
    """Check the dynamics of a robot against the laws of mechanics and against other programs."""
    import legged
    from legged.app.selection import select_robot

    print(legged.verify(select_robot(robot, base), against or (), states=states))


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
    from legged.app import robot_tables
    from legged.app.operations import counts
    from legged.app.selection import ready_made_robots, select_any_robot, select_robot
    from legged.robot.robot import Robot

    if robot in ("all", "families"):
        measured = (
            [] if robot == "families" else [counts.measure(select_robot(name, base)) for name in ready_made_robots()]
        )
        bases = {None: (True, False), "floating": (True,), "fixed": (False,)}.get(base, (True,))
        _show(*([counts.robot_table(measured).text()] if measured else []), counts.family_table(bases=bases).text())
        if robot == "all":
            _show(counts.literature_table(12).text())
        _figure_7(measured, output)
        return
    chosen = select_any_robot(robot, base)
    if not isinstance(chosen, Robot):
        _show(robot_tables.count_table(chosen).text())
        chosen = chosen.robot  # the spanning tree
    measured = [counts.measure(chosen)]
    _show(counts.robot_table(measured).text())
    for task in ("inverse", "forward"):
        _show(*(counts.part_table(measured[0], task, by).text() for by in ("stage", "module")))
    _figure_7(measured, output)


def _compare(algorithms: str, robots: str, base: str | None, times: bool, output: Path | None) -> None:
    from legged.app.operations import algorithms as field
    from legged.app.operations.algorithm_report import compared, crossover_table, cubic_table, published_table, write
    from legged.app.selection import ready_made_robots, select_robot

    chosen = ready_made_robots() if robots == "all" else [name.strip() for name in robots.split(";")]
    names = None if algorithms == "all" else [name.strip() for name in algorithms.split(",")]
    found = [cost for name in chosen for cost in field.costs(select_robot(name, base), names, times)]
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
    from legged.app.selection import select_robot

    robot = select_robot(name)
    controller = controller or scenario.default_controller(robot, gait)
    floor = scenario.select_ground(
        ground or scenario.default_ground(robot, gait), robot, scenario.parse_terrain(terrain)
    )
    plan = scenario.select_gait(gait, robot, controller, **given)
    law = scenario.select_controller(controller, plan)
    _show(scenario.gait_table(plan, law).text(), str(floor))
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
    """Show the location and size of the cache of compiled code, or clear it."""
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
    """Reproduce the paper: both robots under both controllers, figures and tables. `make run` calls this command."""
    from legged.app.paper.report import report as paper_report

    paper_report(output, duration)


def _figure_7(measured: list, output: Path | None) -> None:
    from legged.app import figures
    from legged.app.operations.counts import figure_7

    if output is not None:
        print(f"figure: {figures.save(figure_7(measured), output / 'figure-07-operations.png')}")


def _show(*parts: str) -> None:
    print("\n\n".join(parts), end="\n\n")
