"""Kernels of long graphs, whose values are in registers or in stack slots by the plan of `passes.registers`.

LLVM compiles them in about half of the time of code without a plan: at most as many values are live as there are
registers, and basic blocks are short. A branch that is never taken separates the blocks; LLVM would merge them
otherwise. The first of two stages of compilation (`cache.staged`) needs no plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from legged.compiler.codegen.element_type import ElementType
from legged.compiler.codegen.ir_writer import Value
from legged.compiler.codegen.kernels.scalar import KERNEL, KernelWriter
from legged.compiler.ir.graph import Graph, Operand, distinct_outputs
from legged.compiler.passes.pipeline import RegisterRequest

BLOCK = 500
"""Largest number of operations in a basic block."""
_RESERVED = 8
"""One of this number of registers is left out of the plan: for constants, for sums that check that results are finite,
and for operations that LLVM reorders."""
WITHOUT_PLAN = "; without a plan of registers"
"""A comment in kernels without a plan, whose code takes twice as long if LLVM optimizes them."""


class PlannedKernelWriter(KernelWriter):
    """Writes a kernel whose values are spilled to stack slots, and loaded again, by a register plan.

    Args:
        graph, width, native, element, name: As in `KernelWriter`.
        registers: Number of registers of the processor, None for the same operations in the same order without a plan.
    """

    def __init__(
        self,
        graph: Graph,
        width: int,
        native: int,
        element: ElementType,
        registers: int | None,
        name: str = KERNEL,
    ):
        self._has_plan = registers is not None
        request = RegisterRequest(registers and registers - registers // _RESERVED, width == 1)
        super().__init__(graph, width, native, element, name, registers=request)
        self._plan = self.passes.registers
        self._names: dict[int, Value] = {}
        self._block_size = self._blocks = 0
        if width > 1:
            self.store_early()

    def lines(self) -> Iterator[str]:
        head, *body, end = super().lines()
        yield head
        yield from () if self._has_plan else (WITHOUT_PLAN,)
        place = f"alloca {self.w.float_type}, align {self.w.element.size * self.w.width}"
        yield from (f"  %m{slot} = {place}" for slot in range(self._plan.size))
        yield from body
        if self._blocks:
            yield from ("never:", "  ret i64 0")
        yield end

    def compute_arguments(self, number: int) -> None:
        self._compute_phase(number)

    def compute_remaining(self) -> None:
        self._compute_phase(-1)

    def _compute_phase(self, number: int) -> None:
        """Compute the operations before a batch of calls, or after the last one; values in memory are loaded again."""
        self.computed.difference_update(self._addresses)
        self.compute(self._plan.phases[number])

    def compute(self, nodes: Iterable[int]) -> None:
        if not self._has_plan:
            return self._compute_without_plan([*nodes])
        w, slots, leaving = self.w, self._plan.slots, self._plan.leaving
        for i in nodes:
            if self._block_size == BLOCK:
                self._end_block()
            super().compute((i,))
            self._block_size += 1
            if i in slots:
                self._addresses[i] = f"%m{slots[i]}", 0
                w.store(f"%v{i}", *self._addresses[i])
            for a in leaving.get(i, ()):
                self.computed.discard(a)

    def _compute_without_plan(self, nodes: Sequence[int]) -> None:
        """Compute nodes in blocks of the same length."""
        while nodes:
            if self._block_size == BLOCK:
                self._end_block()
            now = nodes[: BLOCK - self._block_size]
            super().compute(now)
            self._block_size += len(now)
            nodes = nodes[len(now) :]

    def _end_block(self) -> None:
        """Begin the next basic block."""
        label = f"block{self._blocks}"
        self.w.branch(self.w.assign("icmp eq ptr %arrays, null"), "never", label)
        self.w.label(label)
        self._block_size, self._blocks = 0, self._blocks + 1

    def value(self, operand: Operand) -> Value:
        if type(operand) is not int:
            return self.w.float_constant(operand)
        if operand not in self.computed:
            self.load_value(operand)
        return self._names.get(operand) or f"%v{operand}"

    def load_value(self, operand: int) -> None:
        """Load a value from memory, each time under a new name, as LLVM assigns a name only once."""
        if operand in self._addresses:
            self.computed.add(operand)
            self._names[operand] = self.w.load(*self._addresses[operand])

    def before_branch(self, operands: Iterable[Operand]) -> None:
        """Load nothing: `store_in_branch` loads values inside of the branch, and forgets them after it."""

    def store_in_branch(self, operands: Iterable[Operand], start: int) -> None:
        known, names = set(self.computed), dict(self._names)
        super().store_in_branch(operands, start)
        self.computed, self._names = known, names

    def _store_results(self) -> Value:
        """Store the results one by one; arguments that are results are loaded first, as stores may overwrite them."""
        if self.w.width > 1:
            return super()._store_results()
        outputs = distinct_outputs(self.graph)
        for out in outputs:
            if type(out.operand) is int and out.operand < self.graph.input_size:
                self.value(out.operand)
        for out in outputs:
            value = self.value(out.operand)
            self._check_finite(value)
            self._store(value, out.entries)
        return self._not_finite()
