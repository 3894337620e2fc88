"""Scalar constraints that a loop-closing joint imposes on the two frames that it connects, over any element.

A joint connects a frame P, fixed to the parent, with a frame C, fixed to the child; they coincide at the joint's zero
position. Each scalar constraint phi is a function of the poses of both frames in the world and provides

    jacobian:  phi_dot = jacobian @ [t_P; t_C],                      (12,)
    bias:      phi_ddot = jacobian @ [td_P; td_C] + bias,

where t = [omega; velocity of the frame's origin] and td its rate, both in world axes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from legged.checked import checked
from legged.dynamics.frames import Pose
from legged.errors import DefinitionError
from legged.robot.joint import (
    Axis,
    ConstantVelocity,
    Cylindrical,
    Fixed,
    Joint,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
    unit_axis,
)
from legged.robot.physics import JointPhysics
from legged.spatial import Array, cross


class ScalarConstraint:
    """One scalar constraint between the frames P and C of a joint.

    Attributes:
        holonomic: Whether it constrains positions, not velocities alone.
        is_length: Whether phi is a length, [m], not an angle or cosine.
    """

    holonomic: ClassVar[bool] = True
    is_length: ClassVar[bool] = True

    def value(self, P: Pose, C: Pose) -> Any:
        """Return phi, [m] or 1; zero for a nonholonomic constraint."""
        raise NotImplementedError

    def jacobian(self, P: Pose, C: Pose) -> Array:
        """Return the derivative of phi_dot by the twists [t_P; t_C] of both frames, (12,), world axes."""
        raise NotImplementedError

    def bias(self, P: Pose, C: Pose, t_P: Array, t_C: Array) -> Any:
        """Return phi_ddot for zero twist rates of both frames, [m/s^2] or [1/s^2].

        Args:
            P, C: Poses of the frames in the world.
            t_P, t_C: Their twists, (6,), [rad/s] and [m/s], world axes.
        """
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class TranslationConstraint(ScalarConstraint):
    """phi = a . d - offset, with d from P's origin to C's: no translation along a, (3,), P axes."""

    a: Array
    offset: float = 0.0

    def value(self, P: Pose, C: Pose) -> Any:
        return (P.rotation @ self.a) @ (C.position - P.position) - self.offset

    def jacobian(self, P: Pose, C: Pose) -> Array:
        a = P.rotation @ self.a
        return np.concatenate([cross(a, C.position - P.position), -a, np.zeros(3), a])

    def bias(self, P: Pose, C: Pose, t_P: Array, t_C: Array) -> Any:
        a, omega, d = P.rotation @ self.a, t_P[:3], C.position - P.position
        return cross(omega, cross(omega, a)) @ d + 2.0 * (cross(omega, a) @ (t_C[3:] - t_P[3:]))


@dataclass(frozen=True, eq=False)
class AngleConstraint(ScalarConstraint):
    """phi = a . b - cosine: a constant angle between a, (3,), P axes, and b, (3,), C axes."""

    a: Array
    b: Array
    cosine: float = 0.0
    is_length: ClassVar[bool] = False

    def value(self, P: Pose, C: Pose) -> Any:
        return (P.rotation @ self.a) @ (C.rotation @ self.b) - self.cosine

    def jacobian(self, P: Pose, C: Pose) -> Array:
        n = cross(P.rotation @ self.a, C.rotation @ self.b)
        return np.concatenate([n, np.zeros(3), -n, np.zeros(3)])

    def bias(self, P: Pose, C: Pose, t_P: Array, t_C: Array) -> Any:
        a, b, u, w = P.rotation @ self.a, C.rotation @ self.b, t_P[:3], t_C[:3]
        centripetal = cross(u, cross(u, a)) @ b + a @ cross(w, cross(w, b))
        return centripetal + 2.0 * (cross(u, a) @ cross(w, b))


@dataclass(frozen=True, eq=False)
class EqualCosinesConstraint(ScalarConstraint):
    """phi = a_P . b_C - b_P . a_C with a, b, (3,), fixed in both frames: the rotation's axis is normal to a x b."""

    a: Array
    b: Array
    is_length: ClassVar[bool] = False

    @property
    def _cosines(self) -> tuple[AngleConstraint, AngleConstraint]:
        return AngleConstraint(self.a, self.b), AngleConstraint(self.b, self.a)

    def value(self, P: Pose, C: Pose) -> Any:
        one, other = self._cosines
        return one.value(P, C) - other.value(P, C)

    def jacobian(self, P: Pose, C: Pose) -> Array:
        one, other = self._cosines
        return one.jacobian(P, C) - other.jacobian(P, C)

    def bias(self, P: Pose, C: Pose, t_P: Array, t_C: Array) -> Any:
        one, other = self._cosines
        return one.bias(P, C, t_P, t_C) - other.bias(P, C, t_P, t_C)


