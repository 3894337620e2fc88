"""The linear inverted pendulum: how a hip at constant height falls away from the foot that carries it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from legged.compiler import Expression
from legged.errors import DefinitionError


@dataclass(frozen=True)
class Pendulum:
    """One step of a point mass at constant height over a foot, along one horizontal axis.

        x'' = omega^2 x,   x(t) = start cosh(omega t) + (speed / omega) sinh(omega t),   omega = sqrt(gravity / height)

    `forward` and `sideways` choose the speed so that every step repeats the one before.

    Attributes:
        height: Of the mass above the foot, [m].
        start: x at t = 0, mass minus foot, [m].
        speed: Its rate at t = 0, [m/s].
        period: Duration of a step, [s].
        gravity: [m/s^2].

    Source:
        Shah, Saha, Dutt 2012, eq. (B.1).
    """

    height: Any
    start: Any
    speed: Any
    period: Any
    gravity: Any = 9.81

    @classmethod
    def forward(cls, period: Any, stride: Any, height: Any, gravity: Any = 9.81) -> Pendulum:
        """Return the pendulum that advances by `stride` [m] a step and ends as it began: x(T) = -x(0), x'(T) = x'(0).

        The two conditions are one, speed = -start omega coth(omega T / 2). The foot moves on by a stride each step,
        hence start = -stride / 2.

        Source:
            Shah, Saha, Dutt 2012, Appendix B.
        """
        omega = _omega(height, gravity, period)
        start = -stride / 2
        return cls(height, start, -start * omega / np.tanh(omega * period / 2), period, gravity)

    @classmethod
    def sideways(cls, period: Any, start: Any, height: Any, gravity: Any = 9.81) -> Pendulum:
        """Return the pendulum that swings towards the foot and back: y(T) = y(0), y'(T) = -y'(0).

        Hence speed = -start omega tanh(omega T / 2); on the other foot the next step is its mirror image.
        """
        omega = _omega(height, gravity, period)
        return cls(height, start, -start * omega * np.tanh(omega * period / 2), period, gravity)

    @property
    def omega(self) -> float:
        """The rate of falling, sqrt(gravity / height), [1/s]."""
        return _omega(self.height, self.gravity, self.period)

    @property
    def mid_stance_speed(self) -> float:
        """The speed at half the period, [m/s]; of a forward pendulum the lowest."""
        half = self.omega * self.period / 2
        return float(self.start * self.omega * np.sinh(half) + self.speed * np.cosh(half))

    @property
    def orbital_energy(self) -> float:
        """speed^2 - omega^2 start^2, [m^2/s^2], a constant of the motion; positive if the mass passes the foot."""
        return self.speed**2 - (self.omega * self.start) ** 2

    def __call__(self, t: Any) -> Any:
        """Return x at time `t` inside the step, over any element."""
        omega = self.omega
        return self.start * np.cosh(omega * t) + (self.speed / omega) * np.sinh(omega * t)


def _omega(height: Any, gravity: Any, period: Any) -> Any:
    for name, value, unit in (("height", height, "m"), ("gravity", gravity, "m/s^2"), ("period", period, "s")):
        if not isinstance(value, Expression) and not 0 < value < np.inf:
            raise DefinitionError(f"the pendulum's {name} must be positive, got {value} {unit}")
    return np.sqrt(gravity / height)
