"""The most that a core can do, measured: fused multiply-adds that wait for nothing; and the operations of code."""

import ctypes
from collections.abc import Iterator

import legged
from benchmarks.timing import Way
from legged.compiler.codegen import elementary, llvm
from legged.compiler.codegen.ir_writer import ATTRIBUTES, IRWriter
from legged.compiler.ir.operations import VECTOR_FUNCTION_OF

CHAINS = 16
"""Independent sums, enough to hide the latency of one instruction on every processor we know."""
STEPS = 20_000
"""Length of the loop."""


def multiply_adds(width: int | None = None) -> Way:
    """Return a loop to time in turns with other code: its "states" are operations, a multiply-add being two.

    Args:
        width: Numbers in a vector; by default as many as the processor takes.
    """
    width = width or llvm.vector_width()
    code = llvm.LoadedCode(llvm.machine_code("\n".join(_assembly(width))))
    numbers = (ctypes.c_double * width)(*[0.5] * width)

    def run(times: int) -> None:
        code.function("peak", ctypes.c_int64, ctypes.c_void_p)(STEPS * times, numbers)

    return Way(run, 2 * CHAINS * width * STEPS)


def operations(kernel: legged.Kernel) -> int:
    """Return the additions, multiplications, divisions and roots of one state, those inside of sines as executed.

    What code does beyond them does not count: moving numbers, looking for results that are not finite, and products
    that are computed again inside of multiply-adds.
    """
    counts = kernel.counts
    total = counts.multiplications + counts.additions + counts.divisions + counts.square_roots
    uses = {(VECTOR_FUNCTION_OF.get(n.operation), n.arguments) for n in kernel.graph.nodes}
    return total + sum(_inside(function) for function, _ in uses if function)


def _inside(function: str) -> int:
    formula, takes = elementary.FORMULAS[function]
    w = IRWriter(8)
    formula(w, *["%x", "%y"][:takes])
    kinds = {" = fadd": 1, " = fsub": 1, " = fmul": 1, " = fdiv": 1, "@llvm.fma": 2}
    return sum(n for line in w.lines for kind, n in kinds.items() if kind in line)


def _assembly(width: int) -> Iterator[str]:
    w = IRWriter(width)
    names = range(CHAINS)
    w.label("start")
    x = w.load("%numbers")
    w.jump("loop")
    w.label("loop")
    w.assign("phi i64 [0, %start], [%next, %loop]", "%k")
    for i in names:
        w.assign(f"phi {w.float_type} [{w.float_constant(0.1 * i)}, %start], [%new{i}, %loop]", f"%old{i}")
    for i in names:
        w.assign(
            f"call {w.float_type} @llvm.fma.{w.suffix}({w.float_type} %old{i}, {w.float_type} {x}, {w.float_type} {x})",
            f"%new{i}",
        )
    w.assign("add i64 %k, 1", "%next")
    w.branch(w.assign("icmp slt i64 %next, %count"), "loop", "end")
    w.label("end")
    total = "%new0"
    for i in names[1:]:
        total = w.float_op("fadd", total, f"%new{i}")
    w.store(total, "%numbers")
    w.emit("ret i64 0")
    yield f"declare {w.float_type} @llvm.fma.{w.suffix}({w.float_type}, {w.float_type}, {w.float_type})"
    yield f"define i64 @peak(i64 %count, ptr %numbers) {ATTRIBUTES} {{"
    yield from w.lines
    yield "}"
