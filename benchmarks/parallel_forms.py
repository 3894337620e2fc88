"""Depth and accuracy of the parallel forms of forward dynamics: `python -m benchmarks.parallel_forms`, some minutes.

Depth is the longest chain of operations of which each needs the one before, on chains with a floating base. Accuracy is
the error of accelerations from torques that random accelerations take, at rest, against the articulated-body algorithm
in extended precision; the largest error relative to the largest acceleration.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

import numpy as np

import legged
import robots
from benchmarks.growth import sizes
from legged.algorithms import articulated, constraint_force, divide_and_conquer, sparse_system
from legged.errors import LeggedError
from legged.reports.table import Table
from legged.trace import depth

METHODS: dict[str, Callable[..., np.ndarray]] = {
    "articulated bodies": articulated.forward_dynamics,
    "sparse system": sparse_system.forward_dynamics,
    "constraint forces": constraint_force.forward_dynamics,
    "divide and conquer, inverse": partial(divide_and_conquer.forward_dynamics, version="inverse"),
    "divide and conquer, pivoted": divide_and_conquer.forward_dynamics,
}
SPREADS = {"straight": 0.1, "coiled": 3.0}
"""Joint angles are drawn from -spread to spread, [rad]."""


def depths(most: int) -> Table:
    """Return depth and operations over the number of bodies, from 8 to `most`."""
    rows = []
    for n in sizes(8, most):
        robot, row = robots.chain(n - 1, twist=0.7), [str(n)]
        for method in METHODS.values():
            counts = legged.count(method, robot)
            row += [str(depth(method, robot)), str(counts.M + counts.A)]
        rows.append(tuple(row))
    header = ("bodies", *(part for name in METHODS for part in (f"{name}: depth", "M + A")))
    return Table("Depth of forward dynamics", header, tuple(rows))


def accuracy(most: int) -> Table:
    """Return relative errors over the number of bodies, from 8 to `most`."""
    rows = []
    for n in sizes(8, most):
        for shape, spread in SPREADS.items():
            rows.append((str(n), shape, *(f"{error:.1e}" for error in errors(n, spread).values())))
    return Table("Relative error of accelerations", ("bodies", "shape", *METHODS), tuple(rows), left=2)


def errors(n: int, spread: float, seed: int = 0) -> dict[str, float]:
    """Return each method's relative error for a chain of n alike links on a fixed base.

    Args:
        n: Links. spread: Of the joint angles, [rad]. seed: Of angles and accelerations.

    Raises:
        LeggedError: where NumPy's long double is no longer than a double.
    """
    if np.finfo(np.longdouble).eps > 1e-18:
        raise LeggedError("this machine has no extended precision to compare with")
    robot = robots.tree(n, branching=1, base=legged.FixedBase())
    rng = np.random.default_rng(seed)
    q, still, vdot = rng.uniform(-spread, spread, n), np.zeros(n), rng.normal(size=n)
    tau = legged.inverse_dynamics(robot, q, still, vdot)
    exact = articulated.forward_dynamics(robot, *(extended(x) for x in (q, still, tau)))
    found = {}
    for name, method in METHODS.items():
        apart = method(robot, q, still, tau) - exact
        found[name] = float(np.abs(apart).max() / np.abs(exact).max())
    return found


def extended(x: np.ndarray) -> np.ndarray:
    """Return an array whose elements are of extended precision, as any element that algorithms take."""
    return np.array([np.longdouble(entry) for entry in x], dtype=object)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--depth", type=int, default=256, help="bodies of the largest chain whose depth is measured")
    parser.add_argument("--accuracy", type=int, default=1024, help="links of the largest chain whose errors are")
    given = parser.parse_args()
    print(accuracy(given.accuracy).markdown(), flush=True)
    print(depths(given.depth).markdown())


if __name__ == "__main__":
    main()
