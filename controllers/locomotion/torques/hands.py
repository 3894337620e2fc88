"""Hands of a robot that walks: tasks of whole-body control that hold or move links beside legs and trunk.

A `PointTask` or `PoseTask` states the path. Its feedback gives the desired acceleration a, and an observer estimates
the acceleration d that forces outside the model cause, such as the weight of an unknown load in the hand,

    pdot = a,    d = L (p - v),    commanded: a + d

with the velocity v of the hand. If the hand accelerates by a + d - d_actual, ddot = L (d_actual - d), and without such
forces p = v and d = 0. Dry friction of the arm's joints, which is more than their inertial torques in many arms, is
compensated by the sign of the desired joint velocities, to which the feedback belongs, not of measured ones.

Source:
    K. Ohnishi, M. Shibata, T. Murakami, "Motion control for advanced mechatronics", IEEE/ASME Transactions on
    Mechatronics 1(1), 1996, for the disturbance observer. The limits are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from controllers.locomotion.motion import turned
from controllers.locomotion.torques.tasks import Task, WholeBodyModel
from controllers.operational_space import PathTask, PoseTask
from legged import taylor
from legged.robot.robot import Robot
from legged.spatial import Array, factor_symmetric, join, solve_factored

ROWS = 6
"""Number of entries of a hand's predicted velocity, angular first; the first three are zero for a `PointTask`."""
_WEIGHT = 1.0  # of a hand, as of the motion of the center of mass; with 0.05 errors are ten times as large
_FAR = 0.01  # of this weight, that of a hand far from its path, which is to move there without its base
_TURN = 0.3  # [h], length with which angular accelerations count
_AHEAD = 0.15  # [h], largest distance of the desired position from the actual one that feedback acts on
_OBSERVER = 6.0  # [1/s], L
_SLOW = 0.01  # [sqrt(g / h)], desired joint velocity at which most of the dry friction is compensated
_DAMPING = 0.05  # [h], of the inverse of the arm's Jacobian
_MOST = 1.0  # [g] and [g / (0.3 h)], largest estimated acceleration


class HeadingAxes(NamedTuple):
    """Axes that move with a walk: on the ground under the desired center of mass, x along the heading, z up.

    Attributes:
        origin: (3,), [m], world axes. velocity: Of the origin, (3,), [m/s], world axes.
        heading: [rad]. yaw_rate: [rad/s].
    """

    origin: Array
    velocity: Array
    heading: Any
    yaw_rate: Any

    def carried(self, task: PathTask) -> PathTask:
        """Return a task in these axes as one in world axes."""
        heading = taylor.moving(self.heading, self.yaw_rate, 0.0)[()]
        origin = taylor.moving(self.origin, self.velocity, np.zeros(3))

        def path(t: Any) -> Array:
            x, y, z = task.path(t)
            along = turned(np.array([np.cos(heading), np.sin(heading)]), np.array([x, y]))
            return origin + np.array([*along, z])

        def orientation(t: Any) -> Array:
            roll, pitch, yaw = (0.0, 0.0, 0.0) if task.orientation is None else task.orientation(t)
            return np.array([roll, pitch, yaw + heading])

        own = {"path": path, "axes": "world"}
        return replace(task, **own, orientation=orientation) if isinstance(task, PoseTask) else replace(task, **own)


def moving_columns(robot: Robot, link: str) -> list[int]:
    """Return the joint coordinates that move a link relative to the base.

    Args:
        robot: The robot. link: Name of the link.
    """
    bodies = [robot.bodies[k] for k in robot.ancestors(robot.link(link).body)[:-1]]
    return sorted(entry - robot.base.nv for body in bodies for entry in range(body.v.start, body.v.stop))


def predicted_velocities(model: WholeBodyModel, hands: Sequence[PathTask]) -> Array:
    """Return the predicted velocities of hands without disturbances, their actual ones, (n, 6), [rad/s, m/s].

    Args:
        model: The robot at its present state. hands: Their tasks.
    """
    return np.array([_twist(model, hand) for hand in hands]).reshape(-1, ROWS)


class HandControl(NamedTuple):
    """Whole-body control of hands.

    Attributes:
        tasks: Tasks of the hands.
        predicted: Their predicted velocities after a time step, (n, 6), [rad/s, m/s], world axes.
        friction: Forces against the dry friction of the joints of arms, (nv,), [N m] or [N], generalized coordinates.
    """

    tasks: list[Task]
    predicted: Array
    friction: Array


