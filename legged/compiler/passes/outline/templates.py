"""Large graphs in alike pieces: segments, each the work of one turn of a loop, and the forms that they share.

The bodies of a robot do the same operations on other numbers. A graph's nodes, in the order of tracing, are cut
wherever their label changes; a piece is then written with numbers of its own: what it takes from outside is its
inputs, first its operands from elsewhere and then its constants, both in the order of their first use. Pieces that
read the same when written so are instances of one *form*, which is a graph itself. Machine code is made for forms;
an instance is a row of a table. How many forms there are depends on how many kinds of bodies and neighborhoods a
robot has, and not on how many bodies: those at the ends of a chain, for example, have forms of their own, since
zeros have folded there.

Pieces without an equal are joined to their neighbors: what repeats nothing is better compiled in one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from legged.compiler.ir.graph import Graph, Node
from legged.compiler.ir.operations import CONDITIONS
from legged.compiler.ir.tracer import gc_paused
from legged.compiler.passes.call_batching import rounds
from legged.compiler.passes.outline.regions import LARGEST, in_turns


@dataclass(eq=False)
class Form:
    """What alike segments have in common.

    Attributes:
        nodes: Operations with (operation, arguments): >= 0 is a node of the segment, < 0 is ~number of an operand from
            outside, None is the next constant.
        outputs: Nodes of the segment that are needed outside of one of its instances.
        size: How many operands come from outside.
        constants: How many constants there are.
    """

    nodes: tuple[tuple[str, tuple[int | None, ...]], ...]
    size: int
    constants: int
    outputs: set[int] = field(default_factory=set)

    def graph(self, fixed: Mapping[int, float]) -> Graph:
        """Return the form as a graph of two inputs, the operands from outside and the constants less the fixed ones."""
        first = self.size + self.constants
        constants = iter([fixed.get(k, self.size + k) for k in range(self.constants)])
        nodes = []
        for operation, arguments in self.nodes:
            numbers = (next(constants) if a is None else a + first if a >= 0 else ~a for a in arguments)
            nodes.append(Node(operation, tuple(numbers)))
        results = tuple(first + k for k in sorted(self.outputs))
        inputs = (("operands", (self.size,)), ("constants", (self.constants,)))
        return Graph(inputs, tuple(nodes), ((len(results),),), results, next)


@dataclass(eq=False)
class Segment:
    """A piece of a graph, as an instance of a form.

    Attributes:
        form: What it does.
        nodes: Its nodes in the graph, in the order of the form's.
        operands: The values that it takes from outside, by number.
        constants: Its constants.
    """

    form: Form
    nodes: Sequence[int]
    operands: list[int]
    constants: list[float]


@gc_paused()
def in_phases(graph: Graph) -> list[tuple[list[Segment], list[int]]]:
    """Return all of a graph's nodes: in each phase segments, in order, and nodes to call functions for after them."""
    forms: dict[Any, Form] = {}
    found: list[tuple[list[Segment], list[int]]] = []
    done: set[int] = set()
    for calls, needed in rounds(graph):
        found.append((_segments(graph, needed, forms), calls))
        done.update(calls, needed)
    rest = [i for i in range(graph.input_size, graph.input_size + len(graph.nodes)) if i not in done]
    found.append((_segments(graph, rest, forms), []))
    _mark_outputs(graph, found)
    return found


def _segments(graph: Graph, nodes: Sequence[int], forms: dict[Any, Form]) -> list[Segment]:
    """Return the segments of some nodes; forms are shared with other phases."""
    segments = [_segment(graph, turn, forms) for turn in in_turns(graph, nodes)]
    times = Counter(id(segment.form) for segment in segments)
    joined: list[Segment] = []
    for alone, group in groupby(segments, lambda segment: times[id(segment.form)] == 1):
        if alone:
            joined += [_segment(graph, run, forms) for run in _joined(list(group))]
        else:
            joined += group
    return joined


def _joined(segments: list[Segment]) -> Iterator[list[int]]:
    """Yield the nodes of neighboring segments, put together as far as `LARGEST` allows."""
    run: list[int] = []
    for segment in segments:
        if len(run) + len(segment.nodes) > LARGEST and run:
            yield run
            run = []
        run = list(dict.fromkeys([*run, *segment.nodes]))  # conditions may stand in several
    if run:
        yield run


def _segment(graph: Graph, run: Iterable[int], forms: dict[Any, Form]) -> Segment:
    """Return a run of nodes as an instance of a form; conditions from elsewhere are computed again in it."""
    first = graph.input_size
    local: dict[int, int] = {}
    operands: dict[int, int] = {}
    constants: list[float] = []
    nodes: list[tuple[str, tuple[int | None, ...]]] = []

    def operation_of(i: int) -> str:
        return graph.nodes[i - first].operation

    def take(i: int) -> None:
        operation, arguments, _ = graph.nodes[i - first]
        numbers: list[int | None] = []
        for a in arguments:
            if isinstance(a, int) and a >= first and a not in local and operation_of(a) in CONDITIONS:
                take(a)
        for a in arguments:
            if isinstance(a, float):
                constants.append(a)
                numbers.append(None)
            elif a in local:
                numbers.append(local[a])
            else:
                numbers.append(~operands.setdefault(a, len(operands)))
        local[i] = len(nodes)
        nodes.append((operation, tuple(numbers)))

    for i in run:
        if i not in local:
            take(i)
    key = tuple(nodes)
    form = forms.get(key)
    if form is None:
        form = forms[key] = Form(key, len(operands), len(constants))
    return Segment(form, list(local), list(operands), constants)


def _mark_outputs(graph: Graph, found: list[tuple[list[Segment], list[int]]]) -> None:
    """Tell forms which of their nodes are needed outside."""
    every = [segment for segments, _ in found for segment in segments]
    wanted = {a for segment in every for a in segment.operands}
    wanted.update(r for r in graph.results if isinstance(r, int))
    for _, calls in found:
        wanted.update(a for i in calls for a in graph.nodes[i - graph.input_size].arguments if isinstance(a, int))
    for segment in every:
        for k, i in enumerate(segment.nodes):
            if i in wanted and segment.form.nodes[k][0] not in CONDITIONS:
                segment.form.outputs.add(k)
