"""Machine code that multiplies and factors small matrices, one after the other, as parts of sequences of calls.

All functions have the type of the loop over a batch, see `batches.batch_loop`: they take items first, ..., end - 1,
receive the address of their argument, and return -1.

    int64 legged_matrix_product(..., const Product *, ...)    C = S + scale A B
    int64 legged_cholesky_solve(..., const Factor *, ...)     W = L^-1 [A 1] where L L^T = A_square + regularization 1
    int64 legged_mirror(..., const Mirror *, ...)             copies the lower triangle of A to the upper one

Matrices are in row-major order; the numbers of a row of B, C, S and W are contiguous. The product is computed in tiles
of a few rows and SIMD vectors of C, which stay in registers while the loop over the inner index adds to them, as in
BLIS (Van Zee, van de Geijn 2015, "BLIS: a framework for rapidly instantiating BLAS functionality"), but without
packing, since small matrices are in the cache. The last vector of a row is read and written under a mask. If only the
lower triangle of C is needed, vectors of a tile that lie above the diagonal as a whole are left out.

1 is the identity matrix, and A_square the last columns of A. Gaussian elimination turns [A 1] into W. A pivot that is
not positive sets its row to zero; `info` is the number of the first such pivot, from 1 on, or 0 if there is none.

The LLVM IR below has the abbreviations of `ir_writer.with_entries`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from legged.compiler.codegen.ir_writer import ATTRIBUTES, with_entries
from legged.compiler.codegen.llvm import Target

PRODUCT, CHOLESKY_SOLVE, MIRROR = (f"legged_{name}" for name in ("matrix_product", "cholesky_solve", "mirror"))


def _matrix(name: str) -> tuple[str, str, str]:
    return name, f"{name}_item", f"{name}_row"


STRUCTURES = {
    "Product": ("rows", "columns", "inner", "is_lower", *_matrix("A"), "A_column", *_matrix("B"), *_matrix("S"),
                *_matrix("C"), "scale", "scale_item"),
    "Factor": ("rows", "columns", *_matrix("A"), *_matrix("W"), "regularization", "regularization_item", "info",
               "info_item"),
    "Mirror": ("rows", *_matrix("A")),
}  # fmt: skip
"""Entries of the arguments, 64-bit integers: sizes, addresses, and strides of items, rows and columns in [bytes]."""

_HEAD = "(i64 %first, i64 %end, ptr %argument, ptr %work) ATTRIBUTES {"
_TILE = ", ".join(
    ("i64 %inner, ptr %A, i64 %A_row, i64 %A_column, ptr %B, i64 %B_row, ptr %S, i64 %S_row, ptr %C, i64 %C_row",
     "double %scale, MASK %mask")
)  # fmt: skip
_ARGUMENTS = _TILE.replace("ptr %A,", "ptr %A_line,").replace("ptr %B,", "ptr %B_tile,")
_ARGUMENTS = _ARGUMENTS.replace("ptr %S,", "ptr %S_tile,").replace("ptr %C,", "ptr %C_tile,")
_ARGUMENTS = _ARGUMENTS.replace("%scale,", "%scale_value,")
_MASKED_LOAD = "call VECTOR @llvm.masked.load.VEC.p0(ptr {}, i32 8, MASK %mask, VECTOR zeroinitializer)"


def _loaded(structure: str) -> str:
    """Return the code that loads all entries of a structure: pointers, and numbers."""
    pointers = {entry.removesuffix("_item") for entry in STRUCTURES[structure] if entry.endswith("_item")}
    kinds = ((x, "POINTER" if x in pointers else "LOAD") for x in STRUCTURES[structure])
    return "".join(f"  %{entry} = {kind} %argument {structure}.{entry}\n" for entry, kind in kinds)


def _of_item(names: Iterable[str]) -> str:
    """Return the code that computes the address `%NAME_own` of the present item of each array."""
    lines = "  %{0}_k = mul i64 %item, %{0}_item\n  %{0}_own = getelementptr i8, ptr %{0}, i64 %{0}_k\n"
    return "".join(lines.format(name) for name in names)


_EACH_ITEM = """each:
  %item = phi i64 [%first, %start], [%item_next, %item_done]
  %item_left = icmp slt i64 %item, %end
  br i1 %item_left, label %take, label %finish
