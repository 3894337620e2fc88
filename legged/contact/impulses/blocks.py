"""Matrices of the contacts of a scene in blocks: inertia of the robots, and the Jacobian of contact velocities.

The products are those of stacks of small matrices, so that their cost grows with the number of contacts. Small matrices
are dense.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property

import numpy as np

from legged.compiler.runtime.batch_kernel import BatchKernel
from legged.contact.impulses.contact_pattern import ContactPattern
from legged.spatial import Array

DENSE = 9216
"""Largest number of entries of a matrix whose products and solutions are those of a dense one.

For more, BLAS takes threads, which are slower than one where processors are busy.
"""
PAIR = 12
"""Number of velocities of two free bodies, for which a kernel computes products of blocks."""


class BlockDiagonal:
    """A symmetric matrix of square blocks on the diagonal, such as the inertia of several robots.

    Args:
        size: Number of its rows n.
        groups: For each size s of blocks, rows of the c blocks, (c, s), and the blocks, (c, s, s).
    """

    def __init__(self, size: int, groups: Sequence[tuple[Array, Array]]):
        self.size, self.groups = size, groups

    def __matmul__(self, x: Array) -> Array:
        if self.size * self.size <= DENSE:
            return self.dense @ x
        found = np.empty(self.size)
        for rows, blocks in self.groups:
            found[rows] = (blocks @ x[rows, None])[..., 0]
        return found

    def diagonal(self) -> Array:
        """Return the diagonal, (n,), any unit."""
        found = np.empty(self.size)
        for rows, blocks in self.groups:
            found[rows] = blocks.diagonal(axis1=1, axis2=2)
        return found

    @cached_property
    def dense(self) -> Array:
        """The matrix as an array, (n, n), any unit."""
        found = np.zeros((self.size, self.size))
        for rows, blocks in self.groups:
            found[rows[:, :, None], rows[:, None, :]] = blocks
        return found

    def inverse(self) -> BlockDiagonal:
        """Return the inverse matrix."""
        return BlockDiagonal(self.size, [(rows, np.linalg.inv(blocks)) for rows, blocks in self.groups])


class BlockJacobian:
    """The Jacobian of k contact velocities with respect to n generalized velocities; see `newton.ContactJacobian`.

    Args:
        pattern: Where the blocks are. blocks: Those of each of its groups, (c, 3, w), contact frames.
    """

    def __init__(self, pattern: ContactPattern, blocks: Sequence[Array]):
        self.pattern, self.count, self.size = pattern, pattern.count, pattern.size
        self.groups = [(group.rows, group.columns, own) for group, own in zip(pattern.groups, blocks, strict=True)]
        self.is_small = 3 * self.count * self.size <= DENSE

    def velocities(self, v: Array) -> Array:
        """Return the velocities of the contacts, (k, 3), [m/s], contact frames.

        Args:
            v: Generalized velocities, (n,), mixed units.
        """
        if self.is_small:
            return (self.dense @ v).reshape(-1, 3)
        found = np.zeros((self.count, 3))
        for own, columns, blocks in self.groups:
            found[own] = (blocks @ v[columns, None])[..., 0]
        return found

    def momentum(self, p: Array) -> Array:
        """Return the generalized momentum of impulses on the contacts, (..., n).

        Args:
            p: Impulses, (..., k, 3), [N s], contact frames.
        """
        lead = p.shape[:-2]
        if self.is_small:
            return p.reshape(*lead, -1) @ self.dense
        cases = np.arange(int(np.prod(lead)))[:, None, None] * self.size
        total = np.zeros(cases.size * self.size)
        for own, columns, blocks in self.groups:
            parts = (p[..., own, None, :] @ blocks)[..., 0, :]
            total += np.bincount((cases + columns).ravel(), parts.ravel(), minlength=total.size)
        return total.reshape(*lead, self.size)

    @cached_property
    def dense(self) -> Array:
        """The Jacobian as an array, (3 k, n), mixed units, contact frames."""
        found = np.zeros((3 * self.count, self.size))
        found.reshape(-1)[self.pattern.dense_keys] = np.concatenate([blocks.ravel() for _, _, blocks in self.groups])
        return found

    def newton_direction(self, M: BlockDiagonal, slopes: Array, b: Array) -> Array:
        """Return the solution of (M + J^T diag(slopes) J) x = b, (n,), mixed units.

        Args:
            M: Inertia matrix, (n, n), mixed units.
            slopes: Of the projections, (k, 3, 3), [kg], contact frames. b: (n,), mixed units.
        """
        parts = [_weighted_squares(blocks, slopes[own]).ravel() for own, _, blocks in self.groups]
        if self.size * self.size <= DENSE:
            H = np.bincount(self.pattern.newton_keys, np.concatenate(parts), minlength=self.size * self.size)
            return np.linalg.solve(M.dense + H.reshape(self.size, self.size), b)
        from scipy import sparse  # imported where it is used: the import takes long
        from scipy.sparse.linalg import splu

        places, columns, starts = self.pattern.newton_entries
        values = np.concatenate([*parts, *(blocks.ravel() for _, blocks in M.groups)])
        data = np.bincount(places, values, minlength=len(columns))
        return splu(sparse.csr_matrix((data, columns, starts), shape=(self.size, self.size)).tocsc()).solve(b)


def _weighted_squares(blocks: Array, slopes: Array) -> Array:
    """Return block^T slope block of each contact, (c, w, w), mixed units.

    Args:
        blocks: Of the Jacobian, (c, 3, w), contact frames. slopes: Of the projections, (c, 3, 3), [kg], contact frames.
    """
    if blocks.shape[2] == PAIR:
        return _pair_squares()(blocks, slopes)
    return blocks.transpose(0, 2, 1) @ (slopes @ blocks)


@cache
def _pair_squares() -> BatchKernel:
    return BatchKernel(lambda J, slope: J.T @ (slope @ J), {"J": (3, PAIR), "slope": (3, 3)})
