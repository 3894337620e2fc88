"""Every URDF of the package example-robot-data beside Pinocchio: `python -m benchmarks.urdf_table`, about a minute.

It writes docs/urdf.md. Each file is loaded with a floating and with a fixed base, and compared in 20 random states.
Files that are refused are loaded again in the way that the refusal names.
"""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np

import legged
from legged.app.figures import Page
from legged.errors import FileError
from legged.files.audit import Audit
from legged.table import Table
from tests.oracles.urdfs import STATES, Agreement, all_urdfs, compare, pinocchio_acceleration

DOCS = Path(__file__).parent.parent / "docs"
WAYS_OUT: tuple[dict[str, Any], ...] = ({"repair": "weld"}, {"mimic": "free"})
PROMISED = 1e-9
HEADER = (
    "robot", "links", "DoF", "followers", "inverse", "forward", "as forces", "Pinocchio's", "inertia", "bias",
    "center", "condition", "suspicious", "harmless",
)  # fmt: skip


class Book:
    """What has been found so far, file by file."""

    def __init__(self) -> None:
        self.loaded: list[tuple[str, ...]] = []
        self.refused: list[tuple[str, ...]] = []
        self.suspicious: list[tuple[str, ...]] = []
        self.worst = Agreement()
        self.beyond: list[str] = []
        self.impossible = self.impossible_whole = 0

    def add(self, name: str, path: Path) -> None:
        """Compare one file, in all the ways that it loads."""
        try:
            robot = self._compared(name, path, {})
        except FileError as error:
            self._add_refused(name, path, error)
            return
        if robot.followers:
            self._compared(name, path, {"mimic": "free"})
        self._judge(name, robot.audit)

    def _add_refused(self, name: str, path: Path, error: FileError) -> None:
        way = "-"
        for options in WAYS_OUT:
            try:
                robot = self._compared(name, path, options)
            except FileError:
                continue
            self._judge(name, robot.audit)
            way = _words(options)
        self.refused.append((name, str(error).removeprefix(f"{path}: "), pinocchio_acceleration(path), way))

    def _judge(self, name: str, audit: Audit | None) -> None:
        assert audit is not None
        self.suspicious += [(name, f.where, f.words) for f in audit.of("suspicious") if f.kind != "world"]
        strange = [finding for finding in audit.findings if finding.kind in ("inertia", "point")]
        self.impossible += bool(strange)
        self.impossible_whole += any(finding.severity == "suspicious" for finding in strange)

    def _compared(self, name: str, path: Path, options: dict[str, Any]) -> legged.Robot:
        robot, floating = compare(path, "floating", **options)
        other, fixed = compare(path, "fixed", **options)
        worst = floating.worst(fixed)
        self.worst = self.worst.worst(worst)
        if worst.forward > PROMISED:
            self.beyond.append(name)
        numbers = [f"{x:.0e}" if x else "0" for x in astuple(worst)]
        sizes = str(len(robot.links)), f"{robot.nv}, {other.nv}", str(len(robot.followers))
        told = f"{name} ({_words(options)})" if options else name
        self.loaded.append((told, *sizes, *numbers, *_counts(robot.audit)))
        return robot


def _words(options: dict[str, Any]) -> str:
    return ", ".join(f"{key}={value!r}" for key, value in options.items())


def _counts(audit: Audit | None) -> tuple[str, str]:
    assert audit is not None
    return str(len(audit.of("suspicious"))), str(len(audit.of("harmless")))


def main() -> None:
    """Compare all and write the page."""
    book, files = Book(), all_urdfs()
    for name, path in files.items():
        book.add(name, path)
        print(name, flush=True)
    print(_page(book, len(files)).write("urdf.md"))


def _page(book: Book, files: int) -> Page:
    page = Page(DOCS, "URDFs of example-robot-data, beside Pinocchio")
    page.text(_introduction(book, files))
    page.text(_measures(book))
    page.table(Table(f"{len(book.loaded)} ways in which files load", HEADER, tuple(book.loaded)))
    page.heading("Refused")
    page.text("What `legged.load(path)` says, and the option with which the file loads; that is compared above.")
    header = ("robot", "refusal", "Pinocchio's forward dynamics", "loads with")
    page.table(Table(f"{len(book.refused)} files", header, tuple(book.refused), left=4))
    page.heading("Suspicious")
    page.text(
        "What the audit finds in files that load: the dynamics have an answer, perhaps not of the robot meant. Arms "
        "whose root stands for the world, and which float here nevertheless, are left out."
    )
    page.table(Table(f"{len(book.suspicious)} findings", ("robot", "where", "what"), tuple(book.suspicious), left=3))
    return page


def _introduction(book: Book, files: int) -> str:
    refused = len(book.refused)
    with_option = sum(row[-1] != "-" for row in book.refused)
    return f"""Made by `python -m benchmarks.urdf_table`: all {files} files of the package example-robot-data, each with
a floating and with a fixed base, in {STATES} random states each. {files - refused} load as they are. {refused} are
refused, of which {with_option} load with an option that the refusal names. In {book.impossible} files some link has an
inertia that no body has, points without extent among them; in {book.impossible_whole} that is still so once links
fixed to each other are one body."""


def _measures(book: Book) -> str:
    worst = max(book.worst.inverse, book.worst.inertia, book.worst.bias, book.worst.center)
    beyond = ", ".join(book.beyond) or "none"
    return f"""Disagreements are relative, the largest of all states and both bases:

- *inverse*, *bias*: norm of the difference over the norm of the forces.
- *inertia*: largest difference of two entries over the root of the product of their diagonal entries, which no unit and
  no small entry hides from.
- *center*: of mass, norm of the difference over its distance from the origin, or over 1 m where that is more.
- *forward*: norm of the difference over the norm of the acceleration. Accelerations are the inertia matrix's inverse
  times forces, so any two programs part by about 1e-16 times its *condition*, which is that of the matrix scaled to a
  unit diagonal.
- *as forces*: Pinocchio's inverse dynamics of our acceleration, less the torques that were given, over the sum of the
  norms of torques and bias; *Pinocchio's* is the same of its own acceleration.

Inverse dynamics, inertia matrix, bias and center of mass agree to {worst:.0e} everywhere. Forward dynamics agree to
{PROMISED:.0e} but for: {beyond}. There points without inertia on lined-up axes make the matrix almost singular in
some states, and Pinocchio's own acceleration misses the torques too.

*DoF*: floating, fixed. *followers*: joints that follow others (`<mimic>`). *suspicious*, *harmless*: findings of
`legged audit`. Joint friction is left out, as Pinocchio's algorithms have none."""


if __name__ == "__main__":
    np.seterr(all="raise", under="ignore")
    main()
