"""Local coordinates of a robot's configuration around a reference: what an integrator adds to, over any element.

A quaternion must stay on its sphere, so integrators do not add to it. They add to xi, (nv,), and the configuration is
q = legged.integrate(robot, q_ref, xi): each quaternion is turned by a rotation vector, a floating base's position
moves along the reference's axes, all else is a sum. At the reference xi = 0, and xi has as many entries as v.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from legged.robot.configuration import integrate
from legged.robot.robot import Robot
from legged.rotations import quaternion_exp, quaternion_matrix, rotation_vector_rate
from legged.spatial import cross

Array = np.ndarray


def quaternion_blocks(robot: Robot) -> list[tuple[slice, slice]]:
    """Return where the quaternions lie: (their entries of q, the entries of their angular velocity in v)."""
    blocks = [(slice(0, 4), slice(0, 3))] if robot.base.kind == "floating" else []
    return blocks + [(body.q, body.v) for body in robot.bodies if body.kind == "ball"]


def chart_rate(robot: Robot, xi: Array, v: Array) -> Array:
    """Return the time derivative of xi, (nv,), for the velocity v, (nv,).

    A rotation vector's rate is dexp^-1(xi_i) omega, a floating base's position moves along the reference's axes with
    exp(xi_0) v_0, the rest with v itself.
    """
    rate: list[Any] = list(v)
    for _, at in quaternion_blocks(robot):
        rate[at] = list(rotation_vector_rate(xi[at], v[at]))
    if robot.base.kind == "floating":
        rate[3:6] = list(quaternion_matrix(quaternion_exp(xi[:3])) @ v[3:6])
    return np.stack(rate) if rate else np.zeros(0)


def semi_implicit_euler(robot: Robot, q: Array, v: Array, vdot: Array, h: Any) -> tuple[Array, Array]:
    """Return (q, v) a time h later by the semi-implicit (symplectic) Euler rule: velocities first, then positions.

    A floating base's linear velocity is advanced in axes at rest, where it has no velocity terms, so that a free base
    does not gain speed by turning.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,). vdot: Its rate, (nv,). h: Step, [s].
    """
    return drift(robot, q, v + h * (vdot + velocity_product(robot, v)), h)


def drift(robot: Robot, q: Array, v: Array, h: Any) -> tuple[Array, Array]:
    """Return (q, v) after a time h at constant velocity: a floating base's linear velocity in its new axes.

    What a floating base that turns has of velocity at rest axes does not change, its components do.
    """
    moved = integrate(robot, q, h * v)
    if robot.base.kind != "floating":
        return moved, v
    turn = quaternion_matrix(quaternion_exp(h * v[:3]))
    return moved, np.concatenate([v[:3], turn.T @ v[3:6], v[6:]])


def velocity_product(robot: Robot, v: Array) -> Array:
    """Return what makes of vdot the rate of v in axes at rest, (nv,): omega x v for a floating base's linear part."""
    if robot.base.kind != "floating":
        return np.zeros(robot.nv)
    return np.concatenate([np.zeros(3), cross(v[:3], v[3:6]), np.zeros(robot.nv - 6)])


def largest_rotation(robot: Robot, xi: Array) -> float:
    """Return the length of the longest rotation vector in xi, [rad]. Plain floats only."""
    return max((float(np.linalg.norm(xi[at])) for _, at in quaternion_blocks(robot)), default=0.0)


def normalized(robot: Robot, q: Array) -> Array:
    """Return q with its quaternions scaled to length one."""
    scaled = list(q)
    for at, _ in quaternion_blocks(robot):
        scaled[at] = list(q[at] / np.sqrt((q[at] * q[at]).sum()))
    return np.stack(scaled) if scaled else np.zeros(0)
