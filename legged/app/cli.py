"""The command line `legged`."""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from legged.app.gaits import add_gait_commands
from legged.app.learning import play_command, train_command
from legged.app.options import (
    BaseName,
    Duration,
    Output,
    RobotName,
    output_folder,
    print_written,
    robot_names,
    show,
)
from legged.app.sweeping import app as sweep_commands
from legged.app.viewing import demo_command, view_command
from legged.errors import DefinitionError, LeggedError
from legged.output import as_terminal, printable
from legged.version import __version__

app = typer.Typer(
    help="Model, analyze, simulate and control legged robots.",
    epilog="Exit status: 0 for success, 1 for a failure, such as a fall, 2 for a wrong command line, 130 after Ctrl-C.",
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
MOVED = ("balance", "bend-swivel", "disturbances", "hop", "hybrid", "planar-balance", "velocity-gains", "wheel-balance")
"""Commands that have become studies of the repository; `_show_place` names their place for one release."""


def main(program: Callable[[], Any] | None = None) -> None:
    """Run a command line, by default that of `legged`; an error becomes one line on stderr and exit status 1."""
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            (program or app)()
        except SystemExit as end:
            if isinstance(getattr(end.__context__, "__cause__", None), KeyboardInterrupt):  # that no command has caught
                print("interrupted before there were results", file=sys.stderr)
            raise
        except LeggedError as error:
            sys.exit(_failed(f"{type(error).__name__}: {error}"))
        except OSError as error:
            sys.exit(_failed(f"{type(error).__name__}: {error.filename or ''}: {error.strerror or error}"))
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            words = f"{type(error).__name__}: {error}, raised in {place.filename}, line {place.lineno}"
            sys.exit(_failed(f"{words}; this is a defect of legged {__version__}, please report the command"))


def _failed(words: str) -> int:
    print(as_terminal(words), file=sys.stderr)
    return 1


def _show_warning(message: Warning | str, category: type[Warning], *place: Any) -> None:
    print(as_terminal(f"{category.__name__}: {message}"), file=sys.stderr)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"legged {__version__}")
        raise typer.Exit()


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Model, analyze, simulate and control legged robots."""


def command(panel: str, example: str, **given: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds a command to a group of the help, with an example below its options."""
    return app.command(rich_help_panel=panel, epilog=f"Example: {example}", **given)


START, ROBOTS, GAITS, LEARNING, REPORTS = "Start", "Robots", "Gaits", "Learning", "Report and cache"
command(START, "legged demo --html demo.html", name="demo")(demo_command)


@command(ROBOTS, "legged info 'chain(12, twist=1.0)' --base fixed")
def info(
    robot: RobotName,
    base: BaseName = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Conditioning at a random configuration.")] = None,
    output: Output = None,
) -> None:
    """Show a robot's modules, links, masses, conditioning and closed loops; draw the modules with --output."""
    import numpy as np

    from legged.app import robot_tables
    from legged.app.selection import select_any_robot
    from legged.loops.assembly import closed_configuration
    from legged.loops.constraints import loop_table
    from legged.robot.configuration import random_configuration
    from legged.robot.diagram.tables import link_table, module_table
    from legged.robot.robot import Robot
    from legged.simulation.plots.pages import save, write_tables

    chosen = select_any_robot(robot, base)
    tree = chosen if isinstance(chosen, Robot) else chosen.robot
    q = tree.neutral() if seed is None else random_configuration(tree, np.random.default_rng(seed))
    where = "all joints at zero" if seed is None else f"random configuration {seed}"
    if not isinstance(chosen, Robot):
        q, where = closed_configuration(chosen, seed)
    tables = [module_table(tree), link_table(tree)]
    tables.append(robot_tables.conditioning_table(tree, q, where))
    if not isinstance(chosen, Robot):
        tables.append(loop_table(chosen, q))
    show(robot_tables.headline(tree), *(table.text() for table in tables))

    def write(folder: Path) -> list[Path]:
        return [save(chosen.draw_modules(), folder / "modules.svg"), *write_tables(tables, folder / "tables")]

    print_written(output, write)


@command(ROBOTS, "legged audit go2.urdf --repair inertia")
def audit(
    file: Annotated[Path, typer.Argument(help="A URDF or MJCF file.")],
    base: Annotated[str | None, typer.Option("--base", help="floating or fixed; by default the file's.")] = None,
    mimic: Annotated[str, typer.Option(help="Joints that follow others: coupled, free or fixed.")] = "coupled",
    repair: Annotated[list[str] | None, typer.Option(help="weld or inertia; may be repeated.")] = None,
    output: Output = None,
) -> None:
    """Show the audit of a robot file, and draw the measured feet with --output.

    The exit status is 1 if `legged.load` rejects the file.
    """
    import legged
    from legged.app import robot_tables
    from legged.files.audit import audit_headline, audit_tables
    from legged.simulation.plots.feet import feet_figure
    from legged.simulation.plots.pages import save, write_tables

    audited = legged.audit(file, base, mimic=mimic, repair=repair)
    tables = audit_tables(audited)
    if not audited.singular:
        tables += robot_tables.robot_tables(legged.load(file, base, mimic=mimic, repair=repair))

    def write(folder: Path) -> list[Path]:
        paths = write_tables(tables, folder / "tables")
        if not audited.singular:
            shaped = legged.load(file, base, mimic=mimic, repair=repair, shapes=True)
            with suppress(DefinitionError):  # a robot without legs has no feet to draw
                paths.append(save(feet_figure(shaped), folder / "feet.svg"))
        return paths

    show(audit_headline(audited), *(table.text() for table in tables))
    print_written(output, write)
    if audited.singular:
        raise typer.Exit(1)


