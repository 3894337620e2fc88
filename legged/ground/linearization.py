"""Linearization of a robot's dynamics about a state: the matrices A and B of its deviations, with or without a ground.

A, B, vdot = legged.linearize(robot, q, v, tau)
along = legged.compile(legged.linearize, robot)(run.q, run.v, run.tau)     # A and B at every sample of a run
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from legged.algorithms.derivatives import of_forward_dynamics
from legged.checked import checked
from legged.compiler import jacobian
from legged.dynamics.arguments import Wrenches, read
from legged.dynamics.forward import forward_dynamics
from legged.dynamics.inverse import bias_forces
from legged.errors import ArgumentError
from legged.ground.ground import Ground, contact_motion, contact_wrenches
from legged.robot.base import FloatingBase
from legged.robot.configuration import integrate
from legged.robot.robot import Robot
from legged.spatial import Array, skew


class Linearization(NamedTuple):
    """The linear model of deviations x = [dq; dv] from a moving reference: xdot = A x + B dtau.

    dq is a deviation along the configuration manifold, q = legged.integrate(robot, q_reference, dq): a floating base's
    first six entries are a rotation vector and a displacement in base axes. All units are mixed, as those of q, v, tau.

    Attributes:
        A: (2 nv, 2 nv). B: (2 nv, nv).
        vdot: Acceleration of the reference, (nv,).
    """

    A: Array
    B: Array
    vdot: Array


@checked
def linearize(
    robot: Robot, q: Array, v: Array, tau: Array, wrenches: Wrenches = None, ground: Ground | None = None
) -> Linearization:
    """Return the linear model of the dynamics about a state.

        d dq/dt = dv - v x dq  (for the entries of quaternions and of a floating base; dv elsewhere)
        d dv/dt = dvdot/dq dq + dvdot/dv dv + M^-1 dtau

    The dynamics' derivatives are those of `legged.algorithms.derivatives`; those of the ground's forces are found by
    automatic differentiation. The function can be traced: compile it for speed or for many states. Time steps on rigid
    ground, and limit cycles, are those of `legged.differentiation`.

    Args:
        robot: The robot.
        q: Configuration, (nq,). v: Velocity, (nv,). tau: Generalized forces, (nv,), base rows first.
        wrenches: External wrenches as in `legged.forward_dynamics`; constant in each link's axes.
        ground: A compliant ground whose forces follow from positions and velocities. The memory of a bristle friction
            law is held at zero, so that friction acts as a spring and damper attached at the present foot position.

    Raises:
        ArgumentError: The ground is not a `legged.ground.Ground`.
        SingularError: The dynamics have no solution.
    """
    q, v, tau = read(robot, q=q, v=v, tau=tau)
    nv = robot.nv
    total = tau
    by_q, by_v = np.zeros((nv, nv)), np.zeros((nv, nv))
    if ground is not None:
        if not isinstance(ground, Ground):
            raise ArgumentError(f"ground must be a legged.ground.Ground, whose forces are smooth, got {ground!r}")
        surface = ground.under(robot)

        def contact_forces(dq: Array, q: Array, v: Array) -> Array:
            moved = integrate(robot, q, dq)
            forces, _ = surface.forces(*contact_motion(robot, moved, v))
            at_rest = np.zeros(nv)
            loaded = bias_forces(robot, moved, at_rest, contact_wrenches(robot, moved, forces))
            return bias_forces(robot, moved, at_rest) - loaded

        zero = 0.0 * v
        total = tau + contact_forces(zero, q, v)
        by_q, by_v = (
            jacobian(contact_forces, "dq", "forward")(zero, q, v),
            jacobian(contact_forces, "v", "forward")(zero, q, v),
        )
    by = of_forward_dynamics(robot, q, v, total, wrenches)
    lower = np.concatenate([by.q + by.tau @ by_q, by.v + by.tau @ by_v], axis=1)
    upper = np.concatenate([_transport(robot, v), np.eye(nv)], axis=1)
    B = np.concatenate([np.zeros((nv, nv)), by.tau])
    return Linearization(np.concatenate([upper, lower]), B, forward_dynamics(robot, q, v, total, wrenches))


def _transport(robot: Robot, v: Array) -> Array:
    """Return T, (nv, nv), with d dq/dt = dv + T dq: the rotation of the axes of dq."""
    entries = [[0.0] * robot.nv for _ in range(robot.nv)]

    def put(row: int, column: int, block: Array) -> None:
        for i in range(3):
            for j in range(3):
                entries[row + i][column + j] = block[i, j]

    if isinstance(robot.base, FloatingBase):
        put(0, 0, -skew(v[0:3]))
        put(3, 3, -skew(v[0:3]))
        put(3, 0, -skew(v[3:6]))
    for body in robot.bodies:
        if body.has_quaternion and not body.follows:
            put(body.v.start, body.v.start, -skew(v[body.v]))
    return np.stack([np.stack(row) for row in entries]) if robot.nv else np.zeros((0, 0))
