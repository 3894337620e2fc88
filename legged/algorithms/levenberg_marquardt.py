"""The Levenberg-Marquardt method on configurations within joint limits, its iteration in machine code.

    minimize |W e(q)|^2,   (J^T W^2 J + d s 1) dq = J^T W^2 e,   q <- q (+) dq

s is the largest diagonal entry of J^T W^2 J. The damping d falls after a step that decreases the sum of squares, and
grows after one that does not, which is taken back. Coordinates at a limit that the gradient points beyond are held;
coordinates that a step would carry beyond a limit move to it, and the others are solved for again.

The iteration is the step of a `TimeLoop`: each member of a batch occupies a lane of the vectors and ends by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from legged.compiler import where
from legged.compiler.codegen.batches.time_loop import CODES_ONLY
from legged.compiler.runtime.time_loop import Members, Schedule, TimeLoop
from legged.robot.configuration import as_vector, integrate, scatter
from legged.robot.robot import Robot
from legged.spatial import Array, mirror, solve_symmetric

_CONVERGED, _STATIONARY, _OVERDAMPED = 1.0, 2.0, 3.0
"""Termination codes: the tolerance is met; no free motion reduces the error at first order; no step decreases it."""
_FIRST_DAMPING, _MOST_DAMPING, _LEAST_DAMPING = 1e-4, 1e8, 1e-13
_GRADIENT_TOLERANCE = 1e-12  # relative to the largest diagonal entry


class Limit(NamedTuple):
    """The limits of a joint coordinate.

    Attributes:
        v: Its entry in v. q: Its entry in q. lower, upper: The limits, [rad] or [m]; infinite without one.
    """

    v: int
    q: int
    lower: float
    upper: float


class Minimum(NamedTuple):
    """The result of a batch of problems.

    Attributes:
        q: Configurations, (B, nq). e: Errors, (B, m); NaN where no step gave finite numbers.
        iterations: Numbers of steps tried, (B,).
    """

    q: Array
    e: Array
    iterations: Array


class LevenbergMarquardt:
    """The compiled method for a robot and errors of its configuration.

    Args:
        robot: The robot.
        errors: Function (q (nq,), values (k,)) -> errors e (m,) and J (m, nv), the derivative of -e; it is traced.
        count: Number of the values, k.
        weights: Factors of the errors, the diagonal of W, (m,).
        free: Mask of the entries of v that may change, (nv,).
        limits: Limits of joint coordinates.
    """

    def __init__(
        self,
        robot: Robot,
        errors: Callable[[Array, Array], tuple[Array, Array]],
        count: int,
        weights: Array,
        free: Array,
        limits: Sequence[Limit],
    ):
        self._robot, self._errors, self._weights = robot, errors, weights
        self._free = np.flatnonzero(free)
        self._limits = list(limits)
        at = {int(column): k for k, column in enumerate(self._free)}
        self._bounded = [(at[limit.v], limit) for limit in limits if limit.v in at]
        self._loop = TimeLoop.of(self._step, count + 1, robot.nq + 2 + len(weights))

    def minimize(self, q: Array, values: Array, tolerance: float, iterations: int) -> Minimum:
        """Return where the method ends.

        Args:
            q: Initial configurations, (B, nq). values: Values of the errors' function, (B, k), any unit.
            tolerance: Largest error at which the method ends, [unit of the errors].
            iterations: Largest number of steps.
        """
        q, nq = self._within_limits(q), self._robot.nq
        state = np.full((len(q), nq + 2 + len(self._weights)), np.nan)
        state[:, :nq], state[:, nq : nq + 2] = q, (_FIRST_DAMPING, 0.0)
        members = Members.at(state, 0)
        intervals = np.tile([0.0, 1.0, 1.0, 0.0], (1, iterations, 1))
        parameters = np.column_stack([values, np.full(len(values), tolerance)])
        self._loop.run(members, parameters, Schedule(intervals, np.full(iterations, CODES_ONLY)))
        q, rest = self._within_limits(members.state[:, :nq]), members.state[:, nq:]
        return Minimum(q, rest[:, 2:], rest[:, 1].astype(int))

    def _within_limits(self, q: Array) -> Array:
        q = q.copy()
        for limit in self._limits:
            q[:, limit.q] = np.clip(q[:, limit.q], limit.lower, limit.upper)
        return q

    def _step(self, clock: Array, parameters: Array, state: Array) -> tuple[Array, Any]:
        """Return the state [q, damping, number of steps, e] after one step is tried, and the termination code."""
        nq, values, tolerance = self._robot.nq, parameters[:-1], parameters[-1]
        q, damping, tried = state[:nq], state[nq], state[nq + 1]
        e, J = self._errors(q, values)
        J = self._weights[:, None] * J[:, self._free]
        gradient, normal = J.T @ (self._weights * e), mirror(J.T @ J)
        scale = _largest([normal[i, i] for i in range(len(self._free))], 1e-12)
        slope, dq = self._direction(q, gradient, normal, damping * scale)
        unmet = _largest(np.abs(e)) > tolerance
        moves = unmet & (slope > _GRADIENT_TOLERANCE * scale)

        entries = ((slice(k, k + 1), dq[i : i + 1]) for i, k in enumerate(self._free.tolist()))
        other = integrate(self._robot, q, scatter(self._robot.nv, entries))
        e_other, _ = self._errors(other, values)
        accepted = moves & (_square(self._weights * e_other) < _square(self._weights * e))
        q, e = where(accepted, other, q), where(accepted, e_other, e)
        damping = where(accepted, np.maximum(0.1 * damping, _LEAST_DAMPING), where(moves, 8.0 * damping, damping))
        code = where(moves, where(damping > _MOST_DAMPING, _OVERDAMPED, 0.0), _STATIONARY)
        code = where(_largest(np.abs(e)) <= tolerance, _CONVERGED, code)
        return np.concatenate([q, as_vector([damping, tried + where(moves, 1.0, 0.0)]), e]), code

    def _direction(self, q: Array, gradient: Array, normal: Array, damping: Any) -> tuple[Any, Array]:
        """Return the largest slope along the coordinates that are not held at a limit, and the step dq, (n,)."""
        if not len(self._free):
            return 0.0, np.zeros(0)
        free: list[Any] = [1.0] * len(self._free)
        for k, limit in self._bounded:
            below, above = (q[limit.q] <= limit.lower) & (gradient[k] < 0.0), q[limit.q] >= limit.upper
            free[k] = where(below | (above & (gradient[k] > 0.0)), 0.0, 1.0)
        slope = _largest(np.abs(as_vector(free) * gradient))
        damped = normal + damping * np.eye(len(gradient))
        dq = _solve(damped, gradient, as_vector(free), np.zeros(len(gradient)))
        if not self._bounded:
            return slope, dq
        clipped = self._clipped(q, dq)
        free = [where(clipped[k] == dq[k], x, 0.0) for k, x in enumerate(free)]
        return slope, self._clipped(q, _solve(damped, gradient, as_vector(free), clipped))

    def _clipped(self, q: Array, dq: Array) -> Array:
        """Return a step that ends within the limits, (n,)."""
        entries = list(dq)
        for k, limit in self._bounded:
            entries[k] = np.minimum(np.maximum(entries[k], limit.lower - q[limit.q]), limit.upper - q[limit.q])
        return as_vector(entries)


def _solve(S: Array, b: Array, free: Array, given: Array) -> Array:
    """Return x, (n,), with S x = b in the rows where `free` is 1, and x = given where it is 0."""
    known = (1.0 - free) * given
    n = len(free)
    kept = np.stack([np.stack([free[i] * free[j] * S[i, j] for j in range(n)]) for i in range(n)])
    return solve_symmetric(kept + np.diag(1.0 - free), free * (b - S @ known) + known)


def _largest(x: Array | list[Any], least: float = 0.0) -> Any:
    return reduce(np.maximum, list(x), least)


def _square(x: Array) -> Any:
    return x @ x
