"""Description of a robot as its file states it, before any check, and the tree of its links.

URDF and MJCF readers produce a `Description`; the audit, the repairs, the robot builder and the exporters use it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from legged.errors import DefinitionError, FileError
from legged.robot import shapes
from legged.robot.construction.graph import check_names, outward
from legged.robot.inertia import Inertia
from legged.robot.physics import JointPhysics
from legged.robot.placement import Placement
from legged.robot.shapes import Material
from legged.spatial import Array


class Solid(NamedTuple):
    """A kind of shape that sizes define, with all that depends on the kind in files.

    Attributes:
        halves: Factors from the half lengths and radii of MuJoCo to the sizes of a `Shape`.
        extent: Half the largest extent, [m], approximately, from the sizes.
        make: Returns the shape of a link from sizes, position (3,), [m], and rotation (3, 3).
    """

    halves: tuple[float, ...]
    extent: Callable[..., float]
    make: Callable[[tuple[float, ...], Array, Array], Any]


SOLIDS = {
    "sphere": Solid((1.0,), max, lambda size, r, R: shapes.Sphere(size[0], r)),
    "box": Solid((2.0, 2.0, 2.0), lambda size: max(size) / 2, lambda size, r, R: shapes.Box(np.array(size), r, R)),
    "cylinder": Solid(
        (1.0, 2.0), lambda size: size[0] + size[1] / 2, lambda size, r, R: shapes.Cylinder(size[0], size[1], r, R)
    ),
    "capsule": Solid(
        (1.0, 2.0), lambda size: size[0] + size[1] / 2, lambda size, r, R: shapes.Capsule(size[0], size[1], r, R)
    ),
    "ellipsoid": Solid((1.0, 1.0, 1.0), max, lambda size, r, R: shapes.Ellipsoid(np.array(size), r, R)),
}
"""The kinds of shapes but meshes, by their names in MJCF."""


@dataclass(frozen=True, eq=False)
class Shape:
    """A collision shape of a link as stated in its file.

    Attributes:
        kind: "mesh", or a key of `SOLIDS`: "sphere", "box", "cylinder", "capsule" or "ellipsoid".
        size: Sphere: radius. Box: edges x, y, z. Cylinder and capsule: radius, length along z, which in a capsule is
            the distance of its spheres. Ellipsoid: half axes x, y, z. Mesh: empty. [m].
        position: Link origin to the center of the shape, (3,), [m], link axes.
        rotation: Shape axes to link axes, (3, 3).
        vertices: Vertices of a mesh, (n, 3), [m], shape axes; None for other shapes and for a mesh in its own file.
        mesh: The file of a mesh as stated in the robot file; "" for other shapes.
        scale: Factors of the coordinates in that file, (3,).
        material: Friction of the surface; None if the file does not state it.
    """

    kind: str
    size: tuple[float, ...]
    position: Array
    rotation: Array
    vertices: Array | None = None
    mesh: str = ""
    scale: tuple[float, ...] = (1.0, 1.0, 1.0)
    material: Material | None = None

    @property
    def is_mesh(self) -> bool:
        """Whether the shape is a mesh."""
        return self.kind == "mesh"

    def moved(self, place: Placement) -> Shape:
        """Return the shape in the frame that `place` locates the frame of its link in."""
        at = place @ Placement(self.rotation, self.position)
        return replace(self, position=at.position, rotation=at.rotation)


@dataclass(frozen=True, eq=False)
class LinkEntry:
    """A link as stated in its file, with an unchecked inertia.

    Attributes:
        name: Name in the file.
        mass: Mass, [kg]; None if the file gives no inertia.
        center: Link origin to center of mass, (3,), [m], link axes.
        tensor: Inertia tensor about the center of mass, (3, 3), [kg m^2], link axes.
        shapes: Collision shapes.
        visuals: Visual shapes, by which feet without collision shapes are measured.
    """

    name: str
    mass: float | None = None
    center: Array = field(default_factory=lambda: np.zeros(3))
    tensor: Array = field(default_factory=lambda: np.zeros((3, 3)))
    shapes: tuple[Shape, ...] = ()
    visuals: tuple[Shape, ...] = ()


@dataclass(frozen=True)
class Mimic:
    """Coupling of a mimic joint: q = multiplier * q_joint + offset."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True, eq=False)
class JointEntry:
    """A joint as stated in its file. The joint frame is the child link's frame at joint position zero.

    Attributes:
        name: Name in the file.
        kind: "revolute", "prismatic", "fixed", "planar", "free" or "ball".
        parent, child: Names of links.
        position: Origin of the parent link to the origin of the joint frame, (3,), [m], parent axes.
        rotation: Joint axes to parent axes, (3, 3).
        axis: Unit vector (3,), joint axes; the normal of a planar joint.
        physics: Friction, springs, rotors and limits.
        mimic: Coupling to another joint; None for an independent joint.
    """

    name: str
    kind: str
    parent: str
    child: str
    position: Array = field(default_factory=lambda: np.zeros(3))
    rotation: Array = field(default_factory=lambda: np.eye(3))
    axis: Array = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    physics: JointPhysics = field(default_factory=JointPhysics)
    mimic: Mimic | None = None

    @property
    def is_fixed(self) -> bool:
        """Whether the joint connects its links rigidly."""
        return self.kind == "fixed"


