"""Moments of mass: sums over a mass distribution that are linear in the mass, unlike its center."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from legged.robot.placement import Placement, snap
from legged.spatial import Array, mass_matrix


@dataclass(frozen=True, eq=False)
class Moments:
    """Zeroth, first and second moments of mass about a frame's origin, in its axes.

    Attributes:
        mass: Sum of m, [kg].
        h: Sum of m r, (3,), [kg m].
        J: Sum of m r r^T, (3, 3), [kg m^2]; the inertia tensor is tr(J) - J.
    """

    mass: float
    h: Array
    J: Array

    @cached_property
    def M(self) -> Array:
        """The mass matrix, (6, 6), [kg m^2, kg m, kg], eq. (19), which cannot be written to."""
        M = mass_matrix(self.mass, self.h, np.trace(self.J) * np.eye(3) - self.J)
        M.flags.writeable = False
        return M

    def moved(self, where: Placement) -> Moments:
        """Return the moments about the origin of an outer frame, in its axes; `where` is this frame's pose in it."""
        R, r = where.rotation, where.position
        h = R @ self.h
        J = R @ self.J @ R.T + np.outer(h, r) + np.outer(r, h) + self.mass * np.outer(r, r)
        return Moments(self.mass, h + self.mass * r, J)

    def __add__(self, other: Moments) -> Moments:
        return Moments(self.mass + other.mass, self.h + other.h, self.J + other.J)

    def __sub__(self, other: Moments) -> Moments:
        return Moments(self.mass - other.mass, self.h - other.h, self.J - other.J)

    def snapped(self) -> Moments:
        """Return the moments with entries that are zero within rounding set to zero; traced entries are kept."""
        return Moments(self.mass, _snapped(self.h), _snapped(self.J))


def _snapped(x: Array) -> Array:
    if x.dtype == object:
        plain = [isinstance(entry, float) for entry in x.ravel().tolist()]
        snapped = x.copy()
        snapped.ravel()[plain] = _snapped(x.ravel()[plain].astype(float))
        return snapped
    return snap(x, 2 * max(float(np.abs(x).max(initial=0.0)), 1e-12))
