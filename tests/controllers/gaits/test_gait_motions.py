"""Planned motions of base and feet: swing-foot paths, the linear inverted pendulum and the crawl gait."""

from __future__ import annotations

import numpy as np
import pytest

import legged
import robots
from controllers import Crawl
from controllers.gaits import InvertedPendulum
from controllers.gaits.foot_path import PATHS, path_named, swing_foot
from legged import taylor
from legged.errors import DefinitionError, LeggedError, UnknownNameError
from legged.sensors import support_margin

# Swing-foot paths.

LANDING = [name for name in PATHS if name != "printed"]


def motion(path, fractions):
    """Return (x, z) with two derivatives, (3, n) each, of a swing with period 0.8 s, stride 0.3 m, clearance 0.1 m."""
    t = taylor.time(0.8 * np.asarray(fractions, dtype=float))
    return [taylor.derivatives(part) for part in swing_foot(t, 0.8, 0.3, 0.1, path)]


@pytest.mark.parametrize("path", LANDING)
def test_a_swinging_foot_moves_two_strides_and_lands(path):
    x, z = motion(path, [0, 0.5, 1])
    np.testing.assert_allclose(x[0], [-0.3, 0, 0.3], atol=1e-15)
    np.testing.assert_allclose(z[0], [0, 0.1, 0], atol=1e-15)


@pytest.mark.parametrize("path", LANDING)
def test_a_swinging_foot_is_at_rest_at_lift_off_and_touch_down(path):
    x, z = motion(path, [0, 1])
    np.testing.assert_allclose(x[1], 0, atol=1e-14)
    np.testing.assert_allclose(z[1], 0, atol=1e-14)


@pytest.mark.parametrize("path", LANDING)
def test_a_swinging_foot_moves_forward_between_ground_and_clearance(path):
    x, z = motion(path, np.linspace(0, 1, 201))
    assert (x[1] >= -1e-12).all()
    assert (z[0] >= -1e-15).all()
    assert z[0].max() == pytest.approx(0.1, rel=1e-12)


def test_the_smooth_path_has_zero_acceleration_at_its_ends_and_the_cycloid_zero_horizontal_acceleration():
    for path, parts in (("smooth", (0, 1)), ("cycloid", (0,))):
        both = motion(path, [0, 1])
        for part in parts:
            np.testing.assert_allclose(both[part][2], 0, atol=1e-12)


def test_the_printed_path_ends_at_full_height():
    _, z = motion("printed", [0, 1])
    np.testing.assert_allclose(z[0], [0, 0.1], atol=1e-15)
    np.testing.assert_allclose(z[1], 0, atol=1e-15)


def test_the_cosine_path_is_that_of_the_appendix():
    t = np.linspace(0, 1, 7)
    x, z = swing_foot(t, 1.0, 0.3, 0.1)
    np.testing.assert_allclose(x, -0.3 * np.cos(np.pi * t), atol=1e-15)
    np.testing.assert_allclose(z, 0.05 * (1 - np.cos(2 * np.pi * t)), atol=1e-15)


def test_a_function_is_a_path_and_an_unknown_name_is_refused():
    assert path_named(PATHS["smooth"]) is PATHS["smooth"]
    with pytest.raises(UnknownNameError, match="no foot path named 'cosin'; did you mean 'cosine'"):
        path_named("cosin")


# The linear inverted pendulum.

# height [m], omega [1/s], speed at the start, speed in the middle [m/s], orbital energy [m^2/s^2]: worked out by hand
# from T = 1 s, stride 0.3 m, g = 9.81 m/s^2
CONSTANTS = [
    (0.96, 3.196678, 0.520395, 0.202211, 0.040889),
    (0.71, 3.717109, 0.585344, 0.178177, 0.031747),
    (0.5, 4.429447, 0.680449, 0.146837, 0.021561),
]
STARTS = [  # period [s], stride, height [m], speed at the start [m/s]: of the authors' other robots
    (0.5, 0.3, 0.92, 0.727719),
    (0.5, 0.4, 0.55, 1.077291),
    (1.1, 0.06, 0.13, 0.260643),
]


@pytest.mark.parametrize("height, omega, speed, middle, energy", CONSTANTS)
def test_constants_of_the_paper_to_six_digits(height, omega, speed, middle, energy):
    pendulum = InvertedPendulum.forward(1.0, 0.3, height)
    assert pendulum.start == -0.15
    printed = (pendulum.omega, pendulum.speed, pendulum.mid_stance_speed, pendulum.orbital_energy)
    np.testing.assert_allclose(printed, (omega, speed, middle, energy), rtol=0, atol=5.01e-7)


@pytest.mark.parametrize("period, stride, height, speed", STARTS)
def test_start_speeds_of_the_authors_other_robots(period, stride, height, speed):
    assert InvertedPendulum.forward(period, stride, height).speed == pytest.approx(speed, abs=5.01e-7)


@pytest.mark.parametrize(
    "pendulum", [InvertedPendulum.forward(0.7, 0.4, 0.8), InvertedPendulum.sideways(0.7, -0.06, 0.8)]
)
def test_the_pendulum_satisfies_its_equation_of_motion(pendulum):
    x, _, acceleration = taylor.derivatives(pendulum(taylor.time(np.linspace(0, 0.7, 8))))
    np.testing.assert_allclose(acceleration, pendulum.omega**2 * x, rtol=1e-13)


