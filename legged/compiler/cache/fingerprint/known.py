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


_TRACE = "legged.compiler"
_ROOT = Path(__file__).parents[4]
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
_USED = (*_LIBRARIES, "llvmlite", "matplotlib", "mujoco", "pinocchio", "rich", "scipy", "typer", "yourdfpy")
"""Libraries that this project uses."""
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
DOUBTFUL = frozenset(["random", "ctypeslib", "testing", "lib", *(name.partition(".")[2] for name in _REFUSED)])
"""Names in known modules of what is not to be taken at its word."""
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


def is_ours(x: Any) -> bool:
    """Return whether something is a function or class of this project, whose code is taken not to look at the world."""
    return isinstance(x, types.FunctionType | type) and is_own(x.__module__)


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
    module, name = _place(x)
    if not is_known(module) or _found(module, name) is not x:
        return ""
    if f"{module}.{name}" in _REFUSED:
        raise Unknown(f"{module}.{name}")
    return f"{module}.{name}"


def library(x: Any) -> str:
    """Return name and version of what this project's code takes from a library, "" if it is to be looked at."""
    module, name = (x.__name__, "") if isinstance(x, types.ModuleType) else _place(x)
    top = module.partition(".")[0]
    if top not in sys.stdlib_module_names and top not in _USED:
        return ""
    if is_known(module) if not name else _found(module, name) is not x:
        return ""
    return f"library {module}.{name} {getattr(sys.modules.get(top), '__version__', '')}"


def _place(x: Any) -> tuple[str, str]:
    """Return the module and the name that a function or class says it has."""
    name = getattr(x, "__qualname__", None) or getattr(x, "__name__", None)
    module = getattr(x, "__module__", None) or getattr(type(x), "__module__", None)
    return (module, name) if isinstance(name, str) and isinstance(module, str) else ("", "")


def _found(module: str, name: str) -> Any:
    """Return what has a name in a module."""
    try:
        return operator.attrgetter(name)(sys.modules[module])
    except (AttributeError, KeyError):
        return None


def looks_up(name: str) -> bool:
    """Return whether a known function or class finds things by names which the code need not spell out."""
    return name in _LOOK_UP
