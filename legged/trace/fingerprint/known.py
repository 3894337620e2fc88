"""What is taken at its word: code whose name and version say what it does."""

from __future__ import annotations

import operator
import os
import sys
import types
from functools import cache
from pathlib import Path
from typing import Any


class Unknown(Exception):
    """Something whose effect cannot be told without running it."""


_TRACE = "legged.trace"
_ROOT = Path(__file__).parents[3]
_OURS = ("legged", "controllers", "robots")
_STANDARD = Path(os.__file__).parent
_PURE = frozenset(
    "abc bisect builtins cmath collections contextlib copy dataclasses difflib enum fractions functools heapq "  # noqa: SIM905
    "itertools math numbers operator reprlib types typing _abc _bisect _collections _collections_abc _functools _heapq "
    "_operator _typing".split()
)
"""Modules of Python's library that neither look at the world nor remember anything."""
_LIBRARIES = ("networkx", "numpy")
_NOT_PURE = ("numpy.random", "numpy.ctypeslib", "numpy.testing", "numpy.lib.npyio", "networkx.readwrite")
_REFUSED = frozenset(
    f"{module}.{name}"
    for module, names in {
        "builtins": "__import__ breakpoint compile eval exec globals input locals open print",
        "numpy": "datetime64 fromfile fromregex genfromtxt geterr load loadtxt memmap save savetxt savez "
        "savez_compressed",
    }.items()
    for name in names.split()
)
"""Functions of known modules that depend on more than their arguments, or do more than return a result."""
LOOK_UP = frozenset(["delattr", "dir", "getattr", "hasattr", "setattr", "vars"])
"""Built-in functions that find things by names which the code need not spell out."""
_LOOK_UP = frozenset([*(f"builtins.{name}" for name in LOOK_UP), "operator.attrgetter", "operator.methodcaller"])


@cache
def is_known(module: str | None) -> bool:
    """Return whether the version says all about a module: ours that trace, NumPy, networkx and parts of Python's own.

    A file of the user's that has the name of one of these is none of them.
    """
    top = (module or "").partition(".")[0]
    if module is None or top not in sys.modules:
        return False
    if module == _TRACE or module.startswith(_TRACE + "."):
        return True
    if top in _LIBRARIES:
        return not module.startswith(_NOT_PURE)
    place = getattr(sys.modules[top], "__file__", None)
    standard = place is None or (Path(place).is_relative_to(_STANDARD) and "site-packages" not in place)
    return top in _PURE and standard


@cache
def is_own(module: str | None) -> bool:
    """Return whether a module belongs to this project."""
    top = (module or "").partition(".")[0]
    place = getattr(sys.modules.get(module or ""), "__file__", None)
    return top in _OURS and place is not None and Path(place).is_relative_to(_ROOT / top)


def traces(kind: type) -> bool:
    """Return whether a class is one of those that trace and compile, or derived from one."""
    return any(c.__module__.startswith(_TRACE) and is_known(c.__module__) for c in kind.__mro__)


def home(function: types.FunctionType) -> str:
    """Return the known module that a function was written in, "" if it was elsewhere."""
    module = function.__globals__.get("__name__")
    if isinstance(module, str) and is_known(module) and vars(sys.modules[module]) is function.__globals__:
        return module
    return ""


def by_name(x: Any) -> str:
    """Return the name of a function or class of a known module, "" if it is none or not what has that name there."""
    name = getattr(x, "__qualname__", None) or getattr(x, "__name__", None)
    module = getattr(x, "__module__", None) or getattr(type(x), "__module__", None)
    if not isinstance(name, str) or not isinstance(module, str) or not is_known(module):
        return ""
    try:
        found = operator.attrgetter(name)(sys.modules[module])
    except (AttributeError, KeyError):
        return ""
    if found is not x:
        return ""
    if f"{module}.{name}" in _REFUSED:
        raise Unknown(f"{module}.{name}")
    return f"{module}.{name}"


def looks_up(name: str) -> bool:
    """Return whether a known function or class finds things by names which the code need not spell out."""
    return name in _LOOK_UP
