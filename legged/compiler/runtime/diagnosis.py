"""Diagnosis of calls without a finite result: the argument or the operation that causes a result that is not finite."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from legged.compiler.ir.annotations import Label
from legged.compiler.ir.graph import Graph, Node, Shape
from legged.errors import LeggedError, NotFiniteError, ShapeError, SingularError


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
