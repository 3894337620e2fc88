"""List and replace the numbers in a tree of Python objects, such as a started controller.

A started controller also holds numbers that it has computed from its fields. `flatten` lists all numbers of a tree of
objects, in the same order for trees of the same shape; `unflatten` returns a copy of the tree with other numbers, which
may be expressions of a traced function. No constructor runs.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from legged.compiler import Kernel
from legged.compiler.ir import ExpressionArray
from legged.ground.height_map import HeightMap
from legged.robot.robot import Robot

Array = np.ndarray
OPAQUE = (Robot, Kernel, HeightMap, type, FunctionType, MethodType, ModuleType, np.random.Generator)
"""Types whose objects are leaves of a tree."""


def flatten(tree: Any) -> tuple[list[float], list[tuple[str, Any]]]:
    """Return the numbers of a tree of objects, and the (path, value) of every other leaf.

    Args:
        tree: Any object: its attributes, the entries of sequences, dictionaries and arrays are visited.
    """
    numbers: list[float] = []
    others: list[tuple[str, Any]] = []
    _Traversal(lambda x: numbers.append(x) or x, lambda path, x: others.append((path, x))).visit(tree, "")
    return numbers, others


def unflatten(tree: Any, numbers: Iterator[Any], replaced: Sequence[tuple[Any, Any]] = ()) -> Any:
    """Return the tree with other numbers; parts whose numbers are unchanged are shared with the original.

    Args:
        tree: Any object, see `flatten`. numbers: The new numbers in the order of `flatten`.
        replaced: Pairs (leaf, what takes its place).
    """
    traversal = _Traversal(lambda _: next(numbers), lambda path, x: None)
    traversal.results.update((id(old), new) for old, new in replaced)
    return traversal.visit(tree, "")


def equal_leaves(a: Any, b: Any) -> bool:
    """Return whether two leaves that are not numbers are equal.

    Args:
        a, b: The leaves.
    """
    if a is b:
        return True
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    if isinstance(a, Kernel) and isinstance(b, Kernel):
        return a.graph.digest == b.graph.digest
    return type(a) is type(b) and bool(a == b)


class _Traversal:
    """One traversal of a tree of objects; an object that occurs several times is visited once."""

    def __init__(self, number: Callable[[float], Any], other: Callable[[str, Any], None]):
        self.number, self.other = number, other
        self.results: dict[int, Any] = {}
        self.visited: list[Any] = []  # keeps the objects alive, so that no id is used twice

    def visit(self, x: Any, path: str) -> Any:
        """Return a tree with new numbers."""
        if isinstance(x, float | np.floating):
            return self.number(float(x))
        if id(x) in self.results:
            return self.results[id(x)]
        self.visited.append(x)
        self.results[id(x)] = x  # for cyclic references
        result = self.results[id(x)] = self._inside(x, path)
        return result

    def _inside(self, x: Any, path: str) -> Any:
        if isinstance(x, np.ndarray) and x.dtype.kind == "f":
            return self._array(x)
        if isinstance(x, list | tuple):
            return self._sequence(x, path)
        if isinstance(x, dict):
            parts = {key: self.visit(value, f"{path}[{key!r}]") for key, value in x.items()}
            return parts if any(parts[key] is not x[key] for key in x) else x
        if hasattr(x, "__dict__") and not isinstance(x, OPAQUE):
            return self._object(x, path)
        self.other(path, x)
        return x

    def _array(self, x: Array) -> Array:
        entries = [self.number(value) for value in x.ravel().tolist()]
        if all(isinstance(entry, float) for entry in entries):
            return x
        made = np.empty(len(entries), dtype=object)
        made[:] = entries
        return made.reshape(x.shape).view(ExpressionArray)

    def _sequence(self, x: Any, path: str) -> Any:
        parts = [self.visit(value, f"{path}[{i}]") for i, value in enumerate(x)]
        if all(_unchanged(a, b) for a, b in zip(parts, x, strict=True)):
            return x
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)

    def _object(self, x: Any, path: str) -> Any:
        attributes = vars(x)
        parts = {name: self.visit(part, f"{path}.{name}" if path else name) for name, part in attributes.items()}
        if all(_unchanged(parts[name], part) for name, part in attributes.items()):
            return x
        made = copy.copy(x)
        vars(made).update(parts)
        return made


def _unchanged(a: Any, b: Any) -> bool:
    """Return whether a visited part is the original, or an equal number (NaN equals NaN)."""
    return a is b or (isinstance(a, float) and isinstance(b, float | np.floating) and (a == b or (a != a and b != b)))
