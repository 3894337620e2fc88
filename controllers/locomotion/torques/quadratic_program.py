"""Quadratic programs with friction cones and bounds by a primal-dual interior-point method, over any element.

    minimize    x^T H x / 2 + g^T x + sum over soft rows of (E x - e)_i^2 / (2 compliance_i)
    such that   E x = e in the other rows,      lower <= B x <= upper,      mu x_n >= |(x_1, x_2)| for each cone

A bound with a softness may be exceeded by its multiplier times the softness, so that contradictory bounds have a
solution. The structure of the problem (zeros, infinite bounds, zero compliances) is read while the function is traced;
each iteration factors one sparse matrix.

Source: Mehrotra's predictor and corrector with the scaling of Nesterov and Todd, as in Vandenberghe, "The CVXOPT linear
and quadratic cone program solvers", 2010. The warm start, and rows with compliance and softness, are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from controllers.locomotion.torques import second_order_cone as soc
from controllers.locomotion.torques.quasidefinite import Factors, change_unknowns, factor
from legged.compiler.ir import repeat_while, stage, where
from legged.spatial import Array, is_finite, is_zero, sum_of

TOLERANCE = 1e-6
"""Relative accuracy of the objective at which the iterations end."""
FACTORIZATION, SUBSTITUTION, ITERATION = "factorization", "substitution", "other of an iteration"
"""Stages of an iteration in operation counts."""
_TO_BOUNDARY = (0.99, 0.9999)  # range of the share of the step to the boundary of the cones; nearly full steps near it
_SLACKS = (1e-2, 1.0)  # range of the least slack of a start, in units of x and B x
_MULTIPLIERS = (1e-2, 1e2)  # range of the least multiplier of a start
_SHARE = 0.01  # of the error of stationarity of a start, which its least multiplier is


class QuadraticProgram(NamedTuple):
    """A quadratic program in n unknowns; entries may be numbers or expressions.

    Attributes:
        H: Hessian, (n, n), symmetric, positive definite, any unit. g: Gradient at zero, (n,), any unit.
        E: Rows of equations, (m, n), any unit. e: Their right-hand sides, (m,).
        compliance: (m,), the plain number zero for rows that hold exactly.
        B: Rows of bounds, (k, n), any unit. lower, upper: Bounds, (k,); plain infinite numbers for none.
        softness: Excess of a bound per multiplier, (k,); zero for bounds that hold exactly.
        cones: Indices (1, 2, n) in x of two tangential and the normal component of each force.
        friction: Friction coefficient mu of each cone, positive.
    """

    H: Array
    g: Array
    E: Array
    e: Array
    compliance: Sequence[Any]
    B: Array
    lower: Sequence[Any]
    upper: Sequence[Any]
    softness: Sequence[Any]
    cones: Sequence[tuple[int, int, int]] = ()
    friction: Sequence[Any] = ()

    @property
    def sides(self) -> list[tuple[int, float]]:
        """(row of B, 1 for a lower and -1 for an upper bound) of each finite bound."""
        sides = [(i, 1.0) for i, x in enumerate(self.lower) if is_finite(x)]
        return sides + [(i, -1.0) for i, x in enumerate(self.upper) if is_finite(x)]

    @property
    def hard(self) -> list[int]:
        """Rows of E that hold exactly."""
        return [i for i, x in enumerate(self.compliance) if is_zero(x)]

    @property
    def iterate_size(self) -> int:
        """Number of entries of an iterate."""
        return len(self.g) + len(self.hard) + 3 * len(self.cones) + len(self.sides)


class Solution(NamedTuple):
    """A solution of a quadratic program.

    Attributes:
        x: The unknowns, (n,).
        iterate: Unknowns and multipliers, from which a similar problem can start, `iterate_size`.
        residual: Largest violation of an equation, a bound or a cone, in their units.
        gap: Estimate of the objective's distance from its minimum, in its unit.
    """

    x: Array
    iterate: Array
    residual: Any
    gap: Any


def solve(problem: QuadraticProgram, start: Array, iterations: int, tolerance: float = TOLERANCE) -> Solution:
    """Return the solution after at most `iterations` iterations, each of which factors one matrix.

    An iteration whose residual is not finite or grows, since the matrix is singular within rounding, is dropped and
    ends the iterations. The result is finite for finite numbers.

    Args:
        problem: The program.
        start: Iterate of a similar problem, or zeros, (m,), mixed units, with m = `iterate_size`.
        iterations: Largest number of iterations.
        tolerance: Relative accuracy of the objective at which the iterations end.
    """
    with np.errstate(all="ignore"):
        method = _Method(problem, tolerance)
        begin = method.begin(start)
        with stage(ITERATION):
            state = repeat_while(method.iterate, begin, iterations)
        return method.solution(state)


class _Point(NamedTuple):
    """Unknowns x, multipliers y of equations, slacks s and multipliers z of cones (m, 3) and bounds (k,)."""

    x: Array
    y: Array
    s_cone: Array
    s: Array
    z_cone: Array
    z: Array

    def plus(self, t: Any, step: _Point) -> _Point:
        return _Point(*(a + t * b for a, b in zip(self, step, strict=True)))


class _Residuals(NamedTuple):
    """Residuals of stationarity, equations, cones and bounds; mean complementarity; accuracy to be reached."""

    stationarity: Array
    equations: Array
    cone: Array
    bounds: Array
    complementarity: Any
    scale: Any


class _Method:
    """The interior-point method of one problem, with its matrices as sparse rows."""

    def __init__(self, problem: QuadraticProgram, tolerance: float):
        self.problem, self.tolerance = problem, tolerance
        self.H, self.E, self.B = _sparse(_upper(problem.H)), _sparse(problem.E), _sparse(problem.B)
        self.sides = problem.sides
        self.softness = np.array([problem.softness[i] for i, _ in self.sides])
        self.degree = len(problem.cones) + len(self.sides)
        soft = [i for i, x in enumerate(problem.compliance) if not is_zero(x)]
        hard = problem.hard
        bounded = sorted({i for i, _ in self.sides})
        self.bounded = [i for i in bounded if len(self.B[i]) > 1]
        self.single = [i for i in bounded if len(self.B[i]) == 1]
        n = len(problem.g)
        nodes = [("bound", i) for i in self.bounded] + [("equation", i) for i in (*soft, *hard)]
        self.node = {key: n + k for k, key in enumerate(nodes)}
        self.hard = hard
        self.cones = [(normal, one, two) for one, two, normal in problem.cones]
        n_c = 3 * len(problem.cones)
        m, k = len(problem.e), len(self.sides)
        self.cuts = np.cumsum([n, m, n_c, k, n_c, k, n, m, n_c, k])

    def begin(self, start: Array) -> Array:
        """Return the state of the first iteration from an iterate of a similar problem."""
        p = self.problem
        x, y_hard, z_cone, z = np.split(start, np.cumsum([len(p.g), len(self.hard), 3 * len(p.cones)]))
        multipliers = dict(zip(self.hard, y_hard, strict=True))
        for i, row in enumerate(self.E):
            if i not in multipliers:
                multipliers[i] = (_product(row, x) - p.e[i]) / p.compliance[i]
        y = np.array([multipliers[i] for i in range(len(p.e))])
        z_cone = z_cone.reshape(-1, 3)
        point = _Point(x, y, np.zeros_like(z_cone), np.zeros(len(z)), z_cone, z)
        residuals = self._residuals(point)
        margin = np.clip(_SHARE * self._error(residuals), *_MULTIPLIERS)
        slack = np.clip(_largest([0.0, *np.abs(residuals.equations)]), *_SLACKS)
        z_cone = np.array([soc.interior(row, margin) for row in z_cone]).reshape(-1, 3)
        z = np.maximum(z, margin)
        s_cone = np.array([soc.interior(row, slack) for row in self._cone_values(x)]).reshape(-1, 3)
        s = np.maximum(self._margins(x) + self.softness * z, slack)
        point = _Point(x, y, s_cone, s, z_cone, z)
        return self._state(point, self._residuals(point))

    def iterate(self, state: Array) -> Array:
        """Return the state after an iteration."""
        point, now = self._unpacked(state)
        scalings = [soc.Scaling.of(s, z) for s, z in zip(point.s_cone, point.z_cone, strict=True)]
        scaled = [W @ z for W, z in zip(scalings, point.z_cone, strict=True)]
        weights = point.z / (point.s + self.softness * point.z)
        system = self._system(scalings, weights)
        affine = self._step(
            point, now, system, scalings, scaled, [-soc.product(x, x) for x in scaled], -point.s * point.z
        )
        t = 1.0 / self._ratio(point, affine, 1.0)
        target = (1.0 - t) * (1.0 - t) * (1.0 - t) * now.complementarity
        one = np.array([target, 0.0, 0.0])
        d_cone = [
            one - soc.product(x, x) - soc.product(W.inverse(ds), W @ dz)
            for W, x, ds, dz in zip(scalings, scaled, affine.s_cone, affine.z_cone, strict=True)
        ]
        step = self._step(
            point, now, system, scalings, scaled, d_cone, target - point.s * point.z - affine.s * affine.z
        )
        t = 1.0 / self._ratio(point, step, 1.0 / np.clip(t, *_TO_BOUNDARY))
        following = point.plus(t, step)
        residuals = self._residuals(following)
        valid = self._error(residuals) <= 2.0 * self._error(now) + self.tolerance * residuals.scale
        return where(valid, self._state(following, residuals), np.concatenate([state[:-1], [0.0 * state[-1]]]))

    def solution(self, state: Array) -> Solution:
        """Return the solution of the final state."""
        point, now = self._unpacked(state)
        p, x = self.problem, point.x
        hard = [_product(self.E[i], x) - p.e[i] for i in self.hard]
        cones = [soc.size(row) - row[0] for row in self._cone_values(x)]
        residual = _largest([0.0, *(abs(r) for r in hard), *cones, *(-self._margins(x))])
        iterate = np.concatenate([point.x, point.y[self.hard], point.z_cone.reshape(-1), point.z])
        return Solution(x, iterate, residual, self.degree * now.complementarity)

    def _system(self, scalings: list[soc.Scaling], weights: Array) -> tuple[Factors, dict[int, Any], Array]:
        """Return the factors of the matrix of an iteration, and for each bounded row the sum of its weights."""
        p = self.problem
        K: list[dict[int, Any]] = [dict(row) for row in self.H] + [{} for _ in self.node]
        total: dict[int, Any] = {}
        for (i, _), weight in zip(self.sides, weights, strict=True):
            total[i] = total[i] + weight if i in total else weight
        for i in self.single:
            ((j, value),) = self.B[i].items()
            K[j][j] = K[j][j] + value * value * total[i]
        for (kind, i), node in self.node.items():
            for j, value in (self.B if kind == "bound" else self.E)[i].items():
                K[j][node] = value
            K[node][node] = -1.0 / total[i] if kind == "bound" else -p.compliance[i]
        for cone, T, W in zip(self.cones, self._along_axes(scalings), scalings, strict=True):
            change_unknowns(K, cone, T)
            for j, weight in zip(cone, W.weights, strict=True):
                K[j][j] = K[j][j] + weight
        with stage(FACTORIZATION):
            return factor(K, len(self.hard)), total, weights

    def _along_axes(self, scalings: list[soc.Scaling]) -> list[Array]:
        """Return for each cone T, (3, 3), with (x_n, x_1, x_2) = T y for the parts y of the cone value along the axes.

        In these coordinates the large weights of a cone whose boundary is reached stay on the diagonal. Otherwise their
        sums with small entries of the Hessian lose digits, and rounding errors of the data change the solution visibly.
        """
        friction = self.problem.friction
        return [np.concatenate([W.axes[:1] / mu, W.axes[1:]]) for W, mu in zip(scalings, friction, strict=True)]

    def _step(
        self,
        point: _Point,
        now: _Residuals,
        system: tuple[Factors, dict[int, Any], Array],
        scalings: list[soc.Scaling],
        scaled: list[Array],
        d_cone: list[Array],
        d: Array,
    ) -> _Point:
        """Return the step that makes the residuals zero, and the products of slacks and multipliers larger by d."""
        # The right-hand side: slacks and multipliers of cones and bounds are eliminated.
        factors, total, weights = system
        p, n = self.problem, len(self.problem.g)
        a_cone = [W @ soc.quotient(x, y) for W, x, y in zip(scalings, scaled, d_cone, strict=True)]
        gap_cone = [W.axes.T @ (a - r) for W, a, r in zip(scalings, a_cone, now.cone, strict=True)]
        pull = weights * (d / point.z - now.bounds)
        by_row: dict[int, Any] = {}
        for (i, sign), force in zip(self.sides, pull, strict=True):
            by_row[i] = by_row[i] + sign * force if i in by_row else sign * force
        b: list[Any] = [*(-now.stationarity), *([0.0] * len(self.node))]
        for i in self.single:
            ((j, value),) = self.B[i].items()
            b[j] = b[j] + value * by_row[i]
        changes = self._along_axes(scalings)
        for cone, T, W, gap in zip(self.cones, changes, scalings, gap_cone, strict=True):
            for j, value in zip(cone, T.T @ np.array([b[j] for j in cone]) + W.weights * gap, strict=True):
                b[j] = value
        for (kind, i), node in self.node.items():
            b[node] = by_row[i] / total[i] if kind == "bound" else -now.equations[i]
        with stage(SUBSTITUTION):
            solution = factors.solve(b)
        # The steps of the unknowns, and from them those of slacks and multipliers.
        dz_cone = []
        for cone, T, W, gap in zip(self.cones, changes, scalings, gap_cone, strict=True):
            y = np.array([solution[j] for j in cone])
            dz_cone.append(W.axes @ (W.weights * (gap - y)))
            for j, value in zip(cone, T @ y, strict=True):
                solution[j] = value
        dx = np.array(solution[:n])
        dy = np.array([solution[self.node["equation", i]] for i in range(len(p.e))])
        rates = {i: (solution[self.node["bound", i]] + by_row[i]) / total[i] for i in self.bounded}
        for i in self.single:
            ((j, value),) = self.B[i].items()
            rates[i] = value * dx[j]
        change = np.array([sign * rates[i] for i, sign in self.sides])
        change_cone = self._cone_values(dx)
        dz = pull - weights * change
        return _Point(dx, dy, change_cone + now.cone, change + now.bounds + self.softness * dz, _rows(dz_cone), dz)

    def _residuals(self, point: _Point) -> _Residuals:
        p, x = self.problem, point.x
        Hx: list[Any] = [0.0] * len(x)
        for i, row in enumerate(self.H):
            for j, value in row.items():
                Hx[i] = Hx[i] + value * x[j]
                if i != j:
                    Hx[j] = Hx[j] + value * x[i]
        objective = sum_of((0.5 * a + b) * c for a, b, c in zip(Hx, p.g, x, strict=True))
        # The gradient of the Lagrangian, H x + g + E^T y - B^T z - the multipliers of the cones.
        gradient = [a + b for a, b in zip(Hx, p.g, strict=True)]
        for i, row in enumerate(self.E):
            for j, value in row.items():
                gradient[j] = gradient[j] + value * point.y[i]
        by_row: dict[int, Any] = {}
        for (i, sign), z in zip(self.sides, point.z, strict=True):
            by_row[i] = by_row[i] + sign * z if i in by_row else sign * z
        for i, z in by_row.items():
            for j, value in self.B[i].items():
                gradient[j] = gradient[j] - value * z
        for (one, two, normal), mu, z in zip(p.cones, p.friction, point.z_cone, strict=True):
            for j, value in ((normal, mu * z[0]), (one, z[1]), (two, z[2])):
                gradient[j] = gradient[j] - value
        equations = []
        for i, (row, y) in enumerate(zip(self.E, point.y, strict=True)):
            equations.append(_product(row, x) - p.e[i] - p.compliance[i] * y)
            objective = objective + 0.5 * p.compliance[i] * y * y
        products = sum_of([*(point.s * point.z), *(point.s_cone * point.z_cone).reshape(-1)])
        return _Residuals(
            np.array(gradient),
            np.array(equations),
            self._cone_values(x) - point.s_cone,
            self._margins(x) + self.softness * point.z - point.s,
            products / max(self.degree, 1),
            1.0 + abs(objective),
        )

    def _margins(self, x: Array) -> Array:
        """Return the distances from the bounds, (k,), negative where one is exceeded."""
        p = self.problem
        rows = {i: _product(self.B[i], x) for i, _ in self.sides}
        return np.array([(rows[i] - p.lower[i]) if sign > 0 else (p.upper[i] - rows[i]) for i, sign in self.sides])

    def _cone_values(self, x: Array) -> Array:
        """Return (mu x_n, x_1, x_2) of each cone, (m, 3)."""
        p = self.problem
        return _rows([[mu * x[c], x[a], x[b]] for (a, b, c), mu in zip(p.cones, p.friction, strict=True)])

    def _ratio(self, point: _Point, step: _Point, least: Any) -> Any:
        """Return 1 / t of the largest step t within the cones and bounds, times `least`, at least 1."""
        ratios = [-ds / s for s, ds in zip(point.s, step.s, strict=True)]
        ratios += [-dz / z for z, dz in zip(point.z, step.z, strict=True)]
        ratios += [soc.boundary_ratio(s, ds) for s, ds in zip(point.s_cone, step.s_cone, strict=True)]
        ratios += [soc.boundary_ratio(z, dz) for z, dz in zip(point.z_cone, step.z_cone, strict=True)]
        return _largest([1.0, *(least * r for r in ratios)])

    def _error(self, now: _Residuals) -> Any:
        return _largest([0.0, *np.abs(now.stationarity)])

    def _state(self, point: _Point, now: _Residuals) -> Array:
        """Return point and residuals as one vector, which ends with 1 if the iterations go on and 0 otherwise."""
        accuracy = self.tolerance * now.scale
        primal = _largest([0.0, *np.abs(np.concatenate([now.equations, now.cone.reshape(-1), now.bounds]))])
        dual = np.maximum(self._error(now), self.degree * now.complementarity)
        active = where((dual > accuracy) | (primal > self.tolerance), 1.0, 0.0)
        parts = [np.asarray(part).reshape(-1) for part in (*point, *now[:4])]
        return np.concatenate([*parts, np.array([now.complementarity, now.scale, active])])

    def _unpacked(self, state: Array) -> tuple[_Point, _Residuals]:
        x, y, s_cone, s, z_cone, z, gradient, equations, cone, bounds, rest = np.split(state, self.cuts)
        point = _Point(x, y, s_cone.reshape(-1, 3), s, z_cone.reshape(-1, 3), z)
        return point, _Residuals(gradient, equations, cone.reshape(-1, 3), bounds, rest[0], rest[1])


def _sparse(A: Array) -> list[dict[int, Any]]:
    """Return for each row its entries that are not zero, by column."""
    return [{j: value for j, value in enumerate(row) if not is_zero(value)} for row in A]


def _product(row: dict[int, Any], x: Array) -> Any:
    return sum_of(value * x[j] for j, value in row.items())


def _upper(S: Array) -> Array:
    """Return the upper triangle of a symmetric matrix, (n, n)."""
    return np.array([[value if i <= j else 0.0 for j, value in enumerate(row)] for i, row in enumerate(S)])


def _rows(rows: Sequence[Any]) -> Array:
    return np.array(rows).reshape(-1, 3)


def _largest(values: Sequence[Any]) -> Any:
    largest: Any = values[0]
    for value in values[1:]:
        largest = np.maximum(largest, value)
    return largest
