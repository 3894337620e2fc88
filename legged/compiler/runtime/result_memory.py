"""Memory for large results, which is used again once no array refers to it.

The operating system maps large blocks of memory page by page at their first use, which takes longer than most kernels
take to fill them, and the C library returns blocks of tens of megabytes to it at once. `new_array` therefore keeps the
memory of deleted results from `LARGE_RESULT` on, and hands it out again. All views of a result refer to its `_Block`,
so that its memory is free when the block is deleted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import itemgetter

import numpy as np

from legged.compiler import mechanisms

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
