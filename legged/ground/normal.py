"""Normal force of a compliant contact from penetration and its rate, over any element.

Every law has `force(penetration, rate)`: `penetration` p in meters, positive inside the ground; `rate` pdot in m/s,
positive while sinking; the force, in newtons, pushes the point out. No law but the authors' ever pulls, and the
authors' does so only at rebound speeds that no robot reaches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from legged.compiler.ir import where
from legged.errors import DefinitionError


class NormalLaw(Protocol):
    """What `Ground` asks of a normal law."""

    def force(self, penetration: Any, rate: Any) -> Any:
        """Return the normal force, [N], from penetration [m] and sinking speed [m/s]."""
        ...

    def rest_penetration(self, load: float) -> float:
        """Return the penetration, [m], at which a steady load [N] on one point comes to rest."""
        ...


def _positive(law: object, **values: float) -> None:
    for name, value in values.items():
        if not (np.isfinite(value) and value > 0.0):
            raise DefinitionError(f"{type(law).__name__}: {name} must be positive, got {value}")


def _not_negative(law: object, **values: float) -> None:
    for name, value in values.items():
        if not (np.isfinite(value) and value >= 0.0):
            raise DefinitionError(f"{type(law).__name__}: {name} must not be negative, got {value}")


@dataclass(frozen=True)
class PaperNormal:
    """The normal law of the paper's authors: linear spring, damper at work only while sinking.

        F = K p + c pdot    for p >= dead_band, else 0
        c = C_v                                      while sinking
        c = C_v (3 s^2 - 2 s^3),  s = min(p / z_l, 1)    while rising,    z_l = 1.2 v_max C_v / K

    With the authors' constants z_l is some 7 m, so rebound is practically undamped.

    Attributes:
        stiffness: K, [N/m].
        damping: C_v, [N s/m].
        top_speed: v_max, [m/s], which sets z_l.
        dead_band: Penetration below which there is no force, [m].

    Source:
        The ground file of the authors' toolbox (ReDySim), which Shah, Saha, Dutt 2012 do not print.
    """

    stiffness: float
    damping: float
    top_speed: float = 4.5
    dead_band: float = 1e-5

    def __post_init__(self) -> None:
        _positive(self, stiffness=self.stiffness, damping=self.damping, top_speed=self.top_speed)
        _not_negative(self, dead_band=self.dead_band)

    @property
    def rebound_depth(self) -> float:
        """Return z_l, [m], the depth from which rebound is damped in full."""
        return 1.2 * self.top_speed * self.damping / self.stiffness

    def force(self, penetration: Any, rate: Any) -> Any:
        """Return K p + c pdot, [N]; see the class."""
        s = penetration / self.rebound_depth
        s = where(s < 1.0, s, 1.0)
        rebound = self.damping * s * s * (3.0 - 2.0 * s)
        c = where(rate < 0.0, rebound, self.damping)
        return where(penetration < self.dead_band, 0.0, self.stiffness * penetration + c * rate)

    def rest_penetration(self, load: float) -> float:
        """Return load / K, [m]."""
        return load / self.stiffness

    def __str__(self) -> str:
        return f"the authors' law, K = {self.stiffness:g} N/m, C_v = {self.damping:g} N s/m"


@dataclass(frozen=True)
class KelvinVoigt:
    """Linear spring and damper in parallel, without adhesion: F = max(0, K p + D pdot) for p > 0.

    The force jumps by D pdot at touch-down, which the other laws avoid.

    Attributes:
        stiffness: K, [N/m].
        damping: D, [N s/m].
    """

    stiffness: float
    damping: float

    def __post_init__(self) -> None:
        _positive(self, stiffness=self.stiffness)
        _not_negative(self, damping=self.damping)

    def force(self, penetration: Any, rate: Any) -> Any:
        """Return max(0, K p + D pdot) inside the ground, [N]."""
        f = self.stiffness * penetration + self.damping * rate
        return where(penetration > 0.0, where(f > 0.0, f, 0.0), 0.0)

    def rest_penetration(self, load: float) -> float:
        """Return load / K, [m]."""
        return load / self.stiffness

    def __str__(self) -> str:
        return f"Kelvin-Voigt, K = {self.stiffness:g} N/m, D = {self.damping:g} N s/m"


@dataclass(frozen=True)
class HuntCrossley:
    """Hertz spring with a damper that grows with depth: F = max(0, K p^(3/2) (1 + (3/2) a pdot)).

    At low impact speeds u the coefficient of restitution is 1 - a u.

    Attributes:
        stiffness: K, [N/m^(3/2)].
        dissipation: a, [s/m].

    Source:
        Hunt and Crossley 1975, with their alpha written as a.
    """

    stiffness: float
    dissipation: float

    def __post_init__(self) -> None:
        _positive(self, stiffness=self.stiffness)
        _not_negative(self, dissipation=self.dissipation)

    def force(self, penetration: Any, rate: Any) -> Any:
        """Return max(0, K p^(3/2) (1 + (3/2) a pdot)), [N]."""
        p = where(penetration > 0.0, penetration, 0.0)
        f = self.stiffness * p * np.sqrt(p) * (1.0 + 1.5 * self.dissipation * rate)
        return where(f > 0.0, f, 0.0)

    def rest_penetration(self, load: float) -> float:
        """Return (load / K)^(2/3), [m]."""
        return (load / self.stiffness) ** (2.0 / 3.0)

    def __str__(self) -> str:
        return f"Hunt-Crossley, K = {self.stiffness:g} N/m^1.5, a = {self.dissipation:g} s/m"


@dataclass(frozen=True)
class AzadFeatherstone:
    """Hertz spring with a damper that grows with contact area: F = max(0, K p^(3/2) + D p^(1/2) pdot).

    It differs from Hunt and Crossley by the power of p in its damping term, which gives restitution as it is measured
    for spheres on plates.

    Attributes:
        stiffness: K, [N/m^(3/2)].
        damping: D, [N s/m^(3/2)].

    Source:
        Azad and Featherstone, the nonlinear model of contact normal force (IEEE Trans. Robotics 2014).
    """

    stiffness: float
    damping: float

    def __post_init__(self) -> None:
        _positive(self, stiffness=self.stiffness)
        _not_negative(self, damping=self.damping)

    def force(self, penetration: Any, rate: Any) -> Any:
        """Return max(0, sqrt(p) (K p + D pdot)), [N]."""
        p = where(penetration > 0.0, penetration, 0.0)
        f = np.sqrt(p) * (self.stiffness * p + self.damping * rate)
        return where(f > 0.0, f, 0.0)

    def rest_penetration(self, load: float) -> float:
        """Return (load / K)^(2/3), [m]."""
        return (load / self.stiffness) ** (2.0 / 3.0)

    def __str__(self) -> str:
        return f"Azad-Featherstone, K = {self.stiffness:g} N/m^1.5, D = {self.damping:g} N s/m^1.5"
