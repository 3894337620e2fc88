"""Operation counts measured on the traced algorithms, beside the published formulas: Table 1 of the paper."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from legged.app import formulas
from legged.app.formulas import Formula
from legged.compiler import Counts, count
from legged.dynamics.forward import forward_dynamics
from legged.dynamics.inertia import inertia_matrix
from legged.dynamics.inverse import floating_inverse_dynamics, inverse_dynamics
from legged.robot.base import FixedBase
from legged.robot.robot import Robot
from legged.table import Table
from robots import chain

SIZES = (4, 8, 12, 16, 20, 30)
TWISTS = {"parallel axes": 0.0, "perpendicular axes": np.pi / 2, "arbitrary twist": 0.7}
"""Families of chains: name -> angle between one joint's axis and the next, [rad]."""
_TASKS = ("inverse", "forward", "inertia matrix", "solve")
TRICKS = (
    "Counted on the traced code that runs: equal subexpressions once; products with 0 and 1, and what no result needs,",
    "never; divisions are in M; sines and cosines are not counted.",
)


@dataclass(frozen=True)
class Measured:
    """What the two algorithms cost on one robot.

    Attributes:
        name: The robot's. n: Its joint coordinates, the base not counted. floating: Whether its base is free.
        inverse: Of `floating_inverse_dynamics`, or of `inverse_dynamics` with a fixed base.
        forward: Of `forward_dynamics`.
    """

    name: str
    n: int
    floating: bool
    inverse: Counts
    forward: Counts

    def tasks(self) -> Iterable[tuple[str, Counts, Formula]]:
        """Yield (task, measured counts, the paper's formula) for both tasks."""
        yield "inverse", self.inverse, proposed("inverse", self.floating)
        yield "forward", self.forward, proposed("forward", self.floating)


def proposed(task: str, floating: bool) -> Formula:
    """Return the paper's formula for "inverse" or "forward" dynamics."""
    return {
        ("inverse", True): formulas.PROPOSED_INVERSE_FLOATING,
        ("forward", True): formulas.PROPOSED_FORWARD_FLOATING,
        ("inverse", False): formulas.PROPOSED_INVERSE_FIXED,
        ("forward", False): formulas.PROPOSED_FORWARD_FIXED,
    }[task, floating]


def measure(robot: Robot) -> Measured:
    """Return the operation counts of inverse and forward dynamics of a robot."""
    floating = robot.base.nv > 0
    inverse = floating_inverse_dynamics if floating else inverse_dynamics
    return Measured(robot.name, robot.nj, floating, count(inverse, robot), count(forward_dynamics, robot))


def family(twist: float, floating: bool = True, sizes: Sequence[int] = SIZES) -> list[Measured]:
    """Return the counts of chains of several lengths with one twist between neighboring axes, [rad]."""
    return [_measured_chain(n, twist, floating) for n in sizes]


@cache
def _measured_chain(n: int, twist: float, floating: bool) -> Measured:
    return measure(chain(n, twist=twist, base=None if floating else FixedBase()))


def line(sizes: Sequence[int], counts: Sequence[int]) -> tuple[float, float, float]:
    """Return (slope, constant, largest residual) of the least-squares line through counts over n."""
    slope, constant = np.polyfit(sizes, counts, 1)
    residual = np.abs(np.polyval([slope, constant], sizes) - counts).max()
    return float(slope), float(constant), float(residual)


def robot_table(measured: Sequence[Measured]) -> Table:
    """Return measured counts of robots beside the paper's formulas at their n."""
    rows = []
    for m in measured:
        for task, counts, formula in m.tasks():
            M, A = formula.at(m.n)
            share = 100 * (counts.M + counts.A) / (M + A)
            words = f"{m.name}, n = {m.n}, {task}" + ("" if m.floating else ", fixed base")
            rows.append((words, str(counts.M), f"{M:g}", str(counts.A), f"{A:g}", f"{share:.0f} %"))
    header = ("robot and task", "M", "paper M", "A", "paper A", "M + A of paper")
    return Table("Operations of inverse and forward dynamics", header, tuple(rows), TRICKS)


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
            for formula in formulas.TABLE_1:
                if (formula.task, formula.floating) == (task, floating):
                    words = (formulas.polynomial(formula.M), formulas.polynomial(formula.A))
                    rows.append((f"  {formula.algorithm}", *words))
    notes = (
        f"Measured: lines through n = {', '.join(map(str, sizes))}; no count is off its line by more than {worst:.1g}.",
        "Link inertias are full; a chain with parallel axes on a fixed base moves in a plane and costs little.",
        "The other rows are the paper's Table 1, which dates Featherstone's counts 2008.",
    )
    return Table("Table 1: operations for n links", ("", "M", "A"), tuple(rows), notes + TRICKS)


def _line_words(slope: float, constant: float) -> str:
    slope_words, constant_words = (f"{abs(value):.1f}".removesuffix(".0") for value in (slope, constant))
    return f"{slope_words}n {'-' if constant < 0 else '+'} {constant_words}"


def part_table(measured: Measured, task: str, by: str) -> Table:
    """Return the counts of one task by "stage" or by "module".

    Args:
        measured: The robot's counts. task: "inverse" or "forward". by: "stage" or "module".
    """
    counts: Counts = getattr(measured, task)
    parts = counts.by_stage if by == "stage" else counts.by_module
    rows = sorted((_part_name(by, part), *_numbers(c)) for part, c in parts.items())
    header = (by, "M", "A", "sines and cosines")
    return Table(f"{measured.name}: {task} dynamics by {by}", header, (*rows, ("all", *_numbers(counts))))


def _part_name(by: str, part: object) -> str:
    if part is None:
        return "other"
    return f"M{part}" if by == "module" else str(part)


def _numbers(counts: Counts) -> tuple[str, str, str]:
    return str(counts.M), str(counts.A), str(counts.trigonometric)


def literature_table(n: int) -> Table:
    """Return every published formula with its value for n links, and what a chain of arbitrary twist costs here."""
    every = (*formulas.TABLE_1, *formulas.LITERATURE, formulas.CUBIC_FIXED)
    here: dict[tuple[str, bool], tuple[int, int]] = {}
    rows = []
    for f in sorted(every, key=lambda f: (_TASKS.index(f.task), not f.floating)):
        kind, base = (f.task, f.floating), "floating" if f.floating else "fixed"
        if kind not in here and f.task != "solve":
            here[kind] = _chain_counts(n, *kind)
            rows.append((f"{f.task}, {base}: here", "", "", *map(str, here[kind]), "", "measured"))
        M, A = f.at(n)
        share = f"{100 * sum(here[kind]) / (M + A):.0f} %" if kind in here else ""
        words = (f"{f.task}, {base}: {f.algorithm}", formulas.polynomial(f.M), formulas.polynomial(f.A))
        rows.append((*words, f"{M:.0f}", f"{A:.0f}", share, f.status))
    header = ("operations", "M", "A", f"M at n = {n}", f"A at n = {n}", "here, M + A", "checked")
    notes = (f"Here: a chain of {n} links of full inertia with arbitrary twist, the general case of the formulas.",)
    notes += tuple(f"{status}: {meaning}." for status, meaning in formulas.CHECKED.items())
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
