"""Index tables of the contacts between given bodies: positions of their blocks in the matrices of a contact problem."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from legged.spatial import Array


class BodyLayout:
    """The bodies of a scene and their generalized velocities, which do not change from step to step.

    Robots are of kinds, whose inertia matrices and Jacobians are arrays. The free bodies are the last kind.

    Attributes:
        first: Number of the first generalized velocity of the robot of each body, (B,).
        is_free: Whether each is a free body, whose twist is its generalized velocity, (B,).
        starts: Number of the first generalized velocity of each robot, and of all of them, (R + 1,).
        extent: Largest distance of a point of the shapes of each body from its origin, (B,), [m].
        free: Number of the last kind.
        robots: Number of the robot of each body, (B,); -1 for bodies that do not move.
        kinds, places: Kind of each robot, and its number among them, (R,).
        jacobians: Number of the Jacobian of each body of an articulated robot among those of its kind, (B,).
        articulated: Of each kind but the last, its bodies with Jacobians, (a,), the velocities of their robots,
            (a, nv), and the numbers of the Jacobians.
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
        self.articulated = list[tuple[Array, Array, Any]]()
        for kind, (robots, bodies) in enumerate(kinds):
            moves = np.flatnonzero(robots >= 0)
            self.kinds[robots[moves]], self.places[robots[moves]] = kind, moves
            rows = np.flatnonzero(bodies.ravel() >= 0)
            own = bodies.ravel()[rows]
            self.jacobians[own], moving[own] = rows, True
            width = int(starts[robots[moves[0]] + 1] - starts[robots[moves[0]]]) if len(moves) else 0
            self.articulated.append((own, first[own, None] + np.arange(width), consecutive(rows)))
        free = np.flatnonzero(self.kinds == self.free)
        self.places[free] = np.arange(len(free))
        self.robots = np.where(moving, np.searchsorted(starts, first, side="right") - 1, -1)
        self._last: ContactPattern | None = None

    def pattern(self, first: Array, second: Array) -> ContactPattern:
        """Return the pattern of contacts; that of the last call if the bodies are the same.

        Args:
            first, second: Bodies of both sides of each contact, (k,), dimensionless.
        """
        last = self._last
        if last is None or not (np.array_equal(first, last.first) and np.array_equal(second, last.second)):
            self._last = last = ContactPattern(first, second, self)
        return last


class ContactGroup(NamedTuple):
    """Contacts of robots of the same kinds.

    Attributes:
        own: Numbers of the contacts, (c,). rows: The same as an index, a slice if they are consecutive.
        columns: Velocities on which each depends, (c, w).
        sides: Number of each side with a moving body, the kind of its robots, and the numbers of the Jacobians, (c,);
            None for free bodies.
        same: Whether both sides belong to the same robot.
        parts: Of each robot: its columns of the w, the number of its kind in `ContactPattern.inertia`, and the rows
            there, (c,).
    """

    own: Array
    rows: Any
    columns: Array
    sides: list[tuple[int, int, Array | None]]
    same: bool
    parts: list[tuple[slice, int, Array]]


