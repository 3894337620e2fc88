"""In which order the operations of a graph are computed: so that few values wait, and few operations wait for others.

Many more values are alive at a time than there are registers; those that wait longest are put into memory, and loading
and storing them takes time. Operations that wait for the one before keep others from starting: a processor looks some
dozens of operations ahead only.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from legged.compiler.ir.graph import Graph

_NEAR, _FAR = 16, 100
"""Operations among which the next one is chosen; as many more if all of the near ones wait long. With more near ones,
more values wait in memory."""
_LATENCY = 4.0
_DIVISION = 24.0
_STEP = 0.5
"""Of a model processor: cycles until a result is there, until that of a division is, and to the next operation."""


def shortly_before_use(graph: Graph) -> list[int]:
    """Return the nodes that the results need, depth first, of two arguments the one of more depth before the other."""
    first = graph.input_size
    depths = [0] * first
    for node in graph.nodes:
        depths.append(1 + max((depths[a] for a in node.arguments if isinstance(a, int)), default=0))
    order: list[int] = []
    seen: set[int] = set()
    waiting: list[tuple[int, bool]] = [(r, False) for r in reversed(graph.results) if isinstance(r, int)]
    while waiting:
        i, complete = waiting.pop()
        if complete:
            order.append(i)
        elif i >= first and i not in seen:
            seen.add(i)
            waiting.append((i, True))
            arguments = [a for a in graph.nodes[i - first].arguments if isinstance(a, int)]
            waiting += [(a, False) for a in sorted(arguments, key=depths.__getitem__)]
    return order


def in_time(graph: Graph, order: Sequence[int]) -> list[int]:
    """Return these nodes such that one seldom comes before its arguments are there, on a model processor.

    Next is the first of a window on the given order that has all its arguments, or the one that has them first.
    """
    there = dict.fromkeys(order, math.inf)
    nodes = {i: graph.nodes[i - graph.input_size] for i in order}
    needs = {i: [a for a in node.arguments if isinstance(a, int) and a in there] for i, node in nodes.items()}
    timed: list[int] = []
    rest = iter(order)
    window = list(itertools.islice(rest, _FAR))
    now = 0.0
    while window:
        best, begin = 0, math.inf
        for k, i in enumerate(window):
            if k >= _NEAR and begin <= now + _LATENCY:
                break
            time = max([there[a] for a in needs[i]], default=0.0)
            if time < begin:
                best, begin = k, time
            if begin <= now:
                break
        i = window.pop(best)
        now = max(now, begin)
        there[i] = now + (_DIVISION if nodes[i].operation == "divide" else _LATENCY)
        now += _STEP
        timed.append(i)
        window += itertools.islice(rest, 1)
    return timed
