"""`KernelWriter` writes a graph as an LLVM function, the kernel, for one state or for several states in vector lanes.

    int64 legged_kernel(real *const *arrays, real *work)

`arrays` points to the arguments and then to the results. With `width` lanes, entry i of an array is a vector: numbers
i*width to i*width + width - 1 in memory are the values of that entry for each state. The result has a bit for each
state, which is set if a result is not finite. `work` is absent for one state.

Library functions are called in batches (`passes.call_batching`) and computed by the code of `elementary`.
Multiplications and additions are fused and scheduled (`passes.scheduling`).
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from legged.compiler.codegen import elementary, random_numbers, tables
from legged.compiler.codegen.element_type import ElementType
from legged.compiler.codegen.formulas import FORMULAS
from legged.compiler.codegen.ir_writer import ATTRIBUTES, IRWriter, Value, intrinsic_declarations, shared_function
from legged.compiler.codegen.kernels import loops
from legged.compiler.ir.graph import Entry, Graph, Node, Operand, distinct_outputs
from legged.compiler.ir.operations import CallResult, Gather, Loop, Matrix
from legged.compiler.passes.call_batching import Call, calls_by_function, function_results, round_up
from legged.compiler.passes.pipeline import RegisterRequest, Scheduling, run_passes
from legged.compiler.passes.scheduling import FUSED, NEGATED_ARGUMENT

KERNEL = "legged_kernel"
_INLINE_LIMIT, _INLINE_LIMIT_OF_LONG_GRAPHS = 64, 16
"""Largest number of argument vectors for which the formula of an elementary function is inlined. Inlining saves a third
of the time of a call, but the code of a long graph then exceeds the instruction cache: 29 sines and cosines take 9 of
the 72 kB of forward dynamics of G1."""
_LONG_GRAPH, _LONG_GRAPH_WITHOUT_FMA = 6000, 4000
"""Nodes from which on a graph is long; without fused multiply-adds the formulas are longer."""
_ARITHMETIC = {"add": "fadd", "subtract": "fsub", "multiply": "fmul", "divide": "fdiv"}
_INTRINSIC = {
    **{name: name for name in ("sqrt", "floor", "rint", "copysign", "maximum", "minimum")},
    "absolute": "fabs",
    **dict.fromkeys(FUSED, "fmuladd"),
}
_COMPARISONS = {"less": "olt", "less_equal": "ole", "equal": "oeq", "not_equal": "une"}


def work_size(graph: Graph, width: int, element: ElementType) -> int:
    """Return the size of a kernel's working memory for `width` states on vectors of that width, in numbers."""
    total = 0
    for batch, _ in run_passes(graph, batched=True).batches:
        for function, calls in calls_by_function(graph, batch).items():
            if isinstance(function, Loop | Matrix):
                total += len(calls) * round_up(function.memory * width, element.per_cache_line)
                continue
            arrays = len(calls[0].arguments) + len(function_results(function))
            total += arrays * round_up(len(calls) * width, element.per_cache_line)
    return total


