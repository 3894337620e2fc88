"""Functions of NumPy whose own code cannot be traced, over operations that can, and advice for the others.

Each replaces a function of NumPy for traced arguments and takes the same arguments, so far as its signature has them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from legged.compiler.ir.expression import Expression
from legged.compiler.ir.numpy_functions import ADVICE, ARRAY_FUNCTIONS, traced_array, where
from legged.errors import TraceError

Array = Any  # an ExpressionArray


def implements(*functions: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that registers a function as the traced version of functions of NumPy."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        ARRAY_FUNCTIONS.update(dict.fromkeys(functions, function))
        return function

    return register


@implements(np.round, np.around)
def _round(a: Any, decimals: int = 0) -> Array:
    scale = 10.0 ** abs(decimals)
    a = traced_array(a)
    if decimals == 0:
        return np.rint(a)
    return np.rint(a * scale) / scale if decimals > 0 else np.rint(a / scale) * scale


@implements(np.select)
def _select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0.0) -> Array:
    return _first_that_holds(condlist, choicelist, default)


def _first_that_holds(conditions: Sequence[Any], choices: Sequence[Any], default: Any) -> Array:
    if len(conditions) != len(choices):
        raise ValueError(f"there are {len(conditions)} conditions for {len(choices)} choices")
    result = default
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        result = where(condition, choice, result)
    return result


@implements(np.piecewise)
def _piecewise(x: Any, condlist: Any, funclist: Sequence[Any]) -> Array:
    x = traced_array(x)
    conditions = list(condlist) if isinstance(condlist, list | tuple) or np.ndim(condlist) > np.ndim(x) else [condlist]
    values = [function(x) if callable(function) else function for function in funclist]
    default = values.pop() if len(values) == len(conditions) + 1 else 0.0
    return _first_that_holds(conditions[::-1], values[::-1], default) + 0.0 * x  # of several, the last that holds


@implements(np.interp)
def _interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Array:
    if period is not None:
        raise TraceError("np.interp with a period cannot be traced; pass x % period, and points of a whole period")
    x, xp, fp = (traced_array(a) for a in (x, xp, fp))
    left, right = (fp[0] if left is None else left), (fp[-1] if right is None else right)
    pieces = [(b - a) / (t - s) * (x - s) + a for s, t, a, b in zip(xp, xp[1:], fp, fp[1:], strict=False)]
    value = pieces[-1] if pieces else fp[0] + 0.0 * x
    for end, piece in zip(reversed(xp[1:-1]), reversed(pieces[:-1]), strict=True):
        value = where(x < end, piece, value)
    value = where(x >= xp[-1], where(x > xp[-1], right, fp[-1]), value)
    return where(x < xp[0], left, value)


@implements(np.linspace)
def _linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True) -> Array:
    start, stop = traced_array(start), traced_array(stop)
    steps = np.arange(num, dtype=float) / max(num - 1 if endpoint else num, 1)
    whole = stop - start
    if not num:
        return np.zeros((0, *np.shape(whole)))
    values = [start + s * whole for s in steps]
    return np.stack([*values[:-1], np.broadcast_to(stop * 1.0, np.shape(whole))] if endpoint and num > 1 else values)


@implements(np.nan_to_num)
def _nan_to_num(x: Any, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Array:
    x, most = traced_array(x), float(np.finfo(float).max)
    bounded = where(x > most, most if posinf is None else posinf, x)
    return where(np.isnan(x), nan, where(x < -most, -most if neginf is None else neginf, bounded))


@implements(np.count_nonzero)
def _count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Array:
    return np.sum(where(traced_array(a) != 0.0, 1.0, 0.0), axis=axis, keepdims=keepdims)


@implements(np.searchsorted)
def _searchsorted(a: Any, v: Any, side: str = "left") -> Array:
    bins, v = traced_array(a), traced_array(v)
    return sum((where(b < v if side == "left" else b <= v, 1.0, 0.0) for b in bins), start=0.0 * v)


@implements(np.digitize)
def _digitize(x: Any, bins: Any, right: bool = False) -> Array:
    bins, x = traced_array(bins), traced_array(x)
    if not any(isinstance(b, Expression) for b in bins) and (np.diff(bins.astype(float)) < 0.0).any():
        return sum((where(x < b if not right else x <= b, 1.0, 0.0) for b in bins), start=0.0 * x)
    return _searchsorted(bins, x, "left" if right else "right")


# Sorting by exchanges of neighbors


@implements(np.sort)
def _sort(a: Any, axis: Any = -1) -> Array:
    a = np.ravel(traced_array(a)) if axis is None else np.moveaxis(traced_array(a), axis, 0)
    rows = list(a)
    for end in range(len(rows) - 1, 0, -1):
        for k in range(end):
            rows[k], rows[k + 1] = np.minimum(rows[k], rows[k + 1]), np.maximum(rows[k], rows[k + 1])
    return np.stack(rows) if axis is None else np.moveaxis(np.stack(rows), 0, axis)


@implements(np.median)
def _median(a: Any, axis: Any = None) -> Array:
    return _quantile(a, 0.5, axis)


@implements(np.percentile)
def _percentile(a: Any, q: Any, axis: Any = None) -> Array:
    return _quantile(a, np.asarray(q, dtype=float) / 100.0, axis)


@implements(np.quantile)
def _quantile(a: Any, q: Any, axis: Any = None) -> Array:
    if isinstance(axis, tuple):
        raise TypeError("axis must be an integer or None; reshape the array")
    rows = _sort(a, axis)
    rows = rows if axis is None else np.moveaxis(rows, axis, 0)
    values = []
    for at in np.ravel(np.asarray(q, dtype=float)) * (len(rows) - 1):
        k = min(int(at), max(len(rows) - 2, 0))
        values.append(rows[k] if k == at else rows[k] + (at - k) * (rows[k + 1] - rows[k]))
    return values[0] if np.ndim(q) == 0 else np.stack(values).reshape(np.shape(q) + np.shape(values[0]))


# Sums without NaN


def _without_nan(reduction: Callable[..., Any], neutral: float) -> Callable[..., Any]:
    def reduced(a: Any, axis: Any = None, **options: Any) -> Array:
        a = traced_array(a)
        return reduction(where(np.isnan(a), neutral, a), axis=axis, **options)

    return reduced


_nansum = _without_nan(np.sum, 0.0)
for _function, _reduction, _neutral in (
    (np.nansum, np.sum, 0.0),
    (np.nanprod, np.prod, 1.0),
    (np.nancumsum, np.cumsum, 0.0),
    (np.nancumprod, np.cumprod, 1.0),
):
    ARRAY_FUNCTIONS[_function] = _without_nan(_reduction, _neutral)


@implements(np.nanmax)
def _nanmax(a: Any, axis: Any = None, *, keepdims: bool = False) -> Array:
    return np.fmax.reduce(traced_array(a), axis=axis, keepdims=keepdims)


@implements(np.nanmin)
def _nanmin(a: Any, axis: Any = None, *, keepdims: bool = False) -> Array:
    return np.fmin.reduce(traced_array(a), axis=axis, keepdims=keepdims)


@implements(np.nanmean)
def _nanmean(a: Any, axis: Any = None, *, keepdims: bool = False) -> Array:
    count = np.sum(where(np.isnan(traced_array(a)), 0.0, 1.0), axis=axis, keepdims=keepdims)
    return _nansum(a, axis, keepdims=keepdims) / count


@implements(np.nanvar)
def _nanvar(a: Any, axis: Any = None, *, ddof: float = 0.0, keepdims: bool = False) -> Array:
    a = traced_array(a)
    count = np.sum(where(np.isnan(a), 0.0, 1.0), axis=axis, keepdims=keepdims)
    errors = a - _nanmean(a, axis, keepdims=True)
    return _nansum(errors * errors, axis, keepdims=keepdims) / (count - ddof)


@implements(np.nanstd)
def _nanstd(a: Any, axis: Any = None, *, ddof: float = 0.0, keepdims: bool = False) -> Array:
    return np.sqrt(_nanvar(a, axis, ddof=ddof, keepdims=keepdims))


_WHERE = "select values with legged.where(condition, a, b)"
_INDEX = f"its result would be an index that is not known yet; {_WHERE}, or use np.max, np.min or np.sort"
ADVICE.update(
    {
        **dict.fromkeys(
            (np.argmax, np.argmin, np.argsort, np.argpartition, np.nanargmax, np.nanargmin, np.lexsort), _INDEX
        ),
        **dict.fromkeys(
            (np.nonzero, np.flatnonzero, np.argwhere, np.extract, np.compress, np.unique, np.isin, np.trim_zeros),
            f"the shape of its result depends on values; {_WHERE}, or sum with np.count_nonzero",
        ),
        **dict.fromkeys((np.choose, np.unwrap, np.place, np.putmask, np.copyto), _WHERE),
        **dict.fromkeys((np.histogram, np.histogram2d, np.histogramdd, np.bincount), "use np.digitize"),
        **dict.fromkeys((np.array_equal, np.array_equiv), "use np.all(a == b)"),
        np.allclose: "use np.all(np.isclose(a, b))",
        np.where: "it takes three arguments; with one of them its shape depends on values",
        **dict.fromkeys((np.quantile, np.percentile), "q must consist of plain numbers"),
        **dict.fromkeys((np.i0, np.linalg.qr), "write its formula with elementary functions"),
        **dict.fromkeys((np.partition, np.nanmedian, np.nanquantile, np.nanpercentile), "use np.sort or np.median"),
        **dict.fromkeys((np.logspace, np.geomspace), "use 10.0 ** np.linspace(start, stop, num)"),
        **dict.fromkeys((np.polymul, np.polydiv, np.poly), "multiply polynomials with np.convolve"),
        np.gradient: "use np.diff over the distances",
        np.roll: "the number of places must be a plain integer",
    }
)
