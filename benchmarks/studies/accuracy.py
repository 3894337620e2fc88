"""Certified accuracy of the algorithms: `python -m benchmarks.studies.accuracy`, about a minute.

The exact result of an algorithm lies in the result of interval arithmetic (`mpmath.iv`), which rounds outward: each of
its operations encloses all values that are possible. The distance of the result in floats from the farther end of the
interval is therefore a bound of its error, not an estimate. Constants of the robot are exact, see
`legged.robot.construction.lifted`. With `--write` the bounds are written beside the tables of
docs/reference/algorithms.md, and so are two other tables.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from mpmath import iv, mp

import legged
import robots
from benchmarks.studies.any_element import (
    ALGORITHMS,
    CORE,
    GAINS,
    HYBRID,
    LYAPUNOV,
    MOVING,
    OPERATORS,
    PARALLEL,
    Function,
    case_of,
    numbers_of,
)
from benchmarks.studies.simplification import reduced_table
from examples.studies.operations.branches import branches_table
from legged.table import Table

DIGITS = 120
"""Digits of the intervals, so many that their width does not matter beside the rounding of floats."""
SEED = 0
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "algorithms.md"
_BEGIN, _END = "<!-- accuracy: {} -->", "<!-- accuracy: end -->"


class Bound(NamedTuple):
    """A bound of the error of a result in floats, relative to its largest number.

    Attributes:
        error: The largest possible error. width: Width of the interval that contains the exact result.
    """

    error: float
    width: float


def _named(*names: str) -> dict[str, Function]:
    known = {**CORE, **ALGORITHMS, **OPERATORS, **PARALLEL}
    return {name: known[name] for name in names}


QUADRUPED, CHAIN = "quadruped", "chain"
SECTIONS: dict[str, tuple[str, Mapping[str, Function]]] = {
    "Featherstone and Orin 2000": (
        CHAIN,
        _named(
            *("newton_euler", "newton_euler, absolute", "by inverse dynamics", "by unit accelerations", "composite"),
            *("composite, absolute", "articulated", "articulated, absolute", "joint_wrenches", "global_form"),
            *("system", "constraint_force"),
        ),
    ),
    "Rodriguez, Jain and Kreutz-Delgado 1991": (QUADRUPED, OPERATORS),
    "Operational space": (
        QUADRUPED,
        _named(
            *("by_propagators", "by_factors", "by_operators", "space.inertia", "space.null_space_projector"),
            *("space.bias", "space.forces", "sparsity"),
        ),
    ),
    "Hybrid motion and force control": (QUADRUPED, HYBRID),
    "Control laws with a Lyapunov function": (QUADRUPED, LYAPUNOV),
    "Parallel forms": (CHAIN, PARALLEL),
    "Six-dimensional vectors in moving coordinates": (QUADRUPED, MOVING),
    "Derivatives, regressor, centroidal dynamics": (
        QUADRUPED,
        _named(
            *("derivatives, inverse", "derivatives, forward", "inverse_inertia", "jacobian_rate", "of_frame_motion"),
            *("regressor", "centroidal", "momentum_matrix"),
        ),
    ),
    "Conditioning of the inertia matrix": (CHAIN, _named("inertia_matrix")),
    "Rounding errors of forward dynamics": (CHAIN, _named("forward_dynamics", "articulated")),
    "Balance": (QUADRUPED, GAINS),
}
"""Beginning of a heading of the page -> the robot, and the algorithms of its tables."""


@cache
def _robot(name: str) -> legged.Robot:
    """Return the quadruped with an Euler base, whose coordinates have no norm to keep, or a chain of ten links."""
    return (
        robots.spatial_quadruped(legged.EulerBase())
        if name == QUADRUPED
        else robots.chain(10, twist=0.7, base=legged.FixedBase())
    )


def bound(robot: str, function: Function) -> Bound:
    """Return the bound of the error of a function at a random state of a robot."""
    plain = case_of(_robot(robot), SEED, float)
    floats = plain._replace(**{name: getattr(plain, name).astype(float) for name in plain._fields[1:]})
    numbers = numbers_of(function(floats))
    before, iv.dps = iv.dps, DIGITS
    try:
        with mp.workdps(DIGITS):
            enclosed = numbers_of(function(case_of(_robot(robot), SEED, lambda x: iv.convert(x))))
            pairs = [
                (mp.mpf(float(x)), *_ends(y)) for x, y in zip(numbers, enclosed, strict=True) if hasattr(y, "_mpi_")
            ]
            size = max(max(abs(low), abs(high)) for _, low, high in pairs)
            error = max(max(abs(x - low), abs(high - x)) for x, low, high in pairs)
            return Bound(float(error / size), float(max(high - low for _, low, high in pairs) / size))
    finally:
        iv.dps = before


def _ends(x: Any) -> tuple[Any, Any]:
    return tuple(mp.make_mpf(end) for end in x._mpi_)  # type: ignore[return-value]


def table(section: str) -> Table:
    """Return the bounds of the algorithms of a section of the page."""
    robot, functions = SECTIONS[section]
    rows = []
    for name, function in functions.items():
        bounds = bound(robot, function)
        rows.append((f"`{name}`", f"{bounds.error:.1e}", f"{bounds.width:.0e}"))
    words = "quadruped with an Euler base" if robot == QUADRUPED else "chain of ten links, twist 0.7 rad, fixed base"
    header = (f"certified accuracy: {words}", "error of float64 at most", "width of the enclosure")
    return Table(section, header, tuple(rows), left=1)


def text_of(section: str) -> str:
    """Return the block of a section, or of a name of `OTHERS`, as the page has it, between its comments."""
    shown = OTHERS[section]() if section in OTHERS else table(section)
    body = shown.markdown().partition("\n\n")[2].strip()
    return f"{_BEGIN.format(section)}\n\n{body}\n\n{_END}\n"


OTHERS: dict[str, Callable[[], Table]] = {"reduced models": reduced_table, "branches": branches_table}
"""Other tables of the page that are computed: name -> function."""


def written(page: str, section: str) -> str:
    """Return the page with the block of a section, which follows the tables of the section if it is new."""
    block = re.compile(re.escape(_BEGIN.format(section)) + r".*?" + re.escape(_END) + r"\n", re.DOTALL)
    if block.search(page):
        return block.sub(lambda _: text_of(section), page)
    start = page.index(f"\n## {section}")
    end = page.find("\n## ", start + 1)
    end = len(page) if end < 0 else end
    return f"{page[:end].rstrip()}\n\n{text_of(section)}{page[end:]}"


def main() -> None:
    """Print the tables, or write them to the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.studies.accuracy", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the tables to docs/reference/algorithms.md")
    options = parser.parse_args()
    page = PAGE.read_text(encoding="utf-8")
    for section in (*SECTIONS, *OTHERS):
        print(section if options.write else text_of(section), flush=True)
        page = written(page, section) if options.write else page
    if options.write:
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
