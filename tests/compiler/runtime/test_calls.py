"""Calls of kernels: the built-in entry point and the call through ctypes give the same results and the same errors.

Tests of calls run on both call paths by the fixture `call_path`. `Kernel.general` is the second way on the first path.
"""

from __future__ import annotations

import contextlib
import gc
import re
import sys
import weakref
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest

import legged.arguments
from legged.compiler import Kernel, compile, mechanisms
from legged.compiler.ir.graph import flatten
from legged.errors import ArgumentError, LeggedError, NotFiniteError, ShapeError, SingularError


def law(q, v, gain, grid):
    """Return a matrix computed from a scalar, vectors and a matrix."""
    return np.outer(np.sin(q), v) / gain + grid


@pytest.fixture(scope="module")
def kernel(call_path) -> Kernel:
    """Return `law`, compiled."""
    return compile(law, q=4, v=3, gain=(), grid=(4, 3))


@pytest.fixture
def state() -> tuple[np.ndarray | float, ...]:
    """Return arguments of `law`."""
    rng = np.random.default_rng(2)
    return rng.normal(size=4), rng.normal(size=3), 2.5, rng.normal(size=(4, 3))


def ways(kernel: Kernel) -> list:
    """Return the ways to call a kernel: as usual, and by the general call that the entry point falls back to."""
    return [kernel, kernel.general]


def has_entry_point(kernel: Kernel) -> bool:
    """Return whether calls of a kernel run a built-in function."""
    return type(kernel.__call__) is type(len)


def test_the_call_path_is_the_chosen_one(call_path, kernel):
    assert has_entry_point(kernel) == (call_path == "entry point")


def test_both_ways_give_identical_results(kernel, state):
    q, v, gain, grid = state
    wanted = kernel.general(*state)
    assert wanted == pytest.approx(law(*state), rel=1e-14)
    # arguments that the entry point handles itself, and arguments for the fallback
    for arguments in (
        state,
        (q, v, np.float64(gain), grid),
        (q, v, np.array(gain), grid),
        (list(q), tuple(v), gain, grid.tolist()),
        (np.repeat(q, 2)[::2], v[::-1].copy()[::-1], gain, np.asfortranarray(grid)),
        (q.astype(">f8"), v, gain, grid.astype(np.longdouble)),
        (q.view(np.memmap), np.ma.masked_array(v), gain, grid),
    ):
        for call in ways(kernel):
            assert np.array_equal(call(*arguments), wanted)
            assert np.array_equal(call(*arguments[:2], grid=arguments[3], gain=arguments[2]), wanted)
    whole = kernel(np.ones(4, dtype=int), np.ones(3, dtype=np.uint16), 2, np.zeros((4, 3), dtype=np.int8))
    assert np.array_equal(whole, kernel(np.ones(4), np.ones(3), 2.0, np.zeros((4, 3))))


def test_results_are_new_arrays_that_own_their_data(kernel, state):
    first = kernel(*state)
    assert type(first) is np.ndarray and first.dtype == float and first.shape == (4, 3)
    assert first.flags.owndata and first.flags.writeable and first.flags.c_contiguous and first.base is None
    kept = first.copy()
    kernel(*[2.0 * x for x in state])
    assert np.array_equal(first, kept)
    assert kernel(*[2.0 * x for x in state]) is not first


def test_results_go_to_out_on_both_ways(kernel, state):
    wanted = kernel(*state)
    for call in ways(kernel):
        for out in (np.empty((4, 3)), np.empty((3, 4)).T, np.empty((4, 3), dtype=np.float32), np.empty((4, 6))[:, ::2]):
            assert call(*state, out=out) is out
            assert np.array_equal(out, wanted.astype(out.dtype))
        assert np.array_equal(call(*state, out=None), wanted)
        target = np.empty((4, 3))
        assert call(*state[:3], state[3], out=(target,))[0] is target
        assert np.array_equal(target, wanted)
        with pytest.raises(ShapeError, match=r"^out must be an array of shape \(4, 3\), got \(3, 4\)$"):
            call(*state, out=np.empty((3, 4)))


