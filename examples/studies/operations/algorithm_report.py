"""Report on the costs of the algorithms: tables, figures and the page of `python -m examples.studies algorithms`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from examples.studies.operations import published
from examples.studies.operations.algorithms import (
    ALGORITHMS,
    FAMILIES,
    MOST_TIMED,
    SIZES,
    AlgorithmCost,
    crossover,
    growth,
    write_costs,
)
from examples.studies.operations.counts import literature_table
from examples.studies.operations.published import Formula
from legged.compiler import count, count_and_depth
from legged.dynamics.inertia import inertia_matrix
from legged.robot.base import Base, FixedBase, FloatingBase
from legged.robot.configuration import random_configuration
from legged.robot.robot import Robot
from legged.simulation.plots import pages
from legged.simulation.plots.pages import Page
from legged.table import Table
from robots import chain, tree

CUBIC, LINEAR = "inertia matrix, L^T D L", "articulated bodies"
TWIST = 0.7
"""Angle between joint axes of the chain in `published_table`, [rad], for which no term of the formulas vanishes."""
PUBLISHED: tuple[tuple[str, str, Formula], ...] = (
    ("inverse dynamics", "modular", published.PROPOSED_INVERSE_FIXED),
    ("inverse dynamics", "Newton-Euler", published.FEATHERSTONE_INVERSE),
    ("inverse dynamics", "Newton-Euler", published.BALAFOUTIS_PATEL),
    ("forward dynamics", "modular", published.PROPOSED_FORWARD_FIXED),
    ("forward dynamics", "articulated bodies", published.FEATHERSTONE_FORWARD),
    ("forward dynamics", CUBIC, published.CUBIC_FIXED),
    ("inertia matrix", "composite bodies", published.CRBA),
)
"""Task, name in `ALGORITHMS`, and published count of the algorithm for a chain of n links on a fixed base."""


def task_table(measured: Sequence[AlgorithmCost], task: str) -> Table:
    """Return M + A of the algorithms of a task, one column per robot."""
    notes = (
        "Multiplications, divisions and additions, counted on the traced graph; sines are not counted.",
        "A dash: the algorithm does not support the robot (branches, couplings, rotors, or thin rods).",
        "The modular inertia matrix is a derivation of the composite-body algorithm. Ends: last links of all limbs.",
    )
    return _side_by_side(f"{task.capitalize()}: operations, M + A", measured, task, lambda c: str(c.total), notes)


def depth_table(measured: Sequence[AlgorithmCost]) -> Table:
    """Return the length of the critical path of forward dynamics, one column per robot."""
    notes = ("Depth: longest chain of dependent operations, the time with unlimited processors.",)
    return _side_by_side("Forward dynamics: depth", measured, "forward dynamics", lambda c: str(c.depth), notes)


def time_table(measured: Sequence[AlgorithmCost], task: str) -> Table:
    """Return the times of the algorithms of a task, [us], one column per robot."""
    notes = (f"One compiled call with one state from Python. A dash: not supported, or over {MOST_TIMED} operations.",)
    cell: Callable[[AlgorithmCost], str] = lambda c: "-" if c.time is None else f"{c.time:.2f}"  # noqa: E731
    return _side_by_side(f"{task.capitalize()}: time [us]", measured, task, cell, notes)


def _side_by_side(
    title: str,
    measured: Sequence[AlgorithmCost],
    task: str,
    cell: Callable[[AlgorithmCost], str],
    notes: tuple[str, ...],
) -> Table:
    known = {(c.robot, c.algorithm): c for c in measured if c.task == task}
    robots = list(dict.fromkeys((c.robot, c.n) for c in measured))
    names = [name for name in ALGORITHMS[task] if any(c.algorithm == name and c.task == task for c in measured)]
    rows = [
        (name, *(cell(known[robot, name]) if (robot, name) in known else "-" for robot, _ in robots)) for name in names
    ]
    header = ("algorithm", *(f"{robot}, {n} DoF" for robot, n in robots))
    return Table(title, header, tuple(rows), notes)


def published_table(n: int) -> Table:
    """Return our counts beside published counts of the same algorithms, for a chain on a fixed base."""
    rows = []
    for task, name, formula in PUBLISHED:
        M, A = _chain_counts(n, task, name)
        theirs = formula.at(n)
        share = f"{100 * (M + A) / sum(theirs):.0f} %"
        rows.append((f"{task}: {name}", formula.algorithm, f"{M}, {A}", f"{theirs[0]:.0f}, {theirs[1]:.0f}", share))
    notes = (
        f"M, A for a chain of {n} links of full inertia, {TWIST} rad between axes: the general case of the formulas.",
        "Balafoutis and Patel rearrange the Newton-Euler recursion; here it is plain.",
        "The formulas, in n, and how far each was checked, are in the next table.",
    )
    header = ("algorithm here", "published by", "here", "published", "M + A, here of published")
    return Table("Beside published counts", header, tuple(rows), notes, left=2)


@cache
def _chain_counts(n: int, task: str, name: str) -> tuple[int, int]:
    counts = count(ALGORITHMS[task][name], chain(n, twist=TWIST, base=FixedBase()))
    return counts.M, counts.A


def crossover_table(sizes: Sequence[int] = SIZES) -> Table:
    """Return the size above which the inertia-matrix method costs more than the O(n) recursions, for each family."""
    shown = (6, 12, sizes[-1])
    rows = []
    for family in FAMILIES:
        for linear in (LINEAR, "modular"):
            size = crossover(family, CUBIC, linear, sizes)
            words = f"over {sizes[-1]}" if size is None else "2 or less" if size <= sizes[0] else f"{size:.1f}"
            ratios = np.divide(growth(family, CUBIC, shown), growth(family, linear, shown))
            rows.append((family, linear, words, *(f"{ratio:.2f}" for ratio in ratios)))
    header = ("tree", "recursion", "recursion cheaper from n", *(f"ratio at n = {n}" for n in shown))
    notes = (
        "Ratio: M + A of forward dynamics by the inertia matrix (composite bodies, L^T D L) over the recursion's.",
        "n: links without the base, each axis perpendicular to the next. Published counts of chains cross near n = 9.",
    )
    return Table("Where recursion becomes cheaper than the inertia matrix", header, tuple(rows), notes, left=2)


def cubic_table(measured: Sequence[AlgorithmCost]) -> Table:
    """Return the ratio of the costs of the O(n^3) and the O(n) method on each robot."""
    known = {(c.robot, c.algorithm): c for c in measured if c.task == "forward dynamics"}
    rows = []
    for robot, n in dict.fromkeys((c.robot, c.n) for c in measured):
        if (robot, CUBIC) in known and (robot, LINEAR) in known:
            cubic, linear = known[robot, CUBIC], known[robot, LINEAR]
            times = f"{cubic.time / linear.time:.2f}" if cubic.time and linear.time else "-"
            rows.append((robot, str(n), f"{cubic.total / linear.total:.2f}", times))
    notes = (
        f"{CUBIC} over {LINEAR}, forward dynamics. Branches put zeros into the inertia matrix, so that the",
        "cubic method stays close to the linear one on robots of short limbs, far from it on a chain as long.",
        "Times follow the machine, too: memory, vector lanes for alike limbs, and how large a kernel is.",
    )
    header = ("robot", "DoF", "operations, cubic over linear", "time, cubic over linear")
    return Table("The cubic method beside the linear one", header, tuple(rows), notes)


def detail_table(measured: Sequence[AlgorithmCost]) -> Table:
    """Return all costs, one row for each algorithm and robot."""
    rows = [
        (c.robot, c.task, c.algorithm, str(c.M), str(c.A), str(c.depth), "-" if c.time is None else f"{c.time:.2f}")
        for c in measured
    ]
    header = ("robot", "task", "algorithm", "M", "A", "depth", "one state [us]")
    return Table("All costs", header, tuple(rows), left=3)


SHOWN = {
    "modular": ("black", "-"),
    "articulated bodies": (pages.BLUE, "--"),
    "spatial operators": (pages.GREEN, ":"),
    "inertia matrix, L^T D L": (pages.ORANGE, "-"),
}
PARALLEL = {
    "articulated bodies": (pages.BLUE, "--"),
    "sparse system": (pages.GREY, "-."),
    "constraint forces": (pages.GREEN, ":"),
    "divide and conquer, inverse": (pages.ORANGE, "-"),
    "divide and conquer, pivoted": (pages.RED, "-"),
}
BODIES = (4, 8, 16, 32)
LINKS = (2, 4, 8, 16, 32)
STUDY: dict[str, dict[str, Callable[[int], Robot]]] = {
    "branching, fixed base": {f"{b:g}": lambda n, b=b: _study(n, b, 1.0, FixedBase()) for b in (1, 1.5, 2, 4)},
    "branching, floating base": {f"{b:g}": lambda n, b=b: _study(n, b, 1.0, FloatingBase()) for b in (1, 1.5, 2, 4)},
    "taper of a chain, fixed base": {f"{t:g}": lambda n, t=t: _study(n, 1, t, FixedBase()) for t in (1.0, 0.95, 0.9)},
}
"""Panel -> curve -> function that returns a robot of n links."""
_CONFIGURATIONS = 20
_COLORS = (
    "black",
    pages.BLUE,
    "#7fb8dd",
    pages.ORANGE,
    pages.GREEN,
    pages.PURPLE,
    pages.GREY,
    "#e8a33d",
    pages.RED,
    "#f0a8a8",
)


def _study(n: int, branching: float, taper: float, base: Base) -> Robot:
    return tree(n, branching=branching, taper=taper, base=base)


def growth_figure() -> Figure:
    """Return M + A of forward dynamics over the number of links, one panel for each family of trees."""
    made = pages.figure(2, 2, width=9.5, height=3.4)
    for ax, family in zip(made.axes, FAMILIES, strict=True):
        for name, (color, dashes) in SHOWN.items():
            ax.plot(SIZES, growth(family, name), dashes, color=color, linewidth=1.5, label=name)
        pages.label(ax, f"Forward dynamics: {family}", "links without the base, n", "operations, M + A")
    return pages.legend(made)


def depth_figure() -> Figure:
    """Return depth and operations of forward dynamics of chains on a floating base over the number of bodies."""
    made = pages.figure(1, 2, width=9.5, height=3.8)
    chains = [chain(n - 1, twist=0.7) for n in BODIES]
    for name, (color, dashes) in PARALLEL.items():
        function = ALGORITHMS["forward dynamics"][name]
        measured = [count_and_depth(function, robot) for robot in chains]
        for ax, values in zip(made.axes, ([d for _, d in measured], [c.M + c.A for c, _ in measured]), strict=True):
            ax.loglog(BODIES, values, dashes, marker="o", markersize=3, color=color, linewidth=1.5, label=name)
    for ax, title in zip(made.axes, ("depth", "operations, M + A"), strict=True):
        pages.label(ax, f"Forward dynamics of a chain: {title}", "bodies, the base among them", title)
        ax.set_xticks(BODIES, [str(n) for n in BODIES])
        ax.minorticks_off()
    return pages.legend(made, columns=3)


def time_figure(measured: Sequence[AlgorithmCost]) -> Figure:
    """Return the times of forward dynamics on each robot, a group of bars each."""
    timed = [c for c in measured if c.task == "forward dynamics" and c.time is not None]
    robots = list(dict.fromkeys(c.robot for c in timed))
    names = list(dict.fromkeys(c.algorithm for c in timed))
    made = pages.figure(1, 1, width=11.0, height=4.4)
    (ax,) = made.axes
    width = 0.85 / max(1, len(names))
    for k, name in enumerate(names):
        own = [
            (robots.index(c.robot) + (k - len(names) / 2 + 0.5) * width, c.time) for c in timed if c.algorithm == name
        ]
        ax.bar(*zip(*own, strict=True), width=width, color=_COLORS[k % len(_COLORS)], label=name)
    ax.set_yscale("log")
    ax.set_axisbelow(True)
    marks = [m for m in (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0) if _reaches(timed, m)]
    ax.set_yticks(marks, [f"{m:g}" for m in marks])
    ax.minorticks_off()
    ax.grid(False, axis="x")
    ax.set_xticks(range(len(robots)), robots)
    pages.label(ax, "Forward dynamics, one state, compiled", "", "time [us]")
    return pages.legend(made, columns=4)


def _reaches(timed: Sequence[AlgorithmCost], mark: float) -> bool:
    """Return whether a tick lies within or next to the range of times."""
    times = [c.time for c in timed if c.time is not None]
    return 0.5 * min(times) <= mark <= 1.5 * max(times)


def condition_numbers(robot: Robot, configurations: int = _CONFIGURATIONS) -> np.ndarray:
    """Return the condition numbers of the inertia matrix at random configurations, (configurations,)."""
    rng = np.random.default_rng(0)
    return np.array(
        [np.linalg.cond(inertia_matrix(robot, random_configuration(robot, rng))) for _ in range(configurations)]
    )


def condition_figure() -> Figure:
    """Return the figure of the condition number of the inertia matrix over size, branching, base and taper.

    Lines are medians over random configurations, bands their range. After Featherstone, "An
    empirical study of the joint space inertia matrix", International Journal of Robotics Research 23(9), 2004.
    """
    made = pages.figure(1, len(STUDY), width=12.0, height=4.0)
    colors = (pages.BLUE, pages.GREEN, pages.ORANGE, pages.RED)
    for ax, (panel, curves) in zip(made.axes, STUDY.items(), strict=True):
        for (name, make), color in zip(curves.items(), colors, strict=False):
            numbers = np.array([condition_numbers(make(n)) for n in LINKS])
            ax.loglog(LINKS, np.median(numbers, axis=1), "o-", color=color, markersize=3, linewidth=1.2, label=name)
            ax.fill_between(LINKS, numbers.min(axis=1), numbers.max(axis=1), color=color, alpha=0.15, linewidth=0)
        ax.set_xticks(LINKS, [str(n) for n in LINKS])
        ax.minorticks_off()
        ax.legend(title=panel.split(",")[0].split(" ")[0], fontsize=8, title_fontsize=8, frameon=False)
        pages.label(ax, panel, "links without the base, n", "condition number of the inertia matrix")
    return made


INTRODUCTION = (
    "Several algorithms compute the same quantity: joint forces of a motion (inverse dynamics), accelerations under "
    "forces (forward dynamics), the inertia matrix, and others. Operations are counted on the traced graph after "
    "constant folding and elimination of common subexpressions. *Modular* denotes the recursions of `legged.dynamics`; "
    "the other algorithms are in `legged.algorithms`. All use the same frames and regrouped inertias of the robot, so "
    "that differences are due to the algorithms. M are multiplications and divisions, A additions and subtractions."
)


def compared(measured: Sequence[AlgorithmCost]) -> list[Table]:
    """Return one table of operations per task, then depth, and times if measured."""
    tasks = [task for task in ALGORITHMS if any(c.task == task for c in measured)]
    made = _noted_once([task_table(measured, task) for task in tasks])
    if "forward dynamics" in tasks:
        made.append(depth_table(measured))
    if any(c.time is not None for c in measured):
        made += _noted_once([time_table(measured, task) for task in tasks])
    return made


def all_tables(measured: Sequence[AlgorithmCost], whole: bool = True) -> list[Table]:
    """Return the tables of `compared`, and with `whole` those on crossovers and published counts."""
    general = [crossover_table(), cubic_table(measured), published_table(12)] if whole else []
    return compared(measured) + general


def _noted_once(alike: list[Table]) -> list[Table]:
    """Return tables with common notes below the first one only."""
    return [alike[0], *(replace(table, notes=()) for table in alike[1:])] if alike else []


def write(folder: Path, measured: Sequence[AlgorithmCost], whole: bool = True) -> list[Path]:
    """Write `algorithms.md`, `algorithms.csv` and the figures into a folder, and return their paths.

    Args:
        folder: Output folder, created if missing.
        measured: Measured costs.
        whole: Whether to add crossovers, published formulas, growth, depth and condition numbers, which do not depend
            on the robots.
    """
    page = Page(folder, "The algorithms of the field, counted")
    page.text(INTRODUCTION)
    page.heading("Operations, depth and time on robots")
    for table in compared(measured):
        page.table(table)
    if any(c.time is not None and c.task == "forward dynamics" for c in measured):
        page.figure(time_figure(measured), "times", "Time of forward dynamics for one state, compiled, by robot")
    if whole:
        _general(page, measured)
    page.heading("All costs")
    page.table(detail_table(measured))
    written = page.write("algorithms.md")
    return [written, write_costs(folder / "algorithms.csv", measured), *page.figures]


def _general(page: Page, measured: Sequence[AlgorithmCost]) -> None:
    """Add the sections on families of robots and on the literature."""
    page.heading("Inertia matrix or recursion")
    page.table(crossover_table())
    page.table(cubic_table(measured))
    page.figure(growth_figure(), "growth", "Operations of forward dynamics over the number of links, M + A")
    page.heading("Depth of the parallel forms")
    page.figure(
        depth_figure(),
        "depth",
        "Depth and operations of forward dynamics over the bodies of a chain. Divide and conquer and the "
        "constraint-force algorithm add the same depth with each doubling, at the price of more operations",
    )
    page.heading("Published counts")
    page.table(published_table(12))
    page.table(literature_table(12))
    page.heading("Condition of the inertia matrix")
    page.figure(
        condition_figure(),
        "condition",
        "Condition number over size, branching (mean number of children), base, and taper (each link's size over that "
        "of the one before): medians and ranges of 20 random configurations",
    )
