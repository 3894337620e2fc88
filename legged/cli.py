"""The command `legged`: what the toolkit does, from a terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from legged.errors import LeggedError

app = typer.Typer(
    help="Legged robots with kinematic modules: operation counts, walking and trotting, the paper's report.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

RobotName = Annotated[
    str, typer.Argument(help="A robot of `robots`, such as planar_biped or 'chain(12)'; or file.py:function.")
]
BaseName = Annotated[str | None, typer.Option("--base", help="floating, fixed or planar, for robots that take one.")]
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
    """Show a robot's modules, links, masses and conditioning."""
    import numpy as np

    from legged.reports import info as report
    from legged.reports.named import robot_named
    from legged.robot.configuration import random_configuration

    chosen = robot_named(robot, base)
    q = chosen.neutral() if seed is None else random_configuration(chosen, np.random.default_rng(seed))
    where = "all joints at zero" if seed is None else f"random configuration {seed}"
    tables = report.module_table(chosen), report.link_table(chosen), report.conditioning_table(chosen, q, where)
    _show(report.headline(chosen), *(table.text() for table in tables))


@app.command()
def count(
    robot: Annotated[str, typer.Argument(help="A robot as in `info`, `families` for n-link chains, or `all`.")] = "all",
    base: BaseName = None,
    output: Output = None,
) -> None:
    """Count the operations of inverse and forward dynamics, beside the published formulas (Table 1, Figure 7)."""
    from legged.reports import counts
    from legged.reports.named import robot_named

    if robot in ("all", "families"):
        measured = [] if robot == "families" else [counts.measure(robot_named(name, base)) for name in READY]
        bases = {None: (True, False), "floating": (True,), "fixed": (False,)}.get(base, (True,))
        _show(*([counts.robot_table(measured).text()] if measured else []), counts.family_table(bases=bases).text())
        if robot == "all":
            _show(counts.literature_table(12).text())
        _figure_7(measured, output)
        return
    measured = [counts.measure(robot_named(robot, base))]
    _show(counts.robot_table(measured).text())
    for task in ("inverse", "forward"):
        _show(*(counts.part_table(measured[0], task, by).text() for by in ("stage", "module")))
    _figure_7(measured, output)


READY = ("planar_biped", "spatial_quadruped", "hexapod", "planar_hopper")
"""Ready-made robots that need no argument."""


def _figure_7(measured: list, output: Path | None) -> None:
    from legged.reports import style
    from legged.reports.count_figure import figure_7

    if output is not None:
        print(f"figure: {style.save(figure_7(measured), output / 'figure-07-operations.png')}")


def _show(*parts: str) -> None:
    print("\n\n".join(parts), end="\n\n")
