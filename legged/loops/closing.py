"""What a joint that closes a loop demands of the two frames that it joins, row by row, over any element.

A joint's two frames are P, fixed to the parent, and C, fixed to the child; they coincide when the joint is at zero.
Each row is a scalar phi of both frames' poses in the world, and comes with

    row:    phi_dot = row @ [t_P; t_C],                      (12,)
    drift:  phi_ddot = row @ [td_P; td_C] + drift,

where t = [omega; velocity of the frame's origin] and td its rate, both in world axes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np

from legged.dynamics.frames import Pose
from legged.errors import DefinitionError
from legged.robot.joint import Axis, Fixed, Joint, Planar, Prismatic, Revolute, Spherical, Universal, unit_axis
from legged.robot.physics import JointPhysics
from legged.spatial import Array, cross


class Row(Protocol):
    """One scalar constraint."""

    @property
    def holonomic(self) -> bool:
        """Whether it binds positions, not velocities alone."""
        ...

    def value(self, P: Pose, C: Pose) -> Any:
        """Return phi, [m] or 1; zero for a row that binds velocities alone."""
        ...

    def row(self, P: Pose, C: Pose) -> Array:
        """Return what phi_dot takes of the frames' twists, (12,)."""
        ...

    def drift(self, P: Pose, C: Pose, t_P: Array, t_C: Array) -> Any:
        """Return the part of phi_ddot that the frames' twist rates do not make."""
        ...


@dataclass(frozen=True, eq=False)
class Along:
    """phi = a . d - offset, d from P's origin to C's: no motion along a, (3,), P axes."""

    a: Array
    offset: float = 0.0
    holonomic: bool = True

    def value(self, P: Pose, C: Pose) -> Any:
        return (P.rotation @ self.a) @ (C.position - P.position) - self.offset

    def row(self, P: Pose, C: Pose) -> Array:
        a = P.rotation @ self.a
        return np.concatenate([cross(a, C.position - P.position), -a, np.zeros(3), a])

    def drift(self, P: Pose, C: Pose, t_P: Array, t_C: Array) -> Any:
        a, omega, d = P.rotation @ self.a, t_P[:3], C.position - P.position
        return cross(omega, cross(omega, a)) @ d + 2.0 * (cross(omega, a) @ (t_C[3:] - t_P[3:]))


@dataclass(frozen=True, eq=False)
class Crossing:
    """phi = a . b - cosine: a constant angle between a, (3,), P axes, and b, (3,), C axes."""

    a: Array
    b: Array
    cosine: float = 0.0
    holonomic: bool = True

    def value(self, P: Pose, C: Pose) -> Any:
        return (P.rotation @ self.a) @ (C.rotation @ self.b) - self.cosine

    def row(self, P: Pose, C: Pose) -> Array:
        n = cross(P.rotation @ self.a, C.rotation @ self.b)
        return np.concatenate([n, np.zeros(3), -n, np.zeros(3)])

    def drift(self, P: Pose, C: Pose, t_P: Array, t_C: Array) -> Any:
        a, b, u, w = P.rotation @ self.a, C.rotation @ self.b, t_P[:3], t_C[:3]
        turning = cross(u, cross(u, a)) @ b + a @ cross(w, cross(w, b))
        return turning + 2.0 * (cross(u, a) @ cross(w, b))


@dataclass(frozen=True, eq=False)
class Span:
    """phi = (d . d - length^2) / (2 length): a constant distance between the two origins, [m]."""

    length: float
    holonomic: bool = True

    def value(self, P: Pose, C: Pose) -> Any:
        d = C.position - P.position
        return (d @ d - self.length**2) / (2.0 * self.length)

    def row(self, P: Pose, C: Pose) -> Array:
        d = (C.position - P.position) / self.length
        return np.concatenate([np.zeros(3), -d, np.zeros(3), d])

    def drift(self, P: Pose, C: Pose, t_P: Array, t_C: Array) -> Any:
        rate = t_C[3:] - t_P[3:]
        return (rate @ rate) / self.length


@dataclass(frozen=True, eq=False)
class Slip:
    """phi_dot = a . (velocity of C less that of P, both at the point of C's ball that touches P's plane).

    The ball's center is C's origin, the plane goes through P's; a and its normal n are in P axes.
    """

    a: Array
    n: Array
    radius: float
    holonomic: bool = False

    def value(self, P: Pose, C: Pose) -> Any:
        return 0.0

    def row(self, P: Pose, C: Pose) -> Array:
        a, reach = P.rotation @ self.a, -self.radius * (P.rotation @ self.n)
        touch = C.position + reach - P.position
        return np.concatenate([-cross(touch, a), -a, cross(reach, a), a])

    def drift(self, P: Pose, C: Pose, t_P: Array, t_C: Array) -> Any:
        a, reach, u, w = P.rotation @ self.a, -self.radius * (P.rotation @ self.n), t_P[:3], t_C[:3]
        touch, moves = C.position + reach - P.position, t_C[3:] - t_P[3:]
        turned = cross(u, reach)
        slip = moves + cross(w, reach) - cross(u, touch)
        return cross(u, a) @ slip + a @ (cross(w, turned) - cross(u, moves + turned))


