"""The assembly of a kernel's built-in function: reads Python's and NumPy's objects, makes the result, runs the core.

    PyObject *legged_call(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)

`self` is a tuple of two functions of Python: (the ordinary way to call the kernel, the one that runs a large batch).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from legged.trace.assembler import ATTRIBUTES, Value, Writer
from legged.trace.graph import Graph, Shape
from legged.trace.lowering import CORE

ENTRY = "legged_call"
CONTEXT = "legged_context"

HEADER = object.__basicsize__
"""Size of what every object begins with; its last field is the type."""
DATA, ND, DIMENSIONS, DESCR, FLAGS = (HEADER + offset for offset in (0, 8, 16, 40, 48))
"""Where the fields of NumPy's arrays are."""
ITEMS = tuple.__basicsize__
"""Where a tuple's items begin."""
CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400
DOUBLE = 12
"""NumPy's number of the type."""

OBJECTS = ("array", "double", "float", "scalar", "out")
FUNCTIONS = ("new", "increment", "decrement", "vectorcall", "whole", "value")
NAMES = (*OBJECTS, *FUNCTIONS, "batch", "limit")
"""What the table `legged_context` holds: objects and functions of this process, the code for batches if it is loaded,
and how many states it may do while Python's lock is held."""

WORK_LIMIT = 8192
"""Working memory, in numbers, that may lie on the stack."""


