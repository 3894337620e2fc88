"""Motion of a time step without contacts, with velocity-product terms of the velocity in its middle."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from legged.dynamics.forward import accelerations
from legged.dynamics.passive import friction_forces
from legged.robot.configuration import scatter_add
from legged.robot.robot import Robot
from legged.simulation.loop.chart import velocity_product

Array = np.ndarray
Acceleration = Callable[[Array, Array, Array, Any, Array], Array]
"""Function of (q, v, tau, wrenches, extra) that returns vdot; see `accelerations`."""


def flight(robot: Robot, h: Any, q: Array, v: Array, wrenches: Any = None) -> Array:
    """Return the velocity of a free body after a time step without contacts, (nv,), linear part in axes at rest.

    Args:
        robot: The body. h: Time step, [s].
        q: Configuration in the middle of the step, (nq,). v: Velocity before the step, (nv,).
        wrenches: Wrenches on its links, (n_links, 6), or None.
    """
    none, acceleration = np.zeros(robot.nv), partial(accelerations, robot)
    half, tau = midpoint(robot, h, q, v, none, wrenches, none, acceleration, robot)
    return v + h * (acceleration(q, half, tau, wrenches, none) + velocity_product(robot, half))


def midpoint(
    robot: Robot,
    h: Any,
    q: Array,
    v: Array,
    tau: Array,
    wrenches: Any,
    extra: Array,
    acceleration: Acceleration,
    rubbed: Robot,
) -> tuple[Array, Array]:
    """Return an estimate of the velocity in the middle of a step, for velocity-product terms, and forces, (nv,) each.

    The forces are tau and what makes joint friction that of v; `extra` makes it implicit.

    Args:
        robot: The robot. h: Time step, [s].
        q: Configuration in the middle of the step, (nq,). v: Velocity before the step, (nv,).
        tau: Generalized forces, (nv,), [N m] or [N]. wrenches: Wrenches on the links, (n_links, 6).
        extra: Inertia added at the joints, (nv,), [kg m^2] or [kg]; see `accelerations`.
        acceleration: The equations of motion. rubbed: The robot with the joint friction that they contain.
    """
    half = v + 0.5 * h * (acceleration(q, v, tau, wrenches, extra) + velocity_product(robot, v))
    if any(body.has_friction for body in rubbed.bodies):
        tau = tau + _joint_friction(rubbed, half) - _joint_friction(rubbed, v)
    return half, tau


def _joint_friction(robot: Robot, v: Array) -> Array:
    return scatter_add(robot, [friction_forces(body, v) for body in robot.bodies])
