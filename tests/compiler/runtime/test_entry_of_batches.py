"""Batches through the entry point: of any working memory, in one thread or several, without the general call."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import robots
from legged.algorithms import derivatives
from legged.compiler import Kernel, compile
from legged.compiler.runtime import batches
from legged.errors import ShapeError, SingularError

SIZES = 8, 64, 256
"""Numbers of states."""


def ratios(x, y):
    """Return a vector and a number."""
    return x / y, x @ y


@pytest.fixture
def shared(monkeypatch) -> Kernel:
    """Return `ratios`, compiled, which several threads compute from 16 states on."""
    kernel = compile(ratios, x=3, y=3)
    operations = max(kernel.graph.size, 1)
    monkeypatch.setattr(batches, "_THREADED_OPERATIONS", 16 * operations)
    monkeypatch.setattr(batches, "_CHUNK_OPERATIONS", operations)
    monkeypatch.setenv("LEGGED_THREADS", "2")
    kernel(np.ones((9, 3)), np.ones((9, 3)))  # loads the code for batches
    return kernel


def refuse_the_general_call(monkeypatch) -> None:
    def refuse(*arguments: object) -> None:
        raise AssertionError("the general call was used")

    monkeypatch.setattr(Kernel, "_workspace", refuse)


def test_batches_of_much_working_memory_take_the_entry_point(monkeypatch):
    """Derivatives of forward dynamics need more than 64 KiB."""
    robot, rng = robots.spatial_quadruped(), np.random.default_rng(1)
    kernel = compile(derivatives.of_forward_dynamics, robot)
    states = [
        (np.tile(robot.neutral(), (n, 1)), rng.normal(size=(n, robot.nv)), rng.normal(size=(n, robot.nv)))
        for n in SIZES
    ]
    wanted = [kernel.general(*state) for state in states]
    assert kernel._batch.described_call()[1] > 1 << 16
    refuse_the_general_call(monkeypatch)
    for state, results in zip(states, wanted, strict=True):
        assert all(a.tobytes() == b.tobytes() for a, b in zip(kernel(*state), results, strict=True))


@pytest.mark.parametrize("lead", [(), (1,), (20,)])
def test_matrices_and_several_results_in_given_arrays_take_the_entry_point(monkeypatch, lead):
    kernel = compile(lambda x, grid: (x @ grid, np.outer(x, x), x), x=3, grid=(3, 2))
    rng = np.random.default_rng(3)
    kernel(np.ones((9, 3)), np.ones((9, 3, 2)))
    x, grid = rng.normal(size=(*lead, 3)), rng.normal(size=(*lead, 3, 2))
    wanted = kernel.general(x, grid)
    out = tuple(np.full_like(result, np.nan) for result in wanted)
    references = [sys.getrefcount(array) for array in (*out, x, grid)]
    with monkeypatch.context() as patched:
        refuse_the_general_call(patched)
        assert kernel(x, grid, out=out) is out
    assert all(map(np.array_equal, out, wanted))
    assert [sys.getrefcount(array) for array in (*out, x, grid)] == references
    turned = grid.reshape(*lead, 2, 3)
    with pytest.raises(ShapeError, match=r"grid must be \(3, 2\)"):
        kernel(x, turned)
    with pytest.raises(ShapeError, match=r"out\[0\] must be an array of shape"):
        kernel(x, grid, out=(np.empty((*lead, 3)), *out[1:]))
    here = (out[0], out[1], x)  # a result in place of an argument
    assert kernel(x, grid, out=here) is here and all(map(np.array_equal, here, wanted))


@pytest.mark.parametrize("lead", [(), (1,), (20,)])
def test_arguments_without_entries_take_the_entry_point(monkeypatch, lead):
    """Observations of simulations have such arguments: parameters that do not vary, and commands that are not given."""
    kernel = compile(lambda none, x: (2.0 * x, none), none=0, x=3)
    kernel(np.ones((9, 0)), np.ones((9, 3)))
    kernel(np.ones(0), np.ones(3))
    refuse_the_general_call(monkeypatch)
    for none in (np.ones((*lead, 0)), np.ones(0)):
        doubled, nothing = kernel(none, np.ones((*lead, 3)))
        assert np.all(doubled == 2.0) and doubled.shape == (*lead, 3) and nothing.shape == (*lead, 0)


@pytest.mark.parametrize("count", SIZES)
def test_threads_share_batches_of_the_entry_point(monkeypatch, shared, count):
    x, y = np.random.default_rng(2).uniform(1.0, 2.0, (2, count, 3))
    calls = list[int]()
    run_chunks = batches.run_chunks
    monkeypatch.setattr(batches, "run_chunks", lambda *given: calls.append(count) or run_chunks(*given))
    refuse_the_general_call(monkeypatch)
    quotients, products = shared(x, y)
    assert np.array_equal(quotients, x / y)
    assert products == pytest.approx(np.sum(x * y, axis=1), rel=1e-15)
    assert bool(calls) == (count >= 16)


def test_a_state_without_an_answer_in_a_shared_batch_is_named(shared):
    x, y = np.ones((2, 64, 3))
    y[41, 1] = 0.0
    with pytest.raises(SingularError, match=r"divides by zero.*\(state 41 of the batch\)"):
        shared(x, y)


def test_exceptions_of_shared_batches_are_raised_and_leak_nothing(monkeypatch, shared):
    """Ctrl-C, for one, ends the call."""
    x, y = np.ones((2, 64, 3))

    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(batches, "run_chunks", interrupt)
    before = [sys.getrefcount(a) for a in (x, y)]
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            shared(x, y)
    assert [sys.getrefcount(a) for a in (x, y)] == before