class _Call:
    """The function under construction."""

    def __init__(self, graph: Graph, work: int):
        self.graph, self.work = graph, work
        self.w = Writer(1)
        self.shapes = [shape for _, shape in graph.inputs]
        self.result = graph.outputs[0]
        self.n = len(self.shapes)
        self.context: dict[str, Value] = {}

    def lines(self) -> list[str]:
        """Return the body."""
        w, n = self.w, self.n
        w.label("start")
        w.let(f"alloca [{n + 1} x ptr], align 8", "%table")
        w.let(f"alloca [{3 * (n + 1)} x i64], align 8", "%rows")
        w.let(f"alloca [{len(self.result) + 1} x i64], align 8", "%shape")
        self.context = {
            name: w.let(f"load {'i64' if name == 'limit' else 'ptr'}, ptr {w.at(f'@{CONTEXT}', k, 'ptr')}")
            for k, name in enumerate(NAMES)
        }
        w.line(f"br i1 {w.let(f'icmp eq i64 %nargs, {n}')}, label %argument0, label %otherwise")
        count = "-1"
        for k, shape in enumerate(self.shapes):
            count = self.argument(k, shape, count)
        w.label(f"argument{n}")
        w.line(f"br i1 {w.let(f'icmp eq i64 {count}, -1')}, label %single, label %batch")
        self.single()
        self.batch(count)
        w.label("otherwise")
        ordinary = self.field("%self", ITEMS)
        answer = w.let(f"call ptr {self.context['vectorcall']}(ptr {ordinary}, ptr %args, i64 %nargs, ptr %names)")
        w.line(f"ret ptr {answer}")
        return w.lines

    def field(self, thing: Value, offset: int, kind: str = "ptr") -> Value:
        """Return a field of an object."""
        return self.w.let(f"load {kind}, ptr {self.w.at(thing, offset, 'i8')}")

    def check(self, condition: Value, label: str) -> None:
        """Go on at a new block if the condition holds, leave the call to the ordinary way if not."""
        self.w.line(f"br i1 {condition}, label %{label}, label %otherwise")
        self.w.label(label)

    def all(self, checks: list[Value]) -> Value:
        """Return whether all of the checks hold."""
        total = checks[0] if checks else "true"
        for check in checks[1:]:
            total = self.w.let(f"and i1 {total}, {check}")
        return total

    def is_array(self, given: Value, label: str, flags: int) -> Value:
        """Check that an object is an array of doubles with these flags; return its number of axes."""
        w = self.w
        self.check(w.let(f"icmp eq ptr {self.field(given, HEADER - 8)}, {self.context['array']}"), f"{label}_array")
        found = w.let(f"and i32 {self.field(given, FLAGS, 'i32')}, {flags}")
        right = w.let(f"icmp eq i32 {found}, {flags}")
        double = w.let(f"icmp eq ptr {self.field(given, DESCR)}, {self.context['double']}")
        self.check(self.all([right, double]), f"{label}_double")
        return self.field(given, ND, "i32")

    def sizes(self, given: Value, shape: Shape, skip: int) -> Value:
        """Return whether the axes of an array, but for the first `skip`, are as long as they should be."""
        sizes = self.field(given, DIMENSIONS)
        return self.all(
            [self.w.let(f"icmp eq i64 {self.field(sizes, 8 * (i + skip), 'i64')}, {n}") for i, n in enumerate(shape)]
        )

    def argument(self, k: int, shape: Shape, count: Value) -> Value:
        """Read one argument; return the number of states so far, -1 for a single one."""
        w, label = self.w, f"argument{k}"
        w.label(label)
        given = w.let(f"load ptr, ptr {w.at('%args', k, 'ptr')}")
        if not shape:
            kind = self.field(given, HEADER - 8)
            either = [w.let(f"icmp eq ptr {kind}, {self.context[name]}") for name in ("float", "scalar")]
            number = w.let(f"or i1 {either[0]}, {either[1]}")
            w.line(f"br i1 {number}, label %{label}_one, label %{label}_other")
            w.label(f"{label}_other")
        axes = self.is_array(given, label, CONTIGUOUS | ALIGNED)
        one = w.let(f"icmp eq i32 {axes}, {len(shape)}") if shape else "false"
        many = w.let(f"icmp eq i32 {axes}, {len(shape) + 1}")
        w.line(f"br i1 {one}, label %{label}_alone, label %{label}_rows")
        w.label(f"{label}_alone")
        self.check(self.sizes(given, shape, 0), f"{label}_one")
        alone = self.field(given, DATA) if shape else w.at(given, HEADER, "i8")
        w.line(f"br label %{label}_read")
        w.label(f"{label}_rows")
        self.check(many, f"{label}_many")
        length = self.field(self.field(given, DIMENSIONS), 0, "i64")
        first = w.let(f"icmp eq i64 {count}, -1")
        same = w.let(f"icmp eq i64 {count}, {length}")
        agrees = self.all([w.let(f"or i1 {first}, {same}"), w.let(f"icmp sgt i64 {length}, 0")])
        self.check(self.all([agrees, self.sizes(given, shape, 1)]), f"{label}_batch")
        rows = self.field(given, DATA)
        w.line(f"br label %{label}_read")
        w.label(f"{label}_read")
        sources = f"%{label}_one], [{{}}, %{label}_batch]"
        data = w.let(f"phi ptr [{alone}, {sources.format(rows)}")
        stride = w.let(f"phi i64 [0, {sources.format(8 * math.prod(shape))}")
        total = w.let(f"phi i64 [{count}, {sources.format(length)}")
        w.line(f"store ptr {data}, ptr {w.at('%table', k, 'ptr')}")
        self.row(k, data, stride)
        w.line(f"br label %argument{k + 1}")
        return total

    def row(self, k: int, data: Value, stride: Value) -> None:
        """Describe an array to the code for batches."""
        w = self.w
        address = w.let(f"ptrtoint ptr {data} to i64")
        for i, value in enumerate((address, stride, "0")):
            w.line(f"store i64 {value}, ptr {w.at('%rows', 3 * k + i, 'i64')}")

    def target(self, label: str, lead: int, count: Value) -> tuple[Value, Value]:
        """Return (array, its numbers) of `out` in a block that is reached if it was given and fits."""
        w = self.w
        self.check(w.let(f"icmp eq i64 {self.field('%names', HEADER, 'i64')}, 1"), f"{label}_once")
        self.check(w.let(f"icmp eq ptr {self.field('%names', ITEMS)}, {self.context['out']}"), f"{label}_named")
        target = w.let(f"load ptr, ptr {w.at('%args', self.n, 'ptr')}")
        axes = self.is_array(target, label, CONTIGUOUS | ALIGNED | WRITEABLE)
        self.check(w.let(f"icmp eq i32 {axes}, {len(self.result) + lead}"), f"{label}_axes")
        checks = [self.sizes(target, self.result, lead)]
        if lead:
            checks.append(w.let(f"icmp eq i64 {self.field(self.field(target, DIMENSIONS), 0, 'i64')}, {count}"))
        self.check(self.all(checks), f"{label}_fits")
        return target, self.field(target, DATA)

    def fresh(self, label: str, lead: int, count: Value) -> tuple[Value, Value]:
        """Return (array, its numbers) of a new array."""
        w = self.w
        for i, n in enumerate((count, *self.result) if lead else self.result):
            w.line(f"store i64 {n}, ptr {w.at('%shape', i, 'i64')}")
        size = f"ptr {self.context['array']}, i32 {len(self.result) + lead}, ptr %shape, i32 {DOUBLE}"
        made = w.let(f"call ptr {self.context['new']}({size}, ptr null, ptr null, i32 0, i32 0, ptr null)")
        w.line(f"br i1 {w.let(f'icmp eq ptr {made}, null')}, label %fail, label %{label}_made")
        w.label(f"{label}_made")
        return made, self.field(made, DATA)

    def single(self) -> None:
        """One state: run the core on the arrays as they are. The core reads everything before it writes."""
        w = self.w
        for label in ("single", "single_out"):
            w.label(label)
            if label == "single":
                w.line(f"br i1 {w.let('icmp eq ptr %names, null')}, label %single_new, label %single_out")
                w.label("single_new")
            made, data = (self.fresh if label == "single" else self.target)(label, 0, "-1")
            w.line(f"store ptr {data}, ptr {w.at('%table', self.n, 'ptr')}")
            wrong = w.let(f"call i64 @{CORE}(ptr %table)")
            self.finish(label, made, w.let(f"icmp eq i64 {wrong}, 0"), label == "single")
        w.label("fail")
        w.line("ret ptr null")

    def finish(self, label: str, made: Value, fine: Value, new: bool) -> None:
        """Return the result if it is fine; otherwise the ordinary way tells what is wrong."""
        w = self.w
        w.line(f"br i1 {fine}, label %{label}_fine, label %{label}_wrong")
        w.label(f"{label}_fine")
        if not new:
            w.line(f"call void {self.context['increment']}(ptr {made})")
        w.line(f"ret ptr {made}")
        w.label(f"{label}_wrong")
        if new:
            w.line(f"call void {self.context['decrement']}(ptr {made})")
        w.line("br label %otherwise")

    def batch(self, count: Value) -> None:
        """Many states: by the code for batches at once, or by way of Python if they are worth several threads."""
        w = self.w
        w.label("batch")
        loaded = w.let(f"icmp ne ptr {self.context['batch']}, null")
        several = w.let(f"icmp sgt i64 {count}, 2")
        self.check(w.let(f"or i1 {loaded}, {several}"), "batch_go")
        w.line(f"br i1 {w.let('icmp eq ptr %names, null')}, label %batch_new, label %batch_out")
        w.label("batch_out")
        given, there = self.target("batch_out", 1, count)
        size = w.let(f"mul i64 {count}, {8 * math.prod(self.result)}")
        end = w.at(there, size, "i8")
        apart = []
        for k, shape in enumerate(self.shapes):
            begin = w.let(f"load ptr, ptr {w.at('%table', k, 'ptr')}")
            stop = w.at(begin, w.let(f"mul i64 {count}, {8 * math.prod(shape)}"), "i8")
            before, after = w.let(f"icmp ule ptr {stop}, {there}"), w.let(f"icmp ule ptr {end}, {begin}")
            apart.append(w.let(f"or i1 {before}, {after}"))
        self.check(self.all(apart), "batch_given")
        w.line("br label %batch_run")
        w.label("batch_new")
        made, here = self.fresh("batch_new", 1, count)
        w.line("br label %batch_run")
        w.label("batch_run")
        result = w.let(f"phi ptr [{given}, %batch_given], [{made}, %batch_new_made]")
        data = w.let(f"phi ptr [{there}, %batch_given], [{here}, %batch_new_made]")
        new = w.let("phi i1 [false, %batch_given], [true, %batch_new_made]")
        self.row(self.n, data, str(8 * math.prod(self.result)))
        small = w.let(f"icmp sle i64 {count}, {self.context['limit']}")
        direct = w.let(f"and i1 {loaded}, {small}") if self.work <= WORK_LIMIT else "false"
        w.line(f"br i1 {direct}, label %batch_direct, label %batch_shared")
        w.label("batch_direct")
        room = w.let(f"alloca [{min(self.work, WORK_LIMIT)} x double], align 64")
        bad_direct = w.let(f"call i64 {self.context['batch']}(i64 0, i64 {count}, ptr %rows, ptr {room})")
        w.line("br label %batch_done")
        w.label("batch_shared")
        bad_shared = self.share(count, result, new)
        w.line("br label %batch_done")
        w.label("batch_done")
        bad = w.let(f"phi i64 [{bad_direct}, %batch_direct], [{bad_shared}, %shared_answer]")
        fine = w.let(f"icmp slt i64 {bad}, 0")
        w.line(f"br i1 {new}, label %batch_done_new, label %batch_done_given")
        for label, is_new in (("batch_done_new", True), ("batch_done_given", False)):
            w.label(label)
            self.finish(label, result, fine, is_new)

    def share(self, count: Value, result: Value, new: Value) -> Value:
        """Call the function of Python that runs a batch of `count` states, described by %rows."""
        w, decrement = self.w, self.context["decrement"]
        pair = w.let("alloca [2 x ptr], align 8")
        numbers = []
        for i, value in enumerate((count, w.let("ptrtoint ptr %rows to i64"))):
            numbers.append(w.let(f"call ptr {self.context['whole']}(i64 {value})"))
            w.line(f"store ptr {numbers[-1]}, ptr {w.at(pair, i, 'ptr')}")
            w.line(f"br i1 {w.let(f'icmp eq ptr {numbers[-1]}, null')}, label %share_fail, label %share{i}")
            w.label(f"share{i}")
        run = self.field("%self", ITEMS + 8)
        answer = w.let(f"call ptr {self.context['vectorcall']}(ptr {run}, ptr {pair}, i64 2, ptr null)")
        for number in numbers:
            w.line(f"call void {decrement}(ptr {number})")
        w.line(f"br i1 {w.let(f'icmp eq ptr {answer}, null')}, label %share_fail, label %shared_answer")
        w.label("share_fail")
        w.line(f"br i1 {new}, label %share_drop, label %fail")
        w.label("share_drop")
        w.line(f"call void {decrement}(ptr {result})")
        w.line("br label %fail")
        w.label("shared_answer")
        bad = w.let(f"call i64 {self.context['value']}(ptr {answer})")
        w.line(f"call void {decrement}(ptr {answer})")
        return bad


def assembly(graph: Graph, work: int) -> Iterator[str]:
    """Yield the assembly; the core comes from `lowering`. `work` is what the code for batches takes, in numbers."""
    yield f"@{CONTEXT} = global [{len(NAMES)} x ptr] zeroinitializer, align 8"
    yield f"define ptr @{ENTRY}(ptr %self, ptr %args, i64 %nargs, ptr %names) {ATTRIBUTES} {{"
    yield from _Call(graph, work).lines()
    yield "}"