item_done:
  %item_next = add i64 %item, 1
  br label %each
take:
"""
"""The loop over the items, up to the beginning of its body."""


def _tile(rows: int, vectors: int, is_last: bool, width: int) -> Iterator[str]:
    """Yield the function that computes a tile of C; with `is_last` the last vector of each row has a mask."""

    def load(value: str, address: str, j: int) -> str:
        if is_last and j == vectors - 1:
            return f"  {value} = {_MASKED_LOAD.format(address)}"
        return f"  {value} = load VECTOR, ptr {address}, align 8"

    cells = [(r, j) for r in range(rows) for j in range(vectors)]
    yield f"define internal void @{_tile_name(rows, vectors, is_last)}({_TILE}) noinline ATTRIBUTES {{\nstart:"
    for r in range(rows):
        yield f"  %r{r} = mul i64 %A_row, {r}\n  %A{r} = getelementptr i8, ptr %A, i64 %r{r}"
    yield "  %is_any = icmp sgt i64 %inner, 0\n  br i1 %is_any, label %next, label %finish"
    yield "next:\n  %k = phi i64 [0, %start], [%k_next, %next]"
    yield "  %a_at = phi i64 [0, %start], [%a_next, %next]\n  %b_at = phi ptr [%B, %start], [%b_next, %next]"
    for r, j in cells:
        yield f"  %x{r}.{j} = phi VECTOR [zeroinitializer, %start], [%y{r}.{j}, %next]"
    for j in range(vectors):
        yield f"  %b{j}.at = getelementptr double, ptr %b_at, i64 {j * width}"
        yield load(f"%b{j}", f"%b{j}.at", j)
    for r in range(rows):
        yield f"  %a{r}.at = getelementptr i8, ptr %A{r}, i64 %a_at\n  %a{r} = load double, ptr %a{r}.at, align 8"
        yield from _splat(f"%s{r}", f"%a{r}")
        for j in range(vectors):
            yield f"  %y{r}.{j} = call VECTOR @llvm.fmuladd.VEC(VECTOR %s{r}, VECTOR %b{j}, VECTOR %x{r}.{j})"
    yield "  %k_next = add i64 %k, 1\n  %a_next = add i64 %a_at, %A_column"
    yield "  %b_next = getelementptr i8, ptr %b_at, i64 %B_row\n  %is_left = icmp slt i64 %k_next, %inner"
    yield "  br i1 %is_left, label %next, label %finish\nfinish:"
    for r, j in cells:
        yield f"  %z{r}.{j} = phi VECTOR [zeroinitializer, %start], [%y{r}.{j}, %next]"
    yield from _splat("%scales", "%scale")
    for r in range(rows):
        for name in "SC":
            yield f"  %{name}_to{r} = mul i64 %{name}_row, {r}"
            yield f"  %{name}{r} = getelementptr i8, ptr %{name}, i64 %{name}_to{r}"
    for r, j in cells:
        yield f"  %S{r}.{j}.at = getelementptr double, ptr %S{r}, i64 {j * width}"
        yield f"  %C{r}.{j}.at = getelementptr double, ptr %C{r}, i64 {j * width}"
        yield load(f"%S{r}.{j}", f"%S{r}.{j}.at", j)
        yield f"  %C{r}.{j} = call VECTOR @llvm.fmuladd.VEC(VECTOR %scales, VECTOR %z{r}.{j}, VECTOR %S{r}.{j})"
        if is_last and j == vectors - 1:
            yield f"  call void @llvm.masked.store.VEC.p0(VECTOR %C{r}.{j}, ptr %C{r}.{j}.at, i32 8, MASK %mask)"
        else:
            yield f"  store VECTOR %C{r}.{j}, ptr %C{r}.{j}.at, align 8"
    yield "  ret void\n}\n"


def _tile_name(rows: int, vectors: int, is_last: bool) -> str:
    return f"legged_tile.{rows}.{vectors}{'.last' if is_last else ''}"


def _splat(vector: str, number: str) -> Iterator[str]:
    yield f"  {vector}.one = insertelement VECTOR poison, double {number}, i64 0"
    yield f"  {vector} = shufflevector VECTOR {vector}.one, VECTOR poison, <WIDTH x i32> zeroinitializer"


def _mask(name: str, left: str) -> str:
    """Return the code of the mask that selects the lanes whose index is less than `left`."""
    return f"""  {name}.one = insertelement <WIDTH x i64> poison, i64 {left}, i64 0
  {name}.all = shufflevector <WIDTH x i64> {name}.one, <WIDTH x i64> poison, <WIDTH x i32> zeroinitializer
  {name} = icmp slt <WIDTH x i64> LANE_NUMBERS, {name}.all
