"""Contact impulses of groups of contacts that stick, by a direct solution, over any element.

In most steps of a robot that stands or walks, the contacts that pressed in the last step press and stick, and the
others have no impulse. The impulsive wrenches w between the bodies of the groups that press are then the solution of a
linear system,

    M w = t - t_free,

with the relative twists t at which their contacts have the target velocities and do not slide, the twists t_free
without impulses, and the mobility M of the bodies. It takes less time than a few sweeps of Gauss-Seidel. The residual
of the contact law tells whether all contacts press and stick.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from legged.compiler.ir import item, where
from legged.contact.impulses.delassus import BlockMatrix
from legged.contact.impulses.solver import MIN_MOBILITY, ContactProblem
from legged.spatial import Array, factor_symmetric, skew, solve_factored, sum_of

MOST_UNKNOWNS = 24
"""Largest number of components of wrenches; the operations grow with its cube."""
REGULARIZATION = 1e-8
"""Added to the diagonal of M, relative to the mean of the diagonal. Indeterminate wrenches, such as those across the
plane of a planar robot, then equal the guess up to rounding; iterative refinement removes the effect on the others."""


class _GroupPart(NamedTuple):
    """A group of contacts as a part of the linear system, with the twist of the first body relative to the second.

    Attributes:
        numbers: Numbers of its ports, one for each body, see `delassus.ContactGroups`.
        shift: Matrix with which the twist of the second port enters that of the group, (6, 6); None for contacts with
            the ground, and for one contact, whose velocity is the sum of those of its ports.
        presses: Whether all of its contacts press in the guess.
        factors: Factors of the matrix sum of C^T C over its contacts, with the maps C of `delassus.ContactGroups.maps`
            for the first port; None for one contact, whose velocity is the twist of the port.
        right: t - t_free by least squares over its contacts, (3,) [m/s] or (6,), mixed units, contact axes.
        wrench: Wrench of the guess, (3,) [N s] or (6,), mixed units, contact axes.
    """

    numbers: Sequence[int]
    shift: Array | None
    presses: Any
    factors: Any
    right: Array
    wrench: Array


def is_direct(problem: ContactProblem) -> bool:
    """Return whether `sticking_impulses` applies: there are few groups, of one contact or of three and more."""
    members = problem.groups.members
    unknowns = sum(3 if len(group) == 1 else 6 for group in members)
    return 0 < unknowns <= MOST_UNKNOWNS and all(len(group) != 2 for group in members)


def sticking_impulses(problem: ContactProblem, target: Sequence[Any], guess: Array) -> Array:
    """Return the impulses with which groups of contacts that press in the guess stick, (m, 3), [N s], contact frames.

    They may leave the friction cones, and are NaN or large for contacts in a line. Groups of which a contact does not
    press in the guess have no impulse.

    Args:
        problem: The contacts, for which `is_direct` is true.
        target: Normal velocities of closed contacts, (m,), [m/s], contact frames.
        guess: Impulses, (m, 3), [N s], contact frames.
    """
    groups, rows = problem.groups, list(guess)
    parts = [_group_part(problem, target, guess, group) for group in groups.members]
    starts = np.cumsum([0, *(len(part.right) for part in parts)]).tolist()
    A, added = np.zeros((starts[-1], starts[-1]), dtype=guess.dtype), np.zeros(starts[-1], dtype=guess.dtype)
    right, solution = added.copy(), added.copy()
    for k, (one, at) in enumerate(zip(parts, starts, strict=False)):
        for other, start in zip(parts[: k + 1], starts, strict=False):
            block = _mobility(groups.mobility, one, other)
            if block is not None:
                both = one.presses & other.presses
                own, others = slice(at, at + len(block)), slice(start, start + len(block.T))
                A[own, others] = where(both, block, 0.0)
                A[others, own] = A[own, others].T
        for first in range(at, at + len(one.right), 3):  # angular, then linear components
            own = slice(first, first + 3)
            added[own] = where(one.presses, REGULARIZATION / 3.0 * A[own, own].trace(), 1.0)
        own = slice(at, at + len(one.right))
        right[own], solution[own] = where(one.presses, one.right, 0.0), where(one.presses, one.wrench, 0.0)
    factors = factor_symmetric(A + np.diag(added))
    solution = solve_factored(factors, right + added * solution)
    solution = solution + solve_factored(factors, right - A @ solution)  # iterative refinement
    for part, at, group in zip(parts, starts, groups.members, strict=False):
        w = solution[at : at + len(part.right)]
        y = None if part.factors is None else solve_factored(part.factors, w - part.wrench)
        for i in group:
            p = w if y is None else guess[i] + groups.maps[i][0][1] @ y
            rows[i] = where(part.presses, p, 0.0)
    return np.array(rows).reshape(-1, 3)


def _group_part(problem: ContactProblem, target: Sequence[Any], guess: Array, group: Sequence[int]) -> _GroupPart:
    """Return the part of a group in the linear system; arguments as in `sticking_impulses`."""
    presses = [(guess[i][0] > 0.0) & (problem.A[i][i][0, 0] > MIN_MOBILITY) for i in group]  # type: ignore[index]
    change = [np.array([target[i] - problem.u_free[i][0], *(-problem.u_free[i][1:])]) for i in group]
    numbers, leaders = zip(*problem.groups.maps[group[0]], strict=True)
    if len(group) == 1:
        return _GroupPart(numbers, None, presses[0], None, change[0], guess[group[0]])
    shift = None if len(leaders) == 1 else _shift(*leaders)
    with item((numbers[0],)):
        maps = [problem.groups.maps[i][0][1] for i in group]
        factors = factor_symmetric(sum_of(C.T @ C for C in maps))
        right = solve_factored(factors, sum_of(C.T @ u for C, u in zip(maps, change, strict=True)))
        wrench = sum_of(C.T @ guess[i] for C, i in zip(maps, group, strict=True))
        return _GroupPart(numbers, shift, reduce(lambda a, b: a & b, presses), factors, right, wrench)


def _shift(one: Array, other: Array) -> Array:
    """Return S, (6, 6), with other = one @ S, for the maps, (3, 6), from the twists of two ports to a velocity."""
    r = -np.array([one[row, column] + other[row, column] for row, column in ((1, 2), (2, 0), (0, 1))])
    return -np.block([[np.eye(3), np.zeros((3, 3))], [-skew(r), np.eye(3)]])


def _mobility(mobility: BlockMatrix, one: _GroupPart, other: _GroupPart) -> Array | None:
    """Return the twist of a group per wrench on another one, (n, n'); None for a zero block."""
    terms = []
    for a, S in zip(one.numbers, (None, one.shift), strict=False):
        for b, R in zip(other.numbers, (None, other.shift), strict=False):
            if (block := mobility[a][b]) is not None:
                block = block if S is None else S @ block
                terms.append(block if R is None else block @ R.T)
    return sum_of(terms) if terms else None
