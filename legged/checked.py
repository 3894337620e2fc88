"""`checked`: a decorator that checks the arguments of a public function or dataclass by their annotations."""

from __future__ import annotations

import array
import functools
import inspect
import math
import weakref
from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np

from legged.argument_checks import Check, annotations_of, array_parameters, parameter_checks
from legged.arguments import as_array
from legged.elements import Element, any_element, is_foreign
from legged.errors import ArgumentError, LeggedError, NotFiniteError, ShapeError

T = TypeVar("T")
PER_STEP = frozenset({"torque", "rate", "update", "force", "step", "observe"})
"""Methods that are called in each time step and are not checked: those of control and contact laws receive values of a
simulation, which detects numbers that are not finite, and those of a `Simulation` read their arguments themselves."""


def checked(target: T) -> T:
    """Return a function that checks its arguments by their annotations before it runs, or a class that does so.

    Of a class, `__init__` and the public methods defined in it are checked, except for those named in `PER_STEP`.

    The annotation of an argument determines its check:

    - A class: the argument is an instance of it. `float`, `int`, `bool` or `str`: it is such a value.
    - `Array`: it is an array of real numbers or traced scalars.
    - A protocol: it has the public attributes and methods of the protocol.
    - Unions, optional arguments, sequences, mappings, tuples and callables are checked likewise.
    - `Annotated[..., kind]` is checked as `kind`, which is an annotation or the shape of an array.
    - `Any`, a type variable or a union of several containers is not checked.

    NaN is rejected everywhere, and infinity unless the default value is infinite. The function receives the values
    unchanged, except that numbers of other types than float64 reach an algorithm, a function of a robot, as elements:
    see `legged.elements`. If a floating-point result holds NaN or infinity, the function raises NotFiniteError, whose
    message gives the largest number among the arguments.

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
                wrapped = _checked(function, f"{target.__name__}.{name}", of_class=True)
                setattr(target, name, kind(wrapped) if kind else wrapped)
        return target  # type: ignore[return-value]
    return _checked(target, target.__name__)  # type: ignore


def checked_arguments(target: T) -> T:
    """Return a function whose arguments are checked as by `checked`, and whose answer may hold NaN or infinity.

    Raises:
        ArgumentError, ShapeError, NotFiniteError: from the decorated function, at each call.
    """
    return _checked(target, target.__name__, finite=False)  # type: ignore


def reads_arguments(method: T) -> T:
    """Return the method, marked so that `checked` does not wrap it: it checks its arguments itself, which is faster."""
    _ORIGINALS[method] = method
    return method


def _checked(function: Any, label: str, owner: type | None = None, finite: bool = True, of_class: bool = False) -> Any:
    """Return the function with its arguments checked at each call.

    A refused call has no effect: arguments are checked before the function runs. Those of an initializer are checked
    after it, since its own checks name the object that is defined, and a new object that is refused is discarded.

    Args:
        function: The function.
        label: Its name in messages.
        owner: The class of which the function is the initializer.
        finite: Whether an answer that is not finite is an error.
        of_class: Whether it is a method or initializer.
    """
    call = _CheckedCall(function, label, owner, of_class)

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        given, args, kwargs = call.bound(args, kwargs)
        if owner is None:
            call.check(given)
        return call.answer(given, args, kwargs) if finite else function(*args, **kwargs)

    if not of_class and _ROBOTS & call.named:
        wrapper = any_element(wrapper)
        wrapper.__wrapped__ = function
    _ORIGINALS[wrapper] = function
    return wrapper


class _CheckedCall:
    """A function with checks of its arguments before the call, and of its result and errors after it.

    Args:
        function, label, owner, of_class: As in `_checked`.

    Attributes:
        named: Names of the parameters that may be given by keyword.
    """

    def __init__(self, function: Any, label: str, owner: type | None, of_class: bool):
        self._function, self._label, self._owner, self._of_class = function, label, owner, of_class
        self._signature = inspect.signature(function)
        parameters = self._signature.parameters.values()
        self._positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        self.named = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
        variable = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
        self._required = {p.name for p in parameters if p.default is p.empty and p.kind not in variable}

    @functools.cached_property
    def _hints(self) -> dict[str, Any]:
        return annotations_of(self._function, self._owner)

    @functools.cached_property
    def _checks(self) -> dict[str, Check]:
        return parameter_checks(self._hints, self._signature)

    @functools.cached_property
    def _arrays(self) -> dict[str, bool]:
        return array_parameters(self._hints)

    def bound(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[dict[str, Any], tuple[Any, ...], dict[str, Any]]:
        """Return the arguments by the names of their parameters, and as positional arguments and keywords.

        Arrays of other libraries and other kinds become arrays of NumPy.
        """
        given = dict(zip(self._positional, args, strict=False)) | kwargs
        if len(given) != len(args) + len(kwargs) or not (
            self._required <= given.keys() and kwargs.keys() <= self.named
        ):
            try:
                given = self._signature.bind(*args, **kwargs).arguments
            except TypeError as error:
                known = [name for name in self._signature.parameters if name != "self"]
                words = f"; its arguments are {', '.join(known)}" if kwargs.keys() - self.named else ""
                raise ArgumentError(f"{self._label}: {error}{words}") from None
        unusual = [name for name, value in given.items() if _is_unusual(value)]
        arrays = {
            name: as_array(name, given[name])
            for name in unusual
            if name in self._arrays and self._is_converted(given[name], self._arrays[name])
        }
        if not arrays:
            return given, args, kwargs
        args = (
            tuple(arrays.get(name, x) for name, x in zip(self._positional, args, strict=False))
            + args[len(self._positional) :]
        )
        return given | arrays, args, kwargs | {name: arrays[name] for name in arrays.keys() & kwargs.keys()}

    def _is_converted(self, value: Any, is_array: bool) -> bool:
        """Return whether an unusual value for an array becomes an array of NumPy.

        Lists and tuples do where the annotation is an array; other functions and initializers read them.
        """
        if isinstance(value, (list, tuple)):
            return is_array and self._owner is None
        if isinstance(value, np.ndarray):
            return type(value) in (np.ndarray, np.matrix) or isinstance(value, np.ma.MaskedArray)
        return not isinstance(value, np.generic) and (
            hasattr(value, "__array__") or isinstance(value, memoryview | array.array)
        )

    def check(self, given: dict[str, Any]) -> None:
        """Raise an error that names the first argument that its annotation refuses; in a class, with the call."""
        for name, check_of in self._checks.items():
            if name in given:
                try:
                    check_of(name, given[name])
                except (ArgumentError, ShapeError, NotFiniteError) as error:
                    words = f"{_call(self._label, name, given)}: {error}"
                    raise (type(error)(words) if self._of_class else error) from None

    def answer(self, given: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the answer of the function after a check that it is finite; check the arguments of an initializer."""
        try:
            with np.errstate(all="ignore"):  # an answer that is not finite is an error below
                answer = self._function(*args, **kwargs)
        except LeggedError:
            raise
        except Exception as error:
            if self._owner is not None:
                self.check(given)
            if not (isinstance(error, OverflowError | ZeroDivisionError) and _is_raised_here(error)):
                foreign = [name for name in self._arrays if _holds_foreign(given.get(name))]
                if foreign and isinstance(error, (TypeError, AttributeError)):
                    raise ArgumentError(
                        f"{self._label} computes with 64-bit floats and cannot use the numbers in {foreign[0]}; "
                        "convert them: array.astype(float)"
                    ) from None
                raise
            answer = math.nan
        if self._owner is not None:
            self.check(given)
        if not _is_finite(answer):
            raise NotFiniteError(
                f"{self._label} has no finite answer: an intermediate result is too large or undefined; the "
                f"largest number among the arguments is {_largest(given.values()):.3g}"
            )
        return answer


