"""Speed and accuracy beside Pinocchio and MuJoCo, in one process: agreement is checked before anything is timed.

    python -m benchmarks [KIND ...] [--output FOLDER] [--save FILE] [--compare OLD.json]

Ratios travel between computers, times do not; every ratio is that of ways timed in turns.
"""

import argparse
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import (
    accuracy,
    balance,
    batches,
    compare,
    compiling,
    derivatives,
    flight,
    growth,
    loops,
    machine,
    one_state,
    page,
    targets,
)
from benchmarks.record import Record, RecordError
from benchmarks.settings import Settings
from legged.table import Table

KINDS: dict[str, Callable[[Record, Settings], list[Table]]] = {
    "accuracy": accuracy.measure,
    "one-state": one_state.measure,
    "batches": batches.measure,
    "derivatives": derivatives.measure,
    "flight": flight.measure,
    "loops": loops.measure,
    "balance": balance.measure,
    "compiling": compiling.measure,
    "growth": growth.measure,
}


def main() -> None:
    """Measure, print, save, compare."""
    given = _arguments()
    record, settings = machine.begin(), Settings(given.rounds, given.states, given.links)
    tables = _measure(given.kinds or list(KINDS), record, settings)
    print(targets.table(record).text())
    saved = given.save or given.output / "latest.json"
    record.save(saved)
    command = shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]])
    print("\nWritten:", saved, *page.write(record, tables, command, given.output))
    if given.compare:
        print("\n" + compare.table(record, given.compare).text())


def _measure(kinds: list[str], record: Record, settings: Settings) -> list[Table]:
    """Fill the record kind by kind, and return all tables, printed as they come."""
    tables = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LEGGED_CACHE"] = folder  # compiled for this run alone, so that compilation can be timed
        for kind in kinds:
            begun = time.perf_counter()
            for table in KINDS[kind](record, settings):
                print(table.text(), "\n", flush=True)
                tables.append(table)
            print(f"[{kind}: {time.perf_counter() - begun:.0f} s]\n", flush=True)
    return tables


def _record(path: str) -> Record:
    try:
        return Record.load(Path(path))
    except (OSError, RecordError) as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure speed and accuracy.")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"what to measure: {', '.join(KINDS)}; all by default")
    parser.add_argument("--rounds", type=int, default=7, help="how often every way is timed")
    parser.add_argument("--states", type=int, default=4096, help="states in a batch")
    parser.add_argument("--links", type=int, default=64, help="of the largest robot of the growth plots")
    parser.add_argument(
        "--output", type=Path, default=Path("results/benchmarks"), help="folder of the page and figures"
    )
    parser.add_argument(
        "--save", type=Path, metavar="FILE", help="of the numbers; latest.json in that folder by default"
    )
    parser.add_argument("--compare", type=_record, metavar="OLD", help="an older file, to print every ratio beside")
    given = parser.parse_args()
    if unknown := set(given.kinds) - set(KINDS):
        parser.error(f"no such kind: {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    return given


if __name__ == "__main__":
    main()
