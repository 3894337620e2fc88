"""The history of the benchmarks: records by processor and commit, and a page with each target over time.

A folder holds a subfolder for each processor, which holds a record for each run, `<date>-<commit>.json`. Records of
runs of some kinds only are kept as well; a target that a run has not measured has no entry for it.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path
from textwrap import fill
from typing import NamedTuple

from matplotlib.figure import Figure

from benchmarks.harness.record import Quantity, Record
from benchmarks.harness.targets import TARGETS, Target
from legged.simulation.plots.pages import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, Page, figure, label
from legged.table import Table

MOST_COLUMNS = 8
"""Largest number of runs in a table, the latest ones; figures show all runs."""
_COLORS = (BLUE, ORANGE, GREEN, RED, PURPLE, GREY)


class Series(NamedTuple):
    """A target with its quantity in each run on one processor.

    Attributes:
        target: The target.
        name: Name of the quantity.
        quantities: The quantity in each run; None where it was not measured.
    """

    target: Target
    name: tuple[str, ...]
    quantities: tuple[Quantity | None, ...]

    @property
    def margins(self) -> list[float]:
        """Margin of each run: measured / bound for a lower bound, bound / measured for an upper one, NaN if unknown."""
        return [float("nan") if q is None else self.target.margin(q) for q in self.quantities]


def processor_folder(record: Record) -> str:
    """Return the name of the folder for the records of a processor."""
    return re.sub(r"[^a-z0-9]+", "-", str(record.machine.get("processor", "unknown")).lower()).strip("-")


def store(record: Record, folder: Path) -> Path:
    """Write a record to a history and return its path.

    Args:
        record: The record.
        folder: Folder of the history.
    """
    date = re.sub(r"[^0-9T]", "", record.date.split("+")[0])
    commit = record.commit.replace("+", "-changed") or "unknown"
    path = folder / processor_folder(record) / f"{date}-{commit}.json"
    record.save(path)
    return path


def load(folder: Path) -> dict[str, list[Record]]:
    """Return the records of a history by processor, the oldest first.

    Raises:
        RecordError: If a file of the history is not a record.
    """
    by_processor: dict[str, list[Record]] = {}
    for path in sorted(folder.glob("*/*.json")):
        record = Record.load(path)
        by_processor.setdefault(str(record.machine.get("processor", "unknown")), []).append(record)
    return {processor: sorted(records, key=lambda r: r.date) for processor, records in by_processor.items()}


def series(records: Sequence[Record]) -> Iterator[Series]:
    """Yield the targets of which at least one of some records holds the quantity."""
    for target in TARGETS:
        for name in target.names:
            quantities = tuple(record.find(*name) for record in records)
            if any(quantities):
                yield Series(target, name, quantities)


def history_table(processor: str, records: Sequence[Record]) -> Table:
    """Return the measured quantities of all targets in the latest runs on one processor."""
    shown = records[-MOST_COLUMNS:]
    rows = []
    for line in series(shown):
        bound = f"{'<=' if line.target.is_upper else '>='} {line.target.bound:g}"
        cells = ["-" if q is None else f"{q.median:.3g}" + "*" * (not line.target.is_met(q)) for q in line.quantities]
        rows.append((", ".join(line.name[1:-1]), line.target.description, bound, *cells))
    runs = [f"{record.date[:10]} {record.commit or '?'}" for record in shown]
    return Table(
        processor,
        ("subject", "quantity", "target", *runs),
        tuple(rows),
        ("Medians, in the units of the targets. '*': the target is missed.",),
        2,
    )


def history_figure(records: Sequence[Record]) -> Figure:
    """Return the margins of all targets over the runs on one processor, with axes for each target."""
    series_of: dict[Target, list[Series]] = {}
    for line in series(records):
        series_of.setdefault(line.target, []).append(line)
    made, x = figure(max(-(-len(series_of) // 2), 1), 2, height=2.0, width=11.0), range(len(records))
    for ax, (target, lines) in zip(made.axes, series_of.items(), strict=False):
        for color, line in zip(cycle(_COLORS), lines):
            subject = ", ".join(line.name[1:-1]) or line.name[-1]
            ax.plot(x, line.margins, marker="o", markersize=4, linewidth=1.0, color=color, label=subject)
        ax.axhline(1.0, color="black", linewidth=1.0, linestyle="--")
        ax.set_ylim(bottom=0.0)
        title = f"{target.description} {'<=' if target.is_upper else '>='} {target.bound:.3g}"
        label(ax, fill(title, 60), "", "margin")
        ax.set_xticks(x, [f"{record.date[5:10]}\n{record.commit[:7] or '?'}" for record in records], fontsize=6)
        ax.legend(fontsize=6.5, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    for ax in made.axes[len(series_of) :]:
        ax.set_axis_off()
    return made


def write_page(folder: Path, output: Path) -> list[Path]:
    """Write the page `history.md` of a history with its figures to a folder, and return the paths of all files.

    Args:
        folder: Folder of the history.
        output: Folder of the page.
    """
    page = Page(output, "Speed over time")
    page.text(
        "All runs of `python -m benchmarks` that the history holds, by processor. The margin of a target is its "
        "measured quantity divided by the bound, or the bound divided by the quantity for an upper bound."
    )
    for processor, records in load(folder).items():
        name = f"history-{processor_folder(records[0])}"
        page.table(history_table(processor, records))
        page.figure(
            history_figure(records),
            name,
            f"Margins of all targets over the runs on {processor}; below 1 a target is missed.",
        )
    return [page.write("history.md"), *page.figures]
