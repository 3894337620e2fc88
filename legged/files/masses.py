"""The inertias of a description's links, of links that are welded, and of all."""

from __future__ import annotations

from legged.files.description import LinkEntry
from legged.files.tree import Tree
from legged.robot.frames import Placement
from legged.robot.inertia import Inertia


def entry_inertia(entry: LinkEntry) -> Inertia:
    """Return a link's inertia, unchecked; nothing where the file gives none."""
    return Inertia() if entry.mass is None else Inertia(entry.mass, entry.center, entry.tensor, checked=False)


def weld_inertia(tree: Tree, head: str) -> Inertia:
    """Return the inertia of a group of welded links, in the axes of its head, unchecked."""
    return _sum(tree, {name: tree.place[name] for name in tree.welds[head]})


def total_inertia(tree: Tree) -> Inertia:
    """Return the inertia of the whole robot with all joints at zero, in the axes of its root, unchecked."""
    return _sum(tree, tree.pose)


def _sum(tree: Tree, places: dict[str, Placement]) -> Inertia:
    total = Inertia()
    for name, place in places.items():
        total = total + entry_inertia(tree.link[name]).moved(place.rotation, place.position)
    return total
