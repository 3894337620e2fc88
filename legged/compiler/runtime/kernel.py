"""`Kernel`: a compiled function of arrays, and the diagnosis of its calls without a finite result."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Generic, NamedTuple, ParamSpec, Protocol, TypeVar, overload

import numpy as np

from legged.arguments import real_array
from legged.compiler import mechanisms
from legged.compiler.cache import machine_code
from legged.compiler.codegen import c99, llvm, selection
from legged.compiler.codegen.cpython import entry_point
from legged.compiler.codegen.element_type import element_type
from legged.compiler.ir.annotations import Label
from legged.compiler.ir.graph import Graph, Node, Shape, tuple_converter
from legged.compiler.passes.counting import Counts
from legged.compiler.passes.pipeline import is_always_outlined, run_passes
from legged.compiler.runtime import built_in
from legged.compiler.runtime.batches import BatchCode, can_hold_results, locked_memory
from legged.compiler.runtime.result_memory import LARGE_RESULT, checked_out, new_array, put_results
from legged.compiler.runtime.threads import thread_limit
from legged.errors import LeggedError, NotFiniteError, ShapeError, SingularError

P = ParamSpec("P")
R = TypeVar("R")


class Argument(NamedTuple):
    """One argument of a kernel: its name, its shape for one state, and the meaning of its entries in words."""

    name: str
    shape: Shape
    meaning: str = ""

    def description(self) -> str:
        """Return the shape in words."""
        shape = str(self.shape) if self.shape else "a number"
        return f"{shape}, {self.meaning}," if self.meaning else f"{shape},"


class _Workspace:
    """Memory for the arguments and results of one state, with views of the shapes of the arrays."""

    def __init__(self, kernel: Kernel[..., Any]):
        graph = kernel.graph
        self.input, self.output = (np.zeros(size, kernel.dtype) for size in (graph.input_size, graph.output_size))
        self.inputs = tuple(views(self.input, kernel.shapes))
        self.outputs = tuple(views(self.output, graph.outputs))
        addresses = [array.ctypes.data for array in (*self.inputs, *self.outputs)]
        table = (ctypes.c_void_p * max(len(addresses), 1))(*addresses)
        self._kernel, self._table = kernel, table

    @cached_property
    def run(self) -> Callable[[], int]:
        """The code on these arrays."""
        return partial(self._kernel.code.function_with_gil(selection.SINGLE_STATE, ctypes.c_void_p), self._table)


def views(numbers: np.ndarray, shapes: Sequence[Shape]) -> list[np.ndarray]:
    """Return views of an array (..., n) that together cover its last axis.

    Args:
        numbers: Arguments or results of a function flattened and concatenated, (..., n), mixed units and frames.
        shapes: Shapes of the arrays without leading axes; their sizes sum to n.

    Returns:
        Arrays (..., *shape), in the units and frames of the numbers.
    """
    ends = np.cumsum([math.prod(shape) for shape in shapes], dtype=int)
    lead = numbers.shape[:-1]
    return [
        numbers[..., end - math.prod(shape) : end].reshape((*lead, *shape))
        for end, shape in zip(ends.tolist(), shapes, strict=True)
    ]


class Kernel(Generic[P, R]):
    """A function compiled to machine code; call it with arrays as the function itself.

    Its type has the parameters P and the result R of the function, so that type checkers know how to call it.

    Every array may have leading axes before its own; they broadcast as in NumPy, and the results have them too.

    Attributes:
        name: Name of the function.
        graph: The traced function.
        arguments: Names, shapes and meanings of the arguments.
        shapes: Shapes of the arguments for one state.
        target: Name of the processor for which it is compiled, see `legged.compile`.
        dtype: NumPy's data type of the results, which code computes with; arguments of another one are converted.
        layouts: Name of an argument, or "result" ("result0", "result1" of several) -> joint and unit of each entry,
            which the header of the C function states.

    Raises:
        ArgumentError: If an argument does not hold real numbers, or `out` cannot hold the results: integers, read-only
            arrays, results that share memory.
        ShapeError: On a call with the wrong number of arguments, a wrong shape, or a quaternion of a norm other than 1.
        NotFiniteError: If a result is not finite because an argument is not finite or outside a function's domain.
        SingularError: If a result is not finite because of a division by zero.
    """

    def __init__(
        self,
        graph: Graph,
        name: str = "kernel",
        meanings: Mapping[str, str] | None = None,
        target: str | None = None,
        dtype: Any = None,
    ):
        self.name, self.graph = name, graph
        element = element_type(dtype)
        processor = llvm.default_target() if target is None else llvm.target_named(target)
        self.layouts = dict[str, str]()
        self._target = processor.with_element(element)
        self.target, self.dtype = processor.name, element.dtype
        self.arguments = tuple(Argument(n, shape, (meanings or {}).get(n, "")) for n, shape in graph.inputs)
        self.shapes = tuple(a.shape for a in self.arguments)
        self._idle: list[_Workspace] = []
        is_on = mechanisms.is_on(mechanisms.ENTRY_POINT) and entry_point.is_supported()
        self._has_entry_point = is_on and entry_point.supports(graph)
        if self._has_entry_point:
            call, self._entry = built_in.create(graph, element, self.general, tuple_converter(graph.rebuild))
            kind = type(type(self).__name__, (type(self),), {"__call__": call, "__slots__": ()})
            object.__setattr__(self, "__class__", kind)  # Python looks up __call__ in the class

    def __reduce__(self) -> tuple[Any, ...]:
        """Let `pickle` and `copy` build the kernel from its graph; machine code comes from the cache or is compiled."""
        arguments = (
            self.graph,
            self.name,
            {a.name: a.meaning for a in self.arguments},
            self.target,
            self.dtype.name,
        )
        return Kernel, arguments, {"layouts": self.layouts}

    def __repr__(self) -> str:
        type_name = "" if self.dtype == float else f", {self.dtype}"
        return f"<Kernel {self.name}({', '.join(f'{a.name}: {a.shape}' for a in self.arguments)}){type_name}>"

    @cached_property
    def code(self) -> llvm.LoadedCode:
        """The machine code for one state, loaded or compiled at its first use."""
        code = machine_code.load(self.graph, selection.single_state_module, self._target)
        if self._has_entry_point:
            self._entry[0] = code.address(selection.SINGLE_STATE)
        return code

    def load_ahead(self) -> None:
        """Begin to compile the code for one state in another thread if a processor is free; `code` waits for it."""
        machine_code.load_ahead(self.graph, selection.single_state_module, self._target)

    @cached_property
    def counts(self) -> Counts:
        """Number of operations for one state."""
        return run_passes(self.graph, simplified=is_always_outlined(self.graph), counted=True).counts

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def __call__(self, *arrays: Any, out: Any, threads: int | None = None, **named: Any) -> R: ...
    @overload
    def __call__(self, *arrays: Any, threads: int, **named: Any) -> R: ...
    def __call__(self, *arrays: Any, out: Any = None, threads: int | None = None, **named: Any) -> Any:
        """Return the result of the function, in its own structure of arrays.

        Args:
            arrays: The arguments, (..., *shape), any unit and frame, in order or by name.
            out: An array, or a tuple of arrays, that receives the results and is returned; of floating-point numbers,
                to which results are converted.
                It may share memory with the arguments, but its arrays may not share memory with each other.
            threads: Maximal number of threads for a batch; by default the number of processors, see `threads`.
        """
        return self.general(*arrays, out=out, threads=threads, **named)

    def general(self, *arrays: Any, out: Any = None, threads: int | None = None, **named: Any) -> Any:
        """Return the same as a call, through ctypes; most calls take the one of `codegen.cpython`.

        Args:
            arrays: The arguments, (..., *shape), any unit and frame.
            out: As in a call.
            threads: As in a call.
        """
        if threads is not None:
            with thread_limit(threads):
                return self(*arrays, **named) if out is None else self(*arrays, out=out, **named)
        if named:
            arrays = self._in_order(arrays, named)
        work = self._workspace()
        try:
            if not self._copy_arguments(work, arrays):
                return self._call_batch(arrays, out)
            if work.run():
                raise diagnose(self, work.input)
            if out is not None:
                return put_results(work.outputs, checked_out(out, self.graph.outputs), out)
            return self.graph.rebuild(view.copy() if view.ndim else view[()] for view in work.outputs)
        finally:
            self._idle.append(work)

    def to_c(self, path: str | Path, precision: str | None = None, name: str | None = None) -> c99.Source:
        """Write the function as C99, path.c and path.h, for computers without Python; return the paths.

        Args:
            path: Path of the files, with or without a suffix.
            precision: "double" or "float". name: Name of the C function. By default they are those of this kernel.
        """
        layouts = {a.name: a.meaning for a in self.arguments} | self.layouts
        wanted = self._target.element.llvm if precision is None else precision
        return c99.write(self.graph, name or self.name, path, wanted, layouts)

    def _workspace(self) -> _Workspace:
        try:
            return self._idle.pop()  # popping is atomic, so threads never share a workspace
        except IndexError:
            return _Workspace(self)

    def _copy_arguments(self, work: _Workspace, arrays: Sequence[Any]) -> bool:
        """Copy the arguments of one state into the workspace; return False if they are anything else."""
        if len(arrays) != len(self.shapes):
            return False
        for view, shape, array in zip(work.inputs, self.shapes, arrays, strict=True):
            fits = type(array) is np.ndarray and array.dtype is self.dtype and array.shape == shape
            if not fits and (shape or not isinstance(array, float)):
                return False
            view[...] = array
        return True

    def _call_batch(self, arrays: Sequence[Any], out: Any) -> Any:
        """Return the results for any number of states, after checking and converting the arguments."""
        checked = [self._checked(argument, array) for argument, array in zip(self.arguments, arrays, strict=False)]
        if len(arrays) != len(self.arguments):
            names = ", ".join(a.name for a in self.arguments)
            raise ShapeError(f"{self.name} takes {len(self.arguments)} arguments ({names}), got {len(arrays)}")
        lead = self._leading(checked)
        shapes = [(*lead, *shape) for shape in self.graph.outputs]
        targets = checked_out(out, shapes)
        results = [
            target
            if can_hold_results(target, checked, shape, len(shape) - len(lead), self.dtype)
            else new_array(shape, self.dtype)
            for target, shape in zip(targets, shapes, strict=True)
        ]
        bad = self._batch.run(checked, results, lead)
        if bad >= 0:
            state = tuple(int(i) for i in np.unravel_index(bad, lead)) if lead else ()
            numbers = [
                np.broadcast_to(a, (*lead, *s))[state].ravel() for a, s in zip(checked, self.shapes, strict=True)
            ]
            raise diagnose(self, np.concatenate(numbers, dtype=float), state)
        if out is not None:
            return put_results(results, targets, out)
        return self.graph.rebuild(array if array.ndim else array[()] for array in results)

    @cached_property
    def _batch(self) -> BatchCode:
        return BatchCode(
            self.graph,
            self._run_single,
            self._enter_batches if self._has_entry_point else lambda batch: None,
            self._target,
        )

    def _run_single(self, addresses: Sequence[int]) -> int:
        function = self.code.function_with_gil(selection.SINGLE_STATE, ctypes.c_void_p)
        return function((ctypes.c_void_p * max(len(addresses), 1))(*addresses))

    def _enter_batches(self, batch: BatchCode) -> None:
        """Let the entry point run batches whose results are not large."""
        row = max(self.dtype.itemsize * max(map(math.prod, self.graph.outputs)), 1)
        self._share = batch.run_described  # kept, since the entry point has its address alone
        address, work_size = batch.described_call()
        work = locked_memory(work_size)
        self._entry[-5:] = address, work, LARGE_RESULT // row, batch.unshared_states, id(self._share)

    def _checked(self, argument: Argument, array: Any) -> np.ndarray:
        checked = real_array(argument.name, array)
        size = len(argument.shape)
        if checked.shape[checked.ndim - size :] != argument.shape or checked.ndim < size:
            raise ShapeError(f"{argument.name} must be {argument.description()} got shape {checked.shape}")
        return checked

    def _leading(self, arrays: Sequence[np.ndarray]) -> Shape:
        leads = [array.shape[: array.ndim - len(a.shape)] for a, array in zip(self.arguments, arrays, strict=True)]
        try:
            return np.broadcast_shapes(*leads)
        except ValueError:
            listed = ", ".join(f"{a.name} {lead}" for a, lead in zip(self.arguments, leads, strict=True))
            raise ShapeError(f"the leading axes of the arguments do not broadcast: {listed}") from None

    def _in_order(self, arrays: Sequence[Any], named: dict[str, Any]) -> tuple[Any, ...]:
        names = [a.name for a in self.arguments]
        missing = [n for n in names[len(arrays) :] if n not in named]
        unknown = [n for n in named if n not in names[len(arrays) :]]
        if missing or unknown:
            raise ShapeError(f"{self.name} takes {', '.join(names)}; missing: {missing}, not known or twice: {unknown}")
        return (*arrays, *[named[n] for n in names[len(arrays) :]])


class Named(Protocol):
    """The attributes of a kernel that the diagnosis needs."""

    name: str
    graph: Graph


def diagnose(kernel: Named, numbers: np.ndarray, state: Sequence[int] = ()) -> LeggedError:
    """Return the error that explains why a kernel has no answer: arguments, or the first operation that fails.

    Args:
        kernel: Kernel that computed the result.
        numbers: Its arguments flattened and concatenated, (input_size,), mixed units and frames.
        state: Index of the state in the batch.
    """
    place = f" (state {', '.join(map(str, state))} of the batch)" if state else ""
    for name, index, value in _entries(kernel.graph.inputs, numbers):
        if not math.isfinite(value):
            return NotFiniteError(
                f"{name}{list(index) if index else ''} is {value}{place}; {kernel.name} needs numbers"
            )
    try:
        kernel.graph.check_quaternions(numbers.tolist(), place)
    except ShapeError as error:
        return error
    node, operands = _cause(kernel.graph, numbers)
    if node is None:
        return NotFiniteError(f"{kernel.name} has no finite answer for these arguments{place}")
    where = _place(node.label)
    if node.operation == "divide" and operands[1] == 0.0:
        return SingularError(f"{kernel.name} divides by zero{where}{place}: it has no answer for these arguments")
    shown = ", ".join(f"{x:g}" for x in operands)
    return NotFiniteError(f"{kernel.name} has no finite answer: {node.operation}({shown}){where}{place}")


def _entries(inputs: Sequence[tuple[str, Shape]], numbers: np.ndarray) -> Iterator[tuple[str, tuple[int, ...], float]]:
    position = 0
    for name, shape in inputs:
        for index in np.ndindex(*shape):
            yield name, index, float(numbers[position])
            position += 1


def _cause(graph: Graph, numbers: np.ndarray) -> tuple[Node | None, list[float]]:
    """Return the first operation on the way to a result that makes a value not finite, and its operands."""
    sizes = np.cumsum([math.prod(shape) for _, shape in graph.inputs])[:-1]
    parts = np.split(numbers, sizes) if graph.inputs else []
    values = graph.values(*[part.reshape(shape) for part, (_, shape) in zip(parts, graph.inputs, strict=True)])
    wrong = next((r for r in graph.results if isinstance(r, int) and not math.isfinite(values[r])), None)
    while wrong is not None:
        node = graph.nodes[wrong - graph.input_size]
        operands = [a if isinstance(a, float) else values[a] for a in node.arguments]
        used = node.arguments
        if node.operation == "select":
            used = (node.arguments[1 if operands[0] else 2],)
        wrong = next((a for a in used if isinstance(a, int) and not math.isfinite(values[a])), None)
        if wrong is None:
            return node, operands
    return None, []


def _place(label: Label) -> str:
    stage = "" if label.stage is None else f" in stage {label.stage!r}"
    return stage if label.module is None else f"{stage} of module {label.module}"
