"""Checks of arguments by the annotations of their parameters.

beartype and `validate_call` of pydantic are not used, since they refuse lists and whole numbers or convert texts and
truth values, accept NaN, and raise errors of their own: each annotation would need a validator, which is this file.
"""

from __future__ import annotations

import collections.abc
import functools
import inspect
import math
import numbers
import os
import re
import sys
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from legged.arguments import array, as_array, instance, number, real_array, shown, text, whole
from legged.errors import ArgumentError, NotFiniteError, ShapeError

_LARGEST = sys.float_info.max
Check = Callable[[str, Any], object]
"""Takes the name of an argument and its value, and raises an error if the value is wrong."""


def annotations_of(function: Any, owner: type | None = None) -> dict[str, Any]:
    """Return the annotations of a function's parameters as objects, {name: annotation}.

    Names that a module imports for type checkers only are looked up among the public names of the toolkit; the
    initializer of a dataclass has annotations from the modules of the classes that it extends.

    Args:
        function: The function, not decorated.
        owner: The class of which it is the initializer.
    """
    names = dict[str, Any]()
    for kind in reversed(owner.__mro__) if owner else ():
        names.update(vars(sys.modules[kind.__module__]))
    names.update(function.__globals__)
    annotations = {name: hint for name, hint in function.__annotations__.items() if name != "return"}
    toolkit = sys.modules["legged"]
    words = {word for hint in annotations.values() if isinstance(hint, str) for word in re.findall(r"\w+", hint)}
    names.update((word, getattr(toolkit, word)) for word in words & set(toolkit.__all__) - names.keys())
    parameters = types.SimpleNamespace(__annotations__=annotations)
    return typing.get_type_hints(parameters, names, include_extras=True)


def parameter_checks(hints: dict[str, Any], signature: inspect.Signature) -> dict[str, Check]:
    """Return the check of each parameter whose annotation can be checked."""
    checks = {}
    for name, parameter in signature.parameters.items():
        if name not in hints or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        default = parameter.default
        hint = _hint_check(hints[name], infinite=_is_infinite(default))
        if hint is not None:
            checks[name] = _or_default(hint[0], default)
    return checks


def array_parameters(hints: dict[str, Any]) -> dict[str, bool]:
    """Return the names of the parameters that may be arrays, and whether each is one and no list.

    Args:
        hints: {name: annotation}.
    """
    arrays = {}
    for name, hint in hints.items():
        members = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
        if any(map(_is_array_hint, members)):
            arrays[name] = any(map(_is_numpy_hint, members))
    return arrays


def _is_numpy_hint(hint: Any) -> bool:
    """Return whether an annotation means an array of NumPy alone."""
    hint = typing.get_args(hint)[0] if typing.get_origin(hint) is typing.Annotated else hint
    return np.ndarray in (hint, typing.get_origin(hint))


def _is_array_hint(hint: Any) -> bool:
    """Return whether an annotation means an array of numbers, in any container or as an array of NumPy."""
    if typing.get_origin(hint) is typing.Annotated:
        kind = hint.__metadata__[0]
        return isinstance(kind, tuple) or kind is np.ndarray
    return np.ndarray in (hint, typing.get_origin(hint)) or (
        typing.get_origin(hint) in (tuple, list, collections.abc.Sequence) and _is_numeric(hint)
    )


def _or_default(check: Check, default: Any) -> Check:
    """Return a check that also accepts the default value, of any type."""

    def allowed(name: str, value: Any) -> None:
        if value is not default:
            check(name, value)

    return allowed if default is not inspect.Parameter.empty else check


