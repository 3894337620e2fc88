"""Tables as plain text and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from legged.output import as_html, printable

_RIGHT = ' style="text-align: right"'


@dataclass(frozen=True)
class Table:
    """A table with cells of text.

    Attributes:
        title: A line above it.
        header: One word per column.
        rows: Rows with one cell per column.
        notes: Lines below it.
        left: Number of columns that are aligned left; the others are aligned right.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    left: int = 1

    def text(self) -> str:
        """Return the table for a terminal."""
        lines = [[printable(cell) for cell in row] for row in (self.header, *self.rows)]
        widths = [max(len(line[k]) for line in lines) for k in range(len(self.header))]
        body = ["  ".join(self._aligned(line, widths)).rstrip() for line in lines]
        rule = "-" * max(len(line) for line in body)
        head = [rule, body[0], rule] if any(self.header) else [rule]
        return "\n".join([printable(self.title), *head, *body[1:], rule, *(printable(x) for x in self.notes)])

    def markdown(self) -> str:
        """Return the table in Markdown."""
        marks = ["---" if k < self.left else "---:" for k in range(len(self.header))]
        rows = ["| " + " | ".join(map(_as_markdown, line)) + " |" for line in (self.header, marks, *self.rows)]
        notes = ["", *[f"{_as_markdown(note)}  " for note in self.notes]] if self.notes else []
        return "\n".join([f"**{_as_markdown(self.title)}**", "", *rows, *notes])

    def html(self) -> str:
        """Return the table in HTML."""
        cells = [[f"<td{_RIGHT * (k >= self.left)}>{as_html(x)}</td>" for k, x in enumerate(row)] for row in self.rows]
        heads = "".join(f"<th>{as_html(word)}</th>" for word in self.header) if any(self.header) else ""
        rows = "".join(f"<tr>{''.join(row)}</tr>" for row in cells)
        notes = "".join(f"<p>{as_html(note)}</p>" for note in self.notes)
        return f"<table><caption>{as_html(self.title)}</caption><tr>{heads}</tr>{rows}</table>{notes}"

    _repr_html_ = html

    def _aligned(self, line: Sequence[str], widths: Sequence[int]) -> list[str]:
        return [
            cell.ljust(width) if k < self.left else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]


def _as_markdown(text: str) -> str:
    """Return a text for Markdown: its author may use emphasis and code, but neither HTML nor further cells."""
    return printable(text).replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|")
