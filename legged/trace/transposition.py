"""Moving columns between rows, one for each state, and vectors, one for each column: assembly."""

from __future__ import annotations

from legged.trace.assembler import Value, Writer


def move_one(w: Writer, rows: list[Value], block: Value, fetched: bool) -> None:
    """Move one column, number by number.

    Args:
        w: Where to write.
        rows: Where the column's numbers are in the rows.
        block: Where its vector is.
        fetched: From the rows into the vector, rather than back.
    """
    for lane, row in enumerate(rows):
        there = w.at(block, lane)
        source, target = (row, there) if fetched else (there, row)
        w.line(f"store double {w.let(f'load double, ptr {source}, align 8')}, ptr {target}, align 8")


def move_in(w: Writer, rows: list[Value], block: Value) -> None:
    """Move half as many columns as there are rows into vectors with a lane for each row.

    The outermost step of the transposition, by which rows of the second half go to the upper lanes, is done in loading.
    """
    half = w.width // 2
    square = [_joined(w, _half(w, rows[i]), _half(w, rows[i + half])) for i in range(half)]
    for i, column in enumerate(_transposed(w, square)):
        w.store(column, block, i * w.width)


def move_out(w: Writer, rows: list[Value], vectors: list[Value]) -> None:
    """Move half as many vectors as there are rows, wherever they are, into the rows."""
    half = w.width // 2
    square = _transposed(w, [w.load(vector) for vector in vectors])
    for i, row in enumerate(rows):
        part = _part(w, square[i % half], i // half * half)
        w.line(f"store <{half} x double> {part}, ptr {row}, align 8")


def _half(w: Writer, row: Value) -> Value:
    return w.let(f"load <{w.width // 2} x double>, ptr {row}, align 8")


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
