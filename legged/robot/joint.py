"""Joints: user definitions, their stages of one degree of freedom, and joints placed in a robot.

The recursions treat a joint with several degrees of freedom as a chain of one-DoF joints with massless links between,
as the paper does (its reference [33]). Only the quaternion ball joint is a single stage with three degrees of freedom.
`legged.robot.stages` has the kinds of stages.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import NamedTuple

import numpy as np

from legged.arguments import rounded_array
from legged.checked import checked
from legged.errors import DefinitionError
from legged.robot.physics import JointPhysics
from legged.robot.placement import Placement
from legged.robot.stages.stage import Axis, Stage, unit_axis


@checked
@dataclass(frozen=True, eq=False)
class Joint:
    """Base class of the joints.

    Axes are written in the joint's frame, which is placed on the parent link when the joint is added to a robot.
    """

    name: str
    physics: JointPhysics = field(default_factory=JointPhysics, kw_only=True)

    def __post_init__(self) -> None:
        if not self.name:
            raise DefinitionError("a joint needs a name")
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name not in ("name", "physics") and not (value is None or isinstance(value, str)):
                object.__setattr__(self, each.name, rounded_array(each.name, value))

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The joint as a chain of stages, parent before child."""
        raise NotImplementedError

    @property
    def stage_entries(self) -> tuple[slice, ...]:
        """The entries of the joint's q that each stage depends on; a stage that repeats another has its entries."""
        entries: list[slice] = []
        own = 0
        for stage in self.stages:
            entries.append(slice(own, own + stage.nq) if stage.repeats is None else entries[stage.repeats])
            own += stage.nq
        return tuple(entries)

    @property
    def nq(self) -> int:
        """Number of configuration coordinates."""
        return sum(stage.nq for stage in self.stages)

    @property
    def nv(self) -> int:
        """Number of degrees of freedom."""
        return sum(stage.nv for stage in self.stages)

    @property
    def kind(self) -> str:
        """Name of the joint type in lower case."""
        return type(self).__name__.lower()

    @property
    def has_quaternion(self) -> bool:
        """Whether its coordinates have a unit quaternion."""
        return any(stage.motion.has_quaternion for stage in self.stages)

    @property
    def locking_sequence(self) -> str | None:
        """Axes of three rotations, such as "zyx", whose second coordinate of q can lock the joint; None without."""
        return None

    def _stage(self, kind: str, axis: Axis) -> Stage:
        return Stage(kind, unit_axis(f"the axis of joint {self.name!r}", axis))


@checked
@dataclass(frozen=True, eq=False)
class Revolute(Joint):
    """Rotation about an axis; q is the angle [rad]."""

    axis: Axis = "z"

    @property
    def stages(self) -> tuple[Stage, ...]:
        return (self._stage("revolute", self.axis),)


@checked
@dataclass(frozen=True, eq=False)
class Prismatic(Joint):
    """Translation along an axis; q is the displacement [m]."""

    axis: Axis = "z"

    @property
    def stages(self) -> tuple[Stage, ...]:
        return (self._stage("prismatic", self.axis),)


@checked
@dataclass(frozen=True, eq=False)
class Screw(Joint):
    """Rotation about an axis that moves the child along it by `pitch` [m/rad] times the angle; q is the angle [rad].

    A thread with a lead of 5 mm per revolution has a pitch of 0.005 / (2 pi); that of a left-handed one is negative.
    """

    axis: Axis = "z"
    pitch: float = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "pitch", float(self.pitch))
        if self.pitch == 0.0:
            raise DefinitionError(f"screw joint {self.name!r} has a pitch of zero: use a revolute joint")

    @property
    def stages(self) -> tuple[Stage, ...]:
        return (replace(self._stage("screw", self.axis), pitch=self.pitch),)


@checked
@dataclass(frozen=True, eq=False)
class Cylindrical(Joint):
    """Translation along an axis and rotation about it; q = [m, rad]."""

    axis: Axis = "z"

    @property
    def stages(self) -> tuple[Stage, ...]:
        return self._stage("prismatic", self.axis), self._stage("revolute", self.axis)


@checked
@dataclass(frozen=True, eq=False)
class Universal(Joint):
    """Rotation about `first`, then about `second`, which rotates with the first; q holds the two angles [rad]."""

    first: Axis = "x"
    second: Axis = "y"

    @property
    def stages(self) -> tuple[Stage, ...]:
        return self._stage("revolute", self.first), self._stage("revolute", self.second)


@checked
@dataclass(frozen=True, eq=False)
class Spherical(Joint):
    """Ball joint.

    Without a sequence, q is a unit quaternion (w first, child axes to parent axes) and v the child's angular velocity
    relative to the parent in child axes; this has no singularities. With a sequence such as "zxy", q holds three
    intrinsic Euler angles [rad].
    """

    sequence: str | None = None

    @property
    def stages(self) -> tuple[Stage, ...]:
        if self.sequence is None:
            return (Stage("ball", np.array([0.0, 0.0, 1.0])),)
        return tuple(self._stage("revolute", axis) for axis in euler_axes(self.sequence))

    @property
    def locking_sequence(self) -> str | None:
        return self.sequence


