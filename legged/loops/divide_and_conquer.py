"""Forward dynamics of robots with closed loops by the divide-and-conquer algorithm.

Each loop is imposed in the first assembly that contains the bodies at both of its ends. Constraints of loops that share
joints of the tree may depend on each other: such loops are a group, and are imposed together after a rank test.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from legged.algorithms import divide_and_conquer
from legged.algorithms.divide_and_conquer import GROUND, BodyConstraints
from legged.algorithms.massive_bodies import is_massless
from legged.compiler.ir import where
from legged.dynamics.arguments import Wrenches, read
from legged.dynamics.frames import Frame, Pose, resolve_frame
from legged.dynamics.kinematics import Motion
from legged.elements import any_element
from legged.errors import DefinitionError
from legged.loops.closed_robot import ClosedRobot, Loop
from legged.loops.closing_joints import ScalarConstraint
from legged.loops.constraints import jacobian
from legged.loops.redundancy import independent_flags
from legged.spatial import Array, cross, join, skew


@any_element
def closed_divide_and_conquer(
    closed: ClosedRobot,
    q: Array,
    v: Array,
    tau: Array,
    wrenches: Wrenches = None,
    *,
    version: str = "pivoted",
) -> Array:
    """Return the acceleration of a robot with closed loops, (nv,), by divide and conquer.

    Args:
        closed: The robot with its loops.
        q, v, tau, wrenches: As in `legged.forward_dynamics`, of the spanning tree; q and v should satisfy the loops.
        version: As in `legged.algorithms.divide_and_conquer.divide_and_conquer`.

    Raises:
        As `legged.algorithms.divide_and_conquer.divide_and_conquer`; DefinitionError for a loop at a massless body.
    """
    q, v, tau = read(closed.robot, q=q, v=v, tau=tau)
    return divide_and_conquer.divide_and_conquer(
        closed.robot,
        q,
        v,
        tau,
        wrenches,
        version=version,
        constraints=lambda motion: acceleration_constraints(closed, q, motion),
    )


forward_dynamics = closed_divide_and_conquer
"""The name of the task, which is the same in the modules of all algorithms."""


def acceleration_constraints(closed: ClosedRobot, q: Array, motion: Motion) -> list[BodyConstraints]:
    """Return the constraints of a robot's loops on the accelerations of its bodies, group by group.

    Args:
        closed: The robot with its loops. q: Configuration, (nq,).
        motion: Poses and velocities of its bodies.

    Raises:
        DefinitionError: For a loop at a massless body.
    """
    frames = [[_frame_motion(closed, loop, frame, motion) for frame in loop.frames] for loop in closed.loops]
    flags = independent_flags(closed, jacobian(closed, q))
    groups = [_group_constraints(closed, numbers, frames, flags) for numbers in _loops_that_share_joints(closed)]
    return [group for group in groups if group.N and len(group.c)]


class _FrameMotion(NamedTuple):
    """Motion of one frame of a closing joint, whose acceleration is T a + bias; world axes.

    Attributes:
        body: Index of its body, `GROUND` if it does not move. pose: In the world. twist: (6,).
        T: (6, 6). bias: (6,), which also removes gravity from a.
    """

    body: int
    pose: Pose
    twist: Array
    T: Array
    bias: Array


def _frame_motion(closed: ClosedRobot, loop: Loop, frame: Frame | None, motion: Motion) -> _FrameMotion:
    """Return the motion of a frame of a loop; None is the world."""
    zero = np.zeros(6)
    if frame is None:
        return _FrameMotion(GROUND, loop.frame, zero, np.eye(6), zero)
    robot = closed.robot
    _, _, k, (rotation, r) = resolve_frame(robot, frame)
    R, t = motion.rotation[k], motion.twist[k]
    pose = Pose(R @ rotation, motion.origin[k] + R @ r)
    if k == 0 and not robot.base.nv:
        return _FrameMotion(GROUND, pose, zero, np.eye(6), zero)
    if is_massless(robot.bodies[k]):
        raise DefinitionError(
            f"joint {loop.name!r} closes a loop at {frame.on!r}, which has no mass; divide and conquer needs some there"
        )
    velocity = t[3:] + cross(t[:3], r)
    T = np.block([[R, np.zeros((3, 3))], [-R @ skew(r), R]])
    bias = join(np.zeros(3), R @ cross(t[:3], velocity) + robot.gravity)
    return _FrameMotion(k, pose, join(R @ t[:3], R @ velocity), T, bias)


def _group_constraints(
    closed: ClosedRobot, loops: Sequence[int], frames: Sequence[Sequence[_FrameMotion]], flags: Sequence[Any]
) -> BodyConstraints:
    """Return the independent constraints of some loops, from the frames of all loops and the independence of all rows.

    Redundant rows of numbers are left out, those of traced values are set to zero.
    """
    numbers = [i for i, (k, _) in enumerate(closed.constraints) if k in loops]
    traced = not all(isinstance(flags[i], (bool, np.bool_)) for i in numbers)
    if not traced:
        numbers = [i for i in numbers if flags[i]]
    rows = [_body_row(frames[k], constraint) for k, constraint in (closed.constraints[i] for i in numbers)]
    c = np.array([right_side for _, right_side in rows])
    factors = np.array([where(flags[i], 1.0, 0.0) for i in numbers]) if traced else np.ones(len(numbers))
    bodies = frozenset(frame.body for k in loops for frame in frames[k])
    N = {k: np.array([blocks.get(k, np.zeros(6)) for blocks, _ in rows]) for k in bodies - {GROUND}}
    return BodyConstraints({k: factors[:, None] * block for k, block in N.items()}, factors * c, bodies)


def _body_row(frames: Sequence[_FrameMotion], constraint: ScalarConstraint) -> tuple[dict[int, Array], Any]:
    """Return (coefficients of each body's acceleration, (6,), right side) of a scalar constraint."""
    P, C = frames
    row = constraint.jacobian(P.pose, C.pose)
    bias = row @ np.concatenate([P.bias, C.bias]) + constraint.bias(P.pose, C.pose, P.twist, C.twist)
    return {frame.body: part @ frame.T for frame, part in ((P, row[:6]), (C, row[6:]))}, -bias


def _loops_that_share_joints(closed: ClosedRobot) -> Iterator[list[int]]:
    """Yield the numbers of loops that share joints of the tree, directly or through others."""
    remaining = {k: set(closed.bodies_around(loop.name)) for k, loop in enumerate(closed.loops)}
    while remaining:
        first = next(iter(remaining))
        group, joints = [first], remaining.pop(first)
        while sharing := [k for k, others in remaining.items() if others & joints]:
            for k in sharing:
                group.append(k)
                joints |= remaining.pop(k)
        yield group
