"""The entry point of a kernel: a built-in function of Python whose body is machine code.

    PyObject *legged_entry_point(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)

The function reads NumPy's arrays itself, which takes a fraction of the time of a call through ctypes. It handles the
common case: every argument is an array of the kernel's element type, C-contiguous and aligned, of the shape for one
state or with one leading axis that all batched arguments share (or a float, for a scalar argument); the results are new
arrays or go to such arrays given as `out`; a Python function allocates large ones. All other calls, and results that
are not finite, go to a Python function with the same arguments, the fallback, which converts arguments, broadcasts
leading axes and raises errors. While no machine code for batches is loaded, batches of one and two states go to the
fallback as well, which computes them state by state.

`layout` holds the offsets of the fields that are read, and the self-test that must have confirmed them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from legged.compiler.codegen.cpython.layout import (
    ALIGNED,
    C_CONTIGUOUS,
    DATA,
    ENTRIES,
    ITEMS,
    LENGTH,
    NUMBER,
    TABLE,
    WRITEABLE,
    ObjectWriter,
)
from legged.compiler.codegen.element_type import FLOAT64, ElementType
from legged.compiler.codegen.ir_writer import UNOPTIMIZED, Value
from legged.compiler.codegen.kernels.scalar import KERNEL
from legged.compiler.ir.graph import Graph, Shape

ENTRY_POINT = "legged_entry_point"
_STACK_LIMIT = 8192
"""Largest working memory that is allocated on the stack, in numbers."""
_MAX_RESULTS = 64
"""Largest number of results; the code of the entry point grows with it."""
LARGE_RESULT = 1 << 22
"""Size from which a function in Python allocates a result, [bytes]."""
_MAX_OUT = 8
"""Largest number of results that a call writes to arrays given as `out`; the number of pairs to compare grows with its
square. Calls with more go to the fallback."""


def supports(graph: Graph) -> bool:
    """Return whether a graph can have an entry point."""
    return 0 < len(graph.outputs) <= _MAX_RESULTS


def assembly(graph: Graph, element: ElementType, batch_work_size: int) -> Iterator[str]:
    """Yield the LLVM IR of the entry point.

    Args:
        graph: What the kernel computes; `scalar` writes the function that evaluates it.
        element: Element type of the arrays.
        batch_work_size: Working memory of the function for batches, in numbers.
    """
    yield f"@{TABLE} = global [{len(ENTRIES)} x ptr] zeroinitializer, align 8"
    yield f"define ptr @{ENTRY_POINT}(ptr %self, ptr %args, i64 %nargs, ptr %names) {UNOPTIMIZED} {{"
    yield from _EntryPointWriter(graph, element, batch_work_size).lines()
    yield "}"


class _EntryPointWriter(ObjectWriter):
    """Writes the body of an entry point.

    Local memory of the function: `%pointers`, data pointers of arguments and results; `%descriptors`, the array
    descriptors of `batch_loop`; `%shape`, dimensions of a new array; `%numbers`, arguments that are rounded numbers;
    `%scalars`, results that are scalars; `%call`, arguments of a call to Python.
    """

    def __init__(self, graph: Graph, element: ElementType, batch_work_size: int):
        super().__init__(element)
        self.batch_work_size = batch_work_size
        self.shapes, self.results = [shape for _, shape in graph.inputs], graph.outputs
        self.n, self.is_bare = len(self.shapes), graph.is_bare

    def lines(self) -> list[str]:
        """Return the instructions."""
        w, n = self.w, self.n
        arrays = n + len(self.results)
        w.label("start")
        w.assign(f"alloca [{arrays} x ptr], align 8", "%pointers")
        w.assign(f"alloca [{3 * arrays} x i64], align 8", "%descriptors")
        w.assign(f"alloca [{max(map(len, self.results)) + 1} x i64], align 8", "%shape")
        w.assign(f"alloca [{len(self.results)} x {self.element.llvm}], align 8", "%scalars")
        if self.element != FLOAT64:
            w.assign(f"alloca [{max(n, 1)} x {self.element.llvm}], align 8", "%numbers")
        w.assign("alloca [2 x ptr], align 8", "%call")
        self.load_table()
        w.branch(w.assign(f"icmp eq i64 %nargs, {n}"), "argument0", "fallback")
        count = "-1"
        for k, shape in enumerate(self.shapes):
            count = self._read_argument(k, shape, count)
        w.label(f"argument{n}")
        w.branch(w.assign(f"icmp eq i64 {count}, -1"), "single", "batch")
        self._run_single()
        self._run_batch(count)
        w.label("fail")
        w.emit("ret ptr null")
        w.label("fallback")
        arguments = f"ptr {self.field('%self', ITEMS)}, ptr %args, i64 %nargs, ptr %names"
        w.emit(f"ret ptr {self.call('PyObject_Vectorcall', arguments)}")
        return w.lines

    def _read_argument(self, k: int, shape: Shape, count: Value) -> Value:
        """Read one argument; return the number of states found so far, -1 if no argument is batched."""
        w, label = self.w, f"argument{k}"
        w.label(label)
        given = w.assign(f"load ptr, ptr {w.gep('%args', k, 'ptr')}")
        if not shape:
            is_number = w.assign(f"or i1 {self.has_type(given, 'float')}, {self.has_type(given, 'float64')}")
            w.branch(is_number, f"{label}_one", f"{label}_not_number")
            w.label(f"{label}_not_number")
        ndim = self.require_array(given, label, C_CONTIGUOUS | ALIGNED)
        is_single = w.assign(f"icmp eq i32 {ndim}, {len(shape)}") if shape else "false"
        is_batched = w.assign(f"icmp eq i32 {ndim}, {len(shape) + 1}")
        w.branch(is_single, f"{label}_single", f"{label}_batched")
        w.label(f"{label}_single")
        self.require(self.has_shape(given, shape, 0), f"{label}_one")
        single = self.field(given, DATA) if shape else self._number(given, k)
        w.jump(f"{label}_read")
        w.label(f"{label}_batched")
        self.require(is_batched, f"{label}_states")
        length = self.first_length(given)
        is_first = w.assign(f"icmp eq i64 {count}, -1")
        is_same = w.assign(f"icmp eq i64 {count}, {length}")
        agrees = self.all([w.assign(f"or i1 {is_first}, {is_same}"), w.assign(f"icmp sgt i64 {length}, 0")])
        self.require(self.all([agrees, self.has_shape(given, shape, 1)]), f"{label}_many")
        batched = self.field(given, DATA)
        w.jump(f"{label}_read")
        w.label(f"{label}_read")
        sources = f"%{label}_one], [{{}}, %{label}_many]"
        data = w.assign(f"phi ptr [{single}, {sources.format(batched)}")
        stride = w.assign(f"phi i64 [0, {sources.format(self.element.size * math.prod(shape))}")
        total = w.assign(f"phi i64 [{count}, {sources.format(length)}")
        self._set_array(k, data, stride)
        w.jump(f"argument{k + 1}")
        return total

    def _number(self, given: Value, k: int) -> Value:
        """Return the pointer to the value of argument k, a Python float, rounded to the element type."""
        w = self.w
        if self.element == FLOAT64:
            return w.gep(given, NUMBER, "i8")
        number = w.assign(f"fptrunc double {self.field(given, NUMBER, 'double')} to {self.element.llvm}")
        w.store_number(number, w.gep("%numbers", k))
        return w.gep("%numbers", k)

    def _set_array(self, k: int, data: Value, stride: Value) -> None:
        """Set pointer and descriptor of array k; arguments come before results."""
        w = self.w
        w.emit(f"store ptr {data}, ptr {w.gep('%pointers', k, 'ptr')}")
        for i, value in enumerate((w.assign(f"ptrtoint ptr {data} to i64"), stride, "0")):
            w.emit(f"store i64 {value}, ptr {w.gep('%descriptors', 3 * k + i, 'i64')}")

    def _run_single(self) -> None:
        """Evaluate one state in place; the kernel loads all arguments before it stores the first result."""
        w = self.w
        w.label("single")
        w.branch(w.assign("icmp eq ptr %names, null"), "single_new", "single_out")
        for label, is_new in (("single_new", True), ("single_out", False)):
            w.label(label)
            whole = self._allocate_results(label, 0, "-1") if is_new else self._use_out(label, 0, "-1")
            not_finite = w.assign(f"call i64 @{KERNEL}(ptr %pointers)")
            self._return(label, whole, w.assign(f"icmp eq i64 {not_finite}, 0"), is_new, has_scalars=True)
            if is_new:
                self._fail_with(label, whole)

    def _use_out(self, label: str, leading_axes: int, count: Value) -> Value:
        """Require `out` to fit the results and let them be written there; return `out`."""
        w = self.w
        self.require(w.assign(f"icmp eq i64 {self.field('%names', LENGTH, 'i64')}, 1"), f"{label}_once")
        self.require(w.assign(f"icmp eq ptr {self.field('%names', ITEMS)}, {self.table['out']}"), f"{label}_named")
        whole = w.assign(f"load ptr, ptr {w.gep('%args', self.n, 'ptr')}")
        if not self.is_bare:
            self.require(self.has_type(whole, "tuple"), f"{label}_tuple")
            if len(self.results) > _MAX_OUT:
                self.require("false", f"{label}_few")
            has_length = w.assign(f"icmp eq i64 {self.field(whole, LENGTH, 'i64')}, {len(self.results)}")
            self.require(has_length, f"{label}_length")
        for k, shape in enumerate(self.results):
            target = whole if self.is_bare else self.field(whole, ITEMS + 8 * k)
            ndim = self.require_array(target, f"{label}{k}", C_CONTIGUOUS | ALIGNED | WRITEABLE)
            self.require(w.assign(f"icmp eq i32 {ndim}, {len(shape) + leading_axes}"), f"{label}{k}_axes")
            conditions = [self.has_shape(target, shape, leading_axes)]
            if leading_axes:
                conditions.append(w.assign(f"icmp eq i64 {self.first_length(target)}, {count}"))
            self.require(self.all(conditions), f"{label}{k}_fits")
            data = self.field(target, DATA)
            self._set_array(self.n + k, data, str(self.element.size * math.prod(shape)))
            others = range(0 if leading_axes else self.n, self.n + k)
            if others:
                states = count if leading_axes else "1"
                self.require(self._is_disjoint(self.n + k, others, states), f"{label}{k}_disjoint")
        return whole

    def _is_disjoint(self, array: int, others: Sequence[int], count: Value) -> Value:
        """Return whether `count` rows of an array overlap none of some other arrays in memory."""
        w, shapes = self.w, [*self.shapes, *self.results]

        def bounds(k: int) -> tuple[Value, Value]:
            begin = w.assign(f"load ptr, ptr {w.gep('%pointers', k, 'ptr')}")
            return begin, w.gep(begin, w.assign(f"mul i64 {count}, {self.element.size * math.prod(shapes[k])}"), "i8")

        data, end = bounds(array)
        conditions = []
        for k in others:
            begin, stop = bounds(k)
            before, after = w.assign(f"icmp ule ptr {stop}, {data}"), w.assign(f"icmp ule ptr {end}, {begin}")
            conditions.append(w.assign(f"or i1 {before}, {after}"))
        return self.all(conditions)

    def _allocate_results(self, label: str, leading_axes: int, count: Value) -> Value:
        """Let results be written to new arrays, scalars to `%scalars`; return the array, or a tuple to hold all."""
        w, whole, fail = self.w, "null", "fail"
        if not self.is_bare:
            whole, fail = self.call("PyTuple_New", f"i64 {len(self.results)}"), f"{label}_fail"
            self.require_object(whole, f"{label}_pack", "fail")
        for k, shape in enumerate(self.results):
            if shape or leading_axes:
                array = (
                    self._new_result(f"{label}{k}", k, count, fail) if leading_axes else self.new_array(shape, 0, "1")
                )
                self.require_object(array, f"{label}{k}_made", fail)
                data = self.field(array, DATA)
                if self.is_bare:
                    whole = array
                else:
                    self.set_item(whole, k, array)
            else:
                data = w.gep("%scalars", k)
            self._set_array(self.n + k, data, str(self.element.size * math.prod(shape)))
        return whole

    def _new_result(self, label: str, k: int, count: Value, fail: str) -> Value:
        """Return an array for result k of a batch, null if memory is exhausted; a large one from Python."""
        w, shape = self.w, self.results[k]
        size = self.element.size * math.prod(shape)
        is_large = w.assign(f"icmp sge i64 {count}, {-(-LARGE_RESULT // size)}") if size else "false"
        w.branch(is_large, f"{label}_large", f"{label}_small")
        w.label(f"{label}_small")
        small = self.new_array(shape, 1, count)
        w.jump(f"{label}_new")
        w.label(f"{label}_large")
        numbers = [self.call("PyLong_FromLongLong", f"i64 {value}") for value in (k, count)]
        for i, number in enumerate(numbers):
            w.emit(f"store ptr {number}, ptr {w.gep('%call', i, 'ptr')}")
        self.require_object(numbers[1], f"{label}_count", fail)
        new_result = self.field("%self", ITEMS + 24)
        large = self.call("PyObject_Vectorcall", f"ptr {new_result}, ptr %call, i64 2, ptr null")
        for number in numbers:
            self.decrement(number)
        w.jump(f"{label}_new")
        w.label(f"{label}_new")
        return w.assign(f"phi ptr [{small}, %{label}_small], [{large}, %{label}_count]")

    def _return(self, label: str, whole: Value, is_finite: Value, is_new: bool, has_scalars: bool = False) -> None:
        """Return the results if they are finite; otherwise call the fallback, which raises the error."""
        w = self.w
        w.branch(is_finite, f"{label}_finite", f"{label}_not_finite")
        w.label(f"{label}_not_finite")
        if is_new and whole != "null":
            self.decrement(whole)
        w.jump("fallback")
        w.label(f"{label}_finite")
        if is_new:
            self._return_rebuilt(label, self._with_scalars(label, whole) if has_scalars else whole)
        else:
            self.increment(whole)
            w.emit(f"ret ptr {whole}")

    def _fail_with(self, label: str, results: Value) -> None:
        """Release a tuple of results and fail because memory is exhausted."""
        if not self.is_bare:
            self.w.label(f"{label}_fail")
            self.decrement(results)
            self.w.jump("fail")

    def _with_scalars(self, label: str, whole: Value) -> Value:
        """Return the results with scalars as NumPy's objects among them."""
        for k, shape in enumerate(self.results):
            if not shape:
                arguments = f"ptr {self.w.gep('%scalars', k)}, ptr {self.table['dtype']}, ptr null"
                scalar = self.call("PyArray_Scalar", arguments)
                self.require_object(scalar, f"{label}{k}_scalar", "fail" if self.is_bare else f"{label}_fail")
                if self.is_bare:
                    return scalar
                self.set_item(whole, k, scalar)
        return whole

    def _return_rebuilt(self, label: str, whole: Value) -> None:
        """Return new results in the structure that the traced function returns."""
        w = self.w
        if not self.is_bare:
            rebuild = self.field("%self", ITEMS + 16)
            is_none = w.assign(f"icmp eq ptr {rebuild}, {self.table['None']}")
            w.branch(is_none, f"{label}_tuple_as_is", f"{label}_rebuild")
            w.label(f"{label}_rebuild")
            w.emit(f"store ptr {whole}, ptr %call")
            rebuilt = self.call("PyObject_Vectorcall", f"ptr {rebuild}, ptr %call, i64 1, ptr null")
            self.decrement(whole)
            w.emit(f"ret ptr {rebuilt}")
            w.label(f"{label}_tuple_as_is")
        w.emit(f"ret ptr {whole}")

    def _run_batch(self, count: Value) -> None:
        """Evaluate a batch: a small one by the function for batches, a large one through Python, with threads."""
        w = self.w
        w.label("batch")
        is_loaded = w.assign(f"icmp ne ptr {self.table['batch_loop']}, null")
        is_batch = w.assign(f"icmp sgt i64 {count}, 2")
        self.require(w.assign(f"or i1 {is_loaded}, {is_batch}"), "batch_targets")
        w.branch(w.assign("icmp eq ptr %names, null"), "batch_new", "batch_out")
        w.label("batch_out")
        given = self._use_out("batch_out", 1, count)
        w.jump("batch_given")
        w.label("batch_given")
        w.jump("batch_run")
        w.label("batch_new")
        made = self._allocate_results("batch_new", 1, count)
        w.jump("batch_made")
        self._fail_with("batch_new", made)
        w.label("batch_made")
        w.jump("batch_run")
        w.label("batch_run")
        whole = w.assign(f"phi ptr [{given}, %batch_given], [{made}, %batch_made]")
        is_new = w.assign("phi i1 [false, %batch_given], [true, %batch_made]")
        is_small = w.assign(f"icmp sle i64 {count}, {self.table['batch_limit']}")
        is_direct = w.assign(f"and i1 {is_loaded}, {is_small}") if self.batch_work_size <= _STACK_LIMIT else "false"
        w.branch(is_direct, "batch_direct", "batch_python")
        w.label("batch_direct")
        work = w.assign(f"alloca [{min(self.batch_work_size, _STACK_LIMIT)} x {self.element.llvm}], align 64")
        first_direct = self.call("batch_loop", f"i64 0, i64 {count}, ptr %descriptors, ptr {work}", "i64")
        w.jump("batch_done")
        w.label("batch_python")
        first_python = self._call_run_batch(count, whole, is_new)
        w.jump("batch_done")
        w.label("batch_done")
        first = w.assign(f"phi i64 [{first_direct}, %batch_direct], [{first_python}, %python_result]")
        is_finite = w.assign(f"icmp slt i64 {first}, 0")
        w.branch(is_new, "batch_new_done", "batch_out_done")
        for label, new in (("batch_new", True), ("batch_out", False)):
            w.label(f"{label}_done")
            self._return(label, whole, is_finite, new)

    def _call_run_batch(self, count: Value, whole: Value, is_new: Value) -> Value:
        """Call `run_batch` on `count` states described by `%descriptors`; return its result."""
        w = self.w
        numbers = []
        for i, value in enumerate((count, w.assign("ptrtoint ptr %descriptors to i64"))):
            numbers.append(self.call("PyLong_FromLongLong", f"i64 {value}"))
            w.emit(f"store ptr {numbers[-1]}, ptr {w.gep('%call', i, 'ptr')}")
            self.require_object(numbers[-1], f"python_argument{i}", "python_fail")
        run_batch = self.field("%self", ITEMS + 8)
        result = self.call("PyObject_Vectorcall", f"ptr {run_batch}, ptr %call, i64 2, ptr null")
        for number in numbers:
            self.decrement(number)
        w.branch(w.assign(f"icmp eq ptr {result}, null"), "python_fail", "python_result")
        w.label("python_fail")
        w.branch(is_new, "python_release", "fail")
        w.label("python_release")
        self.decrement(whole)
        w.jump("fail")
        w.label("python_result")
        first = self.call("PyLong_AsLongLong", f"ptr {result}", "i64")
        self.decrement(result)
        return first
