"""Columns of rows in registers: numbers that lie state by state become vectors with a lane for each state, and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from legged.compiler.codegen.ir_writer import IRWriter, Value

LINE = 8
"""Numbers in a line of cache."""

ASKING = "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)"
"""What `ask` needs to be declared."""


class Rows(NamedTuple):
    """As many rows of numbers as a vector has lanes.

    Attributes:
        first: Where the first is.
        step: Bytes from each to the next.
    """

    first: Value
    step: Value

    def behind(self, w: IRWriter) -> Value:
        """Return where the row behind the last of these is."""
        return w.gep(self.first, w.assign(f"mul i64 {self.step}, {w.width}"), "i8")

    def at(self, w: IRWriter, column: int | Value) -> list[Value]:
        """Return where a column's numbers are."""
        rows = [w.gep(self.first, w.assign(f"mul i64 {self.step}, {lane}"), "i8") for lane in range(1, w.width)]
        return [w.gep(row, column) for row in (self.first, *rows)]


def together(size: int, width: int) -> int:
    """Return how many neighbors in a row are moved together: half a width, or one of a row that is shorter."""
    return width // 2 if size >= width // 2 else 1


def groups(columns: Iterable[int], size: int, width: int) -> list[int]:
    """Return where to begin groups of neighbors that have all the columns in them; they may overlap.

    Args:
        columns: In ascending order.
        size: How many there are in a row.
        width: Of vectors.
    """
    count = together(size, width)
    starts: list[int] = []
    for c in columns:
        if not starts or c >= starts[-1] + count:
            starts.append(min(c, size - count))
    return starts


def fetch(w: IRWriter, rows: Rows, start: int | Value, count: int) -> list[Value]:
    """Return columns, half a width of them or one.

    The outermost step of the transposition, by which rows of the second half go to the upper lanes, is done in loading.
    """
    places, half = rows.at(w, start), w.width // 2
    if count == 1:
        return [_gathered(w, places)]
    kind, both = f"<{half} x double>", _indices(range(w.width))
    parts = [w.assign(f"load {kind}, ptr {place}, align 8") for place in places]
    pairs = zip(parts[:half], parts[half:], strict=True)
    return _transposed(w, [w.assign(f"shufflevector {kind} {a}, {kind} {b}, {both}") for a, b in pairs])


def deliver(w: IRWriter, columns: Sequence[Value], rows: Rows, start: int | Value) -> None:
    """Put columns into the rows, half a width of them or one."""
    places, half = rows.at(w, start), w.width // 2
    if len(columns) == 1:
        _scatter(w, columns[0], places)
        return
    square = _transposed(w, [*columns])
    for lane, place in enumerate(places):
        indices = _indices(range(lane // half * half, lane // half * half + half))
        part = w.assign(f"shufflevector {w.float_type} {square[lane % half]}, {w.float_type} poison, {indices}")
        w.emit(f"store <{half} x double> {part}, ptr {place}, align 8")


def ask(w: IRWriter, place: Value) -> None:
    """Ask for a line of cache that will be read or written, into the second cache.

    As one to be read: nobody else has it, so it may be written as well. Asking for it to be written would put it into
    the first cache, where values that wait are.
    """
    w.emit(f"call void @llvm.prefetch.p0(ptr {place}, i32 0, i32 2, i32 1)")


def _gathered(w: IRWriter, places: list[Value]) -> Value:
    vector = "poison"
    for lane, place in enumerate(places):
        number = w.assign(f"load double, ptr {place}, align 8")
        vector = w.assign(f"insertelement {w.float_type} {vector}, double {number}, i64 {lane}")
    return vector


def _scatter(w: IRWriter, vector: Value, places: list[Value]) -> None:
    for lane, place in enumerate(places):
        w.emit(f"store double {w.assign(f'extractelement {w.float_type} {vector}, i64 {lane}')}, ptr {place}, align 8")


def _transposed(w: IRWriter, square: list[Value]) -> list[Value]:
    """Return the vectors with their lower and their upper halves transposed, each a square.

    Entries are exchanged across the diagonal at distance ..., 4, 2, 1 from each other.
    """
    distance = len(square) // 2
    while distance:
        for i in range(len(square)):
            if not i & distance:
                a, b = square[i], square[i + distance]
                low = [j if not j & distance else j - distance + w.width for j in range(w.width)]
                high = [j + distance if not j & distance else j + w.width for j in range(w.width)]
                square[i], square[i + distance] = (
                    w.assign(f"shufflevector {w.float_type} {a}, {w.float_type} {b}, {_indices(order)}")
                    for order in (low, high)
                )
        distance //= 2
    return square


def _indices(order: Sequence[int]) -> str:
    return f"<{len(order)} x i32> <{', '.join(f'i32 {j}' for j in order)}>"
