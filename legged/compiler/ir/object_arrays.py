"""Arrays of expressions, and what NumPy's functions do with them.

NumPy's own object arrays add and multiply expressions, but cannot compare them or take a maximum, and trip over
plain numbers between them (`np.cos` of an array that holds 0.0). `ExpressionArray` can: the arguments of a traced
function are such arrays, and so is everything computed from them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from legged.compiler.ir.conditions import select
from legged.compiler.ir.expression import Expression, number, truth
from legged.compiler.ir.ufuncs import FUNCTIONS
from legged.errors import TraceError

_NATIVE = frozenset({"add", "subtract", "multiply", "negative", "positive", "matmul", "square", "vecdot", "matvec"})
"""Ufuncs whose loop over objects in NumPy does the right thing."""


class ExpressionArray(np.ndarray):
    """A NumPy array of expressions and plain numbers."""

    __array_priority__ = 10.0  # type: ignore[assignment]  # NumPy reads a number

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return apply(ufunc, method, inputs, options)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return call(func, args, kwargs)


def apply(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Return what a ufunc (or its reduce, accumulate, outer) makes of expressions and arrays of them."""
    name = ufunc.__name__
    if name not in FUNCTIONS and name not in _NATIVE:
        raise TraceError(f"np.{name} cannot be traced; these can: {', '.join(sorted(FUNCTIONS))}")
    if method == "__call__" and not options and not any(isinstance(x, np.ndarray | list | tuple) for x in inputs):
        return FUNCTIONS[name](*inputs)
    if name in _NATIVE:
        function = ufunc
    else:
        function = np.frompyfunc(FUNCTIONS[name], ufunc.nin, 1)
        options.pop("dtype", None)
    out = options.pop("out", None)
    if out is not None:
        options["out"] = tuple(_bare(x) for x in out)
    result = getattr(function, method)(*[_bare(x) for x in inputs], **options)
    if out is not None:
        return out[0]
    return result.view(ExpressionArray) if isinstance(result, np.ndarray) and result.dtype == object else result


def _bare(value: Any) -> Any:
    """Return the value with expressions and their arrays turned into NumPy's own object arrays."""
    if isinstance(value, ExpressionArray):
        return value.view(np.ndarray)
    if isinstance(value, Expression):
        boxed = np.empty((), dtype=object)
        boxed[()] = value
        return boxed
    return value


def call(function: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Return what a NumPy function such as np.concatenate or np.where makes of expressions."""
    if function is np.where and len(arguments) == 3:
        return where_arrays(*arguments)
    result = np.ndarray.__array_function__(
        np.empty(0).view(ExpressionArray),
        function,
        (ExpressionArray,),
        tuple(_boxed(x) for x in arguments),
        {name: _boxed(x) for name, x in options.items()},
    )
    if isinstance(result, np.ndarray) and result.dtype == object:
        return result.item() if result.ndim == 0 else result.view(ExpressionArray)
    return result


def _boxed(value: Any) -> Any:
    """Return the value with every expression in it, however deep in lists, as an array of no dimensions."""
    if isinstance(value, Expression):
        return _bare(value).view(ExpressionArray)
    if isinstance(value, list | tuple):
        return type(value)([_boxed(x) for x in value])
    return value


def _choose(condition: Any, a: Any, b: Any) -> Any:
    return select(truth(condition), number(a), number(b))


_choose_entries = np.frompyfunc(_choose, 3, 1)


def where_arrays(condition: Any, a: Any, b: Any) -> Any:
    """Return a where the condition holds and b elsewhere, entry by entry, some of them expressions."""
    result = _choose_entries(_bare(condition), _bare(a), _bare(b))
    return result.view(ExpressionArray) if isinstance(result, np.ndarray) else result
