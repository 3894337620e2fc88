"""Find the feet of a robot description, by name or as ends of limbs, and the contact points on each foot."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from legged.algorithms.legs.wheels import is_wheel
from legged.arguments import instance, rounded_array, text
from legged.errors import ArgumentError, FileError, LeggedError, UnknownNameError
from legged.files.collision import convert, mesh_vertices
from legged.files.description import Shape, Tree
from legged.files.feet.soles import measure, shank_direction
from legged.files.feet.solids import SOLES, lower_corners, lowest_point, sphere_of
from legged.robot.placement import Vector
from legged.robot.shapes import Material, Sphere, outermost_points
from legged.robot.shapes import Shape as LinkShape
from legged.rotations import quaternion_exp, quaternion_matrix
from legged.spatial import Array

Contact = Vector | Sphere
"""A contact point: its position (3,), [m], link axes, or a sphere for a round foot."""
Foot = tuple[str, Contact] | Contact | Sequence[Vector] | Mapping[str, Contact] | str
Feet = str | Sequence[str] | Mapping[str, Foot]
"""Feet specified by the user:

- Names of links: the points that touch the ground come from the collision shapes of each link.
- "spheres": feet are found, and those with a collision sphere are round.
- "shapes": feet are found, with the geometry of their collision shapes: a sphere is a round foot, a capsule two, a box
  has its lower corners, a cylinder four points of its lower rim, or if it lies the two ends of its lowest line.
- A mapping with entries `contact: (link, point or Sphere)`, or `link: foot`, where a foot is a `Sphere`, the points of
  a sole in a list, points and spheres by name, "sphere" for the collision sphere of the link, or "shapes" for all of
  its shapes as above.
