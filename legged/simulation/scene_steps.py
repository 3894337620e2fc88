"""A time step of a scene in parts: calls of machine code that begin it, solve the contact problem and end it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from legged.compiler import BatchKernel, CallSequence, PreparedCall, Rows
from legged.contact.bodies import Bodies
from legged.contact.contact_tables import ContactTables
from legged.contact.pair_tables import PairTables
from legged.contact.recording import Recording
from legged.contact.touching import ContactSolver, TakenContacts
from legged.simulation.loop.contact_memory import ContactMemory, memory_after
from legged.spatial import Array


class StepMemory:
    """The arguments and results of a time step, in arrays that every step writes again.

    Attributes:
        h, middle: The time step, and the time in its middle, (), [s].
        state: State [q; s] of the scene, see `rigid_loop`, (nq + size,).
        q, v: Its parts of all robots of the scene, (nq,) and (nv,), mixed units.
        contacts: Its `ContactMemory`. totals: Its last two entries, (2,), [m] and [m/s]. works: Works, (4,), [J].
        states: Its q and v of the free bodies, (f, 13), mixed units.
        tau, damping: See `StepActuation`, (nv,) each, mixed units.
        q_end, v_end, states_end: q, v and states after the step.
    """

    def __init__(self, nq: int, nv: int, free: int, memory: int, candidates: int):
        """Lay out the arrays.

        Args:
            nq, nv: Lengths of q and v of all robots. free: Number of free bodies.
            memory: Length of the controller's memory. candidates: Number of contact candidates.
        """
        self.h, self.middle = np.zeros(()), np.zeros(())
        begin = nq + nv + memory  # of the memory of the contacts
        end = begin + ContactMemory.size(candidates)
        self.state = np.zeros(end + 4 + 13 * free)
        self.q, self.v = self.state[:nq], self.state[nq : nq + nv]
        self.contacts = ContactMemory.of(self.state[begin:end])
        self.totals, self.works = self.state[end - 2 : end], self.state[end : end + 4]
        self.states = self.state[end + 4 :].reshape(free, 13)
        self.tau, self.damping = np.zeros(nv), np.zeros(nv)
        self.q_end, self.v_end, self.states_end = np.zeros(nq), np.zeros(nv), np.zeros((free, 13))


class SceneStep:
    """The prepared calls of a time step.

    Args:
        memory: Arguments and results of the calls. bodies: The bodies. tables: The pairs.
        begin: Writes poses and velocities of the bodies in the middle of the step, and how far they may move in it.
        ends: Write the states of robots and of free bodies after the step.
        works: Works of the robots of each kind in the step without that of contacts, (m, 4), [J].
        solver: Solves the contact problem.
    """

    def __init__(
        self,
        memory: StepMemory,
        bodies: Bodies,
        tables: PairTables,
        begin: CallSequence,
        ends: Sequence[PreparedCall],
        works: Sequence[Array],
        solver: ContactSolver,
    ):
        self.memory, self.bodies, self._tables, self.begin = memory, bodies, tables, begin
        self._ends, self._works, self._solver = ends, works, solver
        self._ends_of = WeakKeyDictionary[TakenContacts, CallSequence]()

    def write(self, t: Any, h: Any, q: Array, s: Array, tau: Any, damping: Any) -> None:
        """Write the arguments of a step to the memory.

        Args:
            t: Time, [s]. h: Time step, [s]. q: Configuration, (nq,). s: Rest of the state, (size,).
            tau, damping: See `StepActuation`, (nv,) each, mixed units.
        """
        memory, nq = self.memory, len(q)
        memory.h[...], memory.middle[...] = h, t + 0.5 * h
        memory.state[:nq], memory.state[nq:], memory.tau[:], memory.damping[:] = q, s, tau, damping

    def take(self, h: float) -> None:
        """Replace the state in the memory by that after a step, call by call.

        Args:
            h: Time step, [s].

        Raises:
            NotFiniteError: A result is not finite.
        """
        self.begin()
        taken = self._solver.impulses(self._tables.detect(self.bodies.poses, self.bodies.reach), h)
        if taken not in self._ends_of:
            self._ends_of[taken] = self._end(taken.tables)
        self._ends_of[taken]()

    def _end(self, tables: ContactTables | None) -> CallSequence:
        """Return the calls that end a step with given contacts."""
        do, memory = Recording(), self.memory
        for end in self._ends:
            do.call(end)
        results = self._memory_after(do, tables) if tables else []
        do.copy(memory.q_end, memory.q)
        do.copy(memory.v_end, memory.v)
        do.copy(memory.states_end, memory.states)
        do.copy(np.zeros(memory.contacts.forces.shape), memory.contacts.forces)
        for works in self._works:
            do.add(works, memory.works, np.zeros(len(works), dtype=int))
        if tables:
            contacts, numbers = memory.contacts, tables.numbers
            forces, impulse, peak, touched, last, totals, work = results
            do.scatter(forces, contacts.forces.reshape(-1), 3 * numbers)
            do.scatter(impulse, contacts.impulse.reshape(-1), 3 * numbers)
            for part, whole in ((peak, contacts.peak), (touched, contacts.touched), (last, contacts.last)):
                do.scatter(part[:, None], whole, numbers)
            do.copy(totals[0], memory.totals)
            do.add(work[:, None], memory.works, np.ones(len(numbers), dtype=int))
        return do.sequence()

    def _memory_after(self, do: Recording, tables: ContactTables) -> list[Array]:
        """Compute the memory of contacts after a step, from that before it, which is still in the state."""
        memory = self.memory
        arguments = memory.middle, memory.h, Rows(tables.detected.frame, tables.rows), tables.p, tables.before
        rows = [Rows(part, tables.numbers) for part in memory.contacts.history]
        arguments += tables.u, tables.residual, *rows, memory.totals
        return list(do.each(_memory_kernel(), len(tables.numbers), *arguments))


@cache
def _memory_kernel() -> BatchKernel:
    shapes = {"t": (), "h": (), "frame": (3, 3), "p": (3,), "before": (3,), "u": (3,), "residual": ()}
    return BatchKernel(memory_after, {**shapes, "impulse": (3,), "peak": (), "touched": (), "last": (), "totals": (2,)})
