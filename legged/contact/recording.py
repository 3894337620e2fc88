"""`Recording`: the time step of a scene in parts, written as statements that each record a call of machine code.

A function that receives a recording, by the name `do`, is executed once. Its statements compute nothing; each adds a
kernel call with fixed arrays for arguments and results. `sequence` returns these calls, and machine code repeats them
in every step (`legged.compiler.CallSequence`). `bodies`, `pair_tables`, `contact_tables` and
`legged.simulation.equal_robots` state their parts of the step in this way.

A *run* of numbers is a row of x, (n, size); `starts`, (n,), are the places in the vector y where the runs begin.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from legged.compiler import Band, BatchKernel, Call, CallSequence, PreparedCall, Rows
from legged.spatial import Array


class Recording:
    """Calls in the order of the statements that record them."""

    def __init__(self) -> None:
        self._calls = list[Call | PreparedCall]()

    def sequence(self) -> CallSequence:
        """Return the calls recorded so far."""
        return CallSequence(self._calls)

    def each(self, kernel: BatchKernel, count: int, *arguments: Array | Rows, results: Any = None) -> Any:
        """Call a kernel with n states, and return the arrays of its results; arguments as in `BatchKernel.prepare`."""
        call = kernel.prepare(count, *arguments, results=results)
        self._calls.append(call)
        return call.results

    def call(self, prepared: PreparedCall) -> None:
        """Call a kernel as prepared before.

        Args:
            prepared: The call.
        """
        self._calls.append(prepared)

    def copy(self, x: Array, y: Array) -> None:
        """Copy numbers.

        Args:
            x, y: As in `Call.copy`, (...), any unit and frame.
        """
        self._calls.append(Call.copy(x, y))

    def add(self, x: Array, y: Array, starts: Array) -> None:
        """Add runs of numbers to a vector; arguments as in `Call.scatter_add`."""
        self._calls.append(Call.scatter_add(x, y, starts))

    def sum(self, x: Array, y: Array, starts: Array) -> None:
        """Write the sums of runs of numbers to a vector, zero without a run; arguments as in `Call.scatter_add`."""
        self.copy(np.zeros(y.shape), y)
        self.add(x, y, starts)

    def scatter(self, x: Array, y: Array, starts: Array) -> None:
        """Write runs of numbers to runs of a vector; arguments as in `Call.scatter`."""
        self._calls.append(Call.scatter(x, y, starts))

    def maximum(self, x: Array, y: Array, places: Array) -> None:
        """Write the largest positive number of x with each place in y, or zero; arguments as in `Call.scatter_max`."""
        self.copy(np.zeros(y.shape), y)
        self._calls.append(Call.scatter_max(x, y, places))

    def largest(self, x: Array, y: Array) -> None:
        """Write the largest absolute value of all numbers; arguments as in `Call.reduce_max_abs`."""
        self._calls.append(Call.reduce_max_abs(x, y))

    def solve(self, band: Band) -> None:
        """Solve a system of equations.

        Args:
            band: The system.
        """
        self._calls.append(Call.solve_banded(band))

    @contextmanager
    def repeat(self, flag: Array, most: int) -> Iterator[None]:
        """Repeat the calls of the block while a number is positive.

        Args:
            flag: The number, (), any unit. most: Largest number of times.
        """
        before, self._calls = self._calls, []
        yield
        self._calls = [*before, Call.while_loop(self.sequence(), flag, most)]
