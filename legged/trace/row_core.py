"""The core for a block of states that reads their rows where they lie, and writes them where they belong.

    int64 legged_rows(const int64 *arrays, double *work)

`arrays` holds two numbers for each argument and then for each result: the address of the first state's row, and the
bytes from one state's row to the next. Some columns are loaded and transposed in registers when the first of them is
needed; results wait until all are there, and go into their rows end to end.
"""

from __future__ import annotations

import math

from legged.trace import transposition
from legged.trace.assembler import Value
from legged.trace.graph import Graph, Operand
from legged.trace.lowering import Core
from legged.trace.results import Place
from legged.trace.transposition import Rows

ROWS = "legged_rows"


def array_sizes(graph: Graph) -> list[int]:
    """Return how many numbers of a state each argument and each result has."""
    return [math.prod(shape) for shape in (*(shape for _, shape in graph.inputs), *graph.outputs)]


class RowCore(Core):
    """A core between rows."""

    name = ROWS

    def __init__(self, graph: Graph, width: int):
        super().__init__(graph, width, width)
        self._places.clear()  # of inputs, of which nothing is in memory yet
        self._arrays: list[Rows] = []
        self._columns: dict[int, Value] = {}
        self._sources = _sources(graph, width)
        self._found: dict[Place, Value] = {}

    def load_arrays(self) -> None:
        for k in range(len(self.graph.inputs) + len(self.graph.outputs)):
            first = self.w.let(f"load ptr, ptr {self.w.at('%arrays', 2 * k, 'i64')}, align 8")
            step = self.w.let(f"load i64, ptr {self.w.at('%arrays', 2 * k + 1, 'i64')}, align 8")
            self._arrays.append(Rows(first, step))

    def value(self, operand: Operand) -> Value:
        """Return a value; an input is loaded with its neighbours."""
        if isinstance(operand, float) or operand >= self.graph.input_size:
            return super().value(operand)
        if operand not in self._columns:
            k, column, values = self._sources[operand]
            loaded = transposition.fetch(self.w, self._arrays[k], column, len(values))
            for i, vector in zip(values, loaded, strict=True):
                self._columns.setdefault(i, vector)
        return self._columns[operand]

    def _store(self, value: Value, places: list[Place]) -> None:
        """Keep a number until all are there."""
        self._found.update(dict.fromkeys(places, value))

    def _wrong(self) -> Value:
        """Put all results into their rows, end to end, and return where one of them is not finite."""
        wrong, inputs = super()._wrong(), len(self.graph.inputs)
        for k, size in enumerate(array_sizes(self.graph)[inputs:], inputs):
            count = transposition.together(size, self.w.width)
            for c in transposition.groups(range(size), size, self.w.width):
                columns = [self._found[Place(k, c + i)] for i in range(count)]
                transposition.deliver(self.w, columns, self._arrays[k], c)
        return wrong


def _sources(graph: Graph, width: int) -> dict[int, tuple[int, int, range]]:
    """Return for each input that anything depends on: its array, and the first column and all values of its group."""
    used = {a for node in graph.nodes for a in node.arguments if isinstance(a, int)}
    used.update(r for r in graph.results if isinstance(r, int))
    sources: dict[int, tuple[int, int, range]] = {}
    first = 0
    for k, size in enumerate(array_sizes(graph)[: len(graph.inputs)]):
        columns = [c for c in range(size) if first + c in used]
        for start in transposition.groups(columns, size, width):
            values = range(first + start, first + start + transposition.together(size, width))
            sources.update({i: (k, start, values) for i in values if i not in sources})
        first += size
    return sources