def bad_arrays(shape: tuple[int, ...]) -> dict[str, tuple[Any, str]]:
    """Return objects that cannot receive results (4, 3) after leading axes, and what the error says about them."""
    frozen = np.empty(shape)
    frozen.flags.writeable = False
    repeated = np.lib.stride_tricks.as_strided(np.empty(3), shape, (0,) * (len(shape) - 1) + (8,))
    return {
        "read-only": (frozen, "is read-only"),
        "repeated": (repeated, "must have memory for each entry"),
        "list": (np.empty(shape).tolist(), "must be a NumPy array, got "),
        **{
            name: (np.empty(shape, name), f"must be an array of floating-point numbers, got {np.dtype(name)} entries")
            for name in ("int64", "uint8", "bool", "complex128", "object", "U8", "S8", "datetime64[s]")
        },
    }


@pytest.mark.parametrize("lead", [(), (1,), (40,)])
@pytest.mark.parametrize("name", bad_arrays((1,)))
def test_arrays_that_cannot_hold_the_results_are_refused(kernel, state, lead, name):
    out, words = bad_arrays((*lead, 4, 3))[name]
    rows = [np.tile(x, (*lead, *[1] * np.ndim(x))) if lead else x for x in state]
    before = repr(out)
    for call in ways(kernel):
        with pytest.raises(ArgumentError, match=f"^out {re.escape(words)}"):
            call(*rows, out=out)
        with pytest.raises(ArgumentError, match=rf"^out\[0\] {re.escape(words)}"):
            call(*rows, out=(out,))
    assert repr(out) == before


BAD_NUMBERS = {
    "text": "two",
    "texts": ["1.0", "2.0", "3.0"],
    "text array": np.array(["1.0", "2.0", "3.0"]),
    "bytes": np.array([b"1", b"2", b"3"]),
    "complex": np.array([1.0, 2.0, 3.0 + 1e-9j]),
    "complex of zero imaginary part": np.ones(3, complex),
    "dates": np.array(["2026-01-01"] * 3, "datetime64[D]"),
    "durations": np.array([1, 2, 3], "timedelta64[s]"),
    "truth values": np.array([True, False, True]),
    "nothing": None,
    "objects": np.array([1.0, None, 2.0], object),
    "texts among objects": np.array([1.0, "2.0", 3.0], object),
    "complex among objects": np.array([1.0, 2.0, 1j], object),
    "ragged": [1.0, [2.0, 3.0], 4.0],
    "ragged rows": [[1.0, 2.0, 3.0], [4.0, 5.0]],
    "dictionary": {"a": 1.0},
    "generator": (x for x in (1.0, 2.0, 3.0)),
    "huge integers": [10**400, 1, 2],
}


@pytest.mark.parametrize("name", BAD_NUMBERS)
def test_arguments_without_real_numbers_are_refused_as_by_all_functions(kernel, state, name):
    q, v, gain, grid = state
    wrong = BAD_NUMBERS[name]
    for position, argument in ((1, "v"), (2, "gain")):
        with pytest.raises(LeggedError) as expected:
            legged.arguments.array(argument, wrong)
        given = [q, v, gain, grid]
        given[position] = wrong
        for call in ways(kernel):
            for rows in (given, [np.tile(q, (3, 1)), *given[1:]]):
                with pytest.raises(LeggedError) as actual:
                    call(*rows)
                assert (type(actual.value), str(actual.value)) == (type(expected.value), str(expected.value))


def test_arguments_of_other_real_types_are_converted(kernel, state):
    q, _, _, grid = state
    wanted = kernel(q, np.array([1.0, 2.0, 3.0]), 2.0, grid)
    given = ([1, 2, 3], (1, 2.0, Fraction(3)), np.array([1, 2, 3], np.int8), np.array([1.0, 2.0, 3.0], object))
    for call in ways(kernel):
        for one in (*given, np.array([1, 2, 3], np.float32), np.array([1.0, 2.0, 3.0], ">f8")):
            for two in (2, np.float32(2.0), np.array(2), Fraction(2)):
                assert np.array_equal(call(q, one, two, grid), wanted)


