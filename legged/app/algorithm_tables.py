"""Tables of the algorithms side by side: operations, depth and time, beside published counts, and who wins where."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from legged.app import formulas
from legged.app.algorithms import ALGORITHMS, FAMILIES, MOST_TIMED, SIZES, Cost, crossover, growth
from legged.app.formulas import Formula
from legged.compiler import count
from legged.robot.base import FixedBase
from legged.table import Table
from robots import chain

CUBIC, LINEAR = "inertia matrix, L^T D L", "articulated bodies"
TWIST = 0.7
"""Between the joints' axes of the chain beside published counts, [rad]: nothing vanishes."""
PUBLISHED: tuple[tuple[str, str, Formula], ...] = (
    ("inverse dynamics", "modular", formulas.PROPOSED_INVERSE_FIXED),
    ("inverse dynamics", "Newton-Euler", formulas.FEATHERSTONE_INVERSE),
    ("inverse dynamics", "Newton-Euler", formulas.BALAFOUTIS_PATEL),
    ("forward dynamics", "modular", formulas.PROPOSED_FORWARD_FIXED),
    ("forward dynamics", "articulated bodies", formulas.FEATHERSTONE_FORWARD),
    ("forward dynamics", CUBIC, formulas.CUBIC_FIXED),
    ("inertia matrix", "composite bodies", formulas.CRBA),
)
"""Task, algorithm here, and the published count of it for a chain of n links on a fixed base."""


def task_table(found: Sequence[Cost], task: str) -> Table:
    """Return M + A of a task's algorithms, a column for each robot."""
    notes = (
        "Multiplications, divisions and additions, counted on the traced code that runs; sines are not counted.",
        "A dash: the algorithm refuses the robot, for its branches, couplings, rotors, or links that are thin rods.",
        "The modular inertia matrix is composite bodies' by another derivation. Ends are the last links of all limbs.",
    )
    return _side_by_side(f"{task.capitalize()}: operations, M + A", found, task, lambda c: str(c.total), notes)


def depth_table(found: Sequence[Cost]) -> Table:
    """Return how many operations of forward dynamics wait for each other, a column for each robot."""
    notes = ("The longest chain of operations of which each needs the one before: the time with enough processors.",)
    return _side_by_side("Forward dynamics: depth", found, "forward dynamics", lambda c: str(c.depth), notes)


def time_table(found: Sequence[Cost], task: str) -> Table:
    """Return the times of a task's algorithms, [us], a column for each robot."""
    notes = (
        f"Microseconds for one state, compiled, called from Python. A dash: refused, or over {MOST_TIMED} operations.",
    )
    cell: Callable[[Cost], str] = lambda c: "-" if c.time is None else f"{c.time:.2f}"  # noqa: E731
    return _side_by_side(f"{task.capitalize()}: time [us]", found, task, cell, notes)


def _side_by_side(
    title: str, found: Sequence[Cost], task: str, cell: Callable[[Cost], str], notes: tuple[str, ...]
) -> Table:
    known = {(c.robot, c.algorithm): c for c in found if c.task == task}
    robots = list(dict.fromkeys((c.robot, c.n) for c in found))
    names = [name for name in ALGORITHMS[task] if any(c.algorithm == name and c.task == task for c in found)]
    rows = [
        (name, *(cell(known[robot, name]) if (robot, name) in known else "-" for robot, _ in robots)) for name in names
    ]
    header = ("algorithm", *(f"{robot}, {n} DoF" for robot, n in robots))
    return Table(title, header, tuple(rows), notes)


def published_table(n: int) -> Table:
    """Return the counts of algorithms whose authors, or others, published theirs, for a chain on a fixed base."""
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
    """Return where the inertia-matrix method begins to cost more than the O(n) recursions, for each family."""
    shown = (6, 12, sizes[-1])
    rows = []
    for family in FAMILIES:
        for linear in (LINEAR, "modular"):
            found = crossover(family, CUBIC, linear, sizes)
            words = f"over {sizes[-1]}" if found is None else "2 or less" if found <= sizes[0] else f"{found:.1f}"
            ratios = np.divide(growth(family, CUBIC, shown), growth(family, linear, shown))
            rows.append((family, linear, words, *(f"{ratio:.2f}" for ratio in ratios)))
    header = ("tree", "recursion", "recursion cheaper from n", *(f"ratio at n = {n}" for n in shown))
    notes = (
        "Ratio: M + A of forward dynamics by the inertia matrix (composite bodies, L^T D L) over the recursion's.",
        "n: links without the base, each axis perpendicular to the next. Published counts of chains cross near n = 9.",
    )
    return Table("Where recursion becomes cheaper than the inertia matrix", header, tuple(rows), notes, left=2)


def cubic_table(found: Sequence[Cost]) -> Table:
    """Return how much the O(n^3) method costs beside the O(n) one on each robot."""
    known = {(c.robot, c.algorithm): c for c in found if c.task == "forward dynamics"}
    rows = []
    for robot, n in dict.fromkeys((c.robot, c.n) for c in found):
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


def detail_table(found: Sequence[Cost]) -> Table:
    """Return every figure, a row for each algorithm on each robot."""
    rows = [
        (c.robot, c.task, c.algorithm, str(c.M), str(c.A), str(c.depth), "-" if c.time is None else f"{c.time:.2f}")
        for c in found
    ]
    header = ("robot", "task", "algorithm", "M", "A", "depth", "one state [us]")
    return Table("Every figure", header, tuple(rows), left=3)
