"""Feedback of the divergent component of motion by the center of pressure and by foot placement.

A mass at constant height over a center of pressure p obeys c'' = omega^2 (c - p). Its divergent component of motion
xi = c + c' / omega diverges from p, xi' = omega (xi - p), and the rest of the motion is stable. Within a phase of the
gait the center of pressure controls xi, limited by the support of the feet. The remaining error determines where the
next feet step.

Source:
    Englsberger, Ott, Albu-Schaeffer, "Three-dimensional bipedal walking control based on divergent component of
    motion", IEEE Transactions on Robotics 31(2), 2015; the pendulum is that of Shah, Saha, Dutt 2012, Appendix B.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from legged.spatial import Array, solve_symmetric, sum_of

_WIDTH = 1e-2  # [m], width below which the center of pressure cannot move within a support
_LARGEST_CORRECTION = 0.1  # [m], of the position of the robot along the planned path, per phase


@dataclass(frozen=True, eq=False)
class Support:
    """Supporting contact points, projected onto the horizontal plane.

    Attributes:
        center: Desired center of pressure if there is no error, (3,), [m], world axes.
        spread: Second moment of the points about their mean, (2, 2), [m^2], world axes; of rank one for two points.
    """

    center: Array
    spread: Array

    @classmethod
    def of(cls, points: Array, weights: list[Any], offset: Array | None = None) -> Support:
        """Return the support of weighted points.

        Args:
            points: Contact points, (n, 3), [m], world axes.
            weights: 1 for each supporting point, 0 for each other one, (n,).
            offset: Nominal position of the mean of the supporting points relative to the base, (2,), [m], world axes.
                It is not zero for a tripod of three legs of six. The center of the support is the mean minus this
                offset; by default it is the mean.
        """
        total = sum_of(weights)
        center = sum_of(k * point for k, point in zip(weights, points, strict=True)) / total
        arms = [point[:2] - center[:2] for point in points]
        spread = sum_of(k * np.outer(arm, arm) for k, arm in zip(weights, arms, strict=True)) / total
        if offset is not None:
            center = center - np.array([offset[0], offset[1], 0.0])
        return cls(center, spread)

    def project(self, x: Array) -> Array:
        """Return the component of x in the directions in which the support extends, (2,), [m], world axes.

        Args:
            x: Horizontal vector, (2,), [m], world axes.
        """
        return self.spread @ self._solve(x)

    def norm(self, x: Array) -> Any:
        """Return the length of x relative to the extent of the support in its direction, dimensionless.

        Args:
            x: Horizontal vector, (2,), [m], world axes.
        """
        return np.sqrt(x @ self._solve(x) + 1e-12)

    def _solve(self, x: Array) -> Array:
        return solve_symmetric(self.spread + _WIDTH**2 * np.eye(2), x)


@dataclass(frozen=True)
class DivergentComponent:
    """Feedback of the divergent component of a gait with phases of equal duration and stride.

    Attributes:
        omega: sqrt(g / height of the center of mass), [1/s].
        period: Duration of a phase, [s].
        stride: Displacement of the support per phase, [m].
        gain: Feedback of xi on the center of pressure; the motion is stable for values above 1.
        reach: Largest displacement of the center of pressure, relative to the extent of the support.
        tracking: Fraction of the distance to the planned position that a phase corrects.
    """

    omega: float
    period: float
    stride: float
    gain: float = 3.0
    reach: float = 0.8
    tracking: float = 0.5

    @property
    def growth(self) -> Any:
        """Factor by which a deviation of xi grows in a phase without feedback."""
        return np.exp(self.omega * self.period)

    @property
    def offset(self) -> Any:
        """xi minus the support at the start of a periodic phase, stride / (growth - 1), [m]."""
        return self.stride / (self.growth - 1.0)

    def error(self, t: Any, xi: Array, support: Support) -> Array:
        """Return the difference of xi from its nominal value, (2,), [m], world axes.

        Args:
            t: Time since the start of the phase, [s].
            xi: Divergent component of motion, (2,), [m], world axes.
            support: The current support.
        """
        nominal = np.array([self.offset * np.exp(self.omega * t), 0.0 * t])
        return xi - support.center[:2] - nominal

    def center_of_pressure(self, error: Array, support: Support) -> Array:
        """Return the desired center of pressure, (2,), [m], world axes.

        Args:
            error: As `error` returns it, (2,), [m], world axes.
            support: The current support.
        """
        move = self.gain * support.project(error)
        return support.center[:2] + move * np.minimum(1.0, self.reach / support.norm(move))

    def next_support(self, t: Any, phase: Any, error: Array, support: Support, following: Support) -> Array:
        """Return the desired center of the next support, (2,), [m], world axes.

        The part of the error that the center of pressure cannot remove in the rest of the phase grows, and the next
        support moves by it. A deviation from the planned position (phase + 1) stride is corrected, in directions in
        which the next support extends, by stepping nearer to the plan, since the center of pressure follows. In other
        directions it is corrected by stepping farther from the plan, since only the divergent motion acts there.

        Args:
            t: Time since the start of the phase, [s].
            phase: Number of phases before this one.
            error: As `error` returns it, (2,), [m], world axes.
            support: The current support.
            following: Support of the feet that swing.
        """
        growth = np.exp(self.omega * (self.period - t))
        along = support.project(error)
        norm = support.norm(along)
        remaining = np.maximum(norm - self.reach * (1.0 - 1.0 / growth), 0.0) / norm
        landing = support.center[:2] + (error - along + remaining * along) * growth + np.array([self.stride, 0.0])
        ahead = landing - np.array([(phase + 1) * self.stride, 0.0])
        ahead = np.minimum(np.maximum(ahead, -_LARGEST_CORRECTION), _LARGEST_CORRECTION)
        along = following.project(ahead)
        return landing + self.tracking * ((ahead - along) / (self.growth - 1.0) - along)
