"""Inverse inertias between bodies of a tree by extended force propagators, in O(n + m d + m^2) for m ends.

Each run of links between branching bodies is traversed once for all ends beyond it, so that no loop runs over both
bodies and pairs of ends.

Source: Wensing, Featherstone, Orin, "A reduced-order recursive algorithm for the computation of the operational-space
inertia matrix", International Conference on Robotics and Automation, 2012.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from legged.compiler.ir import item, stage
from legged.robot.robot import Robot
from legged.spatial import Array, Transform, mirror, solve_factored


@dataclass(frozen=True)
class ForcePropagator:
    """The extended force propagator over the links from a body, or a point, to the next branching body inward.

    Attributes:
        inner: Index of that branching body, or -1 for the ground.
        chi: Propagator from n forces at the outer end to the inner body, (6, n); n is 6 between branching bodies.
        mobility: Inverse inertia at the outer end while the inner body is held fixed, (n, n).
    """

    inner: int
    chi: Array
    mobility: Array


def inverse_inertia_blocks(
    robot: Robot,
    X: Sequence[Transform],
    h: Sequence[Array],
    D: Sequence[tuple],
    Psi: Sequence[Array],
    ends: Sequence[tuple[int, Array]],
) -> list[list[Array]]:
    """Return the blocks of J M^-1 J^T, (n, n') each, those below the diagonal as zeros.

        chi_p      = X_k^T (1 - U D^-1 h^T) chi_k              a force, one joint farther inward
        mobility   = sum of (h^T chi_k)^T D^-1 h^T chi_k       over the joints of a propagator
        Omega      = mobility + chi^T Omega_inner chi          at an end, and at branching bodies
        block(i,j) = chi_i^T Omega chi_j                       at the body where the paths to i and j branch

    Args:
        robot: The robot.
        X: Transform from the parent's frame to each body's.
        h: Motion subspace of each joint, (6, nv of the joint), mixed units, in the axes of its body.
        D: Factored articulated inertia along each joint. Psi: U D^-1 of each joint, (6, nv of the joint), mixed units,
            in the axes of its body.
        ends: (body, map from n forces to wrenches about the body origin in body axes, (6, n), mixed units).
    """
    bodies = _Bodies(robot, X, h, D, Psi)
    with stage("2 spans"):
        branching = _branching_bodies(robot, [k for k, _ in ends])
        between = {k: _propagator(bodies, k, np.eye(6), branching - {k}) for k in sorted(branching)}
        outer = [_propagator(bodies, k, chi, branching) for k, chi in ends]
    with stage("3 blocks"):
        Omega: dict[int, Array] = {-1: np.zeros((6, 6))}
        for k, propagator in between.items():
            Omega[k] = _inverse_inertia(propagator, Omega)
        return _blocks(between, outer, Omega)


class _Bodies(NamedTuple):
    """The arguments of `inverse_inertia_blocks` that belong to the bodies."""

    robot: Robot
    X: Sequence[Transform]
    h: Sequence[Array]
    D: Sequence[tuple]
    Psi: Sequence[Array]


def _branching_bodies(robot: Robot, ends: list[int]) -> set[int]:
    """Return the bodies where the paths to two ends branch, including bodies that carry an end and lie on a path."""
    outward: dict[int, set[int]] = {}
    for number, end in enumerate(ends):
        next_outward = -1 - number
        for k in robot.ancestors(end):
            outward.setdefault(k, set()).add(next_outward)
            next_outward = k
    return {k for k, branches in outward.items() if len(branches) > 1}


def _propagator(bodies: _Bodies, k: int, chi: Array, stops: set[int]) -> ForcePropagator:
    """Return the propagator that begins with forces chi, (6, n), on body k and ends at the next body among `stops`."""
    n = chi.shape[1]
    mobility = np.zeros((n, n))
    while k >= 0 and k not in stops:
        with item(k):
            parent = bodies.robot.bodies[k].parent
            g = bodies.h[k].T @ chi
            solution = np.array([solve_factored(bodies.D[k], column) for column in g.T]).reshape(g.T.shape).T
            mobility = mobility + mirror(g.T @ solution)
            transmitted = chi - bodies.Psi[k] @ g
            chi = np.array([bodies.X[k].T @ column for column in transmitted.T]).reshape(n, 6).T
            k = parent
    return ForcePropagator(k, chi, mobility)


def _inverse_inertia(propagator: ForcePropagator, Omega: dict[int, Array]) -> Array:
    """Return the inverse inertia at the outer end of a propagator, (n, n)."""
    if propagator.inner < 0:
        return propagator.mobility
    return mirror(propagator.mobility + propagator.chi.T @ Omega[propagator.inner] @ propagator.chi)


def _blocks(
    between: dict[int, ForcePropagator], outer: list[ForcePropagator], Omega: dict[int, Array]
) -> list[list[Array]]:
    """Return the blocks of the matrix, those below the diagonal as zeros."""
    paths = [_propagators_inward(between, propagator) for propagator in outer]
    blocks = [[np.zeros((a.mobility.shape[0], b.mobility.shape[0])) for b in outer] for a in outer]
    for i, propagator in enumerate(outer):
        blocks[i][i] = _inverse_inertia(propagator, Omega)
        chi_Omega = {k: chi.T @ Omega[k] for k, chi in paths[i].items()}
        for j in range(i + 1, len(outer)):
            branch = next((k for k in chi_Omega if k in paths[j]), None)
            if branch is not None:
                blocks[i][j] = chi_Omega[branch] @ paths[j][branch]
    return blocks


def _propagators_inward(between: dict[int, ForcePropagator], propagator: ForcePropagator) -> dict[int, Array]:
    """Return the propagators from an end to each branching body on its path, from the end inward."""
    path, chi = {}, propagator.chi
    while propagator.inner >= 0:
        path[propagator.inner] = chi
        propagator = between[propagator.inner]
        chi = propagator.chi @ chi
    return path
