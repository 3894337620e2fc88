"""A step, many times over, inside machine code: the loop of a fixed-step simulation, for one state or many in lanes.

A step is a function (clock (3,), parameters (p,), state (n,)) -> (next state (n,), verdict), recorded as a graph; the
clock is [t, h, number]. Its states, the members of a batch, go into the lanes of vectors and stay there, number by
number, while the loop runs: `loop` is the assembly, `Repeat` what Python calls.

How far and how often is said by a schedule of pieces: `count` steps of length h from `start`, all under one `number`.
A piece may differ from member to member; lanes that have done their steps wait for the others. After some pieces the
state is stored, and there the verdict counts: anything but zero ends the member. A member whose next state is not
finite ends at once, in the state before. Members that have ended keep their lane and change no more, so that nothing
of theirs reaches the others; the loop is left when all lanes of a block have ended.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from legged.compiler.cache import machine_code
from legged.compiler.codegen import llvm, selection, time_loop
from legged.compiler.ir.graph import Graph, record
from legged.compiler.passes.simplify import simplify
from legged.compiler.runtime.threads import checked, default_threads, share
from legged.errors import TraceError

Array = np.ndarray
NOT_FINITE = -1.0
"""The code of a member whose state has no finite successor."""


class Schedule(NamedTuple):
    """What to do, piece after piece.

    Attributes:
        pieces: [start, h, count, number] of each piece, (B, P, 4), or (1, P, 4) if it is the same for all members.
        rows: The row of the stored states that each piece ends with, (P,), -1 for none.
    """

    pieces: Array
    rows: Array

    def part(self, first: int, end: int) -> Schedule:
        """Return some of the pieces."""
        return Schedule(self.pieces[:, first:end], self.rows[first:end])


@dataclass(frozen=True, eq=False)
class Members:
    """The states of a batch between two calls.

    Attributes:
        state: (B, n).
        outcome: [code, time, rows] of each, (B, 3): zero or why it ended, when a step without an answer began, and
            how many of the stored states are its.
        stored: States stored so far, (B, T, n); those behind a member's last have no meaning.
    """

    state: Array
    outcome: Array
    stored: Array

    @classmethod
    def at(cls, state: Array, samples: int) -> Members:
        """Return members at the start, with room for so many samples."""
        state = np.array(state, dtype=float, order="C")
        return cls(state, np.zeros((len(state), 3)), np.empty((len(state), samples, state.shape[1])))

    @property
    def live(self) -> bool:
        """Whether any has not ended."""
        return bool((self.outcome[:, 0] == 0.0).any())


class Repeat:
    """The machine code of a step with its loop; compiled when first used, and kept on disk as kernels are.

    Attributes:
        graph: The step.
        parameters, size: Lengths of a member's parameters and of its state.
    """

    def __init__(self, graph: Graph):
        (_, clock), (_, parameters), (_, state) = graph.inputs
        if clock != (3,) or graph.outputs != (state, ()) or len(parameters) != 1 or len(state) != 1:
            raise TraceError("a step takes clock (3,), parameters (p,) and state (n,) and returns (state, verdict)")
        self.graph, self.parameters, self.size = graph, parameters[0], state[0]

    @classmethod
    def of(cls, step: Callable[[Any, Any, Any], Any], parameters: int, size: int) -> Repeat:
        """Return the loop over a step given as plain NumPy code."""
        shapes = {"clock": (3,), "parameters": (parameters,), "state": (size,)}
        return cls(simplify(record(step, shapes)))

    @cached_property
    def _one(self) -> Callable[..., int]:
        return self._function(selection.time_loop_module)

    @cached_property
    def _lanes(self) -> Callable[..., int]:
        return self._function(selection.batch_time_loop_module)

    def _function(self, program: Callable[[Graph], str]) -> Callable[..., int]:
        types = ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
        return machine_code.load(self.graph, program).function(time_loop.ENTRY_POINT, *types)

    def _room(self, width: int) -> int:
        """Return how many numbers of working memory `width` states take; counted once, since large graphs take long."""
        known = self.__dict__.setdefault("_rooms", {})
        if width not in known:
            known[width] = time_loop.work_size(self.graph, width)
        return known[width]

    def run(self, members: Members, parameters: Array, schedule: Schedule, threads: int | None = None) -> None:
        """Take the members through a schedule; they are changed in place.

        A member's numbers do not depend on the batch it is in, on its place there or on the threads.

        Args:
            members: The states. parameters: (B, p), or (1, p) if all have the same. schedule: What to do.
            threads: How many threads may share the members, see `threads`.
        """
        count = len(members.state)
        pieces = np.ascontiguousarray(schedule.pieces, dtype=float)
        parameters = np.ascontiguousarray(parameters, dtype=float)
        for array, shape in ((pieces, (len(schedule.rows), 4)), (parameters, (self.parameters,))):
            if array.shape[1:] != shape or len(array) not in (1, count):
                raise ValueError(f"expected (1 or {count}, {', '.join(map(str, shape))}), got {array.shape}")
        arrays = [pieces, parameters, members.state, members.outcome, members.stored]
        places = np.array([[a.ctypes.data, a.strides[0] if len(a) > 1 else 0] for a in arrays], dtype=np.int64)
        rows = np.concatenate([[len(schedule.rows)], schedule.rows]).astype(np.int64)
        function, width = (self._lanes, llvm.vector_width()) if count > 1 else (self._one, 1)
        room = self._room(width) + 8

        def piece(first: int, end: int) -> int:
            work = np.empty(room)
            aligned = -(-work.ctypes.data // 64) * 64
            return function(first, end, places.ctypes.data, rows.ctypes.data, aligned)

        threads = default_threads() if threads is None else checked(threads)
        step = max(-(-count // (4 * threads) // width) * width, width) if threads > 1 else count
        chunks = [(first, min(first + step, count)) for first in range(0, count, step)]
        share(chunks, min(threads, len(chunks)), piece)
