"""Keys of the cache: hashes of everything that a traced graph and its machine code depend on.

Machine code depends on the graph. A graph depends on the traced function and its arguments; a key exists only for
functions of this project, whose source is hashed, called with data whose content is known: numbers, strings, arrays,
containers, and instances of this project's classes with all their attributes. A key never results from an inspection
of a user's function. `function_key` and `data_key` return None for everything else.
"""

from __future__ import annotations

import enum
import hashlib
import itertools
import os
import pathlib
import sys
import time
import types
from collections.abc import Callable, Iterable
from functools import cache, cached_property
from typing import Any

import numpy as np

from legged.checked import undecorated

PACKAGES = ("legged", "controllers", "robots")
"""The packages of this project."""
_ROOT = pathlib.Path(__file__).parents[3]
_IMPORT_TIME = time.time_ns()


class UnknownContentError(Exception):
    """An object whose content is not known completely."""


# Source


def source_digest(*folders: str) -> str | None:
    """Return a hash of the Python files in some folders of this project.

    Returns:
        The hash, None without files or if a file has changed since this module was imported: then the running code may
        differ from the files.
    """
    digests = [_folder_digest(os.path.join(_ROOT, folder)) for folder in folders]
    return None if None in digests or not any(digests) else " ".join(map(str, digests))


@cache
def _folder_digest(folder: str) -> str | None:
    """Return a hash of the Python files in a folder and its sub-folders, "" without files; None as above."""
    digest, count = hashlib.blake2b(digest_size=20), 0
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name) if os.path.isdir(folder) else ():
        if entry.is_dir() and entry.name != "__pycache__":
            inside = _folder_digest(entry.path)
            if inside is None:
                return None
            if not inside:
                continue
            content = inside.encode()
        elif entry.name.endswith(".py"):
            with open(entry.path, "rb", buffering=0) as file:
                status, content = os.fstat(file.fileno()), file.read()
            if max(status.st_mtime_ns, status.st_ctime_ns) > _IMPORT_TIME:
                return None
        else:
            continue
        digest.update(f"{entry.name} {len(content)}\n".encode())
        digest.update(content)
        count += 1
    return digest.hexdigest() if count else ""


@cache
def _is_own_module(name: str) -> bool:
    """Return whether a module of this name is loaded from a file of this project."""
    file = getattr(sys.modules.get(name), "__file__", None)
    top = name.partition(".")[0]
    return top in PACKAGES and file is not None and pathlib.Path(file).is_relative_to(_ROOT / top)


# Functions


def function_key(function: Any) -> str | None:
    """Return a key of a function of this project: its name and default values, None for any other function.

    The function must be defined by `def` at the top level of a module and be found there under its own name. Functions
    wrapped by another decorator than `legged.checked`, closures, methods and partial objects have no key, nor have
    functions with attributes.
    """
    if type(function) is not types.FunctionType or not _is_own_module(str(function.__module__)):
        return None
    module, name = sys.modules[function.__module__], function.__qualname__
    if vars(module).get(name) is not function:
        return None
    decorated, function = function, undecorated(function)
    if (
        (decorated is not function and decorated.__dict__ != {"__wrapped__": function})
        or function.__globals__ is not vars(module)
        or function.__code__.co_filename != module.__file__
        or function.__code__.co_name != name
        or function.__closure__
        or function.__dict__
    ):
        return None
    defaults = data_key((function.__defaults__, function.__kwdefaults__))
    return None if defaults is None else f"{function.__module__}.{name} {defaults}"


# Data


def data_key(value: Any) -> str | None:
    """Return a hash of the content of an argument, None if the content is not known completely.

    All attributes of an instance count, whether its class declares them or not. Cached properties are not content, but
    a stored value that differs from the value which the property computes makes the content unknown: it was
    overwritten.
    """
    try:
        return _hash(value)
    except Exception:  # UnknownContentError, RecursionError, and errors of properties that are computed again
        return None


def _hash(value: Any) -> str:
    digest = hashlib.blake2b(digest_size=20)
    for part in _Serializer().parts(value):
        digest.update(part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part)
        digest.update(b"\n")
    return digest.hexdigest()


