"""Random numbers that are functions of a counter, in plain NumPy and as a single operation of a graph.

The generator is Philox4x32-10: ten rounds of multiplications and exclusive ors of integers map a key and a counter to
four words of 32 bits. The same key and counter give the same number in plain Python, in machine code of both element
types and in C, for any number of members, threads and chunks.

Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from legged.arguments import real_array
from legged.compiler.ir.constant_folding import CONSTRUCTORS
from legged.compiler.ir.expression import Expression, as_operand
from legged.compiler.ir.numpy_functions import ExpressionArray
from legged.errors import ArgumentError, TraceError

MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
INCREMENTS = 0x9E3779B9, 0xBB67AE85
ROUNDS = 10
LARGEST = 2.0**24
"""Bound of keys and counters: the integers below it are exact in float32 too."""
_LOW = np.uint64(0xFFFFFFFF)


def philox(key: Any, counter: Any) -> tuple[Any, Any, Any, Any]:
    """Return the four words of Philox4x32-10, integers below 2**32, (...) each.

    Args:
        key: Two words, (...) each. counter: Four words, (...) each; all integers below 2**32.
    """
    k = [np.asarray(word, dtype=np.uint64) for word in key]
    c = [np.asarray(word, dtype=np.uint64) for word in counter]
    half = np.uint64(32)
    for _ in range(ROUNDS):
        products = np.uint64(MULTIPLIERS[0]) * c[0], np.uint64(MULTIPLIERS[1]) * c[2]
        c = [
            (products[1] >> half) ^ c[1] ^ k[0],
            products[1] & _LOW,
            (products[0] >> half) ^ c[3] ^ k[1],
            products[0] & _LOW,
        ]
        k = [(word + np.uint64(step)) & _LOW for word, step in zip(k, INCREMENTS, strict=True)]
    return c[0], c[1], c[2], c[3]


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
        found = np.frompyfunc(_entry, 4, 1)(*(np.asanyarray(x).view(np.ndarray) for x in given))
        return found.view(ExpressionArray) if isinstance(found, np.ndarray) else found
    arrays = [real_array(name, x) for name, x in zip(("seed", "stream", "step", "draw"), given, strict=True)]
    for name, array in zip(("seed", "stream", "step", "draw"), arrays, strict=True):
        if not ((array >= 0.0) & (array < LARGEST)).all():
            raise ArgumentError(f"{name} must lie between 0 and 2**24 - 1")
    return _uniform(*(np.floor(x).astype(np.uint64) for x in arrays))[()]


def _uniform(seed: Any, stream: Any, step: Any, draw: Any) -> Any:
    words = philox((seed, 0), (stream, step, draw, 0))
    return ((words[0] << np.uint64(21)) | (words[1] >> np.uint64(11))).astype(float) * 2.0**-53


def _entry(*values: Any) -> Any:
    operands = [as_operand(x) for x in values]
    if any(x is NotImplemented for x in operands):
        raise TraceError(f"keys and counters of random numbers are real numbers, got {values!r}")
    return CONSTRUCTORS["random_uniform"](*operands)
