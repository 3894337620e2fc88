"""Feasibility-driven differential dynamic programming for one problem or several side by side."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from legged.optimization.model import Trajectories
from legged.optimization.problem import Problem
from legged.optimization.riccati import backward
from legged.spatial import Array

STEP_LENGTHS = 0.5 ** np.arange(8.0)
_ARMIJO = 1e-4


@dataclass
class Log:
    """The history of a solution, one entry per iteration.

    Attributes:
        cost: Cost of each problem. gap: Largest entry of the gaps, mixed SI units. step: Accepted step length, or 0.
        regularization: Of Q_uu. improvement: Expected decrease of the cost. time: Since the start, [s].
    """

    cost: list[Array] = field(default_factory=list)
    gap: list[Array] = field(default_factory=list)
    step: list[Array] = field(default_factory=list)
    regularization: list[Array] = field(default_factory=list)
    improvement: list[Array] = field(default_factory=list)
    time: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        lines = ["iteration          cost       gap  improvement   step  regularization    time"]
        for k, time in enumerate(self.time):
            lines.append(
                f"{k:9d}  {self.cost[k][0]:12.6g}  {self.gap[k][0]:8.1e}     {self.improvement[k][0]:8.1e}  "
                f"{self.step[k][0]:5.3f}        {self.regularization[k][0]:8.1e}  {time:6.3f}"
            )
        return "\n".join(lines)


class Solver:
    """The solver of a problem, which keeps its memory and its trajectories for warm starts."""

    def __init__(self, problem: Problem):
        self.problem = problem
        self.at = Trajectories(problem, STEP_LENGTHS)
        self.log = Log()

    def set_guess(self, q: Any = None, v: Any = None, u: Any = None) -> None:
        at = self.at
        if q is not None:
            at.q[...] = q
        if v is not None:
            at.v[...] = v
        if u is not None:
            at.u[:, :-1] = u
        at.q[:, 0], at.v[:, 0] = self.problem.q, self.problem.v

    def solve(self, iterations: int = 100, tolerance: float = 1e-9, gap_tolerance: float = 1e-8) -> Log:
        at, B = self.at, self.at.count
        log = self.log = Log()
        start = perf_counter()
        regularization = np.full(B, 1e-9)
        penalty = np.zeros(B)
        at.evaluate_motion()
        done = np.zeros(B, bool)
        bounded = np.isfinite(self.problem.lower).any() or np.isfinite(self.problem.upper).any()
        model_is_new = False
        for _ in range(iterations):
            if not model_is_new:
                at.evaluate_model()
            bounds = None
            if bounded:
                bounds = self.problem.lower - at.u, self.problem.upper - at.u
            result = backward(at.F, at.gap, at.gradient, at.hessian, at.step, at.gain, regularization, bounds)
            if result.failed >= 0:
                regularization = np.maximum(regularization * 10.0, 1e-6)
                model_is_new = True
                continue
            cost = at.cost.sum(axis=1)
            gaps = np.abs(at.gap).sum(axis=(1, 2))
            largest = np.abs(at.gap).max(axis=(1, 2))
            slope, curvature = result.first, result.second
            if (largest > gap_tolerance).any():
                slope, curvature = self._directional(slope, curvature)
                needed = (slope + 0.5 * np.maximum(curvature, 0.0)) / (0.5 * np.maximum(gaps, 1e-300))
                penalty = np.where(largest > gap_tolerance, np.maximum(penalty, needed), penalty)
            improvement = -(slope + 0.5 * curvature)
            converged = (np.abs(improvement) <= tolerance * (1.0 + np.abs(cost))) & (largest <= gap_tolerance)
            done |= converged
            costs = at.rollout()
            merit = cost + penalty * gaps
            descent = slope - penalty * gaps
            accepted = np.zeros(B)
            for b in range(B):
                if done[b]:
                    continue
                trial = costs[b] + penalty[b] * (1.0 - at.alphas) * gaps[b]
                allowed = merit[b] + _ARMIJO * at.alphas * min(descent[b], 0.0) + 1e-12 * abs(merit[b])
                fits = np.flatnonzero(trial <= allowed)
                if len(fits):
                    at.accept(b, int(fits[0]))
                    accepted[b] = at.alphas[fits[0]]
            log.cost.append(cost)
            log.gap.append(largest)
            log.improvement.append(improvement)
            log.step.append(accepted)
            log.regularization.append(regularization.copy())
            log.time.append(perf_counter() - start)
            if done.all():
                break
            up = (accepted < 0.01) & ~done
            down = accepted > 0.5
            regularization = np.where(up, np.maximum(regularization * 10.0, 1e-6), regularization)
            regularization = np.where(down, np.maximum(regularization / 10.0, 1e-9), regularization)
            model_is_new = not accepted.any()
            if (regularization > 1e9).any():
                break
        return log

    def _directional(self, slope: Array, curvature: Array) -> tuple[Array, Array]:
        """Return slope and curvature of the quadratic model of the cost along the step with gaps, (problems,) each."""
        at, nx = self.at, self.at.nx
        slope, curvature = np.zeros(at.count), np.zeros(at.count)
        dx = np.zeros((at.count, nx))
        for k in range(at.nodes + 1):
            du = at.step[:, k] + (at.gain[:, k] @ dx[..., None])[..., 0]
            if k == at.nodes:
                du = 0.0 * du
            z = np.concatenate([dx, du], axis=1)
            slope += (at.gradient[:, k] * z).sum(axis=1)
            curvature += (z * (at.hessian[:, k] @ z[..., None])[..., 0]).sum(axis=1)
            dx = (at.F[:, k] @ z[..., None])[..., 0] + at.gap[:, k]
        return slope, curvature
