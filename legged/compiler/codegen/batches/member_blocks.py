"""Functions of the time loop on blocks: numbers of all members that are advanced at a time, a vector for each number.

    void legged_gather(const Array *array, int64 k, int64 last, int64 offset, real *block, int64 n)
    void legged_scatter(const Array *array, int64 k, int64 last, int64 offset, real *block, int64 n)
    void legged_copy_lanes(int64 mask, real *source, real *target, int64 n)
    bool legged_exceeds(const real *block, int64 n, real bound)

The first two copy n numbers of the members from k on, of which the last one is `last`, from the rows of an array to a
block and back; see `time_loop` for arrays and masks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from legged.compiler.codegen.element_type import ElementType
from legged.compiler.codegen.ir_writer import ATTRIBUTES, IRWriter, Value
from legged.compiler.codegen.kernels import transpose


def assembly(width: int, element: ElementType) -> Iterator[str]:
    """Yield the functions for blocks of `width` members."""
    vector = IRWriter(width, element)
    yield f"declare {vector.float_type} @llvm.fabs.{vector.suffix}({vector.float_type})"
    for name in ("gather", "scatter"):
        yield from _copy_function(name, IRWriter(width, element))
    yield from _copy_lanes_function(IRWriter(width, element))
    yield from _exceeds_function(IRWriter(width, element))


def lanes(w: IRWriter, mask: Value) -> Value:
    """Return a mask as a condition."""
    bits = w.assign(f"trunc i64 {mask} to i{w.width}")
    return bits if w.width == 1 else w.assign(f"bitcast i{w.width} {bits} to {w.bool_type}")


class _MemberRows(NamedTuple):
    """The rows of the members of a block, in place of evenly spaced `transpose.Rows`."""

    rows: list[Value]

    def pointers(self, w: IRWriter, column: int | Value) -> list[Value]:
        """Return the pointers to the entries of a column."""
        return [w.gep(row, column) for row in self.rows]


def _copy_function(name: str, w: IRWriter) -> Iterator[str]:
    """Yield the function that copies n numbers per member from rows to a block (gather) or back (scatter).

    The numbers begin `offset` bytes after the beginning of each row. Groups of columns are transposed in registers; the
    last group overlaps the one before. Rows that are shorter than a group are copied column by column.
    """
    width = w.width
    w.label("start")
    base = w.assign("load ptr, ptr %array, align 8")
    stride = w.assign(f"load i64, ptr {w.gep('%array', 1, 'i64')}, align 8")
    rows = [w.gep(base, w.assign(f"add i64 {w.assign(f'mul i64 %k, {stride}')}, %offset"), "i8")]
    for lane in range(1, width):
        has_member = w.assign(f"icmp sle i64 {w.assign(f'add i64 %k, {lane}')}, %last")
        rows.append(w.gep(rows[-1], w.assign(f"select i1 {has_member}, i64 {stride}, i64 0"), "i8"))
    members, group = _MemberRows(rows), max(width // 2, 1)
    w.branch(w.assign("icmp sgt i64 %n, 0"), "some", "end")
    w.label("some")
    w.branch(w.assign(f"icmp sge i64 %n, {group}"), "groups", "columns")
    for label, count in (("groups", group), ("columns", 1)):
        w.label(label)
        final = w.assign(f"sub i64 %n, {count}")
        w.jump(f"{label}_next")
        w.label(f"{label}_next")
        column = w.assign(f"phi i64 [0, %{label}], [%{label}_e, %{label}_next]")
        block = w.gep("%block", w.assign(f"mul i64 {column}, {width}"))
        if width == 1:
            source, target = (w.gep(rows[0], column), block) if name == "gather" else (block, w.gep(rows[0], column))
            w.store(w.load(source), target)
        elif name == "gather":
            for i, vector in enumerate(transpose.load_columns(w, members, column, count)):
                w.store(vector, block, i * width)
        else:
            columns = [w.load(block, i * width) for i in range(count)]
            transpose.store_columns(w, columns, members, column)
        w.assign(f"call i64 @llvm.smin.i64(i64 {w.assign(f'add i64 {column}, {count}')}, i64 {final})", f"%{label}_e")
        w.branch(w.assign(f"icmp slt i64 {column}, {final}"), f"{label}_next", "end")
    w.label("end")
    w.emit("ret void")
    parameters = "ptr %array, i64 %k, i64 %last, i64 %offset, ptr %block, i64 %n"
    yield f"define internal void @legged_{name}({parameters}) {ATTRIBUTES} {{"
    yield from w.lines
    yield "}"


def _copy_lanes_function(w: IRWriter) -> Iterator[str]:
    """Yield the function that copies the first n numbers of a block to another in the lanes of a mask."""
    w.label("start")
    chosen = lanes(w, "%mask")
    w.branch(w.assign("icmp sgt i64 %n, 0"), "next", "end")
    w.label("next")
    w.assign("phi i64 [0, %start], [%i_next, %next]", "%i")
    offset = w.assign(f"mul i64 %i, {w.width}")
    source, target = w.gep("%source", offset), w.gep("%target", offset)
    w.store(w.select(chosen, w.load(source), w.load(target)), target)
    w.assign("add i64 %i, 1", "%i_next")
    w.branch(w.assign("icmp slt i64 %i_next, %n"), "next", "end")
    w.label("end")
    w.emit("ret void")
    yield (
        "define internal void @legged_copy_lanes(i64 %mask, ptr noalias %source, ptr noalias %target, i64 %n) "
        f"noinline {ATTRIBUTES} {{"
    )
    yield from w.lines
    yield "}"


def _exceeds_function(w: IRWriter) -> Iterator[str]:
    """Yield the function that returns whether one of the first n numbers of a block exceeds a bound or is NaN."""
    w.label("start")
    bound = w.broadcast("%bound")
    w.branch(w.assign("icmp sgt i64 %n, 0"), "next", "end")
    w.label("next")
    w.assign("phi i64 [0, %start], [%i_next, %next]", "%i")
    w.assign(f"phi i{w.width} [0, %start], [%exceeded_next, %next]", "%exceeded")
    size = w.intrinsic("fabs", w.load("%block", w.assign(f"mul i64 %i, {w.width}")))
    w.assign(f"or i{w.width} %exceeded, {w.lane_mask(w.fcmp('ugt', size, bound))}", "%exceeded_next")
    w.assign("add i64 %i, 1", "%i_next")
    w.branch(w.assign("icmp slt i64 %i_next, %n"), "next", "end")
    w.label("end")
    exceeded = w.assign(f"phi i{w.width} [0, %start], [%exceeded_next, %next]")
    w.emit(f"ret i1 {w.assign(f'icmp ne i{w.width} {exceeded}, 0')}")
    yield f"define internal i1 @legged_exceeds(ptr %block, i64 %n, {w.element.llvm} %bound) noinline {ATTRIBUTES} {{"
    yield from w.lines
    yield "}"
