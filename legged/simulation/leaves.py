"""The numbers in a tree of objects: found, compared between trees, and put back as inputs of a traced function.

A controller that has been started holds numbers in many places: gains, the fields of its gait, what it worked out from
them. When the members of a batch differ in some, these become inputs of one kernel for all, whatever class holds them:
`numbers` lists the numbers of a tree, in the same order for trees of one shape, and `with_numbers` returns a copy of
the tree with others in their place. No constructor runs, so the new ones may be `Expression`s.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from legged.compiler.ir import ExpressionArray
from legged.robot.robot import Robot

Array = np.ndarray
_OPAQUE = (Robot, type, FunctionType, MethodType, ModuleType, np.random.Generator)


def numbers(tree: Any) -> tuple[list[float], list[tuple[str, Any]]]:
    """Return (the numbers of a tree, everything else in it, each with its place in words)."""
    found: list[float] = []
    others: list[tuple[str, Any]] = []
    _Walk(lambda x: found.append(x) or x, lambda place, x: others.append((place, x))).visit(tree, "")
    return found, others


def with_numbers(tree: Any, values: Iterator[Any]) -> Any:
    """Return the tree with these numbers in the places of its own; parts whose numbers are all kept are shared."""
    return _Walk(lambda _: next(values), lambda place, x: None).visit(tree, "")


def same(a: Any, b: Any) -> bool:
    """Return whether two things that are no numbers are alike."""
    if a is b:
        return True
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    return type(a) is type(b) and bool(a == b)


class _Walk:
    """One way through a tree; what occurs twice is visited once."""

    def __init__(self, number: Callable[[float], Any], other: Callable[[str, Any], None]):
        self.number, self.other = number, other
        self.seen: dict[int, Any] = {}
        self.kept: list[Any] = []  # so that no number of an object is used again

    def visit(self, x: Any, place: str) -> Any:
        """Return a tree with new numbers."""
        if isinstance(x, float | np.floating):
            return self.number(float(x))
        if id(x) in self.seen:
            return self.seen[id(x)]
        self.kept.append(x)
        self.seen[id(x)] = x  # until it is known, for what refers to itself
        made = self.seen[id(x)] = self._inside(x, place)
        return made

    def _inside(self, x: Any, place: str) -> Any:
        if isinstance(x, np.ndarray) and x.dtype.kind == "f":
            return self._array(x)
        if isinstance(x, list | tuple):
            return self._sequence(x, place)
        if isinstance(x, dict):
            parts = {key: self.visit(value, f"{place}[{key!r}]") for key, value in x.items()}
            return parts if any(parts[key] is not x[key] for key in x) else x
        if hasattr(x, "__dict__") and not isinstance(x, _OPAQUE):
            return self._object(x, place)
        self.other(place, x)
        return x

    def _array(self, x: Array) -> Array:
        entries = [self.number(value) for value in x.ravel().tolist()]
        if all(isinstance(entry, float) for entry in entries):
            return x
        made = np.empty(len(entries), dtype=object)
        made[:] = entries
        return made.reshape(x.shape).view(ExpressionArray)

    def _sequence(self, x: Any, place: str) -> Any:
        parts = [self.visit(value, f"{place}[{i}]") for i, value in enumerate(x)]
        if all(a is b or _equal(a, b) for a, b in zip(parts, x, strict=True)):
            return x
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)

    def _object(self, x: Any, place: str) -> Any:
        fields = vars(x)
        parts = {name: self.visit(value, f"{place}.{name}" if place else name) for name, value in fields.items()}
        if all(parts[name] is value or _equal(parts[name], value) for name, value in fields.items()):
            return x
        made = copy.copy(x)
        vars(made).update(parts)
        return made


def _equal(a: Any, b: Any) -> bool:
    return isinstance(a, float) and isinstance(b, float | np.floating) and (a == b or (a != a and b != b))
