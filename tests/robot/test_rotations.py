"""Euler angles reproduce a rotation matrix to rounding, also near gimbal lock; rates of rotation vectors; headings."""

from itertools import product

import numpy as np
import pytest

from legged.rotations import euler_angles, euler_matrix, heading, quaternion_matrix, rotation_vector_rate

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


@pytest.mark.parametrize("angle", [1e-3, 0.049, 0.051, 1.0, 3.0, 6.0])
def test_the_rate_of_a_rotation_vector_inverts_the_differential_of_the_exponential_map(angle):
    """omega = phi_dot - (1 - cos a) / a^2 phi x phi_dot + (a - sin a) / a^3 phi x (phi x phi_dot), in child axes."""
    rng = np.random.default_rng(0)
    phi, omega = rng.normal(size=(2, 3))
    phi *= angle / np.linalg.norm(phi)
    rate = rotation_vector_rate(phi, omega)
    once = np.cross(phi, rate)
    second, third = (1.0 - np.cos(angle)) / angle**2, (angle - np.sin(angle)) / angle**3
    np.testing.assert_allclose(rate - second * once + third * np.cross(phi, once), omega, atol=1e-13)  # rounding


def test_the_heading_is_that_of_the_horizontal_part_of_the_forward_axis_and_always_a_unit_vector():
    for yaw, pitch, roll in np.random.default_rng(0).uniform(-1.5, 1.5, (20, 3)):
        R = euler_matrix("zyx", np.array([yaw, pitch, roll]))
        assert heading(R) == pytest.approx([np.cos(yaw), np.sin(yaw)], abs=1e-12)
    for R in (quaternion_matrix(np.array([0.5, 0.5, -0.5, 0.5])), quaternion_matrix(np.array([0.5, 0.5, 0.5, -0.5]))):
        assert abs(R[2, 0]) == 1.0 and (heading(R) == [1.0, 0.0]).all()
