"""The bodies of a scene in parts in one step: motion without impulses, and velocities of contacts."""

from __future__ import annotations

from functools import cache

import numpy as np

from legged.compiler.runtime.batch_kernel import BatchKernel
from legged.contact.impulses.contact_pattern import BodyLayout, ContactPattern
from legged.contact.pair_tables import WORLD, Detected, Poses
from legged.spatial import Array, skew

SLACK = 0.1
"""Speed with which contacts may close in addition to twice the speeds of their bodies, [m/s]."""


class Bodies:
    """The bodies of a scene in the order of `Poses`: arrays, which every step writes again.

    Attributes:
        layout: Their generalized velocities. poses: Their poses.
        v, v_free, v_next: Velocities of all robots before a step, without impulses and after it, (N,), mixed units.
        h: The step, (), [s]. reach: Distance that a point of each body may move in a step, with a margin, (B,), [m].
        jacobians: Of each kind of articulated robots, twists of bodies per generalized velocity of their robot,
            (a, 6, nv), body axes; see `BodyLayout.jacobians`.
        inertia: Inertia matrices of each kind of robots, (m, nv, nv), mixed units.
        mobility: Inverse inertia at each free body, (B, 6, 6), mixed units, body axes; contacts write it for others.
    """

    def __init__(self, layout: BodyLayout, poses: Poses, reach: Array, inertia: Array):
        """Collect bodies.

        Args:
            layout, poses, reach: The attributes, mixed units, world axes.
            inertia: Inertia matrices of the free bodies, (f, 6, 6), mixed units, body axes.
        """
        count, size = len(layout.first), int(layout.starts[-1])
        self.layout, self.poses, self.reach, self.h = layout, poses, reach, np.zeros(())
        self.v, self.v_free, self.v_next = np.zeros(size), np.zeros(size), np.zeros(size)
        self.jacobians: list[Array] = [np.zeros((0, 6, 0))] * layout.free
        self.inertia = [*self.jacobians, inertia]
        self.mobility, self._twists = np.zeros((count, 6, 6)), np.zeros((count, 6))
        self.free_mobility = np.linalg.inv(inertia)
        self.mobility[layout.is_free] = self.free_mobility
        moves = np.where(np.arange(count) == count + WORLD, 0.0, 1.0)
        self._reaches = _reaching().prepare(count, self._twists, layout.extent, moves, self.h, results=[reach])

    def twists(self, v: Array) -> Array:
        """Return the twists of the moving bodies, (B, 6), body axes, in an array that the next call writes again.

        Args:
            v: Generalized velocities of all robots, (N,), mixed units.
        """
        layout, found, free = self.layout, self._twists, len(self.free_mobility)
        found[len(found) - 1 - free : -1] = v[len(v) - 6 * free :].reshape(-1, 6)
        for (bodies, columns, rows), J in zip(layout.articulated, self.jacobians, strict=True):
            if len(bodies):
                found[bodies] = (J[rows] @ v[columns][..., None])[..., 0]
        return found

    def update_reach(self, v: Array) -> None:
        """Write `reach` for given velocities.

        Args:
            v: Generalized velocities of all robots, (N,), mixed units.
        """
        self.twists(v)
        self._reaches()


def contact_velocities(bodies: Bodies, detected: Detected, v: Array) -> Array:
    """Return the velocities of contacts, (k, 3), [m/s], contact frames.

    Args:
        bodies: All bodies. detected: The contacts. v: Generalized velocities of all robots, (N,), mixed units.
    """
    twists, poses, sides = bodies.twists(v), bodies.poses, (detected.first, detected.second)
    both = [(poses.rotation[at], poses.origin[at], twists[at]) for at in sides]
    one, other = ((point_rows()(R, o, detected.frame, detected.point) @ t[..., None])[..., 0] for R, o, t in both)
    return one - other


def contact_blocks(bodies: Bodies, pattern: ContactPattern, rows: Array) -> list[Array]:
    """Return the blocks of the Jacobian of contact velocities by the generalized velocities of each group, (c, 3, w).

    Args:
        bodies: All bodies. pattern: The contacts.
        rows: Velocities of the contacts per twist of the first and the second body, (k, 3, 12), mixed units,
            contact frames.
    """
    found = list[Array]()
    for group in pattern.groups:
        own = rows[group.rows]
        if [jacobians is None for _, _, jacobians in group.sides] == [True, True] and not group.same:
            found.append(own)
            continue
        parts = list[Array]()
        for side, kind, jacobians in group.sides:
            part = own[:, :, 6 * side : 6 * side + 6]
            parts.append(part if jacobians is None else part @ bodies.jacobians[kind][jacobians])
        if len(parts) > 1:
            parts = [parts[0] + parts[1] if group.same else np.concatenate(parts, axis=2)]
        found += parts
    return found


def rows_of_point(R: Array, o: Array, frame: Array, point: Array) -> Array:
    """Return the velocity of a point of a body per twist of the body, (3, 6), contact frame.

    Args:
        R: Body to world axes, (3, 3). o: Origin of the body, (3,), [m], world axes.
        frame: Rows of the contact frame, (3, 3), world axes. point: The point, (3,), [m], world axes.
    """
    return frame @ np.concatenate([-skew(point - o) @ R, R], axis=1)


@cache
def point_rows() -> BatchKernel:
    """Return the kernel of `rows_of_point`."""
    return BatchKernel(rows_of_point, {"R": (3, 3), "o": (3,), "frame": (3, 3), "point": (3,)})


@cache
def _reaching() -> BatchKernel:
    def reach(twist: Array, extent: Array, moves: Array, h: Array) -> Array:
        """Return twice an upper bound of the motion of points at a distance from the origin, and the margin."""
        turn, speed = (np.sqrt(part @ part) for part in (twist[:3], twist[3:]))
        return 2.0 * h * moves * (SLACK + speed + turn * extent)

    return BatchKernel(reach, {"twist": (6,), "extent": (), "moves": (), "h": ()})
