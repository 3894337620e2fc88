"""Outline a large graph: write it as segments, each an instance of a template that alike segments share.

The bodies of a robot perform the same operations on different numbers. The values of a region of the graph (`regions`)
are renumbered: its operands from outside and its constants are counted in order of first use. Regions that are equal
with these numbers are segments of one template. Machine code is generated for templates, and a segment is a row in a
table of addresses and constants. The number of templates depends on how many kinds of bodies and neighborhoods a robot
has, not on the number of bodies. The bodies at the ends of a chain have templates of their own, since zeros were folded
there. Segments with a template of their own are joined to their neighbors, as nothing is gained by outlining them.

For a single state, independent segments of one template, such as those of a centipede's legs, are computed together in
the lanes of vectors: a SIMD bundle.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

from legged.compiler.ir.graph import Graph, Node
from legged.compiler.ir.operations import CONDITIONS
from legged.compiler.ir.pass_times import compiler_pass
from legged.compiler.ir.tracer import gc_paused
from legged.compiler.passes.call_batching import Batches
from legged.compiler.passes.outline.regions import MAX_REGION_SIZE, split_into_regions

_OF_CONDITIONS = frozenset({"select", "and", "or", "not"})
"""The operations with conditions among their arguments."""


@dataclass(eq=False)
class Template:
    """The operations that alike segments share.

    Attributes:
        nodes: Operations as (operation, arguments). An argument >= 0 is a node of the segment, one < 0 is ~number of an
            operand from outside, and None is the next constant.
        operand_count: Number of operands from outside.
        constant_count: Number of constants.
        outputs: Nodes of the segment that are used outside of it in one of its instances.
    """

    nodes: tuple[tuple[str, tuple[int | None, ...]], ...]
    operand_count: int
    constant_count: int
    outputs: set[int] = field(default_factory=set)

    def to_graph(self, uniform: Mapping[int, float]) -> Graph:
        """Return the template as a graph of two inputs: operands from outside, and constants.

        Args:
            uniform: Constants by number that are equal in all segments; they become part of the code.
        """
        first = self.operand_count + self.constant_count
        constants = iter([uniform.get(k, self.operand_count + k) for k in range(self.constant_count)])
        nodes = []
        for operation, arguments in self.nodes:
            numbers = [next(constants) if a is None else a + first if a >= 0 else ~a for a in arguments]
            nodes.append(Node(operation, tuple(numbers)))
        results = tuple(first + k for k in sorted(self.outputs))
        inputs = (("operands", (self.operand_count,)), ("constants", (self.constant_count,)))
        return Graph(inputs, tuple(nodes), ((len(results),),), results, next)


@dataclass(eq=False)
class Segment:
    """An outlined segment: a piece of a graph as an instance of a template.

    Attributes:
        template: Its operations.
        nodes: Its nodes in the graph, in the order of the template's.
        operands: Numbers of the values from outside.
        constants: Its constants.
    """

    template: Template
    nodes: Sequence[int]
    operands: list[int]
    constants: list[float]


class BundleType(NamedTuple):
    """The type of bundles with the same machine code: the template, and the number of lanes."""

    template: Template
    lanes: int


class Bundle(NamedTuple):
    """Segments of one template in the lanes of vectors. Unused lanes repeat the last segment."""

    segments: tuple[Segment, ...]
    lanes: int = 1

    @property
    def type(self) -> BundleType:
        """The machine code that the bundle needs."""
        return BundleType(self.segments[0].template, self.lanes)


class Section(NamedTuple):
    """The computation between two batches of calls: bundles in order, then the nodes that the calls compute."""

    bundles: list[Bundle]
    calls: list[int]


@compiler_pass("outlining")
def outline(graph: Graph, batches: Batches, lanes: int) -> list[Section]:
    """Return a graph with these batches of calls as sections of bundles with one lane or `lanes` lanes."""
    return [Section(pack_bundles(segments, lanes), calls) for segments, calls in _outlined(graph, batches)]


@gc_paused()
def _outlined(graph: Graph, batches: Batches) -> list[tuple[list[Segment], list[int]]]:
    """Return all nodes of a graph: segments in order, and the batch of calls after them, alternately."""
    templates: dict[Any, Template] = {}
    sections: list[tuple[list[Segment], list[int]]] = []
    done: set[int] = set()
    for calls, needed in batches:
        sections.append((_segments(graph, needed, templates), calls))
        done.update(calls, needed)
    rest = [i for i in range(graph.input_size, graph.input_size + len(graph.nodes)) if i not in done]
    sections.append((_segments(graph, rest, templates), []))
    _mark_outputs(graph, sections)
    return sections


def _segments(graph: Graph, nodes: Sequence[int], templates: dict[Any, Template]) -> list[Segment]:
    """Return the segments of some nodes, and add new templates to `templates`, which other nodes share."""
    segments = [_segment(graph, region, templates) for region in split_into_regions(graph, nodes)]
    instances = Counter(id(segment.template) for segment in segments)
    joined: list[Segment] = []
    for is_single, group in groupby(segments, lambda segment: instances[id(segment.template)] == 1):
        if is_single:
            joined += [_segment(graph, run, templates) for run in _joined(list(group))]
        else:
            joined += group
    return joined


def _joined(segments: list[Segment]) -> Iterator[list[int]]:
    """Yield the nodes of successive segments, joined up to `MAX_REGION_SIZE`."""
    run: list[int] = []
    for segment in segments:
        if len(run) + len(segment.nodes) > MAX_REGION_SIZE and run:
            yield run
            run = []
        run = list(dict.fromkeys([*run, *segment.nodes]))  # several segments may compute the same condition
    if run:
        yield run


def _segment(graph: Graph, run: Sequence[int], templates: dict[Any, Template]) -> Segment:
    """Return nodes as an instance of a template, which computes conditions from outside again."""
    first = graph.input_size
    local: dict[int, int] = {}
    operands: dict[int, int] = {}
    constants: list[float] = []
    nodes: list[tuple[str, tuple[int | None, ...]]] = []

    is_plain = _OF_CONDITIONS.isdisjoint([graph.nodes[i - first][0] for i in run])
    for i in run if is_plain else _with_conditions(graph, run, local):
        operation, arguments, _ = graph.nodes[i - first]
        numbers: list[int | None] = []
        for a in arguments:
            if type(a) is not int:
                constants.append(a)
                numbers.append(None)
            elif a in local:
                numbers.append(local[a])
            else:
                numbers.append(~operands.setdefault(a, len(operands)))
        local[i] = len(nodes)
        nodes.append((operation, tuple(numbers)))
    key = tuple(nodes)
    template = templates.get(key)
    if template is None:
        template = templates[key] = Template(key, len(operands), len(constants))
    return Segment(template, list(local), list(operands), constants)


def _with_conditions(graph: Graph, run: Iterable[int], known: Collection[int]) -> Iterator[int]:
    """Yield nodes that are not known yet, each after the conditions from outside of the run that it depends on."""
    first = graph.input_size
    for i in run:
        if i not in known:
            operation, arguments, _ = graph.nodes[i - first]
            if operation in _OF_CONDITIONS:
                inner = [a for a in arguments if type(a) is int and a >= first]
                inner = [a for a in inner if graph.nodes[a - first].operation in CONDITIONS]
                yield from _with_conditions(graph, inner, known)
            yield i


def _mark_outputs(graph: Graph, sections: list[tuple[list[Segment], list[int]]]) -> None:
    """Mark the nodes of templates that are used outside of a segment."""
    all_segments = [segment for segments, _ in sections for segment in segments]
    used = {a for segment in all_segments for a in segment.operands}
    used.update(r for r in graph.results if isinstance(r, int))
    for _, calls in sections:
        used.update(a for i in calls for a in graph.nodes[i - graph.input_size].arguments if isinstance(a, int))
    for segment in all_segments:
        for k, i in enumerate(segment.nodes):
            if i in used and segment.template.nodes[k][0] not in CONDITIONS:
                segment.template.outputs.add(k)


def pack_bundles(segments: Sequence[Segment], lanes: int) -> list[Bundle]:
    """Return segments as bundles with one lane or `lanes` lanes, in a valid order of computation."""
    single = [Bundle((segment,)) for segment in segments]
    if lanes == 1:
        return single
    bundles = list(_bundles(segments, lanes))
    return bundles if len(bundles) < len(single) else single


def _bundles(segments: Sequence[Segment], lanes: int) -> Iterator[Bundle]:
    """Yield bundles by list scheduling: the segment with the longest path to the end, and others of its template.

    Segments are bundled if at least half of the lanes are used.
    """
    used = {a for segment in segments for a in segment.operands}  # few of all nodes, which keeps `producer` small
    producer = {i: k for k, segment in enumerate(segments) for i in segment.nodes if i in used}
    needs = [{producer[a] for a in segment.operands if a in producer} for segment in segments]
    users: list[list[int]] = [[] for _ in segments]
    for k, others in enumerate(needs):
        for other in others:
            users[other].append(k)
    path_lengths = [0] * len(segments)
    for k in reversed(range(len(segments))):
        path_lengths[k] = len(segments[k].nodes) + max((path_lengths[user] for user in users[k]), default=0)
    ready_by_template: dict[Template, list[tuple[int, int]]] = {}
    ready: list[tuple[int, int]] = []
    released = [k for k, others in enumerate(needs) if not others]
    done: set[int] = set()
    while True:
        for k in released:
            heapq.heappush(ready, (-path_lengths[k], k))
            heapq.heappush(ready_by_template.setdefault(segments[k].template, []), (-path_lengths[k], k))
        while ready and ready[0][1] in done:
            heapq.heappop(ready)
        if not ready:
            return
        alike = ready_by_template[segments[ready[0][1]].template]
        count = len(alike) if 2 * len(alike) >= lanes else 1
        members = [heapq.heappop(alike)[1] for _ in range(min(count, lanes))]
        done.update(members)
        yield Bundle(tuple(segments[k] for k in sorted(members)), lanes if count > 1 else 1)
        released = []
        for k in members:
            for user in users[k]:
                needs[user].discard(k)
                if not needs[user]:
                    released.append(user)
