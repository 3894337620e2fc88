"""`Counts`: how many operations a traced function costs, by kind, by stage and by module."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from legged.compiler.ir.graph import Graph
from legged.compiler.ir.operations import OPERATIONS

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
)
"""The kinds of operation that are counted apart, the first fields of `Counts`."""


@dataclass(frozen=True)
class Counts:
    """Numbers of scalar operations, as they are executed: shared ones once, dead ones and folded ones never.

    Subtractions are additions. Negations and absolute values are free, since they end up in the sign of the
    operation that follows. A multiplication by a constant counts, by a power of two as well.

    Attributes:
        trigonometric: Sines, cosines, tangents and their inverses.
        comparisons: Comparisons of two numbers, and and, or, not of their results.
        selections: `legged.where`, maximum and minimum.
        other: Exponentials, logarithms, hyperbolic functions, powers that are not whole, roundings.
        by_stage: The same for each stage of the algorithm, in order of appearance; None is outside of any.
        by_module: The same for each kinematic module.
    """

    multiplications: int = 0
    additions: int = 0
    divisions: int = 0
    square_roots: int = 0
    trigonometric: int = 0
    comparisons: int = 0
    selections: int = 0
    other: int = 0
    by_stage: dict[str | None, Counts] = field(default_factory=dict, compare=False, repr=False)
    by_module: dict[Any, Counts] = field(default_factory=dict, compare=False, repr=False)

    @property
    def M(self) -> int:
        """Multiplications and divisions, what the papers' tables call M."""
        return self.multiplications + self.divisions

    @property
    def A(self) -> int:
        """Additions and subtractions, what the papers' tables call A."""
        return self.additions

    @property
    def total(self) -> int:
        """Operations of every kind."""
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

    def __str__(self) -> str:
        kinds = [name for name in KINDS if getattr(self, name)] or ["multiplications", "additions"]
        rows: list[tuple[str, ...]] = [("", *(name.replace("_", " ") for name in kinds))]
        if set(self.by_stage) - {None}:
            rows += [_row(_words("", label), counts, kinds) for label, counts in self.by_stage.items()]
        if set(self.by_module) - {None}:
            rows += [_row(_words("module ", label), counts, kinds) for label, counts in self.by_module.items()]
        rows.append(_row("all", self, kinds))
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
        return "\n".join(
            "  ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))])
            for row in rows
        )


def _merged(a: dict[Any, Counts], b: dict[Any, Counts]) -> dict[Any, Counts]:
    return {key: a.get(key, Counts()) + b.get(key, Counts()) for key in [*a, *(key for key in b if key not in a)]}


def _words(prefix: str, label: Any) -> str:
    return f"(no {prefix or 'stage'})".replace(" )", ")") if label is None else f"{prefix}{label}"


def _row(label: str, counts: Counts, kinds: list[str]) -> tuple[str, ...]:
    return (label, *(str(getattr(counts, kind)) for kind in kinds))


def count_graph(graph: Graph) -> Counts:
    """Return the operation counts of a graph."""
    everything: Tally = Counter()
    stages: dict[str | None, Tally] = {}
    modules: dict[Any, Tally] = {}
    for operation, _, label in graph.nodes:
        category = OPERATIONS[operation].category
        if category is not None:
            for tally in (
                everything,
                stages.setdefault(label.stage, Counter()),
                modules.setdefault(label.module, Counter()),
            ):
                tally[category] += 1
    return _counts(
        everything,
        {stage: _counts(tally) for stage, tally in stages.items()},
        {module: _counts(tally) for module, tally in modules.items()},
    )


def _counts(
    tally: Tally, by_stage: dict[Any, Counts] | None = None, by_module: dict[Any, Counts] | None = None
) -> Counts:
    return Counts(*[tally[kind] for kind in KINDS], by_stage=by_stage or {}, by_module=by_module or {})
