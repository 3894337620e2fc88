"""Taylor series: value and two time derivatives of formulas, against central differences and closed forms."""

from __future__ import annotations

import numpy as np
import pytest

import legged
from legged import taylor

STEP = 1e-3  # [s], of the central differences below

FORMULAS = {
    "sum": lambda t: 1 + t - 3 + (2 - t) + t * 5,
    "product": lambda t: (t + 1) * (2 - t) * t,
    "quotient": lambda t: (t + 1) / (2 + t * t) / 3,
    "reciprocal": lambda t: 2.5 / (1 + t),
    "integer powers": lambda t: t**0 + t**1 + t**2 + t**3 + (1 + t) ** -2,
    "real power": lambda t: (1 + t) ** 1.7,
    "power of a number": lambda t: 2.0**t,
    "power of a power": lambda t: (1 + t) ** t,
    "sine and cosine": lambda t: np.sin(2 * t) * np.cos(t - 0.3),
    "tangent": lambda t: np.tan(t),
    "square root": lambda t: np.sqrt(1 + t * t),
    "square": lambda t: np.square(1 + t * t),
    "arcsine": lambda t: np.arcsin(t / 2),
    "arccosine": lambda t: np.arccos(t / 2),
    "arctangent": lambda t: np.arctan(3 * t),
    "arctangent of two": lambda t: np.arctan2(np.sin(3 * t), np.cos(2 * t) - 2),
    "exponential and logarithm": lambda t: np.exp(-t) * np.log(1 + t),
    "hyperbolic": lambda t: np.sinh(t) * np.cosh(2 * t) + np.tanh(t),
    "absolute value": lambda t: abs(t - 1) + np.abs(t + 1),
    "extrema": lambda t: np.maximum(t * t, t) - np.minimum(np.sin(t), 0.2),
    "choice": lambda t: taylor.where(t < 0.5, t * t, 1 / t),
}


@pytest.mark.parametrize("formula", FORMULAS.values(), ids=FORMULAS)
@pytest.mark.parametrize("t", [0.11, 0.37, 0.73])  # [s], away from where a formula switches
def test_both_rates_are_the_central_differences(formula, t):
    value, first, second = taylor.derivatives(formula(taylor.time(t)))
    f = [formula(t + k * STEP) for k in (-2, -1, 0, 1, 2)]
    assert value == pytest.approx(f[2], rel=1e-15)
    # fourth-order differences: truncation error near 1e-10, rounding error over h^2 near 1e-9
    assert first == pytest.approx((f[0] - 8 * f[1] + 8 * f[3] - f[4]) / (12 * STEP), rel=1e-8, abs=1e-8)
    bend = (-f[0] + 16 * f[1] - 30 * f[2] + 16 * f[3] - f[4]) / (12 * STEP**2)
    assert second == pytest.approx(bend, rel=1e-7, abs=1e-7)


def test_powers_need_no_division_at_zero():
    t = taylor.time(0.0)
    value, first, second = taylor.derivatives(np.array([t**0, t**1, t**2, t**3]))
    np.testing.assert_array_equal(value, [1, 0, 0, 0])
    np.testing.assert_array_equal(first, [0, 1, 0, 0])
    np.testing.assert_array_equal(second, [0, 0, 2, 0])


def test_arrays_of_taylors_pass_through_numpy():
    t = taylor.time(0.4)
    turn = np.array([[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]])
    point = np.array([2.0, 1.0])
    value, first, second = taylor.derivatives(turn @ point)
    np.testing.assert_allclose(second, -value, rtol=1e-15)
    np.testing.assert_allclose(first, [-value[1], value[0]], rtol=1e-15)
    length, growth, _ = taylor.derivatives(np.sqrt(np.sum(np.square(turn @ point))))
    assert length == pytest.approx(np.sqrt(5), rel=1e-15)
    assert growth == pytest.approx(0, abs=1e-15)  # a rotation preserves lengths


@pytest.mark.parametrize("number", [2.0, np.float64(2.0), np.int64(2), np.array(2.0)])
def test_numbers_of_every_kind_mix_with_taylors_on_either_side(number):
    t = taylor.time(3.0)
    for mixed, parts in [
        (number * t, (6, 2, 0)),
        (t * number, (6, 2, 0)),
        (number - t, (-1, -1, 0)),
        (t - number, (1, 1, 0)),
        (number / t, (2 / 3, -2 / 9, 4 / 27)),
        (t / number, (1.5, 0.5, 0)),
        (number + t, (5, 1, 0)),
    ]:
        assert isinstance(mixed, taylor.Taylor)
        np.testing.assert_allclose(taylor.derivatives(mixed), parts, rtol=1e-15)


def test_an_array_times_a_taylor_is_an_array_of_taylors():
    _, first, _ = taylor.derivatives(np.array([1.0, 2.0, 3.0]) * taylor.time(0.5) + np.ones(3))
    np.testing.assert_array_equal(first, [1, 2, 3])


def test_many_instants_at_once_come_as_leading_axes():
    t = np.linspace(0, 1, 11)
    moving = np.array([np.sin(taylor.time(t)), 4.0, taylor.where(taylor.time(t) < 0.5, 0.0, taylor.time(t))])
    value, first, second = taylor.derivatives(moving)
    assert value.shape == first.shape == second.shape == (11, 3)
    np.testing.assert_array_equal(value[:, 0], np.sin(t))
    np.testing.assert_array_equal(first[:, 1], 0)
    np.testing.assert_array_equal(first[:, 2], t >= 0.5)


def test_a_constant_has_no_rates():
    value, first, second = taylor.derivatives([1.0, 2])
    np.testing.assert_array_equal([value, first, second], [[1, 2], [0, 0], [0, 0]])


def test_a_moving_array_has_the_given_rates():
    q, v, a = np.arange(3.0), np.ones(3), np.full(3, -2.0)
    x = taylor.moving(q, v, a)
    value, first, second = taylor.derivatives(x * x)
    np.testing.assert_array_equal(value, q * q)
    np.testing.assert_array_equal(first, 2 * q * v)
    np.testing.assert_array_equal(second, 2 * v * v + 2 * q * a)


def test_the_second_derivative_of_a_square_includes_the_squared_rate():
    t = taylor.time(2.0)
    assert repr(t * t) == "Taylor(4.0, 4.0, 2.0)"


def test_legged_where_accepts_taylors_and_numbers():
    t = taylor.time(0.5)
    chosen = legged.where(t.value > 0.4, t * t, 0.0)
    assert (chosen.value, chosen.first, chosen.second) == (0.25, 1.0, 2.0)
