"""Measured numbers as tables."""

from collections.abc import Mapping, Sequence

from benchmarks.record import RATIO, Quantity, Record
from legged.table import Table


def cell(quantity: Quantity | None) -> str:
    """Return a quantity in words: a ratio with its spread, anything else as the median alone."""
    if quantity is None:
        return "-"
    median, low, high = (f"{x:.3g}" for x in quantity.spread)
    return f"{median} ({low}..{high})" if quantity.unit == RATIO else median


def table(
    record: Record, kind: str, columns: Sequence[str], shown: Mapping[str, str], title: str, notes: Sequence[str]
) -> Table:
    """Return a table of a kind's quantities.

    Args:
        record: What was measured. kind: First part of the names.
        columns: What the parts of the names are between the kind and the last, which make a row.
        shown: Headings of the other columns -> last parts of the names.
        title, notes: Above and below it.
    """
    rows = dict.fromkeys(q.name[1:-1] for q in record.below(kind))
    cells = [(*row, *(cell(record.find(kind, *row, way)) for way in shown.values())) for row in rows]
    return Table(title, (*columns, *shown), tuple(cells), tuple(notes), left=len(columns))
