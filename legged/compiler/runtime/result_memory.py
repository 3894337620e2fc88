"""Arrays for results: those that a caller gives, and memory for large ones, used again once no array refers to it.

The operating system maps large blocks of memory page by page at their first use, which takes longer than most kernels
take to fill them, and the C library returns blocks of tens of megabytes to it at once. `new_array` therefore keeps the
memory of deleted results from `LARGE_RESULT` on, and hands it out again. All views of a result refer to its `_Block`,
so that its memory is free when the block is deleted.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from legged.arguments import shown
from legged.compiler import mechanisms
from legged.compiler.ir.graph import Shape
from legged.errors import ArgumentError, ShapeError

LARGE_RESULT = 1 << 22
"""Size from which the memory of a result is kept, [bytes]."""
MOST_IDLE = 1 << 28
"""Largest total size of the memory that is kept for later results, [bytes]."""
_MOST_UNUSED = 2.0
"""Largest size of a block relative to the result that is placed in it."""

_idle: dict[int, np.ndarray] = {}
"""Memory that no result uses, by its address, the longest unused first. Several threads change it without a lock, by
single operations that no other thread interrupts, because a block may be deleted at any time."""


class _Block:
    """The owner of a result's memory.

    Args:
        memory: The memory, (n,).
    """

    def __init__(self, memory: np.ndarray):
        self._memory = memory
        self.__array_interface__ = memory.__array_interface__

    def __del__(self) -> None:
        memory = self._memory
        if memory.nbytes > MOST_IDLE:
            return
        excess = sum(other.nbytes for other in tuple(_idle.values())) + memory.nbytes - MOST_IDLE
        for address, other in tuple(_idle.items()):
            if excess <= 0:
                break
            if _idle.pop(address, None) is not None:
                excess -= other.nbytes
        _idle[self.__array_interface__["data"][0]] = memory


def new_array(shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """Return an array (...) of undefined numbers, in memory that no other array uses.

    Args:
        shape: Its shape.
        dtype: Its data type.
    """
    count = math.prod(shape)
    if dtype.itemsize * count < LARGE_RESULT or not mechanisms.is_on(mechanisms.RESULT_MEMORY):
        return np.empty(shape, dtype)
    size = -(-count * dtype.itemsize // 8)
    fitting = [(m.size, address) for address, m in tuple(_idle.items()) if size <= m.size <= _MOST_UNUSED * size]
    # The memory that was used last may still be in the caches.
    memory = _idle.pop(min(reversed(fitting), key=itemgetter(0))[1], None) if fitting else None
    block = np.asarray(_Block(np.empty(size) if memory is None else memory))
    return block.view(dtype)[:count].reshape(shape)


def checked_out(out: Any, shapes: Sequence[Shape]) -> Sequence[Any]:
    """Return the arrays of `out` if they can hold results of these shapes; None for each if there is no `out`.

    Args:
        out: An array, a tuple of arrays, or None. shapes: Shape of each result.

    Raises:
        ArgumentError: An entry is no array of floating-point numbers that can be written to, or shares memory.
        ShapeError: A shape or the number of arrays differs.
    """
    if out is None:
        return [None] * len(shapes)
    targets = out if isinstance(out, tuple) else (out,)
    if len(targets) != len(shapes):
        raise ShapeError(f"out must be a tuple of {len(shapes)} arrays, got {shown(out)}")
    names = [f"out[{k}]" if isinstance(out, tuple) else "out" for k in range(len(targets))]
    for name, target, shape in zip(names, targets, shapes, strict=True):
        if not isinstance(target, np.ndarray):
            raise ArgumentError(f"{name} must be a NumPy array, got {shown(target)}")
        if target.shape != shape:
            raise ShapeError(f"{name} must be an array of shape {shape}, got {target.shape}")
        if target.dtype.kind != "f":
            raise ArgumentError(f"{name} must be an array of floating-point numbers, got {target.dtype} entries")
        if not target.flags.writeable:
            raise ArgumentError(f"{name} is read-only; give an array that can be written to")
        if any(n > 1 and stride == 0 for n, stride in zip(target.shape, target.strides, strict=True)):
            raise ArgumentError(f"{name} must have memory for each entry; its strides are {target.strides}")
    for (first, a), (second, b) in itertools.combinations(zip(names, targets, strict=True), 2):
        if np.may_share_memory(a, b) and np.shares_memory(a, b):
            raise ArgumentError(f"{first} and {second} share memory; give each result an array of its own")
    return targets


def put_results(results: Sequence[np.ndarray], targets: Sequence[np.ndarray], out: Any) -> Any:
    """Copy the results into the arrays of `out` and return it.

    Args:
        results: Arrays, (...), any unit. targets: The arrays of `out`, from `checked_out`. out: As in `checked_out`.
    """
    for target, result in zip(targets, results, strict=True):
        if target is not result:
            target[...] = result
    return out
