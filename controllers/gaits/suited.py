"""Gaits for a robot nobody has tuned: from its size and its gravity."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np

from controllers.gaits.alternating import Tripod, Trot, Walk
from controllers.gaits.crawl import Crawl
from controllers.gaits.fitted import NumericalGait
from controllers.gaits.gait import Gait
from controllers.gaits.home import Home, home_of
from controllers.gaits.posture import Stand
from legged.dynamics.kinematics import center_of_mass
from legged.errors import DefinitionError
from legged.robot.robot import Robot

Array = np.ndarray


class Proportions(NamedTuple):
    """A gait in units of the hip height h and of the time sqrt(h / g): what animals of every size have in common.

    Attributes:
        period: Of a step, [sqrt(h / g)]. stride, clearance: [h].

    Source: R. McN. Alexander, "The gaits of bipedal and quadrupedal animals", International Journal of Robotics
    Research 3(2), 1984: equal Froude numbers v^2 / (g h) go with equal proportions. The numbers are ours, for slow
    gaits.
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


def suited(kind: type[Gait], robot: Robot, *, home: Home | None = None, **given: Any) -> NumericalGait:
    """Return a gait of this kind with the robot's proportions, fitted to it.

    Args:
        kind: `Trot`, `Walk`, `Tripod`, `Crawl` or `Stand`.
        robot: With contact points on its feet; its joints' limits are kept while standing.
        home: The posture it stands in, that of `home_of` by default.
        given: Attributes of the gait that shall be something else, such as stride=0.2; None means suited.

    Raises:
        DefinitionError: No such kind, or a robot without legs or gravity. ReachError: A leg cannot follow.
    """
    if kind not in PROPORTIONS:
        raise DefinitionError(
            f"no proportions are known for {kind.__name__}; make the gait itself, with its own numbers"
        )
    gravity = float(np.linalg.norm(robot.gravity))
    if gravity == 0.0:
        raise DefinitionError(f"robot {robot.name!r} has no gravity; nothing tells how fast it should step")
    wanted = {name: value for name, value in given.items() if value is not None}
    home = home or home_of(robot, wanted.get("hip_height"))
    h = home.hip_height
    period, stride, clearance = PROPORTIONS[kind]
    usual = {"period": period * np.sqrt(h / gravity), "stride": stride * h, "clearance": clearance * h}
    usual |= {"hip_height": h, "gravity": gravity}
    if "pendulum_height" in {field.name for field in fields(kind)}:
        usual["pendulum_height"] = home.base_height + mass_height(robot, home.angles)
    return NumericalGait(kind(**{**usual, **wanted}), robot, home.angles)


def mass_height(robot: Robot, angles: Array) -> float:
    """Return the height of the center of mass over the base's origin, [m], at joint positions (nj,) on a level base."""
    return float(center_of_mass(robot, np.concatenate([robot.base.neutral(), angles]))[2])
