"""Add the checks that quaternions have norm 1 to a graph before code is generated for it.

A kernel reports results that are not finite. So that it also reports quaternions of a norm other than 1, one of its
results becomes NaN for these. The check is no operation of the algorithm and is not counted.
"""

from __future__ import annotations

import math
from dataclasses import replace

from legged.arguments import SQUARED_NORM_TOLERANCE
from legged.compiler.ir.graph import Graph, Node, Operand
from legged.compiler.ir.pass_times import compiler_pass

_MARGIN, _ROUNDING = 1e-6, 8.0
"""Relative margin of the tolerance, and absolute margin in units of `epsilon`, of which the larger one counts. A kernel
allows slightly more than plain functions, so that these reject all values that the kernel rejects; rounding errors of
the squared norm are below 4 epsilon."""


@compiler_pass("checks of quaternions")
def add_quaternion_checks(graph: Graph, epsilon: float) -> Graph:
    """Return a graph whose first result is NaN unless all quaternions have norm 1; other results do not change.

    Args:
        graph: The graph. epsilon: Distance from 1 to the next larger number of the type that the code computes with.
    """
    if not graph.unit_quaternions or not graph.results:
        return graph
    tolerance = max(SQUARED_NORM_TOLERANCE * (1.0 + _MARGIN), SQUARED_NORM_TOLERANCE + _ROUNDING * epsilon)
    nodes = list(graph.nodes)

    def add(operation: str, *arguments: Operand) -> int:
        nodes.append(Node(operation, arguments))
        return graph.input_size + len(nodes) - 1

    condition: int | None = None
    for entries, _ in graph.unit_quaternions:
        w, x, y, z = [add("multiply", a, a) for a in entries]
        deviation = add("subtract", add("add", add("add", w, x), add("add", y, z)), 1.0)
        is_unit = add("less_equal", add("absolute", deviation), tolerance)
        condition = is_unit if condition is None else add("and", condition, is_unit)
    assert condition is not None
    guarded = add("select", condition, graph.results[0], math.nan)
    return replace(graph, nodes=tuple(nodes), results=(guarded, *graph.results[1:]), unit_quaternions=())
