"""Recursions shared by the algorithms: transforms, twists, twist rates and body wrenches (step 1 of the paper)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from legged.compiler.ir.annotations import item, module
from legged.dynamics.arguments import Wrenches, body_wrenches
from legged.dynamics.passive import friction_forces, rotor_forces, spring_forces
from legged.robot.body import Body, Moments
from legged.robot.robot import Robot
from legged.spatial import Array, Transform, angular_acceleration_tensor, cross, join

STEP_1 = "1 twists, rates, wrenches"
STEP_2 = "2 inward"
STEP_3 = "3 outward"


def outward(robot: Robot) -> Iterator[Body]:
    """Yield the bodies from the base outward, module by module, each module from its first link to its last."""
    for m in robot.modules:
        with module(m.index):
            for k in m.bodies:
                with item(k):
                    yield robot.bodies[k]


def inward(robot: Robot) -> Iterator[Body]:
    """Yield the bodies in the order opposite to `outward`, the base last."""
    for m in reversed(robot.modules):
        with module(m.index):
            for k in reversed(m.bodies):
                with item(k):
                    yield robot.bodies[k]


def transforms(robot: Robot, q: Array) -> list[Transform]:
    """Return the transform X of each body from its parent; the base has the identity.

    Args:
        robot: The robot. q: Configuration, (nq,).
    """
    return [Transform(()) if body.kind == "base" else body.transform(q) for body in outward(robot)]


def base_rate(robot: Robot, q: Array, v: Array, vdot: Array | None = None) -> tuple[Array, Array]:
    """Return the base's twist t_0 and its rate td_0, both (6,), base axes, with gravity as an upward acceleration.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,).
        vdot: Acceleration, (nv,); None for zero, which gives the paper's t_0'.

    Source: Shah, Saha, Dutt 2012, eq. (7); gravity as in the authors' code.
    """
    base, n0 = robot.base, robot.base.nv
    R, _ = base.pose(q)
    P_0 = base.motion_matrix(q)
    t = P_0 @ v[:n0] if n0 else np.zeros(6)
    td = base.motion_bias(q, v) - join(np.zeros(3), R.T @ robot.gravity)
    if vdot is not None and n0:
        td = td + P_0 @ vdot[:n0]
    return t, td


def joint_rate(body: Body, q: Array, v: Array, vdot: Array | None, t: Array, td: Array) -> tuple[Array, Array]:
    """Return a body's twist t_k and its rate td_k, both (6,), body axes, from its parent's: equation (1) and its rate.

        t_k  = A t_p + p qd
        td_k = A td_p + Ad t_p + p qdd + pd qd,     pd qd = [omega x e qd; 2 omega x e qd]

    The factor 2 for a prismatic joint is the Coriolis acceleration.

    Args:
        body: The body. q: Configuration of the robot, (nq,). v: Its velocity, (nv,).
        vdot: Its acceleration, (nv,); None for zero.
        t: The parent's twist, (6,), [rad/s, m/s], parent axes. td: Its rate, (6,), [rad/s^2, m/s^2], parent axes.
    """
    t, td = body.to_joint(q).twist_and_rate(t, td)
    p_qd = body.P @ v[body.v]
    td = td + join(cross(t[:3], p_qd[:3]), 2.0 * cross(t[:3], p_qd[3:]))
    if vdot is not None:
        td = td + body.P @ vdot[body.v]
    return body.from_joint().twist_and_rate(t + p_qd, td)


def newton_euler(moments: Moments, t: Array, td: Array) -> Array:
    """Return the wrench w = M td + Omega M E t, (6,), [N m, N], about the body's origin, body axes, equation (17).

    It is written with Phi = omegad~ + omega~ omega~, which the transforms use as well: a point r of the body has the
    acceleration ao + Phi r, and with the moments of mass m, h = m d, J = sum of m r r^T,

        f = m ao + Phi h,      n = h x ao + axial(Phi J),

    where axial(K) is the vector of K - K^T.

    Args:
        moments: Moments of mass about the body's origin, body axes.
        t: The body's twist, (6,), [rad/s, m/s], body axes. td: Its rate, (6,), [rad/s^2, m/s^2], body axes.

    Source: Shah, Saha, Dutt 2012, eq. (17); the form is that of Balafoutis, Patel, Misra 1988.
    """
    Phi, ao = angular_acceleration_tensor(t[:3], td[:3]), td[3:]
    mass, h, J = moments.mass, moments.h, moments.J
    n = []
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        moment = J[j, j] * Phi[k, j] - J[k, k] * Phi[j, k] + J[j, k] * (Phi[k, k] - Phi[j, j])
        n.append(moment + (J[i, j] * Phi[k, i] - J[i, k] * Phi[j, i]))
    return join(np.array(n) + cross(h, ao), mass * ao + Phi @ h)


def twists_and_rates(robot: Robot, q: Array, v: Array, vdot: Array | None) -> tuple[list[Array], list[Array]]:
    """Return the twist t and twist rate td of each body, (6,), body axes, with gravity as an upward acceleration.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,).
        vdot: Acceleration, (nv,); None for zero, which gives the paper's t'.
    """
    t: list[Array] = []
    td: list[Array] = []
    for body in outward(robot):
        if body.kind == "base":
            t_k, td_k = base_rate(robot, q, v, vdot)
        else:
            t_k, td_k = joint_rate(body, q, v, vdot, t[body.parent], td[body.parent])
        t.append(t_k)
        td.append(td_k)
    return t, td


def outward_forces(
    robot: Robot, q: Array, v: Array, vdot: Array | None, wrenches: Wrenches
) -> tuple[list[Array], list[Array]]:
    """Return the wrench w of each body and the passive force f of each joint: step 1.

    w = M td + Omega M E t - w^F, (6,), [N m, N], about the body's origin in body axes, with the moment of the joint's
    rotor; f, (nv of the joint,), [N m] or [N], is the force that overcomes friction, springs and rotor inertia.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,). vdot: Acceleration, (nv,); None for zero.
        wrenches: External wrenches on links, as in `inverse_dynamics`.
    """
    w_F = body_wrenches(robot, wrenches)
    t, td = twists_and_rates(robot, q, v, vdot)
    w, f = [], []
    for body in outward(robot):
        k = body.index
        own = newton_euler(body.regrouped, t[k], td[k])
        moment, force = rotor_forces(body, v, vdot, t[k], td[k])
        own = own + join(moment, np.zeros(3))
        w.append(own - w_F[k] if k in w_F else own)
        f.append(force + friction_forces(body, v) + spring_forces(body, q))
    return w, f
