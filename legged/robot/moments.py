"""Moments of mass of a body, and what its joint lets others feel of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from legged.robot.frames import Placement, snap
from legged.robot.inertia import Inertia
from legged.spatial import Array, Transform, mass_matrix


@dataclass(frozen=True, eq=False)
class Moments:
    """Zeroth, first and second moment of mass about a frame's origin, in its axes.

    Attributes:
        mass: Sum of m, [kg].
        h: Sum of m r, (3,), [kg m].
        J: Sum of m r r^T, (3, 3), [kg m^2]; the inertia is tr(J) - J.
    """

    mass: float
    h: Array
    J: Array

    @property
    def M(self) -> Array:
        """The mass matrix, (6, 6), eq. (19)."""
        return mass_matrix(self.mass, self.h, np.trace(self.J) * np.eye(3) - self.J)

    def moved(self, where: Placement) -> Moments:
        """Return the same mass seen from an outer frame, in which this one is placed."""
        R, r = where.rotation, where.position
        h = R @ self.h
        J = R @ self.J @ R.T + np.outer(h, r) + np.outer(r, h) + self.mass * np.outer(r, r)
        return Moments(self.mass, h + self.mass * r, J)

    def __add__(self, other: Moments) -> Moments:
        return Moments(self.mass + other.mass, self.h + other.h, self.J + other.J)

    def __sub__(self, other: Moments) -> Moments:
        return Moments(self.mass - other.mass, self.h - other.h, self.J - other.J)

    def snapped(self) -> Moments:
        """Return it with rounding next to zero made exactly zero."""
        size, reach = 2 * max(float(np.abs(self.J).max()), 1e-12), 2 * max(float(np.abs(self.h).max()), 1e-12)
        return Moments(self.mass, snap(self.h, reach), snap(self.J, size))


def moments_of(inertia: Inertia, link_in_body: Placement) -> Moments:
    """Return the moments of mass of a link about the body's origin, in body axes."""
    moved = inertia.moved(link_in_body.rotation, link_in_body.position)
    about_origin = moved.about_origin
    second = np.trace(about_origin) / 2 * np.eye(3) - about_origin
    return Moments(moved.mass, moved.mass * np.asarray(moved.center), second).snapped()


class Jointed(Protocol):
    """What regrouping asks of a body."""

    @property
    def kind(self) -> str: ...
    @property
    def parent(self) -> int: ...
    @property
    def moments(self) -> Moments: ...
    def at_zero(self) -> Transform: ...


def regroup(bodies: Sequence[Jointed]) -> list[Moments]:
    """Return, for each body, the moments of mass that the recursions need: fewer numbers, the same dynamics.

    Some mass moves with a joint's parent whatever the joint does: a mass distribution along a revolute axis (m, h_z
    and J_zz of it), a point at the center of a ball joint, the second moment of what a prismatic joint carries. It
    is counted to the parent, and so on inward, which leaves a revolute link seven constants instead of ten. Joint
    forces, accelerations and the generalized inertia matrix are the same; wrenches inside joints are not.

    Source: base inertial parameters of Mayeda, Yoshida, Osuka 1990, and Khalil, Bennis, Gautier 1990.
    """
    felt = [body.moments for body in bodies]
    for index in range(len(bodies) - 1, 0, -1):
        body = bodies[index]
        unfelt = _unfelt(body.kind, felt[index])
        felt[index] = felt[index] - unfelt
        rotation, origin = body.transform_at_zero().child_pose(np.eye(3), np.zeros(3))
        felt[body.parent] = felt[body.parent] + unfelt.moved(Placement(rotation, origin))
    return [moments.snapped() for moments in felt]


def _unfelt(kind: str, moments: Moments) -> Moments:
    """Return the part of a body's mass that its joint does not move relative to the parent."""
    if kind == "revolute":
        z = np.array([0.0, 0.0, 1.0])
        return Moments(moments.mass, moments.h * z, moments.J * np.outer(z, z))
    if kind == "prismatic":
        return Moments(0.0, np.zeros(3), moments.J)
    return Moments(moments.mass, np.zeros(3), np.zeros((3, 3)))