class _Serializer:
    """Writes objects as a sequence of strings and bytes that no other content gives.

    Objects that are met again are written as references, so that shared objects differ from equal ones.
    """

    def __init__(self) -> None:
        self._out: list[str | bytes] = []
        self._seen: dict[int, int] = {}
        self._alive: list[Any] = []  # so that no two objects have the same id

    def parts(self, value: Any) -> list[str | bytes]:
        """Return the parts of a value."""
        self._write(value)
        return self._out

    def _write(self, x: Any) -> None:
        kind = type(x)
        if kind in _PLAIN:
            self._out.append(f"{kind.__name__} {x!r}")
        elif kind is tuple:
            self._sequence("tuple", x)
        elif isinstance(x, np.generic) and kind.__module__ == "numpy":
            self._out.append("scalar")
            self._array(np.asarray(x))
        elif self._is_new(x):
            writer = _WRITERS.get(kind)
            if writer is not None:
                writer(self, x)
            elif isinstance(x, type | types.FunctionType):
                self._named(x)
            else:
                self._instance(x)

    def _is_new(self, x: Any) -> bool:
        number = self._seen.setdefault(id(x), len(self._seen))
        if number < len(self._alive):
            self._out.append(f"reference {number}")
            return False
        self._alive.append(x)
        return True

    def _sequence(self, name: str, items: Iterable[Any]) -> None:
        items = tuple(items)
        self._out.append(f"{name} {len(items)}")
        for item in items:
            self._write(item)

    def _mapping(self, x: Any) -> None:
        self._sequence(type(x).__name__, itertools.chain.from_iterable(x.items()))

    def _set(self, x: Any) -> None:
        if any(type(item) not in _PLAIN for item in x):
            raise UnknownContentError("a set of objects has no order")
        self._sequence(type(x).__name__, sorted(x, key=repr))

    def _array(self, x: np.ndarray) -> None:
        if x.dtype.hasobject:
            self._sequence(f"objects {x.shape}", x.ravel().tolist())
        elif x.dtype.names is None:
            self._out.append(f"array {x.dtype.str} {x.shape}")
            self._out.append(x.tobytes())
        else:
            raise UnknownContentError("a structured array")

    def _named(self, x: Any) -> None:
        """Write a class or function of this project by its name."""
        key = function_key(x) if isinstance(x, types.FunctionType) else _class_name(x)
        if key is None:
            raise UnknownContentError(f"{x!r} does not belong to this project")
        self._out.append(f"named {key}")

    def _instance(self, x: Any) -> None:
        kind = type(x)
        if f"{kind.__module__}.{kind.__qualname__}" == "networkx.classes.digraph.DiGraph":
            self._sequence("graph", (x.graph, list(x.nodes.items()), list(x.edges.items())))
            return
        name = _class_name(kind)
        if name is None:
            raise UnknownContentError(f"{kind.__qualname__} does not belong to this project")
        self._out.append(f"instance {name}")
        if isinstance(x, enum.Enum):
            self._out.append(x.name)
            return
        if isinstance(x, tuple):
            self._sequence("items", tuple.__iter__(x))
        slots, properties = _slots_and_cached_properties(kind)
        attributes = getattr(x, "__dict__", {})
        if slots:
            attributes = {**attributes, **{name: getattr(x, name) for name in slots if hasattr(x, name)}}
        for attribute in sorted(attributes):
            value = attributes[attribute]
            if attribute not in properties:
                self._out.append(attribute)
                self._write(value)
            elif _hash(properties[attribute](x)) != _hash(value):
                raise UnknownContentError(f"{attribute} was overwritten")
        self._out.append("end")


_PLAIN = frozenset([type(None), bool, int, float, complex, str, bytes])
_WRITERS: dict[type, Callable[[_Serializer, Any], None]] = {
    list: lambda s, x: s._sequence("list", x),
    dict: _Serializer._mapping,
    types.MappingProxyType: _Serializer._mapping,
    set: _Serializer._set,
    frozenset: _Serializer._set,
    slice: lambda s, x: s._sequence("slice", (x.start, x.stop, x.step)),
    range: lambda s, x: s._sequence("range", (x.start, x.stop, x.step)),
    np.ndarray: _Serializer._array,
    type(pathlib.Path()): lambda s, x: s._sequence("path", [str(x)]),
}


_BASES = frozenset([object, tuple, enum.Enum])
"""Classes of Python that classes of this project may derive from."""


@cache
def _class_name(kind: type) -> str | None:
    """Return the name of a class of this project all of whose bases belong to it too, None for any other class."""
    if kind in _BASES:
        return None
    for base in kind.__mro__:
        if base in _BASES:
            continue
        found: Any = sys.modules.get(base.__module__) if _is_own_module(base.__module__) else None
        for part in base.__qualname__.split("."):
            found = getattr(found, part, None)
        if found is not base:
            return None
    return f"{kind.__module__}.{kind.__qualname__}"


@cache
def _slots_and_cached_properties(kind: type) -> tuple[tuple[str, ...], dict[str, Callable[[Any], Any]]]:
    """Return the names of a class's slots, and the functions that compute its cached properties."""
    members = {name: member for base in reversed(kind.__mro__) for name, member in vars(base).items()}
    slots = tuple(name for name, member in members.items() if isinstance(member, types.MemberDescriptorType))
    return slots, {name: member.func for name, member in members.items() if isinstance(member, cached_property)}
