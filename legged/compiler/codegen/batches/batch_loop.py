"""The loop over the states of a batch, block by block; a block has as many states as a vector has lanes.

    int64 legged_batch_loop(int64 first, int64 end, const Array *arrays, real *work)

The function evaluates states first, ..., end - 1 and returns the first state with a result that is not finite, or -1.
`arrays` describes the arguments and then the results by three 64-bit numbers each: the address of the first state's
row; the stride from one row to the next, [bytes]; and the address of a table with the offset of every row, [bytes], or
zero if rows are evenly spaced.

A kernel on rows evaluates each block, or several together. It needs evenly spaced rows; others are copied, and so are
those of a batch with fewer states than lanes, whose last state is repeated. The last block overlaps the block before it
if necessary. The loop itself does not depend on the kernel and is a module of its own, `shared_assembly`: LLVM would
take longer for it than for a small kernel.
"""

from __future__ import annotations

from collections.abc import Iterator

from legged.compiler.codegen.element_type import ElementType
from legged.compiler.codegen.ir_writer import ATTRIBUTES, IRWriter, Value
from legged.compiler.codegen.kernels.transpose import ROW_KERNEL, array_sizes
from legged.compiler.ir.graph import Graph
from legged.compiler.passes.call_batching import round_up

ENTRY_POINT = "legged_batch_loop"
_SIZES = 4  # numbers before the sizes of the arrays: arguments, arrays, buffers [bytes], vectors evaluated together


def work_size(graph: Graph, width: int, element: ElementType, kernel_work_size: int) -> int:
    """Return the size of the working memory of loop and kernel, in numbers."""
    return round_up(width * sum(array_sizes(graph)), element.per_cache_line) + kernel_work_size


def symbol(width: int, element: ElementType) -> str:
    """Return the name of the function that all kernels of a width and an element type share."""
    return f"legged_batch_of_{width}_{element.llvm}"


def assembly(graph: Graph, width: int, element: ElementType, most_vectors: int) -> Iterator[str]:
    """Yield the entry point, which passes the kernel and the sizes of its arrays to the function of `shared_assembly`.

    The kernel on rows comes from `streamed` or `transpose`.

    Args:
        graph: The graph. width: Number of lanes. element: The element type.
        most_vectors: Number of vectors of states that the kernel evaluates together at most.
    """
    sizes = array_sizes(graph)
    buffers = element.size * round_up(width * sum(sizes), element.per_cache_line)
    numbers = [len(graph.inputs), len(sizes), buffers, most_vectors, *sizes]
    listed = ", ".join(f"i64 {number}" for number in numbers)
    types, entry = "i64, i64, ptr, ptr", "i64 %first, i64 %end, ptr %arrays, ptr %work"
    yield f"declare i64 @{symbol(width, element)}({types}, ptr, ptr)"
    yield f"@legged_array_sizes = internal constant [{len(numbers)} x i64] [{listed}]"
    yield f"define i64 @{ENTRY_POINT}({entry}) {ATTRIBUTES} {{"
    call = f"call i64 @{symbol(width, element)}({entry}, ptr @{ROW_KERNEL}, ptr @legged_array_sizes)"
    yield f"  %bad = tail {call}"
    yield "  ret i64 %bad"
    yield "}"