"""
WORDS = (("foot", "feet", "sole", "paw", "hoof"), ("toe",), ("ankle",))
"""Words in names of feet, the most reliable first."""
LOWEST = 0.2
"""Without such names, a limb ends in a foot if its lowest point is within this fraction of the robot's height above the
lowest limb."""

_PARALLEL = 0.9
"""Cosine of the angle between two axes from which on they count as parallel."""


@dataclass(frozen=True, eq=False)
class FootEntry:
    """A foot: its link, how it was found, and its contact points by name, (3,), [m], link axes, or spheres.

    The material is that of contact points and of spheres without one; None if the file does not state it. The fault is
    why the shapes of the link were not measured; empty if they were, or if there are none. The wheel is the name of the
    joint that turns the foot about its own axis, see `is_wheel`; empty for other feet.
    """

    link: str
    how: str
    points: Mapping[str, Array | Sphere]
    material: Material | None = None
    fault: str = ""
    wheel: str = ""


def find_feet(tree: Tree, given: Feet | None, walks: bool = True) -> tuple[FootEntry, ...]:
    """Return the feet, in the order of the limbs, with the material of the first shape of each link.

    Args:
        tree: Tree of the robot.
        given: Feet specified by the user; None to find them.
        walks: Whether to search for feet if none are specified; a robot with a fixed base has none.

    Raises:
        FileError: an unknown link, or a collision sphere that a link lacks.
        ArgumentError, ShapeError, NotFiniteError: feet or points of the wrong form.
    """
    feet = []
    for foot in _feet(tree, given, walks):
        shapes = _shapes_near(tree, foot.link)
        wheel, how = _wheel(tree, foot), foot.how
        if wheel:
            how = f"{how}; a wheel turned by joint {wheel!r}"
        feet.append(replace(foot, how=how, material=shapes[0][1].material if shapes else None, wheel=wheel))
    return tuple(feet)


def _feet(tree: Tree, given: Feet | None, walks: bool) -> tuple[FootEntry, ...]:
    """Return the feet without materials."""
    if isinstance(given, Mapping):
        return tuple(_user_foot(tree, name, foot) for name, foot in given.items())
    if given is not None and not isinstance(given, str):
        instance("feet", given, Sequence, "names of links or a mapping")
        return tuple(_foot(tree, _known(tree, name), "given") for name in given)
    if given not in (None, "spheres", "shapes"):
        words = "feet must be a list of names of links, a mapping, 'spheres' or 'shapes'"
        raise ArgumentError(f"{words}, got the text {given!r}")
    if not walks:
        return ()
    named = _feet_by_name(tree) or _lowest_limb_ends(tree)
    if given == "shapes":
        return tuple(_shaped_foot(tree, name, how) or _foot(tree, name, how) for name, how in named)
    return tuple(_foot(tree, name, how, is_round=given == "spheres") for name, how in named)


def _known(tree: Tree, name: str) -> str:
    if text("the name of a link", name) not in tree.children:
        raise FileError(tree.description.source, f"feet: {UnknownNameError('link', name, tree.order)}")
    return name


def _user_foot(tree: Tree, name: str, foot: Any) -> FootEntry:
    """Return a foot of the mapping `Feet`: under the name of a contact point with its link, or of a link."""
    if isinstance(foot, tuple | list) and len(foot) == 2 and isinstance(foot[0], str):
        return FootEntry(_known(tree, foot[0]), "given", {name: _point(f"foot {name!r}", foot[1])})
    link = _known(tree, name)
    what = f"foot {name!r}"
    if isinstance(foot, str) and foot == "sphere":
        own_foot = _foot(tree, link, "given", is_round=True)
        if not any(isinstance(point, Sphere) for point in own_foot.points.values()):
            raise FileError(tree.description.source, f"{what} has no collision sphere; give a legged.Sphere instead")
        return own_foot
    if isinstance(foot, str) and foot == "shapes":
        shaped = _shaped_foot(tree, link, "given")
        if shaped is None:
            words = f"{what} has no collision shape of the kinds {', '.join(SOLES)}; give points or a legged.Sphere"
            raise FileError(tree.description.source, words)
        return shaped
    if isinstance(foot, Sphere):
        return FootEntry(link, "given", {name: foot})
    if isinstance(foot, Mapping):
        return FootEntry(link, "given", {point: _point(f"{what}, point {point!r}", at) for point, at in foot.items()})
    points = rounded_array(what, foot, (None, 3), "the points of a sole")
    return FootEntry(link, "given", _labeled(tree, link, list(points)))


def _point(what: str, at: Any) -> Array | Sphere:
    return at if isinstance(at, Sphere) else rounded_array(what, at, (3,))


def _feet_by_name(tree: Tree) -> list[tuple[str, str]]:
    """Return (link, how found) of the outermost links named like feet, one link of each group of fixed links.

    A link that carries a moving ankle is part of the shank, such as a motor named "toe" that drives the ankle.
    """
    for words in WORDS:
        named = [name for name in tree.order if tree.head[name] != tree.description.root and _has_word(name, words)]
        outer = [*named, *(name for name in tree.order if _has_word(name, ("ankle",)))]
        inner = {head for name in outer for head in tree.path(name)[1:]}
        ends = {tree.head[name]: name for name in reversed(named) if tree.head[name] not in inner}
        if ends:
            chosen = [_best_name(tree, head, words) for head in tree.groups if head in ends]
            return [(name, "found by name") for name in chosen]
    return []


def _best_name(tree: Tree, head: str, words: tuple[str, ...]) -> str:
    """Return the link of a group that is the foot: a sole first, then the name with the fewest words."""
    named = [name for name in tree.groups[head] if _has_word(name, words)]
    by_length = sorted(named, key=lambda name: (not _has_word(name, ("sole",)), len(_split(name))))
    return by_length[0]


def _has_word(name: str, words: tuple[str, ...]) -> bool:
    """Return whether a name has one of some words, also in the plural or after the letters of a leg, as in lfoot."""
    word = re.compile(rf"[lrfhb]{{0,2}}(?:{'|'.join(words)})s?")
    return any(map(word.fullmatch, _split(name)))


def _split(name: str) -> list[str]:
    """Return the words of a name such as LFoot_virtual2, in lower case."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def _lowest_limb_ends(tree: Tree) -> list[tuple[str, str]]:
    """Return (link, how found) of the lowest ends, below the base, of at least two limbs with two or more joints.

    An end counts at the lowest angle of its joint, since legs may be level at zero, as those of gym's Ant are.
    """
    ends = [head for head in tree.groups if tree.is_end(head) and len(tree.path(head)) > 2]
    lowest = {head: _lowest_turned(tree, head) for head in ends}
    body = [link for link in tree.groups[tree.description.root] if tree.link[link].mass or tree.link[link].shapes]
    floor = min(lowest.values(), default=0.0)
    height = max((pose.position[2] for pose in tree.pose.values()), default=0.0) - floor
    if not body or min(_lowest(tree, name) for name in body) < floor + LOWEST * height:
        return []
    lowest_ends = [head for head in ends if lowest[head] < floor + LOWEST * height]
    tips = [min(tree.groups[head], key=lambda name: _lowest(tree, name)) for head in lowest_ends]
    return [(tip, "found as the end of a limb") for tip in tips] if len(tips) > 1 else []


def _lowest(tree: Tree, name: str) -> float:
    """Return the height of the lowest point of a link, all joints at zero, [m]."""
    return min(float(points[:, 2].min()) - radius for points, radius in shape_points(tree, name))


