"""Kernels for batches alone: broadcasting, and calls that read and write rows of arrays in place."""

import numpy as np
import pytest

from legged.compiler.runtime.batch_kernel import BatchKernel, Rows, windows
from legged.errors import NotFiniteError


@pytest.fixture(scope="module")
def kernel():
    return BatchKernel(lambda A, x: (A @ x, 2.0 * x), {"A": (3, 3), "x": (3,)})


@pytest.mark.parametrize("lead", [(), (5,), (2, 4), (0,)])
def test_leading_axes_are_those_of_the_arguments(kernel, lead):
    rng = np.random.default_rng(0)
    A, x = rng.normal(size=(3, 3)), rng.normal(size=(*lead, 3))
    y, twice = kernel(A, x)
    np.testing.assert_allclose(y, x @ A.T, atol=1e-14)
    np.testing.assert_array_equal(twice, 2.0 * x)


@pytest.mark.parametrize("count", [1, 3, 20])  # fewer states than lanes, and more
def test_prepared_calls_read_and_write_rows_in_place(kernel, count):
    """Arguments and results are rows by number, rows of a part of a matrix, and rows of windows of a vector."""
    rng = np.random.default_rng(count)
    A, flat, table = rng.normal(size=(7, 3, 3)), rng.normal(size=11), np.zeros((30, 5))
    of_A, of_x, of_y = rng.integers(-7, 7, count), rng.integers(9, size=count), rng.permutation(28)[:count]
    y = np.zeros((30, 3))
    call = kernel.prepare(
        count, Rows(A, of_A), Rows(windows(flat, 3), of_x), results=[Rows(y, of_y), table[:count, 1:4]]
    )
    for _ in range(2):
        call()
        x = np.array([flat[k : k + 3] for k in of_x])
        np.testing.assert_allclose(y[of_y], (A[of_A] @ x[..., None])[..., 0], atol=1e-14)
        np.testing.assert_array_equal(table[:count, 1:4], 2.0 * x)
        assert not y[np.setdiff1d(np.arange(30), of_y)].any()
        assert not table[:, [0, 4]].any()
        assert not table[count:].any()
        A[:], flat[:] = rng.normal(size=A.shape), rng.normal(size=flat.shape)  # the next call reads these


def test_results_that_are_not_finite_raise_an_error(kernel):
    with pytest.raises(NotFiniteError, match="state 2"):
        kernel(np.eye(3), np.where(np.arange(5)[:, None] == 2, np.inf, np.ones(3)))


@pytest.mark.parametrize("states", [1, 2, 3, 5])
def test_the_lanes_of_a_kernel_for_few_states_change_no_bit(states):
    shapes, rng = {"A": (3, 3), "x": (3,)}, np.random.default_rng(0)
    few, full = (
        BatchKernel(lambda A, x: (np.sin(A @ x), x / (1.0 + x @ x)), shapes, states=count) for count in (states, None)
    )
    for count in (1, 2, 3, 11):
        arguments = rng.normal(size=(count, 3, 3)), rng.normal(size=(count, 3))
        for one, other in zip(few(*arguments), full(*arguments), strict=True):
            assert np.array_equal(one, other)
    most = full.code.target.width
    assert few.code.target.width == min(most, {1: 2, 2: 2, 3: 4, 5: 8}[states])


def test_kernels_for_few_states_are_not_simplified():
    def function(x):
        return x[0] * x[1] + x[0] * x[2]

    few, full = (BatchKernel(function, {"x": (3,)}, states=states) for states in (1, None))
    is_narrow = few.code.target.width < full.code.target.width
    assert [len(kernel.graph.nodes) for kernel in (few, full)] == [3 if is_narrow else 2, 2]
    x = np.random.default_rng(0).normal(size=(5, 3))
    np.testing.assert_allclose(few(x), full(x), atol=1e-15)
