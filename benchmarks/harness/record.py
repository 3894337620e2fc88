"""A record of measured quantities, with the computer and the program versions, stored as JSON and shown as tables."""

import json
import os
import platform
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.harness.timing import Spread
from legged.compiler import default_threads
from legged.compiler.codegen import llvm
from legged.table import Table
from legged.version import __version__

FORMAT = 1
"""Version of the file format: another number means other fields."""
RATIO = "times"
"""The unit of ratios."""
PROGRAMS = ("numpy", "llvmlite", "pin", "mujoco", "example-robot-data")


class RecordError(ValueError):
    """The file is not a benchmark record, or has another format."""


class Quantity(NamedTuple):
    """One measured number.

    Attributes:
        name: From the kind of benchmark to the workload: ("one state", "humanoid", "forward dynamics", "ours"). Names
            identify the quantity in older records.
        unit: "us" for one state, `RATIO`, "GFLOP/s", "%", "s" or "steps/s".
        median, low, high: The median, and the range of the rounds without the lowest and the highest.
    """

    name: tuple[str, ...]
    unit: str
    median: float
    low: float
    high: float

    @property
    def spread(self) -> Spread:
        """The three numbers."""
        return Spread(self.median, self.low, self.high)

    def __str__(self) -> str:
        """Return the median, for a ratio with its spread."""
        median, low, high = (f"{x:.3g}" for x in self.spread)
        return f"{median} ({low}..{high})" if self.unit == RATIO else median


@dataclass(frozen=True)
class Record:
    """All measured quantities of a run of the benchmarks.

    Attributes:
        machine: Processor, cores, vector width and operating system.
        versions: Versions of the programs.
        date: Start of the run.
        commit: Commit of the source, followed by "+" if files have changed since; empty if it is unknown.
        quantities: The measured quantities.
    """

    machine: dict[str, Any]
    versions: dict[str, str]
    date: str
    commit: str
    quantities: list[Quantity] = field(default_factory=list)

    def add(self, name: Iterable[str], unit: str, spread: Spread) -> None:
        """Add a quantity."""
        self.quantities.append(Quantity(tuple(name), unit, *spread))

    def find(self, *name: str) -> Quantity | None:
        """Return the quantity with this name, or None."""
        return next((q for q in self.quantities if q.name == name), None)

    def find_all(self, *prefix: str) -> Iterator[Quantity]:
        """Yield the quantities whose names begin with `prefix`."""
        return (q for q in self.quantities if q.name[: len(prefix)] == prefix)

    def save(self, path: Path) -> None:
        """Write the record as JSON with a line for each quantity."""
        head = json.dumps({"format": FORMAT, **asdict(replace(self, quantities=[]))}).removesuffix("[]}")
        rows = ",\n".join(json.dumps(q._asdict()) for q in self.quantities)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{head}[\n{rows}\n]}}\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> "Record":
        """Return the record in a file.

        Raises:
            RecordError: If the file is not a record of this format.
        """
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content.pop("format") != FORMAT:
                raise RecordError(f"{path} is a record of another format; run the benchmarks again with this version")
            quantities = [Quantity(**{**q, "name": tuple(q["name"])}) for q in content.pop("quantities")]
            return cls(**content, quantities=quantities)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, RecordError):
                raise
            raise RecordError(f"{path} is not a benchmark record: {type(error).__name__}: {error}") from error


def quantity_table(
    record: Record, kind: str, columns: Sequence[str], shown: Mapping[str, str], title: str, notes: Sequence[str]
) -> Table:
    """Return a table of the quantities of one kind.

    Args:
        record: The record.
        kind: First part of the names.
        columns: Headings for the parts of the names between the kind and the last part, which identify a row.
        shown: Headings of the other columns -> last parts of the names.
        title: Text above the table.
        notes: Lines below the table.
    """
    rows = dict.fromkeys(q.name[1:-1] for q in record.find_all(kind))
    cells = [(*row, *(str(record.find(kind, *row, last) or "-") for last in shown.values())) for row in rows]
    return Table(title, (*columns, *shown), tuple(cells), tuple(notes), left=len(columns))


def new_record() -> Record:
    """Return an empty record for a run on this computer that starts now."""
    date = datetime.now(UTC).isoformat(timespec="seconds")
    machine = {
        "processor": _processor(),
        "cores": os.cpu_count() or 1,
        "threads": default_threads(),
        "numbers in a vector": llvm.vector_width(),
        "system": f"{platform.system()} {platform.machine()}",
    }
    versions = {"python": platform.python_version(), "legged": __version__}
    for name in PROGRAMS:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return Record(machine, versions, date, _commit())


def _commit() -> str:
    """Return the commit of the source, followed by "+" if files have changed since; "" outside of a repository."""
    folder = Path(__file__).parents[2]

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        return git("rev-parse", "--short", "HEAD") + "+" * bool(git("status", "--porcelain", "--untracked-files=no"))
    except (OSError, subprocess.CalledProcessError):
        return ""


def _processor() -> str:
    """Return the name of the processor, and the name of its architecture in LLVM."""
    name = platform.processor()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), name)
    except OSError:
        pass
    return f"{name} ({llvm.default_target().cpu})"
