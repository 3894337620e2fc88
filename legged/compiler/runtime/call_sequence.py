"""`CallSequence`: calls of kernels on arrays at fixed places that machine code executes one after the other.

The calls are prepared once. Between them the sequence copies and adds runs of numbers, solves systems of equations with
banded matrices, and repeats calls while a number is positive.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from legged.compiler.cache import machine_code
from legged.compiler.codegen import call_sequence, llvm
from legged.compiler.runtime.batch_kernel import Call, PreparedCall
from legged.compiler.runtime.batches import address_of, working_memory
from legged.errors import NotFiniteError

Array = np.ndarray


class CallSequence:
    """Calls that are executed in order.

    Args:
        calls: The calls; those of no items are left out.

    Attributes:
        address: Address of the table of the calls, which `legged_sequence` reads. count: Number of calls.
        work: Size of their working memory, [bytes].
    """

    def __init__(self, calls: Sequence[Call | PreparedCall]):
        self._calls = [call.described() if isinstance(call, PreparedCall) else call for call in calls]
        self._calls = [call for call in self._calls if call.count]
        self._table = np.array([call[:3] for call in self._calls], dtype=np.int64).reshape(-1, 3)
        self.address, self.count = address_of(self._table), len(self._calls)
        self.work = max((call.work for call in self._calls), default=0)
        self._function = _code().function_with_gil(call_sequence.SEQUENCE, *_TYPES)

    def __call__(self) -> None:
        """Execute all calls.

        Raises:
            NotFiniteError: A result is not finite, or a system of equations is singular.
        """
        stopped = self._function(0, self.count, self.address, working_memory(self.work))
        if stopped >= 0:
            raise NotFiniteError(f"a result of {self._calls[stopped].name} is not finite")


def repeat(sequence: CallSequence, flag: Array, most: int) -> Call:
    """Return the call that executes a sequence again and again while a number is positive.

    Args:
        sequence: The sequence, which may write the number. flag: The number, (), dimensionless.
        most: Largest number of executions.
    """
    names = [call.name for call in sequence._calls]
    table = _table(sequence.address, sequence.count, address_of(flag))
    memory = sequence, flag, table
    return Call(_address(call_sequence.REPEAT), most, address_of(table), " or ".join(names), sequence.work, memory)


def copied(x: Array, y: Array) -> Call:
    """Return the call that copies numbers.

    Args:
        x: The numbers, contiguous and from `padded`, (...), any unit and frame.
        y: Receives them, of the same size, (...), in the same unit.
    """
    assert x.size == y.size
    return _vectors(call_sequence.COPY, x.size, x, y)


def accumulated(x: Array, y: Array, starts: Array) -> Call:
    """Return the call that adds runs of 3 or 6 numbers to runs of a vector, one after the other.

    Args:
        x: The runs, (n, size), contiguous, any unit and frame. y: The vector, (m,), in the same unit and frame.
        starts: Number of the first entry of each run in it, (n,), dimensionless.
    """
    offsets = np.ascontiguousarray(starts, dtype=np.int64) * 8
    size = x.shape[-1]
    assert len(x) == len(offsets) and starts.min(initial=0) >= 0 and starts.max(initial=-size) + size <= y.size
    return _vectors(call_sequence.ACCUMULATE[size], len(x), x, y, offsets)


def largest(x: Array, y: Array) -> Call:
    """Return the call that writes the largest absolute value of numbers, or zero.

    Args:
        x: The numbers, contiguous, (...), any unit and frame. y: Receives the value, (), in the same unit.
    """
    return _vectors(call_sequence.LARGEST, x.size, x, y)


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

    def solved(self) -> Call:
        """Return the call that solves the system by LU factors without pivoting."""
        table = _table(address_of(self.matrix), address_of(self.right), self.width)
        function = _address(call_sequence.BAND_SOLVE)
        return Call(function, self.size, address_of(table), "a system of equations", 0, (self, table))


def padded(*shape: int) -> Array:
    """Return zeros (*shape) that `copied` may read and write, with 8 more numbers after them in memory."""
    size = int(np.prod(shape))
    return np.zeros(size + 8)[:size].reshape(shape)


def _vectors(function: str, count: int, x: Array, y: Array, offsets: Array | None = None) -> Call:
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
def _address(name: str) -> int:
    return _code().address(name)
