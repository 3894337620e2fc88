"""Reduced models of the paper's quadruped along its trot: `python -m benchmarks.studies.simplification`, some seconds.

Terms of the inverse dynamics that contribute little to the torques along the simulated trot of the paper are dropped,
see `legged.reduced_model`. The last column has the error along a trot with half the stride, which the
choice of the terms did not see.
"""

from __future__ import annotations

import dataclasses

import controllers
import legged
import robots
from legged.algorithms.reduced_model import scales
from legged.spatial import Array
from legged.table import Table

TOLERANCES = (0.0, 0.001, 0.01, 0.05, 0.2)


def simulated_motion(stride: float) -> tuple[Array, Array, Array]:
    """Return q, v, vdot of one second of the paper's quadruped on its ground, (samples, n) each.

    Args:
        stride: Advance of the base in a phase, [m].
    """
    robot = robots.spatial_quadruped()
    gait = dataclasses.replace(controllers.paper_trot(), stride=stride)
    run = legged.simulate(robot, controllers.ComputedTorque(gait), ground=legged.ground.paper_ground(robot), until=1.0)
    return run.q, run.v, run.vdot


def reduced_table() -> Table:
    """Return operations and errors over the tolerance."""
    robot = robots.spatial_quadruped()
    stride = controllers.paper_trot().stride
    motion, other = simulated_motion(stride), simulated_motion(0.5 * stride)
    rows = []
    for tolerance in TOLERANCES:
        short = legged.reduced_model(robot, *motion, tolerance=tolerance)
        elsewhere = short.errors_along(*other)
        operations = f"{short.after.M}, {short.after.A}"
        errors = (short.error, float((elsewhere / scales(short.largest)).max()))
        rows.append(
            (f"{100 * tolerance:g} %", operations, f"{100 * short.saved:.0f} %", *(f"{100 * e:.2g} %" for e in errors))
        )
    header = ("tolerance", "M, A", "saved", "error of the torques", "error with half the stride")
    return Table("Reduced inverse dynamics of the quadruped", header, tuple(rows), left=0)


if __name__ == "__main__":
    print(reduced_table().markdown())
