"""Tasks of whole-body control: linear equations for the accelerations of base, links, center of mass and joints."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from legged.algorithms.centroidal import momentum_matrix
from legged.dynamics.inertia import inertia_matrix
from legged.dynamics.inverse import bias_forces
from legged.dynamics.kinematics import (
    Motion,
    center_of_mass,
    jacobian_at,
    momentum_rate,
    motion,
    on_bodies,
    twist_rate_at,
)
from legged.dynamics.modules import twists_and_rates
from legged.dynamics.passive import friction_slopes, without_dry_friction
from legged.robot.base import FloatingBase
from legged.robot.configuration import scatter_add
from legged.robot.robot import Robot
from legged.rotations import rotation_error
from legged.spatial import Array, cross, factor_symmetric, join, solve_factored


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


class Tracking(NamedTuple):
    """How a task follows a reference,

        acceleration_d = acceleration + K_p (position error) + K_d (velocity - actual velocity)

    Attributes:
        velocity: Velocity of the reference, a number or one per row.
        acceleration: Acceleration of the reference, a number or one per row.
        gains: (K_p, K_d): numbers, or one per row, [1/s^2] and [1/s].
        weight: As in `Task`.
        level: As in `Task`.
    """

    velocity: Any = 0.0
    acceleration: Any = 0.0
    gains: tuple[Any, Any] = (100.0, 20.0)
    weight: Any = 1.0
    level: int = 0

    def task(self, J: Array, error: Array, rate: Array, bias: Array | float) -> Task:
        """Return the task for rows of a Jacobian.

        Args:
            J: Jacobian, (k, nv), mixed units.
            error: Reference minus actual position, (k,), mixed units.
            rate: Actual velocity J v, (k,), mixed units.
            bias: Jdot v, (k,) or a number, mixed units.
        """
        K_p, K_d = self.gains
        desired = self.acceleration + K_p * error + K_d * (np.asarray(self.velocity) - rate)
        return Task(J, desired - bias, self.weight, self.level)


_DEFAULT = Tracking()


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
        friction: Forces that are to compensate dry friction of joints, (nv,), [N m] or [N]; none by default.
        held: Time T for which torques are held, [s].
    """

    def __init__(self, robot: Robot, q: Array, v: Array, friction: Array | None = None, held: float = 0.0):
        self.robot, self.q, self.v, self.friction, self.held = robot, q, v, friction, held

    @cached_property
    def M(self) -> Array:
        """Inertia matrix, (nv, nv), mixed units, plus T D, with the viscous friction D v of the joints.

        Friction grows with the velocities while torques are held: at the end it is D (v + T vdot). Joints whose
        friction is large beside their inertia reach about half of the desired acceleration otherwise.
        """
        M = inertia_matrix(self.robot, self.q)
        if not self.held:
            return M
        zero, bodies = np.zeros(self.robot.nv), without_dry_friction(self.robot).bodies
        slopes = [self.held * friction_slopes(body, zero) for body in bodies]
        return M + np.diag(scatter_add(self.robot, slopes))

    @cached_property
    def h(self) -> Array:
        """Bias forces, (nv,), with tau + J^T f = M vdot + h, generalized coordinates, with `friction` alone as dry one.

        Dry friction opposes motion, and torques that compensate it by the sign of a measured velocity do not: they
        move a joint that friction would hold, and where friction is a large part of the effort limit they leave no
        torque to stop it.
        """
        h = bias_forces(without_dry_friction(self.robot), self.q, self.v)
        return h if self.friction is None else h + self.friction

    @cached_property
    def momentum(self) -> tuple[Array, Array]:
        """A and Adot v of the rate A vdot + Adot v of the momentum about the center of mass, (6, nv), (6,), world axes.

        The equations of motion of a floating base, M_0 vdot + h_0, give the rate of the momentum about its origin, in
        its axes, less the wrench of gravity.
        """
        robot, q = self.robot, self.q
        if not isinstance(robot.base, FloatingBase):
            return momentum_matrix(robot, q), momentum_rate(robot, q, self.v, np.zeros(robot.nv))
        R, origin = robot.base.pose(q[: robot.base.nq])
        arm = center_of_mass(robot, q) - origin
        *columns, bias = [_about(arm, join(R @ w[:3], R @ w[3:])) for w in (*self.M[:6].T, self.h[:6])]
        return np.array(columns).T, bias + join(np.zeros(3), robot.mass * robot.gravity)

    def point(self, link: str | int, position: Array = (0.0, 0.0, 0.0)) -> Point:  # type: ignore[assignment]
        """Return the motion of a point of a link.

        Args:
            link: Name or index of the link. position: The point, (3,), [m], link axes.
        """
        robot, at = self.robot, self._motion
        ((k, r),) = on_bodies(robot, [(link, np.asarray(position))])
        index = robot.links.index(robot.link(link)) if isinstance(link, str) else link
        R, (t, td) = at.rotation[k], self._rates
        return Point(
            at.origin[k] + R @ r,
            join(R @ t[k][:3], R @ (t[k][3:] + cross(t[k][:3], r))),
            jacobian_at(robot, self.q, at, k, r),
            twist_rate_at(robot, R, t[k], td[k], r),
            R @ robot.links[index].rotation,
        )

    @cached_property
    def _motion(self) -> Motion:
        return motion(self.robot, self.q)

    @cached_property
    def _rates(self) -> tuple[list[Array], list[Array]]:
        return twists_and_rates(self.robot, self.q, self.v, None)


