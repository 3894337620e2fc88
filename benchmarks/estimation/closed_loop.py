"""Trials of `Locomotion` on the estimate beside the same trials on the true state.

    python -m benchmarks.estimation.closed_loop [ROBOT ...] [--rows forward ...] [--output FOLDER]

The trials are those of `python -m benchmarks.locomotion`: velocities, slopes and pushes. On the estimate, each trial
has instruments with another seed, with errors of 0.01 rad/s, 0.1 m/s^2, 1 mrad and 0.1 rad/s and constant biases. The
loss is that of successful trials, relative to those on the true state.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import controllers
from benchmarks.estimation.__main__ import ACCELEROMETER_BIAS, GYRO_BIAS
from benchmarks.locomotion.loops import locomotion_setup, simulate
from benchmarks.locomotion.outcomes import OURS, Outcome, outcomes
from benchmarks.locomotion.trials import Trial, trials
from benchmarks.locomotion.walkers import Walker, walkers
from legged import estimation, sweeps
from legged.output import write_file
from legged.spatial import Array
from legged.table import Table

_ROWS = ("forward", "sideways", "turning", "slopes", "pushes")


def on_estimate(setup: sweeps.Setup) -> sweeps.Setup:
    """Return a setup of the same law on the estimate, each trial with another seed of the instruments."""
    law, path = setup.controller, "controller."
    while not isinstance(law, controllers.Locomotion):
        law, path = law.law, f"{path}law."
    instruments = estimation.Instruments(gyro_bias=GYRO_BIAS, accelerometer_bias=ACCELEROMETER_BIAS)
    loop = controllers.Estimated(law, estimation.InvariantFilter(), instruments)
    values_of = setup.vary
    assert values_of is not None

    def values(samples: dict[str, Array]) -> Mapping[str, Any]:
        varied = {"controller.instruments.seed": np.asarray(samples["trial"], dtype=float)}
        for name, value in values_of(samples).items():
            if name.startswith(path):
                varied[f"controller.law.{name.removeprefix(path)}"] = value
            elif not name.startswith(("controller.", "robot.")):  # these rows have neither noise nor payload
                varied[name] = value
        return varied

    return replace(setup, controller=loop, vary=values)


def measure(walker: Walker, chosen: list[Trial]) -> tuple[list[Outcome], list[Outcome]]:
    """Return the outcomes of possible trials of one kind: on the true state, and on the estimate."""
    possible = [trial for trial in chosen if walker.follows(trial.command)]
    setup = locomotion_setup(walker, possible)
    true, estimated = (outcomes(walker, OURS, simulate(x, walker, possible)) for x in (setup, on_estimate(setup)))
    return true, estimated


def lines(name: str, true: list[Outcome], estimated: list[Outcome]) -> list[tuple[str, ...]]:
    """Return the rows of the table of a robot."""
    rows = []
    for row in dict.fromkeys(x.trial.row for x in true):
        one, other = ([x for x in part if x.trial.row == row] for part in (true, estimated))
        rows.append((name, row, *_counts(one, other)))
    return [*rows, (name, "all", *_counts(true, estimated))]


def _counts(true: list[Outcome], estimated: list[Outcome]) -> tuple[str, ...]:
    """Return trials, successes on the true state and on the estimate, and the loss."""
    first, second = (sum(x.succeeded for x in part) for part in (true, estimated))
    loss = f"{100.0 * (first - second) / first:.1f} %" if first else "-"
    return str(len(true)), str(first), str(second), loss


def main() -> None:
    """Print and write the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.estimation.closed_loop", description=__doc__)
    parser.add_argument("robots", nargs="*", default=["Go2", "G1"])
    parser.add_argument("--rows", nargs="+", choices=_ROWS, default=list(_ROWS))
    parser.add_argument("--output", type=Path, default=Path("results/estimation"), metavar="FOLDER")
    options = parser.parse_args()
    rows: list[tuple[str, ...]] = []
    for walker in walkers(options.robots):
        start = time.perf_counter()
        rows += lines(walker.name, *measure(walker, trials(walker.feet, options.rows)))
        print(f"[{walker.name}: {time.perf_counter() - start:.0f} s]", flush=True)
    heads = ("robot", "row", "trials", "true state", "estimate", "loss")
    notes = ("Successful trials, as in `python -m benchmarks.locomotion`; impossible commands are left out.",)
    table = Table("Locomotion on the estimate", heads, tuple(rows), notes, left=2)
    print(table.text())
    write_file(options.output / "closed_loop.md", table.markdown() + "\n")


if __name__ == "__main__":
    main()
