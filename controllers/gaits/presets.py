"""Ready-made gaits: those of the paper and its authors, and gaits scaled to the size of any robot."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np

from controllers.gaits.alternating import Tripod, Trot, Walk
from controllers.gaits.crawl import Crawl
from controllers.gaits.gait import Gait
from controllers.gaits.numerical_gait import NumericalGait
from controllers.gaits.standing import Stand
from legged.algorithms.legs.standing import Home, home_of
from legged.checked import checked
from legged.dynamics.kinematics import center_of_mass
from legged.errors import DefinitionError
from legged.robot.robot import Robot


@checked
def paper_walk(printed: bool = False) -> Walk:
    """Return the walk of the planar biped: T = 1 s, l_s = 0.3 m, h_f = 0.1 m, z_c = 0.96 m.

    Args:
        printed: Whether to use the text of the paper: hips at z_c - l0 / 2 = 0.71 m, while the pendulum keeps z_c, and
            a swing that ends 0.1 m in the air. By default, the gait is that of the authors' programs: hips at z_c, and
            2 pi t / T in the height of the swing. With the printed hip height the biped falls in its second phase,
            since the bent legs move the center of mass ahead of the toes.

    Source:
        Shah, Saha, Dutt 2012, Appendix B.
    """
    if printed:
        return Walk(hip_height=0.96 - 0.25, pendulum_height=0.96, path="printed")
    return Walk(hip_height=0.96)


@checked
def paper_trot(printed: bool = False) -> Trot:
    """Return the trot of the spatial quadruped: T = 1 s, l_s = 0.3 m, h_f = 0.08 m, z_c = 0.5 m.

    Hips and center of mass of this robot have the same height, so both readings of z_c agree.

    Args:
        printed: Whether to use the printed swing, which ends in the air.

    Source:
        Shah, Saha, Dutt 2012, Appendix B.
    """
    return Trot(hip_height=0.5, path="printed" if printed else "cosine")


@checked
def authors_trot() -> Trot:
    """Return the trot in the data of the authors' toolbox: the paper's with h_f = 0.09 m."""
    return Trot(hip_height=0.5, clearance=0.09)


@checked
def authors_tripod() -> Tripod:
    """Return the hexapod's gait of the authors' toolbox: T = 0.5 s, l_s = 0.4 m, h_f = 0.08 m, hips at 0.55 m."""
    return Tripod(hip_height=0.55)


class Proportions(NamedTuple):
    """Dimensionless parameters of a gait, in units of the hip height h and of the time sqrt(h / g).

    Attributes:
        period: Duration of a phase, [sqrt(h / g)].
        stride: Stride per phase, [h].
        clearance: Largest height of the swinging feet, [h].

    Source:
        R. McN. Alexander, "The gaits of bipedal and quadrupedal animals", International Journal of Robotics Research
        3(2), 1984: animals of different size have the same proportions at equal Froude numbers v^2 / (g h). The values
        are ours, for slow gaits.
    """

    period: float
    stride: float
    clearance: float


PROPORTIONS: dict[type[Gait], Proportions] = {
    Stand: Proportions(1.0, 0.0, 0.0),
    Trot: Proportions(1.75, 0.3, 0.12),
    Tripod: Proportions(1.75, 0.3, 0.12),
    Walk: Proportions(2.5, 0.25, 0.08),
    Crawl: Proportions(8.0, 0.12, 0.12),
}


@checked
def suited(kind: type[Gait], robot: Robot, *, home: Home | None = None, **given: Any) -> NumericalGait:
    """Return a gait of this kind for a robot, with parameters that scale with the robot's size.

    Args:
        kind: `Trot`, `Walk`, `Tripod`, `Crawl` or `Stand`, or a subclass, which has the proportions of its base.
        robot: A robot with contact points on its feet.
        home: Standing posture, by default that of `home_of`, within the joint limits.
        given: Values of attributes of the gait, such as stride=0.2, in place of scaled ones; None for the scaled one.

    Raises:
        DefinitionError: There are no proportions for this kind, or the robot has no legs or no gravity.
        ReachError: A leg cannot follow the gait.
    """
    proportions = next((PROPORTIONS[base] for base in kind.__mro__ if base in PROPORTIONS), None)
    if proportions is None:
        raise DefinitionError(
            f"there are no proportions for the gait {kind.__name__}; construct the gait with your own parameters"
        )
    gravity = float(np.linalg.norm(robot.gravity))
    if gravity == 0.0:
        raise DefinitionError(f"robot {robot.name!r} has no gravity, so the period of its gait is undefined")
    chosen = {name: value for name, value in given.items() if value is not None}
    home = home or home_of(robot, chosen.get("hip_height"))
    h = home.hip_height
    period, stride, clearance = proportions
    scaled = {"period": period * np.sqrt(h / gravity), "stride": stride * h, "clearance": clearance * h}
    scaled |= {"hip_height": h, "gravity": gravity}
    if "pendulum_height" in {field.name for field in fields(kind)}:
        mass = center_of_mass(robot, np.concatenate([robot.base.neutral(), home.angles]))
        scaled["pendulum_height"] = home.base_height + float(mass[2])
    return NumericalGait(kind(**{**scaled, **chosen}), robot, home.angles)
