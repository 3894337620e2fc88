"""Smoothed gradients: gradients of the mean of a cost over random changes of the commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from legged.arguments import Numbers, number, real_array, whole
from legged.checked import checked
from legged.differentiation.simulation import DifferentiableSimulation
from legged.errors import ArgumentError, ShapeError
from legged.spatial import Array


class SmoothedGradient(NamedTuple):
    """An estimate of the gradient of the mean cost.

    Attributes:
        value: Mean of the cost over the samples.
        commands: Gradient of the mean with respect to the commands, (T, nu), cost per unit of the command.
        error: Standard error of each entry of the gradient, (T, nu), in the same unit.
    """

    value: float
    commands: Array
    error: Array


@checked
def smoothed_gradient(
    simulation: DifferentiableSimulation,
    commands: Numbers,
    final: Callable[[Array, Array], Any] | None = None,
    stage: Callable[[Array, Array, Array], Any] | None = None,
    *,
    spread: float,
    samples: int = 64,
    order: int = 0,
    seed: int = 0,
    q: Numbers | None = None,
    v: Numbers | None = None,
) -> SmoothedGradient:
    """Return the gradient of the mean of a cost J over commands u + w, with normally distributed w of zero mean.

        order 0:  mean of (J(u + w) - J(u - w)) w / (2 spread^2)          order 1:  mean of dJ/du (u + w)

    Order 0 uses costs alone. It is also unbiased for costs with jumps, such as those of contacts that are made or
    missed, but has a larger standard error. Order 1 averages derivatives of motions, which do not contain jumps. Both
    take half of the samples with w and half with -w.

    Args:
        simulation: The simulation. commands: u, (T, nu), any unit.
        final, stage: As in `DifferentiableRollout.gradient`, of q (nq,), v (nv,) and the command (nu,), mixed units.
        spread: Standard deviation of each command, in its unit.
        samples: Number of motions, even and at least 4. order: 0 or 1. seed: Seed of the random numbers.
        q, v: Initial state, (nq,) and (nv,), mixed units; default as in `DifferentiableSimulation.rollout`.

    Raises:
        ArgumentError: The order is another one, or the number of samples is odd or less than 4.
        ShapeError: The commands have another shape.

    Source: Suh, Simchowitz, Zhang, Tedrake, "Do differentiable simulators give better policy gradients?", ICML 2022.
    """
    u, sigma = real_array("commands", commands).astype(float), number("spread", spread, above=0)
    if u.ndim != 2 or u.shape[1] != simulation.nu:
        raise ShapeError(f"commands must be (T, {simulation.nu}), got shape {u.shape}")
    if order not in (0, 1):
        raise ArgumentError(f"order must be 0 or 1, got {order!r}")
    if whole("samples", samples, 4) % 2:
        raise ArgumentError(f"samples must be even, since half of them are opposite to the others, got {samples}")
    w = sigma * np.random.default_rng(seed).standard_normal((len(u), samples // 2, simulation.nu))
    run = simulation.rollout(u[:, None] + np.concatenate([w, -w], axis=1), q=q, v=v)
    if order:
        values, gradient = run.gradient(final, stage)
        each = 0.5 * (gradient.commands[:, : samples // 2] + gradient.commands[:, samples // 2 :])
    else:
        values = run.cost(final, stage)
        each = 0.5 * (values[: samples // 2] - values[samples // 2 :])[:, None] * w / sigma**2
    error = each.std(axis=1, ddof=1) / np.sqrt(each.shape[1])
    return SmoothedGradient(float(values.mean()), each.mean(axis=1), error)
