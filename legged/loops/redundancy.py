"""Rank of the constraints of closed loops: the test that decides which rows are redundant, in all computations.

The rows of phi', the Jacobian of the constraints, are made dimensionless: rows of lengths are divided by the size of
their loop, and columns by the size of the motion that they cause in the loops, so that entries of independent rows are
of the order of one. Each row is then split into a linear combination of the rows before it and an orthogonal remainder
(Gram-Schmidt), whose norm is the row's *margin*. A row whose margin is at most its tolerance is redundant: it is left
out, since the rows before it imply it. The margin depends on the geometry alone, not on the masses. The test has no
branches, so that it can be traced and compiled.

The default tolerance, 1e-4, is above the errors of angles in files from CAD, which round them to 1e-6 or 1e-5 (1.5708
for pi/2). With coarser numbers, such as 1.57 for pi/2, it is larger: if the margin of a row is at most `GAP_TOP` at
all of several random configurations, the row is redundant except for rounding, and the tolerance is three times the
largest such margin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from legged.algorithms.linear_algebra import eliminate_row
from legged.arguments import number
from legged.compiler.ir import where
from legged.dynamics.frames import Pose, frame_jacobian, frame_pose, resolve_frame
from legged.errors import NotFiniteError
from legged.robot.configuration import random_configuration
from legged.robot.robot import Robot
from legged.spatial import Array, is_zero, mirror

if TYPE_CHECKING:
    from legged.loops.closed_robot import ClosedRobot, Loop

RANK_TOLERANCE = 1e-4
"""Default margin up to which a row is redundant, dimensionless: about the sine of its angle to the rows before it."""
REACTIVATION = 10.0
"""Factor on the tolerance for rows that were redundant at a reference configuration, see `independent_first`: within a
time step the state is slightly off the constraints, and redundant rows are redundant only approximately."""
GAP_TOP = 2e-2
"""Margin above which a row is independent, if it occurs at one of several random configurations; see the module."""
_CONFIGURATIONS = 4
_SMALLEST_TOLERANCE, _LARGEST_TOLERANCE = 1e-7, 0.1


class FramePoses(NamedTuple):
    """Poses of a closing joint's two frames in the world."""

    P: Pose
    C: Pose


class LoopScale(NamedTuple):
    """Sizes that make the constraint rows of a loop dimensionless, and the loop's default tolerance.

    Attributes:
        length: Of the loop, [m].
        motions: Size of the motion that each coordinate causes in the loop, (nv,), dimensionless per unit of v; zero
            for coordinates without effect on the loop.
        tolerance: Margin up to which its rows are redundant.
    """

    length: float
    motions: Array
    tolerance: float


UNSCALED = LoopScale(1.0, np.zeros(1), RANK_TOLERANCE)


def loop_scale(robot: Robot, loop: Loop) -> LoopScale:
    """Return the scale of a loop, from the neutral posture and arbitrary configurations of its spanning tree.

    Args:
        robot: The spanning tree, of numbers. loop: The loop.
    """
    bodies = loop_bodies(robot, loop)
    columns = sorted({i for k in bodies for i in range(robot.bodies[k].v.start, robot.bodies[k].v.stop)})
    J = loop_frames_jacobian(robot, robot.neutral(), loop)[:, columns]
    angular, linear = J[[0, 1, 2, 6, 7, 8]], J[[3, 4, 5, 9, 10, 11]]
    turn, path = np.linalg.norm(angular), np.linalg.norm(linear)
    if not np.isfinite([turn, path]).all():
        raise NotFiniteError(f"at and child_at of joint {loop.joint.name!r} are too far from its links' origins")
    length = float(path / turn) if path > 0.0 and turn > 0.0 else 1.0
    motions = np.zeros(robot.nv)
    motions[columns] = np.sqrt((angular**2).sum(axis=0) + (linear**2).sum(axis=0) / length**2)
    scale = LoopScale(length, motions, RANK_TOLERANCE)
    return scale._replace(tolerance=_tolerance_in_gap(robot, loop, scale))


def _tolerance_in_gap(robot: Robot, loop: Loop, scale: LoopScale) -> float:
    """Return three times the largest margin of the rows that are redundant by rounding, at least the default."""
    rng, largest = np.random.default_rng(0), np.zeros(len(loop.constraints))
    for _ in range(_CONFIGURATIONS):
        q = random_configuration(robot, rng)
        J, poses = loop_frames_jacobian(robot, q, loop), loop_frame_poses(robot, q, loop)
        rows = np.array([c.jacobian(*poses) for c in loop.constraints]) @ J
        sizes = np.array([scale.length if c.is_length else 1.0 for c in loop.constraints])
        _, squares = _split(_scaled_columns(rows, scale.motions), GAP_TOP * sizes)
        largest = np.maximum(largest, np.sqrt(np.maximum(squares, 0.0)) / sizes)
    rounding = max(largest[largest <= GAP_TOP], default=0.0)
    return max(RANK_TOLERANCE, 3.0 * float(rounding))


def loop_bodies(robot: Robot, loop: Loop) -> set[int]:
    """Return the bodies whose joints belong to a loop.

    Args:
        robot: The spanning tree. loop: The loop.
    """
    paths = [set(robot.ancestors(resolve_frame(robot, frame).body)) if frame else set() for frame in loop.frames]
    return {k for k in paths[0] ^ paths[1] if robot.bodies[k].nv}


