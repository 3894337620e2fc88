"""The page that `legged count --algorithms` writes: tables, figures and data of the algorithms side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from legged.app import algorithm_tables as tables
from legged.app.algorithm_figures import condition_figure, depth_figure, growth_figure, time_figure
from legged.app.algorithms import ALGORITHMS, Cost, as_csv
from legged.app.counts import literature_table
from legged.app.page import Page
from legged.table import Table

INTRODUCTION = (
    "Several algorithms compute the same: the torques that a motion takes (inverse dynamics), the motion that torques "
    "give (forward dynamics), the inertia matrix, and more. Each is written once here, and its operations are counted "
    "on the code that runs, with everything folded that is constant, zero or common. *Modular* are the recursions of "
    "`legged` itself; the others are in `legged.algorithms`. All share the robot's frames and regrouped inertias, so "
    "differences are those of the algorithms. M are multiplications and divisions, A additions and subtractions."
)


def compared(found: Sequence[Cost]) -> list[Table]:
    """Return the tables of what was measured: a task each, then depth, and times if there are some."""
    tasks = [task for task in ALGORITHMS if any(c.task == task for c in found)]
    made = _noted_once([tables.task_table(found, task) for task in tasks])
    if "forward dynamics" in tasks:
        made.append(tables.depth_table(found))
    if any(c.time is not None for c in found):
        made += _noted_once([tables.time_table(found, task) for task in tasks])
    return made


def _noted_once(alike: list[Table]) -> list[Table]:
    """Return tables that share their notes with these below the first alone."""
    return [alike[0], *(replace(table, notes=()) for table in alike[1:])] if alike else []


def write(folder: Path, found: Sequence[Cost], whole: bool = True) -> list[Path]:
    """Write `algorithms.md`, `algorithms.csv` and the figures into a folder, and return their paths.

    Args:
        folder: Made if it is not there. found: What was measured. whole: With crossovers, published formulas, growth,
            depth and condition, which do not depend on the robots.
    """
    page = Page(folder, "The algorithms of the field, counted")
    page.text(INTRODUCTION)
    page.heading("Operations, depth and time on robots")
    for table in compared(found):
        page.table(table)
    if any(c.time is not None for c in found):
        page.figure(time_figure(found), "times", "Time of forward dynamics for one state, compiled, by robot")
    if whole:
        _general(page, found)
    page.heading("Every figure")
    page.table(tables.detail_table(found))
    written = page.write("algorithms.md")
    data = folder / "algorithms.csv"
    data.write_text(as_csv(found), encoding="utf-8")
    return [written, data, *page.figures]


def _general(page: Page, found: Sequence[Cost]) -> None:
    """Add what holds for families of robots, and the literature."""
    page.heading("Inertia matrix or recursion")
    page.table(tables.crossover_table())
    page.table(tables.cubic_table(found))
    page.figure(growth_figure(), "growth", "Operations of forward dynamics over the number of links, M + A")
    page.heading("Depth of the parallel forms")
    page.figure(
        depth_figure(),
        "depth",
        "Depth and operations of forward dynamics over the bodies of a chain. Divide and conquer and the "
        "constraint-force algorithm add the same depth with each doubling, at the price of more operations",
    )
    page.heading("Published counts")
    page.table(tables.published_table(12))
    page.table(literature_table(12))
    page.heading("Condition of the inertia matrix")
    page.figure(
        condition_figure(),
        "condition",
        "Condition number over size, branching (mean number of children), base, and taper (each link's size over that "
        "of the one before): medians and ranges of 20 random configurations",
    )
