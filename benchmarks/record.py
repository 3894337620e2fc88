"""What a run of the benchmarks measured, on which computer and with which programs; kept as JSON."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.timing import Spread

FORMAT = 1
"""Of the file; another number means other fields."""
RATIO = "times"
"""The unit of ratios."""


class RecordError(ValueError):
    """A file that is no record of benchmarks, or one of another format."""


class Quantity(NamedTuple):
    """One measured number.

    Attributes:
        name: What it is, from the kind of benchmark to the way: ("one state", "humanoid", "forward dynamics", "ours").
        unit: "us" for one state, `RATIO`, "GFLOP/s", "%", "s", "steps/s".
        median, low, high: Its median, and the range of the rounds but for the two outermost.
    """

    name: tuple[str, ...]
    unit: str
    median: float
    low: float
    high: float

    @property
    def spread(self) -> Spread:
        """The numbers alone."""
        return Spread(self.median, self.low, self.high)


@dataclass(frozen=True)
class Record:
    """What was measured, and where.

    Attributes:
        machine: Processor, cores, vector width, system. versions: Of the programs. date: When it was begun.
        commit: Of the source, empty if it is not known; "+" behind it if the source was changed since.
        quantities: What was measured.
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
        """Return the quantity of that name, None if it was not measured."""
        return next((q for q in self.quantities if q.name == name), None)

    def below(self, *beginning: str) -> Iterator[Quantity]:
        """Yield the quantities whose names begin so."""
        return (q for q in self.quantities if q.name[: len(beginning)] == beginning)

    def save(self, path: Path) -> None:
        """Write the record as JSON."""
        content = {"format": FORMAT, **asdict(self)}
        content["quantities"] = [q._asdict() for q in self.quantities]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> "Record":
        """Return the record in a file.

        Raises:
            RecordError: The file holds something else.
        """
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content.pop("format") != FORMAT:
                raise RecordError(f"{path} is a record of another format; measure it again with this version")
            quantities = [Quantity(**{**q, "name": tuple(q["name"])}) for q in content.pop("quantities")]
            return cls(**content, quantities=quantities)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, RecordError):
                raise
            raise RecordError(f"{path} is no record of benchmarks: {type(error).__name__}: {error}") from error
