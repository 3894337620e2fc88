"""Errors of estimated trajectories as `evo_ape` and `evo_rpe` define them, without alignment, and their files."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from legged.spatial import Array


class PoseErrors(NamedTuple):
    """Root mean squares of errors of poses: of the position, [m], and of the rotation, [deg]."""

    position: float
    rotation: float


def absolute_pose_error(true: Array, estimate: Array) -> PoseErrors:
    """Return the errors of the poses, as `evo_ape tum` with `-r trans_part` and `-r angle_deg`.

    Args:
        true, estimate: Poses of the base, (T, 7): unit quaternion, base to world axes, and position, [m], world axes.
    """
    return _root_mean_squares(_relative(true, estimate))


def relative_pose_error(true: Array, estimate: Array, delta: float = 1.0) -> PoseErrors:
    """Return the errors of the motions along pieces of the estimated path, as `evo_rpe tum --delta 1 --delta_unit m`.

    Args:
        true, estimate: As in `absolute_pose_error`. delta: Length of a piece of the path, [m].
    """
    lengths, ends = np.linalg.norm(np.diff(estimate[:, 4:7], axis=0), axis=1), [0]
    way = 0.0
    for k, length in enumerate(lengths, 1):
        way += float(length)
        if way >= delta:
            ends.append(k)
            way = 0.0
    first, last = ends[:-1], ends[1:]
    moved = [_relative(poses[first], poses[last]) for poses in (true, estimate)]
    return _root_mean_squares(_relative(*moved))


def yaw_aligned(true: Array, estimate: Array) -> Array:
    """Return estimated poses, (T, 7), moved and turned about the vertical so that they fit the true positions best.

    The alignment has the four degrees of freedom that a legged robot's sensors cannot measure. The sum of the squares
    of the distances of corresponding positions is the least possible.

    Args:
        true, estimate: As in `absolute_pose_error`.
    """
    p, r = true[:, 4:7] - true[:, 4:7].mean(axis=0), estimate[:, 4:7] - estimate[:, 4:7].mean(axis=0)
    angle = np.arctan2(np.sum(r[:, 0] * p[:, 1] - r[:, 1] * p[:, 0]), np.sum(r[:, 0] * p[:, 0] + r[:, 1] * p[:, 1]))
    c, s = np.cos(angle), np.sin(angle)
    moved = r @ np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]).T + true[:, 4:7].mean(axis=0)
    w, x, y, z = estimate[:, :4].T
    c, s = np.cos(0.5 * angle), np.sin(0.5 * angle)
    turned = np.stack([c * w - s * z, c * x - s * y, c * y + s * x, c * z + s * w], axis=1)
    return np.concatenate([turned, moved], axis=1)


def tum(times: Array, poses: Array) -> str:
    """Return poses in the format of TUM: time x y z qx qy qz qw.

    Args:
        times: (T,), [s]. poses: (T, 7), as in `absolute_pose_error`.
    """
    rows = np.column_stack([times, poses[:, 4:7], poses[:, 1:4], poses[:, 0]])
    return "\n".join(" ".join(f"{x:.9f}" for x in row) for row in rows) + "\n"


def _relative(one: Array, other: Array) -> Array:
    """Return other poses relative to one, (T, 7)."""
    w, x, y, z = one[:, :4].T * np.array([[1.0], [-1.0], [-1.0], [-1.0]])
    left = np.array([[w, -x, -y, -z], [x, w, -z, y], [y, z, w, -x], [z, -y, x, w]])
    turn = np.einsum("ijt,tj->ti", left, other[:, :4])
    d = other[:, 4:7] - one[:, 4:7]
    axis = np.array([x, y, z]).T
    t = 2.0 * np.cross(axis, d)
    return np.concatenate([turn, d + w[:, None] * t + np.cross(axis, t)], axis=1)


def _root_mean_squares(poses: Array) -> PoseErrors:
    angles = 2.0 * np.degrees(np.arctan2(np.linalg.norm(poses[:, 1:4], axis=1), np.abs(poses[:, 0])))
    squares = (np.sum(poses[:, 4:7] ** 2, axis=1), angles**2)
    return PoseErrors(*(float(np.sqrt(np.mean(x))) for x in squares))
