"""The most floating-point operations a second that one core does, measured: fused multiply-adds that depend on nothing.

python benchmarks/peak.py
"""

import ctypes
import time
from collections.abc import Iterator

from legged.trace import backend
from legged.trace.assembler import ATTRIBUTES, Writer

CHAINS = 16
"""Independent sums, enough to hide the latency of one instruction on every processor we know."""


def peak(width: int | None = None, rounds: int = 20, steps: int = 20_000) -> float:
    """Return operations a second, a multiply-add being two, the best of some rounds.

    Args:
        width: Numbers in a vector; by default as many as the processor takes.
        rounds: How often it is timed.
        steps: Length of the loop.
    """
    width = width or backend.width()
    code = backend.Code(backend.machine_code("\n".join(_assembly(width))))
    run = code.function("peak", ctypes.c_int64, ctypes.c_void_p)
    numbers = (ctypes.c_double * width)(*[0.5] * width)
    best = min(_time(lambda: run(steps, numbers)) for _ in range(rounds))
    return 2.0 * CHAINS * width * steps / best


def _time(function) -> float:
    begun = time.perf_counter()
    function()
    return time.perf_counter() - begun


def _assembly(width: int) -> Iterator[str]:
    w = Writer(width)
    names = range(CHAINS)
    w.label("start")
    x = w.load("%numbers")
    w.line("br label %loop")
    w.label("loop")
    w.let("phi i64 [0, %start], [%next, %loop]", "%k")
    for i in names:
        w.let(f"phi {w.real} [{w.number(0.1 * i)}, %start], [%new{i}, %loop]", f"%old{i}")
    for i in names:
        w.let(f"call {w.real} @llvm.fma.{w.suffix}({w.real} %old{i}, {w.real} {x}, {w.real} {x})", f"%new{i}")
    w.let("add i64 %k, 1", "%next")
    w.line(f"br i1 {w.let('icmp slt i64 %next, %count')}, label %loop, label %end")
    w.label("end")
    total = "%new0"
    for i in names[1:]:
        total = w.op("fadd", total, f"%new{i}")
    w.store(total, "%numbers")
    w.line("ret i64 0")
    yield f"declare {w.real} @llvm.fma.{w.suffix}({w.real}, {w.real}, {w.real})"
    yield f"define i64 @peak(i64 %count, ptr %numbers) {ATTRIBUTES} {{"
    yield from w.lines
    yield "}"


if __name__ == "__main__":
    for n in (1, 2, 4, 8):
        if n <= backend.width():
            print(f"{n} numbers a vector: {peak(n) / 1e9:.1f} GFLOP/s")