def test_out_may_be_an_argument(kernel, state):
    q, v, gain, grid = state
    wanted = kernel(*state)
    for call in ways(kernel):
        here = grid.copy()
        assert call(q, v, gain, here, out=here) is here
        assert np.array_equal(here, wanted)


def test_errors_are_the_same_on_both_ways(kernel, state):
    q, v, gain, grid = state
    for call in ways(kernel):
        with pytest.raises(ShapeError, match=r"v must be \(3,\), got shape \(4,\)"):
            call(q, q, gain, grid)
        with pytest.raises(ShapeError, match=r"grid must be \(4, 3\), got shape \(3, 4\)"):
            call(q, v, gain, grid.T)
        with pytest.raises(ShapeError, match="takes 4 arguments"):
            call(q, v, gain)
        with pytest.raises(ShapeError, match="takes 4 arguments"):
            call(*state, q)
        with pytest.raises(SingularError, match="divides by zero"):
            call(q, v, 0.0, grid)
        with pytest.raises(NotFiniteError, match=r"q\[2\] is nan"):
            call(np.array([1.0, 2.0, np.nan, 4.0]), v, gain, grid)
        with pytest.raises(SingularError):
            call(q, v, 0.0, grid, out=np.empty((4, 3)))


def test_calls_leak_neither_references_nor_memory(kernel, state):
    wanted = [sys.getrefcount(x) for x in state[:2]]
    out = np.empty((4, 3))
    references = sys.getrefcount(out)
    for _ in range(1000):
        kernel(*state)
        kernel(*state, out=out)
        with pytest.raises(SingularError):
            kernel(state[0], state[1], 0.0, state[3])
    assert [sys.getrefcount(x) for x in state[:2]] == wanted and sys.getrefcount(out) == references


