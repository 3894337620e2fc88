"""The page that `legged count --algorithms` writes: tables, figures and data of the algorithms side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from legged.reports.algorithm_figures import condition_figure, growth_figure
from legged.reports.algorithms import Cost, as_csv
from legged.reports.counts import literature_table
from legged.reports.page import Page
from legged.reports.table import Table


def write(folder: Path, found: Sequence[Cost], tables: Sequence[Table]) -> list[Path]:
    """Write `algorithms.md`, `algorithms.csv` and the figures into a folder, and return their paths."""
    page = Page(folder, "The algorithms of the field, counted")
    for table in tables:
        page.table(table)
    page.heading("Published formulas")
    page.table(literature_table(12))
    page.heading("Growth")
    page.figure(growth_figure(), "growth", "Operations of forward dynamics over the number of links, M + A")
    page.heading("Condition")
    page.figure(
        condition_figure(), "condition", "Condition of the inertia matrix: medians and ranges of 20 configurations"
    )
    written = page.write("algorithms.md")
    data = folder / "algorithms.csv"
    data.write_text(as_csv(found), encoding="utf-8")
    return [written, data, *page.figures]
