"""The command `legged balance`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from legged.errors import DefinitionError, SimulationError


def balance(
    robot: Annotated[
        str, typer.Argument(help="spatial_biped as in the paper; any other robot as in `legged info` stands as it can.")
    ] = "spatial_biped",
    throw: Annotated[bool, typer.Option("--throw/--no-throw", help="Whether a block is thrown.")] = True,
    mass: Annotated[float, typer.Option(help="Of the block, in kilograms.")] = 1.8,
    size: Annotated[str, typer.Option(help="Edges of the block along x, y, z, in meters.")] = "0.1,0.1,0.1",
    position: Annotated[str, typer.Option(help="Of the block at the start: x, y, z in meters.")] = "-0.5,0.1,1.2",
    velocity: Annotated[str, typer.Option(help="Of the block at the start, in meters per second.")] = "4.5,0,0.2",
    friction: Annotated[float, typer.Option(help="Coulomb's coefficient of all contacts.")] = 0.3,
    restitution: Annotated[float, typer.Option(help="Of all contacts, 0 to 1.")] = 0.2,
    rate: Annotated[float, typer.Option(help="How often the law is computed, per second.")] = 500.0,
    step: Annotated[float, typer.Option(help="Of time, in seconds.")] = 1e-3,
    duration: Annotated[float, typer.Option(help="Simulated time, in seconds.")] = 3.0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for figures, animations and the run.")
    ] = None,
) -> None:
    """Throw a block at a robot that balances (Wendlandt 1997: events, Figures 3 to 6, cost beside the paper's)."""
    from legged.app.balance import Throw, paper_experiment, standing_experiment
    from legged.app.balance_report import Account
    from legged.app.named import robot_named

    block = None
    if throw:
        places = {"size": size, "position": position, "velocity": velocity}
        block = Throw(mass, **{name: _three(name, text) for name, text in places.items()})
    given = {"throw": block, "friction": friction, "restitution": restitution}
    given |= {"rate": rate, "step": step, "duration": duration}
    if robot == "spatial_biped":
        experiment = paper_experiment(**given)
    else:
        experiment = standing_experiment(robot_named(robot), **given)
    account = Account(experiment)
    tables = account.event_table(), account.result_table(), account.cost_table()
    print("\n\n".join(table.text() for table in tables), end="\n\n")
    if output is not None:
        for path in account.write(output):
            print(path)
    if account.run.ended:
        raise SimulationError(account.run.ended, account.run)


def _three(name: str, text: str) -> tuple[float, float, float]:
    """Return three numbers that a user wrote with commas between."""
    try:
        x, y, z = (float(part) for part in text.split(","))
    except ValueError:
        raise DefinitionError(
            f"--{name} takes three numbers with commas between, such as 0.5,0.1,1.2, got {text!r}"
        ) from None
    return x, y, z
