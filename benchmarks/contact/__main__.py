"""The command `python -m benchmarks.contact [TEST ...] [--output FOLDER]`, `make bench-contact`: some four minutes.

It prints a table of the tests, with the programs whose error is smaller than ours, and writes it as Markdown.
`--growth` instead measures start time and memory of scenes against their number of boxes, `--starts` those of scenes of
many kinds, `--speed` the time of a step of ten boxes.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from benchmarks.contact import friction, motions, stacks
from benchmarks.contact.growth import BOXES, growth_table, starts_table
from benchmarks.contact.rows import DRAKE, MUJOCO, OURS, PINOCCHIO, Case, Row
from benchmarks.contact.speed import speed_table
from benchmarks.contact.standing import standing_table

CASES: dict[str, Case] = {
    "threshold": friction.threshold,
    "stopping": friction.stopping,
    "pinch": friction.pinch,
    "slope": friction.slope,
    "feet": stacks.feet,
    "heavy-top": stacks.heavy_top,
    "tower": stacks.tower,
    "cards": stacks.card_house,
    "arch": stacks.arch,
    "painleve": motions.painleve,
    "rocking": motions.rocking,
    "disc": motions.disc,
    "cradle": motions.cradle,
    "balls": motions.falling_balls,
    "flight": motions.flight,
}
"""Tests by name."""
COLUMNS = (OURS, MUJOCO, DRAKE, PINOCCHIO)


def markdown(rows: list[Row]) -> str:
    """Return the rows as a Markdown table."""
    lines = [
        f"| test | quantity | exact | {' | '.join(COLUMNS)} | ours is |",
        f"| --- | --- |{' ---: |' * (1 + len(COLUMNS))} --- |",
    ]
    for row in rows:
        values = (_number(row.values.get(name, float("nan"))) for name in COLUMNS)
        words = " | ".join([row.test, row.quantity, _number(row.exact), *values, row.verdict])
        lines.append(f"| {words} |")
    return "\n".join(lines) + "\n"


def _number(x: float) -> str:
    return "-" if np.isnan(x) else f"{x:.3g}"


def main() -> None:
    """Run the tests, print the table and write it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.contact", description="Tests of rigid contact.")
    parser.add_argument("tests", nargs="*", metavar="TEST", help=f"tests to run, of {', '.join(CASES)}; all by default")
    parser.add_argument("--output", type=Path, default=Path("results/contact"), metavar="FOLDER")
    parser.add_argument("--short", action="store_true", help="short versions, which show that the tests run")
    parser.add_argument("--growth", action="store_true", help="start time and memory against the number of boxes")
    parser.add_argument("--starts", action="store_true", help="start time and memory of scenes of many kinds")
    parser.add_argument(
        "--speed", action="store_true", help="times of steps of ten boxes and of robots beside MuJoCo's"
    )
    options = parser.parse_args()
    if unknown := set(options.tests) - set(CASES):
        parser.error(f"unknown test: {', '.join(sorted(unknown))}; the tests are {', '.join(CASES)}")
    options.output.mkdir(parents=True, exist_ok=True)
    if options.speed:
        print(speed_table(options.short), standing_table(options.short), sep="\n")
        return
    if options.starts:
        print(starts_table(("4 boxes",)) if options.short else starts_table())
        return
    if options.growth:
        path = options.output / "growth.png"
        print(growth_table(path, (2,) if options.short else BOXES), "Written: ", path, sep="")
        return
    rows: list[Row] = []
    for name in options.tests or CASES:
        start = time.perf_counter()
        measured_rows = CASES[name](options.short)
        rows += measured_rows
        print(markdown(measured_rows), f"[{name}: {time.perf_counter() - start:.0f} s]\n", sep="", flush=True)
    path = options.output / "contact.md"
    path.write_text(markdown(rows))
    print("Written:", path)


if __name__ == "__main__":
    main()
