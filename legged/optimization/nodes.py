"""The traced functions of a node: its motion and cost in a rollout, and its linear-quadratic model.

Stages, with the final state, are nodes of one kind, and impacts of another. All terms of a kind are compiled together;
a term that a node does not have gets zero weight there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from legged.compiler import BatchKernel, jacobian, where
from legged.optimization.dynamics import ContactModel, position_derivatives, time_step
from legged.optimization.terms import Constraint, Point, Term
from legged.robot.configuration import difference, integrate
from legged.spatial import Array, is_zero

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
        rollout, forces, quadratic: The compiled functions.
    """

    def __init__(self, equations: ContactModel, terms: Sequence[Term], sizes: Sequence[int], nu: int):
        """Assign residuals and inputs to the terms, and prepare the compiled functions.

        Args:
            equations: The equations of motion. terms: Distinct terms. sizes: Number of residuals of each.
            nu: Number of controls, dimensionless.
        """
        self.equations, self.terms, self.nu = equations, list(terms), nu
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
        self.rollout = BatchKernel(
            self._rollout,
            {
                **state,
                **{
                    "q0": (self.nq,),
                    "v0": (self.nv,),
                    "u0": (nu,),
                    "feedforward": (nu,),
                    "gain": (nu, nx),
                    "alpha": (),
                },
                **{"gap": (nx,), "lower": (nu,), "upper": (nu,)},
                **common,
            },
        )
        self.forces = BatchKernel(self._forces, {"q": (self.nq,), "f": (m,)})
        self.quadratic = BatchKernel(
            self._quadratic,
            {**state, "u": (nu,), "a": (self.nv,), "f": (m,), "q1": (self.nq,), "v1": (self.nv,), **common},
        )

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
        self, q: Array, v: Array, q0: Array, v0: Array, u0: Array, feedforward: Array, gain: Array, alpha: Any,
        gap: Array, lower: Array, upper: Array, mask: Array, h: Any, instant: Any, t: Any, w: Array, p: Array,
    ) -> tuple:  # fmt: skip
        """Return the next state, the control, the cost, and the motion of one node of a rollout with feedback.

            u = clip(u0 + alpha k + K (x - x0)),      x1 = f(x, u) + (alpha - 1) gap

        The cost is multiplied by instant + h: `instant` is 1 at impacts and the final state, whose h is 0, else 0.
        Where the motion diverges, the state stays and the cost is `_DIVERGED_COST`, so that the line search rejects it.

        Source: Mastalli and others 2020, "Crocoddyl: an efficient and versatile framework for multi-contact optimal
        control", equations (13) to (15).
        """
        robot, equations = self.equations.robot, self.equations
        dx = np.concatenate([difference(robot, q0, q), v - v0])
        u = u0 + alpha * feedforward + gain @ dx
        u = np.array([where(x < lo, lo, where(x > up, up, x)) for x, lo, up in zip(u, lower, upper, strict=True)])
        a, f = equations.solve(q, v, u, mask)
        if equations.impact:
            q1, v1 = q, v + a
        else:
            q1, v1 = time_step(robot, q, v, a, h)
        remaining = (alpha - 1.0) * gap
        q1, v1 = integrate(robot, q1, remaining[: self.nv]), v1 + remaining[self.nv :]
        at = self.point(q, v, u, f, t)
        cost = 0.0 * t
        for number, rows in enumerate(self.residual_slices):
            for weight, r in zip(w[rows], self.residual(number, at, p), strict=True):
                cost = cost + 0.5 * weight * where(weight > 0.0, r * r, 0.0)
        cost = (instant + h) * cost
        square = v1 @ v1 + 0.0 * cost
        is_finite = (square < _LARGEST_SQUARE) & (cost < _DIVERGED_COST)

        def selected(x: Array, otherwise: Array) -> Array:
            return np.array([where(is_finite, a, b) for a, b in zip(x, otherwise, strict=True)])

        zero = np.zeros
        return (
            *(selected(q1, q), selected(v1, v), selected(u, u0), where(is_finite, cost, _DIVERGED_COST)),
            *(selected(a, zero(len(a))), selected(f, zero(len(f)))),
        )

    def _quadratic(
        self, q: Array, v: Array, u: Array, a: Array, f: Array, q1: Array, v1: Array,
        mask: Array, h: Any, instant: Any, t: Any, w: Array, p: Array,
    ) -> tuple:  # fmt: skip
        """Return the gap to the next node, the parts of the linear dynamics, and the quadratic model of the cost.

        The Hessian of the cost, in x, u and the contact forces, is the Gauss-Newton approximation.
        """
        robot, nv, equations = self.equations.robot, self.nv, self.equations
        if equations.impact:
            after, moved = v + a, q
            T, N = position_derivatives(robot, q, np.zeros(nv), 0.0 * h, q1)
            N = np.zeros((nv, nv))
        else:
            moved, after = time_step(robot, q, v, a, h)
            T, N = position_derivatives(robot, q, after, h, q1)
        gap = np.concatenate([difference(robot, q1, moved), after - v1])
        by = equations.linearize(q, v, a, f, mask)
        derivatives = np.concatenate(
            [np.concatenate([by.tau_q, by.tau_v], axis=1), np.concatenate([by.row_q, by.row_v], axis=1)]
        )
        weights = (instant + h) * w
        gradient, hessian, residuals = self._cost(q, v, u, f, t, weights, p)
        n = self.size
        return (
            gap, T, N, by.M_inv, by.J_M_inv, by.contact_inertia, derivatives, gradient, hessian[:n, :n],
            hessian[n:, :n], hessian[n:, n:], residuals,
        )  # fmt: skip

    def _cost(self, q: Array, v: Array, u: Array, f: Array, t: Any, w: Array, p: Array) -> tuple:
        """Return gradient (n,), Hessian (n, n) of the cost in (dq, v, u, f), and the residuals."""
        nv, nu, m = self.nv, self.nu, len(f)
        size = 2 * nv + nu + m
        gradient: list[Any] = [0.0] * size
        hessian: list[list[Any]] = [[0.0] * size for _ in range(size)]
        residuals: list[Any] = []
        zero = np.zeros(size)
        for number, rows in enumerate(self.residual_slices):

            def deviated(
                z: Array, q: Array, v: Array, u: Array, f: Array, t: Any, p: Array, number: int = number
            ) -> Array:
                at = self.point(
                    integrate(self.equations.robot, q, z[:nv]),
                    v + z[nv : 2 * nv],
                    u + z[2 * nv : 2 * nv + nu],
                    f + z[2 * nv + nu :],
                    t,
                )
                return self.residual(number, at, p)

            r = self.residual(number, self.point(q, v, u, f, t), p)
            D = jacobian(deviated, "z", "forward")(zero, q, v, u, f, t, p)
            for i in range(len(r)):
                used = w[rows][i] > 0.0  # a term may have no finite value at nodes that do not have it
                entries = [(k, x) for k, x in enumerate(D[i].tolist()) if not is_zero(x)]
                entries = [(k, x if isinstance(x, float) else where(used, x, 0.0)) for k, x in entries]
                residuals.append(where(used, r[i], 0.0))
                weighted = w[rows][i] * residuals[-1]
                for j, (k, x) in enumerate(entries):
                    gradient[k] = gradient[k] + x * weighted
                    wx = w[rows][i] * x
                    for other, y in entries[j:]:
                        hessian[k][other] = hessian[k][other] + wx * y
        for i in range(size):
            for j in range(i):
                hessian[i][j] = hessian[j][i]
        as_array = np.empty((size, size), object)
        for i in range(size):
            as_array[i, :] = hessian[i]
        return np.array(gradient), as_array, np.array(residuals)
