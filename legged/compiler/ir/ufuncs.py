"""Two tables: every operation with the rule that makes it, and NumPy's functions of scalars in terms of those."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from legged.compiler.ir import conditions, constant_folding
from legged.compiler.ir.expression import Expression, number, truth
from legged.compiler.ir.operations import OPERATIONS
from legged.errors import TraceError

RULES: dict[str, Callable[..., Any]] = {
    **{name: partial(constant_folding.function, name) for name in OPERATIONS},
    "add": constant_folding.add,
    "subtract": constant_folding.subtract,
    "multiply": constant_folding.multiply,
    "divide": constant_folding.divide,
    "negate": constant_folding.negate,
    "power": constant_folding.power,
    "absolute": constant_folding.absolute,
    **{name: partial(constant_folding.odd, name) for name in ("sin", "tan", "arcsin", "arctan", "sinh", "tanh")},
    **{name: partial(constant_folding.even, name) for name in ("cos", "cosh")},
    **{name: partial(conditions.extreme, name) for name in ("maximum", "minimum")},
    **{name: partial(conditions.compare, name) for name in ("less", "less_equal", "equal", "not_equal")},
    "and": partial(conditions.logical, "and"),
    "or": partial(conditions.logical, "or"),
    "not": conditions.negation,
    "select": conditions.select,
}
"""Every operation -> the function that makes it, simplified."""


def _numeric(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Return the rule for any scalars, turning them into floats and expressions first."""

    def function(*values: Any) -> Any:
        operands = [number(value) for value in values]
        if any(operand is NotImplemented for operand in operands):
            raise TraceError(f"a traced value met {values!r}, which holds something that is not a real number")
        return rule(*operands)

    return function


def _clip(x: Any, low: Any, high: Any) -> Any:
    x = x if low is None else FUNCTIONS["maximum"](x, low)
    return x if high is None else FUNCTIONS["minimum"](x, high)


def _ceil(x: Any) -> Any:
    return constant_folding.negate(constant_folding.floor(constant_folding.negate(x)))


def _truncate(x: Any) -> Any:
    return conditions.select(conditions.compare("less", x, 0.0), _ceil(x), constant_folding.floor(x))


def _copysign(x: Any, y: Any) -> Any:
    size = constant_folding.absolute(x)
    return conditions.select(conditions.compare("less", y, 0.0), constant_folding.negate(size), size)


def _heaviside(x: Any, at_zero: Any) -> Any:
    above = conditions.select(conditions.compare("less", 0.0, x), 1.0, at_zero)
    return conditions.select(conditions.compare("less", x, 0.0), 0.0, above)


_NUMERIC: dict[str, Callable[..., Any]] = {
    "add": constant_folding.add,
    "subtract": constant_folding.subtract,
    "multiply": constant_folding.multiply,
    "divide": constant_folding.divide,
    "power": constant_folding.power,
    "float_power": constant_folding.power,
    "negative": constant_folding.negate,
    "positive": lambda x: x,
    "conjugate": lambda x: x,
    "square": lambda x: constant_folding.multiply(x, x),
    "reciprocal": lambda x: constant_folding.divide(1.0, x),
    "sqrt": constant_folding.sqrt,
    "cbrt": lambda x: _copysign(constant_folding.power(constant_folding.absolute(x), 1.0 / 3.0), x),
    "hypot": lambda x, y: constant_folding.sqrt(
        constant_folding.add(constant_folding.multiply(x, x), constant_folding.multiply(y, y))
    ),
    "absolute": constant_folding.absolute,
    "fabs": constant_folding.absolute,
    "sign": conditions.sign,
    "copysign": _copysign,
    "heaviside": _heaviside,
    "floor": constant_folding.floor,
    "ceil": _ceil,
    "trunc": _truncate,
    "floor_divide": lambda x, y: constant_folding.floor(constant_folding.divide(x, y)),
    "remainder": constant_folding.remainder,
    **{name: RULES[name] for name in ("sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2")},
    **{name: RULES[name] for name in ("sinh", "cosh", "tanh", "exp", "log")},
    "log1p": lambda x: RULES["log"](constant_folding.add(x, 1.0)),
    "expm1": lambda x: constant_folding.add(RULES["exp"](x), -1.0),
    "deg2rad": lambda x: constant_folding.multiply(x, math.pi / 180.0),
    "radians": lambda x: constant_folding.multiply(x, math.pi / 180.0),
    "rad2deg": lambda x: constant_folding.multiply(x, 180.0 / math.pi),
    "degrees": lambda x: constant_folding.multiply(x, 180.0 / math.pi),
    **dict.fromkeys(("maximum", "fmax"), RULES["maximum"]),
    **dict.fromkeys(("minimum", "fmin"), RULES["minimum"]),
    "less": RULES["less"],
    "greater": lambda x, y: conditions.compare("less", y, x),
    "less_equal": RULES["less_equal"],
    "greater_equal": lambda x, y: conditions.compare("less_equal", y, x),
    "equal": RULES["equal"],
    "not_equal": RULES["not_equal"],
}

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: _numeric(rule) for name, rule in _NUMERIC.items()},
    "logical_and": lambda x, y: conditions.logical("and", truth(x), truth(y)),
    "logical_or": lambda x, y: conditions.logical("or", truth(x), truth(y)),
    "logical_not": lambda x: conditions.negation(truth(x)),
    "bitwise_and": lambda x, y: conditions.logical("and", truth(x), truth(y)),
    "bitwise_or": lambda x, y: conditions.logical("or", truth(x), truth(y)),
    "invert": lambda x: conditions.negation(truth(x)),
    "clip": _clip,
}
"""NumPy's name of a ufunc -> the same on any scalars, floats and expressions."""

for _name, _function in FUNCTIONS.items():
    setattr(Expression, _name, _function)  # NumPy calls these on the entries of an object array: np.cos(a) -> x.cos()
