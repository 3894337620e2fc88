"""Euler angles of a matrix are that matrix, to all digits, even where two axes nearly align."""

from itertools import product

import numpy as np
import pytest

from legged.rotations import euler_angles, euler_matrix

SEQUENCES = ["".join(letters) for letters in product("xyz", repeat=3) if letters[0] != letters[1] != letters[2]]


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_euler_angles_of_a_matrix_give_it_back_to_all_digits_however_near_gimbal_lock(sequence):
    rng = np.random.default_rng(0)
    lock = 0.0 if sequence[0] == sequence[2] else np.pi / 2
    for distance in [1.0, *10.0 ** -np.arange(2.0, 19.0), 0.0]:
        angles = rng.uniform(-np.pi, np.pi, 3)
        angles[1] = lock + distance * rng.normal()
        R = euler_matrix(sequence, angles)
        assert np.abs(euler_matrix(sequence, euler_angles(sequence, R)) - R).max() < 1e-14  # a few products of matrices
