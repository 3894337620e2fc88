"""Rotations: quaternions (w first), rotation vectors and Euler angles.

The functions accept floats and traced scalars unless their docstring restricts them to floats. "Child" axes are the
rotated axes; the rotation starts from the "parent" axes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from legged.compiler.ir import where
from legged.elements import any_element
from legged.spatial import Array, cross, skew

_AXES = {"x": 0, "y": 1, "z": 2}


@any_element
def quaternion_matrix(p: Array) -> Array:
    """Return the rotation matrix R, (3, 3), of a quaternion: child components to parent components.

    Args:
        p: A unit quaternion, (4,), w first, child axes to parent axes.
    """
    w, x, y, z = p
    xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
    wx, wy, wz = w * x, w * y, w * z
    return np.array(
        [
            [1 - 2 * (yy + zz), 2 * (xy - wz), 2 * (xz + wy)],
            [2 * (xy + wz), 1 - 2 * (xx + zz), 2 * (yz - wx)],
            [2 * (xz - wy), 2 * (yz + wx), 1 - 2 * (xx + yy)],
        ]
    )


@any_element
def quaternion_product(a: Array, b: Array) -> Array:
    """Return the quaternion product a b, (4,), w first.

    Args:
        a: A quaternion, (4,), w first. b: A quaternion, (4,), w first.
    """
    w = a[0] * b[0] - (a[1] * b[1] + a[2] * b[2] + a[3] * b[3])
    xyz = a[0] * b[1:] + b[0] * a[1:] + cross(a[1:], b[1:])
    return np.array([w, *xyz])


@any_element
def quaternion_rate(p: Array, omega: Array) -> Array:
    """Return the time derivative of a quaternion, (4,), [1/s].

    Args:
        p: A unit quaternion, (4,), w first, child axes to parent axes.
        omega: Angular velocity of the child, (3,), [rad/s], child axes.
    """
    return 0.5 * quaternion_product(p, np.array([0.0, *omega]))


@any_element
def quaternion_exp(phi: Array) -> Array:
    """Return the unit quaternion, (4,), w first, of a rotation vector.

    Args:
        phi: Rotation vector, (3,), [rad].
    """
    square = phi @ phi
    half = 0.5 * np.sqrt(square + 1e-300)
    return np.array([np.cos(half), *(0.5 * phi * (np.sin(half) / half))])


@any_element
def quaternion_log(p: Array) -> Array:
    """Return the rotation vector, (3,), [rad], of a unit quaternion, with an angle of at most pi.

    It is 2 atan(sine / cosine) / sine times the vector part of p or -p, or the series of this below a sine of 1e-4.

    Args:
        p: A unit quaternion, (4,), w first.
    """
    cosine, xyz = where(p[0] < 0.0, -p[0], p[0]), where(p[0] < 0.0, -1.0, 1.0) * p[1:]
    square = xyz @ xyz
    small = square < 1e-8
    sine = np.sqrt(where(small, 1.0, square))
    return 2.0 * where(small, 1.0 + square / 6.0, np.arctan2(sine, cosine) / sine) * xyz


@any_element
def quaternion_conjugate(p: Array) -> Array:
    """Return the conjugate of a quaternion, (4,), w first: the inverse rotation if p is a unit quaternion.

    Args:
        p: A quaternion, (4,), w first.
    """
    return np.array([p[0], -p[1], -p[2], -p[3]])


def quaternion_of(R: Array) -> Array:
    """Return the unit quaternion, (4,), w first and w >= 0, of a rotation matrix. Floats only.

    Args:
        R: A rotation matrix, (3, 3).
    """
    K = np.array(
        [
            [R[0, 0] + R[1, 1] + R[2, 2], R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]],
            [R[2, 1] - R[1, 2], R[0, 0] - R[1, 1] - R[2, 2], R[0, 1] + R[1, 0], R[0, 2] + R[2, 0]],
            [R[0, 2] - R[2, 0], R[0, 1] + R[1, 0], R[1, 1] - R[0, 0] - R[2, 2], R[1, 2] + R[2, 1]],
            [R[1, 0] - R[0, 1], R[0, 2] + R[2, 0], R[1, 2] + R[2, 1], R[2, 2] - R[0, 0] - R[1, 1]],
        ]
    )
    p = np.linalg.eigh(K)[1][:, -1]
    return -p if p[0] < 0 else p


@any_element
def axis_matrix(axis: str, angle: Any) -> Array:
    """Return the rotation matrix, (3, 3), of a rotation about "x", "y" or "z" by an angle [rad]."""
    k = _AXES[axis]
    i, j = (k + 1) % 3, (k + 2) % 3
    c, s = np.cos(angle), np.sin(angle)
    R: list[list[Any]] = [[0.0] * 3 for _ in range(3)]
    R[k][k], R[i][i], R[j][j], R[i][j], R[j][i] = 1.0, c, c, -s, s
    return np.array(R)


@any_element
def axis_quaternion(axis: str, angle: Any) -> Array:
    """Return the quaternion of a rotation about "x", "y" or "z" by an angle [rad], (4,), w first."""
    parts: list[Any] = [np.cos(0.5 * angle), 0.0, 0.0, 0.0]
    parts[1 + _AXES[axis]] = np.sin(0.5 * angle)
    return np.array(parts)


@any_element
def euler_quaternion(sequence: str, angles: Array) -> Array:
    """Return the quaternion, (4,), w first, of a sequence of intrinsic rotations.

    Args:
        sequence: The axes in order, such as "zyx". angles: Intrinsic Euler angles, (3,), [rad].
    """
    first, second, third = (axis_quaternion(a, angle) for a, angle in zip(sequence, angles, strict=True))
    return quaternion_product(quaternion_product(first, second), third)


@any_element
def euler_matrix(sequence: str, angles: Array) -> Array:
    """Return the rotation matrix R = R_1 R_2 R_3, (3, 3), of a sequence of intrinsic rotations.

    Args:
        sequence: The axes in order, such as "zyx". angles: Intrinsic Euler angles, (3,), [rad].
    """
    first, second, third = (axis_matrix(a, angle) for a, angle in zip(sequence, angles, strict=True))
    return first @ second @ third


@any_element
def euler_rate_matrix(sequence: str, angles: Array) -> Array:
    """Return L, (3, 3), with omega = L @ (rates of the angles) in the rotated (child) axes: L_0 for a floating base.

    Args:
        sequence: The axes in order, such as "zyx". angles: Intrinsic Euler angles, (3,), [rad].

    Source: Shah, Saha, Dutt 2012, eq. (7).
    """
    a, b, c = (np.eye(3)[_AXES[letter]] for letter in sequence)
    R3 = axis_matrix(sequence[2], angles[2])
    R23 = axis_matrix(sequence[1], angles[1]) @ R3
    return np.stack([R23.T @ a, R3.T @ b, c], axis=1)


def euler_angles(sequence: str, R: Array) -> Array:
    """Return the intrinsic Euler angles, (3,), [rad], of a rotation matrix; the last is near zero at gimbal lock.

    The last angle is computed from R after the first two rotations are removed, so that `euler_matrix` of the angles
    reproduces R to rounding even near gimbal lock. Floats only.

    Args:
        sequence: The axes in order, such as "zyx". R: A rotation matrix, (3, 3).
    """
    i, j, k = (_AXES[letter] for letter in sequence)
    sign = 1.0 if (j - i) % 3 == 1 else -1.0
    m = 3 - i - j
    if i == k:
        second = np.arctan2(np.hypot(R[i, j], R[i, m]), R[i, i])
        aligned, first = abs(np.sin(second)) < 1e-15, np.arctan2(R[j, i], -sign * R[m, i])
    else:
        second = np.arctan2(sign * R[i, k], np.hypot(R[i, i], R[i, j]))
        aligned, first = abs(np.cos(second)) < 1e-15, np.arctan2(-sign * R[j, k], R[k, k])
    if aligned:
        first = np.arctan2(sign * R[m, j], R[j, j])
    rest = (axis_matrix(sequence[0], first) @ axis_matrix(sequence[1], second)).T @ R
    return np.array([first, second, np.arctan2(rest[(k + 2) % 3, (k + 1) % 3], rest[(k + 1) % 3, (k + 1) % 3])])


@any_element
def rotation_error(R: Array) -> Array:
    """Return sin(angle) * axis, (3,), dimensionless, of a rotation: the vector of the skew part (R - R^T) / 2.

    Args:
        R: A rotation matrix, (3, 3). The axis has the same components in parent and child axes.
    """
    return 0.5 * np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])


@any_element
def heading(R: Array) -> Array:
    """Return the horizontal unit vector along the x axis of a base, (2,), dimensionless, world axes.

    It is that of the world's x axis if the axis of the base is vertical.

    Args:
        R: Rotation matrix from base to world axes, (3, 3), dimensionless.
    """
    square = R[0, 0] * R[0, 0] + R[1, 0] * R[1, 0]
    is_vertical = square < 1e-24
    x, y = where(is_vertical, 1.0, R[0, 0]), where(is_vertical, 0.0, R[1, 0])
    return np.stack([x, y]) / np.sqrt(where(is_vertical, 1.0, square))


@any_element
def rotation_vector_rate(phi: Array, omega: Array) -> Array:
    """Return the time derivative of a rotation vector, (3,), [rad/s]: the inverse differential of the exponential map.

    phi_dot = omega + phi x omega / 2 + k phi x (phi x omega), k = (1 - (a/2) cot(a/2)) / a^2 with a = |phi|; below
    0.05 rad the series of k. Valid for |phi| < 2 pi.

    Args:
        phi: Rotation vector, (3,), [rad]. omega: Angular velocity of the child, (3,), [rad/s], child axes.
    """
    square = phi @ phi
    small = square < 2.5e-3
    safe = where(small, 1.0, square)
    a = np.sqrt(safe)
    half = 0.5 * a
    closed = (1 - half * np.cos(half) / np.sin(half)) / safe
    series = 1 / 12 + square * (1 / 720 + square * (1 / 30240 + square / 1209600))
    P = skew(phi)
    P_omega = P @ omega
    return omega + 0.5 * P_omega + where(small, series, closed) * (P @ P_omega)
