"""Batches: leading axes, memory layouts and threads, and that the result of a state is independent of all of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import legged
from legged.compiler import Kernel, compile, record
from legged.compiler.cache import machine_code
from legged.compiler.codegen import llvm, selection
from legged.compiler.runtime import batches
from legged.errors import NotFiniteError, ShapeError
from legged.robot.configuration import random_configuration

WIDTH = llvm.vector_width()


def arm(q, v, gain):
    """A function with sines, a division, an input that is also a result, and a constant."""
    s, c = np.sin(q), np.cos(q)
    return np.stack([s[0] * v[1] / (2.0 + c[2]), q[1], np.exp(-gain) * c @ v, 7.0 + 0.0 * gain]), np.sqrt(v @ v + 1.0)


def plain(q, v, gain):
    """The same, in NumPy, state by state."""
    lead = np.broadcast_shapes(q.shape[:-1], v.shape[:-1], np.shape(gain))
    rows = np.broadcast_to(q, (*lead, 3)), np.broadcast_to(v, (*lead, 3)), np.broadcast_to(gain, lead)
    first, second = np.empty((*lead, 4)), np.empty(lead)
    for k in np.ndindex(*lead):
        first[k], second[k] = arm(rows[0][k], rows[1][k], rows[2][k])
    return first, second


@pytest.fixture(scope="module")
def kernel(call_path) -> Kernel:
    """`arm`, compiled."""
    return compile(arm, q=3, v=3, gain=())


@pytest.fixture
def rng() -> np.random.Generator:
    """Random numbers, the same every time."""
    return np.random.default_rng(11)


def check(kernel: Kernel, *arrays: np.ndarray, **options) -> None:
    """Check a call against plain NumPy, to the rounding of a dozen operations."""
    for got, wanted in zip(kernel(*arrays, **options), plain(*arrays), strict=True):
        assert got.shape == wanted.shape
        assert np.allclose(got, wanted, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("count", [0, 1, 2, 3, WIDTH - 1, WIDTH, WIDTH + 1, 3 * WIDTH + 2, 1000])
def test_every_number_of_states_is_right(kernel, rng, count):
    check(kernel, rng.normal(size=(count, 3)), rng.normal(size=(count, 3)), rng.normal(size=count))


@pytest.mark.parametrize(
    "leads",
    [
        ((4, 5), (5,), ()),
        ((4, 1), (1, 5), (4, 5)),
        ((2, 3, 4), (3, 1), (4,)),
        ((6,), (1,), (2, 1)),
        ((), (), (9,)),
        ((0, 4), (4,), ()),
        ((3, 0), (1, 1), (3, 1)),
        ((1, 1, 1), (), ()),
    ],
)
def test_leading_axes_broadcast(kernel, rng, leads):
    check(kernel, *[rng.normal(size=(*lead, *own)) for lead, own in zip(leads, ((3,), (3,), ()), strict=True)])


def test_layouts_of_memory_do_not_matter(kernel, rng):
    q, v, gain = rng.normal(size=(13, 3)), rng.normal(size=(13, 3)), rng.normal(size=13)
    wanted = kernel(q, v, gain)
    wide = np.empty((13, 7))
    wide[:, 2:5] = q
    readonly = v.copy()
    readonly.flags.writeable = False
    odd = np.empty(13 * 24 + 1, dtype=np.uint8)[1:].view(float).reshape(13, 3)
    odd[...] = v
    for q_, v_, gain_ in [
        (wide[:, 2:5], readonly, gain),  # rows apart
        (np.asfortranarray(q), np.asfortranarray(v), gain),  # columns first
        (q[::-1].copy()[::-1], v, np.repeat(gain, 2)[::2]),  # backwards, every other
        (np.repeat(q, 2, axis=1)[:, ::2], odd, gain),  # entries apart; not aligned
        (q.astype(">f8"), v.tolist(), list(gain)),  # the other byte order; lists
    ]:
        for got, expected in zip(kernel(q_, v_, gain_), wanted, strict=True):
            assert np.array_equal(got, expected)
    for one in (
        [x[:, None] for x in (q, v, gain)],
        [np.moveaxis(x.copy().reshape(1, *x.shape), 0, 1) for x in (q, v, gain)],
    ):
        assert one[0].flags.c_contiguous and one[0].strides[1] != 24  # of the axis of length 1, which may be any number
        for got, expected in zip(kernel(*one), wanted, strict=True):
            assert np.array_equal(got[:, 0], expected)
    whole = np.arange(39).reshape(13, 3)
    small = v.astype(np.float32)
    for got, expected in zip(kernel(whole, small, gain), kernel(1.0 * whole, small.astype(float), gain), strict=True):
        assert np.array_equal(got, expected)


def test_a_state_gives_the_same_bits_alone_and_in_any_batch(kernel, rng):
    """For functions without modules that share vectors; `test_slp` has those."""
    q, v, gain = 3.0 * rng.normal(size=(101, 3)), rng.normal(size=(101, 3)), rng.normal(size=101)
    q[50] = 1e7, -2e5, 1e6  # for which sines are the C library's
    together = kernel(q, v, gain)
    for k in range(101):
        for got, wanted in zip(kernel(q[k], v[k], gain[k]), together, strict=True):
            assert np.array_equal(got, wanted[k])
    for first, last in [(0, 3), (5, 6), (7, 100), (49, 51)]:
        part = slice(first, last)
        for got, wanted in zip(kernel(q[part], v[part], gain[part]), together, strict=True):
            assert np.array_equal(got, wanted[part])


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_threads_change_no_bit(monkeypatch, kernel, rng, threads):
    q, v, gain = rng.normal(size=(1003, 3)), rng.normal(size=(1003, 3)), rng.normal(size=1003)
    wanted = kernel(q, v, gain, threads=1)
    for name in ("_THREADED_OPERATIONS", "_CHUNK_OPERATIONS"):
        monkeypatch.setattr(batches, name, 1000)
    for got, expected in zip(kernel(q, v, gain, threads=threads), wanted, strict=True):
        assert np.array_equal(got, expected)
    monkeypatch.setenv("LEGGED_THREADS", str(threads))
    assert batches.default_threads() == threads
    for got, expected in zip(kernel(q, v, gain), wanted, strict=True):
        assert np.array_equal(got, expected)


def test_the_number_of_threads_is_checked(monkeypatch, kernel, rng):
    arrays = rng.normal(size=(5, 3)), rng.normal(size=(5, 3)), 1.0
    for wrong in (0, -1, 2.5, True, "two"):
        with pytest.raises(ValueError, match=r"threads .* must be a positive integer"):
            kernel(*arrays, threads=wrong)
    monkeypatch.setenv("LEGGED_THREADS", "many")
    with pytest.raises(ValueError, match="LEGGED_THREADS"):
        batches.default_threads()


@pytest.mark.parametrize("size", [2, 9, 70])
def test_columns_that_nothing_depends_on_may_hold_anything(rng, size):
    used = [0, size - 1]
    kernel = compile(lambda x, y: np.stack([x[0] * y[1], x[-1] + y[1]]), x=(size,), y=(3,))
    x, y = np.full((3 * WIDTH + 2, size), np.nan), np.full((3 * WIDTH + 2, 3), np.inf)
    x[:, used], y[:, 1] = rng.normal(size=(len(x), 2)), rng.normal(size=len(y))
    assert np.array_equal(kernel(x, y), np.stack([x[:, 0] * y[:, 1], x[:, -1] + y[:, 1]], axis=1))


def test_the_first_state_without_an_answer_is_named_whatever_the_threads(monkeypatch, kernel, rng):
    for name in ("_THREADED_OPERATIONS", "_CHUNK_OPERATIONS"):
        monkeypatch.setattr(batches, name, 1000)
    q, v, gain = rng.normal(size=(7, 100, 3)), rng.normal(size=(100, 3)), rng.normal(size=(7, 1))
    q[3, 41, 1] = np.nan
    q[6, 2, 0] = np.inf
    for threads in (1, 4):
        with pytest.raises(NotFiniteError, match=r"q\[1\] is nan \(state 3, 41 of the batch\)"):
            kernel(q, v, gain, threads=threads)


def test_out_takes_the_results_wherever_it_lies(kernel, rng):
    q, v, gain = rng.normal(size=(21, 3)), rng.normal(size=(21, 3)), rng.normal(size=21)
    wanted = kernel(q, v, gain)
    wide = np.full((21, 9), np.nan)
    for first in (np.empty((21, 4)), wide[:, 2:6], np.empty((4, 21)).T, np.empty((21, 4), dtype=np.float32)):
        out = first, np.empty(42)[::2]
        assert kernel(q, v, gain, out=out) is out
        assert np.array_equal(out[0], wanted[0].astype(first.dtype)) and np.array_equal(out[1], wanted[1])
    assert np.isnan(wide[:, :2]).all() and np.isnan(wide[:, 6:]).all()
    with pytest.raises(ShapeError, match=r"out\[0\] must be an array of shape \(21, 4\), got \(20, 4\)"):
        kernel(q, v, gain, out=(np.empty((20, 4)), np.empty(21)))
    with pytest.raises(ShapeError, match="out must be a tuple of 2 arrays"):
        kernel(q, v, gain, out=np.empty((21, 4)))


def test_out_may_be_an_argument(rng):
    shift = compile(lambda x, y: x[::-1] + y, x=3, y=3)
    store = rng.normal(size=(40, 3))
    x, y = store.copy(), rng.normal(size=(39, 3))
    wanted = shift(x[:-1], y)
    shift(store[:-1], y, out=store[1:])
    assert np.array_equal(store[1:], wanted)


def test_the_code_for_batches_is_compiled_when_it_is_needed(monkeypatch, tmp_path):
    monkeypatch.setenv("LEGGED_CACHE", str(tmp_path))
    machine_code.unload()
    kernel = compile(lambda x: np.sin(x) + 1.25, x=3)
    kernel(np.ones(3))
    kernel(np.ones((1, 3)))
    assert len(list(tmp_path.rglob("*.o"))) == 1
    kernel(np.ones((5, 3)))
    assert len(list(tmp_path.rglob("*.o"))) == 3  # with the loop that all kernels share


CHILD = """
import numpy as np
import os
from legged.compiler.runtime import batches
from legged.compiler import compile
batches._THREADED_OPERATIONS = batches._CHUNK_OPERATIONS = 100
kernel = compile(lambda x: np.sin(x) + 1.25, x=3)
x = np.ones((1000, 3))
kernel(x, threads=3)
child = os.fork()
if child == 0:
    os._exit(0 if (kernel(x, threads=3) == np.sin(1.0) + 1.25).all() else 1)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_has_threads_of_its_own():
    environment = {**os.environ, "PYTHONPATH": str(Path(legged.__file__).parents[1])}
    subprocess.run([sys.executable, "-W", "ignore", "-c", CHILD], env=environment, check=True, timeout=300)


