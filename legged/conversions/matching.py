"""Which of another program's joints is which of ours: by name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from legged.conversions.charts import OUR_BASE, OUR_JOINT, Ball, Chart, Circle, Free, FreeOrder, TurningPlane
from legged.conversions.conversion import Conversion, Part
from legged.errors import MismatchError, UnknownNameError
from legged.files.names import base_names, stage_names
from legged.robot.joint import Joint, PlacedJoint, Spherical
from legged.robot.robot import Robot


class TheirJoint(NamedTuple):
    """A joint of another program's model.

    Attributes:
        name: Its name.
        kind: "plain" (coordinates whose rates are its velocity), "circle", "turning plane", "ball", "free", or the
            program's own word for another.
        q, v: Where it stands in the program's vectors.
        order: How a free joint is written.
        on_world: Whether it joins a body to the world, so that it may be the base's.
    """

    name: str
    kind: str
    q: slice
    v: slice
    order: FreeOrder | None = None
    on_world: bool = False

    @property
    def size(self) -> int:
        return self.v.stop - self.v.start


def match(robot: Robot, program: str, joints: Iterable[TheirJoint], nq: int, nv: int, *, w_first: bool) -> Conversion:
    """Return the conversion between a robot's vectors and a program's.

    Args:
        robot: Ours.
        program: Name, for messages.
        joints: The program's joints that move.
        nq, nv: Lengths of its vectors.
        w_first: Whether the quaternion of a ball joint has its real part first there.

    Raises:
        UnknownNameError: A joint of ours is not there.
        MismatchError: A joint there is not ours, or of a different kind; no free joint for a floating base, or several.
    """
    return _Matching(robot, program, tuple(joints), w_first).conversion(nq, nv)


class _Matching:
    def __init__(self, robot: Robot, program: str, joints: tuple[TheirJoint, ...], w_first: bool):
        self.robot, self.program, self.w_first = robot, program, w_first
        self.all = {joint.name: joint for joint in joints}
        self.left = dict(self.all)

    def conversion(self, nq: int, nv: int) -> Conversion:
        robot = self.robot
        parts = [part for joint in robot.joints for part in self._joint(joint)]
        for joint in robot.followers:
            if joint.name in self.left:
                part = self._single(joint.name, joint.q.start, joint.v.start)
                parts.append(replace(part, ratio=joint.ratio, offset=joint.offset, follows=True))
        parts += self._base()
        if self.left:
            names = ", ".join(map(repr, self.left))
            raise MismatchError(
                f"{self.program} has joints that robot {robot.name!r} has not: {names}; load the same file, and with "
                f"the same joints locked or fixed"
            )
        return Conversion(robot, self.program, nq, nv, tuple(parts))

    def _base(self) -> list[Part]:
        base = self.robot.base
        if base.kind != "floating":
            names = base_names(base)
            return [self._single(name, i, i) for i, name in enumerate(names)]
        free = [joint for joint in self.left.values() if joint.order is not None and joint.on_world]
        if len(free) != 1:
            found = ", ".join(repr(joint.name) for joint in free) or "none"
            raise MismatchError(
                f"robot {self.robot.name!r} has a floating base, so {self.program} needs one free joint between the "
                f"world and it; found: {found}"
            )
        theirs = self._take(free[0].name)
        assert theirs.order is not None
        return [Part(Free(OUR_BASE, theirs.order), slice(0, 7), slice(0, 6), theirs.q, theirs.v)]

    def _joint(self, joint: PlacedJoint) -> list[Part]:
        names = stage_names(joint.definition)
        if joint.name not in self.left and len(names) > 1 and all(name in self.left for name in names):
            return [self._single(name, joint.q.start + i, joint.v.start + i) for i, name in enumerate(names)]
        theirs = self._take(joint.name)
        return [Part(self._chart(joint.definition, theirs), joint.q, joint.v, theirs.q, theirs.v)]

    def _single(self, name: str, q: int, v: int) -> Part:
        theirs = self._take(name)
        if theirs.kind not in ("plain", "circle") or theirs.size != 1:
            raise MismatchError(
                f"joint {name!r} has one degree of freedom here, and in {self.program} {theirs.size} of kind "
                f"{theirs.kind!r}"
            )
        chart = Circle() if theirs.kind == "circle" else Chart()
        return Part(chart, slice(q, q + 1), slice(v, v + 1), theirs.q, theirs.v)

    def _chart(self, joint: Joint, theirs: TheirJoint) -> Chart:
        kind, here = theirs.kind, joint.kind
        if kind == "plain" and joint.nq == joint.nv == theirs.size:
            return Chart()
        if kind == "circle" and here == "revolute":
            return Circle()
        if kind == "turning plane" and here == "planar":
            return TurningPlane()
        if kind == "ball" and isinstance(joint, Spherical) and joint.sequence is None:
            return Chart() if self.w_first else Ball()
        if theirs.order is not None and here == "free":
            return Free(OUR_JOINT, theirs.order)
        raise MismatchError(
            f"joint {joint.name!r} has {joint.nv} degrees of freedom of kind {here!r} here, and in {self.program} "
            f"{theirs.size} of kind {kind!r}"
        )

    def _take(self, name: str) -> TheirJoint:
        if name not in self.left:
            raise UnknownNameError(f"joint in {self.program}", name, self.all)
        return self.left.pop(name)
