"""`Expression`, the tracing scalar: it goes where a float goes and remembers what was done with it."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from legged.compiler.ir import conditions, constant_folding
from legged.errors import TraceError

if TYPE_CHECKING:
    from legged.compiler.ir.annotations import Label
    from legged.compiler.ir.tracer import Tracer


class Expression:
    """A scalar that is computed later: an input, or an operation on other expressions and plain floats.

    Expressions are made by `record`, never by hand, and equal ones are one object. They do what floats do inside
    NumPy code, except to tell their value: branch with `legged.where`, not with `if`.

    Attributes:
        tracer: The graph under construction that it belongs to.
        index: Its number there; the arguments of an operation have lower numbers.
        operation: A name from `operations.OPERATIONS`, or `input`.
        arguments: Expressions and floats.
        label: Stage and module that were current when it was made.
    """

    __slots__ = ("arguments", "index", "label", "operation", "tracer")
    __hash__ = object.__hash__
    shape: tuple[int, ...] = ()
    ndim, size = 0, 1

    def __init__(self, tracer: Tracer, index: int, operation: str, arguments: tuple[Any, ...], label: Label):
        self.tracer, self.index, self.operation, self.arguments, self.label = tracer, index, operation, arguments, label

    def __repr__(self) -> str:
        shown = (f"#{a.index}" if isinstance(a, Expression) else f"{a:g}" for a in self.arguments)
        return f"<#{self.index} = {self.operation}({', '.join(shown)})>"

    # Arithmetic. `number` turns the other operand into a float or an Expression, or answers NotImplemented.

    def __add__(self, other: Any) -> Any:
        other = number(other)
        return other if other is NotImplemented else constant_folding.add(self, other)

    def __sub__(self, other: Any) -> Any:
        other = number(other)
        return other if other is NotImplemented else constant_folding.subtract(self, other)

    def __rsub__(self, other: Any) -> Any:
        other = number(other)
        return other if other is NotImplemented else constant_folding.subtract(other, self)

    def __mul__(self, other: Any) -> Any:
        other = number(other)
        return other if other is NotImplemented else constant_folding.multiply(self, other)

    def __truediv__(self, other: Any) -> Any:
        other = number(other)
        return other if other is NotImplemented else constant_folding.divide(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        other = number(other)
        return other if other is NotImplemented else constant_folding.divide(other, self)

    def __floordiv__(self, other: Any) -> Any:
        other = number(other)
        return other if other is NotImplemented else constant_folding.floor(constant_folding.divide(self, other))

    def __rfloordiv__(self, other: Any) -> Any:
        other = number(other)
        return other if other is NotImplemented else constant_folding.floor(constant_folding.divide(other, self))

    def __mod__(self, other: Any) -> Any:
        other = number(other)
        return other if other is NotImplemented else constant_folding.remainder(self, other)

    def __rmod__(self, other: Any) -> Any:
        other = number(other)
        return other if other is NotImplemented else constant_folding.remainder(other, self)

    def __pow__(self, other: Any) -> Any:
        other = number(other)
        return other if other is NotImplemented else constant_folding.power(self, other)

    def __rpow__(self, other: Any) -> Any:
        other = number(other)
        return other if other is NotImplemented else constant_folding.power(other, self)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Any:
        return constant_folding.negate(self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return constant_folding.absolute(self)

    def __floor__(self) -> Any:
        return constant_folding.floor(self)

    # Comparisons give conditions.

    def __lt__(self, other: Any) -> Any:
        other = number(other)
        return other if other is NotImplemented else conditions.compare("less", self, other)

    def __gt__(self, other: Any) -> Any:
        other = number(other)
        return other if other is NotImplemented else conditions.compare("less", other, self)

    def __le__(self, other: Any) -> Any:
        other = number(other)
        return other if other is NotImplemented else conditions.compare("less_equal", self, other)

    def __ge__(self, other: Any) -> Any:
        other = number(other)
        return other if other is NotImplemented else conditions.compare("less_equal", other, self)

    def __eq__(self, other: Any) -> Any:
        other = number(other)
        return other if other is NotImplemented else conditions.compare("equal", self, other)

    def __ne__(self, other: Any) -> Any:
        other = number(other)
        return other if other is NotImplemented else conditions.compare("not_equal", self, other)

    # What a value that is not known yet cannot do.

    def __bool__(self) -> NoReturn:
        raise TraceError(
            "a traced function branched on a value that is not known yet (if, while, and, or, not, min, max, np.where, "
            "np.maximum or a comparison of a plain array); use legged.where(condition, a, b), and &, |, ~ on conditions"
        )

    def __float__(self) -> NoReturn:
        raise TraceError(
            "a traced value cannot become a plain number; leave out float(), math.* and dtype=float, use np.sin "
            "rather than math.sin, and build arrays with np.array([...]) or np.stack([...]) rather than by "
            "assigning into an array of floats"
        )

    def __int__(self) -> NoReturn:
        raise TraceError("a traced value cannot become a whole number; use np.floor, which stays traced")

    def __index__(self) -> NoReturn:
        raise TraceError(
            "a traced value cannot index an array or count a loop; choose between values with legged.where"
        )

    def __iter__(self) -> NoReturn:
        raise TraceError("a traced value is one number and cannot be looped over; loop over the array that holds it")

    def __complex__(self) -> NoReturn:
        raise TraceError("a traced value is real; complex numbers cannot be traced")

    # NumPy.

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        from legged.compiler.ir.object_arrays import apply

        return apply(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        from legged.compiler.ir.object_arrays import call

        return call(function, arguments, options)


class Condition(Expression):
    """An expression that is true or false; in arithmetic it is 1 where it holds and 0 elsewhere."""

    __slots__ = ()

    def __and__(self, other: Any) -> Any:
        return conditions.logical("and", self, truth(other))

    def __or__(self, other: Any) -> Any:
        return conditions.logical("or", self, truth(other))

    def __invert__(self) -> Any:
        return conditions.negation(self)

    __rand__, __ror__ = __and__, __or__


def number(value: Any) -> Any:
    """Return the value as a float or an `Expression`, NotImplemented if it is neither."""
    kind = type(value)
    if kind is Expression or kind is float:
        return value
    if kind is Condition:
        return conditions.select(value, 1.0, 0.0)
    if isinstance(value, numbers.Real | np.bool_):
        return float(value)
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return number(value.item())
    return NotImplemented


def truth(value: Any) -> Any:
    """Return the value as an np.bool_ or a `Condition`: a number is true where it is not zero."""
    if isinstance(value, Condition):
        return value
    if isinstance(value, Expression):
        return conditions.compare("not_equal", value, 0.0)
    if type(value) is int and value < 0:
        return np.bool_(value & 1)  # comparing constants gives Python's own bools, and ~True is -2, ~False is -1
    return np.bool_(value)


def _on_its_number(name: str) -> Callable[..., Any]:
    operator = getattr(Expression, name)
    return lambda self, *others: operator(conditions.select(self, 1.0, 0.0), *others)


for _name in (
    *("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv", "rfloordiv", "mod", "rmod"),
    *("pow", "rpow", "neg", "abs", "floor", "lt", "le", "gt", "ge", "eq", "ne"),
):
    setattr(Condition, f"__{_name}__", _on_its_number(f"__{_name}__"))
