"""A file of rows that grows while a program runs: rows that were written are kept however the program ends.

The first line is JSON with the version, and the name and shape of each column; rows of little-endian doubles follow.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import prod
from pathlib import Path

import numpy as np

from legged.errors import FileError
from legged.files.reading import read_regular
from legged.output import growing_file
from legged.spatial import Array

ROWS = ".rows"
"""Suffix of these files."""
_VERSION = 1
_HEADER = 10_000
"""Largest length of the first line, [byte]."""
_MOST = 2**31
"""Largest size of the rows that are read, [byte], if no other is given."""


class RowFile:
    """A new file of rows. Each row is handed to the operating system at once, so that a killed program loses none.

    Args:
        path: The file; if it exists, the first free one of NAME-2.rows, NAME-3.rows, ...
        shapes: Name and shape of each column.

    Attributes:
        path: The file that was created.

    Raises:
        FileError: The file cannot be created.
    """

    def __init__(self, path: str | Path, shapes: Mapping[str, tuple[int, ...]]):
        self.path, self._file = growing_file(path, ROWS)
        header = {"legged rows": _VERSION, "columns": {name: list(shape) for name, shape in shapes.items()}}
        self._append(json.dumps(header).encode() + b"\n")

    def write(self, row: Array) -> None:
        """Append a row.

        Args:
            row: All columns one after the other, (n,), mixed units.

        Raises:
            FileError: The file cannot be written, for example because the disk is full.
        """
        self._append(np.asarray(row, dtype="<f8").tobytes())

    def _append(self, data: bytes) -> None:
        try:
            written = self._file.write(data)
        except (OSError, ValueError) as error:
            raise FileError(str(self.path), f"cannot be written: {error}; the rows before are in it") from error
        if written != len(data):
            raise FileError(str(self.path), "cannot be written completely; the rows before are in it")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_rows(path: str | Path, most: int | None = None) -> tuple[dict[str, tuple[int, ...]], Array]:
    """Return (shapes of the columns, rows (T, n)) of a file of rows; an incomplete last row is left out.

    Args:
        path: The file, untrusted. most: Largest size of the file, [byte]; 2 GiB by default.

    Raises:
        FileError: The file does not exist, is too large, or is no file of rows.
    """
    content = read_regular(path, _MOST if most is None else most, "logs of a loop")
    line = content[: content.find(b"\n", 0, _HEADER) + 1]
    shapes = _shapes(line, str(path))
    width = sum(map(prod, shapes.values()))
    count = (len(content) - len(line)) // (8 * width)
    rows = np.frombuffer(content, "<f8", count * width, len(line))
    return shapes, rows.astype(float).reshape(count, width)


def _shapes(line: bytes, source: str) -> dict[str, tuple[int, ...]]:
    """Return the columns that the first line of a file states."""
    try:
        header = json.loads(line)
        shapes = {str(name): tuple(map(int, shape)) for name, shape in header["columns"].items()}
        sizes, width = [n for shape in shapes.values() for n in shape], sum(map(prod, shapes.values()))
        if header["legged rows"] != _VERSION or min(sizes, default=0) < 0 or not 0 < width < _HEADER**2:
            raise ValueError
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        raise FileError(source, "is no file of rows: its first line does not state the columns") from None
    return shapes
