"""Computed part of `docs/explanation/architecture.md`: files and functions on the way of a value through the code."""

from __future__ import annotations

from benchmarks.pages.parts import Part, table
from benchmarks.studies import entered_files


def walks() -> str:
    """Return the table of the walks that the documentation follows."""
    rows = [
        (name, f"`{package}`", str(len(walk.files)), str(walk.returns), str(len(walk.functions)))
        for name, package, walk in entered_files.walks()
    ]
    return table(("walk", "package", "files", "returns", "functions"), rows)


PARTS = {"walks": Part("explanation/architecture.md", walks, relative=0.1, absolute=3.0)}
