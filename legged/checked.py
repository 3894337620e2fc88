"""`checked`: a decorator that checks the arguments of a public function or dataclass by their annotations."""

from __future__ import annotations

import collections.abc
import functools
import inspect
import math
import numbers
import os
import sys
import types
import typing
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from legged.arguments import array, array_of_numbers, instance, number, shown, text, whole
from legged.errors import ArgumentError, LeggedError, NotFiniteError, ShapeError

T = TypeVar("T")


def checked(target: T) -> T:
    """Return a function, or a class whose `__init__` checks its arguments by their annotations before it runs.

    An argument annotated with a class must be an instance of it, one annotated with `Array` an array of numbers, with
    `float`, `int`, `bool` or `str` such a value; unions, optional arguments, sequences, mappings, tuples and callables
    are checked likewise. NaN is refused everywhere, infinity where no default is infinite. Arguments annotated with
    `Any`, type variables, protocols or a union of several containers are not checked. Values are passed on as they
    are. A function's floating-point answer that holds NaN or infinity raises NotFiniteError, which gives the largest
    number among the arguments.

    Raises:
        ArgumentError, ShapeError, NotFiniteError: from the decorated function or class, at each call.
    """
    if isinstance(target, type):
        target.__init__ = _checked(target.__init__, target.__name__, target)  # type: ignore[misc]
        return target  # type: ignore[return-value]
    return _checked(target, target.__name__)  # type: ignore


def checked_arguments(target: T) -> T:
    """Return a function whose arguments are checked as by `checked`, and whose answer may hold NaN or infinity.

    Raises:
        ArgumentError, ShapeError, NotFiniteError: from the decorated function, at each call.
    """
    return _checked(target, target.__name__, finite=False)  # type: ignore


def _checked(function: Any, label: str, owner: type | None = None, finite: bool = True) -> Any:
    """Return the function with its arguments checked at each call.

    Args:
        function: The function.
        label: Its name in messages.
        owner: The class of which the function is the initializer; an error of the toolkit that the initializer itself
            raises for the arguments takes precedence over those of the checks.
        finite: Whether an answer that is not finite is an error.
    """
    signature = inspect.signature(function)

    @functools.cache
    def checks() -> dict[str, _Check]:
        return _checks(annotations_of(function, owner), signature)

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentError(f"{label}: {error}") from None
        try:
            for name, check in checks().items():
                if name in bound.arguments:
                    check(name, bound.arguments[name])
        except LeggedError as error:
            if owner is not None:
                _prefer_own_error(function, args, kwargs)
            raise error from None
        if not finite:
            return function(*args, **kwargs)
        with np.errstate(all="ignore"):  # an answer that is not finite is an error below
            answer = function(*args, **kwargs)
        if not _is_finite(answer):
            raise NotFiniteError(
                f"{label} has no finite answer: an intermediate result is too large or undefined; the "
                f"largest number among the arguments is {_largest(bound.arguments.values()):.3g}"
            )
        return answer

    _ORIGINALS[wrapper] = function
    return wrapper


def _prefer_own_error(function: Any, args: Any, kwargs: Any) -> None:
    """Call a function with arguments that failed their check, and let the toolkit's errors through."""
    try:
        function(*args, **kwargs)
    except LeggedError:
        raise
    except Exception:
        return


_ORIGINALS: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


def undecorated(function: Any) -> Any:
    """Return the function that `checked` decorated, or the function itself if it is not decorated."""
    return _ORIGINALS.get(function, function)


_Check = Callable[[str, Any], object]


def annotations_of(function: Any, owner: type | None = None) -> dict[str, Any]:
    """Return the annotations of a function's parameters as objects, {name: annotation}.

    Names that a module imports for type checkers only are looked up among the public names of the toolkit; the
    initializer of a dataclass has annotations from the modules of the classes that it extends.

    Args:
        function: The function, not decorated.
        owner: The class of which it is the initializer.
    """
    names = dict(vars(sys.modules["legged"]))
    for kind in reversed(owner.__mro__) if owner else ():
        names.update(vars(sys.modules[kind.__module__]))
    return typing.get_type_hints(function, {**names, **function.__globals__})


def _checks(hints: dict[str, Any], signature: inspect.Signature) -> dict[str, _Check]:
    """Return the check of each parameter whose annotation can be checked."""
    found = {}
    for name, parameter in signature.parameters.items():
        if name not in hints or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        default = parameter.default
        hint = _hint_check(hints[name], infinite=_is_infinite(default))
        if hint is not None:
            found[name] = _or_default(hint[0], default)
    return found


def _or_default(check: _Check, default: Any) -> _Check:
    """Return a check that also accepts the default value, of any type."""

    def allowed(name: str, value: Any) -> None:
        if value is not default:
            check(name, value)

    return allowed if default is not inspect.Parameter.empty else check


