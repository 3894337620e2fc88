"""Friction of one contact point in its tangent plane, over any element.

Every law has `memory`, how many numbers of state a point carries, and

    force(normal_force, velocity, memory) -> (friction (..., 2), memory's rate (..., memory))

with `normal_force` (...,), [N], `velocity` (..., 2), [m/s], `memory` (..., memory), and the friction in newtons, all
along the two tangent axes of `Ground`; leading axes are points, or points at many times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from legged.compiler.ir import where
from legged.ground.normal import _not_negative, _positive

Array = np.ndarray
_TINY = 1e-200  # keeps 0 / 0 away where friction vanishes anyway


class FrictionLaw(Protocol):
    """What `Ground` asks of a friction law."""

    @property
    def memory(self) -> int:
        """Numbers of state per contact point."""
        ...

    def force(self, normal_force: Any, velocity: Array, memory: Array) -> tuple[Array, Array]:
        """Return (friction (..., 2) [N], rate of memory)."""
        ...


def _norm(vector: Array) -> Any:
    return np.sqrt(vector[..., 0] * vector[..., 0] + vector[..., 1] * vector[..., 1])


def _arctan_limit(limit: Any, viscous: Any) -> Any:
    """Return P atan(viscous / P), P = (2 / pi) limit: a viscous force that saturates at `limit`, 0 where limit is 0."""
    p = (2.0 / np.pi) * limit
    return p * np.arctan(viscous / where(p > 0.0, p, 1.0))


@dataclass(frozen=True)
class Frictionless:
    """No friction: ice."""

    memory = 0

    def force(self, normal_force: Any, velocity: Array, memory: Array) -> tuple[Array, Array]:
        """Return zeros."""
        return 0.0 * velocity, memory

    def __str__(self) -> str:
        return "none"


@dataclass(frozen=True)
class AxisFriction:
    """Coulomb friction smoothed by an arctangent, each tangent axis on its own: the authors' law.

        F_i = -P atan(C_h v_i / P),    P = (2 / pi) mu |F_n|

    The limit is mu F_n along an axis, but sqrt(2) mu F_n along the diagonal; below the limit a point creeps.

    Attributes:
        coefficient: mu.
        viscosity: C_h, [N s/m], the slope at zero speed.

    Source:
        The ground file of the authors' toolbox (ReDySim), which Shah, Saha, Dutt 2012 do not print.
    """

    coefficient: float
    viscosity: float
    memory = 0

    def __post_init__(self) -> None:
        _not_negative(self, coefficient=self.coefficient)
        _positive(self, viscosity=self.viscosity)

    def force(self, normal_force: Any, velocity: Array, memory: Array) -> tuple[Array, Array]:
        """Return (-P atan(C_h v_i / P) (..., 2), no rate)."""
        limit = self.coefficient * np.abs(normal_force)[..., None]
        return -_arctan_limit(limit, self.viscosity * velocity), memory

    def __str__(self) -> str:
        return f"arctangent per axis, mu = {self.coefficient:g}, C_h = {self.viscosity:g} N s/m"


@dataclass(frozen=True)
class VectorFriction:
    """Coulomb friction smoothed by an arctangent of the speed, against the velocity.

        F = -P atan(C_h |v| / P) v / |v|,    P = (2 / pi) mu |F_n|

    Turning the world changes nothing; below the limit a point creeps.

    Attributes:
        coefficient: mu.
        viscosity: C_h, [N s/m], the slope at zero speed.
    """

    coefficient: float
    viscosity: float
    memory = 0

    def __post_init__(self) -> None:
        _not_negative(self, coefficient=self.coefficient)
        _positive(self, viscosity=self.viscosity)

    def force(self, normal_force: Any, velocity: Array, memory: Array) -> tuple[Array, Array]:
        """Return (-P atan(C_h |v| / P) v / |v| (..., 2), no rate)."""
        speed = _norm(velocity) + _TINY
        size = _arctan_limit(self.coefficient * np.abs(normal_force), self.viscosity * speed)
        return -(size / speed)[..., None] * velocity, memory

    def __str__(self) -> str:
        return f"arctangent of the speed, mu = {self.coefficient:g}, C_h = {self.viscosity:g} N s/m"


@dataclass(frozen=True)
class BristleFriction:
    """Coulomb friction with real sticking: a massless bristle with a spring, a damper and a slider.

    With z the bristle's deflection, v the sliding velocity and both along the tangent axes,

        f_stick = k z + d v                              what it would take to stick
        f       = f_stick min(1, mu F_n / |f_stick|)     what the slider lets through
        zd      = (f - k z) / d                          v while it sticks
        F       = -f

    A point that sticks under a steady load stands still: z = f / k, v = 0, no creep. The friction never leaves the
    cone; the deflection of a sliding bristle settles at mu F_n / k, against the velocity; lifted, it springs back at
    the rate k / d. It is passive whatever F_n(t): with l the factor of f above,

        f.v - d/dt (k |z|^2 / 2) = (l |f_stick - k z|^2 + (1 - l) |k z|^2) / d >= 0.

    Attributes:
        coefficient: mu.
        stiffness: k, [N/m].
        damping: d, [N s/m].
    """

    coefficient: float
    stiffness: float
    damping: float
    memory = 2

    def __post_init__(self) -> None:
        _not_negative(self, coefficient=self.coefficient)
        _positive(self, stiffness=self.stiffness, damping=self.damping)

    def force(self, normal_force: Any, velocity: Array, memory: Array) -> tuple[Array, Array]:
        """Return (-f, zd), (..., 2) each; see the class. `memory` is z (..., 2), [m]."""
        spring = self.stiffness * memory
        stick = spring + self.damping * velocity
        limit = self.coefficient * np.abs(normal_force)
        size = _norm(stick) + _TINY
        f = stick * where(size > limit, limit / size, 1.0)[..., None]
        return -f, (f - spring) / self.damping

    def __str__(self) -> str:
        return f"bristle, mu = {self.coefficient:g}, k = {self.stiffness:g} N/m, d = {self.damping:g} N s/m"