@dataclass(frozen=True, eq=False)
class DistanceConstraint(ScalarConstraint):
    """phi = (d . d - length^2) / (2 length): a constant distance between the two origins, [m]."""

    length: float

    def value(self, P: Pose, C: Pose) -> Any:
        d = C.position - P.position
        return (d @ d - self.length**2) / (2.0 * self.length)

    def jacobian(self, P: Pose, C: Pose) -> Array:
        d = (C.position - P.position) / self.length
        return np.concatenate([np.zeros(3), -d, np.zeros(3), d])

    def bias(self, P: Pose, C: Pose, t_P: Array, t_C: Array) -> Any:
        rate = t_C[3:] - t_P[3:]
        return (rate @ rate) / self.length


@dataclass(frozen=True, eq=False)
class NoSlipConstraint(ScalarConstraint):
    """phi_dot = a . (velocity of C relative to P at the contact point of C's ball with P's plane).

    The center of the ball is C's origin, and the plane contains P's origin; a and the plane's normal n are in P axes.
    """

    a: Array
    n: Array
    radius: float
    holonomic: ClassVar[bool] = False

    def value(self, P: Pose, C: Pose) -> Any:
        return 0.0

    def jacobian(self, P: Pose, C: Pose) -> Array:
        a, to_contact = P.rotation @ self.a, -self.radius * (P.rotation @ self.n)
        contact = C.position + to_contact - P.position
        return np.concatenate([-cross(contact, a), -a, cross(to_contact, a), a])

    def bias(self, P: Pose, C: Pose, t_P: Array, t_C: Array) -> Any:
        a, to_contact, u, w = P.rotation @ self.a, -self.radius * (P.rotation @ self.n), t_P[:3], t_C[:3]
        contact, velocity = C.position + to_contact - P.position, t_C[3:] - t_P[3:]
        rate = cross(u, to_contact)
        slip = velocity + cross(w, to_contact) - cross(u, contact)
        return cross(u, a) @ slip + a @ (cross(w, rate) - cross(u, velocity + rate))


@dataclass(frozen=True, eq=False)
class HingeRate(ScalarConstraint):
    """The rate of a hinge's angle about a, (3,), P axes; only its Jacobian is used, for the torque of a motor."""

    a: Array

    def jacobian(self, P: Pose, C: Pose) -> Array:
        a = P.rotation @ self.a
        return np.concatenate([-a, np.zeros(3), a, np.zeros(3)])


@checked
@dataclass(frozen=True, eq=False)
class Rod:
    """A massless rod with a ball joint at each end, which keeps the distance of the frames' origins, `length` [m]."""

    name: str
    length: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.length) and self.length > 0.0):
            raise DefinitionError(f"rod {self.name!r} must be longer than 0 m, got {self.length}")


@checked
@dataclass(frozen=True, eq=False)
class Rolling:
    """A ball of the child that rolls without slipping on a plane of the parent and never leaves it.

    The center of the ball is the child frame's origin; the plane contains the parent frame's origin. In a planar robot
    the ball is a wheel.

    Attributes:
        radius: Of the ball, [m]; zero for a point that stays in place.
        normal: Of the plane, towards the ball, parent frame axes.
    """

    name: str
    radius: float
    normal: Axis = "z"

    def __post_init__(self) -> None:
        if not (np.isfinite(self.radius) and self.radius >= 0.0):
            raise DefinitionError(f"rolling contact {self.name!r} needs a radius of at least 0 m, got {self.radius}")


@checked
@dataclass(frozen=True, eq=False)
class Sliding:
    """A point of the child, its frame's origin, that slides without friction on a plane of the parent.

    It never leaves the plane, which contains the parent frame's origin.

    Attributes:
        normal: Of the plane, parent frame axes.
    """

    name: str
    normal: Axis = "z"


ClosingJoint = Joint | Rod | Rolling | Sliding


