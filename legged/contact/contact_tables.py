"""Arrays, index tables and prepared kernel calls for the contacts of a scene in parts, reused in every step.

They depend on the contacts and the bodies, whose numbers every step writes again at the same places.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, cached_property
from typing import Any

import numpy as np

from legged.compiler.runtime.batch_kernel import BatchKernel, PreparedCall, Rows
from legged.contact.bodies import Bodies, rows_of_point
from legged.contact.impulses.blocks import BlockDiagonal
from legged.contact.impulses.contact_pattern import equal_rows
from legged.contact.impulses.impact import target_velocity
from legged.contact.impulses.solver import spread_group
from legged.contact.pair_tables import Detected
from legged.spatial import Array


class ContactTables:
    """Index tables, memory and calls of kernels for k contacts, for as long as the same ones are taken.

    Attributes:
        bodies: All bodies. detected: All candidates of near pairs. rows: Those that are taken, (k,).
        mu, restitution: Coefficients of each contact, (k,); no restitution if all are zero.
        pattern: Where the blocks of their matrices are.
        jacobians: Velocities of the contacts per twist of the first and the second body, (k, 3, 12), contact frames.
        diagonal: Blocks of the Delassus operator of each contact with itself, (k, 3, 3), [1/kg], except for contacts of
            a robot with itself.
        target: Normal velocities of closed contacts without restitution, (k,), [m/s], contact frames.
    """

    def __init__(self, bodies: Bodies, detected: Detected, rows: Array, coefficients: Array, recovery: float):
        """Collect contacts.

        Args:
            bodies, detected, rows: The attributes, dimensionless.
            coefficients: Friction and restitution of each contact, (k, 2), dimensionless.
            recovery: `Rigid.recovery`, [m/s].
        """
        self.bodies, self.detected, self.rows = bodies, detected, rows
        mu, restitution = coefficients.T
        self.mu, self.restitution = np.ascontiguousarray(mu), restitution if restitution.any() else ()
        first, second = detected.first[rows], detected.second[rows]
        self.pattern = bodies.layout.pattern(first, second)
        law = Rows(detected.gap, rows), bodies.h, np.array(recovery, dtype=float)
        own = [Rows(part, rows) for part in (detected.frame, detected.point)]
        parts = bodies.poses.rotation, bodies.poses.origin, bodies.mobility
        sides = [Rows(part, at) for at in (first, second) for part in parts]
        leaders = Rows(detected.frame, rows[self.pattern.leaders])
        self._rows = _contact_rows().prepare(len(rows), *law, *own, leaders, *sides)
        self.jacobians, self.diagonal, self.target, self._places, self._turns = self._rows.results
        self._calls: dict[Any, tuple[list[Array], list[Array], PreparedCall]] = {}
        self._matrices: tuple[BlockDiagonal, BlockDiagonal] | None = None
        self._equal_normals: tuple[bytes, list[PreparedCall]] = b"", []

    def update(self) -> tuple[BlockDiagonal, BlockDiagonal]:
        """Compute the arrays for the present bodies and contacts; return the matrix of inertia and its inverse."""
        pattern, bodies = self.pattern, self.bodies
        kinds = list(zip(pattern.kinds, pattern.inertia, strict=True))
        if self._matrices is None or any(  # that of a robot of one body does not change
            not np.array_equal(bodies.inertia[kind][own], blocks)
            for (kind, (_, own)), (_, blocks) in zip(kinds, self._matrices[0].groups, strict=True)
            if kind != bodies.layout.free
        ):
            M = BlockDiagonal(pattern.size, [(rows, bodies.inertia[kind][own]) for kind, (rows, own) in kinds])
            self._matrices = M, M.inverse()
        for which, numbers, jacobians, robots in pattern.articulated:
            J, blocks = bodies.jacobians[pattern.kinds[which]][jacobians], self._matrices[1].groups[which][1]
            bodies.mobility[numbers] = J @ blocks[robots] @ J.transpose(0, 2, 1)
        self._rows()
        return self._matrices

    def evaluated(self, kernel: BatchKernel, lead: tuple[int, ...], *arrays: Any) -> Any:
        """Return the results of a kernel for all contacts.

        Args:
            kernel: The kernel. lead: Leading axes of the results, the last of k. arrays: Arguments, mixed units.
        """
        call = self._calls.get((kernel, lead))
        if call is None:
            memory = [np.empty(lead + shape) for shape in kernel.shapes]
            results = [np.empty(lead + shape) for shape in kernel.graph.outputs]
            flat = [
                array.reshape(-1, *shape)
                for array, shape in zip([*memory, *results], [*kernel.shapes, *kernel.graph.outputs], strict=True)
            ]
            prepared = kernel.prepare(math.prod(lead), *flat[: len(memory)], results=flat[len(memory) :])
            call = self._calls[kernel, lead] = memory, results, prepared
        memory, results, prepared = call
        for own, given in zip(memory, arrays, strict=True):
            own[...] = given
        prepared()
        return kernel.graph.rebuild(iter([part.copy() for part in results]))

    def spread(self, p: Array) -> Array:
        """Return impulses spread over the contacts of each group; see `solver.spread`.

        Groups are contacts between the same bodies with the same normal.

        Args:
            p: Impulses, (k, 3), [N s], contact frames.
        """
        self._given[:] = self._spread[:] = p
        for call in self._spreading_by_normals() if self._turns.max(initial=0.0) > 0.0 else self._usual_spreading:
            call()
        return self._spread.copy()

    @cached_property
    def _given(self) -> Array:
        return np.empty((len(self.rows), 3))

    @cached_property
    def _spread(self) -> Array:
        return np.empty((len(self.rows), 3))

    @cached_property
    def _usual_spreading(self) -> list[PreparedCall]:
        """The calls for contacts between the same bodies, whose normals are equal."""
        return self._spreading(self.pattern.pairs_of_bodies)

    def _spreading_by_normals(self) -> list[PreparedCall]:
        """Return the calls if normals differ; those of the last time if the same ones are equal."""
        normals, key = self.detected.frame[self.rows, 0], b""
        for members in self.pattern.pairs_of_bodies:
            own = normals[members]
            key += (own[:, :, None] == own[:, None, :]).all(axis=3).tobytes()
        if key != self._equal_normals[0]:
            groups = equal_rows(np.column_stack([self.pattern.first, self.pattern.second, normals]))
            self._equal_normals = key, self._spreading(groups)
        return self._equal_normals[1]

    def _spreading(self, groups: Sequence[Array]) -> list[PreparedCall]:
        found = list[PreparedCall]()
        for members in groups:
            parts = self._given, self._places, self.mu
            arguments = [Rows(part, own) for part in parts for own in members.T]
            results = [Rows(self._spread, own) for own in members.T]
            found.append(_spreading(members.shape[1]).prepare(len(members), *arguments, results=results))
        return found


@cache
def _spreading(size: int) -> BatchKernel:
    def spreading(*parts: Any) -> tuple[Array, ...]:
        p, at, mu = (parts[k * size : (k + 1) * size] for k in range(3))
        return tuple(spread_group(np.array(p), np.array(at), mu))

    names = [(f"{name}{k}", shape) for name, shape in (("p", (3,)), ("at", (3,)), ("mu", ())) for k in range(size)]
    return BatchKernel(spreading, dict(names))


@cache
def _contact_rows() -> BatchKernel:
    def contact_rows(
        gap: Any, h: Any, recovery: Any, frame: Array, point: Array, leader: Array, *sides: Array
    ) -> tuple[Any, ...]:
        """Return the numbers of `ContactTables`: `jacobians`, `diagonal`, `target`, the place along t1, t2 and n from
        the origin of the first body, (3,), [m], and whether the normal differs from that of another contact."""
        R, o, A, Q, c, B = sides
        one, other = rows_of_point(R, o, frame, point), rows_of_point(Q, c, frame, point)
        turn = frame[0] - leader[0]
        diagonal, target = one @ A @ one.T + other @ B @ other.T, target_velocity(recovery, gap, h)
        return (
            np.concatenate([one, -other], axis=1),
            diagonal,
            target,
            np.roll(frame, -1, axis=0) @ (point - o),
            turn @ turn,
        )

    matrix, vector, law = (3, 3), (3,), {"gap": (), "h": (), "recovery": ()}
    body, other = {"R": matrix, "o": vector, "A": (6, 6)}, {"Q": matrix, "c": vector, "B": (6, 6)}
    return BatchKernel(contact_rows, {**law, "frame": matrix, "point": vector, "leader": matrix, **body, **other})
