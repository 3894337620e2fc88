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


def constant(x: float) -> str:
    """Return a number as LLVM writes it, bit by bit."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"


class Writer:
    """The body of a function on vectors of `width` numbers; `width` 1 means plain numbers.

    Attributes:
        real, whole, truth: LLVM's types of floating-point, 64-bit integer and truth values of this width.
    """

    def __init__(self, width: int):
        self.width = width
        self.real, self.whole, self.truth = (self.type(t) for t in ("double", "i64", "i1"))
        self.suffix = "f64" if width == 1 else f"v{width}f64"
        self.lines: list[str] = []
        self._numbers = itertools.count()

    def type(self, element: str) -> str:
        """Return the type of a vector of such elements."""
        return element if self.width == 1 else f"<{self.width} x {element}>"

    def of_width(self, width: int) -> Writer:
        """Return a writer of the same function on vectors of another width."""
        other = Writer(width)
        other.lines, other._numbers = self.lines, self._numbers
        return other

    def number(self, x: float) -> Value:
        """Return a floating-point constant in every lane."""
        return constant(x) if self.width == 1 else f"splat (double {constant(x)})"

    def integer(self, n: int) -> Value:
        """Return an integer constant in every lane."""
        return str(n) if self.width == 1 else f"splat (i64 {n})"

    def line(self, text: str) -> None:
        """Write an instruction without a result."""
        self.lines.append(f"  {text}")

    def label(self, name: str) -> None:
        """Begin a block."""
        self.lines.append(f"{name}:")

    def let(self, text: str, name: str | None = None) -> Value:
        """Write an instruction, return its result."""
        name = name or f"%t{next(self._numbers)}"
        self.line(f"{name} = {text}")
        return name

    def op(self, name: str, a: Value, b: Value) -> Value:
        """Return a floating-point operation on two values: fadd, fsub, fmul, fdiv."""
        return self.let(f"{name} {self.real} {a}, {b}")

    def bits(self, name: str, a: Value, b: Value) -> Value:
        """Return an integer operation on two values."""
        return self.let(f"{name} {self.whole} {a}, {b}")

    def call(self, name: str, *values: Value) -> Value:
        """Return one of LLVM's own functions, fabs for example, of floating-point values."""
        return self.let(f"call {self.real} @llvm.{name}.{self.suffix}({', '.join(f'{self.real} {v}' for v in values)})")

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        """Return a*b + c, rounded once."""
        return self.call("fma", a, b, c)

    def multiply_add(self, a: Value, b: Value, c: Value) -> Value:
        """Return a*b + c, rounded once or twice, whichever takes less time."""
        return self.call("fmuladd", a, b, c)

    def compare(self, how: str, a: Value, b: Value) -> Value:
        """Return the truth of a floating-point comparison."""
        return self.let(f"fcmp {how} {self.real} {a}, {b}")

    def choose(self, condition: Value, a: Value, b: Value) -> Value:
        """Return a where the condition holds and b elsewhere."""
        return self.let(f"select {self.truth} {condition}, {self.real} {a}, {self.real} {b}")

    def as_bits(self, a: Value) -> Value:
        """Return the bits of a floating-point value."""
        return self.let(f"bitcast {self.real} {a} to {self.whole}")

    def as_number(self, a: Value) -> Value:
        """Return the floating-point value with these bits."""
        return self.let(f"bitcast {self.whole} {a} to {self.real}")

    def horner(self, x: Value, coefficients: Iterable[float]) -> Value:
        """Return c[0] + c[1] x + c[2] x^2 + ... in the fewest instructions, one after the other."""
        *rest, value = [self.number(c) for c in coefficients]
        for c in reversed(rest):
            value = self.fma(value, x, c)
        return value

    def estrin(self, x: Value, coefficients: Iterable[float]) -> Value:
        """Return the same by Estrin's scheme, pairs, pairs of pairs, ...: more instructions, side by side."""
        terms = [self.number(c) for c in coefficients]
        while len(terms) > 1:
            last = [terms[-1]] if len(terms) % 2 else []
            terms = [self.fma(b, x, a) for a, b in zip(terms[::2], terms[1::2], strict=False)] + last
            x = self.op("fmul", x, x) if len(terms) > 1 else x
        return terms[0]

    def load(self, pointer: Value, offset: int | Value = 0, name: Value | None = None) -> Value:
        """Return the vector that lies `offset` numbers after a pointer."""
        return self.let(f"load {self.real}, ptr {self.at(pointer, offset)}, align 8", name)

    def spread(self, pointer: Value, offset: int, name: Value) -> Value:
        """Return the number that lies `offset` numbers after a pointer in every lane."""
        number = f"load double, ptr {self.at(pointer, offset)}, align 8"
        if self.width == 1:
            return self.let(number, name)
        one = self.let(f"insertelement {self.real} poison, double {self.let(number)}, i64 0")
        zeros = f"<{self.width} x i32> zeroinitializer"
        return self.let(f"shufflevector {self.real} {one}, {self.real} poison, {zeros}", name)

    def store(self, value: Value, pointer: Value, offset: int | Value = 0) -> None:
        """Put a vector `offset` numbers after a pointer."""
        self.line(f"store {self.real} {value}, ptr {self.at(pointer, offset)}, align 8")

    def at(self, pointer: Value, offset: int | Value, element: str = "double") -> Value:
        """Return the pointer `offset` elements further on."""
        if offset == 0:
            return pointer
        return self.let(f"getelementptr inbounds {element}, ptr {pointer}, i64 {offset}")

    def negation(self, condition: Value) -> Value:
        """Return the opposite of a truth value."""
        return self.let(f"xor {self.truth} {condition}, {'true' if self.width == 1 else 'splat (i1 true)'}")

    def any(self, condition: Value) -> Value:
        """Return whether a truth value holds in any lane, an i1."""
        return self.let(f"icmp ne i{self.width} {self.mask(condition)}, 0") if self.width > 1 else condition

    def mask(self, condition: Value) -> Value:
        """Return the truth of every lane as the bits of an integer of `width` bits."""
        return condition if self.width == 1 else self.let(f"bitcast {self.truth} {condition} to i{self.width}")
