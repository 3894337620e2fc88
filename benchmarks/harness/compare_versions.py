"""Processor times of two versions: `python -m benchmarks.harness.compare_versions FOLDER [--rounds N] [TASK ...]`.

FOLDER is a checkout of the other version, such as `git worktree add FOLDER v0.1.0` makes. Each task is measured in
processes of both versions in turns, after a first call in each process that compiles. The table has the smallest
processor time of a call of all processes of a version, and the ratio of this version to the other.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import controllers
import legged
import robots
from legged.ground import realistic_ground
from legged.table import Table

ROOT = Path(__file__).parents[2]
MEASURED = 0.5  # [s] of processor time for each task in a process


def _dynamics(function: Callable[..., Any], states: int | None) -> Callable[[], Any]:
    robot = robots.spatial_quadruped()
    q, v = robot.neutral(), np.zeros(robot.nv)
    given = (q, v, v) if states is None else tuple(np.tile(x, (states, 1)) for x in (q, v, v))
    return partial(legged.compile(function, robot), *given)


def _trot(rigid: bool) -> tuple[legged.Robot, dict[str, Any]]:
    robot = robots.spatial_quadruped()
    law = controllers.ComputedTorque(controllers.suited(controllers.Trot, robot))
    ground = legged.Rigid() if rigid else realistic_ground(robot)
    steps = legged.TimeStepping(1e-3) if rigid else legged.SemiImplicitEuler(1e-4)  # [s]
    return robot, {"controller": law, "ground": ground, "integrator": steps}


def _simulation(rigid: bool) -> Callable[[], Any]:
    robot, options = _trot(rigid)
    return partial(legged.simulate, robot, until=0.2, **options)


def _rollout(rigid: bool) -> Callable[[], Any]:
    robot, options = _trot(rigid)
    rates = {"robot.trunk.mass": np.linspace(9.0, 11.0, 64)}  # [kg]
    return partial(legged.rollout, robot, until=0.1, vary=rates, threads=1, **options)


def _step(rigid: bool) -> Callable[[], Any]:
    robot, options = _trot(rigid)
    return legged.Simulation(robot, **options, q=options["controller"].initial_state(robot)[0]).step


def _servo(t: Any, q: Any, v: Any, wrenches: Any, command: Any) -> Any:
    return 60.0 * (command - q[7:]) - 2.0 * v[6:]  # [N m]


def _commanded_step(rigid: bool, num: int | None) -> Callable[[], Any]:
    robot, options = _trot(rigid)
    q, _ = controllers.Stand(hip_height=0.5).initial_state(robot)  # [m]
    options = {"ground": options["ground"], "integrator": options["integrator"], "q": q}
    simulation = legged.Simulation(robot, _servo, num=num, threads=1, fall=False, **options)
    return partial(simulation.step, q[7:] if num is None else np.tile(q[7:], (num, 1)))


def _variable_steps() -> Callable[[], Any]:
    robot = robots.planar_biped()
    law = controllers.ComputedTorque(controllers.paper_walk())
    return partial(legged.simulate, robot, law, ground=legged.ground.paper_ground(robot), until=0.2)


TASKS: dict[str, Callable[[], Callable[[], Any]]] = {
    "forward dynamics, one state": partial(_dynamics, legged.forward_dynamics, None),
    "inverse dynamics, one state": partial(_dynamics, legged.inverse_dynamics, None),
    "forward dynamics, 1000 states": partial(_dynamics, legged.forward_dynamics, 1000),
    "`simulate`, trot of 0.2 s on compliant ground": partial(_simulation, False),
    "`simulate`, trot of 0.2 s on rigid ground": partial(_simulation, True),
    "`simulate`, walk of 0.2 s with variable steps": _variable_steps,
    "`rollout`, 64 trots of 0.1 s on compliant ground": partial(_rollout, False),
    "`rollout`, 64 trots of 0.1 s on rigid ground": partial(_rollout, True),
    "`Simulation.step` on compliant ground": partial(_step, False),
    "`Simulation.step` on rigid ground": partial(_step, True),
    "`Simulation.step` with a command, compliant ground": partial(_commanded_step, False, None),
    "`Simulation.step` with a command, rigid ground": partial(_commanded_step, True, None),
    "`Simulation.step` of 64 robots with commands, rigid ground": partial(_commanded_step, True, 64),
}


def measure(task: str) -> float:
    """Return the smallest processor time of a call of a task, [s], after a call that compiles.

    Args:
        task: Its name.
    """
    call = TASKS[task]()
    call()
    begin, least, repeats = time.process_time(), np.inf, 1
    while time.process_time() - begin < MEASURED:
        before = time.process_time()
        for _ in range(repeats):
            call()
        elapsed = time.process_time() - before
        least = min(least, elapsed / repeats)
        repeats = max(repeats, int(0.02 / least))
    return float(least)


def _measured_in(folder: Path, task: str) -> float:
    """Return the result of `measure` in a process with the packages of a checkout, [s]."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", str(Path(__file__)), str(folder), "--measure", task]
    result = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
    return float(result.stdout) if result.returncode == 0 else np.nan


def main() -> None:
    """Print the table, or the time of one task in this version."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="checkout of the other version")
    parser.add_argument("tasks", nargs="*", help="parts of names of tasks; by default all")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_intermixed_args()
    if options.measure:
        print(measure(options.measure))
        return
    rows = []
    for task in TASKS:
        if options.tasks and not any(part in task for part in options.tasks):
            continue
        pairs = [[_measured_in(folder, task) for folder in (options.folder, ROOT)] for _ in range(options.rounds)]
        before, after = 1e6 * np.min(pairs, axis=0)
        rows.append((task, f"{before:.3g}", f"{after:.3g}", f"{after / before:.2f}"))
        print(f"{task}: {before:.3g} us, {after:.3g} us, ratio {after / before:.2f}", flush=True)
    print(Table("Processor times of two versions", ("task", "before [us]", "after [us]", "ratio"), tuple(rows)).text())


if __name__ == "__main__":
    main()
