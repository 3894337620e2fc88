"""A graph as LLVM assembly.

The core is one function, for one state or for a block of states in the lanes of vectors,

    int64 legged_core(double *const *arrays, double *work)

`arrays` points to the arguments and then to the results, each array's numbers end to end; for a block, every number is
a vector with an entry for each state. The answer has a bit for each state, set if a result is not finite.

Elementary functions are computed in batches (`passes.call_batching`) by the code of `elementary`. Multiplications and
additions are fused (`passes.fma_fusion`) and scheduled (`passes.scheduling`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator

from legged.compiler.codegen import elementary
from legged.compiler.codegen.ir_writer import ATTRIBUTES, IRWriter, Value
from legged.compiler.codegen.outputs import Place, results
from legged.compiler.ir.graph import Graph, Node, Operand
from legged.compiler.ir.operations import LIBRARY_FUNCTIONS
from legged.compiler.passes.call_batching import Call, call_batches, calls_by_function, function_results, round_up
from legged.compiler.passes.fma_fusion import FUSED, NEGATED_ARGUMENT, fuse_multiply_adds
from legged.compiler.passes.scheduling import depth_first_order, list_schedule

CORE = "legged_core"
_WRITTEN_OUT = 64
"""Vectors of arguments: the formula of a sine is written out for each, a third less time than a call, unless there are
more in one round; code would outgrow the cache."""

_ARITHMETIC = {"add": "fadd", "subtract": "fsub", "multiply": "fmul", "divide": "fdiv"}
_INTRINSIC = {
    **{"sqrt": "sqrt", "floor": "floor", "absolute": "fabs", "maximum": "maximum", "minimum": "minimum"},
    **dict.fromkeys(FUSED, "fmuladd"),
}
_COMPARISONS = {"less": "olt", "less_equal": "ole", "equal": "oeq", "not_equal": "une"}
_LLVM = {  # functions of LLVM's own -> number of arguments
    **dict.fromkeys(("sqrt", "floor", "fabs"), 1),
    **dict.fromkeys(("maximum", "minimum", "copysign"), 2),
    **dict.fromkeys(("fma", "fmuladd"), 3),
}


def assembly(graph: Graph, width: int, native: int) -> str:
    """Return the core for `width` states at once, on a processor with vectors of `native` numbers; 1 for one state."""
    return with_calls(Core(graph, width, native))


def with_calls(core: Core) -> str:
    """Return a core with all that it calls."""
    lines = list(core.lines())
    native = core.native
    widths = sorted({core.w.width, native})
    return "\n".join([*_declarations(widths), *elementary.functions(core.called, native), *lines])


def room(graph: Graph, width: int) -> int:
    """Return how many numbers of working memory the core for `width` states takes, on vectors of that width."""
    total = 0
    for batch, _ in call_batches(graph):
        for function, calls in calls_by_function(graph, batch).items():
            arrays = len(calls[0].arguments) + len(function_results(function))
            total += arrays * round_up(len(calls) * width, 8)
    return total


def _declarations(widths: Iterable[int]) -> Iterator[str]:
    for width in widths:
        w = IRWriter(width)
        for name, n in _LLVM.items():
            yield f"declare {w.float_type} @llvm.{name}.{w.suffix}({', '.join([w.float_type] * n)})"


class Core:
    """The function that computes a graph.

    Attributes:
        called: Names of the functions of `elementary` that it calls.
        room: How many numbers of working memory it takes.
    """

    name = CORE

    def __init__(self, graph: Graph, width: int, native: int):
        self.graph, self.native = graph, native
        self.w = IRWriter(width)
        self.called: set[str] = set()
        self.room = 0
        self._labels = itertools.count()
        self._sums: list[Value] = []
        self._waiting: dict[int, list[Place]] = {}  # results of a block that are yet to be stored
        self.ready: set[int] = set()
        self._places: dict[int, tuple[Value, int]] = {}  # values in memory: pointer, offset in numbers
        first = 0
        for k, (_, shape) in enumerate(graph.inputs):
            size = math.prod(shape)
            self._places.update({first + i: (f"%a{k}", i * width) for i in range(size)})
            first += size

    def lines(self) -> Iterator[str]:
        """Yield the function, line by line."""
        body = self._body()
        alone = self.w.width == 1
        yield f"define internal i64 @{self.name}(ptr %arrays{'' if alone else ', ptr noalias %work'}) {ATTRIBUTES} {{"
        if alone and self.room:
            yield f"  %work = alloca [{self.room} x double], align 64"
        yield from body
        yield "}"

    def _body(self) -> list[str]:
        w, graph = self.w, self.graph
        self.load_arrays()
        for calls, needed in call_batches(graph):
            self.emit(needed)
            self._call(calls)
        self.rest()
        wrong = self._wrong()
        w.emit(f"ret i64 {w.assign(f'zext i{w.width} {w.lane_mask(wrong)} to i64')}")
        return w.lines

    def load_arrays(self) -> None:
        """Begin a function: find out where the arrays are."""
        for k in range(len(self.graph.inputs) + len(self.graph.outputs)):
            self.w.assign(f"load ptr, ptr {self.w.gep('%arrays', k, 'ptr')}, align 8", f"%a{k}")

    def rest(self) -> None:
        """Compute what is left after the last call."""
        self.graph = fuse_multiply_adds(self.graph)
        if self.w.width > 1:
            self._waiting = {r.operand: r.places for r in results(self.graph) if isinstance(r.operand, int)}
        order = depth_first_order(self.graph)
        left = [i for i in order if i not in self.ready and self.operation(i) not in LIBRARY_FUNCTIONS]
        self.emit(list_schedule(self.graph, left))

    def operation(self, i: int) -> str:
        """Return what node number i does."""
        return self.graph.nodes[i - self.graph.input_size].operation

    def emit(self, indices: Iterable[int]) -> None:
        """Compute these nodes, in this order, unless they are there."""
        for i in indices:
            if i not in self.ready:
                self._instruction(i, self.graph.nodes[i - self.graph.input_size])
                self.ready.add(i)
                if i in self._waiting:
                    self._put_away(i, self._waiting.pop(i))

    def value(self, operand: Operand) -> Value:
        """Return a value, loaded if this is its first use."""
        if isinstance(operand, float):
            return self.w.float_constant(operand)
        if operand in self._places and operand not in self.ready:
            self.ready.add(operand)
            pointer = self.w.gep(*self._places[operand])
            self.w.assign(f"load {self.w.float_type}, ptr {pointer}, align 8", f"%v{operand}")
        return f"%v{operand}"

    def _instruction(self, i: int, node: Node) -> None:
        w, operation = self.w, node.operation
        a = [self.value(x) for x in node.arguments]
        if operation in _ARITHMETIC:
            text = f"{_ARITHMETIC[operation]} contract {w.float_type} {a[0]}, {a[1]}"
        elif operation in _INTRINSIC:
            if operation in NEGATED_ARGUMENT:
                a[NEGATED_ARGUMENT[operation]] = w.assign(f"fneg {w.float_type} {a[NEGATED_ARGUMENT[operation]]}")
            operands = ", ".join(f"{w.float_type} {x}" for x in a)
            text = f"call {w.float_type} @llvm.{_INTRINSIC[operation]}.{w.suffix}({operands})"
        elif operation in _COMPARISONS:
            text = f"fcmp {_COMPARISONS[operation]} {w.float_type} {a[0]}, {a[1]}"
        elif operation == "negate":
            text = f"fneg {w.float_type} {a[0]}"
        elif operation == "select":
            text = f"select {w.bool_type} {a[0]}, {w.float_type} {a[1]}, {w.float_type} {a[2]}"
        elif operation == "not":
            text = f"xor {w.bool_type} {a[0]}, {'true' if w.width == 1 else 'splat (i1 true)'}"
        else:
            text = f"{operation} {w.bool_type} {a[0]}, {a[1]}"
        w.assign(text, f"%v{i}")

    def _call(self, indices: Iterable[int]) -> None:
        """Compute a batch of calls, function by function."""
        for function, calls in calls_by_function(self.graph, indices).items():
            self._call_one(function, calls)

    def _call_one(self, function: str, calls: list[Call]) -> None:
        """Compute all calls of a function: by its formula, written out here, or by one call with all arguments."""
        w, formula = self.w, function in elementary.FORMULAS
        self.called.add(function)
        size = len(calls) * w.width
        padded = round_up(size, self.native)
        inputs = [self._reserve(padded) for _ in calls[0].arguments]
        outputs = {result: self._reserve(padded) for result in function_results(function)}
        arguments = [self._vectors(operands, padded) for operands in zip(*(c.arguments for c in calls), strict=True)]
        for k, found in enumerate(calls):
            for i in found.nodes:
                name = self.operation(i)
                self._places[i] = ("%work", outputs["arctan2" if name == "arctan" else name] + k * w.width)
        pointers = [w.gep("%work", place) for place in (*inputs, *outputs.values())]
        listed = ", ".join(f"ptr {p}" for p in pointers)
        call = f"call void @legged_{function}({listed}, i64 {padded if formula else size})"
        if formula and padded <= _WRITTEN_OUT * self.native:
            self._write_out(function, arguments, pointers, call)
        else:
            self._put(arguments, pointers)
            w.emit(call)

    def _write_out(self, function: str, arguments: list[list[Value]], pointers: list[Value], call: str) -> None:
        """Apply a formula vector by vector; call the function for all if it does not hold for one of the numbers."""
        v = self.w.with_width(self.native)
        formula, takes, _ = elementary.FORMULAS[function]
        all_near = None
        for k, vectors in enumerate(zip(*arguments, strict=True)):
            values, near = formula(v, *vectors)
            for value, pointer in zip(values, pointers[takes:], strict=True):
                v.store(value, pointer, k * v.width)
            all_near = v.assign(f"and {v.bool_type} {all_near}, {near}") if all_near else near
        if all_near:
            near, far = (f"{name}{next(self._labels)}" for name in ("near", "far"))
            v.branch(v.any_lane(v.logical_not(all_near)), f"{far}", f"{near}")
            v.label(far)
            self._put(arguments, pointers)
            v.emit(call)
            v.jump(f"{near}")
            v.label(near)

    def _vectors(self, operands: Iterable[Operand], padded: int) -> list[Value]:
        """Return values laid end to end, and ones behind them up to `padded` numbers, as vectors."""
        values = [self.value(x) for x in operands]
        if self.w.width == self.native:
            return values
        n, kind = self.native, IRWriter(self.native).float_type
        values += [self.w.float_constant(1.0)] * (padded - len(values))
        vectors = []
        for start in range(0, padded, n):
            vector = "poison"
            for lane, value in enumerate(values[start : start + n]):
                vector = self.w.assign(f"insertelement {kind} {vector}, double {value}, i64 {lane}")
            vectors.append(vector)
        return vectors

    def _put(self, arguments: list[list[Value]], pointers: list[Value]) -> None:
        """Store vectors end to end."""
        v = self.w.with_width(self.native)
        for vectors, pointer in zip(arguments, pointers, strict=False):
            for k, vector in enumerate(vectors):
                v.store(vector, pointer, k * v.width)

    def _reserve(self, size: int) -> int:
        """Return where in the working memory there is room for so many numbers."""
        place, self.room = self.room, self.room + round_up(size, 8)
        return place

    def _wrong(self) -> Value:
        """Store the results that are left, and return where one of them all is not finite.

        The arrays of one state may be arguments as well: all results are there before the first is stored. A block's
        are apart, and have been stored as they came, so that few wait in memory.
        """
        left = results(self.graph)
        if self.w.width > 1:
            left = [r for r in left if isinstance(r.operand, float) or r.operand in self._waiting]
        values = [self.value(r.operand) for r in left]
        for value in values:
            self._look_at(value)
        places = {place: value for value, result in zip(values, left, strict=True) for place in result.places}
        for place in sorted(places):  # in the order of memory
            self._store(places[place], [place])
        w, zero = self.w, self.w.float_constant(0.0)
        sums = [*self._sums, *[zero] * 4]
        total = w.float_op("fadd", w.float_op("fadd", sums[0], sums[1]), w.float_op("fadd", sums[2], sums[3]))
        return w.fcmp("une", total, zero)

    def _put_away(self, result: int, places: list[Place]) -> None:
        value = self.value(result)
        self._look_at(value)
        self._store(value, places)

    def _look_at(self, value: Value) -> None:
        """Add 0 x, which is zero for finite x alone, to one of four sums side by side; constants are finite."""
        if value.startswith("%"):
            zero = self.w.float_constant(0.0)
            total = self._sums.pop(0) if len(self._sums) == 4 else zero
            self._sums.append(self.w.fmuladd(value, zero, total))

    def _store(self, value: Value, places: list[Place]) -> None:
        for place in places:
            self.w.store(value, f"%a{place.array}", place.entry * self.w.width)
