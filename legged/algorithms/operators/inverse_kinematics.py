"""Inverse kinematics by the operators of forward dynamics: each step is one Kalman filter and one smoother, O(n)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from legged.algorithms.operators.spatial_operators import SpatialOperators
from legged.arguments import array, number, whole
from legged.checked import checked
from legged.dynamics.arguments import read
from legged.dynamics.frames import Pose, frame_pose, resolve_frame
from legged.elements import any_element
from legged.robot.configuration import integrate
from legged.robot.physics import JointPhysics
from legged.robot.robot import Robot
from legged.robot.stages.moments import Moments
from legged.rotations import quaternion_log, quaternion_of
from legged.spatial import Array, join

_LEAST_DAMPING = 1e-6  # its square is still far above the rounding of J* W J


class Target(NamedTuple):
    """A desired place of a frame.

    Attributes:
        frame: Name of a link or contact point, or a `legged.Frame`.
        position: Desired place of its origin, (3,), [m], world axes.
        rotation: Desired rotation matrix, (3, 3), frame axes to world axes; None leaves the orientation free.
    """

    frame: object
    position: Array
    rotation: Array | None = None


@any_element
def damped_step(robot: Robot, q: Array, targets: Sequence[Target], damping: float) -> Array:
    """Return dq, (nv,), the step of the Levenberg-Marquardt method towards the targets:

        dq = (damping^2 1 + J* W J)^-1 J* W e

    The matrix is the inertia matrix of the robot with massless links, an armature of damping^2 of each entry of v, and
    W as inertia at the targets, W = 1 for position and orientation and zero for a free orientation. Its inverse is that
    of lemma 3, a filter inward and a smoother outward, in O(n); neither J nor the matrix is formed.

    Args:
        robot: The robot. q: Configuration, (nq,). targets: The targets.
        damping: Weight of dq against the errors e, [m] and [rad] alike.

    Raises:
        DefinitionError: For joints that follow others. ArgumentError: For a damping that is not positive.

    Source: Rodriguez, Jain, Kreutz-Delgado 1991, end of section 5, which refers to Rodriguez and Scheid 1987 for an
        operator form of (J*J)^-1; the damped form is ours.
    """
    number("damping", damping, above=0.0)
    (q,) = read(robot, q=q)
    if not targets:
        return np.zeros(robot.nv)
    none, points, errors, moments = Moments(0.0, np.zeros(3), np.zeros((3, 3))), [], [], {}
    for target in targets:
        at, pose = resolve_frame(robot, target.frame), frame_pose(robot, q, target.frame)  # type: ignore[arg-type]
        r, has_rotation = at.in_body.position, target.rotation is not None
        spread = np.outer(r, r) + (0.5 * np.eye(3) if has_rotation else 0.0)
        moments[at.body] = moments.get(at.body, none) + Moments(1.0, r, spread)
        points.append((at.link, at.position))
        errors.append(_error(target, pose))
    bodies = []
    for body in robot.bodies:
        own = moments.get(body.index, none)
        bodies.append(replace(body, moments=own, regrouped=own, physics=JointPhysics(armature=damping**2)))
    S = SpatialOperators(replace(robot, bodies=tuple(bodies)), q)
    return S.mass_inverse @ (S.H @ (S.phi @ (S.B(points) @ np.concatenate(errors))))


@checked
def inverse_kinematics(
    robot: Robot,
    q: Array,
    targets: Sequence[Target],
    *,
    damping: float = 0.1,
    tolerance: float = 1e-10,
    iterations: int = 100,
) -> Array:
    """Return a configuration, (nq,), that brings frames to their targets as closely as possible, by `damped_step`.

    A step that increases the errors is repeated with five times the damping; after each other step the damping falls to
    a third, so that the last steps converge faster than linearly. Joint limits are ignored; `legged.InverseKinematics`
    obeys them.

    Args:
        robot: The robot. q: Initial configuration, (nq,). targets: The targets.
        damping: Damping of the first step.
        tolerance: Norm of the errors at which the iteration ends, [m] and [rad].
        iterations: Largest number of steps.

    Raises:
        DefinitionError: For joints that follow others. UnknownNameError: For unknown frames.
    """
    number("damping", damping, above=0.0)
    whole("iterations", iterations, least=1)
    (q,) = read(robot, q=q)
    norm = _error_norm(robot, q, targets)
    for _ in range(iterations):
        if norm <= tolerance:
            break
        moved = integrate(robot, q, damped_step(robot, q, targets, damping))
        moved_norm = _error_norm(robot, moved, targets)
        if moved_norm < norm:
            q, norm, damping = moved, moved_norm, max(damping / 3.0, _LEAST_DAMPING)
        else:
            damping *= 5.0
    return q


def _error_norm(robot: Robot, q: Array, targets: Sequence[Target]) -> float:
    """Return the norm of the errors of all targets, [m] and [rad] alike."""
    poses = [frame_pose(robot, q, target.frame) for target in targets]  # type: ignore[arg-type]
    return float(np.linalg.norm([_error(*pair) for pair in zip(targets, poses, strict=True)]))


def _error(target: Target, pose: Pose) -> Array:
    """Return e, (6,), [rad, m], world axes: the rotation vector and the translation to the target."""
    translation = array(f"the position of target {target.frame!r}", target.position, (3,)) - pose.position
    if target.rotation is None:
        return join(np.zeros(3), translation)
    return join(quaternion_log(quaternion_of(target.rotation @ pose.rotation.T)), translation)
