"""The algorithms of the field side by side: what each costs on a robot, counted and timed."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

import legged
from legged.algorithms import (
    articulated,
    composite,
    constraint_force,
    divide_and_conquer,
    newton_euler,
    operators,
    sparse_system,
    sparsity,
    unit_accelerations,
)
from legged.dynamics.forward import forward_dynamics
from legged.dynamics.inertia import inertia_matrix
from legged.dynamics.inverse import inverse_dynamics
from legged.errors import DefinitionError, UnknownNameError
from legged.reports.table import Table
from legged.robot.base import FixedBase
from legged.robot.robot import Robot
from legged.trace import count, depth
from robots import chain, tree

ALGORITHMS: dict[str, dict[str, Callable[..., Any]]] = {
    "inverse dynamics": {
        "modular": inverse_dynamics,
        "Newton-Euler": newton_euler.inverse_dynamics,
        "Newton-Euler, absolute": partial(newton_euler.inverse_dynamics, coordinates="absolute"),
    },
    "forward dynamics": {
        "modular": forward_dynamics,
        "articulated bodies": articulated.forward_dynamics,
        "articulated bodies, absolute": partial(articulated.forward_dynamics, coordinates="absolute"),
        "inertia matrix, L^T D L": sparsity.forward_dynamics,
        "spatial operators": operators.forward_dynamics,
        "sparse system": sparse_system.forward_dynamics,
        "constraint forces": constraint_force.forward_dynamics,
        "divide and conquer, inverse": partial(divide_and_conquer.forward_dynamics, version="inverse"),
        "divide and conquer, pivoted": divide_and_conquer.forward_dynamics,
    },
    "inertia matrix": {
        "modular": inertia_matrix,
        "composite bodies": composite.inertia_matrix,
        "composite bodies, absolute": partial(composite.inertia_matrix, coordinates="absolute"),
        "unit accelerations, moving links": unit_accelerations.from_moving_links,
        "unit accelerations, inverse dynamics": unit_accelerations.from_inverse_dynamics,
    },
}
"""Task -> name of the algorithm -> function of a robot."""
ARGUMENTS = {"inverse dynamics": 3, "forward dynamics": 3, "inertia matrix": 1}
SIZES = (2, 4, 6, 8, 10, 12, 16, 20, 24, 30)
NOTES = (
    "M: multiplications and divisions, A: additions, counted on the traced code that runs; sines are not counted.",
    "Depth: the longest chain of operations of which each needs the one before.",
    "Algorithms that refuse a robot, for branches, rotors, couplings or thin rods, are left out.",
    "The modular algorithms and the others share the regrouped inertias and the frames of the bodies.",
)


@dataclass(frozen=True)
class Cost:
    """What an algorithm costs on a robot: counts, the longest chain of operations that wait for each other (`depth`),
    and microseconds for one state called from Python, if timed."""

    robot: str
    n: int
    task: str
    algorithm: str
    M: int
    A: int
    depth: int
    time: float | None = None


def costs(robot: Robot, algorithms: Iterable[str] | None = None, timed: bool = False) -> list[Cost]:
    """Return what the algorithms cost on a robot, but for those that refuse it.

    Args:
        robot: The robot. algorithms: Their names, or beginnings of them; all when None.
        timed: Whether to compile and time them as well.

    Raises:
        UnknownNameError: for a name that is none's.
    """
    chosen = tuple(algorithms or ())
    known = {name for group in ALGORITHMS.values() for name in group}
    for name in chosen:
        if not any(other.startswith(name) for other in known):
            raise UnknownNameError("algorithm", name, sorted(known))
    found = []
    for task, group in ALGORITHMS.items():
        for name in group:
            if not chosen or name.startswith(chosen):
                found += _cost(robot, task, name, timed)
    return found


def _cost(robot: Robot, task: str, name: str, timed: bool) -> list[Cost]:
    """Return what an algorithm costs, or nothing if it refuses the robot: for its branches, rotors or couplings."""
    function = ALGORITHMS[task][name]
    try:
        counts = count(function, robot)
    except DefinitionError:
        return []
    time = microseconds(robot, task, function) if timed else None
    return [Cost(robot.name, robot.nv, task, name, counts.M, counts.A, depth(function, robot), time)]


def microseconds(robot: Robot, task: str, function: Callable[..., Any], calls: int = 2000) -> float:
    """Return the median time of a compiled function called with one state from Python, [us], over ten runs of calls."""
    rng = np.random.default_rng(0)
    state = (legged.random_configuration(robot, rng), *rng.normal(size=(2, robot.nv)))[: ARGUMENTS[task]]
    kernel = legged.compile(function, robot)
    times = []
    for _ in range(10):
        start = perf_counter()
        for _ in range(calls // 10):
            kernel(*state)
        times.append((perf_counter() - start) / (calls // 10))
    return 1e6 * median(times)


def cost_table(found: Sequence[Cost]) -> Table:
    """Return the costs as a table, the modular algorithm's share beside each."""
    whole = {(c.robot, c.task): c.M + c.A for c in found if c.algorithm == "modular"}
    rows = []
    for c in found:
        here = whole.get((c.robot, c.task))
        share = f"{(c.M + c.A) / here:.2f}" if here else ""
        time = "" if c.time is None else f"{c.time:.2f}"
        rows.append((f"{c.robot}, {c.n} DoF", c.task, c.algorithm, str(c.M), str(c.A), share, str(c.depth), time))
    header = ("robot", "task", "algorithm", "M", "A", "M + A of modular", "depth", "one state [us]")
    return Table("The algorithms of the field", header, tuple(rows), NOTES, left=3)