def test_batches_are_the_same_on_both_ways(kernel):
    rng = np.random.default_rng(8)
    for count in (1, 2, 3, 20, 1000):
        q, v, gain = rng.normal(size=(count, 4)), rng.normal(size=(count, 3)), rng.uniform(1.0, 2.0, count)
        grid = rng.normal(size=(count, 4, 3))
        for arguments in ((q, v, gain, grid), (q[0], v, 2.5, grid), (q, v[0], gain, grid[0]), (q[0], v[0], gain, grid)):
            wanted = kernel.general(*arguments)
            assert np.array_equal(kernel(*arguments), wanted)
            out = np.empty((count, 4, 3))
            references = sys.getrefcount(out)
            assert kernel(*arguments, out=out) is out and np.array_equal(out, wanted)
            assert sys.getrefcount(out) == references
            assert np.array_equal(kernel(*arguments[:3], grid, out=grid.copy()), kernel.general(*arguments[:3], grid))
        here = grid.copy()
        assert np.array_equal(kernel(q, v, gain, here, out=here), kernel.general(q, v, gain, grid))
        gain[count // 2] = 0.0
        with pytest.raises(SingularError, match="divides by zero"):
            kernel(q, v, gain, grid)
    with pytest.raises(ShapeError, match=r"do not broadcast: q \(2,\), v \(3,\)"):
        kernel(rng.normal(size=(2, 4)), rng.normal(size=(3, 3)), 1.0, grid[0])
    with pytest.raises(ShapeError, match=r"out must be an array of shape \(1000, 4, 3\), got \(4, 3\)"):
        kernel(q, v, 1.0, grid, out=np.empty((4, 3)))


class Parts(NamedTuple):
    """Named results."""

    sum: Any
    work: Any


STRUCTURES = {
    "a tuple": lambda x, y: (x + y, np.outer(x, y)),
    "a tuple of one": lambda x, y: (x + y,),
    "numbers among arrays": lambda x, y: (x @ y, x - y, y[0] / x[0]),
    "a number": lambda x, y: x @ y / x[0],
    "numbers only": lambda x, y: (x @ y, x[0] / x[1]),
    "a named tuple": lambda x, y: Parts(x + y, x @ y),
    "a list": lambda x, y: [x + y, x @ y],
    "a dictionary": lambda x, y: {"sum": x + y, "work": x @ y},
    "tuples in tuples": lambda x, y: (Parts(x + y, (x @ y, [y])), {"x": x}),
    "twice the same": lambda x, y: (x + y, x + y),
    "constants": lambda x, y: (np.ones(2), 3.0, x),
    "many arrays": lambda x, y: tuple(x + k for k in range(65)),
}


def alike(a: Any, b: Any) -> bool:
    """Return whether two results have equal types and equal bits, and arrays that own their data."""
    if isinstance(a, dict):
        return type(a) is type(b) and list(a) == list(b) and all(alike(a[key], b[key]) for key in a)
    if isinstance(a, tuple | list):
        return type(a) is type(b) and len(a) == len(b) and all(map(alike, a, b))
    same = type(a) is type(b) and a.dtype == b.dtype == float and a.shape == b.shape and a.tobytes() == b.tobytes()
    return same and (not isinstance(a, np.ndarray) or (b.flags.owndata and b.flags.writeable))


@pytest.mark.usefixtures("call_path")
@pytest.mark.parametrize("structure", STRUCTURES)
def test_results_of_every_structure_are_the_same_on_both_ways(structure):
    kernel = compile(STRUCTURES[structure], x=3, y=3)
    rng = np.random.default_rng(5)
    for lead in ((), (1,), (2,), (3,), (50,), (2, 3)):
        x, y = rng.normal(size=(*lead, 3)), rng.normal(size=(*lead, 3))
        assert alike(kernel.general(x, y), kernel(x, y))
        assert alike(kernel.general(x, y[..., ::-1]), kernel(x, y[..., ::-1]))
        if not lead:
            flat = kernel.graph.evaluate(x, y)
            values = np.hstack([np.ravel(part) for part in flatten(kernel(x, y))[0]])
            assert values == pytest.approx(np.hstack([np.ravel(part) for part in flatten(flat)[0]]), rel=1e-13)


@pytest.mark.usefixtures("call_path")
@pytest.mark.parametrize("lead", [(), (40,)])
def test_several_results_go_to_out_on_both_ways(lead):
    kernel = compile(STRUCTURES["numbers among arrays"], x=3, y=3)
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(*lead, 3)), rng.normal(size=(*lead, 3))
    wanted = kernel(x, y)
    for call in ways(kernel):
        out = tuple(np.full((*lead, *shape), np.nan) for shape in kernel.graph.outputs)
        assert call(x, y, out=out) is out and all(map(np.array_equal, out, wanted))
        odd = (np.empty(lead, dtype=np.float32), np.empty((*lead, 6))[..., ::2], np.empty(lead))
        assert call(x, y, out=odd) is odd and np.array_equal(odd[1], wanted[1])
        here = (np.empty(lead), x.copy(), np.empty(lead))
        assert call(here[1], y, out=here) is here and all(map(np.array_equal, here, wanted))
        with pytest.raises(ShapeError, match="out must be a tuple of 3 arrays"):
            call(x, y, out=out[:2])
        with pytest.raises(ShapeError, match=r"^out\[1\] must be an array of shape .*3,?\), got"):
            call(x, y, out=(out[0], np.empty((*lead, 4)), out[2]))