class ContactPattern:
    """Positions of the blocks of contacts in the matrices of the robots that take part in them.

    Attributes:
        first, second: Bodies of both sides of each contact, (k,).
        count, size: Number of contacts k and of generalized velocities n of the robots.
        velocities: Numbers of these velocities among those of all robots, (n,).
        inertia: For each kind of robots: rows of the matrix of inertia, (r, nv), and robots of the kind, (r,).
        kinds: Numbers of these kinds.
        groups: The contacts.
    """

    def __init__(self, first: Array, second: Array, layout: BodyLayout):
        """Find the blocks.

        Args:
            first, second: Bodies of both sides of each contact, (k,), dimensionless. layout: The bodies.
        """
        self.first, self.second, self.count, starts = first, second, len(first), layout.starts
        widths, kinds = np.append(np.diff(starts), 0), np.append(layout.kinds, -1)  # the last ones for robot -1
        sides = layout.robots[first], layout.robots[second]
        robots = np.unique(np.concatenate(sides))
        robots = robots[robots >= 0]
        own_starts = np.zeros(len(widths), dtype=int)
        own_starts[robots] = np.cumsum(widths[robots]) - widths[robots]
        self.size = int(widths[robots].sum())
        self.velocities = np.concatenate([np.zeros(0, dtype=int), *(np.arange(*starts[k : k + 2]) for k in robots)])
        self.inertia, place = list[tuple[Array, Array]](), np.zeros(len(widths), dtype=int)
        self.kinds = np.unique(kinds[robots]).tolist()
        for kind in self.kinds:
            own = robots[kinds[robots] == kind]
            place[own] = np.arange(len(own))
            self.inertia.append((own_starts[own, None] + np.arange(int(widths[own[0]])), layout.places[own]))
        same = (sides[0] == sides[1]) & (sides[0] >= 0)
        keys = np.column_stack([kinds[sides[0]], np.where(same, -2, kinds[sides[1]])])
        self.groups = list[ContactGroup]()
        for key in np.unique(keys, axis=0):
            own = np.flatnonzero((keys == key).all(axis=1))
            group, columns, at = ContactGroup(own, consecutive(own), own, [], bool(key[1] == -2), []), [], 0
            for side, (bodies, robot) in enumerate(zip((first, second), sides, strict=True)):
                kind, width = int(kinds[robot[own[0]]]), int(widths[robot[own[0]]])
                if kind >= 0:
                    group.sides.append((side, kind, None if kind == layout.free else layout.jacobians[bodies[own]]))
                    if not (side and group.same):
                        columns.append(own_starts[robot[own], None] + np.arange(width))
                        group.parts.append((slice(at, at + width), self.kinds.index(kind), place[robot[own]]))
                        at += width
            if columns:
                self.groups.append(group._replace(columns=np.concatenate(columns, axis=1)))

    @cached_property
    def articulated(self) -> list[tuple[int, Array, Array, Array]]:
        """Bodies of articulated robots in contact, by number of a kind in `inertia`.

        The numbers of the bodies, of their Jacobians and of the robots of the kind, (a,) each.
        """
        found = list[tuple[int, Array, Array, Array]]()
        for which, kind in enumerate(self.kinds):
            bodies, jacobians, robots = list[Array](), list[Array](), list[Array]()
            for group in self.groups:
                for side, own, rows in group.sides:
                    if own == kind and rows is not None:
                        bodies.append((self.first, self.second)[side][group.own])
                        jacobians.append(rows)
                        robots.append(group.parts[-1 if side and len(group.parts) > 1 else 0][2])
            if bodies:
                numbers, at = np.unique(np.concatenate(bodies), return_index=True)
                found.append((which, numbers, np.concatenate(jacobians)[at], np.concatenate(robots)[at]))
        return found

    @cached_property
    def dense_keys(self) -> Array:
        """Positions of the values of the blocks of all groups in the dense Jacobian, (values,)."""
        found = [np.zeros(0, dtype=int)]
        for group in self.groups:
            rows = 3 * group.own[:, None] + np.arange(3)
            found.append((rows[:, :, None] * self.size + group.columns[:, None, :]).ravel())
        return np.concatenate(found)

    @cached_property
    def newton_keys(self) -> Array:
        """Row * n + column in J^T diag(slopes) J of each value of the blocks of the groups."""
        return np.concatenate([_keys(group.columns, self.size) for group in self.groups])

    @cached_property
    def newton_entries(self) -> tuple[Array, Array, Array]:
        """Compressed rows of M + J^T diag(slopes) J.

        Entry of each of the values of `newton_keys` and of the blocks of M, column of each entry, and starts of
        the rows.
        """
        found = np.concatenate([self.newton_keys, *(_keys(rows, self.size) for rows, _ in self.inertia)])
        keys, places = np.unique(found, return_inverse=True)
        return places, keys % self.size, np.searchsorted(keys, self.size * np.arange(self.size + 1))

    @cached_property
    def leaders(self) -> Array:
        """Number of the first contact between the same bodies, of each contact, (k,)."""
        found = np.arange(self.count)
        for members in self.pairs_of_bodies:
            found[members] = members[:, :1]
        return found

    @cached_property
    def pairs_of_bodies(self) -> list[Array]:
        """Numbers of the contacts between the same bodies, of all pairs of bodies with the same number m > 1 of
        contacts, (g, m)."""
        return equal_rows(np.column_stack([self.first, self.second]))


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
    """Return an index of rows, as a slice if they are consecutive.

    Args:
        index: Numbers of rows, (k,), dimensionless.
    """
    is_range = len(index) > 0 and np.array_equal(index, np.arange(index[0], index[0] + len(index)))
    return slice(int(index[0]), int(index[0]) + len(index)) if is_range else index


def _keys(columns: Array, size: int) -> Array:
    """Return row * size + column of the entries of square blocks, one row after the other, (...,)."""
    return (columns[:, :, None] * size + columns[:, None, :]).ravel()
