"""A controller that executes a solution: its controls with the linear feedback of the last backward pass."""

from __future__ import annotations

from typing import Any

import numpy as np

from legged.checked import checked
from legged.compiler import LookupTable, where
from legged.errors import ArgumentError
from legged.optimization.problem import Problem, control_bound
from legged.optimization.solution import Solution
from legged.robot.configuration import difference, integrate
from legged.spatial import Array


@checked
class Tracking:
    """A controller for `legged.simulate` that tracks a solution by time-varying linear feedback.

        u = u_k + K_k [difference(q*, q); v - v*]

    K is the gain of the solution: the linear-quadratic regulator of the problem, linearized about its solution. The
    targets q* and v* are interpolated linearly between nodes. After the end, the last configuration at zero velocity is
    the target, with the last control and gain.

    Attributes:
        robot: The robot. share: Factor of K, dimensionless, by default 1.
    """

    def __init__(
        self, problem: Problem, solution: Solution, share: float = 1.0, *, lower: Any = None, upper: Any = None
    ):
        """Prepare the tables of targets, controls and gains.

        Args:
            problem: The problem. solution: Its solution. share: Factor of K, dimensionless.
            lower, upper: Bounds of the controls, numbers or (nu,), [N m] or [N], joint axes; by default those of the
                problem. Wider ones leave torque to the feedback where the plan is at its bounds.
        """
        robot = problem.tree
        if solution.q.shape != (len(problem.nodes) + 1, robot.nq):
            raise ArgumentError("the solution must be one of this problem")
        self.robot, self.share = robot, share
        self._actuated = problem.actuated
        pairs = (("lower", lower, problem.lower), ("upper", upper, problem.upper))
        self._bounds = [own if x is None else control_bound(name, x, 0.0, problem.nu) for name, x, own in pairs]
        self._start = (solution.q[0], solution.v[0])
        stages = np.flatnonzero(solution.active)
        q, v = solution.q, solution.v
        ends = np.minimum(stages + 1, len(q) - 1)
        self._starts, self._end = solution.t[stages], solution.t[-1]
        durations = np.append(np.diff(solution.t)[stages], 1.0)
        moves = [difference(robot, q[k], q[e]) for k, e in zip(stages, ends, strict=True)]
        rates = v[ends] - v[stages]
        still = np.zeros(robot.nv)
        rows = [
            np.concatenate([q[stages], q[-1:]]),
            np.concatenate([v[stages], [still]]),
            np.array([*moves, still]),
            np.concatenate([rates, [still]]),
            np.concatenate([solution.u[stages], solution.u[stages[-1:]]]),
            np.concatenate([solution.gain[stages], solution.gain[stages[-1:]]]).reshape(len(stages) + 1, -1),
            durations[:, None],
            np.append(self._starts, solution.t[-1])[:, None],
        ]
        self._table = LookupTable(np.concatenate(rows, axis=1).ravel())
        self._sizes = [row.shape[1] for row in rows]

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        """Return the forces of the joints, (nj,), [N m] or [N].

        Args:
            t, phase, q, v, wrenches, memory: As in `legged.simulation.controller.Controller`.
        """
        robot, nu = self.robot, len(self._actuated)
        now = t + 1e-9  # [s], so that rounding of t does not delay the beginning of a node
        node = sum((where(now >= start, 1.0, 0.0) for start in [*self._starts[1:], self._end]), 0.0)
        width, parts, at = sum(self._sizes), list[Array](), 0
        for size in self._sizes:
            parts.append(np.array([self._table(node * width + (at + i + 0.5)) for i in range(size)]))
            at += size
        q0, v0, move, rate, u, gain, duration, start = parts
        elapsed = (t - start[0]) / duration[0]
        share = where(elapsed < 0.0, 0.0, where(elapsed > 1.0, 1.0, elapsed))
        dq = difference(robot, integrate(robot, q0, share * move), q)
        dx = np.concatenate([dq, v - (v0 + share * rate)])
        u = u + self.share * (gain.reshape(nu, 2 * robot.nv) @ dx)
        lower, upper = self._bounds
        u = [where(x < lo, lo, where(x > up, up, x)) for x, lo, up in zip(u, lower, upper, strict=True)]
        tau: list[Any] = [0.0] * robot.nj
        for entry, x in zip(self._actuated, u, strict=True):
            tau[entry - robot.base.nv] = x
        return np.array(tau)

    def update_times(self, until: float) -> Array:
        """Return the times of the nodes, (n,), [s].

        Args:
            until: End of the run, [s].
        """
        return self._starts[(self._starts > 0.0) & (self._starts < until)]

    def initial_state(self, robot: Any) -> tuple[Array, Array]:
        """Return the state at the start of the solution, (nq,) and (nv,).

        Args:
            robot: The robot.
        """
        return self._start
