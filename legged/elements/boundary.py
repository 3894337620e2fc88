"""Numbers of other types as elements in the arguments of a function, and as plain numbers in its result."""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import numbers
import threading
import weakref
from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np

from legged.elements.element import Element, floats_only
from legged.elements.fields import Field, field_of, is_foreign
from legged.errors import ArgumentError, LeggedError, NotFiniteError

T = TypeVar("T")


def lift(value: Any, field: Field | None = None) -> Any:
    """Return an argument with the numbers of other types than float64 in it as elements, in arrays, lists and mappings.

    An array that holds such numbers becomes an array of elements. Other values are returned as they are.

    Args:
        value: A number, an array, or a list, tuple or mapping of these.
        field: Robots and other objects with a method `__lift__(field)` are replaced by its result; None leaves them.
    """
    kind = type(value)
    if kind is np.ndarray:
        char = value.dtype.char
        if char not in "gO" or not value.size:
            return value
        entries = value.ravel().tolist() if char == "O" else list(value.ravel())
        if not any(map(is_foreign, entries)):
            return value
        return _lifted_array(entries, value.shape)
    if kind is list or kind is tuple or isinstance(value, tuple):
        items = [lift(item, field) for item in value]
        if all(a is b for a, b in zip(items, value, strict=True)):
            return value
        return kind(*items) if hasattr(kind, "_fields") else kind(items)
    if kind is dict:
        return {key: lift(item, field) for key, item in value.items()}
    if field is not None and hasattr(kind, "__lift__"):
        return value.__lift__(field)
    return Element(value, field_of(value)) if is_foreign(value) else value


def lift_with(x: np.ndarray, value: Any) -> Any:
    """Return a robot, or another object with a method `__lift__`, for computations with the entries of an array.

    Args:
        x: An array, (n,), [any unit]. value: The object, which is returned as it is unless x holds elements.
    """
    field = _first_field(x)
    return value if field is None else value.__lift__(field)


def _lifted_array(entries: list[Any], shape: tuple[int, ...]) -> np.ndarray:
    field = field_of(next(filter(is_foreign, entries)))
    out = np.empty(len(entries), dtype=object)
    for i, entry in enumerate(entries):
        value = field.lift(entry)
        out[i] = entry if value is NotImplemented else Element(value, field)
    return out.reshape(shape)


