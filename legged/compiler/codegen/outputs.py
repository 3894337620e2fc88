"""Where the results of a graph go: which entries of which arrays hold the same number.

Symmetric matrices and zeros that algebra guarantees make one number the result of several entries.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from legged.compiler.ir.graph import Graph, Operand


class Place(NamedTuple):
    """An entry of an array; arrays count from the arguments on, entries end to end."""

    array: int
    entry: int


class Result(NamedTuple):
    """A number, and all entries that hold it."""

    operand: Operand
    places: list[Place]


def results(graph: Graph) -> list[Result]:
    """Return the different numbers that a graph results in, in their order; 0.0 and -0.0 are two."""
    found: dict[int | str, Result] = {}
    operands = iter(graph.results)
    for k, shape in enumerate(graph.outputs, len(graph.inputs)):
        for i in range(math.prod(shape)):
            operand = next(operands)
            key = operand if isinstance(operand, int) else repr(operand)
            found.setdefault(key, Result(operand, [])).places.append(Place(k, i))
    return list(found.values())
