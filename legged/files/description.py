"""What a robot's file says, before anything is judged: the common ground of URDF, MJCF, audit and export."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from legged.robot.physics import JointPhysics
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