def looped_entries(closed: ClosedRobot) -> frozenset[int]:
    """Return the entries of v of the joints in loops.

    Args:
        closed: The robot with its loops.
    """
    robot = closed.robot
    bodies = {k for loop in closed.loops for k in loop_bodies(robot, loop)}
    return frozenset(e for k in bodies for e in range(robot.nv)[robot.bodies[k].v] if e >= robot.base.nv)


def independent_flags(closed: ClosedRobot, J: Array) -> list[Any]:
    """Return whether each row is independent of the rows before it, (rows,), over any element.

    Args:
        closed: The robot with its loops. J: phi', (rows, nv), any unit, see `jacobian`.
    """
    # Rows need no scaling here: the remainder of a row has the row's scale, as has the bound on it.
    return _split(_scaled_columns(J, _motions(closed)), row_tolerances(closed) * row_sizes(closed))[0]


def margins(closed: ClosedRobot, J: Array) -> Array:
    """Return the margin of each row, (rows,), dimensionless, to rounding errors of 1e-15.

    Args:
        closed: The robot with its loops. J: phi', (rows, nv), any unit, of numbers.
    """
    remainder = dimensionless(closed, J)
    lengths = np.zeros(len(J))
    for i, is_independent in enumerate(independent_flags(closed, J)):
        lengths[i] = np.linalg.norm(remainder[i])
        if is_independent:
            u = remainder[i] / lengths[i]
            remainder = remainder - np.outer(remainder @ u, u)
    return lengths


def row_tolerances(closed: ClosedRobot) -> Array:
    """Return the margin up to which each row is redundant, (rows,)."""
    own = [closed.rank_tolerance or closed.loops[k].scale.tolerance for k, _ in closed.constraints]
    count = len(own) if closed.independent_count is None else closed.independent_count
    return np.array([t if i < count else REACTIVATION * t for i, t in enumerate(own)])


def row_sizes(closed: ClosedRobot) -> Array:
    """Return the size of the loop, [m], for rows of lengths and 1 for other rows, (rows,)."""
    return np.array([closed.loops[k].scale.length if c.is_length else 1.0 for k, c in closed.constraints])


def dimensionless(closed: ClosedRobot, J: Array) -> Array:
    """Return phi' with dimensionless rows and columns, (rows, nv).

    Args:
        closed: The robot with its loops. J: phi', (rows, nv), any unit.
    """
    return _scaled_columns(J, _motions(closed)) / row_sizes(closed)[:, None]


def _motions(closed: ClosedRobot) -> Array:
    """Return the size of the motion that each coordinate causes in the loops, (nv,)."""
    return np.max([np.zeros(closed.robot.nv), *(loop.scale.motions for loop in closed.loops)], axis=0)


def farthest_first(closed: ClosedRobot, J: Array) -> list[int]:
    """Return the numbers of independent rows: repeatedly the row farthest from the span of those chosen before.

    Args:
        closed: The robot with its loops. J: phi', (rows, nv), any unit, of numbers.
    """
    remainder, tolerances, chosen = dimensionless(closed, J), np.array(row_tolerances(closed)), []
    while len(chosen) < min(J.shape):
        margins = np.linalg.norm(remainder, axis=1)
        margins[margins <= tolerances] = 0.0
        k = int(margins.argmax())
        if not margins[k]:
            break
        chosen.append(k)
        u = remainder[k] / margins[k]
        remainder = remainder - np.outer(remainder @ u, u)
    return chosen


def check_tolerance(value: float) -> float:
    """Return a tolerance of the rank; raise ArgumentError outside 1e-7 to 0.1.

    Args:
        value: Dimensionless.
    """
    return number("rank_tolerance", value, least=_SMALLEST_TOLERANCE, most=_LARGEST_TOLERANCE)


def _split(A: Array, bounds: Array) -> tuple[list[Any], list[Any]]:
    """Return (whether the remainder of each row of A is longer than its bound, squared length of the remainder)."""
    S = mirror(A @ A.T)
    L: list[list[Any]] = [[0.0] * len(S) for _ in S]
    flags: list[Any] = []
    squares: list[Any] = []
    reciprocals: list[Any] = []
    for i in range(len(S)):
        square = eliminate_row(S, L, reciprocals, i)
        squares.append(square)
        if is_zero(S[i, i]):
            flags.append(False)
            reciprocals.append(0.0)
            continue
        flags.append(square > float(bounds[i]) ** 2)
        reciprocals.append(where(flags[i], 1.0 / where(flags[i], square, 1.0), 0.0))
    return flags, squares


def _scaled_columns(J: Array, motions: Array) -> Array:
    """Return J with columns of motions of the order of one: those within a factor of ten of it are left as they are."""
    factors = np.array([1.0 if x == 0.0 or 0.1 <= x <= 10.0 else 1.0 / x for x in motions])
    return J if (factors == 1.0).all() else J * factors


def loop_frames_jacobian(robot: Robot, q: Array, loop: Loop) -> Array:
    """Return the stacked Jacobians of a closing joint's two frames, (12, nv), world axes.

    Args:
        robot: The spanning tree. q: Configuration, (nq,). loop: The loop.
    """
    parent, child = loop.frames
    J_P = np.zeros((6, robot.nv)) if parent is None else frame_jacobian(robot, q, parent)
    return np.concatenate([J_P, frame_jacobian(robot, q, child)])


def loop_frame_poses(robot: Robot, q: Array, loop: Loop) -> FramePoses:
    """Return the poses of a closing joint's two frames in the world.

    Args:
        robot: The spanning tree. q: Configuration, (nq,). loop: The loop.
    """
    parent, child = loop.frames
    P = loop.frame if parent is None else frame_pose(robot, q, parent)
    return FramePoses(P, frame_pose(robot, q, child))
