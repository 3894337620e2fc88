"""The loop constraints at a configuration: residual, Jacobian, bias, and rank."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from legged.algorithms.linear_algebra import independent_row_numbers, numerical_rank
from legged.arguments import array
from legged.checked import checked
from legged.dynamics.arguments import read
from legged.dynamics.frames import Frame, Pose, frame_acceleration, frame_jacobian, frame_pose, frame_twist
from legged.loops.closed_robot import ClosedRobot, Loop
from legged.spatial import Array


class FramePoses(NamedTuple):
    """Poses of a closing joint's two frames in the world."""

    P: Pose
    C: Pose


@checked
def residual(closed: ClosedRobot, q: Array) -> Array:
    """Return phi(q), (rows,), [m] or 1, equation (16); zero where the loops are closed.

    Rows of nonholonomic constraints, as of a rolling contact, are zero.

    Args:
        closed: The robot with its loops. q: Configuration of its tree, (nq,).
    """
    (q,) = read(closed.robot, q=q)
    poses = [frame_poses(closed, q, loop) for loop in closed.loops]
    return _vector([constraint.value(*poses[k]) for k, constraint in closed.constraints])


@checked
def jacobian(closed: ClosedRobot, q: Array) -> Array:
    """Return phi', (rows, nv), with phi_dot = phi' v, equation (17).

    It is composed of the Jacobians of each joint's two frames, in world axes. Joints that move both frames alike do not
    change phi: their columns are exactly zero.

    Args:
        closed: The robot with its loops. q: Configuration, (nq,).
    """
    (q,) = read(closed.robot, q=q)
    J = [frames_jacobian(closed, q, loop) for loop in closed.loops]
    for around, loop in zip(J, closed.loops, strict=True):
        entries = {e for k in closed.bodies_around(loop.name) for e in range(closed.robot.nv)[closed.robot.bodies[k].v]}
        around[:, [e for e in range(closed.robot.nv) if e not in entries]] = 0.0
    poses = [frame_poses(closed, q, loop) for loop in closed.loops]
    rows = [constraint.jacobian(*poses[k]) @ J[k] for k, constraint in closed.constraints]
    return np.array(rows) if rows else np.zeros((0, closed.robot.nv))


@checked
def bias(closed: ClosedRobot, q: Array, v: Array) -> Array:
    """Return phi_ddot at vdot = 0, (rows,): the term phi'_dot v of equation (17).

    Args:
        closed: The robot with its loops. q: Configuration, (nq,). v: Velocity, (nv,).
    """
    return acceleration(closed, q, v, np.zeros(closed.robot.nv))


@checked
def acceleration(closed: ClosedRobot, q: Array, v: Array, vdot: Array) -> Array:
    """Return phi_ddot = phi' vdot + phi'_dot v, (rows,), equation (17).

    Args:
        closed: The robot with its loops. q: Configuration, (nq,). v: Velocity, (nv,). vdot: Acceleration, (nv,).
    """
    robot = closed.robot
    q, v, vdot = read(robot, q=q, v=v, vdot=vdot)

    def on_frames(motion: Callable[[Frame], Array]) -> list[list[Array]]:
        return [[np.zeros(6) if f is None else motion(f) for f in loop.frames] for loop in closed.loops]

    poses = [frame_poses(closed, q, loop) for loop in closed.loops]
    t = on_frames(lambda f: frame_twist(robot, q, v, f))
    td = on_frames(lambda f: frame_acceleration(robot, q, v, vdot, f))
    return _vector(
        [c.jacobian(*poses[k]) @ np.concatenate(td[k]) + c.bias(*poses[k], *t[k]) for k, c in closed.constraints]
    )


def frame_poses(closed: ClosedRobot, q: Array, loop: Loop) -> FramePoses:
    """Return the poses of a closing joint's two frames in the world.

    Args:
        closed: The robot with its loops. q: Configuration, (nq,). loop: One of its loops.
    """
    parent, child = loop.frames
    P = loop.frame if parent is None else frame_pose(closed.robot, q, parent)
    return FramePoses(P, frame_pose(closed.robot, q, child))


