"""Simulate a robot on a gait, and summarize and write the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import controllers
from controllers import Gait, NumericalGait
from legged.app.selection import select_controller
from legged.arguments import known_name
from legged.contact.rigid import Rigid
from legged.dynamics.kinematics import point_positions
from legged.errors import DefinitionError, SimulationError
from legged.ground import Ground, Terrain
from legged.output import write_file
from legged.robot.robot import Robot
from legged.simulation import Run, Simulation, TimeStepping, rollout, rollout_parameters, simulate
from legged.simulation.checks.overlap import PENETRATION
from legged.simulation.results.run_table import run_table
from legged.table import Table


def on_gait(
    robot: Robot, gait: Gait | NumericalGait, controller: str, ground: Ground, duration: float, **options: Any
) -> Run:
    """Return the run of a robot on a gait; its attribute `ended` gives the reason of an early end.

    Args:
        robot: The robot. gait: Reference motion. controller: Key of `legged.app.selection.CONTROLLERS`.
        ground: Ground model. duration: Simulated time, [s]. options: Further arguments of `simulate`.
    """
    return simulated(robot, select_controller(controller, gait), ground=ground, until=duration, **options)


def compare(
    robot: Robot, law: Any, name: str, values: list[float], ground: Ground | Rigid, duration: float, **options: Any
) -> list[Run]:
    """Return the runs of a robot with several values of a number, side by side in one rollout.

    Args:
        robot, law, ground, options: As in `rollout`. duration: Simulated time, [s].
        name: A name that `rollout(vary=...)` knows, such as "controller.kp".
        values: The values, each at every entry of the number if it is an array.

    Raises:
        UnknownNameError: The setup has no number of this name.
    """
    numbers = rollout_parameters(robot, law, ground=ground)
    shape = np.shape(numbers[known_name("parameter", name, numbers)])
    rows = np.array(values).reshape(-1, *[1] * len(shape)) * np.ones((len(values), *shape))
    runs = rollout(robot, law, ground=ground, until=duration, vary={name: rows}, **options)
    return [runs.run(i) for i in range(len(runs))]


def check_start(robot: Robot, law: Any, ground: Ground) -> None:
    """Raise DefinitionError if the first posture of a controller, which stands on level ground, misses the terrain.

    Args:
        robot: The robot. law: A controller with a gait. ground: The ground.
    """
    q, _ = law.initial_state(robot)
    x, y, _ = point_positions(robot, q, [(contact.link, contact.position) for contact in robot.contacts]).T
    heights = np.asarray(ground.terrain.height(x, y))
    if (np.abs(heights) > PENETRATION).any():
        low, high = 1e3 * np.array([min(heights.min(), 0.0), max(heights.max(), 0.0)])
        raise DefinitionError(
            f"this gait is planned for level ground, and the terrain under the feet of its first posture is "
            f"{low:.0f} to {high:.0f} mm high; walk on terrain with --velocity, such as --velocity 0.3 0 0"
        )


def commanded(gait: str, velocity: tuple[float, float, float], terrain: Terrain) -> tuple[Any, dict[str, Any]]:
    """Return a law that walks at a commanded velocity on rigid ground, and the options of its simulation.

    Args:
        gait: Key of `controllers.locomotion.gait.schedule.GAITS`.
        velocity: Velocity forward and to the left, [m/s], and yaw rate, [rad/s].
        terrain: The surface, which the controller knows.
    """
    law = controllers.Locomotion(gait, controllers.Command(*velocity), terrain=terrain)
    return law, {"ground": Rigid(terrain=terrain), "integrator": TimeStepping(2e-3)}


def drive(robot: Robot, gait: str, terrain: Terrain, folder: Path, port: int = 8080, wait: bool = True) -> Any:
    """Show a robot on rigid ground that walks as a user drives it, and return the viewer.

    Args:
        robot: The robot.
        gait: Key of `controllers.locomotion.gait.schedule.GAITS`.
        terrain: The surface, which the controller knows.
        folder: Folder of the recordings.
        port: Port of the page.
        wait: Whether to return only after Ctrl-C.
    """
    from legged.viewer import Drive, view

    law = controllers.Locomotion(gait, None, terrain=terrain)
    simulation = Simulation(robot, law, ground=Rigid(terrain=terrain), integrator=TimeStepping(2e-3))
    pace = float(np.sqrt(np.linalg.norm(robot.gravity) * controllers.home_of(robot).hip_height))
    speeds = Drive(0.5 * pace, 0.25 * pace, 1.5 * pace / controllers.home_of(robot).hip_height * 0.25, folder)
    return view(simulation, drive=speeds, port=port, wait=wait)


def simulated(robot: Robot, law: Any, **options: Any) -> Run:
    """Return the run; its attribute `ended` gives the reason of an early end. Options as in `simulate`."""
    try:
        return simulate(robot, law, **options)
    except SimulationError as error:
        if isinstance(error.run, Run) and len(error.run) > 1:
            return error.run
        raise


def summary(
    run: Run, gait: Gait | NumericalGait | None = None, velocity: tuple[float, float, float] | None = None
) -> Table:
    """Return the main results of a run as a table, beside the speed that a gait plans or the commanded velocity."""
    plan = gait.gait if isinstance(gait, NumericalGait) else gait
    return run_table(run, None if plan is None else plan.stride / plan.period, velocity)


def write(run: Run, table: Table, folder: Path) -> list[Path]:
    """Write data, table, figures, animation and replay of a run to a folder, and return the paths."""
    from legged.simulation import plots  # imported here, since Matplotlib takes long to import

    data = [run.save(folder / "run.npz"), run.to_csv(folder / "run.csv")]
    pages = [plots.animate(run, folder / "animation.gif"), run.save_html(folder / "replay.html")]
    return [*data, *write_table(table, folder), *plots.save_figures(run, folder), *pages]


def write_table(table: Table, folder: Path) -> list[Path]:
    """Write a table as table.csv and table.tex to a folder, and return the paths."""
    return [table.to_csv(folder / "table.csv"), write_file(folder / "table.tex", table.to_latex(), ".tex")]
