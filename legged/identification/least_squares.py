"""Nonlinear least squares over the windows of logs: Levenberg-Marquardt with bounds.

The initial states of the windows are eliminated from the normal equations by Schur complements, so that a step solves a
system in the parameters alone. W is the number of windows, and G that of blocks, see `shooting.Blocks`.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from legged.errors import NotFiniteError
from legged.identification.shooting import Prediction, Shooting
from legged.spatial import Array

Loss = Literal["squares", "huber", "cauchy"]
_TUNING = {"huber": 1.345, "cauchy": 2.385}  # 95 % efficiency for normal noise, in standard deviations
_LEAST_DECREASE = 1e-5  # of the cost, relative: a smaller decrease ends the fit
_LARGEST_DAMPING = 1e8  # at which the fit ends, since no step decreases the cost


class NormalEquations(NamedTuple):
    """Normal equations of windows in their initial states and the parameters, by block.

    Attributes:
        cost: Half of the weighted sum of squares.
        H, g: Matrices (W, G, states + columns, states + columns) and gradients of the cost (W, G, states + columns).
    """

    cost: float
    H: Array
    g: Array


class ReducedEquations(NamedTuple):
    """Normal equations of the parameters, after elimination of the initial states.

    Attributes:
        H, g: Matrix (n, n) and gradient (n,).
        feedback, forward: The initial states of a block change by -(forward + feedback @ change of its parameters).
        matrices, scores: Matrix and gradient of each window, (W, n, n) and (W, n); their sums are H and g.
    """

    H: Array
    g: Array
    feedback: Array
    forward: Array
    matrices: Array
    scores: Array


def normal_equations(
    shooting: Shooting, prediction: Prediction, weights: Array, loss: Loss, scale: float
) -> NormalEquations:
    """Return the normal equations of windows in their initial states and the parameters.

    Args:
        shooting: The windows. prediction: Their prediction.
        weights: Inverse standard deviations of the readings, (m,), [1 / unit of the channel].
        loss: Name of the loss. scale: Standard deviation of the weighted residuals, to which the thresholds of the loss
            are relative.
    """
    assert prediction.jacobian is not None
    e = prediction.residual * weights
    influence = _influence(e, loss, scale)
    J = prediction.jacobian * shooting.by_block(np.sqrt(influence) * weights)[..., None]
    W, G = J.shape[:2]
    J = J.reshape(W, G, -1, J.shape[-1])
    r = shooting.by_block(np.sqrt(influence) * e).reshape(W, G, -1, 1)
    Jt = J.swapaxes(-1, -2)
    return NormalEquations(cost_of(e, loss, scale), Jt @ J, (Jt @ r)[..., 0])


def eliminate_initial_states(shooting: Shooting, equations: NormalEquations, damping: float) -> ReducedEquations:
    """Return the normal equations of the parameters; `damping` times their diagonal is added for the initial states."""
    blocks, n, H, g = shooting.blocks, len(shooting.plant_step.parameters.names), equations.H, equations.g
    k, W = blocks.states, len(H)
    diagonal = np.einsum("wgii->wgi", H)[..., :k]
    added = (damping + 1e-12) * diagonal + (blocks.state < 0)
    Hxx = H[..., :k, :k] + added[..., None] * np.eye(k)
    solved = np.linalg.solve(Hxx, np.concatenate([H[..., :k, k:], g[..., :k, None]], axis=-1))
    feedback, forward = solved[..., :-1], solved[..., -1]
    reduced = H[..., k:, k:] - H[..., k:, :k] @ feedback
    gradient = g[..., k:] - (H[..., k:, :k] @ forward[..., None])[..., 0]
    A, scores = np.zeros((W, n + 1, n + 1)), np.zeros((W, n + 1))
    for j, column in enumerate(blocks.column):  # the entry n collects the padding
        entries = np.where(column < 0, n, column - 2 * shooting.plant_step.nv)
        A[:, entries[:, None], entries] += reduced[:, j]
        scores[:, entries] += gradient[:, j]
    A, scores = A[:, :n, :n], scores[:, :n]
    return ReducedEquations(A.sum(axis=0), scores.sum(axis=0), feedback, forward, A, scores)


class LeastSquaresSolution(NamedTuple):
    """The least squares solution.

    Attributes:
        p: Values of the free parameters, (n,). q, v: Initial states of the windows, (W, nq) and (W, nv).
        prediction: The simulated windows. reduced: Normal equations of the parameters. costs: Cost before each step and
            at the end.
    """

    p: Array
    q: Array
    v: Array
    prediction: Prediction
    reduced: ReducedEquations
    costs: tuple[float, ...]


def minimize(shooting: Shooting, weights: Array, p: Array, loss: Loss, iterations: int) -> LeastSquaresSolution:
    """Return the least squares solution.

    Args:
        shooting: The windows.
        weights: Inverse standard deviations of the readings, (m,), [1 / unit of the channel].
        p: Values of the free parameters at the start, (n,), mixed units.
        loss: Name of the loss. iterations: Largest number of steps.
    """
    parameters, blocks, nv = shooting.plant_step.parameters, shooting.blocks, shooting.plant_step.nv
    width, lower, upper = parameters.width, parameters.lower, parameters.upper
    q, v = shooting.initial_states(p)
    prediction = shooting.simulate(q, v, p)
    scale = 1.0
    damping, costs = 1e-3, []
    for _ in range(iterations):
        if loss != "squares":
            scale = max(1.4826 * float(np.median(np.abs(prediction.residual * weights))), 1e-12)
        equations = normal_equations(shooting, prediction, weights, loss, scale)
        costs.append(equations.cost)
        accepted, attempts = False, 0
        while not accepted and damping < _LARGEST_DAMPING:
            reduced = eliminate_initial_states(shooting, equations, damping)
            H, g = reduced.H * np.outer(width, width), reduced.g * width
            step = _bounded_step(H, g, damping, (lower - p) / width, (upper - p) / width)
            local = np.append(step * width, 0.0)[np.where(blocks.column < 0, -1, blocks.column - 2 * nv)]
            change = -reduced.forward - np.einsum("wgij,gj->wgi", reduced.feedback, local)
            moved = np.zeros((len(q), 2 * nv + 1))
            moved[:, blocks.state.ravel()] = change.reshape(len(q), -1)
            try:
                trial_p = np.clip(p + step * width, lower, upper)
                trial_q, trial_v = shooting.moved(q, v, moved[:, : 2 * nv])
                trial = shooting.simulate(trial_q, trial_v, trial_p)
                cost = cost_of(trial.residual * weights, loss, scale)
            except NotFiniteError:
                cost = np.inf
            accepted = cost < equations.cost
            attempts += 1
            damping = damping * 10.0 if not accepted else max(damping / 10.0, 1e-12) if attempts == 1 else damping
        if not accepted:
            break
        done = equations.cost - cost < _LEAST_DECREASE * equations.cost
        p, q, v, prediction = trial_p, trial_q, trial_v, trial
        if done:
            break
    equations = normal_equations(shooting, prediction, weights, loss, scale)
    costs.append(equations.cost)
    return LeastSquaresSolution(p, q, v, prediction, eliminate_initial_states(shooting, equations, 0.0), tuple(costs))


def cost_of(e: Array, loss: Loss, scale: float) -> float:
    """Return the cost of residuals.

    Args:
        e: Weighted residuals, (...), [1]. loss: Name of the loss. scale: Their standard deviation, to which robust
            losses are relative.
    """
    if loss == "squares":
        return 0.5 * float((e**2).sum())
    limit = _TUNING[loss] * scale
    ratio = np.abs(e) / limit
    each = np.where(ratio < 1, 0.5 * ratio**2, ratio - 0.5) if loss == "huber" else 0.5 * np.log1p(ratio**2)
    return float(limit**2 * each.sum())


def _influence(e: Array, loss: Loss, scale: float) -> Array:
    """Return the weights of iteratively reweighted least squares, with which its gradient is that of the loss."""
    if loss == "squares":
        return np.ones_like(e)
    ratio = np.abs(e) / (_TUNING[loss] * scale)
    return 1.0 / np.maximum(ratio, 1.0) if loss == "huber" else 1.0 / (1.0 + ratio**2)


def _bounded_step(H: Array, g: Array, damping: float, least: Array, most: Array) -> Array:
    """Return a step s that decreases g^T s + s^T H s / 2 within bounds, by an active set."""
    largest = np.diag(H).max() or 1.0  # zero if no parameter has an effect
    diagonal = damping * np.maximum(np.diag(H), 1e-9 * largest)
    free, step = np.ones(len(g), bool), np.zeros(len(g))
    for _ in range(len(g)):
        rest = g + H @ np.where(free, 0.0, step)
        A = H[np.ix_(free, free)] + np.diag(diagonal[free])
        step[free] = -np.linalg.solve(A, rest[free]) if free.any() else 0.0
        outside = free & ((step < least) | (step > most))
        if not outside.any():
            break
        step = np.where(outside, np.clip(step, least, most), step)
        free &= ~outside
    return step
