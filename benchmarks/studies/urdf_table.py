"""All URDF files of the package example-robot-data beside Pinocchio, in about a minute.

    python -m benchmarks.studies.urdf_table

The command writes docs/reference/urdf.md. Each file is loaded with a floating and with a fixed base, and the dynamics
are compared in random states. A file that cannot be loaded is loaded again with the option that the message names.
"""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np

import legged
from legged.errors import FileError
from legged.files.audit import Audit
from legged.simulation.plots.pages import Page
from legged.table import Table
from tests.oracles.urdfs import STATES, Agreement, all_urdfs, compare, pinocchio_acceleration

DOCS = Path(__file__).parents[2] / "docs" / "reference"
OPTIONS: tuple[dict[str, Any], ...] = ({"repair": "weld"}, {"mimic": "free"})
TOLERANCE = 1e-9
"""Relative tolerance of forward dynamics."""
HEADER = (
    "robot", "links", "DoF", "followers", "inverse", "forward", "as forces", "Pinocchio's", "inertia", "bias",
    "center", "condition", "suspicious", "harmless",
)  # fmt: skip


class Comparison:
    """The results, file by file.

    Attributes:
        loaded, refused, suspicious: Rows of the tables.
        worst: Largest disagreements over all files.
        exceptions: Files whose forward dynamics exceed `TOLERANCE`.
        impossible: Number of files with an inertia that no rigid body has.
        impossible_merged: Number of files that still have one after links fixed to each other are merged.
    """

    def __init__(self) -> None:
        self.loaded: list[tuple[str, ...]] = []
        self.refused: list[tuple[str, ...]] = []
        self.suspicious: list[tuple[str, ...]] = []
        self.worst = Agreement()
        self.exceptions: list[str] = []
        self.impossible = self.impossible_merged = 0

    def add(self, name: str, path: Path) -> None:
        """Compare one file, with every set of options with which it loads."""
        try:
            robot = self._compare(name, path, {})
        except FileError as error:
            self._add_refused(name, path, error)
            return
        if robot.followers:
            self._compare(name, path, {"mimic": "free"})
        self._add_findings(name, robot.audit)

    def _add_refused(self, name: str, path: Path, error: FileError) -> None:
        option = "-"
        for options in OPTIONS:
            try:
                robot = self._compare(name, path, options)
            except FileError:
                continue
            self._add_findings(name, robot.audit)
            option = _format(options)
        self.refused.append((name, str(error).removeprefix(f"{path}: "), pinocchio_acceleration(path), option))

    def _add_findings(self, name: str, audit: Audit | None) -> None:
        assert audit is not None
        self.suspicious += [(name, f.where, f.words) for f in audit.of("suspicious") if f.kind != "world"]
        impossible = [finding for finding in audit.findings if finding.kind in ("inertia", "point")]
        self.impossible += bool(impossible)
        self.impossible_merged += any(finding.severity == "suspicious" for finding in impossible)

    def _compare(self, name: str, path: Path, options: dict[str, Any]) -> legged.Robot:
        robot, floating = compare(path, "floating", **options)
        other, fixed = compare(path, "fixed", **options)
        worst = floating.worst(fixed)
        self.worst = self.worst.worst(worst)
        if worst.forward > TOLERANCE:
            self.exceptions.append(name)
        numbers = [f"{x:.0e}" if x else "0" for x in astuple(worst)]
        sizes = str(len(robot.links)), f"{robot.nv}, {other.nv}", str(len(robot.followers))
        label = f"{name} ({_format(options)})" if options else name
        self.loaded.append((label, *sizes, *numbers, *_counts(robot.audit)))
        return robot


def _format(options: dict[str, Any]) -> str:
    return ", ".join(f"{key}={value!r}" for key, value in options.items())


def _counts(audit: Audit | None) -> tuple[str, str]:
    assert audit is not None
    return str(len(audit.of("suspicious"))), str(len(audit.of("harmless")))


def main() -> None:
    """Compare all files and write the page."""
    comparison, files = Comparison(), all_urdfs()
    for name, path in files.items():
        comparison.add(name, path)
        print(name, flush=True)
    print(_page(comparison, len(files)).write("urdf.md", tables=False))


def _page(comparison: Comparison, files: int) -> Page:
    page = Page(DOCS, "URDF files of example-robot-data, beside Pinocchio")
    page.text(_introduction(comparison, files))
    page.text(_measures(comparison))
    page.table(Table(f"{len(comparison.loaded)} combinations of file and options", HEADER, tuple(comparison.loaded)))
    page.heading("Refused")
    page.text("The error of `legged.load(path)`, and the option with which the file loads and is compared above.")
    header = ("robot", "refusal", "Pinocchio's forward dynamics", "loads with")
    page.table(Table(f"{len(comparison.refused)} files", header, tuple(comparison.refused), left=4))
    page.heading("Suspicious")
    page.text(
        "Findings of the audit in files that load: the dynamics can be computed, but the file may not describe the "
        "intended robot. Findings about a root link named after the world, which floats here, are left out."
    )
    page.table(
        Table(
            f"{len(comparison.suspicious)} findings",
            ("robot", "location", "finding"),
            tuple(comparison.suspicious),
            left=3,
        )
    )
    return page


def _introduction(comparison: Comparison, files: int) -> str:
    refused = len(comparison.refused)
    with_option = sum(row[-1] != "-" for row in comparison.refused)
    impossible, merged = comparison.impossible, comparison.impossible_merged
    return f"""Written by `python -m benchmarks.studies.urdf_table`: all {files} files of the package
example-robot-data, each with a floating and with a fixed base, in {STATES} random states each. {files - refused} load
without options. {refused} are refused, of which {with_option} load with an option that the error message names.
{impossible} files contain a link with an inertia that no rigid body has, such as a point mass; {merged} of them still
do after links fixed to each other are merged."""


def _measures(comparison: Comparison) -> str:
    worst = max(comparison.worst.inverse, comparison.worst.inertia, comparison.worst.bias, comparison.worst.center)
    exceptions = ", ".join(comparison.exceptions) or "none"
    return f"""Disagreements are relative, the largest over all states and both bases:

- *inverse*, *bias*: norm of the difference over the norm of the forces.
- *inertia*: largest difference of two entries over the square root of the product of their diagonal entries, a measure
  that does not depend on units and does not hide small entries.
- *center*: center of mass, norm of the difference over its distance from the origin, or over 1 m if that is larger.
- *forward*: norm of the difference over the norm of the acceleration. The acceleration is the inverse of the inertia
  matrix times forces, so two programs differ by about 1e-16 times its *condition* number, taken of the matrix scaled to
  a unit diagonal.
- *as forces*: Pinocchio's inverse dynamics of our acceleration, minus the given torques, over the sum of the norms of
  torques and bias; *Pinocchio's* is the same for its own acceleration.

Inverse dynamics, inertia matrix, bias and center of mass agree to {worst:.0e} in all files. Forward dynamics agree to
{TOLERANCE:.0e} except for: {exceptions}. There, point masses on aligned joint axes make the inertia matrix nearly
singular in some states, and inverse dynamics of Pinocchio's own acceleration does not return the torques either.

*DoF*: degrees of freedom with floating and with fixed base. *followers*: joints that follow others (`<mimic>`).
*suspicious*, *harmless*: numbers of findings of `legged audit`. Joint friction is omitted, since Pinocchio's algorithms
have none."""


if __name__ == "__main__":
    np.seterr(all="raise", under="ignore")
    main()
