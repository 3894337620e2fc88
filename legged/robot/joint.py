"""Joints as the user defines them, and the one-DoF stages that the recursions see.

A joint with several degrees of freedom is a chain of one-DoF joints with massless links between, as the paper treats
it (its reference [33]); only the quaternion ball joint is a single stage with three.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from legged.errors import DefinitionError
from legged.robot.given import vector3
from legged.robot.inertia import Vector
from legged.robot.physics import JointPhysics
from legged.spatial import Array

Axis = str | Vector
_NAMED = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


def unit_axis(what: str, axis: Axis) -> Array:
    """Return an axis as a unit vector (3,); takes "x", "-y", ... or three numbers of unit length to nine digits."""
    if isinstance(axis, str):
        if axis.lstrip("+-") not in _NAMED or len(axis) > 2:
            raise DefinitionError(f"{what} must be 'x', 'y', 'z', '-x', '-y', '-z' or a unit vector, got {axis!r}")
        return (-1.0 if axis.startswith("-") else 1.0) * np.array(_NAMED[axis[-1]]) + 0.0
    vector = vector3(what, axis)
    length = np.linalg.norm(vector)
    if length == 0.0:
        raise DefinitionError(f"{what} is zero; it must be a unit vector")
    if abs(length - 1.0) > 1e-9:
        raise DefinitionError(f"{what} must have unit length, got {vector} of length {length:.9g}; divide it by that")
    return vector / length


@dataclass(frozen=True, eq=False)
class Stage:
    """One joint of the recursions: kind "revolute", "prismatic" or "ball", about or along a unit axis (3,)."""

    kind: str
    axis: Array

    @property
    def nq(self) -> int:
        return 4 if self.kind == "ball" else 1

    @property
    def nv(self) -> int:
        return 3 if self.kind == "ball" else 1


@dataclass(frozen=True, eq=False)
class Joint:
    """Base of all joints. The joint's frame is placed when it is added to a robot; axes are written in that frame."""

    name: str
    physics: JointPhysics = field(default_factory=JointPhysics, kw_only=True)

    def __post_init__(self) -> None:
        if not self.name:
            raise DefinitionError("a joint needs a name")

    @property
    def stages(self) -> tuple[Stage, ...]:
        raise NotImplementedError

    @property
    def nq(self) -> int:
        return sum(stage.nq for stage in self.stages)

    @property
    def nv(self) -> int:
        return sum(stage.nv for stage in self.stages)

    @property
    def kind(self) -> str:
        return type(self).__name__.lower()

    def _stage(self, kind: str, axis: Axis) -> Stage:
        return Stage(kind, unit_axis(f"the axis of joint {self.name!r}", axis))


@dataclass(frozen=True, eq=False)
class Revolute(Joint):
    """Turns about an axis; q is the angle [rad]."""

    axis: Axis = "z"

    @property
    def stages(self) -> tuple[Stage, ...]:
        return (self._stage("revolute", self.axis),)


@dataclass(frozen=True, eq=False)
class Prismatic(Joint):
    """Slides along an axis; q is the displacement [m]."""

    axis: Axis = "z"

    @property
    def stages(self) -> tuple[Stage, ...]:
        return (self._stage("prismatic", self.axis),)


@dataclass(frozen=True, eq=False)
class Universal(Joint):
    """Turns about `first`, then about `second` carried along by the first; q holds the two angles [rad]."""

    first: Axis = "x"
    second: Axis = "y"

    @property
    def stages(self) -> tuple[Stage, ...]:
        return self._stage("revolute", self.first), self._stage("revolute", self.second)


@dataclass(frozen=True, eq=False)
class Spherical(Joint):
    """A ball joint.

    With `sequence` None, q is a unit quaternion (w first, child axes to parent axes) and v the child's relative
    angular velocity in child axes: free of singularities. With a sequence such as "zxy", three intrinsic angles.
    """

    sequence: str | None = None

    @property
    def stages(self) -> tuple[Stage, ...]:
        if self.sequence is None:
            return (Stage("ball", np.array([0.0, 0.0, 1.0])),)
        return tuple(self._stage("revolute", axis) for axis in euler_axes(self.sequence))


@dataclass(frozen=True, eq=False)
class Planar(Joint):
    """Slides along `first` and `second`, then turns about their common normal; q = [m, m, rad]."""

    first: Axis = "x"
    second: Axis = "y"

    @property
    def stages(self) -> tuple[Stage, ...]:
        a, b = self._stage("prismatic", self.first), self._stage("prismatic", self.second)
        if abs(a.axis @ b.axis) > 1e-9:
            raise DefinitionError(f"the two sliding axes of planar joint {self.name!r} must be perpendicular")
        return a, b, Stage("revolute", np.cross(a.axis, b.axis))


@dataclass(frozen=True, eq=False)
class Free(Joint):
    """Moves in all six ways, anywhere in the tree; a robot's own free base is `FloatingBase`.

    q = [position of the child's origin, (3,), [m], joint axes; unit quaternion, w first, child axes to joint axes];
    v = [its velocity, joint axes; the child's angular velocity relative to the parent, child axes].
    """

    @property
    def stages(self) -> tuple[Stage, ...]:
        slides = tuple(self._stage("prismatic", axis) for axis in "xyz")
        return *slides, Stage("ball", np.array([0.0, 0.0, 1.0]))


@dataclass(frozen=True, eq=False)
class Fixed(Joint):
    """Welds the child to the parent."""

    @property
    def stages(self) -> tuple[Stage, ...]:
        return ()


def euler_axes(sequence: str) -> tuple[str, str, str]:
    """Return the axes of an Euler sequence such as "zxz" or "xyz", or raise DefinitionError."""
    letters = tuple(sequence.lower())
    if len(letters) != 3 or set(letters) - set("xyz") or letters[0] == letters[1] or letters[1] == letters[2]:
        raise DefinitionError(
            f"Euler sequence {sequence!r} must be three letters of x, y, z with no two neighbors alike, such as 'zxy'"
        )
    return letters[0], letters[1], letters[2]


@dataclass(frozen=True, eq=False)
class PlacedJoint:
    """A joint of a finished robot: its definition, the links it joins, and its slices of q and v."""

    definition: Joint
    parent: str
    child: str
    q: slice
    v: slice

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def kind(self) -> str:
        return self.definition.kind

    @property
    def nq(self) -> int:
        return self.definition.nq

    @property
    def nv(self) -> int:
        return self.definition.nv


@dataclass(frozen=True, eq=False)
class Follower(PlacedJoint):
    """A joint that moves as another does: its position is ratio * q + offset, where `q` and `v` are its master's."""

    master: str
    ratio: float
    offset: float
