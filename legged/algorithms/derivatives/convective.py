"""The convective forces C(q, v) w of two velocities, for control laws with a reference velocity.

The velocity products of the equations of motion, c(q, v) = C(q, v) v, do not determine C. Here C has the Christoffel
symbols of the inertia matrix, so that Idot - 2 C is skew-symmetric. C(q, v) w follows from inverse dynamics by
polarization: no matrix is formed, and the cost is O(n).
"""

from __future__ import annotations

import numpy as np

from legged.checked import checked
from legged.dynamics.arguments import Wrenches, read
from legged.dynamics.inverse import bias_forces, inverse_dynamics
from legged.robot.base import FloatingBase
from legged.robot.robot import Robot
from legged.spatial import Array, cross


@checked
def convective_forces(robot: Robot, q: Array, v: Array, w: Array) -> Array:
    """Return C(q, v) w, (nv,), [N m] or [N], joint axes, with Idot - 2 C skew-symmetric and C(q, v) v = c(q, v).

        C(q, v) w = (c(q, v + w) - c(q, v - w)) / 4 + I b(v, w) / 2

    b is the commutator of the coordinates: zero for joint rates, the cross product of angular velocities for a ball
    joint, and that of twists for a floating base.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,).
        w: Reference velocity, (nv,), [rad/s] or [m/s], in the axes of v.
    """
    q, v, w = read(robot, q=q, v=v, w=w)
    products = 0.25 * (_even(robot, q, v + w) - _even(robot, q, v - w))
    rest = np.zeros(robot.nv)
    return products + inverse_dynamics(robot, q, rest, 0.5 * _commutator(robot, v, w)) - bias_forces(robot, q, rest)


@checked
def reference_inverse_dynamics(
    robot: Robot, q: Array, v: Array, w: Array, wdot: Array, wrenches: Wrenches = None
) -> Array:
    """Return I wdot + C(q, v) w + gravity, joint friction and springs - tau^F, (nv,), [N m] or [N], joint axes.

    Forces tau equal to it make the difference s = v - w of velocities obey I sdot + C(q, v) s = 0, so that its
    kinetic energy s^T I s / 2 is constant. For w = v it is `legged.inverse_dynamics`.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,).
        w: Reference velocity, (nv,), [rad/s] or [m/s], in the axes of v.
        wdot: Its rate, (nv,), [rad/s^2] or [m/s^2], in the same axes.
        wrenches: External wrenches on links, as in `legged.inverse_dynamics`.

    Raises:
        As `legged.inverse_dynamics`.

    Source: Rodriguez, Jain, Kreutz-Delgado 1991, section 6, reports O(n) recursions for the laws of Wen and Bayard
    without stating them; that by polarization is our derivation.
    """
    q, v, w, wdot = read(robot, q=q, v=v, w=w, wdot=wdot)
    s = v - w
    required = inverse_dynamics(robot, q, v, wdot + 0.5 * _commutator(robot, v, w), wrenches)
    return required - 0.25 * (_even(robot, q, v + s) - _even(robot, q, v - s))


def _even(robot: Robot, q: Array, v: Array) -> Array:
    """Return the bias forces without joint friction, which is odd in v."""
    if not any(body.has_friction for body in robot.bodies):
        return bias_forces(robot, q, v)
    return 0.5 * (bias_forces(robot, q, v) + bias_forces(robot, q, -v))


def _commutator(robot: Robot, v: Array, w: Array) -> Array:
    """Return b(v, w), (nv,), of the coordinates that are not rates of positions."""
    b = np.zeros(robot.nv, np.result_type(v, w))
    if isinstance(robot.base, FloatingBase):
        b[:3] = cross(v[:3], w[:3])
        b[3:6] = cross(v[:3], w[3:6]) + cross(v[3:6], w[:3])
    for body in robot.bodies:
        if body.has_quaternion:
            b[body.v] = cross(v[body.v], w[body.v])
    return b
