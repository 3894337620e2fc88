"""Operational-space control: feet and trunk follow paths of their own, and the rest of the robot does what is left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from controllers.footing import check_footing
from controllers.law import GaitLaw
from legged import taylor
from legged.algorithms.operational import OperationalSpace
from legged.contact.rigid import Rigid
from legged.dynamics.frames import frame_pose
from legged.dynamics.inverse import inverse_dynamics
from legged.dynamics.kinematics import point_jacobian
from legged.errors import DefinitionError, ShapeError, UnknownNameError
from legged.ground.ground import Ground
from legged.robot.robot import Robot
from legged.rotations import euler_matrix, rotation_error
from legged.spatial import Array, join, mirror, solve_symmetric

Pair = tuple[float, float]
Path = Callable[[Any], Any]
"""From time to three numbers, a formula in NumPy; its two derivatives are found by `legged.taylor`."""


@dataclass(frozen=True)
class PointTask:
    """A point of a link that follows a path.

    Attributes:
        link: Its name.
        path: Where the point should be, (3,), [m], world axes, over time [s].
        point: Its place, (3,), [m], link axes.
        gains: Of its position, [1/s^2], and velocity, [1/s].
    """

    link: str
    path: Path
    point: tuple[float, float, float] = (0.0, 0.0, 0.0)
    gains: Pair = (400.0, 40.0)

    rows = (3, 4, 5)

    def acceleration(self, robot: Robot, t: Any, q: Array, twist: Array) -> Array:
        """Return how the point should accelerate, (3,), [m/s^2], world axes, for its twist (6,) in world axes."""
        pose = frame_pose(robot, q, self.link)
        place = pose.position + pose.rotation @ np.array(self.point)
        return _followed(self.path, t, place, twist[3:], self.gains)


@dataclass(frozen=True)
class PoseTask:
    """A link that follows a path and turns with it: a trunk.

    Attributes:
        link: Its name.
        path: Where its origin should be, (3,), [m], world axes, over time [s].
        turn: Roll, pitch and yaw that it should have, (3,), [rad], over time; level by default.
        gains: Of its position, [1/s^2], and velocity, [1/s]. turn_gains: Of its attitude, likewise.
    """

    link: str
    path: Path
    turn: Path | None = None
    gains: Pair = (100.0, 20.0)
    turn_gains: Pair = (100.0, 20.0)

    rows = (0, 1, 2, 3, 4, 5)
    point = (0.0, 0.0, 0.0)

    def acceleration(self, robot: Robot, t: Any, q: Array, twist: Array) -> Array:
        """Return [angular; linear] acceleration that the link should have, (6,), world axes, for its twist (6,)."""
        pose = frame_pose(robot, q, self.link)
        linear = _followed(self.path, t, pose.position, twist[3:], self.gains)
        if self.turn is None:
            R, omega, alpha = np.eye(3), np.zeros(3), np.zeros(3)
        else:
            roll, pitch, yaw = self.turn(taylor.time(t))
            R, Rd, Rdd = taylor.derivatives(euler_matrix("zyx", np.array([yaw, pitch, roll])))
            omega, alpha = rotation_error(Rd @ R.T), rotation_error(Rdd @ R.T)
        error = rotation_error(pose.rotation @ R.T)
        return join(alpha - self.turn_gains[0] * error - self.turn_gains[1] * (twist[:3] - omega), linear)


Task = PointTask | PoseTask


@dataclass(eq=False)
class OperationalSpaceControl(GaitLaw):
    """Inverse dynamics of several tasks at once, and of a posture in what they leave free:

        tau = J^T (Lambda (xdd_wanted - Jd v) + J_bar^T h) + N^T tau_posture,      N^T = 1 - J^T J_bar^T

    J has the rows of all tasks, and of feet that stand, which are not to accelerate. With an exact model each task's
    error obeys edd + K_d ed + K_p e = 0, whatever the others do. A free base has no motors: the ground's forces on
    the standing feet do its share, of all that do those of the least sum of squares. Nothing keeps feet from
    pulling or sliding: choose motions that a standing robot can do. Contact forces are not measured.

    Attributes:
        gait: Posture that joints come back to where no task says otherwise.
        tasks: What follows paths. Together with the standing feet they must be able to move independently.
        standing: Names of the contact points that stand; none on a fixed base.
        posture: Of the posture's joint positions, [1/s^2], and velocities, [1/s]. foot: Of standing feet's
            velocities, [1/s].

    Source: Khatib 1987; feet and trunk together as Sentis, Khatib 2005, with forces distributed as by Wendlandt 1997,
    algorithm 5.
    """

    tasks: tuple[Task, ...] = ()
    standing: tuple[str, ...] = ()
    posture: Pair = (100.0, 20.0)
    foot: float = 20.0
    _feet: list[tuple[int, Array]] = field(default_factory=list, init=False, repr=False)

    def start(self, robot: Robot, ground: Ground | Rigid | None, q: Array, v: Array) -> Array:
        """Fit the law to a robot and return the initial memory, (0,).

        Raises:
            UnknownNameError: for links and contact points that the robot does not have.
            DefinitionError: for nothing to do, for feet that cannot hold a free base, or feet that stand beside a fixed
                one.
        """
        memory = super().start(robot, ground, q, v)
        known = {contact.name: contact for contact in robot.contacts}
        for name in self.standing:
            if name not in known:
                raise UnknownNameError("contact point", name, known)
        if not self.tasks:
            raise DefinitionError("operational-space control needs a task: a PointTask or a PoseTask")
        for task in self.tasks:
            robot.link(task.link)
            if np.shape(task.path(0.0)) != (3,):
                raise ShapeError(f"the path of {task.link!r} must give (3,), [m], got {np.shape(task.path(0.0))}")
        self._feet = [(known[name].link, known[name].position) for name in self.standing]
        self._check_feet(robot, q)
        return memory

    def _check_feet(self, robot: Robot, q: Array) -> None:
        n0 = robot.base.nv
        if n0 == 0 and self._feet:
            raise DefinitionError(f"robot {robot.name!r} has a fixed base: no foot of it stands")
        if n0:
            rows = self._foot_rows(robot, q)[:, :n0] if self._feet else np.zeros((0, n0))
            check_footing(robot, self.standing, rows.T)

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        """Return the generalized forces, (nv,); the base's rows are zero. `wrenches` and `memory` are not used."""
        robot, n0 = self.robot, self.robot.base.nv
        space = self._space(q)
        speeds, start = space.J @ v, 3 * len(self._feet)
        wanted = [-self.foot * speeds[:start]]
        for task in self.tasks:
            own = speeds[start : start + len(task.rows)]
            wanted.append(task.acceleration(robot, t, q, join(np.zeros(6 - len(own)), own)))
            start += len(task.rows)
        e, ed, qdd = self._errors(t, phase, q, v)
        alpha = join(np.zeros(n0), qdd + self.posture[0] * e + self.posture[1] * ed)
        tau = space.forces(v, np.concatenate(wanted), inverse_dynamics(robot, q, v, alpha))
        if n0:
            rows = self._foot_rows(robot, q)
            G = rows[:, :n0].T
            tau = tau - rows.T @ (G.T @ solve_symmetric(mirror(G @ G.T), tau[:n0]))
        return self._generalized(tau[n0:])

    def _space(self, q: Array) -> OperationalSpace:
        """Return the operational space of the standing feet, then of the tasks."""
        points = [*self._feet, *((task.link, np.array(task.point)) for task in self.tasks)]
        rows = [*((3, 4, 5) for _ in self._feet), *(task.rows for task in self.tasks)]
        return OperationalSpace(self.robot, q, points, tuple(6 * k + i for k, own in enumerate(rows) for i in own))

    def _foot_rows(self, robot: Robot, q: Array) -> Array:
        """Return the standing feet's Jacobian, (3 feet, nv), world axes."""
        return np.concatenate([point_jacobian(robot, q, link, point)[3:] for link, point in self._feet])


def _followed(path: Path, t: Any, place: Array, velocity: Array, gains: Pair) -> Array:
    wanted, rate, acceleration = taylor.derivatives(path(taylor.time(t)))
    return acceleration + gains[0] * (wanted - place) + gains[1] * (rate - velocity)
