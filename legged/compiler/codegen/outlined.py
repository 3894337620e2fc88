"""The core of a large graph as code for its templates, run over tables of their segments: see `passes.outline`.

Code is as long as the templates together, and the tables hold a row for each bundle of segments: the offsets of its
operands in the working memory, in bytes, and its constants. Offsets and constants equal in all rows are in the code.

    void legged_kindK(double *work, int32 *rows, double *numbers, int64 count)      one form, `count` rows of it
    void legged_steps(double *work, int64 first, int64 end)                         steps, each a form and its rows
    void legged_collect(double *work, int32 *places, int64 count, double *target)   values for a call, side by side
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from legged.compiler.codegen import elementary
from legged.compiler.codegen.ir_writer import ATTRIBUTES, IRWriter, Value, float_literal
from legged.compiler.codegen.scalar import CORE, Core
from legged.compiler.ir.graph import Graph, Operand
from legged.compiler.passes.call_batching import round_up
from legged.compiler.passes.outline.memory_plan import WORD, Address, BundleTable, CallBatch, MemoryPlan
from legged.compiler.passes.outline.templates import Bundle, BundleType, outline
from legged.compiler.passes.scheduling import depth_first_order


class _KindCore(Core):
    """The operations of one kind of rows, as a function."""

    def __init__(self, kind: BundleType, table: BundleTable, width: int, native: int):
        super().__init__(kind.template.to_graph(table.uniform_constants), width * kind.lanes, native)
        self.kind, self.table = kind, table
        self._pointers: dict[int, Value] = {-1: "%work"}

    def function(self, name: str, blocks: list[list[int]]) -> Iterator[str]:
        """Yield the function; outputs are stored as soon as they are there."""
        w = self.w
        w.label("start")
        self._begin_loop()
        outputs = self._outputs(blocks)
        for i in depth_first_order(self.graph):
            self.emit([i])
            if i in outputs:
                column, place = outputs[i]
                w.store(self.value(i), self._pointer(column.entry), column.displacement // WORD + place * w.width)
        w.branch(w.assign("icmp slt i64 %k_next, %count"), "loop", "end")
        w.label("end")
        w.emit("ret void")
        yield f"define internal void @{name}(ptr noalias %work, ptr %rows, ptr %numbers, i64 %count) {ATTRIBUTES} {{"
        yield from w.lines
        yield "}"

    def _outputs(self, blocks: list[list[int]]) -> dict[int, tuple[Address, int]]:
        """Return (where its block is, place in it) of each node that is an output."""
        first = self.graph.input_size
        pairs = zip(self.table.outputs, blocks, strict=True)
        return {first + k: (column, place) for column, block in pairs for place, k in enumerate(block)}

    def _begin_loop(self) -> None:
        w = self.w
        w.jump("loop")
        w.label("loop")
        for name, first in (("k", "0"), ("row", "%rows"), ("number", "%numbers")):
            kind = "i64" if name == "k" else "ptr"
            w.assign(f"phi {kind} [{first}, %start], [%{name}_next, %loop]", f"%{name}")
        w.assign("add i64 %k, 1", "%k_next")
        w.assign(f"getelementptr inbounds i32, ptr %row, i64 {self.table.offsets.shape[1]}", "%row_next")
        w.assign(f"getelementptr inbounds double, ptr %number, i64 {self.table.constants.shape[1]}", "%number_next")

    def value(self, operand: Operand) -> Value:
        """Return a value, loaded at its first use."""
        size = self.kind.template.operand_count
        if isinstance(operand, float) or operand in self.ready or operand >= self.graph.input_size:
            return super().value(operand)
        self.ready.add(operand)
        name = f"%v{operand}"
        if operand < size:
            return self._operand(self.table.operands[operand], name)
        place = self.table.varying_constants[operand - size]
        return (
            self.w.load("%number", place, name)
            if self.kind.lanes > 1
            else self.w.load_broadcast("%number", place, name)
        )

    def _operand(self, column: Address, name: Value) -> Value:
        w, rest = self.w, column.displacement // WORD
        if column.layout == "contiguous":
            return w.load(self._pointer(column.entry), rest, name)
        if column.layout == "broadcast":
            return w.load_broadcast(self._pointer(column.entry), rest, name)
        vector = "poison"
        for lane in range(w.width):
            number = w.assign(f"load double, ptr {w.gep(self._pointer(column.entry + lane), rest)}, align 8")
            last = name if lane == w.width - 1 else None
            vector = w.assign(f"insertelement {w.float_type} {vector}, double {number}, i64 {lane}", last)
        return vector

    def _pointer(self, entry: int) -> Value:
        """Return the place that an entry of the row tells."""
        w = self.w
        if entry not in self._pointers:
            distance = w.assign(f"load i32, ptr {w.gep('%row', entry, 'i32')}, align 4")
            self._pointers[entry] = w.gep("%work", w.assign(f"sext i32 {distance} to i64"), "i8")
        return self._pointers[entry]


class RolledCore(Core):
    """A core whose code is that of its kinds of rows.

    Attributes:
        length: How many operations the code has.
    """

    def __init__(self, graph: Graph, width: int, native: int):
        super().__init__(graph, width, native)
        lanes = native if width == 1 else 1
        self._sections = outline(graph, lanes)
        self._kinds: dict[BundleType, list[Bundle]] = {}
        for section in self._sections:
            for bundle in section.bundles:
                self._kinds.setdefault(bundle.type, []).append(bundle)
        self.length = sum(len(kind.template.nodes) for kind in self._kinds)
        self._memory = MemoryPlan(graph, self._sections, width, native)
        self._table: list[int] = []
        self._numbers: list[float] = []
        self._steps: list[tuple[int, int, int, int]] = []

    def lines(self) -> Iterator[str]:
        tables = {kind: BundleTable(kind, bundles, self._memory, self.w.width) for kind, bundles in self._kinds.items()}
        for k, (kind, table) in enumerate(tables.items()):
            core = _KindCore(kind, table, self.w.width, self.native)
            yield from core.function(f"legged_kind{k}", self._memory.output_blocks[kind.template])
        ends = self._make_steps(tables)
        main = self._main(ends)
        yield from _run_steps(len(tables))
        yield from _collect(self.w.width)
        yield _data("table", np.array(self._table, dtype=np.int32))
        yield _data("numbers", np.array(self._numbers, dtype=float))
        yield _data("steps_table", np.array(self._steps, dtype=np.int32))
        yield "declare ptr @legged_allocate(i64)"
        yield "declare void @legged_release(ptr)"
        yield "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"
        unused = "" if self.w.width == 1 else ", ptr noalias %_"
        yield f"define internal i64 @{CORE}(ptr %arrays{unused}) {ATTRIBUTES} {{"
        yield from main
        yield "}"

    def _make_steps(self, tables: dict[BundleType, BundleTable]) -> list[int]:
        """Lay the tables end to end and write down the steps; return where those of each section end."""
        numbers = {kind: k for k, kind in enumerate(tables)}
        starts = {}
        for kind, table in tables.items():
            starts[kind] = len(self._table), len(self._numbers)
            self._table += table.offsets.ravel().tolist()
            self._numbers += table.constants.ravel().tolist()
        done = dict.fromkeys(tables, 0)
        ends = []
        for section in self._sections:
            for kind, group in itertools.groupby(section.bundles, lambda bundle: bundle.type):
                (entry, number), first, count = starts[kind], done[kind], len(list(group))
                entry += first * tables[kind].offsets.shape[1]
                number += first * tables[kind].constants.shape[1]
                self._steps.append((numbers[kind], entry, number, count))
                done[kind] += count
            ends.append(len(self._steps))
        return ends

    def _main(self, ends: list[int]) -> list[str]:
        """Return the core's body; where no memory can be had, its answer counts as not finite."""
        w, memory = self.w, self._memory
        self.load_arrays()
        size = memory.size * WORD * w.width
        raw = w.assign(f"call ptr @legged_allocate(i64 {size + 128})")
        w.branch(w.assign(f"icmp eq ptr {raw}, null"), "full", "run")
        w.label("full")
        w.emit("ret i64 1")
        w.label("run")
        address = w.assign(f"add i64 {w.assign(f'ptrtoint ptr {raw} to i64')}, 63")
        w.assign(f"inttoptr i64 {w.assign(f'and i64 {address}, -64')} to ptr", "%work")
        self._fetch()
        for first, end, calls in zip([0, *ends], ends, memory.calls, strict=False):
            if end > first:
                w.emit(f"call void @legged_steps(ptr %work, i64 {first}, i64 {end})")
            for call in calls:
                self._call_by_table(call)
        wrong = self._deliver()
        w.emit(f"call void @legged_release(ptr {raw})")
        w.emit(f"ret i64 {wrong}")
        return w.lines

    def _fetch(self) -> None:
        """Copy the inputs into the memory, and the constants that are values there."""
        w, start = self.w, 0
        for k, (_, shape) in enumerate(self.graph.inputs):
            count = math.prod(shape)
            target = w.gep("%work", start * w.width)
            size = count * WORD * w.width
            w.emit(f"call void @llvm.memcpy.p0.p0.i64(ptr align 8 {target}, ptr align 8 %a{k}, i64 {size}, i1 false)")
            start += count
        for x, place in self._memory.constant_offsets.items():
            w.store(w.float_constant(x), "%work", place * w.width)

    def _call_by_table(self, call: CallBatch) -> None:
        w = self.w
        self.called.add(call.function)
        size = len(call.calls) * w.width
        padded = round_up(size, self.native)
        for k, place in enumerate(call.input_offsets):
            operands = [one.arguments[k] for one in call.calls]
            self._copy(operands, w.gep("%work", place * w.width))
            for extra in range(size, padded):
                w.emit(f"store double {float_literal(1.0)}, ptr {w.gep('%work', place * w.width + extra)}, align 8")
        pointers = [f"ptr {w.gep('%work', place * w.width)}" for place in (*call.input_offsets, *call.output_offsets)]
        count = padded if call.function in elementary.FORMULAS else size
        w.emit(f"call void @legged_{call.function}({', '.join(pointers)}, i64 {count})")

    def _copy(self, operands: Sequence[Operand], target: Value) -> Value:
        """Copy values to where they are to lie side by side; return a bit for each lane with one that is not finite."""
        table = self.w.gep("@legged_table", len(self._table), "i32")
        self._table += [self._memory.offset(x) * WORD * self.w.width for x in operands]
        return self.w.assign(f"call i64 @legged_collect(ptr %work, ptr {table}, i64 {len(operands)}, ptr {target})")

    def _deliver(self) -> Value:
        """Copy the results to where they belong; return a bit for each lane with one that is not finite."""
        wrong, results = "0", iter(self.graph.results)
        for k, shape in enumerate(self.graph.outputs, len(self.graph.inputs)):
            if count := math.prod(shape):
                bits = self._copy(list(itertools.islice(results, count)), f"%a{k}")
                wrong = self.w.assign(f"or i64 {wrong}, {bits}")
        return wrong


