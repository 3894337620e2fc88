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
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from legged.arguments import array, array_of_numbers, instance, number, shown, text, whole
from legged.errors import ArgumentError, LeggedError, NotFiniteError, ShapeError

T = TypeVar("T")
_LARGEST = sys.float_info.max
PER_STEP = frozenset({"torque", "rate", "update", "force", "step", "observe"})
"""Methods that are called in each time step and are not checked: those of control and contact laws receive values of a
simulation, which detects numbers that are not finite, and those of a `Simulation` read their arguments themselves."""


def checked(target: T) -> T:
    """Return a function that checks its arguments by their annotations before it runs, or a class that does so.

    Of a class, `__init__` and the public methods defined in it are checked, except for those named in `PER_STEP`.

    An argument annotated with a class must be an instance of it, one annotated with `Array` an array of numbers, with
    `float`, `int`, `bool` or `str` such a value, with a protocol an object with its attributes; unions, optional
    arguments, sequences, mappings, tuples and callables are checked likewise. `Annotated[..., kind]` is checked as
    `kind`, an annotation or the shape of an array. NaN is refused everywhere, infinity where no default is infinite.
    Arguments annotated with `Any`, type variables or a union of several containers are not checked. Values are passed
    on as they are. A function's floating-point answer that holds NaN or infinity raises NotFiniteError, which gives the
    largest number among the arguments.

    Raises:
        ArgumentError, ShapeError, NotFiniteError: from the decorated function or class, at each call.
    """
    if isinstance(target, type):
        if inspect.isfunction(target.__init__):
            target.__init__ = _checked(target.__init__, target.__name__, target, of_class=True)  # type: ignore[misc]
        for name, method in list(vars(target).items()):
            kind = type(method) if isinstance(method, classmethod | staticmethod) else None
            function = method.__func__ if kind else method
            if name.startswith("_") or name in PER_STEP or not inspect.isfunction(function) or function in _ORIGINALS:
                continue
            if len(inspect.signature(function).parameters) > (kind is not staticmethod):
                found = _checked(function, f"{target.__name__}.{name}", of_class=True)
                setattr(target, name, kind(found) if kind else found)
        return target  # type: ignore[return-value]
    return _checked(target, target.__name__)  # type: ignore


def checked_arguments(target: T) -> T:
    """Return a function whose arguments are checked as by `checked`, and whose answer may hold NaN or infinity.

    Raises:
        ArgumentError, ShapeError, NotFiniteError: from the decorated function, at each call.
    """
    return _checked(target, target.__name__, finite=False)  # type: ignore


def reads_arguments(method: T) -> T:
    """Return a method as it is, which `checked` of its class leaves so: it reads its arguments itself, in less time."""
    _ORIGINALS[method] = method
    return method


