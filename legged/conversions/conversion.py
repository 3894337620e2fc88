"""State and force vectors"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from legged.conversions.charts import OUR_BASE, OUR_JOINT, Ball, Chart, Circle, Free, FreeOrder, TurningPlane
from legged.errors import MismatchError, NotFiniteError, ShapeError, UnknownNameError
from legged.files.export_description import base_names, stage_names
from legged.robot.joint import Joint, PlacedJoint, Spherical
from legged.robot.robot import Robot
from legged.spatial import Array


@dataclass(frozen=True, eq=False)
class Part:
    """One joint, or the base.

    Attributes:
        chart: Its coordinates here and there.
        q, v: Where they stand in our vectors.
        their_q, their_v: Where they stand in theirs.
        ratio, offset: Of a joint that follows another: its coordinate there is ratio * q + offset.
        follows: Whether it does, so that our q and v do not need it.
    """

    chart: Chart
    q: slice
    v: slice
    their_q: slice
    their_v: slice
    ratio: float = 1.0
    offset: float = 0.0
    follows: bool = False


@dataclass(frozen=True, eq=False)
class Conversion:
    """Vectors of a robot to and from another program; all take and return leading axes.

    Positions are (..., robot.nq) here and (..., nq) there; velocities, accelerations (rates of the components of the
    velocity) and generalized forces (which have the same power) (..., robot.nv) and (..., nv).

    A joint that follows another (`robot.followers`) has coordinates of its own in a program that does not know so. It
    gets what it must have, and its force is left to the joint that it follows. In the other direction its coordinates
    are not looked at, and its force is added to the other joint's.

    Attributes:
        robot: Ours.
        program: The other program's name.
        nq, nv: Lengths of its vectors.
        parts: What the vectors are made of.
    """

    robot: Robot
    program: str
    nq: int
    nv: int
    parts: tuple[Part, ...]

    def to_configuration(self, q: Any) -> Array:
        """Return their configuration."""
        (q,) = self._ours(q=q)
        return self._place(self.nq, "their_q", q, lambda p: p.chart.theirs(p.ratio * q[..., p.q] + p.offset))

    def from_configuration(self, q: Any) -> Array:
        """Return our configuration."""
        (q,) = self._theirs(q=q)
        return self._place(self.robot.nq, "q", q, lambda p: p.chart.ours(q[..., p.their_q]))

    def to_velocity(self, q: Any, v: Any) -> Array:
        """Return their velocity; q and v are ours."""
        q, v = self._ours(q=q, v=v)
        return self._place(self.nv, "their_v", v, lambda p: p.ratio * p.chart.their_velocity(q[..., p.q], v[..., p.v]))

    def from_velocity(self, q: Any, v: Any) -> Array:
        """Return our velocity; q and v are theirs."""
        q, v = self._theirs(q=q, v=v)
        q = self.from_configuration(q)
        return self._place(self.robot.nv, "v", v, lambda p: p.chart.our_velocity(q[..., p.q], v[..., p.their_v]))

    def to_acceleration(self, q: Any, v: Any, vdot: Any) -> Array:
        """Return their acceleration; q, v and vdot are ours."""
        q, v, vdot = self._ours(q=q, v=v, vdot=vdot)

        def theirs(p: Part) -> Array:
            return p.ratio * p.chart.their_acceleration(q[..., p.q], v[..., p.v], vdot[..., p.v])

        return self._place(self.nv, "their_v", v, theirs)

    def from_acceleration(self, q: Any, v: Any, vdot: Any) -> Array:
        """Return our acceleration; q, v and vdot are theirs."""
        q, v, vdot = self._theirs(q=q, v=v, vdot=vdot)
        q, v = self.from_configuration(q), self.from_velocity(q, v)

        def ours(p: Part) -> Array:
            return p.chart.our_acceleration(q[..., p.q], v[..., p.v], vdot[..., p.their_v])

        return self._place(self.robot.nv, "v", v, ours)

    def to_force(self, q: Any, tau: Any) -> Array:
        """Return their generalized forces; q and tau are ours."""
        q, tau = self._ours(q=q, tau=tau)

        def theirs(p: Part) -> Array | float:
            return 0.0 if p.follows else p.chart.their_force(q[..., p.q], tau[..., p.v])

        return self._place(self.nv, "their_v", tau, theirs)

    def from_force(self, q: Any, tau: Any) -> Array:
        """Return our generalized forces; q and tau are theirs."""
        q, tau = self._theirs(q=q, tau=tau)
        q = self.from_configuration(q)
        out = np.zeros((*tau.shape[:-1], self.robot.nv))
        for p in self.parts:
            out[..., p.v] += p.ratio * p.chart.our_force(q[..., p.q], tau[..., p.their_v])
        return out

    def _place(self, size: int, where: str, like: Array, part: Callable[[Part], Array | float]) -> Array:
        """Return a vector put together from its parts; ours are without those of followers."""
        out = np.zeros((*like.shape[:-1], size))
        for p in self.parts:
            if where.startswith("their") or not p.follows:
                out[..., getattr(p, where)] = part(p)
        return out

    def _ours(self, **arrays: Any) -> list[Array]:
        read = _read("", self.robot.nq, self.robot.nv, arrays)
        for p in self.parts:
            _check_unit("", read[0][..., p.q], p.chart.our_unit)
        return read

    def _theirs(self, **arrays: Any) -> list[Array]:
        read = _read(f"{self.program}'s ", self.nq, self.nv, arrays)
        for p in self.parts:
            _check_unit(f"{self.program}'s ", read[0][..., p.their_q], p.chart.their_unit)
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
    array = np.asarray(value, float)
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
