"""Drift and errors of the filters along walks: straight, turning, uphill, stairs, false contacts, MuJoCo.

    python -m benchmarks.estimation [ROBOT] [--seconds 60] [--seeds 20] [--output FOLDER]

A robot walks under `Locomotion` on its true state. Readings with errors of 0.01 rad/s, 0.1 m/s^2, 1 mrad and 0.1 rad/s
at 500 Hz, and constant biases, pass the filters; all seeds are one batch. True and estimated poses are also written in
the format of TUM, which `evo_ape` and `evo_rpe` read, for the first seed.
"""

from __future__ import annotations

import argparse
import timeit
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import controllers
from benchmarks.estimation.logs import Walk, motion, terrain_of
from benchmarks.estimation.metrics import absolute_pose_error, relative_pose_error, tum
from benchmarks.locomotion.walkers import Walker, walkers
from legged import estimation
from legged.estimation.replay import estimator_kernel
from legged.ground.terrain import Terrain
from legged.output import write_file
from legged.spatial import Array
from legged.table import Table

WALKS = {
    "straight": Walk(0.3),
    "turning": Walk(0.3, turn=0.2),
    "uphill": Walk(0.2, slope=0.15),
    "stairs": Walk(0.2, rise=0.15),
    "slips": Walk(0.3, turn=0.1, friction=0.3),
    "false contacts": Walk(0.3),
    "slips and false contacts": Walk(0.3, turn=0.1, friction=0.3),
    "MuJoCo": Walk(0.3, simulator="mujoco"),
    "MuJoCo, soft floor": Walk(0.3, simulator="mujoco, soft"),
}
"""Name -> walk; false contacts are those of the instruments."""
_FALSE = 0.02
HEADS = (
    "walk",
    "filter",
    "path, m",
    "drift, %",
    "worst",
    "vertical, %",
    "APE, m",
    "RPE, %",
    "orientation, deg",
    "velocity, m/s",
)
"""Columns of the rows of `errors`."""
GYRO_BIAS, ACCELEROMETER_BIAS = np.array([0.01, -0.01, 0.005]), np.array([0.05, -0.1, 0.1])  # [rad/s], [m/s^2]
_FILTERS: dict[str, Callable[[Terrain], Any]] = {
    "invariant": lambda terrain: estimation.InvariantFilter(),
    "invariant, known terrain": lambda terrain: estimation.InvariantFilter(terrain=terrain),
    "quaternion": lambda terrain: estimation.QuaternionFilter(),
    "linear": lambda terrain: estimation.LinearFilter(),
}
"""Name -> function of the true terrain."""


def errors(
    walker: Walker, name: str, filters: Sequence[str], seconds: float, seeds: int, folder: Path | None = None
) -> list[tuple[str, ...]]:
    """Return the rows of the table of a walk, print them, and write poses into a folder if there is one."""
    robot, run = walker.robot, motion(walker, WALKS[name], seconds)
    instruments = estimation.Instruments(
        gyro_bias=GYRO_BIAS,
        accelerometer_bias=ACCELEROMETER_BIAS,
        false_contacts=_FALSE if "false contacts" in name else 0.0,
    )
    readings = estimation.instrument_readings(
        robot, instruments, run.times, run.q, run.v, run.forces, seeds=np.arange(float(seeds))
    )
    way, rows = float(np.linalg.norm(np.diff(run.q[:, 4:6], axis=0), axis=1).sum()), []
    for words in filters:
        estimator = _FILTERS[words](terrain_of(walker, WALKS[name]))
        estimate = estimation.run_estimator(robot, estimator, run.times, readings, run.q[0], run.v[0])
        off = estimate.q[-1, :, 4:7] - run.q[-1, 4:7]
        drift = 100.0 * np.linalg.norm(off[:, :2], axis=1) / way
        velocity = np.sqrt(np.mean(np.sum((estimate.v - run.v[:, None])[500:, :, 3:6] ** 2, axis=2)))
        each = [estimate.q[:, i, :7] for i in range(seeds)]
        absolute = np.array([absolute_pose_error(run.q[:, :7], poses) for poses in each])
        relative = np.array([relative_pose_error(run.q[:, :7], poses) for poses in each])
        cells = (
            drift.mean(),
            drift.max(),
            100.0 * np.abs(off[:, 2]).mean() / way,
            *(_mean_square(x) for x in (absolute[:, 0], 100.0 * relative[:, 0], absolute[:, 1])),
            velocity,
        )
        rows.append((name, words, f"{way:.1f}", *(f"{x:.3f}" for x in cells)))
        print(*rows[-1], sep=", ", flush=True)
        if folder is not None:
            write_file(folder / f"{_file_name(name, words)}.tum", tum(run.times, estimate.q[:, 0, :7]))
    if folder is not None:
        write_file(folder / f"{_file_name(name, 'truth')}.tum", tum(run.times, run.q[:, :7]))
    return rows


def _file_name(*words: str) -> str:
    return "_".join(words).replace(",", "").replace(" ", "_")


def _mean_square(values: Array) -> float:
    """Return the root of the mean square."""
    return float(np.sqrt(np.mean(values**2)))


def update_time(walker: Walker) -> float:
    """Return the least time of an update of the invariant filter, [us]."""
    robot = walker.robot
    q, v = controllers.Locomotion(walker.gait).initial_state(robot)
    started, memory = estimation.InvariantFilter().start(robot, q, v)
    kernel = estimator_kernel(started, len(memory), 2e-3)
    zero, n = np.zeros(robot.nj), len(robot.contacts)
    reading = (np.zeros(3), np.array([0.0, 0.0, 9.81]), q[7:], zero, zero, np.zeros((n, 3)), np.ones(n))
    print(kernel.counts)
    return 1e6 * min(timeit.repeat(lambda: kernel(memory, *reading), number=500, repeat=20)) / 500


def main() -> None:
    """Print and write the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.estimation", description="Errors of the filters.")
    parser.add_argument("robot", nargs="?", default="Go2")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--walks", nargs="+", choices=WALKS, default=list(WALKS))
    parser.add_argument("--filters", nargs="+", choices=_FILTERS, default=list(_FILTERS))
    parser.add_argument("--output", type=Path, default=Path("results/estimation"), metavar="FOLDER")
    options = parser.parse_args()
    (walker,) = walkers([options.robot])
    rows: list[tuple[str, ...]] = []
    for name in options.walks:
        rows += errors(walker, name, options.filters, options.seconds, options.seeds, options.output)
    notes = (
        f"{options.robot}, {options.seconds:g} s, {options.seeds} seeds. Drift: horizontal, at the end, of the path,",
        "mean and worst seed; vertical: mean; the rest are root mean squares. APE and RPE as of evo, not aligned;",
        "RPE of each meter of the path.",
    )
    table = Table("Errors of the filters", HEADS, tuple(rows), notes, left=2)
    print(table.text())
    write_file(options.output / "estimation.md", table.markdown() + "\n")
    print(f"an update takes {update_time(walker):.1f} us")


if __name__ == "__main__":
    main()