def _hint_check(hint: Any, infinite: bool) -> tuple[Check, str] | None:
    """Return the check of an annotation and its meaning in words, None if there is nothing to check."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        kind = hint.__metadata__[0]
        return _shape_check(kind, infinite) if isinstance(kind, tuple) else _hint_check(kind, infinite)
    if hint is Any or isinstance(hint, TypeVar) or hint is object or hint is inspect.Parameter.empty:
        return None
    if hint is None or hint is type(None):
        return _kind_check(type(None), "None")
    if origin in (typing.Union, types.UnionType):
        if sum(_is_container(part) for part in parts) > 1:
            return None  # the function distinguishes them itself
        return _union_check([_hint_check(part, infinite) for part in parts])
    if origin is typing.Literal:
        return _one_of_check(parts)
    if origin is np.ndarray or hint is np.ndarray:
        return functools.partial(_array_check, infinite=infinite), "an array of numbers"
    if hint is float:
        return functools.partial(_number_check, infinite=infinite), "a number"
    if hint is int:
        return whole, "a whole number"
    if hint is bool:
        return _kind_check((bool, np.bool_), "True or False")
    if hint is str:
        return text, "a text"
    if origin is collections.abc.Callable:
        return _callable_check(parts[0] if parts else ...)
    if origin is tuple and set(parts) - {Ellipsis} == {float}:
        return _shape_check((None if Ellipsis in parts else len(parts),), infinite)
    container = origin or hint
    if container is tuple and parts and Ellipsis not in parts:
        return _tuple_check([_hint_check(part, infinite) for part in parts])
    if container in (collections.abc.Sequence, list) and parts == (float,):
        return _shape_check((None,), infinite)
    if not isinstance(container, type):
        return None
    if getattr(container, "_is_protocol", False):
        return _protocol_check(container)
    if container in (collections.abc.Sequence, collections.abc.Iterable, list, tuple):
        return _sequence_check(container, _hint_check(parts[0], infinite) if parts else None)
    if issubclass(container, Mapping) and (container is dict or container is collections.abc.Mapping):
        return _mapping_check(_hint_check(parts[1], infinite) if len(parts) == 2 else None)
    if container is type:
        return _kind_check(type, "a class")
    if container in (os.PathLike, Path):
        return _kind_check(os.PathLike, "a path")
    return _kind_check(container, f"a {_public_name(container)}")


def _public_name(kind: type) -> str:
    """Return the shortest name under which a class can be imported, for example `legged.ground.Ground`."""
    parts = kind.__module__.split(".")
    packages = [".".join(parts[: i + 1]) for i in range(len(parts))]
    exporting = [name for name in packages if getattr(sys.modules.get(name), kind.__name__, None) is kind]
    return f"{(exporting or packages[-1:])[0]}.{kind.__name__}"


def _is_container(hint: Any) -> bool:
    """Return whether an annotation means a sequence, an iterable or a mapping of anything but numbers."""
    origin = typing.get_origin(hint)
    return isinstance(origin, type) and issubclass(origin, Iterable) and not _is_numeric(hint)


def _is_numeric(hint: Any) -> bool:
    """Return whether an annotation means numbers: a float, an array, or a sequence of these."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (np.ndarray, typing.Annotated) or hint in (float, Ellipsis):
        return True
    return origin in (tuple, list, collections.abc.Sequence) and all(map(_is_numeric, parts))


def _kind_check(kind: Any, words: str) -> tuple[Check, str]:
    return functools.partial(_instance_check, kind, words), words


def _instance_check(kind: Any, words: str, name: str, value: Any) -> None:
    instance(name, value, kind, words)


def _array_check(name: str, value: Any, infinite: bool, shape: tuple[int | None, ...] | None = None) -> None:
    """Raise an error if a value is no array of numbers, or one of another shape, with NaN or, unless allowed, infinity.

    Plain numbers and arrays of floats, the most frequent values, are accepted before the slower checks.
    """
    if shape is None and type(value) in (float, int) and -_LARGEST <= value <= _LARGEST:
        return
    if isinstance(value, np.ndarray) and shape is None and not isinstance(value, np.ma.MaskedArray):
        if value.dtype == float and (np.isfinite(value).all() or (infinite and not np.isnan(value).any())):
            return
        if type(value) is not np.ndarray and value.dtype == object:
            return  # an array of traced scalars
    if infinite:
        value = np.where(np.isinf(real_array(name, value)), 0.0, as_array(name, value))
    array(name, value, shape)


def _number_check(name: str, value: Any, infinite: bool) -> None:
    if type(value) in (float, int) and -_LARGEST <= value <= _LARGEST:
        return
    if not (infinite and isinstance(value, numbers.Real) and value in (math.inf, -math.inf)):
        number(name, value)


def _shape_check(shape: tuple[int | None, ...], infinite: bool) -> tuple[Check, str]:
    words = "numbers" if shape == (None,) else f"numbers of shape {shape}"
    return functools.partial(_array_check, infinite=infinite, shape=shape), words


def _protocol_check(protocol: type) -> tuple[Check, str]:
    """Return a check that an object has the public attributes and methods of a protocol."""
    bases = [base for base in protocol.__mro__ if getattr(base, "_is_protocol", False)]
    members = sorted({name for base in bases for name in (*vars(base), *base.__annotations__) if name[0] != "_"})
    name = _public_name(protocol)
    listed = (f"{member}(...)" if callable(getattr(protocol, member, None)) else member for member in members)
    words = f"an object with {', '.join(listed)}" if name.startswith(protocol.__module__) else f"a {name}"

    def check(name: str, value: Any) -> None:
        if isinstance(value, type):
            instance(name, value, (), words)
        missing = [member for member in members if not hasattr(value, member)]
        if missing:
            raise ArgumentError(f"{name} must be {words}, got {shown(value)}, which has no {missing[0]!r}")

    return check, words