@command(ROBOTS, "legged verify planar_biped --against pinocchio --against mujoco")
def verify(
    robot: RobotName,
    base: BaseName = None,
    against: Annotated[
        list[str] | None, typer.Option(help="pinocchio or mujoco, if installed; may be given twice.")
    ] = None,
    states: Annotated[int, typer.Option(min=1, help="Number of random states.")] = 3,
) -> None:
    """Check the dynamics of a robot against the laws of mechanics and against other programs.

    The exit status is 1 if a law is violated or a program could not be compared.
    """
    import legged
    from legged.app.selection import select_robot
    from legged.errors import MismatchError

    verification = legged.verify(select_robot(robot, base), against or (), states=states)
    print(as_terminal(str(verification)))
    if verification.refused:
        raise MismatchError("; ".join(verification.refused))


@command(ROBOTS, "legged count planar_biped --output results/count")
def count(
    robot: Annotated[str, typer.Argument(help="A robot as in `info`, `all` shipped ones, or `modules`.")] = "all",
    base: BaseName = None,
    output: Output = None,
) -> None:
    """Count the operations of inverse and forward dynamics beside the paper's; of one robot also by stage and module.

    `modules` counts over the number of modules and of legs, with a figure.

    `python -m examples.studies operations`, in the repository, compares them with published counts and algorithms.
    """
    from legged.app.selection import ready_made_robots, select_any_robot, select_robot
    from legged.counting import module_counts, robot_counts
    from legged.robot.robot import Robot
    from legged.simulation.plots.pages import Page

    tables = []
    if robot == "modules":
        tables += module_counts.module_tables()
    elif robot == "all":
        tables.append(
            robot_counts.robot_table([robot_counts.measure(select_robot(name, base)) for name in ready_made_robots()])
        )
    else:
        chosen = select_any_robot(robot, base)
        if not isinstance(chosen, Robot):
            tables.append(robot_counts.closed_table(chosen))
            chosen = chosen.robot  # the spanning tree
        measured = robot_counts.measure(chosen)
        tables += [robot_counts.robot_table([measured]), *robot_counts.part_tables(measured)]
    show(*(table.text() for table in tables))

    def write(folder: Path) -> list[Path]:
        page = Page(folder, "Operation counts", tables)
        if robot == "modules":
            from legged.counting.module_figures import CAPTION, module_figure

            page.figure(module_figure(), "operations-modules", CAPTION)
        return [page.write("counts.md"), *page.figures]

    print_written(output, write)


add_gait_commands(partial(command, GAITS))
command(LEARNING, "legged train velocity go2.urdf --minutes 10", name="train")(train_command)
command(LEARNING, "legged play results/train/policy.onnx go2.urdf", name="play")(play_command)


@command(REPORTS, "legged cache --clear")
def cache(
    clear: Annotated[
        bool, typer.Option("--clear", help="Delete the compiled code; it is compiled again when needed.")
    ] = False,
) -> None:
    """Show the location and size of the cache of compiled code, or clear it."""
    from legged.compiler import cache_contents, clear_cache

    print(printable(str(cache_contents())))
    if clear:
        print(f"deleted: {clear_cache()}")


@command(REPORTS, "legged report go2.urdf --output results/go2 --duration 4")
def report(
    robot: Annotated[
        str, typer.Argument(help="A robot as in `info`; by default the paper's.", autocompletion=robot_names)
    ] = "spatial_quadruped",
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Folder for the report and its figures.", callback=output_folder, file_okay=False
        ),
    ] = Path("results"),
    duration: Duration = 4.0,
    base: BaseName = None,
) -> None:
    """Report on a robot: modules, conditioning, operations, and a walk with its energy.

    `python -m examples.studies paper`, in the repository, computes the walk and the trot of the paper and its figures.
    """
    from legged.app.report import report_robot

    report_robot(robot, output, duration, base)


@command(REPORTS, "legged bench go2.urdf --output results/bench")
def bench(robot: RobotName = "spatial_quadruped", base: BaseName = None, output: Output = None) -> None:
    """Measure the speeds of this machine in a minute, as ratios to Pinocchio and MuJoCo where they are installed."""
    from legged.app.selection import select_robot
    from legged.simulation.plots.pages import write_tables
    from legged.verification.speeds import bench as measured

    tables = measured(select_robot(robot, base), robot, base)
    show(*(table.text() for table in tables))
    print_written(output, lambda folder: write_tables(tables, folder))


command(ROBOTS, "legged view go2.urdf", name="view")(view_command)
app.add_typer(sweep_commands, name="sweep", rich_help_panel=REPORTS)


def _show_place(context: typer.Context, given: Annotated[list[str] | None, typer.Argument()] = None) -> None:
    """Name the place of a study that has left the package; this command disappears with the next release."""
    study = f"python -m examples.studies {context.info_name}"
    raise typer.Exit(_failed(f"`legged {context.info_name}` is now `{study}`, in a clone of the repository"))


for _moved in MOVED:
    app.command(_moved, hidden=True, context_settings={"ignore_unknown_options": True})(_show_place)
