"""Time derivatives by truncated Taylor series: a formula of time gives position, velocity and acceleration together.

A `Taylor` is the scalar (x, dx/dt, d2x/dt2). NumPy formulas accept it in place of a float, so one formula gives a
motion and its first two time derivatives:

    t = taylor.time(0.3)                                # (0.3, 1, 0), [s]
    position, velocity, acceleration = taylor.derivatives(np.array([np.sin(2 * t), t**2]))

The three parts may be floats, arrays of floats (many instants at once) or traced scalars (`Expression`). Nothing here
branches on a value; `taylor.where` selects between two values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from legged.compiler.ir import where as traced_where


class Taylor:
    """A quantity with its first and second time derivative, closed under arithmetic and the elementary functions."""

    __slots__ = ("first", "second", "value")

    def __init__(self, value: Any, first: Any = 0.0, second: Any = 0.0):
        self.value, self.first, self.second = value, first, second

    def __repr__(self) -> str:
        return f"Taylor({self.value}, {self.first}, {self.second})"

    @staticmethod
    def __where__(condition: Any, a: Any, b: Any) -> Any:
        """Implement `legged.where` for this type."""
        return where(condition, a, b)

    # Arithmetic. NotImplemented for a NumPy array makes NumPy call these methods for each of its elements.

    def __add__(self, other: Any) -> Taylor:
        if isinstance(other, np.ndarray):
            return NotImplemented
        if not isinstance(other, Taylor):
            return Taylor(self.value + other, self.first, self.second)
        return Taylor(self.value + other.value, self.first + other.first, self.second + other.second)

    def __sub__(self, other: Any) -> Taylor:
        return NotImplemented if isinstance(other, np.ndarray) else self + -other

    def __rsub__(self, other: Any) -> Taylor:
        return NotImplemented if isinstance(other, np.ndarray) else -self + other

    def __neg__(self) -> Taylor:
        return Taylor(-self.value, -self.first, -self.second)

    def __pos__(self) -> Taylor:
        return self

    def __mul__(self, other: Any) -> Taylor:
        if isinstance(other, np.ndarray):
            return NotImplemented
        if not isinstance(other, Taylor):
            return Taylor(self.value * other, self.first * other, self.second * other)
        a, b = self, other
        return Taylor(
            a.value * b.value,
            a.first * b.value + a.value * b.first,
            a.second * b.value + 2 * (a.first * b.first) + a.value * b.second,
        )

    def __truediv__(self, other: Any) -> Taylor:
        if isinstance(other, np.ndarray):
            return NotImplemented
        if not isinstance(other, Taylor):
            return Taylor(self.value / other, self.first / other, self.second / other)
        ratio = self.value / other.value  # from a = ratio b, differentiated twice
        rate = (self.first - ratio * other.first) / other.value
        return Taylor(ratio, rate, (self.second - 2 * (rate * other.first) - ratio * other.second) / other.value)

    def __rtruediv__(self, other: Any) -> Taylor:
        return NotImplemented if isinstance(other, np.ndarray) else Taylor(other) / self

    def __pow__(self, power: Any) -> Taylor:
        """Return x**p for a plain number p; zero, one and two need no division at x = 0."""
        if isinstance(power, Taylor):
            return exp(log(self) * power)
        if isinstance(power, np.ndarray):
            return NotImplemented
        x = self.value
        slope = 0.0 if power == 0 else power * (1.0 if power == 1 else x ** (power - 1))
        curvature = 0.0 if power in (0, 1) else power * (power - 1) * (1.0 if power == 2 else x ** (power - 2))
        return _chain(self, x**power, slope, curvature)

    def __rpow__(self, base: Any) -> Taylor:
        return NotImplemented if isinstance(base, np.ndarray) else exp(self * np.log(base))

    __radd__, __rmul__ = __add__, __mul__

    # Comparisons are those of the values and give conditions for `where`.

    def __lt__(self, other: Any) -> Any:
        return self.value < _value(other)

    def __le__(self, other: Any) -> Any:
        return self.value <= _value(other)

    def __gt__(self, other: Any) -> Any:
        return self.value > _value(other)

    def __ge__(self, other: Any) -> Any:
        return self.value >= _value(other)

    def __abs__(self) -> Taylor:
        return where(self.value < 0, -self, self)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Implement `np.cos(x)`, `np.float64(2) * x` and `array * x`."""
        function = _UFUNCS.get(ufunc)
        if function is None or method != "__call__" or kwargs:
            return NotImplemented
        if any(isinstance(entry, np.ndarray) for entry in inputs):
            boxed = (np.asarray(entry, dtype=object) for entry in inputs)
            return np.frompyfunc(function, ufunc.nin, 1)(*boxed)
        return function(*inputs)


