"""Speed and accuracy beside Pinocchio and MuJoCo, in one process: agreement is checked before anything is timed.

    python -m benchmarks [KIND ...] [--save FILE] [--compare OLD.json] [--figures FOLDER]

Ratios travel between computers, times do not; every ratio is that of ways timed in turns.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import (
    accuracy,
    batches,
    compare,
    compiling,
    flight,
    growth,
    loops,
    machine,
    one_state,
    plots,
    targets,
)
from benchmarks.record import Record
from benchmarks.settings import Settings
from legged.reports.table import Table

KINDS: dict[str, Callable[[Record, Settings], list[Table]]] = {
    "accuracy": accuracy.measure,
    "one-state": one_state.measure,
    "batches": batches.measure,
    "flight": flight.measure,
    "loops": loops.measure,
    "compiling": compiling.measure,
    "growth": growth.measure,
}


def main() -> None:
    """Measure, print, save, compare."""
    given = _arguments()
    old = Record.load(given.compare) if given.compare else None
    record, settings = machine.begin(), Settings(given.rounds, given.states, given.links)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LEGGED_CACHE"] = folder  # compiled for this run alone, so that compilation can be timed
        for kind in given.kinds or KINDS:
            begun = time.perf_counter()
            for table in KINDS[kind](record, settings):
                print(table.text(), "\n", flush=True)
            print(f"[{kind}: {time.perf_counter() - begun:.0f} s]\n", flush=True)
    print(targets.table(record).text())
    record.save(given.save)
    print(f"\nWritten: {given.save}")
    if "growth" in (given.kinds or KINDS):
        print("Drawn:", *plots.save(record, given.figures))
    if old:
        print("\n" + compare.table(record, old).text())


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure speed and accuracy.")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"what to measure: {', '.join(KINDS)}; all by default")
    parser.add_argument("--rounds", type=int, default=7, help="how often every way is timed")
    parser.add_argument("--states", type=int, default=4096, help="states in a batch")
    parser.add_argument("--links", type=int, default=64, help="of the largest robot of the growth plots")
    parser.add_argument("--save", type=Path, default=Path("results/benchmarks/latest.json"), help="where to")
    parser.add_argument("--figures", type=Path, default=Path("results/benchmarks"), help="folder for growth plots")
    parser.add_argument("--compare", type=Path, metavar="OLD", help="an older file, to print every ratio beside")
    given = parser.parse_args()
    if unknown := set(given.kinds) - set(KINDS):
        parser.error(f"no such kind: {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    return given


if __name__ == "__main__":
    main()
