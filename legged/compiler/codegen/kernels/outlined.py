"""Kernels of large graphs as loops over tables: one function for each type of bundles, see `passes.outline`.

The code is as long as the templates together. A table holds a row for each bundle: the offsets of its operands in the
working memory, [bytes], and its constants. Offsets and constants that are equal in all rows are part of the code. The
kernel executes *runs*: bundles of one type, in consecutive rows of its table.

    void <kernel>_bundles_K(real *work, int32 *rows, real *constants, int64 count)    `count` bundles of type K
    void <kernel>_run(real *work, int64 first, int64 end)                           runs first, ..., end - 1
    int64 <kernel>_gather_values(real *work, int32 *offsets, int64 count, real *target)
                                                copies values to contiguous memory; sets a bit for each lane with one
                                                that is not finite
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import numpy as np

from legged.compiler.codegen import elementary
from legged.compiler.codegen.element_type import ElementType
from legged.compiler.codegen.formulas import FORMULAS
from legged.compiler.codegen.ir_writer import ATTRIBUTES, IRWriter, Value
from legged.compiler.codegen.kernels import loops
from legged.compiler.codegen.kernels.scalar import KERNEL, KernelWriter
from legged.compiler.ir.graph import Graph, Operand
from legged.compiler.ir.operations import Loop, Matrix
from legged.compiler.passes.call_batching import round_up
from legged.compiler.passes.outline.memory_plan import Address, BundleTable, CallBatch, MemoryPlan
from legged.compiler.passes.outline.templates import Bundle, BundleType
from legged.compiler.passes.pipeline import MemoryRequest, run_passes


class _BundleWriter(KernelWriter):
    """Writes the function that computes bundles of one type in a loop over the rows of their table."""

    def __init__(self, bundle_type: BundleType, table: BundleTable, width: int, native: int, element: ElementType):
        graph = run_passes(bundle_type.template.to_graph(table.uniform_constants), simplified=True).graph
        super().__init__(graph, width * bundle_type.lanes, native, element)
        self.type, self.table = bundle_type, table
        self._pointers: dict[int, Value] = {-1: "%work"}

    def input_addresses(self) -> dict[int, tuple[Value, int]]:
        """Return nothing: `load_value` finds the inputs by the table."""
        return {}

    def function(self, name: str, output_blocks: list[list[int]]) -> Iterator[str]:
        """Yield the function; each output is stored as soon as it is computed."""
        w = self.w
        w.label("start")
        w.jump("loop")
        w.label("loop")
        for variable, start in (("k", "0"), ("row", "%rows"), ("constant", "%constants")):
            value_type = "i64" if variable == "k" else "ptr"
            w.assign(f"phi {value_type} [{start}, %start], [%{variable}_next, %loop]", f"%{variable}")
        w.assign("add i64 %k, 1", "%k_next")
        w.assign(f"getelementptr inbounds i32, ptr %row, i64 {self.table.offsets.shape[1]}", "%row_next")
        columns = self.table.constants.shape[1]
        w.assign(f"getelementptr inbounds {w.element.llvm}, ptr %constant, i64 {columns}", "%constant_next")
        values = dict(zip(sorted(self.type.template.outputs), self.graph.results, strict=True))
        places: dict[Operand, list[tuple[Address, int]]] = {}
        for address, block in zip(self.table.outputs, output_blocks, strict=True):
            for index, node in enumerate(block):
                places.setdefault(values[node], []).append((address, index))
        for i in run_passes(self.graph, ordered=True).order:
            self.compute([i])
            self._store_at(places.pop(i, ()), i)
        for operand, rest in places.items():  # operands and constants, to which simplification has reduced outputs
            self._store_at(rest, operand)
        w.branch(w.assign("icmp slt i64 %k_next, %count"), "loop", "end")
        w.label("end")
        w.emit("ret void")
        yield f"define internal void @{name}(ptr noalias %work, ptr %rows, ptr %constants, i64 %count) {ATTRIBUTES} {{"
        yield from w.lines
        yield "}"

    def _store_at(self, places: Iterable[tuple[Address, int]], operand: Operand) -> None:
        """Store a value at its places in the blocks of outputs."""
        for address, index in places:
            at = address.displacement // self.w.element.size + index * self.w.width
            self.w.store(self.value(operand), self._pointer(address.entry), at)

    def load_value(self, operand: int) -> None:
        """Load an operand or a constant of the row, at its first use."""
        if operand >= self.graph.input_size:
            super().load_value(operand)
            return
        self.computed.add(operand)
        name, operand_count = f"%v{operand}", self.type.template.operand_count
        if operand < operand_count:
            self._load(self.table.operands[operand], name)
            return
        column = self.table.varying_constants[operand - operand_count]
        load = self.w.load if self.type.lanes > 1 else self.w.load_broadcast
        load("%constant", column, name)

    def _load(self, address: Address, name: Value) -> Value:
        """Load an operand."""
        w, displacement = self.w, address.displacement // self.w.element.size
        if address.layout == "contiguous":
            return w.load(self._pointer(address.entry), displacement, name)
        if address.layout == "broadcast":
            return w.load_broadcast(self._pointer(address.entry), displacement, name)
        vector = "poison"
        for lane in range(w.width):
            number = w.load_number(w.gep(self._pointer(address.entry + lane), displacement))
            vector = w.insert(vector, number, lane, name if lane == w.width - 1 else None)
        return vector

    def _pointer(self, entry: int) -> Value:
        """Return the pointer into the working memory that an entry of the row determines."""
        w = self.w
        if entry not in self._pointers:
            offset = w.assign(f"load i32, ptr {w.gep('%row', entry, 'i32')}, align 4")
            self._pointers[entry] = w.gep("%work", w.assign(f"sext i32 {offset} to i64"), "i8")
        return self._pointers[entry]


class OutlinedKernelWriter(KernelWriter):
    """Writes a kernel that executes bundles by their tables.

    Attributes:
        operation_count: Number of operations in the code.
    """

    def __init__(self, graph: Graph, width: int, native: int, element: ElementType, name: str = KERNEL):
        super().__init__(graph, width, native, element, name, outline_lanes=native if width == 1 else 1)
        self._sections = self.passes.outlined
        self._bundles: dict[BundleType, list[Bundle]] = {}
        for section in self._sections:
            for bundle in section.bundles:
                self._bundles.setdefault(bundle.type, []).append(bundle)
        self.operation_count = sum(len(bundle_type.template.nodes) for bundle_type in self._bundles)
        self._offsets: list[int] = []
        self._constants: list[float] = []
        self._runs: list[tuple[int, int, int, int]] = []

    @cached_property
    def _memory(self) -> MemoryPlan:
        memory = MemoryRequest(self._sections, self.w.width, self.native, self.w.element.size)
        return run_passes(self.graph, memory=memory).memory

    def lines(self) -> Iterator[str]:
        width, element = self.w.width, self.w.element
        tables = {kind: BundleTable(kind, bundles, self._memory, width) for kind, bundles in self._bundles.items()}
        for k, (kind, table) in enumerate(tables.items()):
            writer = _BundleWriter(kind, table, width, self.native, element)
            yield from writer.function(f"{self.name}_bundles_{k}", self._memory.output_blocks[kind.template])
            self._shared_functions |= writer._shared_functions
        body = self._kernel_body(self._lay_out_runs(tables))
        yield from _run_function(self.name, len(tables), element)
        yield from _gather_function(self.name, IRWriter(width, element))
        yield _data(f"{self.name}_offsets", np.array(self._offsets, dtype=np.int32))
        yield _data(f"{self.name}_constants", element.rounded(self._constants))
        yield _data(f"{self.name}_runs", np.array(self._runs, dtype=np.int32))
        yield "declare ptr @legged_malloc(i64)"
        yield "declare void @legged_free(ptr)"
        yield "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"
        unused = "" if width == 1 else ", ptr noalias %_"
        yield f"define internal i64 @{self.name}(ptr %arrays{unused}) {ATTRIBUTES} {{"
        yield from body
        yield "}"

    def _lay_out_runs(self, tables: dict[BundleType, BundleTable]) -> list[int]:
        """Concatenate the tables and list the runs (type, first offset, first constant, count).

        Returns the end of each section's runs in that list.
        """
        numbers = {kind: k for k, kind in enumerate(tables)}
        starts = {}
        for kind, table in tables.items():
            starts[kind] = len(self._offsets), len(self._constants)
            self._offsets += table.offsets.ravel().tolist()
            self._constants += table.constants.ravel().tolist()
        next_row = dict.fromkeys(tables, 0)
        ends = []
        for section in self._sections:
            for kind, group in itertools.groupby(section.bundles, lambda bundle: bundle.type):
                (offset, constant), row, count = starts[kind], next_row[kind], len(list(group))
                offset += row * tables[kind].offsets.shape[1]
                constant += row * tables[kind].constants.shape[1]
                self._runs.append((numbers[kind], offset, constant, count))
                next_row[kind] += count
            ends.append(len(self._runs))
        return ends

    def _kernel_body(self, ends: list[int]) -> list[str]:
        """Return the instructions of the kernel; if memory is exhausted, the results count as not finite."""
        w, memory = self.w, self._memory
        self.load_array_pointers()
        size = memory.size * w.element.size * w.width
        allocated = w.assign(f"call ptr @legged_malloc(i64 {size + 128})")
        w.branch(w.assign(f"icmp eq ptr {allocated}, null"), "no_memory", "run")
        w.label("no_memory")
        w.emit("ret i64 1")
        w.label("run")
        address = w.assign(f"add i64 {w.assign(f'ptrtoint ptr {allocated} to i64')}, 63")
        w.assign(f"inttoptr i64 {w.assign(f'and i64 {address}, -64')} to ptr", "%work")
        self._copy_inputs()
        for first, end, calls in zip([0, *ends], ends, memory.calls, strict=False):
            if end > first:
                w.emit(f"call void @{self.name}_run(ptr %work, i64 {first}, i64 {end})")
            for call in calls:
                self._call_batch(call)
        not_finite = self._gather_results()
        w.emit(f"call void @legged_free(ptr {allocated})")
        w.emit(f"ret i64 {not_finite}")
        return w.lines

    def _copy_inputs(self) -> None:
        """Copy the arguments, and constants that are used as values, into the working memory."""
        w, start = self.w, 0
        for k, (_, shape) in enumerate(self.graph.inputs):
            count = math.prod(shape)
            target = w.gep("%work", start * w.width)
            word, size = w.element.size, count * w.element.size * w.width
            pointers = f"ptr align {word} {target}, ptr align {word} %a{k}"
            w.emit(f"call void @llvm.memcpy.p0.p0.i64({pointers}, i64 {size}, i1 false)")
            start += count
        for x, offset in self._memory.constant_offsets.items():
            w.store(w.float_constant(x), "%work", offset * w.width)

    def _call_batch(self, batch: CallBatch) -> None:
        """Call a function on the arguments of a batch, padded with ones to whole vectors."""
        w = self.w
        if isinstance(batch.function, Loop | Matrix):
            for call, offset in zip(batch.calls, batch.input_offsets, strict=True):
                memory = w.gep("%work", offset * w.width)
                self._gather(call.arguments, memory)
                w.emit(f"call void @{loops.symbol(batch.function)}(ptr {memory})")
            return
        self.functions.add(batch.function)
        size = len(batch.calls) * w.width
        padded = round_up(size, self.native)
        for k, offset in enumerate(batch.input_offsets):
            operands = [call.arguments[k] for call in batch.calls]
            self._gather(operands, w.gep("%work", offset * w.width))
            for extra in range(size, padded):
                w.store_number(w.element.literal(1.0), w.gep("%work", offset * w.width + extra))
        offsets = (*batch.input_offsets, *batch.output_offsets)
        pointers = [f"ptr {w.gep('%work', offset * w.width)}" for offset in offsets]
        count = padded if batch.function in FORMULAS[w.element] else size
        w.emit(f"call void @{elementary.symbol(batch.function)}({', '.join(pointers)}, i64 {count})")

    def _gather(self, operands: Sequence[Operand], target: Value) -> Value:
        """Copy values to contiguous memory; return a mask of the lanes with one that is not finite."""
        offsets = self.w.gep(f"@{self.name}_offsets", len(self._offsets), "i32")
        self._offsets += [self._memory.offset(x) * self.w.element.size * self.w.width for x in operands]
        arguments = f"ptr %work, ptr {offsets}, i64 {len(operands)}, ptr {target}"
        return self.w.assign(f"call i64 @{self.name}_gather_values({arguments})")

    def _gather_results(self) -> Value:
        """Copy the results to their arrays; return a mask of the lanes with one that is not finite."""
        not_finite, results = "0", iter(self.graph.results)
        for k, shape in enumerate(self.graph.outputs, len(self.graph.inputs)):
            if count := math.prod(shape):
                mask = self._gather(list(itertools.islice(results, count)), f"%a{k}")
                not_finite = self.w.assign(f"or i64 {not_finite}, {mask}")
        return not_finite


def _run_function(name: str, types: int, element: ElementType) -> Iterator[str]:
    """Yield the function that executes runs in order."""
    w = IRWriter(1, element)
    w.label("start")
    w.jump("loop")
    w.label("loop")
    w.assign("phi i64 [%first, %start], [%k_next, %next]", "%k")
    run = w.gep(f"@{name}_runs", w.assign("mul i64 %k, 4"), "i32")
    kind, row, constant, count = (w.assign(f"load i32, ptr {w.gep(run, entry, 'i32')}, align 4") for entry in range(4))
    rows, constants, count = (w.assign(f"sext i32 {x} to i64") for x in (row, constant, count))
    rows, constants = w.gep(f"@{name}_offsets", rows, "i32"), w.gep(f"@{name}_constants", constants)
    w.emit(f"switch i32 {kind}, label %next [{' '.join(f'i32 {k}, label %do{k}' for k in range(types))}]")
    for k in range(types):
        w.label(f"do{k}")
        w.emit(f"call void @{name}_bundles_{k}(ptr %work, ptr {rows}, ptr {constants}, i64 {count})")
        w.jump("next")
    w.label("next")
    w.assign("add i64 %k, 1", "%k_next")
    w.branch(w.assign("icmp slt i64 %k_next, %end"), "loop", "done")
    w.label("done")
    w.emit("ret void")
    yield f"define internal void @{name}_run(ptr noalias %work, i64 %first, i64 %end) {ATTRIBUTES} {{"
    yield from w.lines
    yield "}"


def _gather_function(name: str, w: IRWriter) -> Iterator[str]:
    """Yield the function that copies values to contiguous memory; the bits of x - x are all zero only for finite x."""
    w.label("start")
    w.jump("loop")
    w.label("loop")
    w.assign("phi i64 [0, %start], [%k_next, %loop]", "%k")
    w.assign(f"phi {w.int_type} [{w.int_constant(0)}, %start], [%bits_next, %loop]", "%bits")
    offset = w.assign(f"load i32, ptr {w.gep('%offsets', '%k', 'i32')}, align 4")
    value = w.load(w.gep("%work", w.assign(f"sext i32 {offset} to i64"), "i8"))
    w.store(value, w.gep("%target", "%k", w.float_type))
    bits = w.bitcast_to_int(w.float_op("fsub", value, value))
    w.assign(f"or {w.int_type} %bits, {bits}", "%bits_next")
    w.assign("add i64 %k, 1", "%k_next")
    w.branch(w.assign("icmp slt i64 %k_next, %count"), "loop", "end")
    w.label("end")
    not_finite = w.assign(
        f"icmp ne {w.int_type} %bits_next, {w.int_constant(0) if w.width == 1 else 'zeroinitializer'}"
    )
    w.emit(f"ret i64 {w.assign(f'zext i{w.width} {w.lane_mask(not_finite)} to i64')}")
    parameters = "ptr %work, ptr %offsets, i64 %count, ptr %target"
    yield f"define internal i64 @{name}_gather_values({parameters}) {ATTRIBUTES} {{"
    yield from w.lines
    yield "}"


def _data(name: str, array: np.ndarray) -> str:
    """Return the definition of a table as a string of bytes, which LLVM parses much faster than numbers."""
    content = array.tobytes()
    text = "\\" + content.hex("\\") if content else ""
    return f'@{name} = internal constant [{len(content)} x i8] c"{text}", align 64'
