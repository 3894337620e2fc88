"""The tracing scalar: constant folding, NumPy functions, and errors."""

from __future__ import annotations

import math
from functools import partial
from operator import attrgetter

import numpy as np
import pytest

from legged.compiler import Expression, count, record
from legged.compiler.ir import ExpressionArray, where
from legged.compiler.ir.operations import evaluate
from legged.compiler.ir.tracer import Tracer
from legged.errors import TraceError

UNARY = (
    *("sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "exp", "log", "sqrt", "cbrt"),
    *("fabs", "floor", "ceil", "trunc", "square", "reciprocal", "log1p", "expm1", "sign"),
)
BINARY = ("arctan2", "hypot", "maximum", "minimum", "copysign", "power", "remainder", "floor_divide", "heaviside")


@pytest.fixture
def xyz() -> ExpressionArray:
    """Three inputs of one tracing."""
    tracer = Tracer()
    return np.array([tracer.input() for _ in range(3)]).view(ExpressionArray)


# Folding


def test_zeros_and_ones_vanish(xyz):
    x = xyz[0]
    assert type(0 * x) is float and 0 * x == 0.0
    assert x + 0 is x and 0.0 + x is x and x - 0 is x and 1 * x is x and x / 1 is x and +x is x
    assert x**1 is x and x**0 == 1.0 and 0.0 / x == 0.0 and x / x == 1.0


def test_constants_are_plain_floats_of_any_kind(xyz):
    x = xyz[0]
    for two in (2, 2.0, np.float64(2.0), np.float32(2.0), np.int64(2), np.array(2.0)):
        assert two * x is x * two is 2.0 * x
        assert type((two * x).arguments[0]) is float


def test_a_value_minus_itself_is_nothing(xyz):
    x, y, _ = xyz
    assert x - x == 0.0 and x + (-x) == 0.0 and -x + x == 0.0
    assert (x + y) - y is x and (x + y) - x is y and (x - y) + y is x and y + (x - y) is x
    assert x - (x - y) is y and x - (x + y) is -y and (x - y) - x is -y
    assert x * y - y * x == 0.0


def test_negation_is_pulled_outward(xyz):
    x, y, _ = xyz
    assert 0.0 - (-x) is x and (-x) * y is -(x * y) and (-x) * (-y) is x * y and x * -3.0 is -(3.0 * x)
    assert (-x) / y is -(x / y) and x / (-y) is -(x / y) and -1.0 / x is -(1.0 / x)
    assert x + (-y) is x - y and (-x) - y is -(x + y) and (-x) + (-y) is -(x + y) and 2.0 - x is -(x - 2.0)
    assert np.sin(-x) is -np.sin(x) and np.cos(-x) is np.cos(x) and np.arctan(-x) is -np.arctan(x)


def test_a_difference_is_written_one_way_round(xyz):
    x, y, _ = xyz
    assert x - y is -(y - x)


def test_operands_of_commutative_operations_are_sorted(xyz):
    x, y, _ = xyz
    assert x + y is y + x and x * y is y * x
    assert np.maximum(x, y) is np.maximum(y, x) and np.minimum(x, 0.0) is np.minimum(0.0, x)


def test_constants_are_gathered(xyz):
    x, y, _ = xyz
    assert 2 * (3 * x) is 6 * x and (x + 1) + 2 is x + 3 and (x + 1) - 1 is x and x / 4 is 0.25 * x
    assert x + x is 2 * x and 2 * x + 3 * x is 5 * x and 3 * x - 2 * x is x and 2 * x - 2 * x == 0.0
    assert 2 * (3 / y) is 6 / y and 6 / (2 * y) is 3 / y


def test_powers_become_products_roots_and_quotients(xyz):
    x = xyz[0]
    assert x**2 is x * x and x**3 is (x * x) * x and x**4 is (x * x) * (x * x)
    assert x**0.5 is np.sqrt(x) and x**-1 is 1 / x and x**-2 is 1 / (x * x) and x**-0.5 is 1 / np.sqrt(x)
    assert (x**2.5).operation == "power" and (2.0**x).operation == "power"


def test_selections_with_a_known_outcome_vanish(xyz):
    x, y, _ = xyz
    assert where(x < x, x, y) is y and where(x <= x, x, y) is x and where(x < y, x, x) is x
    assert where(x < y, 2.0, 2.0) == 2.0 and where(True, x, y) is x
    assert where(~(x < y), x, y) is where(x < y, y, x) and where(x > y, x, y) is where(y < x, x, y)


# NumPy


def test_matrix_products_fold_the_zeros_of_their_constants(xyz):
    assert all(a is b for a, b in zip(np.eye(3) @ xyz, xyz, strict=True))
    turned = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]) @ xyz
    assert turned[0] is -xyz[1] and turned[1] is xyz[0]
    assert isinstance(turned, ExpressionArray)


