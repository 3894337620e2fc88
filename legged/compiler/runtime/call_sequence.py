"""`CallSequence`: calls of kernels on arrays at fixed places that machine code executes one after the other.

The calls are prepared once. Between calls of kernels a sequence copies and adds runs of numbers,
solves systems of equations with banded matrices, and repeats sequences while a number exceeds a bound. `FusedCalls`
executes calls over the same items chunk by chunk, on several threads.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from legged.compiler.cache import machine_code
from legged.compiler.codegen import call_sequence, llvm
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
    """

    function: int
    count: int
    argument: int
    name: str
    work: int = 0
    memory: Any = None

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
    def fortran(name: str, count: int, *arguments: Array | str | int | float) -> Call:
        """Return the call of a function of BLAS or LAPACK for each item.

        Args:
            name: Name of the function, such as "dgemm". count: Number of items.
            arguments: Its arguments in order: constants, or arrays of which the first entry of row k, with any strides,
                is the argument of item k, (count, ...), any unit and frame; 32-bit integers for an info.
        """
        kinds = {str: lambda x: np.array(x, "S1"), int: lambda x: np.array(x, np.int32), float: np.array}
        arrays = [x if isinstance(x, Array) else kinds[type(x)](x) for x in arguments]
        places = [number for x in arrays for number in (address_of(x), x.strides[0] if x.ndim else 0)]
        missing = 2 * call_sequence.FORTRAN_ARGUMENTS - len(places)
        table = _table(_fortran_address(name), *places, *([0] * missing))
        return Call(_address(call_sequence.FORTRAN), count, address_of(table), name, 0, (arrays, table))


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
    """Calls over the same items that threads execute chunk by chunk: a chunk goes through all calls in turn.

    The numbers of a chunk that one call writes and the next one reads stay in the cache of the processor.

    Args:
        calls: The calls, with the same number of items.
        multiple: Number of items of which chunks are multiples, such as the lanes of a vector.
        ignored: Numbers of calls whose results do not count.

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

    def __call__(self, threads: int, count: int | None = None) -> int:
        """Execute all calls; return the smallest nonnegative result of those that count, or -1.

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
def _fortran_address(name: str) -> int:
    """Return the address of a function of BLAS or LAPACK among those that SciPy gives to machine code."""
    from scipy.linalg import cython_blas, cython_lapack  # type: ignore[attr-defined]

    tables: list[Any] = [getattr(module, "__pyx_capi__") for module in (cython_blas, cython_lapack)]  # noqa: B009
    capsule = next(table[name] for table in tables if name in table)
    get_name, get_pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(get_pointer(capsule, get_name(capsule)))
