"""The backward pass of differential dynamic programming: a Riccati recursion over the linear-quadratic model.

    Q = H + F^T V F,      q = g + F^T (v + V gap),      u = k + K x,      Q_uu [k K] = -[q_u Q_ux]
    V = Q_xx + Q_xu K,    v = q_x + Q_xu k

It is computed for (1, x) instead of x, so that matrices contain the vectors: the first column of F is the gap, those of
H, Q and V are gradients, and that of K the feedforward k. With Q_uu = L L^T, Z = L^-1 [q_u Q_ux] and [k K] = -L^-T Z.
Machine code computes the matrix products in sequence, in parallel for several problems. Of symmetric matrices the lower
triangle is computed, and copied to the upper one where a product needs it.

Bounds of controls are met by a projected Newton method on the small quadratic program of each node.

Source: Mastalli and others 2020, equations (8) to (12); Tassa, Mansard, Todorov 2014, "Control-limited differential
dynamic programming", section III.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from legged.compiler import Call, Counts, FusedCalls, default_threads, padded_rows
from legged.spatial import Array


class Backward(NamedTuple):
    """The expected change of the cost without gaps, alpha slope + alpha^2 curvature / 2 for a step length alpha.

    Attributes:
        slope: Sum of q_u k, (problems,).
        curvature: Sum of k^T Q_uu k, (problems,).
        failed_node: Last node whose Q_uu is not positive definite, or -1, (problems,). Such problems have a zero step.
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
        gap: State after each node minus the state of the next node, (problems, nodes + 1, nx), any unit.
        gradient, hessian: Of the cost, (problems, nodes + 1, nx + nu) and (.., nx + nu, nx + nu), any unit; only the
            lower triangle of the block of the state is read.
        cost: Gradient, in the first column, and Hessian, (problems, nodes + 1, 1 + nx + nu, 1 + nx + nu), any unit.
        gains: Feedforward k, in the first column, and feedback K, (problems, nodes + 1, nu, 1 + nx), any unit.
        feedforward, gain: Parts of `gains`, (.., nu) and (.., nu, nx).
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
        self.gains = np.zeros((problems, nodes + 1, nu, m))
        self._dynamics[..., 0, 0] = 1.0
        self.F, self.gap = self._dynamics[..., 1:, 1:], self._dynamics[..., 1:, 0]
        self.gradient, self.hessian = self.cost[..., 1:, 0], self.cost[..., 1:, 1:]
        self.feedforward, self.gain = self.gains[..., 0], self.gains[..., 1:]
        self._Q, self._VF, self._V = (np.zeros((problems, *shape)) for shape in ((n, n), (m, n), (m, m)))
        self._factor, self._info = padded_rows(problems, nu, n + nu), np.zeros((nodes, problems), np.int32)
        self._qu, self._regularization = np.zeros((problems, nodes + 1, nu)), np.zeros(problems)
        self._step, self._products = np.zeros((2, nodes + 1, problems, n))
        self._nodes = [self._node_calls(k) for k in range(nodes)]
        self._start = Call.mirror(self.cost[:, -1, :m, :m])
        every = [call for calls in reversed(self._nodes) for part in calls for call in part]
        self._pass = FusedCalls([self._start, *every], 1)
        self._parts = [[FusedCalls(part, 1) for part in calls] for calls in self._nodes]
        steps = [call for k in range(nodes) for call in self._direction_calls(k)]
        self._directions = FusedCalls([*steps, *self._product_calls(nodes)], 1)

    @property
    def counts(self) -> Counts:
        """Operations of `backward` without bounds, for all problems and nodes."""
        return self._pass.counts

    @property
    def direction_counts(self) -> Counts:
        """Operations of `directional_derivatives`, for all problems and nodes."""
        return self._directions.counts

    def _node_calls(self, k: int) -> tuple[list[Call], list[Call]]:
        """Return the calls that compute Q, k and K of a node, and those that compute V."""
        problems, nodes, nx, nu = self._sizes
        m, n, Q, factor = 1 + nx, 1 + nx + nu, self._Q, self._factor
        after = self.cost[:, -1, :m, :m] if k == nodes - 1 else self._V
        F, H, Qu, gains, VF = self._dynamics[:, k], self.cost[:, k], Q[:, m:], self.gains[:, k], self._VF
        F_T, product = F.swapaxes(-1, -2), Call.matrix_product
        solution = [
            product(VF, after, F),
            product(Q[:, :m, :m], F_T[:, :m], VF[:, :, :m], start=H[:, :m, :m], lower=True),
            product(Qu, F_T[:, m:], VF, start=H[:, m:]),
            product(self._qu[:, k, :, None], Qu[:, :, :1], np.ones((problems, 1, 1))),
            Call.cholesky_solve(Qu, factor, self._regularization, self._info[k]),
            product(gains, factor[:, :, n:].swapaxes(-1, -2), factor[:, :, :m], scale=-1.0),
        ]
        value = product(self._V, Qu[:, :, :m].swapaxes(-1, -2), gains, start=Q[:, :m, :m], lower=True)
        return solution, [value, Call.mirror(self._V)]

    def _direction_calls(self, k: int) -> list[Call]:
        """Return the calls that compute the controls of a node and the next state along the full step."""
        m, z, after = 1 + self._sizes[2], self._step[k, :, :, None], self._step[k + 1, :, :, None]
        return [
            Call.matrix_product(z[:, m:], self.gains[:, k], z[:, :m]),
            Call.matrix_product(after[:, :m], self._dynamics[:, k], z),
            *self._product_calls(k),
        ]

    def _product_calls(self, k: int) -> list[Call]:
        """Return the calls that multiply the model of the cost of a node by the full step."""
        cost, z = self.cost[:, k], self._step[k, :, :, None]
        return [Call.mirror(cost), Call.matrix_product(self._products[k, :, :, None], cost, z)]

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
        problems, nodes, _, _ = self._sizes
        self._regularization[...], self._info[...] = regularization, 0
        changed = np.zeros(problems)
        if bounds is None:
            self._pass(default_threads())
        else:
            FusedCalls([self._start], 1)(default_threads())
            for k in reversed(range(nodes)):
                self._parts[k][0](default_threads())
                changed += self._meet_bounds(k, (bounds[0][:, k], bounds[1][:, k]), shift)
                self._parts[k][1](default_threads())
        is_failed = np.asarray(self._info.any(axis=0))
        failed_node = np.where(is_failed, nodes - 1 - self._info[::-1].astype(bool).argmax(axis=0), -1)
        self.gains[is_failed], self._qu[is_failed] = 0.0, 0.0
        slope = (self._qu * self.feedforward)[:, :-1].sum(axis=(1, 2))
        V = np.where(is_failed[:, None, None], 0.0, self._V)
        return Backward(slope, changed - slope, failed_node, V[:, 1:, 0], V[:, 1:, 1:])

    def _meet_bounds(self, k: int, bounds: tuple[Array, Array], shift: Array | None) -> Array:
        """Replace k and K of a node where k exceeds bounds; return q_u k + k^T Q_uu k, which is zero elsewhere."""
        problems, _, nx, nu = self._sizes
        Q, gains, m, changed = self._Q, self.gains[:, k], 1 + nx, np.zeros(problems)
        expected = gains[:, :, 0].copy()
        is_failed = self._info[k:].any(axis=0)
        if shift is not None:
            expected += (gains[:, :, m - shift.shape[1] :] @ shift[:, :, None])[:, :, 0]
        which = np.flatnonzero(((expected < bounds[0]) | (expected > bounds[1])).any(axis=1) & ~is_failed)
        if len(which):
            qu, Qux = Q[which, m:, 0], Q[which, m:, 1:m]
            Quu = Q[which, m:, m:] + self._regularization[which, None, None] * np.eye(nu)
            own = None if shift is None else shift[which]
            u, K = _bounded_step(Quu, qu, Qux, (bounds[0][which], bounds[1][which]), own, expected[which])
            gains[which, :, 0], gains[which, :, 1:] = u, K
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
    """Return feedforward and feedback; arguments as in `bounded`, but the bounds hold for the controls at x = shift.

    Args:
        shift: Last entries of x, the others are zero, (problems, P), any unit; None for zero.
    """
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
