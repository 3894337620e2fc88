"""The machine code of one state without the call from Python: run over and over by a small loop in assembly.

Two loops. `free` runs it again and again on the same arguments, so that the processor may begin a run before the last
has ended. `in_a_row` adds zero times the last result to every argument, so that a run waits for the one before, as the
steps of a simulation do.
"""

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import legged
from legged.compiler.codegen import llvm, selection
from legged.compiler.codegen.ir_writer import ATTRIBUTES, IRWriter, Value


class Alone(NamedTuple):
    """Functions that run the machine code as often as they are told."""

    free: Callable[[int], Any]
    in_a_row: Callable[[int], Any]


def alone(kernel: legged.Kernel, arrays: Sequence[np.ndarray]) -> Alone:
    """Return the kernel's machine code for one state, without Python, on these arguments."""
    sizes = [math.prod(shape) for _, shape in kernel.graph.inputs]
    loops = [*_loop("free", sizes, False), *_loop("in_a_row", sizes, True)]
    code = llvm.LoadedCode(llvm.machine_code("\n".join([selection.single_state_module(kernel.graph), *loops])))
    given, used = ([_aligned(np.asarray(array, dtype=float)) for array in arrays] for _ in range(2))
    result = _aligned(np.zeros(kernel.graph.outputs[0]))
    tables = [_table([*used, result]), _table(given)]

    def way(name: str) -> Callable[[int], Any]:
        run, kept = code.function(name, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p), (code, used, result, given)
        return lambda times, kept=kept: run(times, *tables)

    made = Alone(way("free"), way("in_a_row"))
    for run in made:
        result[...] = np.nan
        run(3)
        assert np.array_equal(result, kernel(*arrays)), "the loop must compute what the kernel does"
    return made


def _aligned(array: np.ndarray) -> np.ndarray:
    """Return a copy that begins with a cache line, so that times do not depend on where memory was free."""
    room = np.empty(array.size + 8)
    copy = room[-room.ctypes.data % 64 // 8 :][: array.size].reshape(array.shape)
    copy[...] = array
    return copy


def _table(arrays: Sequence[np.ndarray]) -> Any:
    return (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))


def _loop(name: str, sizes: Sequence[int], waits: bool) -> list[str]:
    """Return a loop over the code, which has arguments of these sizes.

    Args:
        name: Of the function. sizes: Of the arguments.
        waits: Whether arguments are written anew, from `given`, after every run.
    """
    w = IRWriter(1)
    w.label("start")
    w.jump("again")
    w.label("again")
    w.assign("phi i64 [0, %start], [%next, %again]", "%k")
    w.assign(f"call i64 @{selection.SINGLE_STATE}(ptr %arrays)", "%wrong")
    if waits:
        result = w.assign(f"load ptr, ptr {w.gep('%arrays', len(sizes), 'ptr')}, align 8")
        zero = w.float_op("fmul", w.load(result), w.float_constant(0.0))
        for i, size in enumerate(sizes):
            _renew(w, i, size, zero)
    w.assign("add i64 %k, 1", "%next")
    w.branch(w.assign("icmp slt i64 %next, %times"), "again", "end")
    w.label("end")
    w.emit("ret i64 %wrong")
    return [f"define i64 @{name}(i64 %times, ptr %arrays, ptr %given) {ATTRIBUTES} {{", *w.lines, "}"]


def _renew(w: IRWriter, i: int, size: int, zero: Value) -> None:
    """Write argument i anew: what was given, plus zero."""
    source, target = (w.assign(f"load ptr, ptr {w.gep(table, i, 'ptr')}, align 8") for table in ("%given", "%arrays"))
    for k in range(size):
        w.store(w.float_op("fadd", w.load(source, k), zero), target, k)