@pytest.mark.usefixtures("call_path")
@pytest.mark.parametrize("lead", [(), (2,), (40,)])
@pytest.mark.parametrize("results", [2, 8])
def test_results_that_share_memory_are_refused(lead, results):
    kernel = compile(lambda x: tuple(np.array([k, x[0], x[1]]) for k in range(results)), x=2)
    x = np.random.default_rng(6).normal(size=(*lead, 2))
    kernel(np.ones((5, 2)))  # loads the code for batches
    n = 3 * max(lead, default=1)
    for shift in (0, 1, n - 1):
        memory = np.zeros(2 * n)
        out = [np.empty((*lead, 3)) for _ in range(results)]
        out[0], out[-1] = memory[:n].reshape(*lead, 3), memory[shift : shift + n].reshape(*lead, 3)
        for call in ways(kernel):
            for given in (out, out[::-1]):
                with pytest.raises(ArgumentError, match=rf"^out\[0\] and out\[{results - 1}\] share memory; "):
                    call(x, out=tuple(given))
        assert not memory.any()
    memory = np.zeros((results, *lead, 3))
    for call in ways(kernel):
        memory[:] = np.nan
        assert call(x, out=tuple(memory))[0] is not None
        assert np.array_equal(memory, np.array(kernel(x)))
    apart = np.zeros((*lead, 2 * results, 3))
    interleaved = tuple(apart[..., k, :] for k in range(results))
    assert kernel(x, out=interleaved) is interleaved and np.array_equal(interleaved, kernel(x))


@pytest.mark.usefixtures("call_path")
@pytest.mark.parametrize("structure", ["a tuple", "a number", "a named tuple", "numbers among arrays"])
def test_calls_with_several_results_leak_nothing(structure):
    kernel = compile(STRUCTURES[structure], x=3, y=3)
    x, y, wrong = np.ones(3), np.ones(3), np.array([0.0, 0.0, 1.0])
    counts = []
    out = tuple(np.empty(shape) for shape in kernel.graph.outputs)
    out = out[0] if kernel.graph.is_bare else out
    for _ in range(3):
        for _ in range(100):
            kernel(x, y)
            kernel(x, y, out=out)
            kernel(np.ones((5, 3)), y)
            with contextlib.suppress(SingularError):
                kernel(wrong, wrong)
        gc.collect()
        counts.append((sys.getrefcount(None), sys.getrefcount(x), sys.getrefcount(out), sys.getallocatedblocks()))
    spread = np.ptp(np.array(counts[1:], dtype=float), axis=0)
    assert spread[1:3].max() == 0 and spread.max() < 100  # a leak would change a count by one per call


@pytest.mark.usefixtures("call_path")
def test_unused_kernels_are_garbage_collected():
    kernel = compile(lambda x: x + 1.5, x=2)
    reference, call = weakref.ref(kernel), kernel.__call__
    del kernel
    gc.collect()
    assert np.array_equal(call(np.ones(2)), [2.5, 2.5])  # the function holds a reference to its machine code
    del call
    gc.collect()
    assert reference() is None


def test_both_call_paths_give_the_same_bits(state):
    """The calls have one state, several states, and scalars among the results."""
    rng = np.random.default_rng(7)
    many = rng.normal(size=(3, 4)), rng.normal(size=(3, 3)), rng.uniform(1.0, 2.0, 3), rng.normal(size=(3, 4, 3))
    x, y = rng.normal(size=(2, 3))
    outputs = []
    for forced in (False, True):
        with mechanisms.without(mechanisms.ENTRY_POINT) if forced else contextlib.nullcontext():
            kernels = (
                compile(law, q=4, v=3, gain=(), grid=(4, 3)),
                compile(STRUCTURES["numbers among arrays"], x=3, y=3),
            )
        outputs.append((kernels[0](*state), kernels[0](*many), kernels[1](x, y)))
    assert alike(*outputs)


@pytest.mark.usefixtures("call_path")
def test_dynamics_of_a_robot_on_both_ways():
    rng = np.random.default_rng(0)
    robot = legged.random_tree(seed=1, links=8)
    q, v, tau = robot.neutral(), rng.normal(size=robot.nv), rng.normal(size=robot.nv)
    kernel = legged.compile(legged.forward_dynamics, robot)
    assert np.array_equal(kernel(q, v, tau), kernel.general(q, v, tau))
    with pytest.raises(ShapeError, match=rf"v must be \({robot.nv},\), one entry per degree of freedom, got shape"):
        kernel(q, v[:-1], tau)
