"""The command line: types of arguments and options, with checks and shell completion, and the output of commands."""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from legged.errors import SimulationError
from legged.output import as_terminal, printable


def stop(reason: str) -> NoReturn:
    """End a command whose run ended early for a reason, `Run.ended`: exit status 130 after Ctrl-C.

    Raises:
        SimulationError: After a fall or a divergence, with exit status 1.
    """
    if not reason.startswith("interrupted"):
        raise SimulationError(reason)
    print(as_terminal(f"{reason}; the results up to there are shown above"), file=sys.stderr)
    raise typer.Exit(130)


def show(*parts: str) -> None:
    """Print texts with an empty line after each."""
    print(as_terminal("\n\n".join(parts)), end="\n\n")


def print_written(output: Path | None, write: Callable[[Path], Iterable[Path]]) -> None:
    """Write results into the folder of `--output`, if it is given, and print the paths of the files."""
    if output is not None:
        for path in write(output):
            print_path(path)


def print_path(path: Path) -> None:
    """Print a path on a line of its own, with control characters as escapes."""
    print(printable(str(path)))


def robot_names(incomplete: str) -> list[str]:
    """Return the robots of `robots` that begin with a text."""
    import robots

    return [name for name in robots.__all__ if name.startswith(incomplete)]


def controller_names(incomplete: str) -> list[str]:
    """Return the names of controllers that begin with a text."""
    from legged.app.selection import CONTROLLERS

    return [name for name in CONTROLLERS if name.startswith(incomplete)]


def positive(value: float | None) -> float | None:
    """Return a number of an option, or raise a usage error if it is not positive and finite."""
    if value is not None and not 0.0 < value < math.inf:
        raise typer.BadParameter(f"must be positive and finite, got {value:g}")
    return value


def output_folder(path: Path | None) -> Path | None:
    """Return the folder of an option after creating it, or raise a usage error if files cannot be written to it."""
    if path is not None:
        try:
            path.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=path).close()
        except OSError as error:
            raise typer.BadParameter(f"cannot write to {str(path)!r}: {error.strerror}") from None
    return path


def output_file(path: Path | None) -> Path | None:
    """Return the file of an option after creating its folder, or raise a usage error if that folder is not writable."""
    if path is not None:
        output_folder(path.parent)
    return path


ROBOT = (
    "A robot of `robots`, such as planar_biped or 'chain(12)'; file.py:NAME, a function or robot; a URDF or MJCF file."
)
"""Forms of a robot on the command line, for help texts."""
RobotName = Annotated[str, typer.Argument(help=ROBOT, autocompletion=robot_names)]
WalkerName = Annotated[str, typer.Argument(help="A robot as in `legged info`.", autocompletion=robot_names)]
BaseName = Annotated[
    str | None,
    typer.Option(
        help="floating, fixed or planar, for robots that take one.",
        autocompletion=lambda: ["floating", "fixed", "planar"],
    ),
]
CONTROLLER = (
    "computed-torque, feed-forward, none (replayed torques), balanced or servo. By default computed-torque, "
    "balanced for robots from URDF or MJCF."
)
ControllerName = Annotated[str | None, typer.Option(help=CONTROLLER, autocompletion=controller_names)]
Duration = Annotated[float, typer.Option(help="Simulated time, in seconds.", callback=positive)]
GROUND = (
    "paper (soft, viscous) or realistic (stiff, sticking). By default paper, realistic for robots from URDF or MJCF."
)
GroundName = Annotated[str | None, typer.Option(help=GROUND, autocompletion=lambda: ["paper", "realistic"])]
TERRAIN = "flat, slope:ANGLE in degrees, steps:RISE or steps:RISE,RUN in meters, or a height map, .png or .csv."
TerrainName = Annotated[str, typer.Option(help=TERRAIN, autocompletion=lambda: ["flat", "slope:", "steps:"])]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Folder for figures and data.", callback=output_folder, file_okay=False),
]
