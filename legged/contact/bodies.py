"""The bodies of a scene in parts in one step: motion without impulses, and velocities of contacts."""

from __future__ import annotations

from functools import cache

import numpy as np

from legged.compiler.runtime.batch_kernel import BatchKernel
from legged.compiler.runtime.call_sequence import padded
from legged.contact.impulses.contact_pattern import BLOCK, BodyLayout, block_count
from legged.contact.pair_tables import WORLD, Detected, Poses
from legged.spatial import Array, skew

SLACK = 0.1
"""Speed with which contacts may close in addition to twice the speeds of their bodies, [m/s]."""


class Bodies:
    """The bodies of a scene in the order of `Poses`: arrays, which every step writes again.

    Attributes:
        layout: Their generalized velocities. poses: Their poses.
        v, v_free, v_next: Velocities of all robots before a step, without impulses and after it, (N,), mixed units.
        wide: The same with six zeros after them, (N + 6,).
        h: The step, (), [s]. reach: Distance that a point of each body may move in a step, with a margin, (B,), [m].
        jacobians: Of each kind of articulated robots, twists of bodies per generalized velocity of their robot,
            (a, 6, nv), body axes; see `BodyLayout.jacobians`.
        inertia, inverse: Inertia matrices of each kind of articulated robots, and their inverses, (m, nv, nv), mixed
            units.
        jacobian_blocks, inertia_blocks, inverse_blocks: Blocks of Jacobians, inertia matrices and their inverses,
            (..., 6, 6), mixed units; see `BodyLayout.jacobian_parts`.
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
        self.wide = tuple(padded(size + BLOCK) for _ in range(3))
        self.v, self.v_free, self.v_next = (array[:size] for array in self.wide)
        self.jacobians: list[Array] = [np.zeros((0, 6, 0))] * layout.free
        self.inertia: list[Array] = [np.zeros((0, 0, 0))] * layout.free
        self._inverted, self.inverse = list(self.inertia), list(self.inertia)
        self.jacobian_blocks = np.zeros((layout.jacobian_parts[-1].stop if layout.free else 0, BLOCK, BLOCK))
        self.inertia_blocks = np.zeros((layout.inertia_parts[-1].stop, BLOCK, BLOCK))
        self.inverse_blocks = self.inertia_blocks.copy()
        self.mobility, self._twists = np.zeros((count, 6, 6)), np.zeros((count, 6))
        self.free_mobility = np.linalg.inv(inertia)
        self.mobility[layout.is_free] = self.free_mobility
        self.inertia_blocks[layout.inertia_parts[-1]] = inertia
        self.inverse_blocks[layout.inertia_parts[-1]] = self.free_mobility
        moves = np.where(np.arange(count) == count + WORLD, 0.0, 1.0)
        self._reaches = _reaching().prepare(count, self._twists, layout.extent, moves, self.h, results=[reach])

    def update_blocks(self) -> bool:
        """Write the blocks for the present inertia and Jacobians; return whether those of inertia have changed."""
        changes = False
        for kind, (J, M, known) in enumerate(zip(self.jacobians, self.inertia, self._inverted, strict=True)):
            jacobian, inertia = self.layout.jacobian_parts[kind], self.layout.inertia_parts[kind]
            write_blocks(J, self.jacobian_blocks[jacobian])
            if not np.array_equal(M, known):  # that of a robot of one body does not change
                self._inverted[kind], self.inverse[kind], changes = M.copy(), np.linalg.inv(M), True
                write_blocks(M, self.inertia_blocks[inertia])
                write_blocks(self.inverse[kind], self.inverse_blocks[inertia])
        return changes

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


def write_blocks(matrices: Array, blocks: Array) -> None:
    """Write matrices in blocks of 6 rows and columns, row by row, with zeros where the last ones are not used.

    Args:
        matrices: (m, r, c), any unit and frame. blocks: Receives the blocks, (m high wide, 6, 6), any unit and frame.
    """
    count, rows, columns = matrices.shape
    high, wide = block_count(rows), block_count(columns)
    found = np.zeros((count, high * BLOCK, wide * BLOCK))
    found[:, :rows, :columns] = matrices
    blocks.reshape(count, high, wide, BLOCK, BLOCK)[:] = found.reshape(count, high, BLOCK, wide, BLOCK).swapaxes(2, 3)


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