def time(t: Any) -> Taylor:
    """Return the time as a variable, (t, 1, 0); `t` [s] is a number, an array of instants or a traced scalar."""
    return Taylor(t, 1.0, 0.0)


def lift(x: Any) -> Taylor:
    """Return `x` as a `Taylor`; a value of another type is a constant."""
    return x if isinstance(x, Taylor) else Taylor(x)


def moving(value: Any, first: Any, second: Any) -> np.ndarray:
    """Return an array of `Taylor`s, in the shape of the three arguments, (...), from values and derivatives.

    Args:
        value: The values, (...), [any unit]. first: Their first time derivatives. second: Their second ones.
    """
    value, first, second = (np.asarray(part) for part in (value, first, second))
    out = np.empty(value.shape, dtype=object)
    for index in np.ndindex(value.shape):
        out[index] = Taylor(value[index], first[index], second[index])
    return out


def derivatives(array: Any) -> tuple[Any, Any, Any]:
    """Return (value, first, second) of an array of `Taylor`s, or of one, each in the array's shape.

    Entries of other types are constants. If the parts are arrays over many instants, the instants become leading axes:
    a (6,) array evaluated at (100,) instants gives (100, 6).
    """
    entries = np.asarray(array, dtype=object)
    parts = [lift(entry) for entry in entries.ravel()]
    lead = np.broadcast_shapes(*(getattr(x, "shape", ()) for p in parts for x in (p.value, p.first, p.second)))
    value, first, second = (
        _assemble([getattr(p, part) for p in parts], entries.shape, lead) for part in ("value", "first", "second")
    )
    return value, first, second


def where(condition: Any, a: Any, b: Any) -> Any:
    """Return `a` where the condition holds and `b` elsewhere, with their derivatives; for numbers, traced or not."""
    if not isinstance(a, Taylor) and not isinstance(b, Taylor):
        return _select(condition, a, b)
    a, b = lift(a), lift(b)
    parts = ((a.value, b.value), (a.first, b.first), (a.second, b.second))
    return Taylor(*(_select(condition, x, y) for x, y in parts))


# The elementary functions, named as in NumPy: each gives f, f' and f'' at x, which `_chain` combines.


def _chain(x: Taylor, value: Any, slope: Any, curvature: Any) -> Taylor:
    """Return f(x) from f, f' and f'' at x: (f, f' dx, f'' dx^2 + f' ddx)."""
    return Taylor(value, slope * x.first, curvature * (x.first * x.first) + slope * x.second)


def sin(x: Any) -> Taylor:
    x = lift(x)
    s, c = np.sin(x.value), np.cos(x.value)
    return _chain(x, s, c, -s)


def cos(x: Any) -> Taylor:
    x = lift(x)
    s, c = np.sin(x.value), np.cos(x.value)
    return _chain(x, c, -s, -c)


def tan(x: Any) -> Taylor:
    return sin(x) / cos(x)


def sqrt(x: Any) -> Taylor:
    x = lift(x)
    root = np.sqrt(x.value)
    slope = 0.5 / root
    return _chain(x, root, slope, -0.5 * slope / x.value)


def arcsin(x: Any) -> Taylor:
    x = lift(x)
    left = 1 - x.value * x.value
    slope = 1 / np.sqrt(left)
    return _chain(x, np.arcsin(x.value), slope, x.value * slope / left)


