"""Figures in a common style, and Markdown pages with figures and tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from legged.output import output_file, replaced, write_file
from legged.table import Table

BLUE, ORANGE, GREEN, RED, PURPLE, GREY = "#0072b2", "#d55e00", "#009e73", "#c1272d", "#7b4ea3", "#888888"
"""Colors that are distinguishable with color vision deficiency."""


def figure(rows: int = 1, columns: int = 1, *, width: float = 7.0, height: float = 3.2, **options: Any) -> Figure:
    """Return a figure with a grid of axes.

    Args:
        rows, columns: Numbers of axes. width: Of the figure, [inch]. height: Of one row, [inch].
        options: Further arguments of `Figure.subplots`, such as `sharex`.
    """
    made = Figure(figsize=(width, height * rows), layout="constrained")
    made.subplots(rows, columns, squeeze=False, **options)
    for ax in made.axes:
        ax.grid(True, color="#dddddd", linewidth=0.6)
        ax.spines[["top", "right"]].set_visible(False)
    return made


def label(ax: Axes, title: str = "", x: str = "", y: str = "") -> None:
    """Set the title and the labels of axes."""
    ax.set_title(title, fontsize=10, loc="left")
    ax.set_xlabel(x, fontsize=9)
    ax.set_ylabel(y, fontsize=9)
    ax.tick_params(labelsize=8)


def legend(made: Figure, columns: int = 4) -> Figure:
    """Add one legend below the figure, with the entries of the first axes, and return the figure."""
    handles, labels = made.axes[0].get_legend_handles_labels()
    made.legend(handles, labels, fontsize=8.5, frameon=False, loc="outside lower center", ncols=columns)
    return made


def save(made: Figure, path: Path) -> Path:
    """Write a figure, as SVG if the path has this suffix, as PNG otherwise, and return the path."""
    path = output_file(path, ".svg" if str(path).endswith(".svg") else ".png")
    with replaced(path) as draft:
        made.savefig(draft, dpi=130, format=path.suffix[1:])
    return path


def write_tables(tables: Sequence[Table], folder: Path) -> list[Path]:
    """Write tables to a folder, each as CSV and as LaTeX under the words of its title, and return the paths."""
    paths, used = [], dict[str, int]()
    for table in tables:
        name = re.sub(r"[^a-z0-9]+", "-", table.title.lower()).strip("-")[:60] or "table"
        used[name] = used.get(name, 0) + 1
        name += f"-{used[name]}" if used[name] > 1 else ""
        paths += [table.to_csv(folder / f"{name}.csv"), write_file(folder / f"{name}.tex", table.to_latex(), ".tex")]
    return paths


class Page:
    """A Markdown page in a folder, with its figures in the subfolder `figures` and its tables in `tables`."""

    def __init__(self, folder: Path, title: str, tables: Sequence[Table] = ()):
        self.folder = folder
        self.parts = [f"# {title}"]
        self.figures: list[Path] = []
        self.tables: list[Table] = []
        for table in tables:
            self.table(table)

    def heading(self, words: str) -> None:
        """Add a heading."""
        self.parts.append(f"## {words}")

    def text(self, words: str) -> None:
        """Add a paragraph."""
        self.parts.append(words)

    def table(self, table: Table) -> None:
        """Add a table."""
        self.tables.append(table)
        self.parts.append(table.markdown())

    def figure(self, figure: Figure, name: str, words: str) -> None:
        """Save a figure as `figures/<name>.png` and add it with a caption."""
        path = save(figure, self.folder / "figures" / f"{name}.png")
        self.figures.append(path)
        self.parts.append(f"![{words}]({path.relative_to(self.folder).as_posix()})\n\n*{words}*")

    def write(self, name: str = "report.md", tables: bool = True) -> Path:
        """Write the page, its tables also as CSV and LaTeX unless `tables` is False, and return its path."""
        if tables:
            write_tables(self.tables, self.folder / "tables")
        return write_file(self.folder / name, "\n\n".join(self.parts) + "\n", ".md")
