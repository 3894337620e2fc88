"""Inertia in contact space from the O(n) recursions: what impulses at contacts do to velocities there.

    A = G Lambda^-1 G^T,    Lambda^-1 = J (I + diag(extra))^-1 J^T at the bodies that carry contacts

The recursions give Lambda^-1 of the few bodies, (6, 6) blocks; G takes their twists to the contacts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from legged.algorithms.articulated import Articulated, refuse_followers
from legged.algorithms.links import links_at
from legged.algorithms.operational.propagators import mobilities
from legged.dynamics.forward import articulate, kept_of
from legged.dynamics.kinematics import Motion
from legged.robot.robot import Robot
from legged.spatial import Array
from legged.trace.labels import stage


def body_mobilities(
    robot: Robot, q: Array, poses: Motion, extra: Array, bodies: Sequence[int]
) -> dict[tuple[int, int], Array]:
    """Return by pairs (j, k) of bodies, j not after k, how j's twist jumps per impulsive wrench on k, (6, 6).

    Args:
        robot: The robot. q: Configuration, (nq,). poses: Where its bodies are there.
        extra: Added to the joints' own inertia, (nv,).
        bodies: Which, each once. Twists and wrenches are at their origins, in world axes.

    Raises:
        DefinitionError: for joints that follow others.
    """
    refuse_followers(robot, "the contact-space inertia")
    links = links_at(robot, q)
    with stage("contact inertia"):
        factors, M_hat = articulate(robot, q, links.X, [kept_of(body, extra) for body in robot.bodies])
        Psi = [np.zeros((6, robot.base.nv)), *(f.Psi for f in factors[1:])]
        parts = Articulated(M_hat, Psi, [f.I_hat for f in factors], Psi)
        ends = [(k, turned(poses.rotation[k].T)) for k in bodies]
        blocks = mobilities(links, parts, ends)
    return {(j, k): blocks[a][b] for a, j in enumerate(bodies) for b, k in enumerate(bodies) if a <= b}


def turned(R: Array) -> Array:
    """Return diag(R, R), (6, 6)."""
    return np.block([[R, np.zeros((3, 3))], [np.zeros((3, 3)), R]])