def _hint_check(hint: Any, infinite: bool) -> tuple[_Check, str] | None:
    """Return the check of an annotation and its meaning in words, None if there is nothing to check."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any or isinstance(hint, TypeVar) or hint is object or hint is inspect.Parameter.empty:
        return None
    if hint is None or hint is type(None):
        return _kind_check(type(None), "None")
    if origin in (typing.Union, types.UnionType):
        if sum(_is_container(part) for part in parts) > 1:
            return None
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
        return _callable_check, "a function"
    if origin in (tuple,) and parts and all(part in (float, int) for part in parts if part is not Ellipsis):
        return functools.partial(_array_check, infinite=infinite), "numbers"
    container = origin or hint
    if container is tuple and parts and Ellipsis not in parts:
        return _tuple_check([_hint_check(part, infinite) for part in parts])
    if container in (collections.abc.Sequence, collections.abc.Iterable, list, tuple) and parts[:1] == (float,):
        return functools.partial(_array_check, infinite=infinite), "numbers"
    if not isinstance(container, type) or getattr(container, "_is_protocol", False):
        return None
    if container in (collections.abc.Sequence, collections.abc.Iterable, list, tuple):
        return _sequence_check(_hint_check(parts[0], infinite) if parts else None)
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
    origin = typing.get_origin(hint)
    return isinstance(origin, type) and issubclass(origin, Iterable) and origin is not np.ndarray


def _kind_check(kind: Any, words: str) -> tuple[_Check, str]:
    return lambda name, value: instance(name, value, kind, words), words


def _array_check(name: str, value: Any, infinite: bool) -> None:
    if isinstance(value, np.ndarray) and value.dtype == float:
        if np.isfinite(value).all() or (infinite and not np.isnan(value).any()):
            return
    elif type(value) is not np.ndarray and isinstance(value, np.ndarray) and value.dtype == object:
        return  # an array of traced scalars
    if infinite:
        value = np.where(np.isinf(np.asarray(array_of_numbers(name, value))), 0.0, value)
    array(name, value)


def _number_check(name: str, value: Any, infinite: bool) -> None:
    if not (infinite and isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isinf(value)):
        number(name, value)


def _callable_check(name: str, value: Any) -> None:
    if not callable(value):
        raise ArgumentError(f"{name} must be a function, got {shown(value)}")


def _one_of_check(options: tuple[Any, ...]) -> tuple[_Check, str]:
    words = "one of " + ", ".join(map(repr, options))

    def check(name: str, value: Any) -> None:
        if not isinstance(value, str) or value not in options:
            raise ArgumentError(f"{name} must be {words}, got {shown(value)}")

    return check, words


def _sequence_check(entry: tuple[_Check, str] | None) -> tuple[_Check, str]:
    words = f"a sequence, each entry {entry[1]}" if entry else "a sequence"

    def check(name: str, value: Any) -> None:
        if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
            raise ArgumentError(f"{name} must be {words}, got {shown(value)}")
        if entry is not None and isinstance(value, Sequence):
            for i, x in enumerate(value):
                entry[0](f"entry {i} of {name}", x)

    return check, words


def _tuple_check(entries: list[tuple[_Check, str] | None]) -> tuple[_Check, str]:
    words = f"({', '.join(entry[1] if entry else 'a value' for entry in entries)})"

    def check(name: str, value: Any) -> None:
        if isinstance(value, (str, bytes)) or not isinstance(value, Sequence) or len(value) != len(entries):
            raise ArgumentError(f"{name} must be {words}, got {shown(value)}")
        for i, (entry, x) in enumerate(zip(entries, value, strict=True)):
            if entry is not None:
                entry[0](f"entry {i} of {name}", x)

    return check, words


def _mapping_check(entry: tuple[_Check, str] | None) -> tuple[_Check, str]:
    words = f"a mapping, each value {entry[1]}" if entry else "a mapping"

    def check(name: str, value: Any) -> None:
        if not isinstance(value, Mapping):
            raise ArgumentError(f"{name} must be {words}, got {shown(value)}")
        if entry is not None:
            for key, x in value.items():
                entry[0](f"{name}[{shown(key)}]", x)

    return check, words


def _union_check(members: list[tuple[_Check, str] | None]) -> tuple[_Check, str] | None:
    """Return a check that passes if one of several checks passes; None if one of them cannot be checked."""
    known = [member for member in members if member is not None]
    if len(known) < len(members):
        return None
    words = " or ".join(dict.fromkeys(member[1] for member in known))

    def check(name: str, value: Any) -> None:
        errors = []
        for member, _ in known:
            try:
                member(name, value)
            except (ArgumentError, ShapeError, NotFiniteError) as error:
                errors.append(error)
            else:
                return
        for error in errors:
            if isinstance(error, (NotFiniteError, ShapeError)):
                raise error
        raise ArgumentError(f"{name} must be {words}, got {shown(value)}")

    return check, words


def _is_infinite(default: Any) -> bool:
    try:
        return bool(np.isinf(np.asarray(default, float)).any())
    except (TypeError, ValueError):
        return False


def _is_finite(answer: Any) -> bool:
    """Return whether the numbers of a result are finite: a float, an array of floats, or a tuple of these."""
    if isinstance(answer, float):
        return math.isfinite(answer)
    if isinstance(answer, np.ndarray):
        return answer.dtype != float or bool(np.isfinite(answer).all())
    return not isinstance(answer, tuple) or all(_is_finite(x) for x in answer)


def _largest(values: Iterable[Any]) -> float:
    """Return the largest size of a number among some values."""
    sizes = [0.0]
    for value in values:
        try:
            found = np.asarray(value, float)
        except (TypeError, ValueError):
            continue
        sizes.append(float(np.abs(found).max(initial=0.0)))
    return max(sizes)