"""


def _product(rows: list[int], vectors: int) -> Iterator[str]:
    """Yield `legged_matrix_product`; its tiles have one of these numbers of rows, and at most `vectors` vectors."""
    last = rows[-1]
    last_columns = "".join(
        f"  %{x}_shift = mul i64 %i, %{x}_row\n  %{x}_line = getelementptr i8, ptr %{x}_own, i64 %{x}_shift\n"
        for x in "ASC"
    )
    columns = "".join(f"  %{x}_tile = getelementptr double, ptr %{y}, i64 %j_number\n"
                      for x, y in (("B", "B_own"), ("S", "S_line"), ("C", "C_line")))  # fmt: skip
    yield f"define i64 @{PRODUCT}{_HEAD}\nstart:\n{_loaded('Product')}"
    yield f"""  %above = add i64 %columns, {{WIDTH - 1}}
  %all_vectors = udiv i64 %above, WIDTH
  %before_last = sub i64 %all_vectors, 1
  %first_of_last = mul i64 %before_last, WIDTH
  %lanes_left = sub i64 %columns, %first_of_last
{_mask("%mask", "%lanes_left")}  br label %each
{_EACH_ITEM}{_of_item((*"ABSC", "scale"))}  %scale_value = load double, ptr %scale_own, align 8
  br label %line
line:
  %i = phi i64 [0, %take], [%i_next, %line_done]
  %rows_left = sub i64 %rows, %i
  %row_left = icmp sgt i64 %rows_left, 0
  br i1 %row_left, label %take_line, label %item_done
take_line:
{_rows_of_tile(rows)}  %i_next = add i64 %i, %tile_rows.{last}
{last_columns}  %last_row = sub i64 %i_next, 1
  %vectors_before = udiv i64 %last_row, WIDTH
  %lower_vectors = add i64 %vectors_before, 1
  %least = call i64 @llvm.umin.i64(i64 %lower_vectors, i64 %all_vectors)
  %is_triangle = icmp ne i64 %is_lower, 0
  %vectors = select i1 %is_triangle, i64 %least, i64 %all_vectors
  br label %column
column:
  %j = phi i64 [0, %take_line], [%j_next, %column_done]
  %vectors_left = sub i64 %vectors, %j
  %vector_left = icmp sgt i64 %vectors_left, 0
  br i1 %vector_left, label %take_tile, label %line_done
line_done:
  br label %line
take_tile:
  %more = add i64 %vectors_left, {vectors - 1}
  %tiles = udiv i64 %more, {vectors}
  %share = add i64 %vectors_left, %tiles
  %share_less = sub i64 %share, 1
  %tile_vectors = udiv i64 %share_less, %tiles
  %j_next = add i64 %j, %tile_vectors
  %j_number = mul i64 %j, WIDTH
{columns}  %is_last = icmp eq i64 %j_next, %all_vectors
  %last_offset = select i1 %is_last, i64 {vectors}, i64 0
  %kind = add i64 %tile_vectors, %last_offset
  %row_offset = mul i64 %tile_rows.{last}, {2 * vectors + 1}
  %number = add i64 %kind, %row_offset
