"""Elementary functions in machine code, compared with arithmetic of higher precision."""

from __future__ import annotations

import math

import numpy as np
import pytest

from legged.compiler import compile
from tests.compiler.codegen.test_targets import AVAILABLE

EXTENDED = np.finfo(np.longdouble).nmant >= 63
"""Whether long double has more digits than double here; otherwise the reference itself errs by half a unit."""
TOLERANCE = 2.0 if EXTENDED else 2.5
"""Largest error in units in the last place, above the 1.5 units that `codegen.elementary` states."""

N = 20_000


def units(got: np.ndarray, wanted: np.ndarray) -> float:
    """Return the largest error in units in the last place."""
    size = np.spacing(np.maximum(np.abs(wanted.astype(float)), np.finfo(float).tiny))
    return float(np.max(np.abs((got.astype(np.longdouble) - wanted) / size)))


def numbers(low: float, high: float) -> np.ndarray:
    """Return numbers uniformly between two bounds, and numbers of all magnitudes, of both signs if low is negative."""
    rng = np.random.default_rng(5)
    even = rng.uniform(low, high, N)
    steps = high * np.exp(-rng.uniform(0.0, 60.0, N))
    return np.concatenate([even, steps, -steps if low < 0.0 else steps])


@pytest.mark.parametrize(
    ("function", "low", "high"),
    [
        (np.sin, -10.0, 10.0),
        (np.cos, -10.0, 10.0),
        (np.sin, -1e5, 1e5),
        (np.cos, -1e5, 1e5),
        (np.sin, -1e15, 1e15),
        (np.cos, -1e15, 1e15),
        (np.exp, -700.0, 700.0),
        (np.exp, -1.0, 1.0),
        (np.arctan, -3.0, 3.0),
        (np.arctan, -1e200, 1e200),
        (np.sqrt, 0.0, 1e3),
        (np.log, 0.0, 1e10),
        (np.tan, -10.0, 10.0),
        (np.arcsin, -1.0, 1.0),
        (np.arccos, -1.0, 1.0),
        (np.sinh, -20.0, 20.0),
        (np.cosh, -20.0, 20.0),
    ],
)
def test_functions_err_by_less_than_two_units_in_the_last_place(function, low, high):
    x = numbers(low, high)
    got = compile(lambda x: function(x), x=())(x)
    assert units(got, function(x.astype(np.longdouble))) < TOLERANCE


@pytest.mark.parametrize("target", AVAILABLE)
@pytest.mark.parametrize(
    ("function", "size"), [(np.sin, 10.0), (np.cos, 1e5), (np.exp, 1.0), (np.exp, 700.0), (np.arctan, 3.0)]
)
def test_formulas_are_as_accurate_on_all_targets(function, size, target):
    """Targets without fused multiply-adds compute the small differences in another way."""
    x = numbers(-size, size)
    got = compile(lambda x: function(x), x=(), target=target)(x)
    assert units(got, function(x.astype(np.longdouble))) < (1.5 if EXTENDED else TOLERANCE)


def test_the_hyperbolic_tangent_has_the_accuracy_of_the_c_library():
    x = numbers(-20.0, 20.0)
    got = compile(lambda x: np.tanh(x), x=())(x)
    assert units(got, np.tanh(x.astype(np.longdouble))) < 3.0  # the bound that the GNU C library documents


@pytest.mark.parametrize("target", AVAILABLE)
def test_sines_near_multiples_of_half_pi_keep_their_relative_accuracy(target):
    k = np.arange(-60_000, 60_000, 7)
    x = (k * (np.longdouble(np.pi) / 2)).astype(float)
    for function in (np.sin, np.cos):
        got = compile(lambda x, function=function: function(x), x=(), target=target)(x)
        assert units(got, function(x.astype(np.longdouble))) < TOLERANCE
    # sin(pi) in doubles is the error of pi, known to more digits than long double has
    assert compile(lambda x: np.sin(x), x=(), target=target)(np.pi) == 1.2246467991473532e-16


