"""`Bodies`: velocities, Jacobians and inertia of the bodies of a scene in parts, in one time step.

A scene with many contacts is evaluated in parts (`legged.simulation.many_contacts`): its time step is a sequence of
kernel calls that read and write fixed arrays. `Bodies` owns those of the bodies. `SceneInParts` makes it;
`EqualRobots` writes its Jacobians and inertia matrices, `touching.ContactSolver` reads them for the contact problem.

How far the bodies may move in the step is computed before contacts are detected (`record_reach`), and with
`update_reach` again for the velocities that the impulses give; `update_blocks` prepares the inertia for the contact
problem. Matrices and velocities are stored in blocks of 6, padded with zeros, so that one kernel multiplies those of
robots of any size.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from legged.compiler import BatchKernel, Rows, windows
from legged.contact.impulses.contact_pattern import BLOCK, BodyLayout, block_count
from legged.contact.impulses.dense import twist_by
from legged.contact.pair_tables import Detected, Poses
from legged.contact.recording import Recording
from legged.contact.scene_shapes import WORLD
from legged.spatial import Array, skew

SLACK = 0.1
"""Speed that is added to those of the points of a body for its reach, [m/s]."""


class Bodies:
    """The bodies of a scene in the order of `Poses`: arrays, which every step writes again.

    Attributes:
        layout: Their generalized velocities. poses: Their poses.
        v, v_free, v_next: Generalized velocities of all robots before a step, after it without impulses, and after it,
            (N,), mixed units.
        padded: The arrays of the three, (N + 6,) each, mixed units: six zeros follow, since the last block of a robot
            may have more entries than the robot.
        h: The time step, (), [s].
        reach: Distance that a point of each body may move in a step, with a margin, (B,), [m].
        jacobians: Of each kind of articulated robots, which are those with the same description, twists of bodies per
            generalized velocity of their robot, (a, 6, nv), body axes; see `BodyLayout.jacobians`.
        inertia, inverse: Inertia matrices of each kind of articulated robots, and their inverses, (m, nv, nv), mixed
            units.
        jacobian_blocks, inertia_blocks, inverse_blocks: Blocks of Jacobians, inertia matrices and their inverses,
            (..., 6, 6), mixed units; see `BodyLayout.jacobian_parts`.
        constant: Numbers of the kinds of robots of one body, whose inertia and Jacobian do not change.
        version: Number of changes of the inertia and the Jacobians of articulated robots.
        update_reach: Writes `reach` for `v_next`.
        mobility: Inverse inertia at each body, (B, 6, 6), mixed units, body axes; `ContactTables.update` writes that of
            bodies of articulated robots.
        free_mobility: That of the free bodies, (f, 6, 6), mixed units, body axes.
    """

    def __init__(self, layout: BodyLayout, poses: Poses, reach: Array, inertia: Array, h: Array):
        """Collect bodies.

        Args:
            layout, poses, reach: The attributes, mixed units, world axes.
            inertia: Inertia matrices of the free bodies, (f, 6, 6), mixed units, body axes.
            h: The time step, (), [s].
        """
        count, size = len(layout.first), int(layout.starts[-1])
        self.layout, self.poses, self.reach, self.h = layout, poses, reach, h
        self.padded = tuple(np.zeros(size + BLOCK) for _ in range(3))
        self.v, self.v_free, self.v_next = (array[:size] for array in self.padded)
        self.jacobians: list[Array] = [np.zeros((0, 6, 0))] * layout.free
        self.inertia: list[Array] = [np.zeros((0, 0, 0))] * layout.free
        self._matrices_of_blocks: list[tuple[Array, ...] | None] = [None] * layout.free  # of `update_blocks`
        self.inverse = list(self.inertia)
        self.jacobian_blocks = np.zeros((layout.jacobian_parts[-1].stop if layout.free else 0, BLOCK, BLOCK))
        self.inertia_blocks = np.zeros((layout.inertia_parts[-1].stop, BLOCK, BLOCK))
        self.inverse_blocks = self.inertia_blocks.copy()
        self.mobility, self._twists = np.zeros((count, 6, 6)), np.zeros((count, 6))
        self.free_mobility = np.linalg.inv(inertia)
        self.mobility[layout.is_free] = self.free_mobility
        self.inertia_blocks[layout.inertia_parts[-1]] = inertia
        self.inverse_blocks[layout.inertia_parts[-1]] = self.free_mobility
        self.version, self.constant, do = 0, set[int](), Recording()
        self.record_reach(do, self.padded[2])
        self.update_reach = do.sequence()

    def record_reach(self, do: Recording, padded: Array) -> None:
        """Record the calls that compute `reach` for given velocities: twists of all bodies, then their largest motions.

        Args:
            do: The recording. padded: Velocities of all robots, one of `padded`, mixed units.
        """
        layout, twists = self.layout, self._twists
        free = len(self.free_mobility)
        free_twists = padded[layout.starts[-1] - BLOCK * free : layout.starts[-1]].reshape(free, BLOCK)
        do.sum(free_twists, twists, BLOCK * np.arange(len(twists) - 1 - free, len(twists) - 1))
        for bodies, columns, _ in layout.articulated:
            if len(bodies):
                count = block_count(columns.shape[1])
                blocks = (layout.jacobian_starts[bodies][:, None] + np.arange(count)).ravel()
                starts = (layout.first[bodies][:, None] + BLOCK * np.arange(count)).ravel()
                J, v = Rows(self.jacobian_blocks, blocks), Rows(windows(padded, BLOCK), starts)
                parts = do.each(block_product(), len(starts), J, v)
                do.add(parts, twists, BLOCK * np.repeat(bodies, count))
        moves = np.ones(len(twists))
        moves[WORLD] = 0.0
        do.each(_reach_kernel(), len(twists), twists, layout.extent, moves, self.h, results=[self.reach])

    def record_jacobians(
        self,
        do: Recording,
        kind: int,
        size: tuple[int, int],
        places: tuple[Array, Array],
        parts: Sequence[Rows],
        adds: bool,
    ) -> None:
        """Record the calls that write the columns of the Jacobians of a kind of robots that are not zero.

        For a kind in `constant`, of free bodies, the Jacobians are unit matrices.

        Args:
            do: The recording. kind: Number of the kind. size: Number of Jacobians, and their number of columns, nv.
            places: Numbers of the Jacobian and of its column for each part, (n,) each. parts: Arguments of `twist_by`.
            adds: Whether several parts of a column are added.
        """
        (count, nv), (matrix, column), row = size, (x[:, None] for x in places), np.arange(6)
        J, blocks = np.zeros((count, 6, nv)), self.jacobian_blocks[self.layout.jacobian_parts[kind]]
        in_blocks = (BLOCK * (block_count(nv) * matrix + column // BLOCK) + row) * BLOCK + column % BLOCK
        self.jacobians[kind] = J
        if kind in self.constant:
            J[:] = blocks[:] = np.eye(6)
            return
        twists = do.each(_twist_kernel(), len(matrix), *parts).reshape(-1, 1)
        for array, starts in ((J, (6 * matrix + row) * nv + column), (blocks, in_blocks)):
            (do.sum if adds else do.scatter)(twists, array.reshape(-1), starts.ravel())

    def update_blocks(self) -> None:
        """Write the blocks of inertia if inertia or Jacobians have changed, and count the changes in `version`."""
        for kind, matrices in enumerate(zip(self.inertia, self.jacobians, strict=True)):
            known = self._matrices_of_blocks[kind]
            if known is not None and (kind in self.constant or all(map(np.array_equal, matrices, known))):
                continue
            self.version += 1
            self._matrices_of_blocks[kind] = tuple(part.copy() for part in matrices)
            inertia, blocks = matrices[0], self.layout.inertia_parts[kind]
            self.inverse[kind] = np.linalg.inv(inertia)
            self.inertia_blocks[blocks] = in_blocks(inertia)
            self.inverse_blocks[blocks] = in_blocks(self.inverse[kind])

    def twists(self, v: Array) -> Array:
        """Return the twists of the moving bodies, (B, 6), body axes, in an array that the next call writes again.

        Args:
            v: Generalized velocities of all robots, (N,), mixed units.
        """
        layout, twists, free = self.layout, self._twists, len(self.free_mobility)
        twists[len(twists) - 1 - free : -1] = v[len(v) - 6 * free :].reshape(-1, 6)
        for (bodies, columns, rows), J in zip(layout.articulated, self.jacobians, strict=True):
            if len(bodies):
                twists[bodies] = (J[rows] @ v[columns][..., None])[..., 0]
        return twists


def contact_velocities(bodies: Bodies, detected: Detected, v: Array) -> Array:
    """Return the velocities of contacts, (k, 3), [m/s], contact frames.

    Args:
        bodies: All bodies. detected: The contacts. v: Generalized velocities of all robots, (N,), mixed units.
    """
    twists, poses = bodies.twists(v), bodies.poses

    def velocity_on(body: Array) -> Array:
        rows = _point_kernel()(poses.rotation[body], poses.origin[body], detected.frame, detected.point)
        return (rows @ twists[body][..., None])[..., 0]

    return velocity_on(detected.first) - velocity_on(detected.second)


def in_blocks(matrices: Array) -> Array:
    """Return matrices in blocks of 6 rows and columns, row by row, with zeros where the last ones are not used.

    Args:
        matrices: (m, r, c), any unit and frame.

    Returns:
        The blocks, (m * high * wide, 6, 6), in the same unit, with `high` rows and `wide` columns of blocks a matrix.
    """
    count, rows, columns = matrices.shape
    high, wide = block_count(rows), block_count(columns)
    padded = np.full((count, high * BLOCK, wide * BLOCK), 0.0, dtype=matrices.dtype)
    padded[:, :rows, :columns] = matrices
    return padded.reshape(count, high, BLOCK, wide, BLOCK).swapaxes(2, 3).reshape(-1, BLOCK, BLOCK)


@cache
def block_product() -> BatchKernel:
    """Return the kernel of the product of a block, (6, 6), with a vector, (6,)."""
    return BatchKernel(lambda A, x: A @ x, {"A": (BLOCK, BLOCK), "x": (BLOCK,)})


def rows_of_point(R: Array, o: Array, frame: Array, point: Array) -> Array:
    """Return the velocity of a point of a body per twist of the body, (3, 6), contact frame.

    Args:
        R: Body to world axes, (3, 3). o: Origin of the body, (3,), [m], world axes.
        frame: Rows of the contact frame, (3, 3), world axes. point: The point, (3,), [m], world axes.
    """
    return frame @ np.concatenate([-skew(point - o) @ R, R], axis=1)


@cache
def _point_kernel() -> BatchKernel:
    """Return the kernel of `rows_of_point`."""
    return BatchKernel(rows_of_point, {"R": (3, 3), "o": (3,), "frame": (3, 3), "point": (3,)})


@cache
def _twist_kernel() -> BatchKernel:
    """Return the kernel of `dense.twist_by`."""
    return BatchKernel(twist_by, {"screw": (9,), "R": (3, 3), "o": (3,)})


@cache
def _reach_kernel() -> BatchKernel:
    def reach(twist: Array, extent: Array, moves: Array, h: Array) -> Array:
        """Return twice an upper bound of the motion in h of points at most `extent` from the origin, and the margin."""
        turn, speed = (np.sqrt(part @ part) for part in (twist[:3], twist[3:]))
        return 2.0 * h * moves * (SLACK + speed + turn * extent)

    return BatchKernel(reach, {"twist": (6,), "extent": (), "moves": (), "h": ()})