def shared_assembly(width: int, element: ElementType) -> Iterator[str]:
    """Yield the module of the loop, which all kernels of a width and an element type share.

    Args:
        width: Number of lanes. element: The element type.
    """
    w = IRWriter(width, element)
    w.label("start")
    w.assign("sub i64 %end, %first", "%count")
    w.branch(w.assign("icmp sgt i64 %count, 0"), "any", "done")
    w.label("any")
    inputs, arrays, buffers, most = (
        w.assign(f"load i64, ptr {w.gep('%sizes', i, 'i64')}, align 8") for i in range(_SIZES)
    )
    w.assign(f"alloca i64, i64 {w.assign(f'shl i64 {arrays}, 1')}, align 64", "%rows")
    w.assign("sub i64 %count, 1", "%last")
    w.assign(f"icmp slt i64 %count, {width}", "%is_partial")
    w.assign(f"call i64 @llvm.smax.i64(i64 {w.assign(f'sub i64 %end, {width}')}, i64 %first)", "%final")
    w.assign(f"getelementptr inbounds i8, ptr %work, i64 {buffers}", "%kernel_work")
    _strides(w, arrays)
    w.assign(f"select i1 %any_copied, i64 1, i64 {most}", "%most")
    w.jump("block")
    w.label("block")
    w.assign("phi i64 [%first, %strides_end], [%k_next, %next_block]", "%k")
    w.branch("%any_copied", "pointers", "evaluate")
    _pointers(w, arrays)
    w.jump("copy_inputs")
    _copies(w, "inputs", "0", inputs, "evaluate")
    w.label("evaluate")
    vectors = w.assign(f"udiv i64 {w.assign('sub i64 %end, %k')}, {width}")
    some = w.assign(f"call i64 @llvm.smax.i64(i64 {vectors}, i64 1)")
    w.assign(f"call i64 @llvm.smin.i64(i64 {some}, i64 %most)", "%n")
    w.assign("call i64 %kernel(ptr %rows, ptr %kernel_work, i64 %n)", "%not_finite")
    w.branch("%any_copied", "copy_results", "check")
    _copies(w, "results", inputs, arrays, "check")
    w.label("check")
    w.branch(w.assign("icmp eq i64 %not_finite, 0"), "finite", "failed")
    w.label("failed")
    lane = w.assign("call i64 @llvm.cttz.i64(i64 %not_finite, i1 true)")
    w.emit(f"ret i64 {w.assign(f'add i64 %k, {lane}')}")
    w.label("finite")
    after = w.assign(f"add i64 %k, {w.assign(f'mul i64 %n, {width}')}")
    w.assign(f"call i64 @llvm.smin.i64(i64 {after}, i64 %final)", "%k_next")
    w.branch(w.assign(f"icmp slt i64 {after}, %end"), "move", "done")
    _moves(w, arrays)
    w.label("done")
    w.emit("ret i64 -1")
    for name in ("smin", "smax"):
        yield f"declare i64 @llvm.{name}.i64(i64, i64)"
    yield "declare i64 @llvm.cttz.i64(i64, i1)"
    yield from _copy_function(width, element)
    parameters = "i64 %first, i64 %end, ptr %arrays, ptr %work, ptr %kernel, ptr %sizes"
    yield f"define i64 @{symbol(width, element)}({parameters}) {ATTRIBUTES} {{"
    yield from w.lines
    yield "}"


def _strides(w: IRWriter, arrays: Value) -> None:
    """Store the first rows and the strides for the kernel, and set %any_copied; the block `strides_end` follows."""
    w.jump("strides")
    w.label("strides")
    w.assign("phi i64 [0, %any], [%s_next, %stride]", "%s")
    w.assign("phi i1 [false, %any], [%or_copied, %stride]", "%any_copied")
    w.branch(w.assign(f"icmp slt i64 %s, {arrays}"), "stride", "strides_end")
    w.label("stride")
    is_copied, size, base, stride = _array(w, "%s")
    used = w.assign(f"select i1 {is_copied}, i64 {w.assign(f'mul i64 {size}, {w.element.size}')}, i64 {stride}")
    at, row = w.gep("%rows", w.assign("shl i64 %s, 1"), "i64"), w.gep(base, w.assign(f"mul i64 %first, {stride}"), "i8")
    w.emit(f"store ptr {row}, ptr {at}, align 8")
    w.emit(f"store i64 {used}, ptr {w.gep(at, 1, 'i64')}, align 8")
    w.assign(f"or i1 %any_copied, {is_copied}", "%or_copied")
    w.assign("add i64 %s, 1", "%s_next")
    w.jump("strides")
    w.label("strides_end")


