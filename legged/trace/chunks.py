"""The core of a large graph, in functions of bearable size.

LLVM takes more than twice as long for a function of twice the length. A graph of more than `LARGE` nodes is cut, in
the order of tracing, into functions that hand their values on in the working memory: compile time then grows with the
number of operations, and robots of hundreds of links compile in seconds.
"""

from __future__ import annotations

from collections.abc import Iterator

from legged.trace.assembler import ATTRIBUTES, Value, Writer
from legged.trace.graph import Graph, Operand
from legged.trace.lowering import Core, rounds
from legged.trace.operations import CONDITIONS

LARGE = 30_000  # nodes: above that, a graph is cut
PART = 1_500  # nodes in a function


class ChunkedCore(Core):
    """A core whose operations after the last call are spread over several functions."""

    def __init__(self, graph: Graph, width: int, native: int):
        super().__init__(graph, width, native)
        self._parts: list[list[str]] = []

    def lines(self) -> Iterator[str]:
        main = list(super().lines())
        for k, body in enumerate(self._parts):
            yield f"define internal void @legged_part{k}(ptr %arrays, ptr noalias %work) noinline {ATTRIBUTES} {{"
            yield from body
            yield "}"
        yield from main

    def rest(self) -> None:
        parts, handed = cut(self.graph)
        first = self._reserve(len(handed) * self.w.width)
        self._handed = {i: first + place * self.w.width for place, i in enumerate(handed)}
        self._hand_on(i for i in handed if i in self.ready)
        main = self.w, self.ready
        for k, nodes in enumerate(parts):
            self.w, self.ready = Writer(main[0].width), set()
            self.load_arrays()
            self.emit(nodes)
            self._hand_on(i for i in nodes if i in self._handed)
            self.w.line("ret void")
            self._parts.append(self.w.lines)
            main[0].line(f"call void @legged_part{k}(ptr %arrays, ptr %work)")
        self.w, self.ready = main

    def value(self, operand: Operand) -> Value:
        """Return a value; a condition from another function is computed again, since memory holds numbers only."""
        if isinstance(operand, int) and operand not in self.ready and operand not in self._places:
            self.emit([operand])
        return super().value(operand)

    def _hand_on(self, nodes: Iterator[int]) -> None:
        for i in nodes:
            self.w.store(self.value(i), "%work", self._handed[i])
            self._places[i] = "%work", self._handed[i]


def cut(graph: Graph) -> tuple[list[list[int]], list[int]]:
    """Return (nodes of each function, nodes whose values are handed on from one function to another)."""
    early = {i for calls, needed in rounds(graph) for i in (*calls, *needed)}
    called = {i for calls, _ in rounds(graph) for i in calls}
    late = [i for i in range(graph.input_size, graph.input_size + len(graph.nodes)) if i not in early]
    parts = [late[start : start + PART] for start in range(0, len(late), PART)]
    owner = {i: k for k, nodes in enumerate(parts) for i in nodes}
    handed = {r for r in graph.results if isinstance(r, int) and r in owner}
    for i in late:
        for a in graph.nodes[i - graph.input_size].arguments:
            if isinstance(a, int) and a >= graph.input_size and a not in called and owner.get(a) != owner[i]:
                handed.update(_numbers(graph, a, owner, owner[i]))
    return parts, sorted(handed)


def _numbers(graph: Graph, i: int, owner: dict[int, int], user: int) -> Iterator[int]:
    """Yield a node, or behind a condition, which is computed again where it is used, the numbers that it needs."""
    node = graph.nodes[i - graph.input_size]
    if node.operation not in CONDITIONS:
        yield i
        return
    for a in node.arguments:
        if isinstance(a, int) and a >= graph.input_size and owner.get(a) != user:
            yield from _numbers(graph, a, owner, user)


def handed_room(graph: Graph, width: int) -> int:
    """Return how many numbers of working memory the values that are handed on take."""
    return -(-len(cut(graph)[1]) * width // 8) * 8 if len(graph.nodes) > LARGE else 0
