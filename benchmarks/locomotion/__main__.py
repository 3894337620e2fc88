"""The command `python -m benchmarks.locomotion`: walking robots under commands, disturbances and imperfections.

    python -m benchmarks.locomotion [ROBOT ...] [--rows ROW ...] [--laws LAW ...] [--output FOLDER]

It simulates the trials of all robots, prints and writes tables of successful trials, of reached velocities and of the
trials that failed, with the reason, and writes all outcomes as JSON. All trials of a robot are members of a few
rollouts, which are sweeps: those that a call has finished are in FOLDER/stores, and the next call does not simulate
them again. A robot takes some minutes on two cores.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from benchmarks.locomotion.loops import balanced_setup, locomotion_setup
from benchmarks.locomotion.outcomes import (
    EARLIER,
    LAWS,
    OURS,
    Outcome,
    failure_table,
    refused,
    success_table,
    swept,
    velocity_table,
)
from benchmarks.locomotion.tables.boxes import box_table
from benchmarks.locomotion.tables.camera import camera_table
from benchmarks.locomotion.tables.costs import cost_table
from benchmarks.locomotion.tables.endurance import endurance_table
from benchmarks.locomotion.tables.hands import hands_table
from benchmarks.locomotion.tables.in_mujoco import mujoco_table
from benchmarks.locomotion.tables.jumps import jump_table
from benchmarks.locomotion.tables.recovery import recovery_table
from benchmarks.locomotion.tables.seen import seen_table
from benchmarks.locomotion.tables.speeds import beyond_in_gaits_table, beyond_table, speed_table
from benchmarks.locomotion.tables.stops import stop_table
from benchmarks.locomotion.tables.throughput import throughput_table
from benchmarks.locomotion.trials import ROWS, Trial, trials
from benchmarks.locomotion.walkers import ROBOTS, Walker, walkers
from legged import sweeps
from legged.errors import LeggedError
from legged.table import Table

_SETUPS: dict[str, Callable[[Walker, list[Trial]], sweeps.Setup]] = {OURS: locomotion_setup, EARLIER: balanced_setup}
_TABLES: dict[str, Callable[[list[Walker]], Table]] = {
    "stops": stop_table,
    "speeds": speed_table,
    "beyond": beyond_table,
    "beyond-in-gaits": beyond_in_gaits_table,
    "endurance": endurance_table,
    "recovery": recovery_table,
    "jumps": jump_table,
    "seen": seen_table,
    "hands": hands_table,
    "boxes": box_table,
    "costs": cost_table,
    "camera": camera_table,
    "mujoco": mujoco_table,
    "throughput": throughput_table,
}
"""Rows with tables of their own; robots with closed loops are left out."""


def measure(walker: Walker, groups: list[str], laws: list[str], store: Path) -> list[Outcome]:
    """Return the outcomes of a robot's trials, from the stores of earlier calls or simulated, and print the times."""
    wanted, measured = trials(walker.feet, groups), []
    for law in laws:
        chosen = wanted if law == OURS else [_slow(x) for x in wanted if _is_straight(x)]
        for kind, command in dict.fromkeys((x.kind, None if law == OURS else x.command) for x in chosen):
            batch = [x for x in chosen if x.kind == kind and command in (None, x.command)]
            start = time.perf_counter()
            impossible = [x for x in batch if law == OURS and not walker.follows(x.command)]
            if impossible:
                print(f"{walker.name}, {law}, {kind}: the legs cannot follow {len(impossible)} commands", flush=True)
                measured += refused(walker, law, impossible)
                batch = [x for x in batch if x not in impossible]
            if not batch:
                continue
            try:
                folder = store / "-".join([walker.name, law, kind, *(f"{x:g}" for x in command or ())]).replace(
                    " ", "_"
                )
                own = swept(walker, law, batch, _SETUPS[law](walker, batch), folder)
            except LeggedError as error:
                print(f"{walker.name}, {law}, {kind}: {error}", flush=True)
                own = refused(walker, law, batch)
            measured += own
            count, seconds = sum(x.succeeded for x in own), time.perf_counter() - start
            print(f"[{walker.name}, {law}, {kind}: {count} of {len(own)} in {seconds:.0f} s]", flush=True)
    return measured


def _is_straight(trial: Trial) -> bool:
    """Return whether a trial is one for `Balanced`, which walks forward in one gait."""
    return trial.command[0] > 0.0 and not any(trial.command[1:]) and not trial.gait


def _slow(trial: Trial) -> Trial:
    """Return a trial for `Balanced`, which falls at higher speeds."""
    return trial if trial.row == "forward" else replace(trial, command=(0.5 * trial.command[0], 0.0, 0.0))


def main() -> None:
    """Simulate the trials, print the tables and write them."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.locomotion", description="Locomotion of many robots at commanded velocities."
    )
    parser.add_argument(
        "robots",
        nargs="*",
        metavar="ROBOT",
        help=f"of {', '.join(ROBOTS)}, URDF and MJCF files, or file.py:function; all names by default",
    )
    choices = [*ROWS, *_TABLES]
    parser.add_argument("--rows", nargs="+", choices=choices, default=choices, help="all by default")
    parser.add_argument("--laws", nargs="+", choices=LAWS, default=list(LAWS), help="both by default")
    parser.add_argument("--output", type=Path, default=Path("results/locomotion"), metavar="FOLDER")
    options = parser.parse_args()
    files = {name: re.sub(r"(?<=\.py):.*", "", name) for name in set(options.robots) - set(ROBOTS)}
    if unknown := {name for name, file in files.items() if not Path(file).is_file()}:
        parser.error(
            f"no such robot and no such file: {', '.join(sorted(unknown))}; the robots are {', '.join(ROBOTS)}"
        )
    options.output.mkdir(parents=True, exist_ok=True)
    results: list[Outcome] = []
    measured = walkers(options.robots or ROBOTS)
    if not measured:
        parser.exit(1)
    groups = [row for row in options.rows if row in ROWS]
    for walker in measured if groups else ():
        results += measure(walker, groups, options.laws, options.output / "stores")
        _write(results, options.output)
    tables = [success_table(results), velocity_table(results)] if results else []
    if not all(x.succeeded for x in results):
        tables.append(failure_table(results))
    for name, table_of in _TABLES.items():
        if name in options.rows:
            tables.append(table_of([walker for walker in measured if walker.equivalent is None]))
            (options.output / f"{name}.md").write_text(tables[-1].markdown() + "\n")
    for table in tables:
        print(table.text(), "\n")


def _write(measured: list[Outcome], folder: Path) -> None:
    """Write the outcomes so far."""
    tables = (success_table(measured), velocity_table(measured), failure_table(measured))
    (folder / "locomotion.md").write_text("\n\n".join(table.markdown() for table in tables) + "\n")
    (folder / "locomotion.json").write_text(json.dumps([x.record() for x in measured], indent=1))


if __name__ == "__main__":
    main()
