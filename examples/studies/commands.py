"""The command line of the studies: `python -m examples.studies STUDY --output FOLDER`."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from legged.app.cli import main as run_program
from legged.app.options import (
    BaseName,
    Duration,
    Output,
    output_folder,
    positive,
    print_written,
    robot_names,
    stop,
)
from legged.errors import SimulationInterrupt

app = typer.Typer(
    help="Repeat and extend published experiments and comparisons.",
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
COMPARED = "chain(6); chain(12); tree(12, branching=2); planar_biped; spatial_quadruped; humanoid; chain(30)"


def study(example: str, **given: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds a study, with an example of its options below its help."""
    return app.command(epilog=f"Example: python -m examples.studies {example}", **given)


def three_numbers(text: str) -> str:
    """Return the text of an option, or raise a usage error if it is not three numbers separated by commas."""
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) != 3 or not all(math.isfinite(x) for x in numbers):
        raise typer.BadParameter(f"takes three numbers separated by commas, such as 0.5,0.1,1.2, got {text!r}")
    return text


Friction = Annotated[float, typer.Option(min=0.0, help="Coulomb's coefficient of all contacts, dimensionless.")]
Restitution = Annotated[
    float, typer.Option(min=0.0, max=1.0, help="Coefficient of restitution of all contacts, 0 to 1, dimensionless.")
]
Size = Annotated[str, typer.Option(help="Edges of the block along x, y, z, in meters.", callback=three_numbers)]
Position = Annotated[
    str, typer.Option(help="Initial position of the block: x, y, z in meters.", callback=three_numbers)
]
Velocity = Annotated[
    str, typer.Option(help="Initial velocity of the block, in meters per second.", callback=three_numbers)
]


@study("balance --mass 3 --velocity 4,0,0.2 --output results/balance")
def balance(
    robot: Annotated[
        str,
        typer.Argument(
            help="spatial_biped as in the paper; any other robot as in `legged info` stands.",
            autocompletion=robot_names,
        ),
    ] = "spatial_biped",
    throw: Annotated[bool, typer.Option("--throw/--no-throw", help="Whether a block is thrown.")] = True,
    mass: Annotated[float, typer.Option(help="Mass of the block, in kilograms.", callback=positive)] = 1.8,
    size: Size = "0.1,0.1,0.1",
    position: Position = "-0.5,0.1,1.2",
    velocity: Velocity = "4.5,0,0.2",
    friction: Friction = 0.3,
    restitution: Restitution = 0.2,
    rate: Annotated[float, typer.Option(help="Control rate, per second.", callback=positive)] = 500.0,
    step: Annotated[float, typer.Option(help="Time step, in seconds.", callback=positive)] = 1e-3,
    duration: Duration = 3.0,
    output: Output = None,
) -> None:
    """Throw a block at a robot that balances (Wendlandt 1997: events, Figures 3 to 6, cost beside the paper's)."""
    from examples.studies.balance.experiment import ThrownBlock, paper_experiment, standing_experiment
    from examples.studies.balance.report import BalanceReport
    from legged.app.selection import select_robot

    block = None
    if throw:
        places = {"size": size, "position": position, "velocity": velocity}
        block = ThrownBlock(mass, **{name: _numbers(text) for name, text in places.items()})
    given = {"throw": block, "friction": friction, "restitution": restitution}
    given |= {"rate": rate, "step": step, "duration": duration}
    if robot == "spatial_biped":
        experiment = paper_experiment(**given)
    else:
        experiment = standing_experiment(select_robot(robot), **given)
    account = BalanceReport(experiment)
    tables = account.event_table(), account.result_table(), account.cost_table()
    print("\n\n".join(table.text() for table in tables), end="\n\n")
    print_written(output, account.write)
    if account.run.ended:
        stop(account.run.ended)


def _numbers(text: str) -> tuple[float, float, float]:
    """Return the three numbers of a checked option."""
    x, y, z = (float(part) for part in text.split(","))
    return x, y, z


