"""Factorization of sparse symmetric quasidefinite matrices, whose order of elimination is found while tracing."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from legged.spatial import Array, is_zero

Pattern = tuple[frozenset[int], ...]
"""For each row the columns of its entries beside the diagonal that are not zero."""


class Factors(NamedTuple):
    """Factors L D L^T of a symmetric matrix with permuted rows.

    Attributes:
        order: Rows in the order of elimination, (n,).
        L: For each row the entries of its column of L below the diagonal, by row.
        reciprocal: 1 / D of each row, (n,).
    """

    order: tuple[int, ...]
    L: list[dict[int, Any]]
    reciprocal: list[Any]

    def solve(self, b: Sequence[Any]) -> list[Any]:
        """Return x, (n,), of K x = b.

        Args:
            b: Right-hand side, (n,), mixed units.
        """
        x = list(b)
        for i in self.order:
            if not is_zero(x[i]):
                for j, value in self.L[i].items():
                    x[j] = x[j] - value * x[i]
        for i in self.order:
            x[i] = x[i] * self.reciprocal[i]
        for i in reversed(self.order):
            for j, value in reversed(self.L[i].items()):
                x[i] = x[i] - value * x[j]
        return x


def change_unknowns(K: Sequence[dict[int, Any]], indices: Sequence[int], T: Array) -> None:
    """Replace unknowns x of a symmetric matrix, whose rows on and above the diagonal are given, by y with x = T y.

    Args:
        K: For each row its entries by column, which change. indices: Indices of x, (k,). T: (k, k), mixed units.
    """

    def entry(i: int, j: int) -> Any:
        return K[min(i, j)].get(max(i, j), 0.0)

    others = [i for i in range(len(K)) if i not in indices and any(max(i, j) in K[min(i, j)] for j in indices)]
    block = T.T @ np.array([[entry(i, j) for j in indices] for i in indices]) @ T
    changed = {(i, j): block[a, b] for a, i in enumerate(indices) for b, j in enumerate(indices) if i <= j}
    for i in others:
        row = np.array([entry(i, j) for j in indices]) @ T
        changed |= {(min(i, j), max(i, j)): value for j, value in zip(indices, row, strict=True)}
    for (i, j), value in changed.items():
        K[i][j] = value


def factor(K: Sequence[dict[int, Any]], last: int) -> Factors:
    """Return the factors of a symmetric matrix, without pivoting for size.

    A quasidefinite matrix, [[P, A^T], [A, -Q]] with positive definite P and Q, has factors in every order (Vanderbei,
    "Symmetric quasidefinite matrices", SIAM Journal on Optimization 5(1), 1995). The order reduces the number of
    operations: the row with the fewest entries comes next.

    Args:
        K: For each row its entries on and above the diagonal that are not zero, by column. last: Number of rows at the
            end that are eliminated last, whose part of Q may be zero.
    """
    n = len(K)
    order, below = elimination(tuple(frozenset(j for j in row if j != i) for i, row in enumerate(K)), last)
    rest: list[dict[int, Any]] = [{} for _ in range(n)]
    for i, row in enumerate(K):
        for j, value in row.items():
            rest[i][j] = rest[j][i] = value
    L: list[dict[int, Any]] = [{} for _ in range(n)]
    reciprocal: list[Any] = [0.0] * n
    for i in order:
        row = rest[i]
        reciprocal[i] = 1.0 / row[i]
        for k, j in enumerate(below[i]):
            L[i][j] = row[j] * reciprocal[i]
            for m in below[i][k:]:
                product = L[i][j] * row[m]
                rest[j][m] = rest[m][j] = rest[j][m] - product if m in rest[j] else -product
    return Factors(order, L, reciprocal)


@lru_cache(maxsize=64)
def elimination(pattern: Pattern, last: int) -> tuple[tuple[int, ...], dict[int, tuple[int, ...]]]:
    """Return (rows in the order of elimination, for each row the later rows with an entry in its column of L).

    Args:
        pattern: Columns of the entries on one side of the diagonal, or on both. last: As in `factor`.

    Source:
        Minimum degree, Tinney and Walker, "Direct solutions of sparse network equations by optimally ordered
        triangular factorization", Proceedings of the IEEE 55(11), 1967.
    """
    n = len(pattern)
    adjacent: dict[int, set[int]] = {i: set() for i in range(n)}
    for i, columns in enumerate(pattern):
        for j in columns:
            adjacent[i].add(j)
            adjacent[j].add(i)
    order: list[int] = []
    below: dict[int, tuple[int, ...]] = {}
    for pool in (set(range(n - last)), set(range(n - last, n))):
        while pool:
            i = min(pool, key=lambda i: (len(adjacent[i]), i))
            pool.remove(i)
            neighbors = adjacent.pop(i)
            for j in neighbors:
                adjacent[j] |= neighbors
                adjacent[j] -= {i, j}
            order.append(i)
            below[i] = tuple(neighbors)
    position = {i: k for k, i in enumerate(order)}
    return tuple(order), {i: tuple(sorted(js, key=position.__getitem__)) for i, js in below.items()}
