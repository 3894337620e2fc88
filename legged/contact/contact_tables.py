"""The contact problem of a scene in parts: arrays and index tables of its contacts, and Newton's method for it.

The methods that take a `Recording` state the algorithm once; machine code executes it in every step on the same arrays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from legged.compiler import Band, BatchKernel, CallSequence, PreparedCall, Rows, windows
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
from legged.contact.recording import Recording
from legged.contact.rigid import Rigid
from legged.spatial import Array

MOST_SOLUTIONS = 4
"""Largest number of values of `ContactTables.turned` for which calls are kept."""
MOST_ITERATIONS = 40
"""Largest number of semismooth iterations with one step of the projections."""


class ContactTables:
    """Index tables, memory and calls of kernels for k contacts, for as long as the same ones are taken.

    Attributes:
        bodies: All bodies. detected: All candidates of near pairs.
        rows: Numbers of the contacts among these candidates, (k,).
        numbers: Their numbers in `Scene.candidates`, (k,).
        mu, restitution: Coefficients of each contact, (k,), dimensionless; restitution is () if all are zero.
        pattern: Positions of the blocks of the contacts in the matrices.
        blocks: Blocks of the Jacobian of the contacts, (n, 3, 6), mixed units: two of each contact, one for each side,
            then those for the coordinates of articulated robots; `pattern.rows` has the order of use.
        diagonal: Blocks of the Delassus operator of each contact with itself, (k, 3, 3), [1/kg], contact frames.
        mobility: The `newton.mobility` of each contact, (k,), [1/kg].
        target: Normal velocities of closed contacts without restitution, (k,), [m/s], contact frames.
        before: Velocities before the step, (k, 3), [m/s], contact frames.
        guess: Impulses of the forces of the last step, (k, 3), [N s], contact frames.
        current_target: Normal velocities of closed contacts that the calls below read, (k,), [m/s].
        impulses: Impulses that `solve` reads, (k, 3), [N s], contact frames.
        p, u, residual: Solution of `solve` for `impulses`, (k, 3), [N s], (k, 3), [m/s], contact frames, and (), [m/s];
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
        self._iterations, self._version = min(ground.iterations, MOST_ITERATIONS), -1
        mu, restitution = coefficients.T
        self.mu, self.restitution = np.ascontiguousarray(mu), restitution if restitution.any() else ()
        self.numbers = detected.numbers[rows]
        self.pattern = pattern = ContactPattern(detected.first[rows], detected.second[rows], bodies.layout)
        self.blocks = np.zeros((2 * count + len(pattern.articulated_terms), 3, BLOCK))
        self.diagonal, self._places = np.empty((count, 3, 3)), np.empty((count, 3))
        self.target, self.mobility, self.current_target = (np.empty(count) for _ in range(3))
        self.impulses, self.p, self.u, self.before, self.best, self.guess = (np.zeros((count, 3)) for _ in range(6))
        self.residual = np.zeros(())
        self._wide_v, self._wide_free, self._wide_next = bodies.padded
        self._calls: dict[Any, tuple[list[Array], list[Array], PreparedCall]] = {}
        self._solutions, self.turned = dict[bytes, CallSequence](), b""

        self._geometry = self._record_geometry(ground, forces)

    def _record_geometry(self, ground: Rigid, forces: Array) -> CallSequence:
        """Return the calls that compute the Delassus operator, targets and first guesses; arguments as above."""
        do, bodies, detected, rows, pattern = Recording(), self.bodies, self.detected, self.rows, self.pattern
        count, terms = len(rows), pattern.articulated_terms

        # Blocks of free bodies, Delassus operator, targets and guesses.
        law = Rows(detected.gap, rows), Rows(forces, self.numbers), bodies.h, np.array(ground.recovery, dtype=float)
        contact = [Rows(part, rows) for part in (detected.frame, detected.point)]
        parts = bodies.poses.rotation, bodies.poses.origin, bodies.mobility
        sides = [Rows(part, at) for at in (pattern.first, pattern.second) for part in parts]
        own_blocks = self.blocks[: 2 * count].reshape(count, 2, 3, BLOCK)
        results = own_blocks, self.diagonal, self.mobility, self.target, self._places, self.guess
        do.each(contact_rows_kernel(), count, *law, *contact, *sides, results=results)

        # How far the normals of contacts between the same bodies differ.
        normals, partners = detected.frame.reshape(-1, 3), 3 * rows[pattern.partners]
        pairs = [Rows(normals, at) for at in partners]
        self._turns = do.each(turn_kernel(), partners.shape[1], *pairs)

        # Blocks of articulated robots: those of the body times its Jacobian.
        if len(terms):
            factors = Rows(self.blocks, pattern.sides[terms]), Rows(bodies.jacobian_blocks, pattern.jacobians)
            do.each(jacobian_kernel(), len(terms), *factors, results=[Rows(self.blocks, pattern.rows[terms])])

        self._velocities(do, self._wide_v, self.before)
        return do.sequence()

    def update(self) -> None:
        """Compute the arrays for the present bodies and contacts."""
        pattern, bodies = self.pattern, self.bodies
        bodies.update_blocks()
        if bodies.version != self._version:
            self._version = bodies.version
            if "_equations" in self.__dict__:
                self._write_inertia(*self._equations)
            for kind, numbers, jacobians, robots in pattern.articulated:
                J = bodies.jacobians[kind][jacobians]
                bodies.mobility[numbers] = J @ bodies.inverse[kind][robots] @ J.transpose(0, 2, 1)
        self._geometry()
        for kind, own, terms, robots in pattern.self_contacts:
            count, nv = len(own), bodies.inverse[kind].shape[1]
            J = self.blocks[pattern.rows[terms]].sum(axis=1).transpose(0, 2, 1, 3).reshape(count, 3, -1)[..., :nv]
            self.diagonal[own] = J @ bodies.inverse[kind][robots] @ J.transpose(0, 2, 1)
            self.mobility[own] = mobility(np.moveaxis(self.diagonal[own], 0, -1))

    # Products with the Jacobian J and the inertia matrix M, and Newton's equations.

    @cached_property
    def _terms(self) -> Rows:
        """The (3, 6) blocks of the Jacobian."""
        return Rows(self.blocks, self.pattern.rows)

    def _velocities(self, do: Recording, wide: Array, u: Array) -> None:
        """Compute the velocities u = J v of contacts, (k, 3), [m/s], contact frames.

        Args:
            do: The recording. wide: Velocities of all robots, one of `Bodies.padded`, mixed units. u: Receives them.
        """
        self._contact_velocities(do, Rows(windows(wide, BLOCK), self.pattern.starts[self.pattern.block]), u)

    def _contact_velocities(self, do: Recording, v: Rows, u: Array) -> None:
        parts = do.each(velocity_kernel(), len(self.pattern.rows), self._terms, v)
        do.sum(parts, u, 3 * self.pattern.contact)

    def _momentum(self, do: Recording, p: Array, momentum: Array) -> None:
        """Compute the generalized momentum J^T p of impulses, (n,), mixed units.

        Args:
            do: The recording. p: Impulses, (k, 3), [N s], contact frames. momentum: Receives it.
        """
        pattern = self.pattern
        parts = do.each(momentum_kernel(), len(pattern.rows), self._terms, Rows(p, pattern.contact))
        do.sum(parts, momentum, BLOCK * pattern.block)

    @cached_property
    def _slopes(self) -> Array:
        """Slopes -dp / du of the projections, (k, 3, 3), [kg], contact frames."""
        return np.empty((len(self.rows), 3, 3))

    @cached_property
    def _equations(self) -> tuple[Band, Array, Array]:
        """The equations of Newton's method, the diagonals of the inertia matrix, and the positions of its blocks."""
        pattern, (rows, columns), within = self.pattern, self.pattern.inertia_blocks, np.arange(BLOCK)
        band = Band(pattern.size, pattern.width)
        i, j = BLOCK * rows[:, None, None] + within[:, None], BLOCK * columns[:, None, None] + within
        equations = band, np.zeros(band.matrix.shape), band.positions(i, j)
        self._write_inertia(*equations)
        return equations

    def _write_inertia(self, band: Band, inertia: Array, positions: Array) -> None:
        """Write the inertia matrix of `_equations`, with 1 on the diagonal of unused velocities."""
        blocks = self.bodies.inertia_blocks[self.pattern.inertia]
        unused = self.pattern.unused.reshape(-1, BLOCK)
        rows, columns = self.pattern.inertia_blocks
        blocks[rows == columns] += unused[rows[rows == columns]][:, :, None] * np.eye(BLOCK)
        inertia.reshape(-1)[positions] = blocks

    def _solve_equations(self, do: Recording) -> None:
        """Solve (M + J^T diag(slopes) J) x = b; `Band.right` holds b before and x after it."""
        pattern, (band, inertia, _) = self.pattern, self._equations
        one, other = pattern.pairs
        J, K = (Rows(self.blocks, pattern.rows[terms]) for terms in (one, other))
        products = do.each(square_kernel(), len(one), J, Rows(self._slopes, pattern.contact[one]), K)
        columns = BLOCK * pattern.block[other][:, None] + np.arange(BLOCK)
        starts = band.positions(BLOCK * pattern.block[one][:, None], columns)
        do.copy(inertia, band.matrix)
        do.add(products.reshape(-1, BLOCK), band.matrix.reshape(-1), starts.ravel())
        do.solve(band)

    @cached_property
    def _direction(self) -> CallSequence:
        do = Recording()
        self._solve_equations(do)
        return do.sequence()

    def direction(self, slopes: Array, b: Array) -> Array:
        """Return the solution of (M + J^T diag(slopes) J) x = b, (n,), mixed units.

        Args:
            slopes: Of the projections, (k, 3, 3), [kg], contact frames. b: (n,), mixed units.
        """
        band = self._equations[0]
        self._slopes[:], band.right[:] = slopes, b
        self._direction()
        return band.right.copy()

    # The effect of impulses.

    def solve(self, p: Array) -> None:
        """Write the solution of impulses spread over the contacts of each group, and `Bodies.v_next`.

        Groups are contacts between the same bodies with the same normal, see `solver.spread`.

        Args:
            p: Impulses, (k, 3), [N s], contact frames.
        """
        self.impulses[:] = p
        turned = self._turns > 0.0
        self.turned = turned.tobytes()
        if self.turned not in self._solutions:
            if len(self._solutions) == MOST_SOLUTIONS:
                self._solutions.pop(next(iter(self._solutions)))
            groups = self.pattern.pairs_of_bodies
            if turned.any():
                normals = self.detected.frame[self.rows, 0]
                groups = equal_rows(np.column_stack([self.pattern.first, self.pattern.second, normals]))
            self._solutions[self.turned] = self._record_solution(groups)
        self._solutions[self.turned]()

    def _record_solution(self, groups: Sequence[Array]) -> CallSequence:
        """Return the calls that compute p, u and residual, and the velocities of the bodies, from `impulses`.

        Args:
            groups: Groups of contacts, as of `ContactPattern.pairs_of_bodies`.
        """
        do, pattern, bodies, count = Recording(), self.pattern, self.bodies, len(self.rows)

        # Impulses of least norm in each group.
        do.copy(self.impulses, self.p)
        for members in groups:
            parts = [Rows(part, own) for part in (self.impulses, self._places, self.mu) for own in members.T]
            results = [Rows(self.p, own) for own in members.T]
            do.each(spreading_kernel(members.shape[1]), len(members), *parts, results=results)

        # Velocities of the bodies, v = v_free + M^-1 J^T p.
        (rows, columns), momentum = pattern.inertia_blocks, np.zeros(pattern.size)
        self._momentum(do, self.p, momentum)
        do.copy(self._wide_free, self._wide_next)
        M_inverse = Rows(bodies.inverse_blocks, pattern.inertia)
        changes = do.each(block_product(), len(rows), M_inverse, Rows(momentum.reshape(-1, BLOCK), columns))
        do.add(changes, self._wide_next, pattern.starts[rows])

        # Velocities of the contacts, and the violation of the contact law.
        self._velocities(do, self._wide_next, self.u)
        violations = np.empty((count, 3))
        law = self.u, self.diagonal, self.current_target, self.p, self.mu
        do.each(law_kernel(), count, *law, results=[violations])
        do.largest(violations, self.residual)
        return do.sequence()

    # The semismooth Newton method.

    def improve(self, goal: float, enough: float, scale: float) -> None:
        """Take the iterations of `semismooth.semismooth_newton` from the present solution, and write `best`.

        Args:
            goal, enough: As there, [m/s].
            scale: Steps of the projections, relative to the mobilities of the contacts.
        """
        self._steps[:] = scale * self.mobility
        self._progress["goal"][...], self._progress["enough"][...] = goal, enough
        self._semismooth_newton()

    @cached_property
    def _steps(self) -> Array:
        """Steps of the projections, (k,), [1/kg]."""
        return np.empty(len(self.rows))

    @cached_property
    def _progress(self) -> dict[str, Array]:
        """Arguments and results of `semismooth.progress`, which the iterations read and write, () each."""
        return {name: np.zeros(()) for name in ("residual", "least", "goal", "enough", "better", "continues")}

    @cached_property
    def _semismooth_newton(self) -> CallSequence:
        """The iterations of `semismooth.semismooth_newton`."""
        do, pattern, count = Recording(), self.pattern, len(self.rows)
        residual, least, goal, enough, better, continues = self._progress.values()
        law, b, du = (self.current_target, self._steps, self.mu), self._equations[0].right, np.zeros((count, 3))
        do.copy(self.residual, residual)
        do.copy(self.residual, least)
        do.copy(self.p, self.best)
        do.copy(np.ones(()), continues)
        with do.repeat(continues, self._iterations):
            # The contact law near the present impulses and velocities: p + moved - slopes du.
            results = np.zeros((count, 3)), self._slopes, np.zeros((count, 3))
            moved, _, u = do.each(linearized_kernel(), count, self.p, self.u, *law, residual, results=results)

            # The velocities of the bodies that satisfy it: (M + J^T slopes J) dv = J^T (p + moved) - M (v - v_free).
            self._momentum(do, moved, b)
            self._subtract_momentum(do, b)
            self._solve_equations(do)
            dv = b.reshape(-1, BLOCK)
            do.add(dv, self._wide_next, pattern.starts)

            # The impulses after the change, and how far they violate the contact law.
            self._contact_velocities(do, Rows(dv, pattern.block), du)
            results = self.p, self.u, np.empty((count, 3))
            *_, violations = do.each(advanced_kernel(), count, moved, self._slopes, u, du, *law, results=results)
            do.largest(violations, residual)

            # The best impulses so far, and whether to continue.
            do.each(progress_kernel(), 1, residual, least, goal, enough, results=[better, least, continues])
            with do.repeat(better, 1):
                do.copy(self.p, self.best)
        return do.sequence()

    def _subtract_momentum(self, do: Recording, b: Array) -> None:
        """Subtract M (v - v_free) from a generalized momentum b, (n,), mixed units."""
        pattern, bodies, (rows, columns) = self.pattern, self.bodies, self.pattern.inertia_blocks
        v, v_free = (Rows(windows(x, BLOCK), pattern.starts[columns]) for x in (self._wide_next, self._wide_free))
        M = Rows(bodies.inertia_blocks, pattern.inertia)
        do.add(do.each(inertial_kernel(), len(rows), M, v, v_free), b, BLOCK * rows)

    # Functions of all contacts for the proximal method.

    def evaluated(self, kernel: BatchKernel, lead: tuple[int, ...], *arrays: Any) -> Any:
        """Return the results of a kernel for all contacts.

        Args:
            kernel: The kernel. lead: Leading axes of the results, of which the last one has k entries.
            arrays: Arguments, mixed units.
        """
        call = self._calls.get((kernel, lead))
        if call is None:
            shapes = *kernel.shapes, *kernel.graph.outputs
            arguments = [np.empty(lead + shape) for shape in shapes]
            flat = [array.reshape(-1, *shape) for array, shape in zip(arguments, shapes, strict=True)]
            size = len(kernel.shapes)
            prepared = kernel.prepare(math.prod(lead), *flat[:size], results=flat[size:])
            call = self._calls[kernel, lead] = arguments[:size], arguments[size:], prepared
        memory, results, prepared = call
        for own, given in zip(memory, arrays, strict=True):
            own[...] = given
        prepared()
        return kernel.graph.rebuild(iter([part.copy() for part in results]))
