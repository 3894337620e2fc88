"""Which operations of a large graph belong together, and in which order they are done: the turns of its loops.

A turn is what carries one label. A trace goes through the bodies once for twists and once more for wrenches; here a
body's wrench is put right behind its twist if nothing is missing, and both become one turn: what passes between them
stays in registers. Traces also share what they meet twice, under the label of whoever came first: a product of a
body's velocities that its child needed before the body itself is given back to the body.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence

from legged.compiler.ir.annotations import Label
from legged.compiler.ir.graph import Graph
from legged.compiler.ir.operations import LIBRARY_FUNCTIONS

LARGEST = 1_500
"""Operations in a turn at most: LLVM takes more than twice as long for a function of twice the length."""


def in_turns(graph: Graph, nodes: Sequence[int]) -> list[list[int]]:
    """Return some nodes of a graph turn by turn, in an order that works."""
    first = graph.input_size
    owner, labels = _owners(graph, nodes)
    runs: list[list[int]] = [[] for _ in labels]
    waits: list[set[int]] = [set() for _ in labels]
    users: list[list[int]] = [[] for _ in labels]
    for i, run in owner.items():
        runs[run].append(i)
        waits[run].update([owner[a] for a in graph.nodes[i - first].arguments if isinstance(a, int) and a in owner])
    for run, others in enumerate(waits):
        others.discard(run)
        for other in others:
            users[other].append(run)
    turns = [(label.module, label.item) if label.item is not None else None for label in labels]
    return _fused(runs, turns, _order(turns, waits, users))


def _owners(graph: Graph, nodes: Sequence[int]) -> tuple[dict[int, int], list[Label]]:
    """Return (the run of each node, the labels of the runs): a run ends where the label changes.

    A node that only combines what was made before, by an earlier run of the same stage, and that this run's label
    needs too, belongs to that run. It does not if it takes constants, inputs or results of calls, which are its own
    label's.
    """
    first, (run_of, labels) = graph.input_size, _runs(graph, nodes)
    numbers: dict[Label, int] = {}
    kinds = [numbers.setdefault(label, len(numbers)) for label in labels]
    earliest: dict[int, int] = {}
    for i, run in run_of.items():
        operation, arguments, label = graph.nodes[i - first]
        source = max([earliest.get(a, run) if isinstance(a, int) else run for a in arguments])
        movable = operation not in LIBRARY_FUNCTIONS and labels[source].stage == label.stage
        earliest[i] = source if movable else run
    owner = dict.fromkeys(run_of, 0)
    needed_by: dict[int, set[int]] = {}  # runs
    for i, run in reversed(run_of.items()):
        needing, source = needed_by.get(i, {run}), earliest[i]
        owner[i] = source if kinds[source] in {kinds[k] for k in needing} else min(run, *needing)
        for a in graph.nodes[i - first].arguments:
            if isinstance(a, int):
                needed_by.setdefault(a, set()).add(owner[i])
    return owner, labels


def _runs(graph: Graph, nodes: Sequence[int]) -> tuple[dict[int, int], list[Label]]:
    """Return (the run of each node, the labels of the runs)."""
    run_of: dict[int, int] = {}
    labels: list[Label] = []
    first, before, size = graph.input_size, None, 0
    for i in nodes:
        label = graph.nodes[i - first].label
        if label != before or size == LARGEST:
            labels.append(label)
            before, size = label, 0
        size += 1
        run_of[i] = len(labels) - 1
    return run_of, labels


def _order(turns: Sequence[object], waits: list[set[int]], users: Sequence[Sequence[int]]) -> Iterator[int]:
    """Yield the runs: those of the same turn one after the other as long as any is ready, else in order of tracing."""
    ready: dict[object, list[int]] = {}
    everywhere: list[int] = []
    fresh = [k for k, others in enumerate(waits) if not others]
    done: set[int] = set()
    k: int | None = None
    while True:
        for new in fresh:
            heapq.heappush(everywhere, new)
            heapq.heappush(ready.setdefault(turns[new], []), new)
        same = ready.get(turns[k], []) if k is not None and turns[k] is not None else []
        k = _next(same, done)
        k = _next(everywhere, done) if k is None else k
        if k is None:
            return
        done.add(k)
        yield k
        fresh = []
        for user in users[k]:
            waits[user].discard(k)
            if not waits[user]:
                fresh.append(user)


def _next(heap: list[int], done: set[int]) -> int | None:
    """Return the first of a heap that is not done, taken out; None if there is none."""
    while heap:
        k = heapq.heappop(heap)
        if k not in done:
            return k
    return None


def _fused(runs: list[list[int]], turns: Sequence[object], order: Iterable[int]) -> list[list[int]]:
    """Return the nodes of the runs in this order, neighbors of one turn as one."""
    fused: list[list[int]] = []
    before: object = None
    for k in order:
        if turns[k] is not None and turns[k] == before and len(fused[-1]) + len(runs[k]) <= LARGEST:
            fused[-1] = fused[-1] + runs[k]
        else:
            fused.append(runs[k])
        before = turns[k]
    return fused
