"""The shape of what a function returns: one array, or a tuple or named tuple of arrays, however deep."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from legged.errors import TraceError

Rebuild = Callable[[Iterator[Any]], Any]


def flatten(value: Any, name: str = "the result") -> tuple[list[np.ndarray], Rebuild]:
    """Return the arrays in a result, in order, and the function that puts such arrays back in its structure."""
    if isinstance(value, tuple | list):
        parts = [flatten(item, f"{name}[{i}]") for i, item in enumerate(value)]
        arrays = [array for found, _ in parts for array in found]
        return arrays, _rebuild_sequence(type(value), [rebuild for _, rebuild in parts])
    if isinstance(value, dict):
        keys = tuple(value)
        arrays, rebuild = flatten(tuple(value.values()), name)
        return arrays, lambda arrays: dict(zip(keys, rebuild(arrays), strict=True))
    if value is None or isinstance(value, str):
        raise TraceError(f"a traced function returns numbers, arrays or tuples of them, but {name} is {value!r}")
    return [np.asarray(value, dtype=object)], next


def _rebuild_sequence(kind: type, rebuilds: Sequence[Rebuild]) -> Rebuild:
    if hasattr(kind, "_fields"):  # a named tuple takes its fields one by one
        return lambda arrays: kind(*[rebuild(arrays) for rebuild in rebuilds])
    return lambda arrays: kind([rebuild(arrays) for rebuild in rebuilds])
