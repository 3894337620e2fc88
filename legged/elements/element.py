"""`Element`, a number of another type than float64 in place of a float, and conditions on intervals."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from legged.elements.fields import Field, Undecided, field_of, is_foreign
from legged.errors import ArgumentError, SingularError

FUNCTIONS = ("sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2", "sinh", "cosh", "tanh", "exp", "log", "sqrt")
"""Elementary functions of elements, with NumPy's names."""


def floats_only(field: Field) -> str:
    """Return the message for a function that cannot use numbers of a type."""
    return (
        f"this function computes with 64-bit floats and cannot use numbers of type {field.kind.__name__}; convert "
        f"them: array.astype(float)"
    )


def to_float(x: Any) -> float:
    """Return an element or a real number of any type as the nearest float, infinite if it is too large."""
    if isinstance(x, Element):
        return x.field.to_float(x.value)
    if is_foreign(x):
        return field_of(x).to_float(x)
    try:
        return float(x)
    except OverflowError:  # an int
        return math.inf if x > 0 else -math.inf


def as_floats(x: np.ndarray) -> np.ndarray:
    """Return the nearest floats, (...), for tests that need no more digits, such as those of rank.

    Args:
        x: Numbers or elements, (...), [any unit].
    """
    return np.array([to_float(entry) for entry in x.ravel().tolist()], float).reshape(x.shape)


def has_elements(x: np.ndarray) -> bool:
    """Return whether an array holds elements.

    Args:
        x: Numbers or objects, (...), [any unit].
    """
    return x.dtype == object and any(type(entry) is Element for entry in x.ravel().tolist())


