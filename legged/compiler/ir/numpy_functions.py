"""NumPy functions of expressions: ufuncs, `ExpressionArray`, and `where`, the branch that can be traced.

NumPy's own object arrays add and multiply expressions, but they can neither compare them nor take a maximum, and fail
where plain numbers stand between them (`np.cos` of an array that holds 0.0). `ExpressionArray` can: the arguments of a
traced function are such arrays, and so is everything computed from them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from legged.arguments import shown
from legged.compiler.ir import constant_folding as fold
from legged.compiler.ir.constant_folding import CONSTRUCTORS
from legged.compiler.ir.expression import Expression, as_operand, as_truth
from legged.compiler.ir.operations import Matrix
from legged.errors import ArgumentError, LeggedError, TraceError

# The scalar function of each ufunc


def _on_operands(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of floats and expressions as one of any real scalars."""

    def converted(*values: Any) -> Any:
        operands = [as_operand(value) for value in values]
        for operand in operands:
            if operand is NotImplemented:
                raise TraceError(f"a traced value met {values!r}, which holds something that is not a real number")
        return function(*operands)

    return converted


def _clip(x: Any, low: Any, high: Any) -> Any:
    x = x if low is None else UFUNCS["maximum"](x, low)
    return x if high is None else UFUNCS["minimum"](x, high)


def _isnan(x: Any) -> Any:
    return fold.logical_not(fold.compare("less_equal", fold.absolute(x), math.inf))


def _ignoring_nan(name: str) -> Callable[[Any, Any], Any]:
    extremum = CONSTRUCTORS[name]
    return lambda x, y: fold.select(_isnan(x), y, fold.select(_isnan(y), x, extremum(x, y)))


def _logaddexp(x: Any, y: Any) -> Any:
    size = fold.absolute(fold.subtract(x, y))
    value = fold.add(CONSTRUCTORS["maximum"](x, y), CONSTRUCTORS["log1p"](CONSTRUCTORS["exp"](fold.negate(size))))
    return fold.select(fold.compare("equal", x, y), fold.add(x, math.log(2.0)), value)


def _modf(x: Any) -> Any:
    whole = fold.trunc(x)
    is_infinite = fold.compare("equal", fold.absolute(x), math.inf)
    return fold.copysign(fold.select(is_infinite, 0.0, fold.subtract(x, whole)), x), whole


def _exclusive_or(x: Any, y: Any) -> Any:
    x, y = as_truth(x), as_truth(y)
    return fold.logical("or", fold.logical("and", x, ~y), fold.logical("and", ~x, y))


def _heaviside(x: Any, at_zero: Any) -> Any:
    above = fold.select(fold.compare("less", 0.0, x), 1.0, fold.select(fold.compare("equal", x, 0.0), at_zero, x))
    return fold.select(fold.compare("less", x, 0.0), 0.0, above)


_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": fold.add,
    "subtract": fold.subtract,
    "multiply": fold.multiply,
    "divide": fold.divide,
    "power": fold.power,
    "float_power": fold.power,
    "negative": fold.negate,
    "positive": lambda x: x,
    "conjugate": lambda x: x,
    "square": lambda x: fold.multiply(x, x),
    "reciprocal": lambda x: fold.divide(1.0, x),
    "sqrt": fold.sqrt,
    "absolute": fold.absolute,
    "fabs": fold.absolute,
    "sign": fold.sign,
    "copysign": fold.copysign,
    "signbit": fold.signbit,
    "isnan": _isnan,
    "isfinite": lambda x: fold.compare("less", fold.absolute(x), math.inf),
    "isinf": lambda x: fold.compare("equal", fold.absolute(x), math.inf),
    "heaviside": _heaviside,
    "floor": fold.floor,
    "ceil": fold.ceil,
    "trunc": fold.trunc,
    "floor_divide": fold.floor_divide,
    "remainder": fold.remainder,
    "divmod": lambda x, y: (fold.floor_divide(x, y), fold.remainder(x, y)),
    "modf": _modf,
    **{name: CONSTRUCTORS[name] for name in ("sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2")},
    **{name: CONSTRUCTORS[name] for name in ("sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh")},
    **{name: CONSTRUCTORS[name] for name in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p")},
    **{name: CONSTRUCTORS[name] for name in ("cbrt", "hypot", "fmod", "rint")},
    "logaddexp": _logaddexp,
    "deg2rad": lambda x: fold.multiply(x, math.pi / 180.0),
    "radians": lambda x: fold.multiply(x, math.pi / 180.0),
    "rad2deg": lambda x: fold.multiply(x, 180.0 / math.pi),
    "degrees": lambda x: fold.multiply(x, 180.0 / math.pi),
    **{name: CONSTRUCTORS[name] for name in ("maximum", "minimum")},
    "fmax": _ignoring_nan("maximum"),
    "fmin": _ignoring_nan("minimum"),
    **{name: CONSTRUCTORS[name] for name in ("less", "less_equal", "equal", "not_equal")},
    "greater": lambda x, y: fold.compare("less", y, x),
    "greater_equal": lambda x, y: fold.compare("less_equal", y, x),
}