@dataclass(frozen=True, eq=False)
class Turn:
    """The rate of a hinge's angle about a, (3,), P axes: for the work of its motor, no constraint."""

    a: Array

    def row(self, P: Pose, C: Pose) -> Array:
        a = P.rotation @ self.a
        return np.concatenate([-a, np.zeros(3), a, np.zeros(3)])


@dataclass(frozen=True, eq=False)
class Rod:
    """A massless rod between two ball joints: the frames' origins keep a distance, [m]."""

    name: str
    length: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.length) and self.length > 0.0):
            raise DefinitionError(f"rod {self.name!r} must be longer than 0 m, got {self.length}")


@dataclass(frozen=True, eq=False)
class Rolling:
    """A ball of the child that rolls without slipping on a plane of the parent, and keeps touching it.

    The ball's center is the child's frame origin; the plane goes through the parent's. In a planar robot it is a wheel.

    Attributes:
        radius: Of the ball, [m]; zero is a point that stays where it touches.
        normal: Of the plane, towards the ball, parent's frame axes.
    """

    name: str
    radius: float
    normal: Axis = "z"

    def __post_init__(self) -> None:
        if not (np.isfinite(self.radius) and self.radius >= 0.0):
            raise DefinitionError(f"rolling contact {self.name!r} needs a radius of at least 0 m, got {self.radius}")


Closing = Joint | Rod | Rolling


def rows_of(joint: Closing) -> tuple[Row, ...]:
    """Return the rows that a joint demands, six less its freedoms.

    Raises:
        DefinitionError: for a joint that binds nothing, is of an unknown kind, or has springs, friction or rotors.
    """
    if isinstance(joint, Rod):
        return (Span(joint.length),)
    if isinstance(joint, Rolling):
        n = unit_axis(f"the normal of {joint.name!r}", joint.normal)
        a, b = across(n)
        return Along(n, joint.radius), Slip(a, n, joint.radius), Slip(b, n, joint.radius)
    _refuse_physics(joint)
    axes = [stage.axis for stage in joint.stages]
    if isinstance(joint, Fixed):
        return *_together(np.eye(3)), *_locked(np.eye(3))
    if isinstance(joint, Spherical):
        return _together(np.eye(3))
    if isinstance(joint, Universal):
        return *_together(np.eye(3)), Crossing(axes[0], axes[1], float(axes[0] @ axes[1]))
    if isinstance(joint, Planar):
        first, second, n = axes
        return Along(n), Crossing(first, n), Crossing(second, n)
    if isinstance(joint, (Revolute, Prismatic)):
        (u,) = axes
        a, b = across(u)
        if isinstance(joint, Revolute):
            return *_together(np.array([a, b, u])), Crossing(a, u), Crossing(b, u)
        return Along(a), Along(b), *_locked(np.array([a, b, u]))
    raise DefinitionError(
        f"joint {joint.name!r} of kind {joint.kind} cannot close a loop: use Fixed, Revolute, Prismatic, Universal, "
        f"Spherical, Planar, Rod or Rolling, or cut the loop at another joint"
    )


def drive_of(joint: Closing) -> Turn | Along:
    """Return the rate that a motor in a hinge or slide works on, or raise DefinitionError for other joints."""
    if isinstance(joint, Revolute):
        return Turn(joint.stages[0].axis)
    if isinstance(joint, Prismatic):
        return Along(joint.stages[0].axis)
    raise DefinitionError(f"joint {joint.name!r} closes a loop and is no hinge or slide: no motor can act in it")


def guards_of(joint: Closing) -> tuple[tuple[Array, Array], ...]:
    """Return pairs (a in P axes, b in C axes) that point the same way: rows also vanish where one is reversed."""
    if isinstance(joint, (Rod, Rolling, Spherical, Universal)):
        return ()
    if isinstance(joint, (Revolute, Planar)):
        u = joint.stages[-1].axis
        return ((u, u),)
    return tuple((e, e) for e in np.eye(3))


def across(u: Array) -> tuple[Array, Array]:
    """Return two unit vectors, (3,), that make a right-handed frame with u as the third."""
    a = np.eye(3)[(int(np.argmax(np.abs(u))) + 1) % 3]
    a = a - (a @ u) * u
    a = a / np.linalg.norm(a)
    return a, cross(u, a)


def _together(axes: Array) -> tuple[Row, ...]:
    return tuple(Along(a) for a in axes)


def _locked(axes: Array) -> tuple[Row, ...]:
    a, b, c = axes
    return Crossing(a, b), Crossing(b, c), Crossing(c, a)


def plain(joint: Joint) -> bool:
    """Return whether a joint has no springs, friction, rotors, stops or limits."""
    free, own = JointPhysics(), joint.physics
    return not any(np.any(np.asarray(getattr(own, f.name)) != getattr(free, f.name)) for f in fields(own))


def _refuse_physics(joint: Joint) -> None:
    if not plain(joint):
        raise DefinitionError(
            f"joint {joint.name!r} closes a loop and has springs, friction, rotors, stops or limits, which only joints "
            f"of the spanning tree have: cut the loop at another joint"
        )
