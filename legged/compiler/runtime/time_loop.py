"""The time loop of a fixed-step simulation in machine code, for one state or for a batch in SIMD lanes.

A time step is a function (clock (3,), parameters (p,), state (n,)) -> (next state (n,), termination code), recorded as
a graph; the clock is [t, h, number]. Each member of a batch occupies a lane of the vectors during the loop, which
`codegen.batches.time_loop` writes and `TimeLoop` calls.

A `Schedule` consists of intervals: `count` steps of length h from time `start`, all with the same `number`. Intervals
may differ from member to member; lanes that have finished an interval wait for the others. At the end of some intervals
the state is stored; there a termination code other than zero ends the member. A member whose next state is not finite
ends at once and keeps the state before. Members that have ended keep their lane without a change and do not influence
others. The loop ends when all lanes of a block have ended.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from legged.compiler.cache import machine_code
from legged.compiler.codegen import llvm, selection
from legged.compiler.codegen.batches import time_loop
from legged.compiler.codegen.element_type import FLOAT64, ElementType
from legged.compiler.ir.graph import Graph
from legged.compiler.passes.pipeline import trace
from legged.compiler.runtime.batches import address_of
from legged.compiler.runtime.call_sequence import Call
from legged.compiler.runtime.threads import chunk_size, default_threads, run_chunks
from legged.errors import TraceError

Array = np.ndarray
NOT_FINITE = -1.0
"""Termination code of a member whose next state is not finite."""
OPERATIONS_PER_CALL = 1e8
"""Operations (on vectors, for a batch) of one call of machine code: a fifth of a second, since Ctrl-C waits for it."""


class Schedule(NamedTuple):
    """The intervals of a simulation, in order.

    Attributes:
        intervals: [start, h, count, number] of each interval, (B, P, 4), or (1, P, 4) if equal for all members; start
            and h in [s].
        samples: Index of the stored state at the end of each interval, (P,), -1 if none is stored; `CODES_ONLY` if none
            is stored and termination codes end members nevertheless.
    """

    intervals: Array
    samples: Array

    def part(self, first: int, end: int) -> Schedule:
        """Return the intervals first, ..., end - 1."""
        return Schedule(self.intervals[:, first:end], self.samples[first:end])

    @property
    def steps(self) -> Array:
        """Number of steps of each interval, (P,), the largest of all members."""
        return self.intervals[..., 2].max(axis=0, initial=0.0)

    def split(self, most: int) -> list[Schedule]:
        """Return consecutive schedules of at most `most` steps each; longer intervals are divided.

        Args:
            most: Number of steps, at least 1.
        """
        pieces, samples = [], []
        for p, steps in enumerate(self.steps.tolist()):
            count = max(int(np.ceil(steps / most)), 1)
            for k in range(count):
                piece = self.intervals[:, p].copy()
                piece[:, 0] += k * most * piece[:, 1]
                piece[:, 2] = np.clip(piece[:, 2] - k * most, 0, most)
                pieces.append(piece)
                samples.append(self.samples[p] if k == count - 1 else -1)
        whole = Schedule(np.stack(pieces, axis=1), np.array(samples))
        bounds, room = [0], most
        for p, steps in enumerate(whole.steps.tolist()):
            if steps > room:
                bounds.append(p)
                room = most
            room -= steps
        return [whole.part(first, end) for first, end in pairwise([*bounds, len(samples)])]


class Comparison(NamedTuple):
    """State variables that a call compares with a bound at its end: `first`, ..., first + count - 1.

    Attributes:
        first: Index of the first one. count: Their number.
        bound: Their largest magnitude that is not reported, in their unit.
    """

    first: int
    count: int
    bound: float


_NO_COMPARISON = Comparison(0, 0, 0.0)
_NO_COMMAND = np.zeros((1, 0))


@dataclass(frozen=True, eq=False)
class Members:
    """The states of a batch between two calls.

    Attributes:
        state: (B, n).
        outcome: [code, time, samples] of each member, (B, 3): zero or the termination code, the time [s] at which a
            step without a finite result began, and the number of valid stored states.
        stored: Stored states, (B, T, n); those after a member's last valid one are undefined.
    """

    state: Array
    outcome: Array
    stored: Array

    @classmethod
    def at(cls, state: Array, samples: int, dtype: np.dtype = FLOAT64.dtype) -> Members:
        """Return members at the start.

        Args:
            state: Initial states, (B, n), in the units and frames of the simulated system.
            samples: Number of states to store for each member.
            dtype: Data type of all arrays.
        """
        state = np.array(state, dtype=dtype, order="C")
        stored = np.empty((len(state), samples, state.shape[1]), dtype)
        return cls(state, np.zeros((len(state), 3), dtype), stored)

    @property
    def live(self) -> bool:
        """Whether any member has not ended."""
        return bool((self.outcome[:, 0] == 0.0).any())


class TimeLoop:
    """The compiled time loop of a step; the machine code is loaded or compiled at the first use.

    Attributes:
        graph: The step.
        parameters: Number of a member's parameters.
        size: Number of a member's state variables.
        element: Type of the numbers in all arrays.
    """

    def __init__(self, graph: Graph, element: ElementType = FLOAT64):
        (_, clock), (_, parameters), (_, state) = graph.inputs
        if clock != (3,) or graph.outputs != (state, ()) or len(parameters) != 1 or len(state) != 1:
            raise TraceError("a step takes clock (3,), parameters (p,) and state (n,) and returns (state, code)")
        self.graph, self.parameters, self.size, self.element = graph, parameters[0], state[0], element
        self._target = llvm.default_target().with_element(element)

    @classmethod
    def of(
        cls, step: Callable[[Any, Any, Any], Any], parameters: int, size: int, element: ElementType = FLOAT64
    ) -> TimeLoop:
        """Return the time loop of a step that is given as plain NumPy code."""
        shapes = {"clock": (3,), "parameters": (parameters,), "state": (size,)}
        return cls(trace(step, shapes), element)

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes for `pickle` and `copy`, without machine code, which is loaded again."""
        return {name: value for name, value in vars(self).items() if name not in ("_run_single", "_run_batch")}

    @cached_property
    def _run_single(self) -> Any:
        return self._function(selection.time_loop_module, 1)

    @cached_property
    def _run_batch(self) -> Any:
        return self._function(selection.batch_time_loop_module, self._target.width)

    def _function(self, module: Callable[[Graph], str], width: int) -> Any:
        code = machine_code.load(self.graph, module, self._target, width)
        function = code.function(time_loop.ENTRY_POINT, ctypes.c_void_p)
        function.part = code.address(time_loop.PART)
        return function

    @cached_property
    def _work_sizes(self) -> dict[int, int]:
        return {}

    def _work_size(self, width: int) -> int:
        """Return the size of the working memory for `width` members, [bytes]; stored, since it takes long."""
        if width not in self._work_sizes:
            self._work_sizes[width] = self.element.size * time_loop.work_size(self.graph, width, self.element)
        return self._work_sizes[width]

    def lanes(self, count: int) -> int:
        """Return the number of members that are advanced at a time, of a batch of `count` members."""
        return self._target.width if count > 1 else 1

    def run(
        self,
        members: Members,
        parameters: Array,
        schedule: Schedule,
        threads: int | None = None,
        command: Array = _NO_COMMAND,
    ) -> None:
        """Advance the members through a schedule, in place.

        The result of a member depends neither on the other members nor on the number of threads.

        Args:
            members: The states.
            parameters: Parameters of the step, (B, p), or (1, p) if equal for all members, mixed units and frames.
            schedule: The intervals.
            threads: Maximal number of threads, which the caller has checked; None for the default, see `threads`.
            command: The last parameters of each member, if they lie in another array, (B, c), mixed units and frames.
        """
        most = min(max(int(OPERATIONS_PER_CALL / max(self.graph.size, 1)), 1), self.element.most_indices)
        steps = float(schedule.steps.sum())
        if steps > most:
            for part in schedule.split(most):
                self.run(members, parameters, part, threads, command)
            return
        count, parameters = len(members.state), np.ascontiguousarray(parameters, dtype=self.element.dtype)
        schedule = Schedule(np.ascontiguousarray(schedule.intervals, dtype=self.element.dtype), schedule.samples)
        threads = default_threads() if threads is None else threads
        call = self.prepared(members, parameters, schedule, command)
        call(threads if count > 1 else 1, max(int(most // max(steps, 1.0)), 1) * call.width)

    def prepared(
        self,
        members: Members,
        parameters: Array,
        schedule: Schedule,
        command: Array = _NO_COMMAND,
        comparison: Comparison = _NO_COMPARISON,
    ) -> PreparedLoop:
        """Return the call of `run` with these arrays, which may change in place between calls.

        Args:
            members: The states.
            parameters: Contiguous parameters of the step, (B, p) or (1, p), mixed units and frames.
            schedule: The intervals, a contiguous array.
            command: The last parameters of each member, as in `run`, a contiguous array.
            comparison: State variables of all members that each call compares with a bound.
        """
        count, intervals = len(members.state), schedule.intervals
        command = command if command.shape[1] else np.zeros((1, 0), self.element.dtype)
        sizes = (len(schedule.samples), 4), (self.parameters - command.shape[1],), command.shape[1:]
        for array, shape in zip((intervals, parameters, command), sizes, strict=True):
            if array.shape[1:] != shape or len(array) not in (1, count):
                raise ValueError(f"expected (1 or {count}, {', '.join(map(str, shape))}), got {array.shape}")
        arrays = [intervals, parameters, members.state, members.outcome, members.stored, command]
        if any(array.dtype != self.element.dtype for array in arrays):
            raise ValueError(f"expected arrays of {self.element}, got {', '.join(str(a.dtype) for a in arrays)}")
        function, width = self._run_batch if count > 1 else self._run_single, self.lanes(count)
        return PreparedLoop(function, width, self._work_size(width) + 64, arrays, schedule.samples, comparison)


class PreparedLoop:
    """A call of the machine code with fixed arrays; a call takes a microsecond besides the steps.

    Args:
        function: The machine code; its attribute `part` is the address of the function for a part of the members.
        width: Number of members that it advances at a time.
        work_size: Size of its working memory, [bytes].
        arrays: Intervals, parameters, states, outcomes, stored states and commands, each with a row per member or a
            single row.
        samples: Index of the stored state at the end of each interval, (P,), -1 if none is stored.
        comparison: State variables that each call compares with a bound.

    Attributes:
        alone: Function that advances all members in the calling thread, and returns what a call of this object returns.
    """

    def __init__(
        self,
        function: Any,
        width: int,
        work_size: int,
        arrays: Sequence[Array],
        samples: Array,
        comparison: Comparison,
    ):
        self._function, self.width, self._work_size = function, width, work_size
        self._arrays, self._count = arrays, len(arrays[2])  # keeps the memory alive
        rows = [[address_of(a) if a.size else 0, a.strides[0] if len(a) > 1 else 0] for a in arrays]
        self._layouts = np.array(rows, dtype=np.int64)
        self._samples = np.empty(time_loop.SAMPLES_HEADER + len(samples), dtype=np.int64)
        header = len(samples), comparison.first, comparison.count, 0, arrays[5].shape[1]
        self._samples[: time_loop.SAMPLES_HEADER], self._samples[time_loop.SAMPLES_HEADER :] = header, samples
        self._samples[3:4].view(float)[0] = comparison.bound
        self._work = np.empty(work_size, dtype=np.uint8)
        work = -(-address_of(self._work) // 64) * 64  # begins at a cache line
        numbers = 0, self._count, address_of(self._layouts), address_of(self._samples), work
        self._call = np.array(numbers, dtype=np.int64)
        self._address = address_of(self._call)
        self.alone = partial(function, ctypes.c_void_p(self._address))  # converted once, which saves time

    def __call__(self, threads: int, most: int | None = None) -> int:
        """Advance the members in place; return `ENDED` if any of them has ended, else `EXCEEDED` if a state variable
        exceeds its bound, else -1.

        Args:
            threads: Maximal number of threads.
            most: Largest number of members of one call of machine code, which Ctrl-C cannot interrupt.
        """
        if threads == 1 and (most is None or most >= self._count):
            return self.alone()
        size = min(chunk_size(self._count, threads, multiple=self.width), most or self._count)
        return run_chunks(self._function.part, self._address, self._count, size, threads, self._work_size, most)

    def described(self) -> Call:
        """Return the call for `FusedCalls`, whose items are members; its result is that of a call of this object."""
        return Call(self._function.part, self._count, self._address, "a time loop", self._work_size, self)