def scalar_constraints(joint: ClosingJoint) -> tuple[ScalarConstraint, ...]:
    """Return the scalar constraints of a joint, six less its degrees of freedom.

    Raises:
        DefinitionError: For a free joint, a screw, a joint of an unknown kind, or one with springs, friction or rotors.
    """
    if isinstance(joint, Rod):
        return (DistanceConstraint(joint.length),)
    if isinstance(joint, Sliding):
        return (TranslationConstraint(unit_axis(f"the normal of {joint.name!r}", joint.normal)),)
    if isinstance(joint, Rolling):
        n = unit_axis(f"the normal of {joint.name!r}", joint.normal)
        a, b = _orthonormal_axes(n)
        radius = joint.radius
        return TranslationConstraint(n, radius), NoSlipConstraint(a, n, radius), NoSlipConstraint(b, n, radius)
    _refuse_physics(joint)
    axes = [stage.axis for stage in joint.stages]
    if isinstance(joint, Fixed):
        return *_coincident(np.eye(3)), *_parallel(np.eye(3))
    if isinstance(joint, Spherical):
        return _coincident(np.eye(3))
    if isinstance(joint, Universal):
        return *_coincident(np.eye(3)), AngleConstraint(axes[0], axes[1], float(axes[0] @ axes[1]))
    if isinstance(joint, ConstantVelocity):
        return *_coincident(np.eye(3)), EqualCosinesConstraint(axes[0], axes[1])
    if isinstance(joint, Planar):
        first, second, n = axes
        return TranslationConstraint(n), AngleConstraint(first, n), AngleConstraint(second, n)
    if isinstance(joint, (Revolute, Prismatic)):
        (u,) = axes
        a, b = _orthonormal_axes(u)
        if isinstance(joint, Revolute):
            return *_coincident(np.array([a, b, u])), AngleConstraint(a, u), AngleConstraint(b, u)
        return TranslationConstraint(a), TranslationConstraint(b), *_parallel(np.array([a, b, u]))
    if isinstance(joint, Cylindrical):
        u = axes[0]
        a, b = _orthonormal_axes(u)
        return TranslationConstraint(a), TranslationConstraint(b), AngleConstraint(a, u), AngleConstraint(b, u)
    raise DefinitionError(
        f"joint {joint.name!r} of kind {joint.kind} cannot close a loop: use Fixed, Revolute, Prismatic, Cylindrical, "
        f"Universal, ConstantVelocity, Spherical, Planar, Rod, Rolling or Sliding, or cut the loop at another joint"
    )


def motor_rate(joint: ClosingJoint) -> HingeRate | TranslationConstraint:
    """Return the rate whose Jacobian maps the force of a motor in a hinge or slide to the frames.

    Raises:
        DefinitionError: For other joints.
    """
    if isinstance(joint, Revolute):
        return HingeRate(joint.stages[0].axis)
    if isinstance(joint, Prismatic):
        return TranslationConstraint(joint.stages[0].axis)
    raise DefinitionError(f"joint {joint.name!r} closes a loop and is no hinge or slide: no motor can act in it")


def aligned_axes(joint: ClosingJoint) -> tuple[tuple[Array, Array], ...]:
    """Return pairs (a in P axes, b in C axes) that must point the same way; the constraints allow opposite ones too."""
    if isinstance(joint, (Rod, Rolling, Sliding, Spherical, Universal, ConstantVelocity)):
        return ()
    if isinstance(joint, (Revolute, Cylindrical, Planar)):
        u = joint.stages[-1].axis
        return ((u, u),)
    return tuple((e, e) for e in np.eye(3))


def _orthonormal_axes(u: Array) -> tuple[Array, Array]:
    """Return two unit vectors, (3,), that form a right-handed frame with the unit vector u as the third axis."""
    a = np.eye(3)[(int(np.argmax(np.abs(u))) + 1) % 3]
    a = a - (a @ u) * u
    a = a / np.linalg.norm(a)
    return a, cross(u, a)


def _coincident(axes: Array) -> tuple[ScalarConstraint, ...]:
    return tuple(TranslationConstraint(a) for a in axes)


def _parallel(axes: Array) -> tuple[ScalarConstraint, ...]:
    a, b, c = axes
    return AngleConstraint(a, b), AngleConstraint(b, c), AngleConstraint(c, a)


def has_default_physics(joint: Joint) -> bool:
    """Return whether a joint has no springs, friction, rotors, stops or limits."""
    default, own = JointPhysics(), joint.physics
    return not any(np.any(np.asarray(getattr(own, f.name)) != getattr(default, f.name)) for f in fields(own))


def _refuse_physics(joint: Joint) -> None:
    if not has_default_physics(joint):
        raise DefinitionError(
            f"joint {joint.name!r} closes a loop and has springs, friction, rotors, stops or limits, which only joints "
            f"of the spanning tree have: cut the loop at another joint"
        )