def test_plain_numbers_and_expressions_mix_in_one_array(xyz):
    array = np.array([0.0, xyz[0]])
    assert array.dtype == object
    assert (array * 2.0)[1] is 2.0 * xyz[0]
    mixed = np.stack([0.0, xyz[0]])
    assert np.cos(mixed)[0] == 1.0 and np.cos(mixed)[1] is np.cos(xyz[0])
    assert np.concatenate([xyz, np.zeros(2)])[4] == 0.0


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_number_agree_with_numpy(name):
    function = getattr(np, name)
    for x in (0.3, 0.9):
        scalar, entries = record(lambda x: (function(x), function(np.stack([x, 0.5]))), {"x": ()}).evaluate(x)
        assert scalar == pytest.approx(function(x), rel=1e-15)
        assert entries == pytest.approx(function(np.array([x, 0.5])), rel=1e-15)


OUTSIDE = (
    *(("sinh", (-1e3,)), ("sinh", (1e3,)), ("exp", (1e3,)), ("sin", (np.inf,)), ("log", (0.0,)), ("log", (-1.0,))),
    *(("floor", (-np.inf,)), ("floor", (np.nan,))),
    *(("power", (-10.0, 309.0)), ("power", (0.0, -1.0)), ("power", (-1.0, 0.5))),
)


@pytest.mark.parametrize("name, values", OUTSIDE)
def test_values_outside_of_the_domain_of_a_function_are_those_of_numpy(name, values):
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(evaluate(name, *values), getattr(np, name)(*values))


def test_infinite_powers_can_be_traced():
    graph = record(lambda x: (x**np.inf, x**-np.inf), {"x": ()})
    assert graph.evaluate(0.5) == (0.0, np.inf) and graph.evaluate(2.0) == (np.inf, 0.0)


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_numbers_agree_with_numpy(name):
    function = getattr(np, name)

    def traced(x, y):
        return function(x, y), function(x, 0.7), function(1.3, y), function(np.stack([x, y]), np.stack([y, 2.0]))

    graph = record(traced, {"x": (), "y": ()})
    for x, y in ((0.5, 2.0), (2.5, -2.0)):
        for got, wanted in zip(graph.evaluate(x, y), traced(np.float64(x), np.float64(y)), strict=True):
            assert got == pytest.approx(wanted, rel=1e-14)


def test_usual_array_functions_agree_with_numpy():
    def traced(x):
        return (
            np.clip(x, -0.5, 0.5),
            np.sign(x),
            np.abs(x),
            np.linalg.norm(x),
            np.max(x),
            x.min(),
            np.where(x > 0.0, x, -2.0 * x),
            np.cross(x, [1.0, 2.0, 3.0]),
            np.outer(x, x),
            np.einsum("i,j->ij", x, x),
            np.sum(x * x),
            np.mean(x),
            np.diag(x),
            np.dot(x, x),
            np.deg2rad(x),
            (x > 0.0) * 2.0,
            np.hstack([x[0], 1.0, x[1:]]),
        )

    x = np.array([0.3, -0.7, 0.2])
    for got, wanted in zip(record(traced, {"x": (3,)}).evaluate(x), traced(x), strict=True):
        assert got == pytest.approx(np.asarray(wanted, dtype=float), rel=1e-15, abs=1e-17)


