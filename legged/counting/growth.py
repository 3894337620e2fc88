"""Growth of operation counts with the size of a robot: its links, legs or joints, or any number that defines it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from legged.arguments import instance, whole
from legged.checked import checked
from legged.compiler import Counts, count
from legged.errors import ArgumentError
from legged.output import as_label
from legged.robot.robot import Robot
from legged.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Growth:
    """Operation counts of functions over the size of a robot, as `count_growth` returns them.

    Attributes:
        of: What the sizes are, such as "links".
        sizes: The sizes, increasing.
        counts: Name of a function -> its counts, one per size.
    """

    of: str
    sizes: tuple[int, ...]
    counts: dict[str, tuple[Counts, ...]]

    @property
    def exponents(self) -> dict[str, float]:
        """Exponent p of the growth as size^p of all operations, by function, between the two largest sizes."""
        ratio = np.log(self.sizes[-1] / self.sizes[-2])
        return {
            name: float(np.log(counts[-1].total / counts[-2].total) / ratio) if counts[-2].total else 0.0
            for name, counts in self.counts.items()
        }

    @property
    def table(self) -> Table:
        """The counts: a row per size, and below them the exponents of `exponents`."""
        kinds: tuple[tuple[str, Callable[[Counts], int]], ...] = (
            ("M", lambda counts: counts.M),
            ("A", lambda counts: counts.A),
            ("all", lambda counts: counts.total),
        )
        header = [f"{name}: {kind}" if kind == "M" else kind for name in self.counts for kind, _ in kinds]
        rows = [
            (str(size), *(str(number(counts[k])) for counts in self.counts.values() for _, number in kinds))
            for k, size in enumerate(self.sizes)
        ]
        exponents = self.exponents.values()
        rows.append(("exponent", *(cell for p in exponents for cell in ("", "", f"{p:.2f}"))))
        notes = (
            "M: multiplications and divisions. A: additions and subtractions. All: operations of all kinds.",
            f"Exponent: p of {self.of}^p between the two largest sizes.",
        )
        return Table(f"Operations over {self.of}", (self.of, *header), tuple(rows), notes)

    def plot(self) -> Figure:
        """Return a Matplotlib figure of all operations over the size, on logarithmic axes, with the exponents."""
        from matplotlib.figure import Figure
        from matplotlib.ticker import NullFormatter

        figure = Figure(figsize=(6.0, 3.6), layout="constrained")
        axes = figure.subplots()
        for marker, (name, counts) in zip("os^Dv<>p" * len(self.counts), self.counts.items(), strict=False):
            words = as_label(f"{name}, exponent {self.exponents[name]:.2f}")
            axes.loglog(self.sizes, [c.total for c in counts], f"{marker}-", markersize=4.0, label=words)
        axes.set(xlabel=self.of, ylabel="operations")
        axes.set_xticks(self.sizes, [str(size) for size in self.sizes])
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.grid(True, which="both", color="#dddddd", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
        return figure

    def _repr_html_(self) -> str:
        """Return the table for a notebook."""
        return self.table.html()


@checked
def count_growth(
    functions: Callable[..., Any] | Mapping[str, Callable[..., Any]],
    build: Callable[[int], Any],
    sizes: Sequence[int],
    of: str = "links",
) -> Growth:
    """Count the operations of functions of robots of several sizes.

        growth = legged.count_growth(legged.forward_dynamics, robots.chain, [4, 8, 16, 32])
        print(growth.table.text(), growth.exponents)
        growth.plot()

    Args:
        functions: A function as `legged.count` takes it, or several by name.
        build: Function of one size that returns a `Robot`, such as `lambda legs: robots.star(legs, 3)`.
        sizes: At least two sizes, increasing, each at least 1.
        of: What the sizes are, for the table and the figure.

    Raises:
        ArgumentError: No functions, sizes that do not increase, or a result of `build` that is no robot.
        TraceError: A function that cannot be traced; see `legged.count`.
    """
    wanted = [whole("sizes", size, least=1) for size in sizes]
    if len(wanted) < 2 or any(b <= a for a, b in pairwise(wanted)):
        raise ArgumentError(f"sizes must be at least two numbers that increase, got {wanted}")
    if isinstance(functions, Mapping):
        named = dict(functions)
    else:
        named = {getattr(functions, "__name__", "function").replace("_", " "): functions}
    if not named:
        raise ArgumentError("functions must name at least one function, got none")
    counts: dict[str, list[Counts]] = {name: [] for name in named}
    for size in wanted:
        robot = instance(f"build({size})", build(size), Robot, "a Robot")
        for name, function in named.items():
            counts[name].append(count(function, robot))
    return Growth(of, tuple(wanted), {name: tuple(measured) for name, measured in counts.items()})
