"""The command `python -m benchmarks`: measure speed and accuracy beside Pinocchio and MuJoCo.

    python -m benchmarks [KIND ...] [--output FOLDER] [--history FOLDER] [--save FILE] [--compare [FILE]]

All programs run in one process. Their results are checked to agree before they are timed in turns, and the time ratios
are the results: they carry over from one computer to another better than times do.
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
    compilation,
    dynamics,
    functions,
    precision,
    predictive,
    simulation,
    threads,
    whole_body,
)
from benchmarks.harness import history, report, targets
from benchmarks.harness.record import Record, RecordError, new_record
from benchmarks.harness.subjects import Settings
from benchmarks.studies import growth
from legged.table import Table

KINDS: dict[str, tuple[Callable[[Record, Settings], list[Table]], str]] = {
    "accuracy": (accuracy.measure_accuracy, "largest deviations from reference results"),
    "one-state": (dynamics.measure_one_state, "dynamics of one state, called from Python and as machine code"),
    "batches": (dynamics.measure_batches, "dynamics of a batch of states"),
    "results": (dynamics.measure_results, "new arrays for results beside arrays given as out="),
    "float32": (
        precision.measure_precision,
        "batches of all targets, and rollouts, with float32 numbers beside float64",
    ),
    "threads": (threads.measure_threads, "batches and rollouts with two threads beside one"),
    "derivatives": (dynamics.measure_derivatives, "first derivatives of forward dynamics"),
    "functions": (functions.measure_functions, "inverse kinematics, automatic derivatives, kernels with parameters"),
    "flight": (simulation.measure_flight, "simulation of free flight"),
    "loops": (simulation.measure_loops, "closed loops of a quadruped on compliant ground"),
    "stepping": (simulation.measure_stepping, "a quadruped advanced step by step from Python"),
    "balance": (balance.measure_balance, "a biped that balances on rigid ground"),
    "whole-body": (whole_body.measure_whole_body, "whole-body control beside other solvers of quadratic programs"),
    "predictive": (predictive.measure_predictive, "predictive control beside other solvers"),
    "compiling": (compilation.measure_starts, "imports, and start time with and without compiled code in the cache"),
    "growth": (growth.measure_growth, "times over the number of links, states and threads"),
}


LAST = True
"""Value of the option --compare without a file: the last run on this processor."""


def main() -> None:
    """Measure, print the tables, save the record and the page, and compare with an older record."""
    options = _options()
    record, settings = new_record(), Settings(options.rounds, options.states, options.links)
    older = options.compare
    if older is LAST:
        older = next(reversed(history.load(options.history).get(record.machine["processor"], [])), None)
    tables = _measure(options.kinds or list(KINDS), record, settings)
    print(targets.target_table(record).text())
    path = options.save or options.output / "latest.json"
    record.save(path)
    command = shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]])
    written = [
        path,
        history.store(record, options.history),
        *report.write_page(record, tables, command, options.output),
    ]
    print("\nWritten:", *written, *history.write_page(options.history, options.output))
    if older:
        print("\n" + report.comparison_table(record, older).text())
    elif options.compare:
        print(f"\nThe history has no older run on this processor: {record.machine['processor']}")


def _measure(kinds: list[str], record: Record, settings: Settings) -> list[Table]:
    """Return the tables of all kinds, printed as they are completed."""
    tables = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LEGGED_CACHE"] = folder  # an empty cache, so that compilation is measured
        for kind in kinds:
            start = time.perf_counter()
            for table in KINDS[kind][0](record, settings):
                print(table.text(), "\n", flush=True)
                tables.append(table)
            print(f"[{kind}: {time.perf_counter() - start:.0f} s]\n", flush=True)
    return tables


def _record(path: str) -> Record:
    try:
        return Record.load(Path(path))
    except (OSError, RecordError) as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _options() -> argparse.Namespace:
    kinds = "\n".join(f"  {name:12s} {description}" for name, (_, description) in KINDS.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure speed and accuracy beside Pinocchio and MuJoCo, and write a page with tables and figures.",
        epilog=f"kinds:\n{kinds}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="kinds of benchmarks to run; all by default")
    parser.add_argument("--rounds", type=int, default=7, help="number of timings of every workload (default: 7)")
    parser.add_argument("--states", type=int, default=4096, help="number of states in a batch (default: 4096)")
    parser.add_argument(
        "--links", type=int, default=64, help="number of links of the largest robot in the growth plots (default: 64)"
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("results/benchmarks"),
        metavar="FOLDER",
        help="folder for the page and its figures (default: results/benchmarks)",
    )
    parser.add_argument(
        "--save", type=Path, metavar="FILE", help="file for the record (default: latest.json in the output folder)"
    )
    parser.add_argument(
        "--history",
        type=Path,
        default=Path("benchmarks/history"),
        metavar="FOLDER",
        help="folder that keeps the record of each run by processor and commit (default: benchmarks/history)",
    )
    parser.add_argument(
        "--compare",
        type=_record,
        nargs="?",
        const=LAST,
        metavar="FILE",
        help="older record whose ratios are printed beside the new ones (default: the last run on this processor)",
    )
    options = parser.parse_args()
    if unknown := set(options.kinds) - set(KINDS):
        parser.error(f"unknown kind: {', '.join(sorted(unknown))}; the kinds are {', '.join(KINDS)}")
    return options


if __name__ == "__main__":
    main()