@study("disturbances spatial_quadruped --gait trot --directions 12 --sizes 6")
def disturbances(
    robot: Annotated[
        str,
        typer.Argument(
            help="A robot as in `legged info`; spatial_biped stands as in Wendlandt 1997.", autocompletion=robot_names
        ),
    ] = "spatial_biped",
    throw: Annotated[bool, typer.Option("--throw/--push", help="Throw a block of 1.8 kg, or push.")] = False,
    gait: Annotated[str, typer.Option(help="stand (workspace balance), walk, trot or tripod (balanced).")] = "stand",
    most: Annotated[
        float | None,
        typer.Option(help="Largest push in N s, or fastest throw in m/s; default by mass.", callback=positive),
    ] = None,
    at: Annotated[float, typer.Option(min=0.0, help="Time at which pushes begin, in seconds.")] = 0.2,
    directions: Annotated[int, typer.Option(min=3, help="Number of directions.")] = 48,
    sizes: Annotated[int, typer.Option(min=2, help="Number of sizes.")] = 24,
    friction: Friction = 0.3,
    restitution: Restitution = 0.2,
    step: Annotated[float, typer.Option(help="Time step and control period, in seconds.", callback=positive)] = 2e-3,
    duration: Duration = 3.0,
    store: Annotated[
        Path | None, typer.Option(help="Folder that keeps finished runs, so that the same command goes on with them.")
    ] = None,
    output: Output = None,
) -> None:
    """Map the largest push or throw from each direction that a robot survives; one run for each size and direction."""
    from examples.studies.balance.disturbance_report import DisturbanceStudy, write
    from legged.app.selection import select_robot

    begun = time.perf_counter()
    given = {"directions": directions, "sizes": sizes, "step": step, "duration": duration, "most": most, "at": at}
    case = DisturbanceStudy(select_robot(robot), gait, throw, friction=friction, restitution=restitution, **given)
    interrupt = None
    try:
        mapped = case.map(store)
    except SimulationInterrupt as error:
        mapped, interrupt = error.run, error
    print(mapped.table().text())
    print(f"{mapped.outcomes.size} runs took {time.perf_counter() - begun:.1f} s, tracing and compiling included\n")
    print_written(output, lambda folder: write(case, mapped, folder))
    if interrupt is not None:
        stop(str(interrupt))


@study("planar-balance --output results/planar-balance")
def planar_balance(output: Output = None) -> None:
    """Compare controllers of planar balance (Featherstone, Azad): a triple pendulum on a point follows commands."""
    from examples.studies.balance.planar_study import PlanarStudy, write

    study = PlanarStudy()
    print(study.table().text(), end="\n\n")
    print_written(output, lambda folder: write(study, folder))


@study("hop --output results/hop")
def hop(
    hops: Annotated[int, typer.Option(min=1, max=10, help="Number of hops in a row.")] = 3,
    output: Output = None,
) -> None:
    """Let a machine with one motor hop and balance (Azad, Featherstone 2013) on ground with different friction."""
    from examples.studies.balance.hop_study import HopStudy, write

    study = HopStudy(hops=hops, duration=7.5 * hops + 0.5)
    print(study.table().text(), end="\n\n")
    print_written(output, lambda folder: write(study, folder))


@study("wheel-balance --output results/wheel-balance")
def wheel_balance(output: Output = None) -> None:
    """Balance a pole by a reaction wheel and by a gyroscope (Featherstone 2016) after pushes."""
    from examples.studies.balance.wheel_study import WheelStudy, write

    study = WheelStudy()
    print(study.table().text(), end="\n\n")
    print_written(output, lambda folder: write(study, folder))


@study("bend-swivel --output results/bend-swivel")
def bend_swivel(output: Output = None) -> None:
    """Let a spatial robot on a point straighten, crouch and reorient by a constant-velocity joint (Azad 2014)."""
    from examples.studies.balance.bend_study import BendSwivelStudy, write

    study = BendSwivelStudy()
    print(study.table().text(), end="\n\n")
    print_written(output, lambda folder: write(study, folder))


@study("hybrid --output results/hybrid")
def hybrid(
    duration: Annotated[float, typer.Option(help="Duration of the longer runs, in seconds.", callback=positive)] = 3.0,
    output: Output = None,
) -> None:
    """Press and move at once (Featherstone 2004): an arm on two faces, a vibrating plate, a quadruped at a wall."""
    from examples.studies.balance.hybrid_study import HybridStudy, write

    study = HybridStudy(duration)
    print("\n\n".join(table.text() for table in study.tables()), end="\n\n")
    print_written(output, lambda folder: write(study, folder))


@study("velocity-gains go2.urdf --output results/velocity-gains", name="velocity-gains")
def gains(
    robots: Annotated[
        list[Path] | None,
        typer.Argument(help="URDF or MJCF files of quadrupeds; by default HyQ and Go2 of example-robot-data."),
    ] = None,
    quadrupeds: Annotated[bool, typer.Option(help="Whether quadrupeds are analyzed.")] = True,
    number: Annotated[int, typer.Option(min=5, help="Number of link lengths of the design study.")] = 21,
    output: Output = None,
) -> None:
    """Show velocity gains (Featherstone): link lengths and poses of a triple pendulum, quadrupeds on diagonal feet."""
    from examples.studies.balance import gain_study as study
    from legged.app.selection import select_robot

    named = (robots or study.quadruped_files()) if quadrupeds else []
    chosen = [select_robot(str(path)) for path in named]
    designs = [study.design_study(posture, number) for posture in (study.UPRIGHT, study.CROUCHED)]
    tables = [study.design_table(designs), *(study.DiagonalStance(robot).table() for robot in chosen)]
    print("\n\n".join(table.text() for table in tables), end="\n\n")
    print_written(output, lambda folder: study.write(designs, study.pose_map(), chosen, folder))


