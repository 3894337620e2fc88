"""Gaits of two groups of legs that take turns: the walk of a biped, the trot of a quadruped, a hexapod's tripods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from controllers.gaits.foot_path import swing_foot
from controllers.gaits.gait import Gait
from controllers.gaits.leg import Leg
from controllers.gaits.paper_legs import paper_biped, paper_hexapod, paper_quadruped
from controllers.gaits.pendulum import Pendulum
from legged import taylor
from legged.errors import UnknownNameError


@dataclass(frozen=True, kw_only=True)
class Alternating(Gait):
    """One group of legs carries the base over its feet as an inverted pendulum, the other swings; then they exchange.

    The exchange is instantaneous and leaves positions and velocities continuous; accelerations jump.

    Attributes:
        first: Names of the legs that carry the first step; without them every second leg, see `diagonal`.
        pendulum_height: Height of the pendulum, [m], if it is not the hip height.
        sway: The base also swings sideways over the supporting feet and back; for legs with abduction.

    Source:
        Shah, Saha, Dutt 2012, Appendix B. There the hip height is printed as z_c - l0 / 2; the authors' programs have
        z_c, and only that walks, so that is what `hip_height` is.
    """

    first: tuple[str, ...] | None = None
    pendulum_height: float | None = None
    sway: bool = False

    @property
    def cycle(self) -> int:
        return 2

    @property
    def pendulum(self) -> Pendulum:
        """The base's motion over the supporting feet, along x."""
        return Pendulum.forward(self.period, self.stride, self._pendulum_height, self.gravity)

    @property
    def groups(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of the legs that carry steps 0, 2, 4, ... and of those that carry steps 1, 3, 5, ..."""
        names = tuple(leg.name for leg in self.geometry)
        first = diagonal(self.geometry) if self.first is None else self.first
        for name in first:
            if name not in names:
                raise UnknownNameError("leg", name, names)
        return tuple(n for n in names if n in first), tuple(n for n in names if n not in first)

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
        return self.hip_height if self.pendulum_height is None else self.pendulum_height

    def _sideways(self, t: Any, even: Any) -> Any:
        if not self.sway:
            return 0.0
        middles = [np.mean([leg.stance[1] for leg in self.geometry if leg.name in group]) for group in self.groups]
        height = self._pendulum_height
        paths = [y + Pendulum.sideways(self.period, -y, height, self.gravity)(t) for y in map(float, middles)]
        return taylor.where(even, *paths)


@dataclass(frozen=True, kw_only=True)
class Walk(Alternating):
    """Two legs in turn; the defaults are the paper's planar biped."""

    def default_legs(self) -> tuple[Leg, ...]:
        return paper_biped()


@dataclass(frozen=True, kw_only=True)
class Trot(Alternating):
    """Diagonal pairs of four legs in turn; the defaults are the paper's spatial quadruped."""

    clearance: float = 0.08
    hip_height: float = 0.5

    def default_legs(self) -> tuple[Leg, ...]:
        return paper_quadruped()


@dataclass(frozen=True, kw_only=True)
class Tripod(Alternating):
    """Two sets of three of six legs in turn; the defaults are the authors' hexapod."""

    period: float = 0.5
    stride: float = 0.4
    clearance: float = 0.08
    hip_height: float = 0.55

    def default_legs(self) -> tuple[Leg, ...]:
        return paper_hexapod()


def diagonal(legs: tuple[Leg, ...]) -> tuple[str, ...]:
    """Return the names of every second leg: counted from the rear, starting with the first on the right side and the
    second on the left. So a quadruped's diagonals and a hexapod's tripods; legs of one plane alternate as they come.
    """
    if len({leg.stance[1] for leg in legs}) == 1:
        return tuple(leg.name for leg in legs[::2])
    right = sorted((leg for leg in legs if leg.stance[1] <= 0), key=lambda leg: leg.stance[0])
    left = sorted((leg for leg in legs if leg.stance[1] > 0), key=lambda leg: leg.stance[0])
    return tuple(leg.name for leg in (*right[::2], *left[1::2]))
