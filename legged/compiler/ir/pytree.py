"""The structure of a function's result: an array, or nested tuples, named tuples, lists and dictionaries of arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from legged.errors import TraceError

Rebuild = Callable[[Iterator[Any]], Any]
"""A function from an iterator over arrays to the structure that holds them; `next` for a single array."""


class SequenceRebuild(NamedTuple):
    """Rebuilds a tuple, a list or a named tuple."""

    kind: type
    parts: tuple[Rebuild, ...]

    def __call__(self, arrays: Iterator[Any]) -> Any:
        items = [rebuild(arrays) for rebuild in self.parts]
        return self.kind(*items) if hasattr(self.kind, "_fields") else self.kind(items)


class MappingRebuild(NamedTuple):
    """Rebuilds a dictionary."""

    keys: tuple[Any, ...]
    values: Rebuild

    def __call__(self, arrays: Iterator[Any]) -> Any:
        return dict(zip(self.keys, self.values(arrays), strict=True))


def flatten(value: Any, name: str = "the result") -> tuple[list[np.ndarray], Rebuild]:
    """Return the arrays in a result, in order, and the function that rebuilds its structure from such arrays.

    Args:
        value: A number or array, or nested sequences and dictionaries of them.
        name: Name of the value in error messages.

    Returns:
        Object arrays of any shape, such as (3,), and the function.
    """
    if isinstance(value, tuple | list):
        parts = [flatten(item, f"{name}[{i}]") for i, item in enumerate(value)]
        arrays = [array for leaves, _ in parts for array in leaves]
        return arrays, SequenceRebuild(type(value), tuple(rebuild for _, rebuild in parts))
    if isinstance(value, dict):
        arrays, rebuild = flatten(tuple(value.values()), name)
        return arrays, MappingRebuild(tuple(value), rebuild)
    if value is None or isinstance(value, str):
        raise TraceError(f"a traced function returns numbers, arrays or tuples of them, but {name} is {value!r}")
    return [np.asarray(value, dtype=object)], next


def tuple_converter(rebuild: Rebuild) -> Callable[[tuple[Any, ...]], Any] | None:
    """Return the function from a tuple of arrays to the structure, None if that is the tuple or a single array."""
    if rebuild is next:
        return None
    if isinstance(rebuild, SequenceRebuild) and all(part is next for part in rebuild.parts):
        kind = rebuild.kind
        return None if kind is tuple else (lambda arrays: kind(*arrays)) if hasattr(kind, "_fields") else kind
    return lambda arrays: rebuild(iter(arrays))
