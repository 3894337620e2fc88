"""Disturbance maps by what a user types: which law stands, which sizes suit a robot, and what is written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from controllers import WorkspaceBalance
from legged.app import scenario, style
from legged.app.balance import ORIENTATION, POSITION, Throw, check_shapes
from legged.app.disturbance_figure import figure
from legged.app.disturbance_map import DisturbanceMap, Settled, disturbance_map
from legged.app.disturbances import Disturbance, Pushes, Throws
from legged.contact import Rigid
from legged.errors import UnknownNameError
from legged.robot.robot import Robot
from legged.simulation.disturbance import Push
from legged.simulation.fixed import TimeStepping

STAND = "stand"
GAITS = (STAND, "walk", "trot", "tripod")
JOLT = {STAND: 0.3, "walk": 0.5, "trot": 1.2, "tripod": 1.2}
"""What the hardest push adds to the speed of the whole robot, if nothing else is asked for, [m/s]."""
SLOW = 1.0 / 6.0
"""Of the fastest throw: the slowest. Slower ones come from high above, and late."""
LEVEL = Settled(np.inf, float(np.radians(10.0)))
"""What it takes to have settled on a gait, which a push may take elsewhere."""


@dataclass(frozen=True)
class Case:
    """A robot on rigid ground that is to be disturbed.

    Attributes:
        robot: The robot.
        gait: One of `GAITS`: "stand" is `WorkspaceBalance` in the posture that it begins in, the paper's biped at the
            paper's set point; on other gaits it is `Balanced`.
        throw: Whether blocks of the paper's mass are thrown at the base's link, or that link is pushed.
        most: The largest size, [N s] or [m/s]; None for a change of speed by `JOLT`.
        at: When pushes begin, [s].
        directions, sizes: How many. friction, restitution: Of all contacts.
        step: Of time, [s]; the law is computed at every step. duration: Of the runs, [s].
    """

    robot: Robot
    gait: str = STAND
    throw: bool = False
    most: float | None = None
    at: float = 0.2
    directions: int = 48
    sizes: int = 24
    friction: float = 0.3
    restitution: float = 0.2
    step: float = 2e-3
    duration: float = 3.0

    def __post_init__(self) -> None:
        if self.gait not in GAITS:
            raise UnknownNameError("gait", self.gait, GAITS)
        if self.throw:
            check_shapes(self.robot, "push it")

    @property
    def law(self) -> Any:
        """The control law."""
        if self.gait == STAND:
            known = self.robot.name == "spatial biped"
            return WorkspaceBalance(POSITION, ORIENTATION) if known else WorkspaceBalance()
        plan = scenario.gait_named(self.gait.capitalize(), self.robot, "balanced")
        return scenario.law_named("balanced", plan)

    @property
    def disturbance(self) -> Disturbance:
        """What comes from all around."""
        link, body = self.robot.links[0].name, Throw().body
        most = self.most or JOLT[self.gait] * self.robot.mass / (body.inertia.mass if self.throw else 1.0)
        if self.throw:
            return Throws(body, np.linspace(SLOW * most, most, self.sizes), link)
        sizes = most * np.arange(1, self.sizes + 1) / self.sizes
        return Pushes(Push(link, (0.0, 0.0, 0.0), self.at), sizes)

    def map(self) -> DisturbanceMap:
        """Return the map."""
        return disturbance_map(
            self.robot,
            self.law,
            self.disturbance,
            directions=self.directions,
            until=self.duration,
            settled=Settled() if self.gait == STAND else LEVEL,
            ground=Rigid(friction=self.friction, restitution=self.restitution),
            integrator=TimeStepping(self.step),
        )


def write(case: Case, found: DisturbanceMap, folder: Path) -> list[Path]:
    """Write the figure and a row for each run, and return the paths."""
    name = "throws" if case.throw else "pushes"
    return [
        style.save(figure(case.robot, found), folder / f"{name}.png"),
        found.write_csv(folder / f"{name}.csv"),
    ]
