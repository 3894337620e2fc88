"""Calls of kernels that machine code executes one after the other, and what it computes between them."""

import numpy as np
import pytest

import legged
from legged.compiler.runtime.batch_kernel import BatchKernel, Rows
from legged.compiler.runtime.call_sequence import Band, Call, CallSequence, FusedCalls, padded, padded_rows
from legged.errors import NotFiniteError


@pytest.mark.parametrize("size", [1, 3, 4, 6])
def test_runs_are_added_where_they_belong_also_several_at_one_place(size):
    rng = np.random.default_rng(size)
    x, start, y = rng.normal(size=(9, size)), padded(30), padded(30)
    start[:] = rng.normal(size=30)
    places = rng.integers(0, 30 - size, 9)
    places[3:6] = places[0]
    CallSequence([Call.copy(start, y), Call.scatter_add(x, y, places)])()
    expected = start.copy()
    for run, place in zip(x, places, strict=True):
        expected[place : place + size] += run
    np.testing.assert_allclose(y, expected, atol=1e-15)


@pytest.mark.parametrize("size", [1, 7, 8, 9, 40])
def test_exactly_the_given_numbers_are_copied(size):
    x, y = np.arange(1.0, size + 3.0), np.zeros(size + 2)
    CallSequence([Call.copy(x[1:-1], y[1:-1])])()
    np.testing.assert_array_equal(y, [0.0, *x[1:-1], 0.0])


def test_runs_are_written_where_they_belong():
    x, y = np.arange(1.0, 7.0), np.zeros(9)
    CallSequence([Call.scatter(x.reshape(2, 3), y, np.array([6, 1]))])()
    np.testing.assert_array_equal(y, [0, 4, 5, 6, 0, 0, 1, 2, 3])
    CallSequence([Call.scatter(x[:2, None], y, np.array([8, 0]))])()
    np.testing.assert_array_equal(y, [2, 4, 5, 6, 0, 0, 1, 2, 1])


def test_entries_are_raised_to_the_largest_of_the_numbers_for_them():
    y = np.array([0.0, 5.0, -1.0])
    CallSequence([Call.scatter_max(np.array([-2.0, 3.0, 1.0, 4.0]), y, np.array([0, 0, 0, 1]))])()
    np.testing.assert_array_equal(y, [3.0, 5.0, -1.0])


def test_the_largest_absolute_value_is_written():
    x, y = np.array([0.5, -3.0, 2.0]), np.zeros(())
    sequence = CallSequence([Call.reduce_max_abs(x, y)])
    sequence()
    assert y == 3.0
    x[:] = 0.0
    sequence()
    assert y == 0.0


@pytest.mark.parametrize(("size", "width"), [(1, 0), (5, 3), (12, 5), (40, 11), (33, 8), (6, 30)])
def test_banded_equations_have_the_solution_of_the_dense_ones(size, width):
    rng, band = np.random.default_rng(size), Band(size, width)
    i, j = np.nonzero(np.abs(np.subtract.outer(np.arange(size), np.arange(size))) <= width)
    dense, call = np.zeros((size, size)), CallSequence([Call.solve_banded(band)])
    for _ in range(2):  # the second time the memory is that of the first one
        dense[i, j] = rng.normal(size=len(i)) + np.where(i == j, 3.0 * width + 1.0, 0.0)  # needs no pivots
        right = rng.normal(size=size)
        band.matrix[:], band.right[:] = 0.0, right
        band.matrix.reshape(-1)[band.positions(i, j)] = dense[i, j]
        call()
        np.testing.assert_allclose(dense @ band.right, right, atol=1e-12)


def test_singular_equations_raise_an_error():
    band = Band(3, 1)
    band.right[:] = 1.0
    with pytest.raises(NotFiniteError, match="system of equations"):
        CallSequence([Call.solve_banded(band)])()


