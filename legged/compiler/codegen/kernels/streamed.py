"""Kernels on rows, the arrays of a batch, that transpose arguments and results in registers while they compute.

A group of argument columns is loaded and transposed when the first of them is needed. Results are stored when the last
of a group is computed, so that few values are spilled. The rows of the next block of states are prefetched one cache
line at a time, spread over the whole kernel: storing results that exceed the caches takes longer than computing them,
and a processor has only a few dozen outstanding memory requests.
"""

from __future__ import annotations

from collections.abc import Iterator

from legged.compiler.codegen.element_type import ElementType
from legged.compiler.codegen.ir_writer import Value
from legged.compiler.codegen.kernels.scalar import Entry, KernelWriter, distinct_outputs
from legged.compiler.codegen.kernels.transpose import (
    ROW_KERNEL,
    Rows,
    array_sizes,
    column_groups,
    group_size,
    load_columns,
    store_columns,
)
from legged.compiler.ir.graph import Graph, Operand

Group = tuple[Entry, ...]
"""Neighboring entries of a result that are stored together."""


class StreamedKernelWriter(KernelWriter):
    """Writes a kernel on rows; see `transpose.ROW_KERNEL` for its arguments."""

    def __init__(self, graph: Graph, width: int, element: ElementType):
        super().__init__(graph, width, width, element, ROW_KERNEL)
        self._addresses.clear()  # no argument is in memory as a column
        self._rows: list[Rows] = []
        self._columns: dict[int, Value] = {}
        self._input_groups = _input_groups(graph, width)
        self._result_values: dict[Entry, Value] = {}
        for operand, entries in distinct_outputs(graph):
            if isinstance(operand, float):
                self._result_values.update(dict.fromkeys(entries, self.w.float_constant(operand)))
        self._groups_of_entries: dict[Entry, list[Group]] = {}
        for group in _result_groups(graph, width):
            for entry in group:
                self._groups_of_entries.setdefault(entry, []).append(group)
        self._stored: set[Group] = set()

    def lines(self) -> Iterator[str]:
        yield "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)"
        yield from super().lines()

    def load_array_pointers(self) -> None:
        for k in range(len(self.graph.inputs) + len(self.graph.outputs)):
            self._rows.append(Rows.load(self.w, "%arrays", k))

    def compute_remaining(self) -> None:
        begin = len(self.w.lines)
        super().compute_remaining()
        self._insert_prefetches(begin)

    def _insert_prefetches(self, begin: int) -> None:
        """Prefetch the rows of the next block, one cache line every few instructions from line `begin` on.

        The rows are assumed to be contiguous, as they are in most calls. Lines are prefetched for reading into the
        second-level cache: no other core holds them, so they can be written as well, and prefetching for writing would
        displace spilled values from the first-level cache.
        """
        lines, prefetches = self.w.lines[begin:], []
        del self.w.lines[begin:]
        for rows, size in zip(self._rows, array_sizes(self.graph), strict=True):
            end = rows.end(self.w)
            prefetches += [(end, offset) for offset in range(0, size * self.w.width, self.w.element.per_cache_line)]
        for n, line in enumerate(lines):
            self.w.lines.append(line)
            first, last = (m * len(prefetches) // len(lines) for m in (n, n + 1))
            for end, offset in prefetches[first:last]:
                self.w.emit(f"call void @llvm.prefetch.p0(ptr {self.w.gep(end, offset)}, i32 0, i32 2, i32 1)")

    def value(self, operand: Operand) -> Value:
        """Return the name of a value or a literal; an argument is loaded together with its group."""
        if isinstance(operand, float) or operand >= self.graph.input_size:
            return super().value(operand)
        if operand not in self._columns:
            k, start, operands = self._input_groups[operand]
            loaded = load_columns(self.w, self._rows[k], start, len(operands))
            for i, vector in zip(operands, loaded, strict=True):
                self._columns.setdefault(i, vector)
        return self._columns[operand]

    def _store(self, value: Value, entries: list[Entry]) -> None:
        """Keep a result until its group is complete, then store the group."""
        self._result_values.update(dict.fromkeys(entries, value))
        for group in [group for entry in entries for group in self._groups_of_entries[entry]]:
            if group not in self._stored and all(entry in self._result_values for entry in group):
                self._stored.add(group)
                array, start = group[0]
                store_columns(self.w, [self._result_values[entry] for entry in group], self._rows[array], start)


def _result_groups(graph: Graph, width: int) -> Iterator[Group]:
    """Yield the groups in which results are stored; the last group of a row may overlap."""
    for k, size in list(enumerate(array_sizes(graph)))[len(graph.inputs) :]:
        count = group_size(size, width)
        for start in column_groups(range(size), size, width):
            yield tuple(Entry(k, column) for column in range(start, start + count))


def _input_groups(graph: Graph, width: int) -> dict[int, tuple[int, int, range]]:
    """Return the group of each argument entry that is used: the array, the first column, and the graph's operands."""
    used = {a for node in graph.nodes for a in node.arguments if isinstance(a, int)}
    used.update(r for r in graph.results if isinstance(r, int))
    groups: dict[int, tuple[int, int, range]] = {}
    first = 0
    for k, size in enumerate(array_sizes(graph)[: len(graph.inputs)]):
        columns = [c for c in range(size) if first + c in used]
        for start in column_groups(columns, size, width):
            operands = range(first + start, first + start + group_size(size, width))
            groups.update({i: (k, start, operands) for i in operands if i not in groups})
        first += size
    return groups
