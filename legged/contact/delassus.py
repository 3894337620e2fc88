"""Inertia in contact space from the O(n) recursions: what impulses at contacts do to velocities there.

    A = J (I + diag(extra))^-1 J^T

by the extended-force-propagator algorithm, on the articulated bodies that the smooth dynamics of a step work out too:
traced together, they stand once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from legged.algorithms.links import links_at
from legged.algorithms.operational.propagators import inverse_inertia_blocks
from legged.dynamics.forward import articulate, rotor_inertia
from legged.robot.robot import Robot
from legged.spatial import Array


class End(NamedTuple):
    """Where a body is held: rows of G, (n, 6), are what of its twist, in its own axes, is meant."""

    body: int
    G: Array


def mobilities_at(robot: Robot, q: Array, extra: Array, ends: Sequence[End]) -> list[list[Array]]:
    """Return the blocks of G J (I + diag(extra))^-1 J^T G^T between ends, (n, n'), those below the diagonal as zeros.

    Args:
        robot: The robot. q: Configuration, (nq,). extra: Added to the joints' own inertia, (nv,).
        ends: Where it is held.
    """
    links = links_at(robot, q)
    factors, _ = articulate(robot, q, links.X, [rotor_inertia(body, extra) for body in robot.bodies])
    Psi = [np.zeros((6, robot.base.nv)), *(f.Psi for f in factors[1:])]
    D = [f.I_hat for f in factors]
    return inverse_inertia_blocks(links, D, Psi, [(end.body, end.G.T) for end in ends])


def turned(R: Array) -> Array:
    """Return diag(R, R), (6, 6)."""
    return np.block([[R, np.zeros((3, 3))], [np.zeros((3, 3)), R]])