def _callable_check(parameters: Any) -> tuple[Check, str]:
    """Return the check of an argument annotated as a callable, with the types of its parameters or Ellipsis."""
    count = len(parameters) if isinstance(parameters, list) else None
    words = "a function" if count is None else f"a function of {count} argument{'s' * (count != 1)}"

    def check(name: str, value: Any) -> None:
        if not callable(value) or (count is not None and not _accepts(value, count)):
            raise ArgumentError(f"{name} must be {words}, got {shown(value)}")

    return check, words


def _accepts(function: Callable[..., Any], count: int) -> bool:
    """Return whether a function can be called with a number of positional arguments."""
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # a built-in function or class whose signature is not known
        return not isinstance(function, type)
    return True


def _one_of_check(options: tuple[Any, ...]) -> tuple[Check, str]:
    words = "one of " + ", ".join(map(repr, options))

    def check(name: str, value: Any) -> None:
        if not isinstance(value, str) or value not in options:
            raise ArgumentError(f"{name} must be {words}, got {shown(value)}")

    return check, words


def _sequence_check(container: type, entry: tuple[Check, str] | None) -> tuple[Check, str]:
    """Return the check of an argument annotated as a sequence or an iterable; arrays are sequences of numbers only."""
    kinds = Iterable if container is collections.abc.Iterable else (Sequence, np.ndarray)
    if entry is not None and "number" not in entry[1] and kinds is not Iterable:
        kinds = Sequence
    words = f"a sequence, each entry {entry[1]}" if entry else "a sequence"

    def check(name: str, value: Any) -> None:
        if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, kinds):
            raise ArgumentError(f"{name} must be {words}, got {shown(value)}")
        if entry is not None and isinstance(value, Collection):
            for i, x in enumerate(value):
                entry[0](f"entry {i} of {name}", x)

    return check, words


def _tuple_check(entries: list[tuple[Check, str] | None]) -> tuple[Check, str]:
    words = f"({', '.join(entry[1] if entry else 'a value' for entry in entries)})"

    def check(name: str, value: Any) -> None:
        if isinstance(value, (str, bytes)) or not isinstance(value, Sequence) or len(value) != len(entries):
            raise ArgumentError(f"{name} must be {words}, got {shown(value)}")
        for i, (entry, x) in enumerate(zip(entries, value, strict=True)):
            if entry is not None:
                entry[0](f"entry {i} of {name}", x)

    return check, words


def _mapping_check(entry: tuple[Check, str] | None) -> tuple[Check, str]:
    words = f"a mapping, each value {entry[1]}" if entry else "a mapping"

    def check(name: str, value: Any) -> None:
        if not isinstance(value, Mapping):
            raise ArgumentError(f"{name} must be {words}, got {shown(value)}")
        if entry is not None:
            for key, x in value.items():
                entry[0](f"{name}[{shown(key)}]", x)

    return check, words


def _union_check(members: list[tuple[Check, str] | None]) -> tuple[Check, str] | None:
    """Return a check that passes if one of several checks passes; None if one of them cannot be checked."""
    known = [member for member in members if member is not None]
    if len(known) < len(members):
        return None
    *first, last = dict.fromkeys(member[1] for member in known)
    words = f"{', '.join(first)} or {last}" if first else last
    plain = [x for x, _ in known if isinstance(x, functools.partial) and x.func is _instance_check]
    kinds = tuple(member.args[0] for member in plain)
    others = [member for member, _ in known if member not in plain]
    arrays_first = sorted(others, key=lambda x: not (isinstance(x, functools.partial) and x.func is _array_check))

    def check(name: str, value: Any) -> None:
        if isinstance(value, kinds):
            return
        errors = []
        for member in arrays_first if isinstance(value, np.ndarray) else others:  # formatting errors takes long
            try:
                member(name, value)
            except (ArgumentError, ShapeError, NotFiniteError) as error:
                errors.append(error)
            else:
                return
        for error in errors:
            if isinstance(error, (NotFiniteError, ShapeError)):
                raise error
        lacks = next((tail for _, mark, tail in (str(e).partition(", which has no ") for e in errors) if mark), "")
        raise ArgumentError(f"{name} must be {words}, got {shown(value)}{lacks and f', which has no {lacks}'}")

    return check, words


def _is_infinite(default: Any) -> bool:
    """Return whether a default value is or has an infinite number, so that arguments may be infinite, too."""
    try:
        return bool(np.isinf(np.asarray(default, float)).any())
    except (TypeError, ValueError):
        return False
