"""Figures for a journal: restyled to the width of a column, with legends above their axes and fonts for print."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.text import Text

from legged.arguments import number
from legged.checked import checked
from legged.errors import ArgumentError
from legged.output import output_file, replaced

_INCH = 25.4  # [mm]
_POINTS = 72.0  # in an inch
_FORMATS = (".pdf", ".svg", ".eps", ".png")
_LARGEST_ROW = 0.75
"""Height of a row of axes over its width above which a figure is made flatter."""


@checked
def for_journal(
    figures: Figure | Mapping[str, Figure],
    width: float = 88.0,
    font_size: float = 8.0,
    title: bool = False,
) -> None:
    """Change figures to the width of a journal's column, in place; call it once, on a figure or on all of a run.

        figures = run.plot()
        plots.for_journal(figures)
        plots.save_for_journal(figures, "paper")

    Every text gets one size, lines become thin, and legends beside their axes move above them. Any Matplotlib figure
    may be given, also one that the toolkit did not make.

    Args:
        figures: A figure, or several by name, as `Run.plot` returns them.
        width: Width of the column, [mm]: 88 for one column of IEEE, 181 for two; 90 and 190 for Elsevier.
        font_size: Size of all texts, [point].
        title: Whether titles of whole figures stay, which in a paper are the caption.

    Raises:
        ArgumentError: A width or a size that is not positive.
    """
    number("width", width, "mm", above=0)
    number("font_size", font_size, "point", above=0)
    for figure in figures.values() if isinstance(figures, Mapping) else (figures,):
        _restyle(figure, width / _INCH, font_size, title)


@checked
def save_for_journal(figures: Mapping[str, Figure], folder: str | Path, suffix: str = ".pdf") -> list[Path]:
    """Write figures to a folder, with fonts that journals accept (TrueType, no Type 3), and return the paths.

    Args:
        figures: Figures by name, as `Run.plot` returns them.
        folder: The folder, which is created if it is missing.
        suffix: Format, one of .pdf, .svg, .eps and .png (600 dots per inch).

    Raises:
        ArgumentError: Another format.
        FileError: A file cannot be written.
    """
    if suffix not in _FORMATS:
        raise ArgumentError(f"suffix must be one of {', '.join(_FORMATS)}, got {suffix!r}")
    paths = []
    for name, figure in figures.items():
        paths.append(output_file(Path(folder) / f"{name}{suffix}", suffix))
        with replaced(paths[-1]) as draft, rc_context({"pdf.fonttype": 42, "ps.fonttype": 42, "svg.fonttype": "path"}):
            figure.savefig(draft, dpi=600, format=suffix[1:])
    return paths


def _restyle(figure: Figure, width: float, font_size: float, title: bool) -> None:
    """Change one figure; width in [inch]."""
    before, height = figure.get_size_inches()
    scale = width / before
    if not any(ax.axison for ax in figure.axes):
        figure.set_size_inches(width, height * scale)  # a drawing, whose texts belong to its shapes
        for text in figure.findobj(Text):
            text.set_fontsize(text.get_fontsize() * scale)
        return
    if not title and figure.get_suptitle():
        figure.suptitle("")
    rows = max((ax.get_subplotspec().get_gridspec().nrows for ax in _placed(figure)), default=1)
    columns = max((ax.get_subplotspec().get_gridspec().ncols for ax in _placed(figure)), default=1)
    figure.set_size_inches(width, min(height, rows * _LARGEST_ROW * width / columns + 0.3))
    for ax in figure.axes:
        legend = ax.get_legend()
        for line in (*ax.lines, *(legend.get_lines() if legend is not None else ())):
            line.set_linewidth(min(line.get_linewidth(), 1.0))
            line.set_markersize(min(line.get_markersize(), 3.0))
        for spine in ax.spines.values():
            spine.set_linewidth(0.6)
        ax.tick_params(width=0.6, length=2.5)
        if legend is not None and not legend.get_bbox_to_anchor().width:  # anchored to a point beside the axes
            _move_above(ax, legend, 0.8 * width * _POINTS / (columns * font_size))
    for text in figure.findobj(Text):
        text.set_fontsize(font_size)


def _placed(figure: Figure) -> Iterator[Axes]:
    """Yield the axes that a grid places."""
    return (ax for ax in figure.axes if ax.get_subplotspec() is not None)


def _move_above(ax: Axes, legend: Legend, room: float) -> None:
    """Replace a legend beside axes by one above them, of as many columns as the width of the axes in letters allows."""
    handles, labels = ax.get_legend_handles_labels()
    columns = max(1, min(len(labels), int(room / (0.6 * max(map(len, labels)) + 3.0))))
    legend.remove()
    ax.legend(
        handles, labels, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=columns, frameon=False, handlelength=1.4,
        columnspacing=1.0, borderaxespad=0.1,
    )  # fmt: skip