class Element:
    """A number of another type than float64 in place of a float, as entry of the arrays of an algorithm.

    Attributes:
        value: The number. field: Its type.
    """

    __slots__ = ("field", "value")
    __hash__ = None  # type: ignore[assignment]
    shape: tuple[int, ...] = ()
    ndim, size = 0, 1

    def __init__(self, value: Any, field: Field) -> None:
        self.value, self.field = value, field

    def __repr__(self) -> str:
        return f"<{self.value!r}>"

    def __float__(self) -> float:
        raise ArgumentError(floats_only(self.field))

    __int__ = __index__ = __complex__ = __float__

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __neg__(self) -> Element:
        return Element(-self.value, self.field)

    def __pos__(self) -> Element:
        return self

    def __abs__(self) -> Element:
        return Element(abs(self.value), self.field)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Implement `np.cos(x)`, `np.float64(2) * x` and `array * x`."""
        function = _UFUNCS.get(ufunc)
        if function is None or method != "__call__" or options:
            return NotImplemented
        if any(isinstance(x, np.ndarray) for x in inputs):
            boxed = (x if isinstance(x, np.ndarray) else _boxed(x) for x in inputs)
            return np.frompyfunc(function, ufunc.nin, 1)(*boxed)
        return function(*[x if isinstance(x, Element) else Element(self.field.lift(x), self.field) for x in inputs])

    @property
    def is_zero(self) -> bool:
        """Whether the number is exactly zero."""
        return self.field.compare("eq", self.value, self.field.lift(0)) is np.True_

    @staticmethod
    def __where__(condition: Any, a: Any, b: Any) -> Any:
        """Implement `legged.where` for entries of this type."""
        return _where(condition, a, b)

    def sign(self) -> Any:
        """Return -1, 0 or 1, as np.sign does."""
        zero, compare = self.field.lift(0), self.field.compare
        return _where(compare("lt", self.value, zero), -1.0, _where(compare("lt", zero, self.value), 1.0, 0.0))


def _boxed(x: Any) -> np.ndarray:
    """Return an object as an array of objects without axes, which NumPy does not convert to numbers."""
    box = np.empty((), dtype=object)
    box[()] = x
    return box


def _where(condition: Any, a: Any, b: Any) -> Any:
    """Return a or b; where intervals leave the condition undecided, the smallest interval that contains both."""
    if not isinstance(condition, Undecided):
        return a if condition else b
    field = condition.field
    x, y = (entry.value if isinstance(entry, Element) else field.lift(entry) for entry in (a, b))
    return Element(field.hull(x, y), field)


def _where_anywhere(condition: Any, a: Any, b: Any) -> Any:
    """Return `_where` of numbers, or of each entry of arrays, with one condition."""
    is_array = isinstance(a, np.ndarray) or isinstance(b, np.ndarray)
    return np.frompyfunc(_where, 3, 1)(_boxed(condition), a, b) if is_array else _where(condition, a, b)


Undecided.__where__ = staticmethod(_where_anywhere)


def _with_operands(function: Callable[[Any, Any], Any], swapped: bool = False) -> Callable[[Any, Any], Any]:
    """Return the method of `Element` for a function of two numbers."""

    def method(self: Element, other: Any) -> Any:
        if type(other) is Element:
            value = other.value if other.field is self.field else _mixed(self, other)
        elif isinstance(other, np.ndarray):
            return NotImplemented
        else:
            value = self.field.lift(other)
            if value is NotImplemented:
                return value
        return Element(function(value, self.value) if swapped else function(self.value, value), self.field)

    return method


def _mixed(a: Element, b: Element) -> Any:
    raise ArgumentError(
        f"numbers of the types {a.field.kind.__name__} and {b.field.kind.__name__} are combined; give all arguments in "
        f"one type"
    )


_SINGULAR = (
    "a divisor is zero: the inertia of some motion is zero at this configuration, or constraints depend on each other; "
    "legged.conditioning(robot, q) identifies the module"
)


def is_singular(pivot: Any, diagonal: Any, rounding: float) -> bool:
    """Return whether a pivot of an elimination is not positive beyond the rounding of floats; False if it is traced.

    Args:
        pivot: The pivot, [any unit]. diagonal: The entry of the matrix from which it was computed.
        rounding: Of floats, relative to this entry.

    Raises:
        SingularError: For an element that is zero within the rounding of its own type.
        IntervalError: For an interval that contains zero.
    """
    if isinstance(pivot, (int, float)):
        return not pivot > rounding * diagonal
    if type(pivot) is Element:
        size = abs(diagonal) + abs(diagonal - pivot)
        if not abs(pivot) > 4.0 * pivot.field.rounding * size:
            raise SingularError(_SINGULAR)
    return False


def _divide(a: Any, b: Any) -> Any:
    try:
        return a / b
    except (ArithmeticError, ValueError):  # Fraction, mpf and Decimal divide by zero
        raise SingularError(_SINGULAR) from None


for _name, _function in {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": _divide,
    "pow": operator.pow,
}.items():
    setattr(Element, f"__{_name}__", _with_operands(_function))
    setattr(Element, f"__r{_name}__", _with_operands(_function, swapped=True))


def _comparison(name: str, swapped: bool = False, negated: bool = False) -> Callable[[Any, Any], Any]:
    def method(self: Element, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented
        value = other.value if type(other) is Element else self.field.lift(other)
        if value is NotImplemented:
            return value
        a, b = (value, self.value) if swapped else (self.value, value)
        result = self.field.compare(name, a, b)
        return ~result if negated else result

    return method


for _name, _arguments in {
    "lt": ("lt",),
    "le": ("le",),
    "gt": ("lt", True),
    "ge": ("le", True),
    "eq": ("eq",),
    "ne": ("eq", False, True),
}.items():
    setattr(Element, f"__{_name}__", _comparison(*_arguments))


def _elementary(name: str) -> Callable[..., Element]:
    def function(x: Any, *others: Any) -> Element:
        field = next(entry.field for entry in (x, *others) if isinstance(entry, Element))
        values = [y.value if isinstance(y, Element) else field.lift(y) for y in (x, *others)]
        return Element(field.function(name)(*values), field)

    function.__name__ = name
    return function


_UFUNCS: dict[np.ufunc, Callable[..., Any]] = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
    np.divide: operator.truediv,
    np.power: operator.pow,
    np.negative: operator.neg,
    np.positive: operator.pos,
    np.absolute: abs,
    np.square: lambda x: x * x,
    np.sign: lambda x: x.sign(),
    np.less: operator.lt,
    np.less_equal: operator.le,
    np.greater: operator.gt,
    np.greater_equal: operator.ge,
    np.equal: operator.eq,
    np.not_equal: operator.ne,
    np.maximum: lambda x, y: _where(x < y, y, x),
    np.minimum: lambda x, y: _where(x < y, x, y),
    np.hypot: lambda x, y: np.sqrt(x * x + y * y),
}
for _name in FUNCTIONS:
    _method = _UFUNCS[getattr(np, _name)] = _elementary(_name)
    setattr(Element, _name, _method)  # NumPy calls a method of this name for each entry of an array of objects
