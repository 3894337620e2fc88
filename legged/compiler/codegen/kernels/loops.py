"""The function of a loop, which calls the kernel of its body; see `ir.loops_and_tables`.

    void legged_<loop>(real *memory)

`memory` holds the state, which the final state replaces, the captured values, and room for the next state, each number
for all lanes. A lane whose last entry of the state is not positive keeps its state; the loop ends when this holds for
all lanes, or after the largest number of iterations.
"""

from __future__ import annotations

from collections.abc import Iterator

from legged.compiler.codegen.element_type import ElementType
from legged.compiler.codegen.ir_writer import ATTRIBUTES, IRWriter
from legged.compiler.ir.operations import Loop


def symbol(loop: Loop) -> str:
    """Return the name of the function of a loop."""
    return f"legged_{loop}"


def body_symbol(loop: Loop) -> str:
    """Return the name of the kernel of a loop's body."""
    return f"legged_{loop}_body"


def assembly(loop: Loop, width: int, element: ElementType) -> Iterator[str]:
    """Yield the function of a loop on states in `width` lanes."""
    w, n = IRWriter(width, element), loop.size
    captured, following = n * width, loop.body.input_size * width
    w.label("start")
    w.assign("alloca [3 x ptr], align 8", "%arrays")
    for k, offset in enumerate((0, captured, following)):
        w.emit(f"store ptr {w.gep('%memory', offset)}, ptr {w.gep('%arrays', k, 'ptr')}, align 8")
    following_state = w.gep("%memory", following)
    w.jump("test")
    w.label("test")
    w.assign("phi i64 [0, %start], [%k_next, %copied]", "%k")
    active = w.fcmp("ogt", w.load("%memory", (n - 1) * width), w.float_constant(0.0))
    in_range = w.assign(f"icmp slt i64 %k, {loop.most}")
    w.branch(w.assign(f"and i1 {w.any_lane(active)}, {in_range}"), "body", "end")
    w.label("body")
    w.assign("add i64 %k, 1", "%k_next")
    work = "" if width == 1 else ", ptr null"
    w.assign(f"call i64 @{body_symbol(loop)}(ptr %arrays{work})")
    w.jump("copy")
    w.label("copy")
    w.assign("phi i64 [0, %body], [%i_next, %copy]", "%i")
    target, source = (w.gep(p, w.assign(f"mul i64 %i, {width}")) for p in ("%memory", following_state))
    w.store(w.select(active, w.load(source), w.load(target)), target)
    w.assign("add i64 %i, 1", "%i_next")
    w.branch(w.assign(f"icmp slt i64 %i_next, {n}"), "copy", "copied")
    w.label("copied")
    w.jump("test")
    w.label("end")
    w.emit("ret void")
    yield f"define void @{symbol(loop)}(ptr noalias %memory) noinline {ATTRIBUTES} {{"
    yield from w.lines
    yield "}"
