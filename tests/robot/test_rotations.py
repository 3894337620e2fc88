"""Euler angles of a rotation matrix reproduce it to rounding, also near gimbal lock."""

from itertools import product

import numpy as np
import pytest

from legged.rotations import euler_angles, euler_matrix

SEQUENCES = ["".join(letters) for letters in product("xyz", repeat=3) if letters[0] != letters[1] != letters[2]]


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_euler_angles_reproduce_the_rotation_matrix_to_rounding_near_gimbal_lock(sequence):
    rng = np.random.default_rng(0)
    lock = 0.0 if sequence[0] == sequence[2] else np.pi / 2
    for distance in [1.0, *10.0 ** -np.arange(2.0, 19.0), 0.0]:
        angles = rng.uniform(-np.pi, np.pi, 3)
        angles[1] = lock + distance * rng.normal()
        R = euler_matrix(sequence, angles)
        assert np.abs(euler_matrix(sequence, euler_angles(sequence, R)) - R).max() < 1e-14  # rounding
