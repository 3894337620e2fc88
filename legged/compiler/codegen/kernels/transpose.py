"""Transposition between memory, where the numbers of one state are contiguous, and vectors with a lane for each state.

A *row* holds the numbers of one state of one array. A *column* holds one entry for as many states as a vector has
lanes. Groups of neighboring columns are loaded, transposed in registers and stored together.

`assembly` writes a kernel on rows for large graphs: it transposes all arguments into working memory, calls a kernel on
columns (`scalar`, `outlined`), and transposes all results back. Its length does not depend on the sizes of the arrays.
`streamed` transposes while it computes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from legged.compiler.codegen.element_type import ElementType
from legged.compiler.codegen.ir_writer import ATTRIBUTES, IRWriter, Value
from legged.compiler.codegen.kernels.scalar import KERNEL
from legged.compiler.ir.graph import Graph
from legged.compiler.passes.call_batching import round_up

ROW_KERNEL = "legged_row_kernel"
"""`int64 legged_row_kernel(const int64 *rows, real *work, int64 n)` evaluates a graph for n vectors of states.

`rows` holds two numbers for each argument and then for each result: the address of the first state's row, and the
stride from one row to the next, [bytes]. The result has a bit for each state, as that of the kernel on columns. Only
kernels in sections (`streamed`) can evaluate several vectors; n is 1 for others.
"""


def array_sizes(graph: Graph) -> list[int]:
    """Return the number of entries of each argument and then of each result, for one state."""
    return [math.prod(shape) for shape in (*(shape for _, shape in graph.inputs), *graph.outputs)]


class Rows(NamedTuple):
    """The rows of one array for as many states as a vector has lanes.

    Attributes:
        first: Pointer to the first row.
        stride: Distance from one row to the next, [bytes].
    """

    first: Value
    stride: Value

    @classmethod
    def load(cls, w: IRWriter, table: Value, k: int, block: Value | None = None) -> Rows:
        """Return the rows of array k from the table that a kernel on rows receives, by default the first vector."""
        first = w.assign(f"load ptr, ptr {w.gep(table, 2 * k, 'i64')}, align 8")
        stride = w.assign(f"load i64, ptr {w.gep(table, 2 * k + 1, 'i64')}, align 8")
        if block:
            size = w.assign(f"mul i64 {stride}, {w.width}")
            first = w.gep(first, w.assign(f"mul i64 {size}, {block}"), "i8")
        return cls(first, stride)

    def end(self, w: IRWriter) -> Value:
        """Return the pointer to the row after the last."""
        return w.gep(self.first, w.assign(f"mul i64 {self.stride}, {w.width}"), "i8")

    def pointers(self, w: IRWriter, column: int | Value) -> list[Value]:
        """Return the pointers to the entries of a column."""
        rows = [w.gep(self.first, w.assign(f"mul i64 {self.stride}, {lane}"), "i8") for lane in range(1, w.width)]
        return [w.gep(row, column) for row in (self.first, *rows)]


def group_size(size: int, width: int) -> int:
    """Return the number of columns transposed together: half the lanes of a vector, or one if rows are shorter."""
    return width // 2 if size >= width // 2 else 1


def column_groups(columns: Iterable[int], size: int, width: int) -> list[int]:
    """Return the first columns of groups that contain all given columns; groups may overlap.

    Args:
        columns: Columns in ascending order.
        size: Number of columns.
        width: Lanes of a vector.
    """
    count = group_size(size, width)
    starts: list[int] = []
    for column in columns:
        if not starts or column >= starts[-1] + count:
            starts.append(min(column, size - count))
    return starts


class HasPointers(Protocol):
    """The interface of rows whose columns can be addressed, such as `Rows`."""

    def pointers(self, w: IRWriter, column: int | Value) -> list[Value]:
        """Return the pointers to the entries of a column."""
        ...


def load_columns(w: IRWriter, rows: HasPointers, start: int | Value, count: int) -> list[Value]:
    """Return a group of columns as vectors, half as many as a vector has lanes, or one.

    The first step of the transposition, which puts the rows of the second half into the upper lanes, is part of the
    loads.
    """
    pointers, half = rows.pointers(w, start), w.width // 2
    if count == 1:
        vector = "poison"
        for lane, pointer in enumerate(pointers):
            vector = w.insert(vector, w.load_number(pointer), lane)
        return [vector]
    part, all_lanes = w.with_width(half), _lanes(range(w.width))
    part_type, parts = part.float_type, [part.load(pointer) for pointer in pointers]
    pairs = zip(parts[:half], parts[half:], strict=True)
    joined = [w.assign(f"shufflevector {part_type} {a}, {part_type} {b}, {all_lanes}") for a, b in pairs]
    return _transpose_halves(w, joined)


def store_columns(w: IRWriter, columns: Sequence[Value], rows: HasPointers, start: int | Value) -> None:
    """Store a group of columns, half as many as a vector has lanes, or one."""
    pointers, half = rows.pointers(w, start), w.width // 2
    if len(columns) == 1:
        for lane, pointer in enumerate(pointers):
            w.store_number(w.extract(columns[0], lane), pointer)
        return
    square = _transpose_halves(w, [*columns])
    for lane, pointer in enumerate(pointers):
        lanes = _lanes(range(lane // half * half, lane // half * half + half))
        part = w.assign(f"shufflevector {w.float_type} {square[lane % half]}, {w.float_type} poison, {lanes}")
        w.with_width(half).store(part, pointer)


def _transpose_halves(w: IRWriter, square: list[Value]) -> list[Value]:
    """Return vectors whose lower and upper halves, each a square matrix, are transposed.

    Entries are exchanged across the diagonal at distances ..., 4, 2, 1.
    """
    distance = len(square) // 2
    while distance:
        for i in range(len(square)):
            if not i & distance:
                a, b = square[i], square[i + distance]
                low = [j if not j & distance else j - distance + w.width for j in range(w.width)]
                high = [j + distance if not j & distance else j + w.width for j in range(w.width)]
                square[i], square[i + distance] = (
                    w.assign(f"shufflevector {w.float_type} {a}, {w.float_type} {b}, {_lanes(order)}")
                    for order in (low, high)
                )
        distance //= 2
    return square


def _lanes(order: Sequence[int]) -> str:
    return f"<{len(order)} x i32> <{', '.join(f'i32 {j}' for j in order)}>"


def work_size(graph: Graph, width: int, element: ElementType) -> int:
    """Return the size of the working memory for transposed arrays, before that of the kernel, in numbers."""
    return sum(round_up(size * width, element.per_cache_line) for size in array_sizes(graph))


def assembly(graph: Graph, width: int, element: ElementType) -> Iterator[str]:
    """Yield a kernel on rows that calls a kernel on columns."""
    w, offset = IRWriter(width, element), 0
    sizes = array_sizes(graph)
    w.label("start")
    w.assign(f"alloca [{max(len(sizes), 1)} x ptr], align 8", "%blocks")
    for k, size in enumerate(sizes):
        w.assign(f"getelementptr inbounds {element.llvm}, ptr %work, i64 {offset}", f"%block{k}")
        w.emit(f"store ptr %block{k}, ptr {w.gep('%blocks', k, 'ptr')}, align 8")
        offset += round_up(size * width, element.per_cache_line)
    for k, size in enumerate(sizes):
        if k == len(graph.inputs):
            w.assign(f"call i64 @{KERNEL}(ptr %blocks, ptr {w.gep('%work', offset)})", "%not_finite")
        if size:
            _transpose_array(w, k, size, is_input=k < len(graph.inputs))
    w.emit("ret i64 %not_finite")
    yield f"define internal i64 @{ROW_KERNEL}(ptr %rows, ptr noalias %work, i64 %n) {ATTRIBUTES} {{"
    yield from w.lines
    yield "}"


def _transpose_array(w: IRWriter, k: int, size: int, is_input: bool) -> None:
    """Copy array k between its rows and its transposed block, group by group; the last group overlaps."""
    rows = Rows.load(w, "%rows", k)
    count = group_size(size, w.width)
    w.jump(f"go{k}")
    w.label(f"go{k}")
    w.jump(f"move{k}")
    w.label(f"move{k}")
    column = w.assign(f"phi i64 [0, %go{k}], [%next{k}, %move{k}]")
    block = w.gep(f"%block{k}", w.assign(f"mul i64 {column}, {w.width}"))
    if is_input:
        for i, vector in enumerate(load_columns(w, rows, column, count)):
            w.store(vector, block, i * w.width)
    else:
        store_columns(w, [w.load(block, i * w.width) for i in range(count)], rows, column)
    last = size - count
    w.assign(f"call i64 @llvm.smin.i64(i64 {w.assign(f'add i64 {column}, {count}')}, i64 {last})", f"%next{k}")
    w.branch(w.assign(f"icmp slt i64 {column}, {last}"), f"move{k}", f"moved{k}")
    w.label(f"moved{k}")
