"""Read the arguments of public functions: numbers, arrays, names and objects, each checked with one message style.

Each function returns the value in the form that the toolkit computes with, or raises an error that names the argument,
says what is wrong with it and what is expected. `legged.checked` applies them to whole functions by their annotations.
Text, bytes, dates, truth values, complex numbers and ragged lists are rejected. Traced scalars
(`legged.compiler.Expression`) and other element types that define arithmetic, such as `legged.taylor.Taylor`, pass
where a number is expected; only their shape is checked. Real numbers that a float64 does not hold, such as long doubles
and fractions, become `legged.elements.Element`s in the arrays of algorithms, and are rounded to float64 elsewhere.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, TypeVar

import numpy as np

from legged.elements import Element, is_foreign, lift, to_float
from legged.errors import ArgumentError, NotFiniteError, ShapeError, UnknownNameError

T = TypeVar("T")
Number = Annotated[Any, float]
"""A real number or a traced scalar, for annotations that `legged.checked` reads."""
Numbers = Annotated[Any, np.ndarray]
"""Anything that NumPy turns into an array of real numbers or traced scalars: a number, a list, a tuple, an array."""
Vector3 = Annotated[Any, (3,)]
"""Real numbers or traced scalars of shape (3,)."""
_REAL = "fiu"  # NumPy's kinds of real numbers
MOST_LINKS = 10_000
"""Largest number of links that functions accept which generate robots."""
SQUARED_NORM_TOLERANCE = 2e-6
"""Largest deviation from 1 of the squared norm of a quaternion that counts as a unit quaternion; of its norm, 1e-6."""


def shown(value: Any, most: int = 60) -> str:
    """Return a short text of a value for an error message; objects whose `repr` fails are named by their type."""
    try:
        text = repr(value)
    except Exception:
        text = f"<{type(value).__name__}>"
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 3]}..."


def is_element(value: Any) -> bool:
    """Return whether a value can be an entry of an array that is computed with: a real number or a traced scalar."""
    if isinstance(value, (bool, np.bool_, str, bytes, np.datetime64, np.timedelta64)):
        return False
    if isinstance(value, numbers.Complex):
        return isinstance(value, numbers.Real)
    kind = type(value)
    if kind.__module__.startswith("pandas"):  # its NA has arithmetic
        return False
    return all(hasattr(kind, name) for name in ("__add__", "__mul__", "__neg__", "__truediv__")) and (
        getattr(value, "shape", ()) == ()
    )


def array(name: str, value: Any, shape: Sequence[int | None] | None = None, meaning: str = "") -> np.ndarray:
    """Return an array of real numbers or traced scalars for an algorithm.

    Args:
        name: The argument's name, for messages.
        value: Anything that NumPy turns into an array.
        shape: The expected shape; None for an axis of any length, None altogether for any shape.
        meaning: What the entries are, for messages: "one entry per degree of freedom".

    Returns:
        A new array of float64 of that shape, (...), or an array of objects if some entries are traced scalars or
        numbers that a float64 does not hold: the latter as elements, see `legged.elements`.

    Raises:
        ArgumentError: If the entries are no real numbers.
        ShapeError: If the shape differs, or the lists in it have different lengths.
        NotFiniteError: If an entry is NaN or infinite.
    """
    entries = as_array(name, value)
    if shape is not None and not _fits(entries.shape, shape):
        wanted = "(" + ", ".join("n" if n is None else str(n) for n in shape) + ("," if len(shape) == 1 else "") + ")"
        raise ShapeError(f"{name} must be {wanted}{meaning and ', '}{meaning}, got shape {entries.shape}")
    entries = lift(entries)
    if entries.dtype == object:
        finite = np.array([is_finite(x) for x in entries.ravel().tolist()], bool).reshape(entries.shape)
    else:
        entries = entries.astype(float)
        finite = np.isfinite(entries)
    if not finite.all():
        where = np.unravel_index(int(np.flatnonzero(~finite)[0]), entries.shape)
        place = f" at entry {', '.join(map(str, where))}" if where else ""
        raise NotFiniteError(f"{name} must be finite, got {entries[where]}{place}")
    return entries


def rounded_array(name: str, value: Any, shape: Sequence[int | None] | None = None, meaning: str = "") -> np.ndarray:
    """Return an array for the definition of a robot or a simulation, whose numbers are float64; see `array`.

    Args:
        name, value, shape, meaning: As in `array`; real numbers of any type are rounded to float64.

    Returns:
        A new array of float64 of that shape, (...), or an array of objects if some entries are traced scalars.

    Raises:
        As `array`.
    """
    entries = array(name, value, shape, meaning)
    if entries.dtype == object and all(isinstance(x, Element) for x in entries.ravel().tolist()):
        return np.array([to_float(x) for x in entries.ravel().tolist()]).reshape(entries.shape)
    return entries


def is_finite(x: Any) -> bool:
    """Return whether an entry of an array is finite; traced scalars stand for finite numbers."""
    if isinstance(x, Element):
        return x.field.is_finite(x.value)
    return not isinstance(x, numbers.Real) or math.isfinite(x)


def real_array(name: str, value: Any) -> np.ndarray:
    """Return an array (...) of real numbers, which may be infinite or NaN: the same array if the value is one already.

    Raises:
        ArgumentError: If the entries are no real numbers; traced scalars are none.
        ShapeError: If the lists in it have different lengths.
    """
    entries = as_array(name, value)
    if entries.dtype == object:
        if not all(isinstance(x, numbers.Real) or is_foreign(x) for x in entries.ravel().tolist()):
            raise ArgumentError(f"{name} must hold real numbers, got {shown(value)}")
        return np.array([to_float(x) for x in entries.ravel().tolist()], float).reshape(entries.shape)
    return entries


def as_array(name: str, value: Any) -> np.ndarray:
    """Return a value as an array (...) of real numbers of any type, or of objects if some entries are traced scalars.

    Arrays of other libraries, tables, memory views and objects with a method `__array__` become arrays of NumPy here.

    Args:
        name: The argument's name, for messages.
        value: Anything that NumPy turns into an array.

    Raises:
        ArgumentError: If the entries are no real numbers, or entries of a masked array are masked.
        ShapeError: If the lists in it have different lengths.
    """
    if any(isinstance(part, np.ma.MaskedArray) and np.ma.is_masked(part) for part in _parts(value)):
        raise ArgumentError(f"{name} has masked entries, which have no value; replace them: array.filled(value)")
    try:
        entries = np.asarray(value)
    except (ValueError, TypeError, OverflowError, RecursionError):
        raise ShapeError(
            f"{name} must be an array of numbers; its lists have different lengths: {shown(value)}"
        ) from None
    except Exception as error:
        raise ArgumentError(f"{name} must be an array of numbers, got {shown(value)} ({error})") from None
    if entries.dtype == object:
        entries = _objects(name, value, entries)
    elif entries.dtype.kind not in _REAL and entries.size:
        raise ArgumentError(f"{name} must hold real numbers, got {_entry_type(entries)}: {shown(value)}")
    return entries


def _parts(value: Any) -> Iterable[Any]:
    """Return a value, and the entries of a list or tuple of arrays."""
    return value if isinstance(value, (list, tuple)) else (value,)


def list_as_array(value: Any) -> Any:
    """Return a list or tuple of numbers as an array (n,), and any other value as it is."""
    return array("values", value) if isinstance(value, (list, tuple)) else value


def number(
    name: str,
    value: Any,
    unit: str = "",
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    below: float | None = None,
) -> Any:
    """Return one finite number as a float, or a traced scalar or an element as it is.

    Args:
        name: The argument's name, for messages.
        value: An int, float, NumPy scalar, array of no dimensions, or traced scalar.
        unit: Its unit, for messages: "m/s".
        least, most: Bounds that belong to the range.
        above, below: Bounds that do not belong to it.

    Raises:
        ArgumentError: If it is no number or outside the bounds.
        NotFiniteError: If it is NaN or infinite.
    """
    x = value
    if isinstance(value, np.ndarray) and value.shape == ():
        x = value[()]
    if not is_element(x):
        raise ArgumentError(f"{name} must be a number{_in(unit)}, got {shown(value)}")
    if isinstance(x, Element):
        finite = x.field.is_finite(x.value)
    elif isinstance(x, numbers.Real):
        x = to_float(x)
        finite = math.isfinite(x)
    else:
        return x
    if not finite:
        raise NotFiniteError(f"{name} must be finite, got {shown(value)}")
    unmet = [
        words
        for bound, holds, words in (
            (least, lambda b: x >= b, f"at least {least}"),
            (above, lambda b: x > b, "positive" if above == 0 else f"above {above}"),
            (most, lambda b: x <= b, f"at most {most}"),
            (below, lambda b: x < b, f"below {below}"),
        )
        if bound is not None and not holds(bound)
    ]
    if unmet:
        got = shown(x) if isinstance(x, Element) else f"{x:g}"
        raise ArgumentError(f"{name} must be {' and '.join(unmet)}{_in(unit)}, got {got}")
    return x


def whole(name: str, value: Any, least: int | None = None, most: int | None = None) -> int:
    """Return an integer; a float such as 3.0 is rejected.

    Raises:
        ArgumentError: If it is not an integer, outside of the inclusive bounds, or outside of 64 bits.
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Integral):
        raise ArgumentError(f"{name} must be a whole number, got {shown(value)}")
    value = int(value)
    if not -(2**63) <= value < 2**63:
        raise ArgumentError(f"{name} must be a whole number of 64 bits, got {shown(value)}")
    if (least is not None and value < least) or (most is not None and value > most):
        bounds = [f"at least {least}"] * (least is not None) + [f"at most {most}"] * (most is not None)
        raise ArgumentError(f"{name} must be {' and '.join(bounds)}, got {value}")
    return value


