"""Assembly of the loop of `repeat` around a core: blocks of members, pieces of the schedule, steps.

    int64 legged_repeat(int64 first, int64 end, const Place *places, const int64 *rows, double *work)

takes the members first, ..., end - 1 through a schedule. `places` describes five arrays by the address of the first
member's row and the bytes from one row to the next: schedule, parameters, state, outcome, stored states. `rows` holds
the number of pieces, and for each the row that the state is then stored in, or -1. The last block repeats the last
member in the lanes that are left. Masks are integers with a bit for each lane.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from legged.compiler.codegen import scalar, selection
from legged.compiler.codegen.ir_writer import ATTRIBUTES, IRWriter, Value
from legged.compiler.ir.graph import Graph

ENTRY = "legged_repeat"
_PIECES, _PARAMETERS, _STATE, _OUTCOME, _STORED = range(5)


class _Layout(NamedTuple):
    """Where the blocks lie in working memory, in numbers; `next` and `verdict` follow each other."""

    piece: int
    clock: int
    parameters: int
    state: int
    kept: int
    next: int
    verdict: int
    outcome: int
    core: int


def _layout(graph: Graph, width: int) -> _Layout:
    parameters, size = graph.inputs[1][1][0], graph.inputs[2][1][0]
    places, end = [], 0
    for length in (4, 3, parameters, size, 1, size, 1, 3):
        places.append(end)
        end += length * width
    return _Layout(*places, core=-(-end // 8) * 8)


def work_size(graph: Graph, width: int) -> int:
    """Return how many numbers of working memory the function takes."""
    return _layout(graph, width).core + (selection.core_room(graph, width) if width > 1 else 0)


def assembly(graph: Graph, width: int) -> Iterator[str]:
    """Yield the functions; the core and its declarations come from `lowering`."""
    yield "declare i64 @llvm.smin.i64(i64, i64)"
    yield "declare i64 @llvm.smax.i64(i64, i64)"
    for name in ("gather", "scatter"):
        yield from _move(name, width)
    yield f"define i64 @{ENTRY}(i64 %first, i64 %end, ptr %places, ptr %rows, ptr %work) {ATTRIBUTES} {{"
    yield from _Loop(graph, width).lines()
    yield "}"


def _move(name: str, width: int) -> Iterator[str]:
    """Yield the function that moves n numbers between a block and the members' rows, `offset` bytes into each row."""
    w = IRWriter(1)
    w.label("start")
    base = w.assign("load ptr, ptr %place, align 8")
    stride = w.assign(f"load i64, ptr {w.gep('%place', 1, 'i64')}, align 8")
    rows = []
    for lane in range(width):
        state = w.assign(f"call i64 @llvm.smin.i64(i64 {w.assign(f'add i64 %k, {lane}')}, i64 %last)")
        row = w.assign(f"add i64 {w.assign(f'mul i64 {state}, {stride}')}, %offset")
        rows.append(w.gep(base, row, "i8"))
    w.jump("next")
    w.label("next")
    w.assign("phi i64 [0, %start], [%e_next, %next]", "%e")
    column = w.gep("%block", w.assign(f"mul i64 %e, {width}"))
    for lane, row in enumerate(rows):
        here, there = w.gep(row, "%e"), w.gep(column, lane)
        source, target = (here, there) if name == "gather" else (there, here)
        w.emit(f"store double {w.assign(f'load double, ptr {source}, align 8')}, ptr {target}, align 8")
    w.assign("add i64 %e, 1", "%e_next")
    w.branch(w.assign("icmp slt i64 %e_next, %n"), "next", "end")
    w.label("end")
    w.emit("ret void")
    parameters = "ptr %place, i64 %k, i64 %last, i64 %offset, ptr %block, i64 %n"
    yield f"define internal void @legged_{name}({parameters}) {ATTRIBUTES} {{"
    yield from w.lines
    yield "}"


