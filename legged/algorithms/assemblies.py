"""How a tree of bodies is taken apart into two, and these again, down to single bodies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

GROUND = -1
"""What stands for the ground among the bodies' places."""


@dataclass(frozen=True)
class Part:
    """An assembly of two, with a joint between them.

    Attributes:
        inner, outer: The assembly nearer to the ground and the other one: a `Part`, or a body by its place.
        joint: Place of the body that the joint carries, in the outer one.
        handles: Places of its bodies that have to do with the rest.
    """

    inner: Part | int
    outer: Part | int
    joint: int
    handles: tuple[int, ...]

    @property
    def root(self) -> int:
        """Its body nearest to the ground, or the ground."""
        return self.inner.root if isinstance(self.inner, Part) else self.inner

    @property
    def levels(self) -> int:
        """How many times assemblies of assemblies are made, one after the other."""
        parts = (part.levels for part in (self.inner, self.outer) if isinstance(part, Part))
        return 1 + max(parts, default=0)


Whole = Part | int


def divided(places: Sequence[int], parents: Sequence[int], handles: Sequence[int]) -> Whole:
    """Return the bodies of a connected part of a tree as assemblies of assemblies.

    A part is cut where its halves are most alike. One of three handles or more, which costs the square of them, is cut
    where the halves have the fewest.

    Args:
        places: Of the bodies, parent before child. parents: Of all bodies. handles: Places that meet the rest.
    """
    kept = tuple(k for k in places if k in handles)
    if len(places) == 1:
        return places[0]
    joint = _cut(places, parents, kept)
    beyond = {joint}
    for k in places:
        if parents[k] in beyond:
            beyond.add(k)
    inner = divided([k for k in places if k not in beyond], parents, [*kept, parents[joint]])
    outer = divided([k for k in places if k in beyond], parents, [*kept, joint])
    return Part(inner, outer, joint, kept)


def _cut(places: Sequence[int], parents: Sequence[int], handles: Sequence[int]) -> int:
    """Return the body at whose joint a part is best cut."""
    sizes, held = dict.fromkeys(places, 1), {k: int(k in handles) for k in places}
    for k in reversed(places[1:]):
        sizes[parents[k]] += sizes[k]
        held[parents[k]] += held[k]

    def unlike(k: int) -> tuple[int, int]:
        size = max(sizes[k], len(places) - sizes[k])
        ends = max(held[k], len(handles) - held[k])
        return (ends, size) if len(handles) > 2 else (size, ends)

    return min(places[1:], key=unlike)