UFUNCS: dict[str, Callable[..., Any]] = {
    **{name: _on_operands(function) for name, function in _ARITHMETIC.items()},
    "logical_and": lambda x, y: fold.logical("and", as_truth(x), as_truth(y)),
    "logical_or": lambda x, y: fold.logical("or", as_truth(x), as_truth(y)),
    "logical_not": lambda x: fold.logical_not(as_truth(x)),
    "bitwise_and": lambda x, y: fold.logical("and", as_truth(x), as_truth(y)),
    "bitwise_or": lambda x, y: fold.logical("or", as_truth(x), as_truth(y)),
    **dict.fromkeys(("logical_xor", "bitwise_xor"), _exclusive_or),
    "invert": lambda x: fold.logical_not(as_truth(x)),
    "clip": _clip,
}
"""NumPy's name of a ufunc -> the same function of floats and expressions."""

_OBJECT_LOOPS = frozenset([np.add, np.subtract, np.multiply, np.negative, np.positive, np.matmul, np.square])
_OBJECT_LOOP_NAMES = frozenset([*(ufunc.__name__ for ufunc in _OBJECT_LOOPS), "vecdot", "matvec", "vecmat"])
"""Ufuncs whose loop over objects in NumPy gives the right result; the last three exist from NumPy 2.2 on."""
_REORDERABLE = frozenset(["maximum", "minimum", "fmax", "fmin", "logical_and", "logical_or", "hypot", "logaddexp"])
"""Other ufuncs that reduce several axes at once."""


# Arrays


class ExpressionArray(np.ndarray):
    """A NumPy array of expressions and plain numbers."""

    __array_priority__ = 10.0  # type: ignore[assignment]  # NumPy reads a number

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return _apply(ufunc, method, inputs, options)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _call(func, args, kwargs)

    def round(self, decimals: int = 0, out: Any = None) -> Any:
        """Return the entries rounded to a number of decimals, halves to the even neighbor."""
        return np.round(self, decimals)

    def tobytes(self, *arguments: Any) -> bytes:
        """Raise a TraceError: the bytes would be addresses."""
        raise TraceError("the bytes of a traced array are not known yet; leave out tobytes")

    def sort(self, axis: int = -1, **options: Any) -> None:
        """Sort the entries along an axis, in place."""
        self[...] = np.sort(self, axis)


