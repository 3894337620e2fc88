"""Laws of the normal force of a compliant contact, as functions of penetration depth and its rate.

The penetration p, [m], is positive inside the ground, and its rate pdot, [m/s], is positive while the depth increases.
A positive force pushes the point out of the ground. Forces are never negative, except those of the authors' law at
large rebound speeds, which no robot reaches. All laws can be traced.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from legged.arguments import number
from legged.checked import checked
from legged.compiler.ir import where
from legged.errors import DefinitionError
from legged.spatial import Array


class NormalLaw(Protocol):
    """The interface of laws of the normal force."""

    def force(self, penetration: Any, rate: Any) -> Any:
        """Return the normal force, [N], from the penetration, [m], and its rate, [m/s]."""
        ...

    def rest_penetration(self, load: float) -> float:
        """Return the penetration, [m], in equilibrium with a constant load, [N], on one point."""
        ...


def require_positive(law: object, **values: float) -> None:
    """Raise DefinitionError with the name of a law and of a parameter that is not positive and finite."""
    for name, value in values.items():
        if not (np.isfinite(value) and value > 0.0):
            raise DefinitionError(f"{type(law).__name__}: {name} must be positive, got {value}")


def require_not_negative(law: object, **values: float) -> None:
    """Raise DefinitionError with the name of a law and of a parameter that is negative or not finite."""
    for name, value in values.items():
        if not (np.isfinite(value) and value >= 0.0):
            raise DefinitionError(f"{type(law).__name__}: {name} must not be negative, got {value}")


@checked
@dataclass(frozen=True)
class PaperNormal:
    """The law of the paper's authors: a linear spring, and a damper that acts mainly while the penetration increases.

        F = K p + c pdot    for p >= dead_band, else 0
        c = C_v                                      for pdot >= 0
        c = C_v (3 s^2 - 2 s^3),  s = min(p / z_l, 1)    for pdot < 0,    z_l = 1.2 v_max C_v / K

    With the authors' constants z_l is about 7 m, so rebound is almost undamped.

    Attributes:
        stiffness: K, [N/m].
        damping: C_v, [N s/m].
        top_speed: v_max, [m/s].
        dead_band: Penetration below which there is no force, [m].

    Source:
        The ground file of the authors' toolbox (ReDySim); Shah, Saha, Dutt 2012 do not print it.
    """

    stiffness: float
    damping: float
    top_speed: float = 4.5
    dead_band: float = 1e-5

    def __post_init__(self) -> None:
        require_positive(self, stiffness=self.stiffness, damping=self.damping, top_speed=self.top_speed)
        require_not_negative(self, dead_band=self.dead_band)

    @property
    def rebound_depth(self) -> float:
        """z_l, [m], the depth at and beyond which rebound has full damping."""
        return 1.2 * self.top_speed * self.damping / self.stiffness

    def force(self, penetration: Any, rate: Any) -> Any:
        """Return K p + c pdot, [N], with the c of the class."""
        s = penetration / self.rebound_depth
        s = where(s < 1.0, s, 1.0)
        rebound = self.damping * s * s * (3.0 - 2.0 * s)
        c = where(rate < 0.0, rebound, self.damping)
        return where(penetration < self.dead_band, 0.0, self.stiffness * penetration + c * rate)

    def rest_penetration(self, load: float) -> float:
        """Return load / K, [m]."""
        require_not_negative(self, load=load)
        return load / self.stiffness

    def __str__(self) -> str:
        return f"the authors' law, K = {self.stiffness:g} N/m, C_v = {self.damping:g} N s/m"


@checked
@dataclass(frozen=True)
class KelvinVoigt:
    """Kelvin-Voigt contact: linear spring and damper in parallel without adhesion, F = max(0, K p + D pdot) for p > 0.

    The force jumps by D pdot at touch-down. The other laws are continuous.

    Attributes:
        stiffness: K, [N/m].
        damping: D, [N s/m].
    """

    stiffness: float
    damping: float

    def __post_init__(self) -> None:
        require_positive(self, stiffness=self.stiffness)
        require_not_negative(self, damping=self.damping)

    def force(self, penetration: Any, rate: Any) -> Any:
        """Return max(0, K p + D pdot) for p > 0, else 0, [N]."""
        f = self.stiffness * penetration + self.damping * rate
        return where(penetration > 0.0, where(f > 0.0, f, 0.0), 0.0)

    def rest_penetration(self, load: float) -> float:
        """Return load / K, [m]."""
        require_not_negative(self, load=load)
        return load / self.stiffness

    def __str__(self) -> str:
        return f"Kelvin-Voigt, K = {self.stiffness:g} N/m, D = {self.damping:g} N s/m"


@checked
@dataclass(frozen=True)
class HuntCrossley:
    """Hunt-Crossley contact: Hertz spring and nonlinear damper, F = max(0, K p^(3/2) (1 + (3/2) a pdot)).

    At low impact speeds u the coefficient of restitution is 1 - a u.

    Attributes:
        stiffness: K, [N/m^(3/2)].
        dissipation: a, [s/m].

    Source:
        Hunt and Crossley 1975, where a is alpha.
    """

    stiffness: float
    dissipation: float

    def __post_init__(self) -> None:
        require_positive(self, stiffness=self.stiffness)
        require_not_negative(self, dissipation=self.dissipation)

    def force(self, penetration: Any, rate: Any) -> Any:
        """Return max(0, K p^(3/2) (1 + (3/2) a pdot)), [N]."""
        p = where(penetration > 0.0, penetration, 0.0)
        f = self.stiffness * p * np.sqrt(p) * (1.0 + 1.5 * self.dissipation * rate)
        return where(f > 0.0, f, 0.0)

    def rest_penetration(self, load: float) -> float:
        """Return (load / K)^(2/3), [m]."""
        require_not_negative(self, load=load)
        return (load / self.stiffness) ** (2.0 / 3.0)

    def __str__(self) -> str:
        return f"Hunt-Crossley, K = {self.stiffness:g} N/m^1.5, a = {self.dissipation:g} s/m"


@checked
@dataclass(frozen=True)
class AzadFeatherstone:
    """Azad-Featherstone contact: Hertz spring and nonlinear damper, F = max(0, K p^(3/2) + D p^(1/2) pdot).

    The damping term has another power of p than that of Hunt and Crossley. The coefficients of restitution agree with
    measurements of spheres on plates.

    Attributes:
        stiffness: K, [N/m^(3/2)].
        damping: D, [N s/m^(3/2)].

    Source:
        Azad and Featherstone, the nonlinear model of contact normal force (IEEE Trans. Robotics 2014).
    """

    stiffness: float
    damping: float

    def __post_init__(self) -> None:
        require_positive(self, stiffness=self.stiffness)
        require_not_negative(self, damping=self.damping)

    def force(self, penetration: Any, rate: Any) -> Any:
        """Return max(0, sqrt(p) (K p + D pdot)), [N]."""
        p = where(penetration > 0.0, penetration, 0.0)
        f = np.sqrt(p) * (self.stiffness * p + self.damping * rate)
        return where(f > 0.0, f, 0.0)

    def rest_penetration(self, load: float) -> float:
        """Return (load / K)^(2/3), [m]."""
        require_not_negative(self, load=load)
        return (load / self.stiffness) ** (2.0 / 3.0)

    def __str__(self) -> str:
        return f"Azad-Featherstone, K = {self.stiffness:g} N/m^1.5, D = {self.damping:g} N s/m^1.5"


_TOLERANCE = 1e-11
_LONGEST = 10.0  # [s]; a mass that has not left the ground by then is at rest


@checked
def coefficient_of_restitution(law: NormalLaw, mass: float, speed: float) -> float:
    """Return the speed of separation over the speed of impact of a mass on a normal law, without gravity.

    For small losses, e = 1 - a u for `HuntCrossley`, and for `AzadFeatherstone`, by integration of the loss along the
    undamped motion,

        1 - e = (4/5) B(3/5, 3/2) (D / m) (5 m / (4 K))^(3/5) u^(1/5)

    with the beta function B. With D = (3/2) A K this is the law 1 - e = 1.15344 A (3/2) (K / m)^(2/5) u^(1/5) of
    viscoelastic spheres.

    Args:
        law: Law of the normal force.
        mass: m, [kg].
        speed: u, speed of the impact, [m/s].

    Raises:
        DefinitionError: For a mass or a speed that is not positive.

    Source: Azad and Featherstone 2014 report agreement with measurements of spheres and plates; we know the abstract
    alone, and the exponent and factor are derived here. The constant 1.15344 is that of Ramirez, Poeschel, Brilliantov,
    Schwager, Physical Review E 60, 1999.
    """
    from scipy.integrate import solve_ivp  # imported here, since its import is slow

    m, u = number("mass", mass), number("speed", speed)
    if m <= 0.0 or u <= 0.0:
        raise DefinitionError(f"mass and speed of an impact must be positive, got {m:g} kg and {u:g} m/s")

    def rate(_: float, state: Array) -> list[Any]:
        return [state[1], -float(law.force(state[0], state[1])) / m]

    def separation(_: float, state: Array) -> float:
        return state[0]

    separation.terminal, separation.direction = True, -1.0  # type: ignore[attr-defined]
    run = solve_ivp(
        rate,
        (0.0, _LONGEST),
        [0.0, u],
        method="DOP853",
        rtol=_TOLERANCE,
        atol=[_TOLERANCE * 1e-6 * u, _TOLERANCE * u],
        events=separation,
    )
    return max(0.0, -float(run.y[1, -1]) / u)
