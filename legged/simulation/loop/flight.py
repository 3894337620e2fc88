"""Motion of a time step without contacts, with velocity-product terms of the velocity in its middle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from legged.dynamics.forward import accelerations
from legged.dynamics.passive import friction_forces
from legged.robot.configuration import scatter_add
from legged.robot.robot import Robot
from legged.simulation.loop.chart import velocity_product

Array = np.ndarray


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


def friction_change(robot: Robot, v: Array, half: Array) -> Any:
    """Return the generalized forces that make joint friction at `half` that at v, (nv,), or 0.0 without friction.

    Args:
        robot: The robot. v, half: Velocities, (nv,) each, mixed units.
    """
    if half is v or not any(body.has_friction for body in robot.bodies):
        return 0.0
    return _joint_friction(robot, half) - _joint_friction(robot, v)


def _joint_friction(robot: Robot, v: Array) -> Array:
    return scatter_add(robot, [friction_forces(body, v) for body in robot.bodies])
