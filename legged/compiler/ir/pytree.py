"""The structure of a function's result: an array, or nested tuples, named tuples, lists and dictionaries of arrays."""

from __future__ import annotations

import operator
import sys
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


def serialize(rebuild: Rebuild) -> Any:
    """Return a structure as plain data; ValueError if another process could not rebuild it."""
    if isinstance(rebuild, SequenceRebuild):
        name = rebuild.kind.__module__, rebuild.kind.__qualname__
        if _find(*name) is not rebuild.kind:
            raise ValueError(f"{'.'.join(name)} is not found by its name")
        return (*name, tuple(map(serialize, rebuild.parts)))
    if isinstance(rebuild, MappingRebuild):
        if any(type(key) not in (str, int, float, bool) for key in rebuild.keys):
            raise ValueError("a dictionary whose keys are not plain data")
        return rebuild.keys, serialize(rebuild.values)
    return None


def deserialize(data: Any) -> Rebuild:
    """Return the structure from the data of `serialize`; ValueError if one of its classes does not exist."""
    if data is None:
        return next
    if len(data) == 2:
        return MappingRebuild(data[0], deserialize(data[1]))
    module, name, parts = data
    kind = _find(module, name)
    if not isinstance(kind, type):
        raise ValueError(f"{module}.{name} does not exist")
    return SequenceRebuild(kind, tuple(map(deserialize, parts)))


def _find(module: str, name: str) -> Any:
    try:
        return operator.attrgetter(name)(sys.modules[module])
    except (AttributeError, KeyError):
        return None
