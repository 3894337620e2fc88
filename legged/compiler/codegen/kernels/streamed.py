"""Kernels on rows, the arrays of a batch, that transpose arguments and results in registers while they compute.

A group of argument columns is loaded and transposed when the first of them is needed. Results are stored when the last
of a group is computed, so that few values are spilled. The rows of the next block of states are prefetched one cache
line at a time, spread over the whole kernel: storing results that exceed the caches takes longer than computing them,
and a processor has only a few dozen outstanding memory requests.

The code of a long kernel exceeds the instruction cache. It is therefore cut into sections, functions of their own, each
of which is executed for several vectors of states before the next. Numbers that later sections need are stored in a
frame for each vector.
"""

from __future__ import annotations

from collections.abc import Iterator

from legged.compiler.codegen import llvm
from legged.compiler.codegen.element_type import ElementType
from legged.compiler.codegen.ir_writer import ATTRIBUTES, IRWriter, Value
from legged.compiler.codegen.kernels.scalar import KernelWriter
from legged.compiler.codegen.kernels.transpose import (
    ROW_KERNEL,
    Rows,
    array_sizes,
    column_groups,
    group_size,
    load_columns,
    store_columns,
)
from legged.compiler.ir.graph import Entry, Graph, Operand, distinct_outputs
from legged.compiler.ir.operations import CONDITIONS
from legged.compiler.passes.call_batching import round_up

