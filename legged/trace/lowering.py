"""A graph as LLVM assembly.

The core is one function, for one state or for a block of states in the lanes of vectors,

    int64 legged_core(double *const *arrays, double *work)

`arrays` points to the arguments and then to the results, each array's numbers end to end; for a block, every number is
a vector with an entry for each state. The answer has a bit for each state, set if a result is not finite.

Sines and their like are gathered: all those whose arguments are known are computed in one go by `elementary`, in
rounds, since an angle may depend on another angle's sine.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from legged.trace import elementary
from legged.trace.assembler import ATTRIBUTES, Value, Writer, constant
from legged.trace.graph import Graph, Node, Operand

CORE = "legged_core"

_ARITHMETIC = {"add": "fadd", "subtract": "fsub", "multiply": "fmul", "divide": "fdiv"}
_INTRINSIC = {"sqrt": "sqrt", "floor": "floor", "absolute": "fabs", "maximum": "maximum", "minimum": "minimum"}
_COMPARISONS = {"less": "olt", "less_equal": "ole", "equal": "oeq", "not_equal": "une"}
_LLVM = {  # functions of LLVM's own -> number of arguments
    **dict.fromkeys(("sqrt", "floor", "fabs"), 1),
    **dict.fromkeys(("maximum", "minimum", "copysign"), 2),
    "fma": 3,
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
    for calls, _ in rounds(graph):
        for function, uses in uses_of(graph, calls).items():
            arrays = len(uses[0].arguments) + len(results_of(function))
            total += arrays * rounded(len(uses) * width, 8)
    return total


def _declarations(widths: Iterable[int]) -> Iterator[str]:
    for width in widths:
        w = Writer(width)
        for name, n in _LLVM.items():
            yield f"declare {w.real} @llvm.{name}.{w.suffix}({', '.join([w.real] * n)})"


class Core:
    """The function that computes a graph.

    Attributes:
        called: Names of the functions of `elementary` that it calls.
        room: How many numbers of working memory it takes.
    """

    def __init__(self, graph: Graph, width: int, native: int):
        self.graph, self.native = graph, native
        self.w = Writer(width)
        self.called: set[str] = set()
        self.room = 0
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
        yield f"define internal i64 @{CORE}(ptr %arrays{'' if alone else ', ptr noalias %work'}) {ATTRIBUTES} {{"
        if alone and self.room:
            yield f"  %work = alloca [{self.room} x double], align 64"
        yield from body
        yield "}"

    def _body(self) -> list[str]:
        w, graph = self.w, self.graph
        self.load_arrays()
        for calls, needed in rounds(graph):
            self.emit(needed)
            self._call(calls)
        self.rest()
        wrong = self._wrong()
        self._store()
        w.line(f"ret i64 {w.let(f'zext i{w.width} {w.mask(wrong)} to i64')}")
        return w.lines

    def load_arrays(self) -> None:
        """Begin a function: find out where the arrays are."""
        for k in range(len(self.graph.inputs) + len(self.graph.outputs)):
            self.w.let(f"load ptr, ptr {self.w.at('%arrays', k, 'ptr')}, align 8", f"%a{k}")

    def rest(self) -> None:
        """Compute what is left after the last call."""
        self.emit(i for i in shortly_before_use(self.graph) if self.operation(i) not in elementary.CALLED)

    def operation(self, i: int) -> str:
        """Return what node number i does."""
        return self.graph.nodes[i - self.graph.input_size].operation

    def emit(self, indices: Iterable[int]) -> None:
        """Compute these nodes, in this order, unless they are there."""
        for i in indices:
            if i not in self.ready:
                self._instruction(i, self.graph.nodes[i - self.graph.input_size])
                self.ready.add(i)

    def value(self, operand: Operand) -> Value:
        """Return a value, loaded if this is its first use."""
        if isinstance(operand, float):
            return self.w.number(operand)
        if operand in self._places and operand not in self.ready:
            self.ready.add(operand)
            pointer = self.w.at(*self._places[operand])
            self.w.let(f"load {self.w.real}, ptr {pointer}, align 8", f"%v{operand}")
        return f"%v{operand}"

    def _instruction(self, i: int, node: Node) -> None:
        w, operation = self.w, node.operation
        a = [self.value(x) for x in node.arguments]
        if operation in _ARITHMETIC:
            text = f"{_ARITHMETIC[operation]} contract {w.real} {a[0]}, {a[1]}"
        elif operation in _INTRINSIC:
            operands = ", ".join(f"{w.real} {x}" for x in a)
            text = f"call {w.real} @llvm.{_INTRINSIC[operation]}.{w.suffix}({operands})"
        elif operation in _COMPARISONS:
            text = f"fcmp {_COMPARISONS[operation]} {w.real} {a[0]}, {a[1]}"
        elif operation == "negate":
            text = f"fneg {w.real} {a[0]}"
        elif operation == "select":
            text = f"select {w.truth} {a[0]}, {w.real} {a[1]}, {w.real} {a[2]}"
        elif operation == "not":
            text = f"xor {w.truth} {a[0]}, {'true' if w.width == 1 else 'splat (i1 true)'}"
        else:
            text = f"{operation} {w.truth} {a[0]}, {a[1]}"
        w.let(text, f"%v{i}")

    def _call(self, indices: Iterable[int]) -> None:
        """Call the functions of one round: one call for all uses of a function."""
        for function, uses in uses_of(self.graph, indices).items():
            self._call_one(function, uses)

    def _call_one(self, function: str, uses: list[Use]) -> None:
        w = self.w
        self.called.add(function)
        size = len(uses) * w.width
        padded = rounded(size, self.native)
        inputs = [self._reserve(padded) for _ in uses[0].arguments]
        outputs = {result: self._reserve(padded) for result in results_of(function)}
        for k, place in enumerate(inputs):
            self._lay_out([use.arguments[k] for use in uses], place, padded)
        for k, use in enumerate(uses):
            for i in use.nodes:
                name = self.graph.nodes[i - self.graph.input_size].operation
                self._places[i] = ("%work", outputs["arctan2" if name == "arctan" else name] + k * w.width)
        pointers = [f"ptr {w.at('%work', place)}" for place in (*inputs, *outputs.values())]
        count = padded if function in elementary.FORMULAS else size
        w.line(f"call void @legged_{function}({', '.join(pointers)}, i64 {count})")

    def _lay_out(self, operands: list[Operand], place: int, padded: int) -> None:
        """Put values end to end into the working memory, and ones behind them up to `padded` numbers.

        For one state, vectors are filled in registers and stored whole: what a function reads as a vector soon after
        must not have been written number by number, or the processor waits for its memory.
        """
        w = self.w
        values = [self.value(x) for x in operands]
        if w.width > 1:
            for k, value in enumerate(values):
                w.store(value, "%work", place + k * w.width)
            for k in range(len(values) * w.width, padded):
                w.line(f"store double {constant(1.0)}, ptr {w.at('%work', place + k)}, align 8")
            return
        n, kind = self.native, Writer(self.native).real
        values += [w.number(1.0)] * (padded - len(values))
        for start in range(0, padded, n):
            vector = "poison"
            for lane, value in enumerate(values[start : start + n]):
                vector = w.let(f"insertelement {kind} {vector}, double {value}, i64 {lane}")
            w.line(f"store {kind} {vector}, ptr {w.at('%work', place + start)}, align 8")

    def _reserve(self, size: int) -> int:
        """Return where in the working memory there is room for so many numbers."""
        place, self.room = self.room, self.room + rounded(size, 8)
        return place

    def _wrong(self) -> Value:
        """Return where one of the results is not finite: x - x is zero for finite x alone."""
        w = self.w
        values = [self.value(r) for r in self.graph.results]  # all loaded before the first is stored
        terms = [w.op("fsub", v, v) for v in dict.fromkeys(values) if v.startswith("%")] or [w.number(0.0)]
        while len(terms) > 1:
            last = [terms[-1]] if len(terms) % 2 else []
            terms = [w.op("fadd", a, b) for a, b in zip(terms[::2], terms[1::2], strict=False)] + last
        return w.compare("une", terms[0], w.number(0.0))

    def _store(self) -> None:
        results = iter(self.graph.results)
        for k, shape in enumerate(self.graph.outputs, len(self.graph.inputs)):
            for i in range(math.prod(shape)):
                self.w.store(self.value(next(results)), f"%a{k}", i * self.w.width)


class Use(NamedTuple):
    """Arguments of a function, and the nodes that are the function of them."""

    arguments: tuple[Operand, ...]
    nodes: list[int]


def uses_of(graph: Graph, calls: Iterable[int]) -> dict[str, list[Use]]:
    """Return the uses of every function in one round."""
    groups: dict[str, dict[str, Use]] = {}
    for i in calls:
        operation, arguments, _ = graph.nodes[i - graph.input_size]
        function = elementary.FAST.get(operation, operation)
        if operation == "arctan":
            arguments = (*arguments, 1.0)
        use = groups.setdefault(function, {}).setdefault(repr(arguments), Use(arguments, []))  # 1 is not 1.0
        use.nodes.append(i)
    return {function: list(uses.values()) for function, uses in groups.items()}


def results_of(function: str) -> tuple[str, ...]:
    return elementary.FORMULAS[function][2] if function in elementary.FORMULAS else (function,)


def rounded(size: int, step: int) -> int:
    return -(-size // step) * step


def shortly_before_use(graph: Graph) -> list[int]:
    """Return the nodes depth first from the results, of two arguments the one of more depth before the other.

    Fewer values wait in registers than in the order of tracing: vectors are spilled less, which saves up to a tenth of
    the time.
    """
    first = graph.input_size
    depths = [0] * first
    for node in graph.nodes:
        depths.append(1 + max((depths[a] for a in node.arguments if isinstance(a, int)), default=0))
    order: list[int] = []
    seen: set[int] = set()
    waiting = [(r, False) for r in reversed(graph.results) if isinstance(r, int)]
    while waiting:
        i, complete = waiting.pop()
        if complete:
            order.append(i)
        elif i >= first and i not in seen:
            seen.add(i)
            waiting.append((i, True))
            arguments = [a for a in graph.nodes[i - first].arguments if isinstance(a, int)]
            waiting += [(a, False) for a in sorted(arguments, key=depths.__getitem__)]
    return order


def rounds(graph: Graph) -> Iterator[tuple[list[int], list[int]]]:
    """Yield (calls, what they need that is not there yet), round by round.

    A call belongs to the round after the last call that it depends on. Only what calls need is computed before them:
    few values have to survive a call.
    """
    levels = [0] * graph.input_size
    calls: dict[int, list[int]] = {}
    for i, (operation, arguments, _) in enumerate(graph.nodes, graph.input_size):
        level = max((levels[a] for a in arguments if isinstance(a, int)), default=0)
        if operation in elementary.CALLED:
            calls.setdefault(level, []).append(i)
            level += 1
        levels.append(level)
    done: set[int] = set()
    for _, indices in sorted(calls.items()):
        done.update(indices)
        needed: set[int] = set()
        waiting = [a for i in indices for a in graph.nodes[i - graph.input_size].arguments]
        while waiting:
            a = waiting.pop()
            if isinstance(a, int) and a >= graph.input_size and a not in done:
                done.add(a)
                needed.add(a)
                waiting += graph.nodes[a - graph.input_size].arguments
        yield indices, sorted(needed)