def link_pose(
    model: WholeBodyModel, link: str | int, position: Array, rotation: Array, tracking: Tracking = _DEFAULT
) -> Task:
    """Return the task that the frame of a link, such as a hand or the base, link 0, follows a reference.

    Args:
        model: The robot's model.
        link: Name or index of the link.
        position: Desired position of the origin, (3,), [m], world axes.
        rotation: Desired rotation matrix, (3, 3), link to world axes.
        tracking: Velocities are twists, [angular velocity; velocity of the origin], (6,), [rad/s, m/s], world axes.
    """
    at = model.point(link)
    error = join(-rotation_error(at.rotation @ np.asarray(rotation).T), np.asarray(position) - at.position)
    return tracking.task(at.J, error, at.twist, at.bias)


def link_orientation(model: WholeBodyModel, link: str | int, rotation: Array, tracking: Tracking = _DEFAULT) -> Task:
    """Return the task that the orientation of a link, such as a flat foot, follows a reference.

    Args:
        model: The robot's model.
        link: Name or index of the link.
        rotation: Desired rotation matrix, (3, 3), link to world axes.
        tracking: Velocities are angular velocities, (3,), [rad/s], world axes.
    """
    at = model.point(link)
    error = -rotation_error(at.rotation @ np.asarray(rotation).T)
    return tracking.task(at.J[:3], error, at.twist[:3], at.bias[:3])


def point_position(
    model: WholeBodyModel, link: str | int, point: Array, position: Array, tracking: Tracking = _DEFAULT
) -> Task:
    """Return the task that a point of a link, such as a swinging foot, follows a reference.

    Args:
        model: The robot's model.
        link: Name or index of the link.
        point: The point, (3,), [m], link axes.
        position: Desired position, (3,), [m], world axes.
        tracking: Velocities are (3,), [m/s], world axes.
    """
    at = model.point(link, point)
    return tracking.task(at.J[3:], position - at.position, at.twist[3:], at.bias[3:])


def center_of_mass_position(model: WholeBodyModel, position: Array, tracking: Tracking = _DEFAULT) -> Task:
    """Return the task that the center of mass follows a reference.

    Args:
        model: The robot's model.
        position: Desired position, (3,), [m], world axes.
        tracking: Velocities are (3,), [m/s], world axes.
    """
    A, bias = (x[3:] / model.robot.mass for x in model.momentum)
    return tracking.task(A, position - center_of_mass(model.robot, model.q), A @ model.v, bias)


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
    A, bias = (x[list(axes)] / model.robot.mass for x in model.momentum)
    return Task(A, -gain * (A @ model.v) - bias, weight, level)


def average_angular_velocity(
    model: WholeBodyModel, inertia: Array, tracking: Tracking = _DEFAULT, above: float = 0.0
) -> Task:
    """Return the task that the average angular velocity I^-1 L follows a reference, without feedback of orientation.

    L is the angular momentum about the center of mass. The contact forces alone determine its rate, so that motions of
    limbs relative to each other do not change it.

    Args:
        model: The robot's model.
        inertia: I, of the robot with fixed joints about its center of mass, (3, 3), [kg m^2], world axes.
        tracking: Velocities are angular velocities, (3,), [rad/s], world axes. Its first gain has no effect.
        above: L is the angular momentum about the point at this height over the center of mass, [m].

    Source:
        D. E. Orin, A. Goswami, "Centroidal momentum matrix of a humanoid robot: structure and properties", IROS 2008,
        for the average velocity.
    """
    (A, rate), arm, factors = model.momentum, np.array([0.0, 0.0, above]), factor_symmetric(inertia)
    *columns, bias = [solve_factored(factors, _about(arm, w)[:3]) for w in (*A.T, rate)]
    J = np.array(columns).T
    return tracking.task(J, np.zeros(3), J @ model.v, bias)


def _about(arm: Array, w: Array) -> Array:
    """Return a momentum or its rate, (6,), about a point at an arm, (3,), [m], from the present one."""
    return join(w[:3] - cross(arm, w[3:]), w[3:])


def posture(model: WholeBodyModel, positions: Array, tracking: Tracking | None = None) -> Task:
    """Return the task that the joints follow a reference.

    Args:
        model: The robot's model.
        positions: Desired joint positions, (nj,), [rad] or [m], joint coordinates.
        tracking: Velocities are (nj,), [rad/s] or [m/s], joint coordinates. By default of weight 0.1 and level 1, so
            that the posture yields to tasks of level 0.
    """
    robot, base = model.robot, model.robot.base
    error = positions - model.q[base.nq :]
    tracking = Tracking(weight=0.1, level=1) if tracking is None else tracking
    return tracking.task(np.eye(robot.nv)[base.nv :], error, model.v[base.nv :], 0.0)
