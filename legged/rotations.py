"""Rotations: quaternions (w first), rotation vectors and Euler angles, over any element unless said otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np

from legged.compiler.ir import where
from legged.spatial import Array, cross, skew

_AXES = {"x": 0, "y": 1, "z": 2}


def quaternion_matrix(p: Array) -> Array:
    """Return R, (3, 3), of the unit quaternion p, (4,), w first: child components to parent components."""
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


def quaternion_product(a: Array, b: Array) -> Array:
    """Return the quaternion a b, (4,), w first."""
    w = a[0] * b[0] - (a[1] * b[1] + a[2] * b[2] + a[3] * b[3])
    xyz = a[0] * b[1:] + b[0] * a[1:] + cross(a[1:], b[1:])
    return np.array([w, *xyz])


def quaternion_rate(p: Array, omega: Array) -> Array:
    """Return the time derivative of p, (4,), for the body's angular velocity in its own axes, (3,), [rad/s]."""
    return 0.5 * quaternion_product(p, np.array([0.0, *omega]))


def quaternion_exp(phi: Array) -> Array:
    """Return the unit quaternion of a rotation vector phi, (3,), [rad]."""
    square = phi @ phi
    half = 0.5 * np.sqrt(square + 1e-300)
    return np.array([np.cos(half), *(0.5 * phi * (np.sin(half) / half))])


def quaternion_log(p: Array) -> Array:
    """Return the rotation vector, (3,), [rad], of at most half a turn, of a unit quaternion p.

    2 atan(sine / cosine) / sine times the vector part, of p or -p; below a sine of 1e-4 the series of it.
    """
    cosine, xyz = where(p[0] < 0.0, -p[0], p[0]), where(p[0] < 0.0, -1.0, 1.0) * p[1:]
    square = xyz @ xyz
    small = square < 1e-8
    sine = np.sqrt(where(small, 1.0, square))
    return 2.0 * where(small, 1.0 + square / 6.0, np.arctan2(sine, cosine) / sine) * xyz


def quaternion_conjugate(p: Array) -> Array:
    """Return the conjugate of a quaternion, (4,), w first: the opposite turn, if p is a unit one."""
    return np.array([p[0], -p[1], -p[2], -p[3]])


def quaternion_of(R: Array) -> Array:
    """Return the unit quaternion, (4,), w first and not negative, of a rotation matrix. Plain floats only."""
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


def axis_matrix(axis: str, angle: Any) -> Array:
    """Return the rotation about "x", "y" or "z" by an angle [rad], (3, 3)."""
    k = _AXES[axis]
    i, j = (k + 1) % 3, (k + 2) % 3
    c, s = np.cos(angle), np.sin(angle)
    R: list[list[Any]] = [[0.0] * 3 for _ in range(3)]
    R[k][k], R[i][i], R[j][j], R[i][j], R[j][i] = 1.0, c, c, -s, s
    return np.array(R)


def axis_quaternion(axis: str, angle: Any) -> Array:
    """Return the quaternion of a rotation about "x", "y" or "z" by an angle [rad], (4,), w first."""
    parts: list[Any] = [np.cos(0.5 * angle), 0.0, 0.0, 0.0]
    parts[1 + _AXES[axis]] = np.sin(0.5 * angle)
    return np.array(parts)


def euler_quaternion(sequence: str, angles: Array) -> Array:
    """Return the quaternion, (4,), w first, of three intrinsic angles [rad] about the sequence's axes."""
    first, second, third = (axis_quaternion(a, angle) for a, angle in zip(sequence, angles, strict=True))
    return quaternion_product(quaternion_product(first, second), third)


def euler_matrix(sequence: str, angles: Array) -> Array:
    """Return R = R_1 R_2 R_3, (3, 3), of three intrinsic angles [rad] about the sequence's axes."""
    first, second, third = (axis_matrix(a, angle) for a, angle in zip(sequence, angles, strict=True))
    return first @ second @ third


def euler_rate_matrix(sequence: str, angles: Array) -> Array:
    """Return L, (3, 3), with omega = L @ rates in the turned (body) axes: L_0 of equation (7) in base axes."""
    a, b, c = (np.eye(3)[_AXES[letter]] for letter in sequence)
    R3 = axis_matrix(sequence[2], angles[2])
    R23 = axis_matrix(sequence[1], angles[1]) @ R3
    return np.stack([R23.T @ a, R3.T @ b, c], axis=1)


def euler_angles(sequence: str, R: Array) -> Array:
    """Return the three intrinsic angles, (3,), [rad], of a rotation matrix; the last is near zero if two axes align.

    The last angle is what the first two leave of R, so that the three together are R to all digits even near there.
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
    left = (axis_matrix(sequence[0], first) @ axis_matrix(sequence[1], second)).T @ R
    return np.array([first, second, np.arctan2(left[(k + 2) % 3, (k + 1) % 3], left[(k + 1) % 3, (k + 1) % 3])])


def level_error(R: Array) -> Array:
    """Return sin(angle) times the axis by which R, (3, 3), is turned away from the identity, (3,), in either axes."""
    return 0.5 * np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])


def rotation_vector_rate(phi: Array, omega: Array) -> Array:
    """Return the rate of the rotation vector phi, (3,), of a body turning with omega in its own axes: dexp^-1.

    phi_dot = omega + phi x omega / 2 + k phi x (phi x omega), k = (1 - (a/2) cot(a/2)) / a^2 with a = |phi|; below
    0.05 rad the series of k. Valid for |phi| < 2 pi.
    """
    square = phi @ phi
    small = square < 2.5e-3
    safe = where(small, 1.0, square)
    a = np.sqrt(safe)
    half = 0.5 * a
    closed = (1 - half * np.cos(half) / np.sin(half)) / safe
    series = 1 / 12 + square * (1 / 720 + square * (1 / 30240 + square / 1209600))
    P = skew(phi)
    turn = P @ omega
    return omega + 0.5 * turn + where(small, series, closed) * (P @ turn)