def _call(label: str, wrong: str, given: dict[str, Any]) -> str:
    """Return a call of a method in words: its label with the name of its first argument, such as `add('knee')`."""
    first = next((name for name in given if name not in ("self", "cls")), wrong)
    part = getattr(given[first], "name", given[first])
    return f"{label}({part!r})" if first != wrong and isinstance(part, str) else label


def _is_unusual(value: Any) -> bool:
    """Return whether a value is no number and no array of numbers of NumPy."""
    kind = type(value)
    return value.dtype.char == "O" if kind is np.ndarray else kind not in (float, int, bool, str, type(None))


def _holds_foreign(value: Any) -> bool:
    """Return whether an argument holds numbers that a float64 does not hold."""
    try:
        entries = np.asarray(value, object).ravel().tolist()
    except Exception:
        return False
    return any(isinstance(entry, Element) or is_foreign(entry) for entry in entries)


_ROBOTS = {"robot", "closed"}
"""Names of the parameters of algorithms that are robots."""


_ORIGINALS: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


def _is_raised_here(error: BaseException) -> bool:
    """Return whether an error was raised in a line of the toolkit, and not in a function of the caller."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    module = trace.tb_frame.f_globals.get("__name__", "") if trace else ""
    return module.partition(".")[0] in ("legged", "controllers", "robots")


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
            entries = np.asarray(value, float)
        except (TypeError, ValueError, OverflowError):
            continue
        sizes.append(float(np.abs(entries).max(initial=0.0)))
    return max(sizes)
