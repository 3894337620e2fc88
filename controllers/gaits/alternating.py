"""Gaits of two alternating groups of legs over a linear inverted pendulum: walk, trot and tripod gait."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from controllers.gaits.foot_path import swing_foot
from controllers.gaits.gait import Gait
from controllers.gaits.leg import Leg, paper_biped, paper_hexapod, paper_quadruped
from legged import taylor
from legged.arguments import Number, number
from legged.checked import checked
from legged.compiler import Expression
from legged.errors import DefinitionError, UnknownNameError


@checked
@dataclass(frozen=True)
class InvertedPendulum:
    """A linear inverted pendulum: a point mass at constant height over a foot, along one horizontal axis, for a phase.

        x'' = omega^2 x,   x(t) = start cosh(omega t) + (speed / omega) sinh(omega t),   omega = sqrt(gravity / height)

    `forward` and `sideways` choose the speed of a periodic motion.

    Attributes:
        height: Height of the mass over the foot, [m].
        start: x(0), position of the mass relative to the foot, [m].
        speed: x'(0), [m/s].
        period: Duration of a phase, [s].
        gravity: Gravitational acceleration, [m/s^2].

    Source:
        Shah, Saha, Dutt 2012, eq. (B.1).
    """

    height: Number
    start: Number
    speed: Number
    period: Number
    gravity: Number = 9.81

    @classmethod
    def forward(cls, period: Number, stride: Number, height: Number, gravity: Number = 9.81) -> InvertedPendulum:
        """Return the pendulum that advances by `stride` [m] per phase, with x(T) = -x(0) and x'(T) = x'(0).

        Both conditions hold for speed = -start omega coth(omega T / 2). The foot moves by one stride per phase, hence
        start = -stride / 2.

        Source:
            Shah, Saha, Dutt 2012, Appendix B.
        """
        omega = _omega(height, gravity, period)
        start = -stride / 2
        return cls(height, start, -start * omega / np.tanh(omega * period / 2), period, gravity)

    @classmethod
    def sideways(cls, period: Number, start: Number, height: Number, gravity: Number = 9.81) -> InvertedPendulum:
        """Return the pendulum that moves towards the foot and back: y(T) = y(0), y'(T) = -y'(0).

        Hence speed = -start omega tanh(omega T / 2). The next phase, over the other foot, is the mirror image.
        """
        omega = _omega(height, gravity, period)
        return cls(height, start, -start * omega * np.tanh(omega * period / 2), period, gravity)

    @property
    def omega(self) -> float:
        """Natural frequency, sqrt(gravity / height), [1/s]."""
        return _omega(self.height, self.gravity, self.period)

    @property
    def mid_stance_speed(self) -> float:
        """Speed at half the period, [m/s]; the lowest speed of a forward pendulum."""
        half = self.omega * self.period / 2
        return float(self.start * self.omega * np.sinh(half) + self.speed * np.cosh(half))

    @property
    def orbital_energy(self) -> float:
        """Orbital energy, speed^2 - omega^2 start^2, [m^2/s^2], a constant; positive if the mass passes the foot."""
        return self.speed**2 - (self.omega * self.start) ** 2

    def __call__(self, t: Any) -> Any:
        """Return x at time `t` [s] of the phase, [m]."""
        omega = self.omega
        return self.start * np.cosh(omega * t) + (self.speed / omega) * np.sinh(omega * t)


def _omega(height: Any, gravity: Any, period: Any) -> Any:
    for name, value, unit in (("height", height, "m"), ("gravity", gravity, "m/s^2"), ("period", period, "s")):
        if not isinstance(value, Expression) and not 0 < value < np.inf:
            raise DefinitionError(f"the pendulum's {name} must be positive, got {value} {unit}")
    return np.sqrt(gravity / height)


@checked
@dataclass(frozen=True, kw_only=True)
class Alternating(Gait):
    """A gait of two groups of legs: one supports the base, which moves as an inverted pendulum, while the other swings.

    The groups exchange their roles at once, without double support. Positions and velocities are continuous there, and
    accelerations jump.

    Attributes:
        first: Names of the legs that support the first phase; by default those of `diagonal`.
        pendulum_height: Height of the pendulum, [m], by default the hip height.
        sway: Whether the base also moves sideways, towards the supporting feet and back; needs legs with abduction.

    Source:
        Shah, Saha, Dutt 2012, Appendix B. The appendix prints the hip height as z_c - l0 / 2. The authors' programs use
        z_c, and only with this height does the robot walk, so `hip_height` is z_c.
    """

    first: tuple[str, ...] | None = None
    pendulum_height: float | None = None
    sway: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pendulum_height is not None:
            number("pendulum_height", self.pendulum_height, "m", above=0.0)

    @property
    def cycle(self) -> int:
        return 2

    @property
    def pendulum(self) -> InvertedPendulum:
        """Motion of the base over the supporting feet along x."""
        return InvertedPendulum.forward(self.period, self.stride, self._pendulum_height, self.gravity)

    @property
    def groups(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of the legs that support the even phases, and of those that support the odd phases.

        Raises:
            UnknownNameError: `first` names a leg that does not exist.
            DefinitionError: The groups have different numbers of legs.
        """
        names = tuple(leg.name for leg in self.geometry)
        first = diagonal(self.geometry) if self.first is None else self.first
        for name in first:
            if name not in names:
                raise UnknownNameError("leg", name, names)
        groups = tuple(n for n in names if n in first), tuple(n for n in names if n not in first)
        if len(groups[0]) != len(groups[1]):
            raise DefinitionError(
                f"{type(self).__name__} alternates between two groups of equally many legs, but the groups "
                f"{list(groups[0])} and {list(groups[1])} of {len(names)} legs differ; use Crawl for an odd number of "
                f"legs, or name half of the legs in first=(...)"
            )
        return groups

    def plan(self, t: Any, phase: Any) -> tuple[list[Any], list[list[Any]]]:
        even = phase % 2 < 0.5
        x, z = swing_foot(t, self.period, self.stride, self.clearance, self.path)
        base = [self.pendulum(t), self._sideways(t, even), self.base_height]
        groups, feet = self.groups, []
        for leg in self.geometry:
            carries = even if leg.name in groups[0] else phase % 2 > 0.5
            feet.append([taylor.where(carries, 0.0, x), 0.0, taylor.where(carries, 0.0, z)])
        return base, feet

    def supporting(self, phase: int) -> tuple[str, ...]:
        return self.groups[phase % 2]

    @property
    def _pendulum_height(self) -> float:
        return self.height if self.pendulum_height is None else self.pendulum_height

    def _sideways(self, t: Any, even: Any) -> Any:
        if not self.sway:
            return 0.0
        middles = [np.mean([leg.stance[1] for leg in self.geometry if leg.name in group]) for group in self.groups]
        height = self._pendulum_height
        paths = [y + InvertedPendulum.sideways(self.period, -y, height, self.gravity)(t) for y in map(float, middles)]
        return taylor.where(even, *paths)


