"""Plan of registers for long kernels: which values stay in registers between their uses, and which are spilled.

A long kernel has a thousand live values and 16 or 32 registers. LLVM's register allocator compares live ranges with
each other, which takes most of the time of compilation of a long kernel. In code with this plan, at most as many values
are live as there are registers. The others are spilled: stored once in a stack slot, where they are computed, and
loaded again at their next use. When registers run out, the value whose next use is the farthest is spilled (Belady's
rule). A loaded value stays in a register only if its next use is close; otherwise it is loaded again, which is cheap,
since an instruction of x86 can read one operand from memory.

`plan_registers` orders the operations, finds the next use of each operand, goes through the operations with a set of
the values in registers, and assigns stack slots to those that leave it before their last use. The code generator
`legged.compiler.codegen.kernels.planned` writes stores and loads by this plan. Results of comparisons (`CONDITIONS`)
are left out of it: they are in flags or masks, not in these registers.

Source: Belady, "A study of replacement algorithms for a virtual-storage computer", IBM Systems Journal 5(2), 1966.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from legged.compiler.ir.graph import Graph, Operand, distinct_arguments
from legged.compiler.ir.operations import CONDITIONS, is_call
from legged.compiler.ir.pass_times import compiler_pass
from legged.compiler.passes.call_batching import Batches
from legged.compiler.passes.scheduling import depth_first_phases

_CLOSE = 20
"""A value loaded from memory stays in a register if its next use is at most this number of operations later."""


class RegisterPlan(NamedTuple):
    """The order of a kernel's operations, and the values that are spilled. Values are given by their indices.

    Attributes:
        phases: The operations before each batch of calls and after the last one, in the order of their execution.
        slots: Spilled value -> index of its stack slot; it is stored where it is computed.
        size: Number of stack slots.
        leaving: Operation -> values whose registers are free after it, although they have later uses. Before a batch of
            calls all registers are freed.
    """

    phases: list[list[int]]
    slots: dict[int, int]
    size: int
    leaving: dict[int, list[int]]


@compiler_pass("plan of registers")
def plan_registers(graph: Graph, batches: Batches, registers: int | None, stores_last: bool) -> RegisterPlan:
    """Return the plan of the registers of a kernel.

    Args:
        graph: The graph, with fused multiply-adds. batches: The batches of calls, which `call_batches` returns.
        registers: Largest number of live values; None to order the operations alone, without spills.
        stores_last: Whether results are stored after all operations, not each as soon as it is computed.
    """
    phases = depth_first_phases(graph, [calls for calls, _ in batches])
    if registers is None:
        return RegisterPlan(phases, {}, 0, {})
    items = _items(graph, phases, batches)
    following, last = _following_uses(items, graph.results if stores_last else ())
    evicted, leaving = _evictions(graph, items, following, registers)
    slots, size = _stack_slots(items, _without_memory(graph, evicted), last)
    return RegisterPlan(phases, slots, size, leaving)


_Item = tuple[int | None, Sequence[int]]
"""The index of an operation, or None for a batch of calls, and the indices of its operands."""


def _items(graph: Graph, phases: Sequence[Sequence[int]], batches: Batches) -> list[_Item]:
    """Return all operations and batches of calls in the order of their execution; operands without conditions."""
    first, nodes = graph.input_size, graph.nodes
    conditions = {i for i, node in enumerate(nodes, first) if node[0] in CONDITIONS}

    def operands(calls: Sequence[int]) -> list[int]:
        used = chain.from_iterable(distinct_arguments([nodes[i - first] for i in calls]))
        return list(dict.fromkeys([a for a in used if type(a) is int and a not in conditions]))

    items: list[_Item] = []
    for k, phase in enumerate(phases):
        items += [(i, operands((i,))) for i in phase]
        if k < len(batches):
            items.append((None, operands(batches[k][0])))
    return items


def _following_uses(
    items: Sequence[_Item], results: Sequence[Operand]
) -> tuple[list[list[int | None]], dict[int, int]]:
    """Return the places of the next uses of the values of each item, and the place of the last use of each value.

    The values of an item are its operands and then, for an operation, its result. A place is the index of an item, or
    the number of items and more for results; None if there is no further use.

    Args:
        items: The items. results: Values that are used after all items.
    """
    end = len(items)
    after = {r: end + k for k, r in reversed(list(enumerate(results))) if type(r) is int}
    last = dict.fromkeys(after, end)
    following: list[list[int | None]] = []
    for place in range(end - 1, -1, -1):
        i, operands = items[place]
        uses = [after.get(a) for a in operands]
        if i is not None:
            uses.append(after.get(i))
        for a in operands:
            after[a] = place
            last.setdefault(a, place)
        following.append(uses)
    following.reverse()
    return following, last


class _Registers:
    """The values in registers, with the places of their next uses.

    Attributes:
        next_use: Value -> place of its next use.
    """

    def __init__(self) -> None:
        self.next_use: dict[int, int] = {}
        self._farthest_first: list[tuple[int, int]] = []  # heap of (-place, value); entries of former uses stay in it

    def hold(self, value: int, use: int) -> None:
        """Keep a value in a register until its next use."""
        self.next_use[value] = use
        heapq.heappush(self._farthest_first, (-use, value))

    def evict(self) -> int:
        """Free the register of the value whose next use is the farthest, and return the value."""
        while True:
            negative_use, value = heapq.heappop(self._farthest_first)
            if self.next_use.get(value) == -negative_use:
                del self.next_use[value]
                return value

    def clear(self) -> None:
        """Free all registers."""
        self.next_use.clear()
        self._farthest_first.clear()


def _evictions(
    graph: Graph, items: Sequence[_Item], following: Sequence[Sequence[int | None]], registers: int
) -> tuple[set[int], dict[int, list[int]]]:
    """Return the values that leave a register before their last use, and `RegisterPlan.leaving`."""
    first, nodes = graph.input_size, graph.nodes
    held = _Registers()
    evicted: set[int] = set()
    leaving: dict[int, list[int]] = {}
    for place, ((i, operands), uses) in enumerate(zip(items, following, strict=True)):
        if i is None:  # calls: their results are stored, and they overwrite all registers
            evicted.update(a for a, use in held.next_use.items() if use > place)
            evicted.update(a for a, use in zip(operands, uses, strict=True) if use is not None)
            held.clear()
            continue
        *uses_of_operands, use_of_result = uses
        gone = []
        for a, use in zip(operands, uses_of_operands, strict=True):
            if use is None:
                held.next_use.pop(a, None)
            elif a in held.next_use or use <= place + _CLOSE:
                held.hold(a, use)
            else:  # loaded for this operation alone
                gone.append(a)
        if use_of_result is not None and nodes[i - first][0] not in CONDITIONS:
            held.hold(i, use_of_result)
        while len(held.next_use) > registers:
            gone.append(held.evict())
            evicted.add(gone[-1])
        if gone:
            leaving[i] = gone
    return evicted, leaving


def _without_memory(graph: Graph, values: set[int]) -> set[int]:
    """Return the values that need a stack slot: inputs and results of calls are in memory already."""
    first, nodes = graph.input_size, graph.nodes
    return {a for a in values if a >= first and not is_call(nodes[a - first][0])}


def _stack_slots(items: Sequence[_Item], stored: set[int], last: dict[int, int]) -> tuple[dict[int, int], int]:
    """Return a stack slot for each spilled value, and the number of slots; it is free again after the last use.

    Args:
        items: The items. stored: The spilled values. last: Value -> place of its last use.
    """
    slots: dict[int, int] = {}
    ends: dict[int, list[int]] = {}
    free: list[int] = []
    size = 0
    for place, (i, _) in enumerate(items):
        if i in stored:
            if free:
                slot = heapq.heappop(free)
            else:
                slot, size = size, size + 1
            slots[i] = slot
            ends.setdefault(last[i], []).append(slot)
        for slot in ends.pop(place, ()):
            heapq.heappush(free, slot)
    return slots, size
