"""Swing-foot paths: where they begin and end, how high they go, and how they meet the ground."""

from __future__ import annotations

import numpy as np
import pytest

from controllers.gaits.foot_path import PATHS, path_named, swing_foot
from legged import taylor
from legged.errors import UnknownNameError

LANDING = [name for name in PATHS if name != "printed"]


def motion(path, shares):
    """Return (x, z) with two derivatives, each (3, instants), of a swing of 0.8 s, 0.3 m, 0.1 m."""
    t = taylor.time(0.8 * np.asarray(shares, dtype=float))
    return [taylor.derivatives(part) for part in swing_foot(t, 0.8, 0.3, 0.1, path)]


@pytest.mark.parametrize("path", LANDING)
def test_swings_two_strides_and_lands(path):
    x, z = motion(path, [0, 0.5, 1])
    np.testing.assert_allclose(x[0], [-0.3, 0, 0.3], atol=1e-15)
    np.testing.assert_allclose(z[0], [0, 0.1, 0], atol=1e-15)


@pytest.mark.parametrize("path", LANDING)
def test_is_at_rest_at_lift_off_and_touch_down(path):
    x, z = motion(path, [0, 1])
    np.testing.assert_allclose(x[1], 0, atol=1e-14)
    np.testing.assert_allclose(z[1], 0, atol=1e-14)


@pytest.mark.parametrize("path", LANDING)
def test_never_goes_back_or_below_the_ground_or_above_the_clearance(path):
    x, z = motion(path, np.linspace(0, 1, 201))
    assert (x[1] >= -1e-12).all()
    assert (z[0] >= -1e-15).all()
    assert z[0].max() == pytest.approx(0.1, rel=1e-12)


def test_the_smooth_path_has_no_acceleration_at_its_ends_and_the_cycloid_none_ahead():
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
