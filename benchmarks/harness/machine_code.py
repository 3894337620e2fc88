"""Machine code without the call from Python: loops that repeat a kernel, and the peak rate of the processor core."""

import ctypes
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import legged
from benchmarks.harness.timing import Workload
from legged.compiler import FLOAT64
from legged.compiler.codegen import llvm, selection
from legged.compiler.codegen.formulas import FORMULAS
from legged.compiler.codegen.ir_writer import ATTRIBUTES, IRWriter, Value
from legged.compiler.ir.operations import VECTOR_FUNCTION_OF

_CHAINS = 16
"""Independent sums, enough to hide the latency of an instruction on every common processor."""
_ITERATIONS = 20_000
"""Length of the loop that measures the peak rate."""


class MachineCodeLoops(NamedTuple):
    """Functions of the number of repetitions that run machine code in a loop.

    Attributes:
        independent: Repeats it with the same arguments; the processor may begin a run before the last one ends.
        dependent: Adds zero times the last result to every argument, so that each run waits for the last one, as in a
            simulation.
    """

    independent: Callable[[int], Any]
    dependent: Callable[[int], Any]


def machine_code_loops(kernel: legged.Kernel, arrays: Sequence[np.ndarray]) -> MachineCodeLoops:
    """Return loops over the machine code of a kernel for one state.

    Args:
        kernel: A kernel that returns one array.
        arrays: Its arguments for one state: q (nq,), v (nv,) and tau (nv,), for example; in any unit.
    """
    sizes = [math.prod(shape) for _, shape in kernel.graph.inputs]
    functions = [*_loop("independent", sizes, False), *_loop("dependent", sizes, True)]
    code = llvm.LoadedCode(llvm.machine_code("\n".join([selection.single_state_module(kernel.graph), *functions])))
    given, used = ([_aligned(np.asarray(array, dtype=float)) for array in arrays] for _ in range(2))
    result = _aligned(np.zeros(kernel.graph.outputs[0]))
    pointers = [_pointers([*used, result]), _pointers(given)]

    def loop(name: str) -> Callable[[int], Any]:
        run = code.function(name, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
        alive = code, used, result, given  # the function reads their memory
        return lambda times, alive=alive: run(times, *pointers)

    loops = MachineCodeLoops(loop("independent"), loop("dependent"))
    for run in loops:
        result[...] = np.nan
        run(3)
        assert np.array_equal(result, kernel(*arrays)), "the loop must compute what the kernel does"
    return loops


def _aligned(array: np.ndarray) -> np.ndarray:
    """Return a copy that begins with a cache line, so that times do not depend on where memory was free."""
    memory = np.empty(array.size + 8)
    copy = memory[-memory.ctypes.data % 64 // 8 :][: array.size].reshape(array.shape)
    copy[...] = array
    return copy


def _pointers(arrays: Sequence[np.ndarray]) -> Any:
    return (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))


def _loop(name: str, sizes: Sequence[int], is_dependent: bool) -> list[str]:
    """Return the assembly of a loop over the code, which has arguments of these sizes.

    Args:
        name: Name of the function.
        sizes: Sizes of the arguments.
        is_dependent: Whether arguments are written again from `given` after every run.
    """
    w = IRWriter(1, FLOAT64)
    w.label("start")
    w.jump("again")
    w.label("again")
    w.assign("phi i64 [0, %start], [%next, %again]", "%k")
    w.assign(f"call i64 @{selection.SINGLE_STATE}(ptr %arrays)", "%wrong")
    if is_dependent:
        result = w.assign(f"load ptr, ptr {w.gep('%arrays', len(sizes), 'ptr')}, align 8")
        zero = w.float_op("fmul", w.load(result), w.float_constant(0.0))
        for i, size in enumerate(sizes):
            _rewrite(w, i, size, zero)
    w.assign("add i64 %k, 1", "%next")
    w.branch(w.assign("icmp slt i64 %next, %times"), "again", "end")
    w.label("end")
    w.emit("ret i64 %wrong")
    return [f"define i64 @{name}(i64 %times, ptr %arrays, ptr %given) {ATTRIBUTES} {{", *w.lines, "}"]


def _rewrite(w: IRWriter, i: int, size: int, zero: Value) -> None:
    """Write argument i again: the given numbers plus zero."""
    source, target = (w.assign(f"load ptr, ptr {w.gep(table, i, 'ptr')}, align 8") for table in ("%given", "%arrays"))
    for k in range(size):
        w.store(w.float_op("fadd", w.load(source, k), zero), target, k)


def peak_workload(width: int | None = None) -> Workload:
    """Return independent fused multiply-adds; the "states" of this workload are operations, two for a multiply-add.

    Args:
        width: Numbers in a vector; by default the width of the processor's vectors.
    """
    width = width or llvm.vector_width()
    code = llvm.LoadedCode(llvm.machine_code("\n".join(_multiply_adds(width))))
    numbers = (ctypes.c_double * width)(*[0.5] * width)

    def run(times: int) -> None:
        code.function("peak", ctypes.c_int64, ctypes.c_void_p)(_ITERATIONS * times, numbers)

    return Workload(run, 2 * _CHAINS * width * _ITERATIONS)


def floating_point_operations(kernel: legged.Kernel) -> int:
    """Return the additions, multiplications, divisions and square roots for one state.

    Operations inside of the vector code of elementary functions count. Data movement, the check for results that are
    not finite, and products that fused multiply-adds repeat do not.
    """
    counts = kernel.counts
    total = counts.multiplications + counts.additions + counts.divisions + counts.square_roots
    calls = {(VECTOR_FUNCTION_OF.get(n.operation), n.arguments) for n in kernel.graph.nodes}
    return total + sum(_formula_operations(function) for function, _ in calls if function)


def _formula_operations(function: str) -> int:
    formula, argument_count = FORMULAS[FLOAT64][function]
    w = IRWriter(8, FLOAT64)
    formula(w, *["%x", "%y"][:argument_count])
    costs = {" = fadd": 1, " = fsub": 1, " = fmul": 1, " = fdiv": 1, "@llvm.fma": 2}
    return sum(cost for line in w.lines for instruction, cost in costs.items() if instruction in line)


def _multiply_adds(width: int) -> Iterator[str]:
    """Yield the assembly of a loop of fused multiply-adds."""
    w = IRWriter(width, FLOAT64)
    chains = range(_CHAINS)
    w.label("start")
    x = w.load("%numbers")
    w.jump("loop")
    w.label("loop")
    w.assign("phi i64 [0, %start], [%next, %loop]", "%k")
    vector = w.float_type
    for i in chains:
        w.assign(f"phi {vector} [{w.float_constant(0.1 * i)}, %start], [%new{i}, %loop]", f"%old{i}")
    for i in chains:
        w.assign(f"call {vector} @llvm.fma.{w.suffix}({vector} %old{i}, {vector} {x}, {vector} {x})", f"%new{i}")
    w.assign("add i64 %k, 1", "%next")
    w.branch(w.assign("icmp slt i64 %next, %count"), "loop", "end")
    w.label("end")
    total = "%new0"
    for i in chains[1:]:
        total = w.float_op("fadd", total, f"%new{i}")
    w.store(total, "%numbers")
    w.emit("ret i64 0")
    yield f"declare {vector} @llvm.fma.{w.suffix}({vector}, {vector}, {vector})"
    yield f"define i64 @peak(i64 %count, ptr %numbers) {ATTRIBUTES} {{"
    yield from w.lines
    yield "}"
