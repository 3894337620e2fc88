"""Local coordinates of a configuration around a reference, and steps along the configuration manifold without contacts.

Integrators add to the chart coordinates xi, (nv,), not to unit quaternions. The configuration is
q = legged.integrate(robot, q_ref, xi): each quaternion is rotated by a rotation vector, the position of a floating base
moves along the axes of the reference, all other entries are sums. xi is zero at the reference.

Variable steps, Runge-Kutta steps and optimal control integrate `chart_rate`. `semi_implicit_euler` moves a robot on
compliant ground, `flight` and `midpoint` belong to the time steps of bodies and robots on rigid ground.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from legged.dynamics.forward import accelerations
from legged.robot.base import FloatingBase
from legged.robot.configuration import drift, quaternion_blocks
from legged.robot.robot import Robot
from legged.rotations import quaternion_exp, quaternion_matrix, rotation_vector_rate
from legged.spatial import cross

Array = np.ndarray


def chart_rate(robot: Robot, xi: Array, v: Array) -> Array:
    """Return the time derivative of the chart coordinates, (nv,).

    It is dexp^-1(xi_i) omega for a rotation vector, exp(xi_0) v_0 for the position of a floating base, and v otherwise.

    Args:
        robot: The robot. xi: Chart coordinates, (nv,). v: Velocity, (nv,).
    """
    rate: list[Any] = list(v)
    for _, at in quaternion_blocks(robot):
        rate[at] = list(rotation_vector_rate(xi[at], v[at]))
    if isinstance(robot.base, FloatingBase):
        rate[3:6] = list(quaternion_matrix(quaternion_exp(xi[:3])) @ v[3:6])
    return np.stack(rate) if rate else np.zeros(0)


def semi_implicit_euler(robot: Robot, q: Array, v: Array, vdot: Array, h: Any) -> tuple[Array, Array]:
    """Return (q, v) after a semi-implicit (symplectic) Euler step, (nq,) and (nv,): velocities first, then positions.

    The linear velocity of a floating base is advanced in axes that do not rotate, where it has no velocity-product
    term, so that a free base does not gain speed by rotation.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,). vdot: Its rate, (nv,). h: Time step, [s].
    """
    return drift(robot, q, v + h * (vdot + velocity_product(robot, v)), h)


def velocity_product(robot: Robot, v: Array) -> Array:
    """Return the velocity-product term of a floating base, (nv,): omega x v in its linear entries, zero elsewhere.

    Added to vdot, it gives the rate of v in axes that do not rotate.

    Args:
        robot: The robot. v: Velocity, (nv,).

    Returns:
        (nv,), [m/s^2] in the linear entries, base axes.
    """
    if not isinstance(robot.base, FloatingBase):
        return np.zeros(robot.nv)
    return np.concatenate([np.zeros(3), cross(v[:3], v[3:6]), np.zeros(robot.nv - 6)])


def largest_rotation(robot: Robot, xi: Array) -> float:
    """Return the length of the longest rotation vector in the chart coordinates, [rad]; for floats only.

    Args:
        robot: The robot. xi: Chart coordinates, (nv,).
    """
    return max((float(np.linalg.norm(xi[at])) for _, at in quaternion_blocks(robot)), default=0.0)


def flight(robot: Robot, h: Any, q: Array, v: Array, wrenches: Any = None) -> Array:
    """Return the velocity of a free body after a time step without contacts, (nv,), linear part in axes at rest.

    Args:
        robot: The body. h: Time step, [s].
        q: Configuration in the middle of the step, (nq,). v: Velocity before the step, (nv,).
        wrenches: Wrenches on its links, (n_links, 6), or None.
    """
    none = np.zeros(robot.nv)

    def acceleration(v: Array) -> Array:
        return accelerations(robot, q, v, none, wrenches, none) + velocity_product(robot, v)

    return v + h * acceleration(midpoint(h, v, acceleration))


def midpoint(h: Any, v: Array, acceleration: Callable[[Array], Array]) -> Array:
    """Return an estimate of the velocity in the middle of a step, (nv,), for its velocity-product terms.

    Args:
        h: Time step, [s]. v: Velocity before it, (nv,).
        acceleration: Function v -> vdot, (nv,), mixed units, in axes that do not rotate.
    """
    return v + 0.5 * h * acceleration(v)
