"""Projection onto the truncated friction cone, against the conditions that define the nearest point of a convex set."""

import numpy as np
import pytest

import legged
from controllers.locomotion.forces.friction_cone import project_to_cone

ROUNDING = 1e-13
"""Relative to the size of the given force."""


def members(rng: np.random.Generator, friction: float, most: float, count: int) -> np.ndarray:
    """Return random forces of the cone, (count, 3), [N], contact axes, with its rim and its apex among them."""
    normal = min(most, 1e3) * rng.choice([0.0, 1.0, rng.uniform()], count)
    angle, size = rng.uniform(0.0, 2.0 * np.pi, count), rng.choice([1.0, rng.uniform()], count)
    return np.stack([friction * normal * size * np.cos(angle), friction * normal * size * np.sin(angle), normal], 1)


@pytest.mark.parametrize("friction", [0.0, 0.3, 1.0, 5.0])
@pytest.mark.parametrize("most", [0.0, 20.0, np.inf])
def test_the_projection_is_the_nearest_force_of_the_cone(friction, most):
    rng = np.random.default_rng(0)
    for f in [np.zeros(3), np.array([0.0, 0.0, 5.0]), np.array([0.0, 0.0, -5.0]), *rng.normal(0.0, 50.0, (200, 3))]:
        near, size = project_to_cone(f, friction, most), ROUNDING * (1.0 + np.linalg.norm(f))
        assert np.hypot(near[0], near[1]) <= friction * near[2] + size
        assert 0.0 <= near[2] <= most
        # The angle between f - near and every direction from `near` into a convex set is at least a right angle.
        others = members(rng, friction, most, 50)
        assert np.all((others - near) @ (f - near) <= size * (1.0 + np.linalg.norm(others, axis=1)))


def test_a_force_of_the_cone_is_its_own_projection():
    rng = np.random.default_rng(1)
    for f in members(rng, 0.6, 30.0, 100):
        assert np.allclose(project_to_cone(f, 0.6, 30.0), f, rtol=0.0, atol=ROUNDING * 30.0)


def test_machine_code_projects_as_python_does():
    rng = np.random.default_rng(2)
    kernel = legged.compile(lambda f, friction, most: project_to_cone(f, friction[0], most[0]), f=3, friction=1, most=1)
    f = rng.normal(0.0, 50.0, (20, 3))
    friction, most = rng.uniform(0.0, 1.0, (20, 1)), rng.choice([0.0, 10.0, 1e9], (20, 1))
    values = kernel(f, friction, most)
    expected = [project_to_cone(*x) for x in zip(f, friction[:, 0], most[:, 0], strict=True)]
    assert np.allclose(values, expected, rtol=ROUNDING, atol=ROUNDING)
