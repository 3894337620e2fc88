"""Whole-body control: joint torques of weighted tasks within friction cones and limits, by a quadratic program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from controllers.locomotion.forces.friction_cone import project_to_cone
from controllers.locomotion.torques.quadratic_program import QuadraticProgram, solve
from controllers.locomotion.torques.tasks import Task, WholeBodyModel
from legged.algorithms.legs.standing import joint_limits
from legged.compiler.ir import where
from legged.errors import DefinitionError, ShapeError
from legged.robot.physics import motor_force
from legged.robot.robot import Robot
from legged.rotations import rotation_error
from legged.spatial import Array, is_finite, is_zero, sum_of

LEVEL_RATIO = 1e-3
"""Ratio of the weights of two successive priority levels."""
CONTACT_WEIGHT = 1e3
"""Weight of the accelerations of standing contact points, against tasks of weight 1 and level 0."""
FORCE_WEIGHT = 1e-4
"""Weight of the deviation of contact forces, per robot's mass, from their references."""
ITERATIONS = 12
"""Largest number of iterations of a call. Without a start 5 to 11 are usual, from the last time step 2 or 3."""
_REGULARIZATION = 1e-8  # weight of all accelerations, which makes the solution unique
_SOFTNESS = 1e-6  # of the bounds of joint accelerations, see `QuadraticProgram`
_BEYOND = 0.1  # [rad], angle beyond the range of a joint from which on a task loses the rotation about it
_FALL = 9.81  # [m/s^2], unit of forces, times the robot's mass, without gravity