def dynamics(robot: legged.Robot, rng: np.random.Generator, count: int) -> tuple[np.ndarray, ...]:
    """Return states and forces, one a row."""
    q = np.stack([random_configuration(robot, rng) for _ in range(count)])
    return q, rng.normal(size=(count, robot.nv)), rng.normal(size=(count, robot.nv))


@pytest.mark.parametrize("seed", range(4))
def test_dynamics_of_random_robots_equal_plain_numpy(seed):
    rng = np.random.default_rng(seed)
    robot = legged.random_tree(seed=seed, links=4 + 2 * seed)
    q, v, tau = dynamics(robot, rng, WIDTH + 3)
    for function in (legged.inverse_dynamics, legged.forward_dynamics):
        kernel = legged.compile(function, robot)
        together = kernel(q, v, tau)
        wanted = np.stack([function(robot, *state) for state in zip(q, v, tau, strict=True)])
        # an ill-conditioned robot magnifies rounding; the scale is that of the whole answer
        assert np.max(np.abs(together - wanted)) < 1e-12 * np.max(np.abs(wanted))
        alone = np.stack([kernel(*state) for state in zip(q, v, tau, strict=True)])
        assert np.array_equal(alone, together)
        assert np.array_equal(kernel.general(q[0], v[0], tau[0]), together[0])


