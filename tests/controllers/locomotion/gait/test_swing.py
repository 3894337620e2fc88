"""Paths of swinging feet: at rest at both ends, over edges and slopes of known terrain, with toe and heel."""

import numpy as np
import pytest

from controllers.locomotion.gait.footholds import terrain_heights
from controllers.locomotion.gait.swing import POINT, SOLE, Swing, path_weights, swing_lead, swing_path, swing_rise
from legged.ground import Slope, Stairs


@pytest.mark.parametrize("profile", [POINT, SOLE])
def test_a_swing_leaves_and_lands_at_rest_and_clears_a_stair(profile):
    stairs = Stairs((0.1,), (0.1,))
    start, end = np.zeros(3), np.array([0.25, 0.02, 0.1])
    lead = swing_lead(start, end, profile)
    assert 0.0 < lead <= profile.lead
    rise = swing_rise(start, end, 0.05, terrain_heights(stairs, start, end), profile, lead)
    times = np.linspace(0.0, 1.0, 201)
    motion = [swing_path(t, 0.25, start, end, rise, profile, lead) for t in times]
    place, velocity, acceleration = (np.array([getattr(m, k) for m in motion]) for k in motion[0]._fields[:3])
    assert place[0] == pytest.approx(start) and place[-1] == pytest.approx(end, abs=1e-12)
    assert velocity[[0, -1]] == pytest.approx(np.zeros((2, 3)), abs=1e-9)
    assert (place[:, 2] >= [stairs.height(x, y) - 1e-4 for x, y, _ in place]).all()  # [m]
    between = 0.25 * np.diff(times)[:, None]
    assert np.diff(place, axis=0) / between == pytest.approx((velocity[1:] + velocity[:-1]) / 2, abs=5e-3)
    smooth = (np.abs(np.diff(acceleration, axis=0)) < 5.0).all(axis=1)  # accelerations jump, by 17 m/s^2 at least
    assert smooth.sum() == len(times) - 1 - 6
    rate, mean = np.diff(velocity, axis=0) / between, (acceleration[1:] + acceleration[:-1]) / 2
    assert rate[smooth] == pytest.approx(mean[smooth], abs=0.2)


@pytest.mark.parametrize("slope", [-0.27, 0.27])
def test_a_swing_passes_a_slope_at_the_clearance_and_leads_in_height_uphill_alone(slope):
    start, end = np.zeros(3), np.array([0.4, 0.0, 0.4 * slope])
    lead = swing_lead(start, end, POINT)
    rise = swing_rise(start, end, 0.05, terrain_heights(Slope(float(np.arctan(slope))), start, end), POINT, lead)
    assert rise == pytest.approx(0.05)
    for at in np.linspace(0.0, 1.0, 41):
        (x, _, z), over = (
            swing_path(at, 0.3, start, end, rise, POINT, lead).position,
            16.0 * (at * (1.0 - at)) ** 2 * rise,
        )
        assert z >= slope * x + over - 1e-12
        assert slope > 0.0 or z == pytest.approx(slope * x + over, abs=1e-12)


def test_a_point_foot_below_its_landing_place_rises_before_it_moves_forward():
    start, end, gap = np.array([0.0, 0.0, -0.12]), np.array([0.25, 0.1, 0.0]), 0.03  # [m]
    times = np.linspace(0.0, 1.0, 1001)
    leads = (swing_lead(start, end, POINT), 0.0)
    place, low = (np.array([swing_path(t, 0.25, start, end, 0.09, SOLE, f).position for t in times]) for f in leads)
    assert (place[times < POINT.lead, :2] == 0.0).all()
    assert (place[place[:, 0] > gap, 2] >= 0.0).all()  # over the wall, 3 cm ahead
    assert (low[low[:, 0] > gap, 2] < -0.03).any()  # without a lead it moves along the line