def _checked(function: Any, label: str, owner: type | None = None, finite: bool = True, of_class: bool = False) -> Any:
    """Return the function with its arguments checked at each call.

    Args:
        function: The function.
        label: Its name in messages.
        owner: The class of which the function is the initializer.
        finite: Whether an answer that is not finite is an error.
        of_class: Whether it is a method or initializer; an error of the toolkit that it raises itself for the arguments
            takes precedence over those of the checks, since it names the object.
    """
    signature = inspect.signature(function)

    @functools.cache
    def checks() -> dict[str, _Check]:
        return _checks(annotations_of(function, owner), signature)

    parameters = signature.parameters.values()
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    named = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    required = {p.name for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}

    def bound(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        given = dict(zip(positional, args, strict=False)) | kwargs
        if len(given) == len(args) + len(kwargs) and required <= given.keys() and kwargs.keys() <= named:
            return given
        try:
            return signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise ArgumentError(f"{label}: {error}") from None

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        given = bound(args, kwargs)
        try:
            for name, check in checks().items():
                if name in given:
                    check(name, given[name])
        except LeggedError as error:
            if of_class:
                _prefer_own_error(function, args, kwargs)
            raise error from None
        if not finite:
            return function(*args, **kwargs)
        try:
            with np.errstate(all="ignore"):  # an answer that is not finite is an error below
                answer = function(*args, **kwargs)
        except (OverflowError, ZeroDivisionError) as error:
            if not _is_raised_here(error):
                raise
            answer = math.nan
        if not _is_finite(answer):
            raise NotFiniteError(
                f"{label} has no finite answer: an intermediate result is too large or undefined; the "
                f"largest number among the arguments is {_largest(given.values()):.3g}"
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
    parameters = types.SimpleNamespace(
        __annotations__={k: x for k, x in function.__annotations__.items() if k != "return"}
    )
    return typing.get_type_hints(parameters, {**names, **function.__globals__}, include_extras=True)


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
    if origin is typing.Annotated:
        kind = hint.__metadata__[0]
        return _shape_check(kind, infinite) if isinstance(kind, tuple) else _hint_check(kind, infinite)
    if hint is Any or isinstance(hint, TypeVar) or hint is object or hint is inspect.Parameter.empty:
        return None
    if hint is None or hint is type(None):
        return _kind_check(type(None), "None")
    if origin in (typing.Union, types.UnionType):
        if sum(_is_container(part) for part in parts) > 1:
            return None  # the function tells them apart
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


def _kind_check(kind: Any, words: str) -> tuple[_Check, str]:
    return functools.partial(_instance_check, kind, words), words


def _instance_check(kind: Any, words: str, name: str, value: Any) -> None:
    instance(name, value, kind, words)


def _array_check(name: str, value: Any, infinite: bool, shape: tuple[int | None, ...] | None = None) -> None:
    if shape is None and type(value) in (float, int) and -_LARGEST <= value <= _LARGEST:
        return
    if isinstance(value, np.ndarray) and shape is None:
        if value.dtype == float and (np.isfinite(value).all() or (infinite and not np.isnan(value).any())):
            return
        if type(value) is not np.ndarray and value.dtype == object:
            return  # an array of traced scalars
    if infinite:
        value = np.where(np.isinf(np.asarray(array_of_numbers(name, value))), 0.0, value)
    array(name, value, shape)


def _number_check(name: str, value: Any, infinite: bool) -> None:
    if type(value) in (float, int) and -_LARGEST <= value <= _LARGEST:
        return
    if not (infinite and isinstance(value, numbers.Real) and value in (math.inf, -math.inf)):
        number(name, value)


def _shape_check(shape: tuple[int | None, ...], infinite: bool) -> tuple[_Check, str]:
    words = "numbers" if shape == (None,) else f"numbers of shape {shape}"
    return functools.partial(_array_check, infinite=infinite, shape=shape), words


def _protocol_check(protocol: type) -> tuple[_Check, str]:
    """Return a check that an object has the public attributes and methods of a protocol."""
    bases = [base for base in protocol.__mro__ if getattr(base, "_is_protocol", False)]
    members = sorted({name for base in bases for name in (*vars(base), *base.__annotations__) if name[0] != "_"})
    name = _public_name(protocol)
    words = f"an object with {', '.join(members)}" if name.startswith(protocol.__module__) else f"a {name}"

    def check(name: str, value: Any) -> None:
        if isinstance(value, type):
            instance(name, value, (), words)
        missing = [member for member in members if not hasattr(value, member)]
        if missing:
            raise ArgumentError(f"{name} must be {words}, got {shown(value)}, which has no {missing[0]!r}")

    return check, words


def _callable_check(parameters: Any) -> tuple[_Check, str]:
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


def _one_of_check(options: tuple[Any, ...]) -> tuple[_Check, str]:
    words = "one of " + ", ".join(map(repr, options))

    def check(name: str, value: Any) -> None:
        if not isinstance(value, str) or value not in options:
            raise ArgumentError(f"{name} must be {words}, got {shown(value)}")

    return check, words


def _sequence_check(container: type, entry: tuple[_Check, str] | None) -> tuple[_Check, str]:
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
    plain = [x for x, _ in known if isinstance(x, functools.partial) and x.func is _instance_check]
    kinds = tuple(member.args[0] for member in plain)
    others = [member for member, _ in known if member not in plain]

    def check(name: str, value: Any) -> None:
        if isinstance(value, kinds):
            return
        errors = []
        for member in others:
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


def _is_raised_here(error: BaseException) -> bool:
    """Return whether an error was raised in a line of the toolkit, and not in a function of the caller."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    module = trace.tb_frame.f_globals.get("__name__", "") if trace else ""
    return module.partition(".")[0] in ("legged", "controllers", "robots")


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
        except (TypeError, ValueError, OverflowError):
            continue
        sizes.append(float(np.abs(found).max(initial=0.0)))
    return max(sizes)
