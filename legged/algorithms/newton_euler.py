"""The recursive Newton-Euler algorithm: inverse dynamics in spatial vectors, Featherstone and Orin, eqs. (3) to (8)."""

from __future__ import annotations

import numpy as np

from legged.algorithms.links import Links, base_bias, links_at
from legged.compiler.ir.annotations import stage
from legged.dynamics.arguments import Wrenches, read
from legged.dynamics.passive import friction_forces, spring_forces
from legged.dynamics.sweeps import inward, outward
from legged.moving_coordinates import cross_force, cross_motion
from legged.robot.configuration import scatter_add
from legged.robot.robot import Robot
from legged.spatial import Array


def inverse_dynamics(
    robot: Robot, q: Array, v: Array, vdot: Array, wrenches: Wrenches = None, *, coordinates: str = "link"
) -> Array:
    """Return the generalized forces that produce an acceleration, (nv,), by the recursive Newton-Euler algorithm.

        v_i   = v_p + h_i qd_i                                    (3)
        a_i   = a_p + h_i qdd_i + v_i x h_i qd_i                  (4)
        f_i   = I_i a_i + v_i x I_i v_i - f_i^x + sum of f_j      (7), over the children j
        tau_i = h_i^T f_i                                         (8)

    Args:
        robot, q, v, vdot, wrenches: As in `legged.inverse_dynamics`.
        coordinates: "link" or "absolute", see `links_at`.

    Raises:
        As `legged.inverse_dynamics`; UnknownNameError for other coordinates.

    Source: Featherstone, Orin 2000, section 3.1; accelerations are spatial ones (their footnote 1).
    """
    q, v, vdot = read(robot, q=q, v=v, vdot=vdot)
    links = links_at(robot, q, coordinates)
    with stage("1 velocities, accelerations, forces"):
        f, tau_joint = _outward(links, q, v, vdot, wrenches)
    with stage("2 joint forces"):
        return _inward(links, f, tau_joint)


def velocities(links: Links, v: Array) -> list[Array]:
    """Return the spatial velocity of each body, (6,), in the coordinates of the links: equation (3).

    Args:
        links: The robot's bodies. v: Velocity, (nv,).
    """
    twists: list[Array] = []
    for body in outward(links.robot):
        joint = links.h[body.index] @ v[body.v] if body.nv else np.zeros(6)
        twists.append(joint if body.parent < 0 else links.X[body.index] @ twists[body.parent] + joint)
    return twists


def _outward(links: Links, q: Array, v: Array, vdot: Array, wrenches: Wrenches) -> tuple[list[Array], list[Array]]:
    """Return (f_i of each body without its children, forces of friction, springs and rotors of each joint)."""
    t, external = velocities(links, v), links.wrenches(wrenches)
    a: list[Array] = []
    f, tau_joint = [], []
    for body in outward(links.robot):
        k, h = body.index, links.h[body.index]
        if body.kind == "base":
            a.append(base_bias(links, q, v) + (h @ vdot[body.v] if body.nv else 0.0))
        else:
            a.append(links.X[k] @ a[body.parent] + h @ vdot[body.v] + cross_motion(t[k], h @ v[body.v]))
        f_k = links.I[k] @ a[k] + cross_force(t[k], links.I[k] @ t[k])
        f.append(f_k - external[k] if k in external else f_k)
        tau_joint.append(friction_forces(body, v) + spring_forces(body, q))
        if body.has_gyroscopic_rotor:
            f[k] = f[k] + links.H[k] @ vdot[body.v] + cross_force(t[k], links.H[k] @ v[body.v])
            tau_joint[k] = tau_joint[k] + links.H[k].T @ a[k]
        tau_joint[k] = tau_joint[k] + body.reflected_inertia @ vdot[body.v]
    return f, tau_joint


def _inward(links: Links, f: list[Array], tau_joint: list[Array]) -> Array:
    """Return the generalized forces, (nv,): equations (7) and (8)."""
    tau: list[Array] = [np.zeros(0)] * len(f)
    f = list(f)
    for body in inward(links.robot):
        k = body.index
        tau[k] = links.h[k].T @ f[k] + tau_joint[k]
        if body.parent >= 0:
            f[body.parent] = f[body.parent] + links.X[k].T @ f[k]
    return scatter_add(links.robot, tau)
