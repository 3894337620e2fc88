"""Places on height maps and other terrains on which feet may stand."""

import numpy as np
import pytest

import legged
from controllers.locomotion.gait.footholds import (
    Footholds,
    away_from_edges,
    foothold_normal,
    foothold_planes,
    nearest_footholds,
)
from legged.ground import HeightMap, RollingHeightMap, Stairs

HEIGHT, SPACING = 0.3, 0.015  # [m]
GAP = 0.3 * HEIGHT


def test_every_place_of_a_slope_is_a_foothold_up_to_the_steepest():
    x = SPACING * np.arange(60)[:, None] + np.zeros(50)
    for slope, free in ((0.0, True), (0.5, True), (0.9, False)):
        assert (foothold_planes(slope * x, SPACING, HEIGHT)[0][12:-12, 12:-12] == free).all()


def test_footholds_keep_off_edges_by_the_size_of_the_foot():
    heights = np.zeros((60, 40))
    heights[30:] = 0.1  # [m]
    margin = 0.02 * HEIGHT + 0.5 * SPACING
    for sole, distance in (((0.0, 0.0), 0.11 * HEIGHT), ((0.06, 0.03), 0.06 + margin)):  # [m]
        free = foothold_planes(heights, SPACING, HEIGHT, sole)[0]
        blocked = np.flatnonzero(~free.all(axis=1))
        assert free[blocked[0] - 1].all() and free[blocked[-1] + 1].all()
        assert 0.5 * SPACING * len(blocked) == pytest.approx(distance, abs=SPACING)


def test_the_bottom_of_a_gap_or_hole_is_no_foothold_and_that_of_a_wide_pit_is():
    for width, free in ((0.4, False), (0.8, True)):  # [h]
        heights, n = np.zeros((80, 80)), round(width * HEIGHT / SPACING)
        for shape in (np.s_[40 : 40 + n, :], np.s_[40 : 40 + n, 40 : 40 + n]):
            pit = heights.copy()
            pit[shape] = -0.2  # [m]
            assert foothold_planes(pit, SPACING, HEIGHT)[0][40 + n // 2, 40 + n // 2] == free


@pytest.mark.parametrize("traced", [False, True])
def test_a_sole_finds_footholds_along_a_beam_that_is_narrower_than_its_length(traced):
    heights = np.full((80, 80), -0.3)  # [m]
    heights[:, 33:47] = 0.0  # a beam 0.21 m wide along x
    terrain, sole = HeightMap(heights, SPACING), (0.1, 0.04)  # [m]
    law = Footholds.of(terrain, HEIGHT, sole)
    nearest = legged.compile(law.nearest, place=(2,), heading=(2,)) if traced else law.nearest
    place, middle = SPACING * np.array([40.0, 45.0]), SPACING * 39.5
    for angle, stays in ((0.0, True), (np.pi, True), (-0.1, True), (0.5 * np.pi, False), (-0.5 * np.pi, False)):
        heading = np.array([np.cos(angle), np.sin(angle)])
        foothold, left = np.asarray(nearest(place, heading)), np.array([-heading[1], heading[0]])
        corners = [foothold + a * sole[0] * heading + b * sole[1] * left for a in (-1, 1) for b in (-1, 1)]
        assert all(abs(y - middle) < SPACING * 6.5 for _, y in corners) == stays


@pytest.mark.parametrize("traced", [False, True])
def test_the_nearest_foothold_is_the_nearest_free_cell_and_a_foothold_stays(traced):
    random = np.random.default_rng(0)
    heights = np.where(random.random((20, 20)) < 0.3, -0.3, 0.0).repeat(6, axis=0).repeat(6, axis=1)
    terrain = HeightMap(heights, SPACING, (-0.2, 0.1))
    law, free = Footholds.of(terrain, HEIGHT, (0.0, 0.0)), foothold_planes(heights, SPACING, HEIGHT)[0]
    nearest = legged.compile(law.nearest, place=(2,), heading=(2,)) if traced else law.nearest
    cells = np.argwhere(free)
    moved = 0
    for i, j in random.integers(10, 110, (60, 2)):
        place = np.array([-0.2, 0.1]) + SPACING * np.array([i, j])
        step = np.asarray(nearest(place, np.array([1.0, 0.0]))) - place
        distance = SPACING * np.linalg.norm(cells - [i, j], axis=1).min()
        assert np.linalg.norm(step) == pytest.approx(distance if distance <= 0.6 * HEIGHT else 0.0, abs=1e-9)
        moved += distance > 0.0
    assert moved > 20


def test_the_normal_under_a_foot_is_that_of_the_slope_in_spite_of_noise_and_a_near_edge():
    x = SPACING * (np.arange(60)[:, None] + np.zeros(40))
    heights = 0.2 * x + np.random.default_rng(0).normal(0.0, 1e-3, x.shape)  # [m]
    heights[30:] -= 0.3
    known = RollingHeightMap(heights.shape, SPACING)
    layers = nearest_footholds(*foothold_planes(heights, SPACING, HEIGHT), SPACING, HEIGHT)
    known.write(0, heights, layers[:2], layers[2:])
    normal = np.array([-0.2, 0.0, 1.0]) / np.sqrt(1.04)
    for terrain in (HeightMap(heights, SPACING), known):
        for i in (20, 27, 29, 29.4):  # all but the first are at the edge
            places = [SPACING * np.array([i, j]) for j in range(10, 30)]
            ahead, point = np.array([1.0, 0.0]), (0.0, 0.0)
            errors = [foothold_normal(terrain, place, ahead, HEIGHT, point) - normal for place in places]
            assert np.linalg.norm(errors, axis=1).max() < 0.076  # 3 sqrt(2) 1 mm / sqrt(sum of x^2), 13 cells
        assert np.linalg.norm(terrain.normal(*(SPACING * np.array([29.4, 20]))) - normal) > 0.5  # that of the surface


def test_a_landing_place_moves_out_of_a_gap_of_0_3_times_the_height():
    """The bottom of the gap is wide enough for a foot without an edge beside it."""
    gap = Stairs((0.5, 0.5 + GAP), (-0.3, 0.3))
    for x in np.linspace(0.47, 0.62, 17):
        place = away_from_edges(gap, np.array([x, 0.0]), np.array([1.0, 0.0]), HEIGHT)
        assert gap.height(*place) == pytest.approx(0.0, abs=1e-9)
        assert abs(place[0] - x) <= 5 * 0.075 * HEIGHT + 1e-12
