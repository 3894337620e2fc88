"""In which order single operations and packs of them can be computed: see `lanes`."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from legged.compiler.ir.graph import Graph

if TYPE_CHECKING:
    from legged.compiler.passes.slp.packs import Pack

_WAITING, _DONE, _GIVEN_UP = range(3)
_SINGLE = -1


class Ordering:
    """What is ready is computed in order of tracing; where nothing is, packs wait for each other in a circle.

    Then the first pack that waits is given up, its members are on their own, and it goes on.
    """

    def __init__(self, graph: Graph, packs: list[Pack], owners: dict[int, tuple[int, int]], fixed: set[int]):
        first = graph.input_size
        self.packs, self.owners = packs, owners
        self.state = [_WAITING] * len(packs)
        self.missing = [len(pack.nodes) for pack in packs]  # members that are not ready
        self.waits = {i: 0 for i in range(first, first + len(graph.nodes)) if i not in fixed}  # arguments not there
        self.users: dict[int, list[int]] = {i: [] for i in self.waits}
        for i in self.waits:
            for a in {a for a in graph.nodes[i - first].arguments if isinstance(a, int) and a in self.waits}:
                self.waits[i] += 1
                self.users[a].append(i)
        self.ready: list[tuple[int, int]] = []  # (first node, its pack or `_SINGLE`)
        self.order: list[Pack | int] = []

    def result(self) -> tuple[list[Pack], list[Pack | int]]:
        """Return (packs that are left, order of computation)."""
        for i, waits in self.waits.items():
            if not waits:
                self._release(i)
        self._run()
        for k, pack in enumerate(self.packs):
            if self.state[k] == _WAITING:
                self.state[k] = _GIVEN_UP
                for i in pack.nodes:
                    if not self.waits[i]:
                        self._release(i)
                self._run()
        return [pack for pack, state in zip(self.packs, self.state, strict=True) if state == _DONE], self.order

    def _run(self) -> None:
        """Compute all that is ready, and becomes so."""
        while self.ready:
            i, k = heapq.heappop(self.ready)
            self.order.append(i if k == _SINGLE else self.packs[k])
            if k != _SINGLE:
                self.state[k] = _DONE
            for member in (i,) if k == _SINGLE else self.packs[k].nodes:
                for user in self.users[member]:
                    self.waits[user] -= 1
                    if not self.waits[user]:
                        self._release(user)

    def _release(self, i: int) -> None:
        """Note that a node has all its arguments."""
        k = self.owners[i][0] if i in self.owners else _SINGLE
        if k == _SINGLE or self.state[k] == _GIVEN_UP:
            heapq.heappush(self.ready, (i, _SINGLE))
            return
        self.missing[k] -= 1
        if not self.missing[k]:
            heapq.heappush(self.ready, (self.packs[k].nodes[0], k))
