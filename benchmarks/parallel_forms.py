"""Depth and accuracy of the parallel forms of forward dynamics: `python -m benchmarks.parallel_forms`, some minutes.

Depth is the longest chain of operations of which each needs the one before, on chains with a floating base and on
four-bars one on another. Accuracy is the error of accelerations from torques that random accelerations take, at rest,
against the articulated-body algorithm in extended precision; the largest error relative to the largest acceleration.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

import numpy as np

import legged
import robots
from benchmarks.growth import sizes
from legged import loops
from legged.algorithms import articulated, constraint_force, divide_and_conquer, sparse_system
from legged.compiler import depth
from legged.compiler.compile import count_and_depth
from legged.errors import LeggedError
from legged.table import Table

METHODS: dict[str, Callable[..., np.ndarray]] = {
    "articulated bodies": articulated.forward_dynamics,
    "sparse system": sparse_system.forward_dynamics,
    "constraint forces": constraint_force.forward_dynamics,
    "divide and conquer, inverse": partial(divide_and_conquer.forward_dynamics, version="inverse"),
    "divide and conquer, pivoted": divide_and_conquer.forward_dynamics,
}
LOOPED: dict[str, Callable[..., np.ndarray]] = {
    "elimination": loops.forward_dynamics,
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


def looped_depths(most: int) -> Table:
    """Return depth and operations with closed loops over the number of four-bars, from 2 to `most`."""
    rows = []
    for n in sizes(2, most):
        closed, row = four_bars(n), [str(n)]
        for method in LOOPED.values():
            traced, robot = partial(method, closed), closed.robot
            counts, steps = count_and_depth(traced, None, q=robot.nq, v=robot.nv, tau=robot.nv)
            row += [str(steps), str(counts.M + counts.A)]
        rows.append(tuple(row))
    header = ("four-bars", *(part for name in LOOPED for part in (f"{name}: depth", "M + A")))
    return Table("Depth of forward dynamics with closed loops", header, tuple(rows))


def four_bars(cells: int) -> loops.ClosedRobot:
    """Return four-bars one on another, each twisted against the one before: four links and a loop of rank 2 a cell."""
    bar = legged.box_inertia(1.0, (0.4, 0.05, 0.06), (0.2, 0, 0))
    builder = loops.LoopBuilder("four-bars", legged.Link("seat 0", bar), base=legged.FixedBase())
    for k in range(cells):
        for name, to, x in (("crank", "seat", 0.0), ("coupler", "crank", 0.3), ("rocker", "seat", 0.4)):
            link = legged.Link(f"{name} {k}", bar)
            builder.add(legged.Revolute(f"{name} joint {k}", "-y"), link, to=f"{to} {k}", at=(x, 0, 0))
        builder.close(
            legged.Revolute(f"pin {k}", "-y"),
            parent=f"rocker {k}",
            child=f"coupler {k}",
            at=(0.3, 0, 0),
            child_at=(0.4, 0, 0),
        )
        seat = legged.Link(f"seat {k + 1}", bar)
        builder.add(legged.Revolute(f"seat joint {k}", (0.6, 0.8, 0)), seat, to=f"coupler {k}", at=(0.2, 0, 0))
    return builder.build()


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
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--depth", type=int, default=256, help="bodies of the largest chain whose depth is measured")
    parser.add_argument("--accuracy", type=int, default=1024, help="links of the largest chain whose errors are")
    parser.add_argument("--loops", type=int, default=16, help="four-bars of the longest row of them")
    given = parser.parse_args()
    print(accuracy(given.accuracy).markdown(), flush=True)
    print(depths(given.depth).markdown(), flush=True)
    print(looped_depths(given.loops).markdown())


if __name__ == "__main__":
    main()
