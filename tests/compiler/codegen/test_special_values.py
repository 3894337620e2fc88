"""Functions of NumPy at special values: plain, traced, in machine code for one state and for many, and in C."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from typing import Any

import numpy as np
import pytest

from legged.compiler import compile, where
from legged.compiler.ir.graph import record
from legged.compiler.ir.numpy_functions import UFUNCS

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
Array = np.ndarray

VALUES = np.array(
    [
        *(0.0, 0.1, 0.25, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 2.5),
        *(3.0, 3.5, 4.5, 7.0, 8.0, 10.0, 1e3, 1e5 + 0.5, 1e-3, 1e-10),
        *(2.0**23 - 0.5, 2.0**24, 2.0**52 - 0.5, 2.0**53, 1e15 + 0.3, 1e20, 1e-20, np.pi, np.pi / 2, np.e, np.inf),
    ]
)
LARGE = {"float64": [1e300, 1.7e308, 1e-300, 5e-324, 3e-310], "float32": [1e30, 3.4e38, 1e-30, 1e-45, 3e-40]}
"""Numbers near the ends of the range of each type, the last two subnormal."""
CONSTANTS = (0.1, -0.1, 0.3, 1.0, -2.5, 3.0, 1e10)

NAMES = sorted(set(UFUNCS) - {"clip", "conjugate"})
EXACT = frozenset(
    {
        *("negative", "positive", "absolute", "fabs", "sign", "copysign", "floor", "ceil"),
        *("trunc", "rint", "remainder", "fmod", "maximum", "minimum", "fmax", "fmin", "sqrt"),
        *("square", "add", "subtract", "multiply", "isnan", "isinf", "isfinite", "signbit"),
        *("heaviside", "less", "less_equal", "equal", "not_equal", "greater", "greater_equal"),
        *("logical_and", "logical_or", "logical_not", "logical_xor"),
    }
)
"""Functions whose results are rounded once; the others may differ by a few units in the last place."""
SIGNED_ZERO = frozenset(
    {
        *("copysign", "floor", "ceil", "trunc", "rint", "remainder", "fmod", "floor_divide"),
        *("sqrt", "arctan", "arctan2", "sin", "arcsin", "tan", "sinh", "tanh", "arcsinh"),
        *("arctanh", "cbrt", "log1p", "expm1", "signbit", "fabs", "absolute", "reciprocal"),
        *("multiply", "modf", "divide"),
    }
)
"""Functions whose zeros have a sign; the sign of a zero difference or extremum is not specified."""
TRUTH = frozenset(
    {
        *("logical_and", "logical_or", "logical_not", "logical_xor", "invert", "bitwise_and"),
        *("bitwise_or", "bitwise_xor"),
    }
)


def arguments(name: str, dtype: str) -> list[Array]:
    """Return all pairs of special values, or all of them, as columns."""
    values = np.concatenate([VALUES, LARGE[dtype]]).astype(dtype)
    values = np.concatenate([values, -values, [np.nan]]).astype(dtype)
    if name in TRUTH:
        values = np.array([0.0, -0.0, 1.0, -2.0], dtype)
    if getattr(np, name).nin == 1:
        return [values]
    return [column.ravel() for column in np.meshgrid(values, values)]


def function_of(name: str) -> Any:
    """Return the ufunc, on truth values where it needs them."""
    ufunc = getattr(np, name)
    if name in ("invert", "bitwise_and", "bitwise_or", "bitwise_xor"):
        return lambda *x: ufunc(*[a != 0.0 for a in x])
    return ufunc


def coded(y: Any) -> list[Any]:
    """Return finite numbers for a result that may be infinite or NaN: the number or 0, and a code of what it is."""
    finite = np.isfinite(y)
    return [where(finite, y, 0.0), where(np.isnan(y), 2.0, where(finite, 0.0, where(y < 0.0, -1.0, 1.0)))]


def on_entries(function: Any, count: int) -> Any:
    """Return a function that computes the coded results of each of several numbers."""

    def one(x0: Any) -> Any:
        return parts(function(x0))

    def two(x0: Any, x1: Any) -> Any:
        return parts(function(x0, x1))

    def parts(results: Any) -> Any:
        return tuple(part for y in (results if type(results) is tuple else (results,)) for part in coded(1.0 * y))

    return one if count == 1 else two


def plain(function: Any, columns: list[Array]) -> list[Array]:
    """Return the coded results of a function, by NumPy."""
    with np.errstate(all="ignore"):
        results = function(*columns)
        columns_of_results = [
            np.asarray(y, columns[0].dtype) for y in (results if type(results) is tuple else (results,))
        ]
        finite = [np.isfinite(y) for y in columns_of_results]
    return [
        part
        for y, is_finite in zip(columns_of_results, finite, strict=True)
        for part in (
            np.where(is_finite, y, 0.0),
            np.where(np.isnan(y), 2.0, np.where(is_finite, 0.0, np.where(y < 0.0, -1.0, 1.0))),
        )
    ]


def check(name: str, got: Any, wanted: list[Array], columns: list[Array], way: str) -> None:
    """Compare results with plain ones: exact, or up to rounding where the result is rounded several times."""
    dtype = columns[0].dtype
    info = np.finfo(dtype)
    for k, (a, b) in enumerate(zip(got, wanted, strict=True)):
        a, b = np.asarray(a, float), np.asarray(b, float)
        # four to eight units in the last place, of which NumPy's own functions may err by four; subnormal numbers among
        # the intermediate results have fewer digits
        error = 0.0 if name in EXACT or k % 2 else 4.0 * info.eps * np.abs(b) + float(info.tiny)
        wrong = ~(np.abs(a - b) <= error)
        if name in SIGNED_ZERO and k % 2 == 0:
            wrong |= (a == 0.0) & (b == 0.0) & (np.signbit(a) != np.signbit(b))
        rows = np.flatnonzero(wrong)[:8]
        shown = [(*(float(c[i]) for c in columns), float(a[i]), float(b[i])) for i in rows]
        assert not wrong.any(), f"{name} {way}, result {k}: {wrong.sum()} wrong, (arguments, got, wanted): {shown}"


@pytest.mark.parametrize("name", [name for name in NAMES if getattr(np, name).nin == 2 and name not in TRUTH])
def test_constant_operands_equal_plain_numpy(name):
    """A quotient by a constant is a product, rounded twice."""
    (columns,), function = arguments("sin", "float64"), function_of(name)

    def with_constants(x: Any) -> Any:
        both = (result for c in CONSTANTS for result in (function(x, c), function(c, x)))
        return tuple(y for results in both for y in (results if type(results) is tuple else (results,)))

    kernel = compile(on_entries(with_constants, 1), None, x0=())
    check(f"{name} of a constant", kernel(columns), plain(with_constants, [columns]), [columns], "in a batch")


@pytest.mark.parametrize("name", NAMES)
def test_plain_evaluation_of_graphs_equals_plain_numpy(name):
    columns, function = arguments(name, "float64"), function_of(name)
    rows = np.arange(0, len(columns[0]), max(1, len(columns[0]) // 211))
    columns = [c[rows] for c in columns]
    graph = record(on_entries(function, len(columns)), {f"x{k}": () for k in range(len(columns))})
    got = np.transpose([graph.evaluate(*row) for row in zip(*columns, strict=True)])
    check(name, got, plain(function, columns), columns, "by plain evaluation")


@needs_compiler
@pytest.mark.parametrize("precision", ["double", "float"])
def test_exported_c_equals_plain_numpy(tmp_path, precision):
    """All functions in one library; each is called with the arguments of `arguments`."""
    dtype, names, sources = {"double": "float64", "float": "float32"}[precision], NAMES, []
    for name in names:
        count = getattr(np, name).nin
        kernel = compile(on_entries(function_of(name), count), None, **{f"x{k}": () for k in range(count)})
        sources.append(kernel.to_c(tmp_path / f"f_{name}", precision, name=f"f_{name}").source)
    library = tmp_path / "all.so"
    subprocess.run(["cc", "-std=c99", "-O1", "-shared", "-fPIC", "-o", library, *sources, "-lm"], check=True)
    functions = ctypes.CDLL(str(library))
    for name in names:
        columns, ufunc = arguments(name, dtype), getattr(np, name)
        rows = np.arange(0, len(columns[0]), max(1, len(columns[0]) // 997))
        columns = [np.ascontiguousarray(c[rows]) for c in columns]
        results = np.zeros((len(rows), 2 * ufunc.nout), dtype)
        call = getattr(functions, f"f_{name}")
        for i, row in enumerate(results):
            pointers = [c.ctypes.data + i * c.itemsize for c in columns]
            call(*map(ctypes.c_void_p, [*pointers, *(row.ctypes.data + k * row.itemsize for k in range(len(row)))]))
        check(name, results.T, plain(function_of(name), columns), columns, f"in C with {precision}")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", NAMES)
def test_machine_code_equals_plain_numpy(name, dtype):
    columns, function = arguments(name, dtype), function_of(name)
    wanted = plain(function, columns)
    names = {f"x{k}": () for k in range(len(columns))}
    kernel = compile(on_entries(function, len(columns)), None, dtype=dtype, **names)
    check(name, kernel(*columns), wanted, columns, "in a batch")
    few = range(0, len(columns[0]), max(1, len(columns[0]) // 97))
    single = [kernel(*[c[i] for c in columns]) for i in few]
    rows = list(few)
    check(name, np.transpose(single), [w[rows] for w in wanted], [c[rows] for c in columns], "for one state")
