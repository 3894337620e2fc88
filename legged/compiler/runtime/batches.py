"""Batches: many states in one call, with broadcasting and threads.

The machine code reads the rows of the arguments and writes the rows of the results in place, see
`codegen.batches.batch_loop`; this module passes their addresses and strides. An argument is copied only if its numbers
are not of the element type or those of one state are not contiguous, before it is broadcast.

A batch is cut into chunks, which several threads process with the GIL released. Small batches stay in the calling
thread. The result of a state depends neither on the batch and the position in it nor on the threads: the operations are
the same in the same order, and tests compare all bits. A call for a single state runs another program, in which alike
modules share vectors (`passes.slp`); its results agree up to rounding, about 1e-16 of the largest number.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import threading
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from legged.compiler.cache import machine_code
from legged.compiler.codegen import llvm, selection
from legged.compiler.codegen.batches import batch_loop
from legged.compiler.ir.graph import Graph, Shape
from legged.compiler.runtime.threads import chunk_size, default_threads, run_chunks

_THREADED_OPERATIONS = 4_000_000
"""Operations of a batch from which several threads compute it, about 100 us of work; waking one takes 30 us."""
_CHUNK_OPERATIONS = 200_000
"""Operations in a chunk at least, about 5 us of work."""
_SMALL_BATCH = 2
"""Largest batch that is computed state by state while no code for batches is loaded."""
_SHARED = (selection.batch_loop_module,)


class _Memory(threading.local):
    """Working memory of a thread, reused by its next chunk."""

    def __init__(self):
        self._size, self._address = -1, 0

    def address(self, size: int) -> int:
        """Return the address of memory of a size, [bytes], aligned to a cache line for fast access to vectors."""
        if size > self._size:
            self._array = np.empty(size + 64, dtype=np.uint8)
            self._size, self._address = size, -(-address_of(self._array) // 64) * 64
        return self._address


_memory = _Memory()


def working_memory(size: int) -> int:
    """Return the address of working memory of this thread, which its next kernel uses again, of a size, [bytes]."""
    return _memory.address(size)


_locked: list[np.ndarray] = []
"""Working memory of code that holds the GIL. Smaller blocks are kept, since kernels have their addresses."""


def locked_memory(size: int) -> int:
    """Return the address of memory of a size, [bytes], that all code which holds the GIL uses in turn."""
    if not _locked or _locked[-1].size < size + 64:
        _locked.append(np.empty(2 * size + 64, np.uint8))
    return -(-address_of(_locked[-1]) // 64) * 64


class BatchCode:
    """The machine code of a graph for batches, loaded or compiled at the first use.

    Args:
        graph: What to compute.
        run_single: Runs the code for a single state, given the addresses of the arrays.
        on_load: Called with this object once the code is loaded.
        target: The processor and the type of the numbers.
    """

    def __init__(
        self,
        graph: Graph,
        run_single: Callable[[Sequence[int]], int],
        on_load: Callable[[BatchCode], object],
        target: llvm.Target,
    ):
        self.graph, self.run_single, self.on_load, self.target = graph, run_single, on_load, target
        self.shapes = [*(shape for _, shape in graph.inputs), *graph.outputs]

    @cached_property
    def code(self) -> llvm.LoadedCode:
        """The machine code."""
        code = machine_code.load(self.graph, selection.batch_module, self.target, self.target.width, _SHARED)
        self.__dict__["code"] = code
        self.on_load(self)
        return code

    def load_ahead(self) -> None:
        """Write the modules and let another thread compile them if a processor is free; `code` compiles the rest."""
        machine_code.load_ahead(self.graph, selection.batch_module, self.target, self.target.width, _SHARED)

    @cached_property
    def _function(self) -> Callable[..., int]:
        return self.code.function(
            batch_loop.ENTRY_POINT, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p
        )

    @cached_property
    def _function_with_gil(self) -> Callable[..., int]:
        types = ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p
        return self.code.function_with_gil(batch_loop.ENTRY_POINT, *types)

    @cached_property
    def _work_size(self) -> int:
        size = ctypes.c_int64.from_address(self.code.address(selection.BATCH_WORK_SIZE)).value
        return size * self.target.element.size

    def run(self, arrays: Sequence[np.ndarray], results: Sequence[np.ndarray], lead: Shape) -> int:
        """Compute all states; return the index of the first one with a result that is not finite, or -1.

        Args:
            arrays: The arguments, (..., *shape) with the shape of each input, any unit and frame; their leading axes
                broadcast to `lead`.
            results: Receive the results, (*lead, *shape) with the shape of each output, any unit and frame; for each
                of them `can_hold_results` is true.
            lead: Lengths of the leading axes.
        """
        count = math.prod(lead)
        dtype = self.target.element.dtype
        arrays = [_contiguous(a, len(shape), dtype) for a, shape in zip(arrays, self.shapes, strict=False)]
        rows = [_Rows(a, lead, len(s)) for a, s in zip([*arrays, *results], self.shapes, strict=True)]
        if count <= _SMALL_BATCH and "code" not in self.__dict__:
            return next((k for k in range(count) if self.run_single([array.row_address(k) for array in rows])), -1)
        table = np.array([array.descriptor() for array in rows], dtype=np.int64)
        return self.run_described(count, address_of(table))

    def described(self, count: int, descriptors: int) -> Callable[[], int]:
        """Return the function that computes `count` > 0 states of arrays whose descriptors are at an address.

        It returns the same as `run`. Small batches keep the GIL, since to release it takes longer.
        """
        if count * self._operations >= _THREADED_OPERATIONS:
            return partial(self.run_described, count, descriptors)
        function, size = self._function_with_gil, self._work_size
        return lambda: function(0, count, descriptors, _memory.address(size))

    def described_call(self) -> tuple[int, int]:
        """Return the address of the loop over the states and the size of its working memory, [bytes]."""
        return self._entry_point, self._work_size

    def run_described(self, count: int, descriptors: int) -> int:
        """Compute `count` states of arrays whose descriptors are at an address; return the same as `run`."""
        threads = default_threads() if count * self._operations >= _THREADED_OPERATIONS else 1
        if threads == 1:
            return self._run_chunk(0, count, descriptors) if count else -1
        size = chunk_size(count, threads, _CHUNK_OPERATIONS // self._operations, self.target.width)
        return run_chunks(self._entry_point, descriptors, count, size, threads, self._work_size)

    @property
    def unshared_states(self) -> int:
        """Largest number of states of a batch that one thread computes."""
        return (_THREADED_OPERATIONS - 1) // self._operations

    @cached_property
    def _entry_point(self) -> int:
        return self.code.address(batch_loop.ENTRY_POINT)

    @cached_property
    def _operations(self) -> int:
        return max(self.graph.size, 1)

    def _run_chunk(self, first: int, end: int, descriptors: int) -> int:
        return self._function(first, end, descriptors, _memory.address(self._work_size))


class _Rows:
    """Location of the rows of one array, one row per state: evenly spaced if the leading axes allow it, else in a table
    of offsets."""

    def __init__(self, array: np.ndarray, lead: Shape, own: int):
        self.array, self.address = array, address_of(array)  # keeps the array alive
        self.table: np.ndarray | None = None
        before = array.ndim - own
        if before and array.shape[:before] == lead and array.flags.c_contiguous:
            self.stride = math.prod(array.shape[before:]) * array.itemsize  # an axis of length 1 may have any stride
            return
        strides = [0] * (len(lead) - before) + [
            0 if n == 1 else stride for n, stride in zip(array.shape[:before], array.strides, strict=False)
        ]
        axes = [(n, stride) for n, stride in zip(lead, strides, strict=True) if n != 1]
        self.stride = axes[-1][1] if axes else 0
        if any(outer[1] != inner[0] * inner[1] for outer, inner in itertools.pairwise(axes)):
            self.table = _offsets(axes)

    def descriptor(self) -> tuple[int, int, int]:
        """Return the numbers that the machine code reads, see `codegen.batches.batch_loop`."""
        return self.address, self.stride, 0 if self.table is None else address_of(self.table)

    def row_address(self, k: int) -> int:
        """Return the address of the row of state k."""
        return self.address + (k * self.stride if self.table is None else int(self.table[k]))


def _offsets(axes: Sequence[tuple[int, int]]) -> np.ndarray:
    """Return the offset of every row, [bytes], for leading axes with given lengths and strides."""
    total = np.zeros((), dtype=np.int64)
    for n, stride in axes:
        total = np.add.outer(total, np.arange(n, dtype=np.int64) * stride)
    return np.ascontiguousarray(total).ravel()


def address_of(array: np.ndarray) -> int:
    """Return the address of the first number of an array.

    Args:
        array: The array, (...), any unit and frame.
    """
    buffer: Any = array
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(buffer))  # a quarter of the time of the other way
    except (TypeError, ValueError, BufferError):  # read-only, empty or not contiguous
        return array.__array_interface__["data"][0]


def has_contiguous_rows(array: np.ndarray, own: int, dtype: np.dtype) -> bool:
    """Return whether an array holds aligned numbers of a data type whose last `own` axes are contiguous.

    Args:
        array: The array, (...), any unit and frame. own: Number of axes. dtype: The data type.
    """
    step = dtype.itemsize
    for n, stride in zip(reversed(array.shape[array.ndim - own :]), reversed(array.strides), strict=False):
        if n != 1 and stride != step:
            return False
        step *= n
    return array.dtype == dtype and array.dtype.isnative and array.flags.aligned


def _contiguous(array: np.ndarray, own: int, dtype: np.dtype) -> np.ndarray:
    return array if has_contiguous_rows(array, own, dtype) else np.array(array, dtype=dtype, order="C", ndmin=0)


def can_hold_results(array: object, arguments: Sequence[np.ndarray], shape: Shape, own: int, dtype: np.dtype) -> bool:
    """Return whether machine code can write results into an array directly while it reads the arguments.

    Args:
        array: The array, or anything else.
        arguments: Arrays (..., *shape) that must not share memory with it, any unit and frame.
        shape: Shape of the results.
        own: Number of axes that belong to one state.
        dtype: Data type of the results.
    """
    return (
        isinstance(array, np.ndarray)
        and array.shape == shape
        and array.flags.writeable
        and has_contiguous_rows(array, own, dtype)
        and not any(np.may_share_memory(array, other) for other in arguments)
    )
