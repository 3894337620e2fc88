"""Objects with a state of the packages above simulation, and valid arguments of their methods, for `argument_cases`."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import legged
import robots
from legged import deployment, environments, optimization, sweeps


class Interface(deployment.RobotInterface):
    """A robot that sends nothing, and whose time goes on while the loop sleeps."""

    def __init__(self) -> None:
        self.time = 0.0

    def read(self) -> None: ...

    def write(self, command: deployment.JointCommand) -> None: ...

    def clock(self) -> float:
        return self.time

    def sleep_until(self, time: float) -> None:
        self.time = max(self.time, time)

    def close(self) -> None: ...


def _effort(robot: Any, at: Any) -> Any:
    return at.u


def _trial(x: float) -> float:
    return abs(x)


def _law(t: float, memory: Any, reading: Any, command: Any) -> Any:
    return memory, np.zeros(1), np.zeros(0)


def makers(folder: Path) -> dict[str, Callable[[], Any]]:
    """Return functions that make objects whose methods change them, by name of their class.

    Args:
        folder: For files.
    """
    pendulum, hopper = robots.chain(1, base=legged.FixedBase()), robots.planar_hopper()
    stages = [optimization.Stage(0.01, terms=[optimization.Cost(_effort)]) for _ in range(3)]

    def problem() -> Any:
        return optimization.Problem(pendulum, stages, q=pendulum.neutral())

    def plan() -> Any:
        robots_of_plan = legged.Simulation(hopper, ground=legged.Rigid(), num=2, fall=False)
        return optimization.Sampling(
            robots_of_plan, [], horizon=0.02, command=np.zeros(2), noise=0.1, interval=0.01, knots=2
        )

    def study() -> Any:
        return sweeps.sweep(_trial, {"x": [1.0, 2.0]}, folder / "objects").compute()

    quadruped = robots.spatial_quadruped()
    high = quadruped.state(base_position=(0.0, 0.0, 1.0)).q
    made: dict[str, Callable[[], Any]] = {
        "Problem": problem,
        "Solver": lambda: optimization.Solver(problem()),
        "Sampling": plan,
        "Runner": lambda: deployment.Runner(Interface(), _law, np.zeros(1)),
        "LiveVelocity": deployment.LiveVelocity,
        "SimulatedRobot": lambda: deployment.SimulatedRobot(quadruped, high),
        "Sweep": study,
    }
    if find_spec("gymnasium"):
        made["VectorEnvironment"] = lambda: _begun(environments.make(environments.pendulum(), num_envs=2))
        made["Environment"] = lambda: _begun(environments.make(environments.pendulum()))
    return made


def _begun(environment: Any) -> Any:
    environment.reset(seed=1)
    return environment


def method_arguments() -> dict[str, dict[str, Any]]:
    """Return the arguments of the methods that are called, by class and name."""
    pendulum, nj = robots.chain(1, base=legged.FixedBase()), robots.spatial_quadruped().nj
    q, v = robots.planar_hopper().neutral(), np.zeros(5)
    return {
        "Problem.set_start": {"q": pendulum.neutral() + 0.1, "v": np.ones(1)},
        "Solver.set_guess": {"q": pendulum.neutral() + 0.1, "v": np.ones(1), "u": np.ones(1)},
        "Solver.shift": {"count": 1},
        "Solver.solve": {"iterations": 1, "tolerance": 1e-9, "gap_tolerance": 1e-8, "constraint_tolerance": 1e-4},
        "Sampling.improve": {"q": q, "v": v, "iterations": 1},
        "Sampling.shift": {"duration": 0.01},
        "Runner.change": {"limits": deployment.SafetyLimits(), "law": _law, "command": np.zeros},
        "Runner.stop": {"reason": "a test"},
        "Runner.run": {"duration": 0.0},
        "LiveVelocity.move": {"axes": np.zeros(3)},
        "LiveVelocity.press": {"key": "w"},
        "SimulatedRobot.write": {"command": deployment.JointCommand.damping(nj, 1.0)},
        "VectorEnvironment.reset": {"seed": 3, "options": {"reset_mask": np.array([True, False])}},
        "VectorEnvironment.step": {"actions": np.zeros((2, 1))},
        "VectorEnvironment.record": {"robots": 0},
        "VectorEnvironment.commands": {"commands": np.zeros(0)},
        "Environment.reset": {"seed": 3, "options": None},
        "Environment.step": {"action": np.zeros(1)},
        "Sweep.table": {"partial": True},
        "Sweep.run": {"row": 0},
    }
