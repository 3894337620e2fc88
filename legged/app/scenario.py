"""Simulate a robot on a gait: select gait, controller, ground and terrain by name, run, and summarize the run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

import controllers
from controllers import Gait, GaitLaw, NumericalGait, suited, suited_law
from legged.errors import DefinitionError, SimulationError, UnknownNameError
from legged.ground import Flat, Ground, Slope, Stairs, Terrain, paper_ground, realistic_ground
from legged.robot.robot import Robot
from legged.simulation import Push, Run, simulate
from legged.table import Table

CONTROLLERS: dict[str, type[GaitLaw]] = {
    "computed-torque": controllers.ComputedTorque,
    "feed-forward": controllers.FeedForward,
    "none": controllers.OpenLoop,
    "balanced": controllers.Balanced,
    "servo": controllers.JointPD,
}
"""Controllers by name: "none" replays the torques of inverse dynamics without feedback, "balanced" adds feedback of the
trunk and foot placement, "servo" controls each joint independently."""
BALANCED_GAITS: dict[str, Gait] = {
    "Walk": controllers.Walk(hip_height=0.93, clearance=0.06),
    "Trot": controllers.Trot(period=0.4, stride=0.15, clearance=0.06),
    "Tripod": controllers.Tripod(stride=0.2),
}
"""Gaits for the balanced controller: low hips for long recovery steps, short steps for point feet."""
GROUNDS: dict[str, Callable[..., Ground]] = {"paper": paper_ground, "realistic": realistic_ground}


@dataclass(frozen=True)
class Scenario:
    """A robot on a gait under a controller on a ground.

    Attributes:
        robot: The robot.
        gait: Reference motion.
        controller: Key of `CONTROLLERS`.
        ground: Ground model.
        duration: Simulated time, [s].
        pushes: Disturbances.
    """

    robot: Robot
    gait: Gait | NumericalGait
    controller: str
    ground: Ground
    duration: float
    pushes: Sequence[Push] = ()

    def run(self, **options: Any) -> Run:
        """Return the run; its attribute `ended` gives the reason of an early end. Options as in `simulate`."""
        law = select_controller(self.controller, self.gait)
        try:
            return simulate(self.robot, law, ground=self.ground, until=self.duration, pushes=self.pushes, **options)
        except SimulationError as error:
            if isinstance(error.run, Run) and len(error.run) > 1:
                return error.run
            raise


def default_controller(robot: Robot, gait: str) -> str:
    """Return the name of the default controller of a gait: balanced unless the gait is tuned for the robot."""
    if gait == "Stand":
        return "balanced"
    return "computed-torque" if robot.audit is None or gait == "Crawl" else "balanced"


def default_ground(robot: Robot, gait: str) -> str:
    """Return the name of the default ground: that of the paper for robots defined in code."""
    return "realistic" if gait == "Stand" or robot.audit is not None else "paper"


def select_gait(name: str, robot: Robot, controller: str, **given: float | None) -> Gait | NumericalGait:
    """Return a gait of `controllers` for a robot and a control law, with the given attributes where they are not None.

    Robots from files, and standing robots, get a gait scaled to their size; robots defined in code that of the paper.
    """
    kind = getattr(controllers, name)
    if robot.audit is not None or name == "Stand":
        return suited(kind, robot, home=None, **given)
    usual = BALANCED_GAITS.get(name) if controller == "balanced" else None
    return replace(usual or kind(), **{k: x for k, x in given.items() if x is not None})


def select_controller(name: str, gait: Any) -> Any:
    """Return a controller for a gait, with gains scaled to the robot for scaled gaits and default gains otherwise."""
    if name not in CONTROLLERS:
        raise UnknownNameError("controller", name, CONTROLLERS)
    kind = CONTROLLERS[name]
    return suited_law(kind, gait) if isinstance(gait, NumericalGait) else kind(gait)


def gait_table(gait: Gait | NumericalGait, law: Any) -> Table:
    """Return a table of the parameters of a gait and the gains of a controller."""
    plan = gait.gait if isinstance(gait, NumericalGait) else gait
    name = type(plan).__name__ + (", suited to the robot's size" if isinstance(gait, NumericalGait) else "")
    rows = [("height of the hips", f"{plan.hip_height:.3f} m")]
    if not isinstance(plan, controllers.Stand):
        rows += [
            ("period, stride of a step", f"{plan.period:.3f} s, {plan.stride:.3f} m"),
            ("speed", f"{plan.stride / plan.period:.3f} m/s, Froude number {froude(plan):.2g}"),
            ("clearance of the feet", f"{plan.clearance:.3f} m"),
        ]
    return Table(name, ("", ""), (*rows, *gain_rows(law)), left=2)


def froude(plan: Gait) -> float:
    """Return the Froude number v^2 / (g h) of a gait; inverted-pendulum walking is possible up to 1."""
    return (plan.stride / plan.period) ** 2 / (plan.gravity * plan.hip_height)


def gain_rows(law: Any) -> list[tuple[str, str]]:
    """Return the gains of a controller, one row each: a number, a pair, or the range over the joints."""
    gains = [(item.name, getattr(law, item.name)) for item in fields(law) if item.name in GAINS]
    return [(f"{GAINS[name]} ({name})", _gain(value)) for name, value in gains if value is not None]


GAINS = {
    "kp": "joint stiffness",
    "kd": "joint damping",
    "attitude": "trunk's attitude",
    "height": "trunk's height",
    "foot": "swinging feet",
    "posture": "joints of no leg",
}


def _gain(value: Any) -> str:
    low, high = float(np.min(value)), float(np.max(value))
    if isinstance(value, tuple):
        return ", ".join(f"{x:.4g}" for x in value)
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"


def select_ground(name: str, robot: Robot, terrain: Terrain | None = None) -> Ground:
    """Return the named ground model for a robot, on a terrain; level if None."""
    if name not in GROUNDS:
        raise UnknownNameError("ground", name, GROUNDS)
    return GROUNDS[name](robot, terrain=terrain)


def parse_terrain(text: str) -> Terrain:
    """Return a terrain from `flat`, `slope:DEGREES` (uphill along x) or `steps:RISE[,RUN]` in meters.

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
        return Stairs(edges, (numbers[0],) * len(edges))
    raise DefinitionError(f"terrain must be flat, slope:DEGREES or steps:RISE[,RUN] in meters, got {text!r}")


