"""Drop the terms of sums that contribute little to the results at given arguments: an approximation of a graph.

The contribution of a term t of a sum to a result y is dy/dt t: what dropping the term subtracts from y, exactly where y
is linear in the sum. Terms are dropped in increasing order of their contribution, as many as the tolerance allows; the
error is then measured with the new graph, so that it is right also where y is not linear in the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from legged.compiler.ir.annotations import Label
from legged.compiler.ir.constant_folding import CONSTRUCTORS
from legged.compiler.ir.expression import Expression
from legged.compiler.ir.graph import Graph, eliminate_dead_code
from legged.compiler.ir.pass_times import compiler_pass
from legged.compiler.ir.tracer import Tracer
from legged.compiler.passes.differentiate import partials
from legged.errors import TraceError
from legged.spatial import Array

_SUMS = ("add", "subtract")
_NAMES = {"negate": "negative", "and": "logical_and", "or": "logical_or", "not": "logical_not", "select": "where"}
"""Operation -> function of NumPy, where the names differ."""


class Term(NamedTuple):
    """A term of a sum.

    Attributes:
        sum: Number of the value of the sum in the graph. place: 0 or 1, its place in the arguments of the sum.
        contribution: Its largest contribution to any result at any sample, relative to the scale of the result.
        label: Stage, module and item of the sum.
    """

    sum: int
    place: int
    contribution: float
    label: Label


class Approximation(NamedTuple):
    """The result of `drop_terms`.

    Attributes:
        graph: The graph without the terms. dropped: The terms.
        errors: Largest error of each result over the samples, (results,), in the unit of the result.
    """

    graph: Graph
    dropped: tuple[Term, ...]
    errors: Array


@compiler_pass("dropping of terms")
def drop_terms(graph: Graph, samples: Sequence[Array], scales: Array, tolerance: float) -> Approximation:
    """Return a graph with fewer operations whose errors are at most `tolerance` times the scales at the samples.

    Args:
        graph: The graph.
        samples: For each input an array, (samples, *shape), any unit and frame.
        scales: For each entry of the results a positive number, (results,), [any unit], that of the entry.
        tolerance: Largest error relative to the scales, dimensionless.

    Raises:
        TraceError: For a graph with loops or lookup tables.
    """
    columns = [x.reshape(len(x), -1).T for x in samples]
    values = _values(graph, np.concatenate(columns))
    exact = _results(graph, values)
    terms, contributions = _terms(graph, values, scales)
    order = np.argsort([term.contribution for term in terms], kind="stable")
    sums = np.abs(np.cumsum(contributions[order], axis=0)).max(axis=(1, 2), initial=0.0)
    count = int(np.searchsorted(np.maximum.accumulate(sums), tolerance, side="right"))
    while True:  # the sum of the contributions is the error to first order
        dropped = tuple(terms[i] for i in sorted(order[:count].tolist()))
        shorter = _without(graph, {(term.sum, term.place) for term in dropped})
        errors = np.abs(_results(shorter, _values(shorter, np.concatenate(columns))) - exact).max(axis=1, initial=0.0)
        if not count or (errors <= tolerance * scales).all():
            return Approximation(shorter, dropped, errors)
        count = count * 9 // 10


def _values(graph: Graph, inputs: Array) -> list[Any]:
    """Return the value of every input and node at all samples, (samples,) each, for inputs (inputs, samples)."""
    values: list[Any] = list(inputs)
    with np.errstate(all="ignore"):  # of branches that `select` does not take
        for operation, arguments, _ in graph.nodes:
            function = getattr(np, _NAMES.get(operation, operation), None)
            if function is None:
                raise TraceError(f"terms of a function with the operation {operation} cannot be dropped")
            values.append(function(*[values[a] if isinstance(a, int) else a for a in arguments]))
    return values


def _results(graph: Graph, values: Sequence[Any]) -> Array:
    """Return the results at all samples, (results, samples)."""
    shape = np.shape(values[0])
    return np.array([np.broadcast_to(values[r] if isinstance(r, int) else r, shape) for r in graph.results])


def _terms(graph: Graph, values: Sequence[Any], scales: Array) -> tuple[list[Term], Array]:
    """Return the terms of the sums, and their contributions to the results, (terms, results, samples), over scales."""
    first = graph.input_size
    sums = [(n, node) for n, node in enumerate(graph.nodes, first) if node.operation in _SUMS]
    ends = np.cumsum([0, *(len(node.arguments) for node in graph.nodes)])
    slopes = _partials(graph, np.array(values[:first]))
    contributions = np.zeros((2 * len(sums), len(graph.results), len(values[0])))
    for j, result in enumerate(graph.results):
        if not isinstance(result, int):
            continue
        slope: list[Any] = [0.0] * len(values)
        slope[result] = 1.0 / scales[j]  # d result / d value of each value, accumulated from the result backward
        for n in range(len(values) - 1, first - 1, -1):
            if isinstance(slope[n], float) and slope[n] == 0.0:
                continue
            own = slopes[ends[n - first] : ends[n - first + 1]]
            for a, partial in zip(graph.nodes[n - first].arguments, own, strict=True):
                if isinstance(a, int) and partial.any():
                    slope[a] = slope[a] + slope[n] * partial
        for k, (n, (operation, arguments, _)) in enumerate(sums):
            for place, a in enumerate(arguments):
                sign = -1.0 if operation == "subtract" and place else 1.0
                contributions[2 * k + place, j] = sign * slope[n] * (values[a] if isinstance(a, int) else a)
    largest = np.abs(contributions).max(axis=(1, 2), initial=0.0)
    terms = [
        Term(n, place, float(largest[2 * k + place]), node.label)
        for k, (n, node) in enumerate(sums)
        for place in (0, 1)
    ]
    return terms, contributions


def _partials(graph: Graph, inputs: Array) -> Array:
    """Return the partial derivatives of all nodes by their operands, one after the other, (operands, samples)."""
    tracer = Tracer()
    with tracer:
        rows = partials(graph, [tracer.input() for _ in range(graph.input_size)])
        nodes, results = eliminate_dead_code(tracer, [x for row in rows for x in row])
    derivatives = replace(graph, nodes=nodes, results=results)
    return _results(derivatives, _values(derivatives, inputs))


def _without(graph: Graph, dropped: set[tuple[int, int]]) -> Graph:
    """Return the graph with zeros for the dropped terms, folded."""
    tracer = Tracer()
    rebuilt: list[Expression | float] = [tracer.input() for _ in range(graph.input_size)]
    with tracer:
        for number, (operation, arguments, label) in enumerate(graph.nodes, graph.input_size):
            tracer.label = label
            operands = [
                0.0 if (number, place) in dropped else rebuilt[a] if isinstance(a, int) else a
                for place, a in enumerate(arguments)
            ]
            rebuilt.append(CONSTRUCTORS[operation](*operands))
        results = [rebuilt[r] if isinstance(r, int) else r for r in graph.results]
        nodes, operands = eliminate_dead_code(tracer, results)
    return replace(graph, nodes=nodes, results=operands)
