"""The traced functions of a node: its motion and cost in a rollout, and its linear-quadratic model.

Stages, with the final state, are nodes of one kind, and impacts of another. All terms of a kind are compiled together;
a term that a node does not have gets zero weight there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from legged.compiler import BatchKernel, jacobian, where
from legged.optimization.equations.dynamics import ContactModel, Motion
from legged.optimization.equations.entries import Entries
from legged.optimization.equations.integration import (
    RungeKutta,
    chart_derivatives,
    position_derivatives,
    rate_derivatives,
    stage_points,
    time_step,
)
from legged.optimization.terms import Constraint, Point, Term
from legged.robot.configuration import difference, integrate
from legged.spatial import Array, is_zero, mirror

_LARGEST_SQUARE = 1e12  # of a velocity, in SI units: beyond it a rollout counts as diverged
_DIVERGED_COST = 1e300  # cost of a node at which a rollout diverges


class NodeModel:
    """The compiled functions of the nodes of one kind.

    Attributes:
        equations: The equations of motion. terms: The distinct terms of these nodes.
        residual_slices: Entries of each term among all residuals.
        parameter_slices: For each term, name of a parameter -> its entries among all inputs.
        multiplier_slices: Entries of the multipliers of each constraint among all inputs; None for a cost.
        residual_count, input_count: Numbers of residuals and inputs. size: Number of states and controls, 2 nv + nu.
        method: Runge-Kutta method of time steps, or None. stages: Number of its stages, 1 without one.
        phases: Number P of phases of free duration: derivatives by state and controls have P columns of zeros between
            them, and those by time and duration are computed.
        rollout, forces, quadratic: The compiled functions. points, stage: Those of the stages of a Runge-Kutta method.
        curvature: That of second derivatives. entries, stage_entries: What the vectors of `quadratic` and `stage` hold.
    """

    def __init__(
        self, equations: ContactModel, terms: Sequence[Term], sizes: Sequence[int], nu: int,
        method: RungeKutta | None = None, phases: int = 0,
    ):  # fmt: skip
        """Assign residuals and inputs to the terms, and prepare the compiled functions.

        Args:
            equations: The equations of motion. terms: Distinct terms. sizes: Number of residuals of each.
            nu: Number of controls, dimensionless. method: Runge-Kutta method of the problem, or None.
            phases: Number of phases of free duration, dimensionless.
        """
        self.equations, self.terms, self.nu = equations, list(terms), nu
        self.stages, self.method = len(method.inner) if method else 1, None if equations.impact else method
        self.phases = phases
        self.entries, self.stage_entries = Entries(), Entries()
        self.nv, self.nq = equations.robot.nv, equations.robot.nq
        self.size = 2 * self.nv + nu
        at = 0
        self.residual_slices: list[slice] = []
        self.multiplier_slices: list[slice | None] = []
        self.parameter_slices: list[dict[str, slice]] = []
        used = 0
        for term, size in zip(terms, sizes, strict=True):
            self.residual_slices.append(slice(at, at + size))
            at += size
            places: dict[str, slice] = {}
            for name, value in term.parameters.items():
                places[name] = slice(used, used + value.size)
                used += value.size
            self.parameter_slices.append(places)
            is_constraint = isinstance(term, Constraint)
            self.multiplier_slices.append(slice(used, used + size) if is_constraint else None)
            used += size if is_constraint else 0
        self.residual_count, self.input_count = at, used
        nx, m, c = 2 * self.nv, equations.rows, len(equations.contacts)
        common = {"mask": (c,), "h": (), "instant": (), "t": (), "w": (self.residual_count,), "p": (self.input_count,)}
        state = {"q": (self.nq,), "v": (self.nv,)}
        around = {"q0": (self.nq,), "v0": (self.nv,), "u0": (nu,), "gains": (nu, 1 + nx + phases)}
        line = {"factor_step": (phases,), "alpha": (), "gap": (nx,), "lower": (nu,), "upper": (nu,)}
        self.rollout = BatchKernel(self._rollout, {**state, **around, **line, **common})
        self.forces = BatchKernel(self._forces, {"q": (self.nq,), "f": (m,)})
        motion = {**state, "u": (nu,), "a": (self.nv,), "f": (m,)}
        after = {"q1": (self.nq,), "v1": (self.nv,)}
        if self.method:
            end = {"xi": (self.nv,), "end": (self.nv,)}
            self.quadratic = BatchKernel(self._quadratic_runge_kutta, {**motion, **after, **end, **common})
        else:
            self.quadratic = BatchKernel(self._quadratic, {**motion, **after, **common})
        self._curvature_inputs = {**motion, **after, "costate": (nx,), "multipliers": (self.nv + m,), **common}

    @cached_property
    def points(self) -> BatchKernel:
        """The stage points of a Runge-Kutta step."""
        return BatchKernel(self._points, {"v": (self.nv,), "a": (self.stages, self.nv), "h": ()})

    @cached_property
    def stage(self) -> BatchKernel:
        """The linear model of a stage of a Runge-Kutta step."""
        nv, rows = (self.nv,), (self.equations.rows,)
        contacts = (len(self.equations.contacts),)
        return BatchKernel(self._stage, {"q": (self.nq,), "xi": nv, "v": nv, "a": nv, "f": rows, "mask": contacts})

    @cached_property
    def inverse(self) -> BatchKernel:
        """The inverse of the equations of motion, which is the same for stages and impacts."""
        mask = (len(self.equations.contacts),)
        return BatchKernel(self._inverse, {"q": (self.nq,), "xi": (self.nv,), "mask": mask})

    @cached_property
    def curvature(self) -> BatchKernel:
        """The second derivatives of the terms and of the motion."""
        return BatchKernel(self._curvature, self._curvature_inputs)

    def point(self, q: Array, v: Array, u: Array, f: Array, t: Any) -> Point:
        """Return the argument of terms.

        Args:
            q: Configuration, (nq,). v: Velocity, (nv,). u: Controls, (nu,), [N m] or [N], joint axes.
            f: Multipliers, (m,), [N] and [N m], contact axes. t: Time, [s].
        """
        return Point(t, q, v, u, self.equations.forces(q, f))

    def _forces(self, q: Array, f: Array) -> tuple[Array, ...]:
        """Return the force on each contact, world axes."""
        return tuple(self.equations.forces(q, f).values())

    def residual(self, number: int, at: Point, p: Array) -> Array:
        """Return the residuals of a term as they enter the sum of squares, (n,).

        These are r of a cost, and r / scale + y of a constraint with multipliers y; of a barrier or an inequality the
        negative ones, and zero for the others.

        Args:
            number: Number of the term. at: The node. p: Inputs, (input_count,), any unit.
        """
        term, shift = self.terms[number], self.multiplier_slices[number]
        values = {
            name: p[place].reshape(term.parameters[name].shape) if term.parameters[name].shape else p[place][0]
            for name, place in self.parameter_slices[number].items()
        }
        r = np.asarray(term.function(self.equations.robot, at, **term.constants, **values)).reshape(-1)
        if shift is not None:
            r = r * (1.0 / term.scale) + p[shift]  # type: ignore[attr-defined]
        if term.form in ("barrier", "inequality"):
            r = np.array([where(x < 0.0, x, 0.0) for x in r])
        return r

    def _rollout(
        self, q: Array, v: Array, q0: Array, v0: Array, u0: Array, gains: Array, factor_step: Array,
        alpha: Any, gap: Array, lower: Array, upper: Array, mask: Array, h: Any, instant: Any, t: Any, w: Array,
        p: Array,
    ) -> tuple:  # fmt: skip
        """Return the next state, the control, the cost, and the motion of one node of a rollout with feedback.

            u = clip(u0 + alpha k + K (x - x0)),      x1 = f(x, u) + (alpha - 1) gap

        With free durations, x contains the factors of the phases, which change by alpha times `factor_step`.
        Costs are multiplied by instant + h: `instant` is 1 at impacts and the final state, whose h is 0, else 0.
        Where the motion diverges, the state stays and the cost is `_DIVERGED_COST`, so that the line search rejects it.

        Source: Mastalli and others 2020, "Crocoddyl: an efficient and versatile framework for multi-contact optimal
        control", equations (13) to (15).
        """
        robot = self.equations.robot
        dx = np.concatenate([difference(robot, q0, q), v - v0, alpha * factor_step])
        u = u0 + alpha * gains[:, 0] + gains[:, 1:] @ dx
        u = np.array([where(x < lo, lo, where(x > up, up, x)) for x, lo, up in zip(u, lower, upper, strict=True)])
        q1, v1, motions = self._advanced(q, v, u, mask, h)
        a, f = motions[0]
        remaining = (alpha - 1.0) * gap
        q1, v1 = integrate(robot, q1, remaining[: self.nv]), v1 + remaining[self.nv :]
        at = self.point(q, v, u, f, t)
        cost = 0.0 * t
        for number, rows in enumerate(self.residual_slices):
            length = self._length(number, instant, h)
            for weight, r in zip(w[rows], self.residual(number, at, p), strict=True):
                cost = cost + 0.5 * length * weight * where(weight > 0.0, r * r, 0.0)
        square = v1 @ v1 + 0.0 * cost
        is_finite = (square < _LARGEST_SQUARE) & (cost < _DIVERGED_COST)

        def selected(x: Array, otherwise: Array) -> Array:
            return np.array([where(is_finite, a, b) for a, b in zip(x, otherwise, strict=True)])

        zero = np.zeros
        return (
            *(selected(q1, q), selected(v1, v), selected(u, u0), where(is_finite, cost, _DIVERGED_COST)),
            *(selected(x, zero(len(x))) for motion in motions for x in motion),
            *(zero(len(x)) for _ in range(self.stages - len(motions)) for x in (a, f)),
        )

    def _advanced(self, q: Array, v: Array, u: Array, mask: Array, h: Any) -> tuple[Array, Array, list[Motion]]:
        """Return the next state, (nq,) and (nv,), and the motions of the stages of the step."""
        robot, motions = self.equations.robot, list[Motion]()
        if self.method:

            def acceleration(_: int, xi: Array, velocity: Array) -> Array:
                motions.append(self.equations.solve(integrate(robot, q, xi), velocity, u, mask))
                return motions[-1].a

            points, velocities, _ = stage_points(robot, self.method, v, h, acceleration)
            return integrate(robot, q, points[-1]), velocities[-1], motions
        motion = self.equations.solve(q, v, u, mask)
        after = (q, v + motion.a) if self.equations.impact else time_step(robot, q, v, motion.a, h)
        return *after, [motion]

    def _length(self, number: int, instant: Any, h: Any) -> Any:
        """Return the factor of a term's weights: costs of a stage are multiplied by its duration, constraints not."""
        return 1.0 if isinstance(self.terms[number], Constraint) else instant + h

    def _quadratic(
        self, q: Array, v: Array, u: Array, a: Array, f: Array, q1: Array, v1: Array,
        mask: Array, h: Any, instant: Any, t: Any, w: Array, p: Array,
    ) -> tuple:  # fmt: skip
        """Return the gap to the next node, the residuals, and the parts of the linear-quadratic model.

        The Hessian of the cost, in x, u and the contact forces, is the Gauss-Newton approximation.
        """
        robot, nv = self.equations.robot, self.nv
        if self.equations.impact:
            after, moved = v + a, q
            T, N = position_derivatives(robot, q, np.zeros(nv), 0.0 * h, q1)
            N = np.zeros((nv, nv))
        else:
            moved, after = time_step(robot, q, v, a, h)
            T, N = position_derivatives(robot, q, after, h, q1)
        gap = np.concatenate([difference(robot, q1, moved), after - v1])
        *cost, residuals = self._cost(q, v, u, f, t, h, instant, w, p)
        return gap, residuals, self.entries.packed([T, N, self._derivatives(q, v, a, f, mask), *cost])

    def _derivatives(self, q: Array, v: Array, a: Array, f: Array, mask: Array) -> Array:
        """Return the derivatives of the equations of motion by state and controls."""
        actuated, by_u = self.equations.actuated, np.zeros((self.nv + len(f), self.nu))
        if not self.equations.impact:
            by_u[list(actuated), range(len(actuated))] = -1.0
        return self._spread(np.concatenate([*self.equations.derivatives(q, v, a, f, mask), by_u], axis=1), 1)

    def _inverse(self, q: Array, xi: Array, mask: Array) -> tuple[Array, ...]:
        """Return the matrices of the inverse of the equations of motion at integrate(q, xi)."""
        return self.equations.inverse(integrate(self.equations.robot, q, xi), mask)

    def _spread(self, array: Array, axis: int, first: int = 0) -> Array:
        """Return derivatives by state and controls with zeros between them, `first` entries after their beginning."""
        before, after = np.split(array, [first + 2 * self.nv], axis=axis)
        shape = list(array.shape)
        shape[axis] = self.phases
        return np.concatenate([before, np.zeros(shape), after], axis=axis)

    def _quadratic_runge_kutta(
        self, q: Array, v: Array, u: Array, a: Array, f: Array, q1: Array, v1: Array, xi: Array, end: Array,
        mask: Array, h: Any, instant: Any, t: Any, w: Array, p: Array,
    ) -> tuple:  # fmt: skip
        """Return gap, residuals, derivatives of the next configuration by q and xi, and the model of the cost."""
        robot = self.equations.robot
        gap = np.concatenate([difference(robot, q1, integrate(robot, q, xi)), end - v1])
        *cost, residuals = self._cost(q, v, u, f, t, h, instant, w, p)
        return gap, residuals, self.entries.packed([*chart_derivatives(robot, q, xi, q1), *cost])

    def _points(self, v: Array, a: Array, h: Any) -> tuple:
        """Return the chart coordinates and velocities of stages and end, and the chart rates of stages."""
        assert self.method
        points, velocities, rates = stage_points(self.equations.robot, self.method, v, h, lambda i, xi, v: a[i])
        return *points, *velocities, *rates

    def _stage(self, q: Array, xi: Array, v: Array, a: Array, f: Array, mask: Array) -> tuple:
        """Return the linear model of the motion at a stage of a step, and the derivatives of its chart."""
        robot = self.equations.robot
        moved = integrate(robot, q, xi)
        charts = *chart_derivatives(robot, q, xi, moved), *rate_derivatives(robot, xi, v)
        return (self.stage_entries.packed([self._derivatives(moved, v, a, f, mask), *charts]),)

    def _moved_residual(
        self, number: int, z: Array, q: Array, v: Array, u: Array, f: Array, t: Any, h: Any, instant: Any, p: Array
    ) -> Array:
        """Return `residual` at deviations z of (q, v, u, f), or of (q, v, u, f, t, h), (n,).

        A deviation of the duration changes the factor of the weight of costs; the residuals are multiplied by its root.
        """
        nv, n = self.nv, self.size
        moved_q, moved_v = integrate(self.equations.robot, q, z[:nv]), v + z[nv : 2 * nv]
        moved_u, moved_f = u + z[2 * nv : n], f + z[n : n + len(f)]
        if not self.phases:
            return self.residual(number, self.point(moved_q, moved_v, moved_u, moved_f, t), p)
        r = self.residual(number, self.point(moved_q, moved_v, moved_u, moved_f, t + z[n + len(f)]), p)
        if isinstance(self.terms[number], Constraint):
            return r
        return r * np.sqrt(1.0 + z[n + len(f) + 1] / (instant + h))

    def _cost(
        self, q: Array, v: Array, u: Array, f: Array, t: Any, h: Any, instant: Any, w: Array, p: Array
    ) -> tuple[Array, ...]:
        """Return the model of the cost in z = (dq, v, u) and y = (f, t, h), and the residuals.

        The model has three blocks of second derivatives: zz and yz by (1, z), whose first columns are the gradients by
        z and y, and yy. The upper triangle of zz is zero, except in the block of the controls.
        """
        nv, nu, m = self.nv, self.nu, len(f) + 2 * bool(self.phases)
        n, size = self.size, 2 * nv + nu + m
        gradient: list[Any] = [0.0] * size
        hessian: list[list[Any]] = [[0.0] * size for _ in range(size)]
        residuals: list[Any] = []
        zero = np.zeros(size)
        for number, rows in enumerate(self.residual_slices):

            def deviated(
                z: Array, q: Array, v: Array, u: Array, f: Array, t: Any, h: Any, instant: Any, p: Array,
                number: int = number,
            ) -> Array:  # fmt: skip
                return self._moved_residual(number, z, q, v, u, f, t, h, instant, p)

            r = self.residual(number, self.point(q, v, u, f, t), p)
            D = jacobian(deviated, "z", "forward")(zero, q, v, u, f, t, h, instant, p)
            weights = self._length(number, instant, h) * w[rows]
            for i in range(len(r)):
                used = weights[i] > 0.0  # a term may have no finite value at nodes that do not have it
                entries = [(k, x) for k, x in enumerate(D[i].tolist()) if not is_zero(x)]
                entries = [(k, x if isinstance(x, float) else where(used, x, 0.0)) for k, x in entries]
                residuals.append(where(used, r[i], 0.0))
                weighted = weights[i] * residuals[-1]
                for j, (k, x) in enumerate(entries):
                    gradient[k] = gradient[k] + x * weighted
                    wx = weights[i] * x
                    for other, y in entries[j:]:
                        hessian[k][other] = hessian[k][other] + wx * y
        H, g = mirror(np.array(hessian)), np.array(gradient)
        lower = np.tril(H[:n, :n])
        lower[2 * nv :, 2 * nv :] = H[2 * nv : n, 2 * nv : n]
        zz = np.concatenate([np.zeros((1, 1 + n)), np.concatenate([g[:n, None], lower], axis=1)])
        yz = self._spread(np.concatenate([g[n:, None], H[n:, :n]], axis=1), 1, 1)
        return self._spread(self._spread(zz, 0, 1), 1, 1), yz, H[n:, n:], np.array(residuals)

    def _curvature(
        self, q: Array, v: Array, u: Array, a: Array, f: Array, q1: Array, v1: Array, costate: Array,
        multipliers: Array, mask: Array, h: Any, instant: Any, t: Any, w: Array, p: Array,
    ) -> tuple:  # fmt: skip
        """Return the part of the Hessian of the Lagrangian that the Gauss-Newton approximation omits, in three blocks.

        The Lagrangian is the cost plus the products of the costates with the next state and of the multipliers with
        the equations of motion. The blocks are those of z = (dq, v, u) and y = (f, t, h, a): zz, yz and yy.
        """
        nv, n = self.nv, self.size
        m = len(f) + 2 * bool(self.phases)
        H, zero = np.zeros((n + m + nv, n + m + nv)), np.zeros(n + m + nv)
        for number, rows in enumerate(self.residual_slices):
            r = self.residual(number, self.point(q, v, u, f, t), p)
            used = [x > 0.0 for x in w[rows]]
            length = self._length(number, instant, h)
            factors = np.array([where(on, length * x * y, 0.0) for on, x, y in zip(used, w[rows], r, strict=True)])

            def weighted(
                z: Array, c: Array, q: Array, v: Array, u: Array, f: Array, t: Any, h: Any, instant: Any, p: Array,
                number: int = number,
            ) -> Any:  # fmt: skip
                return c @ self._moved_residual(number, z, q, v, u, f, t, h, instant, p)

            part = _hessian(weighted, zero[: n + m], factors, q, v, u, f, t, h, instant, p)
            H = H + np.pad(_where_used(used, part), (0, nv))
        H = H + _hessian(self._lagrangian, zero, q, v, u, a, f, q1, v1, costate, multipliers, mask, h)
        return self._spread(self._spread(H[:n, :n], 0), 1), self._spread(H[n:, :n], 1), H[n:, n:]

    def _lagrangian(
        self, z: Array, q: Array, v: Array, u: Array, a: Array, f: Array, q1: Array, v1: Array, costate: Array,
        multipliers: Array, mask: Array, h: Any,
    ) -> Any:  # fmt: skip
        """Return costate . next state + multipliers . equations, at deviations z of (q, v, u, f, a) or with (t, h)."""
        robot, nv, n = self.equations.robot, self.nv, self.size
        q, v, u = integrate(robot, q, z[:nv]), v + z[nv : 2 * nv], u + z[2 * nv : n]
        f, a = f + z[n : n + len(f)], a + z[len(z) - nv :]
        if self.phases and not self.equations.impact:
            h = h + z[n + len(f) + 1]
        after = (q, v + a) if self.equations.impact else time_step(robot, q, v, a, h)
        step = np.concatenate([difference(robot, q1, after[0]), after[1] - v1])
        return costate @ step + multipliers @ self.equations.residuals(q, v, u, Motion(a, f), mask)


def _hessian(function: Any, z: Array, *arguments: Any) -> Array:
    """Return the second derivatives of a number by z, (n, n), of which the upper triangle is computed and mirrored."""
    return mirror(jacobian(jacobian(function, 0, "reverse"), 0, "forward")(z, *arguments))


def _where_used(used: Sequence[Any], matrix: Array) -> Array:
    """Return the matrix if one of the conditions holds, otherwise zeros."""
    result, any_used = np.array(matrix, object), used[0] if used else False
    for condition in used[1:]:
        any_used = any_used | condition
    for index, x in np.ndenumerate(result):
        if not is_zero(x):
            result[index] = x if isinstance(x, float) else where(any_used, x, 0.0)
    return result
