"""Construction of operations with constant folding and a normal form.

Every function takes plain floats and `Expression`s in any mixture and returns one or the other. Constants always fold
to plain floats. The normal form:

- A negation is pulled outward through products, quotients and sums. It is free, since it ends up in the sign of the
  operation that uses it. A negation that meets a constant factor is absorbed by the factor, so that bodies whose
  parameters differ in sign give the same operations.
- The operands of commutative operations are sorted. A constant comes first in a product and last in a sum.
- A difference is stored in one order only, b - a = -(a - b).
- Constants are collected: c1*(c2*x) = (c1*c2)*x, (x + c1) + c2 = x + (c1 + c2), and x + x = 2*x.
- 0*x = 0 for every x, infinite values and NaN included.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from legged.compiler.ir.operations import OPERATIONS, CallResult, Gather, evaluate
from legged.errors import TraceError

if TYPE_CHECKING:
    from legged.compiler.ir.expression import Expression

Number: TypeAlias = Any  # Expression | float
Truth: TypeAlias = Any  # Condition | np.bool_; Python's bool would not do, since ~True is -2

MIXED_TRACES = "an expression of one tracing was used in another; do not keep traced values between calls"


def operation(name: str, *arguments: Number) -> Any:
    """Return an operation; it is evaluated if all arguments are constants."""
    tracer = None
    for a in arguments:
        if not isinstance(a, float) and a.tracer is not tracer:
            if tracer is not None:
                raise TraceError(MIXED_TRACES)
            tracer = a.tracer
    return evaluate(name, *arguments) if tracer is None else tracer.node(name, *arguments)


# Arithmetic


def negate(x: Number) -> Number:
    """Return -x."""
    if type(x) is float:
        return -x or 0.0
    return x.tracer.negation(x) if x.opposite is None else x.opposite


def _factor(x: Expression) -> tuple[float, Expression]:
    """Return (c, y) with x = c*y; c is 1 unless x is a multiple of another expression."""
    return x.arguments if x.operation == "multiply" and type(x.arguments[0]) is float else (1.0, x)


def add(a: Number, b: Number) -> Number:
    """Return a + b."""
    if type(b) is float:
        return a + b if type(a) is float else add_constant(a, b)
    return add_constant(b, a) if type(a) is float else add_expressions(a, b)


def add_expressions(a: Expression, b: Expression) -> Number:
    """Return a + b of two expressions."""
    first, second = a.operation, b.operation
    if first == "negate":
        return subtract_expressions(b, a.arguments[0])
    if second == "negate":
        return subtract_expressions(a, b.arguments[0])
    if first == "subtract" and a.arguments[1] is b:
        return a.arguments[0]
    if second == "subtract" and b.arguments[1] is a:
        return b.arguments[0]
    if (
        a is b
        or (first == "multiply" and type(a.arguments[0]) is float)
        or (second == "multiply" and type(b.arguments[0]) is float)
    ):
        (ca, xa), (cb, xb) = _factor(a), _factor(b)
        if xa is xb:
            return scale(ca + cb, xa)
    return a.tracer.binary("add", a, b) if a.index <= b.index else a.tracer.binary("add", b, a)


def add_constant(x: Expression, c: float) -> Number:
    """Return x + c."""
    if c == 0.0:
        return x
    if x.operation == "negate":
        return negate(add_constant(x.arguments[0], -c))
    if x.operation == "add" and type(x.arguments[1]) is float:
        return add_constant(x.arguments[0], x.arguments[1] + c)
    return x.tracer.node("add", x, c)


def subtract(a: Number, b: Number) -> Number:
    """Return a - b."""
    if type(b) is float:
        return a - b if type(a) is float else add_constant(a, -b)
    return negate(add_constant(b, -a)) if type(a) is float else subtract_expressions(a, b)


def subtract_expressions(a: Expression, b: Expression) -> Number:
    """Return a - b of two expressions."""
    if a is b:
        return 0.0
    first, second = a.operation, b.operation
    if second == "negate":
        return add_expressions(a, b.arguments[0])
    if first == "negate":
        return negate(add_expressions(a.arguments[0], b))
    if first == "add" or first == "subtract" or second == "add" or second == "subtract":
        canceled = _canceled_difference(a, b)
        if canceled is not None:
            return canceled
    if (first == "multiply" and type(a.arguments[0]) is float) or (
        second == "multiply" and type(b.arguments[0]) is float
    ):
        (ca, xa), (cb, xb) = _factor(a), _factor(b)
        if xa is xb:
            return scale(ca - cb, xa)
    return a.tracer.binary("subtract", a, b) if a.index <= b.index else negate(a.tracer.binary("subtract", b, a))


def _canceled_difference(a: Expression, b: Expression) -> Number | None:
    """Return a - b if one of them is a sum or difference that contains the other, else None."""
    if a.operation == "add":
        if a.arguments[0] is b:
            return a.arguments[1]
        if a.arguments[1] is b:
            return a.arguments[0]
    elif a.operation == "subtract" and a.arguments[0] is b:
        return negate(a.arguments[1])
    if b.operation == "add":
        if b.arguments[0] is a:
            return negate(b.arguments[1])
        if b.arguments[1] is a:
            return negate(b.arguments[0])
    elif b.operation == "subtract" and b.arguments[0] is a:
        return b.arguments[1]
    return None


def multiply(a: Number, b: Number) -> Number:
    """Return a * b."""
    if type(a) is float:
        return a * b if type(b) is float else scale(a, b)
    return scale(b, a) if type(b) is float else multiply_expressions(a, b)


def multiply_expressions(a: Expression, b: Expression) -> Number:
    """Return a * b of two expressions."""
    is_negative = a.operation == "negate"
    if is_negative:
        a = a.arguments[0]
    if b.operation == "negate":
        b, is_negative = b.arguments[0], not is_negative
    product = a.tracer.binary("multiply", a, b) if a.index <= b.index else a.tracer.binary("multiply", b, a)
    return negate(product) if is_negative else product


def scale(c: float, x: Expression) -> Number:
    """Return c*x."""
    if c == 0.0:
        return 0.0
    if c == 1.0:
        return x
    if c == -1.0:
        return negate(x)
    opcode = x.operation
    if opcode == "negate":
        return scale(-c, x.arguments[0])
    if (opcode == "multiply" or opcode == "divide") and type(x.arguments[0]) is float:
        factor, y = x.arguments
        return scale(c * factor, y) if opcode == "multiply" else divide(c * factor, y)
    return x.tracer.multiple(c, x)


def divide(a: Number, b: Number) -> Number:
    """Return a / b; a division by a constant c becomes a multiplication by 1/c."""
    if isinstance(b, float):
        if b == 0.0:
            raise TraceError("a traced function divides by the constant zero")
        return a / b if isinstance(a, float) else scale(1.0 / b, a)
    if b.operation == "negate":
        return negate(divide(a, b.arguments[0]))
    if isinstance(a, float):
        if a == 0.0:
            return 0.0
        c, y = _factor(b)
        return negate(b.tracer.node("divide", -a / c, y)) if a < 0.0 else b.tracer.node("divide", a / c, y)
    if a is b:
        return 1.0
    if a.operation == "negate":
        return negate(divide(a.arguments[0], b))
    return a.tracer.binary("divide", a, b)


def power(x: Number, n: Number) -> Number:
    """Return x ** n: small integer powers by multiplication, powers of 1/2 by square roots."""
    if not isinstance(n, float):
        return operation("power", x, n)
    if isinstance(x, float):
        return evaluate("power", x, n)
    if n < 0.0:
        return divide(1.0, power(x, -n))
    if n == 0.0:
        return 1.0
    if n == 0.5:
        return sqrt(x)
    if n <= 64.0 and n == int(n):
        half = power(x, float(n // 2)) if n > 1.0 else 1.0
        return multiply(multiply(half, half), x) if n % 2.0 else multiply(half, half)
    return operation("power", x, n)


def sqrt(x: Number) -> Number:
    """Return the square root of x."""
    return operation("sqrt", x)


def absolute(x: Number) -> Number:
    """Return |x|."""
    if not isinstance(x, float):
        if x.operation == "negate":
            return absolute(x.arguments[0])
        if x.operation in ("absolute", "sqrt", "exp", "cosh"):
            return x
    return operation("absolute", x)


def odd_function(name: str, x: Number) -> Number:
    """Return f(x) for a function with f(-x) = -f(x)."""
    if not isinstance(x, float) and x.operation == "negate":
        return negate(operation(name, x.arguments[0]))
    return operation(name, x)


def even_function(name: str, x: Number) -> Number:
    """Return f(x) for a function with f(-x) = f(x)."""
    if not isinstance(x, float) and x.operation in ("negate", "absolute"):
        return operation(name, x.arguments[0])
    return operation(name, x)


def floor(x: Number) -> Number:
    """Return the largest integer that does not exceed x."""
    return operation("floor", x)


def ceil(x: Number) -> Number:
    """Return the smallest integer that is not below x."""
    return negate(floor(negate(x)))


def trunc(x: Number) -> Number:
    """Return x without the digits after the point."""
    return select(compare("less", x, 0.0), ceil(x), floor(x))


def copysign(x: Number, y: Number) -> Number:
    """Return |x| with the sign of y, which a zero has as well."""
    return operation("copysign", absolute(x), y)


def signbit(x: Number) -> Truth:
    """Return whether x is negative or -0.0."""
    return compare("less", copysign(1.0, x), 0.0)


def remainder(a: Number, b: Number) -> Number:
    """Return a - b*floor(a / b) without a rounding error of the quotient; it has the sign of b."""
    return _with_sign_of(b, operation("fmod", a, _divisor(b)))


def floor_divide(a: Number, b: Number) -> Number:
    """Return floor(a / b) for the exact quotient."""
    rest = operation("fmod", a, _divisor(b))
    quotient = operation("rint", divide(subtract(a, rest), b))  # an integer up to rounding
    quotient = copysign(quotient, multiply(a, copysign(1.0, b)))
    quotient = select(_has_other_sign(rest, b), add(quotient, -1.0), quotient)
    return quotient if isinstance(b, float) else select(compare("equal", b, 0.0), divide(a, b), quotient)


def _divisor(b: Number) -> Number:
    if isinstance(b, float) and b == 0.0:
        raise TraceError("a traced function divides by the constant zero")
    return b


def _has_other_sign(rest: Number, b: Number) -> Truth:
    """Return whether a remainder is not zero and has another sign than the divisor."""
    negative, positive = compare("less", rest, 0.0), compare("less", 0.0, rest)
    if isinstance(b, float):
        return positive if b < 0.0 else negative
    above = logical("and", positive, compare("less", b, 0.0))
    return logical("or", logical("and", negative, compare("less", 0.0, b)), above)


def _with_sign_of(b: Number, rest: Number) -> Number:
    return select(_has_other_sign(rest, b), add(rest, b), copysign(rest, b))


def extremum(name: str, a: Number, b: Number) -> Number:
    """Return max(a, b) or min(a, b) (`maximum`, `minimum`): f(a, b) = f(b, a) and f(a, a) = a."""
    if a is b:
        return a
    if isinstance(a, float) or (not isinstance(b, float) and a.index > b.index):
        a, b = b, a
    return operation(name, a, b)


# Conditions


def compare(name: str, a: Number, b: Number) -> Truth:
    """Return the truth value of a < b, a <= b, a == b or a != b (`less`, `less_equal`, `equal`, `not_equal`)."""
    if a is b:
        return np.bool_(name in ("less_equal", "equal"))
    if not isinstance(a, float) and not isinstance(b, float):
        if name in ("equal", "not_equal") and a.index > b.index:
            a, b = b, a
        if a.operation == b.operation == "negate":
            a, b = b.arguments[0], a.arguments[0]
    result = operation(name, a, b)
    return np.bool_(result) if isinstance(result, bool) else result


def logical(name: str, a: Truth, b: Truth) -> Truth:
    """Return the truth value of (a and b) or (a or b)."""
    if isinstance(b, np.bool_):
        a, b = b, a
    if isinstance(a, np.bool_):
        return a if a == (name == "or") else b
    if a is b:
        return a
    return operation(name, a, b) if a.index <= b.index else operation(name, b, a)


def logical_not(a: Truth) -> Truth:
    """Return the truth value of (not a)."""
    if isinstance(a, np.bool_):
        return ~a
    return a.arguments[0] if a.operation == "not" else a.tracer.node("not", a)


def select(condition: Truth, a: Number, b: Number) -> Number:
    """Return a where the condition holds, b elsewhere."""
    if isinstance(condition, np.bool_):
        return a if condition else b
    if a is b or (isinstance(a, float) and isinstance(b, float) and a == b):
        return a
    if condition.operation == "not":
        return select(condition.arguments[0], b, a)
    return operation("select", condition, a, b)


def sign(x: Number) -> Number:
    """Return -1, 0 or 1; 0.0 for -0.0, and NaN for NaN."""
    return select(compare("less", 0.0, x), 1.0, select(compare("less", x, 0.0), -1.0, absolute(x)))


class _Constructors(dict[str, Callable[..., Any]]):
    """Constructors by the name of the operation; those of lookups and loops are created at their first use."""

    def __missing__(self, name: str) -> Callable[..., Any]:
        if isinstance(name, Gather | CallResult):
            return partial(operation, name)
        raise KeyError(name)


CONSTRUCTORS = _Constructors(
    {
        **{name: partial(operation, name) for name in OPERATIONS},
        "add": add,
        "subtract": subtract,
        "multiply": multiply,
        "divide": divide,
        "negate": negate,
        "power": power,
        "absolute": absolute,
        **{name: partial(odd_function, name) for name in ("sin", "tan", "arcsin", "arctan", "sinh", "tanh")},
        **{name: partial(odd_function, name) for name in ("arcsinh", "arctanh", "cbrt", "rint")},
        "copysign": copysign,
        **{name: partial(even_function, name) for name in ("cos", "cosh")},
        **{name: partial(extremum, name) for name in ("maximum", "minimum")},
        **{name: partial(compare, name) for name in ("less", "less_equal", "equal", "not_equal")},
        "and": partial(logical, "and"),
        "or": partial(logical, "or"),
        "not": logical_not,
        "select": select,
    }
)
"""Each operation -> the function that constructs it in normal form."""
