"""The command `legged disturbances`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer


def disturbances(
    robot: Annotated[
        str, typer.Argument(help="A robot as in `legged info`; spatial_biped stands as in Wendlandt 1997.")
    ] = "spatial_biped",
    throw: Annotated[bool, typer.Option("--throw/--push", help="Throw a block of 1.8 kg, or push.")] = False,
    gait: Annotated[str, typer.Option(help="stand (workspace balance), walk, trot or tripod (balanced).")] = "stand",
    most: Annotated[
        float | None, typer.Option(help="Hardest push in N s, or fastest throw in m/s; by default what suits the mass.")
    ] = None,
    at: Annotated[float, typer.Option(help="When pushes begin, in seconds.")] = 0.2,
    directions: Annotated[int, typer.Option(min=3, help="How many, all around.")] = 48,
    sizes: Annotated[int, typer.Option(min=2, help="How many.")] = 24,
    friction: Annotated[float, typer.Option(help="Coulomb's coefficient of all contacts.")] = 0.3,
    restitution: Annotated[float, typer.Option(help="Of all contacts, 0 to 1.")] = 0.2,
    step: Annotated[float, typer.Option(help="Of time and control, in seconds.")] = 2e-3,
    duration: Annotated[float, typer.Option(help="Of every run, in seconds.")] = 3.0,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Folder for the figure and the data.")] = None,
) -> None:
    """Map how hard a push or a throw, from where, a robot survives: a run for each size and direction."""
    from legged.app.disturbance_cases import Case, write
    from legged.app.named import robot_named

    begun = time.perf_counter()
    given = {"directions": directions, "sizes": sizes, "step": step, "duration": duration, "most": most, "at": at}
    case = Case(robot_named(robot), gait, throw, friction=friction, restitution=restitution, **given)
    found = case.map()
    print(found.table().text())
    print(f"{found.outcomes.size} runs took {time.perf_counter() - begun:.1f} s, tracing and compiling included\n")
    if output is not None:
        for path in write(case, found, output):
            print(path)