class _Loop:
    """The body of the function. Counters and masks are in memory, the compiler's matter where."""

    def __init__(self, graph: Graph, width: int):
        self.w, self.width, self.at = IRWriter(width), width, _layout(graph, width)
        self.parameters, self.size = graph.inputs[1][1][0], graph.inputs[2][1][0]
        self.all = (1 << width) - 1

    def lines(self) -> list[str]:
        """Return the function's lines."""
        w = self.w
        w.label("start")
        for name in ("k", "p", "i", "n", "dead"):
            w.assign("alloca i64, align 8", f"%{name}_at")
        w.assign("alloca [5 x ptr], align 8", "%table")
        for i, place in enumerate((self.at.clock, self.at.parameters, self.at.state, self.at.next, self.at.verdict)):
            w.emit(f"store ptr {w.gep('%work', place)}, ptr {w.gep('%table', i, 'ptr')}, align 8")
        self._set("k", "%first")
        w.assign("sub i64 %end, 1", "%last")
        w.assign("load i64, ptr %rows, align 8", "%pieces")
        w.jump("block")
        self._begin_block()
        self._begin_piece()
        self._step()
        self._end_piece()
        self._end_block()
        return w.lines

    def _begin_block(self) -> None:
        w = self.w
        w.label("block")
        self._transfer("gather", _PARAMETERS, self.at.parameters, self.parameters)
        self._transfer("gather", _STATE, self.at.state, self.size)
        self._transfer("gather", _OUTCOME, self.at.outcome, 3)
        w.store(w.float_constant(0.0), "%work", self.at.kept)
        ended = w.fcmp("une", w.load("%work", self.at.outcome), w.float_constant(0.0))
        self._set("dead", self._bits(ended))
        self._set("p", "0")
        w.jump("pieces_left")
        w.label("pieces_left")
        more = w.assign(f"icmp slt i64 {self._get('p')}, %pieces")
        w.branch(w.assign(f"and i1 {more}, {self._any_live()}"), "piece", "finish")

    def _begin_piece(self) -> None:
        w = self.w
        w.label("piece")
        self._transfer("gather", _PIECES, self.at.piece, 4, w.assign(f"mul i64 {self._get('p')}, 32"))
        for source, target in ((1, 1), (3, 2)):
            w.store(w.load("%work", self.at.piece + source * self.width), "%work", self.at.clock + target * self.width)
        most = "0"
        for lane in range(self.width):
            count = w.assign(f"load double, ptr {w.gep('%work', self.at.piece + 2 * self.width + lane)}, align 8")
            most = w.assign(f"call i64 @llvm.smax.i64(i64 {most}, i64 {w.assign(f'fptosi double {count} to i64')})")
        self._set("n", most)
        self._set("i", "0")
        w.jump("steps_left")
        w.label("steps_left")
        more = w.assign(f"icmp slt i64 {self._get('i')}, {self._get('n')}")
        w.branch(w.assign(f"and i1 {more}, {self._any_live()}"), "step", "stepped")

    def _step(self) -> None:
        """One step of all lanes; those which are still at it and get a finite answer take it."""
        w, width = self.w, self.width
        w.label("step")
        i = self.w.broadcast(w.assign(f"sitofp i64 {self._get('i')} to double"))
        start, h, count = (w.load("%work", self.at.piece + j * width) for j in range(3))
        w.store(w.float_op("fadd", start, w.float_op("fmul", i, h)), "%work", self.at.clock)
        work = "" if width == 1 else f", ptr {w.gep('%work', self.at.core)}"
        failed = w.assign(f"call i64 @{scalar.CORE}(ptr %table{work})")
        active = self._and(self._bits(w.fcmp("olt", i, count)), self._live())
        wrong = self._and(failed, active)
        fine = self._lanes(self._and(active, self._not(wrong)))
        for j in range(self.size + 1):  # the state, and behind it the verdict
            self._choose(fine, self.at.next + j * width, self.at.state + j * width)
        w.branch(w.assign(f"icmp ne i64 {wrong}, 0"), "bad", "good")
        w.label("bad")
        lanes = self._lanes(wrong)
        w.store(w.float_constant(-1.0), "%work", self.at.verdict)
        self._choose(lanes, self.at.verdict, self.at.outcome)
        self._choose(lanes, self.at.clock, self.at.outcome + width)
        # Back to where they began: a lane that waits in a wild state would make the others wait for it.
        self._transfer("gather", _STATE, self.at.next, self.size)
        for j in range(self.size):
            self._choose(lanes, self.at.next + j * width, self.at.state + j * width)
        self._set("dead", w.assign(f"or i64 {self._get('dead')}, {wrong}"))
        w.jump("good")
        w.label("good")
        self._set("i", w.assign(f"add i64 {self._get('i')}, 1"))
        w.jump("steps_left")

    def _end_piece(self) -> None:
        w, width = self.w, self.width
        w.label("stepped")
        row = w.assign(f"load i64, ptr {w.gep(w.gep('%rows', 1, 'i64'), self._get('p'), 'i64')}, align 8")
        w.branch(w.assign(f"icmp sge i64 {row}, 0"), "store", "advance")
        w.label("store")
        self._transfer("scatter", _STORED, self.at.state, self.size, w.assign(f"mul i64 {row}, {8 * self.size}"))
        live = self._live()
        stored = self.w.broadcast(w.assign(f"sitofp i64 {w.assign(f'add i64 {row}, 1')} to double"))
        w.store(stored, "%work", self.at.clock)
        self._choose(self._lanes(live), self.at.clock, self.at.outcome + 2 * width)
        judged = self._bits(w.fcmp("une", w.load("%work", self.at.kept), w.float_constant(0.0)))
        ended = self._and(judged, live)
        self._choose(self._lanes(ended), self.at.kept, self.at.outcome)
        self._set("dead", w.assign(f"or i64 {self._get('dead')}, {ended}"))
        w.jump("advance")
        w.label("advance")
        self._set("p", w.assign(f"add i64 {self._get('p')}, 1"))
        w.jump("pieces_left")

    def _end_block(self) -> None:
        w = self.w
        w.label("finish")
        self._transfer("scatter", _STATE, self.at.state, self.size)
        self._transfer("scatter", _OUTCOME, self.at.outcome, 3)
        k = w.assign(f"add i64 {self._get('k')}, {self.width}")
        self._set("k", k)
        w.branch(w.assign(f"icmp slt i64 {k}, %end"), "block", "done")
        w.label("done")
        w.emit("ret i64 0")

    # Words of which the above is made.

    def _get(self, name: str) -> Value:
        return self.w.assign(f"load i64, ptr %{name}_at, align 8")

    def _set(self, name: str, value: Value) -> None:
        self.w.emit(f"store i64 {value}, ptr %{name}_at, align 8")

    def _and(self, a: Value, b: Value) -> Value:
        return self.w.assign(f"and i64 {a}, {b}")

    def _not(self, a: Value) -> Value:
        return self.w.assign(f"xor i64 {a}, {self.all}")

    def _live(self) -> Value:
        return self._not(self._get("dead"))

    def _any_live(self) -> Value:
        return self.w.assign(f"icmp ne i64 {self._get('dead')}, {self.all}")

    def _bits(self, condition: Value) -> Value:
        return self.w.assign(f"zext i{self.width} {self.w.lane_mask(condition)} to i64")

    def _lanes(self, bits: Value) -> Value:
        narrow = self.w.assign(f"trunc i64 {bits} to i{self.width}")
        return narrow if self.width == 1 else self.w.assign(f"bitcast i{self.width} {narrow} to {self.w.bool_type}")

    def _choose(self, lanes: Value, source: int, target: int) -> None:
        """Copy a number of working memory to another place in some lanes."""
        w = self.w
        w.store(w.select(lanes, w.load("%work", source), w.load("%work", target)), "%work", target)

    def _transfer(self, name: str, array: int, block: int, size: int, offset: Value = "0") -> None:
        if size:
            place, k = self.w.gep("%places", 2 * array, "i64"), self._get("k")
            rest = f"i64 %last, i64 {offset}, ptr {self.w.gep('%work', block)}, i64 {size}"
            self.w.emit(f"call void @legged_{name}(ptr {place}, i64 {k}, {rest})")
