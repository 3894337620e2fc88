"""Conditioning of the inertia matrix: a page with figures, about two minutes.

    python -m benchmarks.studies.conditioning

The robots are trees of N similar rods of 1 m and, without taper, equal mass (`robots.tree`): planar (all joint axes
parallel) or spatial (successive axes perpendicular), with a fixed or a floating base. The condition number is the ratio
of the largest eigenvalue to the smallest. On a floating base it depends on the units, here m and kg, since the base has
linear and angular velocities.

Source: Featherstone, "An empirical study of the joint space inertia matrix", International Journal of Robotics Research
23(9), 2004, of which we know the abstract alone: it names the subjects, and a growth between O(N) and O(N^4).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import legged
import robots
from legged.simulation.plots import pages
from legged.spatial import Array
from legged.table import Table

SIZES = (4, 8, 16, 32, 64)
"""Numbers of links."""
FITTED = 16
"""Exponents are fitted to this number of links and more."""
CONFIGURATIONS = 12
"""Random configurations of each robot, each joint angle uniform over a turn."""
CANTILEVER = 1.8751040687
"""Smallest positive root of cos(x) cosh(x) = -1: wave number times length of a clamped beam's first mode."""
_COLORS = (pages.BLUE, pages.ORANGE, pages.GREEN, pages.RED, pages.PURPLE, pages.GREY)

FAMILIES: dict[str, dict[str, float]] = {
    "planar chain": {"branching": 1, "twist": 0.0},
    "spatial chain": {"branching": 1, "twist": np.pi / 2},
    "1 and 2 children": {"branching": 1.5, "twist": np.pi / 2},
    "2 children": {"branching": 2, "twist": np.pi / 2},
    "4 children": {"branching": 4, "twist": np.pi / 2},
}


def point_mass_chain(n: int) -> legged.Robot:
    """Return a planar chain of n massless links of 1 m with masses of 1 kg at their ends, on a fixed base."""
    builder = legged.RobotBuilder(f"chain of {n} masses", legged.Link("link0"), base=legged.FixedBase())
    for k in range(1, n + 1):
        link = legged.Link(f"link{k}", legged.point_mass(1.0, (1.0, 0.0, 0.0)))
        at = (float(k > 1), 0.0, 0.0)
        builder.add(legged.Revolute(f"joint{k}", "y"), link, to=f"link{k - 1}", at=at)
    return builder.build()


def straight_condition(n: int) -> float:
    """Return the asymptotic condition number of the straight chain of point masses, 16 ((n + 1) / 1.8751)^4.

    The inverse inertia matrix of this chain is the matrix of fourth differences with the ends of a clamped beam. Its
    largest eigenvalue approaches 16, and its smallest that of the beam's first mode.
    """
    return 16.0 * ((n + 1) / CANTILEVER) ** 4


def condition_numbers(robot: legged.Robot) -> tuple[float, Array]:
    """Return the condition number of the inertia matrix with all joints at zero, and at random configurations."""
    q = np.tile(robot.neutral(), (1 + CONFIGURATIONS, 1))
    q[1:, robot.base.nq :] = np.random.default_rng(0).uniform(-np.pi, np.pi, (CONFIGURATIONS, robot.nj))
    straight, *folded = np.linalg.cond(legged.compile(legged.inertia_matrix, robot)(q))
    return float(straight), np.array(folded)


