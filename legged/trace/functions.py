"""Two tables: every operation with the rule that makes it, and NumPy's functions of scalars in terms of those."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from legged.errors import TraceError
from legged.trace import choices, rules
from legged.trace.expression import Expression, number, truth
from legged.trace.operations import OPERATIONS

RULES: dict[str, Callable[..., Any]] = {
    **{name: partial(rules.function, name) for name in OPERATIONS},
    "add": rules.add,
    "subtract": rules.subtract,
    "multiply": rules.multiply,
    "divide": rules.divide,
    "negate": rules.negate,
    "power": rules.power,
    "absolute": rules.absolute,
    **{name: partial(rules.odd, name) for name in ("sin", "tan", "arcsin", "arctan", "sinh", "tanh")},
    **{name: partial(rules.even, name) for name in ("cos", "cosh")},
    **{name: partial(choices.extreme, name) for name in ("maximum", "minimum")},
    **{name: partial(choices.compare, name) for name in ("less", "less_equal", "equal", "not_equal")},
    "and": partial(choices.logical, "and"),
    "or": partial(choices.logical, "or"),
    "not": choices.negation,
    "select": choices.select,
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
    return rules.negate(rules.floor(rules.negate(x)))


def _truncate(x: Any) -> Any:
    return choices.select(choices.compare("less", x, 0.0), _ceil(x), rules.floor(x))


def _copysign(x: Any, y: Any) -> Any:
    size = rules.absolute(x)
    return choices.select(choices.compare("less", y, 0.0), rules.negate(size), size)


def _heaviside(x: Any, at_zero: Any) -> Any:
    above = choices.select(choices.compare("less", 0.0, x), 1.0, at_zero)
    return choices.select(choices.compare("less", x, 0.0), 0.0, above)


_NUMERIC: dict[str, Callable[..., Any]] = {
    "add": rules.add,
    "subtract": rules.subtract,
    "multiply": rules.multiply,
    "divide": rules.divide,
    "power": rules.power,
    "float_power": rules.power,
    "negative": rules.negate,
    "positive": lambda x: x,
    "conjugate": lambda x: x,
    "square": lambda x: rules.multiply(x, x),
    "reciprocal": lambda x: rules.divide(1.0, x),
    "sqrt": rules.sqrt,
    "cbrt": lambda x: _copysign(rules.power(rules.absolute(x), 1.0 / 3.0), x),
    "hypot": lambda x, y: rules.sqrt(rules.add(rules.multiply(x, x), rules.multiply(y, y))),
    "absolute": rules.absolute,
    "fabs": rules.absolute,
    "sign": choices.sign,
    "copysign": _copysign,
    "heaviside": _heaviside,
    "floor": rules.floor,
    "ceil": _ceil,
    "trunc": _truncate,
    "floor_divide": lambda x, y: rules.floor(rules.divide(x, y)),
    "remainder": rules.remainder,
    **{name: RULES[name] for name in ("sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2")},
    **{name: RULES[name] for name in ("sinh", "cosh", "tanh", "exp", "log")},
    "log1p": lambda x: RULES["log"](rules.add(x, 1.0)),
    "expm1": lambda x: rules.add(RULES["exp"](x), -1.0),
    "deg2rad": lambda x: rules.multiply(x, math.pi / 180.0),
    "radians": lambda x: rules.multiply(x, math.pi / 180.0),
    "rad2deg": lambda x: rules.multiply(x, 180.0 / math.pi),
    "degrees": lambda x: rules.multiply(x, 180.0 / math.pi),
    **dict.fromkeys(("maximum", "fmax"), RULES["maximum"]),
    **dict.fromkeys(("minimum", "fmin"), RULES["minimum"]),
    "less": RULES["less"],
    "greater": lambda x, y: choices.compare("less", y, x),
    "less_equal": RULES["less_equal"],
    "greater_equal": lambda x, y: choices.compare("less_equal", y, x),
    "equal": RULES["equal"],
    "not_equal": RULES["not_equal"],
}

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: _numeric(rule) for name, rule in _NUMERIC.items()},
    "logical_and": lambda x, y: choices.logical("and", truth(x), truth(y)),
    "logical_or": lambda x, y: choices.logical("or", truth(x), truth(y)),
    "logical_not": lambda x: choices.negation(truth(x)),
    "bitwise_and": lambda x, y: choices.logical("and", truth(x), truth(y)),
    "bitwise_or": lambda x, y: choices.logical("or", truth(x), truth(y)),
    "invert": lambda x: choices.negation(truth(x)),
    "clip": _clip,
}
"""NumPy's name of a ufunc -> the same on any scalars, floats and expressions."""

for _name, _function in FUNCTIONS.items():
    setattr(Expression, _name, _function)  # NumPy calls these on the entries of an object array: np.cos(a) -> x.cos()
