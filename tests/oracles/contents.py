"""Comparison of robots by content: all numbers, names and attributes, whether a class declares them or not."""

from __future__ import annotations

import enum
import types
from functools import cached_property
from typing import Any

import networkx as nx
import numpy as np

PLAIN = (type(None), bool, int, float, complex, str, bytes)


def data_key(value: Any) -> str:
    """Return a text that two values share only if their contents are equal to the last bit.

    Cached properties are not content. Objects that are met again are references, so that shared objects differ from
    equal ones.
    """
    return repr(_content(value, []))


def _content(x: Any, seen: list[Any]) -> Any:
    kind = type(x)
    if kind in PLAIN:
        return kind.__name__, repr(x)
    if isinstance(x, np.generic):
        return kind.__name__, x.tobytes()
    if isinstance(x, type | types.FunctionType):
        return "named", x.__module__, x.__qualname__
    if isinstance(x, enum.Enum):
        return kind.__qualname__, x.name
    for number, known in enumerate(seen):
        if known is x and kind is not tuple:
            return "reference", number
    seen.append(x)
    if isinstance(x, np.ndarray):
        rows = [_content(item, seen) for item in x.ravel().tolist()] if x.dtype.hasobject else x.tobytes()
        return x.dtype.str, x.shape, rows
    if isinstance(x, nx.DiGraph):
        parts = x.graph, list(x.nodes.items()), list(x.edges.items())
        return "graph", [_content(part, seen) for part in parts]
    if isinstance(x, dict | types.MappingProxyType):
        return kind.__name__, [(_content(key, seen), _content(item, seen)) for key, item in x.items()]
    if isinstance(x, set | frozenset):
        return kind.__name__, sorted(map(repr, x))
    items = [_content(item, seen) for item in x] if isinstance(x, tuple | list) else None
    members = {name: member for base in reversed(kind.__mro__) for name, member in vars(base).items()}
    slots = [name for name, member in members.items() if isinstance(member, types.MemberDescriptorType)]
    attributes = {**getattr(x, "__dict__", {}), **{name: getattr(x, name) for name in slots if hasattr(x, name)}}
    own = {name: item for name, item in attributes.items() if not isinstance(members.get(name), cached_property)}
    return kind.__module__, kind.__qualname__, items, [(name, _content(own[name], seen)) for name in sorted(own)]
