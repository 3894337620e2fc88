"""`ElementType`: the type of the numbers that machine code reads, computes with and writes.

A graph has no element type: its constants are doubles, and constant folding is done in doubles. The writers of LLVM IR
receive the element type beside the width of the vectors, both from the current target, and round each constant once.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from legged.arguments import shown
from legged.errors import LeggedError

CACHE_LINE = 64
"""Size of a cache line, [bytes]."""


class PrecisionError(LeggedError, ValueError):
    """An unknown element type, or one whose numbers have too few digits for a function."""


@dataclass(frozen=True)
class ElementType:
    """A type of floating-point numbers.

    Attributes:
        name: Its name in NumPy.
        llvm, int_type: Its type in LLVM IR, and that of integers of the same size.
        suffix: Suffix of the names of LLVM's intrinsic functions.
        library_suffix: Suffix of the names of functions of the C library.
        type_number: Its number in NumPy's C interface.
        mantissa_bits: Number of stored bits of the significand.
        has_fma: Whether the processor has fused multiply-adds.
    """

    name: str
    llvm: str
    int_type: str
    suffix: str
    library_suffix: str
    type_number: int
    mantissa_bits: int
    has_fma: bool = field(default=True, compare=False)

    def __str__(self) -> str:
        return self.name

    @cached_property
    def dtype(self) -> np.dtype:
        """The data type of NumPy's arrays."""
        return np.dtype(self.name)

    @cached_property
    def size(self) -> int:
        """Size of a number, [bytes]."""
        return self.dtype.itemsize

    @property
    def bits(self) -> int:
        """Size of a number, [bits]."""
        return 8 * self.size

    @property
    def exponent_bias(self) -> int:
        """Number that is added to the exponent of a power of two where it is stored."""
        return (1 << (self.bits - self.mantissa_bits - 2)) - 1

    @property
    def epsilon(self) -> float:
        """Distance from 1 to the next larger number."""
        return 2.0**-self.mantissa_bits

    @property
    def most_indices(self) -> int:
        """Length of the longest table whose indices are exact."""
        return 1 << min(self.mantissa_bits + 1, 31)

    @property
    def per_cache_line(self) -> int:
        """Numbers in a cache line."""
        return CACHE_LINE // self.size

    @cached_property
    def _least(self) -> float:
        """The smallest normal number."""
        return float(np.finfo(self.dtype).tiny)

    @cached_property
    def _most(self) -> float:
        """The largest finite number."""
        return float(np.finfo(self.dtype).max)

    def in_range(self, x: float) -> float:
        """Return a constant with a magnitude that is a normal number of this type, unless it is zero or not finite.

        Constants such as 1e-300, which avoids a division by zero, become the smallest normal number, and finite ones
        beyond the largest number become that one.
        """
        if self == FLOAT64 or x == 0.0 or not math.isfinite(x):
            return x
        return math.copysign(min(max(abs(x), self._least), self._most), x)

    def rounded(self, numbers: Sequence[float]) -> np.ndarray:
        """Return constants as an array of this type, (n,), any unit and frame; see `in_range`."""
        return np.array([self.in_range(x) for x in numbers], dtype=self.dtype)

    def literal(self, x: float) -> str:
        """Return a constant of LLVM IR: the hexadecimal digits of the double that equals the rounded number."""
        if self.llvm == FLOAT32.llvm:
            x = struct.unpack("<f", struct.pack("<f", self.in_range(x)))[0]
        return f"0x{struct.pack('>d', x).hex().upper()}"


FLOAT64 = ElementType("float64", "double", "i64", "f64", "", 12, 52)
FLOAT32 = ElementType("float32", "float", "i32", "f32", "f", 11, 23)
ELEMENT_TYPES = {element.name: element for element in (FLOAT64, FLOAT32)}


def element_type(dtype: Any) -> ElementType:
    """Return the element type of a data type.

    Args:
        dtype: "float64", "float32", or anything from which NumPy makes one of these data types; None for float64.

    Raises:
        PrecisionError: It is another one.
    """
    try:
        element = ELEMENT_TYPES.get(FLOAT64.name if dtype is None else np.dtype(dtype).name)
    except TypeError:
        element = None
    if element is None:
        raise PrecisionError(f"dtype must be 'float64' or 'float32', got {shown(dtype)}")
    return element