def test_a_forward_pendulum_is_periodic():
    pendulum = InvertedPendulum.forward(0.7, 0.4, 0.8)
    x, speed, _ = taylor.derivatives(pendulum(taylor.time(np.array([0.0, 0.35, 0.7]))))
    assert x[2] == pytest.approx(-x[0], rel=1e-13)
    assert x[1] == pytest.approx(0, abs=1e-15)
    assert speed[2] == pytest.approx(speed[0], rel=1e-13)
    assert speed[1] == pytest.approx(pendulum.mid_stance_speed, rel=1e-13)
    np.testing.assert_allclose(speed**2 - (pendulum.omega * x) ** 2, pendulum.orbital_energy, rtol=1e-12)


def test_a_sideways_pendulum_is_symmetric():
    pendulum = InvertedPendulum.sideways(0.5, -0.06, 0.92)
    y, speed, _ = taylor.derivatives(pendulum(taylor.time(np.array([0.0, 0.5]))))
    assert y[1] == pytest.approx(y[0], rel=1e-13)
    assert speed[1] == pytest.approx(-speed[0], rel=1e-13)
    assert speed[0] > 0  # towards the foot


@pytest.mark.parametrize("wrong", [{"height": 0.0}, {"period": -1.0}, {"gravity": np.nan}, {"height": np.inf}])
def test_a_pendulum_needs_positive_height_period_and_gravity(wrong):
    name = next(iter(wrong))
    with pytest.raises(LeggedError, match=f"{name} must be (positive|finite)"):
        InvertedPendulum.forward(**({"period": 1.0, "stride": 0.3, "height": 0.9, "gravity": 9.81} | wrong))


# The crawl gait.

ROBOT = robots.spatial_quadruped()
TIMES = np.arange(0, 16, 0.05)  # [s], two cycles


@pytest.mark.parametrize("gait", [Crawl(), Crawl(stride=-0.03), Crawl(lean=0.4, hip_height=0.42, period=1.0)])
def test_the_center_of_mass_stays_well_within_the_supporting_feet(gait):
    gait = gait.on(ROBOT)
    margins = []
    for t in TIMES:
        q = np.concatenate([ROBOT.base.configuration(gait.base(t)[0], np.eye(3)), gait.reference(t)[0]])
        supporting = [leg.name in gait.support(t) for leg in gait.geometry]
        margins.append(support_margin(legged.center_of_mass(ROBOT, q), gait.feet(t)[0][supporting]))
    assert min(margins) > 0.05  # [m]; the triangle's incircle has a radius of 0.16 m


def test_one_leg_swings_at_a_time_hind_before_fore_and_right_before_left():
    gait = Crawl()
    names = {leg.name for leg in gait.geometry}
    swinging = [names - set(gait.support((k + 0.75) * gait.period)) for k in range(5)]
    assert swinging == [{"leg1"}, {"leg3"}, {"leg2"}, {"leg4"}, {"leg1"}]
    assert set(gait.support(0.25 * gait.period)) == names  # while the base shifts


def test_the_crawl_is_continuous_with_two_derivatives_and_starts_at_rest():
    gait = Crawl()
    for k in range(1, 5):
        t = k * gait.period
        for before, after in zip(gait.reference(t, k - 1), gait.reference(t, k), strict=True):
            np.testing.assert_allclose(before, after, atol=1e-11)
    np.testing.assert_array_equal(gait.reference(0.0)[1], 0)
    np.testing.assert_array_equal(gait.base(0.0)[1], 0)


def test_feet_land_as_far_ahead_of_their_stance_as_they_lift_off_behind_it():
    gait = Crawl(stride=0.04)
    for phase, leg in enumerate(gait.order):
        stance = gait.geometry[leg].stance[0]
        before = gait.feet(phase * gait.period, phase)[0][leg, 0] - phase * gait.stride - stance
        after = gait.feet((phase + 1) * gait.period, phase + 1)[0][leg, 0] - (phase + 1) * gait.stride - stance
        assert after == pytest.approx(-before, abs=1e-15)
        assert after - before == pytest.approx(3 * gait.stride)  # four strides of swing less one of the base


def test_the_center_of_mass_leans_from_the_middle_of_all_feet_to_that_of_the_supporting_feet():
    gait = Crawl(stride=0.04, lean=0.4, mass_offset=((0.05, 0.01),) * 4)
    for phase, leg in enumerate(gait.order):
        feet = gait.feet(phase * gait.period, phase)[0][:, :2]
        supporting = np.delete(feet, leg, axis=0)
        center = gait.base((phase + 0.75) * gait.period, phase)[0][:2] + np.array([0.05, 0.01])
        assert center == pytest.approx(0.6 * feet.mean(axis=0) + 0.4 * supporting.mean(axis=0), abs=1e-12)


def test_the_mass_offset_is_the_position_of_the_center_of_mass():
    gait = Crawl().on(ROBOT)
    assert gait.mass_offset is not None
    for k, offset in enumerate(gait.mass_offset):
        t = (k + 0.75) * gait.period
        base = gait.base(t)[0]
        q = np.concatenate([ROBOT.base.configuration(base, np.eye(3)), gait.reference(t)[0]])
        # three iterations that reduce the error by a factor of about five each
        np.testing.assert_allclose((legged.center_of_mass(ROBOT, q) - base)[:2], offset, atol=2e-3)


def test_a_given_mass_offset_is_kept():
    given = ((0.05, 0.0),) * 4
    assert Crawl(mass_offset=given).on(ROBOT).mass_offset == given


@pytest.mark.parametrize("wrong", [{"shift_fraction": 0.0}, {"shift_fraction": 1.0}, {"lean": 1.5}])
def test_fractions_outside_their_range_are_refused(wrong):
    with pytest.raises(DefinitionError, match=next(iter(wrong))):
        Crawl(**wrong)
