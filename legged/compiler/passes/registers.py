"""Plan of registers for long kernels: which values stay in registers between their uses, and which are spilled.

A long kernel has a thousand live values and 16 or 32 registers. LLVM's register allocator compares live ranges with
each other, which takes most of the time of compilation of a long kernel. In code with this plan, at most as many values
are live as there are registers. The others are spilled: stored once in a stack slot, where they are computed, and
loaded again at their next use. When registers run out, the value whose next use is the farthest is spilled (Belady's
rule). A loaded value stays in a register only if its next use is close; otherwise it is loaded again, which is cheap,
since an instruction of x86 can read one operand from memory.

Source: Belady, "A study of replacement algorithms for a virtual-storage computer", IBM Systems Journal 5(2), 1966.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple

from legged.compiler.ir.graph import Graph, Operand
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
        leaving: Operation -> values whose registers are free after it. Before a batch of calls all registers are freed.
    """

    phases: list[list[int]]
    slots: dict[int, int]
    size: int
    leaving: dict[int, list[int]]


@compiler_pass("plan of registers")
def plan_registers(graph: Graph, batches: Batches, registers: int, stores_last: bool) -> RegisterPlan:
    """Return the plan of the registers of a kernel.

    Args:
        graph: The graph, with fused multiply-adds. batches: The batches of calls.
        registers: Largest number of live values.
        stores_last: Whether results are stored after all operations, not each as soon as it is computed.
    """
    phases = depth_first_phases(graph, [calls for calls, _ in batches])
    items = _items(graph, phases, batches)
    following, last = _following_uses(items, graph.results if stores_last else ())
    stored, leaving = _evicted(graph, items, following, registers)
    slots, size = _slots(items, stored, last)
    return RegisterPlan(phases, slots, size, leaving)


_Item = tuple[int | None, Sequence[int]]
"""The index of an operation, or None for a batch of calls, and the indices of its operands."""


def _items(graph: Graph, phases: Sequence[Sequence[int]], batches: Batches) -> list[_Item]:
    """Return all operations and batches of calls in the order of their execution; operands without truth values."""
    first, nodes = graph.input_size, graph.nodes
    conditions = {i for i, node in enumerate(nodes, first) if node[0] in CONDITIONS}

    def operands(calls: Sequence[int]) -> list[int]:
        used = [a for i in calls for a in nodes[i - first][1] if type(a) is int and a not in conditions]
        return list(dict.fromkeys(used))

    items: list[_Item] = []
    for k, phase in enumerate(phases):
        items += [(i, operands((i,))) for i in phase]
        if k < len(batches):
            items.append((None, operands(batches[k][0])))
    return items


def _following_uses(
    items: Sequence[_Item], results: Sequence[Operand]
) -> tuple[list[list[int | None]], dict[int, int]]:
    """Return the places of the next uses of the operands and the result of each item, and of each value's last use.

    A place is the index of an item, or the number of items and more for results; None if there is no further use.

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


def _evicted(
    graph: Graph, items: Sequence[_Item], following: Sequence[Sequence[int | None]], registers: int
) -> tuple[set[int], dict[int, list[int]]]:
    """Return the spilled values, which need stack slots, and `RegisterPlan.leaving`.

    Inputs and results of calls need no slot: they are in memory already.
    """
    first, nodes = graph.input_size, graph.nodes
    held: dict[int, int] = {}  # value in a register -> place of its next use
    heap: list[tuple[int, int]] = []
    evicted: set[int] = set()
    leaving: dict[int, list[int]] = {}
    for place, ((i, operands), uses) in enumerate(zip(items, following, strict=True)):
        if i is None:
            evicted.update(a for a, use in held.items() if use > place)
            evicted.update(a for a, use in zip(operands, uses, strict=True) if use is not None)
            held.clear()
            heap.clear()
            continue
        gone = []
        for a, use in zip(operands, uses, strict=False):
            if use is None:
                held.pop(a, None)
            elif a in held or use <= place + _CLOSE:
                held[a] = use
                heapq.heappush(heap, (-use, a))
            else:
                gone.append(a)
        use = uses[-1]
        if use is not None and nodes[i - first][0] not in CONDITIONS:
            held[i] = use
            heapq.heappush(heap, (-use, i))
        while len(held) > registers:
            use, a = heapq.heappop(heap)
            if held.get(a) == -use:
                del held[a]
                evicted.add(a)
                gone.append(a)
        if gone:
            leaving[i] = gone
    return {a for a in evicted if a >= first and not is_call(nodes[a - first][0])}, leaving


def _slots(items: Sequence[_Item], stored: set[int], last: dict[int, int]) -> tuple[dict[int, int], int]:
    """Return a stack slot for each spilled value, which is free again after its last use, and the number of slots."""
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
