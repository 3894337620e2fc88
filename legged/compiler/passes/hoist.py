"""What does not change from step to step is computed once: a graph split in two."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace

from legged.compiler.ir.graph import Graph, Node, Operand
from legged.compiler.ir.operations import CONDITIONS


def hoist(graph: Graph, fixed: Collection[str]) -> tuple[Graph, Graph]:
    """Return (before, after): what depends on the fixed inputs alone, and the rest, which takes its results.

    Args:
        graph: A function.
        fixed: Names of inputs. `before` has these inputs, and one array (m,) as its output; `after` has that array in
            place of them, under the first one's name, and the outputs of the graph.
    """
    early, first = _early(graph, fixed), graph.input_size
    late = _late(graph, early)
    used = [a for i in late if i >= first for a in graph.nodes[i - first].arguments] + list(graph.results)
    handed = sorted({a for a in used if isinstance(a, int) and a not in late})
    inputs_before = tuple(entry for entry in graph.inputs if entry[0] in fixed)
    before = _part(graph, _needed(graph, handed), [name for name, _ in inputs_before], handed)
    before = replace(before, inputs=inputs_before, outputs=((len(handed),),), rebuild=next)
    return before, _after(graph, sorted(late), fixed, handed)


def _spans(graph: Graph) -> dict[str, range]:
    spans, end = {}, 0
    for name, shape in graph.inputs:
        spans[name] = range(end, end + math.prod(shape))
        end += math.prod(shape)
    return spans


def _early(graph: Graph, fixed: Collection[str]) -> set[int]:
    """Return the values that depend on the fixed inputs alone."""
    early = {i for name, span in _spans(graph).items() if name in fixed for i in span}
    for i, node in enumerate(graph.nodes, graph.input_size):
        if all(isinstance(a, float) or a in early for a in node.arguments):
            early.add(i)
    return early


def _late(graph: Graph, early: set[int]) -> set[int]:
    """Return the values to compute at every step: truth values cannot be handed over, so those are made again."""
    late = {i for i in range(graph.input_size + len(graph.nodes)) if i not in early}
    for i in range(graph.input_size + len(graph.nodes) - 1, graph.input_size - 1, -1):
        if i in late:
            for a in graph.nodes[i - graph.input_size].arguments:
                if isinstance(a, int) and a in early and _is_condition(graph, a):
                    late.add(a)
    return late


def _needed(graph: Graph, results: Collection[int]) -> list[int]:
    """Return the values that some results are made of, and these, in order."""
    needed = set(results)
    for i in range(graph.input_size + len(graph.nodes) - 1, graph.input_size - 1, -1):
        if i in needed:
            needed.update(a for a in graph.nodes[i - graph.input_size].arguments if isinstance(a, int))
    return sorted(needed)


def _is_condition(graph: Graph, value: int) -> bool:
    return value >= graph.input_size and graph.nodes[value - graph.input_size].operation in CONDITIONS


def _part(graph: Graph, values: list[int], names: list[str], results: list[int]) -> Graph:
    """Return the graph of some values, with these inputs in front, and these results."""
    numbers: dict[int, int] = {}
    for name in names:
        for i in _spans(graph)[name]:
            numbers[i] = len(numbers)
    nodes = _renumbered(graph, [i for i in values if i >= graph.input_size], numbers)
    return replace(graph, nodes=nodes, results=tuple(numbers[r] for r in results))


def _after(graph: Graph, late: list[int], fixed: Collection[str], handed: list[int]) -> Graph:
    numbers: dict[int, int] = {}
    inputs: list[tuple[str, tuple[int, ...]]] = []
    end, done = 0, False
    for name, shape in graph.inputs:
        if name not in fixed:
            numbers.update({i: end + k for k, i in enumerate(_spans(graph)[name])})
            inputs.append((name, shape))
            end += math.prod(shape)
        elif not done:
            numbers.update({i: end + k for k, i in enumerate(handed)})
            inputs.append((name, (len(handed),)))
            end, done = end + len(handed), True
    nodes = _renumbered(graph, [i for i in late if i >= graph.input_size], numbers, end)
    results = tuple(_operand(r, numbers) for r in graph.results)
    return replace(graph, inputs=tuple(inputs), nodes=nodes, results=results)


def _renumbered(graph: Graph, values: list[int], numbers: dict[int, int], end: int | None = None) -> tuple[Node, ...]:
    """Return the nodes of some values in the numbering of another graph, which grows by them."""
    nodes, end = [], len(numbers) if end is None else end
    for i in values:
        node = graph.nodes[i - graph.input_size]
        nodes.append(node._replace(arguments=tuple(_operand(a, numbers) for a in node.arguments)))
        numbers[i] = end
        end += 1
    return tuple(nodes)


def _operand(operand: Operand, numbers: dict[int, int]) -> Operand:
    return numbers[operand] if isinstance(operand, int) else operand