def unit_norm_error(name: str, quaternion: Sequence[float], place: str = "") -> ShapeError | None:
    """Return the error for a quaternion that does not have norm 1, or None if it has.

    Args:
        name: The quaternion, for the message: "q[0:4], the quaternion of the base".
        quaternion: Its four entries, w first.
        place: What to add to the message, for example the index of a state in a batch.
    """
    if abs(sum(x * x for x in quaternion) - 1.0) <= SQUARED_NORM_TOLERANCE:
        return None
    return ShapeError(
        f"{name}, must have norm 1 (w first), got {math.hypot(*quaternion):.9g}{place}; divide it by its norm"
    )


def text(name: str, value: Any) -> str:
    """Return a string.

    Raises:
        ArgumentError: If it is not a string.
    """
    if not isinstance(value, str):
        raise ArgumentError(f"{name} must be a text, got {shown(value)}")
    return value


def known_name(what: str, value: Any, known: Iterable[str]) -> str:
    """Return a name that is in a collection of known names.

    Raises:
        ArgumentError: If it is no text.
        UnknownNameError: If no `what` has this name; the message suggests a similar one.
    """
    if text(f"the name of a {what}", value) not in (known := tuple(known)):
        raise UnknownNameError(what, value, known)
    return value


def instance(name: str, value: Any, kind: type[T] | tuple[type, ...], expected: str = "") -> T:
    """Return an object of a class.

    Args:
        name: The argument's name, for messages.
        value: The object.
        kind: The class, or several.
        expected: What to write for the class in messages, for example "a legged.Robot".

    Raises:
        ArgumentError: If it is an object of another class; a class in place of its instance is named as such.
    """
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        wanted = expected or " or ".join(f"a {k.__name__}" for k in kinds)
        got = f"the class {value.__name__} itself" if isinstance(value, type) else shown(value)
        raise ArgumentError(f"{name} must be {wanted}, got {got}")
    return value  # type: ignore[return-value]