"""
    yield from _tile_calls(rows, vectors)
    yield "column_done:\n  br label %column\nfinish:\n  ret i64 -1\n}\n"


def _rows_of_tile(rows: list[int]) -> str:
    """Return the code that computes the number of rows of the next tile, as `%tile_rows.N` with N = rows[-1]."""
    before, *fewer = rows
    code = f"  %tile_rows.{before} = add i64 0, {before}\n"
    for count in fewer:
        code += f"  %has.{count} = icmp slt i64 %rows_left, {before}\n"
        code += f"  %tile_rows.{count} = select i1 %has.{count}, i64 {count}, i64 %tile_rows.{before}\n"
        before = count
    return code


def _tile_calls(rows: list[int], vectors: int) -> Iterator[str]:
    """Yield the code that calls the function of the tile `%number`."""
    yield "  switch i64 %number, label %column_done ["
    tiles = [(r, j, last) for r in rows for last in (False, True) for j in range(1, vectors + 1)]
    for r, j, last in tiles:
        number = r * (2 * vectors + 1) + j + vectors * last
        yield f"    i64 {number}, label %{_tile_name(r, j, last)}"
    yield "  ]"
    for tile in tiles:
        yield f"{_tile_name(*tile)}:\n  call void @{_tile_name(*tile)}({_ARGUMENTS})\n  br label %column_done"


_FACTOR = f"""
define i64 @{CHOLESKY_SOLVE}{_HEAD}
start:
{_loaded("Factor")}  %square = sub i64 %columns, %rows
  %all_columns = add i64 %columns, %rows
  br label %each
{_EACH_ITEM}{_of_item(("A", "W", "regularization", "info"))}  %added = load double, ptr %regularization_own, align 8
  store i32 0, ptr %info_own, align 4
  br label %copy_row
copy_row:
  %c = phi i64 [0, %take], [%c_next, %row_copied]
  %c_left = icmp slt i64 %c, %rows
  br i1 %c_left, label %take_row, label %pivot
take_row:
  %A_shift = mul i64 %c, %A_row
  %A_line = getelementptr i8, ptr %A_own, i64 %A_shift
  %W_shift = mul i64 %c, %W_row
  %W_line = getelementptr i8, ptr %W_own, i64 %W_shift
  br label %copy
copy:
  %g = phi i64 [0, %take_row], [%g_next, %copy]
  %lanes_left = sub i64 %columns, %g
{_mask("%mask", "%lanes_left")}  %from = getelementptr double, ptr %A_line, i64 %g
  %copied = {_MASKED_LOAD.format("%from")}
  %to = getelementptr double, ptr %W_line, i64 %g
  store VECTOR %copied, ptr %to, align 8
  %g_next = add i64 %g, WIDTH
  %g_left = icmp slt i64 %g_next, %all_columns
  br i1 %g_left, label %copy, label %row_copied
row_copied:
  %own_column = add i64 %square, %c
  %diagonal_at = getelementptr double, ptr %W_line, i64 %own_column
  %diagonal = load double, ptr %diagonal_at, align 8
  %regular = fadd double %diagonal, %added
  store double %regular, ptr %diagonal_at, align 8
  %unit_at = getelementptr double, ptr %diagonal_at, i64 %rows
  store double 1.0, ptr %unit_at, align 8
  %c_next = add i64 %c, 1
  br label %copy_row
pivot:
  %p = phi i64 [0, %copy_row], [%p_next, %pivot_done]
  %p_left = icmp slt i64 %p, %rows
  br i1 %p_left, label %take_pivot, label %item_done
take_pivot:
  %p_next = add i64 %p, 1
  %p_shift = mul i64 %p, %W_row
  %p_line = getelementptr i8, ptr %W_own, i64 %p_shift
  %p_column = add i64 %square, %p
  %p_at = getelementptr double, ptr %p_line, i64 %p_column
  %d = load double, ptr %p_at, align 8
  %is_positive = fcmp ogt double %d, 0.0
  %root = call double @llvm.sqrt.f64(double %d)
  %inverse = fdiv double 1.0, %root
  %s = select i1 %is_positive, double %inverse, double 0.0
  %old_info = load i32, ptr %info_own, align 4
  %number = trunc i64 %p_next to i32
  %is_first = icmp eq i32 %old_info, 0
  %failed_here = select i1 %is_first, i32 %number, i32 %old_info
  %new_info = select i1 %is_positive, i32 %old_info, i32 %failed_here
  store i32 %new_info, ptr %info_own, align 4
SPLAT_S
  br label %scale
scale:
  %h = phi i64 [0, %take_pivot], [%h_next, %scale]
  %h_at = getelementptr double, ptr %p_line, i64 %h
  %unscaled = load VECTOR, ptr %h_at, align 8
  %scaled = fmul VECTOR %unscaled, %s.all
  store VECTOR %scaled, ptr %h_at, align 8
  %h_next = add i64 %h, WIDTH
  %h_left = icmp slt i64 %h_next, %all_columns
  br i1 %h_left, label %scale, label %other
other:
  %r = phi i64 [%p_next, %scale], [%r_next, %other_done]
  %r_left = icmp slt i64 %r, %rows
  br i1 %r_left, label %take_other, label %pivot_done
