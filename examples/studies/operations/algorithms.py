"""Operation counts and times of the algorithms in `legged.algorithms` beside those of `legged.dynamics`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

import legged
from legged.algorithms import (
    articulated,
    centroidal,
    composite,
    derivatives,
    divide_and_conquer,
    global_form,
    newton_euler,
    operational,
    operators,
)
from legged.algorithms.sparse import constraint_force, sparsity, system
from legged.compiler import count, count_and_depth
from legged.dynamics.forward import forward_dynamics
from legged.dynamics.inertia import inertia_matrix
from legged.dynamics.inverse import inverse_dynamics
from legged.errors import DefinitionError, UnknownNameError
from legged.output import write_table
from legged.robot.base import FixedBase
from legged.robot.robot import Robot
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
        "global form": global_form.forward_dynamics,
        "sparse system": system.forward_dynamics,
        "constraint forces": constraint_force.forward_dynamics,
        "divide and conquer, inverse": partial(divide_and_conquer.forward_dynamics, version="inverse"),
        "divide and conquer, pivoted": divide_and_conquer.forward_dynamics,
    },
    "inertia matrix": {
        "modular": inertia_matrix,
        "composite bodies": composite.inertia_matrix,
        "composite bodies, absolute": partial(composite.inertia_matrix, coordinates="absolute"),
        "unit accelerations, moving links": composite.inertia_matrix_by_unit_accelerations,
        "unit accelerations, inverse dynamics": composite.inertia_matrix_by_inverse_dynamics,
    },
    "inverse inertia at the ends": {
        "force propagators": lambda robot, q: operational.by_propagators(robot, q, ends(robot)),
        "sparse factors": lambda robot, q: operational.by_factors(robot, q, ends(robot)),
        "operators' recursion": lambda robot, q: operational.by_operators(robot, q, ends(robot)),
    },
    "derivatives": {
        "of inverse dynamics": derivatives.of_inverse_dynamics,
        "of forward dynamics": derivatives.of_forward_dynamics,
    },
    "parameters and momentum": {
        "regressor": newton_euler.inverse_dynamics_regressor,
        "centroidal dynamics": centroidal.dynamics,
    },
}
"""Task -> name of the algorithm -> function of a robot."""
ARGUMENTS = {
    "inverse dynamics": 3,
    "forward dynamics": 3,
    "inertia matrix": 1,
    "inverse inertia at the ends": 1,
    "derivatives": 3,
    "regressor": 3,
    "centroidal dynamics": 2,
}
"""Number of arguments, of (q, v, vdot or tau), of the functions of a task or of one algorithm."""
MOST_TIMED = 40_000
"""Largest number of operations of a function that is compiled and timed; compiling larger ones takes minutes."""
SIZES = (2, 4, 6, 8, 10, 12, 16, 20, 24, 30)


@dataclass(frozen=True)
class AlgorithmCost:
    """Cost of an algorithm on a robot.

    Attributes:
        robot: Name of the robot.
        n: Number of degrees of freedom.
        task, algorithm: Keys of `ALGORITHMS`.
        M, A: Multiplications and divisions; additions and subtractions.
        depth: Length of the critical path, in operations.
        time: Time of one call from Python with one state, [us]; None if not timed.
    """

    robot: str
    n: int
    task: str
    algorithm: str
    M: int
    A: int
    depth: int
    time: float | None = None

    @property
    def total(self) -> int:
        """M + A."""
        return self.M + self.A


def ends(robot: Robot) -> list[tuple[int, np.ndarray]]:
    """Return the origins of the last links of all limbs as (link, position (3,), [m], link axes)."""
    parents = {c.parent for c in robot.connections}
    return [(link.index, np.zeros(3)) for link in robot.links if link.name not in parents]


def costs(robot: Robot, algorithms: Iterable[str] | None = None, timed: bool = False) -> list[AlgorithmCost]:
    """Return the costs of the algorithms on a robot; algorithms that do not support the robot are left out.

    Args:
        robot: The robot.
        algorithms: Names of algorithms or prefixes of names; None for all.
        timed: Whether to compile and time them as well.

    Raises:
        UnknownNameError: a name that matches no algorithm.
    """
    chosen = tuple(algorithms or ())
    known = {name for group in ALGORITHMS.values() for name in group}
    for name in chosen:
        if not any(other.startswith(name) for other in known):
            raise UnknownNameError("algorithm", name, sorted(known))
    measured = []
    for task, group in ALGORITHMS.items():
        for name in group:
            if not chosen or name.startswith(chosen):
                measured += _cost(robot, task, name, timed)
    return measured


def _cost(robot: Robot, task: str, name: str, timed: bool) -> list[AlgorithmCost]:
    """Return the cost of an algorithm, or an empty list if it does not support the robot."""
    function = ALGORITHMS[task][name]
    try:
        counts, depth = count_and_depth(function, robot)
    except DefinitionError:
        return []
    arguments = ARGUMENTS.get(name, ARGUMENTS.get(task, 3))
    short = counts.M + counts.A <= MOST_TIMED
    time = microseconds(robot, arguments, function) if timed and short else None
    return [AlgorithmCost(robot.name, robot.nv, task, name, counts.M, counts.A, depth, time)]


def microseconds(robot: Robot, arguments: int, function: Callable[..., Any], calls: int = 2000) -> float:
    """Return the median time of a compiled function called with one state from Python, [us], over ten runs of calls.

    Args:
        robot: The robot.
        arguments: Number of arguments, of (q, v, vdot or tau).
        function: The function.
        calls: Total number of calls.
    """
    rng = np.random.default_rng(0)
    state = (legged.random_configuration(robot, rng), *rng.normal(size=(2, robot.nv)))[:arguments]
    kernel = legged.compile(function, robot)
    times = []
    for _ in range(10):
        start = perf_counter()
        for _ in range(calls // 10):
            kernel(*state)
        times.append((perf_counter() - start) / (calls // 10))
    return 1e6 * median(times)


def write_costs(path: Path, measured: Sequence[AlgorithmCost]) -> Path:
    """Write the costs as comma-separated values with a header, and return the path."""
    header = ("robot", "n", "task", "algorithm", "M", "A", "depth", "time_us")
    return write_table(path, header, ((c.robot, c.n, c.task, c.algorithm, c.M, c.A, c.depth, c.time) for c in measured))


FAMILIES: dict[str, Callable[[int], Robot]] = {
    "chain, fixed base": partial(chain, twist=np.pi / 2, base=FixedBase()),
    "chain, floating base": partial(chain, twist=np.pi / 2),
    "binary tree, fixed base": partial(tree, branching=2, base=FixedBase()),
    "binary tree, floating base": partial(tree, branching=2),
}
"""Families of trees for the crossover between algorithms of forward dynamics."""


@cache
def _operations(family: str, n: int, name: str) -> int:
    counts = count(ALGORITHMS["forward dynamics"][name], FAMILIES[family](n))
    return counts.M + counts.A


def growth(family: str, name: str, sizes: Sequence[int] = SIZES) -> list[int]:
    """Return M + A of a forward-dynamics algorithm over the number of links of a family."""
    return [_operations(family, n, name) for n in sizes]


def crossover(family: str, first: str, second: str, sizes: Sequence[int] = SIZES) -> float | None:
    """Return the number of links above which the first algorithm always costs more than the second; None if never.

    Counts are interpolated linearly between sizes.
    """
    ahead = np.subtract(growth(family, first, sizes), growth(family, second, sizes)).astype(float)
    if ahead[-1] <= 0:
        return None
    behind = np.flatnonzero(ahead <= 0)
    if not behind.size:
        return float(sizes[0])
    k = int(behind[-1])
    return float(np.interp(0.0, ahead[k : k + 2], sizes[k : k + 2]))