def _objects(name: str, value: Any, objects: np.ndarray) -> np.ndarray:
    """Return an array of objects if its entries are elements, as floats if a float64 holds each of them."""
    entries = objects.ravel().tolist() if objects.shape else [objects[()]]
    for entry in entries:
        if not is_element(entry):
            ragged = isinstance(entry, (list, tuple, np.ndarray))
            raise (ShapeError if ragged else ArgumentError)(
                f"{name} must be an array of numbers; its lists have different lengths: {shown(value)}"
                if ragged
                else f"{name} must hold real numbers, got {shown(entry)}"
            )
    if entries and all(isinstance(entry, numbers.Real) and not is_foreign(entry) for entry in entries):
        try:
            return objects.astype(float)
        except OverflowError:
            raise NotFiniteError(f"{name} must hold numbers below 1e308, got {shown(value)}") from None
    return objects


def _fits(shape: tuple[int, ...], wanted: Sequence[int | None]) -> bool:
    return len(shape) == len(wanted) and all(n is None or n == m for m, n in zip(shape, wanted, strict=True))


def _entry_type(entries: np.ndarray) -> str:
    """Return the type of the entries of an array in words, for messages."""
    names = {"b": "truth values", "c": "complex numbers", "M": "dates", "m": "time spans", "U": "text", "S": "bytes"}
    return names.get(entries.dtype.kind, f"entries of type {entries.dtype}")


def _in(unit: str) -> str:
    return f" in {unit}" if unit else ""
