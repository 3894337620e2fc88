"""Vectors and rotations as users give them, checked."""

from __future__ import annotations

import numpy as np

from legged.errors import DefinitionError
from legged.robot.inertia import Vector
from legged.spatial import Array


def vector3(what: str, value: Vector) -> Array:
    """Return value as a finite (3,) array, or raise DefinitionError naming it."""
    array = np.asarray(value, float)
    if array.shape != (3,):
        raise DefinitionError(f"{what} must be three numbers, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise DefinitionError(f"{what} must be finite, got {array}")
    return array


def rotation3(what: str, value: Array | None) -> Array:
    """Return value as a (3, 3) rotation matrix (identity for None), or raise DefinitionError naming it.

    A matrix that is one to nine digits is brought to all digits, R (3 - R^T R) / 2.
    """
    if value is None:
        return np.eye(3)
    R = np.asarray(value, float)
    if R.shape != (3, 3) or not np.isfinite(R).all():
        raise DefinitionError(f"{what} must be a finite (3, 3) matrix, got {value}")
    missed = np.abs(R.T @ R - np.eye(3)).max()
    if missed > 1e-9 or np.linalg.det(R) < 0:
        raise DefinitionError(f"{what} is not a rotation: its columns must be orthonormal and right-handed, got\n{R}")
    return R @ (3 * np.eye(3) - R.T @ R) / 2 if missed > 1e-15 else R
