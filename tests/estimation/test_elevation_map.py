"""Elevation maps: the filter of a cell by its closed form, stated and actual errors, drift, and motion of the grid."""

import numpy as np
import pytest

from legged.errors import DefinitionError, NotFiniteError
from legged.estimation import ElevationMap
from legged.rotations import quaternion_exp, quaternion_matrix
from legged.sensors import DepthCamera

SHAPE, SPACING = (40, 30), 0.05


class Hills:
    """A smooth surface with slopes up to 0.003, whose heights differ in a cell by less than the noise."""

    def height(self, x, y):
        return 0.0012 * np.sin(2.0 * x) + 0.001 * np.cos(1.5 * y)

    def normal(self, x, y):
        raise NotImplementedError


def scanned(camera, grid, image, drift=0.0, error=0.0):
    """Update a grid with an image of the hills from a place of its own and a pose that is known up to a height."""
    R = quaternion_matrix(quaternion_exp(np.array([0.0, 0.9, 0.0])))
    position = np.array([*np.random.default_rng(image).uniform(-0.05, 0.05, 2), 0.6]) - [0.5, 0.0, 0.0]
    depths = camera.measured(camera.depths(Hills(), R, position), image)
    rays, d = camera.directions[depths > 0.0] @ R.T, depths[depths > 0.0]
    points = position + np.array([0.0, 0.0, drift]) + d[:, None] * rays
    grid.update(points, (camera.noise * d * d * rays[:, 2]) ** 2 + 1e-12, error**2)


def normalized_errors(grid, drift=0.0):
    """Return the errors of the seen cells over their stated standard deviations."""
    seen = np.isfinite(grid.heights)
    errors = grid.heights - drift - Hills().height(*grid.centers())
    return errors[seen] / np.sqrt(grid.variance[seen])


def test_a_cell_holds_the_weighted_mean_of_its_points():
    random, grid = np.random.default_rng(0), ElevationMap(SHAPE, SPACING, gate=100.0)
    heights, variances = random.normal(0.3, 0.002, 24), random.uniform(0.01, 0.02, 24) ** 2  # no excess of scatter
    for part in (slice(0, 7), slice(7, 12), slice(12, 24)):
        points = np.stack([np.full(24, 0.26), np.full(24, -0.11), heights], axis=1)
        grid.update(points[part], variances[part])
    i, j = np.array([5, -2]) - grid.corner
    assert grid.heights[i, j] == pytest.approx(np.average(heights, weights=1.0 / variances), rel=1e-12)
    assert grid.variance[i, j] == pytest.approx(1.0 / np.sum(1.0 / variances), rel=1e-12)
    assert np.count_nonzero(np.isfinite(grid.heights)) == 1
    assert grid.filled().heights == pytest.approx(grid.heights[i, j]) and grid.filled().distance[i, j] == 0.0


def test_errors_of_white_noise_are_as_large_as_stated():
    camera = DepthCamera("trunk", shape=(60, 80), noise=0.004, dropout=0.1, step=0.01)
    squares = []
    for seed in range(4):
        grid = ElevationMap(SHAPE, SPACING)
        for image in range(8):
            scanned(camera, grid, 100 * seed + image)
        squares.append(normalized_errors(grid) ** 2)
    mean = np.concatenate(squares).mean()
    assert 0.7 < mean < 1.15  # below 1 as excess scatter is only added


def test_variance_covers_the_drift_of_the_pose():
    camera, random = DepthCamera("trunk", shape=(30, 40), noise=0.002, step=0.01), np.random.default_rng(1)
    squares = []
    for _ in range(40):
        grid = ElevationMap(SHAPE, SPACING, vertical=0.01, horizontal=0.0)
        scanned(camera, grid, 0)
        grid.predict(2.0)
        squares.append(np.mean(normalized_errors(grid, drift=0.01 * np.sqrt(2.0) * random.normal()) ** 2))
    assert np.mean(squares) == pytest.approx(1.0, abs=4 * np.sqrt(2 / 40))
    still = ElevationMap(SHAPE, SPACING, vertical=0.0, horizontal=0.0)
    scanned(camera, still, 0)
    before = still.variance.copy()
    still.predict(2.0)
    np.testing.assert_array_equal(still.variance, before)