def _apply(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Return the result of a ufunc, or of its reduce, accumulate or outer, on expressions and arrays of them."""
    if not options and ufunc in _OBJECT_LOOPS and method == "__call__":  # most calls
        plain = np.ndarray
        if ufunc is np.matmul and (product := _matrix_product(*inputs)) is not None:
            return product
        result = ufunc(*[x.view(plain) if type(x) is ExpressionArray else _as_object_array(x) for x in inputs])
        return result.view(ExpressionArray) if type(result) is plain and result.dtype.hasobject else result
    is_masked = isinstance(options.get("where"), Expression | ExpressionArray)
    if is_masked or ("where" in options and method == "reduce" and ufunc.identity is not None):
        return _masked(ufunc, method, inputs, options)
    name = ufunc.__name__
    if ufunc.identity is None and ufunc.types == ["O" * ufunc.nin + "->" + "O" * ufunc.nout]:  # of np.frompyfunc
        return getattr(ufunc, method)(*[_as_object_array(x) for x in inputs], **options)
    if name not in UFUNCS and name not in _OBJECT_LOOP_NAMES:
        raise TraceError(f"np.{name} cannot be traced; these can: {', '.join(sorted(UFUNCS))}")
    if method == "at":
        raise TraceError(f"np.{name}.at cannot be traced; add up the entries of each place, and use np.stack")
    is_scalar = not any(isinstance(x, np.ndarray | list | tuple) for x in inputs)
    if method == "__call__" and not options and is_scalar and name in UFUNCS:
        return UFUNCS[name](*inputs)
    if name in _OBJECT_LOOP_NAMES:
        function = ufunc
    else:
        identity = {"identity": ufunc.identity} if name in _REORDERABLE else {}
        function = np.frompyfunc(UFUNCS[name], ufunc.nin, ufunc.nout, **identity)
        options.pop("dtype", None)
    out = options.pop("out", None)
    if out is not None:
        options["out"] = tuple(_as_object_array(x) for x in out)
    result = getattr(function, method)(*[_as_object_array(x) for x in inputs], **options)
    if out is not None:
        return out[0]
    if isinstance(result, tuple):
        return tuple([x.view(ExpressionArray) if isinstance(x, np.ndarray) else x for x in result])
    return result.view(ExpressionArray) if isinstance(result, np.ndarray) and result.dtype == object else result


def _masked(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Return the result of a ufunc, or of its reduce, at the entries of a mask, which is the option `where`."""
    mask, name = options.pop("where"), ufunc.__name__
    if method == "__call__" and "out" in options:
        (out,) = options.pop("out")
        out[...] = _where_arrays(mask, _apply(ufunc, method, inputs, options), out)
        return out
    neutral = ufunc.identity if ufunc.identity is not None or name not in _REORDERABLE else options.get("initial")
    if method == "reduce" and neutral is not None:
        return _apply(ufunc, method, (_where_arrays(mask, inputs[0], neutral),), options)
    missing = "initial, the result without entries" if method == "reduce" else "out, which holds the other entries"
    raise TraceError(f"np.{name} with a mask `where` needs {missing}; or select values with legged.where")


_LARGE_MATRIX, _DENSE = 512, 0.9
"""Entries of a constant matrix, and the share of them that is not zero, from which on a product is one operation."""


def _matrix_product(a: Any, b: Any) -> Any:
    """Return a @ b if one is a large dense matrix of constants and the other is traced, else None."""
    for weights, vectors, is_first in ((a, b, True), (b, a, False)):
        if (
            type(weights) is np.ndarray
            and weights.size >= _LARGE_MATRIX
            and weights.ndim == 2
            and weights.dtype.kind == "f"
            and np.count_nonzero(weights) >= _DENSE * weights.size
            and isinstance(vectors, ExpressionArray)
            and vectors.ndim in (1, 2)
        ):
            matrix = weights if is_first else weights.T
            columns = vectors if is_first or vectors.ndim == 1 else vectors.T
            operands: Any = np.frompyfunc(as_operand, 1, 1)(columns.view(np.ndarray))
            if len(columns) != matrix.shape[1] or NotImplemented in operands.ravel().tolist():
                return None  # NumPy raises an error
            multiply = Matrix(matrix).product
            if columns.ndim == 1:
                return _entries(multiply(operands, fold.operation))
            products = np.stack([_entries(multiply(column, fold.operation)) for column in operands.T], axis=-1)
            return products if is_first else products.T
    return None


def _entries(values: list[Any]) -> ExpressionArray:
    entries = np.empty(len(values), dtype=object)
    entries[:] = values
    return entries.view(ExpressionArray)


def _as_object_array(value: Any) -> Any:
    """Return the value with an expression or an array of expressions as a plain object array."""
    if isinstance(value, ExpressionArray):
        return value.view(np.ndarray)
    if isinstance(value, Expression):
        array = np.empty((), dtype=object)
        array[()] = value
        return array
    return value


def _call(function: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Return the result of a NumPy function such as np.concatenate or np.where on expressions."""
    if function is np.where and len(arguments) == 3:
        return _where_arrays(*arguments)
    try:
        if function is np.dot and not options and (product := _matrix_product(*arguments)) is not None:
            return product
        if function in ARRAY_FUNCTIONS:
            return ARRAY_FUNCTIONS[function](*arguments, **options)
        result = np.ndarray.__array_function__(
            _ANY_ARRAY,
            function,
            (ExpressionArray,),
            tuple(_in_arrays(x) for x in arguments),
            {name: _in_arrays(x) for name, x in options.items()},
        )
    except Exception as error:
        if function not in ADVICE and not isinstance(error, TypeError | AttributeError | BufferError):
            raise
        is_linear_algebra = function.__module__ == "numpy.linalg"
        name = f"np.{'linalg.' if is_linear_algebra else ''}{function.__name__}"
        advice = "of np.linalg only norms and products can be traced; write the elimination out entry by entry"
        if function in ADVICE or not is_linear_algebra:
            advice = ADVICE.get(function, f"NumPy says: {error}; compute it entry by entry")
        raise TraceError(f"{name} cannot be traced with these arguments: {advice}") from error
    if isinstance(result, np.ndarray) and result.dtype == object:
        return result.item() if result.ndim == 0 else result.view(ExpressionArray)
    return result


ARRAY_FUNCTIONS: dict[Any, Callable[..., Any]] = {}
"""Functions of NumPy whose own code cannot be traced -> their traced versions; `array_functions` adds them."""
ADVICE: dict[Any, str] = {}
"""Functions of NumPy that cannot be traced -> what to do instead; `array_functions` adds them."""


def traced_array(x: Any) -> Any:
    """Return numbers, expressions, and arrays and lists of them as an `ExpressionArray`."""
    entries = np.asarray(_as_object_array(_in_arrays(x)))
    return entries.astype(object).view(ExpressionArray)


_ANY_ARRAY = np.empty(0).view(ExpressionArray)
"""An array whose methods `_call` uses."""


def _in_arrays(value: Any) -> Any:
    """Return the value with each expression in it, also inside nested lists, as a zero-dimensional array."""
    if isinstance(value, Expression):
        return _as_object_array(value).view(ExpressionArray)
    if isinstance(value, list | tuple):
        return type(value)([_in_arrays(x) for x in value])
    return value


# The branch


def where(condition: Any, a: Any, b: Any) -> Any:
    """Return `a` where the condition holds and `b` elsewhere, as np.where does, on numbers and on traced values.

    Both sides are always computed: guard divisions and roots inside them.

    Args:
        condition: A truth value, or an array of truth values of any shape; combine several with &, | and ~.
        a: Number or array; the three broadcast.
        b: Number or array of the same unit.

    Returns:
        An array of the broadcast shape, or a scalar if all three are scalars. An element type with a method
        `__where__(condition, a, b)`, such as `legged.taylor.Taylor`, computes the result itself.
    """
    if _is_plain(a) and _is_plain(b) and _is_plain(condition):
        try:
            result = np.where(condition, a, b)
        except ValueError as error:
            raise ArgumentError(f"a and b of `where` must be numbers or arrays of one shape: {error}") from None
        return result if result.ndim else result[()]
    for x in (a, b, condition):
        choose = getattr(type(x), "__where__", None)
        if choose is not None:
            return choose(condition, a, b)
    if isinstance(condition, int):
        condition = as_truth(condition)
    try:
        if any(isinstance(x, Expression) or np.asarray(x).dtype == object for x in (condition, a, b)):
            return _where_arrays(condition, a, b)
        result = np.where(condition, a, b)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, LeggedError):
            raise
        raise ArgumentError(f"a and b of `where` must be numbers or arrays of one shape: {error}") from None
    if result.dtype.kind not in "biufc":
        raise ArgumentError(f"a and b of `where` must be numbers, got {shown(a)} and {shown(b)}")
    return result if result.ndim else result[()]


def _is_plain(x: Any) -> bool:
    """Return whether x is a number or an array of numbers of NumPy, which the fast path of `where` takes."""
    kind = type(x)
    return kind in _NUMBERS or (kind is np.ndarray and x.dtype.kind in "fb")


_NUMBERS = frozenset((float, np.float64, np.bool_))


def _select_entry(condition: Any, a: Any, b: Any) -> Any:
    for x in (a, b, condition):
        choose = getattr(type(x), "__where__", None)
        if choose is not None:
            return choose(condition, a, b)
    return fold.select(as_truth(condition), as_operand(a), as_operand(b))


_select_entries = np.frompyfunc(_select_entry, 3, 1)


def _where_arrays(condition: Any, a: Any, b: Any) -> Any:
    """Return a where the condition holds and b elsewhere, for arrays some of which hold expressions."""
    result = _select_entries(_as_object_array(condition), _as_object_array(a), _as_object_array(b))
    return result.view(ExpressionArray) if isinstance(result, np.ndarray) else result


def _array_ufunc(self: Expression, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
    return _apply(ufunc, method, inputs, options)


def _array_function(self: Expression, function: Any, types: Any, arguments: Any, options: Any) -> Any:
    return _call(function, arguments, options)


# NumPy looks up these attributes: two for functions of an expression, the others, np.cos(array) -> entry.cos(), for
# the entries of an object array. They are set here, so that `expression` need not import this module.
for _name, _function in {"__array_ufunc__": _array_ufunc, "__array_function__": _array_function, **UFUNCS}.items():
    setattr(Expression, _name, _function)
