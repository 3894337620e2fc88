"""`IRWriter` builds the body of a function in LLVM's textual intermediate representation, instruction by instruction.

All floating-point values of one writer are vectors of the same element type and number of lanes; with one lane they are
plain numbers.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

from legged.compiler.codegen.element_type import FLOAT64, ElementType

Value = str
"""An operand in LLVM IR: the name of a value, such as %t7, or a literal."""

ATTRIBUTES = 'nounwind alignstack(64) "prefer-vector-width"="512" "min-legal-vector-width"="512"'
"""Attributes of every generated function. LLVM avoids 512-bit vectors on some processors unless it is asked to use
them. The stack is aligned to cache lines because spilling a vector across two lines takes twice as long."""
UNOPTIMIZED = f"noinline optnone {ATTRIBUTES}"
"""Attributes of functions with many branches and little arithmetic: LLVM's fast instruction selection takes half of the
time for them, and a call takes as long."""


@cache
def vector_type(element: str, width: int) -> str:
    """Return the LLVM type of a vector of `width` elements, the type of the element itself for one."""
    return element if width == 1 else f"<{width} x {element}>"


class IRWriter:
    """The body of a function whose values are vectors of `width` lanes.

    Methods that return a value append an instruction and return the name of its result.

    Attributes:
        width: Number of lanes; 1 for scalars.
        element: The element type.
        float_type, int_type, int32_type, bool_type: LLVM types of floating-point numbers, integers of the same size,
            32-bit integers, and truth values of this width.
        suffix: Suffix of the names of LLVM's intrinsic functions on `float_type`.
        lines: The instructions so far.
    """

    def __init__(self, width: int, element: ElementType):
        self.width, self.element = width, element
        self.float_type, self.int_type, self.int32_type, self.bool_type = (
            vector_type(scalar, width) for scalar in (element.llvm, element.int_type, "i32", "i1")
        )
        self.suffix = element.suffix if width == 1 else f"v{width}{element.suffix}"
        self.lines: list[str] = []
        self._numbers = itertools.count()

    def with_width(self, width: int) -> IRWriter:
        """Return a writer of another width that appends to the same function."""
        return self._joined(IRWriter(width, self.element))

    def with_doubles(self) -> IRWriter:
        """Return a writer of doubles that appends to the same function."""
        return self._joined(IRWriter(self.width, replace(FLOAT64, has_fma=self.element.has_fma)))

    def _joined(self, other: IRWriter) -> IRWriter:
        other.lines, other._numbers = self.lines, self._numbers
        return other

    def emit(self, instruction: str) -> None:
        """Append an instruction without result."""
        self.lines.append(f"  {instruction}")

    def assign(self, instruction: str, name: Value | None = None) -> Value:
        """Append an instruction and return the name of its result, a new one unless `name` is given."""
        if name is None:
            name = f"%t{next(self._numbers)}"
        self.lines.append(f"  {name} = {instruction}")
        return name

    def label(self, name: str) -> None:
        """Begin a basic block."""
        self.lines.append(f"{name}:")

    def jump(self, label: str) -> None:
        """End a basic block with an unconditional branch."""
        self.emit(f"br label %{label}")

    def branch(self, condition: Value, then: str, otherwise: str) -> None:
        """End a basic block with a branch on an i1."""
        self.emit(f"br i1 {condition}, label %{then}, label %{otherwise}")

    def float_constant(self, x: float) -> Value:
        """Return a constant in every lane, rounded to the element type."""
        literal = self.element.literal(x)
        return literal if self.width == 1 else f"splat ({self.element.llvm} {literal})"

    def int_constant(self, n: int) -> Value:
        """Return an integer constant of the size of a number in every lane."""
        return str(n) if self.width == 1 else f"splat ({self.element.int_type} {n})"

    def float_op(self, name: str, a: Value, b: Value) -> Value:
        """Return a binary floating-point operation: fadd, fsub, fmul or fdiv."""
        return self.assign(f"{name} {self.float_type} {a}, {b}")

    def int_op(self, name: str, a: Value, b: Value) -> Value:
        """Return a binary operation on integers of the size of a number."""
        return self.assign(f"{name} {self.int_type} {a}, {b}")

    def convert(self, operation: str, a: Value, other: IRWriter) -> Value:
        """Return numbers of this writer in the type of another one, by fpext or fptrunc."""
        return self.assign(f"{operation} {self.float_type} {a} to {other.float_type}")

    def intrinsic(self, name: str, *values: Value) -> Value:
        """Return the result of an intrinsic function of LLVM, such as fabs, on floating-point values."""
        arguments = ", ".join(f"{self.float_type} {v}" for v in values)
        return self.assign(f"call {self.float_type} @llvm.{name}.{self.suffix}({arguments})")

    def fmuladd(self, a: Value, b: Value, c: Value) -> Value:
        """Return a*b + c, fused where the processor has the instruction."""
        return self.intrinsic("fmuladd", a, b, c)

    def fcmp(self, predicate: str, a: Value, b: Value) -> Value:
        """Return a floating-point comparison."""
        return self.assign(f"fcmp {predicate} {self.float_type} {a}, {b}")

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        """Return a in the lanes where the condition is true, b in the others."""
        return self.assign(f"select {self.bool_type} {condition}, {self.float_type} {a}, {self.float_type} {b}")

    def logical_not(self, condition: Value) -> Value:
        """Return the negation of a truth value."""
        return self.assign(f"xor {self.bool_type} {condition}, {'true' if self.width == 1 else 'splat (i1 true)'}")

    def any_lane(self, condition: Value) -> Value:
        """Return an i1: whether the condition is true in any lane."""
        return self.assign(f"icmp ne i{self.width} {self.lane_mask(condition)}, 0") if self.width > 1 else condition

    def lane_mask(self, condition: Value) -> Value:
        """Return an integer of `width` bits, one for each lane of a condition."""
        return condition if self.width == 1 else self.assign(f"bitcast {self.bool_type} {condition} to i{self.width}")

    def bitcast_to_int(self, a: Value) -> Value:
        """Return the bits of a number as an integer."""
        return self.assign(f"bitcast {self.float_type} {a} to {self.int_type}")

    def bitcast_to_float(self, a: Value) -> Value:
        """Return the number with the bits of an integer."""
        return self.assign(f"bitcast {self.int_type} {a} to {self.float_type}")

    def horner(self, x: Value, coefficients: Iterable[float]) -> Value:
        """Return c[0] + c[1] x + c[2] x^2 + ... by Horner's scheme: the fewest instructions, in one chain."""
        *rest, value = [self.float_constant(c) for c in coefficients]
        for c in reversed(rest):
            value = self.fmuladd(value, x, c)
        return value

    def estrin(self, x: Value, coefficients: Iterable[float]) -> Value:
        """Return the same polynomial by Estrin's scheme: more instructions, but a chain of logarithmic length."""
        terms = [self.float_constant(c) for c in coefficients]
        while len(terms) > 1:
            last = [terms[-1]] if len(terms) % 2 else []
            terms = [self.fmuladd(b, x, a) for a, b in zip(terms[::2], terms[1::2], strict=False)] + last
            x = self.float_op("fmul", x, x) if len(terms) > 1 else x
        return terms[0]

    def gep(self, pointer: Value, offset: int | Value, element: str = "") -> Value:
        """Return a pointer advanced by `offset` elements (getelementptr), by default floating-point numbers."""
        if offset == 0:
            return pointer
        return self.assign(f"getelementptr inbounds {element or self.element.llvm}, ptr {pointer}, i64 {offset}")

    def load(self, pointer: Value, offset: int | Value = 0, name: Value | None = None) -> Value:
        """Return the `width` numbers that begin `offset` numbers after a pointer."""
        return self.assign(f"load {self.float_type}, ptr {self.gep(pointer, offset)}, align {self.element.size}", name)

    def load_number(self, pointer: Value, name: Value | None = None) -> Value:
        """Return the single number at a pointer."""
        return self.assign(f"load {self.element.llvm}, ptr {pointer}, align {self.element.size}", name)

    def store_number(self, number: Value, pointer: Value) -> None:
        """Store a single number at a pointer."""
        self.emit(f"store {self.element.llvm} {number}, ptr {pointer}, align {self.element.size}")

    def insert(self, vector: Value, number: Value, lane: int, name: Value | None = None) -> Value:
        """Return a vector with another number in one lane."""
        return self.assign(f"insertelement {self.float_type} {vector}, {self.element.llvm} {number}, i64 {lane}", name)

    def extract(self, vector: Value, lane: int, name: Value | None = None) -> Value:
        """Return the number in one lane of a vector."""
        return self.assign(f"extractelement {self.float_type} {vector}, i64 {lane}", name)

    def load_broadcast(self, pointer: Value, offset: int, name: Value) -> Value:
        """Return the number that lies `offset` numbers after a pointer, broadcast to every lane."""
        at = self.gep(pointer, offset)
        return self.load_number(at, name) if self.width == 1 else self.broadcast(self.load_number(at), name)

    def broadcast(self, number: Value, name: Value | None = None) -> Value:
        """Return a number in every lane."""
        if self.width == 1:
            return number
        first = self.insert("poison", number, 0)
        zeros = f"<{self.width} x i32> zeroinitializer"
        return self.assign(f"shufflevector {self.float_type} {first}, {self.float_type} poison, {zeros}", name)

    def store(self, value: Value, pointer: Value, offset: int | Value = 0) -> None:
        """Store the lanes of a value `offset` numbers after a pointer."""
        self.emit(f"store {self.float_type} {value}, ptr {self.gep(pointer, offset)}, align {self.element.size}")


