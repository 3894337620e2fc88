"""Description of a robot as read from a file, and its tree of links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from legged.errors import FileError
from legged.robot.physics import JointPhysics
from legged.robot.placement import Placement
from legged.spatial import Array


@dataclass(frozen=True, eq=False)
class Shape:
    """A collision shape, as far as it tells where a link may touch the ground.

    Attributes:
        kind: "sphere", "box", "cylinder", "capsule" or "mesh".
        size: Radius; edges (x, y, z); radius and length along z; likewise; none, [m].
        position: Link origin to the shape's middle, (3,), [m], link axes.
        rotation: (3, 3), shape axes to link axes.
    """

    kind: str
    size: tuple[float, ...]
    position: Array
    rotation: Array


@dataclass(frozen=True, eq=False)
class LinkEntry:
    """A link as its file has it; nothing says yet that a body like this exists.

    Attributes:
        name: The file's.
        mass: [kg], or None where the file gives no inertia at all.
        center: Link origin to center of mass, (3,), [m], link axes.
        tensor: Inertia about the center of mass, (3, 3), [kg m^2], link axes.
        shapes: Collision shapes.
    """

    name: str
    mass: float | None = None
    center: Array = field(default_factory=lambda: np.zeros(3))
    tensor: Array = field(default_factory=lambda: np.zeros((3, 3)))
    shapes: tuple[Shape, ...] = ()


@dataclass(frozen=True)
class Mimic:
    """A joint that follows another: q = multiplier * q_joint + offset."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True, eq=False)
class JointEntry:
    """A joint as its file has it. The joint's frame is the child link's frame at zero.

    Attributes:
        name: The file's.
        kind: "revolute", "prismatic", "fixed", "planar", "free" or "ball".
        parent, child: Names of links.
        position: Parent link's origin to the joint, (3,), [m], parent axes.
        rotation: (3, 3), joint axes to parent axes.
        axis: Unit vector (3,), joint axes; the normal of a planar joint.
        physics: Friction, springs, rotors and limits.
        mimic: What it follows, if anything.
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


@dataclass(frozen=True, eq=False)
class Description:
    """A file's robot: what stands in it, in the file's order.

    Attributes:
        name: The robot's. source: Path or format, for messages.
        root: Name of the link that nothing carries.
        links, joints: In the file's order.
        floating: Whether the file itself says that the root moves freely (True), stands still (False) or nothing.
        lost: What the file has and this does not carry: one sentence each.
        gravity: (3,), [m/s^2], world axes, or None where the file says nothing.
    """

    name: str
    source: str
    root: str
    links: tuple[LinkEntry, ...]
    joints: tuple[JointEntry, ...]
    floating: bool | None = None
    lost: tuple[str, ...] = ()
    gravity: Array | None = None


HERE = Placement(np.eye(3), np.zeros(3))


@dataclass(frozen=True, eq=False)
class Tree:
    """A description whose joints are known to make a tree.

    Attributes:
        description: What it is of.
        link: The links by name.
        order: Names of links, parent before child.
        joint: Link -> the joint that holds it; nothing for the root.
        children: Link -> the links that hang on it, in the order of the joints.
        head: Link -> the link that carries it: the one of its welded group that a moving joint holds, or the root.
        welds: Head -> its group, itself first.
        place: Link -> its frame in its head's frame.
        pose: Link -> its frame in the root's frame, all joints at zero.
    """

    description: Description
    link: dict[str, LinkEntry]
    order: tuple[str, ...]
    joint: dict[str, JointEntry]
    children: dict[str, list[str]]
    head: dict[str, str]
    welds: dict[str, list[str]]
    place: dict[str, Placement]
    pose: dict[str, Placement]

    def path(self, name: str) -> list[str]:
        """Return the heads from a link's own to the root, both included."""
        path = [self.head[name]]
        while path[-1] in self.joint:
            path.append(self.head[self.joint[path[-1]].parent])
        return path

    def is_end(self, head: str) -> bool:
        """Return whether no moving joint hangs on this group."""
        return all(self.head[child] == head for name in self.welds[head] for child in self.children[name])


def tree_of(description: Description) -> Tree:
    """Return the tree, or raise FileError: a name twice, a link that is not there, cycles, links that nothing holds."""
    source, names = description.source, {link.name for link in description.links}
    _refuse_twice("link", [link.name for link in description.links], source)
    _refuse_twice("joint", [joint.name for joint in description.joints], source)
    joint: dict[str, JointEntry] = {}
    children: dict[str, list[str]] = {name: [] for name in names}
    for j in description.joints:
        for end in (j.parent, j.child):
            if end not in names:
                raise FileError(
                    source, f"joint {j.name!r} names the link {end!r}, which is not there; correct the name"
                )
        if j.child in joint or j.child == description.root:
            other = f"joint {joint[j.child].name!r} too" if j.child in joint else "nothing, as the root"
            raise FileError(
                source, f"link {j.child!r} hangs on joint {j.name!r} and on {other}; robots are trees, so remove one"
            )
        joint[j.child] = j
        children[j.parent].append(j.child)
    return _placed(description, joint, children)


def _placed(description: Description, joint: dict[str, JointEntry], children: dict[str, list[str]]) -> Tree:
    root = description.root
    head, welds, place, pose = {root: root}, {root: [root]}, {root: HERE}, {root: HERE}
    order = [root]
    for name in order:
        for child in children[name]:
            j = joint[child]
            start = Placement(j.rotation, j.position)
            order.append(child)
            pose[child] = pose[name] @ start
            fixed = j.kind == "fixed"
            head[child] = head[name] if fixed else child
            place[child] = place[name] @ start if fixed else HERE
            welds.setdefault(head[child], []).append(child)
    if len(order) < len(children):
        loose = sorted(set(children) - set(order))[:5]
        raise FileError(
            description.source, f"the joints of the links {', '.join(loose)} close a cycle; remove one of them"
        )
    return Tree(
        description,
        {link.name: link for link in description.links},
        tuple(order),
        joint,
        children,
        head,
        welds,
        place,
        pose,
    )


def _refuse_twice(what: str, names: Sequence[str], source: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise FileError(source, f"two {what}s have the name {name!r}; rename one")
        seen.add(name)
