"""Motions of the stages of joints: revolute, prismatic, screw and ball.

A new kind of stage is a class here with an entry in `MOTIONS`; recursions, configurations and definitions ask it for
all that depends on the kind. In the body's frame the axis of a stage is z (see `legged.robot.placement`).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from legged.robot.placement import Placement
from legged.robot.stages.moments import Moments
from legged.rotations import (
    quaternion_conjugate,
    quaternion_exp,
    quaternion_log,
    quaternion_matrix,
    quaternion_product,
    quaternion_rate,
)
from legged.spatial import Array, AxisRotation, ElementaryTransform, Rotation, Translation, skew


class StageMotion:
    """The motion of a stage with one coordinate, an angle or a displacement.

    Attributes:
        kind: Its name.
        nq, nv: Numbers of coordinates and of degrees of freedom.
        unit: Unit of a degree of freedom, "rad" or "m".
        has_axis: Whether the motion has an axis; otherwise the body has the axes of its link.
        has_quaternion: Whether the coordinates are a unit quaternion; they are then no integrals of v.
        has_free_origin: Whether the body's origin may be anywhere on the axis.
        has_unit_columns: Whether the columns of `matrix` are unit vectors.
    """

    kind: ClassVar[str]
    nq: ClassVar[int] = 1
    nv: ClassVar[int] = 1
    unit: ClassVar[str] = "rad"
    has_axis: ClassVar[bool] = True
    has_quaternion: ClassVar[bool] = False
    has_free_origin: ClassVar[bool] = False
    has_unit_columns: ClassVar[bool] = True

    def matrix(self, pitch: float) -> Array:
        """Return P, (6, nv): v to the relative twist, body axes.

        Args:
            pitch: Translation along the axis per angle of a screw, [m/rad].
        """
        raise NotImplementedError

    def transforms(self, q: Array, offset: tuple[Any, Any], P: Array) -> tuple[ElementaryTransform, ...]:
        """Return the transforms from the frame before the stage to the frame after it, both with the axis along z.

        Args:
            q: The coordinates, (nq,), [rad], [m] or a quaternion, joint axes.
            offset: (cosine, sine) of the angle about the axis at q = 0.
            P: `matrix` times a ratio, (6, nv), [1] and [m], body axes.
        """
        raise NotImplementedError

    def placement(self, axis: Array, q: Array, pitch: float) -> Placement:
        """Return the pose of the frame after the stage in the frame before it; exactly the identity at zero.

        Args:
            axis: Unit vector, (3,), dimensionless, in the axes of either frame.
            q: The coordinates, (nq,), [rad], [m] or a quaternion, joint axes.
            pitch: Translation along the axis per angle of a screw, [m/rad].
        """
        raise NotImplementedError

    def moments_shared_with_parent(self, moments: Moments) -> Moments:
        """Return the part of a body's moments of mass that the stage does not move relative to the parent."""
        raise NotImplementedError

    def neutral(self) -> Array:
        """Return the coordinates at zero, (nq,), [rad], [m] or a quaternion."""
        return np.zeros(1)

    def rate(self, q: Array, v: Array) -> Array:
        """Return the time derivative of the coordinates, (nq,).

        Args:
            q: The coordinates, (nq,), [rad], [m] or a quaternion, joint axes.
            v: Their velocity, (nv,), [rad/s] or [m/s], joint axes.
        """
        return v

    def integrate(self, q: Array, dq: Array) -> Array:
        """Return the coordinates q (+) dq, (nq,).

        Args:
            q: The coordinates, (nq,), [rad], [m] or a quaternion, joint axes.
            dq: Step, (nv,), [rad] or [m], joint axes; the rotation vector of a quaternion.
        """
        return q + dq

    def difference(self, start: Array, end: Array) -> Array:
        """Return dq, (nv,), [rad] or [m], of least size with integrate(start, dq) = end.

        Args:
            start: Coordinates, (nq,), [rad], [m] or a quaternion, joint axes.
            end: Coordinates, (nq,), [rad], [m] or a quaternion, joint axes.
        """
        return end - start

    def random(self, uniform: Array, rng: np.random.Generator) -> Array:
        """Return random coordinates, (nq,): angles within pi, displacements within 1 m, a unit quaternion.

        Args:
            uniform: Random numbers between -1 and 1, (nq,), dimensionless. rng: The generator for others.
        """
        return np.pi * uniform


class Revolute(StageMotion):
    """Rotation about an axis."""

    kind = "revolute"
    has_free_origin = True

    def matrix(self, pitch: float) -> Array:
        return _column({2: 1.0})

    def transforms(self, q: Array, offset: tuple[Any, Any], P: Array) -> tuple[ElementaryTransform, ...]:
        return (_rotation(q[0], offset),)

    def placement(self, axis: Array, q: Array, pitch: float) -> Placement:
        c, s = np.cos(q[0]), np.sin(q[0])
        return Placement(c * np.eye(3) + s * skew(axis) + (1.0 - c) * np.outer(axis, axis), pitch * q[0] * axis)

    def moments_shared_with_parent(self, moments: Moments) -> Moments:
        return Moments(moments.mass, moments.h * _Z, moments.J * np.outer(_Z, _Z))


