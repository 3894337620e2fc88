"""A report of one robot: modules, operation counts, conditioning, and a walk with its energy and cost of transport."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

import controllers
from legged.algorithms.legs.leg_chains import leg_chains
from legged.app import robot_tables, scenario, selection
from legged.counting import robot_counts
from legged.errors import LeggedError, SimulationError
from legged.ground import Flat
from legged.loops.assembly import closed_configuration
from legged.loops.constraints import loop_table
from legged.output import as_markdown, visible
from legged.robot.base import FloatingBase, PlanarBase
from legged.robot.diagram.tables import joint_table, link_table, module_table
from legged.robot.robot import Robot
from legged.simulation import Run
from legged.simulation.plots.figures import figures
from legged.simulation.plots.pages import Page, save
from legged.simulation.results.run_table import run_table
from legged.version import __version__

FROUDE = 0.3
"""Commanded speed over the square root of gravity and height of the hips: a comfortable walk."""
_GAITS = {2: "walk", 4: "trot", 6: "tripod"}
"""Number of legs -> gait of `controllers.Locomotion`; crawl for others."""


def report_robot(
    text: str, folder: Path, duration: float, base: str | None = None, say: Callable[[str], None] = print
) -> Path:
    """Write a page about a robot, its figures, its tables as CSV and LaTeX, and the data of its walk; return its path.

    Args:
        text: A robot as `legged.app.selection` reads it.
        folder: Output folder, created if missing.
        duration: Duration of the walk, [s].
        base: Key of `selection.BASES` that replaces the base of the robot.
        say: Function that prints a line.
    """
    chosen = selection.select_any_robot(text, base)
    robot = chosen if isinstance(chosen, Robot) else chosen.robot
    page = Page(folder, visible(robot.name))
    page.text("  \n".join(as_markdown(line.strip()) for line in robot_tables.headline(robot).splitlines()))
    page.heading("Modules")
    save(chosen.draw_modules(), folder / "figures" / "modules.svg")
    page.text("![Kinematic modules](figures/modules.svg)")
    page.table(module_table(robot))
    page.heading("Joints and links")
    page.table(joint_table(robot))
    page.table(link_table(robot))
    page.heading("Conditioning")
    if isinstance(chosen, Robot):
        page.table(robot_tables.conditioning_table(robot, robot.neutral(), "all joints at zero"))
    else:
        q, where = closed_configuration(chosen)
        page.table(robot_tables.conditioning_table(robot, q, where))
        page.table(loop_table(chosen, q))
    say(f"counting the operations of {visible(robot.name)}")
    page.heading("Operations")
    if not isinstance(chosen, Robot):
        page.table(robot_counts.closed_table(chosen))
    measured = robot_counts.measure(robot)
    for table in (robot_counts.robot_table([measured]), *robot_counts.part_tables(measured)):
        page.table(table)
    page.heading("Walk")
    if isinstance(chosen, Robot):
        _add_walk(page, robot, duration, say)
    else:
        page.text("None: the commands of gaits take robots without closed loops.")
    path = page.write()
    say(f"report: {path}\nfigures: {folder / 'figures'}\ntables as CSV and LaTeX: {folder / 'tables'}")
    return path


def _add_walk(page: Page, robot: Robot, duration: float, say: Callable[[str], None]) -> None:
    """Let the robot walk and add the results, or the reason why it does not walk."""
    try:
        walked = _walk(robot, duration, say)
    except SimulationError as error:
        page.text(f"The walk ended early: {as_markdown(error)}.")
        return
    except LeggedError as error:
        page.text(f"The robot does not walk: {as_markdown(error)}.")
        return
    if walked is None:
        page.text("None: a walk needs at least two legs, and a floating base, or a planar base and two legs.")
        return
    run, words, command = walked
    page.text(words + (f" The run ended early: {as_markdown(run.ended)}." if run.ended else ""))
    page.table(run_table(run, command=command))
    for name, figure in figures(run).items():
        page.figure(figure, name, f"{name.capitalize()} of the walk")
    run.save(page.folder / "walk.npz")
    replay = run.save_html(page.folder / "walk.html")
    page.text(f"[Replay]({replay.name}), [data](walk.npz). Made with legged {__version__}, {run.integrator}.")
    say(run_table(run, command=command).text())


def _walk(
    robot: Robot, duration: float, say: Callable[[str], None]
) -> tuple[Run, str, tuple[float, float, float] | None] | None:
    """Return (run, description, command or None) of the walk of a robot; None for a robot that cannot walk."""
    legs = len(leg_chains(robot)) if robot.contacts else 0
    if legs < 2 or not np.linalg.norm(robot.gravity):
        return None
    if isinstance(robot.base, FloatingBase):
        height = controllers.home_of(robot).hip_height
        speed = float(f"{FROUDE * np.sqrt(np.linalg.norm(robot.gravity) * height):.2g}")
        command = speed, 0.0, 0.0
        gait = _GAITS.get(legs, "crawl")
        say(f"{gait} at {speed:g} m/s for {duration:g} s")
        law, options = scenario.commanded(gait, command, Flat())
        run = scenario.simulated(robot, law, until=duration, **options)
        return run, f"`controllers.Locomotion`: {gait} at {speed:g} m/s on rigid, level ground.", command
    if isinstance(robot.base, PlanarBase) and legs == 2:
        law = selection.default_controller(robot, "Walk")
        ground = selection.select_ground(selection.default_ground(robot, "Walk"), robot)
        say(f"walk with the law {law} for {duration:g} s")
        run = scenario.on_gait(robot, selection.select_gait("Walk", robot, law), law, ground, duration)
        return run, f"The paper's walk with the law {law}.", None
    return None