def test_numbers_that_stand_in_several_entries_come_out_in_all_of_them():
    """Symmetric entries, constants, both zeros, an argument itself; in rows long enough to share and in short ones."""

    def shared(x):
        S = np.outer(x, x)
        plain = np.array([0.0, -0.0, 1.5, *x[:2], 0.0, -0.0, 1.5, *x[:2]], dtype=object)
        return S, S[::-1], plain, np.array([S[0, 1], 0.0], dtype=object), S[1, 0], np.stack([S, S.T])

    x = np.random.default_rng(0).normal(size=(21, 5))
    actual = legged.compile(shared, None, x=5)(x)
    for k, row in enumerate(x):
        for batch, one in zip(actual, shared(row), strict=True):
            one = np.asarray(one, float)
            assert np.array_equal(batch[k], one) and np.array_equal(np.signbit(batch[k]), np.signbit(one))


@pytest.mark.parametrize("size", [1, WIDTH - 1, WIDTH + 1, 5 * WIDTH + 3])
def test_rows_of_constants_arguments_and_both_come_out_whole(rng, size):
    """Nothing is computed, so no neighbor comes last."""

    def given(x):
        constants = np.arange(1.0, size + 1.0)
        mixed = constants.astype(object)
        mixed[::3] = x[::3]
        return constants.astype(object), x, mixed, x[::-1]

    kernel = compile(given, x=size)
    for x in (rng.normal(size=(WIDTH + 3, size)), rng.normal(size=(3 * WIDTH, size))):
        for batch, *one in zip(kernel(x), *map(given, x), strict=True):
            assert np.array_equal(batch, np.array(one, dtype=float))


def test_every_line_of_the_next_block_is_asked_for_once_and_all_along():
    """For arrays of 20, 0 and 9 x 9 numbers per state; eight numbers are a cache line."""

    def program(x, y):
        products = np.outer(x[:9], x[9:18])
        return products @ products + y.sum()

    text = selection.batch_module(record(program, {"x": (20,), "y": (0,)})).splitlines()
    asked = np.flatnonzero(["call void @llvm.prefetch" in line for line in text])
    work = np.flatnonzero(["call" in line and "@llvm.fmuladd" in line for line in text])
    assert len(asked) == -(-WIDTH * 20 // 8) + -(-WIDTH * 81 // 8)
    before = np.searchsorted(work, asked) / len(work)  # share of the work that is done
    assert np.allclose(before, np.linspace(0.0, 1.0, len(asked)), atol=0.2)
