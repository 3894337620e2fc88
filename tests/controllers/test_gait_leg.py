"""Legs in closed form: the foot goes where it was wanted, with either knee, any lengths, abduction and offset."""

from __future__ import annotations

import numpy as np
import pytest

from controllers.gaits.leg import Leg, two_link_angles
from legged import taylor
from legged.errors import DefinitionError, ReachError

LEGS = {
    "equal links": Leg("leg", (0.1, 0.2, -0.3), 0.5, 0.5),
    "knee backward": Leg("leg", (0.1, 0.2, -0.3), 0.4, 0.5, knee="backward"),
    "long thigh": Leg("leg", (0.1, 0.2, -0.3), 0.6, 0.35),
    "flat foot": Leg("leg", (0.1, 0.2, -0.3), 0.4, 0.5, flat_foot=True, sole=0.06),
    "abduction": Leg("leg", (0.1, 0.2, -0.3), 0.4, 0.5, abducts=True),
    "offset": Leg("leg", (0.1, 0.2, -0.3), 0.5, 0.4, abducts=True, offset=0.08, knee="backward"),
    "mirrored joints": Leg("leg", (0.1, 0.2, -0.3), 0.5, 0.4, abducts=True, offset=-0.08, signs=(-1, 1, -1)),
}


def random_feet(leg, n, seed):
    """Return soles within reach, (n, 3), [m]: 0.35 to 0.7 m below the hip and up to 0.3 m beside it."""
    rng = np.random.default_rng(seed)
    below = rng.uniform([-0.3, -0.25, -0.7], [0.3, 0.25, -0.35], (n, 3)) - [0, 0, leg.sole]
    below[:, 1] *= leg.abducts
    return np.array(leg.hip) + below


@pytest.mark.parametrize("leg", LEGS.values(), ids=LEGS)
def test_the_angles_put_the_foot_where_it_was_wanted(leg):
    for foot in random_feet(leg, 50, seed=1):
        np.testing.assert_allclose(leg.foot(leg.angles(foot)), foot, atol=1e-14)


@pytest.mark.parametrize("leg", LEGS.values(), ids=LEGS)
def test_many_feet_at_once_give_the_angles_of_each(leg):
    feet = random_feet(leg, 20, seed=2)
    together = np.stack(leg.angles(feet.T), axis=1)
    np.testing.assert_allclose(together, [leg.angles(foot) for foot in feet], atol=1e-14)


@pytest.mark.parametrize("leg", LEGS.values(), ids=LEGS)
def test_joint_rates_move_the_foot_as_wanted(leg):
    start, end = random_feet(leg, 2, seed=3)
    foot = lambda t: start + (end - start) * np.sin(t) ** 2  # noqa: E731
    moving = foot(taylor.time(0.7))
    back = taylor.derivatives(leg.foot(leg.angles(moving)))
    for found, wanted in zip(back, taylor.derivatives(moving), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-12)


@pytest.mark.parametrize("knee, sign", [("forward", 1), ("backward", -1)])
@pytest.mark.parametrize("thigh, shank", [(0.5, 0.5), (0.4, 0.55)])
def test_the_knee_points_where_it_should(knee, sign, thigh, shank):
    hip, bend = two_link_angles(0.0, 0.7, thigh, shank, knee)
    assert sign * thigh * np.sin(hip) > 0.05  # the knee's place ahead of the hip [m]
    assert sign * bend < 0


def test_a_straight_leg_of_equal_links_halves_its_bend():
    hip, knee = two_link_angles(0.0, 0.96, 0.5, 0.5)  # cos alpha = 0.96^2 / 0.5 - 1
    assert hip == pytest.approx(-knee / 2, rel=1e-15)
    assert knee == pytest.approx(-np.arccos(0.96**2 / 0.5 - 1), rel=1e-14)


def test_a_flat_foot_stays_level():
    leg = LEGS["flat foot"]
    for foot in random_feet(leg, 10, seed=4):
        assert sum(leg.angles(foot)) == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("down", [1.0, 1.2])
def test_out_of_reach_is_an_error_that_carries_the_distances(down):
    leg = LEGS["long thigh"]
    with pytest.raises(
        ReachError, match=rf"leg 'leg' cannot reach {down:g} m from its hip: .* between 0.25 m and 0.95 m"
    ):
        leg.angles(np.array(leg.hip) - [0, 0, down])
    with pytest.raises(ReachError) as caught:
        leg.angles(np.array(leg.hip) - [0, 0, down])
    assert caught.value.distance == pytest.approx(down)
    assert caught.value.shortest == pytest.approx(0.25)
    assert caught.value.longest == pytest.approx(0.95)


def test_too_near_is_out_of_reach_too_and_so_is_nan():
    with pytest.raises(ReachError, match=r"cannot reach 0.2 m"):
        two_link_angles(0.0, 0.2, 0.6, 0.35)
    with pytest.raises(ReachError):
        two_link_angles(np.nan, 0.5, 0.6, 0.35)
    with pytest.raises(ReachError, match=r"from its abduction axis: its offset is 0.08 m"):
        LEGS["offset"].hip_angles(0.3, 0.05, 0.02)


def test_one_instant_of_many_out_of_reach_is_found():
    with pytest.raises(ReachError, match=r"cannot reach 1.01 m"):
        two_link_angles(0.0, taylor.time(np.linspace(0.9, 1.01, 12)), 0.5, 0.5)


@pytest.mark.parametrize(
    "wrong, words",
    [
        ({"thigh": 0.0}, "links of positive length"),
        ({"knee": "sideways"}, "knee must be 'forward' or 'backward', got 'sideways'"),
        ({"signs": (1, 1, 1)}, "has 2 joints, but 3 signs"),
        ({"offset": 0.1}, "has an offset but no abduction"),
    ],
)
def test_legs_that_cannot_be_are_refused(wrong, words):
    with pytest.raises(DefinitionError, match=words):
        Leg(**({"name": "leg", "hip": (0, 0, 0), "thigh": 0.5, "shank": 0.5} | wrong))
