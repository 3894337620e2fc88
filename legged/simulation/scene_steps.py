"""A time step of a scene in parts: its calls one after the other, or as one sequence that machine code repeats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from legged.compiler import BatchKernel, Call, CallSequence, PreparedCall, Rows
from legged.contact.bodies import Bodies
from legged.contact.contact_tables import ContactTables
from legged.contact.pair_tables import PairTables
from legged.contact.touching import ContactSolver, TakenContacts
from legged.simulation.equal_robots import StepMemory
from legged.simulation.loop.contact_memory import memory_after
from legged.spatial import Array

MOST_STEPS = 256
"""Largest number of time steps of one call of machine code, which Ctrl-C cannot interrupt."""


@dataclass(eq=False)
class _End:
    """The calls that end a step with given contacts, and those of whole steps with them.

    Attributes:
        calls: Write the state after the step.
        key: What the calls of a whole step depend on besides the contacts: the pairs that are near, and which normals
            are equal, as of `ContactTables.turned`.
        uses: Number of steps with these contacts and the same equal normals that `SceneStep.take` has taken.
        steps: The calls of a whole step with these contacts and the key; None before they are made.
    """

    calls: CallSequence
    key: tuple[Any, bytes] = (None, b"")
    uses: int = 0
    steps: CallSequence | None = None


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
        self._by_contacts, self._last = WeakKeyDictionary[TakenContacts, _End](), None

    def write(self, t: Any, h: Any, q: Array, s: Array, tau: Any, damping: Any, number: int = 0) -> None:
        """Write the arguments of a step to the memory.

        Args:
            t: Time of step 0, [s]. h: Time step, [s]. q: Configuration, (nq,). s: Rest of the state, (size,).
            tau, damping: See `StepActuation`, (nv,) or scalars, mixed units. number: Number of the step.
        """
        memory, nq, now = self.memory, len(q), t + number * h
        memory.clock[:] = t, h, number, now, now + 0.5 * h
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
        end = self._end(taken)
        end.calls()
        key = self._tables.present(), taken.tables.turned if taken.tables else b""
        if key[0] is not end.key[0] or key[1] != end.key[1]:
            end.uses = end.uses if key[1] == end.key[1] else 0
            end.key, end.steps = key, None
        end.uses += 1
        self._last = taken

    def whole(self) -> CallSequence | None:
        """Return the calls of a whole step with the near pairs and contacts of the last one.

        None if they have been the same in one step only, or if the solver has no calls for these contacts.
        """
        if self._last is None:
            return None
        end = self._end(self._last)
        if self._tables.present() is not end.key[0] or end.uses < 2:
            return None
        if end.steps is None:
            contacts = self._solver.calls(self._last)
            if contacts is None:
                return None
            calls = [*self.begin.calls, *self._tables.calls(), *contacts, *end.calls.calls]
            end.steps = CallSequence([*calls, Call.increment_clock(self.memory.clock)])
        return end.steps

    def _end(self, taken: TakenContacts) -> _End:
        """Return the calls that end a step with given contacts, and keep them."""
        found = self._by_contacts.get(taken)
        if found is None:
            memory, tables = self.memory, taken.tables
            calls: list[Call | PreparedCall] = list(self._ends)
            state = [Call.copy(memory.q_end, memory.q), Call.copy(memory.v_end, memory.v)]
            state.append(Call.copy(memory.states_end, memory.states))
            state.append(Call.copy(np.zeros(memory.contacts.forces.shape), memory.contacts.forces))
            state += [Call.scatter_add(works, memory.works, np.zeros(len(works), dtype=int)) for works in self._works]
            if tables:
                call, parts = self._contact_memory(tables)
                calls.append(call)
                state += parts
            self._by_contacts[taken] = found = _End(CallSequence([*calls, *state]))
        return found

    def _contact_memory(self, tables: ContactTables) -> tuple[PreparedCall, list[Call]]:
        """Return the call that computes the memory of contacts after a step, and those that write it to the state."""
        memory, contacts, numbers = self.memory, self.memory.contacts, tables.numbers
        frames, parts = Rows(tables.detected.frame, tables.rows), contacts.history
        arguments = memory.middle, memory.h, frames, tables.p, tables.before, tables.u, tables.residual
        rows = [Rows(part, numbers) for part in parts]
        call = _memory_kernel().prepare(len(numbers), *arguments, *rows, memory.totals)
        forces, impulse, peak, touched, last, totals, work = call.results
        return call, [
            Call.scatter(forces, contacts.forces.reshape(-1), 3 * numbers),
            Call.scatter(impulse, contacts.impulse.reshape(-1), 3 * numbers),
            Call.scatter(peak[:, None], contacts.peak, numbers),
            Call.scatter(touched[:, None], contacts.touched, numbers),
            Call.scatter(last[:, None], contacts.last, numbers),
            Call.copy(totals[0], memory.totals),
            Call.scatter_add(work[:, None], memory.works, np.ones(len(numbers), dtype=int)),
        ]


@cache
def _memory_kernel() -> BatchKernel:
    shapes = {"t": (), "h": (), "frame": (3, 3), "p": (3,), "before": (3,), "u": (3,), "residual": ()}
    return BatchKernel(memory_after, {**shapes, "impulse": (3,), "peak": (), "touched": (), "last": (), "totals": (2,)})
