"""`BatchKernel`: a function that is called with many states only, with half the code of a `Kernel`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from legged.compiler.codegen import llvm
from legged.compiler.codegen.element_type import element_type
from legged.compiler.ir.graph import Graph, Shape
from legged.compiler.ir.tracer import gc_paused
from legged.compiler.passes.counting import Counts
from legged.compiler.passes.pipeline import run_passes, trace
from legged.compiler.runtime.batches import BatchCode, address_of, has_contiguous_rows
from legged.compiler.runtime.call_sequence import Call
from legged.errors import NotFiniteError


class Rows(NamedTuple):
    """The rows `array[index]` of an array, which a kernel reads or writes where they are, without a copy.

    Attributes:
        array: (m, ...), any unit and frame. index: Numbers of rows, (n,).
    """

    array: np.ndarray
    index: np.ndarray


Place: TypeAlias = "np.ndarray | Rows"
"""Where a kernel finds an argument or puts a result: an array, or rows of one."""


def windows(array: np.ndarray, size: int) -> np.ndarray:
    """Return views of `size` consecutive rows of a contiguous array from each row on, (m - size + 1, size, ...).

    Args:
        array: (m, ...), any unit and frame. size: Number of rows of a view.
    """
    shape = (max(len(array) - size + 1, 0), size, *array.shape[1:])
    return np.ndarray(shape, array.dtype, array, 0, (array.strides[0], *array.strides))


class BatchKernel:
    """A traced function of arrays with a leading axis of n states, compiled for vector lanes at the first call.

    Attributes:
        name: Name of the function. graph: The traced function.
        dtype: NumPy's data type of all numbers.
    """

    def __init__(
        self, function: Callable[..., Any], shapes: Mapping[str, Shape], dtype: Any = None, states: int | None = None
    ):
        """Trace a function.

        Args:
            function: Plain NumPy code that does not branch on values, except by `legged.where`.
            shapes: Name and shape of each argument of one state, in order.
            dtype: Type of the numbers, "float64" by default, or "float32".
            states: Number of states of most calls. The kernel has no more lanes than are needed for them, since code
                of fewer lanes is compiled faster, and is then not simplified. None for all lanes of the processor's
                vectors.
        """
        element = element_type(dtype)
        self.dtype = element.dtype
        self.name = getattr(function, "__name__", "function")
        target = llvm.default_target().with_element(element)
        if states is not None:
            width = min(target.width, 1 << max(states - 1, 1).bit_length())
            target = target._replace(width=width, is_narrow=width < target.width)
        with gc_paused():
            self.graph: Graph = trace(function, shapes, simplified=not target.is_narrow)
        self.shapes = [shape for _, shape in self.graph.inputs]
        self.code = BatchCode(self.graph, _no_single_state, lambda batch: None, target)

    @property
    def counts(self) -> Counts:
        """Operations for one state."""
        return run_passes(self.graph, counted=True).counts

    def compile_ahead(self) -> BatchKernel:
        """Start the compilation in another thread if a processor is free, and return this kernel."""
        self.code.load_ahead()
        return self

    def __call__(self, *arrays: Any) -> Any:
        """Return the results for all states, in the function's own structure of arrays (n, ...).

        Args:
            arrays: The arguments, (n, ...) or without the leading axis if equal for all states, any unit and frame.

        Raises:
            NotFiniteError: A result is not finite.
        """
        given = [np.asarray(array, dtype=self.dtype, order="C") for array in arrays]
        leads = [a.shape[: a.ndim - len(shape)] for a, shape in zip(given, self.shapes, strict=True)]
        lead = max(leads, key=len, default=())
        if any(own and own != lead for own in leads):
            lead = np.broadcast_shapes(*leads)
            given = [
                np.ascontiguousarray(np.broadcast_to(a, lead + shape)) if own else a
                for a, own, shape in zip(given, leads, self.shapes, strict=True)
            ]
        results = [np.empty(lead + shape, self.dtype) for shape in self.graph.outputs]
        if len(lead) == 1:
            self.prepare(*lead, *given, results=results)()
        else:
            count = math.prod(lead)  # -1 would not do for arguments and results of no numbers
            flat = [
                a.reshape(count, *shape) if own else a for a, own, shape in zip(given, leads, self.shapes, strict=True)
            ]
            places = [array.reshape(count, *shape) for array, shape in zip(results, self.graph.outputs, strict=True)]
            self.prepare(count, *flat, results=places)()
        return self.graph.rebuild(iter(results))

    def prepare(self, count: int, *arguments: Place, results: Sequence[Place] | None = None) -> PreparedCall:
        """Return a call for n states whose arguments and results stay at their places in memory.

        Args:
            count: Number of states n.
            arguments: The arguments, (n, ...) with contiguous rows, or without the leading axis if equal for all
                states, any unit and frame.
            results: Arrays that receive the results, (n, ...) with contiguous rows; new ones by default.
        """
        return PreparedCall(self, count, arguments, results)


class PreparedCall:
    """A call of a kernel, which reads its arguments and writes its results where they were when it was prepared.

    Attributes:
        results: The results, in the function's own structure if they are new arrays.
    """

    def __init__(
        self, kernel: BatchKernel, count: int, arguments: Sequence[Place], results: Sequence[Place] | None = None
    ):
        """Describe arguments and results.

        Args:
            kernel, count, arguments, results: As in `BatchKernel.prepare`, any unit and frame.
        """
        outputs = kernel.graph.outputs
        places: Sequence[Any] = results or [np.empty((count, *shape), kernel.dtype) for shape in outputs]
        self.results: Any = kernel.graph.rebuild(iter(places)) if results is None else places
        self._kernel, self._count, self._memory = kernel, count, list[Any]()
        pairs = zip((*arguments, *places), (*kernel.shapes, *outputs), strict=True)
        table = np.array([self._descriptor(place, shape, count) for place, shape in pairs], dtype=np.int64)
        self._memory.append(table)
        self._table = address_of(table)

    @cached_property
    def _run(self) -> Callable[[], int]:
        return self._kernel.code.described(self._count, self._table) if self._count else lambda: -1

    def described(self) -> Call:
        """Return the call for a `CallSequence`, which computes it in one thread."""
        function, work = self._kernel.code.described_call() if self._count else (0, 0)
        return Call(function, self._count, self._table, self._kernel.name, work, self)

    def _descriptor(self, place: Place, shape: Shape, count: int) -> tuple[int, int, int]:
        """Return the numbers that the machine code reads, see `codegen.batches.batch_loop`, and keep the memory."""
        array, index = place if isinstance(place, Rows) else (place, None)
        lead = array.ndim - len(shape)
        is_even = array.flags.c_contiguous or has_contiguous_rows(array, len(shape), array.dtype)
        assert array.dtype == self._kernel.dtype and array.shape[lead:] == shape and is_even
        self._memory.append(array)
        if index is not None:
            offsets = (index % max(len(array), 1)) * array.strides[0]
            self._memory.append(offsets)
            assert len(index) == count and offsets.dtype == np.int64
            return address_of(array), 0, address_of(offsets)
        assert not lead or len(array) == count
        return address_of(array), array.strides[0] if lead else 0, 0

    def __call__(self) -> Any:
        """Compute the results for the present arguments, and return them.

        Raises:
            NotFiniteError: A result is not finite.
        """
        bad = self._run()
        if bad >= 0:
            raise NotFiniteError(f"a result of {self._kernel.name} is not finite for state {bad}")
        return self.results


def _no_single_state(addresses: Sequence[int]) -> int:
    raise AssertionError("a batch kernel has no code for a single state")
