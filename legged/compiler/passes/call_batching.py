"""Batch the calls of elementary functions: sines, exponentials and so on whose arguments are known at the same time.

Machine code computes all calls of a batch together, several in one vector. The argument of a call may depend on the
result of another, an angle on the sine of another angle, so a graph has a sequence of batches with other operations
between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from legged.compiler import mechanisms
from legged.compiler.ir.graph import Graph, Operand, distinct_arguments
from legged.compiler.ir.operations import VECTOR_FUNCTION_OF, VECTOR_FUNCTIONS, CallResult, is_call
from legged.compiler.ir.pass_times import compiler_pass

Batches = Sequence[tuple[list[int], list[int]]]
"""The results of `call_batches`."""


class Call(NamedTuple):
    """One call of a function.

    Attributes:
        arguments: The arguments.
        nodes: The nodes that the call computes; a call of "sincos" computes a sine, a cosine or both.
    """

    arguments: tuple[Operand, ...]
    nodes: list[int]


@compiler_pass("batching of calls")
def call_batches(graph: Graph) -> Batches:
    """Return the batches of calls in order of execution: (calls, arguments).

    A call belongs to the batch after the last call that it depends on. Only the arguments of calls are computed before
    the last batch, so that few values have to be saved during a call.

    The calls are nodes; the arguments are the other nodes to compute after the batch before and before this one.
    """
    inputs = graph.input_size
    called = {operation for operation in {node[0] for node in graph.nodes} if is_call(operation)}
    if not called:
        return []
    levels, calls = [0] * inputs, dict[int, list[int]]()
    before, level = None, 0
    for i, (operation, arguments, _) in enumerate(graph.nodes, inputs):
        if arguments is not before:  # not for further results of a call, which share them
            level = 0
            for a in arguments:
                if type(a) is int and levels[a] > level:
                    level = levels[a]
        before, is_called = arguments, operation in called
        if is_called:
            calls.setdefault(level, []).append(i)
        levels.append(level + is_called)
    done: set[int] = set()
    batches: list[tuple[list[int], list[int]]] = []
    groups = [indices for _, indices in sorted(calls.items())]
    if not mechanisms.is_on(mechanisms.CALL_BATCHING):
        alone = [same for indices in groups for same in calls_by_function(graph, indices).values()]
        groups = [call.nodes for same in alone for call in same]
    for indices in groups:
        done.update(indices)
        needed: set[int] = set()
        pending = [a for arguments in distinct_arguments(graph.nodes[i - inputs] for i in indices) for a in arguments]
        while pending:
            a = pending.pop()
            if type(a) is int and a >= inputs and a not in done:
                done.add(a)
                needed.add(a)
                pending += graph.nodes[a - inputs].arguments
        batches.append((indices, sorted(needed)))
    return batches


def calls_by_function(graph: Graph, nodes: Iterable[int]) -> dict[str, list[Call]]:
    """Return the calls of each function in a batch; nodes with equal arguments share a call."""
    calls: dict[str, dict[str, Call]] = {}
    key, before = "", None
    for i in nodes:
        operation, arguments, _ = graph.nodes[i - graph.input_size]
        is_result = isinstance(operation, CallResult)
        function = operation.function if is_result else VECTOR_FUNCTION_OF.get(operation, operation)
        if operation == "arctan":
            arguments = (*arguments, 1.0)
        # The key is text since 1 == 1.0, although 1 is the number of a value and 1.0 a constant.
        key, before = key if arguments is before else repr(arguments), arguments
        call = calls.setdefault(function, {}).setdefault(key, Call(arguments, []))
        call.nodes.append(i)
    return {function: list(by_arguments.values()) for function, by_arguments in calls.items()}


def function_results(function: str) -> tuple[str, ...]:
    """Return the operations whose results a function computes: "sin" and "cos" for "sincos"."""
    return VECTOR_FUNCTIONS.get(function, (function,))


def round_up(size: int, multiple: int) -> int:
    """Return the smallest multiple of a number that is not below `size`."""
    return -(-size // multiple) * multiple
