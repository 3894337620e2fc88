"""Operation counts of a graph by kind of operation, by stage of the algorithm and by kinematic module."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from legged.compiler.ir.graph import Graph, Node
from legged.compiler.ir.operations import OPERATIONS, CallResult, Loop
from legged.compiler.ir.pass_times import compiler_pass
from legged.table import Table

Tally = Counter[str]

KINDS = (
    "multiplications",
    "additions",
    "divisions",
    "square_roots",
    "trigonometric",
    "comparisons",
    "selections",
    "other",
    "lookups",
)
"""The kinds of operations, the first fields of `Counts`."""


@dataclass(frozen=True)
class Counts:
    """Numbers of scalar operations of a graph, without common subexpressions, dead code and folded constants.

    Negations and absolute values are free: they become part of the next operation. A multiplication by a constant
    counts, also by a power of two. Of a loop (`ir.repeat_while`) one iteration counts, of a product with
    a large matrix each row that is used.

    Attributes:
        multiplications: Multiplications.
        additions: Additions and subtractions.
        divisions: Divisions.
        square_roots: Square roots.
        trigonometric: Sines, cosines, tangents and their inverses.
        comparisons: Comparisons, and the logical operations and, or, not.
        selections: `legged.where`, maximum and minimum.
        other: Exponentials, logarithms, hyperbolic functions, powers with other than integer exponents, floor, and
            random numbers.
        lookups: Numbers read from constant tables, see `LookupTable`.
        by_stage: Counts of each stage of the algorithm, in order of appearance; None stands for no stage.
        by_module: Counts of each kinematic module; None stands for no module.
    """

    multiplications: int = 0
    additions: int = 0
    divisions: int = 0
    square_roots: int = 0
    trigonometric: int = 0
    comparisons: int = 0
    selections: int = 0
    other: int = 0
    lookups: int = 0
    by_stage: dict[str | None, Counts] = field(default_factory=dict, compare=False, repr=False)
    by_module: dict[Any, Counts] = field(default_factory=dict, compare=False, repr=False)

    def _repr_html_(self) -> str:
        """Return the counts of each stage and their sum as a table for a notebook."""
        parts = {stage or "other": counts for stage, counts in self.by_stage.items()} | {"sum": self}
        rows = tuple((name, *(str(getattr(c, kind)) for kind in KINDS)) for name, c in parts.items())
        return Table("scalar operations", ("stage", *(kind.replace("_", " ") for kind in KINDS)), rows).html()

    @property
    def M(self) -> int:
        """Multiplications and divisions, M in the tables of the papers."""
        return self.multiplications + self.divisions

    @property
    def A(self) -> int:
        """Additions and subtractions, A in the tables of the papers."""
        return self.additions

    @property
    def total(self) -> int:
        """The number of operations of all kinds."""
        return sum(self.kinds().values())

    def kinds(self) -> dict[str, int]:
        """Return the number of operations of each kind."""
        return {name: getattr(self, name) for name in KINDS}

    def __add__(self, other: Counts) -> Counts:
        if not isinstance(other, Counts):
            return NotImplemented
        return Counts(
            *[getattr(self, name) + getattr(other, name) for name in KINDS],
            by_stage=_merged(self.by_stage, other.by_stage),
            by_module=_merged(self.by_module, other.by_module),
        )

    def times(self, n: int) -> Counts:
        """Return the counts of n executions, without the counts by stage and by module."""
        return Counts(*[n * getattr(self, name) for name in KINDS])

    def __str__(self) -> str:
        kinds = [name for name in KINDS if getattr(self, name)] or ["multiplications", "additions"]
        rows: list[tuple[str, ...]] = [("", *(name.replace("_", " ") for name in kinds))]
        if set(self.by_stage) - {None}:
            rows += [_row(_label_text("", label), counts, kinds) for label, counts in self.by_stage.items()]
        if set(self.by_module) - {None}:
            rows += [_row(_label_text("module ", label), counts, kinds) for label, counts in self.by_module.items()]
        rows.append(_row("all", self, kinds))
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
        return "\n".join(
            "  ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))])
            for row in rows
        )


def _merged(a: dict[Any, Counts], b: dict[Any, Counts]) -> dict[Any, Counts]:
    return {key: a.get(key, Counts()) + b.get(key, Counts()) for key in [*a, *(key for key in b if key not in a)]}


def _label_text(prefix: str, label: Any) -> str:
    return f"(no {prefix or 'stage'})".replace(" )", ")") if label is None else f"{prefix}{label}"


def _row(label: str, counts: Counts, kinds: list[str]) -> tuple[str, ...]:
    return (label, *(str(getattr(counts, kind)) for kind in kinds))


@compiler_pass("counting")
def count_graph(graph: Graph) -> Counts:
    """Return the operation counts of a graph."""
    total: Tally = Counter()
    stages: dict[str | None, Tally] = {}
    modules: dict[Any, Tally] = {}
    for operation, arguments, label in _executed(graph):
        numbers = {OPERATIONS[operation].category: 1}
        if isinstance(operation, CallResult) and not isinstance(operation.function, Loop):
            numbers = {"multiplications": len(arguments), "additions": len(arguments) - 1}
        for category, number in numbers.items():
            if category is None:
                continue
            for tally in (
                total,
                stages.setdefault(label.stage, Counter()),
                modules.setdefault(label.module, Counter()),
            ):
                tally[category] += number
    return _counts(
        total,
        {stage: _counts(tally) for stage, tally in stages.items()},
        {module: _counts(tally) for module, tally in modules.items()},
    )


def _executed(graph: Graph) -> Iterator[Node]:
    """Yield the nodes of a graph, and those of one iteration of each of its loops."""
    results = [(n.operation.function, n) for n in graph.nodes if isinstance(n.operation, CallResult)]
    loops = dict.fromkeys((function, n.arguments) for function, n in results if isinstance(function, Loop))
    return chain(graph.nodes, *(_executed(loop.body) for loop, _ in loops))


def _counts(
    tally: Tally, by_stage: dict[Any, Counts] | None = None, by_module: dict[Any, Counts] | None = None
) -> Counts:
    return Counts(*[tally[kind] for kind in KINDS], by_stage=by_stage or {}, by_module=by_module or {})
