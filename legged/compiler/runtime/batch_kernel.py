"""`BatchKernel`: a function that is called with many states only, with half the code of a `Kernel`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from legged.compiler.codegen import llvm
from legged.compiler.ir.graph import Graph, Shape, record
from legged.compiler.ir.tracer import gc_paused
from legged.compiler.passes.simplify import simplify
from legged.compiler.runtime.batches import BatchCode
from legged.errors import NotFiniteError


class BatchKernel:
    """A traced function of arrays with a leading axis of n states, compiled for vector lanes at the first call.

    Attributes:
        name: Name of the function. graph: The traced function.
    """

    def __init__(self, function: Callable[..., Any], shapes: Mapping[str, Shape]):
        """Trace a function.

        Args:
            function: Plain NumPy code that does not branch on values, except by `legged.where`.
            shapes: Name and shape of each argument of one state, in order.
        """
        self.name = getattr(function, "__name__", "function")
        with gc_paused():
            self.graph: Graph = simplify(record(function, shapes))
        self._axes = [len(shape) for _, shape in self.graph.inputs]
        self._code = BatchCode(self.graph, _no_single_state, lambda *code: None, llvm.default_target())

    def __call__(self, *arrays: Any) -> Any:
        """Return the results for all states, in the function's own structure of arrays (n, ...).

        Args:
            arrays: The arguments, (n, ...) or without the leading axis if equal for all states, any unit and frame.

        Raises:
            NotFiniteError: A result is not finite.
        """
        given = [np.asarray(array, dtype=float, order="C") for array in arrays]
        leads = [a.shape[: a.ndim - own] for a, own in zip(given, self._axes, strict=True)]
        lead = max(leads, key=len, default=())
        if any(own and own != lead for own in leads):
            lead = np.broadcast_shapes(*leads)
            given = [
                np.ascontiguousarray(np.broadcast_to(a, lead + a.shape[len(own) :])) if own else a
                for a, own in zip(given, leads, strict=True)
            ]
        results = [np.empty(lead + shape) for shape in self.graph.outputs]
        if 0 not in lead:
            _ = self._code.code  # loaded for a batch of any size
            bad = self._code.run_even(given, [lead if own else own for own in leads], results, lead)
            if bad >= 0:
                raise NotFiniteError(f"a result of {self.name} is not finite for state {bad}")
        return self.graph.rebuild(iter(results))


def _no_single_state(addresses: Sequence[int]) -> int:
    raise AssertionError("a batch kernel has no code for a single state")
