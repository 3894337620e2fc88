"""Derivatives by finite differences along the manifold of configurations."""

from collections.abc import Callable

import numpy as np

import legged
from legged.spatial import Array

STEP = 2e-4  # [s]
"""Time step of fourth-order central differences: at speeds of a few rad/s the truncation error, step^4, is 1e-10 of
the value, and the rounding error, 1e-15 / step, is smaller."""


def derivative(f: Callable[[float], Array], step: float = STEP) -> Array:
    """Return f'(0) by fourth-order central differences."""
    return np.asarray(
        (8 * (np.asarray(f(step)) - np.asarray(f(-step))) - (np.asarray(f(2 * step)) - np.asarray(f(-2 * step))))
        / (12 * step)
    )


def rate(robot: legged.Robot, f: Callable[[Array, Array], Array], q: Array, v: Array, vdot: Array | None = None):
    """Return the time derivative of f(q, v) when q moves with velocity v and v with acceleration vdot (zero: None)."""
    vdot = np.zeros_like(v) if vdot is None else vdot
    return derivative(lambda t: f(legged.integrate(robot, q, t * v), v + t * vdot))
