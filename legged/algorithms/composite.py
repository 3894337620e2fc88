"""The composite-rigid-body algorithm: the inertia matrix, equations (9) and (10)."""

from __future__ import annotations

import numpy as np

from legged.algorithms.links import Links, links_at
from legged.compiler.ir.annotations import stage
from legged.dynamics.arguments import read
from legged.dynamics.sweeps import inward
from legged.robot.robot import Robot
from legged.spatial import Array, mirror


def inertia_matrix(robot: Robot, q: Array, *, coordinates: str = "link") -> Array:
    """Return the joint-space inertia matrix, (nv, nv), by the composite-rigid-body algorithm.

        I_i^C = I_i + sum of I_j^C                 (9), over the children j
        M_ji  = h_j^T I_i^C h_i                    (10), for every j on the way from i to the base

    Args:
        robot, q: As in `legged.inertia_matrix`.
        coordinates: "link" or "absolute", see `links_at`.

    Source: Featherstone, Orin 2000, section 3.2; Walker, Orin 1982, method 3.
    """
    (q,) = read(robot, q=q)
    links = links_at(robot, q, coordinates)
    with stage("1 composite inertias"):
        composite = composite_inertias(links)
    with stage("2 entries"):
        return _entries(links, composite)


def composite_inertias(links: Links) -> list[Array]:
    """Return the inertia of each body and all that it carries, as one rigid body, (6, 6): equation (9)."""
    composite = list(links.I)
    for body in inward(links.robot):
        k, parent = body.index, body.parent
        if parent >= 0:
            composite[parent] = composite[parent] + links.X[k].transform_inertia(composite[k])
    return composite


def _entries(links: Links, composite: list[Array]) -> Array:
    robot = links.robot
    M = np.zeros((robot.nv, robot.nv), dtype=np.result_type(*composite, *links.h))
    for body in inward(robot):
        i, h = body.index, links.h[body.index]
        f = composite[i] @ h + links.H[i]
        M[body.v, body.v] += mirror(h.T @ f + links.H[i].T @ h + body.reflected_inertia)
        at = i
        for j in robot.ancestors(i)[1:]:
            f = np.array([links.X[at].T @ column for column in f.T]).reshape(body.nv, 6).T
            block, other, at = links.h[j].T @ f, robot.bodies[j], j
            M[other.v, body.v] += block
            M[body.v, other.v] += block.T
    return M
