"""The divergent component of motion: what the fall of a walking robot comes down to, and how it is steered.

A mass at constant height over a center of pressure p obeys c'' = omega^2 (c - p). Its divergent component
xi = c + c' / omega runs away from p, xi' = omega (xi - p); the rest of the motion follows it. Within a step the center
of pressure moves xi as far as the support reaches; what is left decides where the next feet go.

Source: Englsberger, Ott, Albu-Schaeffer, "Three-dimensional bipedal walking control based on divergent component of
motion", IEEE Transactions on Robotics 31(2), 2015; the pendulum is that of Shah, Saha, Dutt 2012, Appendix B.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from controllers.balance.support import Support
from legged.spatial import Array

_FARTHEST = 0.1  # [m]: of a place behind the plan, what is made good in one step


@dataclass(frozen=True)
class Capture:
    """The divergent component of a gait of equal steps, and its feedback.

    Attributes:
        omega: sqrt(g / height of the center of mass), [1/s].
        period: Duration of a step, [s].
        stride: What the supports move on in a step, [m].
        gain: Feedback of xi on the center of pressure; above 1 the fall is stopped.
        reach: How far the center of pressure may go, in units of the support's extent.
        tracking: Share of the distance to the plan that one step makes good.
    """

    omega: float
    period: float
    stride: float
    gain: float = 3.0
    reach: float = 0.8
    tracking: float = 0.5

    @property
    def growth(self) -> Any:
        """By what a deviation of xi grows in a step when nothing is done about it."""
        return np.exp(self.omega * self.period)

    @property
    def offset(self) -> Any:
        """xi minus the support at the start of a repeating step, [m]: stride / (growth - 1)."""
        return self.stride / (self.growth - 1.0)

    def error(self, t: Any, xi: Array, support: Support) -> Array:
        """Return xi minus what the gait wants at time t inside the step, (2,), [m]."""
        wanted = np.array([self.offset * np.exp(self.omega * t), 0.0 * t])
        return xi - support.center[:2] - wanted

    def pressure(self, error: Array, support: Support) -> Array:
        """Return where the center of pressure should be, (2,), [m], world."""
        move = self.gain * support.reachable(error)
        return support.center[:2] + move * np.minimum(1.0, self.reach / support.size(move))

    def next_support(self, t: Any, phase: Any, error: Array, support: Support, following: Support) -> Array:
        """Return where the next support should be centered, (2,), [m], world.

        The error that the center of pressure cannot remove in the rest of the step grows and is met by the feet.
        Lagging behind the plan (phase + 1) stride is made good along the next support by stepping nearer to the plan,
        since pressure will follow, and across it by stepping farther from it, since only the fall itself moves there.
        """
        growth = np.exp(self.omega * (self.period - t))
        along = support.reachable(error)
        size = support.size(along)
        kept = np.maximum(size - self.reach * (1.0 - 1.0 / growth), 0.0) / size
        landing = support.center[:2] + (error - along + kept * along) * growth + np.array([self.stride, 0.0])
        ahead = landing - np.array([(phase + 1) * self.stride, 0.0])
        ahead = np.minimum(np.maximum(ahead, -_FARTHEST), _FARTHEST)
        along = following.reachable(ahead)
        return landing + self.tracking * ((ahead - along) / (self.growth - 1.0) - along)
