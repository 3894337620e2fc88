"""Functions: bytecode, what goes with it, and what it names."""

from __future__ import annotations

import dis
import functools
import importlib.util
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from legged.compiler.cache.fingerprint import known
from legged.compiler.cache.fingerprint.known import Unknown
from legged.compiler.cache.fingerprint.walk import FOREIGN, Walk

_IMPORT = dis.opmap["IMPORT_NAME"]
_SPELLED = frozenset(["__dict__", "__getattribute__"])
"""Attributes by which things are found under names that the code need not spell out."""


def function(walk: Walk, x: types.FunctionType) -> None:
    """Describe a function: its code, unless that is known by name, and all that it carries and names."""
    walk.lines.append("function")
    if module := known.home(x):
        walk.lines.append(f"{module}.{x.__qualname__}")
        if known.by_name(x):
            return
    else:
        _code(walk, x.__code__, x)
    carried = x.__defaults__, x.__kwdefaults__, x.__dict__ or None
    if carried != (None, None, None):
        walk.several("carries", carried)
    for cell in x.__closure__ or ():
        try:
            walk.read(cell.cell_contents)
        except ValueError:
            walk.lines.append("empty")


def _code(walk: Walk, code: types.CodeType, x: types.FunctionType) -> None:
    """Describe a function's bytecode, or that of one inside it, and offer the globals that it names."""
    names, own = code.co_names, known.is_own(x.__globals__.get("__name__"))
    walk.lines.append(_bytes(code))
    walk.name(names)
    if not own:
        walk.name([FOREIGN + name for name in names if name in known.DOUBTFUL])
        walk.looks_up |= not _SPELLED.isdisjoint(names)
    for name, value in (*_globals(code, x, own), *_imported(code, x)):
        library = known.library(value) if own else ""
        if library:
            walk.lines.append(f"{name} {library}")
        else:
            walk.offer(x, name, value, now=True)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            _code(walk, constant, x)
        else:
            walk.visit(constant)


def _globals(code: types.CodeType, x: types.FunctionType, own: bool) -> Iterator[tuple[str, Any]]:
    """Yield names and values of the globals that bytecode uses."""
    for name in code.co_names:
        if name in x.__globals__:
            yield from _used(code, name, x.__globals__[name]).items()
        elif name in x.__builtins__ and not (own and name in known.LOOK_UP):
            yield name, x.__builtins__[name]


def _bytes(code: types.CodeType) -> str:
    """Return everything of bytecode in a line, except its constants and where it was written."""
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
    return f"{names} {counts} {code.co_code.hex()} {code.co_exceptiontable.hex()}"


def _used(code: types.CodeType, name: str, value: Any) -> dict[str, Any]:
    """Return what bytecode uses of a global, by dotted name: of a module what it takes out of it, if no more."""
    if not isinstance(value, types.ModuleType) or known.is_known(value.__name__):
        return {name: value}
    found: dict[str, Any] = {}
    steps = [step for step in dis.get_instructions(code) if step.opname != "EXTENDED_ARG"]
    for k, step in enumerate(steps):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME") and step.argval == name:
            path, part = name, value
            while isinstance(part, types.ModuleType):
                k += 1
                word = steps[k].argval
                if steps[k].opname not in ("LOAD_ATTR", "LOAD_METHOD") or word not in vars(part):
                    return {name: value}
                path, part = f"{path}.{word}", vars(part)[word]
            found[path] = part
    return found


def _imported(code: types.CodeType, x: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield names and values of what bytecode imports, None for what no code has imported so far."""
    if _IMPORT not in code.co_code[::2]:
        return
    before: list[Any] = []
    for step in dis.get_instructions(code):
        if step.opcode == _IMPORT:
            level, names = before[-2:]
            package = x.__globals__.get("__package__") or ""
            whole = importlib.util.resolve_name("." * level + step.argval, package)
            for path in (whole, whole.partition(".")[0]) if names is None else ():
                yield path, sys.modules.get(path)
            for name in names or ():
                path = f"{whole}.{name}"
                yield path, getattr(sys.modules.get(whole), name, sys.modules.get(path))
        before.append(step.argval)


def _method(walk: Walk, x: types.MethodType) -> None:
    walk.several("method", (x.__func__, x.__self__))


def _builtin(walk: Walk, x: types.BuiltinFunctionType) -> None:
    """Describe a function in another language: one of a module has a name, one of an object that object."""
    if name := known.by_name(x):
        walk.lines.append(f"known {name}")
        walk.looks_up |= known.looks_up(name)
    elif x.__self__ is None or isinstance(x.__self__, types.ModuleType):
        raise Unknown(f"{x.__module__}.{x.__name__}")
    else:
        walk.several(f"method {x.__name__}", (x.__self__,))


def _partial(walk: Walk, x: functools.partial) -> None:
    walk.several("partial", (x.func, x.args, x.keywords, x.__dict__ or None))


def _property(walk: Walk, x: property) -> None:
    walk.several("property", (x.fget, x.fset, x.fdel))


def _wrapped(walk: Walk, x: classmethod | staticmethod) -> None:
    walk.several(type(x).__name__, (x.__func__,))


def _cached_property(walk: Walk, x: functools.cached_property) -> None:
    walk.several("cached_property", (x.attrname, x.func))


def _memory(walk: Walk, x: Any) -> None:
    """Describe what remembers its results: ours follow from the arguments, others from who knows what."""
    if not known.is_own(x.__wrapped__.__module__):
        raise Unknown(f"{x.__wrapped__.__qualname__} remembers results")
    walk.several("remembers", (x.__wrapped__,))


KINDS: dict[type, Callable[[Walk, Any], None]] = {
    types.FunctionType: function,
    types.MethodType: _method,
    types.BuiltinFunctionType: _builtin,
    functools.partial: _partial,
    property: _property,
    classmethod: _wrapped,
    staticmethod: _wrapped,
    functools.cached_property: _cached_property,
    type(functools.cache(len)): _memory,
}
"""How to describe functions and what is made of them."""
