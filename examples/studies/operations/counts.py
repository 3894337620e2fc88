"""Table 1 and Figure 7 of the paper: operation counts of chains of n links beside the published formulas."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from matplotlib.figure import Figure

from examples.studies.operations import published
from legged.compiler import count
from legged.counting.robot_counts import COUNTING_RULES, DynamicsCounts, measure
from legged.dynamics.inertia import inertia_matrix
from legged.robot.base import FixedBase
from legged.simulation.plots import pages
from legged.table import Table
from robots import chain, hexapod, planar_biped, spatial_quadruped

SIZES = (4, 8, 12, 16, 20, 30)
TWISTS = {"parallel axes": 0.0, "perpendicular axes": np.pi / 2, "arbitrary twist": 0.7}
"""Families of chains: name -> angle between one joint's axis and the next, [rad]."""
_TASKS = ("inverse", "forward", "inertia matrix", "solve")


def family(twist: float, floating: bool = True, sizes: Sequence[int] = SIZES) -> list[DynamicsCounts]:
    """Return the counts of chains of several lengths with one twist between neighboring axes, [rad]."""
    return [_measured_chain(n, twist, floating) for n in sizes]


@cache
def _measured_chain(n: int, twist: float, floating: bool) -> DynamicsCounts:
    return measure(chain(n, twist=twist, base=None if floating else FixedBase()))


@cache
def walking_robots() -> list[DynamicsCounts]:
    """Return the counts of three walking robots, two of them the paper's."""
    return [measure(robot) for robot in (planar_biped(), spatial_quadruped(), hexapod())]


def line(sizes: Sequence[int], counts: Sequence[int]) -> tuple[float, float, float]:
    """Return (slope, constant, largest residual) of the least-squares line through counts over n."""
    slope, constant = np.polyfit(sizes, counts, 1)
    residual = np.abs(np.polyval([slope, constant], sizes) - counts).max()
    return float(slope), float(constant), float(residual)


def family_table(sizes: Sequence[int] = SIZES, bases: Sequence[bool] = (True, False)) -> Table:
    """Return Table 1: lines fitted to the counts of n-link chains, beside the published formulas.

    Args:
        sizes: Lengths of the chains.
        bases: True for chains on a floating base, False for chains on a fixed one.
    """
    rows: list[tuple[str, ...]] = []
    worst = 0.0
    for floating in bases:
        measured = {name: family(twist, floating, sizes) for name, twist in TWISTS.items()}
        for task in ("inverse", "forward"):
            rows.append((f"{'floating' if floating else 'fixed'} base, {task} dynamics", "", ""))
            for name, chains in measured.items():
                counts = [getattr(m, task) for m in chains]
                fits = [line(sizes, [getattr(c, letter) for c in counts]) for letter in "MA"]
                worst = max(worst, *(fit[2] for fit in fits))
                rows.append((f"  measured, {name}", *(_line_words(*fit[:2]) for fit in fits)))
            for formula in published.TABLE_1:
                if (formula.task, formula.floating) == (task, floating):
                    words = (published.polynomial(formula.M), published.polynomial(formula.A))
                    rows.append((f"  {formula.algorithm}", *words))
    notes = (
        f"Measured: lines through n = {', '.join(map(str, sizes))}; the largest residual is {worst:.1g}.",
        "Link inertias are full; a chain with parallel axes on a fixed base moves in a plane and needs few operations.",
        "The other rows are the paper's Table 1, which dates Featherstone's counts 2008.",
    )
    return Table("Table 1: operations for n links", ("", "M", "A"), tuple(rows), notes + COUNTING_RULES)


def _line_words(slope: float, constant: float) -> str:
    slope_words, constant_words = (f"{abs(value):.1f}".removesuffix(".0") for value in (slope, constant))
    return f"{slope_words}n {'-' if constant < 0 else '+'} {constant_words}"


