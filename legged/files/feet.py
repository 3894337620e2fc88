"""Where a robot touches the ground: feet found by name or as ends of limbs, and the points of contact on each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from legged.errors import FileError, UnknownNameError
from legged.files.description import Shape, Tree
from legged.robot.placement import Placement, Vector, vector3
from legged.spatial import Array

Feet = Sequence[str] | Mapping[str, tuple[str, Vector]]
"""Names of links, or contact points by name: (link, position (3,), [m], link axes)."""
WORDS = (("foot", "feet", "sole", "paw", "hoof"), ("toe",), ("ankle",))
"""What feet are called, the surest words first."""
LOWEST = 0.2
"""Limbs without a telling name end in a foot if they reach the lowest one's height, up to this part of the robot's."""


@dataclass(frozen=True, eq=False)
class Foot:
    """A foot: the link that it is, how it was found, and its contact points, (3,), [m], in the axes of that link."""

    link: str
    how: str
    points: Mapping[str, Array]


def feet_of(tree: Tree, given: Feet | None, walks: bool = True) -> tuple[Foot, ...]:
    """Return the feet, in the order of the limbs.

    Args:
        tree: The robot.
        given: What the user says; None to find them.
        walks: Whether to look for feet at all where the user says nothing: a robot on a fixed base has none.

    Raises:
        FileError: for a name that is no link.
    """
    if isinstance(given, Mapping):
        return tuple(_given_point(tree, name, *where) for name, where in given.items())
    if given is not None:
        return tuple(_foot(tree, _known(tree, name), "given") for name in given)
    if not walks:
        return ()
    return tuple(_foot(tree, name, how) for name, how in _named(tree) or _ends(tree))


def _known(tree: Tree, name: str) -> str:
    if name not in tree.children:
        raise FileError(tree.description.source, f"feet: {UnknownNameError('link', name, tree.order)}")
    return name


def _given_point(tree: Tree, name: str, link: str, position: Vector) -> Foot:
    return Foot(_known(tree, link), "given", {name: vector3(f"foot {name!r}", position)})


def _named(tree: Tree) -> list[tuple[str, str]]:
    """Return (link, how) of the outermost links named like feet, one of each group of welded links."""
    for words in WORDS:
        named = [name for name in tree.order if tree.head[name] != tree.description.root and _says(name, words)]
        inner = {head for name in named for head in tree.path(name)[1:]}
        ends = {tree.head[name]: name for name in reversed(named) if tree.head[name] not in inner}
        if ends:
            chosen = [_surest(tree, head, words) for head in tree.welds if head in ends]
            return [(name, "found by name") for name in chosen]
    return []


def _surest(tree: Tree, head: str, words: tuple[str, ...]) -> str:
    """Return the link of a group that is the foot: a sole without more words before a foot before anything else."""
    named = [name for name in tree.welds[head] if _says(name, words)]
    by_length = sorted(named, key=lambda name: (not _says(name, ("sole",)), len(_split(name))))
    return by_length[0]


def _says(name: str, words: tuple[str, ...]) -> bool:
    return any(word in words for word in _split(name))


def _split(name: str) -> list[str]:
    """Return the words of a name like LFoot_virtual2, in lower case."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def _ends(tree: Tree) -> list[tuple[str, str]]:
    """Return (link, how) of the lowest ends, below the base, of at least two limbs of two joints or more."""
    ends = [head for head in tree.welds if tree.is_end(head) and len(tree.path(head)) > 2]
    lowest = {head: min(_heights(tree, tree.welds[head])) for head in ends}
    body = [link for link in tree.welds[tree.description.root] if tree.link[link].mass or tree.link[link].shapes]
    floor = min(lowest.values(), default=0.0)
    height = max((pose.position[2] for pose in tree.pose.values()), default=0.0) - floor
    if not body or min(_heights(tree, body)) < floor + LOWEST * height:
        return []
    found = [head for head in ends if lowest[head] < floor + LOWEST * height]
    tips = [min(tree.welds[head], key=lambda name: min(_heights(tree, [name]))) for head in found]
    return [(tip, "found as the end of a limb") for tip in tips] if len(tips) > 1 else []


def _heights(tree: Tree, links: list[str]) -> list[float]:
    """Return the heights of links' origins and about those of their shapes' lower ends, joints at zero, [m]."""
    heights = []
    for name in links:
        pose = tree.pose[name]
        heights.append(float(pose.position[2]))
        heights += [float((pose.rotation @ s.position + pose.position)[2]) - _reach(s) for s in tree.link[name].shapes]
    return heights


def _reach(shape: Shape) -> float:
    """Return about how far a shape reaches from its middle, [m]; nothing for a mesh, which is not opened."""
    if shape.kind == "box":
        return max(shape.size) / 2
    return shape.size[0] + sum(shape.size[1:]) / 2 if shape.size else 0.0


def _foot(tree: Tree, name: str, how: str) -> Foot:
    """Return a link as a foot, its points taken from its own shapes or else from those welded to it."""
    own = [(name, shape) for shape in _shapes(tree, name)]
    around = [(link, shape) for link in tree.welds[tree.head[name]] for shape in _shapes(tree, link)]
    for kind, words in (("sphere", "lowest point of its sphere"), ("box", "lower corners of its box")):
        shapes = [(link, s) for link, s in (own or around) if s.kind == kind]
        if shapes:
            points = [point for link, s in shapes for point in _touching(tree, name, link, s)]
            return Foot(name, f"{how}; {words}", _labeled(tree, name, points))
    return Foot(name, f"{how}; origin of the link, which has no sphere or box", {name: np.zeros(3)})


def _shapes(tree: Tree, name: str) -> Iterable[Shape]:
    return next(link.shapes for link in tree.description.links if link.name == name)


def _touching(tree: Tree, foot: str, link: str, shape: Shape) -> list[Array]:
    """Return the points of a shape that touch a floor below, all joints at zero, in the axes of link `foot`."""
    at = tree.pose[link] @ Placement(shape.rotation, shape.position)
    if shape.kind == "sphere":
        touching = [at.position - [0.0, 0.0, shape.size[0]]]
    else:
        down = int(np.argmax(np.abs(at.rotation[2])))
        half = np.array(shape.size) / 2
        corners = [(2 * np.array(signs) - 1) * half for signs in np.ndindex(2, 2, 2)]
        lower = [c for c in corners if np.sign(c[down]) == -np.sign(at.rotation[2, down])]
        touching = [at.rotation @ corner + at.position for corner in lower]
    back = tree.pose[foot].inverse()
    return [back.rotation @ point + back.position for point in touching]


def _labeled(tree: Tree, name: str, points: list[Array]) -> dict[str, Array]:
    """Return points by name: the link's, with front, rear, left and right after it where there are several."""
    if len(points) == 1:
        return {name: points[0]}
    seen = np.array([tree.pose[name].rotation @ point for point in points])
    side = seen - seen.mean(axis=0)
    labels = [f"{name}_{'front' if x > 0 else 'rear'}_{'left' if y > 0 else 'right'}" for x, y, _ in side]
    if len(set(labels)) < len(labels):
        labels = [f"{name}_{index + 1}" for index in range(len(points))]
    return dict(zip(labels, points, strict=True))
