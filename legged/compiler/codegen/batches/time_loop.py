"""The time loop of a fixed-step simulation: blocks of members, intervals of the schedule, steps.

    int64 legged_time_loop(const Call *call)
    int64 legged_time_loop_part(int64 first, int64 end, const Call *call, void *work)

The second function replaces three numbers of the call, for a thread that takes a part of the members.

A call consists of five numbers of 8 bytes, which ctypes passes in less time as one argument: `first`, `end`, and the
addresses `arrays`, `samples`, `work`. The function takes members first, ..., end - 1 of a batch through a schedule
(`runtime.time_loop`), as many members at a time as a vector has lanes. `arrays` describes six arrays by the address of
the first member's row and the stride from one row to the next, [bytes]: schedule, parameters, state, outcome, stored
states, command. `samples` holds the number of intervals; the first state variable that is compared with a bound at the
end, the number of these variables, and the bits of the bound, a double; the length of the command, which follows the
parameters of a member as the last arguments of the step; and for each interval the index at which the state after it
is stored, -1 or `CODES_ONLY`. `work` is the working memory. The last block repeats the last member in unused lanes.
Masks are integers with a bit for each lane. The result is `ENDED`, `EXCEEDED` or -1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from legged.compiler.codegen.batches import member_blocks
from legged.compiler.codegen.element_type import ElementType
from legged.compiler.codegen.ir_writer import ATTRIBUTES, IRWriter, Value
from legged.compiler.codegen.kernels import scalar
from legged.compiler.ir.graph import Graph
from legged.compiler.passes.call_batching import round_up

ENTRY_POINT, PART = "legged_time_loop", "legged_time_loop_part"
CODES_ONLY = -2
"""Index of a stored state for an interval after which termination codes end members, but no state is stored."""
ENDED, EXCEEDED = 0, 1
"""Results of the function: a member has ended; none has, and a variable exceeds its bound in magnitude or is NaN."""
SAMPLES_HEADER = 5  # numbers before the indices
_SCHEDULE, _PARAMETERS, _STATE, _OUTCOME, _STORED, _COMMAND = range(6)
_CALL = {"first": "i64", "end": "i64", "arrays": "ptr", "samples": "ptr", "work": "ptr"}


class _Offsets(NamedTuple):
    """Offsets of blocks in the working memory, in numbers.

    A block holds some numbers of all lanes: the current interval [start, h, count, number]; the clock [t, h, number];
    the parameters with the command; two states, each followed by its termination code, of which one is the present and
    the other the next; the outcome [code, time, samples]; and the working memory of the kernel.
    """

    interval: int
    clock: int
    parameters: int
    state: int
    other_state: int
    outcome: int
    kernel: int


def _offsets(graph: Graph, width: int, element: ElementType) -> _Offsets:
    parameters, size = graph.inputs[1][1][0], graph.inputs[2][1][0]
    offsets, end = [], 0
    for length in (4, 3, parameters, size + 1, size + 1, 3):
        offsets.append(end)
        end += length * width
    return _Offsets(*offsets, kernel=round_up(end, element.per_cache_line))


def work_size(graph: Graph, width: int, element: ElementType) -> int:
    """Return the size of the working memory, in numbers."""
    own = scalar.work_size(graph, width, element) if width > 1 else 0
    return _offsets(graph, width, element).kernel + own


def assembly(graph: Graph, width: int, element: ElementType) -> Iterator[str]:
    """Yield the loop; the kernel that computes a step comes from one of the kernel writers."""
    for name in ("smin", "umin"):
        yield f"declare i64 @llvm.{name}.i64(i64, i64)"
    if width > 1:
        integers = IRWriter(width, element).int_type
        yield f"declare {element.int_type} @llvm.vector.reduce.smax.v{width}{element.int_type}({integers})"
    yield from member_blocks.assembly(width, element)
    yield f"define i64 @{ENTRY_POINT}(ptr %call) {ATTRIBUTES} {{"
    yield from _LoopWriter(graph, IRWriter(width, element)).lines()
    yield "}"
    yield f"define i64 @{PART}(i64 %first, i64 %end, ptr %call, ptr %work) {ATTRIBUTES} {{"
    yield from _part(IRWriter(width, element)).lines
    yield "}"


def _part(w: IRWriter) -> IRWriter:
    """Write the body of the function for a part of the members."""
    call = w.assign(f"alloca [{len(_CALL)} x i64], align 8")
    for i, (name, kind) in enumerate(_CALL.items()):
        if name in ("arrays", "samples"):
            w.assign(f"load {kind}, ptr {w.gep('%call', i, 'i64')}, align 8", f"%{name}")
        w.emit(f"store {kind} %{name}, ptr {w.gep(call, i, 'i64')}, align 8")
    w.emit(f"ret i64 {w.assign(f'call i64 @{ENTRY_POINT}(ptr {call})')}")
    return w


class _LoopWriter:
    """Writes the body of the function.

    Counters and masks are variables in memory, which LLVM promotes to registers where it can: %k, first member of the
    block; %p, interval; %i, step in the interval; %n, steps of the interval; %ended, mask of members that have ended;
    %result, the result. The kernel's table of arrays holds the pointers to the present and the next state.
    """

    def __init__(self, graph: Graph, w: IRWriter):
        self.w, self.width, self.at = w, w.width, _offsets(graph, w.width, w.element)
        self.parameters, self.size = graph.inputs[1][1][0], graph.inputs[2][1][0]
        self.all = (1 << w.width) - 1

    def lines(self) -> list[str]:
        """Return the instructions."""
        w, at = self.w, self.at
        w.label("start")
        for i, (name, kind) in enumerate(_CALL.items()):
            w.assign(f"load {kind}, ptr {w.gep('%call', i, 'i64')}, align 8", f"%{name}")
        for name in ("k", "p", "i", "n", "ended", "result"):
            w.assign("alloca i64, align 8", f"%{name}_at")
        w.assign("alloca [5 x ptr], align 8", "%kernel_arrays")
        for i, offset in enumerate((at.clock, at.parameters)):
            w.emit(f"store ptr {w.gep('%work', offset)}, ptr {w.gep('%kernel_arrays', i, 'ptr')}, align 8")
        self._set_states(w.gep("%work", at.state), w.gep("%work", at.other_state))
        self._set("k", "%first")
        self._set("result", "-1")
        w.assign("sub i64 %end, 1", "%last")
        for i, name in enumerate(("intervals", "compared_first", "compared")):
            w.assign(f"load i64, ptr {w.gep('%samples', i, 'i64')}, align 8", f"%{name}")
        bound = w.assign(f"load double, ptr {w.gep('%samples', 3, 'i64')}, align 8")
        self.bound = bound if w.element.bits == 64 else w.assign(f"fptrunc double {bound} to {w.element.llvm}")
        w.assign(f"mul i64 %compared_first, {self.width}", "%compared_offset")
        w.assign(f"load i64, ptr {w.gep('%samples', 4, 'i64')}, align 8", "%command")
        w.assign(f"sub i64 {self.parameters}, %command", "%own")
        w.assign(f"mul i64 %own, {self.width}", "%command_offset")
        w.jump("block")
        self._begin_block()
        self._begin_interval()
        self._write_step()
        self._end_interval()
        self._end_block()
        return w.lines

    def _begin_block(self) -> None:
        """Load the members of a block; members that ended before stay as they are."""
        w = self.w
        w.label("block")
        parameters = self._work(self.at.parameters)
        self._copy_rows("gather", _PARAMETERS, parameters, "%own")
        self._copy_rows("gather", _COMMAND, w.gep(parameters, "%command_offset"), "%command")
        state, _ = self._states()
        self._copy_rows("gather", _STATE, state, self.size)
        self._copy_rows("gather", _OUTCOME, self._work(self.at.outcome), 1)
        w.store(w.float_constant(0.0), state, self.size * self.width)
        has_ended = w.fcmp("une", w.load("%work", self.at.outcome), w.float_constant(0.0))
        self._set("ended", self._mask(has_ended))
        self._set("p", "0")
        w.jump("next_interval")
        w.label("next_interval")
        has_interval = w.assign(f"icmp slt i64 {self._get('p')}, %intervals")
        w.branch(w.assign(f"and i1 {has_interval}, {self._any_active()}"), "interval", "finish")

    def _begin_interval(self) -> None:
        """Load an interval [start, h, count, number]; the lane with the most steps determines their number."""
        w, at, width = self.w, self.at, self.width
        w.label("interval")
        self._copy_rows(
            "gather", _SCHEDULE, self._work(at.interval), 4, w.assign(f"mul i64 {self._get('p')}, {4 * w.element.size}")
        )
        for source, target in ((1, 1), (3, 2)):  # h and number
            w.store(w.load("%work", at.interval + source * width), "%work", at.clock + target * width)
        counts = w.assign(f"fptosi {w.float_type} {w.load('%work', at.interval + 2 * width)} to {w.int_type}")
        if width > 1:
            integer = w.element.int_type
            counts = w.assign(f"call {integer} @llvm.vector.reduce.smax.v{width}{integer}({w.int_type} {counts})")
        if w.element.bits < 64:
            counts = w.assign(f"sext {w.element.int_type} {counts} to i64")
        self._set("n", counts)
        self._set("i", "0")
        w.jump("next_step")
        w.label("next_step")
        has_step = w.assign(f"icmp slt i64 {self._get('i')}, {self._get('n')}")
        w.branch(w.assign(f"and i1 {has_step}, {self._any_active()}"), "step", "interval_end")

    def _write_step(self) -> None:
        """Compute a step of all lanes; lanes that are active and have a finite next state advance to it."""
        w, at, width = self.w, self.at, self.width
        w.label("step")
        i = w.broadcast(w.assign(f"sitofp i64 {self._get('i')} to {w.element.llvm}"))
        start, h, count = (w.load("%work", at.interval + j * width) for j in range(3))
        w.store(w.float_op("fadd", start, w.float_op("fmul", i, h)), "%work", at.clock)
        work = "" if width == 1 else f", ptr {w.gep('%work', at.kernel)}"
        not_finite = w.assign(f"call i64 @{scalar.KERNEL}(ptr %kernel_arrays{work})")
        stepping = self._and(self._mask(w.fcmp("olt", i, count)), self._active())
        failed = self._and(not_finite, stepping)
        advancing = self._and(stepping, self._not(failed))
        state, following = self._states()
        w.branch(w.assign(f"icmp eq i64 {advancing}, {self.all}"), "all_advance", "some_advance")
        w.label("all_advance")
        self._set_states(following, state)
        w.jump("finite")
        w.label("some_advance")
        self._copy_members(advancing, following, state, self.size + 1)  # the state and its termination code
        w.branch(w.assign(f"icmp ne i64 {failed}, 0"), "failed", "finite")
        w.label("failed")
        failed_lanes, outcome = member_blocks.lanes(w, failed), self._work(at.outcome)
        self._copy_rows("gather", _OUTCOME, outcome, 3)
        w.store(w.float_constant(-1.0), following, self.size * width)
        self._copy_lanes(failed_lanes, following, outcome, self.size, 0)
        self._copy_lanes(failed_lanes, self._work(at.clock), outcome, 0, 1)
        self._copy_rows("scatter", _OUTCOME, outcome, 3)
        # Restore the initial state: an ended lane whose arguments are out of the range of the elementary functions'
        # formulas would slow down the other lanes.
        self._copy_rows("gather", _STATE, following, self.size)
        self._copy_members(failed, following, state, self.size)
        self._set("ended", w.assign(f"or i64 {self._get('ended')}, {failed}"))
        w.jump("finite")
        w.label("finite")
        self._set("i", w.assign(f"add i64 {self._get('i')}, 1"))
        w.jump("next_step")

    def _end_interval(self) -> None:
        """Store the state after an interval if it is a sample, and end the members with a termination code."""
        w, at = self.w, self.at
        w.label("interval_end")
        samples = w.gep("%samples", SAMPLES_HEADER, "i64")
        sample = w.assign(f"load i64, ptr {w.gep(samples, self._get('p'), 'i64')}, align 8")
        (state, _), active, outcome = self._states(), self._active(), self._work(at.outcome)
        has_code = self._mask(w.fcmp("une", w.load(state, self.size * self.width), w.float_constant(0.0)))
        ending = self._and(has_code, active)
        is_stored = w.assign(f"icmp sge i64 {sample}, 0")
        w.branch(is_stored, "store", "unstored")
        w.label("store")
        self._copy_rows(
            "scatter", _STORED, state, self.size, w.assign(f"mul i64 {sample}, {w.element.size * self.size}")
        )
        w.jump("outcome")
        w.label("unstored")
        codes_only = w.assign(f"icmp eq i64 {sample}, {CODES_ONLY}")
        is_ending = w.assign(f"icmp ne i64 {ending}, 0")
        w.branch(w.assign(f"and i1 {codes_only}, {is_ending}"), "outcome", "advance")
        w.label("outcome")
        self._copy_rows("gather", _OUTCOME, outcome, 3)
        self._copy_lanes(member_blocks.lanes(w, ending), state, outcome, self.size, 0)
        counted = w.assign(f"select i1 {is_stored}, i64 {active}, i64 0")
        stored = w.broadcast(w.assign(f"sitofp i64 {w.assign(f'add i64 {sample}, 1')} to {w.element.llvm}"))
        w.store(stored, "%work", at.clock)  # scratch memory between steps
        self._copy_lanes(member_blocks.lanes(w, counted), self._work(at.clock), outcome, 0, 2)
        self._copy_rows("scatter", _OUTCOME, outcome, 3)
        self._set("ended", w.assign(f"or i64 {self._get('ended')}, {ending}"))
        w.jump("advance")
        w.label("advance")
        self._set("p", w.assign(f"add i64 {self._get('p')}, 1"))
        w.jump("next_interval")

    def _end_block(self) -> None:
        w = self.w
        w.label("finish")
        state, _ = self._states()
        self._copy_rows("scatter", _STATE, state, self.size)
        has_ended = w.assign(f"icmp ne i64 {self._get('ended')}, 0")
        compared = f"ptr {w.gep(state, '%compared_offset')}, i64 %compared, {w.element.llvm} {self.bound}"
        exceeds = w.assign(f"call i1 @legged_exceeds({compared})")
        result = w.assign(f"select i1 {exceeds}, i64 {EXCEEDED}, i64 -1")
        result = w.assign(f"select i1 {has_ended}, i64 {ENDED}, i64 {result}")
        self._set("result", w.assign(f"call i64 @llvm.umin.i64(i64 {result}, i64 {self._get('result')})"))
        k = w.assign(f"add i64 {self._get('k')}, {self.width}")
        self._set("k", k)
        w.branch(w.assign(f"icmp slt i64 {k}, %end"), "block", "done")
        w.label("done")
        w.emit(f"ret i64 {self._get('result')}")

    def _get(self, name: str) -> Value:
        return self.w.assign(f"load i64, ptr %{name}_at, align 8")

    def _set(self, name: str, value: Value) -> None:
        self.w.emit(f"store i64 {value}, ptr %{name}_at, align 8")

    def _and(self, a: Value, b: Value) -> Value:
        return self.w.assign(f"and i64 {a}, {b}")

    def _not(self, a: Value) -> Value:
        return self.w.assign(f"xor i64 {a}, {self.all}")

    def _active(self) -> Value:
        """Return the mask of the members that have not ended."""
        return self._not(self._get("ended"))

    def _any_active(self) -> Value:
        return self.w.assign(f"icmp ne i64 {self._get('ended')}, {self.all}")

    def _mask(self, condition: Value) -> Value:
        """Return a condition as a mask."""
        return self.w.assign(f"zext i{self.width} {self.w.lane_mask(condition)} to i64")

    def _work(self, offset: int) -> Value:
        """Return the pointer to a block of the working memory."""
        return self.w.gep("%work", offset)

    def _states(self) -> list[Value]:
        """Return the pointers to the present and the next state."""
        return [self.w.assign(f"load ptr, ptr {self.w.gep('%kernel_arrays', i, 'ptr')}, align 8") for i in (2, 3)]

    def _set_states(self, state: Value, following: Value) -> None:
        """Make two blocks the present and the next state."""
        w = self.w
        for i, pointer in enumerate((state, following, w.gep(following, self.size * self.width)), 2):
            w.emit(f"store ptr {pointer}, ptr {w.gep('%kernel_arrays', i, 'ptr')}, align 8")

    def _copy_lanes(self, lanes: Value, source: Value, target: Value, i: int, j: int) -> None:
        """Copy number i of a block to number j of another in the lanes where a condition is true."""
        w = self.w
        i, j = i * self.width, j * self.width
        w.store(w.select(lanes, w.load(source, i), w.load(target, j)), target, j)

    def _copy_members(self, mask: Value, source: Value, target: Value, size: int) -> None:
        """Copy the first `size` numbers of a block to another in the lanes of a mask."""
        self.w.emit(f"call void @legged_copy_lanes(i64 {mask}, ptr {source}, ptr {target}, i64 {size})")

    def _copy_rows(self, name: str, array: int, block: Value, size: int | Value, offset: Value = "0") -> None:
        """Gather or scatter `size` numbers of the block's members."""
        rows, k = self.w.gep("%arrays", 2 * array, "i64"), self._get("k")
        rest = f"i64 %last, i64 {offset}, ptr {block}, i64 {size}"
        self.w.emit(f"call void @legged_{name}(ptr {rows}, i64 {k}, {rest})")
