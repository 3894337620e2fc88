"""Friction laws: the tangential force on a contact point from its normal force and sliding velocity.

A law has the attribute `memory`, the number of state variables per contact point, and the method `force`. Forces and
velocities have two components, along the tangents of `legged.ground.ground.tangents`. Leading axes stand for contact
points and times. All laws can be traced.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from legged.checked import checked
from legged.compiler.ir import where
from legged.ground.normal import require_not_negative, require_positive

Array = np.ndarray
_TINY = 1e-280  # [m^2/s^2] or [N^2], makes the norm positive and differentiable at zero


class FrictionLaw(Protocol):
    """The interface of friction laws."""

    @property
    def memory(self) -> int:
        """Number of state variables per contact point."""
        ...

    def force(self, normal_force: Any, velocity: Array, memory: Array) -> tuple[Array, Array]:
        """Return (friction force (..., 2), [N], along the tangent axes, time derivative of the memory (..., m)).

        Args:
            normal_force: Normal force, (...), [N].
            velocity: Sliding velocity, (..., 2), [m/s], along the tangent axes.
            memory: State variables of the law, (..., m).
        """
        ...


def _norm(vector: Array) -> Any:
    return np.sqrt(vector[..., 0] * vector[..., 0] + vector[..., 1] * vector[..., 1] + _TINY)


def _arctan_limit(limit: Any, viscous: Any) -> Any:
    """Return P atan(viscous / P) with P = (2 / pi) limit, a viscous force that saturates at `limit`."""
    p = (2.0 / np.pi) * limit
    return p * np.arctan(viscous / where(p > 0.0, p, 1.0))


@checked
@dataclass(frozen=True)
class Frictionless:
    """No friction."""

    memory = 0

    def force(self, normal_force: Any, velocity: Array, memory: Array) -> tuple[Array, Array]:
        """Return (zeros (..., 2), [N], no rate); arguments as in `FrictionLaw.force`, tangent axes."""
        return 0.0 * velocity, memory

    def __str__(self) -> str:
        return "none"


@checked
@dataclass(frozen=True)
class AxisFriction:
    """Coulomb friction, regularized by an arctangent for each tangent axis: the law of the paper's authors.

        F_i = -P atan(C_h v_i / P),    P = (2 / pi) mu |F_n|

    The largest force is mu F_n along an axis and sqrt(2) mu F_n along the diagonal. Below it a loaded point creeps.

    Attributes:
        coefficient: Coefficient of friction, mu.
        viscosity: C_h, [N s/m], the slope at zero velocity.

    Source:
        The ground file of the authors' toolbox (ReDySim); Shah, Saha, Dutt 2012 do not print it.
    """

    coefficient: float
    viscosity: float
    memory = 0

    def __post_init__(self) -> None:
        require_not_negative(self, coefficient=self.coefficient)
        require_positive(self, viscosity=self.viscosity)

    def force(self, normal_force: Any, velocity: Array, memory: Array) -> tuple[Array, Array]:
        """Return (-P atan(C_h v_i / P), (..., 2), [N], no rate); arguments as in `FrictionLaw.force`, tangent axes."""
        limit = (self.coefficient * np.abs(normal_force))[..., None]
        return -_arctan_limit(limit, self.viscosity * velocity), memory

    def __str__(self) -> str:
        return f"arctangent per axis, mu = {self.coefficient:g}, C_h = {self.viscosity:g} N s/m"


@checked
@dataclass(frozen=True)
class VectorFriction:
    """Coulomb friction against the sliding velocity, regularized by an arctangent of the speed.

        F = -P atan(C_h |v| / P) v / |v|,    P = (2 / pi) mu |F_n|

    The law is isotropic. Below the largest force mu F_n a loaded point creeps.

    Attributes:
        coefficient: Coefficient of friction, mu.
        viscosity: C_h, [N s/m], the slope at zero speed.
    """

    coefficient: float
    viscosity: float
    memory = 0

    def __post_init__(self) -> None:
        require_not_negative(self, coefficient=self.coefficient)
        require_positive(self, viscosity=self.viscosity)

    def force(self, normal_force: Any, velocity: Array, memory: Array) -> tuple[Array, Array]:
        """Return (force (..., 2), [N], no rate); see the class. Arguments as in `FrictionLaw.force`, tangent axes."""
        speed = _norm(velocity)
        size = _arctan_limit(self.coefficient * np.abs(normal_force), self.viscosity * speed)
        return -(size / speed)[..., None] * velocity, memory

    def __str__(self) -> str:
        return f"arctangent of the speed, mu = {self.coefficient:g}, C_h = {self.viscosity:g} N s/m"


@checked
@dataclass(frozen=True)
class BristleFriction:
    """Coulomb friction with sticking: a massless bristle with a spring, a damper and a slider.

    With the deflection z of the bristle and the sliding velocity v, both along the tangent axes,

        f_stick = k z + d v                              force for sticking
        f       = f_stick min(1, mu F_n / |f_stick|)     force within the friction cone
        zd      = (f - k z) / d                          equals v while the point sticks
        F       = -f

    A point that sticks under a constant load is at rest, z = f / k and v = 0, without creep. The force never leaves the
    friction cone. The deflection of a sliding bristle converges to mu F_n / k against the velocity. In the air it
    returns to zero at the rate k / d. The law is passive for any F_n(t): with l the factor of f_stick above,

        f.v - d/dt (k |z|^2 / 2) = (l |f_stick - k z|^2 + (1 - l) |k z|^2) / d >= 0.

    Attributes:
        coefficient: Coefficient of friction, mu.
        stiffness: k, [N/m].
        damping: d, [N s/m].
    """

    coefficient: float
    stiffness: float
    damping: float
    memory = 2

    def __post_init__(self) -> None:
        require_not_negative(self, coefficient=self.coefficient)
        require_positive(self, stiffness=self.stiffness, damping=self.damping)

    def force(self, normal_force: Any, velocity: Array, memory: Array) -> tuple[Array, Array]:
        """Return (-f, zd), (..., 2) each, [N] and [m/s], tangent axes; see the class.

        Args:
            normal_force: Normal force, (...), [N].
            velocity: Sliding velocity, (..., 2), [m/s], along the tangent axes.
            memory: Deflection z, (..., 2), [m], along the tangent axes.
        """
        spring = self.stiffness * memory
        stick = spring + self.damping * velocity
        limit = self.coefficient * np.abs(normal_force)
        size = _norm(stick)
        f = stick * where(size > limit, limit / size, 1.0)[..., None]
        return -f, (f - spring) / self.damping

    def implicit(self, normal_force: Any, velocity: Array, memory: Array, h: Any) -> tuple[Array, Array]:
        """Return the force at the end of a time step with constant velocity, and its decrease per change of velocity.

        While the point sticks, the deflection grows to z + h v: the force is -(k z + (d + h k) v). Beyond the friction
        cone all of it is scaled by the same factor. Both are (..., 2), [N] and [N s/m], along the tangent axes.

        Args:
            normal_force: Normal force, (...), [N].
            velocity: Sliding velocity, (..., 2), [m/s], along the tangent axes.
            memory: Deflection z, (..., 2), [m], along the tangent axes.
            h: Time step, [s].
        """
        damping = self.damping + h * self.stiffness
        stick = self.stiffness * memory + damping * velocity
        limit, size = self.coefficient * np.abs(normal_force), _norm(stick)
        scale = where(size > limit, limit / size, 1.0)[..., None]
        return -scale * stick, scale * damping + 0.0 * stick

    def __str__(self) -> str:
        return f"bristle, mu = {self.coefficient:g}, k = {self.stiffness:g} N/m, d = {self.damping:g} N s/m"
