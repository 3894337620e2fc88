"""Comparisons, conditions and choices, simplified as they are made, as `rules` does with arithmetic."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from legged.compiler.ir.constant_folding import Number, function, in_order

Truth: TypeAlias = Any  # Condition | np.bool_; Python's own bool will not do: ~True is -2


def compare(operation: str, a: Number, b: Number) -> Truth:
    """Return the truth of a < b, a <= b, a == b or a != b (`less`, `less_equal`, `equal`, `not_equal`)."""
    if a is b:
        return np.bool_(operation in ("less_equal", "equal"))
    if not isinstance(a, float) and not isinstance(b, float):
        if operation in ("equal", "not_equal") and a.index > b.index:
            a, b = b, a
        if a.operation == b.operation == "negate":
            a, b = b.arguments[0], a.arguments[0]
    result = function(operation, a, b)
    return np.bool_(result) if isinstance(result, bool) else result


def logical(operation: str, a: Truth, b: Truth) -> Truth:
    """Return the truth of (a and b) or (a or b)."""
    if isinstance(b, np.bool_):
        a, b = b, a
    if isinstance(a, np.bool_):
        return a if a == (operation == "or") else b
    return a if a is b else in_order(operation, a, b)


def negation(a: Truth) -> Truth:
    """Return the truth of (not a)."""
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
    return function("select", condition, a, b)


def sign(x: Number) -> Number:
    """Return -1, 0 or 1, and x itself where it is zero or NaN."""
    return select(compare("less", 0.0, x), 1.0, select(compare("less", x, 0.0), -1.0, x))


def extreme(operation: str, a: Number, b: Number) -> Number:
    """Return max(a, b) or min(a, b): f(a, b) = f(b, a) and f(a, a) = a."""
    if a is b:
        return a
    if isinstance(a, float) or (not isinstance(b, float) and a.index > b.index):
        a, b = b, a
    return function(operation, a, b)
