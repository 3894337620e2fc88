"""Drift and errors of the filters along walks: straight, turning, uphill, stairs, false contacts, MuJoCo.

    python -m benchmarks.estimation [ROBOT] [--seconds 60] [--seeds 20] [--output FOLDER]

A robot walks under `Locomotion` on its true state. Readings with errors of 0.01 rad/s, 0.1 m/s^2, 1 mrad and 0.1 rad/s
at 500 Hz, and constant biases, pass the filters; all seeds are one batch. True and estimated poses are also written in
the format of TUM, which `evo_ape` and `evo_rpe` read.
"""

from __future__ import annotations

import argparse
import timeit
from pathlib import Path

import numpy as np

import controllers
from benchmarks.estimation.logs import Walk, motion
from benchmarks.locomotion.walkers import Walker, walkers
from legged import estimation
from legged.estimation.replay import estimator_kernel
from legged.output import write_file
from legged.spatial import Array
from legged.table import Table

_WALKS = {
    "straight": Walk(0.3),
    "turning": Walk(0.3, turn=0.2),
    "uphill": Walk(0.2, slope=0.15),
    "stairs": Walk(0.2, rise=0.15),
    "false contacts": Walk(0.3),
    "MuJoCo": Walk(0.3, simulator="mujoco"),
}
_FALSE = 0.02
_GYRO_BIAS, _ACCELEROMETER_BIAS = np.array([0.01, -0.01, 0.005]), np.array([0.05, -0.1, 0.1])  # [rad/s], [m/s^2]
_FILTERS = {
    "invariant": estimation.InvariantFilter,
    "quaternion": estimation.QuaternionFilter,
    "linear": estimation.LinearFilter,
}


def tum(times: Array, q: Array) -> str:
    """Return poses in the format of TUM: time x y z qx qy qz qw.

    Args:
        times: (T,), [s]. q: Configurations, (T, nq).
    """
    rows = np.column_stack([times, q[:, 4:7], q[:, 1:4], q[:, 0]])
    return "\n".join(" ".join(f"{x:.9f}" for x in row) for row in rows) + "\n"


def errors(walker: Walker, name: str, seconds: float, seeds: int, folder: Path) -> list[tuple[str, ...]]:
    """Return the rows of the table of a walk."""
    robot, run = walker.robot, motion(walker, _WALKS[name], seconds)
    instruments = estimation.Instruments(
        gyro_bias=_GYRO_BIAS,
        accelerometer_bias=_ACCELEROMETER_BIAS,
        false_contacts=_FALSE if name == "false contacts" else 0.0,
    )
    readings = estimation.instrument_readings(
        robot, instruments, run.times, run.q, run.v, run.forces, seeds=np.arange(float(seeds))
    )
    way, rows = float(np.linalg.norm(np.diff(run.q[:, 4:6], axis=0), axis=1).sum()), []
    for words, kind in _FILTERS.items():
        found = estimation.run_estimator(robot, kind(), run.times, readings, run.q[0], run.v[0])
        off = found.q[-1, :, 4:7] - run.q[-1, 4:7]
        drift = 100.0 * np.linalg.norm(off[:, :2], axis=1) / way
        velocity = np.sqrt(np.mean(np.sum((found.v - run.v[:, None])[500:, :, 3:6] ** 2, axis=2)))
        dots = np.abs(np.sum(found.q[..., :4] * run.q[:, None, :4], axis=2))
        angle = 2.0 * np.degrees(np.arccos(np.minimum(dots, 1.0)))
        position = np.sqrt(np.mean(np.sum((found.q - run.q[:, None])[..., 4:7] ** 2, axis=2)))
        cells = (
            drift.mean(),
            drift.max(),
            100.0 * np.abs(off[:, 2]).mean() / way,
            position,
            np.sqrt(np.mean(angle**2)),
            velocity,
        )
        rows.append((name, words, f"{way:.1f}", *(f"{x:.3f}" for x in cells)))
        write_file(folder / f"{name.replace(' ', '_')}_{words}.tum", tum(run.times, found.q[:, 0]))
    write_file(folder / f"{name.replace(' ', '_')}_truth.tum", tum(run.times, run.q))
    return rows


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
    parser.add_argument("--walks", nargs="+", choices=_WALKS, default=list(_WALKS))
    parser.add_argument("--output", type=Path, default=Path("results/estimation"), metavar="FOLDER")
    options = parser.parse_args()
    (walker,) = walkers([options.robot])
    rows = [
        row for name in options.walks for row in errors(walker, name, options.seconds, options.seeds, options.output)
    ]
    heads = (
        "walk",
        "filter",
        "path, m",
        "drift, %",
        "worst",
        "vertical, %",
        "APE, m",
        "orientation, deg",
        "velocity, m/s",
    )
    notes = (
        f"{options.robot}, {options.seconds:g} s, {options.seeds} seeds. Drift: horizontal, at the end, of the path;",
        "the rest is RMS.",
    )
    table = Table("Errors of the filters", heads, tuple(rows), notes, left=2)
    print(table.text())
    write_file(options.output / "estimation.md", table.markdown() + "\n")
    print(f"an update takes {update_time(walker):.1f} us")


if __name__ == "__main__":
    main()