class Screw(Revolute):
    """Rotation about an axis with a proportional translation along it."""

    kind = "screw"
    has_free_origin = False
    has_unit_columns = False

    def matrix(self, pitch: float) -> Array:
        return _column({2: 1.0, 5: pitch})

    def transforms(self, q: Array, offset: tuple[Any, Any], P: Array) -> tuple[ElementaryTransform, ...]:
        return _rotation(q[0], offset), Translation(np.array([0.0, 0.0, P[5, 0] / P[2, 0] * q[0]]))

    def moments_shared_with_parent(self, moments: Moments) -> Moments:
        return Moments(0.0, np.zeros(3), moments.J * np.outer(_Z, _Z))


class Prismatic(StageMotion):
    """Translation along an axis."""

    kind = "prismatic"
    unit = "m"

    def matrix(self, pitch: float) -> Array:
        return _column({5: 1.0})

    def transforms(self, q: Array, offset: tuple[Any, Any], P: Array) -> tuple[ElementaryTransform, ...]:
        rotation = () if offset == (1.0, 0.0) else (AxisRotation(2, *offset),)
        return (*rotation, Translation(np.array([0.0, 0.0, q[0]])))

    def placement(self, axis: Array, q: Array, pitch: float) -> Placement:
        return Placement(np.eye(3), q[0] * axis)

    def moments_shared_with_parent(self, moments: Moments) -> Moments:
        return Moments(0.0, np.zeros(3), moments.J)

    def random(self, uniform: Array, rng: np.random.Generator) -> Array:
        return uniform


class Ball(StageMotion):
    """Any rotation: q is a unit quaternion, w first, and v the angular velocity in body axes."""

    kind = "ball"
    nq = 4
    nv = 3
    has_axis = False
    has_quaternion = True

    def matrix(self, pitch: float) -> Array:
        return np.eye(6)[:, :3]

    def transforms(self, q: Array, offset: tuple[Any, Any], P: Array) -> tuple[ElementaryTransform, ...]:
        return (Rotation(quaternion_matrix(q)),)

    def placement(self, axis: Array, q: Array, pitch: float) -> Placement:
        return Placement(quaternion_matrix(q), np.zeros(3))

    def moments_shared_with_parent(self, moments: Moments) -> Moments:
        return Moments(moments.mass, np.zeros(3), np.zeros((3, 3)))

    def neutral(self) -> Array:
        return np.array([1.0, 0.0, 0.0, 0.0])

    def rate(self, q: Array, v: Array) -> Array:
        return quaternion_rate(q, v)

    def integrate(self, q: Array, dq: Array) -> Array:
        return quaternion_product(q, quaternion_exp(dq))

    def difference(self, start: Array, end: Array) -> Array:
        return rotation_between(start, end)

    def random(self, uniform: Array, rng: np.random.Generator) -> Array:
        return random_quaternion(rng)


MOTIONS: dict[str, StageMotion] = {motion.kind: motion for motion in (Revolute(), Prismatic(), Screw(), Ball())}
"""The motion of each kind of stage, by its name."""

_Z = np.array([0.0, 0.0, 1.0])


def _column(entries: dict[int, float]) -> Array:
    """Return a motion matrix of one column, (6, 1), with the given entries."""
    P = np.zeros((6, 1))
    for row, entry in entries.items():
        P[row, 0] = entry
    return P


def _rotation(angle: Any, offset: tuple[Any, Any]) -> AxisRotation:
    """Return the rotation about z by an angle [rad] and an offset, given as (cosine, sine)."""
    c, s = offset
    if c == 0.0 or s == 0.0:  # an offset by quarter turns costs no operations
        cosine, sine = np.cos(angle), np.sin(angle)
        return AxisRotation(2, cosine * c - sine * s, sine * c + cosine * s)
    shifted = angle + np.arctan2(s, c)
    return AxisRotation(2, np.cos(shifted), np.sin(shifted))


def rotation_between(start: Array, end: Array) -> Array:
    """Return the rotation vector, (3,), [rad], from a quaternion to another one, in the axes of the first.

    Args:
        start, end: Unit quaternions, (4,), w first, to common axes.
    """
    return quaternion_log(quaternion_product(quaternion_conjugate(start), end))


def random_quaternion(rng: np.random.Generator) -> Array:
    """Return a random unit quaternion, (4,), w first, uniformly distributed over all rotations."""
    p = rng.normal(size=4)
    return p / np.linalg.norm(p)


def random_middle_angle(sequence: str, rng: np.random.Generator) -> float:
    """Return a random second Euler angle, [rad], at least 0.2 rad away from gimbal lock.

    Args:
        sequence: Axes of the three rotations, such as "zyx". rng: The generator.
    """
    reach = np.pi / 2 - 0.2
    middle = rng.uniform(-reach, reach)
    return middle + np.pi / 2 if sequence[0] == sequence[2] else middle