def _lowest_turned(tree: Tree, head: str) -> float:
    """Return the height of the lowest point that an end reaches when its joint turns, whatever its range, [m]."""
    entry, origin = tree.joint[head], tree.pose[head].position
    axis = tree.pose[head].rotation @ entry.axis
    across = float(np.hypot(axis[0], axis[1])) if entry.kind == "revolute" else 0.0
    heights = []
    for points, radius in (entry for name in tree.groups[head] for entry in shape_points(tree, name)):
        along = (points - origin) @ axis
        circle = np.linalg.norm(points - origin - np.outer(along, axis), axis=1)
        lowest = origin[2] + along * axis[2] - circle * across if across else points[:, 2]
        heights.append(float(lowest.min()) - radius)
    return min(heights)


def shape_points(tree: Tree, name: str) -> Iterator[tuple[Array, float]]:
    """Yield the origin of a link, then points of each shape, (n, 3), [m], world axes, joints at zero, and their radius.

    Shapes are those of collision, of links without them the visual ones; meshes that cannot be read are left out.
    """
    yield tree.pose[name].position[None], 0.0
    for shape in tree.link[name].shapes or tree.link[name].visuals:
        try:
            yield _extent(_surface(shape.moved(tree.pose[name]), tree.description.source))
        except LeggedError:  # a missing or damaged mesh, which is reported for the foot
            continue


def _down(tree: Tree, name: str) -> Array:
    """Return the unit vector to the ground, (3,), world axes, joints at zero: along the shank where it is level.

    The last link is a shank if at most two joints of the leg, hip and knee, have this axis; an ankle would be a third.
    """
    down, head = np.array([0.0, 0.0, -1.0]), tree.head[name]
    turning = [h for h in tree.path(head) if h in tree.joint and tree.joint[h].kind == "revolute"]
    axes = [tree.pose[h].rotation @ tree.joint[h].axis for h in turning]
    if head not in turning or sum(abs(axis @ axes[0]) > _PARALLEL for axis in axes) > 2:
        return down
    points = np.concatenate([points for link in tree.groups[head] for points, _ in shape_points(tree, link)])
    along = shank_direction(points - tree.pose[head].position, axes[0], down)
    return down if along is None else along


def _down_at_rest(tree: Tree, name: str) -> Array:
    """Return `_down` with joints whose range does not contain zero at the end that is nearest to zero instead."""
    down = _down(tree, name)
    for head in reversed(tree.path(name)[:-1]):
        joint = tree.joint[head]
        angle = float(np.clip(0.0, joint.physics.lower, joint.physics.upper)) if joint.kind == "revolute" else 0.0
        down = quaternion_matrix(quaternion_exp(-angle * (tree.pose[head].rotation @ joint.axis))) @ down
    return down


def _extent(surface: LinkShape | Array) -> tuple[Array, float]:
    """Return points, (n, 3), [m], and the radius of spheres around them that enclose a result of `_surface`."""
    return (surface, 0.0) if isinstance(surface, np.ndarray) else outermost_points(surface)


def _foot(tree: Tree, name: str, how: str, is_round: bool = False) -> FootEntry:
    """Return a foot with contacts from the shapes of its link, or else of the links fixed to it; spheres if round."""
    near = _shapes_near(tree, name)
    spheres, boxes = ([(link, s) for link, s in near if s.kind == kind] for kind in ("sphere", "box"))
    if spheres and is_round:
        contacts = [sphere_of(tree, name, link, s) for link, s in spheres]
        labels = _labeled(tree, name, [np.asarray(sphere.center) for sphere in contacts])
        return FootEntry(name, f"{how}; its sphere", dict(zip(labels, contacts, strict=True)))
    if spheres:
        points = [lowest_point(tree, name, link, s) for link, s in spheres]
        return FootEntry(name, f"{how}; lowest point of its sphere", _labeled(tree, name, points))
    if boxes and _down(tree, name)[2] == -1.0:
        points = [corner for link, s in boxes for corner in lower_corners(tree, name, link, s)]
        return FootEntry(name, f"{how}; lower corners of its box", _labeled(tree, name, points))
    return _measured_foot(tree, name, how, is_round)


