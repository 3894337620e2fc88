"""Matrices of the contacts of a scene in blocks: inertia of the robots, and the Jacobian of contact velocities.

The products are those of stacks of small matrices, so that their cost grows with the number of contacts.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from legged.spatial import Array


class BlockDiagonal:
    """A symmetric matrix of square blocks on the diagonal, such as the inertia of several robots.

    Attributes:
        size: Number of its rows n.
        groups: For each size s of blocks, rows of the c blocks, (c, s), and the blocks, (c, s, s).
    """

    def __init__(self, blocks: Sequence[Array]):
        sizes = np.array([len(block) for block in blocks], dtype=int)
        starts = np.cumsum(sizes) - sizes
        self.size, self.groups = int(sizes.sum()), list[tuple[Array, Array]]()
        for size in np.unique(sizes[sizes > 0]).tolist():
            own = np.flatnonzero(sizes == size)
            self.groups.append((starts[own, None] + np.arange(size), np.array([blocks[k] for k in own.tolist()])))

    def __matmul__(self, x: Array) -> Array:
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

    def inverse(self) -> BlockDiagonal:
        """Return the inverse matrix."""
        found = BlockDiagonal([])
        found.size = self.size
        found.groups = [(rows, np.linalg.inv(blocks)) for rows, blocks in self.groups]
        return found


class _Contacts(NamedTuple):
    """Contacts of robots with the same numbers of velocities: numbers (c,), columns (c, w) and blocks (c, 3, w)."""

    own: Array
    columns: Array
    blocks: Array


class BlockJacobian:
    """The Jacobian of k contact velocities with respect to n generalized velocities; see `newton.ContactJacobian`.

    Args:
        count: Number of contacts k. size: Number of generalized velocities n.
        groups: Numbers of contacts, (c,), columns on which they depend, (c, w), and blocks, (c, 3, w), contact frames.
    """

    def __init__(self, count: int, size: int, groups: Sequence[tuple[Array, Array, Array]]):
        self.count, self.size = count, size
        self.groups = [_Contacts(*group) for group in groups]

    def velocities(self, v: Array) -> Array:
        """Return the velocities of the contacts, (k, 3), [m/s], contact frames.

        Args:
            v: Generalized velocities, (n,), mixed units.
        """
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
        cases = np.arange(int(np.prod(lead)))[:, None, None] * self.size
        total = np.zeros(cases.size * self.size)
        for own, columns, blocks in self.groups:
            parts = (p[..., own, None, :] @ blocks)[..., 0, :]
            total += np.bincount((cases + columns).ravel(), parts.ravel(), minlength=total.size)
        return total.reshape(*lead, self.size)

    def diagonal(self, mobility: BlockDiagonal) -> Array:
        """Return the blocks of J mobility J^T on the diagonal, (k, 3, 3), [1/kg], contact frames.

        Args:
            mobility: Inverse inertia of the robots.
        """
        found = np.zeros((self.count, 3, 3))
        place, groups = np.zeros(self.size, dtype=int), mobility.groups
        for rows, _ in groups:  # row of the block of each velocity
            place[rows] = np.arange(len(rows))[:, None]
        of_size = {blocks.shape[1]: blocks for _, blocks in groups}
        size_of = np.zeros(self.size, dtype=int)
        for rows, blocks in groups:
            size_of[rows] = blocks.shape[1]
        for own, columns, blocks in self.groups:
            at = 0
            while at < columns.shape[1]:
                size = int(size_of[columns[0, at]])
                part = blocks[:, :, at : at + size]
                found[own] += part @ of_size[size][place[columns[:, at]]] @ part.transpose(0, 2, 1)
                at += size
        return found

    def dense(self) -> Array:
        """Return the Jacobian as an array, (3 k, n), mixed units, contact frames."""
        found = np.zeros((self.count, 3, self.size))
        for own, columns, blocks in self.groups:
            found[own[:, None, None], np.arange(3)[:, None], columns[:, None]] = blocks
        return found.reshape(-1, self.size)


class NewtonMatrix:
    """The symmetric pattern of M + J^T diag(slopes) J, and its solution; see `newton.GeneralizedSystem.direction`."""

    def __init__(self, M: BlockDiagonal, J: BlockJacobian):
        self._size, self._groups = M.size, J.groups
        keys = [_keys(rows, self._size) for rows, _ in M.groups]
        keys += [_keys(group.columns, self._size) for group in J.groups]
        self._keys, self._fixed = np.concatenate(keys), [blocks.ravel() for _, blocks in M.groups]

    @cached_property
    def _pattern(self) -> tuple[Array, Array, Array]:
        """Entry of each value in the compressed columns, row of each entry, and starts of the columns."""
        keys, places = np.unique(self._keys, return_inverse=True)
        return places, keys % self._size, np.searchsorted(keys, self._size * np.arange(self._size + 1))

    def solve(self, slopes: Array, b: Array) -> Array:
        """Return the solution of (M + J^T diag(slopes) J) x = b, (n,), mixed units.

        Args:
            slopes: (k, 3, 3), [kg], contact frames. b: (n,), mixed units.
        """
        parts = [group.blocks.transpose(0, 2, 1) @ (slopes[group.own] @ group.blocks) for group in self._groups]
        # A column of the transposed blocks after the other, as keys count the rows of a column.
        values = np.concatenate([*self._fixed, *(part.transpose(0, 2, 1).ravel() for part in parts)])
        from scipy import sparse  # imported where it is used: the import takes long
        from scipy.sparse.linalg import splu

        places, rows, starts = self._pattern
        data = np.bincount(places, values, minlength=len(rows))
        return splu(sparse.csc_matrix((data, rows, starts), shape=(self._size, self._size))).solve(b)


def _keys(columns: Array, size: int) -> Array:
    """Return column * size + row of the entries of square blocks, one column after the other, (...,)."""
    return (columns[:, :, None] * size + columns[:, None, :]).ravel()


def contact_groups(
    twists: Sequence[Array], bodies: Sequence[Array], robots: Array, starts: Array, jacobians: Any
) -> list[tuple[Any, ...]]:
    """Return the `BlockJacobian` groups of contacts from the twists of the bodies of both sides.

    Args:
        twists: Contact velocities per twist of the body of each side, (k, 3, 6), mixed units, contact frames.
        bodies: Body of each side, (k,), dimensionless.
        robots: Robot of each body, (B,), -1 for bodies that do not move, dimensionless.
        starts: Number of the first velocity of each robot, and of all velocities, (R + 1,), dimensionless.
        jacobians: Function of bodies of one robot's number of velocities, (c,), that returns their twists per velocity,
            (c, 6, w), or None for the twists themselves.
    """
    sizes = np.append(np.diff(starts), 0)  # the last one for robot -1
    one, other = (robots[body] for body in bodies)
    same = (one == other) & (one >= 0)
    keys = np.column_stack([sizes[one], np.where(same, -1, sizes[other])])
    found = []
    for key in np.unique(keys, axis=0):
        own = np.flatnonzero((keys == key).all(axis=1))
        parts, columns = [], []
        for twist, body, robot in zip(twists, bodies, (one, other), strict=True):
            size = int(sizes[robot[own[0]]])
            if size:
                J = jacobians(body[own])
                parts.append(twist[own] if J is None else twist[own] @ J)
                columns.append(starts[robot[own]][:, None] + np.arange(size))
        if key[1] == -1:
            parts, columns = [parts[0] + parts[1]], columns[:1]
        if parts:
            found.append((own, np.concatenate(columns, axis=1), np.concatenate(parts, axis=2)))
    return found
