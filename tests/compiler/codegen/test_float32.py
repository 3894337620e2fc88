"""Kernels of float32 numbers: accuracy of elementary functions, agreement with float64, arguments and results."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import legged
import robots
from legged.compiler import LookupTable, compile
from legged.compiler.codegen.element_type import FLOAT32, FLOAT64, ElementType, PrecisionError
from legged.compiler.codegen.formulas import CONSTANTS
from legged.compiler.ir import repeat_while, where
from legged.errors import NotFiniteError, ShapeError
from tests.compiler.codegen.test_targets import AVAILABLE, functions, states

EPSILON = FLOAT32.epsilon
N = 20_000


def units(got: np.ndarray, wanted: np.ndarray) -> float:
    """Return the largest error in units in the last place of float32."""
    size = np.spacing(np.maximum(np.abs(wanted), FLOAT32.in_range(1e-300)).astype(np.float32))
    return float(np.max(np.abs(got.astype(float) - wanted) / size))


def numbers(low: float, high: float, count: int = N) -> np.ndarray:
    """Return floats uniformly between two bounds, and floats of all magnitudes, uniformly among their bit patterns."""
    rng = np.random.default_rng(5)
    even = rng.uniform(low, high, count).astype(np.float32)
    least, most = (np.float32(x).view(np.uint32) for x in (FLOAT32.in_range(1e-300), max(abs(low), abs(high))))
    steps = rng.integers(least, most, count, dtype=np.uint32).view(np.float32)
    every = np.concatenate([even, steps, -steps])
    return every[(every >= low) & (every <= high)]


RANGES = [
    (np.sin, -1e1, 1e1),
    (np.cos, -1e1, 1e1),
    (np.sin, -CONSTANTS[FLOAT32].max_angle, CONSTANTS[FLOAT32].max_angle),
    (np.cos, -CONSTANTS[FLOAT32].max_angle, CONSTANTS[FLOAT32].max_angle),
    (np.sin, -1e30, 1e30),
    (np.exp, -103.0, 88.0),
    (np.exp, -1.0, 1.0),
    (np.arctan, -3.0, 3.0),
    (np.arctan, -1e30, 1e30),
    (np.sqrt, 0.0, 1e3),
    (np.log, 1e-30, 1e10),
    (np.tan, -10.0, 10.0),
    (np.arcsin, -1.0, 1.0),
    (np.arccos, -1.0, 1.0),
    (np.sinh, -20.0, 20.0),
    (np.cosh, -20.0, 20.0),
    (np.sinh, -88.5, 88.5),
    (np.cosh, -88.5, 88.5),
    (np.tanh, -20.0, 20.0),
    (np.log, 1e-40, 1e38),
    (np.log, 0.5, 2.0),
]


@pytest.mark.parametrize(("function", "low", "high"), RANGES)
def test_functions_err_by_less_than_two_units_in_the_last_place(function, low, high):
    x = numbers(low, high)
    got = compile(lambda x: function(x), x=(), dtype="float32")(x)
    assert got.dtype == np.float32
    assert units(got, function(x.astype(float))) < 2.0


@pytest.mark.slow
@pytest.mark.parametrize("target", AVAILABLE)
@pytest.mark.parametrize(("function", "low", "high"), RANGES)
def test_functions_err_by_less_than_two_units_in_a_dense_sample(function, low, high, target):
    x = numbers(low, high, 3_000_000)
    got = compile(lambda x: function(x), x=(), dtype="float32", target=target)(x)
    assert units(got, function(x.astype(float))) < 2.0


@pytest.mark.parametrize("target", AVAILABLE)
def test_arctan2_in_all_directions(target):
    rng = np.random.default_rng(3)
    angle, size = rng.uniform(-np.pi, np.pi, N), np.exp(rng.uniform(-30.0, 30.0, N))
    kernel = compile(lambda y, x: np.arctan2(y, x), y=(), x=(), dtype="float32", target=target)
    for y, x in ((size * np.sin(angle), size * np.cos(angle)), (numbers(-1.0, 1.0), numbers(-1.0, 1.0)[::-1])):
        y, x = (np.float32(part) for part in (y, x))
        assert units(kernel(y, x), np.arctan2(y.astype(float), x.astype(float))) < 2.0


def test_exponentials_overflow_and_underflow_at_the_limits_of_floats():
    kernel = compile(lambda x: 1.0 / np.exp(x), x=(), dtype="float32")  # the reciprocal of infinity is finite
    assert kernel(89.0) == 0.0
    assert kernel(88.7) > 0.0
    kernel = compile(lambda x: np.exp(x), x=(), dtype="float32")
    assert kernel(-104.0) == kernel(-200.0) == 0.0
    assert kernel(-103.0) == np.float32(1e-45)
    assert kernel(0.0) == 1.0


@pytest.mark.parametrize("seed", [0, 3])
def test_dynamics_agree_with_those_of_doubles(seed):
    check_dynamics(seed, (legged.forward_dynamics, legged.inverse_dynamics, legged.inertia_matrix, positions))


@pytest.mark.parametrize("target", AVAILABLE)
def test_dynamics_agree_on_all_targets(target):
    check_dynamics(1, (legged.forward_dynamics,), target)


def check_dynamics(seed, functions, target=None):
    """Compare results relative to the largest one.

    The condition of the inertia matrix, up to 1e4 here, amplifies the rounding errors of forward dynamics.
    """
    robot = legged.random_tree(seed, links=5)
    q, v, tau = states(robot, 33, seed)
    for function in functions:
        given = (q, v, tau) if function in (legged.forward_dynamics, legged.inverse_dynamics) else (q,)
        wanted = compile(function, robot)(*given)
        got = compile(function, robot, dtype="float32", target=target)(*given)
        limit = 1e-4 if function is legged.forward_dynamics else 20.0 * EPSILON
        np.testing.assert_allclose(got, wanted, rtol=0.0, atol=limit * abs(wanted).max())


def positions(robot, q):
    """Return the positions of all links."""
    return np.stack([legged.frame_pose(robot, q, link.name).position for link in robot.links])


@pytest.mark.parametrize("count", [1, 2, 3, 15, 16, 17, 40])
def test_a_state_has_the_same_result_in_every_batch(call_path, count):
    kernel = compile(functions, x=3, dtype="float32")
    x = np.random.default_rng(1).normal(size=(count, 3)).astype(np.float32)
    given = np.empty((count, 8), np.float32)
    assert kernel(x, out=given) is given
    np.testing.assert_array_equal(given, kernel(np.vstack([x, x, x]))[:count])
    np.testing.assert_allclose(kernel(x[0]), given[0], rtol=8 * EPSILON)
    wide = np.empty((count, 8))
    np.testing.assert_array_equal(kernel(x, out=wide), given)
    np.testing.assert_array_equal(kernel(x.astype(float)), given)
    np.testing.assert_array_equal(kernel(x.tolist()), given)
    np.testing.assert_array_equal(kernel(np.repeat(x, 2, axis=1)[:, ::2]), given)


def test_numbers_and_scalar_results(call_path):
    kernel = compile(lambda a, b: (a * b, np.stack([a, b])), a=(), b=(), dtype="float32")
    for one, two in ((0.1, 3.0), (np.float64(0.1), np.float32(3.0)), (np.array(0.1, np.float32), 3)):
        product, both = kernel(one, two)
        assert type(product) is np.float32
        assert product == np.float32(0.1) * np.float32(3.0)
        np.testing.assert_array_equal(both, np.float32([0.1, 3.0]))
    product, both = kernel(np.float32([0.1, 0.2]), 2.0)
    assert product.dtype == both.dtype == np.float32
    np.testing.assert_array_equal(product, np.float32([0.1, 0.2]) * 2)


def test_large_results_use_memory_again(call_path):
    kernel = compile(lambda x: 2.0 * x, x=64, dtype="float32")
    x = np.ones((40_000, 64), np.float32)
    first = kernel(x)
    address = first.ctypes.data
    assert first.dtype == np.float32 and (first == 2.0).all()
    del first
    assert kernel(x).ctypes.data == address


def test_constants_are_folded_in_doubles_and_rounded_once():
    kernel = compile(lambda x: x * ((1.0 + 1e-9) - 1.0) * 1e9, x=(), dtype="float32")
    assert kernel(1.0) == np.float32(((1.0 + 1e-9) - 1.0) * 1e9)


def test_constants_beyond_the_range_become_the_nearest_numbers_in_it():
    kernel = compile(lambda x: np.stack([x / (x * x + 1e-300), where(x < 1e300, x, 0.0)]), x=(), dtype="float32")
    np.testing.assert_array_equal(kernel(0.0), [0.0, 0.0])
    assert FLOAT32.in_range(-1e300) == -float(np.finfo(np.float32).max)
    assert FLOAT64.in_range(1e-310) == 1e-310


def test_loops_tables_and_selections():
    table = LookupTable([0.5, 1.25, 2.125])

    def law(x):
        half = repeat_while(lambda s: np.stack([0.5 * s[0], s[0] - 1.0]), np.stack([x, x - 1.0]), 50)[0]
        return np.stack([half, table(x), where((x > 1.0) & ~(x > 2.0), np.floor(x), np.minimum(x, 0.5))])

    x = np.linspace(0.1, 6.0, 37)
    kernel = compile(law, x=(), dtype="float32")
    single = np.array([kernel(a) for a in x])
    np.testing.assert_array_equal(kernel(x), single)
    np.testing.assert_allclose(single, compile(law, x=())(x), rtol=2 * EPSILON)


def test_a_table_that_is_too_long_for_indices_is_refused(monkeypatch):
    monkeypatch.setattr(ElementType, "most_indices", property(lambda element: 4 if element == FLOAT32 else 5))
    table = LookupTable(np.arange(5.0) + 0.37)
    compile(table, x=())
    with pytest.raises(PrecisionError, match="a table of 5 entries needs dtype 'float64'"):
        compile(table, x=(), dtype="float32")


def test_results_that_are_not_finite_and_quaternions_of_another_norm_are_errors(call_path):
    kernel = compile(lambda x: x * x, x=(), dtype="float32")
    with pytest.raises(NotFiniteError, match="no finite answer"):
        kernel(1e30)  # finite as a double
    robot = robots.spatial_quadruped()
    kernel = compile(legged.inertia_matrix, robot, dtype="float32")
    q = states(robot, 200)[0].astype(np.float32)
    assert np.isfinite(kernel(q)).all()  # quaternions that are rounded to floats are accepted
    scaled = q.copy()
    scaled[7, :4] *= 1.0 + 2e-6
    with pytest.raises(ShapeError, match="norm"):
        kernel(scaled)


def test_kernels_keep_their_type(tmp_path):
    robot = robots.chain(2)
    q, v, tau = states(robot, 5)
    for options in ({}, {"parameters": ["link1.mass"]}):
        kernel = compile(legged.inverse_dynamics, robot, dtype=np.float32, **options)
        again = pickle.loads(pickle.dumps(kernel))
        assert kernel.dtype == again.dtype == np.float32
        given = (q, v, tau) if not options else (q, v, tau, [1.5])
        assert again(*given).dtype == np.float32
        np.testing.assert_array_equal(again(*given), kernel(*given))
    source = kernel.to_c(tmp_path / "code").source.read_text()
    assert "double" not in source and "float" in source


def test_other_types_are_named():
    for dtype in ("float16", int, "single precision"):
        with pytest.raises(PrecisionError, match="dtype must be 'float64' or 'float32', got"):
            compile(lambda x: x, x=3, dtype=dtype)
    kernel = compile(lambda dtype, x: dtype * x, dtype=(3,), x=())
    np.testing.assert_array_equal(kernel(np.ones(3), 2.0), [2.0, 2.0, 2.0])
