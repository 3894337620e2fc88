"""Rounding errors of forward dynamics: `python -m benchmarks.studies.stability`, about a minute.

Two statements of Featherstone and Orin 2000 are measured. Section 2: the articulated-body algorithm is more accurate
than the composite-rigid-body algorithm followed by a factorization (their reference [2]). Section 3.4: projection
(method 3) is more stable than the direct solution (method 1) of robots with closed loops (their reference [9]).

`tree_errors` measures the first statement on the open chains of `chain`, `loop_errors` the second one on those of
`closed_chain`; `main` prints both as tables and draws a figure. `benchmarks.pages.algorithms` writes their results into
the page `docs/reference/algorithms.md`.

The errors of trees depend on the torques. Under random torques the largest eigenvalues of M^-1, which are those of the
zigzag motions of neighboring links, dominate the accelerations; under the torques of random accelerations all motions
have accelerations of one size, and the torques of those with large inertia are the largest.

The exact accelerations of trees are those of the articulated-body algorithm on numbers of fifty digits, the exact
accelerations of loops the solution in rational numbers of their equation (20), [M L^T; L 0] [vdot; -lambda] = [b; c].
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from mpmath import mp
from scipy.linalg import cho_factor, cho_solve

import legged
import robots
from legged import loops
from legged.algorithms import articulated, composite
from legged.algorithms.linear_algebra import independent_rows
from legged.loops.dynamics import METHODS, constraint_acceleration
from legged.simulation.plots import pages
from legged.spatial import Array
from legged.table import Table

DIGITS = 50
"""Decimal digits of the exact accelerations of trees."""
LEAST_DRAWN = 1e-17
"""Smaller errors, those of answers that happen to be exact, are drawn as this one on the logarithmic axis."""
SIZES = (2, 4, 8, 16, 32)
"""Numbers of links of the chains."""
CONFIGURATIONS = 5
"""Random states of each chain, of which the median is taken."""
PAYLOADS = (1.0, 1e3, 1e6, 1e9)
"""Masses on the closed chain, [kg]."""
CLOSINGS = {"welded": legged.Fixed("closing"), "pinned by a ball joint": legged.Spherical("closing")}
"""Joints between the end of a closed chain and the world, by the name of the chain."""
END = (1.0, 0.0, 0.0)
"""Origin of a rod to its end, [m], link axes."""
SPREAD, SPREAD_STRAIGHT = np.pi, 0.01
"""Largest joint angles, [rad], of random configurations; small ones keep the straight chain straight."""
CHAINS: dict[str, dict[str, Any]] = {
    "folded": {"twist": np.pi / 2},
    "straight": {"twist": 0.0},
    "payload of 1e4 kg": {"twist": np.pi / 2, "payload": 1e4},
    "lengths fall to 0.7": {"twist": np.pi / 2, "taper": 0.7},
}
"""Arguments of `chain` by the name of the chain; neighboring axes differ by `twist`, [rad]."""
TORQUES: dict[str, Callable[[legged.Robot, Array, Array, np.random.Generator], Array]] = {
    "random torques": lambda robot, q, v, rng: rng.normal(size=robot.nv),
    "torques of random accelerations": lambda robot, q, v, rng: legged.inverse_dynamics(
        robot, q, v, rng.normal(size=robot.nv)
    ),
}
"""Functions (robot, q, v, random numbers) -> tau, (nv,), by the kind of torques."""
_COLORS = (pages.BLUE, pages.ORANGE, pages.GREEN, pages.RED)


def exact_forward_dynamics(robot: legged.Robot, q: Array, v: Array, tau: Array) -> Array:
    """Return the acceleration, (nv,), rounded once.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,). tau: Generalized forces, (nv,), [N m] or [N].
    """
    with mp.workdps(DIGITS):
        exact = [np.array([mp.mpf(x) for x in part.tolist()], dtype=object) for part in (q, v, tau)]
        return articulated.forward_dynamics(robot, *exact).astype(float)


def by_composite_bodies(robot: legged.Robot, q: Array, v: Array, tau: Array) -> Array:
    """Return the acceleration, (nv,), by the composite-rigid-body algorithm and Cholesky factorization.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,). tau: Generalized forces, (nv,), [N m] or [N].
    """
    return cho_solve(cho_factor(composite.inertia_matrix(robot, q)), tau - legged.bias_forces(robot, q, v))


def chain(n: int, twist: float, taper: float = 1.0, payload: float = 0.0, carrier: int | None = None) -> legged.Robot:
    """Return a chain of n rods on a fixed base, one of which carries a payload at its end, [kg], by default the last.

    Args:
        n, twist, taper: As in `robots.tree`. payload: [kg]. carrier: Number of the rod that carries it.
    """
    robot = robots.tree(n, branching=1, twist=twist, taper=taper, base=legged.FixedBase())
    if payload:
        load = legged.Link("payload", legged.sphere_inertia(payload, 0.5))
        robot = robot.edit().add(legged.Fixed("grip"), load, to=f"link{carrier or n}", at=END).build()
    return robot


class TreeErrors(NamedTuple):
    """Medians over the configurations of a chain.

    Attributes:
        articulated, composite: Relative errors of vdot by the articulated-body and the composite-rigid-body algorithm.
        condition: Condition number of the inertia matrix.
    """

    articulated: float
    composite: float
    condition: float


def tree_errors(name: str, n: int, torques: str = "random torques") -> TreeErrors:
    """Return the errors of both algorithms, relative to the largest entry of vdot.

    Args:
        name: Chain, of `CHAINS`. n: Number of its links. torques: Kind of torques, of `TORQUES`.
    """
    robot, rng, samples = chain(n, **CHAINS[name]), np.random.default_rng(n), []
    spread = SPREAD_STRAIGHT if name == "straight" else SPREAD
    for _ in range(CONFIGURATIONS):
        q, v = rng.uniform(-spread, spread, robot.nq), rng.normal(size=robot.nv)
        tau = TORQUES[torques](robot, q, v, rng)
        exact = exact_forward_dynamics(robot, q, v, tau)
        accelerations = articulated.forward_dynamics(robot, q, v, tau), by_composite_bodies(robot, q, v, tau)
        errors = [np.abs(vdot - exact).max() / np.abs(exact).max() for vdot in accelerations]
        samples.append([*errors, np.linalg.cond(legged.inertia_matrix(robot, q))])
    return TreeErrors(*np.median(samples, axis=0).tolist())


def closed_chain(joint: legged.Joint, payload: float, seed: int) -> tuple[loops.ClosedRobot, Array]:
    """Return a chain of ten rods that a joint connects to the world at its end, and a random closed configuration.

    The fifth rod carries a payload at its end, [kg], which makes the inertia matrix badly conditioned.
    """
    robot = chain(10, np.pi / 2, payload=payload, carrier=5)
    q = np.random.default_rng(seed).uniform(-np.pi, np.pi, robot.nq)
    R, place = legged.frame_pose(robot, q, legged.Frame("link10", END))
    return loops.close(robot, joint, parent=None, child="link10", at=place, rotation=R, child_at=END), q


def loop_errors(
    joint: legged.Joint, payload: float, configurations: int = CONFIGURATIONS
) -> dict[str, tuple[float, float]]:
    """Return by method the median relative errors of the acceleration vdot and of the constraints L vdot = c.

    Each method solves the same equation (20); its exact solution is that for the rounded M, L, c and forces.
    """
    relative: dict[str, list[tuple[float, float]]] = {name: [] for name in METHODS}
    for seed in range(configurations):
        closed, q = closed_chain(joint, payload, seed)
        robot, rng = closed.robot, np.random.default_rng([seed, 1])
        v, tau = rng.normal(size=(2, robot.nv))
        v = loops.consistent_velocity(closed, q, v)
        constraints = independent_rows(loops.jacobian(closed, q), constraint_acceleration(closed, q, v))
        b = tau - legged.bias_forces(robot, q, v)
        M, L, c = legged.inertia_matrix(robot, q), constraints.L, constraints.c
        zero = np.zeros((len(L), len(L)))
        exact = rational_solution(np.block([[M, L.T], [L, zero]]), np.concatenate([b, c]))[: robot.nv]
        size = np.abs(exact).max()
        for name, method in METHODS.items():
            vdot, _ = method(robot, q, constraints, b)
            residual = np.abs(L @ vdot - c).max() / (np.abs(L).max() * size)
            relative[name].append((float(np.abs(vdot - exact).max() / size), float(residual)))
    return {name: tuple(np.median(each, axis=0).tolist()) for name, each in relative.items()}


def rational_solution(A: Array, b: Array) -> Array:
    """Return the exact solution of A x = b, (n,), rounded once, by Gauss elimination of rational numbers.

    Args:
        A: Matrix, (n, n), any unit. b: Right-hand side, (n,), any unit.
    """
    rows = [[Fraction(float(x)) for x in (*row, y)] for row, y in zip(A, b, strict=True)]
    for k in range(len(rows)):
        pivot = max(range(k, len(rows)), key=lambda i: abs(rows[i][k]))
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for i in range(len(rows)):
            if i != k:
                factor = rows[i][k] / rows[k][k]
                rows[i] = [x - factor * y for x, y in zip(rows[i], rows[k], strict=True)]
    return np.array([float(rows[k][-1] / rows[k][k]) for k in range(len(rows))])


Trees = dict[str, dict[str, list[TreeErrors]]]
"""Kind of torques -> chain -> results of `tree_errors` for each of `SIZES`."""
Loops = dict[str, list[dict[str, tuple[float, float]]]]
"""Closed chain, of `CLOSINGS` -> results of `loop_errors` for each of `PAYLOADS`."""


def stability_figure(trees: Trees, closed: Loops) -> pages.Figure:
    """Return the errors of both algorithms over the condition number, and of the three methods over the payload."""
    made = pages.figure(1, 3, width=16.0, height=4.8)
    *left, right = made.axes
    for ax, (torques, chains) in zip(left, trees.items(), strict=True):
        for (name, curve), color in zip(chains.items(), _COLORS, strict=True):
            by_articulated, by_composite, condition = np.maximum(np.array(curve).T, LEAST_DRAWN)
            ax.plot(condition, by_articulated, "o-", color=color, linewidth=1.2, label=f"{name}: articulated")
            ax.plot(condition, by_composite, "s--", color=color, linewidth=1.2, label=f"{name}: composite")
        title = f"Chains of {SIZES[0]} to {SIZES[-1]} links, {torques}"
        pages.label(ax, title, "condition number of M", "relative error of vdot")
    for (name, curve), style in zip(closed.items(), ("o-", "s--"), strict=True):
        for method, color in zip(METHODS, _COLORS, strict=False):
            values = [each[method][0] for each in curve]
            right.plot(PAYLOADS, values, style, color=color, linewidth=1.2, label=f"{name}: {method}")
    for ax in made.axes:
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.legend(fontsize=7)
    pages.label(right, "Closed chain of ten links", "payload in its middle [kg]", "relative error of vdot")
    return made


def tables(trees: Trees, closed: Loops) -> list[Table]:
    """Return the errors of the longest chains, and those of the closed chains."""
    return [tree_table(trees), loop_table(closed)]


def tree_table(trees: Trees) -> Table:
    """Return the errors of the longest chains."""
    rows = []
    for name in CHAINS:
        for torques, chains in trees.items():
            longest = chains[name][-1]
            row = name, torques, *(f"{x:.1e}" for x in (longest.condition, longest.articulated, longest.composite))
            rows.append(row)
    header = ("chain", "torques", "condition number of M", "articulated bodies", "composite bodies")
    return Table(f"Relative errors of accelerations, {SIZES[-1]} links", header, tuple(rows), left=2)


def loop_table(closed: Loops) -> Table:
    """Return the errors of the closed chains."""
    rows = [
        (name, f"{payload:.0e}", *(f"{error:.1e} ({residual:.1e})" for error, residual in each.values()))
        for name, curve in closed.items()
        for payload, each in zip(PAYLOADS, curve, strict=True)
    ]
    header = ("closed chain", "payload [kg]", *METHODS)
    return Table("Relative errors of accelerations (of constraints)", header, tuple(rows), left=1)


def main() -> None:
    """Write the figure and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.studies.stability", description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("results/stability.png"), metavar="FILE")
    output = parser.parse_args().output
    trees = {torques: {name: [tree_errors(name, n, torques) for n in SIZES] for name in CHAINS} for torques in TORQUES}
    closed = {name: [loop_errors(joint, payload) for payload in PAYLOADS] for name, joint in CLOSINGS.items()}
    for table in tables(trees, closed):
        print(table.markdown(), end="\n\n")
    print(pages.save(stability_figure(trees, closed), output))


if __name__ == "__main__":
    main()
