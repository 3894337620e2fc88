"""Repairs that a user asks for by name; what was done is told, and nothing is done unasked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from legged.errors import UnknownNameError
from legged.files.description import Description, JointEntry, LinkEntry
from legged.files.masses import entry_inertia, weld_inertia
from legged.files.possible import fault_of, nearest
from legged.files.settle import locked
from legged.files.tree import Tree, tree_of


def repaired(tree: Tree, repair: str | Sequence[str] | None) -> tuple[Tree, list[str]]:
    """Return the repaired tree, and what was done, one sentence each.

    Args:
        tree: As the file has it.
        repair: Keys of `REPAIRS`, done in the order given.

    Raises:
        UnknownNameError: for a repair that is none.
    """
    names = [repair] if isinstance(repair, str) else list(repair or ())
    done: list[str] = []
    for name in names:
        if name not in REPAIRS:
            raise UnknownNameError("repair", name, REPAIRS)
        description, did = REPAIRS[name](tree)
        tree, done = tree_of(description), done + did
    return tree, done


def massless_ends(tree: Tree) -> list[str]:
    """Return the heads, root excepted, outward of which nothing has mass or inertia, themselves included."""
    heavy: set[str] = set()
    ends = []
    for head in reversed(tree.welds):  # children before parents
        inertia = weld_inertia(tree, head)
        if inertia.mass or np.any(inertia.tensor):
            heavy.update(tree.path(head))
        if head not in heavy and head != tree.description.root:
            ends.append(head)
    return ends[::-1]


def without_inertia(tree: Tree) -> list[str]:
    """Return the heads whose joint meets no inertia: nothing outward has mass, no rotor turns, and no joint that moves
    with it does better."""
    ends = [head for head in massless_ends(tree) if not _has_armature(tree.joint[head])]
    alive = {_leader(joint) for child, joint in tree.joint.items() if joint.kind != "fixed" and child not in ends}
    return [head for head in ends if _leader(tree.joint[head]) not in alive]


def _leader(joint: JointEntry) -> str:
    return joint.mimic.joint if joint.mimic else joint.name


def _has_armature(joint: JointEntry) -> bool:
    rotor = joint.physics.rotor
    return bool(np.all(np.asarray(joint.physics.armature) > 0) or (rotor and rotor.gear * rotor.inertia != 0.0))


def _weld(tree: Tree) -> tuple[Description, list[str]]:
    ends = {tree.joint[head].name for head in without_inertia(tree)}
    joints = tuple(locked(joint, 0.0) if joint.name in ends else joint for joint in tree.description.joints)
    named = [joint.name for joint in tree.description.joints if joint.name in ends]
    did = [f"joint {name!r} is welded at zero, since it moves nothing that has mass" for name in named]
    return replace(tree.description, joints=joints), did


def _possible(tree: Tree) -> tuple[Description, list[str]]:
    links, did = [], []
    for link in tree.description.links:
        inertia = entry_inertia(link)
        fault = fault_of(inertia)
        if fault and inertia.mass > 0:
            link, words = _nearest(link), fault.words
            did.append(f"the inertia of link {link.name!r} is the nearest that a body can have, instead of {words}")
        links.append(link)
    return replace(tree.description, links=tuple(links)), did


def _nearest(link: LinkEntry) -> LinkEntry:
    return replace(link, tensor=np.asarray(nearest(entry_inertia(link)).tensor))


REPAIRS: dict[str, Callable[[Tree], tuple[Description, list[str]]]] = {"weld": _weld, "inertia": _possible}
"""What can be asked for: "weld" welds joints that move nothing with mass; "inertia" takes, for each link whose inertia
no body has, the nearest one that a body can have."""
