"""Terrain: heights, normals, and forces that rotate with the surface."""

import numpy as np
import pytest

from legged.errors import DefinitionError
from legged.ground import BristleFriction, Flat, Ground, HeightMap, KelvinVoigt, Slope, Stairs, VectorFriction
from legged.ground.ground import tangents

TERRAINS = [Flat(0.2), Slope(0.3, heading=0.7), Stairs((0.5, 1.0), (0.1, -0.2), ramp=0.05, heading=-0.4)]
TERRAINS += [HeightMap(np.random.default_rng(5).uniform(-0.1, 0.1, (7, 9)), 0.3, (-0.8, -1.1))]


@pytest.mark.parametrize("terrain", TERRAINS, ids=lambda t: type(t).__name__)
def test_normal_is_the_unit_normal_of_the_height(terrain):
    rng = np.random.default_rng(1)
    h = 1e-6
    for x, y in rng.uniform(-1.5, 1.5, size=(50, 2)):
        slope_x = (terrain.height(x + h, y) - terrain.height(x - h, y)) / (2 * h)
        slope_y = (terrain.height(x, y + h) - terrain.height(x, y - h)) / (2 * h)
        n = np.array([-slope_x, -slope_y, 1.0])
        np.testing.assert_allclose(terrain.normal(x, y), n / np.linalg.norm(n), atol=1e-7)


@pytest.mark.parametrize("terrain", TERRAINS, ids=lambda t: type(t).__name__)
def test_terrain_takes_arrays(terrain):
    x, y = np.meshgrid(np.linspace(-1, 2, 7), np.linspace(-1, 1, 5))
    z, n = terrain.height(x, y), terrain.normal(x, y)
    assert z.shape == (5, 7)
    assert n.shape == (5, 7, 3)
    assert z[2, 3] == pytest.approx(terrain.height(x[2, 3], y[2, 3]))
    np.testing.assert_allclose(n[2, 3], terrain.normal(x[2, 3], y[2, 3]))


@pytest.mark.parametrize("elevation", [0.25, np.float64(-0.4), 0.0])
def test_the_elevation_of_a_slope_is_its_height_at_the_origin(elevation):
    slope, x, y = Slope(0.3, heading=0.7, elevation=elevation), np.array([0.0, 1.0]), np.array([0.0, -2.0])
    assert slope.height(x, y)[0] == elevation
    np.testing.assert_allclose(slope.height(x, y) - elevation, Slope(0.3, heading=0.7).height(x, y), atol=1e-15)


def test_steps_add_up():
    stairs = Stairs(edges=(0.5, 1.0, 1.5), rises=(0.1, 0.1, 0.1))
    np.testing.assert_allclose(stairs.height(np.array([0.0, 0.7, 1.2, 9.0]), np.zeros(4)), [0.0, 0.1, 0.2, 0.3])


def test_tangents_are_a_right_handed_frame():
    for n in ([0.0, 0.0, 1.0], [0.6, 0.0, 0.8], [-0.2, 0.5, np.sqrt(0.71)]):
        frame = np.column_stack([*tangents(np.array(n)), n])
        np.testing.assert_allclose(frame.T @ frame, np.eye(3), atol=1e-15)
        assert np.linalg.det(frame) == pytest.approx(1.0)


def test_tilting_ground_and_motion_together_tilts_the_force():
    angle = 0.35
    R = np.array([[np.cos(angle), 0, -np.sin(angle)], [0, 1, 0], [np.sin(angle), 0, np.cos(angle)]])
    normal, friction = KelvinVoigt(1e4, 50.0), BristleFriction(0.6, 1e4, 50.0)
    r, v, z = np.array([0.4, 0.1, -0.01]), np.array([0.2, -0.1, -0.3]), np.array([1e-3, 2e-3])
    level, level_rate = Ground(normal, friction).forces(r[None], v[None], z)
    tilted, tilted_rate = Ground(normal, friction, Slope(angle)).forces((R @ r)[None], (R @ v)[None], z)
    np.testing.assert_allclose(tilted[0], R @ level[0], atol=1e-9)
    np.testing.assert_allclose(tilted_rate, level_rate, atol=1e-12)


def test_depth_on_a_slope_is_measured_along_its_normal():
    ground = Ground(KelvinVoigt(1e4, 0.0), VectorFriction(0.5, 100.0), Slope(0.4, heading=1.0))
    n = ground.terrain.normal(0.0, 0.0)
    assert ground.penetration(-0.02 * n) == pytest.approx(0.02)


@pytest.mark.parametrize(
    "make", [lambda: Slope(2.0), lambda: Stairs((0.0,), (0.1, 0.2)), lambda: Stairs((1.0, 0.5), (0.1, 0.1))]
)
def test_terrain_without_sense_is_refused(make):
    with pytest.raises(DefinitionError):
        make()
