"""The random number generator Philox4x32-10 on whole numbers, in NumPy.

Ten rounds of multiplications and exclusive ors of integers map a key and a counter to four words of 32 bits.

Source: Salmon, Moraes, Dror, Shaw, SC 2011, doi:10.1145/2063384.2063405.
"""

from __future__ import annotations

from typing import Any

import numpy as np

MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
INCREMENTS = 0x9E3779B9, 0xBB67AE85
ROUNDS = 10
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


def uniform(seed: Any, stream: Any, step: Any, draw: Any) -> Any:
    """Return numbers in [0, 1), multiples of 2**-53, (...); see `ir.random_numbers.random_uniform`.

    Args:
        seed, stream, step, draw: Whole numbers from 0 to 2**32 - 1, (...), dimensionless.
    """
    words = philox((seed, 0), (stream, step, draw, 0))
    return ((words[0] << np.uint64(21)) | (words[1] >> np.uint64(11))).astype(float) * 2.0**-53
