"""Conversion of state and force vectors between a robot and another program, with joints matched by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from legged.arguments import real_array
from legged.conversions.charts import (
    OUR_BASE,
    OUR_JOINT,
    BallChart,
    Chart,
    CircleChart,
    FreeChart,
    FreeJointLayout,
    PlanarChart,
)
from legged.errors import MismatchError, NotFiniteError, ShapeError, UnknownNameError
from legged.files.export_description import base_names, own_stage_names, slide_name, stage_names
from legged.robot.base import FloatingBase
from legged.robot.joint import Follower, Free, Joint, PlacedJoint, Planar, Revolute, Screw, Spherical
from legged.robot.robot import Robot
from legged.spatial import Array


@dataclass(frozen=True, eq=False)
class JointConversion:
    """Conversion of one joint, or of the base.

    Attributes:
        chart: Coordinates in both programs.
        q, v: Entries in our vectors.
        other_q, other_v: Entries in the vectors of the other program.
        ratio, offset: Coupling of a joint that follows another: its position is ratio * q + offset.
        follows: Whether the joint follows another; it then has no entries of its own in our q and v.
    """

    chart: Chart
    q: slice
    v: slice
    other_q: slice
    other_v: slice
    ratio: float = 1.0
    offset: float = 0.0
    follows: bool = False


@dataclass(frozen=True, eq=False)
class Conversion:
    """Conversion of the vectors of a robot to and from another program; all arrays may have leading axes.

    Configurations are (..., robot.nq) here and (..., nq) in the other program. Velocities, accelerations (rates of the
    components of the velocity) and generalized forces (equal power) are (..., robot.nv) and (..., nv).

    A joint that follows another (`robot.followers`) may have coordinates of its own in the other program. They are
    computed from the joint that it follows, and its force is set to zero. In the opposite direction its coordinates are
    ignored, and its force is added to that of the joint that it follows.

    Attributes:
        robot: Our robot.
        program: Name of the other program.
        nq, nv: Lengths of the vectors of the other program.
        parts: Conversions of the joints and of the base.
        rest: Configuration of the other program, (nq,), in which the entries of bodies beside the robot are used; their
            velocities and forces are zero. None if there are none.
    """

    robot: Robot
    program: str
    nq: int
    nv: int
    parts: tuple[JointConversion, ...]
    rest: Array | None = None

    def to_configuration(self, q: Any) -> Array:
        """Return the configuration of the other program, (..., nq), of our q, (..., robot.nq)."""
        (q,) = self._check_own(q=q)
        configuration = self._place(
            self.nq, "other_q", q, lambda p: p.chart.to_configuration(p.ratio * q[..., p.q] + p.offset)
        )
        if self.rest is not None:
            others = np.ones(self.nq, bool)
            for part in self.parts:
                others[part.other_q] = False
            configuration[..., others] = self.rest[others]
        return configuration

    def from_configuration(self, q: Any) -> Array:
        """Return our configuration, (..., robot.nq), of that of the other program, (..., nq)."""
        (q,) = self._check_other(q=q)
        return self._place(self.robot.nq, "q", q, lambda p: p.chart.from_configuration(q[..., p.other_q]))

    def to_velocity(self, q: Any, v: Any) -> Array:
        """Return the velocity of the other program, (..., nv), of our q, (..., robot.nq), and v, (..., robot.nv)."""
        q, v = self._check_own(q=q, v=v)
        return self._place(self.nv, "other_v", v, lambda p: p.ratio * p.chart.to_velocity(q[..., p.q], v[..., p.v]))

    def from_velocity(self, q: Any, v: Any) -> Array:
        """Return our velocity, (..., robot.nv), of q, (..., nq), and v, (..., nv), of the other program."""
        q, v = self._check_other(q=q, v=v)
        q = self.from_configuration(q)
        return self._place(self.robot.nv, "v", v, lambda p: p.chart.from_velocity(q[..., p.q], v[..., p.other_v]))

    def to_acceleration(self, q: Any, v: Any, vdot: Any) -> Array:
        """Return the acceleration of the other program, (..., nv), of our q, v and vdot."""
        q, v, vdot = self._check_own(q=q, v=v, vdot=vdot)

        def theirs(p: JointConversion) -> Array:
            return p.ratio * p.chart.to_acceleration(q[..., p.q], v[..., p.v], vdot[..., p.v])

        return self._place(self.nv, "other_v", v, theirs)

    def from_acceleration(self, q: Any, v: Any, vdot: Any) -> Array:
        """Return our acceleration, (..., nv of the robot), of q, v and vdot of the other program."""
        q, v, vdot = self._check_other(q=q, v=v, vdot=vdot)
        q, v = self.from_configuration(q), self.from_velocity(q, v)

        def ours(p: JointConversion) -> Array:
            return p.chart.from_acceleration(q[..., p.q], v[..., p.v], vdot[..., p.other_v])

        return self._place(self.robot.nv, "v", v, ours)

    def to_force(self, q: Any, tau: Any) -> Array:
        """Return the generalized forces of the other program, (..., nv), of our q and tau."""
        q, tau = self._check_own(q=q, tau=tau)

        def theirs(p: JointConversion) -> Array | float:
            return 0.0 if p.follows else p.chart.to_force(q[..., p.q], tau[..., p.v])

        return self._place(self.nv, "other_v", tau, theirs)

    def from_force(self, q: Any, tau: Any) -> Array:
        """Return our generalized forces, (..., nv of the robot), of q and tau of the other program."""
        q, tau = self._check_other(q=q, tau=tau)
        q = self.from_configuration(q)
        out = np.zeros((*tau.shape[:-1], self.robot.nv))
        for p in self.parts:
            out[..., p.v] += p.ratio * p.chart.from_force(q[..., p.q], tau[..., p.other_v])
        return out

    def _place(self, size: int, where: str, like: Array, part: Callable[[JointConversion], Array | float]) -> Array:
        """Return a vector, (..., size), assembled from the joints; our vectors have no entries for followers.

        Args:
            size: Length of the vector. where: Field of `JointConversion` with the entries of a joint in it.
            like: An array with its leading axes. part: The entries of a joint.
        """
        out = np.zeros((*like.shape[:-1], size))
        for p in self.parts:
            if where.startswith("other") or not p.follows:
                out[..., getattr(p, where)] = part(p)
        return out

    def _check_own(self, **arrays: Any) -> list[Array]:
        read = _read("", self.robot.nq, self.robot.nv, arrays)
        for p in self.parts:
            _check_unit("", read[0][..., p.q], p.chart.own_unit)
        return read

    def _check_other(self, **arrays: Any) -> list[Array]:
        read = _read(f"{self.program}'s ", self.nq, self.nv, arrays)
        for p in self.parts:
            _check_unit(f"{self.program}'s ", read[0][..., p.other_q], p.chart.other_unit)
        return read


def _read(whose: str, nq: int, nv: int, arrays: dict[str, Any]) -> list[Array]:
    """Return the arrays, broadcast to the same leading axes."""
    read = [_one(f"{whose}{name}", value, nq if name == "q" else nv) for name, value in arrays.items()]
    try:
        lead = np.broadcast_shapes(*(array.shape[:-1] for array in read))
    except ValueError as error:
        raise ShapeError(f"the leading axes of {', '.join(arrays)} differ: {[a.shape for a in read]}") from error
    return [np.broadcast_to(array, (*lead, array.shape[-1])) for array in read]


def _one(name: str, value: Any, size: int) -> Array:
    array = real_array(name, value).astype(float)
    if array.ndim == 0 or array.shape[-1] != size:
        raise ShapeError(f"{name} must be (..., {size}), got shape {array.shape}")
    if not np.isfinite(array).all():
        raise NotFiniteError(f"{name} must be finite, got {array[~np.isfinite(array)][0]}")
    return array


def _check_unit(whose: str, q: Array, where: slice | None) -> None:
    if where is None or q.size == 0:
        return
    norms = np.linalg.norm(q[..., where], axis=-1)
    worst = norms.flat[int(np.argmax(np.abs(norms - 1.0)))]
    if abs(worst - 1.0) > 1e-6:
        what = "quaternion" if where.stop - where.start == 4 else "cosine and sine"
        raise ShapeError(f"a {what} of {whose}q must have norm 1, got {worst:.9g}; divide it by its norm")


class OtherJoint(NamedTuple):
    """A joint in the model of another program.

    Attributes:
        name: Its name.
        kind: "plain" (the velocity is the rate of the coordinates), "circle", "turning plane", "ball", "free", or the
            name of the joint type in the program for others.
        q, v: Entries in the vectors of the program.
        order: Layout of a free joint; None for others.
        on_world: Whether it connects a body to the world, so that it may be a floating base.
        chart: Of a chain of joints that is a base of the robot; None for others.
        link: Name of the link that a free joint on the world, or such a chain, moves; "" for others.
    """

    name: str
    kind: str
    q: slice
    v: slice
    order: FreeJointLayout | None = None
    on_world: bool = False
    chart: Chart | None = None
    link: str = ""

    @property
    def size(self) -> int:
        return self.v.stop - self.v.start


def match_joints(
    robot: Robot, program: str, joints: Iterable[OtherJoint], nq: int, nv: int, *, w_first: bool
) -> Conversion:
    """Return the conversion between the vectors of a robot and those of another program.

    Args:
        robot: Our robot.
        program: Name of the other program, for messages.
        joints: The moving joints of the other program.
        nq, nv: Lengths of its vectors.
        w_first: Whether the quaternion of a ball joint has its real part first in the other program.

    Raises:
        UnknownNameError: A joint of the robot is missing in the program.
        MismatchError: A joint of the program is missing in the robot or of a different type, or a floating base without
            exactly one free joint.
    """
    return _Matcher(robot, program, tuple(joints), w_first).conversion(nq, nv)


def base_turn(robot: Robot, name: str, program: str) -> Array:
    """Return the rotation from axes of a link, which the base of another program moves, to those of ours, (3, 3).

    Args:
        robot: Our robot. name: Name of the link; the identity is returned for one that our base does not carry.
        program: Name of the other program, for messages.

    Raises:
        MismatchError: The origin of the link is not that of our base link.
    """
    base = robot.links[0]
    moved = next((link for link in robot.links if link.name == name and link.body == base.body), base)
    if np.any(moved.position != base.position):
        raise MismatchError(
            f"the floating base of {program} moves link {name!r}, and that of robot {robot.name!r} {base.name!r}, "
            f"whose origin is at another point of the same body; load the same file"
        )
    return moved.rotation


_SINGLE: Mapping[str, type[Chart]] = {"plain": Chart, "circle": CircleChart}
"""Charts of one degree of freedom by the kind of the other joint."""
_CHARTS: Mapping[tuple[str, type[Joint]], type[Chart]] = {
    ("circle", Revolute): CircleChart,
    ("turning plane", Planar): PlanarChart,
}
"""Charts by the kind of the other joint and the type of ours."""


class _Matcher:
    """Matches our joints with those of another program by name; each joint is taken from `remaining` once."""

    def __init__(self, robot: Robot, program: str, joints: tuple[OtherJoint, ...], w_first: bool):
        self.robot, self.program, self.w_first = robot, program, w_first
        self.by_name = {joint.name: joint for joint in joints}
        self.remaining = dict(self.by_name)

    def conversion(self, nq: int, nv: int) -> Conversion:
        """Return the conversion; followers and slides of screws are optional in the other program."""
        robot = self.robot
        parts = [part for joint in robot.joints for part in self._joint(joint)]
        for joint in robot.followers:
            if joint.name in self.remaining:
                part = self._single(joint.name, joint.q.start, joint.v.start)
                parts.append(replace(part, ratio=joint.ratio, offset=joint.offset, follows=True))
        for joint in (*robot.joints, *robot.followers):
            screw = joint.definition
            if isinstance(screw, Screw) and slide_name(screw) in self.remaining:
                ratio, offset = (joint.ratio, joint.offset) if isinstance(joint, Follower) else (1.0, 0.0)
                part = self._single(slide_name(screw), joint.q.start, joint.v.start)
                parts.append(replace(part, ratio=ratio * screw.pitch, offset=offset * screw.pitch, follows=True))
        parts += self._base()
        if self.remaining:
            names = ", ".join(map(repr, self.remaining))
            raise MismatchError(
                f"{self.program} has joints that robot {robot.name!r} does not have: {names}; load the same file "
                f"with the same joints locked or fixed"
            )
        return Conversion(robot, self.program, nq, nv, tuple(parts))

    def _base(self) -> list[JointConversion]:
        base = self.robot.base
        chains = [joint for joint in self.remaining.values() if joint.chart is not None]
        if chains:
            (theirs,) = chains
            chart = self._take(theirs.name).chart
            assert chart is not None
            if np.any(base_turn(self.robot, theirs.link, self.program) != np.eye(3)):
                raise MismatchError(
                    f"slides and hinges of {self.program} move link {theirs.link!r}, and the base of robot "
                    f"{self.robot.name!r}, {self.robot.links[0].name!r}, has other axes; load the file without `axes`"
                )
            return [JointConversion(chart, slice(0, base.nq), slice(0, base.nv), theirs.q, theirs.v)]
        if not isinstance(base, FloatingBase):
            names = base_names(base)
            return [self._single(name, i, i) for i, name in enumerate(names)]
        free = [joint for joint in self.remaining.values() if joint.order is not None and joint.on_world]
        if len(free) != 1:
            listed = ", ".join(repr(joint.name) for joint in free) or "none"
            raise MismatchError(
                f"robot {self.robot.name!r} has a floating base, so {self.program} needs one free joint between the "
                f"world and it; found: {listed}"
            )
        theirs = self._take(free[0].name)
        assert theirs.order is not None
        chart = FreeChart(OUR_BASE, theirs.order, base_turn(self.robot, theirs.link, self.program))
        return [JointConversion(chart, slice(0, 7), slice(0, 6), theirs.q, theirs.v)]

    def _joint(self, joint: PlacedJoint) -> list[JointConversion]:
        names = own_stage_names(joint.definition)
        if joint.name not in self.remaining and len(names) > 1 and all(name in self.remaining for name in names):
            return self._stages(joint)
        theirs = self._take(joint.name)
        return [JointConversion(self._chart(joint.definition, theirs), joint.q, joint.v, theirs.q, theirs.v)]

    def _stages(self, joint: PlacedJoint) -> list[JointConversion]:
        """Return the conversions of a joint's stages, which are joints of one degree of freedom in the other program.

        A stage that repeats another is treated as a joint that follows it.
        """
        parts, definition = [], joint.definition
        names, stages, entries = stage_names(definition), definition.stages, definition.stage_entries
        for name, stage, at in zip(names, stages, entries, strict=True):
            if stage.repeats is None or name in self.remaining:
                part = self._single(name, joint.q.start + at.start, joint.v.start + at.start)
                parts.append(replace(part, follows=stage.repeats is not None))
        return parts

    def _single(self, name: str, q: int, v: int) -> JointConversion:
        theirs = self._take(name)
        if theirs.kind not in _SINGLE or theirs.size != 1:
            raise MismatchError(
                f"joint {name!r} has one degree of freedom here, and in {self.program} {theirs.size} of kind "
                f"{theirs.kind!r}"
            )
        chart = _SINGLE[theirs.kind]()
        return JointConversion(chart, slice(q, q + 1), slice(v, v + 1), theirs.q, theirs.v)

    def _chart(self, joint: Joint, theirs: OtherJoint) -> Chart:
        if (theirs.kind, type(joint)) in _CHARTS:
            return _CHARTS[theirs.kind, type(joint)]()
        if theirs.kind == "plain" and joint.nq == joint.nv == theirs.size:
            return Chart()
        if theirs.kind == "ball" and isinstance(joint, Spherical) and joint.sequence is None:
            return Chart() if self.w_first else BallChart()
        if theirs.order is not None and isinstance(joint, Free):
            return FreeChart(OUR_JOINT, theirs.order)
        raise MismatchError(
            f"joint {joint.name!r} has {joint.nv} degrees of freedom of kind {joint.kind!r} here, and in "
            f"{self.program} {theirs.size} of kind {theirs.kind!r}"
        )

    def _take(self, name: str) -> OtherJoint:
        if name not in self.remaining:
            raise UnknownNameError(f"joint in {self.program}", name, self.by_name)
        return self.remaining.pop(name)
