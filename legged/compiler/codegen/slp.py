"""The core for one state with alike modules in the lanes of vectors; see `lanes` and `lowering`."""

from __future__ import annotations

from legged.compiler.codegen.ir_writer import IRWriter, Value, float_literal
from legged.compiler.codegen.scalar import Core
from legged.compiler.ir.graph import Graph, Operand
from legged.compiler.passes.call_batching import rounds
from legged.compiler.passes.slp import packs

_INSTRUCTIONS = {"add": "fadd", "multiply": "fmul", "divide": "fdiv"}


class PackedCore(Core):
    """A core for one state that computes packs of operations as vectors."""

    def __init__(self, graph: Graph, native: int):
        super().__init__(graph, 1, native)
        early = {i for calls, needed in rounds(graph) for i in (*calls, *needed)}
        self.plan = packs.plan(graph, early, native)
        self._packs = self.plan.packs if self.plan else []
        self._owners = packs.owners_of(self._packs)
        self._gathered: dict[tuple[packs.Entry, ...], Value] = {}

    def rest(self) -> None:
        if self.plan is None:
            super().rest()
            return
        for item in self.plan.order:
            if isinstance(item, int):
                self.emit([item])
            else:
                self._compute(item)

    def value(self, operand: Operand) -> Value:
        """Return a value; one that lies in a lane is taken out at its first use."""
        if isinstance(operand, int) and operand in self._owners and operand not in self.ready:
            self.ready.add(operand)
            k, lane = self._owners[operand]
            pack, kind = self._packs[k], self._kind(self._packs[k])
            name = f"%v{operand}" if pack.own[lane] > 0 else None
            taken = self.w.assign(f"extractelement {kind} {_name(pack)}, i64 {lane}", name)
            if name is None:
                self.w.assign(f"fneg double {taken}", f"%v{operand}")
        return super().value(operand)

    def _kind(self, pack: packs.Pack) -> str:
        return IRWriter(len(pack.nodes)).float_type

    def _compute(self, pack: packs.Pack) -> None:
        kind = self._kind(pack)
        a, b = (self._slot(slot) for slot in pack.slots)
        operation = _INSTRUCTIONS[pack.operation]
        if pack.operation == "add" and set(pack.signs) == {-1}:
            operation = "fsub"
        elif pack.operation == "add" and -1 in pack.signs:
            signs = _constants([float(s) for s in pack.signs])
            b = self.w.assign(f"fmul contract {kind} {b}, {signs}")
        self.w.assign(f"{operation} contract {kind} {a}, {b}", _name(pack))

    def _slot(self, slot: tuple[packs.Entry, ...]) -> Value:
        """Return the vector of a slot: that of another pack, or filled lane by lane."""
        k = packs.vector_of(slot, self._owners, self._packs)
        if k is not None:
            return _name(self._packs[k])
        if slot not in self._gathered:
            self._gathered[slot] = self._gather(slot)
        return self._gathered[slot]

    def _gather(self, slot: tuple[packs.Entry, ...]) -> Value:
        kind, n = IRWriter(len(slot)).float_type, len(slot)
        if all(isinstance(entry.operand, float) for entry in slot):
            return _constants([float(entry.sign * entry.operand) for entry in slot])
        if len(set(slot)) == 1:
            one = self.w.assign(f"insertelement {kind} poison, double {self._lane(slot[0])}, i64 0")
            return self.w.assign(f"shufflevector {kind} {one}, {kind} poison, <{n} x i32> zeroinitializer")
        vector = "poison"
        for lane, entry in enumerate(slot):
            vector = self.w.assign(f"insertelement {kind} {vector}, double {self._lane(entry)}, i64 {lane}")
        return vector

    def _lane(self, entry: packs.Entry) -> Value:
        if isinstance(entry.operand, float):
            return float_literal(entry.sign * entry.operand)
        value = self.value(entry.operand)
        return value if entry.sign > 0 else self.w.assign(f"fneg double {value}")


def _name(pack: packs.Pack) -> Value:
    return f"%p{pack.nodes[0]}"


def _constants(numbers: list[float]) -> Value:
    return f"<{', '.join(f'double {float_literal(x)}' for x in numbers)}>"
