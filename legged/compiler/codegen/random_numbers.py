"""The random number generator Philox4x32-10 as LLVM IR and as C; `ir.philox` has the same in NumPy, and the source.

LLVM IR keeps the words of 32 bits in integers of 64 bits, which hold the products of two words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from legged.compiler.codegen.element_type import ElementType
from legged.compiler.codegen.ir_writer import IRWriter, Value
from legged.compiler.ir.philox import INCREMENTS, MULTIPLIERS, ROUNDS

C_NAME = "legged_random_uniform"
_LOW = 0xFFFFFFFF
"""Mask of the lower word of an integer."""
MOST_INLINED = 16
"""Largest number of uniform numbers whose 150 instructions a kernel repeats; kernels with more call a function."""


def uniform(w: IRWriter, arguments: Sequence[Value]) -> Value:
    """Write the instructions of a number that is uniform in [0, 1), and return it; see `ir.philox.uniform`.

    Args:
        w: Writer of the function. arguments: Seed, stream, step and draw.
    """
    integers = "i64" if w.width == 1 else f"<{w.width} x i64>"

    def constant(n: int) -> Value:
        return str(n) if w.width == 1 else f"splat (i64 {n})"

    def apply(operation: str, a: Value, b: Value | int) -> Value:
        return w.assign(f"{operation} {integers} {a}, {constant(b) if isinstance(b, int) else b}")

    words = [w.assign(f"fptoui {w.float_type} {x} to {integers}") for x in arguments]
    key, (c_0, c_1, c_2) = words[0], words[1:]
    c_3 = constant(0)
    # The first word of the key is the seed plus a multiple of the increment, the second one a constant in each round.
    for r in range(ROUNDS):
        low_key = apply("and", apply("add", key, r * INCREMENTS[0] & _LOW), _LOW) if r else key
        first, second = apply("mul", c_0, MULTIPLIERS[0]), apply("mul", c_2, MULTIPLIERS[1])
        c_0, c_1, c_2, c_3 = (
            apply("xor", apply("xor", apply("lshr", second, 32), c_1), low_key),
            apply("and", second, _LOW),
            apply("xor", apply("xor", apply("lshr", first, 32), c_3), r * INCREMENTS[1] & _LOW),
            apply("and", first, _LOW),
        )
    # The upper bits of two words, as many as a mantissa holds, divided by their range.
    bits = w.element.mantissa_bits + 1
    mantissa = apply("lshr", apply("or", apply("shl", c_0, 32), c_1), 64 - bits)
    number = w.assign(f"uitofp {integers} {mantissa} to {w.float_type}")
    return w.float_op("fmul", number, w.float_constant(2.0**-bits))


def c_function(real: str, element: ElementType) -> Iterator[str]:
    """Yield the C function of a uniform number.

    Args:
        real: Type of the numbers. element: Its description.
    """
    bits = element.mantissa_bits + 1
    yield "#include <stdint.h>"
    yield ""
    yield f"static {real} {C_NAME}(uint32_t seed, uint32_t stream, uint32_t step, uint32_t draw)"
    yield "{"
    yield "    uint32_t key[2] = {seed, 0u}, c[4] = {stream, step, draw, 0u};"
    yield f"    for (int i = 0; i < {ROUNDS}; ++i) {{"
    yield f"        const uint64_t first = (uint64_t){MULTIPLIERS[0]}u * c[0];"
    yield f"        const uint64_t second = (uint64_t){MULTIPLIERS[1]}u * c[2];"
    yield "        c[0] = (uint32_t)(second >> 32) ^ c[1] ^ key[0];"
    yield "        c[1] = (uint32_t)second;"
    yield "        c[2] = (uint32_t)(first >> 32) ^ c[3] ^ key[1];"
    yield "        c[3] = (uint32_t)first;"
    yield f"        key[0] += {INCREMENTS[0]}u;"
    yield f"        key[1] += {INCREMENTS[1]}u;"
    yield "    }"
    suffix = element.library_suffix
    yield f"    return ({real})(((uint64_t)c[0] << 32 | c[1]) >> {64 - bits}) * {2.0**-bits!r}{suffix};"
    yield "}"
