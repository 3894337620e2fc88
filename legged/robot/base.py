"""Bases: what the robot's first module M_0 may do, and the matrix P_0 of equation (7) for each.

A base gives the base link's twist t_0 = P_0(q) v and the bias of its rate in base axes (`docs/conventions.md`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from legged.robot.joint import euler_axes
from legged.rotations import (
    euler_angles,
    euler_matrix,
    euler_rate_matrix,
    quaternion_matrix,
    quaternion_of,
    quaternion_rate,
)
from legged.spatial import Array, cross, join


@dataclass(frozen=True)
class Base:
    """What every base answers; q and v below are the base's own parts, `q[:nq]` and `v[:nv]`."""

    nq = 0
    nv = 0

    @property
    def kind(self) -> str:
        return type(self).__name__.removesuffix("Base").lower()

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the entries of v."""
        return ()

    def pose(self, q: Array) -> tuple[Array, Array]:
        """Return (R, o): base axes to world axes, (3, 3), and the base's origin in the world, (3,), [m]."""
        return np.eye(3), np.zeros(3)

    def motion_matrix(self, q: Array) -> Array:
        """Return P_0, (6, nv): t_0 = P_0 @ v in base axes. Source: Shah, Saha, Dutt 2012, eq. (7)."""
        return np.zeros((6, 0))

    def motion_bias(self, q: Array, v: Array) -> Array:
        """Return [omega dot; acceleration of the origin] in base axes, (6,), at vdot = 0."""
        return np.zeros(6)

    def rate(self, q: Array, v: Array) -> Array:
        """Return the time derivative of q, (nq,)."""
        return v

    def neutral(self) -> Array:
        return np.zeros(self.nq)

    def configuration(self, position: Array, rotation: Array) -> Array:
        """Return q of a base at a world position (3,) with rotation R (3, 3), base axes to world. Plain floats."""
        return np.zeros(0)

    def velocity(self, q: Array, omega: Array, velocity: Array) -> Array:
        """Return v of a base at q with angular velocity (3,) and origin velocity (3,), both in world axes."""
        R, _ = self.pose(q)
        t = join(R.T @ omega, R.T @ velocity)
        return np.linalg.lstsq(self.motion_matrix(q), t, rcond=None)[0]


@dataclass(frozen=True)
class FixedBase(Base):
    """The base link is the ground's."""


@dataclass(frozen=True)
class PlanarBase(Base):
    """Three degrees of freedom in the world's x-z plane: q = [phi, x, z], phi about +y; v its rates."""

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


@dataclass(frozen=True)
class FloatingBase(Base):
    """Six degrees of freedom with a unit quaternion; v is the body twist."""

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

    def neutral(self) -> Array:
        return np.array([1.0, 0, 0, 0, 0, 0, 0])

    def configuration(self, position: Array, rotation: Array) -> Array:
        return np.concatenate([quaternion_of(rotation), position])


@dataclass(frozen=True)
class EulerBase(Base):
    """Six degrees of freedom with intrinsic Euler angles: q = [angles; position], v its rates (the paper's choice)."""

    sequence: str = "zyx"
    nq = 6
    nv = 6

    def __post_init__(self) -> None:
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
        """omega = e_1 a' + e_2 b' + e_3 c' in body axes; each axis turns with the rotations after it."""
        L = euler_rate_matrix(self.sequence, q[:3])
        first, second, third = (L[:, i] * v[i] for i in range(3))
        return join(cross(first, second + third) + cross(second, third), np.zeros(3))

    def configuration(self, position: Array, rotation: Array) -> Array:
        return np.concatenate([euler_angles(self.sequence, rotation), position])
