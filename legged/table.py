"""Tables as plain text, Markdown, HTML, LaTeX and comma-separated values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from legged.output import as_html, printable, write_table

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

    def to_latex(self) -> str:
        """Return the table as a LaTeX environment `table`, with its title as caption and its notes below it.

        It needs the package booktabs, and has no label: add one behind the caption. Characters with a meaning in LaTeX
        are escaped; others than ASCII stand as they are, as UTF-8, which LaTeX reads since 2018.
        """
        lines = [_latex_row(row) for row in (self.header, *self.rows)]
        head = [lines[0], r"\midrule"] if any(self.header) else []
        columns = "".join("l" if k < self.left else "r" for k in range(len(self.header)))
        notes = [rf"\\[1ex] {{\footnotesize {' '.join(map(_as_latex, self.notes))}}}"] if self.notes else []
        return "\n".join(
            [
                r"\begin{table}",
                r"\centering",
                rf"\caption{{{_as_latex(self.title)}}}",
                rf"\begin{{tabular}}{{{columns}}}",
                r"\toprule",
                *head,
                *lines[1:],
                r"\bottomrule",
                r"\end{tabular}",
                *notes,
                r"\end{table}",
                "",
            ]
        )

    def to_csv(self, path: str | Path) -> Path:
        """Write the header and the rows as comma-separated values in UTF-8, and return the path.

        Args:
            path: The file; ".csv" is appended where it is missing. A missing folder is created.

        Raises:
            ArgumentError, FileError: As in `Run.to_csv`.
        """
        return write_table(path, self.header, self.rows)

    def _aligned(self, line: Sequence[str], widths: Sequence[int]) -> list[str]:
        return [
            cell.ljust(width) if k < self.left else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]


def _as_markdown(text: str) -> str:
    """Return a text for Markdown: its author may use emphasis and code, but neither HTML nor further cells."""
    return printable(text).replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|")


def _latex_row(cells: Sequence[str]) -> str:
    """Return a row for LaTeX; a bracket at its start would be the argument of the end of the row above."""
    row = " & ".join(map(_as_latex, cells))
    return ("{}" if row.startswith("[") else "") + row + r" \\"


def _as_latex(text: str) -> str:
    """Return a text for LaTeX, whose special characters print as themselves."""
    return "".join(_LATEX.get(c, c) for c in printable(text))


_LATEX = {c: "\\" + c for c in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
}
