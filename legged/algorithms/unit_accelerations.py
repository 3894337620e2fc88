"""The inertia matrix column by column, from the forces that unit accelerations take: Walker and Orin's methods."""

from __future__ import annotations

import numpy as np

from legged.algorithms.links import Links, links_at
from legged.algorithms.newton_euler import inverse_dynamics
from legged.dynamics.arguments import read
from legged.dynamics.sweeps import inward, outward
from legged.robot.body import Body
from legged.robot.robot import Robot
from legged.spatial import Array


def from_inverse_dynamics(robot: Robot, q: Array) -> Array:
    """Return the inertia matrix, (nv, nv), as differences of inverse dynamics at rest: method 1.

        M delta_i = D(q, 0, delta_i) - D(q, 0, 0)

    Every column is a whole inverse dynamics, gravity and springs computed anew and taken away again.

    Args:
        robot, q: As in `legged.inertia_matrix`.

    Source: Featherstone, Orin 2000, section 3.2; Walker, Orin 1982, method 1.
    """
    (q,) = read(robot, q=q)
    still = np.zeros(robot.nv)
    rest = inverse_dynamics(robot, q, still, still)
    return np.array([inverse_dynamics(robot, q, still, delta) - rest for delta in np.eye(robot.nv)]).T


def from_moving_links(robot: Robot, q: Array) -> Array:
    """Return the inertia matrix, (nv, nv), from unit accelerations of the links that they move: method 2.

    Without velocity and gravity, and with only the links outward of joint i moving; the column above the diagonal is
    the row that symmetry gives.

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
    """Add what accelerating one joint coordinate of a body alone takes at its own joint and nearer to the base."""
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
    """Return the force on each body outward of a moved one, and through its joint, (6,)."""
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
