"""The Levenberg-Marquardt method on configurations within joint limits, its iteration in machine code.

    minimize |W e(q)|^2,   (J^T W^2 J + d s 1) dq = J^T W^2 e,   q <- q (+) dq

s is the largest diagonal entry of J^T W^2 J. The damping d falls after a step that decreases the sum of squares, and
grows after one that does not, which is taken back. Coordinates at a limit that the gradient points beyond are held;
coordinates that a step would carry beyond a limit move to it, and the others are solved for again.

Where the iteration ends with a larger error than the tolerance, as at a straight leg whose foot is to be drawn in, a
second-order step follows along a direction of negative curvature of |W e|^2 / 2. The iteration continues from steps of
several lengths, and the nearest of the solutions that it finds is returned.

The iteration is the step of a `TimeLoop`: each member of a batch occupies a lane of the vectors and ends by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, reduce
from typing import Any, NamedTuple

import numpy as np

from legged.compiler import CODES_ONLY, Members, Schedule, TimeLoop, where
from legged.compiler import compile as compile_function
from legged.errors import ArgumentError
from legged.robot.configuration import as_vector, difference, integrate, scatter
from legged.robot.joint import Follower
from legged.robot.robot import Robot
from legged.spatial import Array, mirror, solve_symmetric

_CONVERGED, _STATIONARY, _OVERDAMPED = 1.0, 2.0, 3.0
"""Termination codes: the tolerance is met; no free motion reduces the error at first order; no step decreases it."""
_FIRST_DAMPING, _MOST_DAMPING, _LEAST_DAMPING = 1e-4, 1e8, 1e-13
_GRADIENT_TOLERANCE = 1e-12  # relative to the largest diagonal entry
_MOST_ESCAPES = 8  # second-order steps of a problem
_DIFFERENCE = 1e-5  # of coordinates, for the second derivative, [rad] or [m]
_CURVATURE_TOLERANCE = 1e-6  # relative to the largest diagonal entry of J^T W^2 J
_STEPS = (1.2, 0.6, 0.2, 0.05, 0.01)  # largest entries of the second-order steps that are tried, [rad] or [m]
_GROUP = 64  # members whose second-order steps are computed together


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
        iterations: Numbers of steps tried, (B,). escapes: Numbers of second-order steps taken, (B,).
    """

    q: Array
    e: Array
    iterations: Array
    escapes: Array


