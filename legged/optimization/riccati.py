"""The backward pass of differential dynamic programming: a Riccati recursion over the linear-quadratic model.

    Q = H + F^T V F,      q = g + F^T (v + V gap),      u = k + K x,      Q_uu [k K] = -[q_u Q_ux]
    V = Q_xx + K^T Q_ux,    v = q_x + Q_xu k

It is computed for (1, x) instead of x, so that matrices contain the vectors: F the gap, H and Q the gradients, V the
gradient v, and K the feedforward k. The functions of BLAS and LAPACK follow each other in machine code, problems in
parallel.

Bounds of controls are met by a projected Newton method on the small quadratic program of each node.

Source: Mastalli and others 2020, equations (8) to (12); Tassa, Mansard, Todorov 2014, "Control-limited differential
dynamic programming", section III.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from legged.compiler import Call, FusedCalls, default_threads
from legged.spatial import Array


class Backward(NamedTuple):
    """The expected change of the cost without gaps, alpha slope + alpha^2 curvature / 2 for a step length alpha.

    Attributes:
        slope: Sum of q_u k, (problems,).
        curvature: Sum of k^T Q_uu k, (problems,).
        failed_node: Number of a node whose Q_uu is not positive definite, or -1, (problems,); the step is zero there.
        value_gradient, value_hessian: Of the value function at the first state, (problems, nx) and (problems, nx, nx).
    """

    slope: Array
    curvature: Array
    failed_node: Array
    value_gradient: Array
    value_hessian: Array


class RiccatiRecursion:
    """The linear-quadratic model of problems, in memory where the recursion reads it, and its solution.

    Attributes:
        F: Derivatives of the next state, (problems, nodes + 1, nx, nx + nu), any unit.
        gap: Of each node, (problems, nodes + 1, nx), any unit.
        gradient, hessian: Of the cost, (problems, nodes + 1, nx + nu) and the upper triangle of (.., nx + nu, nx + nu),
            any unit.
        cost: Both of them, (problems, nodes + 1, 1 + nx + nu, 1 + nx + nu): the gradient is in the first row.
        feedforward: k, (problems, nodes + 1, nu), any unit. transposed_gain: K^T, (.., nx, nu), any unit.
    """

    def __init__(self, problems: int, nodes: int, nx: int, nu: int):
        """Allocate memory, and prepare the calls.

        Args:
            problems: Number of problems. nodes: Number of nodes besides the final one. nx, nu: Sizes of state and
                controls, dimensionless.
        """
        self._sizes = problems, nodes, nx, nu
        m, n = 1 + nx, 1 + nx + nu
        self._dynamics, self.cost = np.zeros((problems, nodes + 1, m, n)), np.zeros((problems, nodes + 1, n, n))
        self._gains = np.zeros((problems, nodes + 1, m, nu))
        self._dynamics[..., 0, 0] = 1.0
        self.F, self.gap = self._dynamics[..., 1:, 1:], self._dynamics[..., 1:, 0]
        self.gradient, self.hessian = self.cost[..., 0, 1:], self.cost[..., 1:, 1:]
        self.feedforward, self.transposed_gain = self._gains[..., 0, :], self._gains[..., 1:, :]
        self._Q, self._VF = np.zeros((2, problems, n, n)), np.zeros((problems, m, n))
        self._factor, self._info = np.zeros((problems, nu, nu)), np.zeros((nodes, problems), np.int32)
        self._qu, self._regularization = np.zeros((problems, nodes + 1, nu)), np.zeros(problems)
        self._step, self._products = np.zeros((2, nodes + 1, problems, n))
        self._nodes = [self._node_calls(k) for k in range(nodes)]
        self._pass = FusedCalls([call for calls in reversed(self._nodes) for part in calls for call in part], 1)
        self._parts = [[FusedCalls(part, 1) for part in calls] for calls in self._nodes]
        steps = [call for k in range(nodes) for call in self._direction_calls(k)]
        self._directions = FusedCalls([*steps, self._product_call(nodes)], 1)

    def _node_calls(self, k: int) -> tuple[list[Call], list[Call]]:
        """Return the calls that compute Q, k and K of a node, and those that compute V.

        BLAS sees the transpose of each array. V is the block of (1, x) of the Q of the node after, of which the upper
        triangle is used.
        """
        problems, nodes, nx, nu = self._sizes
        m, n, Q, gains, factor = 1 + nx, 1 + nx + nu, self._Q[k % 2], self._gains[:, k], self._factor
        V = self.cost[:, -1] if k == nodes - 1 else self._Q[(k + 1) % 2]
        F, H, Qux, Quu, diagonal = self._dynamics[:, k], self.cost[:, k], Q[:, 0, m:], Q[:, m:, m:], Q[:, m:, m:]

        def call(name: str, *arguments: Array | str | int | float) -> Call:
            return Call.fortran(name, problems, *arguments)

        solution = [
            call("dcopy", n * n, H, 1, Q, 1),
            call("dsymm", "R", "L", n, m, 1.0, V, n, F, n, 0.0, self._VF, n),
            call("dgemm", "N", "T", n, n, m, 1.0, self._VF, n, F, n, 1.0, Q, n),
            call("daxpy", nu, 1.0, self._regularization, 0, diagonal, n + 1),
            call("dcopy", nu, Qux, 1, self._qu[:, k], 1),
            call("dlacpy", "L", nu, nu, Quu, n, factor, nu),
            call("dpotrf", "L", nu, factor, nu, self._info[k]),
            call("dlacpy", "A", nu, m, Qux, n, gains, nu),
            call("dtrsm", "L", "L", "N", "N", nu, m, -1.0, factor, nu, gains, nu),
            call("dtrsm", "L", "L", "T", "N", nu, m, 1.0, factor, nu, gains, nu),
        ]
        return solution, [call("dgemm", "T", "N", m, m, nu, 1.0, Qux, n, gains, nu, 1.0, Q, n)]

    def _direction_calls(self, k: int) -> list[Call]:
        """Return the calls that compute the controls of a node and the next state along the full step."""
        problems, _, nx, nu = self._sizes
        m, n, z, after = 1 + nx, 1 + nx + nu, self._step[k], self._step[k + 1]
        return [
            Call.fortran("dgemv", problems, "N", nu, m, 1.0, self._gains[:, k], nu, z, 1, 0.0, z[:, m:], 1),
            Call.fortran("dgemv", problems, "T", n, m, 1.0, self._dynamics[:, k], n, z, 1, 0.0, after, 1),
            self._product_call(k),
        ]

    def _product_call(self, k: int) -> Call:
        """Return the call that multiplies the model of the cost of a node by the full step."""
        n = self.cost.shape[-1]
        return Call.fortran(
            "dsymv", len(self.cost), "L", n, 1.0, self.cost[:, k], n, self._step[k], 1, 0.0, self._products[k], 1
        )

    def backward(
        self, regularization: Array, bounds: tuple[Array, Array] | None = None, shift: Array | None = None
    ) -> Backward:
        """Compute the feedforward k and the feedback K of all nodes.

        Args:
            regularization: Added to the diagonal of Q_uu, (problems,), any unit.
            bounds: Least and largest change of the controls, (problems, nodes + 1, nu) each, [N m] or [N], joint axes;
                or None.
            shift: Expected step of the last entries of the state, (problems, P), any unit, which are constant: bounds
                are those of the controls after it. None for zero.
        """
        problems, nodes, nx, _ = self._sizes
        self._regularization[...], self._info[...] = regularization, 0
        changed = np.zeros(problems)
        if bounds is None:
            self._pass(default_threads())
        else:
            for k in reversed(range(nodes)):
                self._parts[k][0](default_threads())
                changed += self._meet_bounds(k, (bounds[0][:, k], bounds[1][:, k]), shift)
                self._parts[k][1](default_threads())
        is_failed = np.asarray(self._info.any(axis=0))
        failed_node = np.where(is_failed, nodes - 1 - self._info[::-1].astype(bool).argmax(axis=0), -1)
        self._gains[is_failed], self._qu[is_failed] = 0.0, 0.0
        slope = (self._qu * self.feedforward)[:, :-1].sum(axis=(1, 2))
        V = np.where(is_failed[:, None, None], 0.0, self._Q[0][:, : nx + 1, : nx + 1])
        hessian = np.triu(V[:, 1:, 1:]) + np.triu(V[:, 1:, 1:], 1).swapaxes(-1, -2)
        return Backward(slope, changed - slope, failed_node, V[:, 0, 1:].copy(), hessian)

    def _meet_bounds(self, k: int, bounds: tuple[Array, Array], shift: Array | None) -> Array:
        """Replace k and K of a node where k exceeds bounds; return q_u k + k^T Q_uu k, which is zero elsewhere."""
        problems, _, nx, _ = self._sizes
        Q, gains, m, changed = self._Q[k % 2], self._gains[:, k], 1 + nx, np.zeros(problems)
        expected = gains[:, 0].copy()
        is_failed = self._info[k:].any(axis=0)
        if shift is not None:
            expected += (shift[:, None] @ gains[:, m - shift.shape[1] :])[:, 0]
        which = np.flatnonzero(((expected < bounds[0]) | (expected > bounds[1])).any(axis=1) & ~is_failed)
        if len(which):
            qu, Qux = Q[which, 0, m:], Q[which, 1:m, m:].swapaxes(-1, -2)
            Quu = np.triu(Q[which, m:, m:]) + np.triu(Q[which, m:, m:], 1).swapaxes(-1, -2)
            own = None if shift is None else shift[which]
            u, K = _bounded_step(Quu, qu, Qux, (bounds[0][which], bounds[1][which]), own, expected[which])
            gains[which, 0], gains[which, 1:] = u, K.swapaxes(-1, -2)
            changed[which] = (qu * u).sum(axis=-1) + (u * (Quu @ u[..., None])[..., 0]).sum(axis=-1)
        return changed

    def directional_derivatives(self, start: Array) -> tuple[Array, Array]:
        """Return slope and curvature of the cost along the full step, (problems,) each.

        Args:
            start: Step of the first state, (problems, nx), any unit.
        """
        z = self._step
        z[0, :, 0], z[0, :, 1 : 1 + start.shape[1]] = 1.0, start
        self._directions(default_threads())
        slope = self._products[..., 0].sum(axis=0)
        return slope, (z[..., 1:] * self._products[..., 1:]).sum(axis=(0, 2)) - slope


def _bounded_step(
    Quu: Array, qu: Array, Qux: Array, bounds: tuple[Array, Array], shift: Array | None, start: Array | None = None
) -> tuple[Array, Array]:
    """Return feedforward and feedback whose control meets the bounds where the state deviates by the shift."""
    if shift is None or not shift.any():
        return bounded(Quu, qu, Qux, *bounds, start)
    moved = (Qux[..., -shift.shape[-1] :] @ shift[..., None])[..., 0]
    u, K = bounded(Quu, qu + moved, Qux, *bounds, start)
    return u - (K[..., -shift.shape[-1] :] @ shift[..., None])[..., 0], K


def parameter_step(
    result: Backward, count: int, regularization: Array, bounds: tuple[Array, Array]
) -> tuple[Array, Backward]:
    """Return the step of the last entries of the first state, (problems, count), which are free, and the new result.

    Args:
        result: That of `backward`. count: Number of these entries. regularization: (problems,), as there, any unit.
        bounds: Least and largest step, (problems, count) each, any unit.
    """
    g = result.value_gradient[:, -count:]
    H = result.value_hessian[:, -count:, -count:] + regularization[:, None, None] * np.eye(count)
    free = ~(((bounds[0] >= 0.0) & (g > 0.0)) | ((bounds[1] <= 0.0) & (g < 0.0)))
    H = np.where(free[:, :, None] & free[:, None, :], H, np.eye(count))  # entries at their bounds do not move
    is_failed = np.linalg.eigvalsh(H)[:, 0] <= 0.0
    H[is_failed], g = np.eye(count), np.where(is_failed[:, None], 0.0, g)
    step, _ = bounded(H, g, np.zeros((*g.shape, 0)), *bounds)
    slope = result.slope + (g * step).sum(axis=-1)
    curvature = result.curvature + (step * (H @ step[..., None])[..., 0]).sum(axis=-1)
    return step, result._replace(
        slope=slope, curvature=curvature, failed_node=np.where(is_failed, 0, result.failed_node)
    )


def bounded(
    Q: Array, q: Array, S: Array, lower: Array, upper: Array, start: Array | None = None
) -> tuple[Array, Array]:
    """Return the minimizer of u^T Q u / 2 + q^T u within bounds, (problems, nu), and the feedback K.

    K is the derivative of u with respect to x; it is zero for entries at their bounds.

    Args:
        Q: Positive definite matrices, (problems, nu, nu), any unit. q: Vectors, (problems, nu), any unit.
        S: Derivative of q by x, (problems, nu, nx), any unit.
        lower, upper: Bounds, (problems, nu), any unit, with lower <= upper.
        start: Guess of the minimizer, (problems, nu), any unit; zero by default.
    """
    nu = q.shape[-1]
    u = np.clip(np.zeros_like(q) if start is None else start, lower, upper)
    eye = np.eye(nu)
    for _ in range(20 + 2 * nu):
        slope = q + (Q @ u[..., None])[..., 0]
        held = ((u <= lower) & (slope > 0.0)) | ((u >= upper) & (slope < 0.0))
        free = ~held
        pair = free[..., :, None] & free[..., None, :]
        A = np.where(pair, Q, eye)
        move = -np.linalg.solve(A, np.where(free, slope, 0.0)[..., None])[..., 0]
        if not (np.abs(move) > 1e-9 * (1.0 + np.abs(u))).any():
            break
        length = np.ones(len(u))
        value = 0.5 * (u * (Q @ u[..., None])[..., 0]).sum(-1) + (q * u).sum(-1)
        for _ in range(30):
            trial = np.clip(u + length[:, None] * move, lower, upper)
            new = 0.5 * (trial * (Q @ trial[..., None])[..., 0]).sum(-1) + (q * trial).sum(-1)
            worse = new > value + 0.1 * (slope * (trial - u)).sum(-1) + 1e-15 * np.abs(value)
            if not worse.any():
                break
            length = np.where(worse, 0.5 * length, length)
        u = trial
    K = -np.linalg.solve(A, np.where(free[..., None], S, 0.0))
    return u, K
