"""What differs between rows of one kind: a table of places and constants; see `rows` and `storage`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from legged.compiler.passes.outline.bundles import Kind, Row
from legged.compiler.passes.outline.memory_plan import Storage

BYTES = 8
"""Of a number."""


class Column(NamedTuple):
    """Where something is: so many bytes after an entry of a kind's rows, entry -1 being zero in all rows.

    Attributes:
        entry: Number of the entry in a row.
        rest: Bytes.
        lanes: "together" side by side, "shared" at the same place, or "apart", with an entry each.
    """

    entry: int
    rest: int
    lanes: str = "together"


class Table:
    """The table of one kind, with a row for each of its rows.

    Attributes:
        operands, outputs: Where each operand is, and each block of outputs.
        entries: (rows, entries).
        fixed: Constants that are the same everywhere, by number.
        varying: Where the others are in a row of `numbers`; lanes side by side.
        numbers: (rows, constants).
    """

    def __init__(self, kind: Kind, rows: Sequence[Row], storage: Storage, width: int):
        self._lanes, self._known = kind.lanes, {}
        self._real = np.array([[lane < len(row.segments) for lane in range(kind.lanes)] for row in rows])
        self._kept: list[np.ndarray] = []
        filled = [[row.segments[min(lane, len(row.segments) - 1)] for lane in range(kind.lanes)] for row in rows]
        places = np.array([[[storage.place(x) for x in s.operands] for s in row] for row in filled], dtype=np.int64)
        bases = np.array([storage.bases[row] for row in rows], dtype=np.int64).reshape(len(rows), -1)
        self.operands = [self._column(p * (BYTES * width)) for p in np.moveaxis(places, 2, 0)]
        self.outputs = [self._entry(b[:, None] * (BYTES * width), "together") for b in bases.T]
        self.entries = _beside(self._kept, len(rows))
        constants = np.array([[s.constants for s in row] for row in filled]).reshape(*self._real.shape, -1)
        self.fixed: dict[int, float] = {}
        self.varying: dict[int, int] = {}
        distinct: dict[bytes, np.ndarray] = {}
        for k, numbers in enumerate(np.moveaxis(constants, 2, 0)):
            if np.all(numbers == numbers[0, 0]):
                self.fixed[k] = float(numbers[0, 0])
            else:
                distinct.setdefault(numbers.tobytes(), numbers)
                self.varying[k] = list(distinct).index(numbers.tobytes()) * kind.lanes
        self.numbers = _beside(list(distinct.values()), len(rows))

    def _column(self, places: np.ndarray) -> Column:
        """Return where an operand is whose places are (rows, lanes)."""
        first = places[:, :1]
        if np.all(places == first) and self._lanes > 1:
            return self._entry(first, "shared")
        if np.all((places == first + BYTES * np.arange(self._lanes)) | ~self._real):
            return self._entry(first, "together")
        return self._entry(places, "apart")

    def _entry(self, places: np.ndarray, lanes: str) -> Column:
        """Return a column with these places; columns that differ by a number share their entries."""
        origin = int(places[0, 0])
        pattern = (places - origin).tobytes()
        if lanes != "apart" and not np.any(places - origin):
            return Column(-1, origin, lanes)
        if (lanes == "apart", pattern) not in self._known:
            entry = sum(kept.shape[1] for kept in self._kept)
            self._known[lanes == "apart", pattern] = entry, origin
            self._kept.append(places)
        entry, known = self._known[lanes == "apart", pattern]
        return Column(entry, origin - known, lanes)


def _beside(parts: Sequence[np.ndarray], rows: int) -> np.ndarray:
    return np.hstack(parts) if parts else np.zeros((rows, 0))