@pytest.mark.parametrize("up", [1.0, -1.0])
@pytest.mark.parametrize("edge", [0.12, 0.15, 0.2])
def test_the_toe_of_a_flat_foot_passes_over_the_edge_of_a_stair_up_and_its_heel_down(up, edge):
    toe, stairs = 0.1, Stairs((edge,) if up > 0.0 else (0.5 - edge,), (up * 0.1,))
    start, end, level = np.zeros(3), np.array([0.5, 0.0, up * 0.1]), np.zeros(2)

    def lowest(extents):
        heights = terrain_heights(stairs, start, end, extents=extents, slope=level)
        lead = swing_lead(start, end, SOLE, heights, level)
        assert lead == pytest.approx(up * SOLE.lead)
        rise = swing_rise(start, end, 0.02, heights, SOLE, lead)
        path = [swing_path(t, 0.4, start, end, rise, SOLE, lead).position for t in np.linspace(0.0, 1.0, 501)]
        return min(z - max(stairs.height(x + e, y) for e in (-toe, 0.0, toe)) for x, y, z in path)

    assert lowest([np.array([toe, 0.0]), np.array([-toe, 0.0])]) > -0.0065  # between places at which heights are read
    assert lowest([]) < -0.0065  # [m]


def test_flat_feet_do_not_lead_on_the_slope_of_the_ground():
    start, end, slope = np.zeros(3), np.array([0.4, 0.0, 0.1]), np.array([0.25, 0.0])
    ends = [np.array([0.1, 0.0]), np.array([-0.1, 0.0])]
    heights = terrain_heights(Slope(float(np.arctan(0.25))), start, end, extents=ends, slope=slope)
    assert swing_lead(start, end, SOLE, heights, slope) == pytest.approx(0.0, abs=1e-12)
    assert swing_lead(start, end, SOLE, heights, np.zeros(2)) == pytest.approx(0.125)  # half of the slope


def test_a_flat_foot_rises_later_before_an_edge_that_is_far_ahead():
    """With a lead of 0.2 before far edges the last leg of G1 lags behind on stairs, and its trunk turns by 1 rad."""
    start, end, level = np.zeros(3), np.array([0.5, 0.0, 0.1]), np.zeros(2)
    heights = [terrain_heights(Stairs((edge,), (0.1,)), start, end) for edge in (0.1, 0.375)]
    near, far = (swing_lead(start, end, SOLE, own, level) for own in heights)
    assert near == SOLE.lead and far == pytest.approx(0.5 * 0.1 / 0.4)  # the first place on the step is at 0.4 m


def test_a_swing_passes_each_known_place_between_by_a_clearance_that_vanishes_at_the_ends():
    heights = np.random.default_rng(3).uniform(-0.1, 0.1, 9)  # [m]
    start, end, clearance = np.zeros(3), np.array([0.5, 0.0, 0.06]), 0.05
    lead = swing_lead(start, end, POINT)
    rise = swing_rise(start, end, clearance, heights, POINT, lead)
    times = np.linspace(0.0, 1.0, 2001)
    path = np.array([swing_path(t, 0.3, start, end, rise, POINT, lead).position for t in times])
    for fraction, height in zip(np.arange(1, 10) / 10, heights, strict=True):
        k = np.argmin(np.abs(path[:, 0] - fraction * end[0]))
        above = 16.0 * (times[k] * (1.0 - times[k])) ** 2 * clearance
        assert path[k, 2] >= height + above - 1e-3


def test_a_foot_follows_its_path_closely_at_obstacles_and_in_quick_steps_at_touchdown():
    zero = np.zeros(3)
    for obstacle in (0.0, 1.0):
        swing = Swing(zero, zero, zero, obstacle)
        weights = np.array([path_weights(swing, x, True, False) for x in (0.0, 0.5, 1.0)])
        assert weights.tolist() == [[0.0, obstacle], [0.25 * obstacle, obstacle], [obstacle, obstacle]]
        quick = np.array([path_weights(swing, x, True, True) for x in (0.0, 0.5, 1.0)])
        high = max(0.5, obstacle)
        assert quick.tolist() == [[0.0, high], [0.25, high], [1.0, 1.0]]
        pointed = np.array([path_weights(swing, x, False, False) for x in (0.0, 0.25, 1.0)])
        assert pointed.tolist() == [[0.0, 1.0], [0.125, 1.0], [1.0, 1.0]]
