"""Depth cameras: depths of planes, spheres and steps by closed forms, and the errors of images."""

import numpy as np
import pytest

import legged
from legged.errors import ArgumentError, DefinitionError
from legged.ground import Flat, Slope, Stairs
from legged.rotations import quaternion_exp, quaternion_matrix
from legged.sensors import DepthCamera, depth_along

CAMERA = DepthCamera("trunk", shape=(9, 13), far=4.0)
DOWN = quaternion_matrix(quaternion_exp(np.array([0.0, 0.9, 0.0])))
ABOVE = np.array([0.3, -0.2, 0.8])
RESOLUTION = CAMERA.step / 2**8
"""Largest error of a depth, by the number of bisections."""


class Dome:
    """Level ground with half a sphere of radius 0.4 m around (1.2, 0)."""

    def height(self, x, y):
        square = 0.16 - (x - 1.2) ** 2 - y**2
        return np.sqrt(np.maximum(square, 0.0))

    def normal(self, x, y):
        raise NotImplementedError


def compared(terrain, wanted, rotation=DOWN, limit=RESOLUTION):
    """Check the depths of a terrain along all rays, and return how many are in the range."""
    depths, seen = CAMERA.depths(terrain, rotation, ABOVE), (wanted > CAMERA.near) & (wanted < CAMERA.far)
    assert ((depths > 0.0) == seen).all()
    np.testing.assert_allclose(depths[seen], wanted[seen], atol=limit + 1e-12)
    return np.count_nonzero(seen)


@pytest.mark.parametrize("terrain", [Flat(0.1), Slope(0.3), Slope(-0.4, heading=1.0, elevation=-0.2)])
def test_depths_of_planes_are_those_of_the_closed_form(terrain):
    n, p = terrain.normal(0.0, 0.0), np.array([0.0, 0.0, terrain.height(0.0, 0.0)])
    tilted = DOWN @ quaternion_matrix(quaternion_exp(np.array([0.2, -0.1, 0.4])))
    slopes = (CAMERA.directions @ tilted.T) @ n
    wanted = np.where(slopes < 0.0, ((p - ABOVE) @ n) / slopes, np.inf)
    assert compared(terrain, wanted, tilted) > 60


def test_depths_of_a_sphere_on_a_plane_are_those_of_the_closed_form():
    rays, to = CAMERA.directions @ DOWN.T, ABOVE - np.array([1.2, 0.0, 0.0])
    a, b, c = (rays**2).sum(axis=1), rays @ to, to @ to - 0.16
    root = b * b - a * c
    sphere = np.where(root > 0.0, (-b - np.sqrt(np.maximum(root, 0.0))) / a, np.inf)
    plane = np.where(rays[:, 2] < 0.0, -ABOVE[2] / rays[:, 2], np.inf)
    own = ABOVE[2] + sphere * rays[:, 2] > 0.0
    assert np.count_nonzero(own & np.isfinite(sphere)) > 10
    compared(Dome(), np.where(own, np.minimum(sphere, plane), plane))


def test_a_step_hides_the_ground_behind_it():
    edge, rise, ramp = 1.0, 0.3, 1e-3
    rays = CAMERA.directions @ DOWN.T
    low, high = (np.where(rays[:, 2] < 0.0, (z - ABOVE[2]) / rays[:, 2], np.inf) for z in (0.0, rise))
    face = (edge - ABOVE[0]) / rays[:, 0]
    wanted = np.where(ABOVE[0] + low * rays[:, 0] < edge, low, np.where(high > face, high, face))
    assert np.count_nonzero(wanted == face) > 5
    compared(Stairs((edge,), (rise,), ramp=ramp), wanted, limit=RESOLUTION + ramp)


def test_the_compiled_function_returns_the_depths_of_the_plain_one():
    terrain, rays = Stairs((0.9, 1.2), (0.1, 0.1), ramp=0.02), CAMERA.directions @ DOWN.T
    kernel = legged.compile(
        lambda origin, direction: depth_along(terrain, origin, direction, 4.0, 0.025), origin=(3,), direction=(3,)
    )
    np.testing.assert_allclose(
        CAMERA.in_range(kernel(ABOVE, rays)), CAMERA.depths(terrain, DOWN, ABOVE), atol=2 * RESOLUTION
    )
    assert depth_along(Flat(), np.array([0.0, 0.0, -0.1]), np.array([1.0, 0.0, 0.0]), 1.0, 0.1) == 0.0
    assert depth_along(Flat(), np.array([0.0, 0.0, 0.1]), np.array([1.0, 0.0, 0.1]), 1.0, 0.1) == 2.0


@pytest.mark.parametrize("depth", [0.5, 1.5])
def test_errors_grow_with_the_square_of_the_depth_and_pixels_are_missing(depth):
    camera = DepthCamera("trunk", noise=0.004, dropout=0.1, seed=3)
    images = np.array([camera.measured(np.full(1200, depth), image) for image in range(40)])
    valid = images > 0.0
    assert np.mean(~valid) == pytest.approx(0.1, abs=5 * np.sqrt(0.09 / images.size))
    errors = images[valid] - depth
    assert errors.std() == pytest.approx(0.004 * depth**2, rel=5 / np.sqrt(2 * errors.size))
    assert abs(errors.mean()) < 5 * errors.std() / np.sqrt(errors.size)
    assert (camera.measured(np.full(1200, depth), 7) == images[7]).all() and (images[7] != images[8]).any()


def test_wrong_definitions_are_refused():
    with pytest.raises(DefinitionError, match="near must be less than far"):
        DepthCamera("trunk", near=3.0)
    for field, value in {"rate": 0.0, "dropout": 1.5, "noise": -1.0, "view": (3.0, 1.0), "shape": (1, 5)}.items():
        with pytest.raises(ArgumentError, match=field):
            DepthCamera("trunk", **{field: value})