_LONG_GRAPH, _LONG_GRAPH_WITHOUT_FMA, _LONG_GRAPH_WITH_32_REGISTERS = 2700, 2000, 6000
"""Numbers of nodes whose code fills an instruction cache of 32 kB, with 12 bytes for a node with AVX2 and 15 with SSE2.
The last one is an estimate for ARM, where no processor has been measured."""
_SECTION, _VECTORS = 1500, 16
"""Long graphs are written in sections of about as many nodes as the first, for at most as many vectors as the second,
and 64 states, together. Vectors as long as a cache line are evaluated one by one: their frames are so large that
sections cost more than they gain."""

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
        self._operands = {entry: operand for operand, entries in distinct_outputs(graph) for entry in entries}
        self._known = {entry for entry, operand in self._operands.items() if isinstance(operand, float)}
        self._groups_of_entries: dict[Entry, list[Group]] = {}
        self._unstored_groups: set[Group] = set()
        for group in _result_groups(graph, width):
            self._unstored_groups.add(group)
            for entry in group:
                self._groups_of_entries.setdefault(entry, []).append(group)
        self._vectors = most_vectors(graph, width, element)
        self._in_sections = self._vectors > 1
        self._sections: list[list[str]] = []
        self._frame_size = 0

    def lines(self) -> Iterator[str]:
        yield "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)"
        if not self._in_sections:
            yield f"define internal i64 @{self.name}(ptr %arrays, ptr noalias %work, i64 %n) {ATTRIBUTES} {{"
            yield from self._body()
            yield "}"
            return
        last = self._body()
        for k, section in enumerate([*self._sections, last]):
            parameters = "ptr %arrays, ptr noalias %work, ptr noalias %frame, i64 %block"
            yield f"define internal i64 @{self.name}_{k}({parameters}) {ATTRIBUTES} {{"
            yield from section
            yield "}"
        yield from self._loops_over_vectors(len(self._sections) + 1)

    def load_array_pointers(self) -> None:
        block = "%block" if self._in_sections else None
        arrays = range(len(self.graph.inputs) + len(self.graph.outputs))
        self._rows = [Rows.load(self.w, "%arrays", k, block) for k in arrays]

    def compute_remaining(self) -> None:
        sections = self.schedule_remaining(_SECTION if self._in_sections else None)
        first, nodes = self.graph.input_size, self.graph.nodes
        last = {a: k for k, x in enumerate(sections) for i in x for a in nodes[i - first].arguments if type(a) is int}
        later = set(last)
        for k, section in enumerate(sections):
            begin = len(self.w.lines)
            self.compute(section)
            self._insert_prefetches(begin, k, len(sections))
            later = {a for a in later if last[a] > k}
            if k + 1 < len(sections):
                self._end_section(later)

    def _end_section(self, used: set[int]) -> None:
        """Store the numbers that later nodes need, and begin another section; `used` are operands of these nodes."""
        first = self.graph.input_size
        entries = {entry for group in self._unstored_groups for entry in group}
        used = used | {a for entry in entries if isinstance(a := self._operands[entry], int)}
        known = self.computed | self._columns.keys()
        passed = sorted(i for i in used & known if i not in self._addresses)
        if any(i >= first and self.operation(i) in CONDITIONS for i in passed):
            return
        for i in passed:
            value = self.value(i)
            self._addresses[i] = ("%frame", self._frame_size)
            self.w.store(value, *self._addresses[i])
            self._frame_size += self.w.width
        self._return(self._not_finite())
        self._sections.append([*self.w.lines])
        self.w.lines.clear()
        self._finite_sums.clear()
        self._columns.clear()
        self.computed.difference_update(self._addresses)
        self.load_array_pointers()

    def _loops_over_vectors(self, count: int) -> Iterator[str]:
        """Yield the kernel on rows, which executes each section for all vectors of states before the next."""
        w = IRWriter(1, self.w.element)
        work = round_up(self.work_size, w.element.per_cache_line)
        memory = round_up(work + self._frame_size, w.element.per_cache_line)
        w.label("start")
        w.assign(f"alloca [{self._vectors * memory} x {w.element.llvm}], align 64", "%memory")
        w.jump("section0")
        before, not_finite = "start", "0"
        for k in range(count):
            label, after = f"section{k}", f"section{k + 1}"
            w.label(label)
            w.assign(f"phi i64 [0, %{before}], [%next{k}, %{label}]", f"%block{k}")
            failed = w.assign(f"phi i64 [{not_finite}, %{before}], [%failed{k}, %{label}]")
            own = w.gep("%memory", w.assign(f"mul i64 %block{k}, {memory}"))
            arguments = f"ptr %arrays, ptr {own}, ptr {w.gep(own, work)}, i64 %block{k}"
            lanes = w.assign(f"call i64 @{self.name}_{k}({arguments})")
            shift = w.assign(f"mul i64 %block{k}, {self.w.width}")
            w.assign(f"or i64 {failed}, {w.assign(f'shl i64 {lanes}, {shift}')}", f"%failed{k}")
            w.assign(f"add i64 %block{k}, 1", f"%next{k}")
            w.branch(w.assign(f"icmp slt i64 %next{k}, %n"), label, after)
            before, not_finite = label, f"%failed{k}"
        w.label(f"section{count}")
        w.emit(f"ret i64 {not_finite}")
        yield f"define internal i64 @{self.name}(ptr %arrays, ptr noalias %work, i64 %n) {ATTRIBUTES} {{"
        yield from w.lines
        yield "}"

    def _insert_prefetches(self, begin: int, k: int, count: int) -> None:
        """Prefetch the rows of the next block, one cache line every few instructions from line `begin` on.

        Section k of `count` prefetches its share of the lines.

        The rows are assumed to be contiguous, as they are in most calls. Lines are prefetched for reading into the
        second-level cache: no other core holds them, so they can be written as well, and prefetching for writing would
        displace spilled values from the first-level cache.
        """
        lines, prefetches = self.w.lines[begin:], []
        del self.w.lines[begin:]
        for rows, size in zip(self._rows, array_sizes(self.graph), strict=True):
            end = rows.end(self.w)
            prefetches += [(end, offset) for offset in range(0, size * self.w.width, self.w.element.per_cache_line)]
        written, total = 0, len(prefetches)
        for j in range(k * total // count, (k + 1) * total // count) if lines else ():
            line = -(-(j + 1) * count * len(lines) // total) - k * len(lines)
            self.w.lines += lines[written:line]
            end, offset = prefetches[j]
            self.w.emit(f"call void @llvm.prefetch.p0(ptr {self.w.gep(end, offset)}, i32 0, i32 2, i32 1)")
            written = line
        self.w.lines += lines[written:]

    def value(self, operand: Operand) -> Value:
        """Return the name of a value or a literal; an argument is loaded together with its group."""
        if type(operand) is int and operand in self.computed:
            return f"%v{operand}"  # without a call of the base class, which most operands would need
        if isinstance(operand, float) or operand >= self.graph.input_size:
            return super().value(operand)
        if operand in self._addresses and operand not in self._columns:
            self._columns[operand] = self.w.load(*self._addresses[operand])
        if operand not in self._columns:
            k, start, operands = self._input_groups[operand]
            loaded = load_columns(self.w, self._rows[k], start, len(operands))
            for i, vector in zip(operands, loaded, strict=True):
                self._columns.setdefault(i, vector)
        return self._columns[operand]

    def _store(self, value: Value, entries: list[Entry]) -> None:
        """Store the groups of entries that are complete now."""
        self._known.update(entries)
        for group in [group for entry in entries for group in self._groups_of_entries[entry]]:
            if group in self._unstored_groups and self._known.issuperset(group):
                self._unstored_groups.remove(group)
                array, start = group[0]
                values = [self.value(self._operands[entry]) for entry in group]
                store_columns(self.w, values, self._rows[array], start)


def most_vectors(graph: Graph, width: int, element: ElementType) -> int:
    """Return the largest number of vectors of states that the kernel of a graph evaluates together."""
    most = _LONG_GRAPH if element.has_fma else _LONG_GRAPH_WITHOUT_FMA
    if llvm.current_target().vector_registers == 32:
        most = _LONG_GRAPH_WITH_32_REGISTERS
    is_long = len(graph.nodes) > most and width < element.per_cache_line
    return min(_VECTORS, 64 // width) if is_long else 1


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