@dataclass(frozen=True, eq=False)
class Description:
    """Links and joints of a robot, in the order of the file.

    Attributes:
        name: Name of the robot.
        source: Path or format, for messages.
        root: Name of the link that has no parent.
        links, joints: In the order of the file.
        floating: Base type stated by the file: True for a floating root, False for a fixed one, None if not stated.
        lost: Elements of the file that are not represented here, one sentence each.
        gravity: Gravitational acceleration, (3,), [m/s^2], world axes; None if not stated.
        repeated: Elements that a link or joint has more than once, of which the first counts, such as
            ("joint", "left_hip", "axis").
        base: Kind of base that the file describes: "floating", "planar", or "joints" for a robot on a fixed base whose
            first joints move it as a base does; "" if none is stated.
        base_physics: Armature and damping of the free joint of the base.
        choices: Choices made where the file is ambiguous, one sentence each.
        postures: Name -> position of each joint by name, (n,) each, [rad], [m] or unit quaternions, as in q.
    """

    name: str
    source: str
    root: str
    links: tuple[LinkEntry, ...]
    joints: tuple[JointEntry, ...]
    floating: bool | None = None
    lost: tuple[str, ...] = ()
    gravity: Array | None = None
    repeated: tuple[tuple[str, str, str], ...] = ()
    base: str = ""
    base_physics: JointPhysics = field(default_factory=JointPhysics)
    choices: tuple[str, ...] = ()
    postures: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)


IDENTITY = Placement(np.eye(3), np.zeros(3))


@dataclass(frozen=True, eq=False)
class Tree:
    """A description whose joints are known to form a tree.

    A *group* is a set of links connected by fixed joints. Its *head* is the link that a moving
    joint connects to the rest of the robot, or the root.

    Attributes:
        description: The description.
        link: Links by name.
        order: Names of links, parent before child.
        joint: Link -> the joint to its parent; the root has none.
        children: Link -> its child links, in the order of the joints.
        head: Link -> the head of its group.
        groups: Head -> the links of its group, the head first.
        place: Link -> its frame relative to the frame of its head.
        pose: Link -> its frame relative to the root frame, all joints at zero.
        inertias: Head -> inertia of its group, as far as `inertias.group_inertia` has computed them.
    """

    description: Description
    link: dict[str, LinkEntry]
    order: tuple[str, ...]
    joint: dict[str, JointEntry]
    children: dict[str, list[str]]
    head: dict[str, str]
    groups: dict[str, list[str]]
    place: dict[str, Placement]
    pose: dict[str, Placement]
    inertias: dict[str, Inertia] = field(default_factory=dict, init=False, repr=False)

    def path(self, name: str) -> list[str]:
        """Return the heads on the path from a link to the root, both ends included."""
        path = [self.head[name]]
        while path[-1] in self.joint:
            path.append(self.head[self.joint[path[-1]].parent])
        return path

    def is_end(self, head: str) -> bool:
        """Return whether no moving joint starts at a link of this group."""
        return all(self.head[child] == head for name in self.groups[head] for child in self.children[name])


def tree_of(description: Description) -> Tree:
    """Return the tree of a description.

    Raises:
        FileError: duplicate names, a joint to an unknown link, a link with two parents, or a cycle.
    """
    (root, numbers), link = _outward(description), {link.name: link for link in description.links}
    joint = {j.child: j for j in description.joints}
    order = [root, *(description.joints[k].child for k in numbers)]
    children: dict[str, list[str]] = {name: [] for name in order}
    head, groups, place, pose = {root: root}, {root: [root]}, {root: IDENTITY}, {root: IDENTITY}
    for child in order[1:]:
        j = joint[child]
        start, is_fixed = Placement(j.rotation, j.position), j.is_fixed
        children[j.parent].append(child)
        pose[child] = pose[j.parent] @ start
        head[child] = head[j.parent] if is_fixed else child
        place[child] = place[j.parent] @ start if is_fixed else IDENTITY
        groups.setdefault(head[child], []).append(child)
    return Tree(description, link, tuple(order), joint, children, head, groups, place, pose)


def _outward(description: Description) -> tuple[str, list[int]]:
    """Return (the root, the numbers of the joints, parent before child), or raise FileError."""
    links = [link.name for link in description.links]
    try:
        check_names("link", links)
        check_names("joint", [joint.name for joint in description.joints])
        known = set(links)
        for joint in description.joints:
            for end in (joint.parent, joint.child):
                if end not in known:
                    words = f"joint {joint.name!r} refers to link {end!r}, which does not exist; correct the name"
                    raise DefinitionError(words)
        return outward(links, [(joint.name, joint.parent, joint.child) for joint in description.joints])
    except DefinitionError as error:
        raise FileError(description.source, str(error)) from error