@study("operations --output results/operations")
def operations(output: Output = None) -> None:
    """Count operations beside published formulas (Table 1, Figure 7), by modules and legs, and with closed loops."""
    from examples.studies.operations import closed_loops, counts
    from legged.counting import module_counts, module_figures
    from legged.simulation.plots.pages import Page

    tables = [counts.family_table(), counts.literature_table(12), *module_counts.module_tables()]
    tables.append(closed_loops.ready_made_table())
    print("\n\n".join(table.text() for table in tables), end="\n\n")

    def write(folder: Path) -> list[Path]:
        page = Page(folder, "Operation counts beside published ones", tables)
        page.figure(counts.figure_7(counts.walking_robots()), "figure-07-operations", "Figure 7, computed here")
        page.figure(module_figures.module_figure(), "operations-modules", module_figures.CAPTION)
        return [page.write("operations.md"), *page.figures]

    print_written(output, write)


@study("algorithms --algorithms 'articulated,modular' --robots 'chain(6)' --times")
def algorithms(
    base: BaseName = None,
    algorithms: Annotated[str, typer.Option(help="`all`, or beginnings of their names with commas.")] = "all",
    robots: Annotated[
        str, typer.Option(help="Robots as in `legged info`, split by semicolons, or all shipped ones: all.")
    ] = COMPARED,
    times: Annotated[bool, typer.Option("--times", help="Compile and time them, too.")] = False,
    output: Output = None,
) -> None:
    """Compare the operations, depth and times of the algorithms of the field on robots; all of them take minutes."""
    from examples.studies.operations.algorithm_report import all_tables, write
    from examples.studies.operations.algorithms import costs
    from legged.app.selection import ready_made_robots, select_robot

    chosen = ready_made_robots() if robots == "all" else [name.strip() for name in robots.split(";")]
    names = None if algorithms == "all" else [name.strip() for name in algorithms.split(",")]
    measured = [cost for name in chosen for cost in costs(select_robot(name, base), names, times)]
    print("\n\n".join(table.text() for table in all_tables(measured, whole=names is None)), end="\n\n")
    print_written(output, lambda folder: write(folder, measured, whole=names is None))


@study("paper --output results/paper --duration 4")
def paper(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder of the report.", callback=output_folder, file_okay=False)
    ] = Path("results/paper"),
    duration: Duration = 12.0,
) -> None:
    """Report on the paper: walk and trot, counts, times, stiff ground, the thrown block; where results contradict."""
    from examples.studies.paper.report import report

    report(output, duration)


@study("design --trials 100000 --output results/design")
def design(
    trials: Annotated[int, typer.Option(min=4, help="Number of simulated trots of the quadruped.")] = 32,
    generations: Annotated[int, typer.Option(min=1, help="Generations of CMA-ES for the biped.")] = 3,
    population: Annotated[int, typer.Option(min=2, help="Walks of a generation.")] = 8,
    duration: Duration = 1.5,
    workers: Annotated[int, typer.Option(min=0, help="Processes of a LocalCluster; 0 for this process.")] = 0,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder of stores and figures.", callback=output_folder)
    ] = Path("results/design"),
) -> None:
    """Vary legs, stride and period of the quadruped (cost of transport, pushes), optimize the legs of the biped."""
    from contextlib import ExitStack

    from examples.studies.design import design_study as study

    with ExitStack() as stack:
        client = None
        if workers:
            from distributed import Client, LocalCluster

            cluster = stack.enter_context(LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None))  # type: ignore[arg-type]
            client = stack.enter_context(Client(cluster))
        sweep = study.quadruped_study(trials, output / "quadruped", client, duration)
        print(f"{sweep.cost()}\n", flush=True)
        tables = [study.result_table(sweep.table())]
        optimum = study.biped_optimum(generations, population, output / "biped", client, duration)
    tables.append(study.optimum_table(optimum))
    print("\n\n".join(table.text() for table in tables), end="\n\n")
    print_written(output, lambda folder: study.write(folder, sweep, optimum))


@study("all --output results", name="all")
def all_studies(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder of their folders.", callback=output_folder, file_okay=False)
    ] = Path("results"),
) -> None:
    """Run every study with its default options, into a folder each; this takes some minutes."""
    for command in app.registered_commands:
        name = command.name or str(getattr(command.callback, "__name__", "")).replace("_", "-")
        if name != "all":
            print(f"{name}:", flush=True)
            app([name, "--output", str(output / name)], standalone_mode=False)


def main() -> None:
    """Run the command line; errors end it as they end `legged`."""
    run_program(app)
