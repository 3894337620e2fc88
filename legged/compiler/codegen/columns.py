"""From rows to columns and back, as a whole, for the core of a large graph, which wants every number as a vector.

The function has the name and the arguments of `row_core`'s, and calls the core in between. Its length does not depend
on the number of columns.
"""

from __future__ import annotations

from collections.abc import Iterator

from legged.compiler.codegen import transpose
from legged.compiler.codegen.ir_writer import ATTRIBUTES, IRWriter
from legged.compiler.codegen.scalar import CORE
from legged.compiler.codegen.streamed import ROWS, array_sizes
from legged.compiler.codegen.transpose import Rows
from legged.compiler.ir.graph import Graph
from legged.compiler.passes.call_batching import round_up


def work_size(graph: Graph, width: int) -> int:
    """Return how many numbers of working memory the function takes before the core's."""
    return sum(round_up(size * width, 8) for size in array_sizes(graph))


def assembly(graph: Graph, width: int) -> Iterator[str]:
    """Yield the function."""
    w, place = IRWriter(width), 0
    sizes = array_sizes(graph)
    w.label("start")
    w.assign(f"alloca [{max(len(sizes), 1)} x ptr], align 8", "%blocks")
    for k, size in enumerate(sizes):
        w.assign(f"getelementptr inbounds double, ptr %work, i64 {place}", f"%block{k}")
        w.emit(f"store ptr %block{k}, ptr {w.gep('%blocks', k, 'ptr')}, align 8")
        place += round_up(size * width, 8)
    for k, size in enumerate(sizes):
        if k == len(graph.inputs):
            w.assign(f"call i64 @{CORE}(ptr %blocks, ptr {w.gep('%work', place)})", "%wrong")
        if size:
            _move(w, k, size, k < len(graph.inputs))
    w.emit("ret i64 %wrong")
    yield f"define internal i64 @{ROWS}(ptr %arrays, ptr noalias %work) {ATTRIBUTES} {{"
    yield from w.lines
    yield "}"


def _move(w: IRWriter, k: int, size: int, fetched: bool) -> None:
    """Move an array's columns between rows and block, group by group, the last one overlapping."""
    rows = Rows(
        w.assign(f"load ptr, ptr {w.gep('%arrays', 2 * k, 'i64')}, align 8"),
        w.assign(f"load i64, ptr {w.gep('%arrays', 2 * k + 1, 'i64')}, align 8"),
    )
    count = transpose.together(size, w.width)
    w.jump(f"go{k}")
    w.label(f"go{k}")
    w.jump(f"move{k}")
    w.label(f"move{k}")
    column = w.assign(f"phi i64 [0, %go{k}], [%next{k}, %move{k}]")
    block = w.gep(f"%block{k}", w.assign(f"mul i64 {column}, {w.width}"))
    if fetched:
        for i, vector in enumerate(transpose.fetch(w, rows, column, count)):
            w.store(vector, block, i * w.width)
    else:
        transpose.deliver(w, [w.load(block, i * w.width) for i in range(count)], rows, column)
    last = size - count
    w.assign(f"call i64 @llvm.smin.i64(i64 {w.assign(f'add i64 {column}, {count}')}, i64 {last})", f"%next{k}")
    w.branch(w.assign(f"icmp slt i64 {column}, {last}"), f"move{k}", f"moved{k}")
    w.label(f"moved{k}")
