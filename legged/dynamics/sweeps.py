"""The sweeps that the algorithms share: transforms, and twists and twist rates outward (the paper's step 1)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from legged.compiler.ir.annotations import item, module
from legged.dynamics.arguments import Wrenches, body_wrenches
from legged.dynamics.passive import friction_forces, rotor_forces, spring_forces
from legged.robot.body import Body
from legged.robot.robot import Robot
from legged.spatial import Array, Transform, angular_acceleration_tensor, cross, join

STEP_1 = "1 twists, rates, wrenches"
STEP_2 = "2 inward"
STEP_3 = "3 outward"


def outward(robot: Robot) -> Iterator[Body]:
    """Yield the bodies, module by module and inside each module from its first link to its last; the base too."""
    for m in robot.modules:
        with module(m.index):
            for k in m.bodies:
                with item(k):
                    yield robot.bodies[k]


def inward(robot: Robot) -> Iterator[Body]:
    """Yield the bodies in the opposite order, the base last."""
    for m in reversed(robot.modules):
        with module(m.index):
            for k in reversed(m.bodies):
                with item(k):
                    yield robot.bodies[k]


def transforms(robot: Robot, q: Array) -> list[Transform]:
    """Return X of each body, from its parent; the base's has no steps."""
    return [Transform(()) if body.kind == "base" else body.transform(q) for body in outward(robot)]


def base_rate(robot: Robot, q: Array, v: Array, vdot: Array | None = None) -> tuple[Array, Array]:
    """Return (t_0, td_0), both (6,), base axes: the base's twist and its rate, gravity as an upward acceleration.

    With vdot None the base's own acceleration is left out: td_0 is then the paper's t_0'.

    Source: Shah, Saha, Dutt 2012, eq. (7); gravity as the authors' code has it.
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
    """Return (t_k, td_k) of a body from its parent's, equation (1) and its rate, all (6,), each in its body's axes.

        t_k  = A t_p + p qd
        td_k = A td_p + Ad t_p + p qdd + pd qd,     pd qd = [omega x e qd; 2 omega x e qd]

    A turning axis brings omega x, a sliding one twice that (Coriolis). With vdot None, p qdd is left out.
    """
    t, td = body.to_joint(q).twist_and_rate(t, td)
    p_qd = body.P @ v[body.v]
    td = td + join(cross(t[:3], p_qd[:3]), 2.0 * cross(t[:3], p_qd[3:]))
    if vdot is not None:
        td = td + body.P @ vdot[body.v]
    return body.from_joint().twist_and_rate(t + p_qd, td)


def newton_euler(body: Body, t: Array, td: Array) -> Array:
    """Return w = M td + Omega M E t, (6,), [n; f] about the body's origin, body axes, equation (17).

    Regrouped around Phi = omegad~ + omega~ omega~, which the neighbors need as well: every point r of the body
    accelerates by ao + Phi r, and with the moments of mass m, h = m d, J = sum of m r r^T,

        f = m ao + Phi h,      n = h x ao + axial(Phi J),

    where axial(K) is the vector of K - K^T.

    Source: Shah, Saha, Dutt 2012, eq. (17); the regrouping is that of Balafoutis, Patel, Misra 1988.
    """
    Phi, ao = angular_acceleration_tensor(t[:3], td[:3]), td[3:]
    mass, h, J = body.regrouped.mass, body.regrouped.h, body.regrouped.J
    n = []
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        turning = J[j, j] * Phi[k, j] - J[k, k] * Phi[j, k] + J[j, k] * (Phi[k, k] - Phi[j, j])
        n.append(turning + (J[i, j] * Phi[k, i] - J[i, k] * Phi[j, i]))
    return join(np.array(n) + cross(h, ao), mass * ao + Phi @ h)


def twists_and_rates(robot: Robot, q: Array, v: Array, vdot: Array | None) -> tuple[list[Array], list[Array]]:
    """Return t and td of each body, (6,), in its axes; without vdot the paper's t', at vdot = 0."""
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
    """Return (w, f): step 1.

    w = M td + Omega M E t - w^F of each body, (6,), about its origin in its axes, the moment of its joint's rotor with
    it; f of each joint, (nv of the joint,), what friction, springs and rotors take there.
    """
    w_F = body_wrenches(robot, wrenches)
    t, td = twists_and_rates(robot, q, v, vdot)
    w, f = [], []
    for body in outward(robot):
        k = body.index
        own = newton_euler(body, t[k], td[k])
        moment, force = rotor_forces(body, v, vdot, t[k], td[k])
        own = own + join(moment, np.zeros(3))
        w.append(own - w_F[k] if k in w_F else own)
        f.append(force + friction_forces(body, v) + spring_forces(body, q))
    return w, f