_INTRINSIC_ARGUMENTS = {  # name -> number of arguments
    **dict.fromkeys(("sqrt", "floor", "rint", "fabs"), 1),
    **dict.fromkeys(("maximum", "minimum", "copysign"), 2),
    **dict.fromkeys(("fma", "fmuladd"), 3),
}


def with_entries(code: str, structures: Mapping[str, Sequence[str]]) -> str:
    """Return LLVM IR without its abbreviations for entries of structures, which are 64-bit integers.

    `%x = LOAD %p Structure.entry` loads an entry, `%x = POINTER %p Structure.entry` makes it a pointer, and
    `%x = AT %p Structure.entry` returns its address.

    Args:
        code: The code. structures: Names of the entries of each structure.
    """
    places = {f"{kind}.{entry}": k for kind, entries in structures.items() for k, entry in enumerate(entries)}

    def address(match: re.Match[str]) -> str:
        result, structure, entry = match.groups()
        return f"{result} = getelementptr i64, ptr {structure}, i64 {places[entry]}"

    for word, lines in (
        ("POINTER", r"\1.number = LOAD \2 \3" + "\n" + r"  \1 = inttoptr i64 \1.number to ptr"),
        ("LOAD", r"\1.at = AT \2 \3" + "\n" + r"  \1 = load i64, ptr \1.at, align 8"),
        ("AT", address),
    ):
        code = re.sub(rf"(%[\w.]+) = {word} (%\w+) (\w+\.\w+)", lines, code)
    return code


def shared_function(name: str, w: IRWriter, types: Sequence[str], write: Callable[..., Value]) -> Iterator[str]:
    """Yield an LLVM function with the result of `write(w, *arguments)`.

    Args:
        name: Its name. w: Writer of the function. types: LLVM types of the arguments. write: Writes the instructions.
    """
    names = [f"%x{k}" for k in range(len(types))]
    w.emit(f"ret {w.float_type} {write(w, *names)}")
    parameters = ", ".join(f"{kind} {x}" for kind, x in zip(types, names, strict=True))
    yield f"define internal {w.float_type} @{name}({parameters}) noinline {ATTRIBUTES} {{"
    yield from w.lines
    yield "}"


def intrinsic_declarations(w: IRWriter) -> Iterator[str]:
    """Yield the declarations of the intrinsic functions that kernels call, for the numbers of a writer."""
    for name, n in _INTRINSIC_ARGUMENTS.items():
        yield f"declare {w.float_type} @llvm.{name}.{w.suffix}({', '.join([w.float_type] * n)})"
