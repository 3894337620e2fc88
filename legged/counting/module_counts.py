"""Operations and depth over the number of modules: advantages (5) and (7) of section 3, and the sentence below Table 1.

The robots are stars, `robots.star`: equal legs of full inertia and arbitrary twist around a floating trunk, each leg a
module.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from legged.compiler import count_and_depth
from legged.counting.robot_counts import PAPER
from legged.dynamics.forward import forward_dynamics
from legged.dynamics.inverse import floating_inverse_dynamics
from legged.table import Table
from robots import star

JOINTS = 24
"""Number of joints of the robots with different numbers of modules."""
MODULES = (1, 2, 3, 4, 6, 8, 12, 24)
LEGS = (2, 3, 4, 5, 6, 8, 10, 12)
MANY_LEGS = (2, 4, 8, 16, 32, 64)


class StarCounts(NamedTuple):
    """Operations of a star: M and A of inverse and of forward dynamics, and the depth of forward dynamics."""

    inverse: tuple[int, int]
    forward: tuple[int, int]
    depth: int


@cache
def star_counts(legs: int, joints: int) -> StarCounts:
    """Return the counts of a star with equal legs.

    Args:
        legs: Number of legs. joints: Number of joints of each leg.
    """
    robot = star(legs, joints)
    inverse, _ = count_and_depth(floating_inverse_dynamics, robot)
    forward, depth = count_and_depth(forward_dynamics, robot)
    return StarCounts((inverse.M, inverse.A), (forward.M, forward.A), depth)


def paper_counts(joints: int) -> tuple[int, int]:
    """Return M and A of forward dynamics by the paper's Table 1, of a floating base with any partition into modules.

    Args:
        joints: Number of joints.
    """
    M, A = (constant + slope * joints for constant, slope in PAPER["forward", True])
    return M, A


def module_tables() -> list[Table]:
    """Return counts over the number of modules at equal numbers of joints, over the number of legs, and the depth."""
    return [module_table(), leg_table(), depth_table()]


def module_table(joints: int = JOINTS, modules: Sequence[int] = MODULES) -> Table:
    """Return counts of robots with equally many joints in different numbers of modules.

    Args:
        joints: Number of joints without the base. modules: Numbers of modules, divisors of it.
    """
    rows = [_row(f"{s} x {joints // s}", star_counts(s, joints // s)) for s in modules]
    M, A = paper_counts(joints)
    rows.append(("paper, any partition", "", "", f"{M:g}", f"{A:g}", ""))
    notes = (
        "The paper's counts depend on the number of links alone. Here a joint next to the trunk costs less than one",
        "inside a leg, because the moments of mass that its axis does not move are assigned to the trunk beforehand.",
        "Depth: the longest chain of operations that depend on each other, the time on unlimited processors.",
    )
    header = ("modules x joints", "inverse M", "A", "forward M", "A", "depth")
    return Table(f"Operations of {joints} joints in different numbers of modules", header, tuple(rows), notes)


def leg_table(joints: int = 3, legs: Sequence[int] = LEGS) -> Table:
    """Return counts over the number of equal legs.

    Args:
        joints: Number of joints of each leg. legs: Numbers of legs.
    """
    rows = [_row(str(number), star_counts(number, joints)) for number in legs]
    per_leg = [
        f"{(a - b) / (legs[-1] - legs[0]):.1f}"
        for task in ("inverse", "forward")
        for a, b in zip(
            getattr(star_counts(legs[-1], joints), task), getattr(star_counts(legs[0], joints), task), strict=True
        )
    ]
    rows.append(("per further leg", *per_leg, ""))
    header = ("legs", "inverse M", "A", "forward M", "A", "depth")
    return Table(f"Operations over the number of legs with {joints} joints", header, tuple(rows))


def depth_table(joints: int = 3, legs: Sequence[int] = MANY_LEGS) -> Table:
    """Return the depth of forward dynamics over the number of legs, which are computed beside each other.

    Args:
        joints: Number of joints of each leg. legs: Numbers of legs.
    """
    rows = []
    for number in legs:
        counts = star_counts(number, joints)
        operations = sum(counts.forward)
        rows.append((str(number), str(operations), str(counts.depth), f"{operations / counts.depth:.0f}"))
    notes = ("The contributions of the modules to the trunk are added in pairs: each doubling adds a constant depth.",)
    header = ("legs", "operations", "depth", "operations / depth")
    return Table("Forward dynamics: depth over the number of modules", header, tuple(rows), notes)


def _row(words: str, counts: StarCounts) -> tuple[str, ...]:
    return words, *map(str, (*counts.inverse, *counts.forward)), str(counts.depth)
