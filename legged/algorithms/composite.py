"""The joint-space inertia matrix by the three methods of Walker and Orin 1982.

Methods 1 and 2 compute each column as the forces that a unit acceleration of one coordinate requires. Method 3 is the
composite-rigid-body algorithm, equations (9) and (10) of Featherstone and Orin.
"""

from __future__ import annotations

import numpy as np

from legged.algorithms.links import Links, links_at, transform_forces
from legged.algorithms.newton_euler import inverse_dynamics
from legged.compiler.ir import stage
from legged.dynamics.arguments import read
from legged.dynamics.modules import inward, outward
from legged.elements import any_element
from legged.robot.body import Body
from legged.robot.robot import Robot
from legged.spatial import Array, mirror


@any_element
def inertia_matrix(robot: Robot, q: Array, *, coordinates: str = "link") -> Array:
    """Return the joint-space inertia matrix, (nv, nv), by the composite-rigid-body algorithm.

        I_i^C = I_i + sum of I_j^C                 (9), over the children j
        M_ji  = h_j^T I_i^C h_i                    (10), for every j on the path from i to the base

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
    """Return the spatial inertia of each body and all its descendants as one rigid body, (6, 6): equation (9)."""
    composite = list(links.I)
    for body in inward(links.robot):
        k, parent = body.index, body.parent
        if parent >= 0:
            composite[parent] = composite[parent] + links.X[k].transform_inertia(composite[k])
    return composite


def _entries(links: Links, composite: list[Array]) -> Array:
    """Return the joint-space inertia matrix, (nv, nv): equation (10)."""
    robot = links.robot
    M = np.zeros((robot.nv, robot.nv), dtype=np.result_type(*composite, *links.h))
    for body in inward(robot):
        i, h = body.index, links.h[body.index]
        f = composite[i] @ h + links.H[i]
        M[body.v, body.v] += mirror(h.T @ f + links.H[i].T @ h + body.reflected_inertia)
        at = i
        for j in robot.ancestors(i)[1:]:
            f = transform_forces(links.X[at], f)
            block, other, at = links.h[j].T @ f, robot.bodies[j], j
            M[other.v, body.v] += block
            M[body.v, other.v] += block.T
    return M


@any_element
def inertia_matrix_by_inverse_dynamics(robot: Robot, q: Array) -> Array:
    """Return the joint-space inertia matrix, (nv, nv), from differences of inverse dynamics at rest: method 1.

        M delta_i = D(q, 0, delta_i) - D(q, 0, 0)

    Each column costs one full inverse dynamics; gravity and spring forces are computed and subtracted again.

    Args:
        robot, q: As in `legged.inertia_matrix`.

    Source: Featherstone, Orin 2000, section 3.2; Walker, Orin 1982, method 1.
    """
    (q,) = read(robot, q=q)
    zero = np.zeros(robot.nv)
    at_rest = inverse_dynamics(robot, q, zero, zero)
    return np.array([inverse_dynamics(robot, q, zero, delta) - at_rest for delta in np.eye(robot.nv)]).T


@any_element
def inertia_matrix_by_unit_accelerations(robot: Robot, q: Array) -> Array:
    """Return the joint-space inertia matrix, (nv, nv), from unit accelerations of single coordinates: method 2.

    Velocity and gravity are zero, so that only the links outward of the accelerated joint have forces. Entries above
    the diagonal follow by symmetry.

    Args:
        robot, q: As in `legged.inertia_matrix`.

    Source: Walker, Orin 1982, method 2.
    """
    (q,) = read(robot, q=q)
    links = links_at(robot, q)
    M = np.zeros((robot.nv, robot.nv), dtype=np.result_type(*links.I, *links.h, q))
    for body in outward(robot):
        for i in range(body.nv):
            _add_column(links, body, i, M)
    return M


def _add_column(links: Links, moved: Body, i: int, M: Array) -> None:
    """Add to M the forces of a unit acceleration of one coordinate, at its joint and at the joints inward of it."""
    f = _forces(links, moved, links.h[moved.index][:, i])
    column = moved.v.start + i
    joint, H = f[moved.index] + links.H[moved.index][:, i], links.H[moved.index]
    M[moved.v, column] += links.h[moved.index].T @ joint + (H.T @ links.h[moved.index] + moved.reflected_inertia)[:, i]
    at = moved.index
    for j in links.robot.ancestors(moved.index)[1:]:
        joint, other = links.X[at].T @ joint, links.robot.bodies[j]
        entries = links.h[j].T @ joint
        M[other.v, column] += entries
        M[column, other.v] += entries
        at = j


def _forces(links: Links, moved: Body, acceleration: Array) -> dict[int, Array]:
    """Return the force that each joint from the moved body outward transmits, (6,), by body."""
    a = {moved.index: acceleration}
    for body in outward(links.robot):
        if body.parent in a:
            a[body.index] = links.X[body.index] @ a[body.parent]
    f = {k: links.I[k] @ a_k for k, a_k in a.items()}
    for body in inward(links.robot):
        if body.index in f:
            for child in links.robot.children[body.index]:
                f[body.index] = f[body.index] + links.X[child].T @ f[child]
    return f