def summary(run: Run, robot: Robot, gait: Gait | NumericalGait | None = None) -> Table:
    """Return the main results of a run as a table."""
    weight = robot.mass * float(np.linalg.norm(robot.gravity))
    rows = [
        ("simulated time", f"{run.duration:.2f} s" + (f", {run.ended}" if run.ended else "")),
        ("distance, sideways", f"{run.base.position[-1, 0] - run.base.position[0, 0]:.3f} m, {_sideways(run):.3f} m"),
        ("mean speed", f"{run.mean_velocity[0]:.3f} m/s" + _planned(gait)),
        ("height of the base", f"{run.base.position[:, 2].min():.4f} to {run.base.position[:, 2].max():.4f} m"),
        ("largest lean of the base", f"{np.degrees(lean(run).max()):.2f} degrees"),
        ("largest joint error", f"{np.degrees(joint_error(run).max()):.2g} degrees"),
        ("vertical force, mean", f"{_mean_over_time(run, run.ground_force[:, 2]) / weight:.3f} of the weight"),
        ("energy drift", f"{run.energy_drift:.1e} J"),
    ]
    return Table(f"{run.robot}, {run.backend}", ("", ""), tuple(rows), left=2)


def _planned(gait: Gait | NumericalGait | None) -> str:
    plan = gait.gait if isinstance(gait, NumericalGait) else gait
    return f", planned {plan.stride / plan.period:.3f} m/s" if plan is not None else ""


def _sideways(run: Run) -> float:
    return float(np.abs(run.base.position[:, 1] - run.base.position[0, 1]).max())


def lean(run: Run) -> np.ndarray:
    """Return the angle between the initially vertical base axis and the vertical, (T,), [rad]."""
    up = run.base.rotation[0, 2]
    return np.arccos(np.clip(run.base.rotation[:, 2] @ up, -1.0, 1.0))


def joint_error(run: Run) -> np.ndarray:
    """Return the largest joint error of each sample, (T,), [rad] or [m]; zeros without a reference."""
    if run.joints.reference.shape != run.joint_positions.shape:
        return np.zeros(len(run))
    return np.abs(run.joint_positions - run.joints.reference).max(axis=1)


def _mean_over_time(run: Run, values: np.ndarray) -> float:
    return float(np.diff(run.times) @ (values[1:] + values[:-1]) / 2 / run.duration)


def write(run: Run, folder: Path) -> list[Path]:
    """Write data, figures and animation of a run to a folder, and return the paths."""
    from legged.simulation import plots  # imported here, since Matplotlib takes long to import

    folder.mkdir(parents=True, exist_ok=True)
    data = [run.save(folder / "run.npz"), run.to_csv(folder / "run.csv")]
    return [*data, *plots.save_figures(run, folder), plots.animate(run, folder / "animation.gif")]