class KernelWriter:
    """Writes the function that evaluates a graph; subclasses change how values are loaded, computed and stored.

    Attributes:
        graph: The graph.
        native: Lanes of the processor's vectors. name: Name of the function.
        passes: Results of the passes on the graph.
        batches: Batches of calls with the nodes that they need, see `passes.call_batching`.
        w: Writer of the function, whose width is the number of states. functions: Those of `elementary` that it calls.
        work_size: Size of the working memory, in numbers.
        computed: Values that have a name in the function so far.
        flags: Whether LLVM may fuse products into sums ("contract "); results depend on its optimization then.
    """

    flags = ""

    def __init__(
        self,
        graph: Graph,
        width: int,
        native: int,
        element: ElementType,
        name: str = KERNEL,
        pack_lanes: int | None = None,
        outline_lanes: int | None = None,
        registers: RegisterRequest | None = None,
    ):
        requested: dict[str, Any] = {"pack_lanes": pack_lanes, "outline_lanes": outline_lanes, "registers": registers}
        self.passes = run_passes(graph, batched=True, fused=registers is not None, **requested)
        self.graph, self.native, self.name = self.passes.graph, native, name
        self.batches = self.passes.batches
        self.w = IRWriter(width, element)
        self.functions: set[str] = set()
        many = {"lookup": tables.MOST_INLINED, "random_uniform": random_numbers.MOST_INLINED}
        counts = Counter([node[0] for node in graph.nodes])
        counts["lookup"] = sum(count for operation, count in counts.items() if isinstance(operation, Gather))
        self._shared = {name for name, most in many.items() if counts[name] > most}
        self._shared_functions: dict[str, list[str]] = {}
        self.work_size = 0
        self.computed: set[int] = set()
        self._labels = itertools.count()
        self._finite_sums: list[Value] = []
        self._unstored: dict[int, list[Entry]] = {}  # results of a block of states, stored as soon as computed
        self._addresses = self.input_addresses()  # values in memory: pointer, offset in numbers

    def input_addresses(self) -> dict[int, tuple[Value, int]]:
        """Return pointer and offset, in numbers, of each input in memory."""
        sizes = [math.prod(shape) for _, shape in self.graph.inputs]
        places = [(f"%a{k}", i * self.w.width) for k, size in enumerate(sizes) for i in range(size)]
        return dict(enumerate(places))

    def module_lines(self) -> list[str]:
        """Return the lines of the kernel together with all functions that it calls."""
        lines = list(self.lines())
        widths = sorted({self.w.width, self.native})
        declarations = [line for width in widths for line in intrinsic_declarations(self.w.with_width(width))]
        lines += [line for function in self._shared_functions.values() for line in function]
        for matrix in self.graph.matrices:
            lines += loops.matrix_assembly(matrix, self.w.width, self.native, self.w.element)
        return [*declarations, *elementary.assembly(self.functions, self.native, self.w.element), *lines]

    def lines(self) -> Iterator[str]:
        """Yield the function, line by line."""
        body, is_single = self._body(), self.w.width == 1
        work = "" if is_single else ", ptr noalias %work"
        yield f"define internal i64 @{self.name}(ptr %arrays{work}) {ATTRIBUTES} {{"
        if is_single and self.work_size:
            yield f"  %work = alloca [{self.work_size} x {self.w.element.llvm}], align 64"
        yield from body
        yield "}"

    def _body(self) -> list[str]:
        self.load_array_pointers()
        for number, (calls, _) in enumerate(self.batches):
            self.compute_arguments(number)
            for function, calls_of_function in calls_by_function(self.graph, calls).items():
                self._call(function, calls_of_function)
        self.compute_remaining()
        self._return(self._store_results())
        return self.w.lines

    def _return(self, not_finite: Value) -> None:
        w = self.w
        w.emit(f"ret i64 {w.assign(f'zext i{w.width} {w.lane_mask(not_finite)} to i64')}")

    def load_array_pointers(self) -> None:
        """Load the pointers to arguments and results."""
        for k in range(len(self.graph.inputs) + len(self.graph.outputs)):
            self.w.assign(f"load ptr, ptr {self.w.gep('%arrays', k, 'ptr')}, align 8", f"%a{k}")

    def compute_arguments(self, number: int) -> None:
        """Compute the nodes that a batch of calls needs; `number` counts the batches."""
        self.compute(self.batches[number][1])

    def compute_remaining(self) -> None:
        """Compute the nodes that remain after the last batch of calls."""
        (nodes,) = self.schedule_remaining()
        self.compute(nodes)

    def schedule_remaining(self, section: int | None = None) -> list[list[int]]:
        """Fuse multiplications and additions, and return the nodes that remain in the order of their execution.

        Args:
            section: Number of nodes of a section, None for a single section.
        """
        scheduling = Scheduling(self.computed, section)
        results = run_passes(self.graph, fused=True, ordered=True, scheduling=scheduling)
        self.graph = results.graph
        if self.w.width > 1:
            self.store_early()
        return results.sections

    def store_early(self) -> None:
        """Store each result as soon as it is computed from now on."""
        outputs = distinct_outputs(self.graph)
        self._unstored = {out.operand: out.entries for out in outputs if isinstance(out.operand, int)}

    def operation(self, i: int) -> str:
        """Return the operation of node i."""
        return self.graph.nodes[i - self.graph.input_size].operation

    def compute(self, nodes: Iterable[int]) -> None:
        """Compute nodes in the given order, except those that are computed already."""
        graph_nodes, first = self.graph.nodes, self.graph.input_size
        for i in nodes:
            if i not in self.computed:
                self._compute_node(i, graph_nodes[i - first])
                self.computed.add(i)
                if i in self._unstored:
                    value = self.value(i)
                    self._check_finite(value)
                    self._store(value, self._unstored.pop(i))

    def value(self, operand: Operand) -> Value:
        """Return the name of a value or a literal."""
        if type(operand) is not int:
            return self.w.float_constant(operand)
        if operand not in self.computed:
            self.load_value(operand)
        return f"%v{operand}"

    def load_value(self, operand: int) -> None:
        """Load a value in memory, at its first use."""
        if operand in self._addresses:
            self.computed.add(operand)
            self.w.load(*self._addresses[operand], f"%v{operand}")

    def _compute_node(self, i: int, node: Node) -> None:
        w, (operation, arguments, _) = self.w, node
        a = [self.value(x) for x in arguments]
        if operation in _ARITHMETIC:
            instruction = f"{_ARITHMETIC[operation]} {self.flags}{w.float_type} {a[0]}, {a[1]}"
        elif isinstance(operation, Gather):
            return self._compute_long("lookup", tables.load, [*tables.operands(w, operation), a[0]], f"%v{i}")
        elif operation == "random_uniform":
            return self._compute_long(operation, lambda w, *x: random_numbers.uniform(w, x), a, f"%v{i}")
        elif operation in _INTRINSIC:
            if operation in NEGATED_ARGUMENT:
                a[NEGATED_ARGUMENT[operation]] = w.assign(f"fneg {w.float_type} {a[NEGATED_ARGUMENT[operation]]}")
            operands = ", ".join(f"{w.float_type} {x}" for x in a)
            instruction = f"call {w.float_type} @llvm.{_INTRINSIC[operation]}.{w.suffix}({operands})"
        elif operation in _COMPARISONS:
            instruction = f"fcmp {_COMPARISONS[operation]} {w.float_type} {a[0]}, {a[1]}"
        elif operation == "negate":
            instruction = f"fneg {w.float_type} {a[0]}"
        elif operation == "select":
            instruction = f"select {w.bool_type} {a[0]}, {w.float_type} {a[1]}, {w.float_type} {a[2]}"
        elif operation == "not":
            instruction = f"xor {w.bool_type} {a[0]}, {'true' if w.width == 1 else 'splat (i1 true)'}"
        else:  # "and", "or"
            instruction = f"{operation} {w.bool_type} {a[0]}, {a[1]}"
        w.assign(instruction, f"%v{i}")

    def _compute_long(self, name: str, write: Callable[..., Value], arguments: Sequence[Value], result: Value) -> None:
        """Compute an operation of many instructions, by a function of the module if the graph has many of them."""
        w = self.w
        types = [w.float_type if k or name == "random_uniform" else "ptr" for k in range(len(arguments))]
        if name in self._shared:
            symbol = f"legged_{name}_{w.width}"
            if symbol not in self._shared_functions:
                lines = shared_function(symbol, IRWriter(w.width, w.element), types, write)
                self._shared_functions[symbol] = list(lines)
            listed = ", ".join(f"{kind} {x}" for kind, x in zip(types, arguments, strict=True))
            w.assign(f"call {w.float_type} @{symbol}({listed})", result)
        else:
            w.assign(f"bitcast {w.float_type} {write(w, *arguments)} to {w.float_type}", result)

    def _call(self, function: str, calls: list[Call]) -> None:
        """Compute all calls of a function: by an inlined formula, or by one call on an array of all arguments."""
        if isinstance(function, Loop | Matrix):
            return self._call_function(function, calls)
        w, has_formula = self.w, function in FORMULAS[self.w.element]
        self.functions.add(function)
        size = len(calls) * w.width
        padded = round_up(size, self.native)
        inputs = [self._allocate(padded) for _ in calls[0].arguments]
        outputs = {result: self._allocate(padded) for result in function_results(function)}
        arguments = [self._pack(operands, padded) for operands in zip(*(c.arguments for c in calls), strict=True)]
        for k, call in enumerate(calls):
            for i in call.nodes:
                name = self.operation(i)
                self._addresses[i] = ("%work", outputs["arctan2" if name == "arctan" else name] + k * w.width)
        pointers = [w.gep("%work", offset) for offset in (*inputs, *outputs.values())]
        listed = ", ".join(f"ptr {p}" for p in pointers)
        instruction = f"call void @{elementary.symbol(function)}({listed}, i64 {padded if has_formula else size})"
        most = _LONG_GRAPH if w.element.has_fma else _LONG_GRAPH_WITHOUT_FMA
        limit = _INLINE_LIMIT if len(self.graph.nodes) <= most else _INLINE_LIMIT_OF_LONG_GRAPHS
        if has_formula and padded <= limit * self.native:
            self._inline(function, arguments, pointers, instruction)
        else:
            self._store_vectors(arguments, pointers)
            w.emit(instruction)

    def _call_function(self, function: Loop | Matrix, calls: list[Call]) -> None:
        """Compute all calls of a loop or of a product with a matrix, one after the other."""
        for call in calls:
            start = self._allocate(function.memory * self.w.width)
            if isinstance(function, Loop):
                self._call_loop(function, call.arguments, start)
            else:
                self.store_operands(call.arguments, start)
                self.w.emit(f"call void @{loops.symbol(function)}(ptr {self.w.gep('%work', start)})")
            for i in call.nodes:
                result = self.operation(i)
                assert isinstance(result, CallResult)
                self._addresses[i] = ("%work", start + (function.result_offset + result.index) * self.w.width)

    def _call_loop(self, loop: Loop, operands: Sequence[Operand], start: int) -> None:
        """Compute a loop.

        Values from outside are stored only if an iteration is due, which is rare for some solvers.
        """
        w, state, captured = self.w, operands[: loop.size], operands[loop.size :]
        self.store_operands(state, start)
        active = self.value(state[-1])
        self.before_branch(captured)
        due, done = (f"{name}{next(self._labels)}" for name in ("due", "done"))
        w.branch(w.any_lane(w.fcmp("ogt", active, w.float_constant(0.0))), due, done)
        w.label(due)
        self.store_in_branch(captured, start + loop.size * w.width)
        w.emit(f"call void @{loops.symbol(loop)}(ptr {w.gep('%work', start)})")
        w.jump(done)
        w.label(done)

    def before_branch(self, operands: Iterable[Operand]) -> None:
        """Load the values that `store_in_branch` stores, so that code after the branch can use them."""
        for operand in operands:
            self.value(operand)

    def store_in_branch(self, operands: Iterable[Operand], start: int) -> None:
        """Store values contiguously in the working memory, in code that is rarely executed."""
        self.store_operands(operands, start)

    def store_operands(self, operands: Iterable[Operand], start: int) -> None:
        """Store values contiguously in the working memory."""
        for k, operand in enumerate(operands):
            self.w.store(self.value(operand), "%work", start + k * self.w.width)

    def _inline(self, function: str, arguments: list[list[Value]], pointers: list[Value], call: str) -> None:
        """Apply a formula vector by vector; call the function for all if an argument is out of the formula's range."""
        v = self.w.with_width(self.native)
        formula, argument_count = FORMULAS[v.element][function]
        all_valid = None
        for k, vectors in enumerate(zip(*arguments, strict=True)):
            values, is_valid = formula(v, *vectors)
            for value, pointer in zip(values, pointers[argument_count:], strict=True):
                v.store(value, pointer, k * v.width)
            all_valid = v.assign(f"and {v.bool_type} {all_valid}, {is_valid}") if all_valid else is_valid
        if all_valid:
            valid, invalid = (f"{name}{next(self._labels)}" for name in ("valid", "invalid"))
            v.branch(v.any_lane(v.logical_not(all_valid)), invalid, valid)
            v.label(invalid)
            self._store_vectors(arguments, pointers)
            v.emit(call)
            v.jump(valid)
            v.label(valid)

    def _pack(self, operands: Iterable[Operand], padded: int) -> list[Value]:
        """Return the numbers of all operands as native vectors, padded with ones to `padded` numbers."""
        values = [self.value(x) for x in operands]
        if self.w.width == self.native:
            return values
        n, v = self.native, self.w.with_width(self.native)
        values += [self.w.float_constant(1.0)] * (padded - len(values))
        vectors = []
        for start in range(0, padded, n):
            vector = "poison"
            for lane, value in enumerate(values[start : start + n]):
                vector = v.insert(vector, value, lane)
            vectors.append(vector)
        return vectors

    def _store_vectors(self, arguments: list[list[Value]], pointers: list[Value]) -> None:
        """Store the vectors of each argument contiguously."""
        v = self.w.with_width(self.native)
        for vectors, pointer in zip(arguments, pointers, strict=False):
            for k, vector in enumerate(vectors):
                v.store(vector, pointer, k * v.width)

    def _allocate(self, size: int) -> int:
        """Return the offset of a new array in the working memory."""
        offset, self.work_size = self.work_size, self.work_size + round_up(size, self.w.element.per_cache_line)
        return offset

    def _store_results(self) -> Value:
        """Store the results that are not stored yet; return the condition that a result is not finite, per lane.

        The arrays of one state may alias the arguments, so all results are computed before the first is stored. The
        arrays of a block of states do not: most results are stored as soon as computed, so that fewer are spilled.
        """
        outputs = distinct_outputs(self.graph)
        if self.w.width > 1:
            outputs = [out for out in outputs if isinstance(out.operand, float) or out.operand in self._unstored]
        values = [self.value(out.operand) for out in outputs]
        for value in values:
            self._check_finite(value)
        by_entry = {entry: value for value, out in zip(values, outputs, strict=True) for entry in out.entries}
        for entry in sorted(by_entry):  # in the order of memory
            self._store(by_entry[entry], [entry])
        return self._not_finite()

    def _not_finite(self) -> Value:
        """Return the condition that a result so far is not finite, per lane."""
        w, zero = self.w, self.w.float_constant(0.0)
        sums = [*self._finite_sums, *[zero] * 4]
        total = w.float_op("fadd", w.float_op("fadd", sums[0], sums[1]), w.float_op("fadd", sums[2], sums[3]))
        return w.fcmp("une", total, zero)

    def _check_finite(self, value: Value) -> None:
        """Add 0*x, which is zero only for finite x, to one of four independent sums; constants are finite."""
        if value.startswith("%"):
            zero = self.w.float_constant(0.0)
            total = self._finite_sums.pop(0) if len(self._finite_sums) == 4 else zero
            self._finite_sums.append(self.w.fmuladd(value, zero, total))

    def _store(self, value: Value, entries: list[Entry]) -> None:
        for entry in entries:
            self.w.store(value, f"%a{entry.array}", entry.index * self.w.width)
