"""Code for one state with alike modules in the lanes of vectors, from the packs of `passes.slp`."""

from __future__ import annotations

from legged.compiler.codegen.ir_writer import IRWriter, Value, float_literal
from legged.compiler.codegen.scalar import Core
from legged.compiler.ir.graph import Graph, Operand
from legged.compiler.passes.call_batching import call_batches
from legged.compiler.passes.slp import Lane, Pack, lanes_of_nodes, matching_pack, vectorize

_INSTRUCTIONS = {"add": "fadd", "multiply": "fmul", "divide": "fdiv"}


class PackedCore(Core):
    """A core for one state that computes packs of operations as vectors."""

    def __init__(self, graph: Graph, native: int):
        super().__init__(graph, 1, native)
        early = {i for calls, needed in call_batches(graph) for i in (*calls, *needed)}
        self.vectorization = vectorize(graph, early, native)
        self._packs = self.vectorization.packs if self.vectorization else []
        self._lanes_of_nodes = lanes_of_nodes(self._packs)
        self._gathered: dict[tuple[Lane, ...], Value] = {}

    def rest(self) -> None:
        if self.vectorization is None:
            super().rest()
            return
        for item in self.vectorization.order:
            if isinstance(item, int):
                self.emit([item])
            else:
                self._compute(item)

    def value(self, operand: Operand) -> Value:
        """Return a value; one that lies in a lane is taken out at its first use."""
        if isinstance(operand, int) and operand in self._lanes_of_nodes and operand not in self.ready:
            self.ready.add(operand)
            k, lane = self._lanes_of_nodes[operand]
            pack, kind = self._packs[k], self._kind(self._packs[k])
            name = f"%v{operand}" if pack.result_signs[lane] > 0 else None
            taken = self.w.assign(f"extractelement {kind} {_name(pack)}, i64 {lane}", name)
            if name is None:
                self.w.assign(f"fneg double {taken}", f"%v{operand}")
        return super().value(operand)

    def _kind(self, pack: Pack) -> str:
        return IRWriter(len(pack.nodes)).float_type

    def _compute(self, pack: Pack) -> None:
        kind = self._kind(pack)
        a, b = (self._operand(lanes) for lanes in pack.operands)
        operation = _INSTRUCTIONS[pack.operation]
        if pack.operation == "add" and set(pack.operand_signs) == {-1}:
            operation = "fsub"
        elif pack.operation == "add" and -1 in pack.operand_signs:
            signs = _constants([float(s) for s in pack.operand_signs])
            b = self.w.assign(f"fmul contract {kind} {b}, {signs}")
        self.w.assign(f"{operation} contract {kind} {a}, {b}", _name(pack))

    def _operand(self, lanes: tuple[Lane, ...]) -> Value:
        """Return the vector with these lanes: that of another pack, or filled lane by lane."""
        k = matching_pack(lanes, self._lanes_of_nodes, self._packs)
        if k is not None:
            return _name(self._packs[k])
        if lanes not in self._gathered:
            self._gathered[lanes] = self._gather(lanes)
        return self._gathered[lanes]

    def _gather(self, lanes: tuple[Lane, ...]) -> Value:
        kind, n = IRWriter(len(lanes)).float_type, len(lanes)
        if all(isinstance(entry.operand, float) for entry in lanes):
            return _constants([float(entry.sign * entry.operand) for entry in lanes])
        if len(set(lanes)) == 1:
            one = self.w.assign(f"insertelement {kind} poison, double {self._lane(lanes[0])}, i64 0")
            return self.w.assign(f"shufflevector {kind} {one}, {kind} poison, <{n} x i32> zeroinitializer")
        vector = "poison"
        for lane, entry in enumerate(lanes):
            vector = self.w.assign(f"insertelement {kind} {vector}, double {self._lane(entry)}, i64 {lane}")
        return vector

    def _lane(self, entry: Lane) -> Value:
        if isinstance(entry.operand, float):
            return float_literal(entry.sign * entry.operand)
        value = self.value(entry.operand)
        return value if entry.sign > 0 else self.w.assign(f"fneg double {value}")


def _name(pack: Pack) -> Value:
    return f"%p{pack.nodes[0]}"


def _constants(numbers: list[float]) -> Value:
    return f"<{', '.join(f'double {float_literal(x)}' for x in numbers)}>"
