"""What groups of contacts feel of each other, through the bodies that hold them, over any element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from legged.spatial import Array, sum_of

Blocks = list[list[Array | None]]
Arm = tuple[int, Array]


class Groups(NamedTuple):
    """Groups of contacts of the same bodies and frame, and the ends where groups hold bodies.

    A group of four that another group of four feels through one body hands it six numbers, its wrench, not twelve; and
    what an end of the other does, six numbers, follows by one (6, 6) block instead of sixteen of (3, 3).

    Attributes:
        members: The contacts of each.
        arms: For each contact its ends, and C, (3, n), from the end's twist, (n,), to the contact's velocity.
        mobility: Twists of ends per wrench on ends, blocks (n, n'); None inside a group, and where nothing is felt.
    """

    members: Sequence[Sequence[int]]
    arms: Sequence[Sequence[Arm]]
    mobility: Blocks

    def wrenches(self, p: Any, of: Sequence[int] | None = None) -> dict[int, Array]:
        """Return the wrenches, (n,), on the ends of given contacts, or of all, with impulses p, (m, 3)."""
        parts: dict[int, list[Array]] = {}
        for i in range(len(self.arms)) if of is None else of:
            for end, C in self.arms[i] if self.arms else ():
                parts.setdefault(end, []).append(C.T @ p[i])
        return {end: sum_of(part) for end, part in parts.items()}

    def moved(self, group: Sequence[int], u: Any, w: dict[int, Array]) -> list[Array]:
        """Return the velocities of a group's contacts, (3,), u and what wrenches w on other groups' ends add."""
        if not self.arms:
            return [u[i] for i in group]
        twists = {end: self._twist(end, w) for end, _ in self.arms[group[0]]}
        return [sum_of([u[i], *(C @ twists[end] for end, C in self.arms[i] if twists[end] is not None)]) for i in group]

    def _twist(self, end: int, w: dict[int, Array]) -> Array | None:
        """Return an end's twist, (n,); that of the newest wrench, of the group before, comes last in the sum."""
        row = self.mobility[end]
        parts = [block @ w[b] for b in (*range(end, len(row)), *range(end)) if (block := row[b]) is not None]
        return sum_of(parts) if parts else None
