"""Batches: assembly that runs a core over the rows of the users' arrays, `width` states at a time.

    int64 legged_batch(int64 first, int64 end, const Array *arrays, double *work)

for the states first, ..., end - 1. `arrays` describes the arguments and then the results, three 64-bit numbers each:
the address of the first state's row; bytes from one state's row to the next; and the address of a table with every
state's offset in bytes, or zero if rows are evenly spaced. It returns the first state with a result that is not finite,
or -1.

The core wants rows that are evenly spaced (`row_core`). Others are copied, and so are those of fewer states than lanes,
the last of which is repeated. The last block begins among the states of the one before if need be.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from legged.compiler.codegen.ir_writer import ATTRIBUTES, IRWriter, Value
from legged.compiler.codegen.streamed import ROWS, array_sizes
from legged.compiler.ir.graph import Graph
from legged.compiler.passes.call_batching import round_up

ENTRY = "legged_batch"


class _Array(NamedTuple):
    """An argument or a result, and what the code knows of it.

    Attributes:
        number: Its place among them.
        size: How many numbers a row has.
        base, stride: Where its first row is, and bytes from each to the next.
        copied: Whether rows are copied.
        copy: Where to.
    """

    number: int
    size: int
    base: Value
    stride: Value
    copied: Value
    copy: Value


def work_size(graph: Graph, width: int, room: int) -> int:
    """Return how many numbers of working memory the function takes, `room` of them for the core."""
    return round_up(width * sum(array_sizes(graph)), 8) + room


def assembly(graph: Graph, width: int) -> Iterator[str]:
    """Yield the function; the core comes from elsewhere."""
    w, sizes = IRWriter(width), array_sizes(graph)
    w.label("start")
    w.assign("sub i64 %end, %first", "%count")
    w.branch(w.assign("icmp sgt i64 %count, 0"), "any", "done")
    w.label("any")
    w.assign(f"alloca [{2 * max(len(sizes), 1)} x i64], align 64", "%rows")
    w.assign("sub i64 %count, 1", "%last")
    w.assign(f"icmp slt i64 %count, {width}", "%few")
    w.assign(f"call i64 @llvm.smax.i64(i64 {w.assign(f'sub i64 %end, {width}')}, i64 %first)", "%final")
    arrays = [_array(w, k, size, width * sum(sizes[:k])) for k, size in enumerate(sizes) if size]
    w.assign(f"getelementptr inbounds double, ptr %work, i64 {round_up(width * sum(sizes), 8)}", "%room")
    w.jump("block")
    w.label("block")
    w.assign("phi i64 [%first, %any], [%k_next, %fine]", "%k")
    arguments, results = ([a for a in arrays if (a.number < len(graph.inputs)) == own] for own in (True, False))
    for array in arrays:
        _point(w, array)
    for array in arguments:
        _copy_if_needed(w, array, True)
    w.assign(f"call i64 @{ROWS}(ptr %rows, ptr %room)", "%wrong")
    for array in results:
        _copy_if_needed(w, array, False)
    _finish(w)
    for name, takes in (("smin.i64", 2), ("smax.i64", 2)):
        yield f"declare i64 @llvm.{name}({', '.join(['i64'] * takes)})"
    yield "declare i64 @llvm.cttz.i64(i64, i1)"
    yield from _copy(width)
    yield f"define i64 @{ENTRY}(i64 %first, i64 %end, ptr %arrays, ptr %work) {ATTRIBUTES} {{"
    yield from w.lines
    yield "}"


def _array(w: IRWriter, k: int, size: int, place: int) -> _Array:
    """Find out what the code needs to know of an array, once, and tell the core how far apart the rows are."""
    base = w.assign(f"load ptr, ptr {w.gep('%arrays', 3 * k, 'i64')}, align 8")
    stride, table = (w.assign(f"load i64, ptr {w.gep('%arrays', 3 * k + i, 'i64')}, align 8") for i in (1, 2))
    copied = w.assign(f"or i1 %few, {w.assign(f'icmp ne i64 {table}, 0')}")
    step = w.assign(f"select i1 {copied}, i64 {8 * size}, i64 {stride}")
    w.emit(f"store i64 {step}, ptr {w.gep('%rows', 2 * k + 1, 'i64')}, align 8")
    copy = w.assign(f"getelementptr inbounds double, ptr %work, i64 {place}")
    return _Array(k, size, base, stride, copied, copy)


def _point(w: IRWriter, array: _Array) -> None:
    """Tell the core where a block's rows are."""
    row = w.gep(array.base, w.assign(f"mul i64 %k, {array.stride}"), "i8")
    place = w.assign(f"select i1 {array.copied}, ptr {array.copy}, ptr {row}")
    w.emit(f"store ptr {place}, ptr {w.gep('%rows', 2 * array.number, 'i64')}, align 8")


