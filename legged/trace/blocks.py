"""From rows to lanes: assembly that runs a core over a batch, `width` states at a time.

Users' arrays have a row for each state; the core wants, number by number, a vector with an entry for each state. A
block of rows is loaded and transposed in registers, a few columns at a time, and results go back the same way: no
array is copied as a whole. The function is

    int64 legged_batch(int64 first, int64 end, const Array *arrays, double *work)

for the states first, ..., end - 1. `arrays` describes the arguments and then the results, three 64-bit numbers each:
the address of the first state's row; bytes from one state's row to the next; and the address of a table with every
state's offset in bytes, or zero if rows are evenly spaced. It returns the first state with a result that is not finite,
or -1. The last block repeats the last state in the lanes that are left.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from legged.trace.assembler import ATTRIBUTES, Value, Writer
from legged.trace.graph import Graph
from legged.trace.lowering import CORE

ENTRY = "legged_batch"


def work_size(graph: Graph, width: int, room: int) -> int:
    """Return how many numbers of working memory the function takes."""
    return _layout(graph, width)[1] + room


def _layout(graph: Graph, width: int) -> tuple[list[tuple[int, int]], int]:
    """Return (place in working memory and size of every array's block, size of all of them)."""
    blocks, place = [], 0
    for shape in [*(shape for _, shape in graph.inputs), *graph.outputs]:
        blocks.append((place, math.prod(shape)))
        place += -(-math.prod(shape) * width // 8) * 8
    return blocks, place


def assembly(graph: Graph, width: int) -> Iterator[str]:
    """Yield the function; the core and its declarations come from `lowering`."""
    for name, column_block in (("fetch", _fetch), ("deliver", _deliver)):
        yield from _columns(name, width, column_block)
    yield from _entry(graph, width)


def _entry(graph: Graph, width: int) -> Iterator[str]:
    blocks, place = _layout(graph, width)
    w = Writer(1)
    w.label("start")
    w.let(f"alloca [{max(len(blocks), 1)} x ptr], align 8", "%table")
    for k, (offset, _) in enumerate(blocks):
        w.line(f"store ptr {w.at('%work', offset)}, ptr {w.at('%table', k, 'ptr')}, align 8")
    room = w.at("%work", place)
    w.let("sub i64 %end, 1", "%last")
    w.line("br label %block")
    w.label("block")
    w.let("phi i64 [%first, %start], [%k_next, %checked]", "%k")
    w.let("icmp eq i64 %k, %first", "%fresh")
    for k, (offset, size) in enumerate(blocks):
        if k == len(graph.inputs):
            w.let(f"call i64 @{CORE}(ptr %table, ptr {room})", "%wrong")
        if size:
            block, array = w.at("%work", offset), w.at("%arrays", 3 * k, "i64")
            rest = f"ptr {array}, i64 %k, i64 %last, ptr {block}, i64 {size}"
            if k < len(graph.inputs):
                w.line(f"call void @legged_fetch(i1 %fresh, {rest})")
            else:
                w.line(f"call void @legged_deliver(i1 true, {rest})")
    w.let("icmp eq i64 %wrong, 0", "%fine")
    w.line("br i1 %fine, label %checked, label %bad")
    w.label("bad")
    lane = w.let("call i64 @llvm.cttz.i64(i64 %wrong, i1 true)")
    w.line(f"ret i64 {w.let(f'add i64 %k, {lane}')}")
    w.label("checked")
    w.let(f"add i64 %k, {width}", "%k_next")
    w.let("icmp slt i64 %k_next, %end", "%more")
    w.line("br i1 %more, label %block, label %done")
    w.label("done")
    w.line("ret i64 -1")
    yield "declare i64 @llvm.cttz.i64(i64, i1)"
    yield "declare i64 @llvm.smin.i64(i64, i64)"
    yield f"define i64 @{ENTRY}(i64 %first, i64 %end, ptr %arrays, ptr %work) {ATTRIBUTES} {{"
    yield from w.lines
    yield "}"


def _rows(w: Writer) -> list[Value]:
    """Return where the rows of the states k, k + 1, ... of one array are, none beyond the last."""
    base = w.let("load ptr, ptr %array, align 8")
    lanes = [w.let(f"add i64 %k, {lane}") for lane in range(w.width)]
    lanes = [w.let(f"call i64 @llvm.smin.i64(i64 {state}, i64 %last)") for state in lanes]
    w.line(f"br i1 {w.let('icmp eq i64 %offsets, 0')}, label %even, label %uneven")
    w.label("even")
    even = [w.let(f"mul i64 {state}, %stride") for state in lanes]
    w.line("br label %found")
    w.label("uneven")
    table = w.let("inttoptr i64 %offsets to ptr")
    uneven = [w.let(f"load i64, ptr {w.at(table, state, 'i64')}, align 8") for state in lanes]
    w.line("br label %found")
    w.label("found")
    pairs = zip(even, uneven, strict=True)
    return [w.at(base, offset, "i8") for offset in [w.let(f"phi i64 [{a}, %even], [{b}, %uneven]") for a, b in pairs]]


def _columns(name: str, width: int, column_block: Callable[[Writer, list[Value]], None]) -> Iterator[str]:
    """Yield the function that moves n columns of a block of rows, half a width at a time, the last ones overlapping.

    A row that all states share is fetched for the first block only.
    """
    w = Writer(width)
    w.label("start")
    w.let(f"load i64, ptr {w.at('%array', 1, 'i64')}, align 8", "%stride")
    w.let(f"load i64, ptr {w.at('%array', 2, 'i64')}, align 8", "%offsets")
    varies = w.let(f"icmp ne i64 {w.let('or i64 %stride, %offsets')}, 0")
    w.line(f"br i1 {w.let(f'or i1 %fresh, {varies}')}, label %go, label %end")
    w.label("go")
    rows = _rows(w)
    step = width // 2
    w.let(f"sub i64 %n, {step}", "%final")
    w.line(f"br i1 {w.let('icmp slt i64 %final, 0')}, label %narrow, label %wide")
    w.label("wide")
    w.let("phi i64 [0, %found], [%c_next, %wide]", "%c")
    column_block(w, rows)
    w.let(f"call i64 @llvm.smin.i64(i64 {w.let(f'add i64 %c, {step}')}, i64 %final)", "%c_next")
    w.line(f"br i1 {w.let('icmp slt i64 %c, %final')}, label %wide, label %end")
    w.label("narrow")
    w.let("phi i64 [0, %found], [%e_next, %narrow]", "%e")
    place = w.at("%block", w.let(f"mul i64 %e, {width}"))
    for lane, row in enumerate(rows):
        here, there = w.at(row, "%e"), w.at(place, lane)
        source, target = (here, there) if name == "fetch" else (there, here)
        w.line(f"store double {w.let(f'load double, ptr {source}, align 8')}, ptr {target}, align 8")
    w.let("add i64 %e, 1", "%e_next")
    w.line(f"br i1 {w.let('icmp slt i64 %e_next, %n')}, label %narrow, label %end")
    w.label("end")
    w.line("ret void")
    parameters = "i1 %fresh, ptr %array, i64 %k, i64 %last, ptr noalias %block, i64 %n"
    yield f"define internal void @legged_{name}({parameters}) {ATTRIBUTES} {{"
    yield from w.lines
    yield "}"


def _fetch(w: Writer, rows: list[Value]) -> None:
    """Load half as many columns as there are rows, transpose them, store them as vectors with a lane for each row.

    The outermost step of the transposition, by which rows of the second half go to the upper lanes, is done in loading.
    """
    half = w.width // 2
    block = [_joined(w, _half(w, rows[i]), _half(w, rows[i + half])) for i in range(half)]
    place = w.at("%block", w.let(f"mul i64 %c, {w.width}"))
    for i, column in enumerate(_transposed(w, block)):
        w.store(column, place, i * w.width)


def _deliver(w: Writer, rows: list[Value]) -> None:
    """The way back."""
    half = w.width // 2
    place = w.at("%block", w.let(f"mul i64 %c, {w.width}"))
    block = _transposed(w, [w.load(place, i * w.width) for i in range(half)])
    for i, row in enumerate(rows):
        part = _part(w, block[i % half], i // half * half)
        w.line(f"store <{half} x double> {part}, ptr {w.at(row, '%c')}, align 8")


def _half(w: Writer, row: Value) -> Value:
    return w.let(f"load <{w.width // 2} x double>, ptr {w.at(row, '%c')}, align 8")


def _joined(w: Writer, a: Value, b: Value) -> Value:
    kind = f"<{w.width // 2} x double>"
    return w.let(f"shufflevector {kind} {a}, {kind} {b}, {_indices(list(range(w.width)))}")


def _part(w: Writer, a: Value, start: int) -> Value:
    indices = _indices(list(range(start, start + w.width // 2)))
    return w.let(f"shufflevector {w.real} {a}, {w.real} poison, {indices}")


def _transposed(w: Writer, block: list[Value]) -> list[Value]:
    """Return the vectors with their lower and their upper halves transposed, each a square.

    Entries are exchanged across the diagonal at distance ..., 4, 2, 1 from each other.
    """
    distance = len(block) // 2
    while distance:
        for i in range(len(block)):
            if not i & distance:
                a, b = block[i], block[i + distance]
                low = [j if not j & distance else j - distance + w.width for j in range(w.width)]
                high = [j + distance if not j & distance else j + w.width for j in range(w.width)]
                block[i], block[i + distance] = (
                    w.let(f"shufflevector {w.real} {a}, {w.real} {b}, {_indices(order)}") for order in (low, high)
                )
        distance //= 2
    return block


def _indices(order: list[int]) -> str:
    return f"<{len(order)} x i32> <{', '.join(f'i32 {j}' for j in order)}>"