def as_csv(found: Sequence[Cost]) -> str:
    """Return the costs as comma-separated values, a header first."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(("robot", "n", "task", "algorithm", "M", "A", "depth", "time_us"))
    writer.writerows(
        (c.robot, c.n, c.task, c.algorithm, c.M, c.A, c.depth, "" if c.time is None else c.time) for c in found
    )
    return text.getvalue()


FAMILIES: dict[str, Callable[[int], Robot]] = {
    "chain, fixed base": partial(chain, twist=np.pi / 2, base=FixedBase()),
    "chain, floating base": partial(chain, twist=np.pi / 2),
    "binary tree, fixed base": partial(tree, branching=2, base=FixedBase()),
    "binary tree, floating base": partial(tree, branching=2),
}
"""Families of trees over which the crossover of forward dynamics is looked for."""


@cache
def _operations(family: str, n: int, name: str) -> int:
    counts = count(ALGORITHMS["forward dynamics"][name], FAMILIES[family](n))
    return counts.M + counts.A


def growth(family: str, name: str, sizes: Sequence[int] = SIZES) -> list[int]:
    """Return M + A of a forward dynamics over the number of links of a family."""
    return [_operations(family, n, name) for n in sizes]


def crossover(family: str, first: str, second: str, sizes: Sequence[int] = SIZES) -> float | None:
    """Return the number of links at which the first algorithm begins to cost more than the second, or None.

    Between two sizes the counts are taken as straight lines.
    """
    ahead = np.subtract(growth(family, first, sizes), growth(family, second, sizes)).astype(float)
    for k in range(1, len(sizes)):
        if ahead[k - 1] <= 0 < ahead[k]:
            return float(np.interp(0.0, ahead[k - 1 : k + 1], sizes[k - 1 : k + 1]))
    return float(sizes[0]) if ahead[0] > 0 else None


def crossover_table(sizes: Sequence[int] = SIZES) -> Table:
    """Return where the inertia-matrix method begins to cost more than the O(n) recursions, for each family."""
    rows = []
    for family in FAMILIES:
        for linear in ("articulated bodies", "modular"):
            found = crossover(family, "inertia matrix, L^T D L", linear, sizes)
            last = growth(family, "inertia matrix, L^T D L", sizes)[-1] / growth(family, linear, sizes)[-1]
            words = "never" if found is None else f"{found:.1f}"
            rows.append((family, linear, words, f"{last:.2f}"))
    header = ("tree", "O(n) algorithm", "crossover at n", f"cost at n = {sizes[-1]}")
    return Table("The inertia-matrix method against recursion", header, tuple(rows), (), left=2)