def _copy_if_needed(w: IRWriter, array: _Array, inward: bool) -> None:
    k = array.number
    w.branch(array.copied, f"copy{k}", f"copied{k}")
    w.label(f"copy{k}")
    described = f"ptr {w.gep('%arrays', 3 * k, 'i64')}, i64 %k, i64 %last, ptr {array.copy}, i64 {array.size}"
    w.emit(f"call void @legged_copy(i1 {str(inward).lower()}, {described})")
    w.jump(f"copied{k}")
    w.label(f"copied{k}")


def _finish(w: IRWriter) -> None:
    """Look at the core's verdict, and go on with the next block."""
    w.branch(w.assign("icmp eq i64 %wrong, 0"), "fine", "bad")
    w.label("bad")
    lane = w.assign("call i64 @llvm.cttz.i64(i64 %wrong, i1 true)")
    w.emit(f"ret i64 {w.assign(f'add i64 %k, {lane}')}")
    w.label("fine")
    w.assign(f"call i64 @llvm.smin.i64(i64 {w.assign(f'add i64 %k, {w.width}')}, i64 %final)", "%k_next")
    w.branch(w.assign("icmp slt i64 %k, %final"), "block", "done")
    w.label("done")
    w.emit("ret i64 -1")


def _copy(width: int) -> Iterator[str]:
    """Yield the function that copies a block's rows of n numbers to or from where they lie end to end."""
    w = IRWriter(1)
    w.label("start")
    base = w.assign("load ptr, ptr %array, align 8")
    stride, offsets = (w.assign(f"load i64, ptr {w.gep('%array', i, 'i64')}, align 8") for i in (1, 2))
    table = w.assign(f"inttoptr i64 {offsets} to ptr")
    w.jump("row")
    w.label("row")
    w.assign("phi i64 [0, %start], [%lane_next, %copied]", "%lane")
    state = w.assign(f"add i64 %k, {w.assign('call i64 @llvm.smin.i64(i64 %lane, i64 %last)')}")
    even = w.assign(f"mul i64 {state}, {stride}")
    w.branch(w.assign(f"icmp eq i64 {offsets}, 0"), "found", "uneven")
    w.label("uneven")
    uneven = w.assign(f"load i64, ptr {w.gep(table, state, 'i64')}, align 8")
    w.jump("found")
    w.label("found")
    there = w.gep(base, w.assign(f"phi i64 [{even}, %row], [{uneven}, %uneven]"), "i8")
    here = w.gep("%block", w.assign("mul i64 %lane, %n"))
    source, target = (w.assign(f"select i1 %inward, ptr {a}, ptr {b}") for a, b in ((there, here), (here, there)))
    several = w.assign(f"icmp sge i64 %n, {width // 2}")
    w.branch(several, "several", "single")
    for name, count in (("several", width // 2), ("single", 1)):
        _copy_row(w.with_width(count), name, source, target)
    w.label("copied")
    w.assign("add i64 %lane, 1", "%lane_next")
    w.branch(w.assign(f"icmp slt i64 %lane_next, {width}"), "row", "end")
    w.label("end")
    w.emit("ret void")
    parameters = "i1 %inward, ptr %array, i64 %k, i64 %last, ptr %block, i64 %n"
    yield f"define internal void @legged_copy({parameters}) noinline {ATTRIBUTES} {{"
    yield from w.lines
    yield "}"


def _copy_row(w: IRWriter, name: str, source: Value, target: Value) -> None:
    """Copy n numbers, a vector at a time, the last one overlapping."""
    w.label(name)
    final = w.assign(f"sub i64 %n, {w.width}")
    w.jump(f"{name}_next")
    w.label(f"{name}_next")
    i = w.assign(f"phi i64 [0, %{name}], [%{name}_i, %{name}_next]")
    w.store(w.load(source, i), target, i)
    w.assign(f"call i64 @llvm.smin.i64(i64 {w.assign(f'add i64 {i}, {w.width}')}, i64 {final})", f"%{name}_i")
    w.branch(w.assign(f"icmp slt i64 {i}, {final}"), f"{name}_next", "copied")
