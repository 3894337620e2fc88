"""Kernels for one state with alike modules in vector lanes, from the packs of `passes.slp`."""

from __future__ import annotations

from legged.compiler.codegen.element_type import ElementType
from legged.compiler.codegen.ir_writer import Value, vector_type
from legged.compiler.codegen.kernels.scalar import KERNEL, KernelWriter
from legged.compiler.ir.graph import Graph
from legged.compiler.passes.slp import Lane, Pack, lanes_of_nodes

_INSTRUCTIONS = {"add": "fadd", "multiply": "fmul", "divide": "fdiv"}


class SLPKernelWriter(KernelWriter):
    """Writes a kernel for one state that computes each pack of operations as one vector operation."""

    flags = "contract "

    def __init__(self, graph: Graph, native: int, element: ElementType, name: str = KERNEL):
        super().__init__(graph, 1, native, element, name, pack_lanes=native)
        self._vectorization = self.passes.vectorization
        self._packs = self._vectorization.packs if self._vectorization else []
        self._lanes_of_nodes = lanes_of_nodes(self._packs)
        self._names_of_vectors = {pack.lanes: _name(pack) for pack in self._packs}
        self._gathered: dict[tuple[Lane, ...], Value] = {}

    def compute_remaining(self) -> None:
        if self._vectorization is None:
            super().compute_remaining()
            return
        for item in self._vectorization.order:
            if isinstance(item, int):
                self.compute([item])
            else:
                self._compute_pack(item)

    def load_value(self, operand: int) -> None:
        """Load a value in memory, or extract it from the lane of a vector, at its first use."""
        if operand not in self._lanes_of_nodes:
            super().load_value(operand)
            return
        self.computed.add(operand)
        k, lane = self._lanes_of_nodes[operand]
        pack = self._packs[k]
        name = f"%v{operand}" if pack.result_signs[lane] > 0 else None
        packed_type = vector_type(self.w.element.llvm, len(pack.nodes))
        extracted = self.w.assign(f"extractelement {packed_type} {_name(pack)}, i64 {lane}", name)
        if name is None:
            self.w.assign(f"fneg {self.w.float_type} {extracted}", f"%v{operand}")

    def _compute_pack(self, pack: Pack) -> None:
        packed_type = vector_type(self.w.element.llvm, len(pack.nodes))
        a, b = (self._vector(lanes) for lanes in pack.operands)
        instruction = _INSTRUCTIONS[pack.operation]
        if pack.operation == "add" and set(pack.operand_signs) == {-1}:
            instruction = "fsub"
        elif pack.operation == "add" and -1 in pack.operand_signs:
            signs = self._constant_vector([float(s) for s in pack.operand_signs])
            b = self.w.assign(f"fmul {self.flags}{packed_type} {b}, {signs}")
        self.w.assign(f"{instruction} {self.flags}{packed_type} {a}, {b}", _name(pack))

    def _vector(self, lanes: tuple[Lane, ...]) -> Value:
        """Return the vector with these lanes: the result of another pack, or one gathered lane by lane."""
        name = self._names_of_vectors.get(lanes) or self._gathered.get(lanes)
        if name is None:
            name = self._gathered[lanes] = self._gather(lanes)
        return name

    def _gather(self, lanes: tuple[Lane, ...]) -> Value:
        v = self.w.with_width(len(lanes))
        if all(isinstance(lane.operand, float) for lane in lanes):
            return self._constant_vector([float(lane.operand) for lane in lanes])
        if len(set(lanes)) == 1:
            return v.broadcast(self._scalar(lanes[0]))
        vector = "poison"
        for k, lane in enumerate(lanes):
            vector = v.insert(vector, self._scalar(lane), k)
        return vector

    def _scalar(self, lane: Lane) -> Value:
        """Return the content of one lane."""
        if isinstance(lane.operand, float):
            return self.w.float_constant(lane.operand)
        value = self.value(lane.operand)
        return value if lane.sign > 0 else self.w.assign(f"fneg {self.w.float_type} {value}")

    def _constant_vector(self, numbers: list[float]) -> Value:
        element = self.w.element
        return f"<{', '.join(f'{element.llvm} {element.literal(x)}' for x in numbers)}>"


def _name(pack: Pack) -> Value:
    return f"%p{pack.nodes[0]}"
