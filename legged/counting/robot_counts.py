"""Tables of the operation counts of inverse and forward dynamics, beside the formulas of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from legged import loops
from legged.compiler import Counts, count
from legged.dynamics.forward import forward_dynamics
from legged.dynamics.inverse import floating_inverse_dynamics, inverse_dynamics
from legged.loops import ClosedRobot
from legged.robot.robot import Robot
from legged.table import Table

PAPER = {
    ("inverse", True): ((60, 164), (66, 156)),
    ("forward", True): ((60, 209), (66, 201)),
    ("inverse", False): ((-81, 94), (-75, 82)),
    ("forward", False): ((-198, 209), (-185, 201)),
}
"""Table 1 of Shah, Saha, Dutt 2012: (task, whether the base floats) -> (c0, c1) of M = c0 + c1 n, and of A."""
COUNTING_RULES = (
    "Counted on the traced graph that is compiled: common subexpressions once, products with 0 and 1 and unused terms",
    "not at all. M includes divisions; sines and cosines are not counted.",
)


@dataclass(frozen=True)
class DynamicsCounts:
    """Operation counts of inverse and forward dynamics of a robot.

    Attributes:
        name: Name of the robot.
        n: Number of joint coordinates, without the base.
        floating: Whether the base has degrees of freedom.
        inverse: Counts of `floating_inverse_dynamics`, or of `inverse_dynamics` for a fixed base.
        forward: Counts of `forward_dynamics`.
    """

    name: str
    n: int
    floating: bool
    inverse: Counts
    forward: Counts


def measure(robot: Robot) -> DynamicsCounts:
    """Return the operation counts of inverse and forward dynamics of a robot."""
    floating = robot.base.nv > 0
    inverse = floating_inverse_dynamics if floating else inverse_dynamics
    return DynamicsCounts(robot.name, robot.nj, floating, count(inverse, robot), count(forward_dynamics, robot))


def robot_table(measured: Sequence[DynamicsCounts]) -> Table:
    """Return a table of counts of robots beside the formulas of the paper at equal n."""
    rows = []
    for m in measured:
        for task, counts in (("inverse", m.inverse), ("forward", m.forward)):
            M, A = (constant + slope * m.n for constant, slope in PAPER[task, m.floating])
            share = 100 * (counts.M + counts.A) / (M + A)
            words = f"{m.name}, n = {m.n}, {task}" + ("" if m.floating else ", fixed base")
            rows.append((words, str(counts.M), str(M), str(counts.A), str(A), f"{share:.0f} %"))
    header = ("robot and task", "M", "paper M", "A", "paper A", "M + A of paper")
    return Table("Operations of inverse and forward dynamics", header, tuple(rows), COUNTING_RULES)


def part_tables(measured: DynamicsCounts) -> list[Table]:
    """Return the counts of inverse and of forward dynamics by stage and by module."""
    return [
        _parts(f"{measured.name}: {task} dynamics by {by}", by, counts)
        for task, counts in (("inverse", measured.inverse), ("forward", measured.forward))
        for by in ("stage", "module")
    ]


def closed_table(closed: ClosedRobot) -> Table:
    """Return the operation counts of forward dynamics with closed loops, by stage (elimination, equation (21))."""
    robot = closed.robot
    counts = count(partial(loops.forward_dynamics, closed), None, q=robot.nq, v=robot.nv, tau=robot.nv)
    title = f"{closed.name}: forward dynamics with closed loops, {len(closed.rows)} constraints"
    return _parts(title, "stage", counts)


def _parts(title: str, by: str, counts: Counts) -> Table:
    """Return a table of the counts of each stage or module, and of all."""
    parts = counts.by_stage if by == "stage" else counts.by_module
    names = {part: "other" if part is None else f"M{part}" if by == "module" else str(part) for part in parts}
    rows = sorted((names[part], c) for part, c in parts.items())
    cells = [(name, str(c.M), str(c.A), str(c.trigonometric)) for name, c in (*rows, ("all", counts))]
    return Table(title, (by, "M", "A", "sines and cosines"), tuple(cells))
