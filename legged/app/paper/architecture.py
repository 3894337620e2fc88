"""The kinematic modules of the ready-made robots, as tables and pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import robots
from legged.app.figures import Page
from legged.app.robot_tables import module_table
from legged.loops import ClosedRobot
from legged.robot.robot import Robot

_ARGUMENTS = {"chain": {"n": 6}, "tree": {"n": 12, "branching": 2}, "star": {"legs": 6}, "centipede": {"pairs": 4}}
"""Arguments of the robots of any size."""


def ready_made_robots() -> Iterator[tuple[str, Robot | ClosedRobot]]:
    """Yield (name, robot) for each robot of `robots`."""
    for name in robots.__all__:
        yield name, getattr(robots, name)(**_ARGUMENTS.get(name, {}))


def architecture(page: Page, say: Callable[[str], None]) -> None:
    """Add the modules of each robot to the page, and print their tables.

    Args:
        page: The page. say: Function that prints a line.
    """
    page.heading("Kinematic modules: Figures 1, 5 and 15")
    page.text(
        "The robots of `robots` as graphs of links, partitioned by the rules of section 2: M_0 is the base; a module "
        "is a run of serial links from the last link of its parent; its number is higher than its parent's. #k^i is "
        "body k of module i, where a joint of several degrees of freedom counts as several bodies. Robots with closed "
        "loops are partitioned after their loops are cut at the joints drawn as dashed lines."
    )
    for name, made in ready_made_robots():
        robot = made if isinstance(made, Robot) else made.robot
        table = replace(module_table(robot), title=f"{robot.name}: kinematic modules")
        page.table(table)
        page.figure(made.draw_modules(), f"modules-{name.replace('_', '-')}", f"The modules of the {robot.name}")
        say(f"{table.text()}\n")
