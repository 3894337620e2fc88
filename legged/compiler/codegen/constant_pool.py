"""Constants of vector code in pools of a few dozen numbers, from which instructions of AVX-512 broadcast them.

An arithmetic instruction of AVX-512 can read one number from memory and broadcast it to all lanes. LLVM does not use
this for splat constants with several uses: it broadcasts each of them into a register, which it then has to spill.
`pool_constants` therefore loads splat constants from pools right before their use. The distance of a constant from its
pool fits into one byte of an instruction; outside of pools it takes four, or an instruction for its address.
"""

from __future__ import annotations

import re

from legged.compiler.codegen.llvm import Target
from legged.compiler.ir.pass_times import compiler_pass

POOL_SIZE = 120
"""Largest number of constants in a pool; a distance of one byte reaches 128 numbers."""
_VECTOR_SIZE = 64
"""Size of the vectors of AVX-512, [bytes]."""
_ARITHMETIC = re.compile(r" = (?:fmul|fadd|fsub|call \S+ x \w+> @llvm\.fma|call \S+ x \w+> @llvm\.fmuladd)\b")


@compiler_pass("writing of LLVM IR")
def pool_constants(ir: str, target: Target) -> str:
    """Return a module in textual IR with the splat operands of arithmetic instructions in pools.

    Args:
        ir: The module.
        target: The target; without AVX-512 the module is returned unchanged.
    """
    width, element = target.width, target.element
    if width * element.size != _VECTOR_SIZE:
        return ir
    splat = re.compile(rf"splat \({element.llvm} (0x(?!0{{16}})[0-9A-F]{{16}})\)")
    vector = f"<{width} x {element.llvm}>"
    lines: list[str] = []
    pools: list[dict[str, int]] = []
    is_open = False  # whether the last pool has room, and its address is known in this basic block

    def load(match: re.Match[str]) -> str:
        nonlocal is_open
        if not is_open or len(pools[-1]) == POOL_SIZE:
            # The assembly hides the constant, so that LLVM computes the address once.
            lines.append(f'  %pool{len(pools)} = call ptr asm "", "=r,0"(ptr @pool{len(pools)})')
            pools.append({})
            is_open = True
        k, n = len(pools) - 1, len(lines)
        offset = pools[k].setdefault(match[1], len(pools[k]))
        lines.extend(
            [
                f"  %c{n} = getelementptr inbounds {element.llvm}, ptr %pool{k}, i64 {offset}",
                f"  %c{n}.number = load {element.llvm}, ptr %c{n}, align {element.size}, !invariant.load !0",
                f"  %c{n}.first = insertelement {vector} poison, {element.llvm} %c{n}.number, i64 0",
                f"  %c{n}.splat = shufflevector {vector} %c{n}.first, {vector} poison, <{width} x i32> zeroinitializer",
            ]
        )
        return f"%c{n}.splat"

    for line in ir.split("\n"):
        if not line.startswith(" "):  # a label, or the beginning or end of a function
            is_open = False
        elif "splat" in line and vector in line and _ARITHMETIC.search(line):
            line = splat.sub(load, line)
        lines.append(line)
    for k, pool in enumerate(pools):
        numbers = ", ".join(f"{element.llvm} {number}" for number in pool)
        lines.append(f"@pool{k} = internal constant [{len(pool)} x {element.llvm}] [{numbers}], align 64")
    return "\n".join([*lines, "!0 = !{}"] if pools else lines)