@dataclass(frozen=True, eq=False)
class JointLimits:
    """Limits of the joints.

    Accelerations are bounded so that velocities and positions stay within their limits,

        lower <= v + vdot horizon <= upper,      upper = min(speed, (position_upper - q) / approach)

    and lower likewise, and by `acceleration` in any case. They give way to the equations of motion, friction and
    torques where all together have no solution; torques do not.

    Attributes:
        torque: Largest torque at rest and against the motion, (nj,), [N m] or [N], joint coordinates; infinite for no
            limit. It may be traced. In the direction of motion the limit falls to zero at `speed`, see `motor_force`.
        lower, upper: Range of positions, (nj,), [rad] or [m]; infinite for no limit.
        speed: Largest speed, also the no-load speed of the motor, (nj,), [rad/s] or [m/s]; infinite for no limit.
        acceleration: Largest acceleration of every joint, [rad/s^2] or [m/s^2].
        horizon: Time in which a velocity outside its limits returns to them, [s].
        approach: Time constant with which a joint approaches the end of its range, [s].

    Source:
        The limit of the speed of approach is the velocity damper of Faverjon, Tournassoud 1987.
    """

    torque: Array
    lower: Array
    upper: Array
    speed: Array
    acceleration: float = 1000.0
    horizon: float = 0.01
    approach: float = 0.05

    def __post_init__(self) -> None:
        for name in ("acceleration", "horizon", "approach"):
            value = getattr(self, name)
            if not 0.0 < value < np.inf:
                raise DefinitionError(f"the {name} of joint limits must be positive and finite, got {value}")
        for name in ("torque", "lower", "upper", "speed"):
            limits = np.asarray(getattr(self, name))
            if limits.shape != np.shape(self.torque) or limits.ndim != 1:
                raise ShapeError(f"{name} must be (nj,), one entry per joint coordinate, got shape {limits.shape}")
            object.__setattr__(self, name, limits)
        for name in ("torque", "speed"):
            if any(not x > 0.0 for x in getattr(self, name) if isinstance(x, int | float)):
                raise DefinitionError(f"limits of {name} must be positive, infinite for no limit")
        if any(x > y for x, y in zip(self.lower, self.upper, strict=True) if isinstance(x, int | float)):
            raise DefinitionError("the lower end of a joint's range must not exceed the upper end")

    @classmethod
    def of(cls, robot: Robot, **given: Any) -> JointLimits:
        """Return the limits of a robot's motors and joints.

        Args:
            robot: The robot. given: Other attributes.
        """
        effort, speed = np.full(robot.nv, np.inf), np.full(robot.nv, np.inf)
        for body in robot.bodies:
            for entry, most, fastest in body.motor_limits:
                effort[entry], speed[entry] = most, fastest
        lower, upper = joint_limits(robot)
        n0 = robot.base.nv
        return cls(**{"torque": effort[n0:], "lower": lower, "upper": upper, "speed": speed[n0:], **given})

    def torque_bounds(self, v: Array) -> tuple[Array, Array]:
        """Return the least and largest torques at given velocities, (nj,) each, [N m] or [N], joint coordinates.

        Args:
            v: Joint velocities, (nj,), [rad/s] or [m/s], joint coordinates.
        """
        least = [-motor_force(*row) for row in zip(self.torque, self.speed, -v, strict=True)]
        return np.array(least), np.array([motor_force(*row) for row in zip(self.torque, self.speed, v, strict=True)])

    def acceleration_bounds(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Return the least and largest accelerations, (nj,) each, [rad/s^2] or [m/s^2], joint coordinates.

        Args:
            q: Joint positions, (nj,). v: Joint velocities, (nj,).
        """
        least = [-x for x in self._most(-q, -v, -self.lower)]
        return np.array(least), np.array(self._most(q, v, self.upper))

    def within_range(
        self, task: Task, model: WholeBodyModel, link: int, rotation: Array, column: int | None, share: Any
    ) -> Task:
        """Return the task of `link_orientation` without rotations about a joint that would leave its range.

        A link keeps its orientation above links that turn if its joint turns back. At the end of its range the joint
        cannot, and the task would hold these links, such as a leg that lifts the foot.

        Args:
            task: The task. model: The robot at its present state. link: Index of the link.
            rotation: Desired rotation matrix, (3, 3), link to world axes.
            column: Index of the joint among the joint coordinates; None for none.
            share: Largest share of the task about the axis of the joint that is left out, from 0 to 1: where the joint
                would be 0.1 rad beyond its range after the rotation, and after the time `approach` at the velocity at
                which the link does not rotate.
        """
        if column is None or is_zero(share):
            return task
        at, row = model.point(link), model.robot.base.nv + column
        axis, position = at.J[:3, row], model.q[model.robot.base.nq + column]
        turn, rate = -axis @ rotation_error(at.rotation @ rotation.T), model.v[row] - axis @ at.twist[:3]
        needed = position + turn + self.approach * rate
        beyond = np.maximum(np.maximum(self.lower[column] - needed, needed - self.upper[column]), 0.0)
        lost = share * np.minimum(beyond / _BEYOND, 1.0)
        return task._replace(A=task.A - lost * np.outer(axis, axis @ task.A), b=task.b - lost * (axis @ task.b) * axis)

    def _most(self, q: Array, v: Array, upper: Array) -> list[Any]:
        """Return the largest accelerations, (nj,), towards the upper ends of the ranges."""
        bounds: list[Any] = []
        for position, velocity, end, speed in zip(q, v, upper, self.speed, strict=True):
            fastest = speed
            if is_finite(end):  # a joint beyond the end of its range returns at most at its largest speed
                fastest = np.maximum(np.minimum(speed, (end - position) / self.approach), -speed)
            rate = (fastest - velocity) / self.horizon if is_finite(end) or is_finite(speed) else self.acceleration
            bounds.append(np.minimum(np.maximum(rate, -self.acceleration), self.acceleration))
        return bounds


class Contact(NamedTuple):
    """A contact point of the robot and the ground, and its reference force.

    A sole is its several contact points: its center of pressure stays inside, since none of them can pull.

    Attributes:
        link: Name or index of the link. position: The point, (3,), [m], link axes.
        active: 1 if the point stands, 0 if it is in the air; may change with time, and lie between.
        friction: Coefficient of friction, positive.
        axes: Contact axes, (3, 3): columns are two tangents and the normal of the ground, in world axes.
        force: Reference force, (3,), [N], world axes; None for equal shares of the weight on standing points.
        most: Largest normal force, [N].
        acceleration: Desired acceleration, (3,), [m/s^2], world axes; zero for a foot that stands.
        damping: Gain of the point's velocity, which is subtracted from the desired acceleration, [1/s].
    """

    link: str | int
    position: Array
    active: Any = 1.0
    friction: Any = 0.6
    axes: Array = np.eye(3)
    force: Array | None = None
    most: Any = np.inf
    acceleration: Array = np.zeros(3)
    damping: Any = 20.0


class Result(NamedTuple):
    """Result of whole-body control.

    Attributes:
        tau: Joint torques, (nj,), [N m] or [N], joint coordinates.
        vdot: Acceleration, (nv,).
        forces: Contact forces, (n, 3), [N], world axes, in their friction cones.
        iterate: Iterate from which the next call starts.
        residual: Largest violation of the equations of motion of the base, per weight (and meter), of a torque limit,
            per effort, and of an acceleration bound, per its largest value. Zero within 1e-6 if the limits agree.
    """

    tau: Array
    vdot: Array
    forces: Array
    iterate: Array
    residual: Any


def whole_body(
    model: WholeBodyModel,
    contacts: Sequence[Contact],
    tasks: Sequence[Task],
    limits: JointLimits,
    start: Array | None = None,
    iterations: int = ITERATIONS,
    force_weight: Any = FORCE_WEIGHT,
) -> Result:
    """Return the joint torques of the accelerations vdot and contact forces f that

        minimize    sum over tasks of w |A vdot - b|^2 / 2 + CONTACT_WEIGHT sum over standing points of |a - a_d|^2 / 2
                    + force_weight |f - f_ref|^2 / (2 m^2)
        such that   the rows of M vdot + h = tau + J^T f hold, where tau of the base is zero,
                    f lies in the friction cones, tau and vdot lie within the limits of the joints.

    A task of level l has the weight w = weight LEVEL_RATIO^l. As the ratio of two levels tends to zero, the solution
    tends to that of the hierarchy in which a level is minimized among the minimizers of the levels above it; at the
    finite ratio a task of full rank deviates from it by a relative error of the order of the ratio.

    The equations of motion, cones and torque limits always agree, since a robot can fall with zero forces and torques.
    The bounds of accelerations give way where they do not agree with these. The result is finite for finite numbers:
    forces are projected onto their cones and torques cut at their limits, and `residual` states by how much.

    Args:
        model: The robot at its present state.
        contacts: Contact points that stand or may stand.
        tasks: Tasks, from functions of `controllers.locomotion` or from rows of one's own.
        limits: Limits of the joints.
        start: `iterate` of the last call, (m,), mixed units; None for zeros. The numbers of contacts and finite limits
            must be the same.
        iterations: Largest number of iterations of the quadratic program.
        force_weight: Weight of forces, against tasks of weight 1.
    """
    robot = model.robot
    problem, J = whole_body_program(model, contacts, tasks, limits, force_weight)
    solution = solve(problem, np.zeros(problem.iterate_size) if start is None else start, iterations)
    nv, n0, unit = robot.nv, robot.base.nv, _weight(robot)
    vdot, phi = solution.x[:nv], solution.x[nv:].reshape(-1, 3)
    forces = [
        contact.active * project_to_cone(unit * x, contact.friction, contact.most)
        for contact, x in zip(contacts, phi, strict=True)
    ]
    total = model.M @ vdot + model.h
    for rows, f in zip(J, forces, strict=True):
        total = total - rows.T @ f
    needed, efforts = total[n0:], limits.torque
    rows = zip(needed, efforts, *limits.torque_bounds(model.v[n0:]), strict=True)
    tau = np.array([np.minimum(np.maximum(x, least), most) if is_finite(e) else x for x, e, least, most in rows])
    least, most = limits.acceleration_bounds(model.q[robot.base.nq :], model.v[n0:])
    excess = np.concatenate([least - vdot[n0:], vdot[n0:] - most]) / limits.acceleration
    cut = [abs(x - y) / e for x, y, e in zip(needed, tau, efforts, strict=True) if is_finite(e)]
    residual: Any = 0.0
    for value in (*(abs(x) / unit for x in total[:n0]), *cut, *excess):
        residual = np.maximum(residual, value)
    world = [np.asarray(contact.axes) @ f for contact, f in zip(contacts, forces, strict=True)]
    return Result(tau, vdot, np.array(world).reshape(-1, 3), solution.iterate, residual)


def whole_body_program(
    model: WholeBodyModel, contacts: Sequence[Contact], tasks: Sequence[Task], limits: JointLimits, force_weight: Any
) -> tuple[QuadraticProgram, list[Array]]:
    """Return the quadratic program of `whole_body` and the Jacobian of each contact, (3, nv), contact axes.

    Its unknowns are vdot, (nv,), and the contact forces in contact axes per weight of the robot, (3 n,). Torques are
    eliminated by the equations of motion.

    Args:
        model: As in `whole_body`. contacts: As in `whole_body`. tasks: As in `whole_body`. limits: As in `whole_body`.
        force_weight: As in `whole_body`.
    """
    robot, M, h = model.robot, model.M, model.h
    nv, n0, unit = robot.nv, robot.base.nv, _weight(robot)
    points = [model.point(contact.link, contact.position) for contact in contacts]
    J = [np.asarray(contact.axes).T @ at.J[3:] for contact, at in zip(contacts, points, strict=True)]
    # Equations of motion: motion_rows @ unknowns + h = tau, whose first n0 rows are those of the base.
    G = np.concatenate(
        [np.zeros((nv, 0)), *(-unit * contact.active * rows.T for contact, rows in zip(contacts, J, strict=True))],
        axis=1,
    )
    motion_rows = np.concatenate([M, G], axis=1)
    normal = _Normal(robot, 3 * len(contacts), motion_rows.dtype)
    for contact, at in zip(contacts, points, strict=True):
        desired = np.asarray(contact.acceleration) - contact.damping * at.twist[3:] - at.bias[3:]
        normal.add(Task(at.J[3:], desired, CONTACT_WEIGHT * contact.active))
    for task in tasks:
        normal.add(task)
    normal.add_forces(contacts, robot, force_weight)
    bounds = _bounds(model, contacts, limits, motion_rows)
    # Equations E unknowns = desired: rows of tasks over several chains, which give way, then the motion of the base.
    E = np.concatenate([*(row[None] for row in normal.soft), motion_rows[:n0] / unit])
    problem = QuadraticProgram(
        normal.H,
        normal.g,
        E,
        np.concatenate([normal.desired, -h[:n0] / unit]),
        [*([1.0] * len(normal.soft)), *([0.0] * n0)],
        *bounds,
        [(k, k + 1, k + 2) for k in range(nv, nv + 3 * len(contacts), 3)],
        [contact.friction for contact in contacts],
    )
    return problem, J


def _bounds(
    model: WholeBodyModel, contacts: Sequence[Contact], limits: JointLimits, motion_rows: Array
) -> tuple[Array, list[Any], list[Any], list[float]]:
    """Return B, lower, upper and softness of the bounds lower <= B unknowns <= upper of `whole_body_program`.

    The rows of B, (m, nv + 3 n), are normal forces, torques over their limits, and accelerations of joints over their
    limits, in this order; n is the number of contacts.

    Args:
        model, contacts, limits: As in `whole_body`.
        motion_rows: Torques are motion_rows @ unknowns + h, (nv, nv + 3 n), mixed units.
    """
    robot, h, efforts = model.robot, model.h, limits.torque
    nv, n0, unit, unknowns = robot.nv, robot.base.nv, _weight(robot), np.eye(motion_rows.shape[1])
    motors = [n0 + k for k, effort in enumerate(efforts) if is_finite(effort)]
    torque_rows = [motion_rows[i] / efforts[i - n0] for i in motors]
    torques = limits.torque_bounds(model.v[n0:])
    least_torques, most_torques = ([x[i - n0] / efforts[i - n0] for i in motors] for x in torques)
    bias = [h[i] / efforts[i - n0] for i in motors]
    least, most = limits.acceleration_bounds(model.q[robot.base.nq :], model.v[n0:])
    a = limits.acceleration
    pressed = [i for i, contact in enumerate(contacts) if is_finite(contact.most)]
    B = np.concatenate(
        [*(unknowns[[nv + 3 * i + 2]] for i in pressed), *(row[None] for row in torque_rows), unknowns[n0:nv] / a]
    )
    lower = [*([-np.inf] * len(pressed)), *(y - x for x, y in zip(bias, least_torques, strict=True)), *(least / a)]
    upper = [
        *(contacts[i].most / unit for i in pressed),
        *(y - x for x, y in zip(bias, most_torques, strict=True)),
        *(most / a),
    ]
    return B, lower, upper, [*([0.0] * (len(pressed) + len(motors))), *([_SOFTNESS] * (nv - n0))]


class _Normal:
    """The normal equations of tasks. Rows over more than one chain of joints would fill the matrix; they stay rows."""

    def __init__(self, robot: Robot, forces: int, kind: Any):
        self.H, self.g = np.zeros((robot.nv + forces,) * 2, dtype=kind), np.zeros(robot.nv + forces, dtype=kind)
        for i in range(robot.nv):
            self.H[i, i] = _REGULARIZATION
        self.soft: list[Array] = []
        self.desired: list[Any] = []
        self.forces = forces
        self.chains = [
            {i for k in robot.ancestors(end) for i in range(robot.bodies[k].v.start, robot.bodies[k].v.stop)}
            for end in range(len(robot.bodies))
        ]

    def add(self, task: Task) -> None:
        weights = [task.weight] * len(task.b) if np.ndim(task.weight) == 0 else task.weight
        for row, b, weight in zip(task.A, task.b, weights, strict=True):
            w = weight * LEVEL_RATIO**task.level
            columns = [i for i, value in enumerate(row) if not is_zero(value)]
            if is_zero(w):
                continue
            if any(chain.issuperset(columns) for chain in self.chains):
                for k, i in enumerate(columns):
                    factor = w * row[i]
                    self.g[i] = self.g[i] - factor * b
                    for j in columns[k:]:
                        self.H[i, j] = self.H[i, j] + factor * row[j]
            else:
                root = np.sqrt(w)
                self.soft.append(np.concatenate([root * row, np.zeros(self.forces)]))
                self.desired.append(root * b)

    def add_forces(self, contacts: Sequence[Contact], robot: Robot, weight: Any) -> None:
        """Add the cost of the deviation of contact forces, in units of the weight, from their references."""
        nv, unit = robot.nv, _weight(robot)
        scale = weight * (unit / robot.mass) ** 2
        share = -robot.mass * robot.gravity / np.maximum(sum_of(contact.active for contact in contacts), 1.0)
        for i, contact in enumerate(contacts):
            force = share if contact.force is None else np.asarray(contact.force)
            reference = np.asarray(contact.axes).T @ force / unit
            # A point in the air has no effect. Its unknown force is kept inside the cone, where the solver is fast.
            inside = np.array([0.0, 0.0, np.minimum(1.0 / len(contacts), 0.5 * contact.most / unit)])
            reference = where(contact.active > 0.0, reference, inside)
            for k in range(3):
                self.H[nv + 3 * i + k, nv + 3 * i + k] = scale
                self.g[nv + 3 * i + k] = -scale * reference[k]


def _weight(robot: Robot) -> float:
    """Return the unit of forces, [N]: the robot's weight, on the Earth if there is no gravity."""
    return robot.mass * (float(np.linalg.norm(robot.gravity)) or _FALL)
