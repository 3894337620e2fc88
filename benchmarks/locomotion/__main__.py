"""The command `python -m benchmarks.locomotion`: walking robots under commands, disturbances and imperfections.

    python -m benchmarks.locomotion [ROBOT ...] [--rows ROW ...] [--laws LAW ...] [--output FOLDER]

It simulates the trials of all robots, and writes tables of successful trials and reached velocities as Markdown and all
outcomes as JSON. All trials of a robot are members of a few rollouts. A robot takes some minutes on two cores.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.locomotion.loops import Motions, simulate_balanced, simulate_locomotion
from benchmarks.locomotion.outcomes import EARLIER, LAWS, OURS, Outcome, outcomes, success_table, velocity_table
from benchmarks.locomotion.trials import ROWS, Trial, trials
from benchmarks.locomotion.walkers import ROBOTS, Walker, walkers
from legged.errors import LeggedError

_SIMULATE: dict[str, Callable[[Walker, list[Trial]], Motions]] = {
    OURS: simulate_locomotion,
    EARLIER: simulate_balanced,
}


def measure(walker: Walker, groups: list[str], laws: list[str]) -> list[Outcome]:
    """Return the outcomes of a robot's trials, and print how long each kind takes."""
    wanted, found = trials(walker.feet, groups), []
    for law in laws:
        for kind in dict.fromkeys(trial.kind for trial in wanted):
            chosen = [x for x in wanted if x.kind == kind and (law == OURS or _is_straight(x))]
            if not chosen:
                continue
            start = time.perf_counter()
            try:
                own = outcomes(walker, law, _SIMULATE[law](walker, chosen))
            except LeggedError as error:
                print(f"{walker.name}, {law}, {kind}: {error}", flush=True)
                continue
            found += own
            count = sum(x.succeeded for x in own)
            seconds = time.perf_counter() - start
            print(f"[{walker.name}, {law}, {kind}: {count} of {len(own)} in {seconds:.0f} s]", flush=True)
    return found


def _is_straight(trial: Trial) -> bool:
    """Return whether a trial is one for `Balanced`, which walks forward in one gait."""
    return trial.command[0] >= 0.0 and not any(trial.command[1:]) and not trial.gait


def main() -> None:
    """Simulate the trials, print the tables and write them."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.locomotion", description="Locomotion of many robots at commanded velocities."
    )
    parser.add_argument("robots", nargs="*", metavar="ROBOT", help=f"of {', '.join(ROBOTS)}; all by default")
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), default=list(ROWS), help="all by default")
    parser.add_argument("--laws", nargs="+", choices=LAWS, default=list(LAWS), help="both by default")
    parser.add_argument("--output", type=Path, default=Path("results/locomotion"), metavar="FOLDER")
    options = parser.parse_args()
    if unknown := set(options.robots) - set(ROBOTS):
        parser.error(f"unknown robot: {', '.join(sorted(unknown))}; the robots are {', '.join(ROBOTS)}")
    options.output.mkdir(parents=True, exist_ok=True)
    found: list[Outcome] = []
    for walker in walkers(options.robots or ROBOTS):
        found += measure(walker, options.rows, options.laws)
        _write(found, options.output)
    for table in (success_table(found), velocity_table(found)):
        print(table.text(), "\n")


def _write(found: list[Outcome], folder: Path) -> None:
    """Write the outcomes so far."""
    tables = (success_table(found), velocity_table(found))
    (folder / "locomotion.md").write_text("\n\n".join(table.markdown() for table in tables) + "\n")
    (folder / "locomotion.json").write_text(json.dumps([x.record() for x in found], indent=1))


if __name__ == "__main__":
    main()