@checked
@dataclass(frozen=True, eq=False)
class Planar(Joint):
    """Translations along `first` and `second`, then rotation about their common normal; q = [m, m, rad]."""

    first: Axis = "x"
    second: Axis = "y"

    @property
    def stages(self) -> tuple[Stage, ...]:
        a, b = self._stage("prismatic", self.first), self._stage("prismatic", self.second)
        if abs(a.axis @ b.axis) > 1e-9:
            raise DefinitionError(f"the two sliding axes of planar joint {self.name!r} must be perpendicular")
        return a, b, Stage("revolute", np.cross(a.axis, b.axis))


@checked
@dataclass(frozen=True, eq=False)
class ConstantVelocity(Joint):
    """Constant-velocity joint: bends in any direction, and transmits the rotation of the shafts without distortion.

    It is a double Cardan joint, two universal joints that mirror each other in the bisecting plane of the shafts. q
    holds the two angles (a, b) of each of them [rad], so that b = 0 bends the joint by 2 a about `first`. With the
    shaft along e = first x second, the rotation R from child axes to joint axes is

        R = R_first(a) R_second(b) R_second(b) R_first(a)
          = the rotation about sin(a) cos(b) first + sin(b) second by theta, cos(theta / 2) = cos(a) cos(b)

    Its axis is always normal to e: there is no rotation about the shaft. In the bisecting frame, which lies between the
    two universal joints, the child's angular velocity relative to the parent is S v, and S' v its apparent rate:

        S = [2 cos(b)  0]           S' v = [-2 sin(b) a' b']
            [   0      2]                  [        0      ]
            [   0      0]                  [        0      ]

    The joint is singular at b = pi/2, beyond which real ones do not bend.
    """

    first: Axis = "x"
    second: Axis = "y"

    @property
    def locking_sequence(self) -> str | None:
        return "xyz"

    @property
    def stages(self) -> tuple[Stage, ...]:
        a, b = self._stage("revolute", self.first), self._stage("revolute", self.second)
        if abs(a.axis @ b.axis) > 1e-9:
            raise DefinitionError(f"the two axes of constant-velocity joint {self.name!r} must be perpendicular")
        return a, b, replace(b, repeats=1), replace(a, repeats=0)


@checked
@dataclass(frozen=True, eq=False)
class Free(Joint):
    """Six degrees of freedom, anywhere in the tree; the floating base of a robot is `FloatingBase`.

    q = [position of the child's origin, (3,), [m], joint axes; unit quaternion, w first, child axes to joint axes];
    v = [its velocity, joint axes; the child's angular velocity relative to the parent, child axes].
    """

    @property
    def stages(self) -> tuple[Stage, ...]:
        translations = tuple(self._stage("prismatic", axis) for axis in "xyz")
        return *translations, Stage("ball", np.array([0.0, 0.0, 1.0]))


@checked
@dataclass(frozen=True, eq=False)
class Fixed(Joint):
    """Rigid connection of the child to the parent."""

    @property
    def stages(self) -> tuple[Stage, ...]:
        return ()


def euler_axes(sequence: str) -> tuple[str, str, str]:
    """Return the three axes of an Euler sequence such as "zxz" or "xyz", or raise DefinitionError."""
    letters = tuple(sequence.lower())
    if len(letters) != 3 or set(letters) - set("xyz") or letters[0] == letters[1] or letters[1] == letters[2]:
        raise DefinitionError(
            f"Euler sequence {sequence!r} must be three letters of x, y, z with no two neighbors alike, such as 'zxy'"
        )
    return letters[0], letters[1], letters[2]


@dataclass(frozen=True, eq=False)
class PlacedJoint:
    """A joint of a robot: its definition, the links it connects, and its slices of q and v."""

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


class Closure(NamedTuple):
    """A joint that closes a loop: its name and type, and the names of its links; the parent may be None, the world."""

    name: str
    kind: str
    parent: str | None
    child: str


@dataclass(frozen=True, eq=False)
class Follower(PlacedJoint):
    """A coupled joint: its position is ratio * q + offset, where `q` and `v` are the slices of its master."""

    master: str
    ratio: float
    offset: float


@dataclass(frozen=True, eq=False)
class Connection:
    """A joint between two links, by name; `start` is the pose of the joint's frame in the parent link's frame."""

    joint: Joint
    parent: str
    child: str
    start: Placement


@dataclass(frozen=True)
class Coupling:
    """A coupling of two joints of one degree of freedom: q_follower = ratio * q_master + offset (URDF's mimic).

    Attributes:
        follower, master: Names of joints.
        ratio: Ratio of their rates, in the units of the two joints.
        offset: [rad] or [m].
    """

    follower: str
    master: str
    ratio: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.ratio) and np.isfinite(self.offset)):
            raise DefinitionError(
                f"joint {self.follower!r} needs a finite ratio and offset, got {self.ratio} and {self.offset}"
            )
        if self.ratio == 0.0:
            raise DefinitionError(
                f"joint {self.follower!r} follows {self.master!r} with a ratio of zero: it does not move; use a fixed "
                f"joint"
            )
        object.__setattr__(self, "ratio", float(self.ratio))
        object.__setattr__(self, "offset", float(self.offset))

    def prefixed(self, prefix: str) -> Coupling:
        """Return the coupling with a prefix before both names."""
        return replace(self, follower=prefix + self.follower, master=prefix + self.master)
