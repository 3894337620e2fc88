"""Sines and their like in a graph: which of them can be computed together, and in which order.

All those whose arguments are known are computed in one go, round by round: an angle may depend on another angle's sine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from legged.compiler.ir.graph import Graph, Operand
from legged.compiler.ir.operations import LIBRARY_FUNCTIONS, VECTOR_FUNCTION_OF, VECTOR_FUNCTIONS


class Use(NamedTuple):
    """Arguments of a function, and the nodes that are the function of them."""

    arguments: tuple[Operand, ...]
    nodes: list[int]


def uses_of(graph: Graph, calls: Iterable[int]) -> dict[str, list[Use]]:
    """Return the uses of every function in one round."""
    groups: dict[str, dict[str, Use]] = {}
    for i in calls:
        operation, arguments, _ = graph.nodes[i - graph.input_size]
        function = VECTOR_FUNCTION_OF.get(operation, operation)
        if operation == "arctan":
            arguments = (*arguments, 1.0)
        use = groups.setdefault(function, {}).setdefault(repr(arguments), Use(arguments, []))  # 1 is not 1.0
        use.nodes.append(i)
    return {function: list(uses.values()) for function, uses in groups.items()}


def results_of(function: str) -> tuple[str, ...]:
    """Return the operations whose results a function computes."""
    return VECTOR_FUNCTIONS.get(function, (function,))


def rounded(size: int, step: int) -> int:
    """Return the next multiple of a step."""
    return -(-size // step) * step


def rounds(graph: Graph) -> Iterator[tuple[list[int], list[int]]]:
    """Yield (calls, what they need that is not there yet), round by round.

    A call belongs to the round after the last call that it depends on. Only what calls need is computed before them:
    few values have to survive a call.
    """
    inputs = graph.input_size
    levels = [0] * inputs
    calls: dict[int, list[int]] = {}
    for i, (operation, arguments, _) in enumerate(graph.nodes, inputs):
        level = max((levels[a] for a in arguments if isinstance(a, int)), default=0)
        if operation in LIBRARY_FUNCTIONS:
            calls.setdefault(level, []).append(i)
            level += 1
        levels.append(level)
    done: set[int] = set()
    for _, indices in sorted(calls.items()):
        done.update(indices)
        needed: set[int] = set()
        waiting = [a for i in indices for a in graph.nodes[i - inputs].arguments]
        while waiting:
            a = waiting.pop()
            if isinstance(a, int) and a >= inputs and a not in done:
                done.add(a)
                needed.add(a)
                waiting += graph.nodes[a - inputs].arguments
        yield indices, sorted(needed)
