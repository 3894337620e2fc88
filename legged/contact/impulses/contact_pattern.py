"""Index tables of the contacts between given bodies: positions of their blocks in the matrices of a contact problem."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from legged.spatial import Array


class BodyLayout:
    """The bodies of a scene and their generalized velocities, which do not change from step to step.

    Attributes:
        first: Number of the first generalized velocity of the robot of each body, (B,).
        is_free: Whether each is a free body, whose twist is its generalized velocity, (B,).
        starts: Number of the first generalized velocity of each robot, and of all of them, (R + 1,).
        robots: Number of the robot of each body, (B,); -1 for bodies that do not move.
        extent: Largest distance of a point of the shapes of each body from its origin, (B,), [m].
        free_columns: Generalized velocities of the free bodies, (f, 6).
    """

    def __init__(self, first: Array, is_free: Array, articulated: Array, starts: Array, extent: Array):
        """Collect bodies.

        Args:
            first, is_free, starts, extent: The attributes, mixed units.
            articulated: Numbers of the bodies of articulated robots that move and have shapes or contact points, (a,),
                dimensionless.
        """
        self.first, self.is_free, self.starts, self.extent = first, is_free, starts, extent
        moving = is_free.copy()
        moving[articulated] = True
        self.robots = np.where(moving, np.searchsorted(starts, first, side="right") - 1, -1)
        self.free_columns = first[is_free, None] + np.arange(6)
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
    """Contacts of robots with the same numbers of velocities.

    Attributes:
        own: Numbers of the contacts, (c,).
        columns: Velocities on which each depends, (c, w).
        sides: Number of each side with a moving body, its bodies, (c,), and whether all of them are free bodies.
        same: Whether both sides belong to the same robot.
        parts: Of each robot: its columns of the w, the number of its size in `ContactPattern.inertia`, and the rows
            there, (c,).
    """

    own: Array
    columns: Array
    sides: list[tuple[int, Array, bool]]
    same: bool
    parts: list[tuple[slice, int, Array]]


class ContactPattern:
    """Positions of the blocks of contacts in the matrices of the robots that take part in them.

    Attributes:
        first, second: Bodies of both sides of each contact, (k,).
        count, size: Number of contacts k and of generalized velocities n of the robots.
        velocities: Numbers of these velocities among those of all robots, (n,).
        inertia: For each number of velocities w of a robot: rows of the matrix of inertia, (r, w), and robots, (r,).
        groups: The contacts.
    """

    def __init__(self, first: Array, second: Array, layout: BodyLayout):
        """Find the blocks.

        Args:
            first, second: Bodies of both sides of each contact, (k,), dimensionless. layout: The bodies.
        """
        self.first, self.second, self.count, starts = first, second, len(first), layout.starts
        sizes, sides = np.append(np.diff(starts), 0), (layout.robots[first], layout.robots[second])  # 0 for robot -1
        robots = np.unique(np.concatenate(sides))
        robots = robots[robots >= 0]
        widths = sizes[robots]
        own_starts = np.zeros(len(sizes), dtype=int)
        own_starts[robots] = np.cumsum(widths) - widths
        self.size = int(widths.sum())
        self.velocities = np.concatenate([np.zeros(0, dtype=int), *(np.arange(*starts[k : k + 2]) for k in robots)])
        self.inertia, place, which = list[tuple[Array, Array]](), np.zeros(len(sizes), dtype=int), dict[int, int]()
        for width in np.unique(widths).tolist():
            own = robots[widths == width]
            which[width], place[own] = len(self.inertia), np.arange(len(own))
            self.inertia.append((own_starts[own, None] + np.arange(width), own))
        same = (sides[0] == sides[1]) & (sides[0] >= 0)
        keys = np.column_stack([sizes[sides[0]], np.where(same, -1, sizes[sides[1]])])
        self.groups = list[ContactGroup]()
        for key in np.unique(keys, axis=0):
            own = np.flatnonzero((keys == key).all(axis=1))
            group, columns, at = ContactGroup(own, own, [], bool(key[1] == -1), []), [], 0
            for side, (bodies, robot) in enumerate(zip((first, second), sides, strict=True)):
                width = int(sizes[robot[own[0]]])
                if width:
                    group.sides.append((side, bodies[own], bool(layout.is_free[bodies[own]].all())))
                    if not (side and group.same):
                        columns.append(own_starts[robot[own], None] + np.arange(width))
                        group.parts.append((slice(at, at + width), which[width], place[robot[own]]))
                        at += width
            if columns:
                self.groups.append(group._replace(columns=np.concatenate(columns, axis=1)))

    @cached_property
    def newton_keys(self) -> Array:
        """Column * n + row in M + J^T diag(slopes) J of each value of the blocks of M and of the groups."""
        found = [_keys(rows, self.size) for rows, _ in self.inertia]
        return np.concatenate([*found, *(_keys(group.columns, self.size) for group in self.groups)])

    @cached_property
    def newton_entries(self) -> tuple[Array, Array, Array]:
        """Compressed columns of M + J^T diag(slopes) J.

        Entry of each of the values of `newton_keys`, row of each entry, and starts of the columns.
        """
        keys, places = np.unique(self.newton_keys, return_inverse=True)
        return places, keys % self.size, np.searchsorted(keys, self.size * np.arange(self.size + 1))

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


def _keys(columns: Array, size: int) -> Array:
    """Return column * size + row of the entries of square blocks, one column after the other, (...,)."""
    return (columns[:, :, None] * size + columns[:, None, :]).ravel()
