"""Nonlinear least squares over the windows of logs: Levenberg-Marquardt with bounds.

The initial states of the windows are eliminated from the normal equations by Schur complements, so that the step in the
parameters costs as much as without them.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from legged.errors import NotFiniteError
from legged.identification.shooting import Prediction, Shooting
from legged.spatial import Array

Loss = Literal["squares", "huber", "cauchy"]
_TUNING = {"huber": 1.345, "cauchy": 2.385}  # 95 % efficiency for normal noise, in standard deviations
_LEAST_DECREASE = 1e-5  # relative, of the cost, below which the fit ends
_LARGEST_DAMPING = 1e8


class Problem(NamedTuple):
    """Normal equations of windows in their initial states and the parameters, by block.

    Attributes:
        cost: Half of the weighted sum of squares.
        H, g: Matrices (W, G, states + columns, states + columns) and gradients (W, G, states + columns).
    """

    cost: float
    H: Array
    g: Array


class Reduced(NamedTuple):
    """Normal equations of the parameters, after elimination of the initial states.

    Attributes:
        H, g: Matrix (n, n) and gradient (n,).
        feedback, forward: Change of the initial states: -(forward + feedback @ parameters of the block).
        scores: Gradient of each window, (W, n).
    """

    H: Array
    g: Array
    feedback: Array
    forward: Array
    scores: Array


def normal_equations(shooting: Shooting, found: Prediction, weights: Array, loss: Loss, scale: float) -> Problem:
    """Return the normal equations of windows in their initial states and the parameters.

    Args:
        shooting: The windows. found: Their prediction.
        weights: Inverse standard deviations of the readings, (m,), [1 / unit of the channel].
        loss: Name of the loss. scale: Deviation of the weighted residuals, to which its tuning refers.
    """
    assert found.jacobian is not None
    e = found.residual * weights
    influence = _influence(e, loss, scale)
    J = found.jacobian * shooting.by_block(np.sqrt(influence) * weights)[..., None]
    W, G = J.shape[:2]
    J = J.reshape(W, G, -1, J.shape[-1])
    r = shooting.by_block(np.sqrt(influence) * e).reshape(W, G, -1, 1)
    Jt = J.swapaxes(-1, -2)
    return Problem(cost_of(e, loss, scale), Jt @ J, (Jt @ r)[..., 0])


def eliminated(shooting: Shooting, problem: Problem, damping: float) -> Reduced:
    """Return the normal equations of the parameters; the initial states are damped by a share of their diagonal."""
    blocks, n, H, g = shooting.blocks, len(shooting.plant.parameters.names), problem.H, problem.g
    k, W = blocks.states, len(H)
    diagonal = np.einsum("wgii->wgi", H)[..., :k]
    added = (damping + 1e-12) * diagonal + (blocks.state < 0)
    Hxx = H[..., :k, :k] + added[..., None] * np.eye(k)
    solved = np.linalg.solve(Hxx, np.concatenate([H[..., :k, k:], g[..., :k, None]], axis=-1))
    feedback, forward = solved[..., :-1], solved[..., -1]
    reduced = H[..., k:, k:] - H[..., k:, :k] @ feedback
    gradient = g[..., k:] - (H[..., k:, :k] @ forward[..., None])[..., 0]
    A, scores = np.zeros((n + 1, n + 1)), np.zeros((W, n + 1))
    for j, column in enumerate(blocks.column):  # the entry n collects the padding
        own = np.where(column < 0, n, column - 2 * shooting.plant.nv)
        A[np.ix_(own, own)] += reduced[:, j].sum(axis=0)
        scores[:, own] += gradient[:, j]
    return Reduced(A[:n, :n], scores[:, :n].sum(axis=0), feedback, forward, scores[:, :n])


class Solution(NamedTuple):
    """The least squares solution.

    Attributes:
        p: Values of the free parameters, (n,). q, v: Initial states of the windows, (W, nq) and (W, nv).
        prediction: The windows. reduced: Their normal equations. costs: Cost before each step and at the end.
    """

    p: Array
    q: Array
    v: Array
    prediction: Prediction
    reduced: Reduced
    costs: tuple[float, ...]


def minimize(shooting: Shooting, weights: Array, p: Array, loss: Loss, iterations: int) -> Solution:
    """Return the least squares solution.

    Args:
        shooting: The windows.
        weights: Inverse standard deviations of the readings, (m,), [1 / unit of the channel].
        p: Values of the free parameters at the start, (n,), mixed units.
        loss: Name of the loss. iterations: Largest number of steps.
    """
    sets, blocks, nv = shooting.plant.parameters, shooting.blocks, shooting.plant.nv
    width, lower, upper = sets.width, sets.lower, sets.upper
    q, v = shooting.initial_states(p)
    found = shooting.simulate(q, v, p)
    scale = 1.0
    damping, history = 1e-3, []
    for _ in range(iterations):
        if loss != "squares":
            scale = max(1.4826 * float(np.median(np.abs(found.residual * weights))), 1e-12)
        problem = normal_equations(shooting, found, weights, loss, scale)
        history.append(problem.cost)
        accepted, tries = False, 0
        while not accepted and damping < _LARGEST_DAMPING:
            reduced = eliminated(shooting, problem, damping)
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
            accepted = cost < problem.cost
            tries += 1
            damping = damping * 10.0 if not accepted else max(damping / 10.0, 1e-12) if tries == 1 else damping
        if not accepted:
            break
        done = problem.cost - cost < _LEAST_DECREASE * problem.cost
        p, q, v, found = trial_p, trial_q, trial_v, trial
        if done:
            break
    problem = normal_equations(shooting, found, weights, loss, scale)
    history.append(problem.cost)
    return Solution(p, q, v, found, eliminated(shooting, problem, 0.0), tuple(history))


def cost_of(e: Array, loss: Loss, scale: float) -> float:
    """Return the cost of residuals; those beyond a few times `scale` have less influence with a robust loss.

    Args:
        e: Weighted residuals, (...), [1]. loss: Name of the loss. scale: Their deviation.
    """
    if loss == "squares":
        return 0.5 * float((e**2).sum())
    limit = _TUNING[loss] * scale
    ratio = np.abs(e) / limit
    each = np.where(ratio < 1, 0.5 * ratio**2, ratio - 0.5) if loss == "huber" else 0.5 * np.log1p(ratio**2)
    return float(limit**2 * each.sum())


def _influence(e: Array, loss: Loss, scale: float) -> Array:
    """Return the weights of residuals with which least squares have the gradient of the loss."""
    if loss == "squares":
        return np.ones_like(e)
    ratio = np.abs(e) / (_TUNING[loss] * scale)
    return 1.0 / np.maximum(ratio, 1.0) if loss == "huber" else 1.0 / (1.0 + ratio**2)


def _bounded_step(H: Array, g: Array, damping: float, least: Array, most: Array) -> Array:
    """Return a step that decreases g s + s H s / 2, within bounds: entries that would leave them stop there."""
    diagonal = damping * np.maximum(np.diag(H), 1e-9 * np.diag(H).max())
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
