"""Rows: what code runs down. A row is one segment, or alike segments side by side in the lanes of vectors.

For one state, segments of one form that do not wait for each other, those of a centipede's legs for example, are
computed together, one in each lane. They are found as they become ready: what the longest way still lies ahead of is
done first, and takes along whatever else of its form is ready.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from legged.compiler.passes.outline.templates import Form, Segment


class Kind(NamedTuple):
    """What rows with the same code have in common: their form, and how many lanes."""

    form: Form
    lanes: int


class Row(NamedTuple):
    """Segments of one form, each in a lane; lanes that are left compute something that nobody asks for."""

    segments: tuple[Segment, ...]
    lanes: int = 1

    @property
    def kind(self) -> Kind:
        """What code it takes."""
        return Kind(self.segments[0].form, self.lanes)


class Phase(NamedTuple):
    """What is computed between two rounds of calls: rows, in order, and then the calls."""

    rows: list[Row]
    calls: list[int]


def in_rows(segments: Sequence[Segment], lanes: int) -> list[Row]:
    """Return segments as rows with one lane or with `lanes`, in an order that works."""
    single = [Row((segment,)) for segment in segments]
    if lanes == 1:
        return single
    found = list(_side_by_side(segments, lanes))
    return found if len(found) < len(single) else single


def _side_by_side(segments: Sequence[Segment], lanes: int) -> Iterator[Row]:
    maker = {i: k for k, segment in enumerate(segments) for i in segment.nodes}
    waits = [{maker[a] for a in segment.operands if a in maker} for segment in segments]
    users: list[list[int]] = [[] for _ in segments]
    for k, others in enumerate(waits):
        for other in others:
            users[other].append(k)
    ahead = [0] * len(segments)
    for k in reversed(range(len(segments))):
        ahead[k] = len(segments[k].nodes) + max((ahead[user] for user in users[k]), default=0)
    ready: dict[Form, list[tuple[int, int]]] = {}
    urgent: list[tuple[int, int]] = []
    fresh = [k for k, others in enumerate(waits) if not others]
    done: set[int] = set()
    while True:
        for k in fresh:
            heapq.heappush(urgent, (-ahead[k], k))
            heapq.heappush(ready.setdefault(segments[k].form, []), (-ahead[k], k))
        while urgent and urgent[0][1] in done:
            heapq.heappop(urgent)
        if not urgent:
            return
        alike = ready[segments[urgent[0][1]].form]
        count = len(alike) if 2 * len(alike) >= lanes else 1
        taken = [heapq.heappop(alike)[1] for _ in range(min(count, lanes))]
        done.update(taken)
        yield Row(tuple(segments[k] for k in sorted(taken)), lanes if count > 1 else 1)
        fresh = []
        for k in taken:
            for user in users[k]:
                waits[user].discard(k)
                if not waits[user]:
                    fresh.append(user)
