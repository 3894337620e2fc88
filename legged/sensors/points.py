"""Points on the ground that tell about balance: zero-moment point, center of pressure, capture point."""

from __future__ import annotations

from typing import Any

import numpy as np

from legged.compiler.ir import where
from legged.dynamics.arguments import read
from legged.dynamics.kinematics import center_of_mass, momentum, required_wrench
from legged.errors import SingularError
from legged.robot.robot import Robot
from legged.spatial import Array, cross

ORIGIN, UP = (0.0, 0.0, 0.0), (0.0, 0.0, 1.0)
_PRESSING = 1e-9  # of the robot's weight: below, rounding decides


def zero_moment_point(robot: Robot, q: Array, v: Array, vdot: Array, origin: Any = ORIGIN, normal: Any = UP) -> Array:
    """Return the point of a plane about which the wrench behind the motion only turns about the normal, (3,), [m].

        p = o + n x (Ldot + (c - o) x f) / (n . f),      f = m (c_dd - g)

    Where all contacts lie in the plane and nothing else acts on the robot, it is their center of pressure.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,). vdot: Acceleration, (nv,).
        origin: o, a point of the plane, (3,), [m], world. normal: n, its unit normal, (3,), world.

    Raises:
        SingularError: in flight, where nothing presses on the plane.
    """
    return pressure_point(robot, required_wrench(robot, q, v, vdot), origin, normal)


def pressure_point(robot: Robot, wrench: Array, origin: Any = ORIGIN, normal: Any = UP) -> Array:
    """Return the point of a plane about which a wrench only turns about the normal, (3,), [m], world.

    Of `ground_wrench` it is the center of pressure. For the other arguments and errors see `zero_moment_point`.

    Args:
        robot: Its weight tells what pressing is.
        wrench: [n; f] about the world's origin, (6,), world axes.
    """
    load, least = np.asarray(normal) @ wrench[3:], pressing(robot)
    if wrench.dtype == object:
        load = where(load > least, load, 0.0)  # the kernel refuses the division
    elif load <= least:
        raise SingularError(f"nothing presses on the ground (normal force {load:.3g} N): there is no center of it")
    return point_of_wrench(wrench, load, origin, normal)


def pressing(robot: Robot) -> float:
    """Return the least normal force that counts, [N]."""
    return _PRESSING * robot.mass * float(np.linalg.norm(robot.gravity))


def point_of_wrench(wrench: Array, load: Any, origin: Any, normal: Any) -> Array:
    """Return p = o + n x n_o / load, n_o the wrench's moment about o: (3,), or (3, T) for wrenches (6, T)."""
    moment = wrench[:3] - cross(origin, wrench[3:])
    return np.asarray(origin) + cross(normal, moment) / load


def capture_point(robot: Robot, q: Array, v: Array, origin: Any = ORIGIN, normal: Any = UP) -> Array:
    """Return where a foot must be for the robot to come to rest over it, on the ground, (3,), [m], world.

        x = c + c_d sqrt(h / g),      h the center of mass's height over the ground

    The instantaneous capture point: exact for a linear inverted pendulum, whose center of mass keeps its height.

    Args:
        robot: The robot, gravity along -z. q: Configuration, (nq,). v: Velocity, (nv,).
        origin: A point of the ground, (3,), [m], world. normal: Its unit normal, (3,), world.

    Raises:
        SingularError: for a center of mass below the ground (a compiled kernel: NotFiniteError).

    Source: Pratt, Carff, Drakunov, Goswami 2006, of the linear inverted pendulum.
    """
    q, v = read(robot, q=q, v=v)
    c, velocity = center_of_mass(robot, q), momentum(robot, q, v)[3:] / robot.mass
    if c.dtype != object and height(c, origin, normal) < 0.0:
        raise SingularError(f"the center of mass, at {c}, lies below the ground: there is no capture point")
    return caught(robot, c, velocity, origin, normal)


def caught(robot: Robot, c: Array, velocity: Array, origin: Any, normal: Any) -> Array:
    """Return the capture point, (3,) or (3, T), of centers of mass and their velocities, (3,) or (3, T)."""
    time = np.sqrt(height(c, origin, normal) / float(np.linalg.norm(robot.gravity)))
    x, y = c[0] + velocity[0] * time, c[1] + velocity[1] * time
    return np.array([x, y, c[2] - height((x, y, c[2]), origin, normal)])


def height(point: Any, origin: Any, normal: Any) -> Any:
    """Return how high a point, (3,) or (3, T), lies over the plane, along z, [m]."""
    return sum(normal[i] * (point[i] - origin[i]) for i in range(3)) / normal[2]
