"""Where a large graph's values lie in memory while it is computed: see `segments`.

Values that pass from one segment to another, or to calls and results, have places in one memory, counted in numbers;
for a block of states each number is a vector. The outputs of a segment that live about equally long
lie in one block, the lanes of each side by side, whose place is used again once all of them are done with. So alike
neighbors find each other's values at equal distances, and a table needs an entry for each neighbor, not for each
value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from legged.compiler.ir.graph import Graph, Operand
from legged.compiler.passes.call_batching import Use, results_of, rounded, uses_of
from legged.compiler.passes.outline.bundles import Phase, Row
from legged.compiler.passes.outline.templates import Form

_FOR_GOOD = 1 << 60
_ALIGNED = 8
"""Arrays for calls begin at multiples of so many numbers."""


@dataclass
class Call:
    """A function of many arguments: its name, the uses, and where its arrays of arguments and of results are."""

    function: str
    uses: list[Use]
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)


class Storage:
    """The places of all values.

    Attributes:
        constants: Places of the constants that are results or arguments of calls, and of 1.
        calls: The calls of each phase.
        blocks: For each form, outputs that lie in one block.
        bases: Where each block of a row's outputs begins.
        size: Of the memory.
    """

    def __init__(self, graph: Graph, phases: Sequence[Phase], width: int, native: int):
        self.graph, self._width, self._native = graph, width, native
        self._values: dict[int, int] = {i: i for i in range(graph.input_size)}
        self.constants: dict[float, int] = {}
        self.calls: list[list[Call]] = []
        self.bases: dict[Row, list[int]] = {}
        self.size = graph.input_size
        self._free: dict[tuple[int, int], list[int]] = {}
        last = _last_uses(graph, phases)
        self.blocks = _blocks(phases, last)
        for x in {1.0, *graph.results, *(a for phase in phases for a in _arguments(graph, phase))}:
            if isinstance(x, float):
                self.constants[x] = self._take(1)
        self._place(phases, last)

    def place(self, operand: Operand) -> int:
        """Return where a value is."""
        return self.constants[operand] if isinstance(operand, float) else self._values[operand]

    def _place(self, phases: Sequence[Phase], last: dict[int, int]) -> None:
        ends: dict[int, list[tuple[int, int, int]]] = {}
        for time, item in _in_time(phases):
            if isinstance(item, Phase):
                self.calls.append([self._call(*uses) for uses in uses_of(self.graph, item.calls).items()])
            else:
                self.bases[item] = []
                for outputs in self.blocks[item.kind.form]:
                    start = self._take(len(outputs), item.lanes)
                    self.bases[item].append(start)
                    for lane, segment in enumerate(item.segments):
                        places = range(start + lane, start + lane + len(outputs) * item.lanes, item.lanes)
                        self._values.update(zip([segment.nodes[k] for k in outputs], places, strict=True))
                    end = max(last.get(s.nodes[k], time) for s in item.segments for k in outputs)
                    ends.setdefault(end, []).append((start, len(outputs), item.lanes))
            for start, size, lanes in ends.pop(time, ()):
                self._free.setdefault((size, lanes), []).append(start)

    def _take(self, size: int, lanes: int = 1) -> int:
        pool = self._free.get((size, lanes))
        if pool:
            return pool.pop()
        return self._append(size * lanes, lanes)

    def _append(self, size: int, step: int) -> int:
        """Return where at the end of the memory there is room, at a multiple of `step`."""
        start = rounded(self.size, step)
        self.size = start + size
        return start

    def _call(self, function: str, uses: list[Use]) -> Call:
        call = Call(function, uses)
        room = -(-rounded(len(uses) * self._width, self._native) // self._width)
        call.inputs = [self._append(room, _ALIGNED) for _ in call.uses[0].arguments]
        call.outputs = [self._append(room, _ALIGNED) for _ in results_of(function)]
        for k, use in enumerate(call.uses):
            for i in use.nodes:
                operation = self.graph.nodes[i - self.graph.input_size].operation
                result = "arctan2" if operation == "arctan" else operation
                self._values[i] = call.outputs[results_of(function).index(result)] + k
        return call


def _in_time(phases: Sequence[Phase]) -> Iterator[tuple[int, Row | Phase]]:
    """Yield (time, what happens): the rows of a phase, then the phase itself, which stands for its calls."""
    time = 0
    for phase in phases:
        for item in (*phase.rows, phase):
            yield time, item
            time += 1


def _arguments(graph: Graph, item: Row | Phase) -> Iterator[Operand]:
    """Yield what a row takes from outside, or the calls of a phase."""
    if isinstance(item, Row):
        for segment in item.segments:
            yield from segment.operands
    else:
        for i in item.calls:
            yield from graph.nodes[i - graph.input_size].arguments


def _last_uses(graph: Graph, phases: Sequence[Phase]) -> dict[int, int]:
    """Return when each value is needed for the last time."""
    last: dict[int, int] = {}
    for time, item in _in_time(phases):
        last.update((a, time) for a in _arguments(graph, item) if isinstance(a, int))
    last.update((r, _FOR_GOOD) for r in graph.results if isinstance(r, int))
    return last


def _blocks(phases: Sequence[Phase], last: dict[int, int]) -> dict[Form, list[list[int]]]:
    """Return the outputs of each form, those in one block whose longest lives are equal within a factor of four."""
    lives: dict[Form, dict[int, int]] = {}
    for time, item in _in_time(phases):
        if isinstance(item, Row):
            form = item.kind.form
            longest = lives.setdefault(form, dict.fromkeys(sorted(form.outputs), 0))
            for k in longest:
                longest[k] = max(longest[k], *(last.get(s.nodes[k], time) - time for s in item.segments))
    blocks: dict[Form, list[list[int]]] = {}
    for form, longest in lives.items():
        classes: dict[int, list[int]] = {}
        for k, life in longest.items():
            classes.setdefault(life.bit_length() // 2, []).append(k)
        blocks[form] = list(classes.values())
    return blocks
