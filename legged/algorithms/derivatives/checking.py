"""Derivatives beside those of the recursions themselves, run on truncated Taylor series: exact, one direction a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from legged.algorithms.derivatives.forward import of_forward_dynamics
from legged.algorithms.derivatives.inverse import of_inverse_dynamics
from legged.dynamics.arguments import Wrenches
from legged.dynamics.forward import forward_dynamics
from legged.dynamics.inverse import inverse_dynamics
from legged.robot.configuration import configuration_rate
from legged.robot.robot import Robot
from legged.spatial import Array
from legged.taylor import derivatives, moving


class Checked(NamedTuple):
    """Largest difference of each matrix from the exact one, in parts of the latter's largest entry."""

    inverse_q: float
    inverse_v: float
    inverse_vdot: float
    forward_q: float
    forward_v: float
    forward_tau: float


def check(robot: Robot, q: Array, v: Array, vdot: Array, tau: Array, wrenches: Wrenches = None) -> Checked:
    """Return how far the analytical derivatives of inverse and forward dynamics are from exact ones.

    Args:
        robot, q, v, vdot, tau, wrenches: As in `legged.inverse_dynamics` and `legged.forward_dynamics`. Plain floats.
    """
    found = []
    for function, analytical, x in (
        (inverse_dynamics, of_inverse_dynamics, vdot),
        (forward_dynamics, of_forward_dynamics, tau),
    ):
        ours = analytical(robot, q, v, x, wrenches)
        exact = differentiated(lambda *at, f=function: f(robot, *at, wrenches), robot, q, v, x)
        found += [_apart(*pair) for pair in zip(ours, exact, strict=True)]
    return Checked(*found)


def differentiated(function: Callable[..., Array], robot: Robot, q: Array, v: Array, x: Array) -> tuple[Array, ...]:
    """Return the derivatives of function(q, v, x) by q along the manifold, by v and by x, each (size, nv).

    Args:
        function: Of (nq,), (nv,) and (nv,), over any element. robot: Whose configurations q are. q, v, x: Floats.
    """
    if not robot.nv:
        return (np.zeros((0, 0)),) * 3
    directions = np.eye(robot.nv)
    ways = (
        [(configuration_rate(robot, q, d), 0.0 * v, 0.0 * x) for d in directions],
        [(0.0 * q, d, 0.0 * x) for d in directions],
        [(0.0 * q, 0.0 * v, d) for d in directions],
    )
    at = (q, v, x)
    return tuple(np.stack([_rate(function, at, way) for way in part], axis=-1) for part in ways)


def _rate(function: Callable[..., Array], at: tuple[Array, ...], way: tuple[Array, ...]) -> Array:
    return derivatives(function(*(moving(a, d, 0.0 * a) for a, d in zip(at, way, strict=True))))[1]


def _apart(ours: Array, exact: Array) -> float:
    return float(np.abs(ours - exact).max(initial=0.0) / max(np.abs(exact).max(initial=0.0), 1e-300))