def _measured_foot(tree: Tree, name: str, how: str, is_round: bool) -> FootEntry:
    """Return a foot with the sole that its collision shapes have, else its visual shapes, else the origin of its link.

    A round foot becomes its lowest point unless `is_round`.
    """
    back, reasons, fault = tree.pose[name].inverse(), ["origin of the link"], ""
    world_down = _down(tree, name)
    down = back.rotation @ world_down
    how = how if world_down[2] == -1.0 else f"{how}; end of a shank that is level with all joints at zero"
    for what, near in (("collision", _shapes_near(tree, name)), ("visual", _visuals_near(tree, name))):
        if not near:
            reasons.append(f"no {what} shape")
            continue
        try:
            placed = [_surface(s.moved(back @ tree.pose[link]), tree.description.source) for link, s in near]
            sole = measure(placed, down)
            if len(sole.contacts) == 1 and len(tree.path(name)) > 1:  # such as a foot that stands on its heel at zero
                inclined = measure(placed, back.rotation @ _down_at_rest(tree, name))
                sole = inclined if len(inclined.contacts) > 1 else sole
        except LeggedError as error:  # a missing or damaged mesh, or a missing library
            fault = fault or str(error).removeprefix(f"{tree.description.source}: ")
            reasons.append(f"its {what} shapes cannot be measured: {error}")
            continue
        contacts = list(sole.contacts)
        if not is_round:
            contacts = [s.center + s.radius * down if isinstance(s, Sphere) else s for s in contacts]
        places = [np.asarray(s.center) if isinstance(s, Sphere) else s for s in contacts]
        labels = list(_labeled(tree, name, places))
        words = f"{how}; {sole.words(down)}, measured from its {what} shapes"
        return FootEntry(name, words, dict(zip(labels, contacts, strict=True)))
    return FootEntry(name, f"{how}; {'; '.join(reasons)}", {name: np.zeros(3)}, fault=fault)


def _wheel(tree: Tree, foot: FootEntry) -> str:
    """Return the name of the joint that turns a foot as a wheel, by its collision or visual shapes; empty without."""
    entry, at = tree.joint.get(tree.head[foot.link]), tree.place[foot.link]
    if entry is None or entry.kind != "revolute" or entry.mimic:
        return ""
    touching = []
    for point in foot.points.values():
        center, radius = (point.center, point.radius) if isinstance(point, Sphere) else (point, 0.0)
        touching.append((np.array([at.rotation @ center + at.position]), radius))
    for near in (_shapes_near(tree, foot.link), _visuals_near(tree, foot.link)):
        try:
            placed = [_surface(s.moved(tree.place[link]), tree.description.source) for link, s in near]
        except LeggedError:  # a mesh that cannot be read, as the foot itself says
            continue
        if placed:
            solids = [_extent(surface) for surface in placed]
            return entry.name if is_wheel(entry.physics, entry.axis, solids, touching) else ""
    return ""


def _surface(shape: Shape, source: str) -> LinkShape | Array:
    """Return a shape of a foot for `measure`: of a mesh all vertices, (n, 3), [m], not those of a simplified hull."""
    if not shape.is_mesh:
        return convert(shape, source)[0]
    return mesh_vertices(shape, source)[0] @ shape.rotation.T + shape.position


def _visuals_near(tree: Tree, name: str) -> list[tuple[str, Shape]]:
    """Return (link, shape) of the visual shapes of a link, or if it has none of the links fixed to it."""
    own = [(name, shape) for shape in tree.link[name].visuals]
    return own or [(link, shape) for link in tree.groups[tree.head[name]] for shape in tree.link[link].visuals]


def _shapes_near(tree: Tree, name: str) -> list[tuple[str, Shape]]:
    """Return (link, shape) of the shapes of a link, or if it has none of the links fixed to it."""
    own = [(name, shape) for shape in tree.link[name].shapes]
    return own or [(link, shape) for link in tree.groups[tree.head[name]] for shape in tree.link[link].shapes]


def _shaped_foot(tree: Tree, name: str, how: str) -> FootEntry | None:
    """Return a foot with the geometry of its collision shapes, see `Feet`; None without shapes of these kinds."""
    near = [(link, s) for link, s in _shapes_near(tree, name) if s.kind in SOLES]
    shapes = [contact for link, s in near for contact in SOLES[s.kind](tree, name, link, s)]
    if not shapes:
        return None
    places = [np.asarray(contact.center) if isinstance(contact, Sphere) else contact for contact in shapes]
    labels = list(_labeled(tree, name, places))
    return FootEntry(name, f"{how}; its collision shapes", dict(zip(labels, shapes, strict=True)))


def _labeled(tree: Tree, name: str, points: list[Array]) -> dict[str, Array]:
    """Return points by name: that of the link, with suffixes front, rear, left and right if there are several."""
    if len(points) == 1:
        return {name: points[0]}
    seen = np.array([tree.pose[name].rotation @ point for point in points])
    side = seen - seen.mean(axis=0)
    labels = [f"{name}_{'front' if x > 0 else 'rear'}_{'left' if y > 0 else 'right'}" for x, y, _ in side]
    if len(set(labels)) < len(labels):
        labels = [f"{name}_{index + 1}" for index in range(len(points))]
    return dict(zip(labels, points, strict=True))
