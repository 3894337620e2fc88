"""Types of numbers: how constants become such numbers, their elementary functions and comparisons."""

from __future__ import annotations

import functools
import math
import numbers
import operator
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from legged.errors import ArgumentError, IntervalError

_PLAIN = (float, int, bool, np.bool_, np.float64, np.float32, np.float16)
_NAMES = {"arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2", "log": "ln"}
"""NumPy's names of functions -> the names in other libraries."""
_AT_ZERO = {"sin": 0, "cos": 1, "tan": 0, "arcsin": 0, "arctan": 0, "sinh": 0, "cosh": 1, "tanh": 0, "exp": 1}


class Field:
    """A type of numbers: how constants become such numbers, and its elementary functions.

    Args:
        sample: A number of the type.
    """

    def __init__(self, sample: Any) -> None:
        self.kind = type(sample)
        self.context = getattr(self.kind, "context", None)
        self.is_rational = isinstance(sample, numbers.Rational)
        self._functions: dict[str, Callable[..., Any]] = {}

    @property
    def precision(self) -> int:
        """Current number of bits of a type whose precision can be changed, 0 for other types."""
        return 0 if self.context is None else int(self.context.prec)

    @property
    def rounding(self) -> float:
        """Relative rounding of an operation: zero for exact numbers."""
        if self.is_rational:
            return 0.0
        if self.context is not None:
            return float(self.context.eps)
        if issubclass(self.kind, np.floating):
            return float(np.finfo(self.kind).eps)
        return 0.0

    def lift(self, x: Any) -> Any:
        """Return a real number of any type as a number of this type, NotImplemented for anything else."""
        kind = type(x)
        if kind is self.kind:
            return x
        if kind is float or kind is int:
            return self.kind(x)
        if isinstance(x, (np.floating, float)):
            return (
                self.kind(float(x)) if kind is not np.longdouble else self._of_fraction(Fraction(*x.as_integer_ratio()))
            )
        if isinstance(x, (numbers.Integral, np.bool_)):
            return self.kind(int(x))
        return self._of_fraction(Fraction(x)) if isinstance(x, (numbers.Rational, Decimal)) else NotImplemented

    def _of_fraction(self, x: Fraction) -> Any:
        return self.kind(x.numerator) / self.kind(x.denominator)

    def function(self, name: str) -> Callable[..., Any]:
        """Return an elementary function of numbers of this type, by its NumPy name; ArgumentError if there is none."""
        function = self._functions.get(name)
        if function is None:
            function = self._functions[name] = self._find(name)
        return function

    def _find(self, name: str) -> Callable[..., Any]:
        if self.is_rational:
            return functools.partial(_rational_function, name)
        holders = [self.context, self.kind, sys.modules[self.kind.__module__]]
        for holder in holders if self.context is None else holders[:1]:
            for word in (name, _NAMES.get(name, name)):
                if callable(function := getattr(holder, word, None)):
                    return function
        raise ArgumentError(
            f"the type {self.kind.__name__} has no function {name}, which this algorithm needs; use numbers that have "
            f"it, such as mpmath.mpf"
        )

    def compare(self, name: str, a: Any, b: Any) -> Any:
        """Return a < b, a <= b or a == b by the name of the comparison, `Undecided` for intervals that overlap."""
        return np.bool_(getattr(operator, name)(a, b))

    def hull(self, a: Any, b: Any) -> Any:
        """Return the smallest number of this type that contains both; only intervals have one."""
        raise NotImplementedError

    def is_finite(self, x: Any) -> bool:
        """Return whether a number is neither NaN nor infinite."""
        return self.is_rational or math.isfinite(self.to_float(x))

    def to_float(self, x: Any) -> float:
        """Return the nearest float, of an interval that of its middle; infinite if it is too large."""
        try:
            return float(x)
        except OverflowError:
            return math.inf if x > 0 else -math.inf


