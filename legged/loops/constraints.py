"""The loops' constraints of a configuration: phi, its Jacobian, and what its second rate is without accelerations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from legged.dynamics.arguments import read
from legged.dynamics.frames import Frame, Pose, frame_acceleration, frame_jacobian, frame_pose, frame_twist
from legged.loops.loop import ClosedRobot, Loop
from legged.spatial import Array


class Ends(NamedTuple):
    """The poses of a joint's two frames in the world."""

    P: Pose
    C: Pose


def residual(closed: ClosedRobot, q: Array) -> Array:
    """Return phi(q), (rows,), [m] or 1: zero where the loops are closed; equation (16).

    Rows that bind velocities alone, of a rolling contact, are zero.

    Args:
        closed: The robot with its loops. q: Configuration of its tree, (nq,).
    """
    (q,) = read(closed.robot, q=q)
    at = [ends(closed, q, loop) for loop in closed.loops]
    return _array([row.value(*at[k]) for k, row in closed.demands])


def jacobian(closed: ClosedRobot, q: Array) -> Array:
    """Return phi', (rows, nv), with phi_dot = phi' v; equation (17).

    Built from the Jacobians of the two frames that each joint joins, in world axes.
    """
    (q,) = read(closed.robot, q=q)
    J = [frames_jacobian(closed, q, loop) for loop in closed.loops]
    at = [ends(closed, q, loop) for loop in closed.loops]
    rows = [row.row(*at[k]) @ J[k] for k, row in closed.demands]
    return np.array(rows) if rows else np.zeros((0, closed.robot.nv))


def bias(closed: ClosedRobot, q: Array, v: Array) -> Array:
    """Return phi_ddot at vdot = 0, (rows,): phi'_dot v of equation (17)."""
    return acceleration(closed, q, v, np.zeros(closed.robot.nv))


def acceleration(closed: ClosedRobot, q: Array, v: Array, vdot: Array) -> Array:
    """Return phi_ddot = phi' vdot + phi'_dot v, (rows,); equation (17)."""
    robot = closed.robot
    q, v, vdot = read(robot, q=q, v=v, vdot=vdot)
    at = [ends(closed, q, loop) for loop in closed.loops]
    t = [[_of(frame, lambda f: frame_twist(robot, q, v, f)) for frame in loop.ends] for loop in closed.loops]
    td = [
        [_of(frame, lambda f: frame_acceleration(robot, q, v, vdot, f)) for frame in loop.ends] for loop in closed.loops
    ]
    return _array(
        [row.row(*at[k]) @ np.concatenate(td[k]) + row.drift(*at[k], *t[k]) for k, row in closed.demands],
    )


def ends(closed: ClosedRobot, q: Array, loop: Loop) -> Ends:
    """Return where a joint's two frames are in the world."""
    parent, child = loop.ends
    P = loop.frame if parent is None else frame_pose(closed.robot, q, parent)
    return Ends(P, frame_pose(closed.robot, q, child))


def frames_jacobian(closed: ClosedRobot, q: Array, loop: Loop) -> Array:
    """Return v to the twists of a joint's two frames, (12, nv), world axes."""
    parent, child = loop.ends
    still = np.zeros((6, closed.robot.nv))
    J_P = still if parent is None else frame_jacobian(closed.robot, q, parent)
    return np.concatenate([J_P, frame_jacobian(closed.robot, q, child)])


def loop_wrenches(closed: ClosedRobot, q: Array, multipliers: Array) -> Array:
    """Return each closing joint's wrench on its child, (loops, 6), [n; f] about the child's frame, world axes.

    Args:
        closed: The robot with its loops. q: Configuration, (nq,).
        multipliers: lambda, (rows,), as `solve` gives them.
    """
    (q,) = read(closed.robot, q=q)
    at = [ends(closed, q, loop) for loop in closed.loops]
    total = [np.zeros(6) for _ in closed.loops]
    for (k, row), force in zip(closed.demands, multipliers, strict=True):
        total[k] = total[k] + row.row(*at[k])[6:] * force
    return np.array(total).reshape(-1, 6)


def _of(frame: Frame | None, motion) -> Array:
    return np.zeros(6) if frame is None else motion(frame)


def _array(values: list) -> Array:
    return np.array(values) if values else np.zeros(0)