def _pointers(w: IRWriter, arrays: Value) -> None:
    """Store the first rows of a block for the kernel, in the arrays or in the buffers; `pointers_end` follows."""
    w.label("pointers")
    w.assign("phi i64 [0, %block], [%p_next, %pointer]", "%p")
    w.assign("phi i64 [0, %block], [%buffer_next, %pointer]", "%buffer")
    w.branch(w.assign(f"icmp slt i64 %p, {arrays}"), "pointer", "pointers_end")
    w.label("pointer")
    is_copied, size, base, stride = _array(w, "%p")
    row, buffer = w.gep(base, w.assign(f"mul i64 %k, {stride}"), "i8"), w.gep("%work", "%buffer", "i8")
    pointer = w.assign(f"select i1 {is_copied}, ptr {buffer}, ptr {row}")
    w.emit(f"store ptr {pointer}, ptr {w.gep('%rows', w.assign('shl i64 %p, 1'), 'i64')}, align 8")
    w.assign(f"add i64 %buffer, {w.assign(f'mul i64 {size}, {w.element.size * w.width}')}", "%buffer_next")
    w.assign("add i64 %p, 1", "%p_next")
    w.jump("pointers")
    w.label("pointers_end")


def _moves(w: IRWriter, arrays: Value) -> None:
    """Go on to the next block: without copies, the first rows of all arrays move with it."""
    w.label("move")
    w.assign("sub i64 %k_next, %k", "%moved")
    w.branch("%any_copied", "next_block", "moves")
    w.label("moves")
    w.assign("phi i64 [0, %move], [%m_next, %moves]", "%m")
    at = w.gep("%rows", w.assign("shl i64 %m, 1"), "i64")
    row = w.assign(f"load ptr, ptr {at}, align 8")
    stride = w.assign(f"load i64, ptr {w.gep(at, 1, 'i64')}, align 8")
    w.emit(f"store ptr {w.gep(row, w.assign(f'mul i64 {stride}, %moved'), 'i8')}, ptr {at}, align 8")
    w.assign("add i64 %m, 1", "%m_next")
    w.branch(w.assign(f"icmp slt i64 %m_next, {arrays}"), "moves", "next_block")
    w.label("next_block")
    w.jump("block")


def _copies(w: IRWriter, name: str, begin: Value, end: Value, after: str) -> None:
    """Copy the rows of a block to or from the buffers of arrays begin, ..., end - 1 that are copied, in `copy_name`."""
    w.label(f"copy_{name}")
    w.jump(f"{name}_next")
    w.label(f"{name}_next")
    k = w.assign(f"phi i64 [{begin}, %copy_{name}], [%{name}_after, %{name}_done]")
    w.branch(w.assign(f"icmp slt i64 {k}, {end}"), f"{name}_array", after)
    w.label(f"{name}_array")
    is_copied, size, _, _ = _array(w, k)
    w.branch(is_copied, f"{name}_copied", f"{name}_done")
    w.label(f"{name}_copied")
    buffer = w.assign(f"load ptr, ptr {w.gep('%rows', w.assign(f'shl i64 {k}, 1'), 'i64')}, align 8")
    rows = f"ptr {w.gep('%arrays', w.assign(f'mul i64 {k}, 3'), 'i64')}, i64 %k, i64 %last"
    is_input = str(name == "inputs").lower()
    w.emit(f"call void @legged_copy_rows(i1 {is_input}, {rows}, ptr {buffer}, i64 {size})")
    w.jump(f"{name}_done")
    w.label(f"{name}_done")
    w.assign(f"add i64 {k}, 1", f"%{name}_after")
    w.jump(f"{name}_next")


def _array(w: IRWriter, k: Value) -> tuple[Value, Value, Value, Value]:
    """Return whether the rows of array k are copied, an i1, its size, and the address and the stride of its rows."""
    size = w.assign(f"load i64, ptr {w.gep(w.gep('%sizes', k, 'i64'), _SIZES, 'i64')}, align 8")
    at = w.gep("%arrays", w.assign(f"mul i64 {k}, 3"), "i64")
    base = w.assign(f"load ptr, ptr {at}, align 8")
    stride, table = (w.assign(f"load i64, ptr {w.gep(at, i, 'i64')}, align 8") for i in (1, 2))
    is_uneven = w.assign(f"or i1 %is_partial, {w.assign(f'icmp ne i64 {table}, 0')}")
    is_copied = w.assign(f"and i1 {is_uneven}, {w.assign(f'icmp sgt i64 {size}, 0')}")
    return is_copied, size, base, stride


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
    w.branch(w.assign(f"icmp eq i64 {offsets}, 0"), "offset", "uneven")
    w.label("uneven")
    uneven = w.assign(f"load i64, ptr {w.gep(table, state, 'i64')}, align 8")
    w.jump("offset")
    w.label("offset")
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