def test_horizontal_drift_adds_variance_where_the_ground_is_steep():
    grid = ElevationMap(SHAPE, SPACING, vertical=0.0, horizontal=0.02)
    x, y = grid.centers()
    grid.update(np.stack([x, y, 0.5 * x + 0.0 * y], axis=-1).reshape(-1, 3), np.full(x.size, 1e-6))
    grid.predict(4.0)
    np.testing.assert_allclose(grid.variance, 1e-6 + 4.0 * 0.02**2 * 0.5**2, rtol=1e-9)


def test_a_drifting_map_follows_the_images_and_errors_of_the_pose_do_not_average_out():
    camera, grid = DepthCamera("trunk", noise=0.002, step=0.01), ElevationMap(SHAPE, SPACING, vertical=0.005)
    for image in range(60):
        scanned(camera, grid, image, drift=0.002 * image, error=0.003)
        grid.predict(0.1)
        assert (grid.variance[np.isfinite(grid.variance)] >= 0.003**2).all()
    assert np.median(np.abs(normalized_errors(grid, drift=0.002 * 59))) < 1.0


def test_a_changed_height_replaces_that_of_the_cell():
    grid = ElevationMap(SHAPE, SPACING)
    for z in (0.0, 0.0, 0.002, 0.2):
        grid.update(np.array([[0.0, 0.0, z]]), np.array([1e-6]))
    i, j = -grid.corner
    assert grid.heights[i, j] == 0.2 and grid.variance[i, j] == pytest.approx(1e-6)


def test_points_of_an_edge_give_a_larger_variance_than_points_of_a_level():
    grid = ElevationMap(SHAPE, SPACING)
    heights = np.array([0.0, 0.1] * 8)
    grid.update(np.stack([0.0 * heights, 0.0 * heights, heights], axis=1), np.full(16, 1e-6))
    i, j = -grid.corner
    assert grid.heights[i, j] == pytest.approx(0.05)
    assert grid.variance[i, j] == pytest.approx(heights.var(ddof=1) / 16, rel=1e-9)


def test_unseen_cells_have_the_lowest_height_nearby_and_else_that_of_the_nearest_cell():
    grid = ElevationMap(SHAPE, SPACING)
    grid.update(np.array([[0.0, 0.0, 0.3], [0.2, 0.0, -0.1]]), np.full(2, 1e-6))
    i, j = -grid.corner
    near, low = grid.filled(), grid.filled(around=0.15)
    assert (near.heights[i + 1, j], low.heights[i + 1, j]) == (0.3, -0.1)  # 0.05 m from the one, 0.15 m from the other
    assert low.heights[i, j] == 0.3 and low.heights[i - 4, j] == near.heights[i - 4, j] == 0.3
    assert near.distance[i + 1, j] == low.distance[i + 1, j] == SPACING


def test_cells_keep_their_place_in_the_world_as_the_grid_moves():
    grid = ElevationMap(SHAPE, SPACING)
    x, y = grid.centers()
    grid.update(np.stack([x, y, x + 10.0 * y], axis=-1).reshape(-1, 3), np.full(x.size, 1e-6))
    for center in ((0.31, -0.2), (0.26, 0.12), (-0.4, 0.0)):
        grid.move(np.array(center))
        x, y = grid.centers()
        seen = np.isfinite(grid.heights)
        np.testing.assert_allclose(grid.heights[seen], (x + 10.0 * y)[seen], atol=1e-12)
        assert np.abs(grid.centers().mean(axis=(1, 2)) - center).max() <= SPACING
    assert 0.3 < seen.mean() < 0.8  # 0.71 m and 0.32 m of 2 m and 1.5 m have left it
    grid.move(np.array([100.0, 0.0]))
    assert np.isnan(grid.heights).all() and (grid.filled().heights == 0.0).all()


def test_wrong_points_are_refused_and_change_nothing():
    grid = ElevationMap(SHAPE, SPACING)
    with pytest.raises(DefinitionError, match="variances of points must be positive"):
        grid.update(np.zeros((2, 3)), np.zeros(2))
    with pytest.raises(NotFiniteError, match="points"):
        grid.update(np.full((2, 3), np.nan), np.ones(2))
    assert np.isnan(grid.heights).all()
