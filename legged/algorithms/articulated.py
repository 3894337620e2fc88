"""The articulated-body algorithm: forward dynamics in O(n), Featherstone and Orin, equations (12) to (14)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from legged.algorithms.linear_algebra import solve_rows
from legged.algorithms.links import Links, base_bias, links_at
from legged.algorithms.newton_euler import velocities
from legged.compiler.ir import stage
from legged.dynamics.arguments import Wrenches, finite, read
from legged.dynamics.modules import inward, outward
from legged.dynamics.passive import spring_forces, velocity_forces
from legged.elements import any_element
from legged.errors import DefinitionError
from legged.moving_coordinates import cross_force, cross_motion
from legged.robot.configuration import scatter
from legged.robot.robot import Robot
from legged.spatial import Array, factor_symmetric, mirror, solve_factored


class ArticulatedInertias(NamedTuple):
    """Articulated-body inertias and the joint factors that follow from them, each list in the order of `robot.bodies`.

    Attributes:
        I: Articulated-body inertia I^A, (6, 6).
        U: I^A h + H, (6, nv of the joint), with H the momentum of the joint's rotor.
        D: h^T I^A h, (nv of the joint, nv of the joint), the inertia along the joint, factored by `factor_symmetric`.
        Psi: U D^-1, (6, nv of the joint); of a force f on the body, the joint transmits f - Psi h^T f to the parent.
    """

    I: list[Array]
    U: list[Array]
    D: list[tuple]
    Psi: list[Array]


@any_element
def articulated_body(
    robot: Robot, q: Array, v: Array, tau: Array, wrenches: Wrenches = None, *, coordinates: str = "link"
) -> Array:
    """Return the acceleration under given generalized forces, (nv,), by the articulated-body algorithm.

        I_i^A = I_i + sum of (I_j^A - U_j D_j^-1 U_j^T),    U = I^A h,  D = h^T U             (12)
        p_i^A = p_i + sum of (p_j^a + U_j D_j^-1 u_j),      p^a = p^A + I^A hd qd             (13)
        qdd_i = D_i^-1 (u_i - U_i^T a_p),                   u = tau - h^T p^a                 (14)

    with p_i = v_i x I_i v_i - f_i^x.

    Args:
        robot, q, v, tau, wrenches: As in `legged.forward_dynamics`.
        coordinates: "link" or "absolute", see `links_at`.

    Raises:
        As `legged.forward_dynamics`; DefinitionError for joints that follow others, which cannot be eliminated one by
        one.

    Source: Featherstone, Orin 2000, section 3.3; the paper's (13) has tau_i where it means tau_j.
    """
    refuse_followers(robot, "the articulated-body algorithm")
    q, v, tau = read(robot, q=q, v=v, tau=tau)
    links = links_at(robot, q, coordinates)
    with stage("1 velocities and bias"):
        p, c = _bias(links, v, wrenches)
        drive = [tau[body.v] - velocity_forces(body, v) - spring_forces(body, q) for body in robot.bodies]
    with stage("2 articulated inertias"):
        articulated = articulated_inertias(links)
        u = _inward(links, articulated, p, c, drive)
    with stage("3 accelerations"):
        vdot = _outward(links, articulated, u, c, base_bias(links, q, v))
    return finite(robot, "the forward dynamics", vdot)


forward_dynamics = articulated_body
"""The name of the task, which is the same in the modules of all algorithms."""


def refuse_followers(robot: Robot, algorithm: str) -> None:
    """Raise DefinitionError for a robot with coupled joints: joints that follow others, constant-velocity joints."""
    if robot.coupled_joints:
        names = ", ".join(map(repr, robot.coupled_joints))
        raise DefinitionError(
            f"{algorithm} eliminates joint by joint, which joints that follow others and constant-velocity joints do "
            f"not allow: {names}; legged.forward_dynamics solves such robots with the inertia matrix"
        )


def _bias(links: Links, v: Array, wrenches: Wrenches) -> tuple[list[Array], list[Array]]:
    """Return (p_i, hd_i qd_i) of each body, (6,) each; the velocity product of the base is in `base_bias`."""
    t, external = velocities(links, v), links.wrenches(wrenches)
    p, c = [], []
    for body in outward(links.robot):
        k = body.index
        p_k = cross_force(t[k], links.I[k] @ t[k])
        if body.has_gyroscopic_rotor:
            p_k = p_k + cross_force(t[k], links.H[k] @ v[body.v])
        p.append(p_k - external[k] if k in external else p_k)
        c.append(cross_motion(t[k], links.h[k] @ v[body.v]) if body.parent >= 0 else np.zeros(6))
    return p, c


def articulated_inertias(links: Links) -> ArticulatedInertias:
    """Return the articulated-body inertias of a robot at a configuration: equation (12)."""
    inertia, factors = list(links.I), {}
    for body in inward(links.robot):
        k, h, H = body.index, links.h[body.index], links.H[body.index]
        U = inertia[k] @ h + H
        D = factor_symmetric(mirror(h.T @ U + H.T @ h + body.reflected_inertia))
        Psi = solve_rows(D, U)
        factors[k] = U, D, Psi
        if body.parent >= 0:
            transmitted = mirror(inertia[k] - U @ Psi.T)
            inertia[body.parent] = inertia[body.parent] + links.X[k].transform_inertia(transmitted)
    U, D, Psi = ([factors[k][i] for k in range(len(inertia))] for i in range(3))
    return ArticulatedInertias(inertia, U, D, Psi)


def _inward(
    links: Links, articulated: ArticulatedInertias, p: list[Array], c: list[Array], drive: list[Array]
) -> list[Array]:
    """Return u of each joint, from the bias forces of its articulated body: equation (13)."""
    p, us = list(p), list(drive)
    for body in inward(links.robot):
        k, h = body.index, links.h[body.index]
        if body.parent < 0:
            us[k] = drive[k] - h.T @ p[k]
            continue
        p_a = p[k] + articulated.I[k] @ c[k]
        us[k] = drive[k] - h.T @ p_a - links.H[k].T @ c[k]
        p[body.parent] = p[body.parent] + links.X[k].T @ (p_a + articulated.Psi[k] @ us[k])
    return us


def _outward(links: Links, articulated: ArticulatedInertias, u: list[Array], c: list[Array], a_0: Array) -> Array:
    """Return the joint accelerations, (nv,), outward from the base: equation (14), then (4)."""
    a: dict[int, Array] = {}
    vdot = []
    for body in outward(links.robot):
        k = body.index
        a_p = a_0 if body.parent < 0 else links.X[k] @ a[body.parent]
        qdd = solve_factored(articulated.D[k], u[k] - articulated.U[k].T @ a_p)
        vdot.append((body.v, qdd))
        a[k] = a_p + c[k] + (links.h[k] @ qdd if body.nv else 0.0)
    return scatter(links.robot.nv, vdot)
