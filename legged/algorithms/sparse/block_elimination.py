"""Symmetric positive definite matrices of sparse blocks, eliminated in rounds of blocks that do not couple.

The elimination of block s subtracts A_is A_ss^-1 A_sj from every block (i, j) of its neighbors. Blocks that do not
couple with each other are eliminated in the same round, so that the number of rounds limits the depth. The rounds of a
chain are those of odd-even reduction. In a tree, blocks at the tips are eliminated in the same rounds, which is the
tree contraction of Miller and Reif 1985: the number of rounds grows with the logarithm of the number of blocks if each
block couples with a bounded number of others.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations, combinations_with_replacement
from typing import NamedTuple

import numpy as np

from legged.algorithms.linear_algebra import solve_columns
from legged.spatial import Array, factor_symmetric, mirror, solve_factored

Blocks = dict[tuple[int, int], Array]
"""The nonzero blocks A_ij, (n_i, n_j), i <= j, of a symmetric matrix; the diagonal blocks are symmetric."""


class EliminatedBlock(NamedTuple):
    """An eliminated block.

    Attributes:
        number: s. factors: Of A_ss.
        ratios: A_ss^-1 A_sj of each neighbor j at the time of elimination, (n_s, n_j).
    """

    number: int
    factors: tuple
    ratios: dict[int, Array]


def eliminate(blocks: Blocks, kept: Collection[int] = ()) -> list[EliminatedBlock]:
    """Return the eliminated blocks in their order; `blocks` is left with the Schur complement on the kept ones.

    Args:
        blocks: Symmetric matrix, positive definite on the blocks to eliminate; modified.
        kept: Numbers of the blocks that are not eliminated.
    """
    eliminated = []
    for chosen in elimination_rounds(blocks, kept):
        for s in chosen:
            factors = factor_symmetric(blocks.pop((s, s)))
            couplings = {i + j - s: (i, j) for i, j in blocks if s in (i, j)}
            rows = {j: blocks.pop(at) if at[0] == s else blocks.pop(at).T for j, at in sorted(couplings.items())}
            ratios = {j: solve_columns(factors, row) for j, row in rows.items()}
            for i, j in combinations_with_replacement(rows, 2):
                change = rows[i].T @ ratios[j]
                block = blocks[i, j] - change if (i, j) in blocks else -change
                blocks[i, j] = mirror(block) if i == j else block
            eliminated.append(EliminatedBlock(s, factors, ratios))
    return eliminated


def elimination_rounds(blocks: Collection[tuple[int, int]], kept: Collection[int] = ()) -> list[list[int]]:
    """Return the numbers of the blocks of each round, which do not couple with each other.

    A block is eligible if its elimination couples no blocks anew, or only two. If there is none, those with the fewest
    couplings are eligible.

    Args:
        blocks: Pairs of coupled blocks, each block paired with itself among them. kept: Blocks that are not eliminated.
    """
    near: dict[int, set[int]] = {i: set() for i, j in sorted(blocks) if i == j and i not in kept}
    for i, j in blocks:
        if i != j and i in near and j in near:
            near[i].add(j)
            near[j].add(i)
    rounds = []
    while near:
        fewest = max(2, min(len(others) for others in near.values()))
        chosen: list[int] = []
        for s, others in near.items():
            is_clique = all(j in near[i] for i, j in combinations(others, 2))
            if (len(others) <= fewest or is_clique) and not others & set(chosen):
                chosen.append(s)
        for s in chosen:
            others = near.pop(s)
            for i in others:
                near[i] = (near[i] | others) - {i, s}
        rounds.append(chosen)
    return rounds


def solve(blocks: Blocks, right: Sequence[Array]) -> list[Array]:
    """Return x, (n_k,) each, of a symmetric positive definite system A x = r.

    Args:
        blocks: A; modified. The number of each block is its position in `right`.
        right: r_k, (n_k,), any unit.
    """
    eliminated, r = eliminate(blocks), list(right)
    own = {}
    for step in eliminated:
        own[step.number] = solve_factored(step.factors, r[step.number])
        for i, ratio in step.ratios.items():
            r[i] = r[i] - ratio.T @ r[step.number]
    x: dict[int, Array] = {}
    for step in reversed(eliminated):
        value = own[step.number]
        for i, ratio in step.ratios.items():
            value = value - ratio @ x[i]
        x[step.number] = value
    return [x[k] if k in x else np.zeros(0) for k in range(len(right))]
