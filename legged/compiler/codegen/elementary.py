"""Elementary functions in machine code: sine, cosine, exponential, arctangent and others as vector polynomials.

Each is an LLVM function on arrays, `void legged_exp(ptr x0, ptr y0, i64 n)` for example, with n a multiple of the
vector width. One state passes all its angles together, a block of states those of all its lanes, so the same code
serves both and every number has the same result in both. Arguments out of the range of a formula (`formulas`) go to the
C library one by one, as do all arguments of the functions without a formula.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from legged.compiler.codegen.element_type import ElementType
from legged.compiler.codegen.formulas import FORMULAS
from legged.compiler.codegen.ir_writer import ATTRIBUTES, UNOPTIMIZED, IRWriter, Value
from legged.compiler.ir.operations import LIBRARY_FUNCTIONS, TWO_ARGUMENTS
from legged.compiler.passes.call_batching import function_results


def symbol(function: str) -> str:
    """Return the name of the generated function on arrays."""
    return f"legged_{function}"


def library_symbol(function: str) -> str:
    """Return the name under which machine code calls a function of the C library, such as "sin" or "sinf"."""
    return f"legged_libm_{function}"


def assembly(functions: Iterable[str], width: int, element: ElementType) -> Iterator[str]:
    """Yield the generated functions of these names, on vectors of a width, and the declarations that they need."""
    real = element.llvm
    functions = sorted(functions)
    operations = {result for name in functions for result in function_results(name)}
    for operation in sorted(operations):
        arguments = ", ".join([real] * (2 if operation in TWO_ARGUMENTS else 1))
        symbol_name = library_symbol(LIBRARY_FUNCTIONS[operation] + element.library_suffix)
        yield f"declare {real} @{symbol_name}({arguments}) nounwind willreturn memory(none)"
    for name in functions:
        if name in FORMULAS[element]:
            yield from _vector_function(name, IRWriter(width, element))
        else:
            yield from _scalar_function(name, IRWriter(1, element))


def _vector_function(name: str, w: IRWriter) -> Iterator[str]:
    """Yield the function that applies a formula to n numbers, a vector at a time."""
    (formula, argument_count), results = FORMULAS[w.element][name], function_results(name)
    width = w.width
    values, is_valid = formula(w, *[w.load(f"%x{i}", "%k") for i in range(argument_count)])
    arrays = [*(f"%x{i}" for i in range(argument_count)), *(f"%y{i}" for i in range(len(results)))]
    parameters = ", ".join(f"ptr noalias {array}" for array in arrays)
    is_invalid = w.logical_not(is_valid) if is_valid else None
    for i, value in enumerate(values):
        w.store(value, f"%y{i}", "%k")
    if is_invalid:
        w.branch(w.any_lane(is_invalid), "invalid", "next")
        w.label("invalid")
        mask = w.assign(f"zext i{width} {w.lane_mask(is_invalid)} to i64")
        pointers = [f"ptr {w.gep(array, '%k')}" for array in arrays]
        w.emit(f"call void @{symbol(name)}_invalid({', '.join(pointers)}, i64 {mask})")
    w.jump("next")
    yield f"define internal void @{symbol(name)}({parameters}, i64 %n) {ATTRIBUTES} {{"
    yield from _loop(w.lines, width)
    if is_invalid:
        yield f"define internal void @{symbol(name)}_invalid({parameters}, i64 %mask) {UNOPTIMIZED} {{"
        w = IRWriter(1, w.element)
        w.emit("%bit = lshr i64 %mask, %k")
        w.emit("%is_invalid = trunc i64 %bit to i1")
        w.branch("%is_invalid", "do", "next")
        w.label("do")
        for i, result in enumerate(results):
            _call_library(w, result, argument_count, f"%y{i}")
        w.jump("next")
        yield from _loop(w.lines, 1, str(width))


def _scalar_function(operation: str, w: IRWriter) -> Iterator[str]:
    """Yield the function that applies a function of the C library to n numbers, one by one."""
    argument_count = 2 if operation in TWO_ARGUMENTS else 1
    parameters = ", ".join(f"ptr noalias %{p}" for p in (*(f"x{i}" for i in range(argument_count)), "y0"))
    yield f"define internal void @{symbol(operation)}({parameters}, i64 %n) {ATTRIBUTES} {{"
    _call_library(w, operation, argument_count, "%y0")
    w.jump("next")
    yield from _loop(w.lines, 1)


def _call_library(w: IRWriter, operation: str, argument_count: int, target: Value) -> None:
    real = w.element.llvm
    arguments = ", ".join(f"{real} {w.load(f'%x{i}', '%k')}" for i in range(argument_count))
    function = library_symbol(LIBRARY_FUNCTIONS[operation] + w.element.library_suffix)
    w.store(w.assign(f"call {real} @{function}({arguments})"), target, "%k")


def _loop(body: list[str], step: int, end: Value = "%n") -> Iterator[str]:
    """Yield a function that runs a loop over %k = 0, step, ... below end > 0; the loop body branches to %next."""
    yield "start:"
    yield "  br label %loop"
    yield "loop:"
    yield "  %k = phi i64 [0, %start], [%k_next, %next]"
    yield from body
    yield "next:"
    yield f"  %k_next = add i64 %k, {step}"
    yield f"  %more = icmp slt i64 %k_next, {end}"
    yield "  br i1 %more, label %loop, label %end"
    yield "end:"
    yield "  ret void"
    yield "}"
