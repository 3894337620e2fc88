"""Grounds with default constants: those of the paper's authors, and a stiff floor scaled to the robot's weight."""

from __future__ import annotations

import numpy as np

from legged.arguments import number
from legged.checked import checked
from legged.errors import DefinitionError
from legged.ground.friction import AxisFriction, BristleFriction, FrictionLaw, VectorFriction
from legged.ground.ground import Ground
from legged.ground.normal import AzadFeatherstone, HuntCrossley, KelvinVoigt, NormalLaw, PaperNormal
from legged.ground.terrain import Flat, Terrain
from legged.robot.robot import Robot

_OVERDAMPING = 10.0
_PAPER = {  # kind: K [N/m], C_h [N s/m], mass [kg]
    "biped": (2000.0, 1000.0, 9.4),
    "quadruped": (2500.0, 1500.0, 12.0),
    "hexapod": (3000.0, 2000.0, 14.0),
}
_STIFFNESS_PER_MASS = 210.0  # [N/(m kg)], close to all three of the table


@checked
def paper_ground(
    robot: Robot | str,
    terrain: Terrain | None = None,
    *,
    stiffness: float | None = None,
    viscosity: float | None = None,
    friction: float = 0.7,
) -> Ground:
    """Return the ground of the paper's authors for a robot.

    As in the authors' files the damping is C_v = 10 * 2 sqrt(K m), ten times critical, so the time constant C_v / K is
    longer than a phase of the gait: feet sink at a few millimeters per second and do not come to rest. The gaits of the
    paper depend on it.

    Args:
        robot: A robot, or "biped", "quadruped" or "hexapod" for the authors' robots. A robot whose name contains one of
            these words has the constants of that kind with its own mass; others have K = 210 m and C_h = 0.6 K.
        terrain: The terrain; by default level at z = 0.
        stiffness: K, [N/m], in place of the authors' value.
        viscosity: C_h, [N s/m], slope of the friction at zero velocity, in place of the authors' value.
        friction: Coefficient of friction, mu.

    Raises:
        DefinitionError: There are no constants for a name.

    Source:
        The authors' toolbox; Shah, Saha, Dutt 2012 print no constants of the ground.
    """
    name = robot if isinstance(robot, str) else robot.name
    kind = next((kind for kind in _PAPER if kind in name), None)
    if isinstance(robot, str) and robot not in _PAPER:
        raise DefinitionError(f"the authors have a ground for {', '.join(_PAPER)}, not for {robot!r}; pass a robot")
    mass = _PAPER[robot][2] if isinstance(robot, str) else robot.mass
    default_k = _PAPER[kind][0] if kind else _STIFFNESS_PER_MASS * mass
    k = default_k if stiffness is None else number("stiffness", stiffness, "N/m", above=0.0)
    c_h = viscosity if viscosity is not None else _PAPER[kind][1] if kind else 0.6 * k
    damping = _OVERDAMPING * 2.0 * np.sqrt(k * mass)
    return Ground(
        PaperNormal(k, float(damping)),
        AxisFriction(friction, c_h),
        Flat() if terrain is None else terrain,
        note=f"the authors' constants for a {kind or 'robot'} of {mass:g} kg",
    )


@checked
def realistic_ground(
    robot: Robot,
    penetration: float = 0.5e-3,
    friction: float = 0.8,
    *,
    law: str = "azad-featherstone",
    stick: bool = True,
    damping_ratio: float = 0.7,
    support: int | None = None,
    terrain: Terrain | None = None,
) -> Ground:
    """Return a stiff floor with constants that scale with the robot's weight; `str(ground)` lists them.

    The load of one supporting point is m g / support, with equilibrium at the given penetration. There the contact has
    the stiffness k = dF/dp and the damping d = 2 zeta sqrt(k m / support). Friction has the same k and d.

    Args:
        robot: The robot; its mass, gravity (9.81 m/s^2 if it has none) and number of contact points are used.
        penetration: Penetration of the supporting points of a standing robot, [m].
        friction: Coefficient of friction, mu.
        law: Law of the normal force: "azad-featherstone", "hunt-crossley" or "kelvin-voigt".
        stick: True for `BristleFriction`, which does not creep, False for `VectorFriction`.
        damping_ratio: zeta of the standing robot on its contacts.
        support: Number of points that carry the standing robot; by default half of its contact points, as in a trot.
        terrain: The terrain; by default level at z = 0.

    Raises:
        DefinitionError: An argument is out of range, or there is no such law.
    """
    if support is None:
        support = max(1, len(robot.contacts) // 2)
    if not (penetration > 0.0 and damping_ratio > 0.0 and support >= 1):
        raise DefinitionError(
            "a realistic ground needs penetration > 0 m, damping_ratio > 0 and support >= 1,"
            f" got {penetration}, {damping_ratio} and {support}"
        )
    gravity = float(np.linalg.norm(robot.gravity)) or 9.81
    share = robot.mass / support
    load = share * gravity
    k = load / penetration * (1.0 if law == "kelvin-voigt" else 1.5)
    d = 2.0 * damping_ratio * np.sqrt(k * share)
    contact: FrictionLaw = BristleFriction(friction, k, float(d)) if stick else VectorFriction(friction, float(d))
    note = (
        f"chosen for {robot.mass:g} kg on {support} point{'s' * (support > 1)}:"
        f" {load:.4g} N at a penetration of {1e3 * penetration:g} mm;"
        f"\nthere k = {k:.4g} N/m, d = {d:.4g} N s/m, damping ratio {damping_ratio:g}"
    )
    return Ground(_normal(law, load, penetration, k, float(d)), contact, Flat() if terrain is None else terrain, note)


def _normal(law: str, load: float, p: float, k: float, d: float) -> NormalLaw:
    """Return the law with F(p, 0) = load and dF/dpdot = d at penetration p."""
    if law == "kelvin-voigt":
        return KelvinVoigt(k, d)
    if law == "hunt-crossley":
        return HuntCrossley(load / p**1.5, d / (1.5 * load))
    if law == "azad-featherstone":
        return AzadFeatherstone(load / p**1.5, d / p**0.5)
    raise DefinitionError(f"law must be 'azad-featherstone', 'hunt-crossley' or 'kelvin-voigt', got {law!r}")
