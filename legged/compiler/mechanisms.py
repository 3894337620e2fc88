"""Optional mechanisms of the compiler: each saves time, and can be switched off.

The environment variable LEGGED_WITHOUT names those that are switched off, separated by commas, in kernels that are
created afterwards; `without` does the same in a part of a program. `docs/explanation/mechanisms.md` has their gains.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from legged.errors import UnknownNameError

ENTRY_POINT, PACKING, OUTLINING = "entry point", "packing", "outlining"
STREAMING, CALL_BATCHING = "streaming", "call batching"
RESULT_MEMORY, BACKGROUND, STAGES = "result memory", "background compilation", "two stages"
MECHANISMS = {
    ENTRY_POINT: "calls of kernels for one state enter machine code directly, in place of ctypes",
    PACKING: "operations of alike modules share vectors in code for one state",
    OUTLINING: "alike segments of large graphs share their code, which then compiles faster",
    STREAMING: "batches are transposed in registers while they are computed, and long kernels run in sections",
    CALL_BATCHING: "elementary functions of several arguments that are known at the same time share a call",
    RESULT_MEMORY: "memory of large results is used again",
    BACKGROUND: "loops and shared modules are compiled by a second thread",
    STAGES: "long kernels of time steps are compiled without optimization first, and optimized by another process",
}
"""What each mechanism does, by its name."""
OF_CODE = frozenset({PACKING, OUTLINING, STREAMING, CALL_BATCHING})
"""Mechanisms on which the machine code of a graph depends."""

_off: frozenset[str] = frozenset()


def switched_off() -> frozenset[str]:
    """Return the names of the mechanisms that are switched off.

    Raises:
        UnknownNameError: LEGGED_WITHOUT has an unknown name.
    """
    names = [name for text in os.environ.get("LEGGED_WITHOUT", "").split(",") if (name := text.strip())]
    if os.environ.get("LEGGED_CALLS") == "ctypes":
        warnings.warn("LEGGED_CALLS=ctypes is now LEGGED_WITHOUT='entry point'", DeprecationWarning, stacklevel=2)
        names.append(ENTRY_POINT)
    return _off.union(map(_checked, names))


def is_on(name: str) -> bool:
    """Return whether a mechanism is used; `name` is a key of `MECHANISMS`."""
    return name not in switched_off()


@contextmanager
def without(*names: str) -> Iterator[None]:
    """Switch mechanisms off for kernels that are created in this context.

    Raises:
        UnknownNameError: There is no mechanism of a name.
    """
    global _off
    before = _off
    _off = before.union(map(_checked, names))
    try:
        yield
    finally:
        _off = before


@contextmanager
def optimized_at_once() -> Iterator[None]:
    """Return a context in which code is optimized when it is compiled, for measurements of its speed."""
    with without(STAGES):
        yield


def _checked(name: str) -> str:
    if name not in MECHANISMS:
        raise UnknownNameError("mechanism of the compiler", name, MECHANISMS)
    return name
