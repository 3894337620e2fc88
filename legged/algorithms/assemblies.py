"""How a tree of bodies is taken apart into two, and these again, down to single bodies."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
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
        loops: Numbers of the groups of loops that are closed once the two are one. ends: Places that these join.
    """

    inner: Part | int
    outer: Part | int
    joint: int
    handles: tuple[int, ...]
    loops: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()

    @property
    def open_handles(self) -> tuple[int, ...]:
        """Its handles before its loops are closed."""
        return tuple(sorted({*self.handles, *self.ends}))

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


Groups = Mapping[int, frozenset[int]]
"""By number, the places of the bodies that loops join which are closed together, `GROUND` among them."""


def grounded(parents: Sequence[int], groups: Groups) -> Whole:
    """Return the whole robot as an assembly: the ground, and one after the other the trees that stand on it.

    Args:
        parents: Place of each body's parent. groups: Of loops.
    """
    root: list[int] = []
    for k, parent in enumerate(parents):
        root.append(k if parent == GROUND else root[parent])
    whole: Whole = GROUND
    inside, left, trees = {GROUND}, dict(groups), sorted(set(root))
    for r in trees:
        places = [k for k in range(len(parents)) if root[k] == r]
        own = _within(left, places)
        inside |= set(places)
        here = {g: ends for g, ends in _within(left, inside).items() if g not in own}
        outer = divided(places, parents, [r, *_ends({g: ends for g, ends in left.items() if g not in own})], own)
        left = {g: ends for g, ends in left.items() if g not in own and g not in here}
        handles = {k for k in _ends(left) if k in inside} | ({GROUND} if r != trees[-1] else set())
        whole = Part(whole, outer, r, tuple(sorted(handles)), tuple(here), _ends(here))
    return whole


def divided(
    places: Sequence[int], parents: Sequence[int], handles: Sequence[int], groups: Groups | None = None
) -> Whole:
    """Return the bodies of a connected part of a tree as assemblies of assemblies.

    A part is cut where its halves are most alike. One of three handles or more, which costs the square of them, is cut
    where the halves have the fewest. Loops are closed in the first assembly that has all ends of their group.

    Args:
        places: Of the bodies, parent before child. parents: Of all bodies. handles: Places that meet the rest.
        groups: Of loops that lie inside.
    """
    kept = tuple(k for k in places if k in handles)
    if len(places) == 1:
        return places[0]
    joint = _cut(places, parents, kept)
    beyond = {joint}
    for k in places:
        if parents[k] in beyond:
            beyond.add(k)
    near, far = [k for k in places if k not in beyond], [k for k in places if k in beyond]
    groups = groups or {}
    inside, outside = _within(groups, near), _within(groups, far)
    here = {g: ends for g, ends in groups.items() if g not in inside and g not in outside}
    inner = divided(near, parents, [*kept, parents[joint], *_ends(here)], inside)
    outer = divided(far, parents, [*kept, joint, *_ends(here)], outside)
    return Part(inner, outer, joint, kept, tuple(here), _ends(here))


def _within(groups: Groups, places: Collection[int]) -> dict[int, frozenset[int]]:
    return {g: ends for g, ends in groups.items() if ends <= set(places)}


def _ends(groups: Groups) -> tuple[int, ...]:
    return tuple(sorted({k for ends in groups.values() for k in ends} - {GROUND}))


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