def _run_steps(kinds: int) -> Iterator[str]:
    """Yield the function that runs steps, one after the other."""
    w = IRWriter(1)
    w.label("start")
    w.jump("loop")
    w.label("loop")
    w.assign("phi i64 [%first, %start], [%k_next, %next]", "%k")
    step = w.gep("@legged_steps_table", w.assign("mul i64 %k, 4"), "i32")
    form, row, number, count = (w.assign(f"load i32, ptr {w.gep(step, entry, 'i32')}, align 4") for entry in range(4))
    rows, numbers, count = (w.assign(f"sext i32 {x} to i64") for x in (row, number, count))
    rows, numbers = w.gep("@legged_table", rows, "i32"), w.gep("@legged_numbers", numbers)
    w.emit(f"switch i32 {form}, label %next [{' '.join(f'i32 {k}, label %do{k}' for k in range(kinds))}]")
    for k in range(kinds):
        w.label(f"do{k}")
        w.emit(f"call void @legged_kind{k}(ptr %work, ptr {rows}, ptr {numbers}, i64 {count})")
        w.jump("next")
    w.label("next")
    w.assign("add i64 %k, 1", "%k_next")
    w.branch(w.assign("icmp slt i64 %k_next, %end"), "loop", "done")
    w.label("done")
    w.emit("ret void")
    yield f"define internal void @legged_steps(ptr noalias %work, i64 %first, i64 %end) {ATTRIBUTES} {{"
    yield from w.lines
    yield "}"


