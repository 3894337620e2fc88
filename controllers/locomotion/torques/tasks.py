"""Tasks of whole-body control: desired accelerations of the base, links, center of mass and joints, as linear rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from legged.algorithms.centroidal import momentum_matrix
from legged.dynamics.inertia import inertia_matrix
from legged.dynamics.inverse import bias_forces
from legged.dynamics.kinematics import Motion, center_of_mass, momentum_rate, motion, on_bodies
from legged.dynamics.sweeps import twists_and_rates
from legged.robot.robot import Robot
from legged.rotations import rotation_error
from legged.spatial import Array, angular_acceleration_tensor, cross, join

Gains = tuple[Any, Any]
_GAINS = (100.0, 20.0)  # [1/s^2], [1/s]


class Task(NamedTuple):
    """Desired accelerations A vdot = b, with the cost

        weight * level_ratio^level * |A vdot - b|^2 / 2        (see `whole_body`)

    Attributes:
        A: Rows, (k, nv), mixed units. b: Desired values, (k,), [m/s^2], [rad/s^2] or mixed units.
        weight: One number or one per row, (k,), at least 0, dimensionless; may change with time.
        level: Priority: 0 is the highest, each further level yields to those above it.
    """

    A: Array
    b: Array
    weight: Any = 1.0
    level: int = 0


class Point(NamedTuple):
    """Motion of a point of a link.

    Attributes:
        position: (3,), [m], world axes.
        twist: [angular velocity; velocity of the point], (6,), [rad/s, m/s], world axes.
        J: Jacobian, (6, nv), with twist = J v. bias: Jdot v, (6,), [rad/s^2, m/s^2], world axes.
        rotation: Rotation matrix of the link, (3, 3), link to world axes.
    """

    position: Array
    twist: Array
    J: Array
    bias: Array
    rotation: Array


class WholeBodyModel:
    """Kinematics and equations of motion of a robot at one state, shared by all tasks.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,).
    """

    def __init__(self, robot: Robot, q: Array, v: Array):
        self.robot, self.q, self.v = robot, q, v

    @cached_property
    def M(self) -> Array:
        """Inertia matrix, (nv, nv), mixed units."""
        return inertia_matrix(self.robot, self.q)

    @cached_property
    def h(self) -> Array:
        """Bias forces, (nv,), with tau + J^T f = M vdot + h, generalized coordinates."""
        return bias_forces(self.robot, self.q, self.v)

    def point(self, link: str | int, position: Array = (0.0, 0.0, 0.0)) -> Point:  # type: ignore[assignment]
        """Return the motion of a point of a link.

        Args:
            link: Name or index of the link. position: The point, (3,), [m], link axes.
        """
        robot, at = self.robot, self._motion
        ((k, r),) = on_bodies(robot, [(link, np.asarray(position))])
        index = robot.links.index(robot.link(link)) if isinstance(link, str) else link
        where = at.origin[k] + at.rotation[k] @ r
        J = np.zeros((6, robot.nv), dtype=at.rotation[-1].dtype if robot.nv else float)
        for body, columns in self._columns(k):
            for column, (omega, velocity) in zip(range(body.v.start, body.v.stop), columns, strict=True):
                J[:, column] += join(omega, velocity + cross(omega, where - at.origin[body.index]))
        t, td = self._rates
        acceleration = td[k][3:] + angular_acceleration_tensor(t[k][:3], td[k][:3]) @ r
        bias = join(at.rotation[k] @ td[k][:3], at.rotation[k] @ acceleration + robot.gravity)
        twist = join(at.rotation[k] @ t[k][:3], at.rotation[k] @ (t[k][3:] + cross(t[k][:3], r)))
        return Point(where, twist, J, bias, at.rotation[k] @ robot.links[index].rotation)

    def _columns(self, end: int) -> list[tuple[Any, list[tuple[Array, Array]]]]:
        """Return (body, (angular, linear) motion per unit rate of each of its coordinates) from a body to the base."""
        found = []
        for index in self.robot.ancestors(end):
            body = self.robot.bodies[index]
            if body.nv:
                R = self._motion.rotation[index]
                P = self.robot.base.motion_matrix(self.q) if body.kind == "base" else body.P
                found.append((body, [(R @ column[:3], R @ column[3:]) for column in P.T]))
        return found

    @cached_property
    def _motion(self) -> Motion:
        return motion(self.robot, self.q)

    @cached_property
    def _rates(self) -> tuple[list[Array], list[Array]]:
        return twists_and_rates(self.robot, self.q, self.v, None)


def base_pose(
    model: WholeBodyModel,
    position: Array,
    rotation: Array,
    velocity: Array = (0.0,) * 6,  # type: ignore[assignment]
    acceleration: Array = (0.0,) * 6,  # type: ignore[assignment]
    gains: Gains = _GAINS,
    weight: Any = 1.0,
    level: int = 0,
) -> Task:
    """Return the task that the base's origin and orientation follow a reference.

        vdot_d = a_ref + K_p (p_ref - p) + K_d (v_ref - v)

    Args:
        model: The robot's model.
        position: Desired position of the origin, (3,), [m], world axes.
        rotation: Desired rotation matrix, (3, 3), base to world axes.
        velocity: Desired [angular velocity; velocity], (6,), [rad/s, m/s], world axes.
        acceleration: Its rate, (6,), [rad/s^2, m/s^2], world axes.
        gains: (K_p, K_d): numbers, or one per row, (6,), [1/s^2] and [1/s].
        weight, level: See `Task`.
    """
    return link_pose(model, 0, position, rotation, velocity, acceleration, gains, weight, level)


def link_pose(
    model: WholeBodyModel,
    link: str | int,
    position: Array,
    rotation: Array,
    velocity: Array = (0.0,) * 6,  # type: ignore[assignment]
    acceleration: Array = (0.0,) * 6,  # type: ignore[assignment]
    gains: Gains = _GAINS,
    weight: Any = 1.0,
    level: int = 0,
) -> Task:
    """Return the task that the frame of a link, such as a hand, follows a reference; arguments as in `base_pose`.

    Args:
        model: The robot's model.
        link: Name or index of the link.
        position: As in `base_pose`. rotation: As in `base_pose`. velocity: As in `base_pose`.
        acceleration: As in `base_pose`.
        gains: As in `base_pose`.
        weight, level: See `Task`.
    """
    at = model.point(link)
    error = join(-rotation_error(at.rotation @ np.asarray(rotation).T), np.asarray(position) - at.position)
    return Task(at.J, _desired(at, error, velocity, acceleration, gains), weight, level)


def link_orientation(
    model: WholeBodyModel,
    link: str | int,
    rotation: Array,
    velocity: Array = (0.0,) * 3,  # type: ignore[assignment]
    acceleration: Array = (0.0,) * 3,  # type: ignore[assignment]
    gains: Gains = _GAINS,
    weight: Any = 1.0,
    level: int = 0,
) -> Task:
    """Return the task that the orientation of a link, such as a flat foot, follows a reference.

    Args:
        model: The robot's model.
        link: Name or index of the link.
        rotation: Desired rotation matrix, (3, 3), link to world axes.
        velocity: Desired angular velocity, (3,), [rad/s], world axes.
        acceleration: Its rate, (3,), [rad/s^2], world axes.
        gains: (K_p, K_d), [1/s^2] and [1/s].
        weight, level: See `Task`.
    """
    at = model.point(link)
    error = -rotation_error(at.rotation @ np.asarray(rotation).T)
    b = _feedback(error, at.twist[:3], velocity, acceleration, gains) - at.bias[:3]
    return Task(at.J[:3], b, weight, level)


def point_position(
    model: WholeBodyModel,
    link: str | int,
    point: Array,
    position: Array,
    velocity: Array = (0.0,) * 3,  # type: ignore[assignment]
    acceleration: Array = (0.0,) * 3,  # type: ignore[assignment]
    gains: Gains = _GAINS,
    weight: Any = 1.0,
    level: int = 0,
) -> Task:
    """Return the task that a point of a link, such as a swinging foot, follows a reference.

    Args:
        model: The robot's model.
        link: Name or index of the link. point: The point, (3,), [m], link axes.
        position: Desired position, (3,), [m], world axes.
        velocity: Desired velocity, (3,), [m/s], world axes.
        acceleration: Desired acceleration, (3,), [m/s^2], world axes.
        gains: (K_p, K_d): numbers, or one per axis, (3,), [1/s^2] and [1/s].
        weight, level: See `Task`.
    """
    at = model.point(link, point)
    b = _feedback(position - at.position, at.twist[3:], velocity, acceleration, gains) - at.bias[3:]
    return Task(at.J[3:], b, weight, level)


def center_of_mass_position(
    model: WholeBodyModel,
    position: Array,
    velocity: Array = (0.0,) * 3,  # type: ignore[assignment]
    acceleration: Array = (0.0,) * 3,  # type: ignore[assignment]
    gains: Gains = _GAINS,
    weight: Any = 1.0,
    level: int = 0,
) -> Task:
    """Return the task that the center of mass follows a reference.

    Args:
        model: The robot's model.
        position: Desired position, (3,), [m], world axes.
        velocity: Desired velocity, (3,), [m/s], world axes.
        acceleration: Desired acceleration, (3,), [m/s^2], world axes.
        gains: (K_p, K_d): numbers, or one per axis, (3,), [1/s^2] and [1/s].
        weight, level: See `Task`.
    """
    robot, q, v = model.robot, model.q, model.v
    J = momentum_matrix(robot, q)[3:] / robot.mass
    bias = momentum_rate(robot, q, v, np.zeros(robot.nv))[3:] / robot.mass
    b = _feedback(position - center_of_mass(robot, q), J @ v, velocity, acceleration, gains) - bias
    return Task(J, b, weight, level)


def angular_momentum(
    model: WholeBodyModel, gain: Any = 10.0, weight: Any = 1.0, level: int = 0, axes: Sequence[int] = (0, 1, 2)
) -> Task:
    """Return the task that the angular momentum L about the center of mass decays, Ldot = -gain L.

    Rows are divided by the robot's mass, [m^2/s^2].

    Args:
        model: The robot's model.
        gain: [1/s].
        weight, level: See `Task`.
        axes: World axes of the rows.
    """
    robot, q, v = model.robot, model.q, model.v
    A = momentum_matrix(robot, q)[list(axes)]
    bias = momentum_rate(robot, q, v, np.zeros(robot.nv))[list(axes)]
    return Task(A / robot.mass, (-gain * (A @ v) - bias) / robot.mass, weight, level)


def posture(
    model: WholeBodyModel,
    positions: Array,
    velocities: Any = 0.0,
    accelerations: Any = 0.0,
    gains: Gains = _GAINS,
    weight: Any = 0.1,
    level: int = 1,
) -> Task:
    """Return the task that the joints follow a reference.

    Args:
        model: The robot's model.
        positions: Desired joint positions, (nj,), [rad] or [m], joint coordinates.
        velocities: Desired joint velocities, (nj,) or a number, [rad/s] or [m/s], joint coordinates.
        accelerations: Desired joint accelerations, (nj,) or a number, [rad/s^2] or [m/s^2], joint coordinates.
        gains: (K_p, K_d): numbers, or one per joint, (nj,), [1/s^2] and [1/s].
        weight, level: See `Task`; by default the posture yields to tasks of level 0.
    """
    robot, base = model.robot, model.robot.base
    b = accelerations + gains[0] * (positions - model.q[base.nq :]) + gains[1] * (velocities - model.v[base.nv :])
    return Task(np.eye(robot.nv)[base.nv :], b, weight, level)


def _desired(at: Point, error: Array, velocity: Array, acceleration: Array, gains: Gains) -> Array:
    return _feedback(error, at.twist, velocity, acceleration, gains) - at.bias


def _feedback(error: Array, rate: Array, velocity: Array, acceleration: Array, gains: Gains) -> Array:
    return np.asarray(acceleration) + gains[0] * error + gains[1] * (np.asarray(velocity) - rate)