def nearest_of(robot: Robot, starts: Array, results: Minimum, members: Array, tolerance: float) -> tuple[Array, Array]:
    """Return (numbers of the members (k,), row of the best result of each (k,)).

    The best result is the solution that is nearest to the start, or that of the least error where there is no solution.

    Args:
        robot: The robot. starts: Initial configurations of all members, (B, nq), mixed units.
        results: Of n searches. members: Number of the member of each result, (n,), dimensionless.
        tolerance: Largest error of a solution.
    """
    residuals = np.abs(results.e).max(axis=1)
    numbers, rows = np.unique(members), []
    for number in numbers:
        own = np.flatnonzero(members == number)
        solved = own[residuals[own] <= tolerance]
        if len(solved):
            distances = [np.linalg.norm(difference(robot, starts[number], q)) for q in results.q[solved]]
            rows.append(int(solved[int(np.argmin(distances))]))
        else:
            rows.append(int(own[int(np.argmin(np.where(np.isnan(residuals[own]), np.inf, residuals[own])))]))
    return numbers, np.array(rows, int)


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
        self._count = count
        self._loop = TimeLoop.of(self._step, count + 1, robot.nq + 2 + len(weights))

    def minimize(self, q: Array, values: Array, tolerance: float, iterations: int) -> Minimum:
        """Return where the method ends, second-order steps included.

        Args:
            q: Initial configurations, (B, nq). values: Values of the errors' function, (B, k), any unit.
            tolerance: Largest error at which the method ends, [unit of the errors].
            iterations: Largest number of steps between two second-order steps.
        """
        minima = self._descend(q, values, tolerance, iterations)
        stuck = np.arange(len(q))
        for _ in range(_MOST_ESCAPES):
            stuck = stuck[np.abs(minima.e[stuck]).max(axis=1) > tolerance]
            groups = (stuck[i : i + _GROUP] for i in range(0, len(stuck), _GROUP))
            steps = [step for part in groups for step in self._second_order(minima.q[part], values[part])]
            members = np.repeat(stuck, [len(step) for step in steps]) if steps else stuck[:0]
            if not len(members):
                break
            again = self._descend(np.concatenate(steps), values[members], tolerance, iterations)
            again.iterations[:] += minima.iterations[members] + 1
            again.escapes[:] = minima.escapes[members] + 1
            stuck, rows = nearest_of(self._robot, q, again, members, tolerance)
            for of_all, new in zip(minima, again, strict=True):
                of_all[stuck] = new[rows]
        return minima

    def _second_order(self, q: Array, values: Array) -> list[Array]:
        """Return configurations of smaller errors along directions of negative curvature, (n, nq) for each member.

        There is one for each length of step at most, n = 0 without negative curvature.

        Args:
            q: Stationary configurations, (B, nq). values: Values of the errors' function, (B, k).
        """
        size, none = len(self._free), np.zeros((0, q.shape[1]))
        if not size:
            return [none] * len(q)
        unit = np.zeros((size, self._robot.nv))
        unit[np.arange(size), self._free] = _DIFFERENCE
        steps, rest = np.concatenate([unit, -unit]), np.zeros(self._robot.nv)
        slopes = self._moved(q[:, None], steps, values[:, None], np.zeros(1))[1].reshape(len(q), 2, size, size)
        squares, gradient, scales, _ = self._moved(q, rest, values, np.zeros(1))
        hessians = (slopes[:, 1] - slopes[:, 0]) / (2.0 * _DIFFERENCE)  # gradient is -d(|W e|^2 / 2)
        second_steps = []
        for b, hessian in enumerate(hessians):
            directions = self._negative_curvature(q[b], hessian, gradient[b], float(scales[b]))
            if not len(directions):
                second_steps.append(none)
                continue
            steps = np.zeros((len(_STEPS), len(directions), self._robot.nv))
            steps[:, :, self._free] = np.multiply.outer(_STEPS, directions)
            errors, _, _, tried = self._moved(q[b], steps, values[b], np.ones(1))
            best = np.argmin(errors, axis=1)
            better = errors.min(axis=1) < squares[b] * (1.0 - 1e-9)
            second_steps.append(tried[better, best[better]])
        return second_steps

    def _negative_curvature(self, q: Array, hessian: Array, gradient: Array, scale: float) -> Array:
        """Return directions of negative curvature, (m, n), whose largest entry is 1: eigenvectors, and the projections
        of the coordinate axes onto their span, each with both signs.

        They come from the coordinates that no limit holds, and from all: a long step may lead from a minimum at a limit
        over the straight leg to the other side.
        """
        free = np.ones(len(gradient), bool)
        for k, limit in self._bounded:
            slope = gradient[k] if abs(gradient[k]) > 1e-9 * scale else 0.0
            below, above = q[limit.q] <= limit.lower and slope < 0.0, q[limit.q] >= limit.upper and slope > 0.0
            free[k] = not (below or above)
        directions = []
        for mask in [free] if free.all() else [free, np.ones(len(gradient), bool)]:
            H = hessian[np.ix_(mask, mask)]
            values, vectors = np.linalg.eigh((H + H.T) / 2.0)
            V = vectors[:, values < -_CURVATURE_TOLERANCE * scale]
            candidates = np.zeros((V.shape[0] + V.shape[1], len(gradient)))
            candidates[:, mask] = np.concatenate([V.T, V @ V.T])
            sizes = np.abs(candidates).max(axis=1, initial=0.0)
            candidates = candidates[sizes > 1e-3] / sizes[sizes > 1e-3, None]
            directions += [candidates, -candidates]
        return np.concatenate(directions)

    @cached_property
    def _moved(self) -> Callable[..., tuple[Array, Array, Array, Array]]:
        """After a step d, (nv,), from q: |W e|^2 / 2, the negative of its gradient, (n,), the largest diagonal entry of
        J^T W^2 J, and the configuration, (nq,), which is within the limits if `bounded` is [1]; for a batch."""

        def moved(q: Array, d: Array, values: Array, bounded: Array) -> tuple[Any, Array, Any, Array]:
            entries = list(integrate(self._robot, q, d))
            for limit in self._limits:
                x = entries[limit.q]
                within = np.minimum(np.maximum(x, limit.lower), limit.upper)
                entries[limit.q] = where(bounded[0] > 0.5, within, x)
            other = as_vector(entries)
            e, J = self._errors(other, values)
            J, e = self._weights[:, None] * J[:, self._free], self._weights * e
            squares = [J[:, i] @ J[:, i] for i in range(len(self._free))]
            return 0.5 * _square(e), J.T @ e, _largest(squares, 1e-12), other

        robot = self._robot
        return compile_function(moved, None, q=robot.nq, d=robot.nv, values=self._count, bounded=1)

    def _descend(self, q: Array, values: Array, tolerance: float, iterations: int) -> Minimum:
        """Return where the iteration ends; arguments as in `minimize`."""
        q, nq = self._within_limits(q), self._robot.nq
        state = np.full((len(q), nq + 2 + len(self._weights)), np.nan)
        state[:, :nq], state[:, nq : nq + 2] = q, (_FIRST_DAMPING, 0.0)
        members = Members.at(state, 0)
        intervals = np.tile([0.0, 1.0, 1.0, 0.0], (1, iterations, 1))
        parameters = np.column_stack([values, np.full(len(values), tolerance)])
        self._loop.run(members, parameters, Schedule(intervals, np.full(iterations, CODES_ONLY)))
        q, rest = self._within_limits(members.state[:, :nq]), members.state[:, nq:]
        return Minimum(q, rest[:, 2:], rest[:, 1].astype(int), np.zeros(len(q), int))

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


def joint_limits(robot: Robot) -> list[Limit]:
    """Return the joint coordinates that have a limit, or are bounded by that of a joint that follows them.

    Args:
        robot: The robot.

    Raises:
        ArgumentError: If limits leave no position.
    """
    limits: dict[int, Limit] = {}
    for joint in (*robot.joints, *robot.followers):
        physics, size = joint.definition.physics, joint.v.stop - joint.v.start
        if joint.q.stop - joint.q.start != size:
            continue  # a ball joint has no limits on coordinates
        lower, upper = (np.broadcast_to(bound, size) for bound in (physics.lower, physics.upper))
        if isinstance(joint, Follower):  # q = ratio * master + offset
            lower, upper = np.sort([(bound - joint.offset) / joint.ratio for bound in (lower, upper)], axis=0)
        for k in range(size):
            v, q = joint.v.start + k, joint.q.start + k
            known = limits.get(v, Limit(v, q, -np.inf, np.inf))
            limit = Limit(v, q, max(known.lower, float(lower[k])), min(known.upper, float(upper[k])))
            if limit.lower > limit.upper:
                raise ArgumentError(
                    f"joint {joint.name!r} follows another one, and their limits have no position in common: correct "
                    f"the limits, or pass limits=False"
                )
            limits[v] = limit
    return [limit for limit in limits.values() if np.isfinite(limit.lower) or np.isfinite(limit.upper)]


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
