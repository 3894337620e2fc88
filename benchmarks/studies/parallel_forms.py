"""Depth and accuracy of parallel algorithms of dynamics: `python -m benchmarks.studies.parallel_forms`, some minutes.

Depth is the length of the critical path, the longest chain of dependent operations, for chains with a floating base and
for stacked four-bar linkages. Accuracy is the largest error of the accelerations relative to the largest acceleration:
torques of random accelerations at rest are computed by inverse dynamics, and the reference is the articulated-body
algorithm in extended precision.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

import legged
import robots
from benchmarks.studies.growth import doubling_sizes
from legged import loops
from legged.algorithms import articulated, divide_and_conquer, operational
from legged.algorithms.sparse import constraint_force, system
from legged.compiler import depth
from legged.compiler.compile import count_and_depth
from legged.errors import LeggedError
from legged.table import Table

METHODS: dict[str, Callable[..., np.ndarray]] = {
    "articulated bodies": articulated.forward_dynamics,
    "sparse system": system.forward_dynamics,
    "constraint forces": constraint_force.forward_dynamics,
    "divide and conquer, inverse": partial(divide_and_conquer.forward_dynamics, version="inverse"),
    "divide and conquer, pivoted": divide_and_conquer.forward_dynamics,
}
LOOP_METHODS: dict[str, Callable[..., np.ndarray]] = {
    "elimination": loops.forward_dynamics,
    "subsystems": partial(loops.forward_dynamics, method="subsystems"),
    "divide and conquer, inverse": partial(loops.divide_and_conquer.forward_dynamics, version="inverse"),
    "divide and conquer, pivoted": loops.divide_and_conquer.forward_dynamics,
}


def _at_the_tip(form: Callable[..., np.ndarray], robot: legged.Robot, q: np.ndarray) -> np.ndarray:
    """Return the inverse operational-space inertia at the last link of a chain, (6, 6), world axes."""
    return form(robot, q, [(robot.links[-1].name, np.zeros(3))])


INVERSE_OPERATIONAL_INERTIAS: dict[str, Callable[..., np.ndarray]] = {
    "propagators": partial(_at_the_tip, operational.by_propagators),
    "sparse factors": partial(_at_the_tip, operational.by_factors),
    "constraint forces": partial(_at_the_tip, operational.by_constraint_forces),
    "division, inverse": partial(_at_the_tip, partial(operational.by_division, version="inverse")),
    "division, pivoted": partial(_at_the_tip, operational.by_division),
}
INVERSE_INERTIA_MATRICES: dict[str, Callable[..., np.ndarray]] = {
    "constraint forces": constraint_force.inverse_inertia_matrix,
    "division, inverse": partial(divide_and_conquer.inverse_inertia_matrix, version="inverse"),
    "division, pivoted": divide_and_conquer.inverse_inertia_matrix,
}
MAX_ANGLES = {"straight": 0.1, "coiled": 3.0}
"""Largest magnitude of the random joint angles, [rad]."""


def depth_table(max_bodies: int) -> Table:
    """Return depth and operations over the number of bodies, from 8 to `max_bodies`."""
    rows = []
    for n in doubling_sizes(8, max_bodies):
        robot, row = robots.chain(n - 1, twist=0.7), [str(n)]
        for method in METHODS.values():
            counts = legged.count(method, robot)
            row += [str(depth(method, robot)), str(counts.M + counts.A)]
        rows.append(tuple(row))
    header = ("bodies", *(part for name in METHODS for part in (f"{name}: depth", "M + A")))
    return Table("Depth of forward dynamics", header, tuple(rows))


def loop_depth_table(max_cells: int) -> Table:
    """Return depth and operations with closed loops over the number of four-bar linkages, from 2 to `max_cells`."""
    rows = []
    for n in doubling_sizes(2, max_cells):
        linkage, row = four_bars(n), [str(n)]
        for method in LOOP_METHODS.values():
            traced, robot = partial(method, linkage), linkage.robot
            counts, steps = count_and_depth(traced, None, q=robot.nq, v=robot.nv, tau=robot.nv)
            row += [str(steps), str(counts.M + counts.A)]
        rows.append(tuple(row))
    header = ("four-bars", *(part for name in LOOP_METHODS for part in (f"{name}: depth", "M + A")))
    return Table("Depth of forward dynamics with closed loops", header, tuple(rows))


def inverse_depth_table(max_bodies: int, functions: Mapping[str, Callable[..., np.ndarray]], title: str) -> Table:
    """Return depth and operations of inverse inertias over the number of bodies, from 8 to `max_bodies`.

    The last row is the line fitted to the depth by least squares: a constant, and the depth that each doubling adds.
    """
    sizes, rows, depths = doubling_sizes(8, max_bodies), [], []
    for n in sizes:
        robot = robots.chain(n - 1, twist=0.7)
        results = [count_and_depth(function, robot, q=True) for function in functions.values()]
        depths.append([steps for _, steps in results])
        rows.append((str(n), *(f"{steps} (of {counts.M + counts.A:,})".replace(",", " ") for counts, steps in results)))
    slope, constant = np.polyfit(np.log2(sizes), np.array(depths), 1)
    fits = (f"{a:.0f} + {b:.1f} log2 n" for a, b in zip(constant, slope, strict=True))
    return Table(title, ("bodies", *functions), (*rows, ("fit", *fits)))


def four_bars(cells: int) -> loops.ClosedRobot:
    """Return stacked four-bar linkages, each rotated relative to the last: four links and a loop of rank 2 per cell."""
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


def accuracy_table(max_bodies: int) -> Table:
    """Return relative errors over the number of bodies, from 8 to `max_bodies`."""
    rows = []
    for n in doubling_sizes(8, max_bodies):
        for shape, max_angle in MAX_ANGLES.items():
            rows.append((str(n), shape, *(f"{error:.1e}" for error in errors(n, max_angle).values())))
    return Table("Relative error of accelerations", ("bodies", "shape", *METHODS), tuple(rows), left=2)


def errors(n: int, max_angle: float, seed: int = 0) -> dict[str, float]:
    """Return the relative error of each method for a chain of n equal links on a fixed base.

    Args:
        n: Number of links.
        max_angle: Largest magnitude of the joint angles, [rad].
        seed: Seed of angles and accelerations.

    Raises:
        LeggedError: If NumPy's long double has the precision of a double.
    """
    if np.finfo(np.longdouble).eps > 1e-18:
        raise LeggedError("this platform has no extended precision, which the reference needs")
    robot = robots.tree(n, branching=1, base=legged.FixedBase())
    rng = np.random.default_rng(seed)
    q, still, vdot = rng.uniform(-max_angle, max_angle, n), np.zeros(n), rng.normal(size=n)
    tau = legged.inverse_dynamics(robot, q, still, vdot)
    exact = articulated.forward_dynamics(robot, *(_extended(x) for x in (q, still, tau)))
    relative = {}
    for name, method in METHODS.items():
        difference = method(robot, q, still, tau) - exact
        relative[name] = float(np.abs(difference).max() / np.abs(exact).max())
    return relative


def _extended(x: np.ndarray) -> np.ndarray:
    """Return an object array of long doubles, which the algorithms accept as elements."""
    return np.array([np.longdouble(entry) for entry in x], dtype=object)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.studies.parallel_forms", description=__doc__)
    parser.add_argument(
        "--depth", type=int, default=256, help="number of bodies of the largest chain in the table of depths"
    )
    parser.add_argument(
        "--accuracy", type=int, default=1024, help="number of links of the largest chain in the table of errors"
    )
    parser.add_argument("--matrix", type=int, default=64, help="number of bodies of the largest inverse inertia matrix")
    parser.add_argument("--loops", type=int, default=16, help="largest number of four-bar linkages")
    options = parser.parse_args()
    print(accuracy_table(options.accuracy).markdown(), flush=True)
    print(depth_table(options.depth).markdown(), flush=True)
    title = "Depth of the inverse operational-space inertia at the tip"
    print(inverse_depth_table(options.depth, INVERSE_OPERATIONAL_INERTIAS, title).markdown(), flush=True)
    title = "Depth of the inverse inertia matrix"
    print(inverse_depth_table(options.matrix, INVERSE_INERTIA_MATRICES, title).markdown(), flush=True)
    print(loop_depth_table(options.loops).markdown())


if __name__ == "__main__":
    main()
