"""How many of the loops' constraints are independent: the numerical rank test, and what is left of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from legged.compiler.ir import where
from legged.dynamics.arguments import read
from legged.loops.constraints import jacobian
from legged.loops.loop import ClosedRobot
from legged.spatial import Array, is_zero, sum_of

TOLERANCE = 1e-8
"""Singular values of phi' below this, relative to the largest, count as none."""
SMALLEST_PIVOT = 1e-12
"""Of a row's mobility: a smaller rest, beside the rows before it, counts as none; it is a squared sine."""
AWAKENING_PIVOT = 1e-6
"""The same for rows that were superfluous at the start of a run: in the midst of a time step, a little off the loops,
such rows are not quite so."""
_NO_ROW = 1e-20  # of all rows' mobility: a row of rounding


class Independent(NamedTuple):
    """Independent constraints L vdot = c of equation (18), combinations U^T of all rows.

    Attributes:
        L: (rank, nv). c: (rank,).
        spread: U, (rows, rank), orthonormal: U lambda are the shortest multipliers of all rows.
        unmet: Largest entry of what is left of c outside the combinations.
    """

    L: Array
    c: Array
    spread: Array
    unmet: float


def independent_rows(J: Array, c: Array) -> Independent:
    """Return as many independent combinations of the rows J vdot = c as there are; traced rows as they are.

    Args:
        J: (rows, nv). c: (rows,).
    """
    if J.dtype == object or c.dtype == object or not len(J):
        return Independent(J, c, np.eye(len(J)), 0.0)
    U, sizes, _ = np.linalg.svd(J, full_matrices=False)
    U = U[:, : _rank(sizes)]
    return Independent(U.T @ J, U.T @ c, U, float(np.abs(c - U @ (U.T @ c)).max()))


def factor_dependent(S: Array, leading: int | None = None) -> tuple[list[list[Any]], list[Any]]:
    """Return factors as of `factor_symmetric` of rows' mobility, (rows, rows), of which some may be superfluous.

    A row whose pivot vanishes depends on those before it: it gets no force. This rank test is one of numbers that run,
    so that traced code has it, too. Rows in order of importance, see `ordered`, leave good pivots.

    Args:
        S: L M^-1 L^T, symmetric, positive semidefinite.
        leading: How many rows are known to be independent near by; later ones must differ from these clearly. All
            when None.
    """
    whole = sum_of(np.diagonal(S))
    L: list[list[Any]] = [[0.0] * len(S) for _ in S]
    reciprocal: list[Any] = []
    for i in range(len(S)):
        row: list[Any] = []
        for k in range(i):
            row.append(S[i, k] - sum_of(L[k][m] * row[m] for m in range(k)))
            L[i][k] = row[k] * reciprocal[k]
        pivot = S[i, i] - sum_of(L[i][k] * row[k] for k in range(i))
        least = SMALLEST_PIVOT if leading is None or i < leading else AWAKENING_PIVOT
        counts = (pivot > least * S[i, i]) & (S[i, i] > _NO_ROW * whole)
        reciprocal.append(0.0 if is_zero(S[i, i]) else where(counts, 1.0 / where(counts, pivot, 1.0), 0.0))
    return L, reciprocal


def null_space(L: Array) -> Array:
    """Return K, (nv, nv - rank), orthonormal, with L K = 0 for independent rows L."""
    return np.linalg.svd(L)[2][len(L) :].T if len(L) else np.eye(L.shape[1])


@dataclass(frozen=True, eq=False)
class Mobility:
    """What the loops leave of a tree's freedoms at a configuration; prints as a sentence.

    Attributes:
        rows: How many constraints there are. rank: How many are independent. freedoms: nv - rank.
        singular_values: Of phi', falling, (min(rows, nv),).
        dependent: Names of rows that others make superfluous, "joint: k-th row"; which of some alike is arbitrary.
    """

    rows: int
    rank: int
    freedoms: int
    singular_values: Array
    dependent: tuple[str, ...]

    def __str__(self) -> str:
        spare = f"; superfluous: {', '.join(self.dependent)}" if self.dependent else ""
        left = "1 freedom" if self.freedoms == 1 else f"{self.freedoms} freedoms"
        return f"{self.rows} constraints of rank {self.rank}, {left} left{spare}"


def mobility(closed: ClosedRobot, q: Array) -> Mobility:
    """Return how many constraints are independent at a configuration, and how many freedoms they leave."""
    (q,) = read(closed.robot, q=q)
    J = jacobian(closed, q)
    sizes = np.linalg.svd(J, compute_uv=False)
    rank, kept = _rank(sizes), set(_chosen(J))
    names = [f"{loop.name}: row {i}" for loop in closed.loops for i in range(1, len(loop.rows) + 1)]
    dependent = tuple(names[closed.rows[i]] for i in range(len(J)) if i not in kept)
    return Mobility(len(J), rank, closed.robot.nv - rank, sizes, dependent)


def ordered(closed: ClosedRobot, q: Array) -> ClosedRobot:
    """Return the robot with its rows in order of importance at a configuration: as many as are independent first."""
    (q,) = read(closed.robot, q=q)
    first = _chosen(jacobian(closed, q))
    rest = [i for i in range(len(closed.rows)) if i not in first]
    return replace(closed, rows=tuple(closed.rows[i] for i in (*first, *rest)), leading=len(first))


def independent(closed: ClosedRobot, q: Array) -> ClosedRobot:
    """Return the robot with only as many of its rows as are independent at a configuration, for traced functions.

    At other configurations, the rows left out may be no superfluous ones: `mobility` tells.
    """
    (q,) = read(closed.robot, q=q)
    rows = tuple(closed.rows[i] for i in sorted(_chosen(jacobian(closed, q))))
    return replace(closed, rows=rows, leading=None)


def _rank(sizes: Array) -> int:
    return int((sizes > TOLERANCE * sizes[0]).sum()) if len(sizes) and sizes[0] > 0.0 else 0


def _chosen(J: Array) -> list[int]:
    """Return the numbers of independent rows: the one farthest from those chosen first, then the next."""
    left, chosen = J.copy(), []
    for _ in range(_rank(np.linalg.svd(J, compute_uv=False))):
        lengths = np.einsum("ij,ij->i", left, left)
        k = int(lengths.argmax())
        chosen.append(k)
        u = left[k] / np.sqrt(lengths[k])
        left = left - np.outer(left @ u, u)
    return chosen