@checked
@dataclass(frozen=True, kw_only=True)
class Walk(Alternating):
    """The walk of two legs; default values are those of the paper's planar biped."""

    def default_legs(self) -> tuple[Leg, ...]:
        return paper_biped()


@checked
@dataclass(frozen=True, kw_only=True)
class Trot(Alternating):
    """The trot of four legs in diagonal pairs; default values are those of the paper's spatial quadruped."""

    clearance: float = 0.08
    height_fraction: ClassVar[float] = 5 / 6

    def default_legs(self) -> tuple[Leg, ...]:
        return paper_quadruped()


@checked
@dataclass(frozen=True, kw_only=True)
class Tripod(Alternating):
    """The tripod gait of six legs in two sets of three; default values are those of the authors' hexapod.

    Only the hip height is lower, 0.544 m for its legs, since 0.55 m bends the knees by less than `gait.KNEE_MARGIN`.
    """

    period: float = 0.5
    stride: float = 0.4
    clearance: float = 0.08
    height_fraction: ClassVar[float] = 11 / 12

    def default_legs(self) -> tuple[Leg, ...]:
        return paper_hexapod()


def diagonal(legs: tuple[Leg, ...]) -> tuple[str, ...]:
    """Return the names of one alternating group of legs: a diagonal of a quadruped, a tripod of a hexapod.

    The group has every second leg, counted from the rear: on the right side from the first one, on the left side from
    the second one. Legs in one plane alternate in their order.
    """
    if len({leg.stance[1] for leg in legs}) == 1:
        return tuple(leg.name for leg in legs[::2])
    right = sorted((leg for leg in legs if leg.stance[1] <= 0), key=lambda leg: leg.stance[0])
    left = sorted((leg for leg in legs if leg.stance[1] > 0), key=lambda leg: leg.stance[0])
    return tuple(leg.name for leg in (*right[::2], *left[1::2]))
