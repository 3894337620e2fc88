"""Many states in one call: broadcasting, and sharing the work among threads.

The kernel's machine code reads the arguments' rows where they lie and writes the results' rows where they belong, see
`blocks`; here it is only found out where that is. An argument is copied only if its numbers are not doubles, or if
those of one state do not lie end to end, and then before it is broadcast.

A batch is cut into chunks, which threads take one after the other while Python's lock is free. Small batches stay in
the calling thread. A state's result does not depend on the batch it is in, on its place there or on the threads: the
same operations are done on it in the same order, and the tests compare every bit. A call with a single state is another
program, in which alike modules share vectors (`packed`): the same up to rounding, some 1e-16 of the largest number.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import threading
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from legged.compiler.cache import machine_code
from legged.compiler.codegen import batch_loop, llvm, selection
from legged.compiler.ir.graph import Graph, Shape
from legged.compiler.runtime.threads import default_threads, share

_FLOAT = np.dtype(float)
_CHUNK = 2_000_000
"""Operations worth handing to a thread: some 50 us of work."""
_FEW = 2
"""So many states are computed one by one as long as there is no code for batches."""


class _Memory(threading.local):
    """Working memory of a thread, kept for its next piece of work."""

    def __init__(self):
        self._size, self._address = -1, 0

    def address(self, size: int) -> int:
        """Return where there is memory for so many numbers, on a line of cache: vectors across two of them are slow."""
        if size > self._size:
            self._array = np.empty(size + 8)
            self._size, self._address = size, -(-_address(self._array) // 64) * 64
        return self._address


_memory = _Memory()


class Batch:
    """The machine code of a graph for batches, compiled when it is first used."""

    def __init__(
        self, graph: Graph, one: Callable[[Sequence[int]], int], loaded: Callable[[llvm.LoadedCode, int, int], object]
    ):
        """Keep what is called.

        Args:
            graph: What to compute.
            one: Runs the code for a single state on addresses of arrays.
            loaded: Told of the code when it is there: the code, its address, how many states are too few for threads.
        """
        self.graph, self.one, self.loaded = graph, one, loaded
        self.shapes = [*(shape for _, shape in graph.inputs), *graph.outputs]

    @cached_property
    def code(self) -> llvm.LoadedCode:
        """The machine code."""
        code = machine_code.load(self.graph, selection.batch_module)
        self.loaded(code, code.address(batch_loop.ENTRY_POINT), 2 * _CHUNK // max(self.graph.size, 1))
        return code

    @cached_property
    def _function(self) -> Callable[..., int]:
        return self.code.function(
            batch_loop.ENTRY_POINT, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p
        )

    @cached_property
    def _work_size(self) -> int:
        return ctypes.c_int64.from_address(self.code.address(selection.BATCH_WORK_SIZE)).value

    def run(self, arrays: Sequence[np.ndarray], results: Sequence[np.ndarray], lead: Shape) -> int:
        """Compute all states; return the number of the first with a result that is not finite, -1 if there is none.

        Args:
            arrays: The arguments; their leading axes broadcast to `lead`.
            results: Arrays that `is_writable` to, with the leading axes `lead`.
            lead: Leading axes.
        """
        count = math.prod(lead)
        arrays = [_readable(a, len(shape)) for a, shape in zip(arrays, self.shapes, strict=False)]
        places = [_Places(a, lead, len(s)) for a, s in zip([*arrays, *results], self.shapes, strict=True)]
        if count <= _FEW and "code" not in self.__dict__:
            return next((k for k in range(count) if self.one([place.at(k) for place in places])), -1)
        table = np.array([place.row() for place in places], dtype=np.int64)
        return self.share(count, _address(table))

    def share(self, count: int, rows: int) -> int:
        """Compute a batch whose arrays are described at the address `rows`, see `blocks`; return what `run` returns."""
        pieces = count * self._operations // _CHUNK
        threads = default_threads() if pieces > 1 else 1
        if threads == 1:
            return self._piece(0, count, rows) if count else -1
        chunks = self._chunks(count, min(4 * threads, pieces))
        return share(chunks, min(len(chunks), threads), lambda first, end: self._piece(first, end, rows))

    @cached_property
    def _operations(self) -> int:
        return max(self.graph.size, 1)

    def _piece(self, first: int, end: int, rows: int) -> int:
        return self._function(first, end, rows, _memory.address(self._work_size))

    @staticmethod
    def _chunks(count: int, pieces: int) -> list[tuple[int, int]]:
        """Cut the states into so many pieces, whole blocks if possible."""
        step = max(-(-count // pieces // llvm.vector_width()) * llvm.vector_width(), llvm.vector_width())
        return [(first, min(first + step, count)) for first in range(0, count, step)]


class _Places:
    """Where the states of one array are: evenly spaced if the leading axes allow it, by a table of offsets if not."""

    def __init__(self, array: np.ndarray, lead: Shape, own: int):
        self.array, self.address = array, _address(array)  # the array is kept alive
        self.table: np.ndarray | None = None
        before = array.ndim - own
        strides = [0] * (len(lead) - before) + [
            0 if n == 1 else stride for n, stride in zip(array.shape[:before], array.strides, strict=False)
        ]
        axes = [(n, stride) for n, stride in zip(lead, strides, strict=True) if n != 1]
        self.stride = axes[-1][1] if axes else 0
        if any(outer[1] != inner[0] * inner[1] for outer, inner in itertools.pairwise(axes)):
            self.table = _offsets(axes)

    def row(self) -> tuple[int, int, int]:
        """Return the description that machine code reads, see `blocks`."""
        return self.address, self.stride, 0 if self.table is None else _address(self.table)

    def at(self, k: int) -> int:
        """Return the address of state k."""
        return self.address + (k * self.stride if self.table is None else int(self.table[k]))


def _offsets(axes: Sequence[tuple[int, int]]) -> np.ndarray:
    """Return the offset of every state, for leading axes of given lengths and strides, in bytes."""
    total = np.zeros((), dtype=np.int64)
    for n, stride in axes:
        total = np.add.outer(total, np.arange(n, dtype=np.int64) * stride)
    return np.ascontiguousarray(total).ravel()


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]  # twice as fast as array.ctypes.data


def _lies_end_to_end(array: np.ndarray, own: int) -> bool:
    """Return whether an array holds aligned doubles, those of one state end to end."""
    step = 8
    for n, stride in zip(reversed(array.shape[array.ndim - own :]), reversed(array.strides), strict=False):
        if n != 1 and stride != step:
            return False
        step *= n
    return array.dtype == _FLOAT and array.dtype.isnative and array.flags.aligned


def _readable(array: np.ndarray, own: int) -> np.ndarray:
    return array if _lies_end_to_end(array, own) else np.array(array, dtype=float, order="C", ndmin=0)


def is_writable(array: object, arrays: Sequence[np.ndarray], shape: Shape, own: int) -> bool:
    """Return whether results of a shape can be written into an array directly while `arrays` are still being read."""
    return (
        isinstance(array, np.ndarray)
        and array.shape == shape
        and array.flags.writeable
        and _lies_end_to_end(array, own)
        and not any(np.may_share_memory(array, other) for other in arrays)
    )