def _collect(width: int) -> Iterator[str]:
    """Yield the function that copies values side by side; x - x has no bits set for finite x alone."""
    w = IRWriter(width)
    w.label("start")
    w.jump("loop")
    w.label("loop")
    w.assign("phi i64 [0, %start], [%k_next, %loop]", "%k")
    w.assign(f"phi {w.int_type} [{w.int_constant(0)}, %start], [%seen_next, %loop]", "%seen")
    place = w.assign(f"load i32, ptr {w.gep('%places', '%k', 'i32')}, align 4")
    value = w.load(w.gep("%work", w.assign(f"sext i32 {place} to i64"), "i8"))
    w.emit(f"store {w.float_type} {value}, ptr {w.gep('%target', '%k', w.float_type)}, align 8")
    bits = w.bitcast_to_int(w.float_op("fsub", value, value))
    w.assign(f"or {w.int_type} %seen, {bits}", "%seen_next")
    w.assign("add i64 %k, 1", "%k_next")
    w.branch(w.assign("icmp slt i64 %k_next, %count"), "loop", "end")
    w.label("end")
    wrong = w.assign(f"icmp ne {w.int_type} %seen_next, {w.int_constant(0) if width == 1 else 'zeroinitializer'}")
    w.emit(f"ret i64 {w.assign(f'zext i{width} {w.lane_mask(wrong)} to i64')}")
    yield f"define internal i64 @legged_collect(ptr %work, ptr %places, i64 %count, ptr %target) {ATTRIBUTES} {{"
    yield from w.lines
    yield "}"


def _data(name: str, array: np.ndarray) -> str:
    """Return the definition of a table, byte by byte: numbers in words would take long to read."""
    content = array.tobytes()
    text = "\\" + content.hex("\\") if content else ""
    return f'@legged_{name} = internal constant [{len(content)} x i8] c"{text}", align 64'
