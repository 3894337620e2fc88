"""Memory of an outlined graph: offsets of values, and the tables of addresses and constants for each bundle.

Values that pass from one bundle to another, to calls or to results lie in one working memory. Offsets count numbers;
for a batch of states each number is a vector. The outputs of a segment with similar lifetimes lie in one block, whose
memory is used again after their last use. Alike neighbors then find each other's values at equal distances, and a table
needs an entry for each neighbor instead of one for each value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from legged.compiler.ir.graph import Graph, Operand
from legged.compiler.ir.operations import CallResult, Loop, Matrix
from legged.compiler.ir.pass_times import compiler_pass
from legged.compiler.passes.call_batching import Call, calls_by_function, function_results, round_up
from legged.compiler.passes.outline.templates import Bundle, BundleType, Section, Template

_FOREVER = 1 << 60
"""Time of the last use of a result."""
_ALIGNMENT = 8
"""The arrays of calls begin at multiples of this many numbers."""


@dataclass
class CallBatch:
    """All calls of a function in a batch, with the offsets of its arrays of arguments and of results."""

    function: str
    calls: list[Call]
    input_offsets: list[int] = field(default_factory=list)
    output_offsets: list[int] = field(default_factory=list)


class MemoryPlan:
    """The offsets of all values.

    Attributes:
        constant_offsets: Offsets of the constants that are results or arguments of calls, and of 1.
        calls: The calls of each section.
        output_blocks: For each template its outputs, those of one block together.
        block_offsets: Offset of each block of the outputs of a bundle.
        size: Size of the memory.
        word: Size of a number, [bytes].
    """

    @compiler_pass("memory plan")
    def __init__(self, graph: Graph, sections: Sequence[Section], width: int, native: int, word: int):
        """Plan the memory.

        Args:
            graph: The graph.
            sections: All its nodes.
            width: Number of states that are computed together.
            native: Numbers in a vector of the processor.
            word: Size of a number, [bytes].
        """
        self.graph, self._width, self._native, self.word = graph, width, native, word
        self._values: dict[int, int] = {i: i for i in range(graph.input_size)}
        self.constant_offsets: dict[float, int] = {}
        self.calls: list[list[CallBatch]] = []
        self.block_offsets: dict[Bundle, list[int]] = {}
        self.size = graph.input_size
        self._free: dict[tuple[int, int], list[int]] = {}
        last_uses = _last_uses(graph, sections)
        self.output_blocks = _output_blocks(sections, last_uses)
        used = [*graph.results, *(a for section in sections for a in _arguments(graph, section))]
        for x in {1.0, *(a for a in used if isinstance(a, float))}:  # a set of numbers alone: value 0 equals 0.0
            self.constant_offsets[x] = self._allocate(1)
        self._assign_offsets(sections, last_uses)

    def offset(self, operand: Operand) -> int:
        """Return the offset of a value."""
        return self.constant_offsets[operand] if isinstance(operand, float) else self._values[operand]

    def _assign_offsets(self, sections: Sequence[Section], last_uses: dict[int, int]) -> None:
        ends: dict[int, list[tuple[int, int, int]]] = {}
        for time, item in _timeline(sections):
            if isinstance(item, Section):
                self.calls.append([self._call(*calls) for calls in calls_by_function(self.graph, item.calls).items()])
            else:
                self.block_offsets[item] = []
                for outputs in self.output_blocks[item.type.template]:
                    start = self._allocate(len(outputs), item.lanes)
                    self.block_offsets[item].append(start)
                    for lane, segment in enumerate(item.segments):
                        offsets = range(start + lane, start + lane + len(outputs) * item.lanes, item.lanes)
                        self._values.update(zip([segment.nodes[k] for k in outputs], offsets, strict=True))
                    end = max(last_uses.get(s.nodes[k], time) for s in item.segments for k in outputs)
                    ends.setdefault(end, []).append((start, len(outputs), item.lanes))
            for start, size, lanes in ends.pop(time, ()):
                self._free.setdefault((size, lanes), []).append(start)

    def _allocate(self, size: int, lanes: int = 1) -> int:
        """Return the offset of a free block, or of a new one."""
        pool = self._free.get((size, lanes))
        if pool:
            return pool.pop()
        return self._append(size * lanes, lanes)

    def _append(self, size: int, alignment: int) -> int:
        """Return the offset of new memory at the end."""
        start = round_up(self.size, alignment)
        self.size = start + size
        return start

    def _call(self, function: str, calls: list[Call]) -> CallBatch:
        batch = CallBatch(function, calls)
        if isinstance(function, Loop | Matrix):
            return self._function_call(function, batch)
        size = -(-round_up(len(calls) * self._width, self._native) // self._width)
        batch.input_offsets = [self._append(size, _ALIGNMENT) for _ in calls[0].arguments]
        batch.output_offsets = [self._append(size, _ALIGNMENT) for _ in function_results(function)]
        for k, call in enumerate(calls):
            for i in call.nodes:
                operation = self.graph.nodes[i - self.graph.input_size].operation
                result = "arctan2" if operation == "arctan" else operation
                self._values[i] = batch.output_offsets[function_results(function).index(result)] + k
        return batch

    def _function_call(self, function: Loop | Matrix, batch: CallBatch) -> CallBatch:
        """Plan the memory of the calls of a loop or of a product with a matrix, one block for each."""
        for call in batch.calls:
            start = self._append(function.memory, _ALIGNMENT)
            batch.input_offsets.append(start)
            for i in call.nodes:
                result = self.graph.nodes[i - self.graph.input_size].operation
                assert isinstance(result, CallResult)
                self._values[i] = start + function.result_offset + result.index
        return batch


def _timeline(sections: Sequence[Section]) -> Iterator[tuple[int, Bundle | Section]]:
    """Yield (time, item): the bundles of a section, then the section itself, which stands for its calls."""
    time = 0
    for section in sections:
        for item in (*section.bundles, section):
            yield time, item
            time += 1


def _arguments(graph: Graph, item: Bundle | Section) -> Iterator[Operand]:
    """Yield the operands of a bundle, or the arguments of the calls of a section."""
    if isinstance(item, Bundle):
        for segment in item.segments:
            yield from segment.operands
    else:
        for i in item.calls:
            yield from graph.nodes[i - graph.input_size].arguments


def _last_uses(graph: Graph, sections: Sequence[Section]) -> dict[int, int]:
    """Return the time of the last use of each value."""
    last: dict[int, int] = {}
    for time, item in _timeline(sections):
        last.update((a, time) for a in _arguments(graph, item) if isinstance(a, int))
    last.update((r, _FOREVER) for r in graph.results if isinstance(r, int))
    return last


def _output_blocks(sections: Sequence[Section], last_uses: dict[int, int]) -> dict[Template, list[list[int]]]:
    """Return the blocks of the outputs of each template: those whose longest lifetimes agree within a factor of 4."""
    lifetimes: dict[Template, dict[int, int]] = {}
    for time, item in _timeline(sections):
        if isinstance(item, Bundle):
            template = item.type.template
            longest = lifetimes.setdefault(template, dict.fromkeys(sorted(template.outputs), 0))
            for k in longest:
                longest[k] = max(longest[k], *(last_uses.get(s.nodes[k], time) - time for s in item.segments))
    blocks: dict[Template, list[list[int]]] = {}
    for template, longest in lifetimes.items():
        classes: dict[int, list[int]] = {}
        for k, lifetime in longest.items():
            classes.setdefault(lifetime.bit_length() // 2, []).append(k)
        blocks[template] = list(classes.values())
    return blocks


class Address(NamedTuple):
    """Address of an operand: a table entry plus a displacement.

    Attributes:
        entry: Number of the entry in the row of a bundle; entry -1 is zero in all rows.
        displacement: Distance from the offset in that entry to the operand, [bytes].
        layout: "contiguous" if the lanes lie side by side, "broadcast" if all lanes share one number, "gathered" if
            each lane has an entry of its own.
    """

    entry: int
    displacement: int
    layout: str = "contiguous"


class BundleTable:
    """The table of one type of bundles, with a row for each of them.

    Attributes:
        operands, outputs: Address of each operand, and of each block of outputs.
        offsets: Table of memory offsets, (rows, entries), [bytes].
        uniform_constants: The constants that are equal in all rows and lanes, by number.
        varying_constants: Column of each other constant in `constants`, by number; its lanes lie side by side.
        constants: Table of constants, (rows, columns).
    """

    def __init__(self, bundle_type: BundleType, bundles: Sequence[Bundle], plan: MemoryPlan, width: int):
        """Build the table of all bundles of a type for `width` states that are computed together."""
        lanes, word = bundle_type.lanes, plan.word
        self._columns: list[np.ndarray] = []
        self._entries: dict[tuple[bool, bytes], tuple[int, int]] = {}
        self._is_used = np.array([[lane < len(bundle.segments) for lane in range(lanes)] for bundle in bundles])
        rows = [[bundle.segments[min(k, len(bundle.segments) - 1)] for k in range(lanes)] for bundle in bundles]
        operands = np.array([[[plan.offset(x) for x in s.operands] for s in row] for row in rows], dtype=np.int64)
        blocks = np.array([plan.block_offsets[bundle] for bundle in bundles], dtype=np.int64)
        operands = np.moveaxis(operands, 2, 0) * (word * width)
        first, distances = operands[:, :, :1], word * np.arange(lanes)
        are_equal = (operands == first).all(axis=(1, 2)) & (lanes > 1)
        lie_side_by_side = ((operands == first + distances) | ~self._is_used).all(axis=(1, 2))
        layouts = np.where(are_equal, "broadcast", np.where(lie_side_by_side, "contiguous", "gathered")).tolist()
        are_fixed = (first == first[:, :1]).all(axis=(1, 2)).tolist()
        self.operands = [self._address(*each) for each in zip(operands, layouts, are_fixed, strict=True)]
        blocks = blocks.reshape(len(bundles), -1).T * (word * width)
        are_fixed = (blocks == blocks[:, :1]).all(axis=1).tolist()
        pairs = zip(blocks[..., None], are_fixed, strict=True)
        self.outputs = [self._address(offsets, "contiguous", is_fixed) for offsets, is_fixed in pairs]
        self.offsets = _stacked(self._columns, len(bundles))
        constants = np.array([[s.constants for s in row] for row in rows]).reshape(*self._is_used.shape, -1)
        self.uniform_constants: dict[int, float] = {}
        self.varying_constants: dict[int, int] = {}
        distinct: dict[bytes, np.ndarray] = {}
        for k, values in enumerate(np.moveaxis(constants, 2, 0)):
            if np.all(values == values[0, 0]):
                self.uniform_constants[k] = float(values[0, 0])
            else:
                distinct.setdefault(values.tobytes(), values)
                self.varying_constants[k] = list(distinct).index(values.tobytes()) * lanes
        self.constants = _stacked(list(distinct.values()), len(bundles))

    def _address(self, offsets: np.ndarray, layout: str, is_fixed: bool) -> Address:
        """Return the address for these offsets, (rows, lanes), [bytes], of the first lane alone if it is not gathered.

        Columns that differ by a constant share an entry; `is_fixed` states that the first lane has one offset.
        """
        origin = int(offsets[0, 0])
        if layout != "gathered":
            if is_fixed:
                return Address(-1, origin, layout)
            offsets = offsets[:, :1]
        relative = offsets - origin
        key = layout == "gathered", relative.tobytes()
        if key not in self._entries:
            self._entries[key] = sum(column.shape[1] for column in self._columns), origin
            self._columns.append(offsets)
        entry, known_origin = self._entries[key]
        return Address(entry, origin - known_origin, layout)


def _stacked(columns: Sequence[np.ndarray], rows: int) -> np.ndarray:
    return np.hstack(columns) if columns else np.zeros((rows, 0))