ARRAY_FUNCTIONS = {
    "interp": lambda x: np.interp(x, [-1.0, 0.0, 2.0, 2.5], [3.0, 1.0, -1.0, 4.0]),
    "interp beyond the ends": lambda x: np.interp(x, [-0.4, 0.0, 0.5], [3.0, 1.0, -1.0], left=7.0, right=-7.0),
    "interp of traced points": lambda x: np.interp(0.3, np.sort(x[0]), x[1]),
    "select": lambda x: np.select([x > 1.0, x < 0.0], [x, -2.0 * x], 5.0),
    "piecewise": lambda x: np.piecewise(x, [x < 0.0, x >= 0.4], [lambda y: -y, 3.0, lambda y: y * y]),
    "vectorize": lambda x: np.vectorize(lambda a, b: where(a < b, a, b * b), otypes=[object])(x, 0.4) * 1.0,
    "round": lambda x: np.stack(
        [round(x[0, 0]), round(x[0, 1], 1), *np.round(x[1], 1), *np.around(x[1]), *x[0].round()]
    ),
    "math": lambda x: np.stack([math.floor(x[0, 0]), math.ceil(x[0, 1]), math.trunc(x[0, 2]), *divmod(x[1, 1], 0.1)]),
    "max of all": lambda x: np.stack(
        [np.max(x), np.amin(x), np.ptp(x), x.max(), 1.0 * np.any(x > 2.0), 1.0 * np.all(x > -3.0)]
    ),
    "sort": lambda x: np.stack([*np.sort(x, axis=0).ravel(), *np.sort(x).ravel(), *np.sort(x, axis=None)]),
    "median": lambda x: np.stack([np.median(x), *np.median(x, axis=0), *np.quantile(x[0], [0.0, 0.3, 1.0])]),
    "percentile": lambda x: np.percentile(x, 30.0, axis=1),
    "nan sums": lambda x: np.stack(
        [f(where(x > 1.0, np.nan, x)) for f in (np.nansum, np.nanprod, np.nanmax, np.nanmin, np.nanmean, np.nanstd)]
    ),
    "nan sums along an axis": lambda x: np.stack(
        [f(where(x > 1.0, np.nan, x), axis=1) for f in (np.nansum, np.nanmean, np.nanvar, np.nanmax)]
    ),
    "nan cumulative": lambda x: np.stack([f(where(x > 1.0, np.nan, x)) for f in (np.nancumsum, np.nancumprod)]),
    "nan_to_num": lambda x: np.nan_to_num(where(x > 1.0, np.nan, where(x < 0.0, np.inf, x)), nan=2.0, posinf=8.0),
    "isclose": lambda x: 1.0 * np.isclose(x, x[::-1], atol=0.8),
    "count_nonzero": lambda x: np.stack([np.count_nonzero(x), *np.count_nonzero(x, axis=0)]) * 1.0,
    "digitize": lambda x: np.digitize(x, [0.0, 0.4, 1.0]) * 1.0,
    "searchsorted": lambda x: np.searchsorted([-0.5, 0.4, 1.0], x, side="right") * 1.0,
    "linspace": lambda x: np.linspace(x[0, 0], x[1, 1], 5),
    "linspace of a row and a number": lambda x: np.linspace(x[0], 2.0, 3),
    "linspace of a number and a row": lambda x: np.linspace(2.0, x[0], 3),
    "linspace of no points": lambda x: np.concatenate([x[:1], np.linspace(x[0], 2.0, 0)]),
    "linspace without the end": lambda x: np.linspace(x[0], 2.0, 4, endpoint=False),
    "logical_xor": lambda x: 1.0 * np.logical_xor(x > 0.0, x < 0.5),
}


@pytest.mark.parametrize("name", ARRAY_FUNCTIONS)
def test_functions_of_arrays_agree_with_numpy(name):
    """The sums of a few terms, in another order than NumPy's."""
    function = ARRAY_FUNCTIONS[name]
    for x in ([[0.3, -0.7, 2.5], [0.4, 1.0, -0.5]], [[-1.0, 0.0, 0.5], [2.25, 0.05, -2.35]]):
        x = np.array(x)
        got = record(function, {"x": (2, 3)}).evaluate(x)
        assert np.asarray(got) == pytest.approx(np.asarray(function(x), float), rel=1e-14, abs=1e-15)


def test_in_place_arithmetic_of_traced_arrays():
    def traced(x):
        y = 1.0 * x
        y += 2.0 * x
        y[0] *= 3.0
        return y

    assert record(traced, {"x": (2,)}).evaluate([1.0, 2.0]) == pytest.approx([9.0, 6.0])


def test_where_works_on_numbers_arrays_and_traced_values():
    assert where(True, 1.0, 2.0) == 1.0 and isinstance(where(1.0 > 2.0, 1.0, 2.0), float)
    assert where(np.array([True, False]), 1.0, [5.0, 6.0]) == pytest.approx([1.0, 6.0])

    def clamp(x):
        return where((x < -1.0) | (x > 1.0), 0.0, where((x > 0.0) & ~(x > 0.5), x, 10.0 * x))

    x = np.array([-2.0, -0.5, 0.3, 0.8, 7.0])
    assert record(clamp, {"x": (5,)}).evaluate(x) == pytest.approx(clamp(x))


def test_equal_operations_are_counted_once():
    counts = count(lambda x: (np.sin(x[0]) * x[1], x[1] * np.sin(x[0]) + 1.0), x=(2,))
    assert (counts.trigonometric, counts.multiplications, counts.additions) == (1, 1, 1)


# What cannot be traced


def _traced(function, **shapes):
    with pytest.raises(TraceError) as caught:
        record(function, shapes or {"x": (3,)})
    return str(caught.value)


@pytest.mark.parametrize(
    "branch",
    [
        lambda x: x[0] if x[0] > 0 else -x[0],
        lambda x: max(x[0], 0.0),
        lambda x: x[0] > 0 and x[1],
        lambda x: np.array([x[0], 1.0]) > 0.0,
        lambda x: x[0] in [1.0, 2.0],
        lambda x: sorted(x),
    ],
)
def test_branching_says_to_use_where(branch):
    assert "legged.where(condition, a, b)" in _traced(branch)


