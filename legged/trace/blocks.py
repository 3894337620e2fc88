"""From rows to lanes: assembly that runs a core over a batch, `width` states at a time.

Users' arrays have a row for each state; the core wants, number by number, a vector with an entry for each state. A
block of rows is loaded and transposed in registers, a few columns at a time, and results go back the same way: no
array is copied as a whole. The function is

    int64 legged_batch(int64 first, int64 end, const Array *arrays, double *work)

for the states first, ..., end - 1. `arrays` describes the arguments and then the results, three 64-bit numbers each:
the address of the first state's row; bytes from one state's row to the next; and the address of a table with every
state's offset in bytes, or zero if rows are evenly spaced. It returns the first state with a result that is not finite,
or -1. The last block begins among the states of the one before if need be; fewer states than lanes repeat the last one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from legged.trace.assembler import ATTRIBUTES, Value, Writer
from legged.trace.graph import Graph
from legged.trace.lowering import CORE
from legged.trace.results import Place, standing
from legged.trace.transposition import move_in, move_one, move_out

ENTRY = "legged_batch"
_SHORT = 64
"""Numbers in a row: a block of longer ones fills the cache, and would push out what the present block needs."""


class _Array(NamedTuple):
    """An argument or a result.

    Attributes:
        number: Its place among them.
        fetched: Whether it is an argument.
        place: Where its block is in the working memory.
        size: How many numbers a row has.
        columns: Those that are moved.
        scattered: Whether some of its numbers stand in another entry's place.
    """

    number: int
    fetched: bool
    place: int
    size: int
    columns: tuple[int, ...]
    scattered: bool


def work_size(graph: Graph, width: int, room: int) -> int:
    """Return how many numbers of working memory the function takes."""
    return _arrays(graph, width)[1] + room


def _arrays(graph: Graph, width: int) -> tuple[list[_Array], int]:
    """Return the arrays, and the size of all their blocks together. Columns that nothing depends on are not moved."""
    used = {a for node in graph.nodes for a in node.arguments if isinstance(a, int)}
    used.update(r for r in graph.results if isinstance(r, int))
    there = standing_of(graph, width)
    elsewhere = {place.array for place, stand in there.items() if place != stand}
    arrays, place, first = [], 0, 0
    for k, shape in enumerate([*(shape for _, shape in graph.inputs), *graph.outputs]):
        size, fetched = math.prod(shape), k < len(graph.inputs)
        columns = tuple(c for c in range(size) if not fetched or first + c in used)
        arrays.append(_Array(k, fetched, place, size, columns, k in elsewhere))
        place += -(-size * width // 8) * 8
        first += size
    return arrays, place


def standing_of(graph: Graph, width: int) -> dict[Place, Place]:
    """Return where in the blocks the number of each entry of the results is."""
    return standing(graph, width // 2)


def assembly(graph: Graph, width: int) -> Iterator[str]:
    """Yield the function; the core and its declarations come from `lowering`."""
    arrays, size = _arrays(graph, width)
    moved = [array for array in arrays if array.columns]
    there = standing_of(graph, width)
    for array in moved:
        starts = _starts(array, width)
        yield _table(f"legged_columns{array.number}", starts)
        if array.scattered:
            stand = [there[Place(array.number, c + i)] for c in starts for i in range(width // 2)]
            yield _table(f"legged_vectors{array.number}", [arrays[p.array].place + p.entry * width for p in stand])
    w = Writer(width)
    w.label("start")
    w.let(f"alloca [{max(len(arrays), 1)} x ptr], align 8", "%table")
    for array in arrays:
        block = w.let(f"getelementptr inbounds double, ptr %work, i64 {array.place}", f"%block{array.number}")
        w.line(f"store ptr {block}, ptr {w.at('%table', array.number, 'ptr')}, align 8")
    w.let(f"getelementptr inbounds double, ptr %work, i64 {size}", "%room")
    last = w.let(f"sub i64 {w.let('sub i64 %end, %first')}, 1")
    lanes = [w.let(f"call i64 @llvm.smin.i64(i64 {lane}, i64 {last})") for lane in range(width)]
    whole = w.let(f"sub i64 %end, {width}")
    w.let(f"call i64 @llvm.smax.i64(i64 {whole}, i64 %first)", "%final")
    rows = {array: _Rows(w, array.number, lanes) for array in moved}
    w.line("br label %block")
    w.label("block")
    w.let("phi i64 [%first, %start], [%k_next, %checked]", "%k")
    for array in moved:
        if array.fetched:
            _fetch(w, array, rows[array])
    w.let(f"call i64 @{CORE}(ptr %table, ptr %room)", "%wrong")
    for array in moved:
        if not array.fetched:
            _move(w, array, rows[array])
    _finish(w)
    yield "declare i64 @llvm.cttz.i64(i64, i1)"
    yield "declare i64 @llvm.smin.i64(i64, i64)"
    yield "declare i64 @llvm.smax.i64(i64, i64)"
    yield "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)"
    yield f"define i64 @{ENTRY}(i64 %first, i64 %end, ptr %arrays, ptr %work) {ATTRIBUTES} {{"
    yield from w.lines
    yield "}"


def _table(name: str, numbers: Sequence[int]) -> str:
    return f"@{name} = internal constant [{len(numbers)} x i64] [{', '.join(f'i64 {x}' for x in numbers)}]"


def _finish(w: Writer) -> None:
    """Look at the core's verdict, and go on with the next block."""
    w.let("icmp eq i64 %wrong, 0", "%fine")
    w.line("br i1 %fine, label %checked, label %bad")
    w.label("bad")
    lane = w.let("call i64 @llvm.cttz.i64(i64 %wrong, i1 true)")
    w.line(f"ret i64 {w.let(f'add i64 %k, {lane}')}")
    w.label("checked")
    w.let(f"call i64 @llvm.smin.i64(i64 {w.let(f'add i64 %k, {w.width}')}, i64 %final)", "%k_next")
    w.line(f"br i1 {w.let('icmp slt i64 %k, %final')}, label %block, label %done")
    w.label("done")
    w.line("ret i64 -1")