class Undecided:
    """The truth value of a comparison of intervals that overlap; `legged.where` returns the hull of both branches.

    Code that branches on it raises IntervalError.
    """

    def __init__(self, field: Field) -> None:
        self.field = field

    def __bool__(self) -> bool:
        raise IntervalError(
            "a comparison of intervals that overlap decides a branch, a pivot or a rank; use narrower intervals, or "
            "more digits: mpmath.iv.dps"
        )

    def __and__(self, other: Any) -> Any:
        return self if isinstance(other, Undecided) or other else np.bool_(False)

    def __or__(self, other: Any) -> Any:
        return self if isinstance(other, Undecided) or not other else np.bool_(True)

    def __invert__(self) -> Undecided:
        return self

    __rand__, __ror__ = __and__, __or__

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Implement `np.bool_ & undecided`."""
        function = {np.bitwise_and: operator.and_, np.bitwise_or: operator.or_, np.invert: operator.invert}.get(ufunc)
        if function is None or method != "__call__":
            return NotImplemented
        return function(*sorted(inputs, key=lambda x: not isinstance(x, Undecided)))

    @staticmethod
    def __where__(condition: Any, a: Any, b: Any) -> Any:
        """Implement `legged.where` with this condition, for numbers and arrays; set by `legged.elements.element`."""
        raise NotImplementedError


class IntervalField(Field):
    """The intervals of mpmath, `mpmath.iv.mpf`: every operation encloses all of its possible results.

    mpmath has the sine, cosine, tangent and root. The other functions are monotonic, or even: their values at the ends
    are computed with twenty more bits and rounded outward. mpmath's own exponential and logarithm of intervals do not
    enclose the value for some arguments near 0 and 1 (version 1.4.1).
    """

    def __init__(self, sample: Any) -> None:
        super().__init__(sample)
        self.context = sample.ctx

    def lift(self, x: Any) -> Any:
        if type(x) in (float, int) or type(x) is self.kind:
            return self.context.convert(x)
        return super().lift(x)

    @property
    def rounding(self) -> float:
        return 0.0  # an interval contains its rounding

    def _of_fraction(self, x: Fraction) -> Any:
        return self.context.convert(x.numerator) / self.context.convert(x.denominator)

    def _find(self, name: str) -> Callable[..., Any]:
        if name in ("sin", "cos", "tan", "sqrt"):
            return getattr(self.context, name)
        if name in ("arcsin", "arctan", "sinh", "tanh", "exp", "log"):
            return functools.partial(self._by_ends, _NAMES.get(name, name), False)
        if name == "arccos":
            return functools.partial(self._by_ends, "acos", True)
        if name == "cosh":
            return lambda x: self._by_ends("cosh", False, abs(x))
        if name == "arctan2":
            return self._angle
        return super()._find(name)

    def _by_ends(self, name: str, is_decreasing: bool, x: Any) -> Any:
        """Return the interval of a monotonic function between the values at the ends of x."""
        ends = [self._at(name, end) for end in self._ends(x)]
        return self.hull(*(reversed(ends) if is_decreasing else ends))

    def _ends(self, x: Any) -> tuple[Any, Any]:
        """Return both ends of an interval as numbers."""
        from mpmath import mp

        return mp.make_mpf(x._mpi_[0]), mp.make_mpf(x._mpi_[1])

    def _at(self, name: str, *ends: Any) -> Any:
        """Return an interval that contains the function of numbers: its value, rounded outward by one unit."""
        from mpmath import mp

        with mp.workprec(self.context.prec + 20):
            value = getattr(mp, name)(*ends)
            if isinstance(value, mp.mpc):
                raise ArgumentError(f"{name} of an interval that reaches beyond [-1, 1] has no real value")
            margin = abs(value) * mp.mpf(2) ** -(self.context.prec + 15) if mp.isfinite(value) else 0
            return self.context.mpf([value - margin, value + margin])

    def _angle(self, y: Any, x: Any) -> Any:
        """Return the angle of the points (x, y), as arctan2 does: between the angles of the corners of the box."""
        (y_low, y_high), (x_low, x_high) = self._ends(y), self._ends(x)
        on_axis = y_low == y_high == 0 and x_high < 0  # where the angle is pi
        if x_low <= 0 and y_low <= 0 <= y_high and (x_high >= 0 or y_low < 0) and not on_axis:
            return self.context.mpf([-1, 1]) * self.context.pi  # the box holds the origin or crosses the cut
        corners = [self._at("atan2", b, a) for b in (y_low, y_high) for a in (x_low, x_high)]
        return functools.reduce(self.hull, corners)

    def compare(self, name: str, a: Any, b: Any) -> Any:
        (a_low, a_high), (b_low, b_high) = self._ends(a), self._ends(b)
        if name == "lt":
            always, never = a_high < b_low, a_low >= b_high
        elif name == "le":
            always, never = a_high <= b_low, a_low > b_high
        else:
            always, never = a_low == a_high == b_low == b_high, a_high < b_low or b_high < a_low
        return np.bool_(always) if always or never else Undecided(self)

    def hull(self, a: Any, b: Any) -> Any:
        (a_low, a_high), (b_low, b_high) = self._ends(a), self._ends(b)
        return self.context.mpf([min(a_low, b_low), max(a_high, b_high)])

    def is_finite(self, x: Any) -> bool:
        return all(math.isfinite(self.to_float(end)) for end in self._ends(x))

    def to_float(self, x: Any) -> float:
        return super().to_float(x.mid if type(x) is self.kind else x)


def _rational_function(name: str, *x: Any) -> Any:
    """Return an elementary function of rational numbers where its value is rational, and raise ArgumentError elsewhere.

    These are the roots of squares, and most functions at zero.
    """
    if name == "sqrt" and x[0] >= 0:
        root = Fraction(math.isqrt(x[0].numerator), math.isqrt(x[0].denominator))
        if root * root == x[0]:
            return root
    if name in _AT_ZERO and x[0] == 0:
        return Fraction(_AT_ZERO[name])
    if (name == "arctan2" and x[0] == 0 and x[1] > 0) or (name in ("log", "arccos") and x[0] == 1):
        return Fraction(0)
    raise ArgumentError(
        f"{name}{tuple(map(str, x))} is not rational, so that this algorithm cannot compute with fractions here; use "
        f"numbers with roots and trigonometric functions, such as mpmath.mpf or numpy.longdouble"
    )


_FIELDS: dict[type, Field] = {}


def field_of(x: Any) -> Field:
    """Return the field of a number of another type than float64."""
    field = _FIELDS.get(type(x))
    if field is None:
        is_interval = type(x).__module__ == "mpmath.ctx_iv"
        field = _FIELDS[type(x)] = (IntervalField if is_interval else Field)(x)
    return field


_FOREIGN: dict[type, bool] = dict.fromkeys(_PLAIN, False)


def is_foreign(x: Any) -> bool:
    """Return whether x is a real number of a type that a float64 does not hold: longdouble, Fraction, Decimal, mpf."""
    kind = type(x)
    foreign = _FOREIGN.get(kind)
    if foreign is None:
        real = isinstance(x, (numbers.Real, Decimal)) and not isinstance(x, (numbers.Integral, float))
        foreign = _FOREIGN[kind] = bool(real)
    return foreign
