"""What differs between the instances of a form: a table with a row for each; see `segments`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from legged.trace.segments import Form
from legged.trace.storage import Storage

BYTES = 8
"""Of a number."""


class Column(NamedTuple):
    """Where something is: so many bytes after an entry of a form's rows, entry -1 being zero in all rows."""

    entry: int
    rest: int


def _columns(matrix: np.ndarray) -> tuple[list[Column], np.ndarray]:
    """Return (where each column of a table is, the entries of all rows): columns that differ by a number share one."""
    entries: dict[bytes, int] = {np.zeros(len(matrix), dtype=np.int64).tobytes(): -1}
    kept: list[int] = []
    found = []
    for k, column in enumerate(matrix.T):
        entry = entries.setdefault((column - column[0]).tobytes(), len(kept))
        if entry == len(kept):
            kept.append(k)
        found.append(Column(entry, int(column[0] - (matrix[0, kept[entry]] if entry >= 0 else 0))))
    return found, matrix[:, kept]


class Table:
    """The table of one form, with a row for each instance.

    Attributes:
        operands, outputs: Of each operand, of each block of outputs.
        rows: The entries, (instances, entries).
        fixed: Constants that all instances share, by number.
        varying: Where the others are in a row of `numbers`.
        numbers: (instances, constants).
    """

    def __init__(self, form: Form, storage: Storage, width: int):
        places = [[*map(storage.place, s.operands), *storage.bases(s)] for s in form.instances]
        matrix = np.array(places, dtype=np.int64).reshape(len(places), -1) * (BYTES * width)
        columns, self.rows = _columns(matrix)
        self.operands, self.outputs = columns[: form.size], columns[form.size :]
        constants = np.array([s.constants for s in form.instances]).reshape(len(places), -1)
        self.fixed = {k: float(c[0]) for k, c in enumerate(constants.T) if np.all(c == c[0])}
        distinct: dict[bytes, int] = {}
        self.varying: dict[int, int] = {}
        for k, column in enumerate(constants.T):
            if k not in self.fixed:
                self.varying[k] = distinct.setdefault(column.tobytes(), len(distinct))
        self.numbers = np.array([np.frombuffer(column) for column in distinct]).reshape(len(distinct), len(places)).T

    @property
    def widths(self) -> tuple[int, int]:
        """How many entries and how many constants a row has."""
        return self.rows.shape[1], self.numbers.shape[1]
