"""Assembly of the function that Python calls: reads the arguments' arrays, runs the core, returns new arrays.

    PyObject *legged_call(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)

`self` is a tuple (general, share, form) of functions of Python. Whatever is not as usual goes on to `general`, which is
called with the same arguments; large batches to `share`; `form` makes of the tuple of results what the traced function
returned, and is None if that was such a tuple. The usual case: `nargs` is the number of arguments, each is an ndarray
of doubles, C-contiguous and aligned, of its own shape for one state, or with one leading axis, the same for all that
have one (or a float, for a number); `names` is NULL, or ("out",) with such arrays for the results. A batch is left to
`general` as long as no code for batches is loaded (there, two states are no batch yet: they are done one by one by the
kernel for one, not by the kernel that runs a large batch).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from legged.compiler.codegen.cpython.layout import (
    ALIGNED,
    CONTEXT,
    CONTIGUOUS,
    HEADER,
    ITEMS,
    LENGTH,
    NAMES,
    WRITEABLE,
    Objects,
)
from legged.compiler.codegen.ir_writer import ATTRIBUTES, Value
from legged.compiler.codegen.scalar import CORE
from legged.compiler.ir.graph import Graph, Shape

ENTRY = "legged_call"
WORK_LIMIT = 8192
"""Working memory, in numbers, that may lie on the stack."""
MOST = 64
"""So many results a function may have: the text grows with them."""


class _Call(Objects):
    """The function under construction."""

    def __init__(self, graph: Graph, work: int):
        super().__init__()
        self.work = work
        self.shapes, self.results = [shape for _, shape in graph.inputs], graph.outputs
        self.n, self.bare = len(self.shapes), graph.is_bare

    def lines(self) -> list[str]:
        """Return the body."""
        w, n = self.w, self.n
        arrays = n + len(self.results)
        w.label("start")
        w.assign(f"alloca [{arrays} x ptr], align 8", "%table")
        w.assign(f"alloca [{3 * arrays} x i64], align 8", "%rows")
        w.assign(f"alloca [{max(map(len, self.results)) + 1} x i64], align 8", "%shape")
        w.assign(f"alloca [{len(self.results)} x double], align 8", "%numbers")
        w.assign("alloca [2 x ptr], align 8", "%pair")
        self.load_context()
        w.branch(w.assign(f"icmp eq i64 %nargs, {n}"), "argument0", "otherwise")
        count = "-1"
        for k, shape in enumerate(self.shapes):
            count = self.argument(k, shape, count)
        w.label(f"argument{n}")
        w.branch(w.assign(f"icmp eq i64 {count}, -1"), "single", "batch")
        self.single()
        self.batch(count)
        w.label("fail")
        w.emit("ret ptr null")
        w.label("otherwise")
        answer = self.call("vectorcall", f"ptr {self.field('%self', ITEMS)}, ptr %args, i64 %nargs, ptr %names")
        w.emit(f"ret ptr {answer}")
        return w.lines

    def argument(self, k: int, shape: Shape, count: Value) -> Value:
        """Read one argument; return the number of states so far, -1 for a single one."""
        w, label = self.w, f"argument{k}"
        w.label(label)
        given = w.assign(f"load ptr, ptr {w.gep('%args', k, 'ptr')}")
        if not shape:
            number = w.assign(f"or i1 {self.is_kind(given, 'float')}, {self.is_kind(given, 'scalar')}")
            w.branch(number, f"{label}_one", f"{label}_other")
            w.label(f"{label}_other")
        axes = self.is_array(given, label, CONTIGUOUS | ALIGNED)
        one = w.assign(f"icmp eq i32 {axes}, {len(shape)}") if shape else "false"
        many = w.assign(f"icmp eq i32 {axes}, {len(shape) + 1}")
        w.branch(one, f"{label}_alone", f"{label}_rows")
        w.label(f"{label}_alone")
        self.check(self.sizes(given, shape, 0), f"{label}_one")
        alone = self.field(given, HEADER) if shape else w.gep(given, HEADER, "i8")
        w.jump(f"{label}_read")
        w.label(f"{label}_rows")
        self.check(many, f"{label}_many")
        length = self.length(given)
        first = w.assign(f"icmp eq i64 {count}, -1")
        same = w.assign(f"icmp eq i64 {count}, {length}")
        agrees = self.all([w.assign(f"or i1 {first}, {same}"), w.assign(f"icmp sgt i64 {length}, 0")])
        self.check(self.all([agrees, self.sizes(given, shape, 1)]), f"{label}_batch")
        rows = self.field(given, HEADER)
        w.jump(f"{label}_read")
        w.label(f"{label}_read")
        sources = f"%{label}_one], [{{}}, %{label}_batch]"
        data = w.assign(f"phi ptr [{alone}, {sources.format(rows)}")
        stride = w.assign(f"phi i64 [0, {sources.format(8 * math.prod(shape))}")
        total = w.assign(f"phi i64 [{count}, {sources.format(length)}")
        self.place(k, data, stride)
        w.jump(f"argument{k + 1}")
        return total

    def place(self, k: int, data: Value, stride: Value) -> None:
        """Tell the core and the code for batches where array k is, arguments first."""
        w = self.w
        w.emit(f"store ptr {data}, ptr {w.gep('%table', k, 'ptr')}")
        for i, value in enumerate((w.assign(f"ptrtoint ptr {data} to i64"), stride, "0")):
            w.emit(f"store i64 {value}, ptr {w.gep('%rows', 3 * k + i, 'i64')}")

    def single(self) -> None:
        """One state: run the core on the arrays as they are. The core reads everything before it writes."""
        w = self.w
        w.label("single")
        w.branch(w.assign("icmp eq ptr %names, null"), "single_new", "single_out")
        for label, new in (("single_new", True), ("single_out", False)):
            w.label(label)
            whole = self.fresh(label, 0, "-1") if new else self.given(label, 0, "-1")
            wrong = w.assign(f"call i64 @{CORE}(ptr %table)")
            self.finish(label, whole, w.assign(f"icmp eq i64 {wrong}, 0"), new, numbers=True)
            if new:
                self.drop(label, whole)

    def given(self, label: str, lead: int, count: Value) -> Value:
        """Place the results in the arrays of `out` and return it."""
        w = self.w
        self.check(w.assign(f"icmp eq i64 {self.field('%names', LENGTH, 'i64')}, 1"), f"{label}_once")
        self.check(w.assign(f"icmp eq ptr {self.field('%names', ITEMS)}, {self.context['out']}"), f"{label}_named")
        whole = w.assign(f"load ptr, ptr {w.gep('%args', self.n, 'ptr')}")
        if not self.bare:
            self.check(self.is_kind(whole, "tuple"), f"{label}_tuple")
            right = w.assign(f"icmp eq i64 {self.field(whole, LENGTH, 'i64')}, {len(self.results)}")
            self.check(right, f"{label}_length")
        for k, shape in enumerate(self.results):
            target = whole if self.bare else self.field(whole, ITEMS + 8 * k)
            axes = self.is_array(target, f"{label}{k}", CONTIGUOUS | ALIGNED | WRITEABLE)
            self.check(w.assign(f"icmp eq i32 {axes}, {len(shape) + lead}"), f"{label}{k}_axes")
            checks = [self.sizes(target, shape, lead)]
            if lead:
                checks.append(w.assign(f"icmp eq i64 {self.length(target)}, {count}"))
            self.check(self.all(checks), f"{label}{k}_fits")
            data = self.field(target, HEADER)
            if lead:
                self.check(self.is_apart(data, shape, count), f"{label}{k}_apart")
            self.place(self.n + k, data, str(8 * math.prod(shape)))
        return whole

    def is_apart(self, there: Value, shape: Shape, count: Value) -> Value:
        """Return whether a batch's numbers of a shape lie where no argument does."""
        w = self.w
        end = w.gep(there, w.assign(f"mul i64 {count}, {8 * math.prod(shape)}"), "i8")
        apart = []
        for k, own in enumerate(self.shapes):
            begin = w.assign(f"load ptr, ptr {w.gep('%table', k, 'ptr')}")
            stop = w.gep(begin, w.assign(f"mul i64 {count}, {8 * math.prod(own)}"), "i8")
            before, after = w.assign(f"icmp ule ptr {stop}, {there}"), w.assign(f"icmp ule ptr {end}, {begin}")
            apart.append(w.assign(f"or i1 {before}, {after}"))
        return self.all(apart)

    def fresh(self, label: str, lead: int, count: Value) -> Value:
        """Place the results in new arrays, and numbers in `%numbers`; return the array, or a tuple of all."""
        w, whole, fail = self.w, "null", "fail"
        if not self.bare:
            whole, fail = self.call("pack", f"i64 {len(self.results)}"), f"{label}_fail"
            self.is_there(whole, f"{label}_pack", "fail")
        for k, shape in enumerate(self.results):
            if shape or lead:
                made = self.new_array(shape, lead, count)
                self.is_there(made, f"{label}{k}_made", fail)
                data = self.field(made, HEADER)
                if self.bare:
                    whole = made
                else:
                    self.put(made, whole, k)
            else:
                data = w.gep("%numbers", k)
            self.place(self.n + k, data, str(8 * math.prod(shape)))
        return whole

    def finish(self, label: str, whole: Value, fine: Value, new: bool, numbers: bool = False) -> None:
        """Return the results if they are fine; otherwise the ordinary way tells what is wrong."""
        w = self.w
        w.branch(fine, f"{label}_fine", f"{label}_wrong")
        w.label(f"{label}_wrong")
        if new and whole != "null":
            self.decrement(whole)
        w.jump("otherwise")
        w.label(f"{label}_fine")
        if new:
            self.form(label, self.with_numbers(label, whole) if numbers else whole)
        else:
            self.increment(whole)
            w.emit(f"ret ptr {whole}")

    def drop(self, label: str, pack: Value) -> None:
        """Give up where there is no room for a result."""
        if not self.bare:
            self.w.label(f"{label}_fail")
            self.decrement(pack)
            self.w.jump("fail")

    def with_numbers(self, label: str, whole: Value) -> Value:
        """Return the results with those in them that are numbers."""
        for k, shape in enumerate(self.results):
            if not shape:
                place = self.w.gep("%numbers", k)
                number = self.call("number", f"ptr {place}, ptr {self.context['double']}, ptr null")
                self.is_there(number, f"{label}{k}_number", "fail" if self.bare else f"{label}_fail")
                if self.bare:
                    return number
                self.put(number, whole, k)
        return whole

    def form(self, label: str, whole: Value) -> None:
        """Return the results in the form that the traced function gave them."""
        w = self.w
        if not self.bare:
            form = self.field("%self", ITEMS + 16)
            none = w.assign(f"icmp eq ptr {form}, {self.context['none']}")
            w.branch(none, f"{label}_as_is", f"{label}_form")
            w.label(f"{label}_form")
            w.emit(f"store ptr {whole}, ptr %pair")
            answer = self.call("vectorcall", f"ptr {form}, ptr %pair, i64 1, ptr null")
            self.decrement(whole)
            w.emit(f"ret ptr {answer}")
            w.label(f"{label}_as_is")
        w.emit(f"ret ptr {whole}")

    def batch(self, count: Value) -> None:
        """Many states: by the code for batches at once, or by way of Python if they are worth several threads."""
        w = self.w
        w.label("batch")
        loaded = w.assign(f"icmp ne ptr {self.context['batch']}, null")
        several = w.assign(f"icmp sgt i64 {count}, 2")
        self.check(w.assign(f"or i1 {loaded}, {several}"), "batch_go")
        w.branch(w.assign("icmp eq ptr %names, null"), "batch_new", "batch_out")
        w.label("batch_out")
        given = self.given("batch_out", 1, count)
        w.jump("batch_given")
        w.label("batch_given")
        w.jump("batch_run")
        w.label("batch_new")
        made = self.fresh("batch_new", 1, count)
        w.jump("batch_made")
        self.drop("batch_new", made)
        w.label("batch_made")
        w.jump("batch_run")
        w.label("batch_run")
        whole = w.assign(f"phi ptr [{given}, %batch_given], [{made}, %batch_made]")
        new = w.assign("phi i1 [false, %batch_given], [true, %batch_made]")
        small = w.assign(f"icmp sle i64 {count}, {self.context['limit']}")
        direct = w.assign(f"and i1 {loaded}, {small}") if self.work <= WORK_LIMIT else "false"
        w.branch(direct, "batch_direct", "batch_shared")
        w.label("batch_direct")
        room = w.assign(f"alloca [{min(self.work, WORK_LIMIT)} x double], align 64")
        bad_direct = self.call("batch", f"i64 0, i64 {count}, ptr %rows, ptr {room}", "i64")
        w.jump("batch_done")
        w.label("batch_shared")
        bad_shared = self.share(count, whole, new)
        w.jump("batch_done")
        w.label("batch_done")
        bad = w.assign(f"phi i64 [{bad_direct}, %batch_direct], [{bad_shared}, %shared_answer]")
        fine = w.assign(f"icmp slt i64 {bad}, 0")
        w.branch(new, "batch_new_done", "batch_out_done")
        for label, is_new in (("batch_new", True), ("batch_out", False)):
            w.label(f"{label}_done")
            self.finish(label, whole, fine, is_new)

    def share(self, count: Value, whole: Value, new: Value) -> Value:
        """Call the function of Python that runs a batch of `count` states, described by %rows."""
        w = self.w
        numbers = []
        for i, value in enumerate((count, w.assign("ptrtoint ptr %rows to i64"))):
            numbers.append(self.call("whole", f"i64 {value}"))
            w.emit(f"store ptr {numbers[-1]}, ptr {w.gep('%pair', i, 'ptr')}")
            self.is_there(numbers[-1], f"share{i}", "share_fail")
        run = self.field("%self", ITEMS + 8)
        answer = self.call("vectorcall", f"ptr {run}, ptr %pair, i64 2, ptr null")
        for number in numbers:
            self.decrement(number)
        w.branch(w.assign(f"icmp eq ptr {answer}, null"), "share_fail", "shared_answer")
        w.label("share_fail")
        w.branch(new, "share_drop", "fail")
        w.label("share_drop")
        self.decrement(whole)
        w.jump("fail")
        w.label("shared_answer")
        bad = self.call("value", f"ptr {answer}", "i64")
        self.decrement(answer)
        return bad


def assembly(graph: Graph, work: int) -> Iterator[str]:
    """Yield the assembly; the core comes from `lowering`. `work` is what the code for batches takes, in numbers."""
    yield f"@{CONTEXT} = global [{len(NAMES)} x ptr] zeroinitializer, align 8"
    yield f"define ptr @{ENTRY}(ptr %self, ptr %args, i64 %nargs, ptr %names) {ATTRIBUTES} {{"
    yield from _Call(graph, work).lines()
    yield "}"
