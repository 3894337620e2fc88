"""Depth and accuracy of parallel algorithms of dynamics: `python -m benchmarks.studies.parallel_forms`, some minutes.

Depth is the length of the critical path, the longest chain of dependent operations, for chains with a floating base and
for stacked four-bar linkages. Accuracy is the largest error of the accelerations relative to the largest acceleration:
torques of random accelerations at rest are computed by inverse dynamics, and the reference is the articulated-body
algorithm in extended precision. The last table has the times of two threads.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

import legged
import robots
from benchmarks.harness.machine_code import machine_code_loops
from benchmarks.studies.growth import doubling_sizes
from legged import loops
from legged.algorithms import articulated, divide_and_conquer, operational
from legged.algorithms.sparse import constraint_force, system
from legged.compiler import count_and_depth, depth
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


HANDOVER = 2.0
"""Time to start a thread that polls and to learn that it is done, [us]; see docs/explanation/compiler_speed.md."""
_REPETITIONS = 1000
_ROUNDS = 25


def two_processors_table(max_bodies: int) -> Table:
    """Return operations and times of the inverse operational-space inertia on one and on two processors.

    Each part is timed alone in one thread, and both halves in two threads at the same time, repeated without pause. The
    gains include `HANDOVER`. If other programs use the processors, two threads take longer than the slower half alone.
    """
    rows = []
    for n in doubling_sizes(8, max_bodies):
        robot = robots.chain(n - 1, twist=0.7)
        q = legged.random_configuration(robot, np.random.default_rng(0))
        end, cut = (robot.links[-1].name, np.zeros(3)), operational.halves.middle(robot)
        inner = partial(_flat, operational.halves.inner_half, robot, cut=cut)
        outer = partial(_flat, operational.halves.outer_half, robot, cut=cut, link=end[0], position=end[1])
        serial, joint = partial(operational.by_propagators, robot, points=[end]), partial(_joined, robot)
        state, results = {"q": q}, {"inner": inner(q), "outer": outer(q)}
        operations, code = [], []
        for function, arrays in ((serial, state), (inner, state), (outer, state), (joint, results)):
            sizes: dict[str, Any] = {name: array.size for name, array in arrays.items()}
            counts = legged.count(function, None, **sizes)
            operations.append(counts.M + counts.A)
            code.append(machine_code_loops(legged.compile(function, **sizes), list(arrays.values())).dependent)
        one, first, second, joining = (_time([part]) for part in code)
        alone, together = max(first, second) + joining, _time(code[1:3]) + joining
        rows.append(
            (
                str(n),
                *(f"{x:,}".replace(",", " ") for x in operations),
                f"{operations[0] / (max(operations[1:3]) + operations[3]):.2f}",
                *(f"{x:.1f}" for x in (one, max(first, second), joining, together)),
                *(f"{one / (two + HANDOVER):.2f}" for two in (alone, together)),
            )
        )
    header = (
        *("bodies", "serial: M + A", "inner half", "outer half", "joined", "gain in operations"),
        *("serial [us]", "slower half alone", "joined", "in two threads", "gain, halves alone", "gain, two threads"),
    )
    return Table("Inverse operational-space inertia at the tip on two processors", header, tuple(rows))


def _flat(half: Callable[..., tuple[np.ndarray, ...]], robot: legged.Robot, q: np.ndarray, **where) -> np.ndarray:
    return np.concatenate([part.reshape(-1) for part in half(robot, q, **where)])


def _joined(robot: legged.Robot, inner: np.ndarray, outer: np.ndarray) -> np.ndarray:
    """Return the result of both halves from their flat results, (45,) and (117,)."""
    Phi, R = inner[:36].reshape(6, 6), inner[36:].reshape(3, 3)
    inertia, chi, mobility = outer[:108].reshape(3, 6, 6)
    halves = operational.halves
    other = halves.OuterHalf(inertia, chi, mobility, outer[108:].reshape(3, 3))
    return halves.joined(robot, halves.InnerHalf(Phi, R), other)


def _time(loops: Sequence[Callable[[int], object]]) -> float:
    """Return the shortest time of a repetition, [us], with each loop in a thread of its own at the same time."""
    times = []
    with ThreadPoolExecutor(len(loops)) as pool:
        for _ in range(_ROUNDS):
            start = time.perf_counter()
            list(pool.map(lambda loop: loop(_REPETITIONS), loops))
            times.append(time.perf_counter() - start)
    return min(times) / _REPETITIONS * 1e6


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
    exact = articulated.forward_dynamics(robot, *(x.astype(np.longdouble) for x in (q, still, tau)))
    assert exact.dtype == np.longdouble
    relative = {}
    for name, method in METHODS.items():
        difference = method(robot, q, still, tau) - exact
        relative[name] = float(np.abs(difference).max() / np.abs(exact).max())
    return relative


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
    parser.add_argument("--halves", type=int, default=64, help="number of bodies of the largest chain in two halves")
    options = parser.parse_args()
    print(accuracy_table(options.accuracy).markdown(), flush=True)
    print(depth_table(options.depth).markdown(), flush=True)
    title = "Depth of the inverse operational-space inertia at the tip"
    print(inverse_depth_table(options.depth, INVERSE_OPERATIONAL_INERTIAS, title).markdown(), flush=True)
    title = "Depth of the inverse inertia matrix"
    print(inverse_depth_table(options.matrix, INVERSE_INERTIA_MATRICES, title).markdown(), flush=True)
    print(loop_depth_table(options.loops).markdown(), flush=True)
    print(two_processors_table(options.halves).markdown())


if __name__ == "__main__":
    main()
