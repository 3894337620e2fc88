"""Linear algebra over any element: solves with several right-hand sides, and numerical rank of constraint Jacobians.

Numbers are tested for rank by singular values. Traced values have none, so their rank is tested by the pivots of an
L D L^T factorization, without branches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from legged.compiler.ir import where
from legged.elements import as_floats, has_elements, to_float
from legged.spatial import Array, is_zero, mirror, solve_factored, solve_symmetric, sum_of

RANK_TOLERANCE = 1e-8
"""Singular values below this, relative to the largest, count as zero."""
PIVOT_TOLERANCE = 1e-12
"""Pivots below this, relative to their diagonal entry, count as zero; such a ratio is a squared sine."""
_ROUNDED_PIVOT = 1e-15  # a pivot below this, relative to its diagonal entry, is rounding
_ZERO_ROW = 1e-20  # a diagonal entry below this, relative to the trace, is rounding


def solve_rows(factors: tuple, B: Array) -> Array:
    """Return B A^-1, (m, n), for a symmetric A given by `factor_symmetric`.

    Args:
        factors: Of A. B: Right-hand sides as rows, (m, n), any unit.
    """
    return np.array([solve_factored(factors, row) for row in B]).reshape(B.shape)


def solve_columns(factors: tuple, B: Array) -> Array:
    """Return A^-1 B, (n, m), for a symmetric A given by `factor_symmetric`.

    Args:
        factors: Of A. B: Right-hand sides as columns, (n, m), any unit.
    """
    return solve_rows(factors, B.T).T


class IndependentRows(NamedTuple):
    """Independent combinations U^T J vdot = U^T c of the constraints J vdot = c.

    Attributes:
        L: U^T J, (rank, nv). c: U^T c, (rank,).
        combinations: U, (rows, rank), in the range of J; U lambda are the multipliers of all rows with the least norm.
        inconsistency: Largest entry of (1 - U U^T) c, zero if the constraints are consistent.
        flags: Whether each row of L is independent of those before it, (rank,), where it was decided but, in traced
            code, could not select rows; None where all rows are independent or nothing was decided.
    """

    L: Array
    c: Array
    combinations: Array
    inconsistency: float
    flags: Sequence[Any] | None = None


def independent_rows(J: Array, c: Array) -> IndependentRows:
    """Return as many independent combinations of the constraints J vdot = c as their rank; traced rows unchanged.

    The combinations of numbers of other types than float64 are independent columns of J, or the rows themselves if
    these are independent: neither takes roots. The rank is that of the nearest floats.

    Args:
        J: Constraint Jacobian, (rows, nv), any unit. c: Right-hand side, (rows,), any unit.
    """
    if has_elements(J) or has_elements(c):
        return _independent_columns(J, c)
    if J.dtype == object or c.dtype == object or not len(J):
        return IndependentRows(J, c, np.eye(len(J)), 0.0)
    U, singular_values, _ = np.linalg.svd(J, full_matrices=False)
    U = U[:, : numerical_rank(singular_values)]
    return IndependentRows(U.T @ J, U.T @ c, U, float(np.abs(c - U @ (U.T @ c)).max()))


def solve_least_norm(A: Array, y: Array) -> Array:
    """Return the x of least norm that minimizes |A x - y|, (n,).

    Of numbers, by singular values; of traced values, by elimination with row exchanges if A is square, which should
    then be regular, and else by the normal equations, of which dependent rows are omitted.

    Args:
        A: Matrix, (m, n), any unit. y: Right-hand side, (m,), any unit.
    """
    m, n = A.shape
    if not A.size:
        return np.zeros(n, np.result_type(A, y))
    if A.dtype != object and y.dtype != object:
        return np.linalg.lstsq(A, y, rcond=RANK_TOLERANCE)[0]
    if m == n:
        return solve_with_exchanges(A, y)
    if m < n:
        return A.T @ solve_factored(factor_semidefinite(A @ A.T), y)
    return solve_factored(factor_semidefinite(A.T @ A), A.T @ y)


def solve_with_exchanges(A: Array, Y: Array) -> Array:
    """Return A^-1 Y, (n,) or (n, m), by elimination with partial pivoting, without branches.

    Args:
        A: Regular matrix, (n, n), any unit. Y: Right-hand side, (n,) or (n, m), any unit.
    """
    n = len(A)
    rows = np.concatenate([A, Y.reshape(n, -1)], axis=1)
    for k in range(n):
        for i in range(k + 1, n):
            larger = abs(rows[i, k]) > abs(rows[k, k])
            rows[k], rows[i] = where(larger, rows[i], rows[k]), where(larger, rows[k], rows[i])
        rows[k, k + 1 :] = rows[k, k + 1 :] * (1.0 / rows[k, k])
        for i in range(k + 1, n):
            rows[i, k + 1 :] = rows[i, k + 1 :] - rows[i, k] * rows[k, k + 1 :]
    X = rows[:, n:]
    for i in reversed(range(n)):
        for j in range(i + 1, n):
            X[i] = X[i] - rows[i, j] * X[j]
    return X.reshape(Y.shape)


def _independent_columns(J: Array, c: Array) -> IndependentRows:
    columns = independent_row_numbers(as_floats(J).T)
    if len(columns) == len(J):
        return IndependentRows(J, c, np.eye(len(J)), 0.0)
    B = J[:, columns]
    rest = c - B @ solve_symmetric(mirror(B.T @ B), B.T @ c)
    return IndependentRows(B.T @ J, B.T @ c, B, max(np.abs(rest).tolist(), key=to_float))


def numerical_rank(singular_values: Array) -> int:
    """Return the number of singular values that count as nonzero.

    Args:
        singular_values: In decreasing order, (n,), any unit.
    """
    if not len(singular_values) or singular_values[0] <= 0.0:
        return 0
    return int((singular_values > RANK_TOLERANCE * singular_values[0]).sum())


def independent_row_numbers(J: Array) -> list[int]:
    """Return the numbers of independent rows: repeatedly the row farthest from the span of those chosen before.

    Args:
        J: Matrix, (rows, n), any unit.
    """
    J = as_floats(J) if has_elements(J) else J
    remainder, chosen = J.copy(), []
    for _ in range(numerical_rank(np.linalg.svd(J, compute_uv=False))):
        lengths = np.einsum("ij,ij->i", remainder, remainder)
        k = int(lengths.argmax())
        chosen.append(k)
        u = remainder[k] / np.sqrt(lengths[k])
        remainder = remainder - np.outer(remainder @ u, u)
    return chosen


def null_space(L: Array) -> Array:
    """Return K, (n, n - rank), orthonormal, with L K = 0.

    Args:
        L: Independent rows, (rank, n), any unit.
    """
    if has_elements(L):
        return orthonormal_complement(L.T)
    return np.linalg.svd(L)[2][len(L) :].T if len(L) else np.eye(L.shape[1])


def orthonormal_complement(A: Array) -> Array:
    """Return K, (n, n - c), with orthonormal columns and A^T K = 0, by Householder reflections without branches.

    Args:
        A: Independent columns, (n, c), any unit.
    """
    n, c = A.shape
    R, reflections = A.copy(), []
    for k in range(c):
        x = R[k:, k]
        length = np.sqrt(x @ x)
        u = np.concatenate([np.array([x[0] + where(x[0] < 0.0, -length, length)]), x[1:]])
        scale = 2.0 / (u @ u)
        R[k:, k:] = R[k:, k:] - np.outer(scale * u, u @ R[k:, k:])
        reflections.append((scale, u))
    K = np.eye(n)[:, c:].astype(A.dtype)
    for k in reversed(range(c)):
        scale, u = reflections[k]
        K[k:] = K[k:] - np.outer(scale * u, u @ K[k:])
    return K


def select_rows(J: Array, c: Array, flags: Sequence[Any]) -> IndependentRows:
    """Return the constraints J vdot = c that count as independent; traced rows unchanged, with their flags.

    The combinations of the selected rows give the multipliers of all rows with the least norm.

    Args:
        J: Constraint Jacobian, (rows, nv), any unit. c: Right-hand side, (rows,), any unit.
        flags: Whether each row is independent of those before it, (rows,).
    """
    if J.dtype == object or c.dtype == object or not len(J):
        return IndependentRows(J, c, np.eye(len(J)), 0.0, flags)
    kept = np.array(flags, bool)
    L = J[kept]
    parts = np.linalg.lstsq(L.T, J[~kept].T, rcond=None)[0].T if kept.any() else np.zeros((len(J), 0))
    E = np.zeros((len(J), len(L)))
    E[kept], E[~kept] = np.eye(len(L)), parts
    inconsistency = np.abs(c[~kept] - parts @ c[kept]).max(initial=0.0)
    return IndependentRows(L, c[kept], np.linalg.pinv(E).T, float(inconsistency))


def factor_semidefinite(S: Array, flags: Sequence[Any] | None = None) -> tuple[list[list[Any]], list[Any]]:
    """Return (L, reciprocals of d) with S = L diag(d) L^T as `factor_symmetric`, for a positive semidefinite S.

    A row whose pivot counts as zero depends on the rows before it; its reciprocal is set to zero, so that
    `solve_factored` gives it a zero solution. The test uses no branches and so also runs in traced code. Put the rows
    that shall be kept first.

    Args:
        S: Symmetric, positive semidefinite, (n, n), any unit.
        flags: Whether each row is independent of those before it, (n,), where that was decided elsewhere; such rows
            need a pivot beyond rounding. None to decide by pivots.
    """
    trace = sum_of(np.diagonal(S))
    L: list[list[Any]] = [[0.0] * len(S) for _ in S]
    reciprocal: list[Any] = []
    for i in range(len(S)):
        pivot = eliminate_row(S, L, reciprocal, i)
        if is_zero(S[i, i]) or (flags is not None and flags[i] is False):
            reciprocal.append(0.0)
            continue
        if flags is None:
            independent = (pivot > PIVOT_TOLERANCE * S[i, i]) & (S[i, i] > _ZERO_ROW * trace)
        else:
            independent = flags[i] & (pivot > _ROUNDED_PIVOT * S[i, i])
        reciprocal.append(where(independent, 1.0 / where(independent, pivot, 1.0), 0.0))
    return L, reciprocal


def eliminate_row(S: Array, L: list[list[Any]], reciprocal: Sequence[Any], i: int) -> Any:
    """Return the pivot of row i in S = L diag(d) L^T, and set the row of L.

    Args:
        S: Symmetric, (n, n), any unit. L: Its factor, whose rows before i are known. reciprocal: 1 / d, (i,), or zeros
            for rows that are left out. i: Number of the row.
    """
    row: list[Any] = []  # L[i] diag(d)
    for k in range(i):
        row.append(S[i, k] - sum_of(L[k][m] * row[m] for m in range(k)))
        L[i][k] = row[k] * reciprocal[k]
    return S[i, i] - sum_of(L[i][k] * row[k] for k in range(i))
