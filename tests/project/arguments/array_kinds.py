"""Kinds of arrays that users have: how each is made from an array of floats, and what a call with it may answer."""

import array
import decimal
import fractions
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class ArrayLike:
    """An object that NumPy reads by its method `__array__`."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values, dtype=dtype)


class Kind(NamedTuple):
    """A kind of array.

    Attributes:
        make: Returns the array of this kind for an array of floats, (...).
        error: Largest error of its numbers relative to 1; None if every call has to refuse it.
        may_be_refused: Whether a call may also refuse it, with an error that says why.
    """

    make: Callable[[np.ndarray], Any]
    error: float | None = 0.0
    may_be_refused: bool = False


def _read_only(x: np.ndarray) -> np.ndarray:
    x = x.copy()
    x.flags.writeable = False
    return x


def _strided(x: np.ndarray) -> np.ndarray:
    return np.repeat(x, 2, axis=-1)[..., ::2]


def _masked(x: np.ndarray) -> np.ma.MaskedArray:
    return np.ma.array(x, mask=np.arange(x.size).reshape(x.shape) == 0)


def _each(make: Callable[[float], Any], x: np.ndarray) -> Any:
    return [_each(make, row) for row in x] if x.ndim else make(float(x))


def _missing(x: np.ndarray) -> np.ndarray:
    return np.where(np.arange(x.size).reshape(x.shape) == 0, np.nan, x)


KINDS = {
    "list": Kind(lambda x: x.tolist()),
    "tuple of rows": Kind(tuple),
    "read-only": Kind(_read_only),
    "strided": Kind(_strided),
    "reversed strides": Kind(lambda x: np.ascontiguousarray(x[..., ::-1])[..., ::-1]),
    "columns first": Kind(np.asfortranarray),
    "byte-swapped": Kind(lambda x: x.astype(x.dtype.newbyteorder())),
    "float32": Kind(lambda x: x.astype(np.float32), 1e-6),
    "float16": Kind(lambda x: x.astype(np.float16), 1e-3),
    "long double": Kind(lambda x: x.astype(np.longdouble), may_be_refused=True),
    "Decimal": Kind(lambda x: _each(lambda y: decimal.Decimal(repr(y)), x), may_be_refused=True),
    "Fraction": Kind(lambda x: _each(fractions.Fraction, x), may_be_refused=True),
    "objects": Kind(lambda x: x.astype(object)),
    "memoryview": Kind(lambda x: memoryview(np.ascontiguousarray(x))),
    "array.array": Kind(lambda x: array.array("d", x) if x.ndim == 1 else [array.array("d", row) for row in x]),
    "__array__": Kind(ArrayLike),
    "masked array without masked entries": Kind(lambda x: np.ma.array(x, mask=np.zeros(x.shape, bool))),
    "masked": Kind(_masked, None),
    "list with a masked row": Kind(lambda x: [_masked(x)] if x.ndim == 1 else [_masked(x[0]), *x[1:]], None),
    "NaN": Kind(_missing, None),
    "truth values": Kind(lambda x: np.ones(x.shape, bool), None),
    "complex": Kind(lambda x: x.astype(complex), None),
    "texts": Kind(lambda x: x.astype(str), None),
    "bytes": Kind(lambda x: x.tobytes(), None),
    "dates": Kind(lambda x: np.zeros(x.shape, "M8[s]"), None),
    "records": Kind(lambda x: np.zeros(x.shape, [("a", float)]), None),
    "generator": Kind(lambda x: (y for y in x.tolist()), None),
    "set": Kind(lambda x: set(x.ravel().tolist()), None),
    "dict": Kind(lambda x: dict(enumerate(x.tolist())), None),
    "list with None": Kind(lambda x: [None, *x.tolist()[1:]], None),
}
"""Kinds of arrays by name."""

try:
    import pandas as pd
except ImportError:
    pass
else:

    def _table(x: np.ndarray, **options: Any) -> Any:
        return pd.Series(x, **options) if x.ndim == 1 else pd.DataFrame(x, **options)

    KINDS |= {
        "pandas": Kind(_table),
        "pandas Float64": Kind(lambda x: _table(x, dtype="Float64")),
        "pandas with missing": Kind(lambda x: _table(_missing(x), dtype="Float64"), None),
    }
try:
    import torch
except ImportError:
    pass
else:
    KINDS |= {
        "Torch": Kind(torch.tensor),
        "Torch bfloat16": Kind(lambda x: torch.tensor(x, dtype=torch.bfloat16), 1e-2, may_be_refused=True),
        "Torch with gradients": Kind(lambda x: torch.tensor(x, requires_grad=True), None),
    }
