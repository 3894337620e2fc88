"""`LookupTable`: constant numbers that a traced function reads at a computed index."""

from __future__ import annotations

from typing import Any

import numpy as np

from legged.arguments import array
from legged.compiler.ir.constant_folding import CONSTRUCTORS
from legged.compiler.ir.expression import Expression, as_operand
from legged.compiler.ir.numpy_functions import ExpressionArray
from legged.compiler.ir.operations import Lookup
from legged.errors import ShapeError, TraceError

_MOST = 2**31 - 1
"""Largest number of entries: machine code uses indices of 32 bits."""


class LookupTable:
    """A constant table that plain and traced functions read at an index that they compute.

        table = LookupTable([1.0, 4.0, 9.0])
        table(1.7)                                   # 4.0
        table(x)                                     # one operation in a graph, for any length of the table

    The value is entry i with i = floor(x), clipped to the table: the first entry for x < 0, the last one beyond the
    end. NaN gives NaN. The derivative with respect to x is zero; a function that interpolates gets its derivative from
    the weights. All kernels of a process that use equal tables share one copy in memory.
    """

    def __init__(self, numbers: Any):
        """Store a copy of the numbers.

        Args:
            numbers: The entries, (n,), finite, any unit and frame.

        Raises:
            ArgumentError, NotFiniteError: If they are not finite real numbers.
            ShapeError: If they are not a vector of 1 to 2**31 - 1 entries.
        """
        found = array("the numbers of a lookup table", numbers, (None,))
        if not 1 <= len(found) <= _MOST:
            raise ShapeError(f"a lookup table needs 1 to {_MOST} entries, got {len(found)}")
        self.operation = Lookup(found)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LookupTable) and self.operation == other.operation

    def __hash__(self) -> int:
        return hash(self.operation)

    def __len__(self) -> int:
        return len(self.operation.table)

    def __repr__(self) -> str:
        return f"<LookupTable of {len(self)} numbers>"

    def __call__(self, x: Any) -> Any:
        """Return the entries of the table at one or more indices, in the shape of `x`.

        Args:
            x: The index before it is rounded down and clipped, (...), dimensionless.
        """
        if isinstance(x, Expression):
            return self._entry(x)
        x = np.asanyarray(x)
        if x.dtype == object:
            found = np.frompyfunc(self._entry, 1, 1)(x.view(np.ndarray))
            return found.view(ExpressionArray) if isinstance(found, np.ndarray) else found
        x = np.asarray(x, dtype=float)
        is_number = x == x
        index = np.clip(np.where(is_number, x, 0.0), 0.0, len(self) - 1.0).astype(np.int64)
        return np.where(is_number, self.operation.table[index], x)[()]

    def _entry(self, x: Any) -> Any:
        operand = as_operand(x)
        if operand is NotImplemented:
            raise TraceError(f"a lookup table is read at real numbers, got {x!r}")
        return CONSTRUCTORS[self.operation](operand)
