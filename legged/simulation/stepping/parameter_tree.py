"""The parameters of controllers, grounds and pushes: numbers in objects that declare them.

Members of a batch may differ in such numbers. One compiled time step computes all of them if it takes the numbers as
inputs: `starts` lists them by `flatten`, and `batch.MemberTemplate` puts expressions in their places by `unflatten`. An
object with its parts is a *tree*; its *leaves* are what has no parts: numbers, which are parameters, and others.

A dataclass declares its fields. Any other class declares the names of attributes:

    class Spring:
        parameter_names = ("kp", "rest")

Entries of tuples, lists, dictionaries and arrays are parameters where these are; every other object is a constant.
`rollout` and `Simulation` list and replace parameters at two places: in the definitions of users, by name, with the
functions `part_names`, `part_of` and `with_parts`, see `parameters`; and in started controllers, which also hold
numbers that they have computed from them. `flatten` lists the latter in the same order for trees of the same shape,
`unflatten` returns a copy of the tree with other numbers, which may be expressions of a traced function. `entry` and
`replaced_entry` serve `controllers.Estimated`, whose kernel for a robot takes parameters by name as an argument.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cached_property
from types import FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from legged.arguments import known_name
from legged.compiler import Kernel
from legged.compiler.ir import ExpressionArray
from legged.robot.robot import Robot

Array = np.ndarray
_ADAPTED = "controller"
"""Name of the only part of `_ControllerAdapter`, which paths leave out."""
_WITHOUT_PARTS = Robot, Kernel, type, FunctionType, MethodType, ModuleType
"""Types of objects that declare no parameters, and cannot."""


def declared_names(x: Any) -> tuple[str, ...] | None:
    """Return the names of the attributes of an object that are its parameters; None if its class declares none.

    `parameter_names` of the class precedes the fields of a dataclass.
    """
    if isinstance(x, type | Robot):  # a robot has parameters of its own, see `Robot.parameters`
        return None
    names = getattr(type(x), "parameter_names", None)
    if names is None and is_dataclass(x):
        return tuple(field.name for field in fields(x))
    return names


def part_names(x: Any) -> list[str] | None:
    """Return the names of the public parts of an object: indices, keys, or declared attributes; None if it has none."""
    if isinstance(x, Mapping):
        return list(x)
    if isinstance(x, tuple | list):
        return [str(i) for i in range(len(x))]
    names = declared_names(x)
    return None if names is None else [name for name in names if not name.startswith("_")]


def part_of(x: Any, name: str) -> Any:
    """Return the part of an object with one of its `part_names`."""
    if isinstance(x, Mapping):
        return x[name]
    return x[int(name)] if isinstance(x, tuple | list) else getattr(x, name)


def with_parts(x: Any, parts: Mapping[Any, Any]) -> Any:
    """Return a copy of an object with other parts: all of a tuple, list or mapping, some attributes of others."""
    if isinstance(x, tuple | list):
        is_named = hasattr(x, "_fields")  # a NamedTuple takes its entries as arguments
        return type(x)(*parts.values()) if is_named else type(x)(parts.values())  # type: ignore[call-arg]
    if isinstance(x, Mapping):
        return dict(parts)
    changed = copy.copy(x)
    vars(changed).update(parts)
    return changed


class Leaf(NamedTuple):
    """An object in a tree that is no number and has no parts.

    Attributes:
        path: Its place in the tree. value: The object. is_declared: Whether it is in a declared attribute, where the
            robot of a member replaces that of another one.
    """

    path: str
    value: Any
    is_declared: bool

    @property
    def words(self) -> str:
        """The place, and for an object of a class that declares no parameters, how to declare them."""
        if not hasattr(self.value, "__dict__") or isinstance(self.value, _WITHOUT_PARTS):
            return self.path
        return f"{self.path} ({undeclared(self.value)})"


def undeclared(x: Any) -> str:
    """Return the explanation that the class of an object declares no parameters."""
    return (
        f"{type(x).__name__}, which declares no parameters: make it a dataclass, or name the attributes that hold "
        f'numbers in the class, as in parameter_names = ("kp",)'
    )


def flatten(tree: Any) -> tuple[list[float], list[Leaf]]:
    """Return the parameters of a tree of objects, and its other leaves, which trees of one template share."""
    numbers, leaves = list[float](), list[Leaf]()

    def collected(x: float) -> float:
        numbers.append(x)
        return x

    _Traversal(collected, leaves.append).visit(tree, "")
    return numbers, leaves


def unflatten(tree: Any, numbers: Iterator[Any], replaced: Sequence[tuple[Any, Any]] = ()) -> Any:
    """Return the tree with other parameters; parts without changes are shared with the original. No constructor runs.

    Args:
        tree: Any object, see `flatten`. numbers: The new numbers in the order of `flatten`.
        replaced: Pairs (leaf, what takes its place).
    """
    traversal = _Traversal(lambda _: next(numbers), lambda leaf: None)
    traversal.results.update((id(old), new) for old, new in replaced)
    return traversal.visit(tree, "")


def entry(tree: Any, path: str) -> Any:
    """Return a declared part of a tree of objects.

    Args:
        tree: Any object.
        path: Names of attributes, keys and indices, with dots between them; the adapter of a started controller, whose
            only part is the controller, has no name.

    Raises:
        UnknownNameError: There is no such part.
    """
    name, _, rest = path.partition(".")
    names = part_names(tree) or []
    if names == [_ADAPTED] and name != _ADAPTED:
        return entry(part_of(tree, _ADAPTED), path)
    part = part_of(tree, known_name(f"part of {type(tree).__name__}", name, names))
    return entry(part, rest) if rest else part


def replaced_entry(tree: Any, path: str, value: Any) -> Any:
    """Return a copy of a tree with another value at a path, which may be traced. No constructor runs.

    Args:
        tree: Any object. path: As in `entry`, of an existing part. value: The new value.
    """
    name, _, rest = path.partition(".")
    parts = {known: part_of(tree, known) for known in part_names(tree) or ()}
    if list(parts) == [_ADAPTED] and name != _ADAPTED:
        name, rest = _ADAPTED, path
    parts[name] = replaced_entry(parts[name], rest, value) if rest else value
    if isinstance(tree, tuple | list | Mapping):
        return with_parts(tree, parts)
    changed = with_parts(tree, {name: parts[name]})
    for computed in [key for key in vars(changed) if isinstance(getattr(type(changed), key, None), cached_property)]:
        del vars(changed)[computed]  # from the old value
    return changed


class _Traversal:
    """One traversal of a tree of objects; an object that occurs several times is visited once.

    Args:
        number: Called with each parameter; its result takes the place of the parameter.
        leaf: Called with each other leaf.
    """

    def __init__(self, number: Callable[[float], Any], leaf: Callable[[Leaf], None]):
        self.number, self.leaf = number, leaf
        self.results: dict[int, Any] = {}  # by `id` of the original
        self.visited: list[Any] = []  # keeps the objects alive, so that no id is used twice

    def visit(self, x: Any, path: str) -> Any:
        """Return the tree with new numbers.

        Args:
            x: The tree. path: Its place in the whole tree, see `Leaf`.
        """
        if isinstance(x, float | np.floating):
            return self.number(float(x))
        if id(x) not in self.results:
            self.visited.append(x)
            self.results[id(x)] = x  # for cyclic references
            is_real = isinstance(x, np.ndarray) and x.dtype.kind == "f"
            self.results[id(x)] = self._array(x) if is_real else self._object(x, path)
        return self.results[id(x)]

    def _object(self, x: Any, path: str) -> Any:
        parts = self._parts(x, path)
        if parts is None:
            self.leaf(Leaf(path, x, True))
            return x
        new = {name: self.visit(part, f"{path}.{name}" if path else str(name)) for name, part in parts.items()}
        if all(_unchanged(new[name], part) for name, part in parts.items()):
            return x
        return with_parts(x, new)

    def _parts(self, x: Any, path: str) -> dict[Any, Any] | None:
        """Return the parts of an object that may hold parameters, by name; None if it has none.

        Other attributes, which a class with `parameter_names` or a dataclass has beside them, become leaves.
        """
        if isinstance(x, tuple | list):
            return dict(enumerate(x))
        if isinstance(x, dict):
            return x
        names = declared_names(x)
        if names is None:
            return None
        parts = {name: getattr(x, name) for name in names}
        for name, value in getattr(x, "__dict__", {}).items():
            if isinstance(getattr(type(x), name, None), cached_property):  # computed from parameters
                parts[name] = value
            elif name not in parts:
                self.leaf(Leaf(f"{path}.{name}" if path else name, value, False))
        return parts

    def _array(self, x: Array) -> Array:
        """Return an array of new numbers: the original if they are the same, an array of objects if some are traced."""
        entries = [self.number(value) for value in x.ravel().tolist()]
        if all(isinstance(entry, float) for entry in entries):
            new = np.array(entries, x.dtype).reshape(x.shape)
            return x if np.array_equal(new, x, equal_nan=True) else new
        objects = np.empty(len(entries), dtype=object)
        objects[:] = entries
        return objects.reshape(x.shape).view(ExpressionArray)


def _unchanged(a: Any, b: Any) -> bool:
    """Return whether a visited part is the original, or an equal number (NaN equals NaN)."""
    return a is b or (isinstance(a, float) and isinstance(b, float | np.floating) and (a == b or (a != a and b != b)))


def are_equal(a: Any, b: Any) -> bool:
    """Return whether two leaves are equal; objects that `start` has made anew are if their attributes are."""
    if a is b:
        return True
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    if isinstance(a, Kernel) and isinstance(b, Kernel):
        return a.graph.digest == b.graph.digest
    if type(a) is not type(b):
        return False
    try:
        if isinstance(a, tuple | list):
            return len(a) == len(b) and all(map(are_equal, a, b))
        if isinstance(a, dict):
            return a.keys() == b.keys() and all(are_equal(a[key], b[key]) for key in a)
        if isinstance(a, MethodType):
            return a.__func__ is b.__func__ and are_equal(a.__self__, b.__self__)
        if type(a).__eq__ is object.__eq__ and hasattr(a, "__dict__"):
            return not isinstance(a, _WITHOUT_PARTS) and are_equal(vars(a), vars(b))
        return bool(a == b)
    except Exception:  # a user's class may compare in any way; references may be cyclic
        return False
