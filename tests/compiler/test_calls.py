"""Single calls: the built-in function and the way through ctypes give the same results and the same errors."""

from __future__ import annotations

import contextlib
import gc
import os
import subprocess
import sys
import weakref
from typing import Any, NamedTuple

import numpy as np
import pytest

import legged
from legged.compiler import Kernel, compile
from legged.compiler.codegen.cpython import builtin, layout
from legged.compiler.ir.pytree import flatten
from legged.errors import NotFiniteError, ShapeError, SingularError


def law(q, v, gain, grid):
    """An array of two axes from arrays of one, two and none."""
    return np.outer(np.sin(q), v) / gain + grid


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    """`law`, compiled."""
    return compile(law, q=4, v=3, gain=(), grid=(4, 3))


@pytest.fixture
def state() -> tuple[np.ndarray | float, ...]:
    """Its arguments."""
    rng = np.random.default_rng(2)
    return rng.normal(size=4), rng.normal(size=3), 2.5, rng.normal(size=(4, 3))


def ways(kernel: Kernel) -> list:
    """Return every way to call a kernel."""
    return [kernel, kernel.general]


def test_this_python_makes_built_in_functions(kernel):
    if sys.implementation.name == "cpython" and sys.maxsize > 2**32:
        assert builtin.available() and type(kernel.__call__) is type(len)


def test_both_ways_give_the_same_bits(kernel, state):
    q, v, gain, grid = state
    wanted = kernel.general(*state)
    assert wanted == pytest.approx(law(*state), rel=1e-14)
    # what the built-in function does itself, and what it hands on
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
    whole = kernel(np.ones(4, dtype=int), np.ones(3, dtype=bool), 2, np.zeros((4, 3), dtype=np.int8))
    assert np.array_equal(whole, kernel(np.ones(4), np.ones(3), 2.0, np.zeros((4, 3))))


def test_results_are_ordinary_arrays_of_the_callers_own(kernel, state):
    first = kernel(*state)
    assert type(first) is np.ndarray and first.dtype == float and first.shape == (4, 3)
    assert first.flags.owndata and first.flags.writeable and first.flags.c_contiguous and first.base is None
    kept = first.copy()
    kernel(*[2.0 * x for x in state])
    assert np.array_equal(first, kept)
    assert kernel(*[2.0 * x for x in state]) is not first


def test_out_takes_the_results_on_both_ways(kernel, state):
    wanted = kernel(*state)
    for call in ways(kernel):
        for out in (np.empty((4, 3)), np.empty((3, 4)).T, np.empty((4, 3), dtype=np.float32), np.empty((4, 6))[:, ::2]):
            assert call(*state, out=out) is out
            assert np.array_equal(out, wanted.astype(out.dtype))
        assert np.array_equal(call(*state, out=None), wanted)
        target = np.empty((4, 3))
        assert call(*state[:3], state[3], out=(target,))[0] is target
        assert np.array_equal(target, wanted)
        frozen = np.empty((4, 3))
        frozen.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            call(*state, out=frozen)
        with pytest.raises(ShapeError, match=r"out must be an array of shape \(4, 3\)"):
            call(*state, out=np.empty((3, 4)))


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
        with pytest.raises(ShapeError, match="gain must hold real numbers"):
            call(q, v, "two", grid)
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
    """Several results by name."""

    sum: Any
    work: Any


FORMS = {
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
    "as many as there may be": lambda x, y: tuple(x + k for k in range(64)),
    "more than that": lambda x, y: tuple(x + k for k in range(65)),
}


def alike(a: Any, b: Any) -> bool:
    """Return whether two results are of the same classes and the same bits, all arrays fresh."""
    if isinstance(a, dict):
        return type(a) is type(b) and list(a) == list(b) and all(alike(a[key], b[key]) for key in a)
    if isinstance(a, tuple | list):
        return type(a) is type(b) and len(a) == len(b) and all(map(alike, a, b))
    same = type(a) is type(b) and a.dtype == b.dtype == float and a.shape == b.shape and a.tobytes() == b.tobytes()
    return same and (not isinstance(a, np.ndarray) or (b.flags.owndata and b.flags.writeable))