def frames_jacobian(closed: ClosedRobot, q: Array, loop: Loop) -> Array:
    """Return the stacked Jacobians of a closing joint's two frames, (12, nv), world axes.

    Args:
        closed: The robot with its loops. q: Configuration, (nq,). loop: One of its loops.
    """
    parent, child = loop.frames
    zero = np.zeros((6, closed.robot.nv))
    J_P = zero if parent is None else frame_jacobian(closed.robot, q, parent)
    return np.concatenate([J_P, frame_jacobian(closed.robot, q, child)])


@checked
def loop_wrenches(closed: ClosedRobot, q: Array, multipliers: Array) -> Array:
    """Return the wrench of each closing joint on its child, (loops, 6), [n; f] about the child's frame, world axes.

    Args:
        closed: The robot with its loops. q: Configuration, (nq,).
        multipliers: lambda of `solve`, (rows,), [N] or [N m], along the scalar constraints.
    """
    (q,) = read(closed.robot, q=q)
    multipliers = array("multipliers", multipliers, (len(closed.constraints),), "one entry per scalar constraint")
    poses = [frame_poses(closed, q, loop) for loop in closed.loops]
    total = [np.zeros(6) for _ in closed.loops]
    for (k, constraint), force in zip(closed.constraints, multipliers, strict=True):
        total[k] = total[k] + constraint.jacobian(*poses[k])[6:] * force
    return np.array(total).reshape(-1, 6)


def _vector(values: list) -> Array:
    return np.array(values) if values else np.zeros(0)


@dataclass(frozen=True, eq=False)
class Mobility:
    """The mobility of a mechanism at a configuration; prints as a sentence.

    Attributes:
        rows: Number of constraints. rank: Number of independent ones. freedoms: nv - rank, degrees of freedom.
        singular_values: Of phi', in decreasing order, (min(rows, nv),).
        dependent: Names of the redundant rows, "joint: k-th row"; of equivalent rows the choice is arbitrary.
    """

    rows: int
    rank: int
    freedoms: int
    singular_values: Array
    dependent: tuple[str, ...]

    def __str__(self) -> str:
        redundant = f"; redundant: {', '.join(self.dependent)}" if self.dependent else ""
        freedoms = "1 degree of freedom" if self.freedoms == 1 else f"{self.freedoms} degrees of freedom"
        return f"{self.rows} constraints of rank {self.rank}, {freedoms}{redundant}"


@checked
def mobility(closed: ClosedRobot, q: Array) -> Mobility:
    """Return the number of independent constraints and the degrees of freedom at a configuration.

    Args:
        closed: The robot with its loops. q: Configuration, (nq,).
    """
    (q,) = read(closed.robot, q=q)
    J = jacobian(closed, q)
    singular_values = np.linalg.svd(J, compute_uv=False)
    rank, independent = numerical_rank(singular_values), set(independent_row_numbers(J))
    names = [f"{loop.name}: row {i}" for loop in closed.loops for i in range(1, len(loop.constraints) + 1)]
    dependent = tuple(names[closed.rows[i]] for i in range(len(J)) if i not in independent)
    return Mobility(len(J), rank, closed.robot.nv - rank, singular_values, dependent)


@checked
def independent_first(closed: ClosedRobot, q: Array) -> ClosedRobot:
    """Return the robot with its constraint rows reordered: those independent at a configuration come first.

    Args:
        closed: The robot with its loops. q: Configuration, (nq,).
    """
    (q,) = read(closed.robot, q=q)
    first = independent_row_numbers(jacobian(closed, q))
    others = [i for i in range(len(closed.rows)) if i not in first]
    return replace(closed, rows=tuple(closed.rows[i] for i in (*first, *others)), independent_count=len(first))


@checked
def independent_only(closed: ClosedRobot, q: Array) -> ClosedRobot:
    """Return the robot with only the constraint rows that are independent at a configuration, for traced functions.

    At other configurations the omitted rows may be independent; `mobility` shows it.

    Args:
        closed: The robot with its loops. q: Configuration, (nq,).
    """
    (q,) = read(closed.robot, q=q)
    rows = tuple(closed.rows[i] for i in sorted(independent_row_numbers(jacobian(closed, q))))
    return replace(closed, rows=rows, independent_count=None)
