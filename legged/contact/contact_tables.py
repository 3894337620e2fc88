"""Arrays, index tables and prepared sequences of calls for the contacts of a scene in parts, reused in every step.

They depend on the contacts and the bodies, whose numbers every step writes again at the same places.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from legged.compiler import Band, BatchKernel, Call, CallSequence, PreparedCall, Rows, windows
from legged.contact.bodies import Bodies, block_product
from legged.contact.contact_kernels import (
    advanced_kernel,
    contact_rows_kernel,
    inertial_kernel,
    jacobian_kernel,
    law_kernel,
    linearized_kernel,
    momentum_kernel,
    progress_kernel,
    spreading_kernel,
    square_kernel,
    turn_kernel,
    velocity_kernel,
)
from legged.contact.impulses.contact_pattern import BLOCK, ContactPattern, equal_rows
from legged.contact.impulses.newton import mobility
from legged.contact.pair_tables import Detected
from legged.contact.rigid import Rigid
from legged.spatial import Array

MOST_SOLUTIONS = 4
"""Largest number of values of `ContactTables.turned` for which calls are kept."""
_Calls = list[Call | PreparedCall]


class ContactTables:
    """Index tables, memory and calls of kernels for k contacts, for as long as the same ones are taken.

    Attributes:
        bodies: All bodies. detected: All candidates of near pairs.
        rows: Numbers of the contacts among these candidates, (k,).
        numbers: Their numbers in `Scene.candidates`, (k,).
        mu, restitution: Coefficients of each contact, (k,), dimensionless; restitution is () if all are zero.
        pattern: Positions of the blocks of the contacts in the matrices.
        diagonal: Blocks of the Delassus operator of each contact with itself, (k, 3, 3), [1/kg], contact frames.
        mobility: The `newton.mobility` of each contact, (k,), [1/kg].
        target: Normal velocities of closed contacts without restitution, (k,), [m/s], contact frames.
        before: Velocities before the step, (k, 3), [m/s], contact frames.
        guess: Impulses of the forces of the last step, (k, 3), [N s], contact frames.
        aims: Normal velocities of closed contacts that the calls below read, (k,), [m/s].
        given: Impulses that `solve` reads, (k, 3), [N s], contact frames.
        p, u, residual: Solution of `solve` for `given`, (k, 3), [N s], (k, 3), [m/s], contact frames, and (), [m/s];
            see `solver.Solution`. After a step, the solution of the step.
        turned: Whether the normals of each pair of contacts between the same bodies differ, one byte for each pair.
        best: The impulses with the smallest residual that `improve` has found, (k, 3), [N s], contact frames.
    """

    def __init__(
        self, bodies: Bodies, detected: Detected, rows: Array, coefficients: Array, ground: Rigid, forces: Array
    ):
        """Collect contacts.

        Args:
            bodies, detected, rows: The attributes, dimensionless.
            coefficients: Friction and restitution of each contact, (k, 2), dimensionless.
            ground: The contact law, with the largest number of iterations.
            forces: Contact forces of the last step of all candidates of the scene, (m, 3), [N], contact frames.
        """
        self.bodies, self.detected, self.rows, count = bodies, detected, rows, len(rows)
        self._iterations, self._version = ground.iterations, -1
        mu, restitution = coefficients.T
        self.mu, self.restitution = np.ascontiguousarray(mu), restitution if restitution.any() else ()
        first, second, self.numbers = detected.first[rows], detected.second[rows], detected.numbers[rows]
        self.pattern = pattern = ContactPattern(first, second, bodies.layout)
        self.blocks, own_sides = np.zeros((2 * count + len(pattern.articulated_terms), 3, BLOCK)), slice(2 * count)
        self.diagonal, self._places = np.empty((count, 3, 3)), np.empty((count, 3))
        self.target, self.mobility, self.aims = (np.empty(count) for _ in range(3))
        self.given, self.p, self.u, self.before, self.best, self.guess = (np.zeros((count, 3)) for _ in range(6))
        self.residual, self._zeros = np.zeros(()), np.zeros(max(3 * count, pattern.size))
        self._wide_v, self._wide_free, self._wide_next = bodies.wide
        self._calls: dict[Any, tuple[list[Array], list[Array], PreparedCall]] = {}
        self._solutions, self.turned = dict[bytes, CallSequence](), b""

        law = Rows(detected.gap, rows), Rows(forces, self.numbers), bodies.h, np.array(ground.recovery, dtype=float)
        own = [Rows(part, rows) for part in (detected.frame, detected.point)]
        parts = bodies.poses.rotation, bodies.poses.origin, bodies.mobility
        sides = [Rows(part, at) for at in (first, second) for part in parts]
        normals, partners = detected.frame.reshape(-1, 3), 3 * rows[pattern.partners]
        self._turns = np.zeros(partners.shape[1])
        found = [self.blocks[own_sides].reshape(count, 2, 3, BLOCK), self.diagonal, self.mobility, self.target]
        found += [self._places, self.guess]
        calls: _Calls = [contact_rows_kernel().prepare(count, *law, *own, *sides, results=found)]
        pairs = [Rows(normals, at) for at in partners]
        calls.append(turn_kernel().prepare(partners.shape[1], *pairs, results=[self._turns]))
        terms = pattern.articulated_terms
        if len(terms):
            arguments = Rows(self.blocks, pattern.sides[terms]), Rows(bodies.jacobian_blocks, pattern.jacobians)
            result = Rows(self.blocks, pattern.rows[terms])
            calls.append(jacobian_kernel().prepare(len(terms), *arguments, results=[result]))
        self._update = CallSequence([*calls, *self._velocities(self._wide_v, self.before)])

    def update(self) -> None:
        """Compute the arrays for the present bodies and contacts."""
        pattern, bodies = self.pattern, self.bodies
        bodies.update_blocks()
        if bodies.version != self._version:
            self._version = bodies.version
            if "_equations" in self.__dict__:
                self._write_matrix()
            for kind, numbers, jacobians, robots in pattern.articulated:
                J = bodies.jacobians[kind][jacobians]
                bodies.mobility[numbers] = J @ bodies.inverse[kind][robots] @ J.transpose(0, 2, 1)
        self._update()
        for kind, own, terms, robots in pattern.self_contacts:
            count, nv = len(own), bodies.inverse[kind].shape[1]
            J = self.blocks[pattern.rows[terms]].sum(axis=1).transpose(0, 2, 1, 3).reshape(count, 3, -1)[..., :nv]
            self.diagonal[own] = J @ bodies.inverse[kind][robots] @ J.transpose(0, 2, 1)
            self.mobility[own] = mobility(np.moveaxis(self.diagonal[own], 0, -1))

    # Calls.

    @cached_property
    def _terms(self) -> Rows:
        """The (3, 6) blocks of the Jacobian."""
        return Rows(self.blocks, self.pattern.rows)

    def _velocities(self, wide: Array, u: Array) -> _Calls:
        """Return the calls that compute velocities of contacts.

        Args:
            wide: Velocities of all robots, one of `Bodies.wide`, mixed units.
            u: Receives the velocities, (k, 3), [m/s], contact frames.
        """
        return self._contact_velocities(Rows(windows(wide, BLOCK), self.pattern.starts[self.pattern.block]), u)

    def _contact_velocities(self, v: Rows, u: Array) -> _Calls:
        pattern, parts = self.pattern, np.empty((len(self.pattern.rows), 3))
        call = velocity_kernel().prepare(len(parts), self._terms, v, results=[parts])
        return [call, Call.copy(self._zeros[: u.size], u.reshape(-1)), Call.scatter_add(parts, u, 3 * pattern.contact)]

    def _momentum(self, p: Array, found: Array) -> _Calls:
        """Return the calls that compute the generalized momentum of impulses.

        Args:
            p: Impulses, (k, 3), [N s], contact frames. found: Receives the momentum, (n,), mixed units.
        """
        pattern, parts = self.pattern, np.empty((len(self.pattern.rows), BLOCK))
        call = momentum_kernel().prepare(len(parts), self._terms, Rows(p, pattern.contact), results=[parts])
        return [
            call,
            Call.copy(self._zeros[: found.size], found),
            Call.scatter_add(parts, found, BLOCK * pattern.block),
        ]

    def _solution(self, spreading: Sequence[PreparedCall]) -> CallSequence:
        """Return the calls that compute p, u and residual, and the velocities of the bodies, from `given`."""
        pattern, bodies, count, momentum = self.pattern, self.bodies, len(self.rows), np.zeros(self.pattern.size)
        rows, columns = pattern.inertia_blocks
        changes, violations = np.empty((len(rows), BLOCK)), np.empty((count, 3))
        inverse = Rows(bodies.inverse_blocks, pattern.inertia), Rows(momentum.reshape(-1, BLOCK), columns)
        law = self.u, self.diagonal, self.aims, self.p, self.mu
        return CallSequence(
            [
                Call.copy(self.given, self.p),
                *spreading,
                *self._momentum(self.p, momentum),
                Call.copy(self._wide_free, self._wide_next),
                block_product().prepare(len(rows), *inverse, results=[changes]),
                Call.scatter_add(changes, self._wide_next, pattern.starts[rows]),
                *self._velocities(self._wide_next, self.u),
                law_kernel().prepare(count, *law, results=[violations]),
                Call.reduce_max_abs(violations, self.residual),
            ]
        )

    @cached_property
    def _steps(self) -> Array:
        """Steps of the projections, (k,), [1/kg]."""
        return np.empty(len(self.rows))

    @cached_property
    def _slopes(self) -> Array:
        """Slopes -dp / du of the projections, (k, 3, 3), [kg], contact frames."""
        return np.empty((len(self.rows), 3, 3))

    @cached_property
    def _matrix(self) -> tuple[Band, Array, Array]:
        """The equations of Newton's method, the diagonals of the inertia matrix, and the positions of its blocks."""
        pattern, (rows, columns), within = self.pattern, self.pattern.inertia_blocks, np.arange(BLOCK)
        band = Band(pattern.size, pattern.width)
        i, j = BLOCK * rows[:, None, None] + within[:, None], BLOCK * columns[:, None, None] + within
        return band, np.zeros(band.matrix.shape), band.positions(i, j)

    def _write_matrix(self) -> None:
        """Write the inertia matrix, with 1 on the diagonal of unused velocities."""
        _, inertia, positions = self._matrix
        own = self.bodies.inertia_blocks[self.pattern.inertia]
        unused = self.pattern.unused.reshape(-1, BLOCK)
        rows, columns = self.pattern.inertia_blocks
        own[rows == columns] += unused[rows[rows == columns]][:, :, None] * np.eye(BLOCK)
        inertia.reshape(-1)[positions] = own

    @cached_property
    def _equations(self) -> _Calls:
        """The calls that solve (M + J^T diag(slopes) J) x = right."""
        pattern, (band, inertia, _) = self.pattern, self._matrix
        self._write_matrix()
        (one, other), blocks = pattern.pairs, np.empty((pattern.pairs.shape[1], BLOCK, BLOCK))
        J, K = (Rows(self.blocks, pattern.rows[terms]) for terms in (one, other))
        slopes = Rows(self._slopes, pattern.contact[one])
        columns = BLOCK * pattern.block[other][:, None] + np.arange(BLOCK)
        starts = band.positions(BLOCK * pattern.block[one][:, None], columns)
        return [
            square_kernel().prepare(len(blocks), J, slopes, K, results=[blocks]),
            Call.copy(inertia, band.matrix),
            Call.scatter_add(blocks.reshape(-1, BLOCK), band.matrix.reshape(-1), starts.ravel()),
            Call.solve_banded(band),
        ]

    @cached_property
    def _direction(self) -> CallSequence:
        return CallSequence(self._equations)

    def direction(self, slopes: Array, b: Array) -> Array:
        """Return the solution of (M + J^T diag(slopes) J) x = b, (n,), mixed units.

        Args:
            slopes: Of the projections, (k, 3, 3), [kg], contact frames. b: (n,), mixed units.
        """
        band = self._matrix[0]
        self._slopes[:], band.right[:] = slopes, b
        self._direction()
        return band.right.copy()

    def solve(self, p: Array) -> None:
        """Write the solution of impulses spread over the contacts of each group, and `Bodies.v_next`.

        Groups are contacts between the same bodies with the same normal, see `solver.spread`.

        Args:
            p: Impulses, (k, 3), [N s], contact frames.
        """
        self.given[:] = p
        self._by_normals()()

    @cached_property
    def _numbers(self) -> dict[str, Array]:
        """Arguments and results of `semismooth.progress`, which the iterations read and write, () each."""
        return {name: np.zeros(()) for name in ("residual", "least", "goal", "enough", "better", "continues")}

    @cached_property
    def _improvement(self) -> CallSequence:
        """The iterations of `semismooth.semismooth_newton` from the present solution, which write `best`."""
        pattern, bodies, count, numbers = self.pattern, self.bodies, len(self.rows), self._numbers
        band, residual = self._matrix[0], numbers["residual"]
        moved, u, du = (np.zeros((count, 3)) for _ in range(3))
        violations, right = np.empty((count, 3)), band.right.reshape(-1, BLOCK)
        rows, columns = pattern.inertia_blocks
        v, v_free = (Rows(windows(x, BLOCK), pattern.starts[columns]) for x in (self._wide_next, self._wide_free))
        inertial = np.empty((len(rows), BLOCK))
        law, state = (self.aims, self._steps, self.mu), (self.p, self.u)
        change = moved, self._slopes, u, du
        judged = [numbers[name] for name in ("residual", "least", "goal", "enough")]
        judgment = [numbers[name] for name in ("better", "least", "continues")]
        M = Rows(bodies.inertia_blocks, pattern.inertia)
        iteration = CallSequence(
            [
                linearized_kernel().prepare(count, *state, *law, residual, results=[moved, self._slopes, u]),
                *self._momentum(moved, band.right),
                inertial_kernel().prepare(len(rows), M, v, v_free, results=[inertial]),
                Call.scatter_add(inertial, band.right, BLOCK * rows),
                *self._equations,
                Call.scatter_add(right, self._wide_next, pattern.starts),
                *self._contact_velocities(Rows(right, pattern.block), du),
                advanced_kernel().prepare(count, *change, *law, results=[self.p, self.u, violations]),
                Call.reduce_max_abs(violations, residual),
                progress_kernel().prepare(1, *judged, results=judgment),
                Call.while_loop(CallSequence([Call.copy(self.p, self.best)]), numbers["better"], 1),
            ]
        )
        start = [Call.copy(self.residual, numbers[name]) for name in ("residual", "least")]
        start += [Call.copy(np.ones(()), numbers["continues"]), Call.copy(self.p, self.best)]
        return CallSequence([*start, Call.while_loop(iteration, numbers["continues"], self._iterations)])

    def improve(self, goal: float, enough: float, scale: float) -> None:
        """Take the iterations of `semismooth.semismooth_newton` from the present solution, and write `best`.

        Args:
            goal, enough: As there, [m/s].
            scale: Steps of the projections, relative to the mobilities of the contacts.
        """
        self._steps[:] = scale * self.mobility
        self._numbers["goal"][...], self._numbers["enough"][...] = goal, enough
        self._improvement()

    def evaluated(self, kernel: BatchKernel, lead: tuple[int, ...], *arrays: Any) -> Any:
        """Return the results of a kernel for all contacts.

        Args:
            kernel: The kernel. lead: Leading axes of the results, of which the last one has k entries.
            arrays: Arguments, mixed units.
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

    def _by_normals(self) -> CallSequence:
        """Return the calls of `_solution` for the present equal normals, and keep them."""
        turned = self._turns > 0.0
        self.turned = turned.tobytes()
        if self.turned not in self._solutions:
            if len(self._solutions) == MOST_SOLUTIONS:
                self._solutions.pop(next(iter(self._solutions)))
            groups = self.pattern.pairs_of_bodies
            if turned.any():
                normals = self.detected.frame[self.rows, 0]
                groups = equal_rows(np.column_stack([self.pattern.first, self.pattern.second, normals]))
            self._solutions[self.turned] = self._solution(self._spreading(groups))
        return self._solutions[self.turned]

    def _spreading(self, groups: Sequence[Array]) -> list[PreparedCall]:
        """Return the calls that spread impulses, for groups of contacts as of `ContactPattern.pairs_of_bodies`."""
        found = list[PreparedCall]()
        for members in groups:
            parts = self.given, self._places, self.mu
            arguments = [Rows(part, own) for part in parts for own in members.T]
            results = [Rows(self.p, own) for own in members.T]
            found.append(spreading_kernel(members.shape[1]).prepare(len(members), *arguments, results=results))
        return found
