"""The function of a loop, which calls the kernel of its body, and that of a product with a matrix.

A loop (`ir.loops_and_tables`), or a function that loops call, is

    void legged_<loop>(real *memory)

`memory` holds the state, which the final state replaces, the captured values, and room for the next state, each number
for all lanes. A lane whose last entry of the state is not positive keeps its state; the loop ends when this holds for
all lanes, or after the largest number of iterations.
"""

from __future__ import annotations

from collections.abc import Iterator

from legged.compiler.codegen import tables
from legged.compiler.codegen.element_type import ElementType
from legged.compiler.codegen.ir_writer import ATTRIBUTES, IRWriter
from legged.compiler.ir.operations import Loop, Matrix

_ROWS = 8
"""Largest number of rows, or of vectors of rows, whose sums are computed side by side; it divides `Matrix.rows`."""


def symbol(function: Loop | Matrix) -> str:
    """Return the name of the function of a loop or of a product with a matrix."""
    return f"legged_{function}"


def body_symbol(loop: Loop) -> str:
    """Return the name of the kernel of a loop's body."""
    return f"legged_{loop}_body"


def assembly(loop: Loop, width: int, element: ElementType, work_size: int) -> Iterator[str]:
    """Yield the function of a loop on states in `width` lanes, whose body has a working memory of `work_size`."""
    w, n = IRWriter(width, element), loop.size
    captured, following = n * width, loop.body.input_size * width
    w.label("start")
    w.assign("alloca [3 x ptr], align 8", "%arrays")
    if width > 1:  # for one state the body allocates its own
        w.assign(f"alloca [{work_size} x {element.llvm}], align 64", "%work")
    for k, offset in enumerate((0, captured, following)):
        w.emit(f"store ptr {w.gep('%memory', offset)}, ptr {w.gep('%arrays', k, 'ptr')}, align 8")
    following_state = w.gep("%memory", following)
    w.jump("test")
    w.label("test")
    w.assign("phi i64 [0, %start], [%k_next, %copied]", "%k")
    active = w.fcmp("ogt", w.load("%memory", (n - 1) * width), w.float_constant(0.0))
    in_range = w.assign(f"icmp slt i64 %k, {loop.most}")
    w.branch(w.assign(f"and i1 {w.any_lane(active)}, {in_range}"), "body", "end")
    w.label("body")
    w.assign("add i64 %k, 1", "%k_next")
    work = "" if width == 1 else ", ptr %work"
    w.assign(f"call i64 @{body_symbol(loop)}(ptr %arrays{work})")
    w.jump("copy")
    w.label("copy")
    w.assign("phi i64 [0, %body], [%i_next, %copy]", "%i")
    target, source = (w.gep(p, w.assign(f"mul i64 %i, {width}")) for p in ("%memory", following_state))
    w.store(w.select(active, w.load(source), w.load(target)), target)
    w.assign("add i64 %i, 1", "%i_next")
    w.branch(w.assign(f"icmp slt i64 %i_next, {n}"), "copy", "copied")
    w.label("copied")
    w.jump("test")
    w.label("end")
    w.emit("ret void")
    yield f"define void @{symbol(loop)}(ptr noalias %memory) noinline {ATTRIBUTES} {{"
    yield from w.lines
    yield "}"


def matrix_assembly(matrix: Matrix, width: int, native: int, element: ElementType) -> Iterator[str]:
    """Yield the function y = W x, `void legged_<matrix>(real *memory)` with x and then y in memory, for `width` states.

    Rows are computed side by side, each as a sum over the columns in their order: in the lanes of native vectors for
    one state, and as broadcast numbers times vectors of states for several. Both give the same bits.
    """
    is_single, columns = width == 1, matrix.weights.shape[1]
    w = IRWriter(native if is_single else width, element)
    step = native if is_single else 1  # rows of a vector
    count = next(n for n in (_ROWS, 4, 2, 1) if matrix.rows % (n * step) == 0)
    w.label("start")
    w.assign(f"load ptr, ptr @{tables.symbol(matrix)}, align 8", "%weights")
    results = w.gep("%memory", columns * width)
    w.jump("rows")
    w.label("rows")
    w.assign("phi i64 [0, %start], [%i_next, %stored]", "%i")
    block = w.gep("%weights", "%i")
    w.jump("columns")
    w.label("columns")
    w.assign("phi i64 [0, %rows], [%j_next, %columns]", "%j")
    for k in range(count):
        w.assign(f"phi {w.float_type} [{w.float_constant(0.0)}, %rows], [%next{k}, %columns]", f"%sum{k}")
    at = w.gep("%memory", w.assign(f"mul i64 %j, {width}"))
    x = w.broadcast(w.load_number(at)) if is_single else w.load(at)
    column = w.gep(block, w.assign(f"mul i64 %j, {matrix.rows}"))
    for k in range(count):
        weight = w.load(column, k * step) if is_single else w.broadcast(w.load_number(w.gep(column, k)))
        total = f"{w.float_type} {weight}, {w.float_type} {x}, {w.float_type} %sum{k}"
        w.assign(f"call {w.float_type} @llvm.fmuladd.{w.suffix}({total})", f"%next{k}")
    w.assign("add i64 %j, 1", "%j_next")
    w.branch(w.assign(f"icmp slt i64 %j_next, {columns}"), "columns", "stored")
    w.label("stored")
    target = w.gep(results, w.assign(f"mul i64 %i, {width}"))
    for k in range(count):
        w.store(f"%next{k}", target, k * w.width)
    w.assign(f"add i64 %i, {count * step}", "%i_next")
    w.branch(w.assign(f"icmp slt i64 %i_next, {matrix.rows}"), "rows", "end")
    w.label("end")
    w.emit("ret void")
    yield f"define internal void @{symbol(matrix)}(ptr noalias %memory) noinline {ATTRIBUTES} {{"
    yield from w.lines
    yield "}"
