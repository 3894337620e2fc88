"""The commands of `legged` that study balance, such as `legged balance` and `legged velocity-gains`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from legged.app.options import (
    Duration,
    Friction,
    Output,
    Position,
    Restitution,
    Size,
    Velocity,
    positive,
    print_written,
    robot_names,
    stop,
)
from legged.errors import SimulationInterrupt


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
    from legged.app.balance.experiment import ThrownBlock, paper_experiment, standing_experiment
    from legged.app.balance.report import BalanceReport
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
    output: Output = None,
) -> None:
    """Map the largest push or throw from each direction that a robot survives; one run for each size and direction."""
    from legged.app.balance.disturbance_report import DisturbanceStudy, write
    from legged.app.selection import select_robot

    begun = time.perf_counter()
    given = {"directions": directions, "sizes": sizes, "step": step, "duration": duration, "most": most, "at": at}
    case = DisturbanceStudy(select_robot(robot), gait, throw, friction=friction, restitution=restitution, **given)
    interrupt = None
    try:
        found = case.map()
    except SimulationInterrupt as error:
        found, interrupt = error.run, error
    print(found.table().text())
    print(f"{found.outcomes.size} runs took {time.perf_counter() - begun:.1f} s, tracing and compiling included\n")
    print_written(output, lambda folder: write(case, found, folder))
    if interrupt is not None:
        stop(str(interrupt))


def planar_balance(output: Output = None) -> None:
    """Compare controllers of planar balance (Featherstone, Azad): a triple pendulum on a point follows commands."""
    from legged.app.balance.planar_study import PlanarStudy, write

    study = PlanarStudy()
    print(study.table().text(), end="\n\n")
    print_written(output, lambda folder: write(study, folder))


def hop(
    hops: Annotated[int, typer.Option(min=1, max=10, help="Number of hops in a row.")] = 3,
    output: Output = None,
) -> None:
    """Let a machine with one motor hop and balance (Azad, Featherstone 2013) on ground with different friction."""
    from legged.app.balance.hop_study import HopStudy, write

    study = HopStudy(hops=hops, duration=7.5 * hops + 0.5)
    print(study.table().text(), end="\n\n")
    print_written(output, lambda folder: write(study, folder))


def wheel_balance(output: Output = None) -> None:
    """Balance a pole by a reaction wheel and by a gyroscope (Featherstone 2016) after pushes."""
    from legged.app.balance.wheel_study import WheelStudy, write

    study = WheelStudy()
    print(study.table().text(), end="\n\n")
    print_written(output, lambda folder: write(study, folder))


def bend_swivel(output: Output = None) -> None:
    """Let a spatial robot on a point straighten, crouch and reorient by a constant-velocity joint (Azad 2014)."""
    from legged.app.balance.bend_study import BendSwivelStudy, write

    study = BendSwivelStudy()
    print(study.table().text(), end="\n\n")
    print_written(output, lambda folder: write(study, folder))


def hybrid(
    duration: Annotated[float, typer.Option(help="Duration of the longer runs, in seconds.", callback=positive)] = 3.0,
    output: Output = None,
) -> None:
    """Press and move at once (Featherstone 2004): an arm on two faces, a vibrating plate, a quadruped at a wall."""
    from legged.app.balance.hybrid_study import HybridStudy, write

    study = HybridStudy(duration)
    print("\n\n".join(table.text() for table in study.tables()), end="\n\n")
    print_written(output, lambda folder: write(study, folder))


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
    from legged.app.balance import gain_study as study
    from legged.app.selection import select_robot

    named = (robots or study.quadruped_files()) if quadrupeds else []
    chosen = [select_robot(str(path)) for path in named]
    designs = [study.design_study(posture, number) for posture in (study.UPRIGHT, study.CROUCHED)]
    tables = [study.design_table(designs), *(study.DiagonalStance(robot).table() for robot in chosen)]
    print("\n\n".join(table.text() for table in tables), end="\n\n")
    print_written(output, lambda folder: study.write(designs, study.pose_map(), chosen, folder))