@pytest.mark.parametrize("form", FORMS)
def test_results_of_every_form_are_the_same_on_both_ways(form):
    kernel = compile(FORMS[form], x=3, y=3)
    assert builtin.suits(kernel.graph) == (form != "more than that")
    rng = np.random.default_rng(5)
    for lead in ((), (1,), (2,), (3,), (50,), (2, 3)):
        x, y = rng.normal(size=(*lead, 3)), rng.normal(size=(*lead, 3))
        assert alike(kernel.general(x, y), kernel(x, y))
        assert alike(kernel.general(x, y[..., ::-1]), kernel(x, y[..., ::-1]))
        if not lead:
            flat = kernel.graph.evaluate(x, y)
            found = np.hstack([np.ravel(part) for part in flatten(kernel(x, y))[0]])
            assert found == pytest.approx(np.hstack([np.ravel(part) for part in flatten(flat)[0]]), rel=1e-13)


@pytest.mark.parametrize("lead", [(), (40,)])
def test_out_takes_several_results_on_both_ways(lead):
    kernel = compile(FORMS["numbers among arrays"], x=3, y=3)
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
        with pytest.raises(ShapeError, match=r"out must be an array of shape .*3,?\), got"):
            call(x, y, out=(out[0], np.empty((*lead, 4)), out[2]))


@pytest.mark.parametrize("form", ["a tuple", "a number", "a named tuple", "numbers among arrays"])
def test_calls_with_several_results_leak_nothing(form):
    kernel = compile(FORMS[form], x=3, y=3)
    x, y, wrong = np.ones(3), np.ones(3), np.array([0.0, 0.0, 1.0])
    counts = []
    out = tuple(np.empty(shape) for shape in kernel.graph.outputs)
    out = out[0] if kernel.graph.is_bare else out
    for _ in range(3):
        for _ in range(300):
            kernel(x, y)
            kernel(x, y, out=out)
            kernel(np.ones((5, 3)), y)
            with contextlib.suppress(SingularError):
                kernel(wrong, wrong)
        gc.collect()
        counts.append((sys.getrefcount(None), sys.getrefcount(x), sys.getrefcount(out), sys.getallocatedblocks()))
    spread = np.ptp(np.array(counts[1:], dtype=float), axis=0)
    assert spread[1:3].max() == 0 and spread.max() < 300  # a leak would be of one a call


def test_kernels_can_be_forgotten():
    kernel = compile(lambda x: x + 1.5, x=2)
    reference, call = weakref.ref(kernel), kernel.__call__
    del kernel
    gc.collect()
    assert np.array_equal(call(np.ones(2)), [2.5, 2.5])  # the function keeps what it needs
    del call
    gc.collect()
    assert reference() is None


def test_without_built_in_functions_everything_still_works(monkeypatch, state, kernel):
    monkeypatch.setattr(builtin, "available", lambda: False)
    plain = compile(law, q=4, v=3, gain=(), grid=(4, 3))
    assert type(plain) is Kernel and not isinstance(plain.__call__, type(len))
    assert np.array_equal(plain(*state), kernel(*state))


def test_a_python_that_is_built_otherwise_is_noticed(monkeypatch):
    builtin.available.cache_clear()
    monkeypatch.setattr(builtin, "_VERSIONS", ())
    assert not builtin.available()
    monkeypatch.undo()
    builtin.available.cache_clear()
    monkeypatch.setattr(layout, "DESCR", layout.DATA)
    assert not builtin.available()
    monkeypatch.undo()
    builtin.available.cache_clear()
    assert builtin.available() or sys.implementation.name != "cpython"


def test_dynamics_of_a_robot_on_both_ways():
    rng = np.random.default_rng(0)
    robot = legged.random_tree(seed=1, links=8)
    q, v, tau = robot.neutral(), rng.normal(size=robot.nv), rng.normal(size=robot.nv)
    kernel = legged.compile(legged.forward_dynamics, robot)
    assert np.array_equal(kernel(q, v, tau), kernel.general(q, v, tau))
    with pytest.raises(ShapeError, match=rf"v must be \({robot.nv},\), one entry per degree of freedom, got shape"):
        kernel(q, v[:-1], tau)


def test_a_process_ends_well_with_kernels_alive():
    """Freed memory is filled with ones, where the C library can: what is read there is not right by luck."""
    lines = (
        "import builtins, legged",
        "builtins.kept = legged.compile(lambda x: 2.0 * x, None, x=3)",  # outlives the modules
        "builtins.kept([1.0, 2.0, 3.0])",
    )
    environment = {**os.environ, "MALLOC_PERTURB_": "255", "PYTHONMALLOC": "malloc"}
    subprocess.run([sys.executable, "-c", "\n".join(lines)], env=environment, check=True)