class _Rows:
    """Where an array's rows are: what is the same for all blocks."""

    def __init__(self, w: Writer, number: int, lanes: list[Value]):
        self.number, self.lanes = number, lanes
        self.base = w.let(f"load ptr, ptr {w.at('%arrays', 3 * number, 'i64')}, align 8")
        self.stride, self.table = (
            w.let(f"load i64, ptr {w.at('%arrays', 3 * number + i, 'i64')}, align 8") for i in (1, 2)
        )
        self.even = [w.let(f"mul i64 {lane}, {self.stride}") for lane in lanes]

    def of_block(self, w: Writer) -> list[Value]:
        """Return where the rows of the states from %k on are."""
        k = self.number
        w.line(f"br i1 {w.let(f'icmp eq i64 {self.table}, 0')}, label %even{k}, label %uneven{k}")
        w.label(f"even{k}")
        place = w.let(f"mul i64 %k, {self.stride}")
        even = [w.let(f"add i64 {place}, {offset}") for offset in self.even]
        w.line(f"br label %rows{k}")
        w.label(f"uneven{k}")
        table = w.at(w.let(f"inttoptr i64 {self.table} to ptr"), "%k", "i64")
        uneven = [w.let(f"load i64, ptr {w.at(table, lane, 'i64')}, align 8") for lane in self.lanes]
        w.line(f"br label %rows{k}")
        w.label(f"rows{k}")
        pairs = zip(even, uneven, strict=True)
        found = [w.let(f"phi i64 [{a}, %even{k}], [{b}, %uneven{k}]") for a, b in pairs]
        return [w.at(self.base, offset, "i8") for offset in found]


def _fetch(w: Writer, array: _Array, rows: _Rows) -> None:
    """Move an argument's rows into its block; a row that all states share, for the first block only."""
    k = array.number
    varies = w.let(f"icmp ne i64 {w.let(f'or i64 {rows.stride}, {rows.table}')}, 0")
    fresh = w.let("icmp eq i64 %k, %first")
    w.line(f"br i1 {w.let(f'or i1 {fresh}, {varies}')}, label %move{k}, label %moved{k}")
    w.label(f"move{k}")
    _move(w, array, rows)


def _move(w: Writer, array: _Array, where: _Rows) -> None:
    """Move columns between rows and a block, half a width at a time, or one by one if there are fewer."""
    k, half = array.number, w.width // 2
    rows = where.of_block(w)
    if array.size <= _SHORT:
        _prefetch(w, array, rows, w.let(f"mul i64 {where.stride}, {w.width}"))
    count = len(_starts(array, w.width))
    before = "asked" if array.size <= _SHORT else "rows"
    w.line(f"br label %columns{k}")
    w.label(f"columns{k}")
    i = w.let(f"phi i64 [0, %{before}{k}], [%i_next{k}, %columns{k}]")
    column = w.let(f"load i64, ptr {w.at(f'@legged_columns{k}', i, 'i64')}, align 8")
    rows = [w.at(row, column) for row in rows]
    block = w.at(f"%block{k}", w.let(f"mul i64 {column}, {w.width}"))
    if array.size < half:
        move_one(w, rows, block, array.fetched)
    elif array.fetched:
        move_in(w, rows, block)
    else:
        move_out(w, rows, _scattered(w, k, i) if array.scattered else [w.at(block, j * w.width) for j in range(half)])
    w.let(f"add i64 {i}, 1", f"%i_next{k}")
    w.line(f"br i1 {w.let(f'icmp slt i64 %i_next{k}, {count}')}, label %columns{k}, label %moved{k}")
    w.label(f"moved{k}")


def _scattered(w: Writer, k: int, group: Value) -> list[Value]:
    """Return where the vectors of a group of columns are, from the table of array k."""
    half = w.width // 2
    first = w.at(f"@legged_vectors{k}", w.let(f"mul i64 {group}, {half}"), "i64")
    places = [w.let(f"load i64, ptr {w.at(first, j, 'i64')}, align 8") for j in range(half)]
    return [w.at("%work", place) for place in places]


def _starts(array: _Array, width: int) -> Sequence[int]:
    """Return the first columns of groups of half a width that have all columns in them; they may overlap."""
    half = width // 2
    if array.size < half:
        return array.columns
    starts: list[int] = []
    for c in array.columns:
        if not starts or c >= starts[-1] + half:
            starts.append(min(c, array.size - half))
    return starts


def _prefetch(w: Writer, array: _Array, rows: list[Value], ahead: Value) -> None:
    """Ask for the rows of the next block, `ahead` bytes further on, to be read or written, line of cache by line."""
    k = array.number
    later = [w.at(row, ahead, "i8") for row in rows]
    w.line(f"br label %lines{k}")
    w.label(f"lines{k}")
    column = w.let(f"phi i64 [0, %rows{k}], [%line_next{k}, %lines{k}]")
    for row in later:
        w.line(f"call void @llvm.prefetch.p0(ptr {w.at(row, column)}, i32 {int(not array.fetched)}, i32 3, i32 1)")
    w.let(f"add i64 {column}, 8", f"%line_next{k}")
    w.line(f"br i1 {w.let(f'icmp slt i64 %line_next{k}, {array.size}')}, label %lines{k}, label %asked{k}")
    w.label(f"asked{k}")