def literature_table(n: int) -> Table:
    """Return a table of all published formulas at n links beside our counts for a chain of arbitrary twist."""
    every = (*published.TABLE_1, *published.LITERATURE, published.CUBIC_FIXED)
    here: dict[tuple[str, bool], tuple[int, int]] = {}
    rows = []
    for f in sorted(every, key=lambda f: (_TASKS.index(f.task), not f.floating)):
        kind, base = (f.task, f.floating), "floating" if f.floating else "fixed"
        if kind not in here and f.task != "solve":
            here[kind] = _chain_counts(n, *kind)
            rows.append((f"{f.task}, {base}: here", "", "", *map(str, here[kind]), "", "measured"))
        M, A = f.at(n)
        share = f"{100 * sum(here[kind]) / (M + A):.0f} %" if kind in here else ""
        words = (f"{f.task}, {base}: {f.algorithm}", published.polynomial(f.M), published.polynomial(f.A))
        rows.append((*words, f"{M:.0f}", f"{A:.0f}", share, f.status))
    header = ("operations", "M", "A", f"M at n = {n}", f"A at n = {n}", "here, M + A", "checked")
    notes = (f"Here: a chain of {n} links of full inertia with arbitrary twist, the general case of the formulas.",)
    notes += tuple(f"{status}: {meaning}." for status, meaning in published.CHECKED.items())
    notes += tuple(f"{f.algorithm}: {f.remark}." for f in every if f.remark)
    return Table("Published operation counts, and ours", header, tuple(rows), notes)


def _chain_counts(n: int, task: str, floating: bool) -> tuple[int, int]:
    """Return (M, A) of a task for a chain of n links with arbitrary twist."""
    twist = TWISTS["arbitrary twist"]
    if task == "inertia matrix":
        counts = count(inertia_matrix, chain(n, twist=twist, base=None if floating else FixedBase()))
    else:
        counts = getattr(_measured_chain(n, twist, floating), task)
    return counts.M, counts.A


def figure_7(robots: Sequence[DynamicsCounts] = ()) -> Figure:
    """Return the counterpart of Figure 7: published formulas as lines, measured counts as markers.

    Args:
        robots: Counts of robots to mark as well; those with a fixed base are left out.
    """
    n = list(range(1, SIZES[-1] + 1))
    made = pages.figure(1, 2, width=10.0, height=4.8)
    for ax, letter, words in zip(made.axes, "MA", ("multiplications and divisions", "additions"), strict=True):
        for formula, color, dashes in (
            (published.MCMILLAN_ORIN_CUBIC, pages.RED, "--"),
            (published.MCMILLAN_ORIN_LINEAR, pages.GREY, "-."),
            (published.PROPOSED_FORWARD_FLOATING, "black", "-"),
        ):
            values = [formula.at(k)["MA".index(letter)] for k in n]
            ax.plot(n, values, dashes, color=color, linewidth=1.2, label=formula.algorithm)
        six_more = [published.FEATHERSTONE_FORWARD.at(k + 6)["MA".index(letter)] for k in n]
        ax.plot(
            n,
            six_more,
            ":",
            color=pages.PURPLE,
            linewidth=1.2,
            label="Featherstone 1987, six more joints for the base",
        )
        for (name, twist), color, mark in zip(
            TWISTS.items(), (pages.GREEN, pages.BLUE, pages.ORANGE), "v^o", strict=True
        ):
            values = [getattr(m.forward, letter) for m in family(twist)]
            ax.plot(SIZES, values, mark, color=color, markersize=5, label=f"measured: {name}")
        _mark(ax, [m for m in robots if m.floating], letter)
        ax.set_ylim(0, 1.15 * published.FEATHERSTONE_FORWARD.at(n[-1] + 6)["MA".index(letter)])
        pages.label(ax, f"Forward dynamics, floating base: {words}", "links without the base, n")
    return pages.legend(made)


def _mark(ax, robots: Sequence[DynamicsCounts], letter: str) -> None:
    for m in robots:
        count = getattr(m.forward, letter)
        ax.plot(m.n, count, "*", color="black", markersize=8)
    for place in sorted({m.n for m in robots}):
        here = sorted((m for m in robots if m.n == place), key=lambda m: getattr(m.forward, letter))
        words = ", ".join(m.name for m in here)
        right = place > 0.7 * SIZES[-1]  # the name goes to the left of its mark
        ax.annotate(
            words,
            (place, getattr(here[0].forward, letter)),
            (-7 if right else 7, -3),
            textcoords="offset points",
            fontsize=8,
            ha="right" if right else "left",
        )
