"""A run of the benchmarks as a page: what it ran on, tables, figures."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks import growth, plots, targets
from benchmarks.record import Record
from legged.app.figures import Page
from legged.table import Table

FIGURES = {
    growth.LINKS: ("growth_links", plots.links, "Time over the number of links; bands are the spread."),
    growth.BATCH: ("growth_batch", plots.batch, "Time for one state over the number of states in a call."),
    growth.THREADS: ("growth_threads", plots.threads, "Rate over the number of threads."),
}


def write(record: Record, tables: Sequence[Table], command: str, folder: Path) -> list[Path]:
    """Write the page `speed.md` with its figures into a folder, and return their paths."""
    page = Page(folder, "Speed and accuracy, beside Pinocchio and MuJoCo")
    page.text(_introduction(record, command))
    for table in (targets.table(record), *tables):
        page.table(table)
    for kind, (name, draw, words) in FIGURES.items():
        if any(record.below(kind)):
            page.figure(draw(record), name, words)
    return [page.write("speed.md"), *page.figures]


def _introduction(record: Record, command: str) -> str:
    machine = ", ".join(f"{name} {value}" for name, value in record.machine.items())
    versions = ", ".join(f"{name} {version}" for name, version in record.versions.items())
    return f"""Made by `{command}` on {record.date[:10]}; {machine}; {versions}.

All ways to one result are timed in turns in one process, after their numbers were found to agree. Times are medians of
the rounds. Ratios are formed round by round: median (range of the rounds but for the lowest and the highest). Ratios
travel from one computer to another better than times do. Pinocchio and MuJoCo are as their wheels are built, for any
processor of the kind; our code is made for the processor at hand."""