def hand_control(
    model: WholeBodyModel,
    t: Any,
    hands: Sequence[PathTask],
    axes: HeadingAxes,
    predicted: Array,
    height: float,
    gravity: float,
    dt: float,
) -> HandControl:
    """Return the tasks of hands in whole-body control, and what belongs to them.

    Args:
        model: The robot at its present state.
        t: Time, [s].
        hands: Their tasks.
        axes: Axes of those tasks that are in axes of the heading.
        predicted: Predicted velocities p, (n, 6), [rad/s, m/s], world axes.
        height: h, of the center of mass, [m].
        gravity: g, its magnitude, [m/s^2].
        dt: Time step, [s].
    """
    robot, length = model.robot, np.repeat([_TURN * height, 1.0], 3)
    tasks, after, friction = list[Task](), list[Array](), np.zeros(robot.nv)
    for given, p in zip(hands, predicted, strict=True):
        hand = given if given.axes == "world" else axes.carried(given)
        rows, at, twist = list(hand.rows), model.point(hand.link, np.array(hand.point)), _twist(model, hand)
        near, nearness = _near(hand, t, at.position, _AHEAD * height)
        a = near.acceleration(robot, t, model.q, twist)
        a = a if len(rows) == ROWS else join(np.zeros(3), a)
        off = length * _OBSERVER * (p - twist)
        share = np.minimum(1.0, _MOST * gravity / np.sqrt(off @ off + 1e-12))
        after.append(twist + share * (p - twist) + dt * a)  # what exceeds the limit of the estimate is not kept
        arm = _Arm(robot, hand.link, (length[:, None] * at.J)[rows], _DAMPING * height)
        tasks.append(arm.task((length * (a - at.bias) + share * off)[rows], _WEIGHT * np.maximum(nearness**4, _FAR)))
        rates = model.v + arm.rates((length * a / _damping(given))[rows])
        friction = friction + arm.against_friction(rates, _SLOW * float(np.sqrt(gravity / height)))
    return HandControl(tasks, np.array(after).reshape(-1, ROWS), friction)


def _damping(hand: PathTask) -> Array:
    """Return the gain of each entry of the velocity, (6,), [1/s]."""
    turning = hand.orientation_gains[1] if isinstance(hand, PoseTask) else hand.gains[1]
    return np.maximum(np.repeat([turning, hand.gains[1]], 3), 1.0)


class _Arm:
    """The joints that move a hand relative to the base, and the damped inverse of their Jacobian.

    Args:
        robot: The robot. link: The hand.
        J: Rows of the hand's Jacobian, (k, nv), angular ones times a length, [m].
        damping: Singular value at which a direction of the hand counts half, [m].
    """

    def __init__(self, robot: Robot, link: str, J: Array, damping: float):
        self.robot, self.J = robot, J
        self.columns = [robot.base.nv + k for k in moving_columns(robot, link)]
        own = J[:, self.columns]
        self.square = own @ own.T
        self.factors = factor_symmetric(self.square + damping**2 * np.eye(len(J)))

    def task(self, desired: Array, weight: Any) -> Task:
        """Return the task of an acceleration of the hand, (k,), [m/s^2], in directions in which the arm moves it.

        Directions in which the arm cannot move the hand, such as along a stretched arm, move the base little.
        """
        A = self.square @ np.array([solve_factored(self.factors, column) for column in self.J.T]).T
        return Task(A, self.square @ solve_factored(self.factors, desired), weight)

    def rates(self, change: Array) -> Array:
        """Return changes of the arm's velocities, (nv,), for a change of the hand's, (k,), [m/s]; others are zero."""
        change, rates = self.J.T @ solve_factored(self.factors, change), 0.0 * self.J[0]
        rates[self.columns] = change[self.columns]
        return rates

    def against_friction(self, rates: Array, slow: float) -> Array:
        """Return forces against the dry friction of the joints, (nv,), [N m] or [N], generalized coordinates.

        Args:
            rates: Desired velocities, (nv,). slow: Velocity at which most of the friction is compensated, [rad/s].
        """
        forces = 0.0 * rates
        for body in self.robot.bodies:
            if body.has_friction and body.v.start in self.columns:
                rate = rates[body.v]
                forces[body.v] = np.asarray(body.physics.friction) * rate / np.sqrt(rate * rate + slow * slow)
        return forces


def _twist(model: WholeBodyModel, hand: PathTask) -> Array:
    """Return the velocity of a hand, (6,), [rad/s, m/s], world axes, without rotation for a `PointTask`."""
    twist = model.point(hand.link, np.array(hand.point)).twist
    return twist if len(hand.rows) == ROWS else join(np.zeros(3), twist[3:])


def _near(hand: PathTask, t: Any, position: Array, most: float) -> tuple[PathTask, Any]:
    """Return a task whose desired position is at most at a distance from the actual one, towards that of the path.

    Args:
        hand: The task. t: Time, [s]. position: Of the hand, (3,), [m], world axes. most: The distance, [m].

    Returns:
        The task, and this distance over that to the path, at most 1.
    """
    desired, rate, acceleration = taylor.derivatives(hand.path(taylor.time(t)))
    ahead = desired - position
    share = np.minimum(1.0, most / np.sqrt(ahead @ ahead + 1e-12))
    path = taylor.moving(position + share * ahead, rate, acceleration)
    return replace(hand, path=lambda _: path), share
