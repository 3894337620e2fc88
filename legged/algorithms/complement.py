"""The directions that a joint does not move in."""

from __future__ import annotations

from typing import Any

import numpy as np

from legged.compiler.ir import where
from legged.spatial import Array


def complement(h: Array) -> Array:
    """Return T, (n, n - d), with T^T h = 0 and columns of length one at right angles, for h (n, d) of full rank.

    By Householder reflections, each of which turns what is left of a column of h into an axis: the last columns of Q in
    h = Q R. The signs are chosen by `where`, so that nothing cancels and nothing branches.
    """
    n, d = h.shape
    columns, Q = [list(column) for column in h.T], np.eye(n)
    for k in range(d):
        x = np.stack(columns[k][k:]) if h.dtype == object else np.array(columns[k][k:])
        w = _mirror_of(x)
        if w is None:
            continue
        for m in range(k + 1, d):
            rest = np.array(columns[m][k:]) if h.dtype != object else np.stack(columns[m][k:])
            columns[m][k:] = list(rest - w * (w @ rest))
        Q = np.concatenate([Q[:, :k], Q[:, k:] - np.outer(Q[:, k:] @ w, w)], axis=1)
    return Q[:, d:]


def _mirror_of(x: Array) -> Any:
    """Return w, with 1 - w w^T the reflection that turns x into an axis; None if it lies on the first one already."""
    if all(isinstance(entry, (int, float)) and entry == 0 for entry in x[1:]):
        return None
    length = np.sqrt(x @ x)
    first = x[0] + where(x[0] < 0, -length, length)
    u = np.concatenate([[first], x[1:]])
    return u * np.sqrt(2.0 / (u @ u))
