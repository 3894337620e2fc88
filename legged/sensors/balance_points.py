"""Quantities that measure balance: zero-moment point, center of pressure, capture point and support polygon."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from legged.arguments import Numbers, Vector3, array
from legged.checked import checked
from legged.compiler.ir import where
from legged.dynamics.arguments import read
from legged.dynamics.kinematics import center_of_mass, momentum, required_wrench
from legged.errors import ShapeError, SingularError
from legged.robot.robot import Robot
from legged.spatial import Array, cross

ORIGIN, UP = (0.0, 0.0, 0.0), (0.0, 0.0, 1.0)
_LEAST_LOAD = 1e-9  # of the robot's weight: a smaller normal force is rounding error
_THIN = 1e-9  # of the feet's spread: a narrower polygon is a line


@checked
def zero_moment_point(
    robot: Robot, q: Array, v: Array, vdot: Array, origin: Vector3 = ORIGIN, normal: Vector3 = UP
) -> Array:
    """Return the zero-moment point in a plane, (3,), [m], world axes.

        p = o + n x (Ldot + (c - o) x f) / (n . f),      f = m (c_dd - g)

    The wrench that causes the motion has no moment about p in the plane. If all contacts lie in the plane and no other
    force acts on the robot, p is their center of pressure.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,). vdot: Acceleration, (nv,).
        origin: o, a point of the plane, (3,), [m], world axes. normal: n, its unit normal, (3,), world axes.

    Raises:
        SingularError: In flight, where the normal force is zero.
    """
    return pressure_point(robot, required_wrench(robot, q, v, vdot), origin, normal)


@checked
def pressure_point(
    robot: Robot, wrench: Annotated[Array, (6,)], origin: Vector3 = ORIGIN, normal: Vector3 = UP
) -> Array:
    """Return the point of a plane about which a wrench has no moment in the plane, (3,), [m], world axes.

    For the wrench of `ground_wrench` it is the center of pressure.

    Args:
        robot: The robot, whose weight scales the smallest normal force.
        wrench: [n; f] about the world origin, (6,), [N m] and [N], world axes.
        origin: A point of the plane, (3,), [m], world axes. normal: Its unit normal, (3,), world axes.

    Raises:
        SingularError: The normal force is zero.
    """
    load, least = np.asarray(normal) @ wrench[3:], least_load(robot)
    if wrench.dtype == object:
        load = where(load > least, load, 0.0)  # the kernel raises an error for the division by zero
    elif load <= least:
        raise SingularError(f"the normal force is {load:.3g} N: without load there is no center of pressure")
    return zero_moment_of_wrench(wrench, load, origin, normal)


def least_load(robot: Robot) -> float:
    """Return the smallest normal force that is not rounding error, [N].

    Args:
        robot: The robot.
    """
    return _LEAST_LOAD * robot.mass * float(np.linalg.norm(robot.gravity))


def zero_moment_of_wrench(wrench: Array, load: Any, origin: Any, normal: Any) -> Array:
    """Return p = o + n x n_o / load, with n_o the moment of the wrench about o: (3,) or (3, T), [m], world axes.

    Args:
        wrench: [n; f] about the world origin, (6,) or (6, T), [N m] and [N], world axes. load: Normal force, [N].
        origin: o, a point of the plane, [m], world axes. normal: n, its unit normal, world axes.
    """
    moment = wrench[:3] - cross(origin, wrench[3:])
    return np.asarray(origin) + cross(normal, moment) / load


@checked
def capture_point(robot: Robot, q: Array, v: Array, origin: Vector3 = ORIGIN, normal: Vector3 = UP) -> Array:
    """Return the instantaneous capture point on the ground, (3,), [m], world axes.

        x = c + c_d sqrt(h / g),      h the height of the center of mass over the ground

    A robot that steps there comes to rest over its foot. This is exact for a linear inverted pendulum, whose center of
    mass keeps its height.

    Args:
        robot: The robot, with gravity along -z. q: Configuration, (nq,). v: Velocity, (nv,).
        origin: A point of the ground, (3,), [m], world axes. normal: Its unit normal, (3,), world axes.

    Raises:
        SingularError: The center of mass is below the ground (a compiled kernel raises NotFiniteError).

    Source: Pratt, Carff, Drakunov, Goswami 2006, of the linear inverted pendulum.
    """
    q, v = read(robot, q=q, v=v)
    c, velocity = center_of_mass(robot, q), momentum(robot, q, v)[3:] / robot.mass
    if c.dtype != object and height(c, origin, normal) < 0.0:
        raise SingularError(f"the center of mass, at {c}, lies below the ground: there is no capture point")
    return capture_point_of_mass(robot, c, velocity, origin, normal)


def capture_point_of_mass(robot: Robot, c: Array, velocity: Array, origin: Any, normal: Any) -> Array:
    """Return the capture point of a center of mass, (3,) or (3, T), [m], world axes; NaN for one below the plane.

    Args:
        robot: The robot, for its gravity.
        c: Center of mass, (3,) or (3, T), [m], world axes. velocity: Its velocity, (3,) or (3, T), [m/s], world axes.
        origin: A point of the ground, [m], world axes. normal: Its unit normal, world axes.
    """
    time = np.sqrt(height(c, origin, normal) / float(np.linalg.norm(robot.gravity)))
    x, y = c[0] + velocity[0] * time, c[1] + velocity[1] * time
    return np.array([x, y, c[2] - height((x, y, c[2]), origin, normal)])


def height(point: Any, origin: Any, normal: Any) -> Any:
    """Return the height of a point over a plane along z, [m].

    Args:
        point: The point, (3,) or (3, T), [m], world axes.
        origin: A point of the plane, [m], world axes. normal: Its unit normal, world axes.
    """
    return sum(normal[i] * (point[i] - origin[i]) for i in range(3)) / normal[2]


@checked
def support_polygon(feet: Numbers) -> Array:
    """Return the corners of the convex hull of loaded feet, (k, 2), [m], world x and y, counterclockwise from above.

    For feet in a line these are its two ends, for feet in one place that point.

    Args:
        feet: Points that carry load, (n, 2) or (n, 3), [m], world axes, z ignored; at least one.

    Raises:
        ShapeError, NotFiniteError: No feet, a wrong shape or a point that is not finite.
    """
    points = _horizontal("feet", feet, 2)
    if not len(points):
        raise ShapeError("there is no support polygon without feet that carry load")
    center = points.mean(axis=0)
    _, spread, directions = np.linalg.svd(points - center)
    wide, thin = (*spread, 0.0)[:2]
    if wide <= _THIN * (1.0 + np.abs(points).max()):
        return center[None]
    if thin <= _THIN * wide:
        along = (points - center) @ directions[0]
        return points[[along.argmin(), along.argmax()]]
    from scipy.spatial import ConvexHull  # imported here: the import takes long

    return points[ConvexHull(points).vertices]


@checked
def support_margin(point: Numbers, feet: Numbers) -> float:
    """Return the distance of a point inside the support polygon to its boundary, [m]; negative outside.

    For feet in a line no point is inside: the margin is minus the distance to the line segment. A robot in slow motion
    does not tip over while the margin of its center of mass is positive; the center of pressure is never outside.

    Args:
        point: The point, (2,) or (3,), [m], world axes; z is ignored.
        feet: Points that carry load, see `support_polygon`.
    """
    p = _horizontal("point", point, 1)
    corners = support_polygon(feet)
    ends = np.roll(corners, -1, axis=0)
    edges, arms = ends - corners, p - corners
    lengths = np.maximum((edges**2).sum(axis=1), np.finfo(float).tiny)
    along = np.clip((arms * edges).sum(axis=1) / lengths, 0.0, 1.0)
    distance = float(np.linalg.norm(arms - along[:, None] * edges, axis=1).min())
    left = edges[:, 0] * arms[:, 1] - edges[:, 1] * arms[:, 0]
    return distance if len(corners) > 2 and (left >= 0.0).all() else -distance


def _horizontal(what: str, value: Any, dimensions: int) -> Array:
    """Return the x and y of a point or of points, after a check."""
    points = array(what, value)
    if points.ndim != dimensions or points.shape[-1] not in (2, 3):
        shape = "(2,) or (3,)" if dimensions == 1 else "(n, 2) or (n, 3)"
        raise ShapeError(f"{what} must be {shape}, got shape {points.shape}")
    return points[..., :2]
