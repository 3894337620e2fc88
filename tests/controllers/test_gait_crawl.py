"""The crawl: one leg at a time, never near tipping, and without jumps."""

from __future__ import annotations

import numpy as np
import pytest

import legged
import robots
from controllers import Crawl
from legged.errors import DefinitionError
from legged.sensors import support_margin

ROBOT = robots.spatial_quadruped()
INSTANTS = np.arange(0, 16, 0.05)  # [s], two cycles


@pytest.mark.parametrize("gait", [Crawl(), Crawl(stride=-0.03), Crawl(lean=0.4, hip_height=0.42, period=1.0)])
def test_the_center_of_mass_stays_well_within_the_supporting_feet(gait):
    gait = gait.on(ROBOT)
    margins = []
    for t in INSTANTS:
        q = np.concatenate([ROBOT.base.configuration(gait.base(t)[0], np.eye(3)), gait.reference(t)[0]])
        carrying = [leg.name in gait.support(t) for leg in gait.geometry]
        margins.append(support_margin(legged.center_of_mass(ROBOT, q), gait.feet(t)[0][carrying]))
    assert min(margins) > 0.05  # [m]; the triangle's incircle has a radius of 0.16 m


def test_one_leg_swings_at_a_time_hind_before_fore_and_right_before_left():
    gait = Crawl()
    names = {leg.name for leg in gait.geometry}
    swinging = [names - set(gait.support((k + 0.75) * gait.period)) for k in range(5)]
    assert swinging == [{"leg1"}, {"leg3"}, {"leg2"}, {"leg4"}, {"leg1"}]
    assert set(gait.support(0.25 * gait.period)) == names  # while the base shifts


def test_nothing_jumps_and_the_robot_starts_at_rest():
    gait = Crawl()
    for k in range(1, 5):
        t = k * gait.period
        for before, after in zip(gait.reference(t, k - 1), gait.reference(t, k), strict=True):
            np.testing.assert_allclose(before, after, atol=1e-11)
    np.testing.assert_array_equal(gait.reference(0.0)[1], 0)
    np.testing.assert_array_equal(gait.base(0.0)[1], 0)


def test_feet_land_as_far_ahead_of_their_stance_as_they_lift_off_behind_it():
    gait = Crawl(stride=0.04)
    for turn, leg in enumerate(gait.order):
        stance = gait.geometry[leg].stance[0]
        before = gait.feet(turn * gait.period, turn)[0][leg, 0] - turn * gait.stride - stance
        after = gait.feet((turn + 1) * gait.period, turn + 1)[0][leg, 0] - (turn + 1) * gait.stride - stance
        assert after == pytest.approx(-before, abs=1e-15)
        assert after - before == pytest.approx(3 * gait.stride)  # four strides of swing less one of the base


def test_the_measured_mass_offset_is_where_the_mass_is():
    gait = Crawl().on(ROBOT)
    assert gait.mass_offset is not None
    for k, offset in enumerate(gait.mass_offset):
        t = (k + 0.75) * gait.period
        base = gait.base(t)[0]
        q = np.concatenate([ROBOT.base.configuration(base, np.eye(3)), gait.reference(t)[0]])
        # three rounds of a correction that shrinks about fivefold each
        np.testing.assert_allclose((legged.center_of_mass(ROBOT, q) - base)[:2], offset, atol=2e-3)


def test_a_given_mass_offset_is_kept():
    given = ((0.05, 0.0),) * 4
    assert Crawl(mass_offset=given).on(ROBOT).mass_offset == given


@pytest.mark.parametrize("wrong", [{"shift_fraction": 0.0}, {"shift_fraction": 1.0}, {"lean": 1.5}])
def test_shares_outside_their_range_are_refused(wrong):
    with pytest.raises(DefinitionError, match=next(iter(wrong))):
        Crawl(**wrong)
