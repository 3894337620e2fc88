"""The error of the energy of motions on compliant ground against the step, beside the largest stable step.

    python -m benchmarks.pages walking-steps standing-steps implicit-steps

The error is the largest rise or fall of kinetic and potential energy minus all work, `run.energy_drift`, as a share of
the energy that the motion moves: its largest kinetic energy plus the work of actuators, without regard to signs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import controllers
import legged
import robots
from benchmarks.harness.subjects import robot_file
from benchmarks.pages.parts import table
from legged.errors import SimulationError, SimulationWarning
from legged.ground import paper_ground, realistic_ground
from legged.simulation.checks.stable_step import stable_step_of_loop
from legged.simulation.stepping.batch import RolloutBatch, initial_state

FACTORS = 0.5, 1.0, 2.0
"""Steps over the largest stable one."""
GROUNDS: dict[str, Callable[[legged.Robot], Any]] = {"realistic": realistic_ground, "paper": paper_ground}


def _go2() -> tuple[legged.Robot, Any]:
    """Return Go2 and the law of its trot."""
    robot = legged.load(robot_file("go2_description/urdf/go2.urdf"))
    gait = controllers.suited(controllers.Trot, robot, period=0.4, stride=0.12, clearance=0.05)
    return robot, controllers.suited_law(controllers.Balanced, gait)


def walking() -> dict[str, tuple[legged.Robot, Any]]:
    """Return robots and laws that walk, by name."""
    biped, quadruped = robots.planar_biped(), robots.spatial_quadruped()
    return {
        "planar biped, `ComputedTorque` walk": (biped, controllers.ComputedTorque(controllers.Walk())),
        "planar biped, `JointPD` walk": (biped, controllers.JointPD(controllers.Walk())),
        "quadruped, `ComputedTorque` trot": (quadruped, controllers.ComputedTorque(controllers.Trot())),
        "Go2 (file), `Balanced` trot": _go2(),
    }


def standing() -> dict[str, tuple[legged.Robot, Any]]:
    """Return robots and laws that stand, by name."""
    robot, stand = robots.spatial_quadruped(), controllers.Stand(hip_height=0.45)
    laws = {"JointPD": controllers.JointPD(stand), "Balanced": controllers.Balanced(stand)}
    return {f"quadruped standing, `{name}`": (robot, law) for name, law in laws.items()}


def limit(robot: legged.Robot, law: Any, ground: Any) -> float:
    """Return the largest stable step of the robot under the law, [s], evaluated at this step itself."""
    batch = RolloutBatch.of(robot, (law, ground, (), ()), initial_state(robot, law, None, None), fall=False)
    loop, q, s, _ = batch.first
    step = 1e-2
    for _ in range(30):  # gains act implicitly by an amount that depends on the step
        step = float(np.sqrt(step * stable_step_of_loop(loop, q, s, legged.SemiImplicitEuler(step))))
    return step


def run_of(robot: legged.Robot, law: Any, ground: Any, integrator: Any, until: float) -> legged.Run | str:
    """Return a run, or why it ended early."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SimulationWarning)
        try:
            return legged.simulate(robot, law, ground=ground, until=until, integrator=integrator)
        except SimulationError as error:
            return "diverges" if "diverged" in str(error) else "falls"


def energy_error(run: legged.Run) -> float:
    """Return the error of the energy as a share of the energy that the motion moves."""
    moved = run.energy.kinetic.max() + np.abs(np.diff(run.energy.actuator_work)).sum()
    return float(run.energy_drift / moved)


def _rows(cases: dict[str, tuple[legged.Robot, Any]], until: float, text: Callable[[legged.Run], str]) -> list[Any]:
    """Return the rows of a table: robot and law, ground, limit, and a text for each of `FACTORS`."""
    rows = []
    for name, (robot, law) in cases.items():
        for ground_name, ground_of in GROUNDS.items():
            ground = ground_of(robot)
            largest = limit(robot, law, ground)
            runs = [run_of(robot, law, ground, legged.SemiImplicitEuler(f * largest), until) for f in FACTORS]
            texts = [run if isinstance(run, str) else text(run) for run in runs]
            rows.append((name, ground_name, f"{1e3 * largest:.2g} ms", *texts))
    return rows


HEADS = "ground", "estimated limit", "half of it", "limit", "twice"


def walking_table() -> str:
    """Return the table of the errors of the energy of walking robots in 0.4 s, in percent."""

    def error(run: legged.Run) -> str:
        percent = 100.0 * energy_error(run)
        return f"{percent:.0f} %" if percent >= 10.0 else f"{percent:.2g} %"

    return table(("robot and law", *HEADS), _rows(walking(), 0.4, error))


def standing_table() -> str:
    """Return the table of the largest speeds of joints of standing robots between 0.9 and 1 s."""

    def speed(run: legged.Run) -> str:
        last = np.abs(run.v[run.times > 0.9, 6:]).max()
        return "rests" if last < 1e-2 else f"{last:.2g} rad/s"

    return table(("robot and law", *HEADS), _rows(standing(), 1.0, speed))


def implicit_table() -> str:
    """Return the table of a trot with implicit contact forces beside one with semi-implicit steps, of 1 s."""
    robot, law = _go2()
    explicit, implicit = legged.SemiImplicitEuler, legged.LinearlyImplicitEuler
    cases = (explicit, 2e-5), (explicit, 1e-4), (implicit, 1e-3), (implicit, 2e-3)
    rows = []
    for name, ground_of in GROUNDS.items():
        for kind, step in cases:
            run = run_of(robot, law, ground_of(robot), kind(step), 1.0)
            numbers = (
                (run, "")
                if isinstance(run, str)
                else (f"{run.energy_drift:.2g}", f"{run.base.position[-1, 0] - run.base.position[0, 0]:.3f}")
            )
            rows.append((name, f"`{kind.__name__}`", f"{1e3 * step:g} ms", *numbers))
    return table(("ground", "integrator", "step", "energy error [J]", "distance [m]"), rows)
