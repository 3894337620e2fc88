"""Elimination in a matrix with zero blocks, over any element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from legged.compiler.ir import item, items
from legged.spatial import Array, sum_of

BLOCK = 3
"""Number of unknowns that are eliminated together."""


def solved_with_blocks(columns: Sequence[Sequence[int]], M: Array, b: Array, *blocks_and_slopes: Array) -> Array:
    """Return the solution x of (M + sum of B^T S B) x = b, (n,), for blocks B, each in some of the n columns.

    Args:
        columns: Indices of the columns of each block. M: Symmetric positive definite matrix, (n, n), mixed units.
        b: Right-hand side, (n,), mixed units. blocks_and_slopes: All blocks B, then S of each block, mixed units.
    """
    H, count = M.copy(), len(columns)
    for own, B, S in items(zip(columns, blocks_and_slopes[:count], blocks_and_slopes[count:], strict=True)):
        H[np.ix_(own, own)] = H[np.ix_(own, own)] + B.T @ (S @ B)
    return solved(H, b)


def solved(H: Array, b: Array) -> Array:
    """Return the solution x of H x = b, (n,), by elimination from the last unknown to the first, without zero entries.

    The unknowns are eliminated in blocks, so that the operations of alike blocks are alike.

    Args:
        H: Symmetric positive definite matrix, (n, n), mixed units. b: Right-hand side, (n,), mixed units.
    """
    n, rows, rest = len(b), [list(row) for row in H], list(b)
    blocks = [range(first, min(first + BLOCK, n)) for first in range(0, n, BLOCK)]
    for K, pivots in reversed(list(enumerate(blocks))):
        for I in reversed(range(K + 1)):
            with item((K, I)):
                factors = _eliminated(rows, rest, blocks[I], pivots)
            for J in range(K):
                with item((K, I, J)):
                    for i, k, factor in factors:
                        for j in blocks[J]:
                            if not is_zero_constant(rows[k][j]):
                                rows[i][j] = rows[i][j] - factor * rows[k][j]
    x: list[Any] = []
    for k in range(n):
        with item(("solution", k)):
            terms = [rows[k][j] * x[j] for j in range(k) if not is_zero_constant(rows[k][j])]
            x.append((rest[k] - sum_of(terms) if terms else rest[k]) / rows[k][k])
    return np.array(x)


def _eliminated(rows: list[list[Any]], rest: list[Any], block: range, pivots: range) -> list[tuple[int, int, Any]]:
    """Eliminate the unknowns of `pivots` from the rows of a block, in the columns of `pivots` and on the right side.

    Returns:
        (row, pivot, factor): subtract factor times the row of the pivot from the row, also in the other columns.
    """
    factors: list[tuple[int, int, Any]] = []
    for k in reversed(pivots):
        for i in block:
            if i < k and not is_zero_constant(rows[i][k]):
                factor = rows[i][k] * (1.0 / rows[k][k])
                factors.append((i, k, factor))
                rest[i] = rest[i] - factor * rest[k]
                for j in range(pivots[0], k):
                    if not is_zero_constant(rows[k][j]):
                        rows[i][j] = rows[i][j] - factor * rows[k][j]
    return factors


def is_zero_constant(x: Any) -> bool:
    """Return whether a number or traced scalar is the constant zero."""
    return isinstance(x, int | float) and x == 0.0
