"""The backward pass of differential dynamic programming: a Riccati recursion over the linear-quadratic model.

    Q = H + F^T V F,      q = g + F^T (v + V gap),      u = k + K x,      Q_uu [k K] = -[q_u Q_ux]
    V = Q_xx + Q_xu K,    v = q_x + Q_xu k

Bounds of controls are met by a projected Newton method on the small quadratic program of each node.

Source: Mastalli and others 2020, equations (8) to (12); Tassa, Mansard, Todorov 2014, "Control-limited differential
dynamic programming", section III.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import get_lapack_funcs

from legged.spatial import Array

dpotrf, dpotrs = get_lapack_funcs(("potrf", "potrs"), dtype=np.float64)


class Backward(NamedTuple):
    """The expected change of the cost without gaps, alpha slope + alpha^2 curvature / 2 for a step length alpha.

    Attributes:
        slope: Sum of q_u k, (problems,).
        curvature: Sum of k^T Q_uu k, (problems,).
        failed_node: Number of the node whose Q_uu is not positive definite, at which the pass ended, or -1.
        value_gradient, value_hessian: Of the value function at the first state, (problems, nx) and (problems, nx, nx).
    """

    slope: Array
    curvature: Array
    failed_node: int
    value_gradient: Array
    value_hessian: Array


def backward(
    F: Array, gap: Array, gradient: Array, hessian: Array, feedforward: Array, gain: Array, regularization: Array,
    bounds: tuple[Array, Array] | None = None, shift: Array | None = None,
) -> Backward:  # fmt: skip
    """Compute the feedforward k and the feedback K of all nodes.

    Args:
        F: Derivatives of the next state, (problems, nodes + 1, nx, nx + nu), any unit.
        gap: Of each node, (problems, nodes + 1, nx), any unit.
        gradient, hessian: Of the cost, (problems, nodes + 1, nx + nu) and (.., nx + nu, nx + nu), any unit.
        feedforward, gain: Arrays that receive k, (problems, nodes + 1, nu), and K, (.., nu, nx), any unit.
        regularization: Added to the diagonal of Q_uu, (problems,), any unit.
        bounds: Least and largest change of the controls, (problems, nodes + 1, nu) each, [N m] or [N], joint axes; or
            None.
        shift: Expected step of the last entries of the state, (problems, P), any unit, which are constant: bounds are
            those of the controls after it. None for zero.
    """
    if len(F) == 1:
        limits = None if bounds is None else (bounds[0][0], bounds[1][0])
        arrays = F[0], gap[0], gradient[0], hessian[0], feedforward[0], gain[0], float(regularization[0])
        return _backward_of_one(*arrays, limits, shift)
    problems, nodes, nx = len(F), F.shape[1] - 1, F.shape[2]
    nu = F.shape[3] - nx
    V, v = hessian[:, -1, :nx, :nx], gradient[:, -1, :nx]
    slope, curvature = np.zeros(problems), np.zeros(problems)
    extra = regularization[:, None, None] * np.eye(nu)
    for k in reversed(range(nodes)):
        Ft = F[:, k].swapaxes(-1, -2)
        Q = Ft @ (V @ F[:, k])
        Q += hessian[:, k]
        q = (Ft @ (v + (V @ gap[:, k, :, None])[..., 0])[..., None])[..., 0] + gradient[:, k]
        Quu = Q[:, nx:, nx:] + extra
        qu, Qux = q[:, nx:], Q[:, nx:, :nx]
        try:
            np.linalg.cholesky(Quu)
        except np.linalg.LinAlgError:
            return Backward(slope, curvature, k, v, V)
        if bounds is None:
            solution = np.linalg.solve(Quu, np.concatenate([qu[..., None], Qux], axis=-1))
            feedforward[:, k], gain[:, k] = -solution[..., 0], -solution[..., 1:]
        else:
            feedforward[:, k], gain[:, k] = _bounded_step(Quu, qu, Qux, (bounds[0][:, k], bounds[1][:, k]), shift)
        du, K = feedforward[:, k], gain[:, k]
        slope += (qu * du).sum(axis=-1)
        curvature += (du * (Quu @ du[..., None])[..., 0]).sum(axis=-1)
        KQ = K.swapaxes(-1, -2) @ Qux
        V = Q[:, :nx, :nx] + KQ + KQ.swapaxes(-1, -2) + K.swapaxes(-1, -2) @ (Quu @ K)
        V = 0.5 * (V + V.swapaxes(-1, -2))  # otherwise the asymmetry from rounding grows
        v = q[:, :nx] + ((Qux.swapaxes(-1, -2) + K.swapaxes(-1, -2) @ Quu) @ du[..., None])[..., 0]
        v = v + (K.swapaxes(-1, -2) @ qu[..., None])[..., 0]
    return Backward(slope, curvature, -1, v, V)


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
    try:
        np.linalg.cholesky(H)
    except np.linalg.LinAlgError:
        return np.zeros_like(g), result._replace(failed_node=0)
    step, _ = bounded(H, g, np.zeros((*g.shape, 0)), *bounds)
    slope = result.slope + (g * step).sum(axis=-1)
    curvature = result.curvature + (step * (H @ step[..., None])[..., 0]).sum(axis=-1)
    return step, result._replace(slope=slope, curvature=curvature)


def _backward_of_one(
    F: Array, gap: Array, gradient: Array, hessian: Array, feedforward: Array, gain: Array, regularization: float,
    bounds: tuple[Array, Array] | None, shift: Array | None,
) -> Backward:  # fmt: skip
    """Compute the pass of `backward` for one problem, with direct calls of LAPACK, which are faster."""
    nodes, nx, n = len(F) - 1, F.shape[1], F.shape[2]
    nu = n - nx
    V, v = hessian[-1, :nx, :nx], gradient[-1, :nx]
    slope = curvature = 0.0
    VF, Q = np.empty((nx, n)), np.empty((n, n))
    right = np.empty((nu, nx + 1), order="F")
    diagonal = np.einsum("ii->i", Q[nx:, nx:])
    for k in range(nodes - 1, -1, -1):
        Fk = F[k]
        np.matmul(V, Fk, out=VF)
        np.matmul(Fk.T, VF, out=Q)
        Q += hessian[k]
        q = (v + V @ gap[k]) @ Fk + gradient[k]
        diagonal += regularization
        factor, info = dpotrf(Q[nx:, nx:].T, 1)
        if info:
            return Backward(np.array([slope]), np.array([curvature]), k, v[None], V[None])
        Qux, qu = Q[nx:, :nx], q[nx:]
        right[:, :nx], right[:, nx] = Qux, qu
        solution, _ = dpotrs(factor, right, 1)
        np.negative(solution[:, :nx], out=gain[k])
        du = np.negative(solution[:, nx], out=feedforward[k])
        descent = float(qu @ du)
        bend = -descent
        if bounds is not None:
            expected = du if shift is None else du + gain[k, :, nx - shift.shape[-1] :] @ shift[0]
            if (expected < bounds[0][k]).any() or (expected > bounds[1][k]).any():
                Quu, pair = Q[None, nx:, nx:], (bounds[0][None, k], bounds[1][None, k])
                step, K = _bounded_step(Quu, qu[None], Qux[None], pair, shift, expected[None])
                du[...], gain[k] = step[0], K[0]
                descent, bend = float(qu @ du), float(du @ Quu[0] @ du)
        slope += descent
        curvature += bend
        V = Q[:nx, :nx] + Qux.T @ gain[k]
        V = 0.5 * (V + V.T)
        v = q[:nx] + du @ Qux
    return Backward(np.array([slope]), np.array([curvature]), -1, v[None], V[None])


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
