"""Who carries what: ground forces for a wanted motion, of least norm, on the exact inertia of base and legs."""

from __future__ import annotations

from typing import Any

import numpy as np

from legged.dynamics.kinematics import point_jacobian
from legged.robot.robot import Robot
from legged.spatial import Array, mirror, solve_symmetric

_FREE = 1e-3  # what a horizontal acceleration of the base costs against forces: little, two points cannot refuse it
_HELD = 1e-7  # and an angular or vertical one: much


def distribute(
    robot: Robot, q: Array, inertia: Array, tau: Array, follow: Array, weights: list[Any]
) -> tuple[Array, Array]:
    """Return (generalized forces (nv,), ground forces (n, 3) [N] world) with nothing left to drive the base.

    The wanted motion needs `tau`, base rows included, but nothing drives the base: the ground's forces f must,

        G f = tau_0 + W d,

    where d is the least change of the base's acceleration without which f does not exist (two point feet bear no
    moment about the line between them: the base must then give way sideways), and W the inertia that the base feels
    with legs that follow it. Among all f and d that do, those with the least sum of |f|^2 on the carrying points and
    of d^2 over its weights are taken.

    Args:
        robot: The robot. q: Configuration, (nq,).
        inertia: Its generalized inertia matrix, (nv, nv).
        tau: I vdot + h of the wanted motion without ground forces, (nv,).
        follow: d vdot / d vdot_0, (nv, n0): the identity on top of how the joints follow.
        weights: 1 for a point that carries, 0 for one that does not, (n,).

    Source:
        The minimum-norm distribution is that of Wendlandt 1997, algorithm 5, over stance feet; the exact inertia and
        the motion that gives way are ours.
    """
    n0 = robot.base.nv
    J = [point_jacobian(robot, q, point.link, point.position)[3:] for point in robot.contacts]
    G = np.concatenate([row[:, :n0].T for row in J], axis=1)
    carrying = np.array([k for k in weights for _ in range(3)])
    felt = inertia @ follow
    W, Q = felt[:n0], _give(robot, q)
    share = solve_symmetric(mirror((G * carrying) @ G.T + W @ Q @ W.T), tau[:n0])
    forces = (carrying * (G.T @ share)).reshape(-1, 3)
    pushing = np.array([[f[0], f[1], np.maximum(f[2], 0.0)] for f in forces])
    moved = tau - felt @ (Q @ (W.T @ share))
    for row, f in zip(J, pushing, strict=True):
        moved = moved - row.T @ f
    return np.concatenate([np.zeros(n0), moved[n0:]]), pushing


def _give(robot: Robot, q: Array) -> Array:
    """Return how readily each acceleration of the base gives way, (n0, n0), inverse weights per squared mass."""
    R, _ = robot.base.pose(q)
    P = robot.base.motion_matrix(q)
    turned = np.block([[R.T, np.zeros((3, 3))], [np.zeros((3, 3)), R.T]])
    to_base = np.array([solve_symmetric(P.T @ P, column) for column in (P.T @ turned).T]).T
    ease = np.array([_HELD, _HELD, _HELD, _FREE, _FREE, _HELD]) / robot.mass**2
    return (to_base * ease) @ to_base.T
