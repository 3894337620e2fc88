"""`Expression`, the tracing scalar: it takes the place of a float and records the operations done with it.

`numpy_functions` adds the methods that NumPy calls.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from legged.compiler.ir import constant_folding as fold
from legged.errors import TraceError

if TYPE_CHECKING:
    from legged.compiler.ir.annotations import Label
    from legged.compiler.ir.tracer import Tracer


class Expression:
    """A scalar whose value is not known yet: an input, or an operation on other expressions and plain floats.

    The tracer makes expressions, and equal ones are one object. They behave as floats do inside NumPy code, except that
    they have no truth value: branch with `legged.where`, not with `if`.

    Attributes:
        tracer: The graph under construction that the expression belongs to.
        index: Its number there; the arguments of an operation have lower numbers.
        operation: A name from `operations.OPERATIONS`, or `input`.
        arguments: Expressions and floats.
        label: Stage, module and item that were current when the expression was made.
        opposite: The expression of -x, None if there is none yet.
    """

    __slots__ = ("arguments", "index", "label", "operation", "opposite", "tracer")
    __hash__ = object.__hash__
    shape: tuple[int, ...] = ()
    ndim, size = 0, 1

    tracer: Tracer
    index: int
    operation: str
    arguments: tuple[Any, ...]
    label: Label
    opposite: Expression | None

    def __repr__(self) -> str:
        shown = (f"#{a.index}" if isinstance(a, Expression) else f"{a:g}" for a in self.arguments)
        return f"<#{self.index} = {self.operation}({', '.join(shown)})>"

    # Arithmetic. `as_operand` turns the other operand into a float or an Expression, or returns NotImplemented. The
    # most frequent operations take shortcuts.

    def __add__(self, other: Any) -> Any:
        kind = type(other)
        if kind is Expression:
            return fold.add_expressions(self, other)
        if kind is float:
            return fold.add_constant(self, other) if other else self
        other = as_operand(other)
        return other if other is NotImplemented else fold.add(self, other)

    def __sub__(self, other: Any) -> Any:
        if type(other) is Expression:
            return fold.subtract_expressions(self, other)
        other = as_operand(other)
        return other if other is NotImplemented else fold.subtract(self, other)

    def __rsub__(self, other: Any) -> Any:
        other = as_operand(other)
        return other if other is NotImplemented else fold.subtract(other, self)

    def __mul__(self, other: Any) -> Any:
        kind = type(other)
        if kind is Expression:
            return fold.multiply_expressions(self, other)
        if kind is float:
            return fold.scale(other, self) if other else 0.0
        other = as_operand(other)
        return other if other is NotImplemented else fold.multiply(self, other)

    def __truediv__(self, other: Any) -> Any:
        other = as_operand(other)
        return other if other is NotImplemented else fold.divide(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        other = as_operand(other)
        return other if other is NotImplemented else fold.divide(other, self)

    def __floordiv__(self, other: Any) -> Any:
        other = as_operand(other)
        return other if other is NotImplemented else fold.floor_divide(self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        other = as_operand(other)
        return other if other is NotImplemented else fold.floor_divide(other, self)

    def __mod__(self, other: Any) -> Any:
        other = as_operand(other)
        return other if other is NotImplemented else fold.remainder(self, other)

    def __rmod__(self, other: Any) -> Any:
        other = as_operand(other)
        return other if other is NotImplemented else fold.remainder(other, self)

    def __pow__(self, other: Any) -> Any:
        other = as_operand(other)
        return other if other is NotImplemented else fold.power(self, other)

    def __rpow__(self, other: Any) -> Any:
        other = as_operand(other)
        return other if other is NotImplemented else fold.power(other, self)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Any:
        return fold.negate(self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return fold.absolute(self)

    def __floor__(self) -> Any:
        return fold.floor(self)

    def __ceil__(self) -> Any:
        return fold.ceil(self)

    def __trunc__(self) -> Any:
        return fold.trunc(self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __round__(self, digits: int | None = None) -> Any:
        return np.round(np.asanyarray(self), digits or 0)

    # Comparisons return conditions.

    def __lt__(self, other: Any) -> Any:
        other = as_operand(other)
        return other if other is NotImplemented else fold.compare("less", self, other)

    def __gt__(self, other: Any) -> Any:
        other = as_operand(other)
        return other if other is NotImplemented else fold.compare("less", other, self)

    def __le__(self, other: Any) -> Any:
        other = as_operand(other)
        return other if other is NotImplemented else fold.compare("less_equal", self, other)

    def __ge__(self, other: Any) -> Any:
        other = as_operand(other)
        return other if other is NotImplemented else fold.compare("less_equal", other, self)

    def __eq__(self, other: Any) -> Any:
        other = as_operand(other)
        return other if other is NotImplemented else fold.compare("equal", self, other)

    def __ne__(self, other: Any) -> Any:
        other = as_operand(other)
        return other if other is NotImplemented else fold.compare("not_equal", self, other)

    # Conversions that need a value.

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


class Condition(Expression):
    """An expression with a truth value; in arithmetic it is 1 where it holds and 0 elsewhere."""

    __slots__ = ()

    def __and__(self, other: Any) -> Any:
        return fold.logical("and", self, as_truth(other))

    def __or__(self, other: Any) -> Any:
        return fold.logical("or", self, as_truth(other))

    def __invert__(self) -> Any:
        return fold.logical_not(self)

    __rand__, __ror__ = __and__, __or__


def as_operand(value: Any) -> Any:
    """Return a real number as a float or an `Expression`, NotImplemented for anything else."""
    kind = type(value)
    if kind is Expression or kind is float:
        return value
    if kind is Condition:
        return fold.select(value, 1.0, 0.0)
    if isinstance(value, np.ndarray):
        return as_operand(value.item()) if value.ndim == 0 else NotImplemented
    return float(value) if isinstance(value, numbers.Real | np.bool_) else NotImplemented


def as_truth(value: Any) -> Any:
    """Return a truth value as an np.bool_ or a `Condition`; a number is true where it is not zero."""
    if isinstance(value, Condition):
        return value
    if isinstance(value, Expression):
        return fold.compare("not_equal", value, 0.0)
    if type(value) is int and value < 0:
        return np.bool_(value & 1)  # ~ of Python's bool: ~True is -2, ~False is -1
    return np.bool_(value)


def _on_number(name: str) -> Callable[..., Any]:
    operator = getattr(Expression, name)
    return lambda self, *others: operator(fold.select(self, 1.0, 0.0), *others)


for _name in (
    *("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv", "rfloordiv", "mod", "rmod"),
    *("pow", "rpow", "neg", "abs", "floor", "ceil", "trunc", "round", "lt", "le", "gt", "ge", "eq", "ne"),
):
    setattr(Condition, f"__{_name}__", _on_number(f"__{_name}__"))
