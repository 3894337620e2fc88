"""The results of a run as a Markdown page with tables and figures, and its comparison with an older run."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.harness import targets
from benchmarks.harness.record import RATIO, Quantity, Record
from benchmarks.studies import growth
from legged.simulation.plots.pages import Page
from legged.table import Table

REPEATABILITY = 10.0
"""Smallest change to report, [%]. Medians of runs of the same source differ by up to 9 %: all rounds of a run share the
memory layout and the load of the computer."""


def write_page(record: Record, tables: Sequence[Table], command: str, folder: Path) -> list[Path]:
    """Write the page `speed.md` with its figures to a folder, and return the paths of all files."""
    page = Page(folder, "Speed and accuracy, beside Pinocchio and MuJoCo")
    page.text(_introduction(record, command))
    for table in (targets.target_table(record), *tables):
        page.table(table)
    for kind, (name, draw, caption) in growth.FIGURES.items():
        if any(record.find_all(kind)):
            page.figure(draw(record), name, caption)
    return [page.write("speed.md"), *page.figures]


def _introduction(record: Record, command: str) -> str:
    machine = ", ".join(f"{name} {value}" for name, value in record.machine.items())
    versions = ", ".join(f"{name} {version}" for name, version in record.versions.items())
    return f"""Written by `{command}` on {record.date[:10]}; {machine}; {versions}.

The programs are compared in one process: their results are checked to agree, then they are timed in turns. Times are
medians over the rounds. Ratios are formed round by round and given as the median, with the range of the rounds without
the lowest and the highest. Ratios carry over from one computer to another better than times do. Pinocchio and MuJoCo
are the binary packages from PyPI, built for any processor of the architecture; our code is compiled for this
processor."""


class Change(NamedTuple):
    """A ratio in a new and in an old record."""

    new: Quantity
    old: Quantity

    @property
    def percent(self) -> float:
        """Relative change of the median, [%]."""
        return 100.0 * (self.new.median / self.old.median - 1.0)

    @property
    def is_significant(self) -> bool:
        """Whether each median lies outside of the other's spread, and the change exceeds `REPEATABILITY`."""
        new, old = self.new, self.old
        is_outside = not (old.low <= new.median <= old.high) and not (new.low <= old.median <= new.high)
        return is_outside and abs(self.percent) > REPEATABILITY

    @property
    def mark(self) -> str:
        """ ">" for a significant increase, "<" for a significant decrease, else ""."""
        return "" if not self.is_significant else ">" if self.percent > 0.0 else "<"


def changes(new: Record, old: Record) -> list[Change]:
    """Return the ratios that both records contain."""
    old_ratios = {q.name: q for q in old.quantities if q.unit == RATIO}
    return [Change(q, old_ratios[q.name]) for q in new.quantities if q.unit == RATIO and q.name in old_ratios]


def comparison_table(new: Record, old: Record) -> Table:
    """Return the ratios of two records side by side, with a mark at significant changes."""
    both = changes(new, old)
    rows = [(", ".join(c.new.name), str(c.old), str(c.new), f"{c.percent:+.0f} %", c.mark) for c in both]
    marked = sum(c.is_significant for c in both)
    notes = [
        f"{marked} of {len(both)} ratios changed by more than both spreads and {REPEATABILITY:g} %.",
        "Marks: '>' increase, '<' decrease.",
        *(f"Other conditions: {difference}." for difference in _differences(new, old)),
    ]
    new_run, old_run = (f"{record.date} ({record.commit or 'unknown commit'})" for record in (new, old))
    title = f"Ratios of {new_run} beside those of {old_run}"
    return Table(title, ("ratio", "old", "new", "change", ""), tuple(rows), tuple(notes))


def _differences(new: Record, old: Record) -> list[str]:
    """Return descriptions of the other differences: computer, versions, and ratios that only one record contains."""
    differences = []
    for now, before in ((new.machine, old.machine), (new.versions, old.versions)):
        for name in {**before, **now}:
            if now.get(name) != before.get(name):
                differences.append(f"{name} was {before.get(name, 'missing')}, is {now.get(name, 'missing')}")
    new_names, old_names = ({q.name for q in record.quantities if q.unit == RATIO} for record in (new, old))
    for only, description in ((new_names - old_names, "new"), (old_names - new_names, "missing")):
        if only:
            differences.append(f"{len(only)} ratios are {description}")
    return differences
