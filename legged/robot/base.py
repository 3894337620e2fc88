"""Bases: the degrees of freedom of the base link (module M_0), and the matrix P_0 of equation (7) for each.

A base gives the base link's twist t_0 = P_0(q) v in base axes, its pose in the world, and conversions to and from the
coordinates of the base (`docs/reference/conventions.md`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from legged.checked import checked
from legged.errors import DefinitionError
from legged.robot.joint import euler_axes
from legged.robot.physics import JointPhysics
from legged.robot.stages.motion import random_middle_angle, random_quaternion, rotation_between
from legged.rotations import (
    euler_angles,
    euler_matrix,
    euler_rate_matrix,
    quaternion_exp,
    quaternion_matrix,
    quaternion_of,
    quaternion_product,
    quaternion_rate,
)
from legged.spatial import Array, cross, join


@dataclass(frozen=True)
class Base:
    """Base class of the bases. In its methods q and v are the base's parts of a state, `q[:nq]` and `v[:nv]`."""

    nq = 0
    nv = 0

    @property
    def kind(self) -> str:
        """Name of the base type in lower case: "fixed", "planar", "floating" or "euler"."""
        return type(self).__name__.removesuffix("Base").lower()

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the entries of v."""
        return ()

    @property
    def physics(self) -> JointPhysics:
        """Inertia and friction in the coordinates of the base alone, without those of the links."""
        return JointPhysics()

    def pose(self, q: Array) -> tuple[Array, Array]:
        """Return (R, o): rotation matrix from base to world axes, (3, 3), and the base's origin, (3,), [m], world axes.

        Args:
            q: Configuration of the base, (nq of the base,).
        """
        return np.eye(3), np.zeros(3)

    def motion_matrix(self, q: Array) -> Array:
        """Return P_0, (6, nv of the base): t_0 = P_0 @ v in base axes.

        Args:
            q: Configuration of the base, (nq of the base,).

        Source: Shah, Saha, Dutt 2012, eq. (7).
        """
        return np.zeros((6, 0))

    def motion_bias(self, q: Array, v: Array) -> Array:
        """Return [omega dot; acceleration of the origin] at vdot = 0, (6,), [rad/s^2, m/s^2], base axes.

        Args:
            q: Configuration of the base, (nq of the base,). v: Its velocity, (nv of the base,).
        """
        return np.zeros(6)

    def rate(self, q: Array, v: Array) -> Array:
        """Return the time derivative of q, (nq of the base,).

        Args:
            q: Configuration of the base, (nq of the base,). v: Its velocity, (nv of the base,).
        """
        return v

    def integrate(self, q: Array, dq: Array) -> Array:
        """Return q (+) dq, (nq of the base,); see `legged.robot.configuration.integrate`.

        Args:
            q: Configuration of the base, (nq of the base,). dq: Step, (nv of the base,), [rad] and [m], frame as v.
        """
        return q + dq

    def difference(self, start: Array, end: Array) -> Array:
        """Return dq, (nv of the base,), [rad] and [m], of least size with integrate(start, dq) = end.

        Args:
            start: Configuration of the base, (nq of the base,), mixed units, world axes.
            end: Configuration of the base, (nq of the base,), mixed units, world axes.
        """
        return end - start

    def coasted(self, v: Array, h: Any) -> Array:
        """Return v after a motion without acceleration of the angles and of the origin in the world, (nv of the base,).

        Args:
            v: Velocity of the base, (nv of the base,). h: Duration, [s].
        """
        return v

    @property
    def quaternion_blocks(self) -> tuple[tuple[slice, slice], ...]:
        """The (entries of q, entries of v) of each unit quaternion and its angular velocity."""
        return ()

    def neutral(self) -> Array:
        """Return q, (nq of the base,), with base frame and world frame coincident."""
        return np.zeros(self.nq)

    def random(self, uniform: Array, rng: np.random.Generator) -> Array:
        """Return a random q, (nq of the base,): angles within pi, positions within 1 m, a unit quaternion.

        Middle Euler angles are at least 0.2 rad away from gimbal lock.

        Args:
            uniform: Random numbers between -1 and 1, (nq of the base,), dimensionless. rng: The generator for others.
        """
        return uniform

    def configuration(self, position: Array, rotation: Array) -> Array:
        """Return q, (nq of the base,), for a pose of the base. Floats only.

        Args:
            position: The base's origin, (3,), [m], world axes.
            rotation: A rotation matrix, (3, 3), base to world axes.
        """
        return np.zeros(0)

    def velocity(self, q: Array, omega: Array, velocity: Array) -> Array:
        """Return v, (nv of the base,), for a twist of the base, or the nearest one that it can have. Floats only.

        Args:
            q: Configuration of the base, (nq of the base,).
            omega: Angular velocity, (3,), [rad/s], world axes.
            velocity: Velocity of the base's origin, (3,), [m/s], world axes.
        """
        R, _ = self.pose(q)
        t = join(R.T @ omega, R.T @ velocity)
        return np.linalg.lstsq(self.motion_matrix(q), t, rcond=None)[0]


@checked
@dataclass(frozen=True)
class FixedBase(Base):
    """No degrees of freedom: the base link is fixed to the world."""


class MovingBase(Base):
    """A base that moves, with armature and damping in its coordinates; `armature` and `damping` are fields."""

    armature: float
    damping: float

    def __post_init__(self) -> None:
        for name in ("armature", "damping"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0.0):
                raise DefinitionError(f"the {name} of a {self.kind} base must be finite and not negative, got {value}")
            object.__setattr__(self, name, float(value))

    @property
    def physics(self) -> JointPhysics:
        return JointPhysics(armature=self.armature, damping=self.damping)


@checked
@dataclass(frozen=True)
class PlanarBase(MovingBase):
    """Three degrees of freedom in the world's x-z plane: q = [phi, x, z], phi about +y; v its rates.

    Armature and damping are those of the joints of an equal chain of two slides and a hinge: the forces in the rows of
    the base gain a vdot + b v.

    Attributes:
        armature: a, added to the diagonal of the inertia matrix, [kg m^2] for the rotation and [kg] for translations.
        damping: b, viscous friction against the world, [N m s/rad] and [N s/m].
    """

    armature: float = 0.0
    damping: float = 0.0
    nq = 3
    nv = 3

    @property
    def coordinates(self) -> tuple[str, ...]:
        return ("phi", "x", "z")

    def pose(self, q: Array) -> tuple[Array, Array]:
        c, s = np.cos(q[0]), np.sin(q[0])
        return np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]]), np.array([q[1], 0.0, q[2]])

    def motion_matrix(self, q: Array) -> Array:
        c, s = np.cos(q[0]), np.sin(q[0])
        rows = [[0, 0, 0], [1, 0, 0], [0, 0, 0], [0, c, -s], [0, 0, 0], [0, s, c]]
        return np.array([[entry * 1.0 for entry in row] for row in rows])

    def configuration(self, position: Array, rotation: Array) -> Array:
        return np.array([np.arctan2(rotation[0, 2], rotation[0, 0]), position[0], position[2]])

    def random(self, uniform: Array, rng: np.random.Generator) -> Array:
        return np.concatenate([np.pi * uniform[:1], uniform[1:]])


@checked
@dataclass(frozen=True)
class FloatingBase(MovingBase):
    """Six degrees of freedom: q = [unit quaternion, w first; position], v the body twist in base axes.

    Armature and damping are those of a free joint in MuJoCo. With the armature a and the damping b, the forces in the
    rows of the base gain

        a [omega dot; R^T (d/dt)(R v)] + b [omega; v] = a vdot + [0; a omega x v] + b [omega; v]

    The armature is an inertia without weight and without moments of mass: it belongs to the inertia matrix and to the
    kinetic energy, a (|omega|^2 + |v|^2) / 2, but not to the mass, the center of mass and the momentum of the links.

    Attributes:
        armature: a, added to the diagonal of the inertia matrix, [kg m^2] for rotations and [kg] for translations.
        damping: b, viscous friction against the world, [N m s/rad] and [N s/m].
    """

    armature: float = 0.0
    damping: float = 0.0
    nq = 7
    nv = 6

    @property
    def coordinates(self) -> tuple[str, ...]:
        return ("omega_x", "omega_y", "omega_z", "v_x", "v_y", "v_z")

    def pose(self, q: Array) -> tuple[Array, Array]:
        return quaternion_matrix(q[:4]), q[4:7]

    def motion_matrix(self, q: Array) -> Array:
        return np.eye(6)

    def motion_bias(self, q: Array, v: Array) -> Array:
        return join(np.zeros(3), cross(v[:3], v[3:6]))

    def rate(self, q: Array, v: Array) -> Array:
        R, _ = self.pose(q)
        return np.concatenate([quaternion_rate(q[:4], v[:3]), R @ v[3:6]])

    def integrate(self, q: Array, dq: Array) -> Array:
        p = quaternion_product(q[:4], quaternion_exp(dq[:3]))
        return np.concatenate([p, q[4:7] + quaternion_matrix(q[:4]) @ dq[3:6]])

    def difference(self, start: Array, end: Array) -> Array:
        translation = quaternion_matrix(start[:4]).T @ (end[4:7] - start[4:7])
        return np.concatenate([rotation_between(start[:4], end[:4]), translation])

    def coasted(self, v: Array, h: Any) -> Array:
        R = quaternion_matrix(quaternion_exp(h * v[:3]))
        return np.concatenate([v[:3], R.T @ v[3:6]])

    @property
    def quaternion_blocks(self) -> tuple[tuple[slice, slice], ...]:
        return ((slice(0, 4), slice(0, 3)),)

    def neutral(self) -> Array:
        return np.array([1.0, 0, 0, 0, 0, 0, 0])

    def random(self, uniform: Array, rng: np.random.Generator) -> Array:
        return np.concatenate([random_quaternion(rng), uniform[4:]])

    def configuration(self, position: Array, rotation: Array) -> Array:
        return np.concatenate([quaternion_of(rotation), position])


@checked
@dataclass(frozen=True)
class EulerBase(MovingBase):
    """Six degrees of freedom with intrinsic Euler angles: q = [angles; position], v its rates (the paper's choice).

    Armature and damping are those of the joints of an equal chain of slides and hinges: the forces in the rows of the
    base gain a vdot + b v.

    Attributes:
        sequence: Axes of the rotations, such as "zyx".
        armature: a, added to the diagonal of the inertia matrix, [kg m^2] for the angles and [kg] for translations.
        damping: b, viscous friction against the world, [N m s/rad] and [N s/m].
    """

    sequence: str = "zyx"
    armature: float = 0.0
    damping: float = 0.0
    nq = 6
    nv = 6

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "sequence", "".join(euler_axes(self.sequence)))

    @property
    def coordinates(self) -> tuple[str, ...]:
        return (*(f"angle_{i + 1}_{axis}" for i, axis in enumerate(self.sequence)), "x", "y", "z")

    def pose(self, q: Array) -> tuple[Array, Array]:
        return euler_matrix(self.sequence, q[:3]), q[3:6]

    def motion_matrix(self, q: Array) -> Array:
        L, R = euler_rate_matrix(self.sequence, q[:3]), euler_matrix(self.sequence, q[:3])
        return np.block([[L, np.zeros((3, 3))], [np.zeros((3, 3)), R.T]])

    def motion_bias(self, q: Array, v: Array) -> Array:
        """As `Base.motion_bias`: omega = e_1 a' + e_2 b' + e_3 c', with e_i in base axes a function of later angles."""
        L = euler_rate_matrix(self.sequence, q[:3])
        first, second, third = (L[:, i] * v[i] for i in range(3))
        return join(cross(first, second + third) + cross(second, third), np.zeros(3))

    def configuration(self, position: Array, rotation: Array) -> Array:
        return np.concatenate([euler_angles(self.sequence, rotation), position])

    def random(self, uniform: Array, rng: np.random.Generator) -> Array:
        first, _, third = np.pi * uniform[:3]
        return np.array([first, random_middle_angle(self.sequence, rng), third, *uniform[3:]])
