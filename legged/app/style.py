"""How the reports' figures look."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, RED, PURPLE, GREY = "#0072b2", "#d55e00", "#009e73", "#c1272d", "#7b4ea3", "#888888"
"""Colors that stay apart for color-blind readers."""


def figure(rows: int = 1, columns: int = 1, *, width: float = 7.0, height: float = 3.2, **options: Any) -> Figure:
    """Return a figure with a grid of axes; `height` is that of one row, [inch]."""
    made = Figure(figsize=(width, height * rows), layout="constrained")
    made.subplots(rows, columns, squeeze=False, **options)
    for ax in made.axes:
        ax.grid(True, color="#dddddd", linewidth=0.6)
        ax.spines[["top", "right"]].set_visible(False)
    return made


def label(ax: Axes, title: str = "", x: str = "", y: str = "") -> None:
    """Write an axis's title and labels."""
    ax.set_title(title, fontsize=10, loc="left")
    ax.set_xlabel(x, fontsize=9)
    ax.set_ylabel(y, fontsize=9)
    ax.tick_params(labelsize=8)


def legend(made: Figure, columns: int = 4) -> Figure:
    """Put one legend for all axes, made from the first, below the figure, and return the figure."""
    handles, labels = made.axes[0].get_legend_handles_labels()
    made.legend(handles, labels, fontsize=8.5, frameon=False, loc="outside lower center", ncols=columns)
    return made


def save(made: Figure, path: Path) -> Path:
    """Write a figure as PNG and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    made.savefig(path, dpi=130)
    return path
