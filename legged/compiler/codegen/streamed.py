"""The core for a block of states that reads their rows where they lie, and writes them where they belong.

    int64 legged_rows(const int64 *arrays, double *work)

`arrays` holds two numbers for each argument and then for each result: the address of the first state's row, and the
bytes from one state's row to the next. Some columns are loaded and transposed in registers when the first of them is
needed; results go into their rows when the last of some neighbors is there, so that few wait in memory.

Meanwhile the memory of the next block is asked for, line of cache by line: it takes its time to come, results that
exceed the caches more than their computation, and a processor waits for a few dozen lines at once only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from legged.compiler.codegen import transpose
from legged.compiler.codegen.ir_writer import Value
from legged.compiler.codegen.outputs import Place, results
from legged.compiler.codegen.scalar import Core
from legged.compiler.codegen.transpose import Rows
from legged.compiler.ir.graph import Graph, Operand

ROWS = "legged_rows"
Group = tuple[Place, ...]
"""Neighbors in a row of results, which are moved together."""


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
        for operand, places in results(graph):
            if isinstance(operand, float):
                self._found.update(dict.fromkeys(places, self.w.float_constant(operand)))
        self._groups: dict[Place, list[Group]] = {}
        for group in _result_groups(graph, width):
            for place in group:
                self._groups.setdefault(place, []).append(group)
        self._delivered: set[Group] = set()

    def lines(self) -> Iterator[str]:
        yield transpose.ASKING
        yield from super().lines()

    def load_arrays(self) -> None:
        for k in range(len(self.graph.inputs) + len(self.graph.outputs)):
            first = self.w.assign(f"load ptr, ptr {self.w.gep('%arrays', 2 * k, 'i64')}, align 8")
            step = self.w.assign(f"load i64, ptr {self.w.gep('%arrays', 2 * k + 1, 'i64')}, align 8")
            self._arrays.append(Rows(first, step))

    def rest(self) -> None:
        begun = len(self.w.lines)
        super().rest()
        self._ask_ahead(begun)

    def _ask_ahead(self, begun: int) -> None:
        """Ask for the next block's rows, one line of cache every few lines of assembly from line `begun` on.

        As if they lay end to end, which they mostly do.
        """
        lines, asks = self.w.lines[begun:], []
        del self.w.lines[begun:]
        for array, size in zip(self._arrays, array_sizes(self.graph), strict=True):
            behind = array.behind(self.w)
            asks += [(behind, number) for number in range(0, size * self.w.width, transpose.LINE)]
        for n, line in enumerate(lines):
            self.w.lines.append(line)
            for behind, number in asks[n * len(asks) // len(lines) : (n + 1) * len(asks) // len(lines)]:
                transpose.ask(self.w, self.w.gep(behind, number))

    def value(self, operand: Operand) -> Value:
        """Return a value; an input is loaded with its neighbors."""
        if isinstance(operand, float) or operand >= self.graph.input_size:
            return super().value(operand)
        if operand not in self._columns:
            k, column, values = self._sources[operand]
            loaded = transpose.fetch(self.w, self._arrays[k], column, len(values))
            for i, vector in zip(values, loaded, strict=True):
                self._columns.setdefault(i, vector)
        return self._columns[operand]

    def _store(self, value: Value, places: list[Place]) -> None:
        """Keep a number until its neighbors are there, then put them into their rows."""
        self._found.update(dict.fromkeys(places, value))
        for group in [group for place in places for group in self._groups[place]]:
            if group not in self._delivered and all(place in self._found for place in group):
                self._delivered.add(group)
                array, column = group[0]
                transpose.deliver(self.w, [self._found[place] for place in group], self._arrays[array], column)


def _result_groups(graph: Graph, width: int) -> Iterator[Group]:
    """Yield the groups in which results go into their rows; the last of a row may overlap."""
    for k, size in list(enumerate(array_sizes(graph)))[len(graph.inputs) :]:
        count = transpose.together(size, width)
        for start in transpose.groups(range(size), size, width):
            yield tuple(Place(k, column) for column in range(start, start + count))


def _sources(graph: Graph, width: int) -> dict[int, tuple[int, int, range]]:
    """Return for each input that anything depends on: its array, and the first column and all values of its group."""
    used = {a for node in graph.nodes for a in node.arguments if isinstance(a, int)}
    used.update(r for r in graph.results if isinstance(r, int))
    sources: dict[int, tuple[int, int, range]] = {}
    first = 0
    for k, size in enumerate(array_sizes(graph)[: len(graph.inputs)]):
        columns = [c for c in range(size) if first + c in used]
        for start in transpose.groups(columns, size, width):
            values = range(first + start, first + start + transpose.together(size, width))
            sources.update({i: (k, start, values) for i in values if i not in sources})
        first += size
    return sources
