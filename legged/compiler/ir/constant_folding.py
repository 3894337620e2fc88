"""What expressions become when they are made: the simplifications.

Every function here takes plain floats and `Expression`s in any mixture and returns one or the other; constants always
fold to plain floats. The normal form:

- a negation is pulled outward through products, quotients and sums, and costs nothing; one that meets a constant
  factor goes into it: bodies whose numbers differ in sign make the same operations;
- the operands of commutative operations are sorted, a constant comes first in a product and last in a sum;
- a difference is written in one order only, b - a = -(a - b);
- constants are gathered, c1*(c2*x) = (c1*c2)*x, (x + c1) + c2 = x + (c1 + c2), and x + x = 2*x;
- 0*x = 0 whatever x is, also where x turns out not to be finite.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from legged.compiler.ir.operations import evaluate
from legged.errors import TraceError

if TYPE_CHECKING:
    from legged.compiler.ir.expression import Expression

Number: TypeAlias = Any  # Expression | float, which the rules tell apart at every step


_MIXED = "an expression of one tracing was used in another; do not keep traced values between calls"


def _pair(operation: str, a: Expression, b: Expression) -> Any:
    if a.tracer is not b.tracer:
        raise TraceError(_MIXED)
    return a.tracer.pair(operation, a, b)


def in_order(operation: str, a: Expression, b: Expression) -> Any:
    """Return a commutative operation, its operands sorted."""
    if a.tracer is not b.tracer:
        raise TraceError(_MIXED)
    return a.tracer.node(operation, a, b) if a.index <= b.index else a.tracer.node(operation, b, a)


def negate(x: Number) -> Number:
    """Return -x."""
    if isinstance(x, float):
        return -x or 0.0
    if x.operation == "negate":
        return x.arguments[0]
    return x.tracer.node("negate", x)


def _split(x: Expression) -> tuple[float, Expression]:
    """Return (c, y) with x = c*y, c = 1 where x is no multiple."""
    if x.operation == "multiply" and isinstance(x.arguments[0], float):
        return x.arguments
    return 1.0, x


def add(a: Number, b: Number) -> Number:
    """Return a + b."""
    if isinstance(b, float):
        return a + b if isinstance(a, float) else _add_constant(a, b)
    if isinstance(a, float):
        return _add_constant(b, a)
    if a.operation == "negate":
        return subtract(b, a.arguments[0])
    if b.operation == "negate":
        return subtract(a, b.arguments[0])
    if a.operation == "subtract" and a.arguments[1] is b:
        return a.arguments[0]
    if b.operation == "subtract" and b.arguments[1] is a:
        return b.arguments[0]
    (ca, xa), (cb, xb) = _split(a), _split(b)
    if xa is xb:
        return _scale(ca + cb, xa)
    return _pair("add", a, b) if a.index <= b.index else _pair("add", b, a)


def _add_constant(x: Expression, c: float) -> Number:
    if c == 0.0:
        return x
    if x.operation == "negate":
        return negate(_add_constant(x.arguments[0], -c))
    if x.operation == "add" and isinstance(x.arguments[1], float):
        return _add_constant(x.arguments[0], x.arguments[1] + c)
    return x.tracer.node("add", x, c)


def subtract(a: Number, b: Number) -> Number:
    """Return a - b."""
    if isinstance(b, float):
        return a - b if isinstance(a, float) else _add_constant(a, -b)
    if isinstance(a, float):
        return negate(_add_constant(b, -a))
    if a is b:
        return 0.0
    if b.operation == "negate":
        return add(a, b.arguments[0])
    if a.operation == "negate":
        return negate(add(a.arguments[0], b))
    canceled = _canceled(a, b)
    if canceled is not None:
        return canceled
    (ca, xa), (cb, xb) = _split(a), _split(b)
    if xa is xb:
        return _scale(ca - cb, xa)
    return _pair("subtract", a, b) if a.index <= b.index else negate(_pair("subtract", b, a))


def _canceled(a: Expression, b: Expression) -> Number | None:
    """Return a - b where one of them is a sum or difference that holds the other, None elsewhere."""
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
    if isinstance(a, float):
        return a * b if isinstance(b, float) else _scale(a, b)
    if isinstance(b, float):
        return _scale(b, a)
    if a.operation == "negate":
        return negate(multiply(a.arguments[0], b))
    if b.operation == "negate":
        return negate(multiply(a, b.arguments[0]))
    return _pair("multiply", a, b) if a.index <= b.index else _pair("multiply", b, a)


def _scale(c: float, x: Expression) -> Number:
    """Return c*x."""
    if c == 0.0:
        return 0.0
    if c == 1.0:
        return x
    if c == -1.0:
        return negate(x)
    if x.operation == "negate":
        return _scale(-c, x.arguments[0])
    if x.arguments and isinstance(x.arguments[0], float):
        if x.operation == "multiply":
            return _scale(c * x.arguments[0], x.arguments[1])
        if x.operation == "divide":
            return divide(c * x.arguments[0], x.arguments[1])
    return x.tracer.multiple(c, x)


def divide(a: Number, b: Number) -> Number:
    """Return a / b; dividing by a constant c is multiplying by 1/c."""
    if isinstance(b, float):
        if b == 0.0:
            raise TraceError("a traced function divides by the constant zero")
        return a / b if isinstance(a, float) else _scale(1.0 / b, a)
    if b.operation == "negate":
        return negate(divide(a, b.arguments[0]))
    if isinstance(a, float):
        if a == 0.0:
            return 0.0
        c, y = _split(b)
        return negate(b.tracer.node("divide", -a / c, y)) if a < 0.0 else b.tracer.node("divide", a / c, y)
    if a is b:
        return 1.0
    if a.operation == "negate":
        return negate(divide(a.arguments[0], b))
    return _pair("divide", a, b)


def power(x: Number, n: Number) -> Number:
    """Return x ** n: small whole powers by multiplication, halves by square roots."""
    if not isinstance(n, float):
        return function("power", x, n)
    if isinstance(x, float):
        return evaluate("power", x, n)
    if n < 0.0:
        return divide(1.0, power(x, -n))
    if n == 0.0:
        return 1.0
    if n == 0.5:
        return sqrt(x)
    if n == int(n) and n <= 64.0:
        half = power(x, float(n // 2)) if n > 1.0 else 1.0
        return multiply(multiply(half, half), x) if n % 2.0 else multiply(half, half)
    return function("power", x, n)


def function(operation: str, *arguments: Number) -> Any:
    """Return an operation without any rule but that constants fold."""
    tracers = {a.tracer for a in arguments if not isinstance(a, float)}
    if not tracers:
        return evaluate(operation, *arguments)
    if len(tracers) > 1:
        raise TraceError(_MIXED)
    return tracers.pop().node(operation, *arguments)


def sqrt(x: Number) -> Number:
    """Return the square root of x."""
    return function("sqrt", x)


def absolute(x: Number) -> Number:
    """Return |x|."""
    if not isinstance(x, float):
        if x.operation == "negate":
            return absolute(x.arguments[0])
        if x.operation in ("absolute", "sqrt", "exp", "cosh"):
            return x
    return function("absolute", x)


def odd(operation: str, x: Number) -> Number:
    """Return f(x) for a function with f(-x) = -f(x)."""
    if not isinstance(x, float) and x.operation == "negate":
        return negate(function(operation, x.arguments[0]))
    return function(operation, x)


def even(operation: str, x: Number) -> Number:
    """Return f(x) for a function with f(-x) = f(x)."""
    if not isinstance(x, float) and x.operation in ("negate", "absolute"):
        return function(operation, x.arguments[0])
    return function(operation, x)


def floor(x: Number) -> Number:
    """Return the largest whole number not above x."""
    return function("floor", x)


def remainder(a: Number, b: Number) -> Number:
    """Return a - b*floor(a / b), which has the sign of b."""
    return subtract(a, multiply(b, floor(divide(a, b))))
