"""Batches through the entry point: of any working memory, in one thread or several, without the general call."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import robots
from legged.algorithms import derivatives
from legged.compiler import Kernel, compile
from legged.compiler.runtime import batches
from legged.errors import SingularError

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