def arccos(x: Any) -> Taylor:
    x = lift(x)
    left = 1 - x.value * x.value
    slope = -1 / np.sqrt(left)
    return _chain(x, np.arccos(x.value), slope, x.value * slope / left)


def arctan(x: Any) -> Taylor:
    x = lift(x)
    slope = 1 / (1 + x.value * x.value)
    return _chain(x, np.arctan(x.value), slope, -2 * x.value * slope * slope)


def arctan2(y: Any, x: Any) -> Taylor:
    """Return the angle of (x, y); its rate is (x dy - y dx) / (x^2 + y^2)."""
    y, x = lift(y), lift(x)
    square = x.value * x.value + y.value * y.value
    rate = (x.value * y.first - y.value * x.first) / square
    growth = 2 * (x.value * x.first + y.value * y.first)
    curvature = (x.value * y.second - y.value * x.second - rate * growth) / square
    return Taylor(np.arctan2(y.value, x.value), rate, curvature)


def exp(x: Any) -> Taylor:
    x = lift(x)
    e = np.exp(x.value)
    return _chain(x, e, e, e)


def log(x: Any) -> Taylor:
    x = lift(x)
    slope = 1 / x.value
    return _chain(x, np.log(x.value), slope, -slope * slope)


def sinh(x: Any) -> Taylor:
    x = lift(x)
    s, c = np.sinh(x.value), np.cosh(x.value)
    return _chain(x, s, c, s)


def cosh(x: Any) -> Taylor:
    x = lift(x)
    s, c = np.sinh(x.value), np.cosh(x.value)
    return _chain(x, c, s, c)


def tanh(x: Any) -> Taylor:
    x = lift(x)
    t = np.tanh(x.value)
    slope = 1 - t * t
    return _chain(x, t, slope, -2 * t * slope)


def _value(x: Any) -> Any:
    return x.value if isinstance(x, Taylor) else x


def _select(condition: Any, a: Any, b: Any) -> Any:
    if all(isinstance(part, (bool, int, float, np.number, np.bool_, np.ndarray)) for part in (condition, a, b)):
        return np.where(condition, a, b)[()]
    return traced_where(condition, a, b)


def _assemble(parts: list[Any], shape: tuple[int, ...], lead: tuple[int, ...]) -> Any:
    """Return the parts as one array, instants as leading axes: of floats if all are numbers, of objects otherwise."""
    if lead:
        return np.stack([np.broadcast_to(part, lead) for part in parts], axis=-1).reshape(lead + shape)
    numbers = all(isinstance(part, (int, float, np.number, np.ndarray)) for part in parts)
    out = np.array(parts, dtype=float if numbers else object).reshape(shape)
    return out[()]


_ELEMENTARY = (sin, cos, tan, sqrt, arcsin, arccos, arctan, arctan2, exp, log, sinh, cosh, tanh)
_UFUNCS: dict[np.ufunc, Callable[..., Any]] = {
    np.add: lambda a, b: lift(a) + lift(b),
    np.subtract: lambda a, b: lift(a) - lift(b),
    np.multiply: lambda a, b: lift(a) * lift(b),
    np.divide: lambda a, b: lift(a) / lift(b),
    np.power: lambda a, b: lift(a) ** b,
    np.negative: lambda a: -lift(a),
    np.absolute: lambda a: abs(lift(a)),
    np.square: lambda a: lift(a) * a,
    np.maximum: lambda a, b: where(_value(a) < _value(b), b, a),
    np.minimum: lambda a, b: where(_value(a) < _value(b), a, b),
    np.less: lambda a, b: _value(a) < _value(b),
    np.less_equal: lambda a, b: _value(a) <= _value(b),
    np.greater: lambda a, b: _value(a) > _value(b),
    np.greater_equal: lambda a, b: _value(a) >= _value(b),
    **{getattr(np, function.__name__): function for function in _ELEMENTARY},
}
for _function in _ELEMENTARY:  # NumPy calls a method of this name for each element of an object array
    setattr(Taylor, _function.__name__, _function)
