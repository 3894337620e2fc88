"""How far errors of heading bound the drift of a straight walk: the theoretical deviation beside the measured one.

    python -m benchmarks.estimation.heading [ROBOT] [--seconds 60] [--seeds 100]

No sensor measures the heading. The covariance of a filter that knows the true noise, and makes no allowance for errors
of the model, is the Cramer-Rao bound of the linearized problem: no filter of these readings has a smaller variance
without bias. The deviation by the gyroscope alone, with a known bias, is its noise times the root of the time between
readings times the duration.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from benchmarks.estimation.__main__ import ACCELEROMETER_BIAS, GYRO_BIAS
from benchmarks.estimation.logs import RATE, Motion, Walk, motion
from benchmarks.estimation.metrics import yaw_aligned
from benchmarks.locomotion.walkers import Walker, walkers
from legged import estimation
from legged.estimation.filter_state import FilterState
from legged.rotations import quaternion_conjugate, quaternion_log, quaternion_product
from legged.spatial import skew
from legged.table import Table

_EXACT = {"foot_model": 1e-6, "foot_walk": 1e-5, "foot_sinking": 1e-5, "gyro_walk": 0.0, "accelerometer_walk": 0.0}
"""Deviations of a filter without allowance for errors of the model."""
HEADS = ("filter", "heading, deg", "drift, %", "above 0.5 %", "worst", "aligned, %", "worst")
_GOAL = 0.5  # drift of the path, [%]


class Case(NamedTuple):
    """Sensors and a filter: errors of the readings, and the deviations that the filter assumes."""

    name: str
    sensors: estimation.Deviations
    assumed: estimation.Deviations


def cases() -> list[Case]:
    """Return the cases: exact and default deviations of the filter, and encoders without noise."""
    usual = estimation.Deviations()
    exact, better = replace(usual, **_EXACT), replace(usual, encoder=0.0)
    return [
        Case("exact noise", usual, exact),
        Case("default", usual, usual),
        Case("exact noise, encoders of 0.1 mrad", replace(usual, encoder=1e-4), replace(exact, encoder=1e-4)),
        Case("exact noise, exact encoders", better, replace(exact, encoder=1e-6)),
    ]


def rows(walker: Walker, seconds: float, seeds: int) -> list[tuple[str, ...]]:
    """Return the rows of the table: for each case the deviations that the filter states, then the measured errors."""
    run = motion(walker, Walk(0.3), seconds)
    way = float(np.linalg.norm(np.diff(run.q[:, 4:6], axis=0), axis=1).sum())
    alone = np.degrees(estimation.Deviations().gyro * np.sqrt(seconds / RATE))
    # A heading that is a random walk moves the end of a straight path aside by 1 / sqrt(3) of its last deviation.
    aside = 100.0 * np.radians(alone) / np.sqrt(3.0)
    table_rows = [("gyroscope alone, known bias: stated", f"{alone:.2f}", f"{aside:.2f}", *[""] * 4)]
    for case in cases():
        table_rows += _rows(walker, run, way, case, seeds)
    return table_rows


def _rows(walker: Walker, run: Motion, way: float, case: Case, seeds: int) -> list[tuple[str, ...]]:
    robot = walker.robot
    instruments = estimation.Instruments(case.sensors, gyro_bias=GYRO_BIAS, accelerometer_bias=ACCELEROMETER_BIAS)
    readings = estimation.instrument_readings(
        robot, instruments, run.times, run.q, run.v, run.forces, seeds=np.arange(float(seeds))
    )
    estimator = estimation.InvariantFilter(case.assumed, heading=1e-6, position=1e-6)  # the first guess is exact
    estimate = estimation.run_estimator(robot, estimator, run.times, readings, run.q[0], run.v[0])
    started, _ = estimator.start(robot, run.q[0], run.v[0])
    stated = [_stated(started.parts(memory)) for memory in estimate.memory]
    heading, drift = np.sqrt(np.mean(np.square(stated), axis=0))
    turns = [
        quaternion_log(quaternion_product(q, quaternion_conjugate(run.q[-1, :4])))[2] for q in estimate.q[-1, :, :4]
    ]
    off = np.linalg.norm(estimate.q[-1, :, 4:6] - run.q[-1, 4:6], axis=1)
    aligned = [yaw_aligned(run.q[:, :7], estimate.q[:, i, :7])[-1, 4:6] - run.q[-1, 4:6] for i in range(seeds)]
    ends = 100.0 * np.linalg.norm(aligned, axis=1) / way
    measured = 100.0 * off / way
    numbers = (
        f"{np.degrees(np.sqrt(np.mean(np.square(turns)))):.2f}",
        f"{np.sqrt(np.mean(measured**2)):.2f}",
        f"{100.0 * np.mean(measured > _GOAL):.0f} %",
        f"{measured.max():.2f}",
        f"{np.sqrt(np.mean(ends**2)):.2f}",
        f"{ends.max():.2f}",
    )
    first = (f"{case.name}: stated", f"{np.degrees(heading):.2f}", f"{100.0 * drift / way:.2f}", *[""] * 4)
    return [first, (f"{case.name}: measured", *numbers)]


def _stated(state: FilterState) -> tuple[float, float]:
    """Return the deviations of heading, [rad], and of the horizontal position, [m], by the covariance of a filter."""
    J = np.concatenate([-skew(state.position), np.zeros((3, 3)), np.eye(3)], axis=1)
    P = state.covariance[:9, :9]
    return float(np.sqrt(P[2, 2])), float(np.sqrt(np.trace((J @ P @ J.T)[:2, :2])))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.estimation.heading", description=__doc__)
    parser.add_argument("robot", nargs="?", default="Go2")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seeds", type=int, default=100)
    options = parser.parse_args()
    (walker,) = walkers([options.robot])
    notes = ("Root mean squares and worst seeds at the end; aligned: position and yaw of the whole path aligned.",)
    table = Table("Heading", HEADS, tuple(rows(walker, options.seconds, options.seeds)), notes, left=1)
    print(table.text())


if __name__ == "__main__":
    main()