def exponent(sizes: Array, values: Array) -> float:
    """Return the exponent of the power law fitted by least squares to the values, (n,), of the sizes, (n,)."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def growth() -> dict[tuple[str, str], tuple[Array, Array]]:
    """Return condition numbers by (family, base): straight, (sizes,), and random, (sizes, configurations)."""
    numbers = {}
    for family, shape in FAMILIES.items():
        for name, base in (("fixed", legged.FixedBase()), ("floating", legged.FloatingBase())):
            each = [condition_numbers(robots.tree(n, base=base, **shape)) for n in SIZES]
            numbers[family, name] = np.array([s for s, _ in each]), np.array([r for _, r in each])
    return numbers


def growth_table(numbers: dict[tuple[str, str], tuple[Array, Array]]) -> Table:
    """Return the fitted exponents and the condition numbers of the largest robots."""
    large = np.array(SIZES) >= FITTED
    rows = []
    for (family, base), (straight, folded) in numbers.items():
        medians = np.median(folded, axis=1)
        row = [family, base]
        for values in (straight, medians):
            row += [f"{values[-1]:.2e}", f"{exponent(np.array(SIZES)[large], values[large]):.2f}"]
        rows.append(tuple(row))
    header = ("tree", "base", "straight", "exponent", "random, median", "exponent ")
    return Table(f"Condition numbers for N = {SIZES[-1]}, exponents for N from {FITTED}", header, tuple(rows), left=2)


def growth_figure(numbers: dict[tuple[str, str], tuple[Array, Array]]) -> pages.Figure:
    """Return condition numbers over the number of links: fixed and floating bases, straight and random."""
    made = pages.figure(1, 2, width=10.0, height=4.0, sharey=True)
    for ax, base in zip(made.axes, ("fixed", "floating"), strict=True):
        for family, color in zip(FAMILIES, _COLORS, strict=False):
            straight, folded = numbers[family, base]
            ax.plot(SIZES, straight, "-o", color=color, markersize=3, linewidth=1.4, label=family)
            ax.plot(SIZES, np.median(folded, axis=1), "--", color=color, linewidth=1.2)
            ax.fill_between(SIZES, folded.min(axis=1), folded.max(axis=1), color=color, alpha=0.12, linewidth=0)
        for power in (1, 4):
            ax.plot(SIZES[-2:], 2e6 ** (power / 4) * np.array([1.0, 2.0**power]), ":", color="black", linewidth=1.2)
            ax.annotate(f"N^{power}", (SIZES[-1], 2e6 ** (power / 4) * 2.0**power), fontsize=8, va="center")
        ax.set_xscale("log", base=2)
        ax.set_yscale("log")
        ax.xaxis.set_major_formatter("{x:g}")
        title = f"{base.capitalize()} base: straight (solid), random (dashed: median)"
        pages.label(ax, title, "links", "condition number" if base == "fixed" else "")
    return pages.legend(made, columns=5)


def shape_figure(n: int = 16) -> pages.Figure:
    """Return condition numbers of trees of n links over configuration, taper and branching."""
    made = pages.figure(1, 3, width=12.0, height=3.4)
    bend, tapers, branchings = made.axes
    angles = np.linspace(0.0, 2 * np.pi, 73)
    for name, color in (("planar chain", pages.BLUE), ("spatial chain", pages.ORANGE)):
        robot = robots.tree(n, base=legged.FixedBase(), **FAMILIES[name])
        values = np.linalg.cond(legged.compile(legged.inertia_matrix, robot)(np.tile(angles / n, (n, 1)).T))
        bend.plot(np.degrees(angles), values, color=color, linewidth=1.4, label=name)
    pages.label(bend, f"{n} links, all joints bent equally", "sum of joint angles [deg]", "condition number")
    ratios = np.linspace(0.7, 1.15, 10)
    for name, color in zip(FAMILIES, _COLORS, strict=False):
        made_of = [robots.tree(n, base=legged.FixedBase(), taper=ratio, **FAMILIES[name]) for ratio in ratios]
        values = [np.linalg.cond(legged.inertia_matrix(r, r.neutral())) for r in made_of]
        tapers.plot(ratios, values, color=color, linewidth=1.4, label=name)
    pages.label(tapers, f"{n} links, straight", "length of a link over its parent's")
    tapers.legend(fontsize=7, frameon=False)
    factors = np.linspace(1.0, 8.0, 15)
    for twist, color in ((0.0, pages.BLUE), (np.pi / 2, pages.ORANGE)):
        trees = [robots.tree(n, branching=b, twist=twist, base=legged.FixedBase()) for b in factors]
        values = [np.linalg.cond(legged.inertia_matrix(r, r.neutral())) for r in trees]
        branchings.plot(factors, values, color=color, linewidth=1.4, label="planar" if twist == 0 else "spatial")
    pages.label(branchings, f"{n} links, straight", "children per link")
    branchings.legend(fontsize=8, frameon=False)
    for ax in made.axes:
        ax.set_yscale("log")
    bend.legend(fontsize=8, frameon=False)
    return made


def spectrum_figure(n: int = 32) -> pages.Figure:
    """Return eigenvalues and eigenvectors of the inertia matrix of the straight planar chain of n links."""
    made = pages.figure(1, 2, width=10.0, height=3.4)
    values_ax, vectors_ax = made.axes
    for name, color in (("planar chain", pages.BLUE), ("2 children", pages.RED)):
        robot = robots.tree(n, base=legged.FixedBase(), **FAMILIES[name])
        values = np.linalg.eigvalsh(legged.inertia_matrix(robot, robot.neutral()))[::-1]
        values_ax.plot(np.arange(1, n + 1), values, "o-", color=color, markersize=3, linewidth=1.0, label=name)
    values_ax.set_xscale("log")
    values_ax.set_yscale("log")
    pages.label(values_ax, f"Eigenvalues, {n} links, straight", "number of the eigenvalue", "[kg m^2]")
    values_ax.legend(fontsize=8, frameon=False)
    robot = robots.tree(n, base=legged.FixedBase(), **FAMILIES["planar chain"])
    vectors = np.linalg.eigh(legged.inertia_matrix(robot, robot.neutral()))[1][:, ::-1]
    for k, color in ((0, pages.BLUE), (1, pages.GREEN), (2, pages.PURPLE), (n - 1, pages.RED)):
        vector = vectors[:, k] * np.sign(vectors[0, k])
        vectors_ax.plot(np.arange(1, n + 1), vector, "o-", color=color, markersize=3, linewidth=1.0, label=str(k + 1))
    pages.label(vectors_ax, "Eigenvectors of the chain: the largest three, the smallest", "joint", "joint rate")
    vectors_ax.legend(fontsize=8, frameon=False)
    return made


def main() -> None:
    """Write the page and print its tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.studies.conditioning", description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("results/conditioning"), metavar="FOLDER")
    page = pages.Page(parser.parse_args().output, "Conditioning of the inertia matrix")
    numbers = growth()
    table = growth_table(numbers)
    print(table.markdown())
    page.table(table)
    page.figure(growth_figure(numbers), "growth", "Condition number over the number of links; bands: least and most.")
    page.figure(shape_figure(), "shape", "Condition number over configuration, taper and branching.")
    page.figure(spectrum_figure(), "spectrum", "Eigenvalues and eigenvectors.")
    print(page.write())


if __name__ == "__main__":
    main()
