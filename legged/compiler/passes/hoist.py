"""Loop-invariant code motion: split the graph of one time step into its invariant and its variant part."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace

from legged.compiler import mechanisms
from legged.compiler.ir.graph import Graph, Node
from legged.compiler.ir.operations import CONDITIONS
from legged.compiler.ir.pass_times import compiler_pass
from legged.compiler.ir.tracer import gc_paused


@compiler_pass("loop-invariant code motion")
@gc_paused()
def hoist(graph: Graph, invariant: Collection[str]) -> tuple[Graph, Graph]:
    """Return (preheader, body): the loop-invariant part of a graph, run once before a loop, and the rest.

    Args:
        graph: The function that a loop repeats.
        invariant: Names of the inputs that keep their values during the loop.

    Returns:
        preheader: Takes the invariant inputs and returns one array (m,), the invariant values that the body uses.
        body: Takes that array in place of the invariant inputs, under the name of the first of them, beside the other
            inputs, and returns the outputs of the graph.

        Neither checks the norms of quaternions.
    """
    invariant_values = _invariant_values(graph, invariant)
    variant = _variant_values(graph, invariant_values)
    first = graph.input_size
    used = [a for i in variant if i >= first for a in graph.nodes[i - first].arguments] + list(graph.results)
    live_out = sorted({a for a in used if isinstance(a, int) and a not in variant})
    return _preheader(graph, invariant, live_out), _body(graph, sorted(variant), invariant, live_out)


def _ranges(graph: Graph) -> dict[str, range]:
    """Return the numbers of the values of each input."""
    ranges, end = {}, 0
    for name, shape in graph.inputs:
        ranges[name] = range(end, end + math.prod(shape))
        end += math.prod(shape)
    return ranges


def _invariant_values(graph: Graph, invariant: Collection[str]) -> set[int]:
    """Return the values that depend on the invariant inputs alone."""
    values = {i for name, numbers in _ranges(graph).items() if name in invariant for i in numbers}
    if not mechanisms.is_on(mechanisms.HOISTING):
        return values
    for i, (_, arguments, _) in enumerate(graph.nodes, graph.input_size):
        for a in arguments:
            if type(a) is int and a not in values:
                break
        else:
            values.add(i)
    return values


def _variant_values(graph: Graph, invariant: set[int]) -> set[int]:
    """Return the values to compute in the loop.

    Invariant conditions are among them, since the array of invariant values holds no truth values.
    """
    first, end = graph.input_size, graph.input_size + len(graph.nodes)
    variant = {i for i in range(end) if i not in invariant}
    for i in reversed(range(first, end)):
        if i in variant:
            for a in graph.nodes[i - first].arguments:
                if type(a) is int and a >= first and a in invariant and graph.nodes[a - first].operation in CONDITIONS:
                    variant.add(a)
    return variant


def _preheader(graph: Graph, invariant: Collection[str], live_out: list[int]) -> Graph:
    """Return the graph of the invariant values that the loop uses."""
    first, needed = graph.input_size, set(live_out)
    for i in reversed(range(first, first + len(graph.nodes))):
        if i in needed:
            needed.update([a for a in graph.nodes[i - first].arguments if type(a) is int])
    ranges, inputs = _ranges(graph), tuple(entry for entry in graph.inputs if entry[0] in invariant)
    numbers = {i: k for k, i in enumerate(i for name, _ in inputs for i in ranges[name])}
    nodes = _renumbered(graph, sorted(i for i in needed if i >= first), numbers, len(numbers))
    results = tuple(numbers[r] for r in live_out)
    return replace(
        graph,
        inputs=inputs,
        nodes=nodes,
        results=results,
        outputs=((len(live_out),),),
        rebuild=next,
        unit_quaternions=(),
    )


def _body(graph: Graph, variant: list[int], invariant: Collection[str], live_out: list[int]) -> Graph:
    """Return the graph of the values to compute in the loop."""
    numbers: dict[int, int] = {}
    inputs: list[tuple[str, tuple[int, ...]]] = []
    ranges, end, has_live_out = _ranges(graph), 0, False
    for name, shape in graph.inputs:
        if name not in invariant:
            numbers.update({i: end + k for k, i in enumerate(ranges[name])})
            inputs.append((name, shape))
            end += math.prod(shape)
        elif not has_live_out:
            numbers.update({i: end + k for k, i in enumerate(live_out)})
            inputs.append((name, (len(live_out),)))
            end, has_live_out = end + len(live_out), True
    nodes = _renumbered(graph, [i for i in variant if i >= graph.input_size], numbers, end)
    results = tuple([numbers[r] if isinstance(r, int) else r for r in graph.results])
    return replace(graph, inputs=tuple(inputs), nodes=nodes, results=results, unit_quaternions=())


def _renumbered(graph: Graph, values: list[int], numbers: dict[int, int], end: int) -> tuple[Node, ...]:
    """Return some nodes in the numbering of another graph, and add them to `numbers`, counting from `end`."""
    nodes = []
    for k, i in enumerate(values, end):
        operation, arguments, label = graph.nodes[i - graph.input_size]
        nodes.append(Node(operation, tuple([numbers[a] if type(a) is int else a for a in arguments]), label))
        numbers[i] = k
    return tuple(nodes)
