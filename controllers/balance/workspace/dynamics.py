"""Algorithm 3: the central body's articulated inertia and bias, inward from feet that stand fast."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from controllers.balance.workspace.feet import Foot
from controllers.balance.workspace.passes import Outward
from legged.compiler.ir.annotations import stage
from legged.dynamics.sweeps import inward
from legged.robot.articulated import JointFactors, eliminate
from legged.robot.body import Body
from legged.robot.inertia import Inertia
from legged.robot.robot import Robot
from legged.spatial import Array, mirror, solve_factored

STAGE_3 = "3 workspace dynamics"
Drive = Callable[[Body, Array, Array], Array]
"""Torque of a joint beside what the stance asks of it, (nv of the joint,): from the body behind it, the inertia D that
it meets, and the torque that holds it where its parent does not accelerate."""


class Inward(NamedTuple):
    """What the inward pass leaves.

    Attributes:
        P, z: Of the central body, (6, 6) and (6,), about its origin in its axes: a wrench F accelerates it by td with
            F = P td + z, td = [omega dot; acceleration of the origin].
        factors: Of each joint, as in forward dynamics.
        phi: D^-1 (tau - f - H^T z) of each joint: how it accelerates where its parent does not.
        tau: Torque of each joint that `drive` asks for.
    """

    P: Array
    z: Array
    factors: dict[int, JointFactors]
    phi: dict[int, Array]
    tau: dict[int, Array]


def loaded(
    out: Outward, robot: Robot, feet: Sequence[Foot], loads: Sequence[Any], central: Inertia, big: float
) -> tuple[list[Array], list[Array]]:
    """Return (P, z) of each body by itself, with a big base at each foot that stands: the start of algorithm 3.

        P_k = M_k + c M_1,      z_k = c M_1 a_k

    The paper puts c M_1 in the place of a foot's own mass; to have both is the same where c is large, and serves points
    on a shank and feet in the air as well. The big base has no weight and no Coriolis forces, as in the paper.

    Args:
        out: The outward pass. robot: The robot. feet: Those that may stand.
        loads: 1 for each that does, 0 for one in the air.
        central: M_1. big: c, 10^6 in the paper.
    """
    P, z = [body.regrouped.M for body in robot.bodies], list(out.z)
    with stage(STAGE_3):
        for foot, load in zip(feet, loads, strict=True):
            k, base = foot.body, (big * load) * foot.big_base(central)
            P[k] = P[k] + base
            z[k] = z[k] + base @ out.rate_at(k, foot.center)
    return P, z


def inward_pass(robot: Robot, out: Outward, P: list[Array], z: list[Array], drive: Drive) -> Inward:
    """Return the central body's articulated inertia and bias.

        D = H^T P H,   L = 1 - H D^-1 H^T P,   P_i += A^T L^T P L A,   z_i += A^T L^T z

    for each joint from a link k.o to the link k.i inward of it, with torques of joints that carry no stance, and all
    that friction, springs and rotors take, added to the paper's.

    Args:
        robot: The robot. out: The outward pass. P, z: Of each body by itself. drive: Of joints beside the stance.

    Source: Wendlandt 1997, algorithm 3.
    """
    P, z = list(P), list(z)
    found = Inward(np.zeros((6, 6)), np.zeros(6), {}, {}, {})
    with stage(STAGE_3):
        for body in inward(robot):
            k = body.index
            if body.kind == "base":
                continue
            H, X = body.P, out.X[k]
            factors, remaining = eliminate(body, P[k], body.rotor_inertia)
            D = H.T @ (P[k] @ H + body.rotor_momentum) + body.rotor_inertia
            hold = out.f[k] + H.T @ z[k]
            found.tau[k] = drive(body, D, hold)
            phi_hat = found.tau[k] - hold
            found.factors[k], found.phi[k] = factors, solve_factored(factors.I_hat, phi_hat)
            P[body.parent] = P[body.parent] + X.transform_inertia(remaining)
            z[body.parent] = z[body.parent] + X.T @ (z[k] + factors.Psi @ phi_hat)
        return found._replace(P=mirror(P[0]), z=z[0] - P[0] @ (out.td[0] + out.gravity[0]))