pivot_done:
  br label %pivot
take_other:
  %r_shift = mul i64 %r, %W_row
  %r_line = getelementptr i8, ptr %W_own, i64 %r_shift
  %f_at = getelementptr double, ptr %r_line, i64 %p_column
  %f = load double, ptr %f_at, align 8
  %fs = fmul double %f, %s
  %factor = fneg double %fs
SPLAT_FACTOR
  br label %update
update:
  %u = phi i64 [0, %take_other], [%u_next, %update]
  %r_at = getelementptr double, ptr %r_line, i64 %u
  %q_at = getelementptr double, ptr %p_line, i64 %u
  %x = load VECTOR, ptr %r_at, align 8
  %y = load VECTOR, ptr %q_at, align 8
  %z = call VECTOR @llvm.fmuladd.VEC(VECTOR %factor.all, VECTOR %y, VECTOR %x)
  store VECTOR %z, ptr %r_at, align 8
  %u_next = add i64 %u, WIDTH
  %u_left = icmp slt i64 %u_next, %all_columns
  br i1 %u_left, label %update, label %other_done
other_done:
  %r_next = add i64 %r, 1
  br label %other
finish:
  ret i64 -1
}}

define i64 @{MIRROR}{_HEAD}
start:
{_loaded("Mirror")}  br label %each
{_EACH_ITEM}{_of_item("A")}  br label %line
line:
  %i = phi i64 [0, %take], [%i_next, %line_done]
  %i_left = icmp slt i64 %i, %rows
  br i1 %i_left, label %take_line, label %item_done
take_line:
  %i_shift = mul i64 %i, %A_row
  %from_line = getelementptr i8, ptr %A_own, i64 %i_shift
  %to_column = getelementptr double, ptr %A_own, i64 %i
  br label %copy
copy:
  %j = phi i64 [0, %take_line], [%j_next, %copy_one]
  %to = phi ptr [%to_column, %take_line], [%to_next, %copy_one]
  %j_left = icmp slt i64 %j, %i
  br i1 %j_left, label %copy_one, label %line_done
copy_one:
  %from = getelementptr double, ptr %from_line, i64 %j
  %value = load double, ptr %from, align 8
  store double %value, ptr %to, align 8
  %to_next = getelementptr i8, ptr %to, i64 %A_row
  %j_next = add i64 %j, 1
  br label %copy
line_done:
  %i_next = add i64 %i, 1
  br label %line
finish:
  ret i64 -1
}}

declare i64 @llvm.umin.i64(i64, i64)
declare double @llvm.sqrt.f64(double)
declare VECTOR @llvm.fmuladd.VEC(VECTOR, VECTOR, VECTOR)
declare VECTOR @llvm.masked.load.VEC.p0(ptr, i32, MASK, VECTOR)
declare void @llvm.masked.store.VEC.p0(VECTOR, ptr, i32, MASK)
"""


def assembly(target: Target) -> str:
    """Return the LLVM IR of the module.

    Args:
        target: The processor, whose vectors and registers determine the tiles.
    """
    rows, vectors = ([6, 2, 1], 4) if target.vector_registers == 32 else ([4, 2, 1], 3)
    width = target.width
    lines = [
        line for r in rows for j in range(1, vectors + 1) for last in (0, 1) for line in _tile(r, j, bool(last), width)
    ]
    code = with_entries("\n".join([*lines, *_product(rows, vectors), _FACTOR]), STRUCTURES)
    for word, (vector, number) in {"SPLAT_S": ("%s.all", "%s"), "SPLAT_FACTOR": ("%factor.all", "%factor")}.items():
        code = code.replace(word, "\n".join(_splat(vector, number)))
    lanes = ", ".join(f"i64 {k}" for k in range(width))
    for word, text in (
        ("LANE_NUMBERS", f"<{lanes}>"),
        ("{WIDTH - 1}", str(width - 1)),
        ("VECTOR", f"<{width} x double>"),
        ("VEC", f"v{width}f64"),
        ("MASK", f"<{width} x i1>"),
        ("WIDTH", str(width)),
        ("ATTRIBUTES", f'{ATTRIBUTES} "no-jump-tables"="true"'),
    ):
        code = code.replace(word, text)
    return code
