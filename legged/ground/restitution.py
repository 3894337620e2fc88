"""Coefficient of restitution of a normal law: a mass that strikes the ground without gravity."""

from __future__ import annotations

from typing import Any

from legged.arguments import number
from legged.checked import checked
from legged.errors import DefinitionError
from legged.ground.normal import NormalLaw
from legged.spatial import Array

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
        DefinitionError: for a mass or a speed that is not positive.

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
