"""Split a large graph into regions: the operations of one iteration of a loop in the traced function.

Operations with the same label (`ir.annotations`) belong to one iteration. A traced function loops over the bodies once
for twists and again for wrenches; if a body's wrench needs no other region in between, both become one region, and the
values that pass between them stay in registers.

Tracing shares a value that two iterations compute, under the label of the first. If a child needs a product of its
parent's velocities before the parent itself does, the product carries the child's label. Such a node is moved to the
region of the parent.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence

from legged.compiler.ir.annotations import Label
from legged.compiler.ir.graph import Graph
from legged.compiler.ir.operations import is_call

MAX_REGION_SIZE = 1_500
"""Largest number of operations in a region. The time that LLVM takes grows faster than the length of a function."""


def split_into_regions(graph: Graph, nodes: Sequence[int]) -> list[list[int]]:
    """Return some nodes of a graph as regions in a valid order of computation.

    A run is a sequence of nodes with one label; a region consists of one or more runs.
    """
    first = graph.input_size
    run_of, labels = _assign_runs(graph, nodes)
    runs: list[list[int]] = [[] for _ in labels]
    needs: list[set[int]] = [set() for _ in labels]
    users: list[list[int]] = [[] for _ in labels]
    for i in nodes:
        run = run_of[i]
        runs[run].append(i)
        others = needs[run]
        for a in graph.nodes[i - first].arguments:
            if type(a) is int and run_of[a] >= 0:
                others.add(run_of[a])
    for run, others in enumerate(needs):
        others.discard(run)
        for other in others:
            users[other].append(run)
    iterations = [(label.module, label.item) if label.item is not None else None for label in labels]
    return _fused(runs, iterations, _order(iterations, needs, users))


def _assign_runs(graph: Graph, nodes: Sequence[int]) -> tuple[list[int], list[Label]]:
    """Return (the run of each value of the graph, -1 for those that are none of the nodes; the labels of the runs).

    A node is moved to an earlier run of the same stage if all its arguments are known there and that run's label uses
    the node too. A node with constants, inputs or results of calls as arguments stays where it is, since these belong
    to its own label.
    """
    first, (run_of, labels) = graph.input_size, _runs(graph, nodes)
    numbers: dict[Label, int] = {}
    label_numbers = [numbers.setdefault(label, len(numbers)) for label in labels]
    calls = {operation for operation in {node[0] for node in graph.nodes} if is_call(operation)}
    # Lists over all values: those of a large graph take a tenth of the memory of dictionaries.
    earliest = [-1] * len(run_of)
    for i in nodes:
        run, (operation, arguments, label) = run_of[i], graph.nodes[i - first]
        source = -1
        for a in arguments:
            known = earliest[a] if type(a) is int else -1
            if known < 0 or known == run:
                source = run
                break
            if known > source:
                source = known
        if source != run and (operation in calls or labels[source].stage != label.stage):
            source = run
        earliest[i] = source
    first_user = [-1] * len(run_of)  # the earliest run that uses a node
    is_shared = bytearray(len(run_of))  # whether a run with the label of the node's earliest run uses it
    for i in reversed(nodes):
        run, source = run_of[i], earliest[i]
        if first_user[i] < 0:
            own = source if label_numbers[source] == label_numbers[run] else run
        else:
            own = source if is_shared[i] else min(run, first_user[i])
        run_of[i] = own
        for a in graph.nodes[i - first].arguments:
            if type(a) is int and earliest[a] >= 0:
                first_user[a] = own if first_user[a] < 0 else min(own, first_user[a])
                if label_numbers[own] == label_numbers[earliest[a]]:
                    is_shared[a] = True
    return run_of, labels


def _runs(graph: Graph, nodes: Sequence[int]) -> tuple[list[int], list[Label]]:
    """Return (the run of each value in order of tracing, as in `_assign_runs`; the labels of the runs)."""
    first, previous, size, run = graph.input_size, None, 0, -1
    run_of: list[int] = [-1] * (first + len(graph.nodes))
    labels: list[Label] = []
    for i in nodes:
        label = graph.nodes[i - first].label
        if label != previous or size == MAX_REGION_SIZE:
            run = len(labels)
            labels.append(label)
            previous, size = label, 0
        size += 1
        run_of[i] = run
    return run_of, labels


def _order(iterations: Sequence[object], needs: list[set[int]], users: Sequence[Sequence[int]]) -> Iterator[int]:
    """Yield the runs in topological order: those of the same iteration if one is ready, else in order of tracing."""
    ready_by_iteration: dict[object, list[int]] = {}
    ready: list[int] = []
    released = [k for k, others in enumerate(needs) if not others]
    done: set[int] = set()
    k: int | None = None
    while True:
        for run in released:
            heapq.heappush(ready, run)
            heapq.heappush(ready_by_iteration.setdefault(iterations[run], []), run)
        same = ready_by_iteration.get(iterations[k], []) if k is not None and iterations[k] is not None else []
        k = _pop(same, done)
        k = _pop(ready, done) if k is None else k
        if k is None:
            return
        done.add(k)
        yield k
        released = []
        for user in users[k]:
            needs[user].discard(k)
            if not needs[user]:
                released.append(user)


def _pop(heap: list[int], done: set[int]) -> int | None:
    """Remove and return the smallest element of a heap that is not done; None if there is none."""
    while heap:
        k = heapq.heappop(heap)
        if k not in done:
            return k
    return None


def _fused(runs: list[list[int]], iterations: Sequence[object], order: Iterable[int]) -> list[list[int]]:
    """Return the nodes of the runs in this order, with successive runs of one iteration in one region.

    No region has more than `MAX_REGION_SIZE` nodes.
    """
    regions: list[list[int]] = []
    previous: object = None
    for k in order:
        fits = bool(regions) and len(regions[-1]) + len(runs[k]) <= MAX_REGION_SIZE
        if iterations[k] is not None and iterations[k] == previous and fits:
            regions[-1] = regions[-1] + runs[k]
        else:  # a run that nodes were moved to may be long
            regions += [runs[k][i : i + MAX_REGION_SIZE] for i in range(0, len(runs[k]), MAX_REGION_SIZE)]
        previous = iterations[k]
    return regions
