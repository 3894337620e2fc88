"""Dropping fixed links: their mass, their shapes and their feet go to the link that carries them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from legged.files.description import JointEntry, LinkEntry, Shape
from legged.files.feet import Foot
from legged.files.masses import weld_inertia
from legged.files.tree import Tree, tree_of
from legged.robot.frames import Placement


def fused(tree: Tree, feet: tuple[Foot, ...]) -> tuple[Tree, tuple[Foot, ...]]:
    """Return the tree without fixed joints, and the feet on the links that are left."""
    links = tuple(_carrier(tree, link.name) for link in tree.description.links if link.name in tree.welds)
    joints = tuple(_moved(tree, joint) for joint in tree.description.joints if joint.kind != "fixed")
    description = replace(tree.description, links=links, joints=joints)
    return tree_of(description), tuple(_moved_foot(tree, foot) for foot in feet)


def _carrier(tree: Tree, head: str) -> LinkEntry:
    inertia = weld_inertia(tree, head)
    has_any = any(tree.link[name].mass is not None for name in tree.welds[head])
    shapes = tuple(_shape(tree.place[name], shape) for name in tree.welds[head] for shape in tree.link[name].shapes)
    return LinkEntry(
        head, inertia.mass if has_any else None, np.asarray(inertia.center), np.asarray(inertia.tensor), shapes
    )


def _shape(place: Placement, shape: Shape) -> Shape:
    moved = place @ Placement(shape.rotation, shape.position)
    return replace(shape, position=moved.position, rotation=moved.rotation)


def _moved(tree: Tree, joint: JointEntry) -> JointEntry:
    start = tree.place[joint.parent] @ Placement(joint.rotation, joint.position)
    return replace(joint, parent=tree.head[joint.parent], position=start.position, rotation=start.rotation)


def _moved_foot(tree: Tree, foot: Foot) -> Foot:
    place = tree.place[foot.link]
    points = {name: place.rotation @ point + place.position for name, point in foot.points.items()}
    return replace(foot, link=tree.head[foot.link], points=points)