def test_a_sequence_is_repeated_while_a_number_is_positive():
    """Newton's iteration for square roots of several numbers, until the largest change is small."""
    start, root, next_root, change, flag = np.arange(1.0, 6.0), padded(5), padded(5), np.zeros(5), np.ones(())
    root[:] = 1.0

    def newton(a, x):
        y = 0.5 * (x + a / x)
        return y, y - x

    def positive(most):
        return legged.where(most > 1e-12, 1.0, 0.0)

    kernel, judge, most = BatchKernel(newton, {"a": (), "x": ()}), BatchKernel(positive, {"most": ()}), np.zeros(())
    step = CallSequence(
        [
            kernel.prepare(5, start, Rows(root, np.arange(5)), results=[next_root, change]),
            Call.copy(next_root, root),
            Call.reduce_max_abs(change, most),
            judge.prepare(1, most, results=[flag]),
        ]
    )
    CallSequence([Call.while_loop(step, flag, 2)])()
    assert flag == 1.0  # two steps are too few
    CallSequence([Call.while_loop(step, flag, 50)])()
    assert flag == 0.0
    np.testing.assert_allclose(root, np.sqrt(start), atol=1e-15)
    start[0] = np.inf
    flag[...] = 1.0
    with pytest.raises(NotFiniteError, match="newton"):
        CallSequence([Call.while_loop(step, flag, 50)])()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("count", [2, 17, 900])
def test_fused_calls_compute_the_same_as_one_after_the_other(count, threads):
    kernel = BatchKernel(lambda x: np.sin(x) / x[0], {"x": (3,)})
    x, y, z = np.random.default_rng(count).uniform(1.0, 2.0, (count, 3)), np.zeros((count, 3)), np.zeros((count, 3))
    calls = [kernel.prepare(count, x, results=[y]).described(), kernel.prepare(count, y, results=[z]).described()]
    assert FusedCalls(calls, 8)(threads) == -1
    np.testing.assert_array_equal(y, kernel(x))
    np.testing.assert_array_equal(z, kernel(kernel(x)))
    x[count // 2, 0] = 0.0
    assert FusedCalls(calls, 8)(threads) == count // 2
    assert FusedCalls(calls, 8, ignored=[0, 1])(threads) == -1


@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (5, 3, 7), (37, 49, 37), (12, 37, 12), (8, 16, 4), (7, 17, 0), (13, 70, 3)]
)
@pytest.mark.parametrize("threads", [1, 2])
def test_products_of_small_matrices_are_those_of_numpy(shape, threads):
    M, N, K = shape
    rng = np.random.default_rng(M)
    A, B = rng.normal(size=(40, K, M)).swapaxes(1, 2), rng.normal(size=(40, K, N + 3))[:, :, 1 : N + 1]
    S, scale, C, D = rng.normal(size=(M, N)), rng.normal(size=40), np.full((40, M, N + 2), 7.0), np.zeros((40, M, N))
    start = np.broadcast_to(S, D.shape)
    calls = [
        Call.matrix_product(C[:, :, 1:-1], A, B, start=start, scale=scale),  # a part of a larger array
        Call.matrix_product(D, A, B, lower=True),
        Call.matrix_product(D, A, B, start=D, lower=True, scale=2.0),
    ]
    assert FusedCalls(calls, 1)(threads) == -1
    np.testing.assert_allclose(C[:, :, 1:-1], S + scale[:, None, None] * (A @ B), rtol=1e-12, atol=1e-13)
    assert (C[:, :, [0, -1]] == 7.0).all()
    np.testing.assert_allclose(np.tril(D), 3.0 * np.tril(A @ B), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("size", [1, 3, 12, 30])
@pytest.mark.parametrize("threads", [1, 2])
def test_factors_of_small_matrices_solve_their_equations_and_name_pivots_that_are_not_positive(size, threads):
    rng = np.random.default_rng(size)
    root, right, added = rng.normal(size=(40, size, size)), rng.normal(size=(40, size, 5)), rng.uniform(size=40)
    S = root @ root.swapaxes(1, 2) + np.eye(size)
    S[5, -1, -1] = -1e3
    A, W, info = np.concatenate([right, S], axis=2), padded_rows(40, size, 5 + 2 * size), np.ones(40, np.int32)
    lower = S.copy()
    lower[:, *np.triu_indices(size, 1)] = 0.0
    assert FusedCalls([Call.cholesky_solve(A, W, added, info), Call.mirror(lower)], 1)(threads) == -1
    assert info[5] == size and not np.delete(info, 5).any() and np.isfinite(W).all()
    np.testing.assert_array_equal(lower, S)
    Z, inverse = W[:, :, :5], W[:, :, 5 + size :]
    solved = np.linalg.solve(S + added[:, None, None] * np.eye(size), right)
    good = info == 0
    np.testing.assert_allclose((inverse.swapaxes(1, 2) @ Z)[good], solved[good], rtol=1e-9, atol=1e-11)
