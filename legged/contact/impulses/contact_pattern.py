"""Index tables of the contacts between given bodies: positions of their blocks in the matrices of a contact problem."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from legged.spatial import Array

BLOCK = 6
"""Number of velocities of a block: those of a free body. The last one of an articulated robot may have unused ones."""


class BodyLayout:
    """The bodies of a scene and their generalized velocities, which do not change from step to step.

    Robots are of kinds, whose inertia matrices and Jacobians are arrays of blocks. The free bodies are the last kind.

    Attributes:
        first: Number of the first generalized velocity of the robot of each body, (B,).
        is_free: Whether each is a free body, whose twist is its generalized velocity, (B,).
        starts: Number of the first generalized velocity of each robot, and of all of them, (R + 1,).
        extent: Largest distance of a point of the shapes of each body from its origin, (B,), [m].
        free: Number of the last kind.
        robots: Number of the robot of each body, (B,); -1 for bodies that do not move.
        kinds, places: Kind of each robot, and its number among them, (R,).
        blocks: Number of blocks of the velocities of each robot, (R,).
        jacobians: Number of the Jacobian of each body of an articulated robot among those of its kind, (B,).
        articulated: Of each kind but the last, its bodies with Jacobians, (a,), the velocities of their robots,
            (a, nv), and the numbers of the Jacobians.
        jacobian_starts, inertia_starts: Numbers of the first (6, 6) blocks of the Jacobian of each body, (B,), and of
            the inertia matrix of each robot, (R,), among those of all kinds.
        jacobian_parts, inertia_parts: Slices of the blocks of each kind among those of all kinds.
    """

    def __init__(
        self, first: Array, is_free: Array, kinds: Sequence[tuple[Array, Array]], starts: Array, extent: Array
    ):
        """Collect bodies.

        Args:
            first, is_free, starts, extent: The attributes, mixed units.
            kinds: Of each kind of articulated robots, the numbers of the robots, (m,), -1 for those that do not move,
                and of their bodies with Jacobians, (m, c), -1 for those that do not move, dimensionless.
        """
        self.first, self.is_free, self.starts, self.extent, self.free = first, is_free, starts, extent, len(kinds)
        self.kinds, self.places = np.full(len(starts) - 1, self.free), np.zeros(len(starts) - 1, dtype=int)
        self.jacobians, moving = np.zeros(len(first), dtype=int), is_free.copy()
        self.jacobian_starts, self.articulated = self.jacobians.copy(), list[tuple[Array, Array, Any]]()
        self.jacobian_parts, self.inertia_parts, sizes = list[slice](), list[slice](), list[int]()
        jacobian_count, inertia_count = 0, 0
        for kind, (robots, bodies) in enumerate(kinds):
            moves = np.flatnonzero(robots >= 0)
            self.kinds[robots[moves]], self.places[robots[moves]] = kind, moves
            rows = np.flatnonzero(bodies.ravel() >= 0)
            own = bodies.ravel()[rows]
            width = int(starts[robots[moves[0]] + 1] - starts[robots[moves[0]]]) if len(moves) else 0
            sizes.append(block_count(width))
            self.jacobians[own], moving[own], self.jacobian_starts[own] = rows, True, jacobian_count + rows * sizes[-1]
            self.articulated.append((own, first[own, None] + np.arange(width), consecutive(rows)))
            ends = jacobian_count + bodies.size * sizes[-1], inertia_count + len(robots) * sizes[-1] ** 2
            self.jacobian_parts.append(slice(jacobian_count, ends[0]))
            self.inertia_parts.append(slice(inertia_count, ends[1]))
            jacobian_count, inertia_count = ends
        free = np.flatnonzero(self.kinds == self.free)
        self.places[free] = np.arange(len(free))
        self.inertia_parts.append(slice(inertia_count, inertia_count + len(free)))
        self.blocks = np.array([*sizes, 1])[self.kinds]
        first_of_kind = np.array([part.start for part in self.inertia_parts])
        self.inertia_starts = first_of_kind[self.kinds] + self.places * self.blocks**2
        self.robots = np.where(moving, np.searchsorted(starts, first, side="right") - 1, -1)


class ContactPattern:
    """Positions of the blocks of k contacts in the matrices of the robots that take part in them.

    The velocity of a contact is a sum of products of (3, 6) blocks, its *terms*, with blocks of velocities. The blocks
    of the robots are in an order in which those of bodies in contact are near each other.

    Attributes:
        first, second: Bodies of both sides of each contact, (k,). count: Number of contacts. layout: All bodies.
        robots: Robots of both sides of each contact, (k, 2); -1 for bodies that do not move.
        size: Number of generalized velocities in the blocks, n.
        starts: Number of the first velocity of each block among those of all robots, (n / 6,).
        velocities: Numbers of these velocities among those of all robots, (n,); of unused ones the number after the
            last.
        unused: Whether each of the n is unused, (n,).
        contact, block: Contact and block of velocities of each term, (e,).
        sides: Number of the side of a contact of each term, (e,): twice that of the contact, and one for the second.
        rows: Numbers of the blocks of the terms, (e,): their sides for free bodies; then those of others.
        articulated_terms, jacobians: Terms of articulated robots, (a,), and the numbers of their blocks of Jacobians.
        pairs: Numbers of the first and of the second term of each pair of terms of the same contact, (2, f).
        inertia: Numbers of the blocks of inertia of the robots, (i,). inertia_blocks: Their rows and columns, (2, i).
        width: Number of diagonals on both sides of the matrix of Newton's method.
    """

    def __init__(self, first: Array, second: Array, layout: BodyLayout):
        """Find the blocks.

        Args:
            first, second: Bodies of both sides of each contact, (k,), dimensionless. layout: The bodies.
        """
        self.first, self.second, self.count, self.layout = first, second, len(first), layout
        bodies = np.column_stack([first, second])
        sides = self.robots = layout.robots[bodies]
        robots = _near_order(sides)
        counts, starts = layout.blocks[robots], np.zeros(len(layout.blocks), dtype=int)
        starts[robots] = np.cumsum(counts) - counts
        owners, within = np.repeat(robots, counts), _numbers_within(counts)
        self.starts = layout.starts[owners] + BLOCK * within
        velocities = self.starts[:, None] + np.arange(BLOCK)
        is_unused = velocities >= layout.starts[owners + 1, None]
        self.velocities, self.unused = np.where(is_unused, layout.starts[-1], velocities).ravel(), is_unused.ravel()
        self.size = len(self.velocities)

        moving = np.flatnonzero(sides.ravel() >= 0)
        counts = layout.blocks[sides.ravel()[moving]]
        self.sides, within = np.repeat(moving, counts), _numbers_within(counts)
        self.contact, own = self.sides // 2, bodies.ravel()[self.sides]
        self.block = starts[sides.ravel()[self.sides]] + within
        is_articulated = ~layout.is_free[own]
        self.articulated_terms = np.flatnonzero(is_articulated)
        self.rows = np.where(is_articulated, 2 * self.count + np.cumsum(is_articulated) - 1, self.sides)
        self.jacobians = (layout.jacobian_starts[own] + within)[self.articulated_terms]
        terms = np.bincount(self.contact, minlength=self.count)
        partners = terms[self.contact]
        one = np.repeat(np.arange(len(self.contact)), partners)
        self.pairs = np.stack([one, (np.cumsum(terms) - terms)[self.contact[one]] + _numbers_within(partners)])

        counts = layout.blocks[robots]
        owners, within = np.repeat(robots, counts**2), _numbers_within(counts**2)
        self.inertia = layout.inertia_starts[owners] + within
        self.inertia_blocks = starts[owners] + np.stack(np.divmod(within, np.repeat(counts, counts**2)))
        blocks = [abs(i - j).max(initial=0) for i, j in (self.block[self.pairs], self.inertia_blocks)]
        self.width = BLOCK * (max(blocks) + 1) - 1

    @cached_property
    def articulated(self) -> list[tuple[int, Array, Array, Array]]:
        """Bodies of articulated robots in contact, by kind of robots.

        For each kind its number, and the numbers of the bodies, of their Jacobians and of their robots, (a,) each.
        """
        layout, groups = self.layout, list[tuple[int, Array, Array, Array]]()
        for kind, (bodies, _, _) in enumerate(layout.articulated):
            own = bodies[np.isin(bodies, self.first) | np.isin(bodies, self.second)]
            if len(own):
                groups.append((kind, own, layout.jacobians[own], layout.places[layout.robots[own]]))
        return groups

    @cached_property
    def self_contacts(self) -> list[tuple[int, Array, Array, Array]]:
        """Contacts of articulated robots with themselves, by kind of robots.

        For each kind its number, and the numbers of the contacts, (c,), of their terms, (c, 2 sides, blocks), and of
        their robots, (c,).
        """
        layout, groups = self.layout, list[tuple[int, Array, Array, Array]]()
        robots = np.where(self.robots[:, 0] == self.robots[:, 1], self.robots[:, 0], -1)
        for kind in range(layout.free):
            own = np.flatnonzero((robots >= 0) & (layout.kinds[robots] == kind))
            if len(own):
                terms = np.flatnonzero(np.isin(self.contact, own)).reshape(len(own), 2, -1)
                groups.append((kind, own, terms, layout.places[robots[own]]))
        return groups

    @cached_property
    def partners(self) -> Array:
        """Numbers of the first and of the second contact of all pairs of contacts between the same bodies, (2, c)."""
        pairs = [np.zeros((2, 0), dtype=int)]
        for members in self.pairs_of_bodies:
            one, other = np.triu_indices(members.shape[1], 1)
            pairs.append(np.stack([members[:, one].ravel(), members[:, other].ravel()]))
        return np.concatenate(pairs, axis=1)

    @cached_property
    def pairs_of_bodies(self) -> list[Array]:
        """Numbers of the contacts between the same bodies, of all pairs of bodies with the same number m > 1 of
        contacts, (g, m)."""
        return equal_rows(np.column_stack([self.first, self.second]))


def block_count(size: int) -> int:
    """Return the number of blocks of a number of velocities."""
    return -(-size // BLOCK)


def _near_order(sides: Array) -> Array:
    """Return the robots in contact in an order in which neighbors are near each other, (r,).

    Args:
        sides: Robots of both sides of each contact, (k, 2), dimensionless; -1 for none.

    Source: Cuthill, McKee, "Reducing the bandwidth of sparse symmetric matrices", 1969.
    """
    neighbors: dict[int, set[int]] = {robot: set() for robot in np.unique(sides).tolist() if robot >= 0}
    for one, other in set(map(tuple, sides.tolist())):
        if one >= 0 and other >= 0 and one != other:
            neighbors[one].add(other)
            neighbors[other].add(one)
    order, known = list[int](), set[int]()
    for start in sorted(neighbors, key=lambda robot: len(neighbors[robot])):
        at = len(order)
        if start not in known:
            order.append(start)
            known.add(start)
        while at < len(order):
            new = sorted(neighbors[order[at]] - known, key=lambda robot: (len(neighbors[robot]), robot))
            order += new
            known.update(new)
            at += 1
    return np.array(order, dtype=int)


def _numbers_within(counts: Array) -> Array:
    """Return 0, ..., count - 1 for each of some counts, one after the other, (sum of counts,)."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def equal_rows(keys: Array) -> list[Array]:
    """Return the numbers of equal rows, of all groups with the same number m > 1 of rows, (g, m).

    Args:
        keys: Rows, (k, n), any unit.
    """
    _, group, counts = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    order, starts = np.argsort(group.ravel(), kind="stable"), np.cumsum([0, *counts])
    return [
        np.array([order[starts[g] : starts[g] + size] for g in np.flatnonzero(counts == size)])
        for size in sorted(set(counts[counts > 1].tolist()))
    ]


def consecutive(index: Array) -> Any:
    """Return an index of rows, as a slice if their numbers are consecutive.

    Args:
        index: Numbers of rows, (k,), dimensionless.
    """
    is_range = len(index) > 0 and np.array_equal(index, np.arange(index[0], index[0] + len(index)))
    return slice(int(index[0]), int(index[0]) + len(index)) if is_range else index
