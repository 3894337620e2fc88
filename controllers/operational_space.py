"""Operational-space control: points and links follow paths, and a posture acts in the null space of these tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np

from controllers.law import GaitLaw, check_foot_support, check_gains
from legged import taylor
from legged.algorithms.operational import OperationalSpace
from legged.checked import checked
from legged.contact.rigid import Rigid
from legged.dynamics.frames import frame_pose
from legged.dynamics.inverse import inverse_dynamics
from legged.dynamics.kinematics import point_jacobian
from legged.errors import DefinitionError, ShapeError
from legged.ground.ground import Ground
from legged.robot.robot import Robot
from legged.rotations import euler_matrix, rotation_error
from legged.spatial import Array, join, mirror, solve_symmetric

Pair = tuple[float, float]
Path = Callable[[Any], Any]
"""A function of time [s] to three numbers, a NumPy formula; `legged.taylor` computes its two derivatives."""


@checked
@dataclass(frozen=True)
class PointTask:
    """A task: a point of a link follows a path.

    Attributes:
        link: Name of the link.
        path: Desired position of the point as a function of time [s], (3,), [m], world axes.
        point: Position of the point, (3,), [m], link axes.
        gains: Position gain, [1/s^2], and velocity gain, [1/s].
        axes: "world", or "heading" for a hand of `Locomotion` whose path is in axes that move with the walk: on the
            ground under the desired center of mass, x along the desired heading, z up.
    """

    link: str
    path: Path
    point: tuple[float, float, float] = (0.0, 0.0, 0.0)
    gains: Pair = (400.0, 40.0)
    axes: Literal["world", "heading"] = "world"

    rows = (3, 4, 5)
    orientation = None

    def __post_init__(self) -> None:
        check_gains(self, "gains")

    def acceleration(self, robot: Robot, t: Any, q: Array, twist: Array) -> Array:
        """Return the desired acceleration of the point, (3,), [m/s^2], world axes.

        Args:
            robot: The robot.
            t: Time, [s].
            q: Configuration, (nq,).
            twist: [angular velocity; velocity of the point], (6,), [rad/s] and [m/s], world axes.
        """
        pose = frame_pose(robot, q, self.link)
        position = pose.position + pose.rotation @ np.array(self.point)
        return _path_acceleration(self.path, t, position, twist[3:], self.gains)


@checked
@dataclass(frozen=True)
class PoseTask:
    """A task: a link, such as a trunk, follows a path of positions and orientations.

    Attributes:
        link: Name of the link.
        path: Desired position of the link's origin as a function of time [s], (3,), [m], world axes.
        orientation: Desired roll, pitch and yaw as a function of time [s], (3,), [rad]; level by default.
        gains: Position gain, [1/s^2], and velocity gain, [1/s].
        orientation_gains: Gains of orientation, [1/s^2], and angular velocity, [1/s].
        axes: Of path and orientation, as in `PointTask`.
    """

    link: str
    path: Path
    orientation: Path | None = None
    gains: Pair = (100.0, 20.0)
    orientation_gains: Pair = (100.0, 20.0)
    axes: Literal["world", "heading"] = "world"

    rows = (0, 1, 2, 3, 4, 5)
    point = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        check_gains(self, "gains", "orientation_gains")

    def acceleration(self, robot: Robot, t: Any, q: Array, twist: Array) -> Array:
        """Return the desired [angular acceleration; acceleration of the origin], (6,), [rad/s^2, m/s^2], world axes.

        Args:
            robot: The robot.
            t: Time, [s].
            q: Configuration, (nq,).
            twist: [angular velocity; velocity of the origin], (6,), [rad/s] and [m/s], world axes.
        """
        pose = frame_pose(robot, q, self.link)
        linear = _path_acceleration(self.path, t, pose.position, twist[3:], self.gains)
        if self.orientation is None:
            R, omega, alpha = np.eye(3), np.zeros(3), np.zeros(3)
        else:
            roll, pitch, yaw = self.orientation(taylor.time(t))
            R, Rd, Rdd = taylor.derivatives(euler_matrix("zyx", np.array([yaw, pitch, roll])))
            omega, alpha = rotation_error(Rd @ R.T), rotation_error(Rdd @ R.T)
        error = rotation_error(pose.rotation @ R.T)
        stiffness, damping = self.orientation_gains
        return join(alpha - stiffness * error - damping * (twist[:3] - omega), linear)


PathTask = PointTask | PoseTask


def check_path_tasks(robot: Robot, tasks: Sequence[PathTask]) -> None:
    """Check the link, path and orientation of tasks.

    Args:
        robot: The robot. tasks: The tasks.

    Raises:
        UnknownNameError: The robot has no link of a name.
        ShapeError: A path or an orientation does not return three numbers.
    """
    for task in tasks:
        robot.link(task.link)
        for what, path, unit in (("path", task.path, "m"), ("orientation", task.orientation, "rad")):
            if path is not None and np.shape(path(0.0)) != (3,):
                raise ShapeError(f"the {what} of {task.link!r} must return (3,), [{unit}], got {np.shape(path(0.0))}")


@checked
@dataclass(frozen=True, eq=False)
class OperationalSpaceControl(GaitLaw):
    """Inverse dynamics of several tasks, and of a posture in their null space:

        tau = J^T (Lambda (xdd_d - Jd v) + J_bar^T h) + N^T tau_posture,      N^T = 1 - J^T J_bar^T

    J has the rows of all tasks, and those of standing feet, whose desired acceleration is zero. With an exact model the
    error of each task obeys edd + K_d ed + K_p e = 0, independent of the others. A floating base has no motors: ground
    forces on the standing feet, of least sum of squares, apply its generalized forces. Friction and unilateral contact
    are not constraints, so desired motions must be feasible for a standing robot. Contact forces are not measured.

    Attributes:
        gait: Posture of the joints in the null space of the tasks.
        tasks: The tasks. Tasks and standing feet must be independent.
        standing: Names of the contact points that stand; none on a fixed base.
        posture: Gains of joint positions, [1/s^2], and joint velocities, [1/s], of the posture.
        foot: Gain of the velocities of standing feet, [1/s].

    Source:
        Khatib 1987; feet and trunk together as by Sentis, Khatib 2005, with the force distribution of Wendlandt 1997,
        algorithm 5.
    """

    tasks: tuple[PathTask, ...] = ()
    standing: tuple[str, ...] = ()
    posture: Pair = (100.0, 20.0)
    foot: float = 20.0
    _feet: tuple[tuple[int, Array], ...] = field(default=(), repr=False, kw_only=True)

    def __post_init__(self) -> None:
        check_gains(self, "posture", "foot")

    def start(self, robot: Robot, ground: Ground | Rigid | None, q: Array, v: Array) -> tuple[Self, Array]:
        """Return (law, memory) for a robot, the memory empty, (0,); arguments as in `GaitLaw.start`.

        Raises:
            UnknownNameError: The robot has no link or contact point of a name.
            ShapeError: A path or an orientation does not return three numbers.
            DefinitionError: There are no tasks, the feet cannot hold a floating base, or feet stand on a fixed base.
        """
        law, memory = super().start(robot, ground, q, v)
        standing = [robot.contact(name) for name in self.standing]
        if not self.tasks:
            raise DefinitionError("operational-space control needs a task: a PointTask or a PoseTask")
        check_path_tasks(robot, self.tasks)
        if moving := [task.link for task in self.tasks if task.axes != "world"]:
            raise DefinitionError(
                f"the task of {moving[0]!r} is in axes of the heading, which only Locomotion has; use world axes"
            )
        law = replace(law, _feet=tuple((contact.link, contact.position) for contact in standing))
        n0 = robot.base.nv
        if n0 == 0 and law._feet:
            raise DefinitionError(f"robot {robot.name!r} has a fixed base; `standing` must be empty")
        if n0:
            J = law._foot_jacobian(robot, q)[:, :n0] if law._feet else np.zeros((0, n0))
            check_foot_support(robot, self.standing, J.T)
        return law, memory

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        """Return the generalized forces, (nv,), as in `GaitLaw.torque`; `wrenches` and `memory` are not used."""
        return self._supported(q, self._motion_forces(t, phase, q, v))

    def _motion_forces(self, t: Any, phase: Any, q: Array, v: Array) -> Array:
        """Return the generalized forces of tasks and posture, (nv,), those of the base included."""
        robot, n0 = self.robot, self.robot.base.nv
        space = self._space(q)
        velocities, start = space.J @ v, 3 * len(self._feet)
        desired = [-self.foot * velocities[:start]]
        for task in self.tasks:
            own = velocities[start : start + len(task.rows)]
            desired.append(task.acceleration(robot, t, q, join(np.zeros(6 - len(own)), own)))
            start += len(task.rows)
        e, ed, qdd = self._errors(t, phase, q, v)
        alpha = join(np.zeros(n0), qdd + self.posture[0] * e + self.posture[1] * ed)
        return space.forces(v, np.concatenate(desired), inverse_dynamics(robot, q, v, alpha))

    def _supported(self, q: Array, tau: Array) -> Array:
        """Return the joint torques with which forces on the standing feet apply the base's part of tau, (nv,)."""
        n0 = self.robot.base.nv
        if n0:
            J = self._foot_jacobian(self.robot, q)
            G = J[:, :n0].T
            tau = tau - J.T @ (G.T @ solve_symmetric(mirror(G @ G.T), tau[:n0]))
        return self._generalized(tau[n0:])

    def _space(self, q: Array) -> OperationalSpace:
        """Return the operational space of the standing feet, then of the tasks."""
        points = [*self._feet, *((task.link, np.array(task.point)) for task in self.tasks)]
        rows = [*((3, 4, 5) for _ in self._feet), *(task.rows for task in self.tasks)]
        return OperationalSpace(self.robot, q, points, tuple(6 * k + i for k, own in enumerate(rows) for i in own))

    def _foot_jacobian(self, robot: Robot, q: Array) -> Array:
        """Return the Jacobian of the standing feet, (3 feet, nv), world axes."""
        return np.concatenate([point_jacobian(robot, q, link, point)[3:] for link, point in self._feet])


def _path_acceleration(path: Path, t: Any, position: Array, velocity: Array, gains: Pair) -> Array:
    desired, rate, acceleration = taylor.derivatives(path(taylor.time(t)))
    return acceleration + gains[0] * (desired - position) + gains[1] * (rate - velocity)
