"""Writing LLVM assembly: one function, instruction by instruction, on vectors of one width."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterable

Value = str
"""The name of a value in assembly, or a constant."""

ATTRIBUTES = 'nounwind alignstack(64) "prefer-vector-width"="512" "min-legal-vector-width"="512"'
"""Of every function: use the widest vectors there are, which some processors would be spared otherwise, and keep them
on the stack aligned: a vector that straddles two cache lines takes twice as long."""


def float_literal(x: float) -> str:
    """Return a number as LLVM writes it, bit by bit."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"


class IRWriter:
    """The body of a function on vectors of `width` numbers; `width` 1 means plain numbers.

    Attributes:
        real, whole, truth: LLVM's types of floating-point, 64-bit integer and truth values of this width.
    """

    def __init__(self, width: int):
        self.width = width
        self.float_type, self.int_type, self.bool_type = (self.vector_type(t) for t in ("double", "i64", "i1"))
        self.suffix = "f64" if width == 1 else f"v{width}f64"
        self.lines: list[str] = []
        self._numbers = itertools.count()

    def vector_type(self, element: str) -> str:
        """Return the type of a vector of such elements."""
        return element if self.width == 1 else f"<{self.width} x {element}>"

    def with_width(self, width: int) -> IRWriter:
        """Return a writer of the same function on vectors of another width."""
        other = IRWriter(width)
        other.lines, other._numbers = self.lines, self._numbers
        return other

    def float_constant(self, x: float) -> Value:
        """Return a floating-point constant in every lane."""
        return float_literal(x) if self.width == 1 else f"splat (double {float_literal(x)})"

    def int_constant(self, n: int) -> Value:
        """Return an integer constant in every lane."""
        return str(n) if self.width == 1 else f"splat (i64 {n})"

    def emit(self, text: str) -> None:
        """Write an instruction without a result."""
        self.lines.append(f"  {text}")

    def label(self, name: str) -> None:
        """Begin a block."""
        self.lines.append(f"{name}:")

    def assign(self, text: str, name: str | None = None) -> Value:
        """Write an instruction, return its result."""
        name = name or f"%t{next(self._numbers)}"
        self.emit(f"{name} = {text}")
        return name

    def float_op(self, name: str, a: Value, b: Value) -> Value:
        """Return a floating-point operation on two values: fadd, fsub, fmul, fdiv."""
        return self.assign(f"{name} {self.float_type} {a}, {b}")

    def int_op(self, name: str, a: Value, b: Value) -> Value:
        """Return an integer operation on two values."""
        return self.assign(f"{name} {self.int_type} {a}, {b}")

    def intrinsic(self, name: str, *values: Value) -> Value:
        """Return one of LLVM's own functions, fabs for example, of floating-point values."""
        return self.assign(
            f"call {self.float_type} @llvm.{name}.{self.suffix}({', '.join(f'{self.float_type} {v}' for v in values)})"
        )

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        """Return a*b + c, rounded once."""
        return self.intrinsic("fma", a, b, c)

    def fmuladd(self, a: Value, b: Value, c: Value) -> Value:
        """Return a*b + c, rounded once or twice, whichever takes less time."""
        return self.intrinsic("fmuladd", a, b, c)

    def fcmp(self, how: str, a: Value, b: Value) -> Value:
        """Return the truth of a floating-point comparison."""
        return self.assign(f"fcmp {how} {self.float_type} {a}, {b}")

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        """Return a where the condition holds and b elsewhere."""
        return self.assign(f"select {self.bool_type} {condition}, {self.float_type} {a}, {self.float_type} {b}")

    def bitcast_to_int(self, a: Value) -> Value:
        """Return the bits of a floating-point value."""
        return self.assign(f"bitcast {self.float_type} {a} to {self.int_type}")

    def bitcast_to_float(self, a: Value) -> Value:
        """Return the floating-point value with these bits."""
        return self.assign(f"bitcast {self.int_type} {a} to {self.float_type}")

    def horner(self, x: Value, coefficients: Iterable[float]) -> Value:
        """Return c[0] + c[1] x + c[2] x^2 + ... in the fewest instructions, one after the other."""
        *rest, value = [self.float_constant(c) for c in coefficients]
        for c in reversed(rest):
            value = self.fma(value, x, c)
        return value

    def estrin(self, x: Value, coefficients: Iterable[float]) -> Value:
        """Return the same by Estrin's scheme, pairs, pairs of pairs, ...: more instructions, side by side."""
        terms = [self.float_constant(c) for c in coefficients]
        while len(terms) > 1:
            last = [terms[-1]] if len(terms) % 2 else []
            terms = [self.fma(b, x, a) for a, b in zip(terms[::2], terms[1::2], strict=False)] + last
            x = self.float_op("fmul", x, x) if len(terms) > 1 else x
        return terms[0]

    def load(self, pointer: Value, offset: int | Value = 0, name: Value | None = None) -> Value:
        """Return the vector that lies `offset` numbers after a pointer."""
        return self.assign(f"load {self.float_type}, ptr {self.gep(pointer, offset)}, align 8", name)

    def load_broadcast(self, pointer: Value, offset: int, name: Value) -> Value:
        """Return the number that lies `offset` numbers after a pointer in every lane."""
        number = f"load double, ptr {self.gep(pointer, offset)}, align 8"
        if self.width == 1:
            return self.assign(number, name)
        one = self.assign(f"insertelement {self.float_type} poison, double {self.assign(number)}, i64 0")
        zeros = f"<{self.width} x i32> zeroinitializer"
        return self.assign(f"shufflevector {self.float_type} {one}, {self.float_type} poison, {zeros}", name)

    def store(self, value: Value, pointer: Value, offset: int | Value = 0) -> None:
        """Put a vector `offset` numbers after a pointer."""
        self.emit(f"store {self.float_type} {value}, ptr {self.gep(pointer, offset)}, align 8")

    def gep(self, pointer: Value, offset: int | Value, element: str = "double") -> Value:
        """Return the pointer `offset` elements further on."""
        if offset == 0:
            return pointer
        return self.assign(f"getelementptr inbounds {element}, ptr {pointer}, i64 {offset}")

    def logical_not(self, condition: Value) -> Value:
        """Return the opposite of a truth value."""
        return self.assign(f"xor {self.bool_type} {condition}, {'true' if self.width == 1 else 'splat (i1 true)'}")

    def any_lane(self, condition: Value) -> Value:
        """Return whether a truth value holds in any lane, an i1."""
        return self.assign(f"icmp ne i{self.width} {self.lane_mask(condition)}, 0") if self.width > 1 else condition

    def lane_mask(self, condition: Value) -> Value:
        """Return the truth of every lane as the bits of an integer of `width` bits."""
        return condition if self.width == 1 else self.assign(f"bitcast {self.bool_type} {condition} to i{self.width}")