def test_losing_the_trace_says_what_to_do_instead():
    assert "np.sin" in _traced(lambda x: math.sin(x[0]))
    assert "cannot become a plain number" in _traced(lambda x: float(x[0]))
    assert "dtype=float" in _traced(lambda x: np.asarray(x, dtype=float))
    assert "np.floor" in _traced(lambda x: int(x[0]))
    assert "legged.where" in _traced(lambda x: [1, 2][x[0]])
    assert "loop over the array" in _traced(lambda x: list(x[0]))

    def assign(x):
        result = np.zeros(3)
        result[0] = x[0]
        return result

    assert "np.stack" in _traced(assign)


@pytest.mark.parametrize("name", ["matmul", "vecdot", "matvec", "vecmat"])
def test_products_of_arrays_refuse_numbers_as_numpy_does(name):
    function = getattr(np, name, np.matmul)  # before NumPy 2.2
    with pytest.raises(ValueError, match="does not have enough dimensions"):
        record(lambda x: function(x, x), {"x": ()})


def test_untraceable_functions_are_named():
    assert "np.nextafter cannot be traced" in _traced(lambda x: np.nextafter(x, 1.0))
    assert "np.linalg" in _traced(lambda x: np.linalg.inv(np.outer(x, x)))
    assert "np.stack" in _traced(lambda x: np.cos(np.array([0.0, x[0]])))


@pytest.mark.parametrize("name", sorted({*dir(np), *(f"linalg.{name}" for name in dir(np.linalg))}))
def test_every_function_of_numpy_is_traced_or_explains_itself(name):
    """Each function is called in a few ways; of those that plain NumPy computes, the first is traced."""
    function = attrgetter(name)(np)
    if name.split(".")[-1].startswith("_") or not callable(function) or isinstance(function, type) or name in OTHERS:
        return
    x = np.array([[1.25, -2.5, 3.0], [0.5, 4.0, -1.0], [2.0, 1.0, 7.0]])
    for call in CALLS:
        try:
            wanted = call(function, x)
            numbers = [np.asarray(y, float) for y in (wanted if isinstance(wanted, tuple | list) else (wanted,))]
        except Exception:
            continue
        if wanted is None:
            continue
        try:
            got = record(partial(call, function), {"x": x.shape}).evaluate(x)
        except TraceError as error:
            assert "legged." in str(error) or "np." in str(error)
        else:
            got = got if isinstance(got, tuple | list) else (got,)
            for a, b in zip(got, numbers, strict=True):
                assert np.asarray(a, float) == pytest.approx(b, rel=1e-13, nan_ok=True)
        return


CALLS = (
    lambda f, x: f(x),
    lambda f, x: f(x[0], x[1]),
    lambda f, x: f(x[0], x[1], x[2]),
    lambda f, x: f(x, 2),
    lambda f, x: f(x[0], 2),
    lambda f, x: f([x[0], x[1]]),
    lambda f, x: f(x, 0, 1),
    lambda f, x: f(x[0], (3, 1)),
    lambda f, x: f(x[0], np.arange(3.0), x[1]),
    lambda f, x: f([x[0] > 1.0, x[0] < 0.0], [x[0], x[1]]),
    lambda f, x: f("ij,j->i", x, x[0]),
    lambda f, x: f(lambda row: row.sum(), 0, x),
    lambda f, x: f(x[0], -1, 1),
)
OTHERS = frozenset(
    {
        *("save", "savetxt", "savez", "savez_compressed", "load", "loadtxt", "genfromtxt"),
        *("fromfile", "fromiter", "frombuffer", "fromstring", "from_dlpack", "info"),
        *("show_config", "show_runtime", "test", "linalg.test", "get_include", "is_busday"),
        *("busday_count", "busday_offset", "empty_like", "empty", "mintypecode", "common_type"),
        *("isfortran", "may_share_memory", "shares_memory", "searchsorted"),
    }
)
"""Functions of files, memory, dates and types of numbers, not of their values; one that needs sorted numbers."""


def test_results_that_are_no_numbers_are_refused():
    assert "None" in _traced(lambda x: None)
    assert "result[1]" in _traced(lambda x: (x, None))
    assert "'a'" in _traced(lambda x: np.array([x[0], "a"], dtype=object))


def test_traced_values_cannot_be_kept_between_tracings():
    kept: list[Expression] = []

    def keep(x):
        kept.append(x[0])
        return x

    record(keep, {"x": (3,)})
    assert "one tracing was used in another" in _traced(lambda x: x + kept[0])


def test_dividing_by_a_constant_zero_is_refused():
    assert "constant zero" in _traced(lambda x: x / 0.0)
