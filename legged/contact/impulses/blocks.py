"""Matrices of the contacts of a scene in blocks: inertia of the robots, and the Jacobian of contact velocities.

The products are those of stacks of small matrices, so that their cost grows with the number of contacts.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from legged.contact.impulses.contact_pattern import BLOCK, ContactPattern
from legged.spatial import Array


class BlockMatrix:
    """The inertia matrix of the robots in contact, or its inverse, in blocks.

    Args:
        pattern: Where the blocks are. values: The blocks, (i, 6, 6), mixed units.
    """

    def __init__(self, pattern: ContactPattern, values: Array):
        self.size, (self._rows, self._columns), self._values = pattern.size, pattern.inertia_blocks, values
        self._unused = pattern.unused

    def __matmul__(self, x: Array) -> Array:
        product = np.zeros((self.size // BLOCK, BLOCK))
        np.add.at(product, self._rows, (self._values @ x.reshape(-1, BLOCK)[self._columns][..., None])[..., 0])
        return product.ravel()

    def diagonal(self) -> Array:
        """Return the diagonal, (n,), mixed units; 1 for velocities that are not used."""
        diagonal, own = np.empty((self.size // BLOCK, BLOCK)), np.flatnonzero(self._rows == self._columns)
        diagonal[self._rows[own]] = self._values[own].diagonal(axis1=1, axis2=2)
        return np.where(self._unused, 1.0, diagonal.ravel())


class BlockJacobian:
    """The Jacobian of k contact velocities with respect to n generalized velocities, as `newton.ContactJacobian`.

    Args:
        pattern: Where the blocks are. blocks: Those of its terms, (e, 3, 6), contact frames.
    """

    def __init__(self, pattern: ContactPattern, blocks: Array):
        self.pattern, self.blocks = pattern, blocks

    def velocities(self, v: Array) -> Array:
        """Return the velocities of the contacts, (k, 3), [m/s], contact frames.

        Args:
            v: Generalized velocities, (n,), mixed units.
        """
        velocities, pattern = np.zeros((self.pattern.count, 3)), self.pattern
        np.add.at(velocities, pattern.contact, (self.blocks @ v.reshape(-1, BLOCK)[pattern.block][..., None])[..., 0])
        return velocities

    def momentum(self, p: Array) -> Array:
        """Return the generalized momentum of impulses on the contacts, (..., n).

        Args:
            p: Impulses, (..., k, 3), [N s], contact frames.
        """
        pattern, lead = self.pattern, p.shape[:-2]
        parts = np.moveaxis((p[..., pattern.contact, None, :] @ self.blocks)[..., 0, :], -2, 0)
        momentum = np.zeros((pattern.size // BLOCK, *lead, BLOCK))
        np.add.at(momentum, pattern.block, parts)
        return np.moveaxis(momentum, 0, -2).reshape(*lead, pattern.size)

    @cached_property
    def dense(self) -> Array:
        """The Jacobian as an array, (3 k, n), mixed units, contact frames."""
        pattern = self.pattern
        dense = np.zeros((pattern.count, pattern.size // BLOCK, 3, BLOCK))
        np.add.at(dense, (pattern.contact, pattern.block), self.blocks)
        return dense.transpose(0, 2, 1, 3).reshape(3 * pattern.count, pattern.size)
