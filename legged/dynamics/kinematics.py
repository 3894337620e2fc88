"""Poses, twists, Jacobians, center of mass, momentum and energy by O(n) outward recursions.

World quantities are in world axes. A point on a link is given by the link's name or index and a position in the axes
of the link as defined by the user.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from legged.arguments import whole
from legged.checked import checked
from legged.compiler.ir import items
from legged.dynamics.arguments import read
from legged.dynamics.modules import newton_euler, outward, transforms, twists_and_rates
from legged.dynamics.passive import rotor_forces, spring_energy
from legged.errors import ShapeError
from legged.robot.link import PlacedLink
from legged.robot.robot import Robot
from legged.spatial import Array, angular_acceleration_tensor, cross, join, sum_of


class Motion(NamedTuple):
    """Poses and twists of all bodies.

    Attributes:
        rotation: R of each body, (3, 3), body axes to world axes.
        origin: Each body's origin, (3,), [m], world axes.
        twist: [omega; velocity of the origin] of each body, (6,), [rad/s, m/s], body axes; empty without a velocity.
    """

    rotation: list[Array]
    origin: list[Array]
    twist: list[Array]


def motion(robot: Robot, q: Array, v: Array | None = None) -> Motion:
    """Return pose and twist of every body, eq. (1), in the order of `robot.bodies`.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,); None for poses alone.
    """
    X = transforms(robot, q)
    rotation, origin, twist = [], [], []
    for body in outward(robot):
        if body.is_base:
            R, o = robot.base.pose(q)
            t = robot.base.motion_matrix(q) @ v[body.v] if v is not None and body.nv else np.zeros(6)
        else:
            R, o = X[body.index].child_pose(rotation[body.parent], origin[body.parent])
            t = X[body.index] @ twist[body.parent] + body.P @ v[body.v] if v is not None else np.zeros(6)
        rotation.append(R)
        origin.append(o)
        twist.append(t)
    return Motion(rotation, origin, twist if v is not None else [])


@checked
def link_poses(robot: Robot, q: Array) -> tuple[Array, Array]:
    """Return (R, o) of all links: rotation matrices from link to world axes, (n_links, 3, 3), and origins in the world,
    (n_links, 3), [m].

    Args:
        robot: The robot. q: Configuration, (nq,).
    """
    (q,) = read(robot, q=q)
    at = motion(robot, q)
    R = [at.rotation[link.body] @ link.rotation for link in items(robot.links)]
    o = [at.origin[link.body] + at.rotation[link.body] @ link.position for link in items(robot.links)]
    return np.array(R), np.array(o)


@checked
def link_twists(robot: Robot, q: Array, v: Array) -> Array:
    """Return [omega; velocity of the link's origin] of every link, (n_links, 6), [rad/s, m/s], link axes.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,).
    """
    q, v = read(robot, q=q, v=v)
    at = motion(robot, q, v)
    twists = []
    for link in items(robot.links):
        t = at.twist[link.body]
        moved = t[3:] + cross(t[:3], link.position)
        twists.append(join(link.rotation.T @ t[:3], link.rotation.T @ moved))
    return np.array(twists)


@checked
def point_positions(robot: Robot, q: Array, points: Sequence[tuple[str | int, Array]]) -> Array:
    """Return the positions of points, (n, 3), [m], world axes.

    Args:
        robot: The robot. q: Configuration, (nq,).
        points: (link, position (3,), [m], link axes) of each point.
    """
    (q,) = read(robot, q=q)
    at = motion(robot, q)
    return np.array([at.origin[k] + at.rotation[k] @ r for k, r in items(on_bodies(robot, points))]).reshape(-1, 3)


@checked
def point_motion(robot: Robot, q: Array, v: Array, points: Sequence[tuple[str | int, Array]]) -> tuple[Array, Array]:
    """Return (positions, velocities) of points, both (n, 3), [m] and [m/s], world axes.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,).
        points: (link, position (3,), [m], link axes) of each point.
    """
    q, v = read(robot, q=q, v=v)
    at = motion(robot, q, v)
    positions, velocities = [], []
    for k, r in items(on_bodies(robot, points)):
        positions.append(at.origin[k] + at.rotation[k] @ r)
        velocities.append(at.rotation[k] @ (at.twist[k][3:] + cross(at.twist[k][:3], r)))
    return np.array(positions).reshape(-1, 3), np.array(velocities).reshape(-1, 3)


@checked
def point_jacobian(robot: Robot, q: Array, link: str | int, point: Array = (0.0, 0.0, 0.0)) -> Array:  # type: ignore[assignment]
    """Return J, (6, nv), with [omega; velocity of the point] = J @ v in world axes.

    Args:
        robot: The robot. q: Configuration, (nq,).
        link: Name or index of the link that carries the point. point: Its position, (3,), [m], link axes.

    Source: the columns are A_(k,j) p_j of eq. (5), taken at the point.
    """
    (q,) = read(robot, q=q)
    ((k, r),) = on_bodies(robot, [(link, np.asarray(point))])
    return jacobian_at(robot, q, motion(robot, q), k, r)


def jacobian_at(robot: Robot, q: Array, at: Motion, k: int, r: Array) -> Array:
    """Return the Jacobian of `point_jacobian`, (6, nv), world axes, from known poses of the bodies.

    Args:
        robot: The robot. q: Configuration, (nq,). at: Poses at q.
        k: Index of the body that carries the point. r: Position of the point, (3,), [m], body axes.
    """
    where = at.origin[k] + at.rotation[k] @ r
    J = np.zeros((6, robot.nv), dtype=object if robot.is_traced or q.dtype == object else float)
    for index in items(robot.ancestors(k)):
        body = robot.bodies[index]
        P = body.motion_matrix(robot.base, q)
        R, arm = at.rotation[index], where - at.origin[index]
        for column in range(body.nv):
            omega, velocity = R @ P[:3, column], R @ P[3:, column]
            J[:, body.v.start + column] += join(omega, velocity + cross(omega, arm))
    return J


@checked
def point_twist_rates(
    robot: Robot, q: Array, v: Array, vdot: Array, points: Sequence[tuple[str | int, Array]]
) -> Array:
    """Return [omega dot of the link; acceleration of the point] for each point, (n, 6), [rad/s^2, m/s^2], world axes.

    These are coordinate accelerations, without gravity. With vdot = 0 they are Jdot @ v of the points' Jacobians.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,). vdot: Acceleration, (nv,).
        points: (link, position (3,), [m], link axes) of each point.
    """
    q, v, vdot = read(robot, q=q, v=v, vdot=vdot)
    R = motion(robot, q).rotation
    t, td = twists_and_rates(robot, q, v, vdot)
    rates = [twist_rate_at(robot, R[k], t[k], td[k], r) for k, r in items(on_bodies(robot, points))]
    return np.array(rates).reshape(-1, 6)


def twist_rate_at(robot: Robot, R: Array, t: Array, td: Array, r: Array) -> Array:
    """Return the twist rate of `point_twist_rates`, (6,), world axes, from the known motion of the point's body.

    Args:
        robot: The robot. R: The rotation matrix, (3, 3), body to world axes.
        t: Twist of the body, (6,), body axes. td: Its rate with gravity, (6,), body axes, see `twists_and_rates`.
        r: Position of the point, (3,), [m], body axes.
    """
    acceleration = td[3:] + angular_acceleration_tensor(t[:3], td[:3]) @ r
    return join(R @ td[:3], R @ acceleration + robot.gravity)


@checked
def point_accelerations(
    robot: Robot, q: Array, v: Array, vdot: Array, points: Sequence[tuple[str | int, Array]]
) -> Array:
    """Return the accelerations of points, (n, 3), [m/s^2], world axes; arguments as in `point_twist_rates`."""
    return point_twist_rates(robot, q, v, vdot, points)[:, 3:]


@checked
def center_of_mass(robot: Robot, q: Array) -> Array:
    """Return the robot's center of mass, (3,), [m], world axes.

    Args:
        robot: The robot. q: Configuration, (nq,).
    """
    (q,) = read(robot, q=q)
    at = motion(robot, q)
    first = np.zeros(3)
    for body in outward(robot):
        first = first + (body.moments.mass * at.origin[body.index] + at.rotation[body.index] @ body.moments.h)
    return first / robot.mass


@checked
def momentum(robot: Robot, q: Array, v: Array) -> Array:
    """Return [angular momentum about the center of mass; linear momentum], (6,), [kg m^2/s, kg m/s], world axes.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,).
    """
    q, v = read(robot, q=q, v=v)
    at = motion(robot, q, v)
    c = center_of_mass(robot, q)
    angular, linear = np.zeros(3), np.zeros(3)
    for body in outward(robot):
        R = at.rotation[body.index]
        part = body.M @ at.twist[body.index] + body.rotor_momentum @ v[body.v]
        f = R @ part[3:]
        angular = angular + R @ part[:3] + cross(at.origin[body.index] - c, f)
        linear = linear + f
    return join(angular, linear)


@checked
def kinetic_energy(robot: Robot, q: Array, v: Array) -> float:
    """Return the kinetic energy, [J], of bodies, t^T M t / 2, and of rotors and armature, see `Body.rotor_momentum`.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,).
    """
    q, v = read(robot, q=q, v=v)
    total: Any = 0.0
    for body, t in zip(outward(robot), motion(robot, q, v).twist, strict=True):
        rates = v[body.v]
        momentum = body.M @ t + 2.0 * (body.rotor_momentum @ rates)
        total = total + (t @ momentum + rates @ (body.reflected_inertia @ rates))
    return 0.5 * total


@checked
def potential_energy(robot: Robot, q: Array) -> float:
    """Return the potential energy of gravity and springs, [J].

    The part of gravity is zero with the center of mass at the world's origin.

    Args:
        robot: The robot. q: Configuration, (nq,).
    """
    (q,) = read(robot, q=q)
    springs = sum_of(spring_energy(body, q) for body in robot.bodies)
    return springs - robot.mass * (robot.gravity @ center_of_mass(robot, q))


@checked
def required_wrench(robot: Robot, q: Array, v: Array, vdot: Array) -> Array:
    """Return the external wrench [n; f] required besides gravity, (6,), [N m, N], about the world's origin, world axes.

        f = m (c_dd - g),      n = c x f + Ldot

    Without other external forces it is the wrench of the ground; with a fixed base, that of the mount on the base.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,). vdot: Acceleration, (nv,).
    """
    q, v, vdot = read(robot, q=q, v=v, vdot=vdot)
    at = motion(robot, q)
    t, td = twists_and_rates(robot, q, v, vdot)
    n, f = np.zeros(3), np.zeros(3)
    for body in outward(robot):
        k = body.index
        w = newton_euler(body.regrouped, t[k], td[k])
        moment, _ = rotor_forces(body, v, vdot, t[k], td[k])
        f_k = at.rotation[k] @ w[3:]
        n = n + at.rotation[k] @ (w[:3] + moment) + cross(at.origin[k], f_k)
        f = f + f_k
    return join(n, f)


@checked
def momentum_rate(robot: Robot, q: Array, v: Array, vdot: Array) -> Array:
    """Return the time derivative of `momentum`, (6,), [N m, N], world axes.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,). vdot: Acceleration, (nv,).
    """
    w = required_wrench(robot, q, v, vdot)
    return join(w[:3] - cross(center_of_mass(robot, q), w[3:]), w[3:] + robot.mass * robot.gravity)


def on_bodies(robot: Robot, points: Sequence[tuple[str | int, Array]]) -> list[tuple[int, Array]]:
    """Return (index of the body, position (3,), [m], body axes) of each point.

    Args:
        robot: The robot. points: (link, position (3,), [m], link axes) of each point.
    """
    places = []
    for link, point in points:
        if not isinstance(link, str):
            link = whole("the index of a link", link, least=0, most=len(robot.links) - 1)
        placed: PlacedLink = robot.link(link) if isinstance(link, str) else robot.links[link]
        r = np.asarray(point)
        if r.shape != (3,):
            raise ShapeError(f"a point on link {placed.name!r} must be (3,), in link axes, got shape {r.shape}")
        places.append((placed.body, placed.position + placed.rotation @ r))
    return places
