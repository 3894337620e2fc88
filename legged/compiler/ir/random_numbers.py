"""Random numbers that are functions of a counter, in plain NumPy and as a single operation of a graph.

The same key and counter give the same number in plain Python, in machine code of both element types and in C, for any
number of members, threads and chunks; `ir.philox` has the generator.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from legged.arguments import real_array
from legged.compiler.ir.constant_folding import CONSTRUCTORS
from legged.compiler.ir.expression import Expression, as_operand
from legged.compiler.ir.numpy_functions import ExpressionArray
from legged.compiler.ir.philox import uniform
from legged.errors import ArgumentError, TraceError

LARGEST = 2.0**24
"""Bound of keys and counters: the integers below it are exact in float32 too."""


def random_uniform(seed: Any, stream: Any, step: Any, draw: Any) -> Any:
    """Return numbers that are uniform in [0, 1), (...); equal arguments give equal numbers.

        random_uniform(seed=7, stream=3, step=100, draw=0)

    In double precision they are multiples of 2**-53; in single precision the same numbers, rounded down to multiples
    of 2**-24.

    Args:
        seed: Key of the generator, (...). stream, step, draw: Counters, (...), that broadcast; all are integers from 0
            to 2**24 - 1, dimensionless. Numbers with fractions are rounded down.

    Raises:
        ArgumentError: A number is negative, too large or not finite.
    """
    given = seed, stream, step, draw
    if any(isinstance(x, Expression) or np.asanyarray(x).dtype.kind == "O" for x in given):
        numbers = np.frompyfunc(_entry, 4, 1)(*(np.asanyarray(x).view(np.ndarray) for x in given))
        return numbers.view(ExpressionArray) if isinstance(numbers, np.ndarray) else numbers
    arrays = [real_array(name, x) for name, x in zip(("seed", "stream", "step", "draw"), given, strict=True)]
    for name, array in zip(("seed", "stream", "step", "draw"), arrays, strict=True):
        if not ((array >= 0.0) & (array < LARGEST)).all():
            raise ArgumentError(f"{name} must lie between 0 and 2**24 - 1")
    return uniform(*(np.floor(x).astype(np.uint64) for x in arrays))[()]


def _entry(*values: Any) -> Any:
    operands = [as_operand(x) for x in values]
    if any(x is NotImplemented for x in operands):
        raise TraceError(f"keys and counters of random numbers are real numbers, got {values!r}")
    return CONSTRUCTORS["random_uniform"](*operands)
