"""A gait, a controller and a ground by what a user types, and the run that comes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import controllers
from controllers import Gait
from legged.errors import DefinitionError, SimulationError, UnknownNameError
from legged.ground import Flat, Ground, Slope, Steps, Terrain, paper_ground, realistic_ground
from legged.reports.table import Table
from legged.robot.robot import Robot
from legged.simulation import Push, Run, simulate

CONTROLLERS: dict[str, Callable[..., Any]] = {
    "computed-torque": controllers.ComputedTorque,
    "feed-forward": controllers.FeedForward,
    "none": controllers.OpenLoop,
    "balanced": controllers.Balanced,
}
"""Control laws by name; "none" replays the torques of the inverse dynamics without feedback, "balanced" feeds back
trunk and foot placement."""
BALANCED_GAITS: dict[str, Gait] = {
    "Walk": controllers.Walk(hip_height=0.93, clearance=0.06),
    "Trot": controllers.Trot(period=0.4, stride=0.15, clearance=0.06),
    "Tripod": controllers.Tripod(stride=0.2),
}
"""Gaits that suit balancing: hips low enough to step farther, short steps for point feet."""
GROUNDS: dict[str, Callable[..., Ground]] = {"paper": paper_ground, "realistic": realistic_ground}


@dataclass(frozen=True)
class Scenario:
    """What to simulate.

    Attributes:
        robot: The robot. gait: What its joints follow. controller: A key of `CONTROLLERS`. ground: What it stands on.
        duration: [s]. pushes: Disturbances.
    """

    robot: Robot
    gait: Gait
    controller: str
    ground: Ground
    duration: float
    pushes: Sequence[Push] = ()

    def run(self, **options: Any) -> Run:
        """Return the run; one that ended early tells why in `ended`. Options are those of `simulate`."""
        if self.controller not in CONTROLLERS:
            raise UnknownNameError("controller", self.controller, CONTROLLERS)
        law = CONTROLLERS[self.controller](self.gait)
        try:
            return simulate(self.robot, law, ground=self.ground, until=self.duration, pushes=self.pushes, **options)
        except SimulationError as error:
            if isinstance(error.run, Run) and len(error.run) > 1:
                return error.run
            raise


def gait_named(name: str, controller: str, **given: float | None) -> Gait:
    """Return a gait of `controllers` for a control law, with the given attributes where they are not None."""
    usual = BALANCED_GAITS.get(name) if controller == "balanced" else None
    return replace(usual or getattr(controllers, name)(), **{k: x for k, x in given.items() if x is not None})


def ground_named(name: str, robot: Robot, terrain: Terrain | None = None) -> Ground:
    """Return the ground of that name for a robot, on a terrain or level."""
    if name not in GROUNDS:
        raise UnknownNameError("ground", name, GROUNDS)
    return GROUNDS[name](robot, terrain=terrain)


def terrain_named(text: str) -> Terrain:
    """Return a terrain from `flat`, `slope:DEGREES` (uphill along x) or `steps:RISE[,RUN]` in metres.

    Steps begin 0.5 m ahead and are 1 m long unless RUN says otherwise.
    """
    kind, _, rest = text.partition(":")
    try:
        numbers = [float(part) for part in rest.split(",")] if rest else []
    except ValueError:
        numbers = []
    if kind == "flat" and not rest:
        return Flat()
    if kind == "slope" and len(numbers) == 1:
        return Slope(float(np.radians(numbers[0])))
    if kind == "steps" and len(numbers) in (1, 2):
        run = numbers[1] if len(numbers) == 2 else 1.0
        edges = tuple(0.5 + run * k for k in range(50))
        return Steps(edges, (numbers[0],) * len(edges))
    raise DefinitionError(f"terrain must be flat, slope:DEGREES or steps:RISE[,RUN] in metres, got {text!r}")


def summary(run: Run, robot: Robot, gait: Gait | None = None) -> Table:
    """Return what a run comes to, in numbers."""
    weight = robot.mass * float(np.linalg.norm(robot.gravity))
    rows = [
        ("simulated time", f"{run.duration:.2f} s" + (f", {run.ended}" if run.ended else "")),
        ("distance, sideways", f"{run.base_position[-1, 0] - run.base_position[0, 0]:.3f} m, {_sideways(run):.3f} m"),
        ("mean speed", f"{run.mean_velocity[0]:.3f} m/s" + _planned(gait)),
        ("height of the base", f"{run.base_position[:, 2].min():.4f} to {run.base_position[:, 2].max():.4f} m"),
        ("largest lean of the base", f"{np.degrees(lean(run).max()):.2f} degrees"),
        ("largest joint error", f"{np.degrees(joint_error(run).max()):.2g} degrees"),
        ("vertical force, mean", f"{_mean_over_time(run, run.ground_force[:, 2]) / weight:.3f} of the weight"),
        ("energy drift", f"{run.energy_drift:.1e} J"),
    ]
    return Table(f"{run.robot}, {run.engine}", ("", ""), tuple(rows), left=2)


def _planned(gait: Gait | None) -> str:
    return f", planned {gait.stride / gait.period:.3f} m/s" if gait is not None else ""


def _sideways(run: Run) -> float:
    return float(np.abs(run.base_position[:, 1] - run.base_position[0, 1]).max())


def lean(run: Run) -> np.ndarray:
    """Return the angle between the base's initially vertical axis and the vertical, (T,), [rad]."""
    up = run.base_rotation[0, 2]
    return np.arccos(np.clip(run.base_rotation[:, 2] @ up, -1.0, 1.0))


def joint_error(run: Run) -> np.ndarray:
    """Return each sample's largest distance of a joint from its reference, (T,), [rad]; zeros without reference."""
    if run.reference.shape != run.joint_positions.shape:
        return np.zeros(len(run))
    return np.abs(run.joint_positions - run.reference).max(axis=1)


def _mean_over_time(run: Run, values: np.ndarray) -> float:
    return float(np.diff(run.times) @ (values[1:] + values[:-1]) / 2 / run.duration)


def write(run: Run, folder: Path) -> list[Path]:
    """Write a run's data, figures and animation into a folder, and return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    data = [run.save(folder / "run.npz"), run.to_csv(folder / "run.csv")]
    return [*data, *run.save_figures(folder), run.animate(folder / "animation.gif")]
