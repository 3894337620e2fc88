"""The state of the iterations of `Solver`."""

from __future__ import annotations

from typing import Any

import numpy as np

from legged.optimization.model import LinearQuadraticModel
from legged.optimization.riccati import Backward
from legged.optimization.solution import Iterations


class SolverState:
    """State of the iterations of the problems side by side.

    gap_tolerance: Largest entry of a gap of a converged problem. logs: History of the iterations.
    passes: Number of iterations, those without a step included.
    converged, ended, has_moved: Whether all tolerances are met; whether the iterations have ended; whether a step was
        accepted since the last update of multipliers.
    probed: Whether the iterations have gone on with the least regularization after a larger one met all tolerances.
    gap_penalty: Weight of the gaps in the merit function. gap_sum, largest_gap: Sum and largest of their entries.
    violation_target: Violation at which multipliers are updated without a larger penalty.
    inner_tolerance: Expected relative decrease of the cost at which multipliers are updated.
    slope: Of the cost along the full step. improvement: Its expected decrease.
    """

    def __init__(self, count: int, gap_tolerance: float):
        """Start without problems.

        Args:
            count: Number of problems side by side. gap_tolerance: As above, [rad], [m], [rad/s] and [m/s].
        """
        self.gap_tolerance, self.logs = gap_tolerance, [Iterations() for _ in range(count)]
        self.converged, self.has_moved, self.probed = np.zeros((3, count), bool)
        self.ended, self.passes, self.reason = np.ones(count, bool), np.zeros(count, int), np.full(count, "", object)
        self.gap_penalty, self.violation_target, self.inner_tolerance = np.zeros((3, count))
        self.cost = self.gap_sum = self.largest_gap = self.slope = self.improvement = np.zeros(count)

    def restart(self, b: int) -> None:
        """Start the iterations of another problem.

        Args:
            b: Its place among the problems side by side.
        """
        for array in (self.converged, self.ended, self.has_moved, self.probed, self.passes, self.gap_penalty):
            array[b] = 0
        self.reason[b], self.logs[b] = "", Iterations()
        self.violation_target[b], self.inner_tolerance[b] = 0.1, 1e-3

    def record(self, b: int, violation: Any, step: Any, regularization: Any, time: float) -> None:
        """Append an iteration of problem b to its log.

        Args:
            b: Place of the problem. violation: Of constraints, over their scale. step: Its length, dimensionless.
            regularization: As in `RiccatiRecursion.backward`, any unit. time: Since the start, [s].
        """
        log = self.logs[b]
        log.cost.append(float(self.cost[b]))
        log.gap.append(float(self.largest_gap[b]))
        log.violation.append(float(violation))
        log.improvement.append(float(self.improvement[b]))
        log.step.append(float(step))
        log.regularization.append(float(regularization))
        log.time.append(time)

    def measure(self, trajectories: LinearQuadraticModel, result: Backward) -> None:
        """Compute costs, gaps, the slope of the cost along the step, and its expected improvement.

        Args:
            trajectories: The problems. result: That of the backward pass.
        """
        self.cost = trajectories.cost.sum(axis=1)
        absolute = np.abs(trajectories.gap)
        self.gap_sum, self.largest_gap = absolute.sum(axis=(1, 2)), absolute.max(axis=(1, 2))
        self.slope, curvature = result.slope, result.curvature
        has_gaps = (self.largest_gap > self.gap_tolerance) & (result.failed_node < 0)
        if has_gaps.any() or trajectories.durations.names:
            self.slope, curvature = trajectories.directional_derivatives()
            half = 0.5 * np.maximum(curvature, 0.0)
            needed = (self.slope + half) / (0.5 * np.maximum(self.gap_sum, 1e-300))
            self.gap_penalty = np.where(has_gaps, np.maximum(self.gap_penalty, needed), self.gap_penalty)
        self.improvement = np.abs(self.slope + 0.5 * curvature)
