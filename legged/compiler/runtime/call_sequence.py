"""`CallSequence`: calls of kernels on arrays at fixed places that machine code executes one after the other.

The calls are prepared once. Between calls of kernels a sequence copies and adds runs of numbers, multiplies and factors
small matrices, solves systems of equations with banded matrices, and repeats sequences while a number exceeds a bound.
`FusedCalls` executes calls over the same items chunk by chunk, on several threads.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from legged.compiler.cache import machine_code
from legged.compiler.codegen import call_sequence, llvm, small_matrices
from legged.compiler.passes.counting import Counts
from legged.compiler.runtime.batches import address_of, working_memory
from legged.compiler.runtime.threads import chunk_size, run_chunks
from legged.errors import NotFiniteError

if TYPE_CHECKING:
    from legged.compiler.runtime.batch_kernel import PreparedCall

Array = np.ndarray


class Call(NamedTuple):
    """A call of machine code in a `CallSequence`, one of a kernel or one of the operations below.

    Attributes:
        function: Address of the function. count: Number of its items. argument: Address of its argument.
        name: What it computes. work: Size of its working memory, [bytes]. memory: What has to stay in memory.
        counts: Operations for one item of a matrix product or Cholesky factor; zero for other calls.
    """

    function: int
    count: int
    argument: int
    name: str
    work: int = 0
    memory: Any = None
    counts: Counts = Counts()

    @staticmethod
    def while_loop(sequence: CallSequence, flag: Array, most: int, bound: Array | None = None) -> Call:
        """Return the call that executes a sequence again and again while a number exceeds a bound.

        Args:
            sequence: The sequence, which may write the number. flag: The number, (), any unit.
            most: Largest number of executions. bound: The bound, (), any unit, that of the number; zero by default.
        """
        bound = np.zeros(()) if bound is None else bound
        names = [call.name for call in sequence.calls]
        table = _table(sequence.address, sequence.count, address_of(flag), address_of(bound))
        memory = sequence, flag, bound, table
        return Call(
            _address(call_sequence.WHILE_LOOP), most, address_of(table), " or ".join(names), sequence.work, memory
        )

    @staticmethod
    def copy(x: Array, y: Array) -> Call:
        """Return the call that copies numbers.

        Args:
            x: The numbers, contiguous, (...), any unit and frame.
            y: Receives them, contiguous, of the same size, (...), in the same unit.
        """
        assert x.size == y.size
        return _vectors(call_sequence.COPY, x.size, x, y)

    @staticmethod
    def scatter(x: Array, y: Array, starts: Array) -> Call:
        """Return the call that writes runs of 1, 3 or 9 numbers to runs of a vector, one after the other.

        Args:
            x, y, starts: As in `scatter_add`.
        """
        return _runs(call_sequence.SCATTER, x, y, starts)

    @staticmethod
    def scatter_add(x: Array, y: Array, starts: Array) -> Call:
        """Return the call that adds runs of 1, 3, 4 or 6 numbers to runs of a vector, one after the other.

        Args:
            x: The runs, (n, size), contiguous, any unit and frame. y: The vector, (m,), in the same unit and frame.
            starts: Number of the first entry of each run in it, (n,), dimensionless.
        """
        return _runs(call_sequence.SCATTER_ADD, x, y, starts)

    @staticmethod
    def scatter_entries(x: Array, y: Array, places: Array, index: Array, *, add: bool = False) -> Call:
        """Return the call that writes numbers to entries of rows of an array, or adds them.

        Args:
            x: The numbers, (count, n), any unit and frame. y: The array, (m, ...), in the same unit and frame.
            places: Numbers of the entries of a row, (n,), in C order, dimensionless.
            index: Numbers of the rows, (count,), dimensionless.
            add: Whether the numbers are added.
        """
        assert len(x) == len(index) and len(y) > index.max() and x.shape[1:] == places.shape and x.strides[1] == 8
        numbers = np.stack(np.unravel_index(places, y.shape[1:]), axis=1) if len(places) else np.zeros((0, y.ndim - 1))
        offsets = (numbers @ np.array(y.strides[1:])).astype(np.int64)
        numbers = np.stack([np.arange(len(x)), index], axis=1) * np.array([x.strides[0], y.strides[0]])
        rows = np.array([address_of(x), address_of(y)]) + numbers
        table = _table(address_of(rows), address_of(offsets), len(places), int(add))
        function = _address(call_sequence.SCATTER_ENTRIES)
        return Call(function, len(index), address_of(table), "entries", 0, (x, y, rows, offsets, table))

    @staticmethod
    def scatter_max(x: Array, y: Array, places: Array) -> Call:
        """Return the call that replaces entries of a vector by the given numbers where these are larger.

        Args:
            x: The numbers, (n,), any unit. y: The vector, (m,), in the same unit.
            places: Number of the entry for each number, (n,), dimensionless.
        """
        return _runs({1: call_sequence.SCATTER_MAX}, x[:, None], y, places)

    @staticmethod
    def reduce_max_abs(x: Array, y: Array) -> Call:
        """Return the call that writes the largest absolute value of numbers, or zero.

        Args:
            x: The numbers, contiguous, (...), any unit and frame. y: Receives the value, (), in the same unit.
        """
        return _vectors(call_sequence.REDUCE_MAX_ABS, x.size, x, y)

    @staticmethod
    def solve_banded(band: Band) -> Call:
        """Return the call that solves a system of equations by LU factors without pivoting."""
        table = _table(address_of(band.matrix), address_of(band.right), band.width)
        function = _address(call_sequence.SOLVE_BANDED)
        return Call(function, band.size, address_of(table), "a system of equations", 0, (band, table))

    @staticmethod
    def matrix_product(
        C: Array, A: Array, B: Array, *, start: Array | None = None, scale: Array | float = 1.0, lower: bool = False
    ) -> Call:
        """Return the call that computes C = start + scale A B for each item.

        Args:
            C: Receives the result, (count, M, N), any unit and frame; it may be `start`. Numbers of its rows, and of
                those of B and `start`, are contiguous. Parts of larger arrays are possible.
            A, B: Matrices, (count, M, K) and (count, K, N), any unit and frame. A may be the transpose of an array.
            start: (count, M, N), any unit and frame, or None for zeros.
            scale: A number, or one of each item, (count,), any unit.
            lower: Whether only the lower triangle of C is needed.
        """
        count, M, N = C.shape
        has_start, is_scaled = start is not None, not isinstance(scale, float) or abs(scale) != 1.0
        start = np.broadcast_to(np.zeros(N), C.shape) if start is None else start
        scale = np.broadcast_to(np.asarray(scale, float), (count,))
        assert A.shape == (count, M, B.shape[1]) and B.shape == (count, B.shape[1], N) and start.shape == C.shape
        assert all(x.dtype == float and (x.strides[2] == 8 or N == 1 or not x.size) for x in (B, start, C))
        sizes = M, N, B.shape[1], int(lower)
        places = *_place(A), A.strides[2], *_place(B), *_place(start), *_place(C), address_of(scale), *scale.strides
        table = _table(*sizes, *places)
        entries = M * (M + 1) // 2 if lower else M * N
        counts = Counts(entries * (B.shape[1] + is_scaled), entries * (B.shape[1] - 1 + has_start))
        return Call(_matrix_address(small_matrices.PRODUCT), count, address_of(table), "a matrix product", 0,
                    (A, B, start, C, scale, table), counts)  # fmt: skip

    @staticmethod
    def cholesky_solve(A: Array, W: Array, regularization: Array, info: Array) -> Call:
        """Return the call that computes W = L^-1 [A 1] with L L^T = A_square + regularization 1 for each item.

        1 is the identity matrix, (n, n), and L a lower triangular matrix, (n, n).

        Args:
            A: Matrices, (count, n, m), whose last n columns are A_square, of any unit and frame.
            W: Receives the result, (count, n, m + n), in memory from `padded_rows`, any unit and frame.
            regularization: Added to the diagonal of A_square, (count,), any unit, that of A_square.
            info: Receives 0, or the number from 1 on of the first pivot that is not positive, (count,), 32-bit
                integers, dimensionless.
        """
        count, n, m = A.shape
        assert W.shape == (count, n, m + n) and W.strides[1] % 64 == 0 and A.strides[2] == W.strides[2] == 8
        assert A.dtype == W.dtype == regularization.dtype == float and info.dtype == np.int32
        numbers = (address_of(regularization), *regularization.strides, address_of(info), *info.strides)
        table = _table(n, m, *_place(A), *_place(W), *numbers)
        pairs = n * (n - 1) // 2  # of rows; a row has m + 1 entries that are not zero when its pivot is eliminated
        counts = Counts((m + 1) * (n + pairs), (m + 1) * pairs + n, divisions=n, square_roots=n)
        return Call(_matrix_address(small_matrices.CHOLESKY_SOLVE), count, address_of(table), "a Cholesky factor", 0,
                    (A, W, regularization, info, table), counts)  # fmt: skip

    @staticmethod
    def mirror(A: Array) -> Call:
        """Return the call that copies the lower triangle of each item to the upper one.

        Args:
            A: Matrices, (count, n, n), any unit and frame.
        """
        assert A.dtype == float and A.strides[2] == 8
        table = _table(A.shape[1], *_place(A))
        return Call(_matrix_address(small_matrices.MIRROR), len(A), address_of(table), "a symmetric matrix", 0,
                    (A, table))  # fmt: skip


class CallSequence:
    """Calls that are executed in order.

    Args:
        calls: The calls; those without items are left out.

    Attributes:
        calls: The calls that are executed. count: Number of calls.
        address: Address of the table of them, which `legged_sequence` reads.
        work: Size of their working memory, [bytes].
    """

    def __init__(self, calls: Sequence[Call | PreparedCall]):
        self.calls = [call if isinstance(call, Call) else call.described() for call in calls]
        self.calls = [call for call in self.calls if call.count]
        self._table = np.array([call[:3] for call in self.calls], dtype=np.int64).reshape(-1, 3)
        self.address, self.count = address_of(self._table), len(self.calls)
        self.work = max((call.work for call in self.calls), default=0)

    def __call__(self) -> None:
        """Execute all calls.

        Raises:
            NotFiniteError: A result is not finite, or a system of equations is singular.
        """
        stopped = _function(call_sequence.SEQUENCE)(0, self.count, self.address, working_memory(self.work))
        if stopped >= 0:
            raise NotFiniteError(f"a result of {self.calls[stopped].name} is not finite")


class FusedCalls:
    """Calls over the same items, executed chunk by chunk: a thread executes all calls for one chunk of items.

    The numbers of a chunk that one call writes and the next one reads stay in the cache of the processor.

    Args:
        calls: The calls, with the same number of items.
        multiple: The size of chunks is a multiple of this number, such as the lanes of a vector.
        ignored: Indices of calls whose return values are ignored.

    Attributes:
        calls: The calls.
    """

    def __init__(self, calls: Sequence[Call], multiple: int, ignored: Sequence[int] = ()):
        self.calls, self._count, self._multiple = list(calls), calls[0].count, multiple
        assert all(call.count == self._count for call in calls)
        rows = [(call.function, -1 if k in ignored else 0, call.argument) for k, call in enumerate(calls)]
        self._table = np.array(rows, dtype=np.int64)
        self._argument = _table(address_of(self._table), len(calls))
        self._work = max(call.work for call in calls)

    @property
    def counts(self) -> Counts:
        """Operations of the products and factors of matrices, for all items; see `Call`."""
        return sum((call.counts for call in self.calls), Counts()).times(self._count)

    def __call__(self, threads: int, count: int | None = None) -> int:
        """Execute all calls; return the smallest nonnegative return value of those that are not ignored, or -1.

        Args:
            threads: Maximal number of threads. count: Number of items, the first ones; None for all.
        """
        count = self._count if count is None else count
        size = chunk_size(count, threads, multiple=self._multiple)
        task, argument = _address(call_sequence.EACH), address_of(self._argument)
        return run_chunks(task, argument, count, size, threads, self._work)


class Band:
    """A system of n equations whose matrix has entries near the diagonal alone.

    Attributes:
        size: Number of equations n.
        width: Number of diagonals on both sides.
        matrix: Its diagonals, (n + width, 2 width + 1), any unit: row j holds column j, entry (i, j) of the matrix at
            width + i - j. Solving it replaces them.
        right: The right side, (n,), any unit, which receives the solution.
    """

    def __init__(self, size: int, width: int):
        self.size, self.width = size, -(-max(width, 1) // call_sequence.LANES) * call_sequence.LANES
        self.matrix = padded(size + self.width, 2 * self.width + 1)
        self._right = padded(size + 2 * self.width)
        self.right = self._right[self.width : self.width + size]

    def positions(self, i: Array, j: Array) -> Array:
        """Return the numbers of entries of the matrix among the numbers of `matrix`.

        Args:
            i, j: Rows and columns, (...), dimensionless.
        """
        return j * (2 * self.width + 1) + self.width + i - j


def padded(*shape: int) -> Array:
    """Return zeros (*shape) with 8 more numbers after them in memory."""
    size = int(np.prod(shape))
    return np.zeros(size + 8)[:size].reshape(shape)


def padded_rows(*shape: int) -> Array:
    """Return zeros (*shape) whose rows have the length of whole vectors in memory."""
    *lead, size = shape
    return np.zeros((*lead, -(-size // 8) * 8))[..., :size]


def _place(array: Array) -> tuple[int, int, int]:
    """Return the address of the first item of an array of matrices, and the strides of items and rows."""
    return address_of(array), array.strides[0], array.strides[1]


def _runs(functions: Mapping[int, str], x: Array, y: Array, starts: Array) -> Call:
    """Return the call of the function for runs of the size of x, at given entries of y."""
    offsets, size = np.ascontiguousarray(starts, dtype=np.int64) * 8, x.shape[-1]
    assert len(x) == len(offsets) and starts.min(initial=0) >= 0 and starts.max(initial=-size) + size <= y.size
    return _vectors(functions[size], len(x), x, y, offsets)


def _vectors(function: str, count: int, x: Array, y: Array, offsets: Array | None = None) -> Call:
    """Return the call of a function whose argument has the structure `Vectors`."""
    assert all(array.flags.c_contiguous and array.dtype == float for array in (x, y))
    table = _table(address_of(x), address_of(y), 0 if offsets is None else address_of(offsets))
    return Call(_address(function), count, address_of(table), function, 0, (x, y, offsets, table))


def _table(*numbers: int) -> Array:
    return np.array(numbers, dtype=np.int64)


_TYPES: tuple[Any, ...] = (ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)


@cache
def _code() -> llvm.LoadedCode:
    target = llvm.default_target()
    key = "call sequence", llvm.target_description(target)
    return machine_code.load_module(key, call_sequence.assembly, target)


@cache
def _function(name: str) -> Callable[..., int]:
    return _code().function_with_gil(name, *_TYPES)


@cache
def _address(name: str) -> int:
    return _code().address(name)


@cache
def _matrix_code() -> llvm.LoadedCode:
    target = llvm.default_target()
    key = "small matrices", llvm.target_description(target)
    return machine_code.load_module(key, lambda: small_matrices.assembly(target), target)


@cache
def _matrix_address(name: str) -> int:
    return _matrix_code().address(name)
