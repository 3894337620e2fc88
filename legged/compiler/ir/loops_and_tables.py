"""Loops that end by a condition and constant tables, in plain Python and as single operations of a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import numpy as np

from legged.arguments import rounded_array
from legged.compiler.ir.constant_folding import CONSTRUCTORS
from legged.compiler.ir.expression import Expression, as_operand
from legged.compiler.ir.graph import Graph, Operand, numbered_nodes
from legged.compiler.ir.numpy_functions import ExpressionArray
from legged.compiler.ir.operations import CONDITIONS, CallResult, ChangingGather, Gather, Loop, is_call
from legged.compiler.ir.tracer import Tracer
from legged.errors import ShapeError, TraceError

Array = np.ndarray
LONG = 2000
"""Least number of operations of a function that is not part of the code that calls it, see `call`."""


def repeat_while(step: Callable[[Array], Array], state: Array, most: int) -> Array:
    """Return the state after state = step(state) for as long as its last entry is positive, at most `most` times.

    A graph contains one operation for each entry of the result. What the step computes belongs to the loop, also where
    it does not depend on the state; what was computed before the call is used by the loop. In a batch each member ends
    by its own condition.

    Args:
        step: Plain NumPy code from a state, (n,), mixed units, to the next one; while traced it may contain no new
            elementary functions.
        state: (n,), mixed units and frames.
        most: Largest number of iterations, at least 1.

    Raises:
        TraceError: The step cannot be part of a graph.
    """
    now = state
    for _ in range(most):
        if now.dtype == object and any(isinstance(x, Expression) for x in now):  # from the start, or from the step
            return _traced(step, state, most, next(x.tracer for x in now if isinstance(x, Expression)))
        if not now[-1] > 0.0:
            break
        now = step(now)
    return now


def _traced(step: Callable[[Array], Array], state: Array, most: int, tracer: Tracer) -> Array:
    """Return the final state of a loop as expressions; see `repeat_while`."""
    initial = [as_operand(x) for x in state]
    begin = [tracer.loop_state() for _ in state]
    body, captured = _body(tracer.nodes, begin, [as_operand(x) for x in step(_traced_array(begin, state.shape))])
    return _final_state(tracer, Loop(body, most), [*initial, *captured])


def call(function: Callable[..., Array], static: Any, *arrays: Array) -> Array:
    """Return function(static, *arrays), whose machine code is shared by all calls with alike arguments.

    Arguments of two calls are alike if their shapes agree, the same entries are constants of the same values, and the
    same other entries are equal to each other. The function is traced once for all of them, and is a `Loop` of one
    iteration. A function of fewer than `LONG` operations is copied into the code that calls it.

    Args:
        function: Plain NumPy code that uses its arguments alone and returns an array, (...), mixed units; while traced
            it may contain no elementary functions.
        static: An argument that is not traced, hashable.
        arrays: Arrays of any shapes, (...), mixed units and frames.

    Raises:
        TraceError: The function cannot be part of a graph, or uses traced values that are not its arguments.
    """
    entries = [as_operand(x) for array in arrays for x in array.flat]
    distinct = {x.index: x for x in entries if isinstance(x, Expression)}
    if not distinct:
        return function(static, *arrays)
    tracer, numbers = next(iter(distinct.values())).tracer, {index: k for k, index in enumerate(distinct)}
    pattern = tuple([numbers[x.index] if isinstance(x, Expression) else repr(x) for x in entries])
    key = function, static, tuple([array.shape for array in arrays]), pattern
    if key not in tracer.functions:
        inputs = [tracer.loop_state() for _ in distinct]
        rest = iter([inputs[numbers[x.index]] if isinstance(x, Expression) else x for x in entries])
        result = function(static, *[_traced_array(list(islice(rest, x.size)), x.shape) for x in arrays])
        results = [*map(as_operand, result.flat), 0.0]
        body, outside = _body(tracer.nodes, inputs, results, initial=len(results))
        if outside:
            raise TraceError(f"{function.__name__} uses traced values that are not its arguments")
        tracer.functions[key] = Loop(body, 1), result.shape
    loop, shape = tracer.functions[key]
    if len(loop.body.nodes) < LONG:
        return function(static, *arrays)
    initial = [0.0] * (loop.size - 1) + [1.0]
    return _final_state(tracer, loop, [*initial, *distinct.values()])[:-1].reshape(shape)


def _final_state(tracer: Tracer, loop: Loop, operands: Sequence[Operand | Expression]) -> Array:
    """Return the final state of a loop as expressions, (n,), for the initial state and the captured values."""
    arguments = tracer.node(CallResult(loop, 0), *operands).arguments
    return _traced_array([tracer.result(CallResult(loop, k), arguments) for k in range(loop.size)], (loop.size,))


def _traced_array(entries: Sequence[Any], shape: tuple[int, ...]) -> Array:
    """Return an array of traced scalars."""
    array = np.empty(len(entries), dtype=object)
    array[:] = entries
    return array.view(ExpressionArray).reshape(shape)


def _body(
    made: list[Expression], inputs: list[Expression], results: list[Any], initial: int = 0
) -> tuple[Graph, list[Expression]]:
    """Return the graph (state, captured values) -> next state, and the values from outside that are captured.

    Conditions from outside are computed again, as memory holds no truth values.

    Args:
        made: All expressions of the tracer.
        inputs: The state before the step, or the captured values after `initial` entries of an unused state.
        results: The state after the step.
        initial: Number of these entries.
    """
    first = inputs[0].index  # expressions that were made before are outside of the loop
    inner: list[Expression] = []
    outer: dict[int, Expression] = {}
    alive = bytearray(len(made) - first)
    for x in results:
        if isinstance(x, Expression):
            if x.index >= first:
                alive[x.index - first] = True
            else:
                outer[x.index] = x
    for x in reversed(made[first + len(inputs) :]):
        if alive[x.index - first]:
            inner.append(x)
            for a in x.arguments:
                if type(a) is not float:
                    i = a.index
                    if i >= first:
                        alive[i - first] = True
                    else:
                        outer[i] = a
    captured: dict[int, Expression] = {}
    conditions: dict[int, Expression] = {}
    pending = [*outer.values()]
    while pending:
        x = pending.pop()
        if x.operation not in CONDITIONS:
            captured[x.index] = x
        elif x.index not in conditions:
            conditions[x.index] = x
            pending += [a for a in x.arguments if type(a) is not float]
    inner += [conditions[i] for i in sorted(conditions, reverse=True)]
    for operation in {x.operation for x in inner}:
        if is_call(operation) and not (isinstance(operation, CallResult) and isinstance(operation.function, Loop)):
            raise TraceError(f"the step of a loop cannot contain the operation {operation!r}")
    outside = [captured[i] for i in sorted(captured)]
    numbers = {x.index: k for k, x in enumerate([*inputs, *outside], initial)}
    size, count = len(results), initial + len(numbers)
    nodes = numbered_nodes(reversed(inner), numbers, count)
    shapes = ("state", (size,)), ("captured", (count - size,))
    last: tuple[Operand, ...] = tuple([numbers[x.index] if isinstance(x, Expression) else x for x in results])
    return Graph(shapes, nodes, ((size,),), last, next), outside  # `next` takes the only array out


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

    _kind: type[Gather] = Gather

    def __init__(self, numbers: Any):
        """Store a copy of the numbers.

        Args:
            numbers: The entries, (n,), finite, any unit and frame.

        Raises:
            ArgumentError, NotFiniteError: If they are not finite real numbers.
            ShapeError: If they are not a vector of 1 to 2**31 - 1 entries.
        """
        table = rounded_array("the numbers of a lookup table", numbers, (None,))
        if not 1 <= len(table) <= _MOST:
            raise ShapeError(f"a lookup table needs 1 to {_MOST} entries, got {len(table)}")
        self.operation = self._kind(table)

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
            entries = np.frompyfunc(self._entry, 1, 1)(x.view(np.ndarray))
            return entries.view(ExpressionArray) if isinstance(entries, np.ndarray) else entries
        x = np.asarray(x, dtype=float)
        is_number = x == x
        index = np.clip(np.where(is_number, x, 0.0), 0.0, len(self) - 1.0).astype(np.int64)
        return np.where(is_number, self.operation.table[index], x)[()]

    def _entry(self, x: Any) -> Any:
        operand = as_operand(x)
        if operand is NotImplemented:
            raise TraceError(f"a lookup table is read at real numbers, got {x!r}")
        return CONSTRUCTORS[self.operation](operand)


class ChangingTable(LookupTable):
    """A `LookupTable` whose numbers may change between calls of the compiled code that reads them.

        table = ChangingTable(np.zeros(100))
        kernel = legged.compile(lambda x: table(x), x=())
        table.numbers[3] = 2.0                       # kernel(3.0) is 2.0 from now on

    Each table has a memory of its own, which all kernels of the process read; a copy of the table is the table itself.
    A function that is traced may not read it at a constant index, whose number would be part of the kernel as it is.
    Kernels of float32 (`PrecisionError`) and C code (`TraceError`) cannot read it.
    """

    _kind = ChangingGather

    @property
    def numbers(self) -> Array:
        """The entries, (n,), any unit and frame; change them in place."""
        return self.operation.table

    def __deepcopy__(self, memo: Any) -> ChangingTable:
        """Return the table itself."""
        return self