def drop(value: Any, dtype: Any = object, field: Field | None = None) -> Any:
    """Return a result with plain numbers in place of elements; floats in the same arrays become numbers of that type.

    Args:
        value: A number, an array, or a tuple, list, mapping or record of these.
        dtype: The type of arrays of long doubles: np.longdouble or object.
        field: The type of numbers for results without elements; None leaves these as they are.
    """
    if isinstance(value, Element):
        return _finite(value.value, value.field)
    if isinstance(value, np.ndarray):
        return _dropped_array(value, dtype, field)
    if isinstance(value, (float, np.floating)):
        return value if field is None else field.lift(value)
    if isinstance(value, (list, tuple)):
        items = [drop(item, dtype, field) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if type(value) is dict:
        return {key: drop(item, dtype, field) for key, item in value.items()}
    if dataclasses.is_dataclass(value) and _is_record(value):
        record = copy.copy(value)
        for part in dataclasses.fields(value):
            object.__setattr__(record, part.name, drop(getattr(value, part.name), dtype, field))
        return record
    return value


def _is_record(value: Any) -> bool:
    """Return whether a dataclass holds numbers and arrays alone, so that no function of it needs elements."""
    kinds = (np.ndarray, Element, float, int, str, bool, tuple, type(None))
    return all(isinstance(getattr(value, part.name), kinds) for part in dataclasses.fields(value))


def _dropped_array(value: np.ndarray, dtype: Any, field: Field | None) -> np.ndarray:
    if value.dtype.kind == "f" and field is not None:
        entries = list(value.ravel())
    elif value.dtype == object and type(value) is np.ndarray:
        entries = value.ravel().tolist()
        field = next((x.field for x in entries if type(x) is Element), field)
    else:
        return value
    if field is None:
        return value
    out = np.empty(len(entries), dtype=dtype if field.kind is np.longdouble else object)
    for i, x in enumerate(entries):
        number = x.value if type(x) is Element else field.lift(x) if isinstance(x, (numbers.Real, np.bool_)) else x
        out[i] = _finite(number, field)
    return out.reshape(value.shape)


def _finite(value: Any, field: Field) -> Any:
    if isinstance(value, field.kind) and not field.is_finite(value):
        raise NotFiniteError(
            "the answer is not finite: a divisor is zero, or an interval that contains zero; use another "
            "configuration, narrower intervals or more digits"
        )
    return value


class _Calls(threading.local):
    depth = 0


_calls = _Calls()


def any_element(function: T) -> T:
    """Return a function that accepts and returns numbers of any type, see the module; or a class whose methods do so.

    The arguments become elements, and the outermost of several such calls returns plain numbers of their type. If an
    argument holds elements already, so does the result. So do the methods and properties of a class.
    """
    if isinstance(function, type):
        return _class_of_elements(function)
    return _boundary(function)


def _boundary(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        for x in args:
            if not (type(x) is np.ndarray and x.dtype.char == "d") and type(x) not in _SIMPLE:
                break
        else:
            if not kwargs:  # no argument can hold elements
                return function(*args)
        calls = _calls
        if calls.depth:
            return function(*args, **kwargs)
        field, dtype = None, object  # of the numbers in the arguments, and of arrays in the result
        keeps = False  # whether arguments hold elements already, and so does the result
        for x in (*args, *kwargs.values()) if kwargs else args:
            kind = type(x)
            if kind is np.ndarray and x.dtype.char == "d":
                continue
            if kind in _SIMPLE or (kind not in _NESTED and not is_foreign(x)):
                keeps = keeps or kind is Element
                continue
            lifted = lift(x)
            if lifted is not x:
                field, char = field or _first_field(lifted), getattr(x, "dtype", np.dtype(object)).char
                dtype = np.longdouble if char == "g" or type(x) is np.longdouble else dtype
            elif kind is np.ndarray:
                keeps = keeps or any(type(entry) is Element for entry in x.ravel().tolist())
        if field is not None:
            args = tuple([lift(x, field) for x in args])
            kwargs = {key: lift(x, field) for key, x in kwargs.items()}
        calls.depth = 1
        try:
            result = function(*args, **kwargs)
        except TypeError as error:
            if field is None or "dtype('O')" not in str(error) or isinstance(error, LeggedError):
                raise
            raise ArgumentError(floats_only(field)) from error
        finally:
            calls.depth = 0
        if field is None and (keeps or type(result) in _SIMPLE or _first_field(result) is None):
            return result
        return drop(result, dtype, field)

    _ORIGINALS[wrapper] = function
    return wrapper


_ORIGINALS: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


def accepts_any_element(function: Any) -> bool:
    """Return whether `any_element` has decorated a function."""
    return function in _ORIGINALS


_SIMPLE = frozenset((float, int, str, bool, type(None), np.float64))
_NESTED = frozenset((np.ndarray, list, tuple, dict))


def _first_field(value: Any) -> Field | None:
    """Return the field of some element in an argument or a result, None if it holds none."""
    kind = type(value)
    if kind is np.ndarray:
        if value.dtype.char != "O":
            return None
        return next((x.field for x in value.ravel().tolist() if type(x) is Element), None)
    if kind is Element:
        return value.field
    if isinstance(value, (list, tuple)):
        parts: Iterable[Any] = value
    elif kind is dict:
        parts = value.values()
    elif dataclasses.is_dataclass(value) and _is_record(value):
        parts = vars(value).values()
    else:
        return None
    return next((field for x in parts if (field := _first_field(x)) is not None), None)


def _class_of_elements(kind: Any) -> Any:
    """Apply `any_element` to the public methods, properties and operators of a class."""
    for name, member in list(vars(kind).items()):
        if name.startswith("_") and name not in ("__matmul__", "__rmatmul__"):
            continue
        if isinstance(member, functools.cached_property):
            hidden, private = functools.cached_property(member.func), f"_cached_{name}"
            hidden.__set_name__(kind, private)
            setattr(kind, private, hidden)
            setattr(kind, name, property(_boundary(_getter(private, member.func)), doc=member.__doc__))
        elif isinstance(member, property):
            setattr(kind, name, property(_boundary(member.fget), doc=member.__doc__))
        elif inspect.isfunction(member):
            setattr(kind, name, _boundary(member))
    return kind


def _getter(name: str, function: Any) -> Any:
    @functools.wraps(function)
    def read(self: Any) -> Any:
        return getattr(self, name)

    return read