@pytest.mark.parametrize("target", AVAILABLE)
def test_arctan2_in_all_directions(target):
    rng = np.random.default_rng(3)
    angle, size = rng.uniform(-np.pi, np.pi, N), np.exp(rng.uniform(-30.0, 30.0, N))
    y, x = size * np.sin(angle), size * np.cos(angle)
    kernel = compile(lambda y, x: np.arctan2(y, x), y=(), x=(), target=target)
    assert units(kernel(y, x), np.arctan2(y.astype(np.longdouble), x.astype(np.longdouble))) < TOLERANCE
    y, x = numbers(-1.0, 1.0), numbers(-1.0, 1.0)[::-1].copy()
    assert units(kernel(y, x), np.arctan2(y.astype(np.longdouble), x.astype(np.longdouble))) < TOLERANCE


def test_special_arguments_have_the_results_of_the_c_library():
    every = [0.0, -0.0, 1.0, -1.0, 5e-324, -5e-324, 1e-300, 1e300, -1e300, 1.7e308]
    kernel = compile(lambda y, x: np.arctan2(y, x), y=(), x=())
    for y in every:
        for x in every:
            assert_same(kernel(y, x), math.atan2(y, x))
    for function, plain in ((np.sin, math.sin), (np.cos, math.cos), (np.arctan, math.atan)):
        kernel = compile(lambda x, function=function: function(x), x=())
        for x in set(every):  # 0.0 and -0.0 are one here: the sine of -0.0 is 0.0
            assert_same(kernel(x), plain(x))


def assert_same(got: float, wanted: float) -> None:
    """Check that two numbers are equal up to two units in the last place, signs of zeros included."""
    assert math.isclose(got, wanted, rel_tol=5e-16, abs_tol=0.0)
    assert math.copysign(1.0, got) == math.copysign(1.0, wanted)


def test_exponentials_overflow_and_underflow_at_the_limits_of_doubles():
    # the kernel rejects infinite results; the reciprocal of infinity is finite
    kernel = compile(lambda x: 1.0 / np.exp(x), x=())
    assert kernel(710.0) == 0.0
    assert kernel(709.7) > 0.0
    kernel = compile(lambda x: np.exp(x), x=())
    assert kernel(-746.0) == 0.0
    assert kernel(-800.0) == 0.0
    assert kernel(-745.0) == 5e-324
    assert kernel(0.0) == 1.0


@pytest.mark.parametrize("count", [1, 8, 600])
def test_arguments_out_of_range_do_not_change_other_lanes(count):
    """A few formulas are inlined, many are a call; a state is single or in a batch."""
    kernel = compile(lambda x: np.sin(x) + 2.0 * np.cos(x), x=(count,))
    x = np.linspace(-3.0, 3.0, 11 * count).reshape(11, count)
    mixed = x.copy()
    mixed[[2, 10], count // 2], mixed[7, -1] = 1e9, -3e20
    wanted = np.sin(mixed) + 2.0 * np.cos(mixed)
    together = kernel(mixed)
    assert np.allclose(together, wanted, rtol=0.0, atol=3e-15)
    assert np.array_equal(together[mixed == x], kernel(x)[mixed == x])
    for k in (0, 2, 7):
        assert np.array_equal(kernel(mixed[k]), together[k])


def test_nested_functions():
    def nested(x):
        return np.sin(np.cos(np.exp(np.sin(x)))) + np.arctan2(np.sin(x), np.tanh(x)) + np.arctan(x) ** 2

    x = np.linspace(-2.0, 2.0, 11)
    assert compile(nested, x=(11,))(x) == pytest.approx(nested(x), rel=1e-14)
    assert compile(nested, x=())(x) == pytest.approx(nested(x), rel=1e-14)


def test_a_constant_is_distinct_from_the_value_of_the_same_number():
    kernel = compile(lambda a, b: np.array([np.arctan(a), np.arctan2(a, b)]), a=(), b=())
    assert kernel(0.3, 0.5) == pytest.approx([math.atan(0.3), math.atan2(0.3, 0.5)], rel=1e-15)
