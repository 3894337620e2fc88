"""The tree that a description's joints make: who hangs on whom, what is welded to what, where everything is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from legged.errors import FileError
from legged.files.description import Description, JointEntry, LinkEntry
from legged.robot.frames import Placement

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
