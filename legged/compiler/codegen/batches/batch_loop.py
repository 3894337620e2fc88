"""The loop over the states of a batch, block by block; a block has as many states as a vector has lanes.

    int64 legged_batch_loop(int64 first, int64 end, const Array *arrays, real *work)

The function evaluates states first, ..., end - 1 and returns the first state with a result that is not finite, or -1.
`arrays` describes the arguments and then the results by three 64-bit numbers each: the address of the first state's
row; the stride from one row to the next, [bytes]; and the address of a table with the offset of every row, [bytes], or
zero if rows are evenly spaced.

A kernel on rows evaluates each block, or several together. It needs evenly spaced rows; others are copied, and so are
those of a batch with fewer states than lanes, whose last state is repeated. The last block overlaps the block before it
if necessary.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from legged.compiler.codegen.element_type import ElementType
from legged.compiler.codegen.ir_writer import ATTRIBUTES, IRWriter, Value
from legged.compiler.codegen.kernels.transpose import ROW_KERNEL, array_sizes
from legged.compiler.ir.graph import Graph
from legged.compiler.passes.call_batching import round_up

ENTRY_POINT = "legged_batch_loop"


class _Array(NamedTuple):
    """An argument or a result.

    Attributes:
        k: Its number, arguments first.
        size: Number of entries for one state.
        base, stride: First row and distance between rows.
        is_copied: Whether rows are copied to or from `buffer`, an i1.
        buffer: Memory for the rows of a block.
    """

    k: int
    size: int
    base: Value
    stride: Value
    is_copied: Value
    buffer: Value


def work_size(graph: Graph, width: int, element: ElementType, kernel_work_size: int) -> int:
    """Return the size of the working memory of loop and kernel, in numbers."""
    return round_up(width * sum(array_sizes(graph)), element.per_cache_line) + kernel_work_size


def assembly(graph: Graph, width: int, element: ElementType, most_vectors: int) -> Iterator[str]:
    """Yield the loop; the kernel on rows comes from `streamed` or `transpose`.

    Args:
        graph: The graph. width: Number of lanes. element: The element type.
        most_vectors: Number of vectors of states that the kernel evaluates together at most.
    """
    w, sizes = IRWriter(width, element), array_sizes(graph)
    w.label("start")
    w.assign("sub i64 %end, %first", "%count")
    w.branch(w.assign("icmp sgt i64 %count, 0"), "any", "done")
    w.label("any")
    w.assign(f"alloca [{2 * max(len(sizes), 1)} x i64], align 64", "%rows")
    w.assign("sub i64 %count, 1", "%last")
    w.assign(f"icmp slt i64 %count, {width}", "%is_partial")
    w.assign(f"call i64 @llvm.smax.i64(i64 {w.assign(f'sub i64 %end, {width}')}, i64 %first)", "%final")
    arrays = [_load_array(w, k, size, width * sum(sizes[:k])) for k, size in enumerate(sizes) if size]
    buffers = round_up(width * sum(sizes), element.per_cache_line)
    w.assign(f"getelementptr inbounds {element.llvm}, ptr %work, i64 {buffers}", "%kernel_work")
    any_copied = "%is_partial"
    for array in arrays:
        any_copied = w.assign(f"or i1 {any_copied}, {array.is_copied}")
    w.assign(f"select i1 {any_copied}, i64 1, i64 {most_vectors}", "%most")
    w.jump("block")
    w.label("block")
    w.assign("phi i64 [%first, %any], [%k_next, %finite]", "%k")
    for array in arrays:
        row = w.gep(array.base, w.assign(f"mul i64 %k, {array.stride}"), "i8")
        pointer = w.assign(f"select i1 {array.is_copied}, ptr {array.buffer}, ptr {row}")
        w.emit(f"store ptr {pointer}, ptr {w.gep('%rows', 2 * array.k, 'i64')}, align 8")
    for array in arrays:
        if array.k < len(graph.inputs):
            _copy_if_needed(w, array, is_input=True)
    vectors = w.assign(f"udiv i64 {w.assign('sub i64 %end, %k')}, {width}")
    some = w.assign(f"call i64 @llvm.smax.i64(i64 {vectors}, i64 1)")
    w.assign(f"call i64 @llvm.smin.i64(i64 {some}, i64 %most)", "%n")
    w.assign(f"call i64 @{ROW_KERNEL}(ptr %rows, ptr %kernel_work, i64 %n)", "%not_finite")
    for array in arrays:
        if array.k >= len(graph.inputs):
            _copy_if_needed(w, array, is_input=False)
    w.branch(w.assign("icmp eq i64 %not_finite, 0"), "finite", "failed")
    w.label("failed")
    lane = w.assign("call i64 @llvm.cttz.i64(i64 %not_finite, i1 true)")
    w.emit(f"ret i64 {w.assign(f'add i64 %k, {lane}')}")
    w.label("finite")
    after = w.assign(f"add i64 %k, {w.assign(f'mul i64 %n, {width}')}")
    w.assign(f"call i64 @llvm.smin.i64(i64 {after}, i64 %final)", "%k_next")
    w.branch(w.assign(f"icmp slt i64 {after}, %end"), "block", "done")
    w.label("done")
    w.emit("ret i64 -1")
    for name in ("smin", "smax"):
        yield f"declare i64 @llvm.{name}.i64(i64, i64)"
    yield "declare i64 @llvm.cttz.i64(i64, i1)"
    yield from _copy_function(width, element)
    yield f"define i64 @{ENTRY_POINT}(i64 %first, i64 %end, ptr %arrays, ptr %work) {ATTRIBUTES} {{"
    yield from w.lines
    yield "}"


def _load_array(w: IRWriter, k: int, size: int, offset: int) -> _Array:
    """Load the description of an array, and store the stride for the kernel."""
    base = w.assign(f"load ptr, ptr {w.gep('%arrays', 3 * k, 'i64')}, align 8")
    stride, table = (w.assign(f"load i64, ptr {w.gep('%arrays', 3 * k + i, 'i64')}, align 8") for i in (1, 2))
    is_copied = w.assign(f"or i1 %is_partial, {w.assign(f'icmp ne i64 {table}, 0')}")
    kernel_stride = w.assign(f"select i1 {is_copied}, i64 {w.element.size * size}, i64 {stride}")
    w.emit(f"store i64 {kernel_stride}, ptr {w.gep('%rows', 2 * k + 1, 'i64')}, align 8")
    buffer = w.assign(f"getelementptr inbounds {w.element.llvm}, ptr %work, i64 {offset}")
    return _Array(k, size, base, stride, is_copied, buffer)


def _copy_if_needed(w: IRWriter, array: _Array, is_input: bool) -> None:
    """Copy the rows of a block to or from the buffer if the array is copied."""
    k = array.k
    w.branch(array.is_copied, f"copy{k}", f"copied{k}")
    w.label(f"copy{k}")
    rows = f"ptr {w.gep('%arrays', 3 * k, 'i64')}, i64 %k, i64 %last"
    w.emit(f"call void @legged_copy_rows(i1 {str(is_input).lower()}, {rows}, ptr {array.buffer}, i64 {array.size})")
    w.jump(f"copied{k}")
    w.label(f"copied{k}")


def _copy_function(width: int, element: ElementType) -> Iterator[str]:
    """Yield the function that copies a block's rows of n numbers into a contiguous buffer, or back."""
    w = IRWriter(1, element)
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
    row = w.gep(base, w.assign(f"phi i64 [{even}, %row], [{uneven}, %uneven]"), "i8")
    copy = w.gep("%buffer", w.assign("mul i64 %lane, %n"))
    source, target = (w.assign(f"select i1 %is_input, ptr {a}, ptr {b}") for a, b in ((row, copy), (copy, row)))
    is_long = w.assign(f"icmp sge i64 %n, {width // 2}")
    w.branch(is_long, "vectors", "scalars")
    for name, count in (("vectors", width // 2), ("scalars", 1)):
        _copy_row(w.with_width(count), name, source, target)
    w.label("copied")
    w.assign("add i64 %lane, 1", "%lane_next")
    w.branch(w.assign(f"icmp slt i64 %lane_next, {width}"), "row", "end")
    w.label("end")
    w.emit("ret void")
    parameters = "i1 %is_input, ptr %array, i64 %k, i64 %last, ptr %buffer, i64 %n"
    yield f"define internal void @legged_copy_rows({parameters}) noinline {ATTRIBUTES} {{"
    yield from w.lines
    yield "}"


def _copy_row(w: IRWriter, name: str, source: Value, target: Value) -> None:
    """Copy n numbers vector by vector; the last vector overlaps the one before if necessary."""
    w.label(name)
    final = w.assign(f"sub i64 %n, {w.width}")
    w.jump(f"{name}_next")
    w.label(f"{name}_next")
    i = w.assign(f"phi i64 [0, %{name}], [%{name}_i, %{name}_next]")
    w.store(w.load(source, i), target, i)
    w.assign(f"call i64 @llvm.smin.i64(i64 {w.assign(f'add i64 {i}, {w.width}')}, i64 {final})", f"%{name}_i")
    w.branch(w.assign(f"icmp slt i64 {i}, {final}"), f"{name}_next", "copied")
